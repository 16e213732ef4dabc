"""The interface of an engine: the methods that models call, independent of how they are computed.

An `Engine` is chosen by name and dtype (`wordpiece_bert.bert.engines.get_engine`). It receives the weights of a model
once and returns an `Encoder`, which never changes afterwards and may be shared by threads. Shapes are written with the
letters of `wordpiece_bert.bert.functional`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias

from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.bert.parameters import PREPARING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np
    import numpy.typing as npt

    from wordpiece_bert.bert.checkpoint.safetensors import AnyArray
    from wordpiece_bert.bert.config import BertConfig
    from wordpiece_bert.bert.functional import Array, Ids
    from wordpiece_bert.bert.inputs import Inputs
    from wordpiece_bert.bert.quantized import Int8Weight

#: Rows of token ids that a model is run over before it is quantized, or what makes them, called if they are needed.
Calibration: TypeAlias = "Sequence[Ids] | Callable[[], Sequence[Ids]]"
#: The rows of a sparse matrix: indptr int64 [B + 1], indices int32 and values float32 [numbers].
CsrArrays = tuple["npt.NDArray[np.int64]", "npt.NDArray[np.int32]", "npt.NDArray[np.float32]"]


class PackedWeight(Protocol):
    """A weight that the engine stores only in its own layout."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape in a checkpoint."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Its dtype."""

    @property
    def nbytes(self) -> int:
        """Size of its numbers in bytes, without the padding of the layout."""

    def unpack(self) -> AnyArray | Int8Weight:
        """Return it in the layout of a checkpoint, as a new array."""


class Encoder(Protocol):
    """The weights of one model, ready to run."""

    @property
    def weights(self) -> Mapping[str, AnyArray | PackedWeight]:
        """All weights as the encoder stores them, by BERT's names; the model keeps no others."""

    @property
    def takes_rows(self) -> bool:
        """Whether `pooled` runs rows of different lengths without padding, so that sorting them gains nothing."""

    def forward(
        self, inputs: Inputs, *, hidden_states: bool, attentions: bool, visible_only: bool, threads: int | None
    ) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """Run embeddings and all layers over a batch of at least one row.

        Parameters
        ----------
        inputs
            What `check_inputs` returned.
        hidden_states
            Whether to return all L + 1 hidden states, or the last one only.
        attentions
            Whether to return the attention weights.
        visible_only
            Whether masked positions, except the first of each row, may be skipped and left 0.
        threads
            Number of threads; None for the default.

        Returns
        -------
        tuple of arrays
            Hidden states, float32 [B, S, H] each; the last of them is x_L.
        tuple of arrays
            Attention weights, float32 [B, N, S, S] for each layer; empty unless requested.
        """

    def pooler(self, x: Array) -> Array | None:
        """[B, S, H] -> [B, H], as `functional.pooler`; None for a model without one."""

    def pooled(self, ids: Ids, ends: Ids, modes: Sequence[str], skip: int, threads: int | None) -> Array:
        """Run all layers over rows of different lengths and pool each of them.

        Parameters
        ----------
        ids
            The ids of all rows, one row after the other, [tokens]; token types are 0.
        ends
            Row i is ``ids[ends[i]:ends[i + 1]]``, [B + 1].
        modes
            The ways of pooling whose results are concatenated.
        skip
            Number of tokens at the start of each row that are not pooled.
        threads
            Number of threads; None for the default.

        Returns
        -------
        array
            float32 [B, modes · H].
        """

    @completed_by(pooled)
    def token_states(self, ids: Ids, ends: Ids, keys: Ids, threads: int | None) -> Array:
        """Run all layers over rows of different lengths: the vectors of all tokens.

        Parameters
        ----------
        keys
            How many tokens of each row, from the first on, may be attended to, [B]; the others are computed as well.

        Returns
        -------
        array
            float32 [tokens, H].
        """


class HeadLayers(NamedTuple):
    """The layers of a masked-language head: logits = decoder(LN(activation(dense(x))))."""

    #: Weight [E, H] and bias [E] of the dense layer.
    dense: tuple[Array, Array]
    #: A name in `functional.ACTIVATIONS`.
    activation: str
    #: γ and β of the layer norm, [E].
    norm: tuple[Array, Array]
    #: ε of the layer norm.
    eps: float
    #: Weight [V, E] and bias [V] of the decoder.
    decoder: tuple[Array, Array]


class VocabularyHead(Protocol):
    """A masked-language head whose logits are pooled over the tokens of each row, for sparse vectors."""

    def encode(
        self,
        x: Array,
        ends: Ids,
        pooling: Literal["max", "sum"],
        *,
        twice: bool,
        max_values: int | None,
        threads: int | None,
    ) -> CsrArrays:
        """Pool ln(1 + max(logits, 0)) over the tokens of each row.

        The logits of all tokens are never in memory at once.

        Parameters
        ----------
        x
            The vectors of all tokens, [tokens, H].
        ends
            The tokens of row i are ``x[ends[i]:ends[i + 1]]``, at least one, [B + 1].
        pooling
            Whether the greatest value of the tokens is taken, or their sum.
        twice
            Whether the logarithm is taken twice: ln(1 + ln(1 + max(logits, 0))).
        max_values
            How many values of a row are kept, the greatest, and of equal values the lower ids; None for all.
        threads
            Number of threads; None for the default.

        Returns
        -------
        tuple of arrays
            The values other than 0 of a matrix [B, V].
        """


class Dense(Protocol):
    """A dense layer of a head."""

    def __call__(self, x: Array) -> Array:
        """[..., in] -> [..., out], as `functional.linear`."""


class Engine(Protocol):
    """Does the arithmetic of models."""

    @completed_by(PREPARING)
    def prepare(
        self, config: BertConfig, weights: Mapping[str, Array], calibration: Calibration | None = None
    ) -> Encoder:
        """Return an encoder over these weights."""

    def dense(self, weight: Array, bias: Array) -> Dense:
        """Return a dense layer: weight [out, in], bias [out]."""

    def decoder(self, weight: Array, bias: Array) -> Dense:
        """Return a dense layer with an output for each token of the vocabulary, in the dtype of the engine."""

    def vocabulary_head(self, layers: HeadLayers) -> VocabularyHead:
        """Return a masked-language head that pools its logits."""

    def linear(self, x: Array, weight: Array, bias: Array) -> Array:
        """x·Wᵀ + b, as `functional.linear`."""

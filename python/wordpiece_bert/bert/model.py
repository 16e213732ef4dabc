"""BERT: embeddings, a stack of encoder layers, a pooler.

Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding" (2019). The formulas
are in `functional`, and `engines` computes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.bert import functional
from wordpiece_bert.bert.base_model import Model
from wordpiece_bert.bert.checkpoint import Layout, Resolved
from wordpiece_bert.bert.checkpoint.names import POOLER, renamed
from wordpiece_bert.bert.engines.packing import quantized_table
from wordpiece_bert.bert.inputs import Inputs, check_inputs, check_rows
from wordpiece_bert.bert.outputs import BertOutput
from wordpiece_bert.bert.parameters import INPUTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from wordpiece_bert.bert.config import BertConfig
    from wordpiece_bert.bert.engines import Engine
    from wordpiece_bert.bert.functional import Array, Mask
    from wordpiece_bert.tokenizer.ragged_batch import RaggedBatch


class BertModel(Model):
    """The BERT encoder: token ids to a vector for each token.

    It is made and loaded like every `Model`. Variants of BERT derive from this class: their weights have other names
    and their configurations other fields, while the arithmetic in which they differ is in `functional`.

    Examples
    --------
    >>> from wordpiece_bert import BertModel, Tokenizer
    >>> model, tokenizer = (
    ...     BertModel.from_pretrained("minilm"),
    ...     Tokenizer.from_pretrained("minilm"),
    ... )
    >>> output = model(**tokenizer(["The cat sleeps.", "Rates rise."], padding=True))
    >>> output.last_hidden_state.shape
    (2, 6, 384)

    Attributes
    ----------
    has_pooler : bool
        Whether the checkpoint has the weights of a pooler.
    """

    has_pooler: bool

    #: The prefix of the encoder's weights in the checkpoint of a model with a head.
    _prefix: ClassVar[str] = "bert."
    #: Parts of BERT's names, with what checkpoints have in their place: see `renamed`.
    _renames: ClassVar[Mapping[str, str]] = {}
    #: What the names of the layers' weights begin with, if layers may have no other tensors: see `Layout`.
    _layers: ClassVar[str] = ""
    #: Whether hidden_states are the outputs of the layers alone: without the embeddings, and before the last norm.
    _layers_only: ClassVar[bool] = False
    #: Prefixes of the weights of pre-training heads, which a model without a head ignores silently.
    _pretraining_heads: ClassVar[tuple[str, ...]] = ("cls.",)

    @classmethod
    def _name_in_checkpoint(cls, name: str, config: BertConfig) -> str:
        """Return the name in a checkpoint of this class for one of BERT's names."""
        del config  # used by ALBERT
        return renamed(name, cls._renames)

    @classmethod
    def _layout(cls, config: BertConfig) -> Layout:
        shapes = {cls._name_in_checkpoint(name, config): shape for name, shape in config.plan().shapes().items()}
        pooler = tuple(cls._name_in_checkpoint(name, config) for name in POOLER if config.has_pooler)
        return Layout(shapes, cls._prefix, optional=pooler, dropped=cls._pretraining_heads, layers=cls._layers)

    def _set_up(self, engine: Engine, resolved: Resolved) -> None:
        names = {name: self._name_in_checkpoint(name, self.config) for name in self.config.plan().shapes()}
        weights = {name: resolved.base[own] for name, own in names.items() if own in resolved.base}
        self.has_pooler = POOLER[0] in weights
        if self.dtype == "int8":
            table = "embeddings.word_embeddings.weight"
            self._weights[names[table]] = quantized = quantized_table(weights[table])
            weights[table] = quantized  # the Rust engine takes it as a table
        rows = self._calibration
        self._encoder = engine.prepare(self.config, weights, **({} if rows is None else {"calibration": rows}))
        # Keep the weights as the encoder stores them, so that each is in memory once.
        self._weights |= {names[name]: weight for name, weight in self._encoder.weights.items()}

    @completed_by(INPUTS)
    def __call__(
        self,
        input_ids: npt.ArrayLike | None = None,
        attention_mask: npt.ArrayLike | None = None,
        token_type_ids: npt.ArrayLike | None = None,
        position_ids: npt.ArrayLike | None = None,
        inputs_embeds: npt.ArrayLike | None = None,
        *,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
        visible_only: bool = False,
        threads: int | None = None,
    ) -> BertOutput:
        """Run the encoder.

        Parameters
        ----------
        visible_only : bool, default False
            Whether masked positions may be skipped and left 0, except the first of each row, which heads read. The
            Rust engine saves their work; the NumPy engine computes them in any case.

        Returns
        -------
        BertOutput
            For an empty batch (B = 0), with empty arrays.

        Raises
        ------
        InputError
            An array has the wrong shape or dtype, an id is outside its table, or a row is longer than
            `BertConfig.max_position_embeddings`; the message has the value and its index.

        Examples
        --------
        >>> from wordpiece_bert import BertModel, Tokenizer
        >>> model, tokenizer = (
        ...     BertModel.from_pretrained("minilm"),
        ...     Tokenizer.from_pretrained("minilm"),
        ... )
        >>> inputs = tokenizer("The cat sleeps.")
        >>> output = model(**inputs, output_attentions=True)
        >>> output.last_hidden_state.shape
        (1, 6, 384)
        >>> len(output.attentions), output.attentions[0].shape
        (6, (1, 12, 6, 6))
        """
        inputs = check_inputs(self.config, input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds)
        return self._run(
            inputs,
            output_hidden_states=output_hidden_states,
            output_attentions=output_attentions,
            visible_only=visible_only,
            threads=threads,
        )

    def _run(
        self,
        inputs: Inputs,
        *,
        output_hidden_states: bool,
        output_attentions: bool,
        visible_only: bool,
        threads: int | None,
    ) -> BertOutput:
        """Run the encoder over inputs that have been checked."""
        if inputs.shape[0] == 0:
            return self._empty_output(
                inputs.shape[1], output_hidden_states=output_hidden_states, output_attentions=output_attentions
            )
        states, weights = self._encoder.forward(
            inputs,
            hidden_states=output_hidden_states,
            attentions=bool(output_attentions),
            visible_only=visible_only,
            threads=threads,
        )  # [B, S, H] each, [B, N, S, S] each
        return BertOutput(
            last_hidden_state=states[-1],
            pooler_output=self._encoder.pooler(states[-1]),
            hidden_states=self._shown(states) if output_hidden_states else None,
            attentions=weights if output_attentions else None,
        )

    def _shown(self, states: tuple[Array, ...]) -> tuple[Array, ...]:
        """Return the hidden states of an output: those that the engine returns, or of the layers alone."""
        if self.config.plan().last is None:
            return states
        return states[1:-1] if self._layers_only else (*states[:-2], states[-1])

    def pool(self, x: Array, mask: Mask, mode: str, skip: int = 0) -> Array:
        """Pool token vectors [B, S, H] to one vector for each row, [B, H], as `functional.pool`.

        Parameters
        ----------
        x : ndarray of float32
            Token vectors [B, S, H].
        mask : ndarray of bool
            Which of them are tokens, [B, S].
        mode : str
            One of `POOLING_MODES`.
        skip : int, default 0
            How many tokens at the start of each row are left out.

        Returns
        -------
        ndarray of float32
            The vectors of the rows, [B, H].

        Examples
        --------
        >>> from wordpiece_bert import BertModel, Tokenizer
        >>> model, tokenizer = (
        ...     BertModel.from_pretrained("minilm"),
        ...     Tokenizer.from_pretrained("minilm"),
        ... )
        >>> inputs = tokenizer(["The cat sleeps.", "Rates rise."], padding=True)
        >>> x = model(**inputs).last_hidden_state
        >>> model.pool(x, inputs.attention_mask == 1, "mean").shape
        (2, 384)
        """
        return functional.pool(x, mask, mode, skip)

    @property
    def takes_rows(self) -> bool:
        """Whether the engine runs rows of different lengths without padding, so that sorting them gains nothing."""
        return self._encoder.takes_rows

    @completed_by(INPUTS)
    def pooled(
        self,
        rows: RaggedBatch,
        part: slice | npt.NDArray[np.intp],
        modes: Sequence[str],
        skip: int = 0,
        threads: int | None = None,
    ) -> Array:
        """Run the encoder over rows of ids and pool each row.

        Parameters
        ----------
        rows : RaggedBatch
            Rows of ids, as a tokenizer returns them. Token types are 0.
        part : slice or ndarray of intp
            Which of the rows: a slice of step 1, or their numbers. At least one, none of them empty.
        modes : sequence of str
            The ways of pooling (`wordpiece_bert.bert.functional.POOLING_MODES`) whose results are concatenated.
        skip : int, default 0
            How many tokens at the start of each row are not pooled.

        Returns
        -------
        array
            float32 [B, modes · H].

        Raises
        ------
        InputError
            An id is outside the word table, or a row is longer than `BertConfig.max_position_embeddings`; the message
            has the row.

        Examples
        --------
        >>> from wordpiece_bert import BertModel, Tokenizer
        >>> model, tokenizer = (
        ...     BertModel.from_pretrained("minilm"),
        ...     Tokenizer.from_pretrained("minilm"),
        ... )
        >>> rows = tokenizer.encode_batch(["The cat sleeps.", "Rates rise."])
        >>> model.pooled(rows, slice(0, 2), ["mean", "cls"]).shape
        (2, 768)
        """
        ids, ends = self._selected(rows, part)
        return self._encoder.pooled(ids, ends, modes, skip, threads)

    @completed_by(pooled)
    def token_states(
        self,
        rows: RaggedBatch,
        part: slice | npt.NDArray[np.intp],
        keys: npt.NDArray[np.int64] | None = None,
        threads: int | None = None,
    ) -> tuple[Array, npt.NDArray[np.int64]]:
        """Run the encoder over rows of ids: the vectors of all tokens, one row after the other.

        Parameters
        ----------
        keys : ndarray of int64, optional
            How many tokens of each of these rows, from the first on, may be attended to, [B]; the vectors of the others
            are computed all the same. By default all.

        Returns
        -------
        array
            float32 [tokens, H].
        array
            The vectors of row i are ``x[ends[i]:ends[i + 1]]``, int64 [B + 1].

        Raises
        ------
        InputError
            As for `pooled`.

        Examples
        --------
        >>> from wordpiece_bert import BertModel, Tokenizer
        >>> model, tokenizer = (
        ...     BertModel.from_pretrained("minilm"),
        ...     Tokenizer.from_pretrained("minilm"),
        ... )
        >>> rows = tokenizer.encode_batch(["The cat sleeps.", "Rates rise."])
        >>> x, ends = model.token_states(rows, slice(0, 2))
        >>> x.shape, ends
        ((11, 384), array([ 0,  6, 11]))
        """
        ids, ends = self._selected(rows, part)
        return self._encoder.token_states(ids, ends, np.diff(ends) if keys is None else keys, threads), ends

    def _selected(
        self, rows: RaggedBatch, part: slice | npt.NDArray[np.intp]
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """Return the checked ids of some rows, one row after the other, and where each begins, [B + 1]."""
        if isinstance(part, slice):
            numbers = np.arange(part.start, part.stop)
            offsets = rows.row_offsets[part.start : part.stop + 1]
            ids, ends = rows.ids[offsets[0] : offsets[-1]], offsets - offsets[0]
        else:
            numbers, lengths = part, rows.lengths[part]
            ends = np.concatenate([[0], np.cumsum(lengths)])
            ids = rows.ids[np.arange(ends[-1]) + np.repeat(rows.row_offsets[part] - ends[:-1], lengths)]
        check_rows(self.config, ids, ends, numbers)
        return ids, ends

    def _empty_output(self, length: int, *, output_hidden_states: bool, output_attentions: bool) -> BertOutput:
        """Return the output for a batch without rows."""
        c = self.config
        x = np.zeros((0, length, c.hidden_size), np.float32)
        p = np.zeros((0, c.num_attention_heads, length, length), np.float32)
        return BertOutput(
            last_hidden_state=x,
            pooler_output=np.zeros((0, c.hidden_size), np.float32) if self.has_pooler else None,
            hidden_states=(x,) * (c.encoder_layers + (not self._layers_only)) if output_hidden_states else None,
            attentions=(p,) * c.encoder_layers if output_attentions else None,
        )

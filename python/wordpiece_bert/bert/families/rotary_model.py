"""What NomicBERT and GTE v1.5 have in common: BERT with rotary positions and a gated feed-forward network.

Each layer computes a layer of BERT, norms after the residuals, except that queries and keys are rotated
(`wordpiece_bert.bert.rotary`), and that the feed-forward network has a gate (`functional.feed_forward`). There is no
table of positions, so nothing limits the length of a row.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from wordpiece_bert._internal.safe_json import quoted
from wordpiece_bert.bert.config import LARGEST_SIZE, MUST_BE, BertConfig, refuse
from wordpiece_bert.bert.families.rotated_config import RotatedConfig
from wordpiece_bert.bert.model import BertModel
from wordpiece_bert.bert.plan.building import attention, embeddings, gated_mlp, norm_last, pooler
from wordpiece_bert.bert.plan.parts import Plan
from wordpiece_bert.bert.rotary import Rotary
from wordpiece_bert.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    import numpy.typing as npt

    Tensors = Mapping[str, npt.NDArray[np.generic]]

# BERT's names of weights, as the engines use them, and the names of the modules, which `transformers` reads and which
# parameters and saved folders have here.
_NAMES = {
    "encoder.layer.": "layers.",
    ".attention.self.query.": ".self_attn.q_proj.",
    ".attention.self.key.": ".self_attn.k_proj.",
    ".attention.self.value.": ".self_attn.v_proj.",
    ".attention.output.dense.": ".self_attn.o_proj.",
    ".attention.output.LayerNorm.": ".post_attention_layernorm.",
    ".intermediate.gate.": ".mlp.gate_proj.",
    ".intermediate.up.": ".mlp.up_proj.",
    ".output.dense.": ".mlp.down_proj.",
    ".output.LayerNorm.": ".post_mlp_layernorm.",
}


# Fields of config.json with the only value that is supported, as for BERT.
ROTARY_MUST_BE: Mapping[str, object] = {**MUST_BE, "position_embedding_type": "rope", "partial_rotary_factor": 1.0}


@dataclass(frozen=True, kw_only=True)
class RotaryConfig(RotatedConfig):
    """Sizes and settings of a model with rotary positions: the fields of `BertConfig`, and three more.

    Attributes
    ----------
    head_dim : int or None
        d, the size of one head, an even number; None for H / N.
    rope_theta : float
        θ, from which the frequencies of the rotation are computed.
    rope_factor : float
        How many times longer than the texts of the training texts may be (NTK-aware scaling); 1 for no scaling.

    Examples
    --------
    >>> from wordpiece_bert.bert import NomicBertConfig
    >>> NomicBertConfig(head_dim=32).head_size
    32
    """

    head_dim: int | None = None
    rope_theta: float = 10_000.0
    rope_factor: float = 1.0

    has_pooler: ClassVar[bool] = True  # only below the head of a classifier of sequences
    _may_be_0: ClassVar[tuple[str, ...]] = ("type_vocab_size",)
    _must_be: ClassVar[Mapping[str, object]] = ROTARY_MUST_BE
    #: Whether queries, keys, values and the two outputs of a layer have biases.
    has_biases: ClassVar[bool] = False
    #: The dropout of training before the output of a gated network, as in `Mlp`.
    _gate_dropout: ClassVar[str] = ""
    #: The older names of fields; a field under its present name counts.
    _older_names: ClassVar[Mapping[str, str]] = {}

    def _check_heads(self) -> None:
        if self.head_dim is None:
            super()._check_heads()
        elif isinstance(self.head_dim, bool) or not isinstance(self.head_dim, int):
            refuse("head_dim", self.head_dim, "it must be an integer or null")
        elif not 2 <= self.head_dim <= LARGEST_SIZE or self.head_dim % 2:
            refuse("head_dim", self.head_dim, "a head that is rotated must have an even number of columns")
        self._check_positive("rope_theta", "rope_factor")

    @property
    def head_size(self) -> int:
        """Return d, the size of one head."""
        return self.hidden_size // self.num_attention_heads if self.head_dim is None else self.head_dim

    def _plan(self) -> Plan:
        """Return the layers of the model: the layers of BERT, with rotary positions and gated networks."""
        bias, rotary = self.has_biases, Rotary(self.head_size, self.rope_theta, self.rope_factor)
        layers = [
            norm_last(
                self,
                layer,
                attention(self, layer, size="attention_size", biases=bias, rotary=rotary),
                gated_mlp(self, layer, output_bias=bias, dropout=self._gate_dropout),
            )
            for layer in range(self.encoder_layers)
        ]
        return Plan(embeddings(self), tuple(layers), pooler=pooler(self))

    @classmethod
    def _in_present_form(cls, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Read the fields of older code, and the settings of the rotary positions; refuse other kinds of them."""
        older = {name: values[old] for old, name in cls._older_names.items() if old in values and name not in values}
        values = {**values, **older}
        rope = values.get("rope_parameters")
        scaling = values.get("rope_scaling")
        rope = scaling if rope is None else rope
        if rope is None:
            rope = {}
        if not isinstance(rope, dict):
            refuse("rope_parameters", rope, "it must be an object or null")
        kind = rope.get("rope_type", rope.get("type", "default"))
        if kind not in ("default", "ntk", None):
            refuse("rope_type", kind, "supported are default and ntk; results would be wrong")
        for name, usual in (("partial_rotary_factor", 1), ("mixed_b", None)):
            if rope.get(name) not in (usual, None):
                refuse(name, rope[name], f"it must be {usual or 'null'}; results would be wrong")
        known = {name: value for name, value in values.items() if name != "rope_factor"}
        if rope.get("rope_theta") is not None:
            known["rope_theta"] = rope["rope_theta"]
        if known.get("rope_theta", 0) is None:
            del known["rope_theta"]
        if kind == "ntk":
            if "factor" not in rope:
                refuse("rope_scaling", rope, "scaling of type ntk needs a factor")
            known["rope_factor"] = rope["factor"]
        return known

    def to_dict(self) -> dict[str, Any]:
        """Return the content of a ``config.json``.

        Returns
        -------
        dict
            The fields by the names of transformers, with values that JSON has.

        Examples
        --------
        >>> from wordpiece_bert.bert import GteConfig
        >>> GteConfig(rope_factor=4.0).to_dict()["rope_parameters"]
        {'rope_type': 'ntk', 'factor': 4.0, 'rope_theta': 160000.0}
        """
        written = super().to_dict()
        del written["rope_theta"], written["rope_factor"]
        kind: dict[str, Any] = {"rope_type": "default"}
        if self.rope_factor != 1.0:
            kind = {"rope_type": "ntk", "factor": self.rope_factor}
        return written | {"rope_parameters": {**kind, "rope_theta": self.rope_theta}}


class RotaryModel(BertModel):
    """The encoder of NomicBERT and GTE.

    Examples
    --------
    Only distances count: a row that begins at another position has the same vectors.

    >>> import numpy as np
    >>> from wordpiece_bert.bert import NomicBertConfig, NomicBertModel
    >>> config = NomicBertConfig(
    ...     vocab_size=100, hidden_size=48, num_hidden_layers=2, intermediate_size=96
    ... )
    >>> model = NomicBertModel.from_config(config)
    >>> x = model([[5, 6, 7]]).last_hidden_state
    >>> moved = model([[5, 6, 7]], position_ids=[[20, 21, 22]]).last_hidden_state
    >>> bool(np.allclose(x, moved, atol=1e-5))
    True
    """

    config_class: ClassVar[type[RotaryConfig]] = RotaryConfig
    _renames = _NAMES

    #: Prefixes that older code put before the names of the encoder's weights.
    _older_prefixes: ClassVar[tuple[str, ...]] = ()
    #: Older names of modules, as patterns, and what they are now.
    _older_modules: ClassVar[tuple[tuple[str, str], ...]] = ()

    @classmethod
    def _renamed(cls, weights: Tensors, config: BertConfig, source: str) -> Tensors:
        """Rename the tensors of older code to the names of the modules, and split those that hold several weights."""
        assert isinstance(config, RotaryConfig)
        found: dict[str, npt.NDArray[np.generic]] = {}
        for name, tensor in weights.items():
            for old in cls._older_prefixes:
                if name.startswith(old):
                    name = cls._prefix + name.removeprefix(old)
                    break
            for pattern, new in cls._older_modules:
                name, count = re.subn(pattern, new, name, count=1)
                if count:
                    break
            parts = cls._split(name, tensor, config, source)
            if twice := found.keys() & parts.keys():
                raise CheckpointError(f"{source}: {quoted(min(twice))} occurs twice, also by an older name")
            found |= parts
        return found

    @classmethod
    def _split(
        cls, name: str, tensor: npt.NDArray[np.generic], config: RotaryConfig, source: str
    ) -> dict[str, npt.NDArray[np.generic]]:
        """Return the weights that a tensor holds, by name: views of its rows."""
        if ".self_attn.qkv_proj." in name:
            return split_rows(name, tensor, "qkv_proj", ("q_proj", "k_proj", "v_proj"), config.attention_size, source)
        if ".mlp.up_gate_proj." in name:
            return split_rows(name, tensor, "up_gate_proj", ("up_proj", "gate_proj"), config.intermediate_size, source)
        return {name: tensor}


def split_rows(
    name: str, tensor: npt.NDArray[np.generic], old: str, parts: tuple[str, ...], rows: int, source: str
) -> dict[str, npt.NDArray[np.generic]]:
    """Split a tensor that holds several weights, `rows` rows each, one below the other.

    Raises
    ------
    CheckpointError
        It does not have that many rows.
    """
    if not tensor.ndim or len(tensor) != len(parts) * rows:
        required = f"{len(parts)} times {rows} rows"
        raise CheckpointError(
            f"{source}: {name} has shape {list(tensor.shape)}, but the configuration requires {required}"
        )
    return {name.replace(old, part): tensor[i * rows : (i + 1) * rows] for i, part in enumerate(parts)}

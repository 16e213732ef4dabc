"""The parts of a plan: a model's layers as data.

A plan says what a model computes and which weights it does it with, and nothing of how. Names of weights are BERT's,
without the suffix ``.weight`` or ``.bias``; sizes are names of fields of the configuration, or numbers; rates of
dropout are names of fields, and "" where there is no dropout. The engines, training, inspection and the estimates of
memory read a model's plan, and ask for nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from wordpiece_bert.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wordpiece_bert.bert.rotary import Rotary

#: The dimensions of a weight: names of fields of the configuration, or numbers.
Shape = tuple[str | int, ...]

_HIDDEN = "hidden_size"


@dataclass(frozen=True)
class Dense:
    """A dense layer, y = x·Wᵀ + b."""

    name: str
    inputs: str | int = _HIDDEN
    outputs: str | int = _HIDDEN
    bias: bool = True

    def shapes(self) -> dict[str, Shape]:
        """Return the names and shapes of its weights."""
        weight: dict[str, Shape] = {f"{self.name}.weight": (self.outputs, self.inputs)}
        return weight | ({f"{self.name}.bias": (self.outputs,)} if self.bias else {})


@dataclass(frozen=True)
class Norm:
    """A norm over the columns of a token: a layer norm, or one by the root mean square, which has no mean."""

    name: str
    eps: float
    size: str | int = _HIDDEN
    bias: bool = True
    kind: Literal["layer", "rms"] = "layer"

    def __post_init__(self) -> None:
        """Refuse a bias of a norm by the root mean square, which has none."""
        if self.bias and self.kind == "rms":
            raise ConfigError(f"{self.name}: a Norm of the kind 'rms' has no bias")

    def shapes(self) -> dict[str, Shape]:
        """Return the names and shapes of its weights."""
        weight: dict[str, Shape] = {f"{self.name}.weight": (self.size,)}
        return weight | ({f"{self.name}.bias": (self.size,)} if self.bias else {})


@dataclass(frozen=True)
class Table:
    """A table of vectors, of which each token reads a row."""

    name: str
    rows: str | int
    #: What a token has the number of its row from; "" for a table that tokens do not read.
    reads: Literal["ids", "types", "positions", "tasks", ""] = ""
    columns: str | int = _HIDDEN
    #: The padding's row, which training leaves as it is; None for no such row.
    fixed: int | None = None

    def shapes(self) -> dict[str, Shape]:
        """Return the name and shape of its weight."""
        return {f"{self.name}.weight": (self.rows, self.columns)}


@dataclass(frozen=True)
class Embeddings:
    """The input of the first layer: the sum of the rows of tables, then norms and dense layers in their order.

    The rows are added in the order words, types, positions, tasks. Dropout follows the norm, or the sum without one.
    """

    tables: tuple[Table, ...]
    then: tuple[Norm | Dense, ...] = ()
    #: Whether masked tokens are 0 from the norm on.
    masked: bool = False
    dropout: str = "hidden_dropout_prob"

    #: What a table may read, in the order in which rows are added.
    ORDER: ClassVar[tuple[str, ...]] = ("ids", "types", "positions", "tasks")

    def table(self, reads: str) -> Table | None:
        """Return the table that tokens read by their ids, types, positions or tasks; None if there is none."""
        return next((table for table in self.tables if table.reads == reads), None)


@dataclass(frozen=True)
class Distances:
    """A bias of the scores for each head and bucket of distances, which all layers share (MPNet)."""

    table: Table


@dataclass(frozen=True)
class Slopes:
    """A bias of the scores that falls with the distance, −m·|i − j|, with a slope m for each head (ALiBi)."""

    slopes: tuple[float, ...]


@dataclass(frozen=True)
class Relative:
    """Terms of the scores for relative positions (DeBERTa), from a table that all layers share."""

    #: The table of 2·`span` rows, and the norm that its rows go through.
    table: Table
    norm: Norm | None
    #: K, half the number of rows.
    span: int
    #: M, the distance from which on all pairs have the outermost bucket; 0 if every distance has its own row.
    longest: int
    #: What projects the rows to keys, for the term of the query's content, and to queries, for the term of the key's.
    keys: Dense | None
    queries: Dense | None
    #: The dropout of the rows, for each layer by itself.
    dropout: str = "hidden_dropout_prob"


@dataclass(frozen=True)
class Attention:
    """Multi-head self-attention, and the dense layer after it."""

    query: Dense
    key: Dense
    value: Dense
    output: Dense
    heads: int
    #: By what queries and keys are rotated.
    rotary: Rotary | None = None
    #: The greatest distance from a query to a key that it sees; None if it sees all.
    window: int | None = None
    #: The norms of queries and keys, over all heads.
    norms: tuple[Norm, Norm] | None = None
    #: What is added to the scores.
    bias: Distances | Slopes | None = None
    #: What else the scores consist of.
    relative: Relative | None = None
    #: How many terms the scores are sums of: they are divided by the root of this, times the size of a head.
    terms: int = 1
    #: Whether a masked query has equal weights for all keys, masked ones too.
    masked_sees_all: bool = False
    #: The dropout of the weights.
    dropout: str = "attention_probs_dropout_prob"

    #: The site of the dropout of its output.
    site: ClassVar[str] = "attention.output"
    #: Whether it reads the input of its layer, not the input of its residual.
    reads_first: ClassVar[bool] = False


@dataclass(frozen=True)
class Mlp:
    """A feed-forward network: W₂·f(W₁·x), or with a gate W₂·(f(W_gate·x) ⊙ W_up·x)."""

    #: W₁, or W_gate and W_up.
    inner: tuple[Dense, ...]
    output: Dense
    #: A name in `functional.ACTIVATIONS`.
    activation: str
    #: The dropout before the output.
    dropout: str = ""

    site: ClassVar[str] = "output"
    reads_first: ClassVar[bool] = False


@dataclass(frozen=True)
class Convolution:
    """A convolution over neighbouring tokens of the input of its layer, 0 for masked ones (DeBERTa, version 2)."""

    name: str
    #: How many tokens an output is computed from, an odd number.
    width: int
    #: Into how many groups the columns are divided, and the columns of each.
    groups: int
    columns: int
    activation: str
    #: The dropout before the activation.
    dropout: str = "hidden_dropout_prob"

    site: ClassVar[str] = "convolution"
    reads_first: ClassVar[bool] = True

    def shapes(self) -> dict[str, Shape]:
        """Return the names and shapes of its weights."""
        return {f"{self.name}.weight": (_HIDDEN, self.columns, self.width), f"{self.name}.bias": (_HIDDEN,)}


#: What a residual may have as its body.
Body = Attention | Mlp | Convolution


@dataclass(frozen=True)
class Residual:
    """A sub-layer, y = after(x + dropout(body(before(x)))), and with `again` y' = again(x + y).

    Each norm may be absent.
    """

    body: Body
    before: Norm | None = None
    after: Norm | None = None
    again: Norm | None = None
    dropout: str = "hidden_dropout_prob"
    #: Whether masked tokens are 0 after it.
    masked: bool = False


#: The parts that have weights of their own.
Weighted = Dense | Norm | Table | Convolution


@dataclass(frozen=True)
class Plan:
    """A model: embeddings, layers of residuals, a norm after them, and a pooler."""

    embeddings: Embeddings
    layers: tuple[tuple[Residual, ...], ...]
    last: Norm | None = None
    #: The dense layer of the pooler, which a checkpoint may lack.
    pooler: Dense | None = None

    def __post_init__(self) -> None:
        """Refuse parts that do not go together.

        Raises
        ------
        ConfigError
            The engines would leave one of them out; the message has the layer and the part.
        """
        then = self.embeddings.then
        zeros = self.embeddings.masked and bool(then) and isinstance(then[-1], Norm)
        for index, layer in enumerate(self.layers):
            for residual in layer:
                problem = _problem(residual.body, masked_are_0=zeros)
                if problem:
                    raise ConfigError(f"layer {index} of a plan: {problem}")
            zeros = bool(layer) and layer[-1].masked

    def parts(self) -> Iterator[Weighted]:
        """Iterate over the parts with weights, each once: as BERT has them, and what BERT has not at the end."""
        ranked = sorted(_ranked(self, rank=1), key=lambda pair: pair[0])
        yield from dict.fromkeys(part for _, part in ranked)

    def shapes(self) -> dict[str, Shape]:
        """Return the names and shapes of all weights: fields of the configuration, or numbers."""
        return {name: shape for part in self.parts() for name, shape in part.shapes().items()}

    def bodies(self) -> Iterator[tuple[int, Residual]]:
        """Iterate over the residuals, each with the number of its layer."""
        for index, layer in enumerate(self.layers):
            for residual in layer:
                yield index, residual

    def attending(self, layer: int) -> Residual:
        """Return the sub-layer of a layer that attends.

        Raises
        ------
        ConfigError
            The layer has none.
        """
        for residual in self.layers[layer]:
            if isinstance(residual.body, Attention):
                return residual
        raise ConfigError(f"layer {layer} of a plan has no Attention, which is asked for here")

    def attention(self, layer: int) -> Attention:
        """Return the attention of a layer."""
        body = self.attending(layer).body
        assert isinstance(body, Attention), "found as such"
        return body

    def trained(self, first: int | None) -> set[str]:
        """Return the names of the weights that are trained with the layers from number `first` on.

        None stands for the embeddings, too. What several layers read is of the lowest of them.
        """
        below = set() if first is None else _names(self.embeddings) | _names(self.layers[:first])
        bodies = [residual.body for _, residual in self.bodies()]
        relative = [body.relative for body in bodies if isinstance(body, Attention) and body.relative is not None]
        tables = [(one.table, one.norm) for one in relative]
        read = [(one.table, one.norm) for one in relative if one.keys is not None or one.queries is not None]
        unread = _names(tuple(tables)) - _names(tuple(read))
        return (_names(self.embeddings) | _names(self.layers) | _names(self.last)) - below - unread

    def rates(self) -> set[str]:
        """Return the fields of the configuration that have rates of dropout."""
        found = {self.embeddings.dropout, ""}
        for _, residual in self.bodies():
            body = residual.body
            found |= {residual.dropout, body.dropout}
            if isinstance(body, Attention) and body.relative is not None:
                found.add(body.relative.dropout)
        return found - {""}


def _problem(body: Body, *, masked_are_0: bool) -> str:
    """Return what keeps the engines from computing a body, "" if nothing; masked tokens of its layer may be 0."""
    if isinstance(body, Convolution) and not masked_are_0:
        return "a Convolution reads masked neighbours, which must be 0 in the input of its layer"
    if isinstance(body, Attention):
        if body.masked_sees_all and (body.window is not None or body.bias is not None):
            return "an Attention whose masked queries see all has no window and no bias"
        if not body.masked_sees_all and (body.relative is not None or body.terms != 1):
            return "an Attention with terms of relative positions has masked queries that see all"
    return ""


#: Where the weights of a part stand among the others; the weights of the parts within it stand there too.
_RANKS: dict[type, int] = {Embeddings: 0, Distances: 0, Relative: 2, Convolution: 2}


def _ranked(part: object, rank: int) -> Iterator[tuple[int, Weighted]]:
    """Iterate over the parts with weights within a part, in the order in which they compute, with their ranks."""
    if isinstance(part, tuple):
        for one in part:
            yield from _ranked(one, rank)
        return
    rank = _RANKS.get(type(part.body if isinstance(part, Residual) else part), rank)
    if isinstance(part, Weighted):
        yield rank, part
    elif is_dataclass(part):
        for field in sorted(fields(part), key=lambda field: field.name != "before"):
            yield from _ranked(getattr(part, field.name), rank)


def weighted(part: object) -> Iterator[Weighted]:
    """Iterate over the parts with weights within a part, or within several."""
    return (one for _, one in _ranked(part, rank=1))


def _names(part: object) -> set[str]:
    return {name for one in weighted(part) for name in one.shapes()}

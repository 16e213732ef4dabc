"""Parts under the names that BERT's layers have, from which the families make their plans."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from wordpiece_bert.bert.plan.parts import Attention, Dense, Embeddings, Mlp, Norm, Plan, Residual, Table

if TYPE_CHECKING:
    from collections.abc import Callable

#: The sizes of the tables, by what they are called and what tokens read.
_TABLES: tuple[tuple[str, Literal["ids", "positions", "types"], str], ...] = (
    ("word", "ids", "vocab_size"),
    ("position", "positions", "max_position_embeddings"),
    ("token_type", "types", "type_vocab_size"),
)


class Settings(Protocol):
    """What of a configuration the parts depend on; `wordpiece_bert.bert.BertConfig` documents each."""

    pads_positions: ClassVar[bool]
    has_pooler: ClassVar[bool]

    @property
    def encoder_layers(self) -> int:
        """The number of layers that are run."""

    @property
    def num_attention_heads(self) -> int:
        """N, the number of heads."""

    @property
    def hidden_act(self) -> str:
        """The activation of feed-forward networks."""

    @property
    def layer_norm_eps(self) -> float:
        """The ε of the norms."""

    @property
    def pad_token_id(self) -> int | None:
        """The row of the word table that training leaves as it is."""

    @property
    def has_position_table(self) -> bool:
        """Whether there is a table of positions."""

    @property
    def vocab_size(self) -> int:
        """The rows of the word table."""

    @property
    def type_vocab_size(self) -> int:
        """The rows of the table of token types; 0 for no table."""


def layer_name(layer: int) -> str:
    """Return what the names of a layer's weights begin with."""
    return f"encoder.layer.{layer}"


def padding_row(config: Settings) -> int | None:
    """Return the row of padding in the table of words; None without one, such as for the id −1."""
    pad = config.pad_token_id
    return pad if pad is not None and 0 <= pad < config.vocab_size else None


def tables(config: Settings, columns: str = "hidden_size") -> tuple[Table, ...]:
    """Return the tables of words, and of positions and token types if the model has them."""
    has = {"ids": True, "positions": config.has_position_table, "types": config.type_vocab_size > 0}
    pad = padding_row(config)
    fixed = {"ids": pad, "positions": pad if config.pads_positions else None}
    return tuple(
        Table(f"embeddings.{name}_embeddings", rows, reads, columns, fixed.get(reads))
        for name, reads, rows in _TABLES
        if has[reads]
    )


def embeddings(config: Settings, columns: str = "hidden_size", *, projected: bool = False) -> Embeddings:
    """Return BERT's embeddings: LN(word + type + position), and a dense layer from E to H if they are `projected`."""
    then: list[Norm | Dense] = [Norm("embeddings.LayerNorm", config.layer_norm_eps, columns)]
    if projected:
        then.append(Dense("embeddings.projection", columns))
    return Embeddings(tables(config, columns), tuple(then))


def attention(
    config: Settings, layer: int, *, size: str = "hidden_size", biases: bool = True, **more: Any
) -> Attention:
    """Return the attention of a layer; `more` are further fields of `Attention`.

    Parameters
    ----------
    config
        Sizes and settings.
    layer
        The number of the layer.
    size
        The field with N·d, the width of all queries.
    biases
        Whether the dense layers have biases.
    """
    name = f"{layer_name(layer)}.attention"
    query, key, value = (Dense(f"{name}.self.{part}", outputs=size, bias=biases) for part in ("query", "key", "value"))
    output = Dense(f"{name}.output.dense", size, bias=biases)
    return Attention(query, key, value, output, config.num_attention_heads, **more)


def mlp(config: Settings, layer: int, *, width: str = "intermediate_size") -> Mlp:
    """Return the feed-forward network of a layer; `width` is the field with F."""
    name = layer_name(layer)
    inner = Dense(f"{name}.intermediate.dense", outputs=width)
    return Mlp((inner,), Dense(f"{name}.output.dense", width), config.hidden_act)


def gated_mlp(
    config: Settings,
    layer: int,
    *,
    width: str = "intermediate_size",
    bias: bool = False,
    output_bias: bool = True,
    dropout: str = "",
) -> Mlp:
    """Return the gated feed-forward network of a layer.

    Parameters
    ----------
    config
        Sizes and settings.
    layer
        The number of the layer.
    width
        The field with F.
    bias, output_bias
        Whether gate and up, and the output, have biases.
    dropout
        The dropout before the output.
    """
    name = layer_name(layer)
    gate, up = (Dense(f"{name}.intermediate.{part}", outputs=width, bias=bias) for part in ("gate", "up"))
    return Mlp((gate, up), Dense(f"{name}.output.dense", width, bias=output_bias), config.hidden_act, dropout)


def norm_last(config: Settings, layer: int, attend: Attention, feed: Mlp, **more: Any) -> tuple[Residual, ...]:
    """Return a layer with norms after the residuals, as BERT's; `more` are further fields of the first `Residual`."""
    name, eps = layer_name(layer), config.layer_norm_eps
    first = Residual(attend, after=Norm(f"{name}.attention.output.LayerNorm", eps), **more)
    return first, Residual(feed, after=Norm(f"{name}.output.LayerNorm", eps))


def norm_first(
    layer: int, attend: Attention, feed: Mlp, norm: Callable[[str], Norm], *, dropout: str = "hidden_dropout_prob"
) -> tuple[Residual, ...]:
    """Return a layer with norms before the sub-layers; `norm` makes one of a name, both outputs have this `dropout`."""
    name = layer_name(layer)
    return (
        Residual(attend, before=norm(f"{name}.attention.ln"), dropout=dropout),
        Residual(feed, before=norm(f"{name}.ln"), dropout=dropout),
    )


def pooler(config: Settings) -> Dense | None:
    """Return BERT's pooler, if models of this family may have one."""
    return Dense("pooler.dense") if config.has_pooler else None


def bert_plan(config: Settings, first: Embeddings | None = None, **more: Any) -> Plan:
    """Return the plan of BERT, with other embeddings if they are given; `more` are further fields of `Attention`."""
    layers = [
        norm_last(config, layer, attention(config, layer, **more), mlp(config, layer))
        for layer in range(config.encoder_layers)
    ]
    return Plan(embeddings(config) if first is None else first, tuple(layers), pooler=pooler(config))


def norm_first_plan(config: Settings, output_dropout: str = "hidden_dropout_prob") -> Plan:
    """Return the plan of BERT with norms before the sub-layers and a last one, and none in the embeddings.

    Parameters
    ----------
    config
        Sizes and settings.
    output_dropout
        The dropout after the feed-forward networks.
    """

    def norm(name: str) -> Norm:
        return Norm(name, config.layer_norm_eps)

    layers = []
    for layer in range(config.encoder_layers):
        first, second = norm_first(layer, attention(config, layer), mlp(config, layer), norm)
        layers.append((first, replace(second, dropout=output_dropout)))
    return Plan(Embeddings(tables(config)), tuple(layers), norm("encoder.ln"), pooler(config))

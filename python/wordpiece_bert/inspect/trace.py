"""`trace`: one text through a model, with everything that happened inside."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.notebook import fields_html
from wordpiece_bert.bert.base import Model, _read
from wordpiece_bert.bert.functional import Affine, Array, linear
from wordpiece_bert.bert.half_precision import widen
from wordpiece_bert.bert.heads.base import HeadModel
from wordpiece_bert.bert.model import BertModel
from wordpiece_bert.errors import InputError
from wordpiece_bert.tasks.loading import Source, load, longest_row
from wordpiece_bert.tokenizer import Tokenizer

if TYPE_CHECKING:
    from wordpiece_bert._core import Encoding

__all__ = ["Trace", "affine", "encoder_of", "loaded", "run_trace", "trace"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Trace:
    """One text, or a pair, in a model: tokens, attention weights, vectors.

    L layers, N heads, S tokens, H hidden size, d = H / N. All arrays are float32.
    """

    #: The name of the model's class, and where it was loaded from.
    model: str
    #: The tokens, S of them.
    tokens: list[str]
    #: Their ids.
    ids: list[int]
    #: Which text each token is from, 0 or 1; None for special tokens.
    sentence_ids: list[int | None]
    #: Index of each token's word in its text; None for special tokens.
    word_ids: list[int | None]
    #: The softmax of the scores, [L, N, S, S], query by key.
    attentions: Array
    #: x_0 to x_L, [L + 1, S, H].
    hidden_states: Array
    #: Query vectors of each head, [L, N, S, d].
    queries: Array
    #: Key vectors of each head, [L, N, S, d].
    keys: Array
    #: ‖f(x_j)‖, the length of each token's value after the output projection of the head, [L, N, S].
    value_norms: Array
    #: Whether the text was truncated to the longest row that the model accepts.
    truncated: bool

    def __repr__(self) -> str:
        layers, heads, length, _ = self.attentions.shape
        return f"Trace({length} tokens, {layers} layers, {heads} heads, from {self.model})"

    def _repr_html_(self) -> str:
        return fields_html(repr(self), {one.name: getattr(self, one.name) for one in fields(self)})


def trace(source: Source, text: str, pair: str | None = None, *, max_length: int | None = None) -> Trace:
    """Run one text, or a pair, through a model and keep what happens inside.

    Parameters
    ----------
    source
        A model and its tokenizer, as `wordpiece_bert.tasks.load` returns them, or a model's name or folder.
    text, pair
        The text, and the second text of a pair.
    max_length
        The most tokens, special tokens included. By default the most that the model accepts.

    Returns
    -------
    Trace
        It takes 4·L·N·S² bytes for the attention weights: 75 MB for MiniLM with 512 tokens.

    Raises
    ------
    InputError
        The source is not a model with a tokenizer, the model is no encoder that is known here, or the text has no
        token.
    """
    model, tokenizer = loaded(source)
    limit = longest_row(model, tokenizer)
    encoding = tokenizer.encode(
        text, pair, truncation=True, max_length=limit if max_length is None else min(max_length, limit), padding=False
    )
    if not len(encoding):
        message = f"the text has no token: {text[:80]!r}"
        raise InputError(message)
    return run_trace(model, encoding)


def loaded(source: Source) -> tuple[Model, Tokenizer]:
    """Return the model and the tokenizer of a source.

    Raises
    ------
    InputError
        It is not a pair of a model and a tokenizer.
    """
    parts: Any = source if isinstance(source, tuple) and len(source) == 2 else load(source)
    model, tokenizer = parts
    if not isinstance(tokenizer, Tokenizer) or not isinstance(model, Model):
        message = f"pass what tasks.load returns, a model and a Tokenizer, not {model!r} and {tokenizer!r}"
        raise InputError(message)
    return model, tokenizer


def encoder_of(model: Model) -> BertModel:
    """Return the encoder of a model, which is the model itself if it has no head.

    Raises
    ------
    InputError
        The model has no encoder of BERT's kind.
    """
    base = model.base_model if isinstance(model, HeadModel) else model
    if not isinstance(base, BertModel):
        message = f"cannot look inside {type(model).__name__}: it has no encoder of BERT's kind"
        raise InputError(message)
    return base


def affine(encoder: BertModel, name: str) -> Affine:
    """Return weight and bias of a layer, by BERT's name for it."""
    own = [encoder._name_in_checkpoint(f"{name}.{part}", encoder.config) for part in ("weight", "bias")]
    weight, bias = (widen(_read(encoder._weights[one])) for one in own)
    return {"weight": weight, "bias": bias}


def run_trace(model: Model, encoding: Encoding) -> Trace:
    """Run one encoding through a model and keep what happens inside."""
    encoder = encoder_of(model)
    out = encoder(
        [encoding.ids], token_type_ids=[encoding.token_type_ids], output_hidden_states=True, output_attentions=True
    )
    assert out.attentions is not None
    assert out.hidden_states is not None
    hidden = np.stack([state[0] for state in out.hidden_states])  # [L + 1, S, H]
    inner = [_heads(encoder, layer, hidden[layer]) for layer in range(len(out.attentions))]
    queries, keys, norms = (np.stack(parts) for parts in zip(*inner, strict=True))
    return Trace(
        model=f"{type(model).__name__} from {model.source}",
        tokens=encoding.tokens,
        ids=encoding.ids,
        sentence_ids=encoding.sequence_ids,
        word_ids=encoding.word_ids,
        attentions=np.stack([weights[0] for weights in out.attentions]),
        hidden_states=hidden,
        queries=queries,
        keys=keys,
        value_norms=norms,
        truncated=encoding.truncated,
    )


def _heads(encoder: BertModel, layer: int, x: Array) -> tuple[Array, Array, Array]:
    """Return queries and keys [N, S, d] and the norms of the projected values [N, S] of a layer with the input x."""
    heads = encoder.config.num_attention_heads
    prefix = f"encoder.layer.{layer}.attention"
    q, k, v = (_split(linear(x, **affine(encoder, f"{prefix}.self.{n}")), heads) for n in ("query", "key", "value"))
    output = affine(encoder, f"{prefix}.output.dense")["weight"]  # [H, H]
    columns = output.reshape(len(output), heads, -1)  # [H, N, d]
    norms = np.stack([np.sqrt(np.square(v[n] @ columns[:, n].T).sum(axis=-1)) for n in range(heads)])  # [N, S]
    return q, k, norms


def _split(x: Array, heads: int) -> Array:
    """[S, H] -> [N, S, d]."""
    return np.ascontiguousarray(x.reshape(len(x), heads, -1).swapaxes(0, 1))

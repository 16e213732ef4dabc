"""`trace`: one text through a model, with everything that happened inside."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.notebook import fields_html
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.bert.base_model import Model, read
from wordpiece_bert.bert.engines.numpy import added_scores, layer_heads
from wordpiece_bert.bert.half_precision import widen
from wordpiece_bert.bert.heads.head_model import HeadModel
from wordpiece_bert.bert.model import BertModel
from wordpiece_bert.bert.parts import name_in_checkpoint, weights_of
from wordpiece_bert.bert.plan.parts import weighted
from wordpiece_bert.errors import InputError
from wordpiece_bert.hub import PACKAGED_MODELS
from wordpiece_bert.inspect.parameters import VIEWING
from wordpiece_bert.inspect.sources import is_source, resolve

if TYPE_CHECKING:
    from wordpiece_bert.bert.functional import Array, Ids
    from wordpiece_bert.bert.outputs import BertOutput
    from wordpiece_bert.inspect.sources import AnySource
    from wordpiece_bert.tokenizer.subword import AnyEncoding

#: What is added to the score of a key beyond a window: its weight is 0, and float16 has the number.
_BEYOND = np.float32(-60_000.0)


def about(*texts: str | None) -> list[str]:
    """Return what `View.data` has under ``about``: one name for a text or a pair, none if it is not known.

    Views with equal names are of one text: a page chooses it for all of them.
    """
    known = [text for text in texts if text is not None]
    return ["\n".join(known)] if known else []


def called(described: str) -> str:
    """Return the name of a model that is described as "BertModel from FILE", as `name_of_file` does."""
    return name_of_file(described.partition(" from ")[2])


def name_of_file(file: object) -> str:
    """Return the name of a model whose weights were read from a file: what its folder is called.

    A packaged model has its name here, a model of the Hugging Face cache "org/name"; one that was made in memory none.
    """
    folder = Path(str(file)).parent
    if folder == Path():
        return ""
    for name, packaged in PACKAGED_MODELS.items():
        if (folder.parent.name, folder.name) == (packaged.module, packaged.folder):
            return name
    if folder.parent.name == "snapshots":
        return folder.parent.parent.name.removeprefix("models--").replace("--", "/")
    return folder.parent.name if re.fullmatch(r"\d+_\w*", folder.name) else folder.name


@dataclass(frozen=True, eq=False, kw_only=True)
class Trace:
    """One text, or a pair, in a model: tokens, attention weights, vectors.

    L layers, N heads, S tokens, H hidden size, d = H / N. All arrays are float32.

    Examples
    --------
    >>> from wordpiece_bert import inspect
    >>> found = inspect.trace("models/words", "the capital of france")
    >>> found.tokens
    ['[CLS]', 'the', 'capital', 'of', 'france', '[SEP]']
    >>> found.attentions.shape, found.hidden_states.shape  # [L, N, S, S] and [L + 1, S, H]
    ((1, 1, 6, 6), (2, 6, 67))
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
    #: What the model adds to the scores q·kᵀ/√d, [L, N, S, S], in MPNet, Jina-BERT and DeBERTa, or −60,000 for keys
    #: beyond the window of a layer in ModernBERT; None for other models.
    position_bias: Array | None = None
    #: The text, or the two texts of a pair.
    texts: tuple[str, ...] = ()
    #: Where each token is in its text, (first character, the one after the last); (0, 0) for special tokens.
    offsets: list[tuple[int, int]] | None = None

    def __repr__(self) -> str:
        layers, heads, length, _ = self.attentions.shape
        sizes = {"token": length, "layer": layers, "head": heads}
        counts = ", ".join(f"{number} {noun}{'s' * (number != 1)}" for noun, number in sizes.items())
        return f"Trace({counts}, from {self.model})"

    def _repr_html_(self) -> str:
        return fields_html(repr(self), {one.name: getattr(self, one.name) for one in fields(self)})


@completed_by(VIEWING)
def trace(source: AnySource, text: str, pair: str | None = None, *, max_length: int | None = None) -> Trace:
    """Run one text, or a pair, through a model and keep what happens inside.

    Parameters
    ----------
    source : Loaded, str, PathLike, SentenceEncoder or CrossEncoder
        A model and its tokenizer, as `wordpiece_bert.tasks.load` returns them, a model's name or folder, or an encoder
        or a ranker, whose default prompt is put before the text.
    text, pair : str
        The text, and the second text of a pair.

    Returns
    -------
    Trace
        It takes 4·L·N·S² bytes for the attention weights: 75 MB for MiniLM with 512 tokens.

    Raises
    ------
    InputError
        The source is not a model with a tokenizer, the model is not an encoder that is known here, or the text has no
        token.

    Examples
    --------
    >>> from wordpiece_bert import inspect, tasks
    >>> words = tasks.load("models/words")
    >>> trace = inspect.trace(words, "the capital of france is paris")
    >>> trace.tokens
    ['[CLS]', 'the', 'capital', 'of', 'france', 'is', 'paris', '[SEP]']
    """
    found = resolve(source)
    return run_trace(found.model, found.encode(text, pair, max_length), found.texts(text, pair))


def traced(source: object, text: str | None, pair: str | None) -> Any:
    """Return the trace of a text in a source, or the source itself, which is a trace or arrays, without a text."""
    if text is None:
        if is_source(source):
            raise InputError("a model needs a text: pass text=, or what trace returns")
        return source
    return trace(source, text, pair)  # type: ignore[arg-type]  # `resolve` checks it


def both_traced(
    what: str, a: Trace | AnySource, b: Trace | AnySource, first: tuple[str | None, ...], second: tuple[str | None, ...]
) -> tuple[Trace, Trace]:
    """Return the traces that a function was given, or the traces of texts in the models that it was given.

    Parameters
    ----------
    what : str
        The name of the function, for messages.
    a, b : Trace or model
        What it was given.
    first, second : tuple of str
        A text or a pair for each; the second has the first's if it has none of its own.

    Raises
    ------
    InputError
        There is a text beside a trace, none for a model, or something else than a model or a trace.
    """
    second = first if second[0] is None else second
    if all(isinstance(one, Trace) for one in (a, b)) and (first[0] is not None or second[0] is not None):
        raise InputError(f"{what} takes a text for models: a Trace has its own")
    found: list[Any] = [
        one if isinstance(one, Trace) else traced(one, *texts) for one, texts in ((a, first), (b, second))
    ]
    for one in found:
        if not isinstance(one, Trace):
            raise InputError(f"{what} takes what trace returns, or a model and its text, not {type(one).__name__}")
    return found[0], found[1]


def encoder_of(model: Model) -> BertModel:
    """Return the encoder of a model, which is the model itself if it has no head.

    Raises
    ------
    InputError
        The model has no encoder of BERT's kind.
    """
    base = model.base_model if isinstance(model, HeadModel) else model
    if not isinstance(base, BertModel):
        raise InputError(f"cannot look inside {type(model).__name__}: it has no encoder of BERT's kind")
    return base


def stored_weight(encoder: BertModel, name: str) -> Array:
    """Return a weight in float32, by BERT's name for it."""
    return widen(read(weights_of(encoder)[name_in_checkpoint(type(encoder), name, encoder.config)]))


def layer_states(encoder: BertModel, out: BertOutput, ids: list[int]) -> list[Array]:
    """Return the outputs of the embeddings and the layers for a row, L + 1 of [S, H], the last after the last norm."""
    assert out.hidden_states is not None
    states = [state[0] for state in out.hidden_states]
    if len(states) > encoder.config.num_hidden_layers:
        return states
    # NeoBERT's are of the layers alone, before the last norm.
    words = stored_weight(encoder, "embeddings.word_embeddings.weight")
    return [words[np.array(ids)], *states[:-1], out.last_hidden_state[0]]


def run_trace(model: Model, encoding: AnyEncoding, texts: tuple[str, ...] = ()) -> Trace:
    """Run one encoding through a model and keep what happens inside."""
    encoder = encoder_of(model)
    out = encoder(
        [encoding.ids], token_type_ids=[encoding.token_type_ids], output_hidden_states=True, output_attentions=True
    )
    assert out.attentions is not None
    hidden = np.stack(layer_states(encoder, out, encoding.ids))  # [L + 1, S, H]
    positions = encoder.config.default_positions(np.array([encoding.ids]), len(encoding))
    inner = [_heads(encoder, layer, hidden[layer], positions) for layer in range(len(out.attentions))]
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
        position_bias=_position_bias(encoder, queries, keys),
        texts=texts,
        offsets=encoding.offsets,
    )


def _position_bias(encoder: BertModel, queries: Array, keys: Array) -> Array | None:
    """Return what is added to the scores q·kᵀ/√d, [L, N, S, S]; None for models that add nothing."""
    layers, heads, length, _ = queries.shape
    added = [
        added_scores(layer, q, k, _layer_weights(encoder, layer), encoder.config)
        for layer, (q, k) in enumerate(zip(queries, keys, strict=True))
    ]
    if all(one is None for one in added):
        return None
    shape = heads, length, length
    full = [np.zeros((1, length, length), np.float32) if one is None else np.maximum(one, _BEYOND) for one in added]
    # One array where heads and layers share theirs.
    if all(len(one) == 1 for one in full):
        return np.broadcast_to(np.stack(full), (layers, *shape))
    return np.stack([np.broadcast_to(one, shape) for one in full])


def _layer_weights(encoder: BertModel, layer: int) -> dict[str, Array]:
    """Return the weights that a layer reads, by BERT's names."""
    parts = weighted(encoder.config.plan().layers[layer])
    return {name: stored_weight(encoder, name) for part in parts for name in part.shapes()}


def _heads(encoder: BertModel, layer: int, x: Array, positions: Ids) -> tuple[Array, Array, Array]:
    """Return queries and keys [N, S, d] and the norms of the projected values [N, S] of a layer with the input x."""
    weights = _layer_weights(encoder, layer)
    q, k, v = (part[0] for part in layer_heads(layer, x[None], weights, encoder.config, positions))  # [N, S, d]
    output = weights[f"{encoder.config.plan().attention(layer).output.name}.weight"]  # [H, N·d]
    columns = output.reshape(len(output), len(v), -1)  # [H, N, d]
    norms = np.stack([np.sqrt(np.square(v[n] @ columns[:, n].T).sum(axis=-1)) for n in range(len(v))])  # [N, S]
    return np.ascontiguousarray(q), np.ascontiguousarray(k), norms

"""What a model predicts: words for each position, and the logit lens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wordpiece_bert._internal.checks import checked_flag, whole_number
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.bert.functional import softmax
from wordpiece_bert.bert.heads.bert import BertForPreTraining
from wordpiece_bert.bert.heads.kinds import MaskedLM
from wordpiece_bert.errors import InputError
from wordpiece_bert.inspect.parameters import VIEWING
from wordpiece_bert.inspect.sources import resolve
from wordpiece_bert.inspect.trace import about, encoder_of, layer_states, name_of_file
from wordpiece_bert.inspect.view import View

if TYPE_CHECKING:
    from wordpiece_bert.bert.functional import Array, Ids
    from wordpiece_bert.inspect.sources import AnySource, Resolved
    from wordpiece_bert.tokenizer.subword import AnyEncoding, AnyTokenizer

#: Rows that go through the model at once.
BATCH = 32
#: Positions that go through the decoder at once: 16 MB of logits for BERT's vocabulary.
DECODED = 128


@completed_by(VIEWING)
def predictions(
    source: AnySource,
    text: str,
    pair: str | None = None,
    *,
    top_k: int = 8,
    mask_each: bool = False,
    max_length: int | None = None,
    title: str = "Predictions",
) -> View:
    """Show the most probable words at each position, by a model with a masked-language head.

    Parameters
    ----------
    source : Loaded, str, PathLike, SentenceEncoder or CrossEncoder
        A model with a masked-language head and its tokenizer, as `wordpiece_bert.tasks.load` returns them, or the
        model's name or folder. Encoders and rankers have no such head, and are refused.
    text, pair : str
        The text, with or without mask tokens, and the second text of a pair.
    top_k : int, optional
        How many words to show for each position.
    mask_each : bool, default False
        Whether to mask each token in turn, one run of the model for each, so that the model cannot copy it.
    title : str, optional
        A line above the view.

    Returns
    -------
    View
        Arrays ``probabilities`` [S, top_k], the highest first, and ``own`` [S], the probability of the token that is
        there; in ``data`` the predicted tokens, [S][top_k].

    Raises
    ------
    InputError
        The model has no masked-language head, or an argument is wrong.

    Examples
    --------
    >>> from wordpiece_bert import inspect
    >>> view = inspect.predictions("models/words", "the capital of france is [MASK]")
    >>> view.kind
    'predictions'
    """
    given, model = _with_language_head(source)
    tokenizer, encoding = given.tokenizer, given.encode(text, pair, max_length)
    top_k = whole_number("top_k", top_k, 1, model.config.vocab_size)
    if checked_flag("mask_each", mask_each):
        if tokenizer.mask_token_id is None:
            raise InputError("mask_each needs a tokenizer with a mask token")
        vectors = _masked_one_by_one(model, encoding, tokenizer.mask_token_id)
    else:
        out = model.base_model([encoding.ids], token_type_ids=[encoding.token_type_ids])
        vectors = out.last_hidden_state[0]
    best, values, own = _best(model, tokenizer, vectors, encoding.ids, top_k)
    data = {"tokens": encoding.tokens, "words": best, "masked": mask_each, "truncated": encoding.truncated}
    data |= {"mask": tokenizer.mask_token, "about": about(text, pair), "model": name_of_file(model.source)}
    return View("predictions", title, data, {"probabilities": values, "own": own})


@completed_by(predictions)
def logit_lens(
    source: AnySource,
    text: str,
    pair: str | None = None,
    *,
    top_k: int = 5,
    max_length: int | None = None,
    title: str = "Logit lens",
) -> View:
    """Show what each layer would predict: the masked-language head over the vectors of every layer.

    nostalgebraist (2020), "interpreting GPT: the logit lens".

    Returns
    -------
    View
        Arrays ``probabilities`` [L + 1, S, top_k] and ``own`` [L + 1, S]; in ``data`` the tokens, [L + 1][S][top_k].
        Layer 0 is the output of the embeddings.

    Examples
    --------
    >>> from wordpiece_bert import inspect
    >>> inspect.logit_lens("models/words", "the capital of france is [MASK]").kind
    'lens'
    """
    given, model = _with_language_head(source)
    tokenizer, encoding = given.tokenizer, given.encode(text, pair, max_length)
    top_k = whole_number("top_k", top_k, 1, model.config.vocab_size)
    encoder = encoder_of(model)
    out = encoder([encoding.ids], token_type_ids=[encoding.token_type_ids], output_hidden_states=True)
    states = layer_states(encoder, out, encoding.ids)
    found = [_best(model, tokenizer, state, encoding.ids, top_k) for state in states]
    words, values, own = zip(*found, strict=True)
    data = {"tokens": encoding.tokens, "words": list(words), "truncated": encoding.truncated}
    data |= {"mask": tokenizer.mask_token, "about": about(text, pair), "model": name_of_file(model.source)}
    return View("lens", title, data, {"probabilities": np.stack(values), "own": np.stack(own)})


def _with_language_head(source: AnySource) -> tuple[Resolved, MaskedLM | BertForPreTraining]:
    given = resolve(source)
    if not isinstance(given.model, (MaskedLM, BertForPreTraining)):
        raise InputError(f"this view needs a model with a masked-language head, not {type(given.model).__name__}")
    return given, given.model


def _best(
    model: MaskedLM | BertForPreTraining, tokenizer: AnyTokenizer, vectors: Array, ids: list[int], top_k: int
) -> tuple[list[list[str]], Array, Array]:
    """Return the best tokens [S][k], their probabilities [S, k], and the actual tokens' probabilities, [S]."""
    words, values, own = [], [], []
    for start in range(0, len(vectors), DECODED):
        with np.errstate(under="ignore"):
            p = softmax(model.predict(vectors[start : start + DECODED]))  # [block, V]
        order = np.argsort(-p, axis=-1, kind="stable")[:, :top_k]
        values.append(np.take_along_axis(p, order, axis=-1))
        own.append(p[np.arange(len(p)), ids[start : start + DECODED]])
        words += [[tokenizer.id_to_token(i) or f"#{i}" for i in row] for row in order.tolist()]
    return words, np.concatenate(values), np.concatenate(own)


def _masked_one_by_one(model: MaskedLM | BertForPreTraining, encoding: AnyEncoding, mask: int) -> Array:
    """Return for each position its vector in the row in which it is masked, [S, H]; special tokens stay."""
    ids = np.array(encoding.ids)
    rows = np.repeat(ids[None], len(ids), axis=0)
    places = np.flatnonzero(np.array(encoding.special_tokens_mask) == 0)
    rows[places, places] = mask
    vectors = []
    for start in range(0, len(rows), BATCH):
        part = rows[start : start + BATCH]
        types: Ids = np.repeat(np.array(encoding.token_type_ids)[None], len(part), axis=0)
        x = model.base_model(part, token_type_ids=types).last_hidden_state  # [batch, S, H]
        vectors.append(x[np.arange(len(part)), np.arange(start, start + len(part))])
    return np.concatenate(vectors)

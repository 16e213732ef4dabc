"""The kinds of views of this package, in the order of the command's page."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from wordpiece_bert.bert.heads.bert import BertForPreTraining
from wordpiece_bert.bert.heads.kinds import MaskedLM, QuestionAnswering, SequenceClassification, TokenClassification
from wordpiece_bert.inspect import pictures, pictures_beside
from wordpiece_bert.inspect.attention import attention, neurons
from wordpiece_bert.inspect.intervention import intervene, interventions
from wordpiece_bert.inspect.kinds import Inspected, Kind, register
from wordpiece_bert.inspect.language import logit_lens, predictions
from wordpiece_bert.inspect.packed_page import page_file
from wordpiece_bert.inspect.patterns import patterns
from wordpiece_bert.inspect.saliency import saliency
from wordpiece_bert.inspect.sources import resolve
from wordpiece_bert.inspect.token_steps import tokens
from wordpiece_bert.inspect.vector_views import positions
from wordpiece_bert.tasks.task_loading import longest_row

if TYPE_CHECKING:
    from collections.abc import Callable

    from wordpiece_bert.inspect.view import View
    from wordpiece_bert.tasks.task_loading import Loaded

__all__: list[str] = []


def _scripts(*names: str) -> str:
    return "\n".join(map(page_file, names))


def _tokens(inspected: Inspected) -> View:
    max_length = inspected.max_length
    if inspected.loaded is not None:  # as the other views cut
        most = longest_row(*inspected.loaded)
        max_length = most if max_length is None else min(max_length, most)
    return tokens(
        inspected.tokenizer,
        inspected.text,
        inspected.pair,
        beside=inspected.beside,
        names=inspected.names,
        max_length=max_length,
    )


def _of_trace(build: Callable[..., View]) -> Callable[[Inspected], View]:
    return lambda inspected: build(inspected.trace)


def _of_text(build: Callable[..., View], inspected: Inspected) -> View:
    return build(inspected.model, inspected.text, inspected.pair, max_length=inspected.max_length)


def _predicts_words(loaded: Loaded | None) -> bool:
    return loaded is not None and isinstance(loaded.model, MaskedLM | BertForPreTraining)


def _answers(loaded: Loaded | None) -> bool:
    kinds = (SequenceClassification, TokenClassification, QuestionAnswering)
    return _predicts_words(loaded) or (loaded is not None and isinstance(loaded.model, kinds))


def _looked_at(inspected: Inspected) -> int | None:
    """Return the token that is looked at in a text without a mask: the first that is not special."""
    if not _predicts_words(inspected.model):
        return None
    encoding = resolve(inspected.model).encode(inspected.text, inspected.pair, inspected.max_length)
    if inspected.tokenizer.mask_token_id in encoding.ids:
        return None
    return next((i for i, side in enumerate(encoding.sequence_ids) if side is not None), 0)


def _saliency(inspected: Inspected) -> View:
    return _of_text(partial(saliency, method=inspected.saliency, token=_looked_at(inspected)), inspected)


def _interventions(inspected: Inspected) -> View:
    return _of_text(
        lambda *texts, max_length: interventions(intervene(*texts, token=_looked_at(inspected), max_length=max_length)),
        inspected,
    )


def _has_positions(loaded: Loaded | None) -> bool:
    return loaded is not None and loaded.model.config.has_position_table


for _kind in (
    Kind(
        name="tokens",
        label="Tokens",
        draw=pictures.tokens,
        script=_scripts("tokens.js"),
        make=_tokens,
        allowed=lambda _: True,
    ),
    Kind(
        name="attention",
        label="Attention",
        draw=pictures.attention,
        script=_scripts("attention.js", "attention_heads.js", "attention_draw.js", "matrix.js"),
        make=_of_trace(attention),
    ),
    Kind(
        name="neurons",
        label="Queries and keys",
        draw=pictures.neurons,
        script=_scripts("neurons.js"),
        make=_of_trace(neurons),
    ),
    Kind(
        name="patterns",
        label="Patterns",
        draw=pictures.patterns,
        script=_scripts("patterns.js"),
        make=_of_trace(patterns),
    ),
    Kind(
        name="predictions",
        label="Predictions",
        draw=pictures.predictions,
        script=_scripts("language.js"),
        make=partial(_of_text, predictions),
        allowed=_predicts_words,
    ),
    Kind(
        name="lens",
        label="Logit lens",
        draw=pictures.lens,
        script=_scripts("language.js"),
        make=partial(_of_text, logit_lens),
        allowed=_predicts_words,
    ),
    Kind(
        name="saliency",
        label="Saliency",
        draw=pictures.saliency,
        script=_scripts("saliency.js"),
        make=_saliency,
        allowed=_answers,
    ),
    Kind(
        name="interventions",
        label="Interventions",
        draw=pictures_beside.interventions,
        script=_scripts("interventions.js"),
        make=_interventions,
        allowed=_answers,
        on_request=True,
    ),
    Kind(
        name="positions",
        label="Positions",
        draw=pictures.positions,
        script=_scripts("heatmap.js"),
        make=lambda inspected: positions(inspected.model.model),
        allowed=_has_positions,
    ),
    Kind(
        name="comparison",
        label="Comparison",
        draw=pictures_beside.comparison,
        script=_scripts("alignment.js", "comparison.js"),
    ),
    Kind(
        name="tokenizers",
        label="Tokenizers",
        draw=pictures_beside.tokenizers,
        script=_scripts("alignment.js", "tokenizers.js"),
    ),
    Kind(name="similarity", label="Similarity", draw=pictures.similarity, script=_scripts("heatmap.js"), rows="rows"),
    Kind(name="map", label="Map", draw=pictures.embedding_map, script=_scripts("map_plot.js", "map.js"), rows="texts"),
):
    register(_kind)

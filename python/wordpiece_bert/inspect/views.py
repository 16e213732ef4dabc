"""The kinds of views of this package, in the order of the command's page."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from wordpiece_bert.bert.heads.bert import BertForPreTraining
from wordpiece_bert.bert.heads.kinds import MaskedLM, SequenceClassification
from wordpiece_bert.inspect import pictures
from wordpiece_bert.inspect.attention import attention, neurons
from wordpiece_bert.inspect.kinds import Inspected, Kind, register
from wordpiece_bert.inspect.language import logit_lens, predictions
from wordpiece_bert.inspect.patterns import patterns
from wordpiece_bert.inspect.saliency import saliency
from wordpiece_bert.inspect.token_steps import tokens
from wordpiece_bert.inspect.vectors import positions
from wordpiece_bert.inspect.view import page_file
from wordpiece_bert.tasks.loading import longest_row

if TYPE_CHECKING:
    from collections.abc import Callable

    from wordpiece_bert.inspect.view import View
    from wordpiece_bert.tasks.loading import Loaded

__all__: list[str] = []


def _scripts(*names: str) -> str:
    return "\n".join(map(page_file, names))


def _tokens(inspected: Inspected) -> View:
    limit = inspected.max_length
    if inspected.loaded is not None:  # as the other views cut
        longest = longest_row(*inspected.loaded)
        limit = longest if limit is None else min(limit, longest)
    return tokens(
        inspected.tokenizer,
        inspected.text,
        inspected.pair,
        beside=inspected.beside,
        names=inspected.names,
        max_length=limit,
    )


def _of_trace(build: Callable[..., View]) -> Callable[[Inspected], View]:
    return lambda inspected: build(inspected.trace)


def _of_text(build: Callable[..., View], inspected: Inspected) -> View:
    return build(inspected.model, inspected.text, inspected.pair, max_length=inspected.max_length)


def _predicts_words(loaded: Loaded | None) -> bool:
    return loaded is not None and isinstance(loaded.model, MaskedLM | BertForPreTraining)


def _classifies(loaded: Loaded | None) -> bool:
    return loaded is not None and isinstance(loaded.model, SequenceClassification)


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
        script=_scripts("attention.js", "attention_draw.js"),
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
        script=_scripts("language.js"),
        make=lambda inspected: _of_text(partial(saliency, method=inspected.saliency), inspected),
        allowed=_classifies,
    ),
    Kind(
        name="positions",
        label="Positions",
        draw=pictures.positions,
        script=_scripts("heatmap.js"),
        make=lambda inspected: positions(inspected.model.model),
        allowed=_has_positions,
    ),
    Kind(name="similarity", label="Similarity", draw=pictures.similarity, script=_scripts("heatmap.js")),
    Kind(name="map", label="Map", draw=pictures.embedding_map, script=_scripts("map.js")),
):
    register(_kind)

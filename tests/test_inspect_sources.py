"""Everything of `inspect` that takes a model takes it in every form: a task's model, an encoder, a ranker, a name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from inspect_fixtures import folders
from wordpiece_bert import CrossEncoder, SentenceEncoder, inspect, tasks
from wordpiece_bert.errors import InputError
from wordpiece_bert.inspect import sources

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TEXT, PAIR = "bread in the oven", "a dull film"

#: Each function with a text and its pair, as a view.
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "attention": lambda source: inspect.attention(source, text=TEXT, pair=PAIR),
    "neurons": lambda source: inspect.neurons(source, text=TEXT, pair=PAIR),
    "patterns": lambda source: inspect.patterns(source, text=TEXT, pair=PAIR),
    "trace": lambda source: inspect.attention(inspect.trace(source, TEXT, PAIR)),
    "tokens": lambda source: inspect.tokens(source, TEXT, PAIR, beside=source),
    "tokenizers": lambda source: inspect.tokenizers(inspect.compare_tokenizers(source, source, TEXT)),
    "positions": lambda source: inspect.positions(source),
    "saliency": lambda source: inspect.saliency(source, TEXT, PAIR),
    "gradient": lambda source: inspect.saliency(source, TEXT, PAIR, method="integrated_gradients", replace="remove"),
    "comparison": lambda source: inspect.comparison(
        inspect.compare(source, source, text=TEXT, pair=PAIR, other=PAIR, other_pair=TEXT)
    ),
    "token_similarity": lambda source: inspect.token_similarity(source, source, text=TEXT, other=PAIR),
    "interventions": lambda source: inspect.interventions(inspect.intervene(source, TEXT, PAIR)),
}


def forms(folder: Path, kind: str) -> dict[str, Any]:
    """The forms of a model; the first is the one to compare with."""
    loaded = tasks.load(folder)
    return {
        "loaded": loaded,
        "pair": (loaded.model, loaded.tokenizer),
        "path": folder,
        "name": str(folder),
        **({"object": CrossEncoder(folder)} if kind == "ranker" else {}),
    }


def check_equal(found: inspect.View, expected: inspect.View) -> None:
    assert found.kind == expected.kind
    assert found.data == expected.data
    assert found.arrays.keys() == expected.arrays.keys()
    for name, array in expected.arrays.items():
        np.testing.assert_array_equal(found.arrays[name], array)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_ranker_in_every_form_gives_the_same_view(function: str, folders: Path) -> None:
    first, *others = (FUNCTIONS[function](source) for source in forms(folders / "ranker", "ranker").values())
    for other in others:
        check_equal(other, first)


@pytest.mark.parametrize("function", ["attention", "neurons", "patterns", "trace", "tokens", "tokenizers", "positions"])
def test_an_encoder_in_every_form_gives_the_same_view(function: str, folders: Path) -> None:
    given = forms(folders / "sentences", "encoder")
    first, *others = (FUNCTIONS[function](source) for source in given.values())
    for other in [*others, FUNCTIONS[function](SentenceEncoder(folders / "sentences"))]:
        check_equal(other, first)


@pytest.mark.parametrize("function", ["saliency", "gradient"])
def test_the_cosine_is_explained_for_an_encoder_and_its_name(function: str, folders: Path) -> None:
    folder = folders / "sentences"
    expected = FUNCTIONS[function](SentenceEncoder(folder))
    assert expected.data["measure"] == "cosine"
    for source in (folder, str(folder)):
        check_equal(FUNCTIONS[function](source), expected)
    found, other = (
        inspect.interventions(inspect.intervene(source, TEXT, beside=[PAIR]))
        for source in (SentenceEncoder(folder), folder)
    )
    check_equal(other, found)


@pytest.mark.parametrize("function", [inspect.predictions, inspect.logit_lens])
def test_words_need_a_head_for_them_in_every_form(function: Any, folders: Path) -> None:
    text = "the capital of france is [MASK]"
    first, *others = (function(source, text) for source in forms(folders / "words", "").values())
    for other in others:
        check_equal(other, first)
    for source in (SentenceEncoder(folders / "sentences"), CrossEncoder(folders / "ranker"), folders / "ranker"):
        with pytest.raises(InputError, match="masked-language head, not Bert"):
            function(source, text)


def test_a_prompt_and_the_limit_of_an_encoder_hold_in_its_views(folders: Path) -> None:
    encoder = SentenceEncoder(folders / "sentences", prompts={"q": "the film "}, default_prompt_name="q")
    encoder.max_seq_length = 5
    found = inspect.trace(encoder, TEXT)
    assert found.texts == ("the film " + TEXT,)
    assert found.truncated
    assert len(found.tokens) == 5
    first = found.tokens.index("film")
    assert found.offsets is not None
    start, end = found.offsets[first]
    assert found.texts[0][start:end] == "film"
    vectors, _ = encoder.encode(TEXT, output_value="token_embeddings", return_truncated=True)
    np.testing.assert_allclose(found.hidden_states[-1], vectors, atol=1e-5)


def test_a_folder_with_its_model_inside_is_resolved(folders: Path, tmp_path: Path) -> None:
    SentenceEncoder(folders / "sentences").save_pretrained(tmp_path / "saved")
    assert sources.transformer_folder(folders / "ranker") == folders / "ranker"
    found = inspect.trace(tmp_path / "saved", TEXT)
    assert found.tokens == inspect.trace(folders / "sentences", TEXT).tokens


def test_what_has_no_model_is_refused(folders: Path) -> None:
    with pytest.raises(InputError, match="static model"):
        inspect.trace(SentenceEncoder(folders / "static"), TEXT)
    for source in (3, None, [1.0]):
        with pytest.raises((InputError, TypeError)):
            inspect.trace(source, TEXT)  # type: ignore[arg-type]
    for view in (inspect.attention, inspect.neurons, inspect.patterns):
        with pytest.raises(InputError, match="needs a text"):
            view(folders / "ranker")  # type: ignore[operator]
    with pytest.raises(InputError, match="needs a Tokenizer, or a model with one"):
        inspect.tokens(5, TEXT)  # type: ignore[arg-type]

"""The calls that the documentation of sentence-transformers shows, run by this package and, where it is installed, by it.

The cases are data: tests/data/peers/sentence_transformers.toml. `make test-torch` runs them on both sides; here the results
are compared with the recorded ones.
"""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest

import peer_snippets
from peer_snippets import PAGE, RECORDED, Case, equal, run, table

pytestmark = [pytest.mark.model, pytest.mark.filterwarnings("ignore")]

CASES = peer_snippets.cases()
RESULTS = json.loads(RECORDED.read_text(encoding="utf-8"))


def installed(*packages: str) -> bool:
    return all(importlib.util.find_spec(package) for package in packages)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return peer_snippets.make_models(tmp_path_factory.mktemp("models") / "made")


def checked(case: Case, models: dict[str, str]) -> None:
    """Skip a case that needs PyTorch, where it is missing."""
    if case.tensors and not installed("torch"):
        pytest.skip("PyTorch is not installed: make test-torch")
    if "datasets" in case.code and not installed("datasets"):
        pytest.skip("datasets is not installed: make test-torch")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.key)
def test_results_are_those_of_the_peer(case: Case, models: dict[str, str]) -> None:
    checked(case, models)
    if case.refused:
        with pytest.raises((AttributeError, ValueError), match=re.escape(case.refused)):
            run(case.own_code, models)
        return
    found = run(case.own_code, models)
    if not case.reason:
        assert equal(found, RESULTS[case.key])


@pytest.mark.skipif(not installed("sentence_transformers"), reason="not installed: make test-torch")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.key)
def test_recorded_results_are_those_of_the_peer_itself(case: Case, models: dict[str, str]) -> None:
    if not installed(*case.packages):
        pytest.skip(f"{', '.join(case.packages)} is not installed")
    expected = run(case.code, models)
    if not case.reason:
        assert equal(RESULTS[case.key], expected)


def test_most_calls_have_equal_results() -> None:
    assert len({case.key for case in CASES}) == len(CASES) > 60
    same = [case for case in CASES if not case.reason]
    assert {case.key for case in same} == set(RESULTS)
    assert len(same) / len(CASES) >= 0.85
    assert not any(case.changed or case.refused for case in same)  # only imports are changed
    assert all(case.ours != "the same" for case in CASES if case.reason)


def test_only_imports_are_changed() -> None:
    code = "from sentence_transformers import SentenceTransformer, util\nx = 'sentence_transformers import util'\n"
    assert peer_snippets.with_own_imports(code) == (
        "from wordpiece_bert import SentenceEncoder as SentenceTransformer\n"
        "from wordpiece_bert import util\nx = 'sentence_transformers import util'\n"
    )


def test_equal_results_are_told_from_others() -> None:
    assert equal([1, {"a": 0.5}], [1, {"a": 0.50001}])
    for found in ([1, {"a": 0.51}], [1, {"b": 0.5}], [1], ["1", {"a": 0.5}]):
        assert not equal(found, [1, {"a": 0.5}])


def test_the_table_of_the_documentation_is_that_of_the_cases(tmp_path: Path) -> None:
    assert table() in PAGE.read_text(encoding="utf-8")

"""mteb itself evaluates encoders and rankers on tasks of local files, with the numbers of our evaluators and of its own models.

Skipped where mteb is missing: `make test-torch` installs it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tiny_models
from test_docs import ROOT, blocks, clone, run_block
from wordpiece_bert import CrossEncoder, SentenceEncoder
from wordpiece_bert.errors import InputError
from wordpiece_bert.evaluation import EmbeddingSimilarityEvaluator, InformationRetrievalEvaluator, read_beir
from wordpiece_bert.sentence.dense.parts import body_of, encoder_of

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["clone"]

mteb: Any = pytest.importorskip("mteb", reason="not run: mteb is not installed: make test-torch")

from wordpiece_bert.integrations.mteb import WordPieceEncoder, WordPieceRanker  # noqa: E402

# Warnings of mteb and of what it imports are not errors of these tests.
pytestmark = pytest.mark.filterwarnings("ignore")

PAGE = ROOT / "docs" / "how-to" / "mteb.md"
PAIRS = [
    ("to bake bread", "bread dough in the oven", 5.0),
    ("a film", "the wheel", 0.0),
    ("a film", "a dull story", 4.0),
    ("to repair a bicycle", "the wheel and the tire", 3.5),
    ("the oven", "a wonderful film", 0.5),
    ("to paris", "the capital of france", 3.0),
]
DOCUMENTS = {
    "d1": "bread dough in the oven",
    "d2": "a wonderful film",
    "d3": "the wheel and the tire",
    "d4": "a dull story",
    "d5": "to repair a bicycle",
}
QUERIES = {"q1": "to bake bread", "q2": "the film", "q3": "a bicycle"}
JUDGEMENTS = {"q1": {"d1": 1}, "q2": {"d2": 2, "d4": 1}, "q3": {"d5": 1, "d3": 1}}
CONFIGS = """---
configs:
- {config_name: corpus, data_files: corpus.jsonl}
- {config_name: queries, data_files: queries.jsonl}
- {config_name: default, data_files: [{split: test, path: qrels.jsonl}]}
- {config_name: top_ranked, data_files: [{split: test, path: ranked.jsonl}]}
---
"""


@pytest.fixture(scope="module", autouse=True)
def caches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Datasets and results are kept in a folder of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path_factory.mktemp("datasets"))
        patch.setenv("MTEB_CACHE", str(tmp_path_factory.mktemp("results")))
        yield


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.make_all(tmp_path_factory.mktemp("models"))


def write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")


def task(base: str, name: str, folder: Path, kind: str, main_score: str) -> Any:
    metadata = mteb.TaskMetadata(
        name=name,
        description="Local files.",
        type=kind,
        dataset={"path": str(folder), "revision": "1"},
        eval_langs=["eng-Latn"],
        main_score=main_score,
    )
    return type(name, (getattr(mteb.abstasks, base),), {"metadata": metadata})()


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    home = tmp_path_factory.mktemp("tasks")
    write_lines(
        home / "pairs" / "test.jsonl", [dict(zip(("sentence1", "sentence2", "score"), r, strict=True)) for r in PAIRS]
    )
    search = home / "search"
    write_lines(search / "corpus.jsonl", [{"_id": key, "text": text} for key, text in DOCUMENTS.items()])
    write_lines(search / "queries.jsonl", [{"_id": key, "text": text} for key, text in QUERIES.items()])
    write_lines(search / "ranked.jsonl", [{"query-id": key, "corpus-ids": list(DOCUMENTS)} for key in QUERIES])
    judged = [(query, key, grade) for query, found in JUDGEMENTS.items() for key, grade in found.items()]
    write_lines(search / "qrels.jsonl", [dict(zip(("query-id", "corpus-id", "score"), j, strict=True)) for j in judged])
    lines = [f"{query}\t{key}\t{grade}" for query, key, grade in judged]
    (search / "qrels").mkdir()
    (search / "qrels" / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *lines]) + "\n")
    (search / "README.md").write_text(CONFIGS)
    return {
        "pairs": task("AbsTaskSTS", "Pairs", home / "pairs", "STS", "cosine_spearman"),
        "search": task("AbsTaskRetrieval", "Search", search, "Retrieval", "ndcg_at_10"),
        "reranking": task("AbsTaskRetrieval", "Ranked", search, "Reranking", "ndcg_at_10"),
    }


def scores(model: Any, one: Any, **options: Any) -> dict[str, Any]:
    """The measures of a model on a task, by mteb itself."""
    found = mteb.evaluate(model, one, **{"cache": None, "show_progress_bar": False} | options)
    assert not found.exceptions
    [measures] = found[0].scores["test"]
    return dict(measures)


@pytest.mark.parametrize("name", ["sentences", "static"])
def test_pairs_have_the_correlations_of_our_evaluator(name: str, models: Path, tasks: dict[str, Any]) -> None:
    model = WordPieceEncoder(models / name)
    found = scores(model, tasks["pairs"])
    first, second, graded = map(list, zip(*PAIRS, strict=True))
    ours = EmbeddingSimilarityEvaluator(first, second, graded)(SentenceEncoder(models / name))
    for kind in ("spearman", "pearson"):
        assert found[f"cosine_{kind}"] == pytest.approx(ours[f"{kind}_cosine"], abs=1e-6)
    assert 0.05 < abs(found["cosine_spearman"]) < 1


def test_search_has_the_measures_of_our_evaluator(models: Path, tasks: dict[str, Any]) -> None:
    found = scores(WordPieceEncoder(models / "sentences"), tasks["search"])
    folder = Path(tasks["search"].metadata.dataset["path"])
    ours = InformationRetrievalEvaluator(*read_beir(folder))(SentenceEncoder(models / "sentences"))
    for theirs, name in {"ndcg_at_10": "ndcg@10", "recall_at_1": "recall@1", "map_at_100": "map@100"}.items():
        assert found[theirs] == pytest.approx(ours[f"cosine_{name}"], abs=1e-5), theirs  # mteb rounds to five digits


def test_both_tasks_have_the_scores_of_sentence_transformers(models: Path, tasks: dict[str, Any]) -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers")
    theirs = sentence_transformers.SentenceTransformer(str(models / "sentences"), device="cpu")
    for one in (tasks["pairs"], tasks["search"]):
        expected = scores(theirs, one)
        found = scores(WordPieceEncoder(models / "sentences"), one)
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            # The toy model's vectors have equal distances, which the last bits order.
            if isinstance(value, float) and np.isfinite(value) and name != "euclidean_spearman":
                assert found[name] == pytest.approx(value, abs=1e-4), name


def test_a_ranker_reranks_as_its_own_scores_do(models: Path, tasks: dict[str, Any]) -> None:
    ranker = CrossEncoder(models / "ranker")
    predictions = {
        query: dict(zip(DOCUMENTS, ranker.predict([(text, d) for d in DOCUMENTS.values()]), strict=True))
        for query, text in QUERIES.items()
    }
    best = np.mean([max(of, key=of.__getitem__) in JUDGEMENTS[query] for query, of in predictions.items()])
    for model in (WordPieceRanker(ranker), WordPieceRanker(models / "ranker")):
        assert isinstance(model, mteb.CrossEncoderProtocol)
        assert scores(model, tasks["reranking"])["precision_at_1"] == pytest.approx(best, abs=1e-5)


def test_queries_and_documents_get_the_prompts_of_the_model(models: Path, tasks: dict[str, Any]) -> None:
    seen: list[tuple[str, list[str]]] = []

    class Watched(SentenceEncoder):
        def encode(self, texts: Any, *given: Any, **options: Any) -> Any:
            self.asked = list(texts)
            return super().encode(texts, *given, **options)

        def _call(self, *given: Any, **options: Any) -> Any:
            call = super()._call(*given, **options)
            seen.append((call.prefix, self.asked))
            return call

    prompts = {"query": "a film: ", "document": "a story: ", "STS": "of pairs: "}
    watched = Watched(models / "sentences", prompts=prompts)
    scores(WordPieceEncoder(watched), tasks["search"])
    assert dict(seen).keys() == {"a film: ", "a story: "}
    assert dict(seen)["a film: "] == list(QUERIES.values())
    seen.clear()
    scores(WordPieceEncoder(watched), tasks["pairs"])
    assert {prefix for prefix, _ in seen} == {"of pairs: "}
    seen.clear()
    scores(
        WordPieceEncoder(Watched(models / "sentences", prompts=prompts | {"Search-query": "to paris: "})),
        tasks["search"],
    )
    assert {prefix for prefix, _ in seen} == {"to paris: ", "a story: "}


def test_results_are_kept_by_contents_and_dtype(models: Path, tasks: dict[str, Any], tmp_path: Path) -> None:
    cache = mteb.ResultCache(tmp_path)
    plain = WordPieceEncoder(models / "sentences")
    assert isinstance(plain, mteb.EncoderProtocol)
    first, again = (scores(plain, tasks["pairs"], cache=cache) for _ in range(2))
    assert again["main_score"] == pytest.approx(first["main_score"], abs=1e-5)
    for other in (
        WordPieceEncoder(models / "sentences", dtype="int8"),
        WordPieceEncoder(models / "sentences", encoder_options={"truncate_dim": 8}),
        WordPieceEncoder(models / "sentences", encoder_options={"max_seq_length": 4}),
        WordPieceEncoder(models / "sentences", encoder_options={"prompts": {"query": "a film: "}}),
    ):
        metas = [(one.mteb_model_meta.revision, one.mteb_model_meta.experiment_name) for one in (plain, other)]
        assert metas[0] != metas[1]
        scores(other, tasks["pairs"], cache=cache)
    assert len(list((tmp_path / "results").rglob("Pairs.json"))) == 5
    rankers = [WordPieceRanker(models / "ranker", dtype=dtype).mteb_model_meta for dtype in ("float32", "int8")]
    assert rankers[0].experiment_name != rankers[1].experiment_name
    assert rankers[0].is_cross_encoder


def test_the_revision_of_a_ranker_is_of_the_model_that_was_loaded(models: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(models / "ranker", tmp_path / "ranker")
    ranker = CrossEncoder(folder)
    (folder / "config.json").touch()
    with pytest.raises(InputError, match="the files have changed since the model was loaded: load it again"):
        WordPieceRanker(ranker)


def test_names(models: Path) -> None:
    folder = models / "sentences"
    assert WordPieceEncoder(folder).mteb_model_meta.name == "wordpiece-bert/sentences"
    assert WordPieceEncoder(folder, name="me/mine").mteb_model_meta.name == "me/mine"
    in_memory = encoder_of(SentenceEncoder, body_of(SentenceEncoder(folder)))
    assert WordPieceEncoder(in_memory).mteb_model_meta.name == "wordpiece-bert/SentenceEncoder"
    assert WordPieceRanker(models / "ranker").mteb_model_meta.name == "wordpiece-bert/ranker"


@pytest.mark.parametrize("cls", [WordPieceEncoder, WordPieceRanker])
def test_what_is_refused(cls: Any, models: Path) -> None:
    folder = models / ("ranker" if cls is WordPieceRanker else "sentences")
    with pytest.raises(InputError, match="name must be 'organization/model', as mteb stores results, not 'mine'"):
        cls(folder, name="mine")
    with pytest.raises(InputError, match="dtype is for a model that is given by its name"):
        cls(cls(folder).model, dtype="int8")


def test_a_classifier_of_several_labels_is_no_ranker(models: Path) -> None:
    with pytest.raises(InputError, match="a ranker has one label; this model has"):
        WordPieceRanker(models / "reviews")


def test_the_import_of_mteb_and_of_the_module_needs_no_torch() -> None:
    program = "import sys, wordpiece_bert.integrations.mteb as found; print(found.__all__, 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "['WordPieceEncoder', 'WordPieceRanker'] False"


@pytest.mark.model
def test_the_page_runs_as_printed(clone: Path) -> None:
    session: dict[str, object] = {"__name__": "__main__"}
    python = [block for block in blocks(PAGE) if block.language == "python"]
    assert sum(run_block(block, PAGE.name, session) for block in python) >= 5

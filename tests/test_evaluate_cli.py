"""``wordpiece-bert evaluate``, and folders in the form of BEIR."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from wordpiece_bert import SentenceEncoder, SparseEncoder
from wordpiece_bert.cli import main
from wordpiece_bert.errors import InputError
from wordpiece_bert.evaluation import (
    BinaryClassificationEvaluator,
    EmbeddingSimilarityEvaluator,
    InformationRetrievalEvaluator,
    read_beir,
)

FIRST = ["bread in the oven", "a dull film", "the wheel and the tire", "the city"]
SECOND = ["to bake bread", "a boring story", "a great story", "repair a bicycle"]
SCORES = [4.5, 4.0, 0.5, 1.0]

CORPUS = [
    {"_id": "d1", "title": "Bread", "text": "bread dough in the oven"},
    {"_id": "d2", "title": "", "text": "the wheel and the tire"},
    {"_id": "d3", "title": "", "text": "a wonderful film"},
    {"_id": "q2", "title": "", "text": "a bicycle"},
]
QUERIES = [{"_id": "q1", "text": "to bake"}, {"_id": "q2", "text": "a bicycle"}, {"_id": "q3", "text": "no judgement"}]
JUDGEMENTS = "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td3\t0\nq2\td2\t1\nq2\tgone\t1\n"


def lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def beir(tmp_path: Path) -> Path:
    (tmp_path / "beir" / "qrels").mkdir(parents=True)
    (tmp_path / "beir" / "corpus.jsonl").write_text(lines(CORPUS), encoding="utf-8")
    (tmp_path / "beir" / "queries.jsonl").write_text(lines(QUERIES), encoding="utf-8")
    (tmp_path / "beir" / "qrels" / "test.tsv").write_text(JUDGEMENTS, encoding="utf-8")
    return tmp_path / "beir"


def table(folder: Path, columns: dict[str, list[Any]], name: str = "pairs.tsv") -> str:
    rows = ["\t".join(columns), *("\t".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    (folder / name).write_text("\n".join(rows) + "\n", encoding="utf-8")
    return str(folder / name)


def results(capsys: pytest.CaptureFixture[str], *command: str) -> list[dict[str, Any]]:
    assert main(["evaluate", *command, "--json", "-q"]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["results"]
    return found


def test_pairs_with_scores(models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = table(tmp_path, {"sentence1": FIRST, "sentence2": SECOND, "score": SCORES})
    sentences, splade = str(models / "sentences"), str(models / "splade")
    expected = EmbeddingSimilarityEvaluator(FIRST, SECOND, SCORES)
    first, second = results(capsys, file, "-m", sentences, "-m", splade)
    assert first["metrics"] == expected(SentenceEncoder(sentences))
    assert second["metrics"] == expected(SparseEncoder(splade))
    assert (first["primary_metric"], second["primary_metric"]) == ("spearman_cosine", "spearman_dot")
    names = ["--similarity", "cosine", "--similarity", "manhattan", "--truncate-dim", "8"]
    (found,) = results(capsys, file, "-m", sentences, *names)
    # The files of two kinds of models have other columns.
    both = ["evaluate", file, "-m", sentences, "-m", splade, "-o", str(tmp_path / "out"), "-q"]
    assert main(both) == 0
    _, of_splade = sorted((tmp_path / "out").glob("*/similarity_evaluation_results.csv"))
    of_splade.write_text("other\n")
    capsys.readouterr()
    assert main(both) == 2
    assert "spearman_cosine*" in capsys.readouterr().out
    options: dict[str, Any] = {"similarity_fn_names": ["cosine", "manhattan"], "truncate_dim": 8}
    assert found["metrics"] == EmbeddingSimilarityEvaluator(FIRST, SECOND, SCORES, **options)(
        SentenceEncoder(sentences)
    )


def test_the_table_has_a_line_for_each_measure(
    models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = table(tmp_path, {"a": FIRST, "b": SECOND, "c": [1, 1, 0, 0]}, "pairs.csv".replace("csv", "tsv"))
    command = ["evaluate", file, "--text", "a", "--pair", "b", "--label", "c", "-q"]
    assert main([*command, "-m", str(models / "sentences"), "-o", str(tmp_path / "out")]) == 0
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    encoder = SentenceEncoder(models / "sentences")
    found = EmbeddingSimilarityEvaluator(FIRST, SECOND, [1, 1, 0, 0])(encoder)
    assert shown == [
        ["pearson_cosine", f"{found['pearson_cosine']:.6f}"],
        ["spearman_cosine*", f"{found['spearman_cosine']:.6f}"],
    ]
    assert (tmp_path / "out" / "similarity_evaluation_results.csv").read_text(encoding="utf-8").count("\n") == 2
    assert (
        main([*command, "--task", "classification", "-m", str(models / "sentences"), "-m", str(models / "static")]) == 0
    )
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == [str(models / "sentences"), str(models / "static")]
    expected = BinaryClassificationEvaluator(FIRST, SECOND, [1, 1, 0, 0])(encoder)
    assert [row.split()[0].rstrip("*") for row in rows] == list(expected)


def test_queries_documents_and_judgements(models: Path, beir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = read_beir(beir)
    assert data.queries == {"q1": "to bake", "q2": "a bicycle"}
    assert data.corpus["d1"] == "Bread bread dough in the oven"
    assert data.relevant_docs == {"q1": {"d1": 2}, "q2": {"d2": 1, "gone": 1}}
    encoder = SentenceEncoder(models / "sentences")
    for option, ignored in ((["--identical-ids"], False), ([], True)):
        (found,) = results(capsys, str(beir), "-m", str(models / "sentences"), *option)
        evaluator = InformationRetrievalEvaluator(*data, ignore_identical_ids=ignored)
        assert found["metrics"] == evaluator(encoder)
        assert found["primary_metric"] == "cosine_ndcg@10"
    # The query q2 finds the document with its own text and id first, unless that is left out.
    assert found["metrics"]["cosine_mrr@10"] == pytest.approx((1 / 4 + 1 / 2) / 2)
    (found,) = results(capsys, str(beir), "-m", str(models / "colbert"))
    assert found["primary_metric"] == "maxsim_ndcg@10"


def test_tables_of_other_forms_are_read(beir: Path) -> None:
    expected = read_beir(beir)
    (beir / "queries.jsonl").unlink()
    table(beir, {key: [row[key] for row in QUERIES] for key in ("_id", "text")}, "queries.tsv")
    (beir / "qrels" / "dev.tsv.gz").write_bytes(gzip.compress(JUDGEMENTS.encode()))
    assert read_beir(beir, "dev") == expected
    (beir / "corpus.jsonl").write_text(lines([{"_id": row["_id"], "text": row["text"]} for row in CORPUS]))
    assert read_beir(beir).corpus["d1"] == "bread dough in the oven"


def test_wrong_folders_are_named(beir: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such folder"):
        read_beir(tmp_path / "none")
    with pytest.raises(InputError, match=r"qrels: there is no dev\.jsonl or \.parquet"):
        read_beir(beir, "dev")
    for text, message in (
        (JUDGEMENTS.replace("\t2\n", "\tgood\n"), "the score 'good' is no finite number"),
        (JUDGEMENTS.replace("\t2\n", "\tnan\n"), "the score 'nan' is no finite number"),
        (JUDGEMENTS.replace("q", "x").replace("xuery", "query"), "no judgement of qrels/test above 0"),
        (JUDGEMENTS.replace("score", "grade"), "score"),
    ):
        (beir / "qrels" / "test.tsv").write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=message):
            read_beir(beir)
    (beir / "qrels" / "test.tsv").write_text(JUDGEMENTS, encoding="utf-8")
    (beir / "queries.jsonl").write_text(lines([*QUERIES, QUERIES[0]]), encoding="utf-8")
    with pytest.raises(InputError, match="the id 'q1' occurs twice"):
        read_beir(beir)


def test_wrong_arguments_are_named(
    models: Path, beir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = table(tmp_path, {"sentence1": FIRST, "sentence2": SECOND, "score": ["4.5", "high", "1", "2"]})
    for command, message in (
        ([pairs], "pairs.tsv, line 3, column 'score': the label 'high' is no finite number"),
        ([pairs, "--label", "label"], "label"),
        ([pairs, "--task", "retrieval"], "--task retrieval needs a folder in the form of BEIR"),
        ([str(beir), "--task", "similarity"], "--task similarity needs a table"),
        ([str(beir), "--similarity", "dot"], "--similarity is for tables"),
        ([str(tmp_path / "none.tsv")], "none.tsv"),
        ([pairs, "-o", pairs], "pairs.tsv: is a file; give a folder"),
    ):
        assert main(["evaluate", *command, "-m", str(models / "sentences"), "-q"]) == 2
        assert message in capsys.readouterr().err

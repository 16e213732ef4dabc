"""The definitions of the benchmarks are valid and their driver works. Speed is not tested."""

from __future__ import annotations

import json
import lzma
import os
import re
import threading
import time
import tomllib
import venv
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import tiny_models
from benchmarks import __main__ as commands
from benchmarks import (
    accuracy,
    contests,
    encoders,
    finetuning,
    integrations,
    latency,
    model_data,
    models,
    pages,
    pairs,
    process,
    reranking,
    start,
    threads,
    training,
)
from benchmarks.definitions import ENGINES, Contestant, DefinitionError, read_table
from benchmarks.engines.padded import PaddedEngine
from benchmarks.measure import Bench, Effort, Result, Row
from benchmarks.process import PROGRAMS, Engine, EngineError, MissingError
from benchmarks.texts import Source, documents, write_texts
from model_files import MODELS, sentence_folder, with_tokenizer
from wordpiece_bert import SentenceEncoder, evaluation
from wordpiece_bert.errors import InputError

TINY = Effort(first_passes=2, repeated_passes=2, budget=0.1, stream_megabytes=2)


def test_definitions_are_valid_and_all_engines_exist() -> None:
    table = read_table()
    assert len(table) >= 15
    assert all((PROGRAMS / file).is_file() for file in ENGINES.values())
    assert {contestant.engine for benchmark in table for contestant in benchmark.contestants} == set(ENGINES)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (('work = "ragged"', 'work = "ragges"'), "ragges"),
        (('corpus = "english"', 'corpus = "klingon"'), "klingon"),
        (('over = "others"', 'over = "nobody"'), "nobody"),
        (("analysis =", "analysiss ="), "analysis"),
        (('beside = ["ours", ', "beside = ["), "the first contestant must be ours"),
    ],
)
def test_wrong_definitions_are_refused(tmp_path: Path, change: tuple[str, str], complaint: str) -> None:
    text = Path(commands.__file__).with_name("table.toml").read_text(encoding="utf-8")
    path = tmp_path / "table.toml"
    path.write_text(text.replace(*change, 1), encoding="utf-8")
    with pytest.raises(DefinitionError, match=complaint):
        read_table(path)


def measured(name: str) -> Row:
    """Run one benchmark on a short text, with this package only."""
    benchmark = next(one for one in read_table() if one.name.startswith(name))
    with Bench(Source(None, limit=3000), TINY, only={"ours"}) as bench:
        return bench.run(benchmark)


@pytest.mark.parametrize("name", ["English", "padded arrays, 256 p", "one sentence", "pairs", "windows"])
def test_a_benchmark_of_texts_is_measured(name: str) -> None:
    ours = measured(name).results[0]
    assert not ours.note
    assert ours.tokens > 0
    assert len(ours.first) >= 1
    assert len(ours.repeated) >= 1
    assert min(ours.first + ours.repeated) > 0


def test_loading_and_memory_are_measured() -> None:
    assert len(measured("loading, 30").results[0].first) == TINY.first_passes
    assert measured("memory").results[0].first


def test_wrong_results_are_detected_and_not_timed(tmp_path: Path) -> None:
    """Two engines of one benchmark with different ids: the second is reported, with the number of rows that differ."""
    source = Source(None, limit=3000)
    texts = source.texts({"corpus": "english"})
    path = tmp_path / "texts.json"
    write_texts(texts, path)
    short = Contestant("ours", "cut", "windows", {"max_length": 8, "stride": 0})
    right = Contestant("ours", "ours", "windows", {"max_length": 512, "stride": 0})
    results = {one.label: Result(one.label) for one in (right, short)}
    with Bench(source, TINY) as bench:
        able = bench.compare([right, short], bench.tokenizer("uncased"), path, results, 1)
    assert able == [right]
    assert results["cut"].wrong
    assert "ids differ from ours's" in results["cut"].note


def test_an_engine_that_fails_reports_the_reason(tmp_path: Path) -> None:
    with Engine("ours") as engine, pytest.raises(EngineError, match="no file"):
        engine.load(tmp_path / "absent.json")


def test_an_environment_that_cannot_be_created_is_tried_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pip = pytest.importorskip("pip")

    def with_this_pip(folder: Path, **_: Any) -> None:
        """Make the environment with the pip of this one: unpacking another takes seconds."""
        venv.EnvBuilder(symlinks=os.name != "nt").create(folder)
        [packages] = folder.rglob("site-packages")
        (packages / "pip.pth").write_text(f"{Path(pip.__file__).parents[1]}\n")

    monkeypatch.setitem(process.OWN_ENVIRONMENTS, "absent", ["./absent-1-py3-none-any.whl"])
    monkeypatch.setattr(process, "_FAILED", {})
    monkeypatch.setattr(process.venv, "create", with_this_pip)
    for _ in range(2):
        with pytest.raises(MissingError, match=r"any\.whl could not be installed: ERROR"):
            process.python_of("absent", tmp_path / "environments")
    assert capsys.readouterr().err.count("Creating") == 1
    assert list(tmp_path.glob("*/*")) == []


def test_documents_contain_all_the_text() -> None:
    texts = [f"text {index}" for index in range(100)]
    made = documents(texts, 50)
    assert " ".join(made) == " ".join(texts)
    assert all(len(document) >= 50 for document in made[:-1])


def test_trainers_are_compared_and_timed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["training", "--quick", "--engines", "ours", "tokenizers", "--record", str(tmp_path)]
    assert commands.main(arguments) == 0
    printed = capsys.readouterr().out
    assert all(f"### {entry['name']}" in printed for entry in training.read_table())
    assert "not our" not in printed
    record = json.loads(next(tmp_path.glob("*.json")).read_text(encoding="utf-8"))
    for row in record["rows"]:
        for trainer in row["trainers"]:
            assert trainer["note"] or (trainer["seconds"][0] > 0 and trainer["peak"][0] > 1e6)


def test_trainers_with_different_results_are_not_timed() -> None:
    entry = next(entry for entry in training.read_table() if entry["name"].startswith("bpe"))
    entry["beside"] = ["ours", {"engine": "ours", "label": "other", "algorithm": "bpe"}]
    trainers = training._trainers(entry)
    answers = {"ours": ["a", "b"], "other": ["a", "c"]}

    def answer(trainer: training.Trainer, _: object) -> dict[str, object]:
        tokens = answers[trainer.label]
        return {"version": "1", "tokens": len(tokens), "digest": str(tokens), "all": tokens}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "_ask", answer)
        training._compare(entry, trainers, {one.label: {} for one in trainers})
    assert [one.wrong for one in trainers] == [False, True]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (('work = "text"', 'work = "texts"'), "texts"),
        (('over = "tokenizers"', 'over = "nobody"'), "nobody"),
        (('beside = ["ours", ', "beside = ["), "the first must be ours"),
        (("analysis =", "analysiss ="), "unknown"),
    ],
)
def test_wrong_definitions_of_training_are_refused(tmp_path: Path, change: tuple[str, str], complaint: str) -> None:
    path = tmp_path / "training.toml"
    path.write_text(training.TABLE.read_text(encoding="utf-8").replace(*change, 1), encoding="utf-8")
    with pytest.raises(DefinitionError, match=complaint):
        training.read_table(path)


def test_the_command_prints_and_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["table", "--quick", "--engines", "ours", "--only", "one sentence", "--record", str(tmp_path)]
    assert commands.main(arguments) == 0
    printed = capsys.readouterr().out
    assert "### one sentence, one call" in printed
    assert "no --corpora" in printed
    record = json.loads(next(tmp_path.glob("*.json")).read_text(encoding="utf-8"))
    assert record["rows"][0]["results"][0]["repeated"]
    assert record["machine"]["cpu"]
    assert next(tmp_path.glob("*.md")).read_text(encoding="utf-8").startswith("# Comparison with other tokenizers")


def test_all_sections_of_models_are_measured_without_a_peer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(contests, "BUILD", tmp_path)
    folder = sentence_folder("sentence_mean_normalize", tmp_path)
    given = ["--quick", "--engines", "ours", "--model", str(folder), "--only", *models.SECTIONS]
    assert commands.main(["models", *given, "--record", str(tmp_path / "records")]) == 0
    shown = capsys.readouterr()
    assert not shown.err
    titles = re.findall(r"^## (.*)$", shown.out, re.MULTILINE)
    for title in (
        "limited to an instruction set",
        "BERT-base",
        "BERT-large",
        "Texts to vectors",
        "Loading",
        "How cost",
    ):
        assert any(title in one for one in titles), titles
    assert re.search(r"^\| ours int8 +\|( +[\d.]+ \|){7}$", shown.out, re.MULTILINE)  # of the summary
    record = json.loads(next((tmp_path / "records").glob("*.json")).read_text(encoding="utf-8"))
    measured = record["measured"][0]
    assert len(measured["lengths"]) == 6
    for label in ("ours float32", "ours bfloat16", "ours int8", "ours auto"):
        assert f"| {label} " in shown.out
        assert measured["agreement"][label]["lowest"] > 0.99
        assert all(measured["times"][order][label]["seconds"] > 0 for order in ("sorted", "in the order given"))
    goals = shown.out.partition("## Goals")[2]
    for goal in ("ours int8, stored: peak of loading", "ours auto: ", "ours bfloat16: ", "rank correlation"):
        assert goal in goals
    loads = next(one["loads"] for one in record["measured"] if "loads" in one)
    assert loads["ours int8, stored"]["seconds"] > 0


def test_an_engine_that_computes_something_else_is_excluded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contests, "BUILD", tmp_path)
    folder = sentence_folder("sentence_mean_normalize", tmp_path)
    entries = [contests.OURS[0], replace(contests.OURS[0], label="other")]
    with contests.Contest(folder, 1, entries) as contest:
        contest.rows([[2, 7, 9, 3], [2, 5, 3]])
        path = tmp_path / "other.json"
        path.write_text("[[2, 30, 40, 3], [2, 31, 3]]", encoding="utf-8")
        contest.engines["other"].ask(do="rows", path=str(path))
        assert contest.agreement([0, 1])["other"].lowest < contests.LEAST_COSINE
        assert list(contest.time([[0, 1]], 1)) == ["ours float32"]
        assert contest.wrong


def test_ratios_are_to_the_fastest_of_the_same_kind() -> None:
    ours = contests.OURS[0]
    times = {"ours float32": contests.Timing(1.0), "torch float32": contests.Timing(4.0)}
    assert models.best_beside(ours, times) == ("torch float32", 4.0)
    times |= {"OpenVINO float32": contests.Timing(2.0), "OpenVINO int8": contests.Timing(0.5)}
    assert models.best_beside(ours, times) == ("OpenVINO float32", 2.0)
    assert models.best_beside(ours, {"ours float32": contests.Timing(1.0)}) is None
    times["OpenVINO float32, a stream a thread"] = contests.Timing(1.5)
    assert models.best_beside(ours, times) == ("OpenVINO float32, a stream a thread", 1.5)


def test_engines_run_batches_side_by_side_where_there_are_several_threads() -> None:
    entries = contests.with_streams(contests.THEIRS)
    assert {entry.engine for entry in entries if entry.streams} == {"openvino", "onnxruntime", "ctranslate2"}
    streams = {entry.label for entry in entries if entry.streams}
    assert streams <= {label for entry in contests.OURS for label in entry.beside} | set(
        contests.both_ways("ONNX Runtime int8, fused", "ONNX Runtime int8, optimum", "CTranslate2 int8")
    )

    class Sums(PaddedEngine):
        threads: ClassVar[set[int]] = set()

        def hidden(self, ids: Any, mask: Any) -> Any:
            self.threads.add(threading.get_ident())
            time.sleep(0.01)
            return (ids * mask)[:, :, None].astype(np.float64)

    rows = [list(range(1, 2 + i % 7)) for i in range(40)]
    engine = Sums()
    alone = engine.forward(rows, 4)
    np.testing.assert_allclose(alone[:, 0], [np.mean(row) for row in rows])
    assert engine.threads == {threading.get_ident()}
    engine.streams = 3
    np.testing.assert_array_equal(engine.forward(rows, 4), alone)
    assert len(engine.threads) == 4


def test_texts_and_operations_of_models_are_counted(tmp_path: Path) -> None:
    config = {"hidden_size": 384, "intermediate_size": 1536, "num_hidden_layers": 6}
    assert model_data.flop(config, [100]) == pytest.approx(100 * (21.2e6 + 9.2e3 * 100), rel=0.01)
    sliding = {"model_type": "modernbert", "layer_types": ["sliding_attention"] * 5 + ["full_attention"]}
    dense = 6 * 2 * (4 * 384**2 + 3 * 384 * 1536)
    found = model_data.flop(config | sliding | {"local_attention": 8}, [100])
    assert found == pytest.approx(100 * (dense + 4 * 384 * (5 * 9 + 100)))
    assert len(model_data.paragraphs(None, 5)) == 5
    path = tmp_path / "wiki_en.txt"
    path.write_text("\n".join(f"{i} {'word ' * 20}" for i in range(45)), encoding="utf-8")
    assert [text.split()[0] for text in model_data.paragraphs(path, 5)] == ["0", "20", "40"]


def test_training_steps_are_measured_without_a_peer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(finetuning, "BATCHES", {"small": [5, 3, 9]})
    folder = with_tokenizer("bert_small", tmp_path)
    quick = ["--rounds", "1", "--threads", "1", "--torch", str(tmp_path / "absent"), "--vocabulary", "10"]
    assert commands.main(["finetuning", "--model", str(folder), *quick, "--record", str(tmp_path / "records")]) == 0
    shown = capsys.readouterr()
    assert "torch is skipped" in shown.err
    [record] = (tmp_path / "records").glob("*.json")
    rows = json.loads(record.read_text(encoding="utf-8"))["rows"]
    assert [row["dtype"] for row in rows] == ["float32", "bfloat16"]
    assert all(row["ours"]["seconds"][0] > 0 and row["ours"]["loss"] > 0 and "torch" not in row for row in rows)


def test_newer_encoders_are_measured_without_a_peer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def written(size: encoders.Size, _: Path | None) -> Path:
        return model_data.random_encoder(tmp_path / size.name, size.kind, size.config)

    monkeypatch.setattr(encoders, "exported", written)
    monkeypatch.setattr(encoders, "THEIRS", ())
    monkeypatch.setattr(contests, "BUILD", tmp_path / "build")
    assert commands.main(["encoders", "--quick", "--threads", "1", "--record", str(tmp_path / "records")]) == 0
    shown = capsys.readouterr().out
    for name in ("ModernBERT-base", "DeBERTa-v3-base"):
        assert f"## {name}, random weights, 1 thread" in shown
        assert f"## One sentence, {name}, 1 thread" in shown
        assert f"## One row of 200 tokens, {name}, 1 thread" in shown
    [record] = (tmp_path / "records").glob("*.json")
    measured = json.loads(record.read_text(encoding="utf-8"))["measured"]
    assert all(seconds > 0 for one in measured if "bytes" in one for seconds in one["seconds"].values())


def test_the_server_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("uvicorn", reason="uvicorn is not installed: pip install '.[serve]'")
    folder = tiny_models.make_sentences(tmp_path / "model")
    quick = ["--seconds", "0.1", "--rounds", "1", "--clients", "1", "3", "--sizes", "2", "--soak", "0.2"]
    assert commands.main(["serve", "--model", str(folder), *quick, "--record", str(tmp_path / "records")]) == 0
    shown = capsys.readouterr().out
    assert "| server | clients | texts a request | CPU s/1000 texts |" in shown
    mixed = ["--mixed", "--seconds", "0.5", "--rounds", "1", "--record", str(tmp_path / "mixed")]
    assert commands.main(["serve", "--model", str(folder), *mixed]) == 0
    [record] = (tmp_path / "mixed").glob("*.json")
    both = json.loads(record.read_text(encoding="utf-8"))["mixed"]
    assert [row["server"] for row in both] == ["wordpiece-bert", "without short batches"]
    assert all(0 < row["p50 ms"] <= row["p99 ms"] <= row["p99.9 ms"] and row["bulk texts/s"] > 0 for row in both)
    assert commands.main(["serve", "--model", str(folder), "--single", "20", "--record", str(tmp_path / "single")]) == 0
    [record] = (tmp_path / "single").glob("*.json")
    single = json.loads(record.read_text(encoding="utf-8"))["single"]
    assert [row["words"] for row in single] == [5, 12, 25]
    assert all(row["encode p50 ms"] > 0 and 0 < row["p50 ms"] <= row["p99 ms"] for row in single)
    capsys.readouterr()
    [record] = (tmp_path / "records").glob("*.json")
    found = json.loads(record.read_text(encoding="utf-8"))
    assert [row["clients"] for row in found["rows"]] == [1, 3]
    assert all(row["texts/s"] > 0 and row["p50 ms"] <= row["p99 ms"] for row in found["rows"])
    assert all(row["CPU s/1000 texts"] > 0 and row["encode CPU s/1000"] > 0 for row in found["rows"])
    assert all(row["MB"] > 0 for row in found["soak"])


def test_the_start_of_a_process_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = sentence_folder("sentence_mean_normalize", tmp_path)
    given = ["--quick", "--model", str(folder), "--threads", "1", "--record", str(tmp_path / "records")]
    assert start.main(given) == 0
    shown = capsys.readouterr().out
    assert all(f"| {label} " in shown for label in start.STEPS)
    assert "| tokenizers: first ids " in shown
    found = json.loads(next((tmp_path / "records").glob("*-start.json")).read_text(encoding="utf-8"))
    assert all(seconds > 0 < cpu for seconds, cpu in found["seconds and CPU seconds"]["1"].values())


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="counts the bytes that Linux counts")
def test_a_job_in_parts_and_updates_are_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tiny_models.make_all(tmp_path / "models") / "static"
    given = ["--model", str(model), "--texts", "100", "--rows", "500", "--rounds", "1"]
    assert commands.main(["machines", *given, "--record", str(tmp_path / "records")]) == 0
    assert "| processes | seconds | CPU seconds | times one process |" in capsys.readouterr().out
    [record] = (tmp_path / "records").glob("*.json")
    found = json.loads(record.read_text(encoding="utf-8"))
    assert [*found["parts"]] == ["1", "2", "4"]
    assert [row[0] for row in found["merge"]] == ["4 files", "4 folders"]
    assert [row[0].partition(" rows")[0] for row in found["updates"]] == ["500", "10", "5"]


@pytest.mark.model
def test_threads_of_one_call_are_measured_beside_processes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        process.cores(threads.CORES)
    except MissingError as error:
        pytest.skip(str(error))
    monkeypatch.setattr(threads, "THREADS", (1, 2, 3))
    assert commands.main(["threads", "--quick", "--only", "tweets, ids,", "--record", str(tmp_path)]) == 0
    (row,) = json.loads(next(tmp_path.glob("*-threads.json")).read_text())["rows"]
    assert row["work"] == "ids, offsets and word ids"
    assert [len(row["threads"][count]) for count in "123"] == [2, 2, 2]
    assert len(row["processes"]) == 2
    measured = threads.Measured("", "", 1, 6_000_000, {1: [2.0, 4.0], 2: [1.5], 3: [1.0]}, [2.0])
    assert measured.cells()[1:] == ["2", "4", "2.00", "0.67", "1.50"]
    assert "two threads ÷ two processes" in capsys.readouterr().out


def test_the_command_search_compares_and_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--vectors", "3000", "--width", "40", "--queries", "1", "3", "--rounds", "1", "--record", str(tmp_path)]
    assert commands.main(["search", *options]) == 0
    out = capsys.readouterr().out
    assert "3,000 vectors × 40, 2 thread(s)" in out
    for label in ("reading alone", "ours, float32", "memory-mapped", "NumPy", "uint8", "bits"):
        assert re.search(rf"\| [^|]*{label}[^|]* \|( +[\d.,]+ \| +[\d.,]+ \|){{2}}\n", out), label
    assert len(json.loads(next(tmp_path.glob("*-search.json")).read_text())["rows"]) == 2 * out.count("\n| ") - 2


def test_reranking_is_measured_and_wrong_scores_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(contests, "BUILD", tmp_path)
    folder = sentence_folder("sentence_mean_normalize", tmp_path)
    given = ["--quick", "--model", str(folder), "--threads", "1", "--record", str(tmp_path)]
    assert commands.main(["reranking", *given, "--engines"]) == 0
    shown = capsys.readouterr().out
    assert "## 1 thread, milliseconds" in shown
    [record] = tmp_path.glob("*-reranking.json")
    sizes = json.loads(record.read_text(encoding="utf-8"))["measured"][0]["sizes"]
    measured = [(one["dtype"], one["documents"], one["words"]) for one in sizes]
    assert measured == [(dtype, *size) for dtype in ("float32", "int8") for size in reranking.QUICK_SIZES]
    assert all(seconds > 0 for one in sizes for seconds in one["seconds"].values())
    [[*exact], [*rounded]] = [one["agreement"][0] for one in sizes if (one["documents"], one["words"]) == (3, 5)]
    assert exact == ["wordpiece-bert", "float32", "0.0e+00", "1.00000"]
    assert rounded[:2] == ["wordpiece-bert", "int8"]
    assert 0 < float(rounded[2]) < 0.1

    ranker, other = tmp_path / f"ranker-{folder.name}", contests.Entry("another", "ours", "int8", "float32")
    pairs = reranking.texts_of(None, 4, 20)
    assert [len(document.split()) for _, document in pairs] == [20] * 4
    (tmp_path / "pairs.json").write_text(json.dumps(pairs), encoding="utf-8")
    ours = reranking.entry_of("ours", "float32", "float32", 1)
    with reranking.Rankers(ranker, 1, [ours, other]) as rankers:
        scores = rankers.scores(tmp_path / "pairs.json", 4)
        assert np.ptp(next(iter(scores.values()))) > 1e-3  # the head tells documents apart
        assert rankers.wrong
        assert other.label not in rankers.engines
        assert rankers.notes[other.label].startswith("WRONG: a score differs from ours by")


def test_the_fastest_way_of_each_engine_is_in_the_table() -> None:
    ours, *others = reranking.entries(["onnxruntime"], 2, "float32")
    assert sum(one.streams for one in others) == 2
    by_label = {one.label: one for one in (ours, *others)}
    times = dict.fromkeys(by_label, 0.2) | {ours.label: 0.05}
    times[next(one for one in others if one.streams).label] = 0.1
    assert reranking.cells_of(by_label, times) == ["50", "100", "", "2.00"]


@pytest.mark.model
def test_the_latency_of_a_sentence_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(contests, "BUILD", tmp_path)
    monkeypatch.setattr(latency, "LENGTHS", (8,))
    given = ["--quick", "--engines", "ours", "--threads", "1", "--record", str(tmp_path)]
    assert latency.main(given) == 0
    shown = capsys.readouterr().out
    for dtype in ("float32", "bfloat16", "int8"):
        assert f"| {dtype} | 1 | 8 |" in " ".join(shown.split()), shown
    assert "## One sentence, 1 thread, milliseconds by tokens" in shown
    assert "the fastest dtype within a cosine" in shown
    record = json.loads(next(tmp_path.glob("*.json")).read_text(encoding="utf-8"))
    assert record["seconds"]["1"]["ours int8"][0] > 0
    assert all(0 < float(distance or 1) < 10_000 for distance in record["nanoseconds between cores"]["1"]["ours int8"])


@pytest.mark.model
def test_the_command_static_compares_and_times(capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.main(["static", "--texts", "50", "--rounds", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("| ours |") for line in lines)
    assert any(line.startswith("50 texts, ") for line in lines)


@pytest.mark.model
def test_the_command_subword_measures_every_path(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    given = ["subword", "--quick", "--texts", "8", "--rounds", "1", "--record", str(tmp_path)]
    assert commands.main(given) == 0
    assert capsys.readouterr().out.count("SentenceEncoder.encode") == 3
    (record,) = tmp_path.glob("*.json")
    for found in json.loads(record.read_text(encoding="utf-8"))["tokenizers"]:
        assert all(0 < row["tokenizer_cpu"] <= row["cpu"] for row in found["rows"])


def test_the_command_sparse_compares_and_times(capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.main(["sparse", "--texts", "8", "--rounds", "1", "--layers", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("| ours |") for line in lines)
    assert any(line.startswith("| ours, bfloat16 |") for line in lines)


def test_the_command_evaluation_compares_and_times(capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.main(["evaluation", "--vectors", "400", "--queries", "5", "--rounds", "1"]) == 0
    shown = capsys.readouterr().out
    assert "400 vectors of 384, 5 queries, 1 thread(s)" in shown
    for name in ("community_detection", "EmbeddingSimilarityEvaluator", "InformationRetrievalEvaluator"):
        assert f"| {name} | ours |" in shown


def test_the_command_late_interaction_compares_and_times(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--documents", "40", "--width", "16", "--queries", "1", "2", "--rounds", "1"]
    assert commands.main(["late_interaction", *options]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sum("| ours |" in line for line in lines) == 2


def test_other_libraries_are_measured_beside_the_plain_call(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("transformers", reason="the usual code is around its tokenizer")
    for name in ("pyarrow", "pandas", "polars", "duckdb"):
        pytest.importorskip(name)
    given = ["--texts", "40", "--rounds", "1", "--record", str(tmp_path)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of transformers and DuckDB
        assert commands.main(["integrations", *given, "--only", "pyarrow", "pandas", "polars", "duckdb"]) == 0
    shown = capsys.readouterr().out
    for name in ("pyarrow", "pandas", "Polars", "DuckDB"):
        assert re.search(rf"\| {name} \|.*\| equal \|", shown), name
    rows = json.loads(next(tmp_path.glob("*.json")).read_text(encoding="utf-8"))["rows"]
    assert [row["ids"] for row in rows] == ["equal"] * 4

    make = integrations.LIBRARIES[0]

    def other(texts: list[str], tokenizer: Any, theirs: Any, folder: Path) -> Any:
        case = make(texts, tokenizer, theirs, folder)
        return case._replace(rows=lambda _: [[1]] * len(texts))

    other.__name__ = "_pyarrow"
    monkeypatch.setattr(integrations, "LIBRARIES", (other,))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert commands.main(["integrations", *given[:4], "--only", "pyarrow"]) == 1
    assert "DIFFERENT" in capsys.readouterr().out


# --- accuracy


def test_measures_of_retrieval_and_ranking() -> None:
    scores = np.array([[0.9, 0.1, 0.2], [0.5, 0.4, 0.1], [0.0, 0.1, 0.3]], np.float32)
    assert accuracy.reciprocal_rank(scores) == pytest.approx((1 + 1 / 2 + 1) / 3)
    relevance = np.array([2.0, 0.0, -1.0])
    assert accuracy.gain(np.array([3.0, 2.0, 1.0]), relevance, 3) == pytest.approx(1)
    assert accuracy.gain(np.array([1.0, 2.0, 3.0]), relevance, 3) < 0.8


def test_accuracy_compares_dtypes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for part, count in (("train", 40), ("test", 12)):
        lines = [f"{i % 2}\t{i % 7 - 3.5}\t{'the dog runs home' if i % 2 else 'a cat'} {i}" for i in range(count)]
        (tmp_path / f"{part}.tsv").write_text("label\trating\ttext\n" + "\n".join(lines) + "\n")
    command = ["accuracy", "--model", str(MODELS / "sentence_plain_folder"), "--labelled", str(tmp_path)]
    command += ["--masked", str(MODELS / "splade_max"), "--paragraphs", "20", "--record", str(tmp_path / "records")]
    assert commands.main(command) == 0
    out = capsys.readouterr().out
    (record,) = (tmp_path / "records").glob("*.json")
    results = json.loads(record.read_text())["results"]
    assert {*results} == {"vectors", "labelled", "masked"}
    for title, rows in results.items():
        assert [*rows] == ["float32", "bfloat16", "int8", "auto"]
        assert f"## {title.capitalize()}" in out
    exact, found = results["vectors"]["float32"], results["vectors"]["int8"]
    assert exact["lowest cosine"] == pytest.approx(1)
    assert 0.99 < found["lowest cosine"] < found["median"] <= 1
    assert results["labelled"]["int8"]["accuracy"] == 1


def pairs_folder(parent: Path) -> Path:
    """Write two tasks of pairs, one of them compressed."""
    folder = parent / "pairs"
    folder.mkdir()
    (folder / "plain.tsv").write_text("1\ta cat\tthe dog\n5\tthe dog runs\tthe dog runs home\n2.5\ta cat\ta mat\n")
    # No two texts are the same: their cosine is 1 but for the last bit, and would be ranked by it.
    lines = "".join(f"{i % 6}\tthe cat {i}\tthe {'dog' if i % 2 else 'mat'} {i}\r\n" for i in range(60))
    (folder / "packed.tsv.xz").write_bytes(lzma.compress(lines.encode()))
    return folder


def test_pairs_are_read_and_wrong_ones_refused(tmp_path: Path) -> None:
    folder = pairs_folder(tmp_path)
    tasks = pairs.read_folder(folder)
    assert {name: len(task.scores) for name, task in tasks.items()} == {"packed": 60, "plain": 3}
    assert tasks["plain"].scores.tolist() == [1, 5, 2.5]
    assert (tasks["plain"].first[1], tasks["packed"].second[59]) == ("the dog runs", "the dog 59")
    assert len(pairs.read_folder(folder, 2)["packed"].first) == 2
    with pytest.raises(InputError, match="there is no file of pairs"):
        pairs.read_folder(tmp_path)
    for line in ("3\tone text", "high\ta\tb", "3\ta\tb\tc", ""):
        (folder / "wrong.tsv").write_text(f"1\ta\tb\n{line}\n")
        with pytest.raises(InputError, match=r"wrong\.tsv, line 2: .* is not a score and two texts"):
            pairs.read_folder(folder)


def test_pairs_of_every_dtype_are_compared_with_what_is_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(contests, "BUILD", tmp_path)
    model, folder = sentence_folder("sentence_mean_normalize", tmp_path), pairs_folder(tmp_path)
    packed = pairs.read_folder(folder)["packed"]
    given = ["--model", str(model), "--pairs", str(folder), "--only", "pairs", "--engines", "ours"]
    assert commands.main(["accuracy", *given, "--quick", "--record", str(tmp_path / "records")]) == 0
    out = capsys.readouterr().out
    (record,) = (tmp_path / "records").glob("*.json")
    (found,) = json.loads(record.read_text())["results"].values()
    assert found["pairs"] == {"packed": 50, "plain": 3}
    assert found["published"] == {}
    assert [*found["engines"]] == ["ours float32", "ours bfloat16", "ours int8", "ours auto"]
    assert found["engines"]["ours float32"]["lowest"] == pytest.approx(1)
    assert 0.99 < found["engines"]["ours int8"]["lowest"] < 1
    assert "Spearman, packed" in out
    assert "to published" not in out
    # All pairs, with published figures that are right and one that is not.
    evaluator = evaluation.EmbeddingSimilarityEvaluator(packed.first, packed.second, packed.scores)
    right = evaluator(SentenceEncoder(model))["spearman_cosine"]
    for value, status in ((right, 0), (right + 1e-5, 1)):
        file = tmp_path / "published.toml"
        file.write_text(f'["{model}"]\npacked = {value}\n')
        monkeypatch.setattr(pairs, "PUBLISHED", file)
        assert commands.main(["accuracy", *given, "--dtypes", "int8"]) == status
        out = capsys.readouterr().out
        assert ("WRONG: packed: ours float32 has" in out) == bool(status)
        assert out.count("to published") == 1


def test_published_figures_are_correlations_of_models_that_are_found() -> None:
    table = tomllib.loads(pairs.PUBLISHED.read_text(encoding="utf-8"))
    assert {"STSBenchmark", "SICK-R"} == {*pairs.published("minilm")}
    assert all(0 < value < 1 for model in table.values() for value in model.values())
    assert pairs.published("nobody") == {}


def test_a_page_is_a_line_of_its_table() -> None:
    clicks = {1: [70.0, 60.0], 6: [400.0]}
    one = pages.Measured("attention", 512, 6_500_000, 2.5, 0, 2 * pages.MIB, clicks=clicks, busy=[90])
    heads, _, line = pages.titled("Each view", [one]).splitlines()[2:5]
    cells = dict(zip(*([cell.strip() for cell in row.split("|")[1:-1]] for row in (heads, line)), strict=True))
    assert cells == dict(
        zip(pages.HEADER, ["attention", "6.5", "2.5", "2", "", "65", "400", "90", "2 and 1"], strict=True)
    )

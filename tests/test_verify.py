"""`wordpiece_bert.verify` and its command: what passes, what does not, and what is refused."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command_line import desk, error_of
from model_files import MODELS, write_safetensors
from wordpiece_bert import SentenceEncoder, Tokenizer, verify
from wordpiece_bert.bert.checkpoint import read_tensors
from wordpiece_bert.cli import main, program
from wordpiece_bert.errors import InputError, MissingPackageError, TokenizerFormatError
from wordpiece_bert.verify import (
    measures,
    model_check,
    references,
    subjects,
    tokenizer_check,
    verify_model,
    verify_tokenizer,
)

ROOT = Path(__file__).parents[1]
TEXTS = ROOT / "examples" / "texts" / "sentences.txt"
MIXED = ROOT / "tests" / "data" / "texts" / "mixed.txt"
KINDS = {
    "answers": "model for answers",
    "colbert": "multi-vector encoder",
    "entities": "classifier of tokens",
    "ranker": "ranker",
    "reviews": "classifier of texts",
    "sentences": "sentence encoder",
    "splade": "sparse encoder",
    "words": "model for masked words",
}


def change_weight(folder: Path, change: Callable[[str, Any], Any]) -> None:
    """Write the weights of a folder again, changed."""
    file = folder / "model.safetensors"
    weights = {name: np.float32(change(name, np.array(x, np.float32))) for name, x in read_tensors(file).items()}
    write_safetensors(file, weights)


def with_noise(name: str, x: Any) -> Any:
    del name
    return x + np.random.default_rng(0).normal(0, 0.3, x.shape)


# --- tokenizers


@pytest.fixture
def tokenizers() -> Any:
    return pytest.importorskip("tokenizers")


def reference_from(monkeypatch: pytest.MonkeyPatch, tokenizers: Any, change: Callable[[dict[str, Any]], None]) -> None:
    """Let the reference be read from a tokenizer.json in which something was changed."""
    load = tokenizer_check.load_peer

    def load_changed(source: Path, ours: Tokenizer) -> Any:
        content = json.loads((source / "tokenizer.json").read_text(encoding="utf-8"))
        change(content)
        other = Path("changed") / "tokenizer.json"
        other.parent.mkdir(exist_ok=True)
        other.write_text(json.dumps(content), encoding="utf-8")
        return load(other.parent, ours)

    monkeypatch.setattr(tokenizer_check, "load_peer", load_changed)


@pytest.mark.usefixtures("tokenizers")
@pytest.mark.parametrize("options", [{}, {"max_length": 8, "stride": 3}, {"max_length": 6, "stride": 0}])
def test_a_tokenizer_is_the_same(models: Path, options: dict[str, Any]) -> None:
    report = verify_tokenizer(models / "reviews", [TEXTS, MIXED], **options)
    assert report.passed
    assert report.first is None
    assert report.texts == sum(len(file.read_bytes().removesuffix(b"\n").split(b"\n")) for file in (TEXTS, MIXED))
    tokenizer = Tokenizer.from_pretrained(models / "reviews")
    batch = tokenizer.encode_files([TEXTS, MIXED], "ids.npy", add_special_tokens=True)
    assert report.tokens == batch.tokens
    assert (report.windows > 0) == bool(options)
    assert (report.max_length, report.stride) == (options.get("max_length", 128), options.get("stride", 32))


def test_windows_are_counted_of_cut_texts_alone(models: Path, tokenizers: Any) -> None:
    Path("texts.txt").write_text("a film\n" + "film " * 20 + "\n", encoding="utf-8")
    peer = tokenizers.Tokenizer.from_file(str(models / "reviews" / "tokenizer.json"))
    peer.enable_truncation(8, stride=2)
    expected = 1 + len(peer.encode("film " * 20).overflowing)
    assert verify_tokenizer(models / "reviews", "texts.txt", max_length=8, stride=2).windows == expected


@pytest.mark.usefixtures("tokenizers")
def test_pairs_fields_and_a_vocabulary_by_itself(models: Path) -> None:
    Path("pairs.jsonl").write_text(
        '{"a": "The film.", "b": ""}\n{"a": "Great", "b": "a dull story"}\n', encoding="utf-8"
    )
    report = verify_tokenizer(models / "reviews", "pairs.jsonl", field=("a", "b"), max_length=6, stride=1)
    assert (report.passed, report.texts) == (True, 2)
    vocabulary = Tokenizer.from_pretrained(models / "reviews").get_vocab()
    Path("vocab.txt").write_text("\n".join(sorted(vocabulary, key=vocabulary.__getitem__)) + "\n", encoding="utf-8")
    for lowercase in (True, False):
        report = verify_tokenizer("vocab.txt", MIXED, lowercase=lowercase)
        assert (report.passed, report.reference.partition(", from ")[2]) == (True, "vocab.txt")


def test_another_normalizer_is_a_difference_with_its_text(
    models: Path, tokenizers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference_from(monkeypatch, tokenizers, lambda content: content["normalizer"].update(lowercase=False))
    Path("texts.txt").write_text("a great film\n\nsome say a Great film\na Dull film\n", encoding="utf-8")
    report = verify_tokenizer(models / "reviews", "texts.txt")
    assert (report.passed, report.differing, report.texts) == (False, 2, 4)
    first = report.first
    assert first is not None
    assert (first.place, first.text) == ("texts.txt line 3", "some say a Great film")
    ids = Tokenizer.from_pretrained(models / "reviews").get_vocab()
    assert (first.field, first.cut, first.ours, first.theirs) == ("ids", False, ids["great"], ids["[UNK]"])
    assert first.tokens == ("great", "[UNK]")
    assert first.start == 11


@pytest.mark.parametrize(
    ("change", "field", "cut"),
    [
        (lambda content: content["added_tokens"].append({"id": 999, **TOKEN}), "ids", False),
        (lambda content: content["post_processor"]["single"].pop(), "tokens", False),
        (
            lambda content: content["post_processor"]["single"][0]["SpecialToken"].update(type_id=1),
            "token type ids",
            True,
        ),
    ],
)
def test_other_files_of_the_reference_are_differences(
    change: Any, field: str, cut: bool, models: Path, tokenizers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference_from(monkeypatch, tokenizers, change)
    Path("texts.txt").write_text("a great film\n", encoding="utf-8")
    first = verify_tokenizer(models / "reviews", "texts.txt").first
    assert first is not None
    assert (first.field, first.cut) == (field, cut)


TOKEN = {"content": "great film", **dict.fromkeys(("single_word", "lstrip", "rstrip", "special", "normalized"), False)}


def test_windows_masks_and_offsets_are_compared() -> None:
    def columns(**changed: Any) -> dict[str, Any]:
        whole = {
            "lengths": np.array([2, 2]),
            "texts": np.array([0, 0]),
            "ids": np.array([5, 6, 7, 8]),
            "offsets": np.array([[0, 1], [1, 2], [2, 3], [3, 4]]),
            "attention mask": np.array([1, 1, 1, 0]),
        }
        return {**whole, **changed}

    first = tokenizer_check._first
    assert first(columns(), columns()) is None
    for name, other, token in [
        ("attention mask", np.array([1, 1, 1, 1]), 1),
        ("offsets", np.array([[0, 1], [1, 2], [2, 4], [3, 4]]), 0),
    ]:
        found = first(columns(), columns(**{name: other}))
        assert found is not None
        assert (found.field, found.row, found.token) == (name, 1, token)
    fewer = {name: x[: 1 if name in ("lengths", "texts") else 2] for name, x in columns().items()}
    assert first(columns(), fewer)[:5] == ("windows", 1, None, 2, 1)  # type: ignore[index]


@pytest.mark.usefixtures("tokenizers")
def test_a_panic_of_the_reference_is_a_difference(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class PanicException(BaseException):  # as PyO3 raises it
        pass

    class Peer:
        def __init__(self, inner: Any) -> None:
            self._inner = inner

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

        def encode_batch(self, texts: list[str]) -> Any:
            if any("bomb" in text for text in texts):
                raise PanicException("index out of range")
            return self._inner.encode_batch(texts)

    load = tokenizer_check.load_peer
    monkeypatch.setattr(tokenizer_check, "load_peer", lambda *given: (Peer(load(*given)[0]), "a peer"))
    Path("texts.txt").write_text("a film\na bomb\na story\n", encoding="utf-8")
    report = verify_tokenizer(models / "reviews", "texts.txt")
    assert (report.differing, report.texts) == (1, 3)
    assert report.first is not None
    assert (report.first.place, report.first.field) == ("texts.txt line 2", "error")
    assert report.first.theirs == "PanicException: index out of range"


@pytest.mark.usefixtures("tokenizers")
def test_hostile_files_of_texts(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("empty.txt").write_bytes(b"")
    Path("latin.txt").write_bytes(b"a film\ncaf\xe9\n")
    Path("long.txt").write_bytes(b"a great film \x01 \xf0\x9f\x98\x80 " * 20_000)
    for command in ("tokenizer", "model"):
        name = str(models / "reviews")
        assert "no text to compare" in error_of(capsys, "verify", command, name, "empty.txt")
        assert "latin.txt: line 2" in error_of(capsys, "verify", command, name, "latin.txt")
        assert "nowhere.txt" in error_of(capsys, "verify", command, name, "nowhere.txt")
    Path("bad.txt").write_bytes(b"\xff\n")
    with pytest.raises(InputError, match="no text to compare could be read"):
        verify_tokenizer(models / "reviews", "bad.txt", errors="skip")
    report = verify_tokenizer(models / "reviews", "latin.txt", errors="skip")
    assert (report.passed, report.texts, report.skipped) == (True, 1, 1)
    found = verify_model(models / "reviews", "latin.txt", reference="ours", errors="skip")
    assert (found.compared, found.texts, found.skipped) == (1, 1, 1)
    report = verify_tokenizer(models / "reviews", "long.txt")
    assert report.passed
    assert report.windows > 500
    assert verify_model(models / "reviews", "long.txt", reference="ours").passed


def test_without_the_package_tokenizers_the_error_says_what_to_install(
    models: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'wordpiece-bert\[tokenizers\]'"):
        verify_tokenizer(models / "reviews", TEXTS)
    assert "pip install" in error_of(capsys, "verify", "tokenizer", str(models / "reviews"), str(TEXTS))


@pytest.mark.usefixtures("tokenizers")
def test_wrong_calls_for_tokenizers_are_refused(models: Path) -> None:
    for options, message in [
        ({"max_length": 3}, "max_length must be"),
        ({"max_length": 8, "stride": 5}, "stride must be"),
        ({"max_length": True}, "max_length must be"),
    ]:
        with pytest.raises(InputError, match=message):
            verify_tokenizer(models / "reviews", TEXTS, **options)
    Path("bpe").mkdir()
    Path("bpe/tokenizer.json").write_text('{"model": {"type": "BPE"}}', encoding="utf-8")
    with pytest.raises(InputError, match="not WordPiece"):
        verify_tokenizer("bpe", TEXTS)
    Path("broken").mkdir()
    Path("broken/tokenizer.json").write_text("{", encoding="utf-8")
    with pytest.raises(TokenizerFormatError):
        verify_tokenizer("broken", TEXTS)


# --- models


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("name", KINDS)
def test_each_kind_of_model_passes_beside_float32(name: str, dtype: str, models: Path) -> None:
    report = verify_model(models / name, TEXTS, dtype=dtype, reference="ours")
    assert (report.kind, report.dtype) == (KINDS[name], dtype)
    assert report.passed, report
    assert ("NumPy" in report.reference) == (dtype == "float32")
    scores = {"rank_correlation", "top_10"}
    cosines = {"lowest_cosine", "median_cosine"}
    encoder = name in ("sentences", "splade", "colbert")
    assert set(report.measures) == (
        cosines | scores if encoder else {*scores, "difference"} if name == "ranker" else cosines
    ) | (set() if encoder else {"flips"})
    assert all(one.limit == measures.LIMITS[dtype][key] for key, one in report.measures.items())


@pytest.mark.parametrize("name", KINDS)
def test_each_kind_of_model_fails_beside_a_reference_with_other_weights(
    name: str, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Path("other")
    shutil.copytree(models / name, other)
    change_weight(other, with_noise)
    kind = type(subjects.subject_of(models / name, ["a", "b"]))
    load = kind.load

    def load_other(self: Any, **loading: Any) -> Any:
        if loading.get("backend") == "numpy":
            self.folder = other
        return load(self, **loading)

    monkeypatch.setattr(kind, "load", load_other)
    report = verify_model(models / name, TEXTS, reference="ours")
    assert not report.passed
    assert any(not one.passed for one in report.measures.values())


@pytest.mark.parametrize("name", ["sentences", "ranker", "reviews", "colbert"])
def test_the_reference_computes_with_the_same_instructions(
    name: str, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the reference by NumPy, which has none, no instructions are asked for."""
    engines: list[Any] = []
    kind = type(subjects.subject_of(models / name, ["to bake bread", "a dull film"]))
    load = kind.load

    def watched(self: Any, **loading: Any) -> Any:
        model = load(self, **loading)
        engines.append(getattr(model, "model", model).engine)
        return model

    monkeypatch.setattr(kind, "load", watched)
    for dtype in ("int8", "float32"):
        engines.clear()
        assert verify_model(models / name, TEXTS, dtype=dtype, reference="ours", instructions="scalar").passed
        model, reference = engines
        assert model.instructions == "scalar"
        expected = ("rust", "scalar") if dtype == "int8" else ("numpy", "blas")
        assert (reference.backend, reference.instructions) == expected


def test_the_first_reference_that_is_installed_is_taken(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = subjects.subject_of(models / "sentences", ["a", "b"])
    installed: set[str] = set()
    monkeypatch.setattr(model_check, "is_installed", lambda name: name in installed)
    found = []
    for name in ("", "onnx", "transformers", "sentence-transformers"):
        installed.add(name)
        found.append(model_check._reference(made, models / "sentences", None))
    assert found == ["ours", "ours", "transformers", "sentence-transformers"]
    shutil.copytree(models / "sentences", "with_file")
    Path("with_file/model.onnx").write_bytes(b"")
    installed.clear()
    installed.add("onnx")
    assert model_check._reference(made, Path("with_file"), None) == "onnx"


@pytest.mark.parametrize("reference", ["sentence-transformers", "transformers", "model2vec", "onnx"])
def test_a_reference_that_is_not_installed_is_named(
    reference: str, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(references, "find_spec", lambda name: None)
    shutil.copytree(models / "sentences", "other")
    Path("other/model.onnx").write_bytes(b"")
    name = str(models / "static") if reference == "model2vec" else "other"
    with pytest.raises(MissingPackageError, match="pip install"):
        verify_model(name, TEXTS, reference=reference)


def test_a_static_model_needs_another_program(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "find_spec", lambda name: None)
    with pytest.raises(MissingPackageError, match="pip install model2vec"):
        verify_model(models / "static", TEXTS)
    with pytest.raises(InputError, match="one way of computing: compare it with model2vec"):
        verify_model(models / "static", TEXTS, reference="ours")


def test_limits_decide(models: Path) -> None:
    options: dict[str, Any] = {"dtype": "int8", "reference": "ours"}
    assert not verify_model(models / "splade", TEXTS, limits={"lowest_cosine": 1.0}, **options).passed
    # Labels that flip are measured of classifiers.
    for limits in ({"cosine": 0.5}, {"flips": 0}, {"flips": "0.9"}, ["flips"], 5):
        with pytest.raises(InputError, match="limits"):
            verify_model(models / "splade", TEXTS, limits=limits, **options)  # type: ignore[arg-type]


def test_wrong_calls_for_models_are_refused(models: Path) -> None:
    Path("pairs.tsv").write_text("a\tb\nbread\tdough\nfilm\tstory\n", encoding="utf-8")
    for name, options, message in [
        ("sentences", {"files": "pairs.tsv", "column": ("a", "b")}, "of single texts"),
        ("sentences", {"reference": "torch"}, "reference must be"),
        ("sentences", {"reference": "onnx"}, "has no ONNX file"),
        ("splade", {"reference": "transformers"}, "sparse encoder, which is compared with"),
        (MODELS / "rerank_modules_mean", {"reference": "transformers"}, "with sentence-transformers, ours, not transf"),
        ("sentences", {"max_texts": 0}, "max_texts must be"),
        ("sentences", {"dtype": "float8"}, "dtype"),
    ]:
        given = {"files": TEXTS, **options}
        with pytest.raises(InputError, match=message):
            verify_model(models / name, given.pop("files"), **given)
    Path("one.txt").write_text("a film\n", encoding="utf-8")
    with pytest.raises(InputError, match="at least two texts"):
        verify_model(models / "ranker", "one.txt", reference="ours")
    SentenceEncoder(models / "sentences", dtype="int8").save_pretrained("int8")
    with pytest.raises(InputError, match="int8 has int8 weights and none in float32 to compare them with"):
        verify_model("int8", TEXTS, dtype="auto", reference="ours")


def test_pairs_of_a_ranker_are_ranked_by_query(models: Path) -> None:
    rows = [(query, text) for query in ("bread", "film") for text in ("bread dough", "a dull film", "the wheel")]
    Path("pairs.tsv").write_text("q\td\n" + "".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    report = verify_model(models / "ranker", "pairs.tsv", column=("q", "d"), reference="ours")
    assert (report.compared, report.passed) == (6, True)


def test_the_sample_is_of_all_texts_and_the_same_each_time() -> None:
    Path("texts.txt").write_text("".join(f"{i}\n\n" for i in range(1000)), encoding="utf-8")
    one, two = (model_check._sample(model_check.TextReader("texts.txt"), 100) for _ in range(2))
    assert one == two
    numbers = list(map(int, one))
    assert numbers == sorted(set(numbers))
    assert len(numbers) == 100
    assert 300 < np.mean(numbers) < 700
    assert model_check._sample(model_check.TextReader("texts.txt"), 5000) == [str(i) for i in range(1000)]


# --- measures


def test_measures_of_vectors() -> None:
    x = np.random.default_rng(0).normal(size=(40, 8)).astype(np.float32)
    same = measures.of_vectors(x, x.copy())
    assert same == pytest.approx({"lowest_cosine": 1, "median_cosine": 1, "rank_correlation": 1, "top_10": 1})
    y = x.copy()
    y[3] = -y[3]
    found = measures.of_vectors(x, y)
    assert found["lowest_cosine"] == pytest.approx(-1)
    assert found["median_cosine"] == pytest.approx(1)
    assert found["top_10"] < 1
    y[3] = np.nan
    nan = measures.of_vectors(x, y)
    assert not any(measures.holds(name, value, 0.5) for name, value in nan.items() if name == "lowest_cosine")
    zeros = np.zeros((2, 3), np.float32)
    assert measures.of_vectors(zeros, zeros) == {"lowest_cosine": 1, "median_cosine": 1}
    assert measures.of_vectors(zeros, zeros + 1)["lowest_cosine"] == 0
    other = np.random.default_rng(1).normal(size=(40, 8)).astype(np.float32)
    assert measures.of_vectors(x, other)["rank_correlation"] < 0.3


def test_measures_of_scores_and_labels() -> None:
    scores = np.arange(24, dtype=np.float32)
    groups = [np.arange(12), np.arange(12, 24)]
    assert measures.of_scores(scores, 2 * scores, groups) == {
        "difference": 0.5,
        "rank_correlation": 1,
        "top_10": 1,
        "flips": 0,
    }
    found = measures.of_scores(scores, np.concatenate([scores[:12], scores[:11:-1]]), groups)
    assert found["flips"] == 0.5
    assert found["top_10"] == 0.5
    ties = np.float32([1, 1 + 1e-7, 0])
    assert measures.of_scores(ties, ties[[1, 0, 2]], [np.arange(3)])["flips"] == 0
    a = [np.float32([1, 0]), np.float32([0, 2, 1])]
    assert measures.of_labels(a, a) == {"lowest_cosine": 1, "median_cosine": 1, "flips": 0}
    assert measures.of_labels(a, [np.float32([0, 1]), a[1]])["flips"] == 0.5
    assert measures.of_labels([np.float32([1, np.nan])], [np.float32([1, 0])])["flips"] == 1


# --- the command


@pytest.mark.usefixtures("tokenizers")
def test_the_command_for_tokenizers(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = str(models / "reviews")
    assert main(["verify", "tokenizer", name, str(TEXTS)]) == 0
    out, err = capsys.readouterr()
    assert "passed, the same as tokenizers" in out
    assert "no windows, as no text has more than 128 tokens" in out
    assert err == ""
    assert main(["verify", "tokenizer", str(TEXTS), "-m", name, "--json", "--max-length", "8"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["passed"], facts["model"], facts["max_length"]) == (True, name, 8)
    assert facts["windows"] > 0
    assert main(["verify", "tokenizer", name, "-q", str(TEXTS)]) == 0
    assert capsys.readouterr() == ("", "")
    assert "--cased applies" in error_of(capsys, "verify", "tokenizer", name, str(TEXTS), "--cased")


def test_the_command_prints_the_first_difference_and_returns_1(
    models: Path, tokenizers: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reference_from(monkeypatch, tokenizers, lambda content: content["normalizer"].update(lowercase=False))
    Path("texts.txt").write_text("a film\n" + "film " * 30 + "Great\n", encoding="utf-8")
    assert main(["verify", "tokenizer", str(models / "reviews"), "texts.txt"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert " 1 of 2 texts differ from tokenizers " in lines[0]
    assert lines[1] == "first: texts.txt line 2, token 31: ids"
    assert lines[2].startswith("  text    …'film ")
    assert lines[2].endswith("Great'")
    assert (lines[3].split()[0], lines[3].split()[2]) == ("ours", "'great'")
    assert lines[4].split()[2] == "'[UNK]'"
    assert main(["verify", "tokenizer", str(models / "reviews"), "texts.txt", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["first"]["place"] == "texts.txt line 2"


def test_the_command_for_models(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["verify", "model", "-m", str(models / "splade"), "--dtype", "int8", "--reference", "ours", str(TEXTS)]
    assert main(given) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("a sparse encoder in int8, beside float32 of this package, by its Rust kernels")
    assert lines[-1] == "passed"
    assert main([*given, "--limit", "lowest_cosine=1"]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "failed"
    assert main([*given, "--limit", "lowest_cosine=1", "--json"]) == 1
    facts = json.loads(capsys.readouterr().out)
    assert facts["measures"]["lowest_cosine"]["passed"] is False
    assert facts["measures"]["median_cosine"] == {"value": pytest.approx(1, abs=1e-3), "limit": 0.999, "passed": True}
    for wrong in ("cosine=1", "lowest_cosine", "lowest_cosine=2"):
        assert "--limit" in error_of(capsys, *given, "--limit", wrong)
    assert "unknown option --dtyp8" in error_of(capsys, "verify", "model", "--dtyp8", "x")


def test_the_command_names_what_the_library_has() -> None:
    from wordpiece_bert.cli import verify as command

    assert set(command._MEASURES) == set(measures.MEASURES)
    assert set(command._REFERENCES) == {*references.PEERS, references.OURS}
    assert all(set(limits) == set(measures.MEASURES) for limits in measures.LIMITS.values())
    assert set(program._subparsers(program._subparsers(program._parser(["verify"]))["verify"])) == {
        "tokenizer",
        "model",
    }


@pytest.mark.model
def test_minilm_in_int8() -> None:
    report = verify.verify_model("minilm", TEXTS, dtype="int8", reference="ours")
    assert report.passed
    texts = [text for text in TEXTS.read_text(encoding="utf-8").split("\n") if text.strip()]
    exact, small = (SentenceEncoder("minilm", dtype=dtype).encode(texts) for dtype in ("float32", "int8"))
    assert report.measures["lowest_cosine"].value == pytest.approx(float((exact * small).sum(axis=1).min()), abs=1e-5)
    assert importlib.util.find_spec("tokenizers") is None or verify.verify_tokenizer("minilm", MIXED).passed


PAGE = ROOT / "docs" / "how-to" / "verify.md"


def test_the_page_has_the_limits() -> None:
    rows = [line.strip("| ").split("|") for line in PAGE.read_text(encoding="utf-8").splitlines()]
    found = {
        row[0].split("`")[1]: [float(cell) for cell in row[-3:]]
        for row in rows
        if len(row) == 7 and row[0].startswith("`")
    }
    assert found == {
        name: [measures.LIMITS[dtype][name] for dtype in ("float32", "bfloat16", "int8")] for name in measures.MEASURES
    }
    for name in measures.MEASURES:
        assert f"`{name}`, {'at most' if name in measures.AT_MOST else 'at least'} " in PAGE.read_text(encoding="utf-8")

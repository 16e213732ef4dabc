"""Labelled data: what is not text, mistakes in labels or files, labels that training lacks; and F1 of each label."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from command_line import stdin
from small_tokenizer import with_file_settings
from wordpiece_bert import SentenceEncoder, Tokenizer, WordCounts
from wordpiece_bert.cli import main
from wordpiece_bert.errors import InputError, TrainingError, TrainingWarning
from wordpiece_bert.evaluation import read_beir
from wordpiece_bert.finetune import FrozenClassifier, LogisticRegression, Ridge, metrics
from wordpiece_bert.finetune.choices import choice_rows
from wordpiece_bert.finetune.data import label_names, read_columns, sequence_rows, token_rows
from wordpiece_bert.finetune.frozen_classifier import cached_vectors
from wordpiece_bert.finetune.labels import class_problem
from wordpiece_bert.finetune.objectives import Columns, Tables, objective_class
from wordpiece_bert.finetune.questions import question_windows, read_squad
from wordpiece_bert.pretraining import build_token_store
from wordpiece_bert.tokenizer.corpus import table_reader
from wordpiece_bert.tokenizer.corpus.column_blocks import separated_blocks
from wordpiece_bert.tokenizer.corpus.text_reader import TextReader

#: What is not text, and what a message says of it.
NO_TEXTS = [
    (None, r"the text is missing \(None\)"),
    (math.nan, r"the text is missing \(nan\)"),
    (5, "the text must be a str, not int: 5"),
    (["x", "y"], r"the text must be a str, not list: \['x', 'y'\]"),
]
GOOD, BAD = ["a wonderful film", "a great story", "brilliant"], ["a dull film", "a boring story", "silly"]


def write(file: Path, rows: list[dict[str, Any]]) -> str:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(file)


# --- texts


@pytest.mark.parametrize(("value", "message"), NO_TEXTS)
def test_what_is_no_text_is_refused_with_its_row(
    value: Any, message: str, tok: Tokenizer, folder: Path, tmp_path: Path
) -> None:
    """It was trained as the words 'none', 'nan' and '5' before."""
    two, names = ["a film", value], ["no", "yes"]
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: sequence_rows(tok, two, None, names, names=names, max_length=9), "row 1, texts: "),
        (lambda: sequence_rows(tok, ["a", "b"], two, [1, 0], names=None, max_length=9), "row 1, pairs: "),
        (lambda: token_rows(tok, [["a"], two], [["no"], names], names=names, max_length=9), "row 1, word 1: "),
        (lambda: choice_rows(tok, two, [["a", "b"]] * 2, [0, 1], max_length=9), "row 1, texts: "),
        (lambda: choice_rows(tok, ["a", "b"], [["a", "b"], two], [0, 1], max_length=9), "row 1, choice 1: "),
        (lambda: question_windows(tok, two, ["a", "b"], ["a", "b"]), "row 1, questions: "),
        (lambda: question_windows(tok, ["a", "b"], two, ["a", ""]), "row 1, contexts: "),
        (lambda: cached_vectors(SentenceEncoder(folder), two, tmp_path), "row 1, texts: "),
    ]
    for call, place in calls:
        with pytest.raises(InputError, match=f"^{place}{message}"):
            call()
    answers = {"text": ["a", value], "answer_start": [0, 0]}
    with pytest.raises(InputError, match=r"^row 0: answers need a list text"):
        question_windows(tok, ["a"], ["a"], [answers])
    with pytest.raises(InputError, match=r"^texts\[1\] must be a str or a pair"):
        FrozenClassifier(folder).fit([("a", "b"), ("a", value)], names)


@pytest.mark.parametrize(("value", "message"), NO_TEXTS)
@pytest.mark.parametrize("column", ["text", "pair"])
def test_tables_refuse_what_is_no_text_with_its_line(value: Any, message: str, column: str, tmp_path: Path) -> None:
    good = {"text": "a film", "pair": "a story", "label": 1, "choices": ["a", "b"]}
    file = write(tmp_path / "train.jsonl", [good, {**good, "label": 0}, {**good, column: value}])
    for task in ("classify", "regress", "answers", "choose", "similar"):
        tables = Tables(train=file, columns=Columns(pair="pair"))
        with pytest.raises(InputError, match=f"train.jsonl, line 3, column '{column}': {message}"):
            objective_class(task, "tables")(tables).read(file)
        objective = objective_class(task, "tables")(Tables(train=file, columns=Columns(pair="pair"), errors="skip"))
        assert len(objective.read(file)["text"]) == 2
        assert [reason.partition(":")[0] for reason in objective.skipped[file]] == [
            f"{file}, line 3, column '{column}'"
        ]


def test_tables_refuse_wrong_words_tags_and_choices(tmp_path: Path, tok: Tokenizer) -> None:
    rows: list[dict[str, Any]] = [
        {"text": ["a", "film"], "label": ["O", "B"], "choices": ["a", "b"]},
        {"text": "a film", "label": "O B", "choices": ["c", "d"]},
        {"text": ["a", None], "label": ["O", "B"], "choices": ["a", None]},
        {"text": 5, "label": ["O", "B"], "choices": None},
        {"text": ["a", "film"], "label": 5, "choices": "ab"},
    ]
    file = write(tmp_path / "words.jsonl", rows)
    objective = objective_class("tokens", "tables")(Tables(train=file, errors="skip"))
    assert len(objective.rows(file, tok, ["B", "O"], 9)) == 2  # type: ignore[attr-defined]
    assert [reason.split(", ", 1)[1].partition(": ")[2] for reason in objective.skipped[file]] == [
        "at 1: the text is missing (None)",
        "a list of str is needed, not 5",
        "a list of labels, or a str of them, is needed, not int: 5",
    ]
    file = write(tmp_path / "choices.jsonl", [{**row, "text": "a", "label": 1} for row in rows])
    objective = objective_class("choose", "tables")(Tables(train=file, errors="skip"))
    assert len(objective.rows(file, tok, None, 9)) == 2  # type: ignore[attr-defined]
    assert [reason.partition("'choices': ")[2] for reason in objective.skipped[file]] == [
        "at 1: the text is missing (None)",
        "the value is missing (None)",
        "a list of str is needed, not 'ab'; name a column for each choice with choices=",
    ]


def test_columns_leave_out_wrong_rows_and_count_them(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", [{"a": "x", "n": 1}, {"a": None, "n": 2}, {"n": 3}, {"a": "y", "n": 1.5}])
    with pytest.raises(InputError, match="line 2: the column 'a' has no value"):
        read_columns(file, ["a", "n"])
    with pytest.warns(TrainingWarning, match=r"3 of 4 rows were skipped, the first at .*line 2: the column 'a' has no"):
        assert read_columns(file, ["a", "n"], checks={"n": class_problem}, errors="skip") == {"a": ["x"], "n": [1]}
    with pytest.raises(InputError, match=r"there are no rows without a problem: .*line 1"):
        read_columns(file, ["b"], errors="skip")
    with pytest.raises(InputError, match="errors must be one of 'strict', 'skip', not 'replace'"):
        read_columns(file, ["a"], errors="replace")  # type: ignore[arg-type]
    for line, message in (
        (b"{'a'}", "c.jsonl, line 4: Expecting"),
        (b'{"a": "\xff"}', "c.jsonl: line 4, byte offset 20"),
    ):
        (tmp_path / "c.jsonl").write_bytes(b'\n{"a": "x"}\n\n' + line)
        with pytest.raises(InputError, match=message):
            read_columns(tmp_path / "c.jsonl", ["a"])
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pytest.importorskip("pyarrow").table([["x"], ["y"]], ["a", "a"]), tmp_path / "d.parquet")
    with pytest.raises(InputError, match="several columns 'a'"):
        read_columns(tmp_path / "d.parquet", ["a"])


def test_the_commands_leave_out_wrong_rows_and_count_them(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"text": text, "label": label} for label, texts in (("good", GOOD), ("bad", BAD)) for text in texts]
    wrong = [{"text": None, "label": "good"}, {"text": "a film", "label": None}, {"text": 5, "label": "good"}]
    train = write(tmp_path / "train.jsonl", [*rows, *wrong])
    ok = write(tmp_path / "ok.jsonl", rows)
    command = ["finetune", "--frozen", "-m", str(folder), "--task", "classify", "--train", train, "--eval", ok]
    assert main([*command, "-o", str(tmp_path / "out")]) == 2
    assert "train.jsonl, line 7, column 'text': the text is missing (None)" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert main([*command, "-o", str(tmp_path / "out"), "--errors", "skip", "--json"]) == 0
    shown = capsys.readouterr()
    assert (json.loads(shown.out)["rows"], json.loads(shown.out)["skipped"]) == (6, 3)
    assert "3 rows skipped:" in shown.err

    pairs = [{"sentence1": text, "sentence2": "a film", "score": n} for n, text in enumerate(GOOD + BAD)]
    file = write(tmp_path / "pairs.jsonl", [*pairs, {**pairs[0], "sentence2": None}, {**pairs[0], "score": "nan"}])
    command = ["evaluate", file, "-m", str(folder), "--json"]
    assert main(command) == 2
    assert "pairs.jsonl, line 7, column 'sentence2': the text is missing (None)" in capsys.readouterr().err
    assert main([*command, "--errors", "skip"]) == 0
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    assert found["skipped"] == 2
    assert "2 rows skipped:" in shown.err
    assert main(["evaluate", write(tmp_path / "fewer.jsonl", pairs), "-m", str(folder), "--json"]) == 0
    assert found["results"][0]["metrics"] == json.loads(capsys.readouterr().out)["results"][0]["metrics"]


def test_folders_of_beir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\td\t1\n")
    write(tmp_path / "queries.jsonl", [{"_id": 1, "text": "bread"}])  # the number is an id too
    good = [{"_id": "d", "title": "Bread", "text": "dough"}, {"_id": "e", "text": "film"}]
    write(tmp_path / "corpus.jsonl", good)
    assert read_beir(tmp_path).corpus == {"d": "Bread dough", "e": "film"}  # others keep their titles
    for row, message in (
        ({"_id": "x", "title": "", "text": 5}, "line 3, column 'text': the text must be a str, not int: 5"),
        ({"_id": ["x"], "title": "", "text": "a"}, r"line 3, column '_id': an id must be a str or a whole number, not"),
        ({"_id": "x", "title": 5, "text": "a"}, "line 3, column 'title': the title must be a str, not 5"),
    ):
        write(tmp_path / "corpus.jsonl", [*good, row])
        with pytest.raises(InputError, match=message):
            read_beir(tmp_path)
    (tmp_path / "corpus.jsonl").unlink()
    read: list[Any] = []
    monkeypatch.setattr(table_reader, "separated_blocks", lambda *given: read.append(given) or separated_blocks(*given))
    for name, table, expected in (
        ("csv", '\ufeff\n"_\r\nid","title",_id,text\rx,Bread,d,dough\r', "Bread dough"),
        ("csv", '_id,text,"a title"\nd,dough,Bread\n', "dough"),
        ("tsv.gz", '_id\ttext\ttitle\nd\tdough\t"Bread\n', '"Bread dough'),
        ("csv", "_id,text,title,title\nd,dough,Bread,Bread\n", 'several columns "title"'),
        ("csv", '_id,text,"title\nd,dough,Bread\n', "the quotation mark that begins a field is never closed"),
        ("csv", f"_id,text,{'title' * 40_000}\nd,dough,Bread\n", "cannot be read: field larger"),
    ):
        file = tmp_path / f"corpus.{name}"
        file.write_bytes(gzip.compress(table.encode()) if name == "tsv.gz" else table.encode())
        if expected.endswith("dough"):
            assert read_beir(tmp_path).corpus == {"d": expected}
            assert len(read) == 2  # the judgements and the documents, each once
        else:
            with pytest.raises(InputError, match=expected):
                read_beir(tmp_path)
        read.clear()
        file.unlink()


def test_the_padding_of_a_tokenizers_file_is_in_no_row() -> None:
    padding = with_file_settings(padding={"strategy": {"Fixed": 128}})
    rows = sequence_rows(padding, ["a b"], ["c"], [0.5], names=None, max_length=64)
    rows += token_rows(padding, [["a", "b"]], [["x", "x"]], names=["x"], max_length=64)
    assert all(padding.pad_token_id not in row["input_ids"] for row in rows)


# --- labels


def test_labels_that_differ_in_white_space_alone_are_a_warning(folder: Path) -> None:
    labels = ["food", "food ", "film", "film", "film", "food"]
    with pytest.warns(TrainingWarning, match="'food' and 'food ' differ in white space alone, and are two classes"):
        assert label_names(labels) == ["film", "food", "food "]
    with pytest.warns(TrainingWarning, match="'food' and 'food '"):
        FrozenClassifier(folder).fit(GOOD + BAD, labels)


def test_an_evaluation_on_frozen_vectors_refuses_labels_that_the_training_never_had(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It counted them as mistakes before, as the evaluation of a trained model does not."""
    rows = [{"text": text, "label": label} for label, texts in (("good", GOOD), ("bad", BAD)) for text in texts]
    train, held_out = write(tmp_path / "train.jsonl", rows), tmp_path / "eval.jsonl"
    write(held_out, [rows[0], {"text": "a film", "label": "neutral"}])
    for more in (["--frozen"], ["--epochs", "1", "--batch-size", "2"]):
        command = ["finetune", *more, "-m", str(folder), "--task", "classify", "--train", train]
        assert main([*command, "--eval", str(held_out), "-o", str(tmp_path / "out")]) == 2
        message = "eval.jsonl, line 2, column 'label': the label 'neutral' is none of bad, good"
        assert message in capsys.readouterr().err
        assert not (tmp_path / "out").exists()
    words = write(tmp_path / "words.jsonl", [{"text": "a film", "label": "O B"}, {"text": "a story", "label": "O C"}])
    objective: Any = objective_class("tokens", "tables")(Tables(train=words))
    with pytest.raises(InputError, match="line 2, column 'label': word 1: the label 'C' is none of O, B"):
        objective.rows(words, Tokenizer.from_pretrained(folder), ["O", "B"], 9)


def test_a_question_of_squad_that_is_impossible_has_no_answer(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"question": "where ?", "answers": [{"text": "here", "answer_start": 0}]}
    file = tmp_path / "squad.json"
    for impossible, answers in ((True, []), (False, asked["answers"]), (True, None)):
        given = {**asked, "is_impossible": impossible, "answers": answers}
        file.write_text(json.dumps({"data": [{"paragraphs": [{"context": "here", "qas": [given]}]}]}))
        assert bool(read_squad(file)["answers"][0]["text"]) != impossible
    file.write_text(
        json.dumps({"data": [{"paragraphs": [{"context": "here", "qas": [{**asked, "is_impossible": True}]}]}]})
    )
    objective: Any = objective_class("answers", "tables")(Tables(train=file, errors="skip"))
    with pytest.raises(InputError, match="errors='skip' leaves out rows of tables; a file of SQuAD is read as a whole"):
        objective.rows(file, None, None, 9)
    with pytest.raises(InputError, match=r"question 0 'where \?' is marked is_impossible, but has the answer 'here'"):
        read_squad(file)


# --- F1


@given(st.integers(2, 5).flatmap(lambda k: st.lists(st.tuples(*[st.integers(0, k - 1)] * 2), min_size=1, max_size=30)))
def test_f1_of_each_label_macro_and_micro_are_those_of_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    f1_score = pytest.importorskip("sklearn.metrics").f1_score
    predicted, right = np.array(pairs).T
    names = [f"class {number}" for number in range(5)]
    found = metrics.f1_by_label(predicted, right, names)
    for average in ("macro", "micro"):
        assert found[f"f1_{average}"] == pytest.approx(f1_score(right, predicted, average=average))
    each = f1_score(right, predicted, average=None, labels=range(5), zero_division=0)
    assert [found[f"f1/{name}"] for name in names] == pytest.approx(list(each))


def test_f1_of_entities_is_that_of_the_entities_of_each_type() -> None:
    right = [["B-PER", "I-PER", "O", "B-LOC"], ["B-LOC", "O"], ["B-ORG"]]
    predicted = [["B-PER", "I-PER", "O", "B-ORG"], ["B-LOC", "O"], ["O"]]
    found = metrics.entity_f1_by_type(predicted, right)
    assert found["entity_f1_micro"] == metrics.entity_f1(predicted, right)
    one = {  # each type alone
        kind: metrics.entity_f1(
            *([[tag if tag.endswith(kind) else "O" for tag in row] for row in rows] for rows in (predicted, right))
        )
        for kind in ("LOC", "ORG", "PER")
    }
    assert {name.partition("/")[2]: value for name, value in found.items() if "/" in name} == one
    assert found["entity_f1_macro"] == pytest.approx(sum(one.values()) / 3)
    assert metrics.entity_f1_by_type([["O"]], [["O"]]) == {"entity_f1_macro": 0.0, "entity_f1_micro": 0.0}


@pytest.mark.parametrize("frozen", [True, False])
def test_the_evaluation_of_the_command_has_the_f1_of_each_label(
    frozen: bool, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    f1_score = pytest.importorskip("sklearn.metrics").f1_score
    labels = ["good", "bad/dull", "kitchen"]
    rows = [
        {"text": text, "label": label}
        for label, texts in zip(labels, (GOOD, BAD, ["bread", "dough", "flour"]), strict=True)
        for text in texts
    ]
    file, out = write(tmp_path / "train.jsonl", rows), tmp_path / "out"
    command = ["finetune", "-m", str(folder), "--task", "classify", "--train", file, "--eval", file, "-o", str(out)]
    command += ["--frozen"] if frozen else ["--epochs", "1", "--batch-size", "4"]
    assert main(command) == 0
    shown = capsys.readouterr().err
    assert "; f1 of each label: bad/dull " in shown
    assert main([*command, "--json", *([] if frozen else ["--overwrite"])]) == 0
    found = json.loads(capsys.readouterr().out)["evaluations"][-1]
    prefix = "" if frozen else "eval_"
    from wordpiece_bert.tasks import classify

    predicted = [answer[0]["label"] for answer in classify(out, [row["text"] for row in rows])]
    right = [row["label"] for row in rows]
    for average in ("macro", "micro"):
        assert found[f"{prefix}f1_{average}"] == pytest.approx(f1_score(right, predicted, average=average))
    for label, value in zip(sorted(labels), f1_score(right, predicted, average=None), strict=True):
        assert found[f"{prefix}f1/{label}"] == pytest.approx(value)
    if not frozen:
        curve = (out / "training_curve.svg").read_text(encoding="utf-8")
        assert "eval_f1_macro" in curve
        assert "eval_f1/" not in curve


# --- score


@pytest.mark.parametrize("weighted", [False, True])
def test_score_is_that_of_scikit_learn(weighted: bool, folder: Path) -> None:
    sklearn_metrics = pytest.importorskip("sklearn.metrics")
    texts, labels = GOOD + BAD, ["good"] * 3 + ["bad"] * 3
    weights = np.arange(1.0, 7.0) if weighted else None
    classifier = FrozenClassifier(folder, LogisticRegression(C=1e-3)).fit(texts[1:], labels[1:])
    shuffled = ["bad", "good", "good", "bad", "good", "bad"]
    expected = sklearn_metrics.accuracy_score(shuffled, classifier.predict(texts), sample_weight=weights)
    assert classifier.score(texts, shuffled, weights) == pytest.approx(expected)
    regression = FrozenClassifier(folder, Ridge(1.0)).fit(texts, range(6))
    expected = sklearn_metrics.r2_score([3, 1, 2, 2, 5, 9], regression.predict(texts), sample_weight=weights)
    assert regression.score(texts, [3, 1, 2, 2, 5, 9], weights) == pytest.approx(expected)
    vectors, numbers = regression.encoder.encode(texts), np.arange(12.0).reshape(6, 2) ** 2
    ridge = Ridge(1.0).fit(vectors, numbers)
    expected = sklearn_metrics.r2_score(numbers, ridge.predict(vectors), sample_weight=weights)
    assert ridge.score(vectors, numbers, weights) == pytest.approx(expected)
    for constant in (2.0, 0.0):
        expected = sklearn_metrics.r2_score([constant] * 6, regression.predict(texts))
        assert regression.score(texts, [constant] * 6) == expected == 0
    with pytest.raises(InputError, match="the label 3 is of another type than those of fit, such as 'bad'"):
        classifier.score(texts[:1], [3])
    with pytest.raises(InputError, match=r"y must have shape \[6\]"):
        classifier.score(texts, ["good"])
    with pytest.raises(InputError, match="sample_weight sums to 0"):
        classifier.score(texts, labels, [0] * 6)
    with pytest.raises(InputError, match=r"sample_weight must have shape \[6\]"):
        classifier.score(texts, labels, [1])


@pytest.mark.parametrize("kind", ["texts", "pairs", "regression"])
def test_cross_validation_and_searches_score_without_being_told_how(kind: str, folder: Path) -> None:
    selection = pytest.importorskip("sklearn.model_selection")
    linear_model = pytest.importorskip("sklearn.linear_model")
    encoder = SentenceEncoder(folder)
    texts: list[Any] = (GOOD + BAD) * 2
    right: list[Any] = (["good"] * 3 + ["bad"] * 3) * 2
    vectors = encoder.encode(texts)
    head: Any = LogisticRegression(C=7)
    peer: Any = linear_model.LogisticRegression(C=7, tol=1e-8, max_iter=1000)
    if kind == "pairs":
        texts = [(text, text) for text in texts]
        vectors = np.concatenate([vectors, vectors, 0 * vectors, vectors * vectors], axis=1)
    elif kind == "regression":
        right, head, peer = list(np.arange(12.0)), Ridge(3), linear_model.Ridge(3)
    found = selection.cross_val_score(FrozenClassifier(encoder, head), texts, right, cv=3)
    np.testing.assert_allclose(found, selection.cross_val_score(peer, vectors, right, cv=3), atol=1e-4)
    np.testing.assert_allclose(selection.cross_val_score(head, vectors, right, cv=3), found, atol=1e-9)
    name = "alpha" if kind == "regression" else "C"
    search = selection.GridSearchCV(FrozenClassifier(encoder, head), {f"head__{name}": [0.01, 7.0]}, cv=3)
    search.fit(texts, right)
    assert search.best_params_[f"head__{name}"] in (0.01, 7.0)
    assert search.score(texts, right) == search.best_estimator_.score(texts, right)


# --- files


@pytest.mark.filterwarnings("default")
def test_a_file_that_counts_twice_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], tok: Tokenizer
) -> None:
    file, other = tmp_path / "a.txt", tmp_path / "b.txt"
    file.write_text("the cat sat\n")
    other.symlink_to(file)
    with pytest.warns(TrainingWarning, match=r"a.txt' is given more than once: its texts count as often"):
        assert WordCounts.from_files([file, file])["cat"] == 2
    with pytest.warns(TrainingWarning, match=r"b.txt', which is '.*a.txt', is given more than once"):
        build_token_store(tok, [file, other], tmp_path / "store", show_progress_bar=False)
    table = tmp_path / "t.jsonl"
    table.write_text('{"text": "the cat"}\n')
    WordCounts.from_files(file).save(tmp_path / "counts.tsv")
    for command in (
        [str(file), str(file)],
        [str(table), str(table), "--jsonl-field", "text"],
        ["--counts", *[str(tmp_path / "counts.tsv")] * 2],
    ):
        assert main(["train", *command, "--vocab-size", "40", "-o", str(tmp_path / "vocab")]) == 0
        assert "is given more than once" in capsys.readouterr().err
    assert main(["report", str(file), str(file), "-m", str(tmp_path / "vocab")]) == 0
    assert "is given more than once" in capsys.readouterr().err


@pytest.mark.parametrize("order", ["UTF-16-LE", "UTF-16-BE"])
def test_utf_16_without_a_mark_is_refused(
    order: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], stdin: Callable[[bytes], None]
) -> None:
    """Letters of ASCII with NULs between them are valid UTF-8."""
    pyarrow = pytest.importorskip("pyarrow")
    file = tmp_path / "a.csv"
    file.write_bytes("text,label\na film,good\nbread,bad\n".encode(order))
    for command in (
        ["train", str(file), "--text-column", "text", "-o", str(tmp_path / "vocab")],
        ["encode", str(file), "--text-column", "text"],
        ["finetune", "--task", "classify", "--train", str(file), "-o", str(tmp_path / "out")],
    ):
        assert main(command) == 2
        assert "it looks like UTF-16" in capsys.readouterr().err
    rows = tmp_path / "a.jsonl"
    rows.write_bytes('{"text": "a film"}\n'.encode(order))
    with pytest.raises(InputError, match=r"a.jsonl: line 1, .*it looks like UTF-16"):
        read_columns(rows, ["text"])
    plain = tmp_path / "a.txt"
    several = ("the cat sat on the mat\n", "Кошка спит на ковре\n", "η γάτα κοιμάται\n")
    for text in (*several, "кошка\n", "كلمة\n", "a\n" + "кошка" * 99):  # fewer than two NULs among the first bytes
        plain.write_bytes(text.encode(order))
        packed = tmp_path / "a.txt.zst"
        packed.write_bytes(pyarrow.compress(plain.read_bytes(), codec="zstd", asbytes=True))
        for file in (plain, packed):
            with pytest.raises(TrainingError, match="it begins as UTF-16 does"):
                WordCounts.from_files(file)
            assert WordCounts.from_files(file, errors="skip").to_dict() == {}
            with pytest.raises(InputError, match="it looks like UTF-16"):
                next(iter(TextReader(file)))
        stdin(plain.read_bytes())
        assert main(["train", "-", "-o", str(tmp_path / "vocab")]) == 2
        assert "standard input: not UTF-8" in (error := capsys.readouterr().err)
        assert "UTF-16" in error
    for kept in ("日本語の文字\n", "Кошка\n", "a\0b c\0\0 d\n", "\x1b[1mbold\x1b[0m\n", ""):
        plain.write_bytes(kept.encode())
        assert WordCounts.from_files(plain).texts == (kept != "")


@pytest.mark.parametrize(
    ("task", "option", "readers"),
    [
        ("classify", "--choices", "choose"),
        ("similar", "--answer-start", "answers"),
        ("choose", "--answer-start", "answers"),
        ("tokens", "--pair", "classify, regress, answers, choose and similar"),
    ],
)
def test_a_column_that_the_task_does_not_read_is_refused(
    task: str, option: str, readers: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path / "train.jsonl", [{"text": "a film", "label": "x"}])
    command = ["finetune", "--train", file, "-o", str(tmp_path / "out")]
    assert main([*command, "--task", task, option, "text"]) == 2
    message = f"{option} names a column that --task {task} does not read, only {readers}"
    assert message in capsys.readouterr().err
    named = {option[2:].replace("-", "_"): ("text",) if option == "--choices" else "text"}
    with pytest.raises(InputError, match=f"does not read the column {next(iter(named))}, "):
        objective_class(task, "tables")(Tables(train=file, columns=Columns(**named)))


@pytest.mark.parametrize("option", ["--text", "--pair", "--label", "--answer-start"])
def test_the_columns_of_a_file_of_squad_have_no_other_names(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["finetune", "--task", "answers", "--train", str(tmp_path / "dev.json"), "-o", str(tmp_path / "out")]
    assert main([*command, option, "x"]) == 2
    assert f"{option} names a column of a table; {tmp_path / 'dev.json'} is a file of SQuAD" in capsys.readouterr().err

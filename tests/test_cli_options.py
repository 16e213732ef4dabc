"""No command ignores an option: each that is given is read, or refused by an error in one line."""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from model_files import sentence_folder, with_tokenizer
from wordpiece_bert.cli import program
from wordpiece_bert.cli.program import _parser, _subparsers, main

#: The models, by the names that the calls have for them.
MODELS = {
    "bert": "bert_small",
    "ranker": "cross_encoder_score",
    "classifier": "bert_seqcls_multi",
    "tagger": "bert_token_cls",
}
FILES = {
    "texts.txt": "The cat sat. It slept.\nThen it ran.\n\nA dog barked. A man came.\nNight fell.\n\n" * 4,
    "table.csv": "id,text,other\n" + "".join(f"{row},a cat {row},a dog\n" for row in range(4)),
    "pairs.jsonl": "".join(
        json.dumps({"sentence1": "a cat", "sentence2": f"a cat {i}", "score": i / 4, "text": "a", "label": 0}) + "\n"
        for i in range(5)
    ),
    "corpus/corpus.jsonl": '{"_id": "d", "title": "", "text": "a cat"}\n{"_id": "e", "title": "", "text": "a dog"}\n',
    "corpus/queries.jsonl": '{"_id": "q", "text": "cat"}\n',
    "corpus/qrels/test.tsv": "query-id\tcorpus-id\tscore\nq\td\t1\n",
    "corpus/qrels/dev.tsv": "query-id\tcorpus-id\tscore\nq\td\t1\n",
}
TABLE = "table.csv --text-column text --id-column id"
SEARCH = "texts.txt -m dense --query cat"
#: Calls that work, of every form that a command has; what is called old exists before.
CALLS = (
    "embed texts.txt -m dense -o new.npy",
    f"embed {TABLE} -m dense -o new.parquet",
    f"embed {TABLE} -m dense -o new.vectors",
    "embed texts.txt --whole -m dense -o new.vectors",
    "encode texts.txt -m bert",
    "encode -t cat -m bert",
    "encode texts.txt -m bert -o new.npy",
    f"search {SEARCH}",
    f"search {SEARCH} --mode bm25",
    f"search {SEARCH} --mode hybrid",
    f"search {SEARCH} --rerank ranker",
    "search old.vectors --query cat",
    "predict classifier texts.txt",
    "predict tagger texts.txt",
    "predict ranker table.csv --text-column text --text-column other",
    "evaluate pairs.jsonl -m dense",
    "evaluate corpus -m dense",
    "distill -m dense -o new",
    "train texts.txt -o new -n 300",
    "train texts.txt -o new -n 300 -a top_down",
    "train --counts old.parquet -o new -n 300",
    "count texts.txt -o new.parquet",
    "count texts.txt -o new",
    "pretrain-data texts.txt -m bert -o new",
    "pretrain-data texts.txt -m bert --tokens new",
    "pretrain-data old.tokens -m bert -o new",
    "report texts.txt -m bert",
    "info bert",
    "inspect cat -m dense -o new.html",
)
VALUES = {
    **dict.fromkeys(("--jsonl-field", "--text-column", "--keep", "--fields", "--text", "--id-field"), "text"),
    **dict.fromkeys(("--calibrate", "--vocabulary", "--queries"), "texts.txt"),
    "--id-column": "id",
    "--prompt-name": "query",
    "--chunk-tokens": "8",
    "--chunk-overlap": "2",
    "--views": "tokens",
    "--pair": "sentence2",
    "--label": "score",
    "--split": "dev",
    "--part": "0/2",
    "--max-length": "16",
    "--separator": "|",
    "--plot": "new.svg",
    "--base": "bert",
    "--beside": "bert",
    "--precision": "int8",
    "--sif-coefficient": "0.1",
    "--dtype": "int8",
    "--rerank": "ranker",
    "--vectors": "new.npy",
}
#: What only prints more, or a folder of vectors does anyway: the prompt for documents.
EXEMPT = {
    "help",
    "help_all",
    "debug",
    "verbose",
    "quiet",
    "json",
    "threads",
    "download",
    "model",
    "vocab",
    "interactive",
}
ALWAYS = {("new.vectors", "documents")}


class Watched(argparse.Namespace):
    """Records the names of the options that are read."""

    def __getattribute__(self, name: str) -> Any:
        super().__getattribute__("__dict__").setdefault("_read", set()).add(name)
        return super().__getattribute__(name)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    with pytest.MonkeyPatch.context() as context:
        context.chdir(folder)
        sentence_folder("sentence_mean_normalize", folder).rename("dense")
        for name, source in MODELS.items():
            with_tokenizer(source, folder).rename(name)
        assert main(f"embed {TABLE} -m dense -o old.vectors".split()) == 0
        assert main(["count", "texts.txt", "-o", "old.parquet"]) == 0
        assert main(["pretrain-data", "texts.txt", "-m", "bert", "--tokens", "old.tokens"]) == 0
    return folder


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", CALLS)
def test_every_option_is_read_or_refused(
    call: str, files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(files)
    arguments, parse = call.split(), program._parse
    made: list[Watched] = []
    monkeypatch.setattr(program, "_parse", lambda argv: made.append(Watched(**vars(parse(argv)))) or made[-1])
    _clear(files)
    assert main(arguments) == 0, capsys.readouterr().err
    ignored = []
    for action in _subparsers(_parser(arguments[:1]))[arguments[0]]._actions:
        flag = next((flag for flag in action.option_strings if flag.startswith("--")), None)
        if flag is None or action.dest in EXEMPT or flag in arguments or (arguments[-1], action.dest) in ALWAYS:
            continue
        other = next((choice for choice in action.choices or () if choice != action.default), "3")
        made.clear()
        _clear(files)
        try:
            code = main([*arguments, flag, *([] if action.nargs == 0 else [VALUES.get(flag, str(other))])])
        except SystemExit as ended:
            code = ended.code
        error = capsys.readouterr().err
        assert code in (0, 2), (flag, error)
        if code == 0 and action.dest not in made[-1]._read:
            ignored.append(flag)
    assert not ignored


def _clear(files: Path) -> None:
    """Remove what a call has made."""
    for path in files.glob("new*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("encode texts.txt -m bert --max-length 99999999999999999999", "'99999999999999999999' is not a whole number"),
        ("embed texts.txt -m dense -o new.npy --batch-size 1099511627777", "of at most 2**40"),
        ("embed texts.txt -m dense -o new.npy --threads 1025", "threads must be a whole number from 1 to 1024"),
        ("distill -m dense -o new --threads 1099511627776", "threads must be a whole number from 1 to 1024"),
        ("report texts.txt -m bert --errors=--", "argument --errors"),
        ("encode texts.txt --output=-- -m bert", "argument -o/--output: expected one argument"),
        ("encode table.csv -m bert --text-column text --separator |", "separator='|' is for plain text"),
        ("pretrain-data old.tokens -m bert -o new --packing-window 3", "--packing-window 3 is for packing"),
        (
            "inspect cat -m dense -o new.html --beside none --views attention",
            "--beside none: the page has no view tokens",
        ),
        (f"embed {TABLE} -m dense -o new.vectors --chunk-by tokens", "new.vectors has a row for each text"),
        (f"embed {TABLE} -m dense -o new.vectors --errors skip", "--errors is for files that are documents"),
    ],
)
def test_values_that_cannot_be_are_errors(
    call: str, message: str, files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(files)
    try:
        code = main(call.split())
    except SystemExit as ended:
        code = ended.code
    assert code == 2
    assert message in capsys.readouterr().err

"""Every writer of the package leaves signal handlers as they were, and replaces a link, not the file that it points to."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wordpiece_bert as wb
from pretraining_folders import tokenizer as pretraining_tokenizer
from processes import printed
from wordpiece_bert import bert, inspect
from wordpiece_bert.bert.checkpoint import write_safetensors
from wordpiece_bert.cli import main
from wordpiece_bert.errors import InputError
from wordpiece_bert.evaluation import EmbeddingSimilarityEvaluator
from wordpiece_bert.finetune import FrozenClassifier, SentenceTrainer, TrainingArguments, losses, save_curve
from wordpiece_bert.pretraining import Masking, build_examples, build_token_store
from wordpiece_bert.sentence import M3Encoder
from wordpiece_bert.training import WordCounts, train_vocab

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and links of Unix")

TEXTS = ["bread in the oven", "a bicycle", "flour and bread", "to repair a wheel"]
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.fixture(autouse=True)
def desk(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with texts, a table, documents of sentences, and the toy models."""
    monkeypatch.chdir(tmp_path)
    Path("models").symlink_to(models)
    Path("texts.txt").write_text("\n".join(TEXTS) + "\n")
    Path("documents.txt").write_text("bami gu\nfi gu\nbami\n\ngu fi\nbami gu\nfi\n" * 4)
    parquet.write_table(pyarrow.table({"key": range(4), "text": TEXTS}), "table.parquet")
    return tmp_path


@pytest.fixture
def handlers() -> Iterator[dict[int, Any]]:
    """Handlers of a program, by signal."""

    def handler(number: int, _: object) -> None:
        raise KeyboardInterrupt(number)

    before = {number: signal.signal(number, handler) for number in SIGNALS}
    yield {number: signal.getsignal(number) for number in SIGNALS}
    for number, one in before.items():
        signal.signal(number, one)


def command(*arguments: str | Path) -> None:
    assert main([*map(str, arguments), "-q"]) == 0


def tokenizer() -> wb.Tokenizer:
    return wb.Tokenizer.from_pretrained("models/sentences")


def examples(output: Path) -> None:
    store = build_token_store(pretraining_tokenizer(), "documents.txt", f"{output.name}.tokens", documents="blank-line")
    options = {"masking": Masking(pretraining_tokenizer(), max_predictions=4)} if output.suffix == ".tfrecord" else {}
    build_examples(store, output, pretraining_tokenizer(), max_length=16, **options)  # type: ignore[arg-type]


def trained(output: Path) -> None:
    rows = [{"a": text, "b": TEXTS[0], "label": 0.1 * number} for number, text in enumerate(TEXTS)]
    arguments = TrainingArguments(
        output_dir=output, max_steps=2, save_strategy="steps", save_steps=1, log_file=output / "log.jsonl",
        overwrite_output_dir=True,
    )  # fmt: skip
    trainer = SentenceTrainer(wb.SentenceEncoder("models/sentences"), arguments, rows, losses.CosineSimilarityLoss())
    trainer.train()
    trainer.save_model(output)


def evaluated(output: Path) -> None:
    scores = EmbeddingSimilarityEvaluator(TEXTS, TEXTS[::-1], [0.0, 1.0, 0.5, 0.2], name="pairs")
    scores(wb.SentenceEncoder("models/sentences"), output.parent)


def classifier(output: Path) -> None:
    FrozenClassifier(wb.SentenceEncoder("models/sentences")).fit(TEXTS, ["a", "b", "a", "b"]).save_pretrained(output)


def vectors(output: Path) -> None:
    wb.write_vectors("table.parquet", output, "models/static", text_column="text", id_column="key")


def merged(output: Path) -> None:
    build_token_store(pretraining_tokenizer(), "documents.txt", "store").to_megatron(output.with_suffix(""))


#: What is written by name, and what writes it; files first, then folders.
FILES: dict[str, Callable[[Path], object]] = {
    **{f"embed.{kind}": lambda path: command("embed", "-m", "models/static", "texts.txt", "-o", path)
       for kind in ("npy", "parquet", "arrow", "arrows", "jsonl")},
    "sparse.parquet": lambda path: command("embed", "-m", "models/splade", "texts.txt", "-o", path),
    "multi.jsonl": lambda path: command("embed", "-m", "models/colbert", "texts.txt", "-o", path),
    **{f"encode.{kind}": lambda path: tokenizer().encode_files("texts.txt", path)
       for kind in ("npy", "parquet", "arrow", "arrows", "jsonl")},
    "tokenizer.json": lambda path: tokenizer().save(path),
    "vocab.txt": lambda path: train_vocab(TEXTS, vocab_size=40).save(path),
    "counts.tsv": lambda path: WordCounts.from_texts(TEXTS).save(path),
    "counts.parquet": lambda path: WordCounts.from_texts(TEXTS).save(path),
    "sparse.npz": lambda path: wb.SparseEncoder("models/splade").encode(TEXTS).save(path),
    "weights.safetensors": lambda path: write_safetensors(path, {"x": np.zeros(3, np.float32)}),
    **{f"examples.{kind}": examples for kind in ("arrow", "parquet", "jsonl", "tfrecord")},
    "store.bin": merged,
    "curve.svg": lambda path: save_curve([{"step": 1, "loss": 2.0}, {"step": 2, "loss": 1.0}], path),
    "report.svg": lambda path: wb.vocab_report(tokenizer(), TEXTS).plot(path),
    "view.json": lambda path: inspect.similarity(np.eye(2), ["a", "b"]).save(path),
    "similarity_evaluation_pairs_results.csv": evaluated,
}  # fmt: skip
FOLDERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "texts.vectors": (vectors, ""),
    "static.vectors": (
        lambda path: command("embed", "-m", "models/static", "table.parquet", "-o", path, "--text-column", "text",
                             "--id-column", "key"), ""),
    "store.tokens": (lambda path: build_token_store(pretraining_tokenizer(), "documents.txt", path), ""),
    "examples": (examples, ""),
    "mds": (lambda path: command("pretrain-data", "documents.txt", "-v", "models/words", "-o", path, "--format", "mds"), ""),
    "training": (trained, "model.safetensors"),
    "tokenizer": (lambda path: tokenizer().save_pretrained(path), "tokenizer.json"),
    "bert": (lambda path: bert.BertModel.from_pretrained("models/sentences").save_pretrained(path), "model.safetensors"),
    "encoder": (lambda path: wb.SentenceEncoder("models/sentences").save_pretrained(path), "modules.json"),
    "static": (lambda path: wb.SentenceEncoder("models/static").save_pretrained(path), "model.safetensors"),
    "m3": (lambda path: M3Encoder("models/m3").save_pretrained(path), "sparse_linear.pt"),
    "multi": (lambda path: wb.MultiVectorEncoder("models/colbert").encode(TEXTS).save(path), ""),
    "classifier": (classifier, "classifier.json"),
}  # fmt: skip


@pytest.mark.parametrize("name", [*FILES, *FOLDERS])
def test_signal_handlers_are_as_before(name: str, handlers: dict[int, Any]) -> None:
    write = FILES[name] if name in FILES else FOLDERS[name][0]
    write(Path(name))
    assert {number: signal.getsignal(number) for number in SIGNALS} == handlers
    assert os.path.exists(name)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGTERM)


@pytest.mark.parametrize("name", FILES)
def test_a_link_is_replaced_and_its_file_stays(name: str) -> None:
    Path("elsewhere").mkdir()
    other = Path("elsewhere", "other")
    if name.endswith(".csv"):  # to which lines are added
        FILES[name](Path(name))
        Path(name).rename(other)
    else:
        other.write_bytes(b"old")
    before = other.read_bytes()
    Path(name).symlink_to(other)
    FILES[name](Path(name))
    assert not Path(name).is_symlink()
    assert Path(name).read_bytes() != before
    assert [path.read_bytes() for path in Path("elsewhere").iterdir()] == [before]


@pytest.mark.parametrize("name", [name for name, (_, file) in FOLDERS.items() if file])
def test_a_folder_of_links_as_in_the_hub_cache_is_written_without_changing_the_blobs(name: str) -> None:
    write, file = FOLDERS[name]
    write(Path("first"))
    Path("blobs").mkdir()
    Path(name).mkdir()
    originals = {}
    for path in [path for path in Path("first").rglob("*") if path.is_file()]:
        target = Path(name) / path.relative_to("first")
        target.parent.mkdir(parents=True, exist_ok=True)
        blob = Path("blobs", str(len(originals)))
        shutil.copy(path, blob)
        originals[blob] = blob.read_bytes()
        target.symlink_to(blob.absolute())
    write(Path(name))
    assert {blob: blob.read_bytes() for blob in Path("blobs").iterdir()} == originals
    assert not Path(name, file).is_symlink()


@pytest.mark.parametrize("name", ["encode.npy", "tokenizer.json", "counts.parquet", "examples.jsonl", "curve.svg"])
def test_a_link_to_what_is_no_file_is_refused(name: str) -> None:
    os.mkfifo("pipe")
    Path(name).symlink_to("pipe")
    with pytest.raises(InputError, match="is not an ordinary file, so it is not replaced"):
        FILES[name](Path(name))
    assert Path(name).is_symlink()
    assert Path("pipe").is_fifo()


#: Writes each output twice. The second time a child is forked at the first call of each function that writers share; it ends there
#: as after an error.
FORKING = """
    import os, shutil, sys
    from pathlib import Path
    from test_writers import FILES, FOLDERS

    SHARED = ("_internal.atomic", "file_locks", "pretraining.sinks", "journal", "part_collector", "part_files", "npy_writer")
    parent, seen = os.getpid(), set()

    def fork(frame, event, _):
        at = frame.f_code.co_qualname
        if event != "call" or at in seen or not any(name in frame.f_globals.get("__name__", "") for name in SHARED):
            return
        seen.add(at)
        if child := os.fork():
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7, at
        else:
            sys.setprofile(None)
            raise KeyboardInterrupt

    def contents():
        files = [path for path in Path().rglob("*") if path.is_file() and not path.is_symlink()]
        return {path: path.name[0] == "." or path.read_bytes() for path in files}

    for name in sys.argv[2:]:
        found = []
        for hook in (None, fork):
            os.makedirs(f"{sys.argv[1]}/{name}.d")
            os.chdir(f"{sys.argv[1]}/{name}.d")
            for one in ("models", "texts.txt", "documents.txt", "table.parquet"):
                os.symlink(f"../{one}", one)
            sys.setprofile(hook)
            try:
                (FILES.get(name) or FOLDERS[name][0])(Path(name))
                assert os.getpid() == parent
            finally:
                sys.setprofile(None)
                if os.getpid() != parent:
                    os._exit(7 if sys.exception() else 1)
            found.append(contents())
            shutil.rmtree(os.getcwd())
        assert len(seen) > 10
        alone, forked = found
        assert alone.keys() == forked.keys(), (name, alone.keys() ^ forked.keys())
        assert not [path for path in alone if alone[path] != forked[path]], name
        seen.clear()
"""
FORKED = [
    *["embed.npy", "encode.npy", "encode.parquet", "encode.jsonl", "examples.arrow", "examples.jsonl", "store.bin"],
    *["texts.vectors", "store.tokens", "examples", "mds", "tokenizer", "classifier"],
]


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_a_child_that_is_forked_while_something_is_written_and_ends_leaves_it_whole(desk: Path) -> None:
    printed(FORKING, desk, *FORKED)


def test_a_plot_of_another_format_is_refused() -> None:
    with pytest.raises(InputError, match=r"report\.abc: a plot is written as \.svg, \.png or \.pdf"):
        wb.vocab_report(tokenizer(), TEXTS).plot("report.abc")
    assert not Path("report.abc").exists()

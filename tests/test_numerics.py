"""Versions of ids and vectors: digests of every bit by version, and records of other versions, which are refused.

``PYTHONPATH=examples python tests/test_numerics.py --check`` compares all digests that tests/data/numerics.json has of this version with what
this CPU computes by each of its instruction sets; it takes some minutes. Without ``--check``, it adds those that are
missing. It changes none: other bits need another version in ``_internal/numerics.py``.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import sys
import warnings
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from command_line import error_of
from kernel_paths import available, each_path, forced_path
from model_files import MODELS
from small_tokenizer import tokenizer
from tiny_models import make_sentences
from wordpiece_bert import SentenceEncoder, _core, open_vectors, write_vectors
from wordpiece_bert._internal import numerics
from wordpiece_bert.cli import main
from wordpiece_bert.errors import InputError, ModelNotFoundError
from wordpiece_bert.hub import find_model
from wordpiece_bert.integrations.named_models import check_contents, contents_of
from wordpiece_bert.pretraining.build import fingerprint_of
from wordpiece_bert.tokenizer.corpus import vector_fingerprint

#: {dtype or "ids": {version: {place: {model: digest}}}}
RECORDED = Path(__file__).parent / "data" / "numerics.json"
PAGE = Path(__file__).parent.parent / "docs" / "explanation" / "versions-of-vectors.md"
TEXTS: list[str] = json.loads((MODELS / "minilm_sentences.json").read_text(encoding="utf-8"))
#: A model of each family, and a static one. No module after the encoder is computed by the library behind NumPy.
SMALL = [
    *("sentence_plain_folder", "st_deberta", "st_ernie", "st_gte", "st_jina", "st_megatron", "st_modernbert_mean"),
    *("st_neobert", "st_nomic", "st_roberta", "st_xlmr", "static_m2v"),
]
PATHS = {dtype: available(dtype) for dtype in numerics.VECTORS}
EACH_PATH = [(dtype, path) for dtype, paths in PATHS.items() for path in paths]
#: The dtypes with the same bits on every instruction set, but for int8 with AMX.
EVERYWHERE = ("float32", "int8")


def versions() -> dict[str, int]:
    return {"ids": numerics.IDS, **numerics.VECTORS}


def place(dtype: str, path: str) -> str:
    """Return "any" where the bits are those of portable code, or the instructions that multiply pairs of bfloat16 numbers.

    Emulated tiles have the bits of AMX.
    """
    if dtype == "int8":
        return "amx" if path.startswith("amx") else "any"
    if dtype == "bfloat16":
        _, instructions, multiplies_pairs, _ = _core.describe_products(dtype, path)
        return instructions.replace("-emulated", "") if multiplies_pairs else "any"
    return "any"


def many_texts() -> list[str]:
    """Return 8,000 texts of 1 to 6 words, and of 400."""
    words = " ".join(TEXTS).split()
    words = words * (1 + 8000 * 13 // len(words))
    return [" ".join(words[13 * i :][: 400 if i % 1000 == 7 else 1 + i % 6]) for i in range(8000)]


def models(*, many: bool = False) -> list[tuple[str, Path, list[str]]]:
    """Return models, with the texts that each is given."""
    names = {name: MODELS / name for name in SMALL}
    with contextlib.suppress(ModelNotFoundError):
        names["minilm"] = find_model("minilm")
    if many:
        texts = many_texts()
        return [(f"{name}, 8000 texts", folder, texts) for name, folder in names.items()]
    return [(name, folder, TEXTS[:: 32 if name == "minilm" else 8]) for name, folder in names.items()]


def digests(dtype: str, path: str, *, many: bool = False) -> dict[str, str]:
    """Return digests of the vectors of each model, or of ids for the dtype "ids"."""
    found = {}
    for name, folder, texts in models(many=many):
        if dtype == "ids":
            rows = SentenceEncoder(folder).tokenizer.encode_batch(texts)
            content = np.asarray(rows.ids, "<i8").tobytes() + np.asarray(rows.row_offsets, "<i8").tobytes()
        elif name.startswith("static_") and dtype != "float32":
            continue
        else:
            with forced_path(path):
                content = SentenceEncoder(folder, dtype=dtype).encode(texts, return_truncated=True)[0].tobytes()
        found[name] = hashlib.sha256(content).hexdigest()[:16]
    return found


@pytest.mark.parametrize(
    ("dtype", "path"),
    [
        ("ids", "any"),
        *(pytest.param(dtype, *path.values, marks=path.marks) for dtype in PATHS for path in each_path(dtype)),
    ],
)
def test_bits_change_only_with_the_version(dtype: str, path: str) -> None:
    known = json.loads(RECORDED.read_text())[dtype].get(str(versions()[dtype]), {}).get(place(dtype, path))
    if known is None:
        assert place(dtype, path) != "any", f"python {__file__} adds digests of the new version"
        pytest.skip(f"no digests are recorded for {path}: python {__file__} adds them on such a CPU")
    now = digests(dtype, path)
    assert now == {name: known[name] for name in now}, (
        f"the bits of {dtype} changed: raise the version in _internal/numerics.py, add a row to {PAGE.name}, and run "
        f"python {__file__}"
    )


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", EVERYWHERE)
def test_8000_texts_have_one_digest(dtype: str) -> None:
    """By the best instructions; ``PYTHONPATH=examples python tests/test_numerics.py --check`` compares all."""
    path = next(path for path in reversed(PATHS[dtype]) if place(dtype, path) == "any")
    known = json.loads(RECORDED.read_text())[dtype][str(versions()[dtype])]["any"]
    now = digests(dtype, path, many=True)
    assert now == {name: known[name] for name in now}


def test_each_version_has_a_row_on_the_page_and_digests() -> None:
    rows = re.findall(r"^\| (\w+) \| (\d+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    recorded = json.loads(RECORDED.read_text())
    for name, version in versions().items():
        assert [number for row, number in rows if row == name] == [str(n) for n in range(1, version + 1)]
        assert str(version) in recorded[name]


# --- records


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    make_sentences(Path("model"))
    Path("texts.txt").write_text("to repair a bicycle\nbread dough in the oven\n", encoding="utf-8")
    return tmp_path


def another_version(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let this package compute the second version of something."""
    if name == "ids":
        for module in ("sentence.dense.encoder_fingerprint", "_internal.numerics", "vectors.document_vectors"):
            __import__(f"wordpiece_bert.{module}")
            monkeypatch.setattr(sys.modules[f"wordpiece_bert.{module}"], "IDS", 2)
    else:
        monkeypatch.setitem(numerics.VECTORS, "float32", 3)


@pytest.mark.parametrize(("name", "forget"), [("numerics", False), ("ids", False), ("ids", True)])
def test_files_of_another_version_are_refused(
    name: str, forget: bool, desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A record without a version has the first one."""
    assert main(["embed", "texts.txt", "-m", "model", "-o", "v.npy", "-q"]) == 0
    sidecar = Path("v.npy.fingerprint.json")
    if forget:
        record = json.loads(sidecar.read_text())
        del record["ids"]
        sidecar.write_text(json.dumps(record))
    command = ["search", "texts.txt", "-m", "model", "--vectors", "v.npy", "--query", "bread", "--json", "-q"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert main(command) == 0
    capsys.readouterr()
    another_version(monkeypatch, name)
    error = error_of(capsys, *command)
    assert f"{name}, how wordpiece-bert computes " in error
    then = 1 if name == "ids" else 2
    assert f"version {then} in the file, written by " in error
    assert f"{then + 1} now" in error
    assert "Make the vectors again, or use these all the same with --allow-stale" in error


def test_folders_of_vectors_of_another_version_are_refused(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    rows = {"id": ["a", "b"], "text": ["bread dough", "a bicycle"]}
    columns = {"id_column": "id", "text_column": "text"}
    write_vectors(pyarrow.table(rows), "all.vectors", "model", **columns)
    another_version(monkeypatch, "numerics")
    with pytest.raises(InputError, match=r"numerics, how wordpiece-bert computes vectors in float32 \(version 2"):
        open_vectors("all.vectors").search("bread")
    with pytest.raises(InputError, match="numerics"):
        write_vectors(pyarrow.table(rows), "all.vectors", update=True)


def test_what_other_programs_store_has_the_versions(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = SentenceEncoder("model")
    stored = contents_of(encoder)
    assert (stored["numerics"], stored["ids"]) == ("2", "1")
    older = {name: value for name, value in stored.items() if name not in ("numerics", "ids")}
    check_contents("model", contents_of(encoder), stored)
    with pytest.raises(InputError, match=r"numerics 1, now 2\): make the vectors again, or install"):
        check_contents("model", contents_of(encoder), older)
    another_version(monkeypatch, "numerics")
    for then, version in ((stored, 2), (older, 1)):
        with pytest.raises(InputError, match=rf"numerics {version}, now 3\): make the vectors again, or install"):
            check_contents("model", contents_of(encoder), then)


def test_another_version_of_ids_has_other_fingerprints_of_tokenizers(monkeypatch: pytest.MonkeyPatch) -> None:
    before = tokenizer().fingerprint, fingerprint_of(tokenizer())
    another_version(monkeypatch, "ids")
    now = tokenizer().fingerprint, fingerprint_of(tokenizer())
    assert before[0] != now[0]
    assert before[1] != now[1]


def test_a_version_that_is_no_integer_is_refused() -> None:
    record = json.dumps({"version": 1, "numerics": "1", "model": {}, "dtype": "int8"}).encode()
    with pytest.raises(InputError, match="malformed"):
        vector_fingerprint.Fingerprint.from_json(record, "v.npy")


if __name__ == "__main__":
    recorded = json.loads(RECORDED.read_text())
    for many, (which, one) in product((False, True), [("ids", "any"), *EACH_PATH]):
        if many and (which not in EVERYWHERE or one == "amx-emulated"):
            continue
        known = recorded.setdefault(which, {}).setdefault(str(versions()[which]), {}).setdefault(place(which, one), {})
        now = digests(which, one, many=many)
        other = [name for name, value in now.items() if known.setdefault(name, value) != value]
        if other:
            sys.exit(f"{which} by {one}: version {versions()[which]} had other bits of {', '.join(other)}")
        print(f"{which} by {one}: {len(now)} digests are those of version {versions()[which]}", flush=True)
        if "--check" not in sys.argv:
            RECORDED.write_text(json.dumps(recorded, indent=1) + "\n")

"""The promises of docs/explanation/reproducibility.md: what is tested nowhere else is tested here, and each has a test."""

from __future__ import annotations

import ast
import functools
import hashlib
import json
import re
import warnings
from dataclasses import fields
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pytest

from kernel_paths import available, forced_path
from model_files import MODELS
from processes import printed
from wordpiece_bert import SentenceEncoder
from wordpiece_bert.bert.checkpoint import read_tensors
from wordpiece_bert.cli import main
from wordpiece_bert.errors import ModelNotFoundError
from wordpiece_bert.hub import find_model
from wordpiece_bert.sentence import semantic_search
from wordpiece_bert.sentence.dense.encoder_fingerprint import fingerprint_of
from wordpiece_bert.tokenizer.corpus.vector_fingerprint import Fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterator

Vectors = npt.NDArray[np.float32]

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "explanation" / "reproducibility.md"
DTYPES = ("float32", "bfloat16", "int8")
#: Texts of all lengths: the reference texts of MiniLM, the longest of which are truncated.
TEXTS: list[str] = json.loads((MODELS / "minilm_sentences.json").read_text(encoding="utf-8"))[::4]

#: What each promise of the page begins with -> the tests of it, by file.
PROMISES = {
    "A text has the same bits": {
        "test_reproducibility.py": ["test_minilm_has_the_same_bits_however_texts_are_encoded"],
        "test_engines.py": ["test_a_sentence_has_the_same_bits_in_any_batch"],
        "test_multi_vector.py": ["test_a_text_has_the_same_bits_in_any_batch_and_with_any_threads"],
        "test_sparse.py": ["test_a_text_has_the_same_bits_in_any_batch_and_with_any_threads"],
    },
    "Another process": {
        "test_reproducibility.py": ["test_minilm_has_the_same_bits_however_texts_are_encoded"],
    },
    "Each instruction set": {
        "test_instructions.py": ["test_each_kind_computes_with_the_instructions_that_it_is_given"],
        "test_engines.py": ["test_pooled_rows_have_the_same_bits_in_any_batch"],
        "test_plans.py": ["test_shapes_rows_and_files_of_any_plan"],
    },
    "The NumPy engine": {"test_engines.py": ["test_both_engines_give_the_same_numbers"]},
    "In float32 and int8": {
        "test_reproducibility.py": [
            "test_every_instruction_set_has_the_same_bits",
            "test_int8_weights_are_the_same_integers_on_every_path",
        ],
        "test_numerics.py": ["test_bits_change_only_with_the_version", "test_8000_texts_have_one_digest"],
        "test_static.py": ["test_every_instruction_set_computes_the_same_sums"],
        "test_search.py": ["test_every_instruction_set_finds_the_same"],
        "test_sparse.py": ["test_every_instruction_set_pools_as_numpy"],
    },
    "bfloat16: the cosine": {"test_reproducibility.py": ["test_vectors_that_depend_on_instructions_are_near"]},
    "int8 with AMX": {"test_reproducibility.py": ["test_vectors_that_depend_on_instructions_are_near"]},
    "Tokens": {"test_cases.py": ["test_every_instruction_set_gives_the_answer_of_the_case"]},
    "Vectors in float32": {
        "test_reproducibility.py": ["test_every_instruction_set_has_the_vectors_of_pytorch"],
        "test_sentence.py": ["test_minilm_equals_sentence_transformers_on_every_text"],
    },
    "The integers of int8": {"test_reproducibility.py": ["test_int8_weights_are_the_same_integers_on_every_path"]},
    "It has": {"test_reproducibility.py": ["test_a_fingerprint_has_what_the_page_says"]},
    "Equal fingerprints": {
        "test_reproducibility.py": ["test_a_fingerprint_does_not_depend_on_the_cpu"],
        "test_fingerprint.py": ["test_the_part_that_differs_is_named"],
    },
    "The version": {
        "test_fingerprint.py": ["test_the_version_of_the_library_is_recorded_and_not_compared"],
        "test_numerics.py": ["test_bits_change_only_with_the_version", "test_files_of_another_version_are_refused"],
    },
    "Vectors that were changed": {
        "test_fingerprint.py": ["test_vectors_that_another_program_changed_are_refused"],
    },
    "Vocabularies": {"test_training.py": ["test_the_vocabulary_does_not_depend_on_threads_and_order"]},
    "Pre-training rows": {
        "test_pretraining_core.py": ["test_blocks_do_not_depend_on_threads"],
        "test_pretraining_build.py": ["test_killed_runs_go_on_and_give_the_same_bytes"],
        "test_pretraining_masking.py": ["test_a_row_is_masked_alike_in_any_batch"],
    },
    "Fine-tuning": {
        "test_finetune_rust.py": ["test_a_training_has_the_same_bits_on_any_number_of_threads"],
        "test_finetune_trainer.py": ["test_a_killed_training_goes_on_with_the_same_bits"],
        "test_pretrain.py": ["test_a_killed_run_goes_on_bit_for_bit"],
    },
}


def minilm() -> Path:
    try:
        return find_model("minilm")
    except ModelNotFoundError as error:
        pytest.skip(f"MiniLM is compared only where its weights are: {error}")


@functools.cache
def forced(folder: Path, dtype: str, path: str) -> SentenceEncoder:
    """Return an encoder that multiplies in this way."""
    with forced_path(path):
        return SentenceEncoder(folder, dtype=dtype)


@functools.cache
def vectors(dtype: str, path: str) -> Vectors:
    """Return the vectors of `TEXTS` by MiniLM; of fewer where products are computed number by number."""
    texts = [text for text in TEXTS if len(text) < 50][:10] if path == "amx-emulated" else TEXTS
    return np.asarray(forced(minilm(), dtype, path).encode(texts, return_truncated=True)[0])


def cosines(x: Vectors, y: Vectors) -> Any:
    a, b = x.astype(np.float64), y.astype(np.float64)
    return (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)


# --- the page


def promises() -> list[str]:
    """Return the list items of the page."""
    return re.findall(r"^- (.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


def test_each_promise_has_tests_and_they_exist() -> None:
    untested = [line for line in promises() if not line.startswith("Not tested: ")]
    for line in untested:
        assert sum(line.replace("**", "").startswith(beginning) for beginning in PROMISES) == 1, line
    assert len(untested) == len(PROMISES)
    for files in PROMISES.values():
        for file, names in files.items():
            tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
            assert set(names) <= {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, file


def test_what_is_not_tested_is_named() -> None:
    text = " ".join(line for line in promises() if line.startswith("Not tested: "))
    assert all(name in text for name in ("macOS", "Windows", "Arm", "big-endian"))


# --- one CPU


@pytest.mark.parametrize("dtype", DTYPES)
def test_minilm_has_the_same_bits_however_texts_are_encoded(dtype: str) -> None:
    folder = minilm()
    encoder = SentenceEncoder(folder, dtype=dtype, threads=1)
    expected, _ = encoder.encode(TEXTS, return_truncated=True)
    order = np.random.default_rng(0).permutation(len(TEXTS))
    shuffled, _ = encoder.encode([TEXTS[i] for i in order], return_truncated=True, batch_size=3)
    np.testing.assert_array_equal(shuffled, expected[order])
    for i in (0, 5, len(TEXTS) - 1):
        np.testing.assert_array_equal(encoder.encode(TEXTS[i], return_truncated=True)[0], expected[i])
    for threads in (2, 3):
        counted = SentenceEncoder(folder, dtype=dtype, threads=threads)
        np.testing.assert_array_equal(counted.encode(TEXTS, return_truncated=True)[0], expected)
    program = (
        "import hashlib, json, sys\n"
        "from wordpiece_bert import SentenceEncoder\n"
        "encoder = SentenceEncoder(sys.argv[1], dtype=sys.argv[2])\n"
        "found = encoder.encode(json.load(sys.stdin), return_truncated=True)[0]\n"
        "print(hashlib.sha256(found.tobytes()).hexdigest())\n"
    )
    assert printed(program, folder, dtype, input=json.dumps(TEXTS)) == [hashlib.sha256(expected.tobytes()).hexdigest()]


# --- other CPUs


def pairs(dtype: str, *, tiles: bool) -> Iterator[tuple[tuple[str, str], Vectors, Vectors]]:
    """Yield the vectors of each two instruction sets, with tile registers among them or without."""
    short = [i for i, text in enumerate(TEXTS) if len(text) < 50][:10]
    for one, other in combinations(available(dtype), 2):
        if tiles or not (one.startswith("amx") or other.startswith("amx")):
            x, y = vectors(dtype, one), vectors(dtype, other)
            if len(x) != len(y):  # the emulation has fewer
                x, y = (z[short] if len(z) > len(short) else z for z in (x, y))
            yield (one, other), x, y


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_every_instruction_set_has_the_same_bits(dtype: str) -> None:
    """Tile registers multiply no float32 numbers."""
    for names, x, y in pairs(dtype, tiles=dtype == "float32"):
        np.testing.assert_array_equal(x, y, err_msg=", ".join(names))


@pytest.mark.parametrize(("dtype", "least"), [("bfloat16", 0.9999), ("int8", 0.998)])
def test_vectors_that_depend_on_instructions_are_near(dtype: str, least: float) -> None:
    """The bounds are the page's."""
    for names, x, y in pairs(dtype, tiles=True):
        assert cosines(x, y).min() >= least, names


@pytest.mark.parametrize("path", [path for path in available("float32") if path != "amx-emulated"])
def test_every_instruction_set_has_the_vectors_of_pytorch(path: str) -> None:
    expected = np.load(MODELS / "minilm_reference.npz")["embeddings"][::4]
    np.testing.assert_allclose(vectors("float32", path), expected, rtol=0, atol=1e-5)


def test_int8_weights_are_the_same_integers_on_every_path(tmp_path: Path) -> None:
    """The digest is the first version's: another one means that int8 models are quantized otherwise."""
    digests = set()
    for path in available("int8"):
        forced(MODELS / "sentence_plain_folder", "int8", path).save_pretrained(tmp_path / path)
        digest = hashlib.sha256()
        for name, tensor in sorted(read_tensors(tmp_path / path / "model.safetensors").items()):
            digest.update(name.encode())
            digest.update(np.asarray(tensor).tobytes())
        digests.add(digest.hexdigest())
    assert digests == {"2fc3575dad9c5c45d79d56da75cc7d14817ccff3cb7f9a99d799b3aa6de4a839"}


# --- fingerprints


def test_a_fingerprint_has_what_the_page_says() -> None:
    (line,) = (line for line in promises() if line.startswith("It has"))
    names = {field.name for field in fields(Fingerprint)}
    assert {*re.findall(r"`(\w+)`", line)} == names


def test_a_fingerprint_does_not_depend_on_the_cpu(tmp_path: Path) -> None:
    """Vectors of another instruction set are searched without a complaint."""
    folder = MODELS / "sentence_plain_folder"
    paths = available("float32")
    encoders = [forced(folder, "float32", path) for path in (paths[0], paths[-1])]
    records = [fingerprint_of(encoder, None, prompt="") for encoder in encoders]
    assert not records[0].differences(records[1])
    assert records[0].key() == records[1].key()
    texts = tmp_path / "texts.txt"
    texts.write_text("a cat\nthe dog runs home\none two three\n", encoding="utf-8")
    with forced_path(paths[0]):
        assert main(["embed", str(texts), "-m", str(folder), "-o", str(tmp_path / "v.npy"), "-q"]) == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (hits,) = semantic_search(encoders[1].encode_query(["a cat"]), tmp_path / "v.npy", encoder=encoders[1])
    assert hits[0]["corpus_id"] == 0

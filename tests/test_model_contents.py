"""Models that other libraries name: one that was replaced, or that a relative path now means, is never taken for another."""

from __future__ import annotations

import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tiny_models
from wordpiece_bert import SentenceEncoder, Tokenizer, open_vectors, write_vectors
from wordpiece_bert.bert.checkpoint import read_tensors, write_safetensors
from wordpiece_bert.errors import InputError
from wordpiece_bert.integrations.named_models import (
    check_contents,
    contents_of,
    encoder_of,
    stored_contents,
    tokenizer_of,
)
from wordpiece_bert.sentence.source import lasting_name

TEXT = "bread in the oven"


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders `here` and `there`, each with another model under the same relative path."""
    tiny_models.make_sentences(tmp_path / "here" / "model")
    weights = tiny_models.make_sentences(tmp_path / "there" / "model") / "model.safetensors"
    tensors = dict(read_tensors(weights))
    name = next(name for name in tensors if name.endswith("word_embeddings.weight"))
    write_safetensors(weights, {**tensors, name: np.roll(tensors[name], 1, axis=0)})
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


def replace_model() -> None:
    shutil.rmtree("model")
    shutil.copytree("../there/model", "model")


def go_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("../there")


CHANGES: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "replaced": lambda _: replace_model(),
    "another working directory": go_there,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_the_model_of_a_name_is_that_of_its_files_now(
    change: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    before, tokenizer = encoder_of("model"), tokenizer_of("model")
    assert encoder_of("model") is before
    assert encoder_of(Path("model").absolute()) is before
    assert tokenizer_of("model") is tokenizer
    change(monkeypatch)
    assert encoder_of("model") is not before
    expected = SentenceEncoder.from_pretrained("model").encode(TEXT)
    assert not np.array_equal(expected, before.encode(TEXT))
    np.testing.assert_array_equal(encoder_of("model").encode(TEXT), expected)


def test_a_replaced_tokenizer_is_loaded_again() -> None:
    before = tokenizer_of("model")
    Tokenizer.from_vocab(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "bread"]).save_pretrained("model")
    assert tokenizer_of("model").fingerprint != before.fingerprint


def test_a_lasting_name_is_the_absolute_path_of_a_folder(desk: Path) -> None:
    assert lasting_name("model") == lasting_name(Path("model")) == str(desk / "here" / "model")
    assert lasting_name("minilm") == "minilm"
    assert lasting_name("org/none") == "org/none"


def test_what_was_stored_with_another_model_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    name, contents = lasting_name("model"), contents_of(encoder_of("model"))
    go_there(monkeypatch)
    check_contents(name, contents_of(encoder_of(name)), contents)
    monkeypatch.chdir("../here")
    replace_model()
    with pytest.raises(InputError, match="is not the model with which the stored vectors were made: other weights"):
        check_contents(name, contents_of(encoder_of(name)), contents)
    short = encoder_of(name, encoder_options={"truncate_dim": 4})
    with pytest.raises(InputError, match="stored vectors were made: other settings"):
        check_contents(name, contents_of(short), contents_of(encoder_of(name)))
    assert stored_contents(lambda: encoder_of("org/none")) is None


def test_a_file_that_is_written_over_and_gets_its_old_time_is_another() -> None:
    file = Path("model/model.safetensors")
    encoder, before = encoder_of("model"), file.stat()
    with file.open("r+b") as output:  # as `rsync --inplace --times` and `cp --preserve` write
        output.write(Path("../there/model/model.safetensors").read_bytes())
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert encoder_of("model") is not encoder


@pytest.mark.parametrize("kind", ["SentenceEmbedder", "WordPieceVectorizer"])
def test_a_pickle_of_scikit_learn_has_the_model_it_was_made_with(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sklearn = pytest.importorskip("wordpiece_bert.integrations.sklearn")
    transformer = getattr(sklearn, kind)("model").fit([TEXT])
    before = np.asarray(transformer.transform([TEXT]).sum(axis=0))
    stored = pickle.dumps(transformer)
    go_there(monkeypatch)
    again = pickle.loads(stored)
    np.testing.assert_array_equal(np.asarray(again.transform([TEXT]).sum(axis=0)), before)
    assert vars(pickle.loads(pickle.dumps(again))) == vars(pickle.loads(stored))
    monkeypatch.chdir("../here")
    replace_model()
    Tokenizer.from_vocab(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "bread"]).save_pretrained("model")
    with pytest.raises(InputError, match="is not the model with which the stored vectors were made"):
        pickle.loads(stored).transform([TEXT])


@pytest.mark.parametrize("kind", ["SentenceEmbedder", "WordPieceVectorizer"])
def test_what_scikit_learn_has_fitted_gets_no_other_model(kind: str) -> None:
    sklearn = pytest.importorskip("wordpiece_bert.integrations.sklearn")
    transformer = getattr(sklearn, kind)("model").fit([TEXT])
    replace_model()
    Tokenizer.from_vocab(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "bread"]).save_pretrained("model")
    for fitted in (transformer, pickle.loads(pickle.dumps(transformer))):
        with pytest.raises(InputError, match="is not the model with which the stored vectors were made"):
            fitted.transform([TEXT])
        fitted.fit([TEXT]).transform([TEXT])


def test_a_folder_of_vectors_names_its_model_for_every_working_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"key": [1, 2], "text": [TEXT, "a bicycle"]})
    write_vectors(table, "texts.vectors", "model", text_column="text", id_column="key")
    folder = Path("texts.vectors").absolute()
    go_there(monkeypatch)
    assert open_vectors(folder).model == lasting_name("../here/model")
    assert open_vectors(folder).search([TEXT])[0][0]["id"] == 1

"""Pickles and copies of every public object that can be stored or sent to another process."""

from __future__ import annotations

import copy
import itertools
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import case_files
import strategies
import tiny_models
import wordpiece_bert as wb
from model_files import sentence_folder
from small_tokenizer import TEXTS, fields, tokenizer, with_file_settings
from wordpiece_bert.errors import InputError, ModelNotFoundError
from wordpiece_bert.sentence import SparseVectors
from wordpiece_bert.sentence.activations import identity
from wordpiece_bert.sentence.dense.parts import body_of
from wordpiece_bert.sentence.encoder_loading import encoder_class
from wordpiece_bert.vectors.document_vectors import folder_digests

# Settings of the file that the tests follow on purpose: its truncation, and a padding id that is not its token's.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*by the truncation that the tokenizer's file sets"),
    pytest.mark.filterwarnings("ignore:padding. pad_id is"),
]


PROTOCOLS = range(2, pickle.HIGHEST_PROTOCOL + 1)


def tokenizers() -> dict[str, wb.Tokenizer]:
    return {
        "plain": tokenizer(),
        "cased": tokenizer(lowercase=False, max_input_chars_per_word=7),
        "added": tokenizer().with_added_tokens(["<e>", wb.AddedToken("Foo", lstrip=True)]),
        "again": tokenizer().with_added_tokens(["<e>", "<f>"]).with_added_tokens([wb.AddedToken("<e>", special=True)]),
        "settings": with_file_settings({"max_length": 9, "stride": 2, "direction": "Left"}, {"pad_to_multiple_of": 4}),
    }


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", tokenizers())
def test_tokenizers_round_trip(name: str, protocol: int) -> None:
    tok = tokenizers()[name]
    again = pickle.loads(pickle.dumps(tok, protocol))
    assert type(again) is wb.Tokenizer
    assert again == tok
    assert again.fingerprint == tok.fingerprint
    assert again.added_tokens == tok.added_tokens
    texts = [*TEXTS, "a <e> foo <f> b"]
    assert again.encodings(texts) == tok.encodings(texts)


def test_folder_settings_round_trip(tmp_path: Path) -> None:
    tok = tokenizer()
    tok.save_pretrained(tmp_path)
    config = tmp_path / "tokenizer_config.json"
    config.write_text(
        config.read_text().replace('"model_max_length": 1000000000000000019884624838656', '"model_max_length": 5')
    )
    tok = wb.Tokenizer.from_pretrained(tmp_path)
    assert tok.model_max_length == 5
    again = pickle.loads(pickle.dumps(tok))
    assert again == tok
    assert again.encode("a b c d", truncation=True) == tok.encode("a b c d", truncation=True)


@given(strategies.cases())
def test_random_tokenizers_and_their_encodings_round_trip(case: dict[str, Any]) -> None:
    try:
        tok = wb.Tokenizer.from_json(case_files.tokenizer_json(case))
    except InputError:
        return
    again = pickle.loads(pickle.dumps(tok))
    assert again == tok
    for one in case["inputs"]:
        if isinstance(one["text"], str):
            try:
                encoding = tok.encode(one["text"], truncation=None)
            except InputError:
                continue
            assert pickle.loads(pickle.dumps(encoding)) == encoding == again.encode(one["text"], truncation=None)


def test_added_tokens_round_trip_as_they_were_registered() -> None:
    """Of two with one normalized form the first matches, and a token that once was special is split as one."""
    tok = tokenizer().with_added_tokens([wb.AddedToken("New"), wb.AddedToken("new"), wb.AddedToken("[SEP]")])
    again = pickle.loads(pickle.dumps(tok))
    assert again == tok
    assert tok.encode("NEW", add_special_tokens=False).ids == [tok.token_to_id("New")]
    for text, split in itertools.product(("NEW", "a [SEP] b"), (False, True)):
        assert again.encode(text, encode_special_tokens=split) == tok.encode(text, encode_special_tokens=split)


def test_subclasses_round_trip() -> None:
    tok = Custom.from_vocab(["[UNK]", "a"])
    assert type(pickle.loads(pickle.dumps(tok))) is Custom
    assert type(tok.with_added_tokens(["b"])) is Custom


class Custom(wb.Tokenizer):
    """A user's subclass."""

    __slots__ = ()


def test_a_copy_of_an_immutable_object_is_the_object() -> None:
    tok = tokenizer()
    assert copy.copy(tok) is tok
    assert copy.deepcopy({"tokenizer": tok})["tokenizer"] is tok


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_encodings_round_trip(protocol: int) -> None:
    for options in ({}, {"truncation": True, "max_length": 7, "padding": True, "pad_to_multiple_of": 4}):
        for encoding in tokenizer().encodings([*TEXTS, ("the cat sat", "on the mat")], **options):  # type: ignore[arg-type]
            again = pickle.loads(pickle.dumps(encoding, protocol))
            assert again == encoding
            assert fields(again) == fields(encoding)
            assert again.char_to_token(1) == encoding.char_to_token(1)
            assert copy.deepcopy(encoding) == copy.copy(encoding) == encoding


def test_a_window_round_trips_without_its_row() -> None:
    window = tokenizer().encode("a b c d", truncation=True, max_length=4).overflowing[0]
    assert fields(pickle.loads(pickle.dumps(window))) == fields(window)


def test_a_corrupted_pickle_is_refused() -> None:
    restore, (state,) = tokenizer().encode("the cat", "sat").__reduce__()
    damages: list[dict[str, object]] = [
        {"ids": [1]},
        {"offsets": []},
        {"sequence_ranges": [(0, 0, 99)]},
        {"sequence_ranges": [(0, 3, 1)]},
    ]
    for damage in damages:
        with pytest.raises(InputError, match="not a pickled Encoding"):
            restore({**state, **damage})


def test_batches_round_trip() -> None:
    tok = tokenizer()
    batch = tok.encode_batch(TEXTS, return_offsets=True)
    again = pickle.loads(pickle.dumps(batch))
    assert again.to_list() == batch.to_list()
    np.testing.assert_array_equal(again.offsets, batch.offsets)
    assert again.word_ids is None
    inputs = tok(TEXTS, padding=True)
    for other in (pickle.loads(pickle.dumps(inputs)), copy.copy(inputs), copy.deepcopy(inputs)):
        assert list(other) == list(inputs)
        np.testing.assert_array_equal(other["input_ids"], inputs["input_ids"])
        np.testing.assert_array_equal(other.truncated, inputs.truncated)


def test_added_tokens_round_trip() -> None:
    token = wb.AddedToken("<e>", lstrip=True, special=True)
    assert pickle.loads(pickle.dumps(token)) == token
    assert copy.deepcopy(token) == token


@pytest.fixture
def model_folders(tmp_path: Path) -> Path:
    return tiny_models.make_all(tmp_path / "models")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_loaded_encoder_is_pickled_by_its_path(model_folders: Path, protocol: int) -> None:
    encoder = wb.SentenceEncoder(model_folders / "sentences", backend="numpy")
    encoder.max_seq_length = 7
    data = pickle.dumps(encoder, protocol)
    assert len(data) < 1200 < (model_folders / "sentences" / "model.safetensors").stat().st_size
    again = pickle.loads(data)
    assert type(again) is wb.SentenceEncoder
    assert (again.max_seq_length, again.engine.backend) == (7, "numpy")
    np.testing.assert_array_equal(again.encode(["to bake bread"]), encoder.encode(["to bake bread"]))


@pytest.mark.parametrize(("name", "cls"), [("sentences", wb.SentenceEncoder), ("ranker", wb.CrossEncoder)])
def test_a_pickle_has_the_dtype_that_auto_took(name: str, cls: Any, model_folders: Path) -> None:
    encoder = cls(model_folders / name, dtype="auto")
    assert dict(pickle.loads(pickle.dumps(encoder))._source.options)["dtype"] == encoder.engine.dtype


def test_a_loaded_cross_encoder_is_pickled_by_its_path(model_folders: Path) -> None:
    ranker = wb.CrossEncoder(model_folders / "ranker", activation_fn=identity, max_length=12)
    data = pickle.dumps(ranker)
    assert len(data) < 1000
    again = pickle.loads(data)
    assert again.max_length == 12
    pair = ("how to bake bread", "flour and dough")
    assert again.predict(pair) == ranker.predict(pair) < 0  # the sigmoid would be positive


def test_a_pickled_encoder_is_found_by_its_name_where_the_folder_is_missing(
    model_folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(model_folders)
    data = pickle.dumps(wb.SentenceEncoder("sentences"))
    other = tmp_path / "other"
    shutil.copytree(model_folders, other)
    monkeypatch.chdir(tmp_path)
    shutil.rmtree(model_folders)
    with pytest.raises(ModelNotFoundError, match="sentences"):
        pickle.loads(data)
    monkeypatch.chdir(other)
    assert pickle.loads(data).encode(["bread"]).shape[0] == 1


def test_a_process_loads_equal_pickles_once(model_folders: Path) -> None:
    folder = model_folders / "sentences"
    encoder = wb.SentenceEncoder(folder)
    data, other = pickle.dumps(encoder), pickle.dumps(wb.SentenceEncoder(folder, backend="numpy"))
    first, second = pickle.loads(data), pickle.loads(data)
    assert body_of(first) is body_of(second) is not body_of(pickle.loads(other))
    first.max_seq_length = 5
    assert second.max_seq_length == encoder.max_seq_length != 5
    assert pickle.loads(pickle.dumps(first)).max_seq_length == 5
    ranker = pickle.dumps(wb.CrossEncoder(model_folders / "ranker"))
    assert pickle.loads(ranker) is pickle.loads(ranker)


@pytest.mark.parametrize(("file", "part"), [("model.safetensors", "weights"), ("vocab.txt", "tokenizer")])
def test_a_pickle_of_another_model_is_refused(model_folders: Path, file: str, part: str) -> None:
    folder = model_folders / "sentences"
    data = pickle.dumps(wb.SentenceEncoder(folder))
    pickle.loads(data)
    content = bytearray((folder / file).read_bytes())
    content[-1] ^= 1
    (folder / file).write_bytes(content)
    with pytest.raises(InputError, match=rf"is not the model of the pickled .* loaded from .*: {part} \w+, then \w+;"):
        pickle.loads(data)


@pytest.mark.parametrize(
    ("name", "file", "part"),
    [
        ("sentence_prompts", "config_sentence_transformers.json", "settings"),
        ("sentence_old_layout", "0_Transformer/tokenizer.json", "tokenizer"),
        ("splade_inference_free", "query_0_SparseStaticEmbedding/model.safetensors", "modules"),
        ("splade_idf_json", "query_0_SparseStaticEmbedding/idf.json", "modules"),
        ("colbert_stanford", "artifact.metadata", "settings"),
    ],
)
def test_every_file_of_a_model_counts(tmp_path: Path, name: str, file: str, part: str) -> None:
    folder = sentence_folder(name, tmp_path)
    data, before = pickle.dumps(encoder_class(folder)(folder)), folder_digests(folder)
    content = (folder / file).read_bytes()
    weights = file.endswith(".safetensors")
    (folder / file).write_bytes(content[:-1] + b"?" if weights else content.replace(b"{", b'{"more": 1, ', 1))
    with pytest.raises(InputError, match=rf"is not the model of the pickled .*: {part} \w+, then \w+;"):
        pickle.loads(data)
    assert folder_digests(folder) != before  # for a folder of vectors


def use(encoder: Any) -> Any:
    """Return what an encoder makes of a text, or of a pair."""
    if isinstance(encoder, wb.CrossEncoder):
        return encoder.predict([("bread", "dough")])
    made = encoder.encode(["bread"])
    return made.toarray() if isinstance(made, SparseVectors) else made[0]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("sentence_prompts", {}),
        ("sentence_prompts", {"dtype": "int8", "backend": "rust"}),
        ("sentence_old_layout", {"backend": "numpy"}),
        ("splade_inference_free", {}),
        ("colbert_stanford", {"dtype": "bfloat16"}),
        ("cross_encoder_score", {}),
    ],
)
def test_an_encoder_whose_folder_has_another_model_is_pickled_with_its_weights(
    tmp_path: Path, name: str, options: dict[str, Any]
) -> None:
    folder = sentence_folder(name, tmp_path)
    encoder = (wb.CrossEncoder if name == "cross_encoder_score" else encoder_class(folder))(folder, **options)
    expected = use(encoder)
    for file in folder.rglob("*.safetensors"):
        content = bytearray(file.read_bytes())
        content[-1] ^= 1
        file.unlink()
        file.write_bytes(content)
    again = pickle.loads(pickle.dumps(encoder))
    np.testing.assert_array_equal(use(again), expected)
    np.testing.assert_array_equal(use(pickle.loads(pickle.dumps(again))), expected)


def test_an_encoder_that_no_folder_has_is_pickled_with_its_weights(model_folders: Path) -> None:
    encoder = wb.SentenceEncoder(model_folders / "sentences")
    changed = encoder._with_vocabulary(lambda model: model, lambda tokenizer: tokenizer)
    shutil.rmtree(model_folders)
    again = pickle.loads(pickle.dumps(changed))
    np.testing.assert_array_equal(again.encode(["to bake bread"]), encoder.encode(["to bake bread"]))


def test_copies_of_encoders_share_the_weights(model_folders: Path) -> None:
    encoder = wb.SentenceEncoder(model_folders / "sentences")
    ranker = wb.CrossEncoder(model_folders / "ranker")
    shutil.rmtree(model_folders)
    for again in (copy.copy(encoder), copy.deepcopy({"encoder": encoder})["encoder"]):
        assert body_of(again) is body_of(encoder)
        again.max_seq_length = 5
        assert encoder.max_seq_length != 5
    assert copy.deepcopy(ranker) is copy.copy(ranker) is ranker

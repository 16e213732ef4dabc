"""Late chunking against the reference's numbers and against its definition over `encode_tokens`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_files import MODELS
from wordpiece_bert.bert import BertModel
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence import SentenceEncoder, open_vectors, write_vectors

pyarrow = pytest.importorskip("pyarrow")
LISTING = json.loads((MODELS / "late_chunking" / "reference.json").read_text(encoding="utf-8"))["items"]
ARRAYS = np.load(MODELS / "late_chunking" / "reference.npz")
TEXTS = [item["text"] for item in LISTING]
CHUNKS = [item["chunks"] for item in LISTING]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("late") / "late_chunking"
    shutil.copytree(MODELS / "late_chunking", folder)
    shutil.copy(MODELS / "distill" / "tokenizer.json", folder)
    return folder


@pytest.fixture(scope="module")
def encoder(folder: Path) -> SentenceEncoder:
    return SentenceEncoder(folder)


def with_pooling(folder: Path, to: Path, mode: str) -> Path:
    shutil.copytree(folder, to)
    config = to / "1_Pooling" / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text(encoding="utf-8")), "pooling_mode": mode}))
    return to


@pytest.mark.parametrize("backend", ["rust", "numpy"])
def test_vectors_are_those_of_the_reference(folder: Path, backend: str) -> None:
    encoder = SentenceEncoder(folder, backend=backend)
    for index, (text, chunks) in enumerate(zip(TEXTS, CHUNKS, strict=True)):
        vectors = encoder.encode_chunks(text, chunks)
        assert vectors.dtype == np.float32
        np.testing.assert_allclose(vectors, ARRAYS[f"{index}.chunks"], rtol=0, atol=1e-5)


def test_many_texts_have_the_vectors_of_each(encoder: SentenceEncoder) -> None:
    together = encoder.encode_chunks(TEXTS, CHUNKS, batch_size=2)
    for text, chunks, vectors in zip(TEXTS, CHUNKS, together, strict=True):
        np.testing.assert_allclose(vectors, encoder.encode_chunks(text, chunks), rtol=0, atol=1e-6)
    assert encoder.encode_chunks([], []) == []
    assert encoder.encode_chunks(TEXTS[0], []).shape == (0, encoder.dimension)


words = st.sampled_from(["the", "cat", "cafés", "river.", "İstanbul", "☃", "[SEP]", "people"])


@given(data=st.data(), text=st.lists(words, max_size=16).map(" ".join))
def test_a_chunk_is_the_mean_of_the_tokens_that_begin_in_it(
    encoder: SentenceEncoder, data: st.DataObject, text: str
) -> None:
    bound = st.integers(0, len(text) + 2)
    chunks = data.draw(st.lists(st.tuples(bound, bound).map(lambda pair: (min(pair), max(pair))), max_size=4))
    prompt = data.draw(st.sampled_from(["", "query: ", "the "]))
    encoding = encoder.tokenizer.encode(prompt + text, truncation=False)
    if len(encoding) > encoder.max_seq_length:
        with pytest.raises(InputError, match=f"has {len(encoding)} tokens"):
            encoder.encode_chunks(text, chunks, prompt=prompt)
        return
    tokens = encoder.encode_tokens(prompt + text)
    for (start, end), vector in zip(chunks, encoder.encode_chunks(text, chunks, prompt=prompt), strict=True):
        inside = [
            x
            for x, (first, _), special in zip(tokens.vectors, tokens.offsets, encoding.special_tokens_mask, strict=True)
            if not special and start <= first - len(prompt) < end
        ]
        mean = np.mean(inside, axis=0) if inside else np.zeros(encoder.dimension)
        expected = mean / max(np.linalg.norm(mean), 1e-12)
        np.testing.assert_allclose(vector, expected, rtol=0, atol=1e-6)


def test_the_surrounding_text_counts(encoder: SentenceEncoder) -> None:
    [alone] = encoder.encode_chunks("the river", [(0, 9)])
    [inside] = encoder.encode_chunks("the river people city", [(0, 9)])
    assert np.abs(alone - inside).max() > 1e-3


def test_truncate_dim_and_normalization_are_those_of_encode(encoder: SentenceEncoder) -> None:
    vectors = encoder.encode_chunks(TEXTS[0], CHUNKS[0])
    short = encoder.encode_chunks(TEXTS[0], CHUNKS[0], truncate_dim=5)
    assert np.array_equal(short, vectors[:, :5])
    unit = encoder.encode_chunks(TEXTS[0], CHUNKS[0], truncate_dim=5, normalize_embeddings=True)
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("size", [46, 22, 1])  # 46 tokens and two special ones are a row
@pytest.mark.parametrize("late", [True, False])
def test_chunks_that_begin_within_a_word_fit_into_rows(
    encoder: SentenceEncoder, folder: Path, tmp_path: Path, size: int, late: bool
) -> None:
    text = "working the " * 30 + "worked"  # "ing" and "ed" by themselves have more tokens than in a word
    table = pyarrow.table({"id": [1], "text": [text]})
    written = write_vectors(
        table, tmp_path / "v", folder, text_column="text", id_column="id", chunk_size=size, late_chunking=late
    )
    assert written.truncated == []
    rows = [row for batch in open_vectors(tmp_path / "v").batches() for row in batch.to_pylist()]
    pieces = [text[row["start"] : row["end"]] for row in rows]
    assert "".join(pieces).replace(" ", "") == text.replace(" ", "")
    if not late:
        assert encoder.tokenizer.count_tokens(pieces).max() <= size
        np.testing.assert_allclose([row["vector"] for row in rows], encoder.encode(pieces), rtol=0, atol=1e-6)
        return
    # The slow way: the ids of the entire text, cut into rows of entire chunks.
    encoding = encoder.tokenizer.encode(text, add_special_tokens=False)
    bert = BertModel.from_pretrained(folder)
    found: list[Any] = []
    starts = np.array([start for start, _ in encoding.offsets])
    while len(found) < len(rows):
        begin = int(np.searchsorted(starts, rows[len(found)]["start"]))
        own = [row for row in rows[len(found) :] if np.searchsorted(starts, row["end"]) <= begin + 46]
        end = int(np.searchsorted(starts, own[-1]["end"]))
        ids = [encoder.tokenizer.cls_token_id, *encoding.ids[begin:end], encoder.tokenizer.sep_token_id]
        states = bert(np.array([ids])).last_hidden_state[0][1:-1]
        for row in own:
            inside = (starts[begin:end] >= row["start"]) & (starts[begin:end] < row["end"])
            assert 0 < inside.sum() <= size
            mean = states[inside].mean(axis=0)
            found.append(mean / np.linalg.norm(mean))
    np.testing.assert_allclose([row["vector"] for row in rows], found, rtol=0, atol=1e-5)


def test_a_text_that_is_too_long_is_refused_with_its_length(encoder: SentenceEncoder) -> None:
    with pytest.raises(InputError, match=r"texts\[1\] has 62 tokens.*1 to 48 tokens"):
        encoder.encode_chunks(["the", "the " * 60], [[(0, 3)], [(0, 3)]])


@pytest.mark.parametrize("mode", ["cls", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"])
def test_another_pooling_than_the_mean_is_refused(folder: Path, tmp_path: Path, mode: str) -> None:
    encoder = SentenceEncoder(with_pooling(folder, tmp_path / mode, mode))
    with pytest.raises(InputError, match=f"late chunking takes the mean of tokens.*{mode}"):
        encoder.encode_chunks("the cat", [(0, 3)])


def test_a_static_model_is_refused() -> None:
    with pytest.raises(InputError, match="late chunking needs a model whose tokens see each other"):
        SentenceEncoder(MODELS / "static_m2v").encode_chunks("the cat", [(0, 3)])


@pytest.mark.parametrize(
    ("chunks", "message"),
    [
        ([(3, 1)], r"chunks\[0\] must be \(start, end\)"),
        ([(0, 1), (-1, 2)], r"chunks\[1\] must be \(start, end\)"),
        ([(0, 1.5)], r"chunks\[0\] must be"),
        ([(True, 2)], r"chunks\[0\] must be"),
        ([0, 4], r"chunks\[0\] must be"),
        ([(0, 1, 2)], r"chunks\[0\] must be"),
        ("the", "chunks must be pairs"),
        (7, "chunks must be pairs"),
    ],
)
def test_wrong_chunks_are_refused(encoder: SentenceEncoder, chunks: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        encoder.encode_chunks("the cat", chunks)


def test_there_must_be_chunks_for_each_text(encoder: SentenceEncoder) -> None:
    with pytest.raises(InputError, match="chunks must have the chunks of 2 texts"):
        encoder.encode_chunks(["the", "cat"], [[(0, 3)]])
    with pytest.raises(InputError, match=r"chunks\[1\]\[0\] must be"):
        encoder.encode_chunks(["the", "cat"], [[(0, 3)], [(4, 3)]])

"""Arrow batches to Arrow batches: equal to the plain calls, with nulls, other columns and chunks kept."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from small_tokenizer import TEXTS, tokenizer
from wordpiece_bert import SentenceEncoder
from wordpiece_bert.errors import InputError, MissingPackageError
from wordpiece_bert.integrations.arrow import embed, encode, encode_texts, ids_to_arrow, vectors_to_arrow
from wordpiece_bert.integrations.named_models import encoder_of, import_package, tokenizer_of

pa = pytest.importorskip("pyarrow")


@given(
    st.lists(st.none() | st.text("abc ds.", max_size=12), max_size=9),
    st.sampled_from([pa.string(), pa.large_string(), pa.string_view()]),
    st.integers(1, 4),
)
def test_ids_are_those_of_encode_and_nulls_stay_null(texts: list[str | None], kind: pa.DataType, pieces: int) -> None:
    size = -(-len(texts) // pieces) or 1
    chunks = [pa.array(texts[start : start + size], kind) for start in range(0, len(texts), size)]
    ids, lengths, truncated = encode_texts(pa.chunked_array(chunks, kind), tokenizer(), max_length=5)
    assert ids.type == pa.list_(pa.int32())
    expected = [None if text is None else tokenizer().encode(text, max_length=5) for text in texts]
    assert ids.to_pylist() == [None if one is None else one.ids for one in expected]
    assert lengths.to_pylist() == [None if one is None else len(one) for one in expected]
    assert truncated.to_pylist() == [None if one is None else one.truncated for one in expected]
    for array in (ids, lengths, truncated):
        array.validate(full=True)


def test_a_name_has_the_options_of_an_encoder(folder: Path) -> None:
    table = pa.table({"text": ["to bake bread", "the oven " * 9]})
    options = {"prompts": {"one": "a prompt: "}, "default_prompt_name": "one", "truncate_dim": 8}
    encoder = SentenceEncoder(folder, dtype="int8", **options)
    encoder.max_seq_length = 9
    found = embed(table, "text", folder, dtype="int8", encoder_options=options | {"max_seq_length": 9})
    expected = embed(table, "text", encoder)
    assert found.equals(expected)
    assert found["truncated"].to_pylist() == [False, True]
    assert not found["vector"].equals(embed(table, "text", folder, encoder_options={"truncate_dim": 8})["vector"])
    # A name is loaded once for equal options.
    assert encoder_of(folder, encoder_options=options) is encoder_of(folder, encoder_options=dict(options))
    assert encoder_of(folder, encoder_options=options) is not encoder_of(folder)
    for wrong, message in (
        ({"dtype": "int7"}, "dtype must be one of"),
        ({"encoder_options": {"width": 3}}, "encoder_options has 'width', but SentenceEncoder has backend"),
        ({"encoder_options": ["dtype"]}, "encoder_options must be a dict"),
        ({"dtype": "int8", "encoder_options": {"dtype": "auto"}}, "dtype is given twice, as 'int8' and in"),
        ({"encoder_options": {"max_seq_length": 10**9}}, "max_seq_length must be"),
    ):
        with pytest.raises(InputError, match=message):
            embed(table, "text", folder, **wrong)
    for name, value in (("dtype", "int8"), ("encoder_options", {"truncate_dim": 8})):
        with pytest.raises(InputError, match=f"{name} is for a model that is given by its name"):
            embed(table, "text", encoder, **{name: value})


@pytest.mark.parametrize("make", [pa.table, pa.RecordBatch.from_pydict])
def test_columns_are_added_to_tables_and_batches(make: Any, folder: Path) -> None:
    data = make({"id": [1, 2, 3], "text": ["to bake bread", None, "the oven " * 60]})
    encoder = SentenceEncoder(folder)
    found = encode(data, "text", folder, truncation=True, max_length=20)
    assert type(found) is type(data)
    assert found.schema.names == ["id", "text", "ids", "length", "truncated"]
    assert found["length"].to_pylist() == [5, None, 20]
    assert found["truncated"].to_pylist() == [False, None, True]
    assert found["id"].equals(data["id"])
    renamed = encode(data, "text", folder, truncation=True, max_length=20, ids_column="input_ids")
    assert renamed.schema.names == ["id", "text", "input_ids", "length", "truncated"]
    assert renamed["input_ids"].equals(found["ids"])
    with pytest.raises(InputError, match="the data have a column 'id' already"):
        encode(data, "text", folder, ids_column="id")

    found = embed(data, "text", folder, normalize_embeddings=True, truncate_dim=9)
    assert found.schema.field("vector").type == pa.list_(pa.float32(), 9)
    expected = encoder.encode(
        [data["text"][0].as_py(), data["text"][2].as_py()],
        normalize_embeddings=True,
        truncate_dim=9,
        return_truncated=True,
    )[0]
    vectors = found["vector"].to_pylist()
    assert vectors[1] is None
    np.testing.assert_array_equal(np.array([vectors[0], vectors[2]], np.float32), expected)
    assert found["truncated"].to_pylist() == [False, None, True]


def test_pairs_are_two_columns() -> None:
    data = pa.table({"a": ["the cat", None, "a"], "b": ["sat", "b", None]})
    found = encode(data, "a", tokenizer(), pair="b", add_special_tokens=True)
    assert found["ids"].to_pylist() == [tokenizer().encode("the cat", "sat").ids, None, None]


def test_empty_data_have_the_same_columns(folder: Path) -> None:
    data = pa.table({"text": pa.array([], pa.string())})
    full = pa.table({"text": ["a"]})
    assert encode(data, "text", tokenizer()).schema == encode(full, "text", tokenizer()).schema
    assert embed(data, "text", folder).schema == embed(full, "text", folder).schema
    nulls = pa.table({"text": pa.array([None, None], pa.string())})
    assert embed(nulls, "text", folder)["vector"].null_count == 2


def test_lists_share_the_memory_of_a_batch() -> None:
    rows = tokenizer().encode_batch(TEXTS)
    ids = ids_to_arrow(rows)
    assert ids.to_pylist() == rows.to_list()
    assert ids.values.buffers()[1].address == rows.ids.ctypes.data
    vectors = np.arange(12, dtype=np.float32).reshape(3, 4)
    lists = vectors_to_arrow(vectors)
    assert lists.values.buffers()[1].address == vectors.ctypes.data
    assert lists.to_pylist() == vectors.tolist()
    assert vectors_to_arrow(vectors[:, :2]).to_pylist() == vectors[:, :2].tolist()


def test_wrong_arguments_are_named() -> None:
    data = pa.table({"text": ["a"], "ids": [1]})
    with pytest.raises(InputError, match="no column 'texts'; the data have text, ids"):
        encode(data, "texts", tokenizer())
    with pytest.raises(InputError, match="have a column 'ids' already"):
        encode(data, "text", tokenizer())
    with pytest.raises(InputError, match="several columns 'text'; the data have text, text"):
        encode(pa.table([["a"], ["b"]], ["text", "text"]), "text", tokenizer())
    with pytest.raises(InputError, match=r"data must be a pyarrow\.Table or RecordBatch, not dict"):
        encode({"text": ["a"]}, "text", tokenizer())  # type: ignore[type-var]
    with pytest.raises(InputError, match="texts must be a column of Arrow, not list"):
        encode_texts(["a"], tokenizer())  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"vectors must be an array \[n, d\], not one of shape \(3,\)"):
        vectors_to_arrow(np.zeros(3))
    with pytest.raises(InputError, match="tokenizer must be a Tokenizer or the name of a model, not int"):
        encode(data.select(["text"]), "text", 3)  # type: ignore[type-var]
    with pytest.raises(InputError, match="model must be a SentenceEncoder or the name of a model, not Tokenizer"):
        encoder_of(tokenizer())  # type: ignore[arg-type]


def test_names_are_loaded_once(folder: Path) -> None:
    assert encoder_of(folder) is encoder_of(str(folder))
    assert tokenizer_of(folder) is tokenizer_of(str(folder))
    mine = SentenceEncoder(folder)
    assert encoder_of(mine) is mine


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for error in (MissingPackageError, ImportError, InputError):
        with pytest.raises(error, match=r"pyarrow is not installed: pip install 'wordpiece-bert\[arrow\]'"):
            vectors_to_arrow(np.zeros((1, 1)))
    with pytest.raises(MissingPackageError, match=r"a_package_that_is_not is not installed.*\[x\]"):
        import_package("a_package_that_is_not.part", "x")

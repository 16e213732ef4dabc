"""Batches of example folders equal the batches of the slow reference. The folders here are written with NumPy alone."""

from __future__ import annotations

import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pretraining_reference as reference
from pretraining_folders import (
    LABELS,
    expected_batch,
    rows_of_each_shard,
    tokenizer,
    vocabulary,
    write_examples,
)
from processes import printed
from test_pretraining_reference import cases
from wordpiece_bert.errors import InputError
from wordpiece_bert.pretraining import Masking, PretrainingDataset, epoch_order

TOK = tokenizer()
VOCABULARY = vocabulary(TOK)
KINDS = [
    ("nsp", 32, None),
    ("sop", 32, None),
    ("full-sentences", 48, None),
    ("text", 48, None),
    ("nsp", 32, 80),
    ("doc-sentences", 24, 64),
]
seeds = st.integers(0, 2**64 - 1)


class Folder:
    """An example folder, and its rows."""

    def __init__(self, path: Path, objective: str, max_length: int, packing: int | None, masks: Any = None) -> None:
        self.objective, self.packing = objective, packing
        self.shards = rows_of_each_shard(reference.Options(objective=objective, max_length=max_length, seed=3), packing)
        self.rows = [row for shard in self.shards for row in shard]
        self.row_length = packing or max_length
        self.path = write_examples(
            path, self.shards, objective, self.row_length, packing=packing is not None, masks=masks
        )

    def batch(self, numbers: list[int], length: int, masks: Any = None) -> dict[str, np.ndarray]:
        chosen = [self.rows[number] for number in numbers]
        return expected_batch(chosen, self.objective, length, masks, packing=self.packing is not None)

    def masks(self, numbers: list[int], options: reference.MaskOptions, seed: int, epoch: int) -> list[Any]:
        ids = [reference.joined_row(self.rows[number]).ids for number in numbers]
        return [
            reference.mask_row(one, VOCABULARY, options, seed, epoch, 0, number)
            for one, number in zip(ids, numbers, strict=True)
        ]


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: "-".join(map(str, kind)))
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return Folder(tmp_path_factory.mktemp("examples") / "folder", *request.param)


def assert_equal(found: dict[str, Any], expected: dict[str, np.ndarray]) -> None:
    assert set(found) - {"cu_seqlens"} == set(expected)
    for name, array in expected.items():
        assert found[name].dtype == array.dtype, name
        assert found[name].flags.c_contiguous
        np.testing.assert_array_equal(found[name], array, err_msg=name)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data(), seeds, st.integers(0, 2**64 - 1), st.sampled_from(["tokens", "words", "spans"]), st.integers(1, 9))
def test_batches_equal_the_reference(
    folder: Folder, data: st.DataObject, seed: int, epoch: int, unit: str, multiple: int
) -> None:
    numbers = data.draw(st.lists(st.integers(0, len(folder.rows) - 1), min_size=1, max_size=6))
    options = reference.MaskOptions(unit_kind=unit, probability=data.draw(st.sampled_from([0.15, 0.5])))
    masking = Masking(TOK, probability=options.probability, whole_words=unit == "words", spans=unit == "spans")
    dataset = PretrainingDataset(folder.path, masking=masking, seed=seed, epoch=epoch, pad_to_multiple_of=multiple)
    masks = folder.masks(numbers, options, seed, epoch)
    longest = max(len(mask[0]) for mask in masks)
    assert_equal(dataset.batch(numbers), folder.batch(numbers, -(-longest // multiple) * multiple, masks))
    # A row alone has the same bytes, without padding.
    row = dataset[numbers[0]]
    alone = folder.batch(numbers[:1], len(masks[0][0]), masks[:1])
    for name, array in alone.items():
        expected = array if folder.packing and name in LABELS.values() else array[0]
        np.testing.assert_array_equal(row[name], expected)


def test_length_lengths_and_padding(folder: Folder) -> None:
    dataset = PretrainingDataset(folder.path)
    assert len(dataset) == len(folder.rows)
    lengths = [sum(len(one.ids) for one in row) for row in folder.rows]
    assert dataset.lengths.tolist() == lengths
    assert_equal(dataset.batch([1, 0]), folder.batch([1, 0], max(lengths[:2])))
    assert_equal(PretrainingDataset(folder.path, pad_to="max_length").batch([0]), folder.batch([0], folder.row_length))
    np.testing.assert_array_equal(dataset[-1]["input_ids"], dataset[len(dataset) - 1]["input_ids"])
    assert dataset.batch([])["input_ids"].shape == (0, 0)
    assert PretrainingDataset(folder.path).packed == (folder.packing is not None)
    assert str(len(folder.rows)) in repr(dataset)


def test_a_batch_is_also_a_list_of_its_rows(folder: Folder) -> None:
    dataset = PretrainingDataset(folder.path, masking=Masking(TOK), seed=5)
    rows = dataset.__getitems__([3, 0, 1])
    batch = dataset.batch([3, 0, 1])
    assert len(rows) == 3
    for i, row in enumerate(rows):
        np.testing.assert_array_equal(row["input_ids"], batch["input_ids"][i])
        np.testing.assert_array_equal(row["labels"], batch["labels"][i])
    assert dataset.collate(rows) is rows.batch
    # The same from single rows, as a loader without `__getitems__` makes it.
    stacked = dataset.collate([dataset[i] for i in (3, 0, 1)])
    batch.pop("cu_seqlens", None)
    assert set(stacked) == set(batch)
    for name, array in batch.items():
        np.testing.assert_array_equal(stacked[name], array)


@pytest.mark.parametrize("kind", [("nsp", 32, 80), ("nsp", 32, None)])
def test_flattened_batches_have_no_padding(kind: tuple[str, int, int | None], tmp_path: Path) -> None:
    folder = Folder(tmp_path / "folder", *kind)
    batch = PretrainingDataset(folder.path, flatten=True).batch([2, 0])
    sequences = [*folder.rows[2], *folder.rows[0]]
    assert batch["input_ids"].tolist() == [[one for row in sequences for one in row.ids]]
    assert batch["position_ids"].tolist() == [[place for row in sequences for place in range(len(row.ids))]]
    assert batch["token_type_ids"].tolist() == [[one for row in sequences for one in row.token_type_ids]]
    ends = np.cumsum([0, *(len(row.ids) for row in sequences)]).tolist()
    for name in ("cu_seq_lens_q", "cu_seq_lens_k"):
        assert batch[name].dtype == np.int32
        assert batch[name].tolist() == ends
    assert batch["max_length_q"] == batch["max_length_k"] == max(len(row.ids) for row in sequences)
    assert batch["next_sentence_label"].tolist() == [row.label for row in sequences]
    assert "attention_mask" not in batch


def test_rows_that_are_masked_already(tmp_path: Path) -> None:
    options = reference.MaskOptions(probability=0.3)
    shards = rows_of_each_shard(reference.Options(max_length=32, seed=3))
    masks = [
        reference.static_masks([reference.joined_row(row) for row in rows], VOCABULARY, options, 9) for rows in shards
    ]
    written = [
        [[reference.Row(mask[0], row[0].second, row[0].label)] for row, mask in zip(rows, given, strict=True)]
        for rows, given in zip(shards, masks, strict=True)
    ]
    # The folder has the masked ids, and the ids before masking at the masked positions.
    path = write_examples(
        tmp_path / "masked",
        written,
        "nsp",
        32,
        masks=[[(mask[0], mask[1], mask[2]) for mask in given] for given in masks],
    )
    dataset = PretrainingDataset(path)
    assert dataset.masked
    rows = [row for shard in shards for row in shard]
    flat = [mask for given in masks for mask in given]
    longest = max(len(flat[i][0]) for i in (0, 30))
    assert_equal(dataset.batch([0, 30]), expected_batch([rows[0], rows[30]], "nsp", longest, [flat[0], flat[30]]))
    with pytest.raises(InputError, match="masked already"):
        PretrainingDataset(path, masking=Masking(TOK))


@pytest.mark.parametrize("case", cases("generator")["epoch_order"])
def test_the_reading_order(case: dict[str, Any]) -> None:
    assert epoch_order(case["n"], seed=case["seed"], epoch=case["epoch"]).tolist() == case["order"]


@given(st.integers(0, 3000), seeds, seeds)
def test_any_reading_order_is_a_permutation(n: int, seed: int, epoch: int) -> None:
    order = epoch_order(n, seed=seed, epoch=epoch)
    assert sorted(order.tolist()) == list(range(n))
    if n < 300 and n:
        assert order.tolist() == reference.epoch_order(n, seed, epoch)


def test_an_epoch_changes_masks_and_order(folder: Folder) -> None:
    dataset = PretrainingDataset(folder.path, masking=Masking(TOK), seed=1)
    first = (dataset.order().tolist(), dataset.batch(range(5))["labels"].tolist())
    dataset.set_epoch(1)
    second = (dataset.order().tolist(), dataset.batch(range(5))["labels"].tolist())
    assert second[1] != first[1]
    assert second[0] == epoch_order(len(dataset), seed=1, epoch=1).tolist()
    dataset.set_epoch(0)
    assert (dataset.order().tolist(), dataset.batch(range(5))["labels"].tolist()) == first


def test_a_data_set_is_pickled_as_its_path(folder: Folder) -> None:
    dataset = PretrainingDataset(folder.path, masking=Masking(TOK, whole_words=True), seed=7, epoch=2)
    dataset.batch(range(5))
    copy = pickle.loads(pickle.dumps(dataset))
    assert repr(copy) == repr(dataset)
    np.testing.assert_array_equal(copy.batch(range(5))["input_ids"], dataset.batch(range(5))["input_ids"])


def test_threads_read_the_same_rows(folder: Folder) -> None:
    dataset = PretrainingDataset(folder.path, masking=Masking(TOK))
    expected = dataset.batch(range(len(dataset)))["input_ids"].tolist()
    fresh = PretrainingDataset(folder.path, masking=Masking(TOK))
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.append(fresh.batch(range(len(fresh)))["input_ids"].tolist()))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 8


def test_torch_is_not_imported(folder: Folder) -> None:
    program = (
        "import sys\nfrom wordpiece_bert.pretraining import PretrainingDataset\n"
        f"d = PretrainingDataset({str(folder.path)!r})\nd.collate(d.__getitems__([0]))\nassert 'torch' not in sys.modules"
    )
    printed(program)


def test_wrong_arguments_name_the_value(folder: Folder, tmp_path: Path) -> None:
    for arguments, message in [
        ({"seed": -1}, "seed must be a whole number from 0 to 18446744073709551615, not -1"),
        ({"epoch": 2**64}, "epoch must be"),
        ({"pad_to": "longest"}, "pad_to must be one of None, 'max_length', not 'longest'"),
        ({"pad_to_multiple_of": 0}, "pad_to_multiple_of must be"),
        ({"flatten": 1}, "flatten must be True or False"),
        ({"masking": TOK}, "masking must be a Masking"),
    ]:
        with pytest.raises(InputError, match=message):
            PretrainingDataset(folder.path, **arguments)
    dataset = PretrainingDataset(folder.path)
    for rows, message in [([len(dataset)], "row"), ([-1], "row"), ([0.5], "row numbers"), ([[0]], "row numbers")]:
        with pytest.raises(InputError, match=message):
            dataset.batch(rows)
    with pytest.raises(IndexError, match=f"index {len(dataset)} is out of range for {len(dataset)} rows"):
        dataset[len(dataset)]
    with pytest.raises(InputError, match="a row is selected by its number"):
        dataset["a"]  # type: ignore[index]
    with pytest.raises(InputError, match="no such folder"):
        PretrainingDataset(tmp_path / "nothing")
    with pytest.raises(InputError, match="seed must be"):
        epoch_order(3, seed=True, epoch=0)


def test_a_cut_file_is_refused(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "folder", "nsp", 32, None)
    path = folder.path / "0-00001.input_ids.npy"
    data = path.read_bytes()
    path.write_bytes(data[:-2])
    with pytest.raises(InputError, match=r"0-00001\.input_ids\.npy"):
        PretrainingDataset(folder.path)
    path.write_bytes(data[:-2] + b"\0\0")
    PretrainingDataset(folder.path)
    with pytest.raises(InputError, match=r"0-00001\.input_ids\.npy: its CRC-32"):
        PretrainingDataset(folder.path).verify()


def test_offsets_that_point_outside_are_an_error(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "folder", "nsp", 32, None)
    path = folder.path / "0-00000.row_offsets.npy"
    offsets = np.load(path)
    offsets[3] = 1 << 40
    np.save(path, offsets)
    with pytest.raises(InputError):
        PretrainingDataset(folder.path).batch([2])

"""torch's DataLoader takes a `PretrainingDataset` as it is. Skipped if torch is not installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pretraining_reference as reference
from pretraining_folders import rows_of_each_shard, tokenizer, write_examples
from test_pretraining_reference import DATA
from wordpiece_bert.bert import BertConfig
from wordpiece_bert.finetune import PretrainingRows, PretrainingTrainer, TrainingArguments, new_model
from wordpiece_bert.pretraining import Masking, PretrainingDataset, build_examples, build_token_store

torch = pytest.importorskip("torch", reason="torch is not installed: make test-torch")
data = pytest.importorskip("torch.utils.data")

# torch's own warnings are not errors of these tests.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module", params=[None, 80], ids=["rows", "packed"])
def dataset(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> PretrainingDataset:
    shards = rows_of_each_shard(reference.Options(max_length=32, seed=3), request.param)
    path = tmp_path_factory.mktemp("torch") / "examples"
    write_examples(path, shards, "nsp", request.param or 32, packing=request.param is not None)
    return PretrainingDataset(path, masking=Masking(tokenizer(), whole_words=True), seed=11)


def batches(loader: Any) -> list[dict[str, Any]]:
    return [{name: np.asarray(value) for name, value in batch.items()} for batch in loader]


@pytest.mark.parametrize(("workers", "start"), [(0, None), (2, "fork"), (2, "spawn")])
def test_batches_with_collate_are_those_of_the_data_set(
    dataset: PretrainingDataset, workers: int, start: str | None
) -> None:
    loader = data.DataLoader(
        dataset, batch_size=7, num_workers=workers, multiprocessing_context=start, collate_fn=dataset.collate
    )
    found = batches(loader)
    numbers = np.array_split(np.arange(len(dataset)), range(7, len(dataset), 7))
    assert len(found) == len(numbers)
    for batch, rows in zip(found, numbers, strict=True):
        expected = dataset.batch(rows)
        assert set(batch) == set(expected)
        for name, array in expected.items():
            np.testing.assert_array_equal(batch[name], array, err_msg=name)
    assert all(isinstance(value, torch.Tensor) for batch in loader for value in batch.values())


@pytest.mark.parametrize("workers", [0, 2])
def test_the_default_collation_stacks_the_rows(dataset: PretrainingDataset, workers: int) -> None:
    rows = batches(data.DataLoader(dataset, batch_size=5, num_workers=workers))[1]
    expected = dataset.batch(range(5, 10))
    for name in ("input_ids", "token_type_ids", "attention_mask", "labels"):
        np.testing.assert_array_equal(rows[name], expected[name])


def test_shuffling_and_a_sampler_of_our_order(dataset: PretrainingDataset) -> None:
    generator = torch.Generator().manual_seed(0)
    loader = data.DataLoader(dataset, batch_size=4, shuffle=True, generator=generator, collate_fn=dataset.collate)
    shuffled = sorted(row.tolist() for batch in loader for row in np.asarray(batch["input_ids"])[:, :5])
    straight = sorted(dataset[i]["input_ids"][:5].tolist() for i in range(len(dataset)))
    assert shuffled == straight
    order = dataset.order()
    loader = data.DataLoader(dataset, batch_size=4, sampler=order.tolist(), collate_fn=dataset.collate)
    first = next(iter(loader))
    np.testing.assert_array_equal(np.asarray(first["input_ids"]), dataset.batch(order[:4])["input_ids"])


def test_collate_shares_memory_with_the_batch(dataset: PretrainingDataset) -> None:
    rows = dataset.__getitems__([0, 1])
    assert dataset.collate(rows)["input_ids"].data_ptr() == rows.batch["input_ids"].ctypes.data


@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.parametrize("workers", [1, 2])
def test_workers_read_the_rows_of_one_process(dataset: PretrainingDataset, start: str, workers: int) -> None:
    order = dataset.order().tolist()

    def read(**given: Any) -> list[dict[str, Any]]:
        return batches(data.DataLoader(dataset, batch_size=16, sampler=order, collate_fn=dataset.collate, **given))

    expected = read(num_workers=0)
    found = read(num_workers=workers, multiprocessing_context=start)
    assert len(found) == len(expected)
    for batch, other in zip(found, expected, strict=True):
        assert set(batch) == set(other)
        for name, array in other.items():
            np.testing.assert_array_equal(batch[name], array, err_msg=name)


def test_masks_change_with_the_epoch_in_workers_too(dataset: PretrainingDataset) -> None:
    seen = []
    for epoch in (0, 1, 0):
        dataset.set_epoch(epoch)
        loader = data.DataLoader(dataset, batch_size=8, num_workers=2, collate_fn=dataset.collate)
        seen.append(np.asarray(next(iter(loader))["labels"]))
    assert not np.array_equal(seen[0], seen[1])
    np.testing.assert_array_equal(seen[0], seen[2])


@pytest.mark.parametrize("name", ["BertForPreTraining", "BertForMaskedLM"])
def test_transformers_loads_what_was_pretrained(name: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    pairs = name == "BertForPreTraining"
    tok = tokenizer()
    store = build_token_store(tok, DATA / "corpus.txt", tmp_path / "store")
    build_examples(store, tmp_path / "rows", tok, max_length=32, objective="nsp" if pairs else "full-sentences")
    rows = PretrainingDataset(tmp_path / "rows", masking=Masking(tok))
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    config = BertConfig(vocab_size=len(tok), max_position_embeddings=32, **sizes)
    settings = TrainingArguments(tmp_path / "checkpoints", max_steps=3, learning_rate=1e-2, save_strategy="no")
    trainer = PretrainingTrainer(new_model(config, pairs=pairs), settings, PretrainingRows(rows), tokenizer=tok)
    trainer.train()
    trainer.save_model(tmp_path / "model")
    loaded, report = getattr(transformers, name).from_pretrained(tmp_path / "model", output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    batch = rows.batch(range(4))
    expected: Any = trainer.model(**batch)
    with torch.no_grad():
        out = loaded.eval()(**{key: torch.from_numpy(value) for key, value in batch.items()})
    assert float(out.loss) == pytest.approx(float(expected.loss), rel=1e-5)
    words = out.prediction_logits if pairs else out.logits
    ours = expected.prediction_logits if pairs else expected.logits
    visible = batch["attention_mask"] == 1
    np.testing.assert_allclose(words.numpy()[visible], ours[visible], atol=1e-4)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "model")
    assert theirs("bami gu")["input_ids"] == tok.encode_ids("bami gu").tolist()

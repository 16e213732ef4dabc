"""Example folders written with NumPy alone from rows of the slow reference, and a small tokenizer for them."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import pretraining_reference as reference
import wordpiece_bert as wb
from test_pretraining_reference import SPECIAL, TOKENS, store

LABELS = {"nsp": "next_sentence_label", "sop": "sentence_order_label"}
DTYPES = {
    **dict.fromkeys(("row_offsets", "masked_offsets", "sequence_offsets"), "<i8"),
    **dict.fromkeys(("second_starts", "masked_positions", "sequence_lengths"), "<u2"),
    "pair_labels": "u1",
}


@lru_cache
def tokenizer(prefix: str = "##") -> wb.Tokenizer:
    """The tokenizer of the worked examples, with another prefix in place of ``##``."""
    tokens = [token.replace("##", prefix) for token in TOKENS]
    return wb.Tokenizer.from_vocab(tokens, continuing_subword_prefix=prefix)


def vocabulary(tok: wb.Tokenizer, prefix: str = "##") -> reference.Vocabulary:
    """What masking needs to know of a tokenizer, from its public methods."""
    special = set(tok.all_special_ids)
    plain = tok.get_vocab(with_added_tokens=False)
    assert tok.mask_token_id is not None
    return reference.Vocabulary(
        special=special,
        continues={i for token, i in plain.items() if token.startswith(prefix) and i not in special},
        ordinary=sorted(set(tok.get_vocab().values()) - special),
        mask=tok.mask_token_id,
    )


#: A row is a list of sequences: one, or several if rows are packed.
Rows = list[list[reference.Row]]


def rows_of_each_shard(options: reference.Options, packing: int | None = None) -> list[Rows]:
    """The rows of the worked store, by pass and shard."""
    found = []
    for shards in reference.rows_of(store(), SPECIAL, options, Counter()):
        for rows in shards:
            if packing is None:
                found.append([[row] for row in rows])
            else:
                numbers = reference.packed([len(row.ids) for row in rows], packing)
                found.append([[rows[number] for number in row] for row in numbers])
    return found


def write_examples(
    folder: Path,
    shards: Sequence[Rows],
    objective: str,
    row_length: int,
    *,
    packing: bool = False,
    masks: Sequence[Any] | None = None,
) -> Path:
    """Write an example folder, as the specification describes it."""
    folder.mkdir(parents=True)
    entries = []
    for number, rows in enumerate(shards):
        arrays = reference.folder_arrays(rows, packing=packing, masks=None if masks is None else masks[number])
        files = {}
        for name, values in arrays.items():
            path = folder / f"0-{number:05}.{name}.npy"
            np.save(path, np.array(values, DTYPES.get(name, "<u2")))
            data = path.read_bytes()
            files[name] = {"name": path.name, "bytes": len(data), "crc32": f"{zlib.crc32(data):08x}"}
        entries.append({"rows": len(rows), "files": files})
    index = {
        "format": "wordpiece-bert examples",
        "version": 1,
        "dtype": "uint16",
        "objective": objective,
        "row_length": row_length,
        "pad_token_id": 0,
        "options": {"max_length": row_length},
        "report": {"rows": sum(entry["rows"] for entry in entries)},
        "shards": entries,
    }
    (folder / "index.json").write_text(json.dumps(index))
    return folder


def expected_batch(
    rows: Sequence[list[reference.Row]],
    objective: str,
    length: int,
    masks: Sequence[tuple[list[int], list[int], dict[int, str]]] | None,
    *,
    packing: bool = False,
) -> dict[str, np.ndarray]:
    """The padded arrays of a batch."""
    shape = (len(rows), length)
    found = {name: np.zeros(shape, np.int64) for name in ("input_ids", "token_type_ids")}
    if masks is not None:
        found["labels"] = np.full(shape, -100)
    if packing:
        found["position_ids"] = np.zeros(shape, np.int64)
        found["attention_mask"] = np.zeros((len(rows), 1, length, length), np.bool_)
    else:
        found["attention_mask"] = np.zeros(shape, np.int64)
    labels = []
    for number, row in enumerate(rows):
        at = 0
        for sequence in row:
            end = at + len(sequence.ids)
            found["input_ids"][number, at:end] = sequence.ids
            found["token_type_ids"][number, at:end] = sequence.token_type_ids
            labels.append(sequence.label)
            if packing:
                found["position_ids"][number, at:end] = range(end - at)
                found["attention_mask"][number, 0, at:end, at:end] = True
            else:
                found["attention_mask"][number, at:end] = 1
            at = end
        if masks is not None:
            found["input_ids"][number, :at] = masks[number][0]
            found["labels"][number, :at] = masks[number][1]
    if objective in LABELS:
        found[LABELS[objective]] = np.array(labels, np.int64)
    return found

"""What engines of padded batches have in common: batches of the longest row's length, mean pooling, the tokenizer."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

BATCH = 32


class PaddedEngine:
    """An engine that computes the hidden states of padded batches; the tokenizer is Hugging Face's."""

    tokenizer: Any = None
    #: How many batches run side by side. With more than one, `hidden` is called by as many threads.
    streams = 1

    def hidden(self, ids: Any, mask: Any) -> Any:
        """Return the last hidden states [B, S, H] of ids and mask, int64 [B, S]; overridden by engines."""
        raise NotImplementedError

    def load_tokenizer(self, folder: Path) -> None:
        """Load tokenizer.json, if the folder has one."""
        if (folder / "tokenizer.json").exists():
            from tokenizers import Tokenizer

            self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
            self.tokenizer.enable_truncation(256)
            self.tokenizer.enable_padding()

    def forward(self, rows: list[list[int]], batch: int) -> Any:
        """Return the mean-pooled vectors [n, H] of rows of ids, in batches of the given order."""
        return self._each(_padded(rows, batch))

    def texts(self, texts: list[str]) -> Any:
        """Return unit vectors of texts, in batches of the given order."""
        x = self._each(self._tokenized(texts))
        return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)

    def _tokenized(self, texts: list[str]) -> Iterator[tuple[Any, Any]]:
        """Yield ids and mask of each batch."""
        for start in range(0, len(texts), BATCH):
            encodings = self.tokenizer.encode_batch(texts[start : start + BATCH])
            ids = np.array([encoding.ids for encoding in encodings], np.int64)
            yield ids, np.array([encoding.attention_mask for encoding in encodings], np.int64)

    def _each(self, batches: Iterator[tuple[Any, Any]]) -> Any:
        """Return the vectors of all batches, which threads take one by one if there are streams."""
        if self.streams == 1:
            return np.concatenate([self._pooled(batch) for batch in batches])
        return np.concatenate(self.side_by_side(batches))

    def side_by_side(self, batches: Iterator[tuple[Any, Any]]) -> list[Any]:
        """Return the vectors of each batch, of which as many run at once as there are streams."""
        with ThreadPoolExecutor(self.streams) as pool:
            return list(pool.map(self._pooled, batches))

    def _pooled(self, batch: tuple[Any, Any]) -> Any:
        ids, mask = batch
        return pooled(self.hidden(ids, mask), mask)


def pooled(x: Any, mask: Any) -> Any:
    """Return the mean-pooled vectors [B, H] of hidden states [B, S, H]."""
    if mask.all():
        return x.mean(axis=1)
    return (x * mask[:, :, None].astype(x.dtype)).sum(axis=1) / mask.sum(axis=1, keepdims=True)


def _padded(rows: list[list[int]], batch: int) -> Iterator[tuple[Any, Any]]:
    """Yield ids and mask of each batch, as long as its longest row."""
    for start in range(0, len(rows), batch):
        part = rows[start : start + batch]
        ids, mask = np.zeros((2, len(part), max(map(len, part))), np.int64)
        for i, row in enumerate(part):
            ids[i, : len(row)], mask[i, : len(row)] = row, 1
        yield ids, mask

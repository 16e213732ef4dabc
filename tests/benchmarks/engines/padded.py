"""What engines of padded batches have in common: batches of the longest row's length, mean pooling, the tokenizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

BATCH = 32


class PaddedEngine:
    """An engine that computes the hidden states of padded batches; the tokenizer is that of Hugging Face."""

    tokenizer: Any = None

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
        vectors = []
        for start in range(0, len(rows), batch):
            part = rows[start : start + batch]
            ids, mask = np.zeros((2, len(part), max(map(len, part))), np.int64)
            for i, row in enumerate(part):
                ids[i, : len(row)], mask[i, : len(row)] = row, 1
            vectors.append(self._pooled(ids, mask))
        return np.concatenate(vectors)

    def texts(self, texts: list[str]) -> Any:
        """Return unit vectors of texts, in batches of the given order."""
        vectors = []
        for start in range(0, len(texts), BATCH):
            encodings = self.tokenizer.encode_batch(texts[start : start + BATCH])
            ids = np.array([encoding.ids for encoding in encodings], np.int64)
            mask = np.array([encoding.attention_mask for encoding in encodings], np.int64)
            vectors.append(self._pooled(ids, mask))
        x = np.concatenate(vectors)
        return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)

    def _pooled(self, ids: Any, mask: Any) -> Any:
        x = self.hidden(ids, mask)
        if mask.all():
            return x.mean(axis=1)
        return (x * mask[:, :, None].astype(x.dtype)).sum(axis=1) / mask.sum(axis=1, keepdims=True)

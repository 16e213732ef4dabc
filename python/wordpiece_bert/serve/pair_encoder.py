"""Rows of a query with each of many documents, where every text is tokenized once, of pairs, and of single texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wordpiece_bert.errors import ConfigError
from wordpiece_bert.sentence.rows import check_token_types
from wordpiece_bert.tokenizer.subword import SubwordTokenizer, model_encodings

if TYPE_CHECKING:
    import numpy.typing as npt

    from wordpiece_bert.tokenizer.subword import AnyTokenizer

    Ids = npt.NDArray[np.uint32]


class PairRow:
    """A row for the model, with the names of an encoding."""

    __slots__ = ("ids", "token_type_ids")

    def __init__(self, ids: Ids, token_type_ids: Ids) -> None:
        self.ids, self.token_type_ids = ids, token_type_ids

    def __len__(self) -> int:
        return len(self.ids)


class PairRows:
    """The rows of queries with documents, made when they are taken; a single query is the query of every document.

    Attributes
    ----------
    lengths : ndarray of int64
        The number of tokens of each row [n].
    truncated : ndarray of bool
        Which rows are truncated [n].
    """

    def __init__(self, encoder: PairEncoder, queries: list[_Text], documents: list[_Text]) -> None:
        self._encoder, self._queries, self._documents = encoder, queries, documents
        a = np.array([query.kept for query in queries], np.int64)  # [1] or [n]
        b = np.array([document.kept for document in documents], np.int64)
        shortened = np.array([query.shortened for query in queries]) | [document.shortened for document in documents]
        budget = encoder.budget
        # As `tokenizers` truncates "longest_first": a text shorter than half of the row stays, and an odd token is the
        # longer text's, or if they are equally long the second's.
        shorter = np.minimum(np.minimum(a, b), budget // 2)
        self._first = np.where(a + b <= budget, a, np.where(a > b, budget - shorter, shorter))
        self._second = np.where(a + b <= budget, b, np.where(a > b, shorter, budget - shorter))
        self.truncated = (a + b > budget) | shortened
        self.lengths = self._first + self._second + encoder.added

    def __getitem__(self, rows: slice) -> list[PairRow]:
        found = []
        for i in range(*rows.indices(len(self._documents))):
            query = self._queries[i % len(self._queries)]
            found.append(
                self._encoder.row(query.ids, int(self._first[i]), self._documents[i].ids, int(self._second[i]))
            )
        return found


class PairEncoder:
    """Makes the rows that `CrossEncoder.predict` makes of pairs.

    Parameters
    ----------
    tokenizer : Tokenizer or SubwordTokenizer
        The tokenizer.
    max_length : int
        The longest row in tokens, with special tokens.

    Attributes
    ----------
    longest_row, budget, added : int
        The longest row, how many of its tokens are of texts at most, and how many are special.

    Raises
    ------
    ConfigError
        Rows have no room for texts.
    """

    def __init__(self, tokenizer: AnyTokenizer, max_length: int) -> None:
        self._tokenizer = tokenizer
        self.longest_row = max_length
        self.added = tokenizer.num_special_tokens_to_add(pair=True)
        self.budget = max_length - self.added
        if self.budget < 1:
            raise ConfigError(f"rows of {max_length} tokens have no room for texts: {self.added} tokens are special")
        self._keeps_end = tokenizer.truncation_side == "left"
        # What the template makes of two texts: special tokens with their types, and 0 or 1 for the texts.
        row = model_encodings(tokenizer, tokenizer.encodings([("a", "a")], truncation=False, padding=False))[0]
        self._template: list[tuple[int | None, int, int]] = []
        for sequence, id_, type_id in zip(row.sequence_ids, row.ids, row.token_type_ids, strict=True):
            last = self._template[-1][0] if self._template else None
            if sequence is None or sequence != last:
                self._template.append((sequence, id_, type_id))

    def rows(
        self, queries: list[str], documents: list[str], *, of_query: int | None = None, of_document: int | None = None
    ) -> PairRows:
        """Return the rows of documents, each with its query or the only one, with at most so many tokens of each."""
        return PairRows(self, self._texts(queries, of_query), self._texts(documents, of_document))

    def pairs(self, pairs: list[tuple[str, str]]) -> PairRows:
        """Return the rows of pairs."""
        return self.rows([first for first, _ in pairs], [second for _, second in pairs])

    def singles(self, texts: list[str]) -> tuple[list[PairRow], npt.NDArray[np.bool_]]:
        """Return the rows of single texts, and which are truncated.

        Raises
        ------
        ConfigError
            The tokenizer assigns a token type other than 0 to a single text.
        """
        check_token_types(self._tokenizer, "the model")
        options: dict[str, Any] = {"truncation": True, "max_length": self.longest_row, "stride": 0, "padding": False}
        rows = self._tokenizer.encode_batch(texts, threads=1, **options)
        return [PairRow(ids, np.zeros(len(ids), np.uint32)) for ids in rows], rows.truncated

    def row(self, query: Ids, of_query: int, document: Ids, of_document: int) -> PairRow:
        """Return the row of some tokens of a query and a document."""
        texts = self._kept(query, of_query), self._kept(document, of_document)
        parts = [(np.array([i], np.uint32) if text is None else texts[text], t) for text, i, t in self._template]
        ids = np.concatenate([part for part, _ in parts])
        return PairRow(ids, np.repeat(np.array([t for _, t in parts], np.uint32), [len(part) for part, _ in parts]))

    def _kept(self, ids: Ids, count: int) -> Ids:
        return ids[max(0, len(ids) - count) :] if self._keeps_end else ids[:count]

    def _texts(self, texts: list[str], most: int | None = None) -> list[_Text]:
        """Tokenize texts; of each the tokens that a row can have, and the number of all, at most `most`."""
        options: dict[str, Any] = {"add_special_tokens": False, "padding": False, "threads": 1}
        room = self.budget if most is None else min(most, self.budget)
        if isinstance(self._tokenizer, SubwordTokenizer):
            found = [(self._kept(ids, room).copy(), len(ids)) for ids in self._tokenizer.encode_batch(texts, **options)]
        else:
            options |= {"truncation": True, "max_length": room, "stride": 0, "return_n_tokens": True}
            rows = self._tokenizer.encode_batch(texts, **options)
            assert rows.n_tokens is not None, "they are asked for"
            found = [(rows[i], tokens) for i, tokens in enumerate(rows.n_tokens.tolist())]
        return [
            _Text(ids, n if most is None else min(n, most), shortened=most is not None and n > most) for ids, n in found
        ]


class _Text(NamedTuple):
    #: The tokens that a row can have.
    ids: Ids
    #: The number of tokens before a row is filled.
    kept: int
    #: Whether a limit for texts of its kind left out some.
    shortened: bool

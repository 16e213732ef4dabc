"""Search by tokens that queries and documents share (BM25, by the package bm25s), and fusion of several rankings."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from wordpiece_bert._internal.answers import Results
from wordpiece_bert._internal.checks import check_ids, check_instance, check_several, finite_number, whole_number
from wordpiece_bert._internal.texts import check_texts, row_texts
from wordpiece_bert.errors import InputError, MissingPackageError
from wordpiece_bert.sentence.nearest_rows import best_of_scores
from wordpiece_bert.tokenizer.subword import check_tokenizer

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    import numpy.typing as npt

    from wordpiece_bert.sentence.arguments import Texts
    from wordpiece_bert.tokenizer.subword import AnyTokenizer

#: So many texts are tokenized at once.
_TEXTS = 1 << 14


class KeywordHit(TypedDict):
    """A document that `BM25Index.search` found."""

    #: The index of the document.
    corpus_id: int
    #: The sum over the tokens of the query.
    score: float


class BM25Index:
    """Documents by their tokens, for search with BM25; needs the package bm25s.

    The tokens come from a model's tokenizer, so that words of any language and unknown ones count by their pieces,
    and upper case and accents as for the model. The scores are as from bm25s's method ``"lucene"``.

    Parameters
    ----------
    documents : iterable of str or Arrow column
        The texts.
    tokenizer : Tokenizer
        The tokenizer, such as `SentenceEncoder.tokenizer`.
    k1 : float, default 1.5
        How much more a token counts that a document has several times.
    b : float, default 0.75
        How much less a token counts in a long document, from 0 to 1.

    Raises
    ------
    MissingPackageError
        bm25s is not installed.
    InputError
        A document is not a text, or an argument is wrong.

    Examples
    --------
    >>> import wordpiece_bert as wb
    >>> from wordpiece_bert.sentence import BM25Index
    >>> tokenizer = wb.Tokenizer.from_pretrained("models/words")
    >>> index = BM25Index(["bread dough in the oven", "to repair a bicycle"], tokenizer)
    >>> index.search("an oven")[0]["corpus_id"]
    0
    >>> [number for number, _ in index.ranked(["a bicycle"], 1)[0]]
    [1]
    """

    def __init__(self, documents: Texts, tokenizer: AnyTokenizer, *, k1: float = 1.5, b: float = 0.75) -> None:
        try:
            import bm25s
        except ImportError as cause:
            raise MissingPackageError("BM25 needs the package bm25s: pip install 'wordpiece-bert[bm25]'") from cause
        k1, b = finite_number("k1", k1, least=0.0), finite_number("b", b, least=0.0)
        if b > 1:
            raise InputError(f"b must be from 0 to 1, not {b}")
        check_tokenizer(tokenizer)
        texts = check_texts(documents)[1]
        self._tokenizer = tokenizer
        self._count = len(texts)
        parts = [_tokens(tokenizer, texts[start : start + _TEXTS]) for start in range(0, len(texts), _TEXTS)]
        flat = np.concatenate([np.zeros(0, np.uint32), *(ids for ids, _ in parts)])
        lengths = np.concatenate([np.zeros(0, np.int64), *(sizes for _, sizes in parts)])
        self._known, numbers = np.unique(flat, return_inverse=True)
        self._index: Any = None
        if len(flat):
            self._index = bm25s.BM25(k1=k1, b=b, method="lucene")
            ends = np.cumsum([0, *lengths]).tolist()
            listed = numbers.tolist()
            rows = [listed[start:end] for start, end in pairwise(ends)]
            vocabulary = {str(token): number for number, token in enumerate(self._known.tolist())}
            self._index.index((rows, vocabulary), show_progress=False)

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"BM25Index({self._count:,} documents, {len(self._known):,} tokens)"

    def search(self, queries: str | Texts, top_k: int = 10) -> Any:
        """Find the documents with the highest scores.

        Parameters
        ----------
        queries : str, iterable of str or Arrow column
            A query, or several.
        top_k : int, default 10
            How many documents to return for each; fewer if not as many have a token of the query.

        Returns
        -------
        list of list of KeywordHit
            For each query dicts with ``corpus_id`` and ``score``, the highest score first, of equal ones the lower
            number; for a single query its list.

        Raises
        ------
        InputError
            A query is not a text, or `top_k` is wrong.
        """
        single, asked = check_texts(queries)
        top_k = whole_number("top_k", top_k, 1)
        found = Results(
            Results(KeywordHit(corpus_id=row, score=score) for row, score in one) for one in self.ranked(asked, top_k)
        )
        return found[0] if single else found

    def ranked(self, queries: Sequence[str], top_k: int) -> list[list[tuple[int, float]]]:
        """Return the numbers and scores of the best documents for each query, as `search` does.

        Parameters
        ----------
        queries : sequence of str
            The queries.
        top_k : int
            How many documents to return for each.

        Returns
        -------
        list of list of (int, float)
            The numbers and scores for each query, the highest score first.
        """
        queries, top_k = row_texts("queries", queries), whole_number("top_k", top_k, 0)
        if self._index is None or not queries:
            return [[] for _ in queries]
        ids, lengths = _tokens(self._tokenizer, queries)
        ends = np.cumsum([0, *lengths])
        found = []
        for start, end in pairwise(ends.tolist()):
            own = ids[start:end]
            numbers = np.searchsorted(self._known, own)
            known = numbers < len(self._known)
            known[known] = self._known[numbers[known]] == own[known]
            scores = self._index.get_scores_from_ids(numbers[known].tolist())
            rows, values = best_of_scores(scores[None], top_k)
            found.append(
                [(row, score) for row, score in zip(rows[0].tolist(), values[0].tolist(), strict=True) if score]
            )
        return found


def _tokens(tokenizer: AnyTokenizer, texts: Sequence[str]) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
    """Return the ids of the tokens of some texts without special tokens, and the number of each text's."""
    rows = tokenizer.encode_batch(list(texts), return_offsets=True, truncation=False, padding=False)
    assert rows.offsets is not None
    own = rows.offsets[:, 1] > rows.offsets[:, 0]  # special tokens have no characters
    before = np.concatenate([[0], np.cumsum(own)])
    return rows.ids[own], np.diff(before[rows.row_offsets])


def reciprocal_rank_fusion(rankings: Iterable[Iterable[Hashable]], k: float = 60) -> list[tuple[Any, float]]:
    """Join several rankings of the same things to one: what stands high in several of them stands high in it.

    The score is Σ 1 / (k + rank) over the rankings in which a thing is, with ranks from 1 (Cormack, Clarke and
    Büttcher, "Reciprocal rank fusion outperforms Condorcet and individual rank learning methods", 2009).

    Parameters
    ----------
    rankings : iterable of iterables
        Each has things, such as the ids of documents, the best first.
    k : float, default 60
        The greater, the less the first ranks count.

    Returns
    -------
    list of (object, float)
        Each thing with its score, the highest first; of equal scores the one that comes first in the rankings.

    Raises
    ------
    InputError
        `k` is below 0, or a ranking is a str or has a thing twice.

    Examples
    --------
    >>> from wordpiece_bert.sentence import reciprocal_rank_fusion
    >>> [name for name, _ in reciprocal_rank_fusion([["a", "b", "c"], ["b", "d"]])]
    ['b', 'a', 'd', 'c']
    """
    k = finite_number("k", k, least=0.0)
    scores: dict[Any, float] = {}
    check_instance("rankings", rankings, Iterable, "a list of rankings")
    for number, ranking in enumerate(rankings):
        check_several(f"rankings[{number}]", ranking, "a list of ids, the best first")
        things = list(ranking)
        check_ids(f"rankings[{number}]", things)
        if len(set(things)) != len(things):
            raise InputError(f"rankings[{number}] has a thing twice")
        for rank, thing in enumerate(things, 1):
            scores[thing] = scores.get(thing, 0.0) + 1 / (k + rank)
    return sorted(scores.items(), key=lambda item: -item[1])


def fused_rows(
    first: Sequence[Sequence[tuple[int, float]]], second: Sequence[Sequence[tuple[int, float]]]
) -> list[list[tuple[int, float]]]:
    """Fuse two rankings of each query, of rows with their scores."""
    return [
        reciprocal_rank_fusion([[row for row, _ in one], [row for row, _ in other]])
        for one, other in zip(first, second, strict=True)
    ]

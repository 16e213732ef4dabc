"""BM25 and fusion: a slow computation of the formulas, fused searches, folders and the command."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from make_models import make_static

from tiny_models import make_ranker
from vector_folders import WORDS
from wordpiece_bert.cli import main
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence import (
    BM25Index,
    CrossEncoder,
    SentenceEncoder,
    open_vectors,
    reciprocal_rank_fusion,
    retrieve_and_rerank,
    write_vectors,
)

pyarrow = pytest.importorskip("pyarrow")
pytest.importorskip("bm25s")

QUERIES = ["the cat and the bread", "Poland zebra", "", "zebra", "OVEN"]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    make_static(folder / "static")
    make_ranker(folder / "ranker")
    return folder


@pytest.fixture(scope="module")
def texts() -> list[str]:
    random = np.random.default_rng(2)
    return [" ".join(random.choice(WORDS, random.integers(0, 12))) for _ in range(80)]


def slow_scores(query: str, texts: list[str], tokenizer: Any, k1: float, b: float) -> list[float]:
    """BM25 as Lucene computes it, from the formula."""

    def tokens(text: str) -> list[int]:
        encoding = tokenizer.encode(text)
        return [i for i, special in zip(encoding.ids, encoding.special_tokens_mask, strict=True) if not special]

    counts = [Counter(tokens(text)) for text in texts]
    lengths = [sum(one.values()) for one in counts]
    mean = sum(lengths) / len(lengths)
    scores = []
    for count, length in zip(counts, lengths, strict=True):
        score = 0.0
        for token in tokens(query):
            containing = sum(token in other for other in counts)
            if count[token]:
                idf = math.log(1 + (len(texts) - containing + 0.5) / (containing + 0.5))
                score += idf * count[token] / (count[token] + k1 * (1 - b + b * length / mean))
        scores.append(score)
    return scores


@pytest.mark.parametrize(("k1", "b"), [(1.5, 0.75), (0.9, 0.4), (0.5, 0.0)])
def test_scores_are_those_of_the_formula(models: Path, texts: list[str], k1: float, b: float) -> None:
    tokenizer = SentenceEncoder(models / "static").tokenizer
    index = BM25Index(texts, tokenizer, k1=k1, b=b)
    assert len(index) == len(texts)
    for query, hits in zip(QUERIES, index.search(QUERIES, len(texts)), strict=True):
        scores = slow_scores(query, texts, tokenizer, k1, b)
        order = sorted((row for row in range(len(texts)) if scores[row]), key=lambda row: (-round(scores[row], 5), row))
        found = sorted(hits, key=lambda hit: (-round(hit["score"], 5), hit["corpus_id"]))
        assert [hit["corpus_id"] for hit in found] == order
        np.testing.assert_allclose([hit["score"] for hit in found], [scores[row] for row in order], atol=1e-5)
        assert index.search(query, 3) == hits[:3]
    empty = BM25Index(["", ""], tokenizer)
    assert empty.search("cat") == []
    assert BM25Index([], tokenizer).search(["cat"]) == [[]]
    with pytest.raises(InputError, match="b must be from 0 to 1, not 2"):
        BM25Index(texts, tokenizer, b=2)
    with pytest.raises(InputError, match="tokenizer must be a Tokenizer, such as the tokenizer of an encoder, not str"):
        BM25Index(texts, "minilm")  # type: ignore[arg-type]


@given(st.lists(st.lists(st.integers(0, 9), unique=True, max_size=8), max_size=4), st.floats(0, 100))
def test_fusion_is_that_of_the_paper(rankings: list[list[int]], k: float) -> None:
    expected: dict[int, float] = {}
    for ranking in rankings:
        for place, thing in enumerate(ranking, 1):
            expected[thing] = expected.get(thing, 0) + 1 / (k + place)
    found = reciprocal_rank_fusion(rankings, k)
    assert dict(found) == expected
    assert [score for _, score in found] == sorted(expected.values(), reverse=True)


def test_fusion_refuses_what_is_no_ranking() -> None:
    with pytest.raises(InputError, match=r"rankings\[1\] has a thing twice"):
        reciprocal_rank_fusion([["a"], ["b", "b"]])
    with pytest.raises(InputError, match="k must be"):
        reciprocal_rank_fusion([["a"]], k=-1)


def test_vectors_and_words_are_fused(models: Path, texts: list[str], tmp_path: Path) -> None:
    encoder, ranker = SentenceEncoder(models / "static"), CrossEncoder(models / "ranker")
    index = BM25Index(texts, encoder.tokenizer)
    vectors = retrieve_and_rerank(QUERIES, texts, encoder, top_k=20)
    words = retrieve_and_rerank(QUERIES, texts, index, top_k=20)
    both = retrieve_and_rerank(QUERIES, texts, encoder, keywords=index, retrieve_top_k=20, top_k=7)
    ranked = retrieve_and_rerank(QUERIES, texts, encoder, ranker, keywords=index, retrieve_top_k=20, top_k=5)
    assert words == [[{**hit, "text": texts[hit["corpus_id"]]} for hit in one] for one in index.search(QUERIES, 20)]
    table = pyarrow.table({"number": range(len(texts)), "body": texts})
    columns: dict[str, Any] = {"id_column": "number", "text_column": "body"}
    write_vectors(table, tmp_path / "v", encoder, keep=["body"], **columns)
    folder = open_vectors(tmp_path / "v")
    for number, one in enumerate(both):
        orders = [[hit["corpus_id"] for hit in some[number]] for some in (vectors, words)]
        fused = reciprocal_rank_fusion(orders)
        assert [(hit["corpus_id"], hit["score"]) for hit in one] == fused[:7]
        assert {hit["corpus_id"] for hit in ranked[number]} <= {row for row, _ in fused[:20]}
    for mode, expected in (("bm25", words), ("hybrid", both)):
        found = folder.search(QUERIES, len(expected[0]), mode=mode, candidates=20)
        for one, other in zip(found, expected, strict=True):
            assert [(hit["id"], hit["score"], hit["body"]) for hit in one] == [
                (hit["corpus_id"], pytest.approx(hit["score"], abs=1e-6), hit["text"]) for hit in other[: len(one)]
            ]
    found = folder.search(QUERIES, 5, mode="hybrid", candidates=20, reranker=ranker, fields=[])
    for one, other in zip(found, ranked, strict=True):
        assert [hit["id"] for hit in one] == [hit["corpus_id"] for hit in other]
        assert [hit["retrieval_score"] for hit in one] == [hit["retrieval_score"] for hit in other]
    with pytest.raises(InputError, match="the BM25Index has 80 documents, but there are 79"):
        retrieve_and_rerank(QUERIES, texts[1:], index)
    with pytest.raises(InputError, match="a BM25Index as retriever is used alone"):
        retrieve_and_rerank(QUERIES, texts, index, keywords=index)
    write_vectors(table, tmp_path / "w", encoder, **columns)
    with pytest.raises(InputError, match="BM25 needs the texts"):
        open_vectors(tmp_path / "w").search("cat", mode="bm25")
    with pytest.raises(InputError, match="mode must be"):
        folder.search("cat", mode="words")


def test_the_command_has_the_modes(
    models: Path, texts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("texts.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    encoder = SentenceEncoder(models / "static")
    write_vectors(
        pyarrow.table({"number": range(len(texts)), "body": texts}), "v", encoder,
        id_column="number", text_column="body", keep=["body"],
    )  # fmt: skip
    index = BM25Index(texts, encoder.tokenizer)
    for mode, options in (("bm25", {"retriever": index}), ("hybrid", {"retriever": encoder, "keywords": index})):
        expected = retrieve_and_rerank("the cat", texts, top_k=4, **options)  # type: ignore[arg-type]
        for files, key in ((["texts.txt", "-m", str(models / "static")], "corpus_id"), (["v"], "id")):
            assert main(["search", *files, "--query", "the cat", "--mode", mode, "-k", "4", "--json", "-q"]) == 0
            hits = json.loads(capsys.readouterr().out)["hits"]
            assert [hit[key] for hit in hits] == [hit["corpus_id"] for hit in expected]
            np.testing.assert_allclose([hit["score"] for hit in hits], [hit["score"] for hit in expected], atol=1e-6)
    asked = ["search", "texts.txt", "-m", str(models / "static"), "--query", "cat", "--mode", "bm25"]
    assert main([*asked, "--vectors", "v.npy"]) == 2
    assert "--vectors is not for --mode bm25" in capsys.readouterr().err

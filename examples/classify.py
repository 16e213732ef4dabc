"""Label texts, such as reviews as positive or negative.

    python examples/make_models.py                # makes models/reviews, a toy that knows eight adjectives
    python examples/classify.py models/reviews "A wonderful film!" "The story was dull."

For real texts use a BERT, DistilBERT, ELECTRA, MPNet or ALBERT that was trained to classify, such as
``distilbert/distilbert-base-uncased-finetuned-sst-2-english``: on a machine with network access, ``hf download`` with
this name puts it where it is found by that name.
"""

import argparse
import sys

from wordpiece_bert import tasks


def main() -> None:
    """Print every label of each text with its score."""
    parser = argparse.ArgumentParser(description="Label texts.")
    parser.add_argument("model", help="folder or name of a model that classifies texts")
    parser.add_argument("texts", nargs="+")
    options = parser.parse_args()

    for text, labels in zip(options.texts, tasks.classify(options.model, options.texts, top_k=None), strict=True):
        print(text, "(truncated: too long for the model)" if labels.truncated else "")
        for answer in labels:
            print(f"  {answer['score']:6.3f}  {answer['label']}")


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:  # a missing file or model, a wrong argument: a sentence
        sys.exit(f"error: {error}")

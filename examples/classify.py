"""Label texts, such as reviews as positive or negative.

    python examples/classify.py path/to/a/classifier "A wonderful film." "The story was dull."

The model is the folder, or the name in the Hugging Face cache, of a BERT, DistilBERT, ELECTRA, MPNet or ALBERT for text
classification.
"""

import argparse

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
    main()

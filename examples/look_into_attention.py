"""Show where the tokens of a text look: for each of them, the tokens that an attention head takes in most.

python examples/look_into_attention.py "The cat sat on the mat." --layer 2 --head 5
"""

import argparse

import numpy as np

import wordpiece_bert as wb


def main() -> None:
    """Print the strongest weights of one head, or of the mean of all heads of a layer."""
    parser = argparse.ArgumentParser(description="Show where the tokens of a text look.")
    parser.add_argument("text")
    parser.add_argument("--model", default="minilm", help="folder or name of a model (default: minilm)")
    parser.add_argument("--layer", type=int, default=-1, help="number of the layer, from 0 (default: the last one)")
    parser.add_argument("--head", type=int, help="number of the head, from 0 (default: the mean of all)")
    parser.add_argument("--top", type=int, default=3, help="how many tokens to show for each (default: 3)")
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
    main()

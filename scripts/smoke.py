"""Exercise an installed package, and print what must not depend on how it was built.

    python scripts/smoke.py [--compare FILE [--same-cpu]]

Prints one JSON object: the instruction sets that the package finds on this CPU, and digests of the ids of a few texts
and of the vectors of a small random model. The vectors equal the NumPy engine's within rounding, or it fails. FILE
holds the output of another build: its ids must be the same, and its vectors; in bfloat16, and in int8 with AMX, only
where it found the same instruction sets.
With --same-cpu it was printed on this CPU, so the instruction sets must be the same, too. Needs nothing but the package
and NumPy, and reads no other file of the source tree.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import string
import sys
from pathlib import Path

import numpy as np

import wordpiece_bert as wb
from wordpiece_bert import _core
from wordpiece_bert.bert import BertConfig
from wordpiece_bert.bert.checkpoint import bert_shapes

LETTERS = string.ascii_lowercase + "的一δж،"
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *(f"##{letter}" for letter in LETTERS), "!", "the"]
TEXTS = [
    "",
    "The quick brown fox",
    "naïve café, Übergröße!",
    "的一 x的",
    "дж δ ،",
    "word " * 300,
    "\x00\u200b\ufb01n",
    "🙂",
]


def digest(*values: object) -> str:
    """Return a short digest of values with an exact `repr`."""
    return hashlib.sha256(repr(values).encode()).hexdigest()[:16]


def ids() -> str:
    """Return the digest of what the tokenizer finds, which is the same on every machine."""
    tokenizer = wb.Tokenizer.from_vocab(TOKENS)
    encodings = [(encoding.ids, encoding.offsets, encoding.word_ids) for encoding in tokenizer.encodings(TEXTS)]
    batch = tokenizer.encode_batch(TEXTS)
    assert [row.tolist() for row in batch] == [found[0] for found in encodings], "two calls give different ids"
    return digest(encodings)


def vectors() -> dict[str, str]:
    """Return the digests of the hidden states by dtype."""
    config = BertConfig(
        vocab_size=len(TOKENS), hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128
    )
    random = np.random.default_rng(0)
    weights = {
        name: random.normal(0, 0.1, [getattr(config, n) if isinstance(n, str) else n for n in shape]).astype(np.float32)
        for name, shape in bert_shapes(config).items()
    }
    tokens = random.integers(0, config.vocab_size, (3, 40))
    expected = wb.BertModel(config, weights, backend="numpy")(tokens).last_hidden_state
    digests = {}
    for dtype, tolerance in {"float32": 1e-5, "bfloat16": 0.05, "int8": 0.1}.items():
        found = wb.BertModel(config, weights, dtype=dtype)(tokens).last_hidden_state
        assert np.abs(found - expected).max() < tolerance, f"{dtype}: vectors differ from those of the NumPy engine"
        digests[dtype] = digest(found.tobytes())
    return digests


def main() -> None:
    """Print the digests, and compare them."""
    parser = argparse.ArgumentParser(description="Exercise an installed package.")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="what this printed for another build")
    parser.add_argument("--same-cpu", action="store_true", help="FILE was printed on this CPU")
    arguments = parser.parse_args()
    if arguments.same_cpu and arguments.compare is None:
        parser.error("--same-cpu needs --compare")
    sets = {"tokenizer": _core.Tokenizer.instruction_sets(), "kernels": _core.kernel_instruction_sets()}
    found = {"version": wb.__version__, "instruction_sets": sets, "ids": ids(), "vectors": vectors()}
    print(json.dumps(found, indent=1))
    if arguments.compare is not None:
        expected = json.loads(arguments.compare.read_text("utf-8"))
        compared = ["version", "ids"]
        if arguments.same_cpu:
            compared.append("instruction_sets")
        different = [name for name in compared if expected[name] != found[name]]
        for dtype, of_dtype in found["vectors"].items():
            depends = dtype == "bfloat16" or (dtype == "int8" and "amx" in f"{sets}{expected['instruction_sets']}")
            is_compared = not depends or expected["instruction_sets"] == sets
            if is_compared and expected["vectors"][dtype] != of_dtype:
                different.append(f"vectors in {dtype}")
        if different:
            sys.exit(f"{', '.join(different)} differ from those of {arguments.compare}: {json.dumps(expected)}")


if __name__ == "__main__":
    main()

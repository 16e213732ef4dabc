"""Reads the files of a model folder into named, checked weights.

`find_weights` chooses the file, `read_tensors` reads it, and `resolve` finds a model's weights among its tensors.
Models open a file with `files.open_tensors`, and read each tensor when they need it. `write_safetensors` writes
tensors; `non_finite` counts NaN and infinities.

Stability: provisional.
"""

from wordpiece_bert.bert.checkpoint.files import find_weights, non_finite, read_tensors
from wordpiece_bert.bert.checkpoint.names import Layout, Resolved, bert_shapes, listed, resolve
from wordpiece_bert.bert.checkpoint.safetensors import write_safetensors

__all__ = [
    "Layout",
    "Resolved",
    "bert_shapes",
    "find_weights",
    "listed",
    "non_finite",
    "read_tensors",
    "resolve",
    "write_safetensors",
]

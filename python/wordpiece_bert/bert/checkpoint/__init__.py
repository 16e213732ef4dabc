"""From the files of a model folder to named, checked weights.

`find_weights` picks the file, `read_tensors` reads it, `resolve` finds a model's weights among its tensors.
"""

from wordpiece_bert.bert.checkpoint.files import find_weights, read_tensors
from wordpiece_bert.bert.checkpoint.names import Resolved, bert_shapes, listed, resolve

__all__ = ["Resolved", "bert_shapes", "find_weights", "listed", "read_tensors", "resolve"]

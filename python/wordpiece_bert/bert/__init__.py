"""BERT on the CPU: configuration, checkpoint, arithmetic, model.

Start with `functional`, which has the formulas; `model` puts them together.
"""

from wordpiece_bert.bert.config import BertConfig
from wordpiece_bert.bert.model import BertModel, BertOutput

__all__ = ["BertConfig", "BertModel", "BertOutput"]

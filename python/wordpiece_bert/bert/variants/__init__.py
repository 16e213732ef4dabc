"""Encoders that differ from BERT, a module for each family.

The classes have the names that transformers gives them. `wordpiece_bert.bert.families` lists them.
"""

from wordpiece_bert._internal.lazy import lazy_names
from wordpiece_bert.bert.families import class_modules

TYPE_CHECKING = False  # as in the package `wordpiece_bert`
if TYPE_CHECKING:
    from wordpiece_bert.bert.variants.albert import *
    from wordpiece_bert.bert.variants.camembert import *
    from wordpiece_bert.bert.variants.data2vec import *
    from wordpiece_bert.bert.variants.deberta_v2 import *
    from wordpiece_bert.bert.variants.distilbert import *
    from wordpiece_bert.bert.variants.dpr import *
    from wordpiece_bert.bert.variants.electra import *
    from wordpiece_bert.bert.variants.ernie import *
    from wordpiece_bert.bert.variants.gte import *
    from wordpiece_bert.bert.variants.jina import *
    from wordpiece_bert.bert.variants.megatron import *
    from wordpiece_bert.bert.variants.modernbert import *
    from wordpiece_bert.bert.variants.mpnet import *
    from wordpiece_bert.bert.variants.neobert import *
    from wordpiece_bert.bert.variants.nomic import *
    from wordpiece_bert.bert.variants.roberta import *
    from wordpiece_bert.bert.variants.xlm_roberta_xl import *

_MODULES = class_modules(__name__)

__getattr__, __dir__ = lazy_names(globals(), _MODULES)

"""Encoders that differ from BERT, a module for each family.

The classes have the names that transformers gives them. `wordpiece_bert.bert.family_table` lists them.
"""

from wordpiece_bert._internal.lazy import lazy_names
from wordpiece_bert.bert.family_table import class_modules

TYPE_CHECKING = False  # as in the package `wordpiece_bert`
if TYPE_CHECKING:
    from wordpiece_bert.bert.families.albert import *
    from wordpiece_bert.bert.families.camembert import *
    from wordpiece_bert.bert.families.data2vec import *
    from wordpiece_bert.bert.families.deberta_v2 import *
    from wordpiece_bert.bert.families.distilbert import *
    from wordpiece_bert.bert.families.dpr import *
    from wordpiece_bert.bert.families.electra import *
    from wordpiece_bert.bert.families.ernie import *
    from wordpiece_bert.bert.families.gte import *
    from wordpiece_bert.bert.families.jina import *
    from wordpiece_bert.bert.families.megatron import *
    from wordpiece_bert.bert.families.modernbert import *
    from wordpiece_bert.bert.families.mpnet import *
    from wordpiece_bert.bert.families.neobert import *
    from wordpiece_bert.bert.families.nomic import *
    from wordpiece_bert.bert.families.roberta import *
    from wordpiece_bert.bert.families.xlm_roberta import *
    from wordpiece_bert.bert.families.xlm_roberta_xl import *

_MODULES = class_modules(__name__)

__getattr__, __dir__ = lazy_names(globals(), _MODULES)

"""BERT with a head for one task.

`head_model` has what all heads share, `kinds` the heads for any encoder, `bert` the classes of BERT itself; the
classes of its variants are in `wordpiece_bert.bert.families`.
"""

from wordpiece_bert._internal.lazy import lazy_names
from wordpiece_bert.bert.family_table import class_modules

TYPE_CHECKING = False  # as in the package `wordpiece_bert`
if TYPE_CHECKING:
    from wordpiece_bert.bert.heads.bert import *

_MODULES = class_modules(__name__)

__getattr__, __dir__ = lazy_names(globals(), _MODULES)

"""BERT on the CPU: configuration, checkpoints, arithmetic, model, heads and variants.

Start reading with `functional`, which has the formulas. `plan` has a model's layers as data, `engines` run them,
`model` checks the inputs and calls an engine, and `heads` and `families` build on `model`. `family_table` lists the
models that can be loaded.

Stability: stable.
"""

from wordpiece_bert._internal.lazy import lazy_names
from wordpiece_bert.bert.family_table import class_modules

TYPE_CHECKING = False  # as in the package `wordpiece_bert`
if TYPE_CHECKING:
    from wordpiece_bert.bert.auto import AutoModel as AutoModel
    from wordpiece_bert.bert.base_model import Model as Model
    from wordpiece_bert.bert.config import BertConfig as BertConfig
    from wordpiece_bert.bert.families import *
    from wordpiece_bert.bert.heads import *
    from wordpiece_bert.bert.model import BertModel as BertModel
    from wordpiece_bert.bert.outputs import *

# The module of each name, imported when the name is first used: a model needs neither the heads nor the other variants.
_MODULES = {
    "AutoModel": "auto",
    "BertConfig": "config",
    "BertOutput": "outputs",
    "DPREncoderOutput": "outputs",
    "DPRReaderOutput": "outputs",
    "HeadOutput": "outputs",
    "Model": "base_model",
    "PreTrainingOutput": "outputs",
    "QuestionAnsweringOutput": "outputs",
    **class_modules(__name__),
}

__getattr__, __dir__ = lazy_names(globals(), _MODULES, ("checkpoint", "functional"))

"""Comparisons with the libraries that a user comes from, on the user's own texts, before switching.

`verify_tokenizer` compares a tokenizer with the package ``tokenizers``, and `verify_model` a model with
sentence-transformers, transformers or ONNX Runtime, or its smaller dtypes with float32. ``wordpiece-bert verify`` is
both as a command.

Stability: provisional.
"""

from wordpiece_bert._internal.lazy import lazy_names

TYPE_CHECKING = False  # as in the package `wordpiece_bert`
if TYPE_CHECKING:
    from wordpiece_bert.verify.model_check import ModelReport as ModelReport
    from wordpiece_bert.verify.model_check import verify_model as verify_model
    from wordpiece_bert.verify.tokenizer_check import Difference as Difference
    from wordpiece_bert.verify.tokenizer_check import TokenizerReport as TokenizerReport
    from wordpiece_bert.verify.tokenizer_check import verify_tokenizer as verify_tokenizer

# The module of each name, imported when the name is first used.
_MODULES = {
    "Difference": "tokenizer_check",
    "ModelReport": "model_check",
    "TokenizerReport": "tokenizer_check",
    "verify_model": "model_check",
    "verify_tokenizer": "tokenizer_check",
}

__all__ = sorted(_MODULES)

__getattr__, __dir__ = lazy_names(globals(), _MODULES)

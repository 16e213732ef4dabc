"""Looking inside: tokens, attention, causes, positions and vectors, as pictures and as one offline page.

Each function returns a `View`, which shows itself in a notebook and saves itself as HTML, SVG, PNG or JSON. `page` puts
several views into one file.

>>> import wordpiece_bert as wb
>>> from wordpiece_bert import inspect
>>> tokenizer = wb.Tokenizer.from_vocab(
...     ["[UNK]", "[CLS]", "[SEP]", "un", "##afford", "##able"]
... )
>>> view = inspect.tokens(tokenizer, "Unaffordable")
>>> [
...     piece["token"]
...     for piece in view.data["tokenizers"][0]["sides"][0]["words"][0]["pieces"]
... ]
['un', '##afford', '##able']

Stability: provisional.
"""

from wordpiece_bert.inspect import views as _views  # noqa: F401 - registers the kinds
from wordpiece_bert.inspect.attention import attention, neurons, rollout
from wordpiece_bert.inspect.attribution import Attribution, attribute
from wordpiece_bert.inspect.comparison import (
    Comparison,
    TokenizerComparison,
    compare,
    compare_tokenizers,
    comparison,
    tokenizers,
)
from wordpiece_bert.inspect.intervention import Interventions, intervene, interventions
from wordpiece_bert.inspect.language import logit_lens, predictions
from wordpiece_bert.inspect.maps import embedding_map
from wordpiece_bert.inspect.patterns import HABITS, patterns
from wordpiece_bert.inspect.saliency import saliency
from wordpiece_bert.inspect.token_steps import tokens
from wordpiece_bert.inspect.trace import Trace, trace
from wordpiece_bert.inspect.vector_views import positions, similarity, sinusoids, token_similarity
from wordpiece_bert.inspect.view import Page, View, page

__all__ = [
    "HABITS",
    "Attribution",
    "Comparison",
    "Interventions",
    "Page",
    "TokenizerComparison",
    "Trace",
    "View",
    "attention",
    "attribute",
    "compare",
    "compare_tokenizers",
    "comparison",
    "embedding_map",
    "intervene",
    "interventions",
    "logit_lens",
    "neurons",
    "page",
    "patterns",
    "positions",
    "predictions",
    "rollout",
    "saliency",
    "similarity",
    "sinusoids",
    "token_similarity",
    "tokenizers",
    "tokens",
    "trace",
]

"""The section "Examples" of the families' classes, which differ in their names and in what their heads take and return.

`Model` completes the docstring of each class when it is defined, so that ``help()`` and the reference show its own
names. A class whose docstring has examples keeps them.
"""

from __future__ import annotations

import inspect
from typing import NamedTuple

_PACKAGE = "wordpiece_bert."
_HEADING = "Examples\n--------\n"
_SIZES = """\
vocab_size=100, hidden_size=128, num_hidden_layers=2,
...     num_attention_heads=2, intermediate_size=256"""


class _Call(NamedTuple):
    """What an example of a kind of heads passes and shows."""

    #: The arguments of the call.
    arguments: str
    #: What is shown of the output, and its value.
    shown: str
    value: str
    #: The names of the labels, if the head has any.
    labels: str = ""


#: How an output with one array of scores is shown.
_SCORED = "output.logits.shape, output.loss.dtype"
#: The calls, by what follows the name of the family in the name of the class.
_CALLS = {
    "Model": _Call("[[2, 17, 25, 3]]", "output.last_hidden_state.shape", "(1, 4, 128)"),
    "ForMaskedLM": _Call(
        "[[2, 17, 4, 3]], labels=[[-100, -100, 25, -100]]", _SCORED, "((1, 4, 100), dtype('float32'))"
    ),
    "ForSequenceClassification": _Call(
        "[[2, 17, 25, 3], [2, 40, 41, 3]], labels=[0, 2]",
        _SCORED,
        "((2, 3), dtype('float32'))",
        '{0: "good", 1: "fair", 2: "bad"}',
    ),
    "ForTokenClassification": _Call(
        "[[2, 17, 25, 3]], labels=[[-100, 1, 0, -100]]",
        _SCORED,
        "((1, 4, 3), dtype('float32'))",
        '{0: "O", 1: "PER", 2: "LOC"}',
    ),
    "ForQuestionAnswering": _Call(
        "[[2, 17, 3, 25, 26, 27, 3]], start_positions=[3], end_positions=[4]",
        "output.start_logits.shape, output.end_logits.shape",
        "((1, 7), (1, 7))",
    ),
    "ForMultipleChoice": _Call(
        "[[[2, 17, 3, 25, 3], [2, 17, 3, 26, 3]]], labels=[1]", _SCORED, "((1, 2), dtype('float32'))"
    ),
    "ForNextSentencePrediction": _Call(
        "[[2, 17, 3, 25, 3]], token_type_ids=[[0, 0, 0, 1, 1]], labels=[0]", _SCORED, "((1, 2), dtype('float32'))"
    ),
    "ForPreTraining": _Call(
        "[[2, 17, 3, 4, 3]],\n...     labels=[[-100, -100, -100, 25, -100]],\n...     next_sentence_label=[0],",
        "output.prediction_logits.shape, output.seq_relationship_logits.shape",
        "((1, 5, 100), (1, 2))",
    ),
}


def with_example(kind: type, config: str) -> None:
    """Add an example to the docstring of a class of this package, by its name.

    Parameters
    ----------
    kind : type
        The class: for the configuration ``ErnieConfig`` one like ``ErnieModel`` or ``ErnieForMaskedLM``. Others are
        left as they are.
    config : str
        The name of the class of its configuration.
    """
    _, _, rest = kind.__name__.partition(config.removesuffix("Config"))
    call = _CALLS.get(rest)
    own = inspect.cleandoc(kind.__doc__ or "")  # none with python -OO
    if call is not None and kind.__module__.startswith(_PACKAGE) and own and _HEADING not in own:
        kind.__doc__ = f"{own}\n\n{_HEADING}{_example(kind.__name__, config, call)}"


def _example(name: str, config: str, call: _Call) -> str:
    # Arguments of several lines are between lines of their own.
    call_of = f"\n...     {call.arguments}\n... " if "\n" in call.arguments else call.arguments
    labels = f",\n...     id2label={call.labels}," if call.labels else ""
    return f"""\
Weights are drawn here; ``{name}.from_pretrained`` loads those of a trained model.

>>> from wordpiece_bert.bert import {config}
>>> from wordpiece_bert.bert import {name}
>>> config = {config}(
...     {_SIZES}{labels}
... )
>>> model = {name}.from_config(config)
>>> output = model({call_of})
>>> {call.shown}
{call.value}
"""

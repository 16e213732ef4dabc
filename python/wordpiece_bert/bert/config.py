"""The configuration of a BERT model: ``config.json``, checked field by field.

A configuration is untrusted and decides which arrays are expected. So every field that matters has to be what it claims
to be, settings that would ask for other arithmetic than BERT's are refused by name, and names of Python code
(``auto_map`` and the like) are never looked at.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

import numpy as np

from wordpiece_bert._internal.safe_json import quoted, read_object
from wordpiece_bert.bert.functional import ACTIVATIONS
from wordpiece_bert.errors import ConfigError, ModelNotFoundError
from wordpiece_bert.hub import find_model

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wordpiece_bert.bert.functional import Ids

__all__ = ["MOST_LAYERS", "BertConfig", "find_config"]

# The first that exists is read; bert_config.json is the name in Google's own release.
_FILE_NAMES = ("config.json", "bert_config.json")

_PROBLEM_TYPES = ("regression", "single_label_classification", "multi_label_classification")

# Far beyond any model; with these limits no product or loop over a size can do harm before the weights are compared.
_LARGEST_SIZE = 2**31 - 1
MOST_LAYERS = 10_000
_MOST_LABELS = 1_000_000

# Sizes that are numbers of layers.
_COUNTS = ("num_hidden_layers", "num_hidden_groups", "inner_group_num")

# Fields of a config.json that change the numbers in a way not computed here, with the one value that does not.
_MUST_BE: Mapping[str, object] = {
    "is_decoder": False,
    "add_cross_attention": False,
    "position_embedding_type": "absolute",
    "quantization_config": None,
}


@dataclass(frozen=True, kw_only=True)
class BertConfig:
    """What a BERT model is made of; the defaults are those of bert-base-uncased.

    Attributes
    ----------
    vocab_size : int
        V, rows of the word table.
    hidden_size : int
        H, length of a token's vector; a multiple of `num_attention_heads`.
    num_hidden_layers : int
        L.
    num_attention_heads : int
        N.
    intermediate_size : int
        F, width of the feed-forward network.
    hidden_act : str
        Activation of the feed-forward network: a name in `wordpiece_bert.bert.functional.ACTIVATIONS`.
    max_position_embeddings : int
        P, the longest row that the model takes.
    type_vocab_size : int
        T, number of token types (segments).
    layer_norm_eps : float
        ε of every layer norm.
    pad_token_id : int or None
        Id of the padding token. No computation looks at it: what is padding, the attention mask says.
    tie_word_embeddings : bool
        Whether the masked-language head uses the word table.
    id2label : dict of int to str
        Names of a head's labels.
    problem_type : str or None
        The kind of classification, which chooses the loss.
    architectures : tuple of str
        Classes that the checkpoint was saved from.
    model_type : str
        ``"bert"``; a relative's configuration has its own.

    Raises
    ------
    ConfigError
        A field is not what it has to be; the message has its name and value.
    """

    vocab_size: int = 30_522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    layer_norm_eps: float = 1e-12
    pad_token_id: int | None = 0
    tie_word_embeddings: bool = True
    id2label: dict[int, str] = field(default_factory=lambda: {0: "LABEL_0", 1: "LABEL_1"}, hash=False)
    problem_type: str | None = None
    architectures: tuple[str, ...] = ()
    model_type: str = "bert"

    # What the configuration of a relative says otherwise.
    _sizes: ClassVar[tuple[str, ...]] = (
        "vocab_size",
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "intermediate_size",
        "max_position_embeddings",
        "type_vocab_size",
    )
    _names_in_file: ClassVar[Mapping[str, str]] = {}  # of fields whose names in config.json are not those here
    _fixed: ClassVar[tuple[str, ...]] = ()  # fields that config.json does not decide
    _must_be: ClassVar[Mapping[str, object]] = _MUST_BE
    #: Whether the base model has a pooler.
    has_pooler: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.model_type != type(self).model_type:
            why = (
                f"{type(self).__name__} is for {type(self).model_type!r}; AutoModel takes the class that fits a folder"
            )
            _refuse("model_type", self.model_type, why)
        for name in self._sizes:
            value = getattr(self, name)
            largest = MOST_LAYERS if name in _COUNTS else _LARGEST_SIZE
            if not _is_int(value) or not 1 <= value <= largest:
                _refuse(self._in_file(name), value, f"it must be an integer from 1 to {largest}")
        if self.hidden_size % self.num_attention_heads:
            why = f"it must be a multiple of the {self.num_attention_heads} heads"
            _refuse(self._in_file("hidden_size"), self.hidden_size, why)
        if str(self.hidden_act) not in ACTIVATIONS:
            _refuse(self._in_file("hidden_act"), self.hidden_act, f"it must be one of {', '.join(ACTIVATIONS)}")
        if not _is_number(self.layer_norm_eps) or not 0 <= self.layer_norm_eps < math.inf:
            _refuse("layer_norm_eps", self.layer_norm_eps, "it must be a finite number, 0 or above")
        if self.pad_token_id is not None and not _is_int(self.pad_token_id):
            _refuse("pad_token_id", self.pad_token_id, "it must be an integer or null")
        if not isinstance(self.tie_word_embeddings, bool):
            _refuse("tie_word_embeddings", self.tie_word_embeddings, "it must be true or false")
        if self.problem_type is not None and self.problem_type not in _PROBLEM_TYPES:
            _refuse("problem_type", self.problem_type, f"it must be null or one of {', '.join(_PROBLEM_TYPES)}")

    @property
    def head_size(self) -> int:
        """Return d = H / N, the size of one head."""
        return self.hidden_size // self.num_attention_heads

    @property
    def embedding_size(self) -> int:
        """Return E, the width of the embedding tables: H, but for ELECTRA and ALBERT."""
        return self.hidden_size

    @property
    def has_projection(self) -> bool:
        """Return whether the embeddings go through a dense layer from E to H: in ELECTRA and ALBERT."""
        return False

    @property
    def relative_attention_num_buckets(self) -> int:
        """Return how many distances MPNet's attention tells apart; 0 in the others, where it tells none."""
        return 0

    @property
    def encoder_layers(self) -> int:
        """Return how many layers are run: L, but for ALBERT, whose layers may be groups of several."""
        return self.num_hidden_layers

    @property
    def longest_row(self) -> int:
        """Return how many tokens a row may have: P, but for MPNet, which keeps two positions for itself."""
        return self.max_position_embeddings

    @property
    def num_labels(self) -> int:
        """Return the number of labels of a head that classifies."""
        return len(self.id2label)

    def default_positions(self, input_ids: Ids | None, length: int) -> Ids:
        """Return the positions of tokens where a call gives none, [B, S] or [1, S]: 0, 1, 2 … also beside padding."""
        del input_ids  # MPNet looks at them
        return np.arange(length, dtype=np.int64)[None, :]

    def label(self, index: int) -> str:
        """Return the name of a label; ``LABEL_i`` where `id2label` has none."""
        return self.id2label.get(index, f"LABEL_{index}")

    @classmethod
    def from_pretrained(cls, name: str | os.PathLike[str], *, revision: str | None = None) -> Self:
        """Read the configuration of a model; names and errors as in `wordpiece_bert.hub.find_model`."""
        return cls.from_folder(find_model(name, revision=revision))

    @classmethod
    def from_folder(cls, folder: str | os.PathLike[str]) -> Self:
        """Read ``config.json`` of a folder, else ``bert_config.json``, its name in Google's own release."""
        return cls.from_file(find_config(folder))

    @classmethod
    def from_file(cls, file: str | os.PathLike[str]) -> Self:
        """Read one configuration file.

        Raises
        ------
        ConfigError
            The file is not strict JSON of at most 1 MB, or not the configuration of a model that is computed here.
        """
        values = read_object(Path(file), ConfigError)
        try:
            return cls.from_dict(values)
        except ConfigError as error:
            message = f"{os.fspath(file)}: {error}"
            raise ConfigError(message) from None

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Make a configuration of what a ``config.json`` holds; fields that change nothing here are ignored."""
        for name, allowed in cls._must_be.items():
            if values.get(name, allowed) not in (allowed, None):
                _refuse(name, values[name], "a model that needs it is not supported; its numbers would be wrong")
        in_file = {name: cls._in_file(name) for name in cls._read_fields()}
        known = {name: values[key] for name, key in in_file.items() if key in values}
        if known.get("model_type", "") is None:
            del known["model_type"]
        if known.get("id2label") is not None:
            known["id2label"] = _labels(known["id2label"])
        elif values.get("num_labels") is not None:
            known["id2label"] = _numbered(values["num_labels"])
        else:
            known.pop("id2label", None)
        if "architectures" in known:
            known["architectures"] = _names(known["architectures"])
        return cls(**known)

    def to_dict(self) -> dict[str, Any]:
        """Return what a ``config.json`` holds, as transformers reads it."""
        written = {self._in_file(name): getattr(self, name) for name in self._read_fields()}
        written["architectures"] = list(self.architectures)
        written["id2label"] = {str(index): name for index, name in self.id2label.items()}
        written["label2id"] = {name: index for index, name in self.id2label.items()}
        return written

    @classmethod
    def _read_fields(cls) -> list[str]:
        return [field_.name for field_ in fields(cls) if field_.name not in cls._fixed]

    @classmethod
    def _in_file(cls, name: str) -> str:
        """Return what ``config.json`` calls a field."""
        return cls._names_in_file.get(name, name)


def find_config(folder: str | os.PathLike[str]) -> Path:
    """Return the configuration file of a model folder.

    Raises
    ------
    ModelNotFoundError
        There is none.
    """
    for name in _FILE_NAMES:
        if (file := Path(folder) / name).is_file():
            return file
    message = f"{folder} is not a model folder: it has neither {' nor '.join(_FILE_NAMES)}"
    raise ModelNotFoundError(message)


def _labels(value: object) -> dict[int, str]:
    """{"0": "name"} -> {0: "name"}. A map stays a map: an id may be huge without a table of that length."""
    if not isinstance(value, dict):
        _refuse("id2label", value, "it must be an object from ids to names")
    labels: dict[int, str] = {}
    for key, name in value.items():
        if not (_is_int(key) or (isinstance(key, str) and key.isascii() and key.isdecimal() and len(key) <= 18)):
            _refuse("id2label", value, f"the key {quoted(key)} is not an integer")
        if not isinstance(name, str):
            _refuse("id2label", value, f"the name of label {key} is {quoted(name)}, not a string")
        labels[int(key)] = name
    return labels


def _numbered(count: object) -> dict[int, str]:
    """Name labels by their numbers, as transformers does where a configuration says only how many there are."""
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= _MOST_LABELS:
        _refuse("num_labels", count, f"it must be an integer from 1 to {_MOST_LABELS}")
    return {index: f"LABEL_{index}" for index in range(count)}


def _names(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        _refuse("architectures", value, "it must be a list of class names")
    return tuple(value)


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return _is_int(value) or isinstance(value, float)


def _refuse(name: str, value: object, why: str) -> NoReturn:
    message = f"{name} is {quoted(value)}: {why}"
    raise ConfigError(message)

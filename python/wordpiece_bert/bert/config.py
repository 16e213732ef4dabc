"""The configuration of a BERT model: ``config.json``, checked field by field.

A configuration is untrusted, and it determines the shapes of all weights. Every field that is used is checked for its
type and range, settings that need other arithmetic than BERT's are refused by name, and fields that name Python code
(such as ``auto_map``) are never read.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

import numpy as np

from wordpiece_bert._internal.checks import check_instance, real_number
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.safe_json import quoted, read_object
from wordpiece_bert.bert.counted_positions import counted_positions, packed_positions
from wordpiece_bert.bert.functional import ACTIVATIONS
from wordpiece_bert.bert.parameters import LOADING
from wordpiece_bert.bert.plan.building import bert_plan
from wordpiece_bert.bert.quantized import QUANTIZATION
from wordpiece_bert.bert.rotary import LayerPositions
from wordpiece_bert.errors import ConfigError, ModelNotFoundError
from wordpiece_bert.hub import find_model

if TYPE_CHECKING:
    from wordpiece_bert.bert.functional import Ids
    from wordpiece_bert.bert.plan.parts import Plan

# The first of these that exists is read; bert_config.json is the name in Google's releases.
_FILE_NAMES = ("config.json", "bert_config.json")

_PROBLEM_TYPES = ("regression", "single_label_classification", "multi_label_classification")

# Limits far beyond any model, so that no product of sizes or loop over them is harmful before the weights are checked.
LARGEST_SIZE = 2**31 - 1
MOST_LAYERS = 10_000
_MOST_LABELS = 1_000_000

# Fields that count layers; the others are lengths.
_COUNTS = ("num_hidden_layers", "num_hidden_groups", "inner_group_num")

# The fields that are sizes; the number of token types is the last.
SIZES = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
    "type_vocab_size",
)

# Fields of config.json that change the arithmetic, each with the only value that is supported.
MUST_BE: Mapping[str, object] = {
    "is_decoder": False,
    "add_cross_attention": False,
    "position_embedding_type": "absolute",
    "quantization_config": None,
}


@dataclass(frozen=True, kw_only=True)
class BertConfig:
    """The sizes and settings of a BERT model; the defaults describe bert-base-uncased.

    Attributes
    ----------
    vocab_size : int
        V, rows of the word table.
    hidden_size : int
        H, length of a token's vector; a multiple of `num_attention_heads`.
    num_hidden_layers : int
        L, layers of the encoder.
    num_attention_heads : int
        N, heads of each layer.
    intermediate_size : int
        F, width of the feed-forward network.
    hidden_act : str
        Activation of the feed-forward network: a name in `wordpiece_bert.bert.functional.ACTIVATIONS`.
    max_position_embeddings : int
        P, rows of the position table, and so the longest row in tokens.
    type_vocab_size : int
        T, number of token types (segments).
    layer_norm_eps : float
        ε of every layer norm.
    pad_token_id : int or None
        Id of the padding token. It has no effect on results: the attention mask defines what is padding.
    tie_word_embeddings : bool
        Whether the masked-language head uses the word table.
    id2label : dict of int to str
        Names of the labels of a head.
    label2id : dict of str to int, or None
        The labels by name, as a file has them: their order is what `wordpiece_bert.tasks.zero_shot` goes by. None for
        the labels of `id2label`.
    problem_type : str or None
        ``"regression"``, ``"single_label_classification"`` or ``"multi_label_classification"``, which determines the
        loss of a sequence classifier.
    hidden_dropout_prob, attention_probs_dropout_prob : float
        The dropout rates of training: of the outputs of embeddings and sub-layers, and of the attention weights.
    classifier_dropout : float or None
        The dropout rate before a classifier; None for `hidden_dropout_prob`.
    initializer_range : float
        The standard deviation of the weights of a new model or head.
    architectures : tuple of str
        Classes that the checkpoint was saved from.
    model_type : str
        ``"bert"``; the configuration of a variant has another.

    Raises
    ------
    ConfigError
        A field has a wrong type or value; the message has its name and value.

    Examples
    --------
    The defaults describe BERT-base; a smaller model has a quarter of the width and a third of the layers:

    >>> from wordpiece_bert.bert import BertConfig
    >>> config = BertConfig(
    ...     hidden_size=192,
    ...     num_hidden_layers=4,
    ...     num_attention_heads=3,
    ...     intermediate_size=768,
    ... )
    >>> config.head_size, config.longest_row, config.num_labels
    (64, 512, 2)
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
    label2id: dict[str, Any] | None = field(default=None, compare=False)
    problem_type: str | None = None
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    classifier_dropout: float | None = None
    initializer_range: float = 0.02
    architectures: tuple[str, ...] = ()
    model_type: str = "bert"

    # Configurations of variants override the attributes below.
    _sizes: ClassVar[tuple[str, ...]] = SIZES
    _may_be_0: ClassVar[tuple[str, ...]] = ()  # the sizes that may be 0
    _names_in_file: ClassVar[Mapping[str, str]] = {}  # of fields that have another name in config.json
    _fixed: ClassVar[tuple[str, ...]] = ()  # fields that are not in config.json, and have their default
    _unread: ClassVar[tuple[str, ...]] = ()  # other fields that are not in config.json
    _must_be: ClassVar[Mapping[str, object]] = MUST_BE
    #: Whether the base model has a pooler.
    has_pooler: ClassVar[bool] = True
    #: Whether the table of positions has a row for padding, row `pad_token_id`.
    pads_positions: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for one in fields(self):
            object.__setattr__(self, one.name, _plain(getattr(self, one.name)))
        if self.model_type != type(self).model_type:
            why = f"{type(self).__name__} is for {type(self).model_type!r}; AutoModel chooses the class for a folder"
            refuse("model_type", self.model_type, why)
        for name in self._sizes:
            value = getattr(self, name)
            least = 0 if name in self._may_be_0 else 1
            largest = MOST_LAYERS if name in _COUNTS else LARGEST_SIZE
            if not _is_int(value) or not least <= value <= largest:
                refuse(self._in_file(name), value, f"it must be an integer from {least} to {largest}")
        for name in self._fixed:
            if (value := getattr(self, name)) != (usual := getattr(type(self), name)):
                refuse(name, value, f"models of type {self.model_type!r} have {usual}, which config.json cannot change")
        self._check_heads()
        if str(self.hidden_act) not in ACTIVATIONS:
            refuse(self._in_file("hidden_act"), self.hidden_act, f"it must be one of {', '.join(ACTIVATIONS)}")
        for name in ("layer_norm_eps", "initializer_range"):
            if not 0 <= real_number(value := getattr(self, name)) < math.inf:
                refuse(self._in_file(name), value, "it must be a finite number, 0 or above")
        if self.pad_token_id is not None and not _is_int(self.pad_token_id):
            refuse("pad_token_id", self.pad_token_id, "it must be an integer or null")
        if self.pads_positions and self._counted_from == self.pad_token_id:
            most = self.max_position_embeddings - 2
            if self.pad_token_id is None or not 0 <= self.pad_token_id <= most:
                why = f"positions count from it on: it must be from 0 to {most}"
                refuse("pad_token_id", self.pad_token_id, why)
        if not isinstance(self.tie_word_embeddings, bool):
            refuse("tie_word_embeddings", self.tie_word_embeddings, "it must be true or false")
        object.__setattr__(self, "id2label", _labels(self.id2label))
        if self.label2id is not None:
            if not isinstance(self.label2id, dict):
                refuse("label2id", self.label2id, "it must be an object from names to ids")
            object.__setattr__(self, "label2id", {name: _plain(value) for name, value in self.label2id.items()})
        if self.problem_type is not None and self.problem_type not in _PROBLEM_TYPES:
            refuse("problem_type", self.problem_type, f"it must be null or one of {', '.join(_PROBLEM_TYPES)}")

    def _check_heads(self) -> None:
        """Refuse a width that the heads do not divide."""
        if self.hidden_size % self.num_attention_heads:
            why = f"it must be a multiple of the {self.num_attention_heads} heads"
            refuse(self._in_file("hidden_size"), self.hidden_size, why)

    @property
    def head_size(self) -> int:
        """Return d, the size of one head: H / N, unless a configuration with rotary positions has another."""
        return self.hidden_size // self.num_attention_heads

    @property
    def attention_size(self) -> int:
        """Return N·d, the width of all queries of a token."""
        return self.num_attention_heads * self.head_size

    @property
    def embedding_size(self) -> int:
        """Return E, the width of the embedding tables: H, except in ELECTRA and ALBERT."""
        return self.hidden_size

    @property
    def has_position_table(self) -> bool:
        """Return whether the model has a table of positions; models with rotary positions have none."""
        return True

    def layer_positions(self, layer: int) -> LayerPositions:
        """Return what the attention of a layer knows about positions: nothing, in models with a table of positions.

        Parameters
        ----------
        layer : int
            The number of the layer.

        Returns
        -------
        LayerPositions
            The rotary positions and the window, each None if there is none.

        Examples
        --------
        >>> from wordpiece_bert.bert import BertConfig, ModernBertConfig
        >>> BertConfig().layer_positions(0)
        LayerPositions(rotary=None, window=None)
        >>> ModernBertConfig().layer_positions(1)
        LayerPositions(rotary=Rotary(size=64, theta=10000.0, factor=1.0), window=64)
        """
        attention = self.plan().attention(layer)
        return LayerPositions(attention.rotary, attention.window)

    def plan(self) -> Plan:
        """Return the layers of the model as data: what it computes, with which weights.

        Returns
        -------
        Plan
            The parts; `wordpiece_bert.bert.plan.parts` documents them.

        Examples
        --------
        >>> from wordpiece_bert.bert import BertConfig
        >>> plan = BertConfig().plan()
        >>> len(plan.layers), plan.layers[0][0].body.query.name
        (12, 'encoder.layer.0.attention.self.query')
        """
        return self._plan()

    def _plan(self) -> Plan:
        """Return what `plan` does; the layers of BERT, where a family has no others."""
        return bert_plan(self)

    @property
    def head_activation(self) -> str:
        """Return the activation of a head's hidden layer: the layers' own, except in ModernBERT and Jina-BERT."""
        return self.hidden_act

    @property
    def encoder_layers(self) -> int:
        """Return how many layers are run: L, except in ALBERT, whose layers may be groups of several."""
        return self.num_hidden_layers

    @property
    def longest_row(self) -> int:
        """Return the longest row in tokens: P, less the positions up to the padding's in RoBERTa and MPNet."""
        pad = self._counted_from
        return self.max_position_embeddings if pad is None else max(self.max_position_embeddings - pad - 1, 0)

    @property
    def _counted_from(self) -> int | None:
        """Return the id of padding, from which positions count on; None where they count from 0, padding included."""
        return self.pad_token_id if self.pads_positions else None

    @property
    def usual_longest_row(self) -> int:
        """Return the longest row in tokens that the model was made for, where no tokenizer sets a limit."""
        return min(self.longest_row, self.max_position_embeddings)

    @property
    def num_labels(self) -> int:
        """Return the number of labels of a head for classification."""
        return len(self.id2label)

    def default_positions(self, input_ids: Ids | None, length: int) -> Ids:
        """Return the positions of a call without ``position_ids``, [B, S] or [1, S]: 0 to S − 1, padding included.

        In models that count from the padding on, such as RoBERTa, padding has the position of its own id, and tokens,
        as word vectors, count on from there.

        Parameters
        ----------
        input_ids : ndarray of int, or None
            The ids [B, S]; None if the call has word vectors.
        length : int
            S, the number of positions.

        Returns
        -------
        ndarray of int
            The positions, [B, S] or [1, S].

        Examples
        --------
        >>> import numpy as np
        >>> from wordpiece_bert.bert import BertConfig, RobertaConfig
        >>> BertConfig().default_positions(None, 4)
        array([[0, 1, 2, 3]])
        >>> RobertaConfig().default_positions(
        ...     np.array([[0, 8, 9, 2, 1, 1]]), 6
        ... )  # the id of padding is 1
        array([[2, 3, 4, 5, 1, 1]])
        """
        if self._counted_from is not None:
            return counted_positions(input_ids, length, self._counted_from)
        return np.arange(length, dtype=np.int64)[None, :]

    def packed_positions(self, ids: Ids, ends: Ids) -> Ids | None:
        """Return the positions of rows of ids one after the other, [tokens]; None where each row counts from 0.

        Parameters
        ----------
        ids : array
            The ids of all rows, [tokens].
        ends : array
            Row i is ``ids[ends[i]:ends[i + 1]]``, [B + 1].

        Returns
        -------
        array or None
            The position of each token in its row, as the table of positions counts.

        Examples
        --------
        >>> import numpy as np
        >>> from wordpiece_bert.bert import BertConfig, RobertaConfig
        >>> ids, ends = (
        ...     np.array([0, 9, 2, 0, 8, 9, 2]),
        ...     np.array([0, 3, 7]),
        ... )  # rows of 3 and of 4 tokens
        >>> BertConfig().packed_positions(ids, ends) is None
        True
        >>> RobertaConfig().packed_positions(ids, ends)
        array([2, 3, 4, 2, 3, 4, 5])
        """
        return None if self._counted_from is None else packed_positions(ids, ends, self._counted_from)

    def label(self, index: int) -> str:
        """Return the name of a label; ``LABEL_i`` if `id2label` has none.

        Parameters
        ----------
        index : int
            The index of the label in the scores.

        Returns
        -------
        str
            The name.

        Examples
        --------
        >>> from wordpiece_bert.bert import BertConfig
        >>> config = BertConfig(id2label={0: "negative", 1: "positive"})
        >>> config.label(1), config.label(2)
        ('positive', 'LABEL_2')
        """
        return self.id2label.get(index, f"LABEL_{index}")

    @classmethod
    @completed_by(LOADING)
    def from_pretrained(
        cls, name: str | os.PathLike[str], *, revision: str | None = None, download: bool = False
    ) -> Self:
        """Read the configuration of a model; names and errors as in `wordpiece_bert.hub.find_model`.

        Returns
        -------
        BertConfig
            The configuration.

        Examples
        --------
        >>> from wordpiece_bert.bert import BertConfig
        >>> config = BertConfig.from_pretrained("minilm")
        >>> config.num_hidden_layers, config.hidden_size, config.vocab_size
        (6, 384, 30522)
        """
        return cls.from_folder(find_model(name, revision=revision, download=download))

    @classmethod
    def from_folder(cls, folder: str | os.PathLike[str]) -> Self:
        """Read ``config.json`` of a folder, or ``bert_config.json``, its name in Google's releases.

        Parameters
        ----------
        folder : str or os.PathLike
            The folder of a model.

        Returns
        -------
        BertConfig
            The configuration.

        Examples
        --------
        >>> from wordpiece_bert.bert import BertConfig
        >>> BertConfig.from_folder("models/reviews").id2label
        {0: 'negative', 1: 'positive'}
        """
        return cls.from_file(find_config(folder))

    @classmethod
    def from_file(cls, file: str | os.PathLike[str]) -> Self:
        """Read one configuration file.

        Parameters
        ----------
        file : str or os.PathLike
            The file.

        Returns
        -------
        BertConfig
            The configuration.

        Raises
        ------
        ConfigError
            The file is not strict JSON of at most 1 MB, or not the configuration of a supported model.

        Examples
        --------
        >>> from wordpiece_bert.bert import BertConfig
        >>> BertConfig.from_file("models/reviews/config.json").architectures
        ('BertForSequenceClassification',)
        """
        values = read_object(Path(file), ConfigError)
        try:
            return cls.from_dict(values)
        except ConfigError as error:
            raise ConfigError(f"{os.fspath(file)}: {error}") from None

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Make a configuration from the content of a ``config.json``; fields that have no effect here are ignored.

        Parameters
        ----------
        values : mapping
            The fields by name.

        Returns
        -------
        BertConfig
            The configuration.

        Examples
        --------
        >>> from wordpiece_bert.bert import BertConfig
        >>> BertConfig.from_dict(
        ...     {"hidden_size": 256, "num_attention_heads": 4, "num_labels": 3}
        ... ).id2label
        {0: 'LABEL_0', 1: 'LABEL_1', 2: 'LABEL_2'}
        """
        check_instance("values", values, Mapping, "a dict of fields, as a config.json has them")
        values = cls._in_present_form(values)
        for name, allowed in cls._must_be.items():
            own = QUANTIZATION if name == "quantization_config" else None
            if values.get(name, allowed) not in (allowed, own, None):
                refuse(name, values[name], "models that need it are not supported; results would be wrong")
        in_file = {name: cls._in_file(name) for name in cls._read_fields()}
        # Where one value alone is taken, null stands for it.
        default = {"model_type", *cls._must_be}
        known = {
            name: values[key]
            for name, key in in_file.items()
            if key in values and not (values[key] is None and key in default)
        }
        if known.get("id2label") is not None:
            known["id2label"] = _labels(known["id2label"])
        elif values.get("num_labels") is not None:
            known["id2label"] = _numbered(values["num_labels"])
        else:
            known.pop("id2label", None)
        # As in transformers, the one map has no effect without the other.
        if values.get("id2label") is None or not isinstance(known.get("label2id"), dict):
            known.pop("label2id", None)
        if "architectures" in known:
            known["architectures"] = _names(known["architectures"])
        return cls(**known)

    def to_dict(self) -> dict[str, Any]:
        """Return the content of a ``config.json`` that transformers can read.

        Returns
        -------
        dict
            The fields by the names of transformers, with values that JSON has.

        Examples
        --------
        >>> from wordpiece_bert.bert import BertConfig
        >>> content = BertConfig(id2label={0: "negative", 1: "positive"}).to_dict()
        >>> content["id2label"], content["model_type"]
        ({'0': 'negative', '1': 'positive'}, 'bert')
        """
        written = {self._in_file(name): getattr(self, name) for name in self._read_fields()}
        written["architectures"] = list(self.architectures)
        written["id2label"] = {str(index): name for index, name in self.id2label.items()}
        written["label2id"] = dict(self.label2id or {name: index for index, name in self.id2label.items()})
        return written

    @classmethod
    def _in_present_form(cls, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the content of a ``config.json`` under the names of the fields, for families that have had others."""
        return values

    @classmethod
    def _read_fields(cls) -> list[str]:
        return [field_.name for field_ in fields(cls) if field_.name not in (*cls._fixed, *cls._unread)]

    @classmethod
    def _in_file(cls, name: str) -> str:
        """Return the name of a field in ``config.json``."""
        return cls._names_in_file.get(name, name)


def find_config(folder: str | os.PathLike[str]) -> Path:
    """Return the configuration file of a model folder.

    Raises
    ------
    ModelNotFoundError
        The folder has none.
    """
    for name in _FILE_NAMES:
        if (file := Path(folder) / name).is_file():
            return file
    raise ModelNotFoundError(f"{folder} is not a model folder: it has neither {' nor '.join(_FILE_NAMES)}")


def _labels(value: object) -> dict[int, str]:
    """{"0": "name"} -> {0: "name"}. The result is a dict, not a list, because a file may have a single huge id."""
    if not isinstance(value, dict):
        refuse("id2label", value, "it must be an object from ids to names")
    labels: dict[int, str] = {}
    for key, name in value.items():
        if not (
            _is_int(key)
            or isinstance(key, np.integer)
            or (isinstance(key, str) and key.isascii() and key.isdecimal() and len(key) <= 18)
        ):
            refuse("id2label", value, f"the key {quoted(key)} is not an integer")
        if not isinstance(name, str):
            refuse("id2label", value, f"the name of label {key} is {quoted(name)}, not a string")
        labels[int(key)] = name
    return labels


def _numbered(count: object) -> dict[int, str]:
    """Return names for labels of which a configuration has only the number, as transformers does."""
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= _MOST_LABELS:
        refuse("num_labels", count, f"it must be an integer from 1 to {_MOST_LABELS}")
    return {index: f"LABEL_{index}" for index in range(count)}


def _names(value: object) -> tuple[str, ...]:
    """Check a list of class names; null is an empty list."""
    if value is None:
        return ()
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        refuse("architectures", value, "it must be a list of class names")
    return tuple(value)


def _plain(value: Any) -> Any:
    """Return a scalar of NumPy as Python's own, which JSON has; anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def refuse(name: str, value: object, why: str) -> NoReturn:
    """Raise a `ConfigError` about the value of a field."""
    raise ConfigError(f"{name} is {quoted(value)}: {why}")

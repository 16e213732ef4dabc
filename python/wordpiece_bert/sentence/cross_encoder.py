"""`CrossEncoder`: scores for pairs of texts that go through the model in one row."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from wordpiece_bert._internal.answers import Answer, Results
from wordpiece_bert._internal.batching import encoding_batches, with_progress
from wordpiece_bert._internal.checks import check_device, whole_number
from wordpiece_bert._internal.peer_names import INSTEAD_IN_RANKERS, NOT_WRITTEN, add_peer_names
from wordpiece_bert._internal.safe_json import quoted, read_object
from wordpiece_bert._internal.texts import warn_truncated
from wordpiece_bert._internal.warn import warn
from wordpiece_bert.bert.auto import AutoModel
from wordpiece_bert.bert.config import find_config
from wordpiece_bert.bert.functional import sigmoid, softmax
from wordpiece_bert.bert.heads.kinds import SequenceClassification
from wordpiece_bert.errors import ConfigError, InputError
from wordpiece_bert.hub import find_model
from wordpiece_bert.sentence.activations import TORCH_ACTIVATIONS, ActivationFn, identity
from wordpiece_bert.sentence.arguments import check_tensors, one_of, prompt_text, tensors
from wordpiece_bert.sentence.base import Encoder, given_settings, with_settings
from wordpiece_bert.sentence.folder import read_prompts
from wordpiece_bert.sentence.source import Source
from wordpiece_bert.subword import tokenizer_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from wordpiece_bert.bert.engines import EngineInfo
    from wordpiece_bert.tokenizer import Tokenizer

__all__ = ["CrossEncoder"]


@dataclass(frozen=True)
class RankerFolder:
    """The settings of a cross encoder's folder."""

    #: Prompts by name.
    prompts: dict[str, str]
    #: The prompt that is used by default; None for none.
    default_prompt_name: str | None


class CrossEncoder(Encoder):
    """A model that scores pairs of texts: both are in one row, so that the tokens of each attend to those of the other.

    It is slower and more accurate than comparing the vectors of a `SentenceEncoder`, and is mostly used to rank the
    results of one. ``CrossEncoder(name)`` and `CrossEncoder.from_pretrained` load one. Threads may share it. A copy is
    the object itself, and the pickle of an encoder that was loaded has the path of its folder instead of the weights.

    Parameters
    ----------
    model : str or os.PathLike
        The model's name or folder, as for `from_pretrained`. A model object is deprecated.
    tokenizer
        Deprecated: the tokenizer of a model object.
    activation_fn
        The function from logits [B, labels] to scores; by default the sigmoid for a single label, else the identity.
    max_length
        Longest row in tokens, with special tokens; by default the longest that tokenizer and model accept.
    prompts : dict, optional
        Prompts by name. They replace those of the folder that have the same names.
    default_prompt_name : str, optional
        The name of the prompt that `predict` and `rank` use by default; by default that of the folder, if any.
    threads
        How many threads the tokenizer and the Rust engine use; by default as many as this process may use.
    device : {"cpu"}, optional
        The device of the model, which is always the CPU.
    backend, dtype, revision, download, keep_half, calibrate
        As for `BertModel.from_pretrained`.

    Raises
    ------
    ModelNotFoundError, ConfigError, CheckpointError, TokenizerFormatError
        As for `from_pretrained`.
    InputError
        The device is not the CPU, or an argument is wrong.

    Warns
    -----
    DeprecationWarning
        The encoder is made of a model and a tokenizer, not loaded.
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | SequenceClassification,
        tokenizer: Tokenizer | None = None,
        activation_fn: ActivationFn | None = None,
        *,
        max_length: int | None = None,
        threads: int | None = None,
        device: str | None = None,
        backend: str = "rust",
        dtype: str = "float32",
        revision: str | None = None,
        download: bool = False,
        keep_half: bool = False,
        calibrate: Sequence[str] | None = None,
        prompts: Mapping[str, str] | None = None,
        default_prompt_name: str | None = None,
    ) -> None:
        check_device(device)
        self._folder = RankerFolder({}, None)
        source: Source | None = None
        if isinstance(model, str | os.PathLike):
            if tokenizer is not None:
                raise InputError("tokenizer belongs to a model object; a name has its own: pass the name alone")
            folder = find_model(model, revision=revision, download=download)
            options = {"activation_fn": activation_fn, "threads": threads, "backend": backend, "dtype": dtype}
            given = given_settings(prompts=prompts, default_prompt_name=default_prompt_name)
            self._folder = with_settings(RankerFolder(*read_prompts(folder)), given)
            loaded = AutoModel.from_pretrained(folder, backend, dtype, keep_half=keep_half, calibrate=calibrate)
            texts = None if calibrate is None else tuple(calibrate)
            source = Source.of(model, folder, revision, **options, keep_half=keep_half, calibrate=texts, **given)
            activation_fn = activation_fn or _activation_of(folder)
            if not isinstance(loaded, SequenceClassification):
                kind = type(loaded).__name__
                raise ConfigError(f"{folder}: a cross encoder is a model for sequence classification, not {kind}")
            model, tokenizer = loaded, tokenizer_of(folder)
        else:
            if tokenizer is None:
                raise InputError(f"CrossEncoder takes the name or the folder of a model, not {type(model).__name__}")
            message = "CrossEncoder(model, tokenizer) is deprecated: use CrossEncoder(name)"
            warn(message, DeprecationWarning)
        self._model = model
        self._source = source
        self._tokenizer = tokenizer
        self._activation = activation_fn or (sigmoid if model.config.num_labels == 1 else identity)
        self._threads = threads
        limit = model.config.longest_row
        if max_length is None:
            own = tokenizer.model_max_length
            max_length = model.config.usual_longest_row if own is None else min(limit, own)
        self._max_length = whole_number("max_length", max_length, 1, limit, meaning="the model's longest row")

    @classmethod
    def from_pretrained(
        cls,
        name: str | os.PathLike[str],
        backend: str = "rust",
        dtype: str = "float32",
        *,
        max_length: int | None = None,
        threads: int | None = None,
        revision: str | None = None,
        download: bool = False,
        keep_half: bool = False,
        calibrate: Sequence[str] | None = None,
        prompts: Mapping[str, str] | None = None,
        default_prompt_name: str | None = None,
    ) -> CrossEncoder:
        """Load a cross encoder from this machine.

        Parameters
        ----------
        name
            The folder of a model for sequence classification, or ``"org/name"`` in the local Hugging Face cache.
        backend, dtype, revision, download, keep_half, calibrate
            As for `BertModel.from_pretrained`.
        max_length, threads, prompts, default_prompt_name
            As for the class.

        Raises
        ------
        ModelNotFoundError, ConfigError, CheckpointError, TokenizerFormatError
            As for `BertModel` and `Tokenizer`; a ConfigError also for a model of another class, and for an activation
            that is not supported.
        """
        return cls(
            name,
            max_length=max_length,
            threads=threads,
            backend=backend,
            dtype=dtype,
            revision=revision,
            download=download,
            keep_half=keep_half,
            calibrate=calibrate,
            prompts=prompts,
            default_prompt_name=default_prompt_name,
        )

    @property
    def max_length(self) -> int:
        """The longest row in tokens, including special tokens; longer pairs are truncated."""
        return self._max_length

    @property
    def num_labels(self) -> int:
        """The number of scores of each pair."""
        return self._model.config.num_labels

    @property
    def engine(self) -> EngineInfo:
        """How the model computes on this machine: CPU, dtype, instructions, threads, and the reason."""
        return self._model.engine.with_threads(self._threads)

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer."""
        return self._tokenizer

    def predict(
        self,
        pairs: Any = None,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        activation_fn: ActivationFn | None = None,
        apply_softmax: bool = False,
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        *,
        sentences: Any = None,
        inputs: Any = None,
        prompt_name: str | None = None,
        prompt: str | None = None,
        return_truncated: bool = False,
    ) -> Any:
        """Score pairs of texts.

        Parameters
        ----------
        pairs
            Pairs of texts, each a tuple or a list, or a single pair.
        batch_size
            The most pairs that go through the model at once.
        activation_fn
            The function from logits [B, labels] to scores; by default the one that the model's folder names.
        apply_softmax
            Whether to apply the softmax to the scores of several labels, which makes them probabilities.
        show_progress_bar
            Whether to show a progress bar on standard error: on a terminal a bar, elsewhere a line now and then.
        convert_to_numpy
            Whether the result is one array, rather than a list of scores.
        convert_to_tensor
            Whether the result is a tensor of PyTorch.
        sentences, inputs
            Other names of `pairs`, of sentence-transformers.
        prompt_name
            The name of the model's prompt to put before the first text of each pair; by default the model's default
            prompt, if any.
        prompt
            The prompt itself; `prompt_name` is then ignored.
        return_truncated
            Whether to also return which pairs were truncated to `max_length`.

        Returns
        -------
        array
            float32 [n] for a model with one label, else [n, labels]; without the first dimension for a single pair.
        array
            Only with `return_truncated`: bool [n], or one bool for a single pair.

        Raises
        ------
        InputError
            An item is not a pair of texts (the message has its index), or an argument is wrong.

        Warns
        -----
        TruncationWarning
            Pairs were truncated, and `return_truncated` is false.
        """
        check_tensors(convert_to_tensor)
        single, items = _check_pairs(one_of(pairs=pairs, sentences=sentences, inputs=inputs))
        prefix = prompt_text(prompt, prompt_name, self._folder.prompts, self._folder.default_prompt_name)
        if prefix:
            items = [(prefix + first, second) for first, second in items]
        batch_size = whole_number("batch_size", batch_size, 1)
        encodings = self._tokenizer.encodings(
            items,
            truncation="longest_first",
            max_length=self.max_length,
            stride=0,
            padding=False,
            threads=self._threads,
        )
        truncated = np.array([encoding.truncated for encoding in encodings], np.bool_)
        scores = np.zeros((len(items), self.num_labels), np.float32)
        activation = activation_fn or self._activation
        batches = list(encoding_batches(encodings, batch_size))
        for batch, inputs in with_progress(batches, show=bool(show_progress_bar)):
            y = activation(self._model.infer(**inputs, threads=self._threads))  # [B, labels]
            scores[batch] = softmax(y) if apply_softmax and self.num_labels > 1 else y
        result: Any = scores[:, 0] if self.num_labels == 1 else scores
        if convert_to_tensor:
            result = tensors(np.ascontiguousarray(result))
        elif not convert_to_numpy:
            result = list(result)
        if not return_truncated:
            warn_truncated(truncated, self.max_length, "pairs")
            return result[0] if single else result
        return (result[0], bool(truncated[0])) if single else (result, truncated)

    def rank(
        self,
        query: str,
        documents: Iterable[str],
        top_k: int | None = None,
        return_documents: bool = False,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        activation_fn: ActivationFn | None = None,
        *,
        prompt_name: str | None = None,
        prompt: str | None = None,
    ) -> list[Answer]:
        """Rank documents by their relevance to a query.

        Parameters
        ----------
        query, documents
            The query, and the texts to rank.
        top_k
            How many documents to return; None for all.
        return_documents
            Whether to return their texts, too.
        batch_size, show_progress_bar, activation_fn, prompt_name, prompt
            As for `predict`; the prompt is put before the query.

        Returns
        -------
        list of Answer
            Dicts with ``corpus_id`` (the index in `documents`), ``score`` (a float) and, with `return_documents`,
            ``text``; the highest score first. The attribute ``truncated`` of each is whether the query and the
            document were truncated.

        Raises
        ------
        InputError
            The model has several labels, a document is not a str, or an argument is wrong.

        Warns
        -----
        TruncationWarning
            Documents were truncated.
        """
        if self.num_labels != 1:
            raise InputError(f"rank needs a model with one label; this one has {self.num_labels}: use predict")
        if top_k is not None:
            top_k = whole_number("top_k", top_k, 1, others="or None for all")
        texts = list(documents)
        scores, truncated = self.predict(
            [(query, text) for text in texts],
            batch_size,
            activation_fn=activation_fn,
            show_progress_bar=show_progress_bar,
            prompt_name=prompt_name,
            prompt=prompt,
            return_truncated=True,
        )
        warn_truncated(truncated, self.max_length, "pairs")
        ranked: Results[Answer] = Results()
        for i in np.argsort(-scores, kind="stable")[:top_k]:
            answer: dict[str, Any] = {"corpus_id": int(i), "score": float(scores[i])}
            text = {"text": texts[i]} if return_documents else {}
            ranked.append(Answer(answer | text, truncated=bool(truncated[i])))
        return ranked

    def __copy__(self) -> CrossEncoder:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> CrossEncoder:
        return self

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        if self._source is None:
            return super().__reduce_ex__(protocol)
        return _restore, (type(self), self._source, self._max_length)

    def __repr__(self) -> str:
        return f"CrossEncoder({self.num_labels} labels, at most {self.max_length} tokens, {self._model!r})"


add_peer_names(CrossEncoder, INSTEAD_IN_RANKERS | NOT_WRITTEN)


def _restore(cls: type[CrossEncoder], source: Source, max_length: int) -> CrossEncoder:
    """Load the encoder of a pickle."""
    name, options = source.arguments()
    return cls(name, max_length=max_length, **options)


def _check_pairs(pairs: Any) -> tuple[bool, list[tuple[str, str]]]:
    """Return whether the argument is a single pair, and the pairs as a list."""
    if not isinstance(pairs, Iterable) or isinstance(pairs, str | bytes):
        raise InputError(f"pairs must be a list of pairs of texts, not {type(pairs).__name__}")
    items = list(pairs)
    single = len(items) == 2 and all(isinstance(item, str) for item in items)
    if single:
        items = [items]
    for index, item in enumerate(items):
        if not isinstance(item, tuple | list) or len(item) != 2 or not all(isinstance(text, str) for text in item):
            raise InputError(f"pairs[{index}] must be two texts, not {quoted(item)}")
    return single, [(first, second) for first, second in items]


def _activation_of(folder: Path) -> ActivationFn | None:
    """Return the activation that a configuration names under its new or its old key; None if it names none."""
    file = find_config(folder)
    config = read_object(file, ConfigError)
    newer = config.get("sentence_transformers")
    name = newer.get("activation_fn") if isinstance(newer, dict) else None
    name = config.get("sbert_ce_default_activation_function") if name is None else name
    if name is None:
        return None
    if not isinstance(name, str) or name not in TORCH_ACTIVATIONS:
        raise ConfigError(f"{file}: the activation is {quoted(name)}; supported are {', '.join(TORCH_ACTIVATIONS)}")
    return TORCH_ACTIVATIONS[name]

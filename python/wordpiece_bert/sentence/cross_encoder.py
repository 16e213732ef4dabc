"""`CrossEncoder`: scores for pairs of texts that go through the model in one row."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.answers import Answer, Results
from wordpiece_bert._internal.batching import encoding_batches, with_progress
from wordpiece_bert._internal.checks import check_device, check_flags, iterates, shows_progress, whole_number
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.peer_names import INSTEAD_IN_RANKERS, NOT_WRITTEN, add_peer_names, refusing_peer_arguments
from wordpiece_bert._internal.progress import notify
from wordpiece_bert._internal.safe_json import quoted
from wordpiece_bert._internal.texts import one_or_many, warn_truncated
from wordpiece_bert.bert.auto import load_any, load_base
from wordpiece_bert.bert.engines import get_engine
from wordpiece_bert.bert.functional import sigmoid, softmax
from wordpiece_bert.bert.heads.kinds import SequenceClassification
from wordpiece_bert.bert.loading import Loading
from wordpiece_bert.bert.parameters import LOADING
from wordpiece_bert.errors import ConfigError, InputError
from wordpiece_bert.sentence.activations import ActivationFn, activated, checked_activation, identity
from wordpiece_bert.sentence.arguments import check_tensors, one_of, tensors
from wordpiece_bert.sentence.encoder_base import Encoder, FromPretrained, Settings, engine_options
from wordpiece_bert.sentence.folders.modules import Dense
from wordpiece_bert.sentence.folders.ranking import RankingFolder, ScoringModules, read_ranking_folder
from wordpiece_bert.sentence.parameters import ENCODING, SETTINGS
from wordpiece_bert.sentence.rows import with_lowercase
from wordpiece_bert.sentence.source import Source
from wordpiece_bert.tokenizer.parameters import SPLITTING
from wordpiece_bert.tokenizer.subword import model_encodings, tokenizer_of

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    import numpy.typing as npt

    from wordpiece_bert.bert.engines import EngineInfo
    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.tokenizer.subword import AnyTokenizer
    from wordpiece_bert.tokenizer.word_splitter import WordSplitter


class ModuleModel:
    """A Transformer, a pooling and modules that end in scores, with the calls of a model for sequence classification.

    Parameters
    ----------
    folder : pathlib.Path
        The folder of the Transformer.
    modules : ScoringModules
        The modules after it.
    loading : Loading
        How the Transformer is loaded.
    """

    def __init__(self, folder: Path, modules: ScoringModules, loading: Loading) -> None:
        self._encoder = load_base(folder, loading)
        self.config = self._encoder.config
        self.engine = self._encoder.engine
        self._pooling = modules.pooling
        linear = get_engine(self._encoder.backend, self._encoder.dtype, self._encoder.instructions).linear
        self._modules = [replace(m, linear=linear) if isinstance(m, Dense) else m for m in modules.modules]

    def infer(
        self,
        input_ids: npt.ArrayLike,
        attention_mask: npt.ArrayLike,
        token_type_ids: npt.ArrayLike | None = None,
        *,
        threads: int | None = None,
    ) -> Array:
        """Return the scores of padded rows before any activation, [B, labels]."""
        mask = np.asarray(attention_mask) != 0  # [B, S]
        out = self._encoder(input_ids, mask, token_type_ids, visible_only=True, threads=threads)
        pooled = [self._encoder.pool(out.last_hidden_state, mask, mode) for mode in self._pooling.modes]
        x = np.concatenate(pooled, axis=1)
        for module in self._modules:
            x = module(x)
        return x

    def __repr__(self) -> str:
        return f"{'+'.join(self._pooling.modes)} pooling and {len(self._modules)} modules of {self._encoder!r}"


@completed_by(LOADING, SPLITTING, SETTINGS)
class CrossEncoder(Encoder):
    """A model that scores pairs of texts: both are in one row, so that the tokens of each attend to the other's.

    It is slower and more accurate than comparing the vectors of a `SentenceEncoder`, and is mostly used to rank the
    results of one. Threads may share it. A copy is the object itself, and its pickle has the path of its folder instead
    of the weights.

    Parameters
    ----------
    model : str or os.PathLike
        The folder of a model for sequence classification, or of the modules of sentence-transformers of which the last
        is a Dense that returns ``scores``; or ``"org/name"`` in the local Hugging Face cache.
    num_labels : int, optional
        How many scores the model is to have for a pair. It is compared with the model, which has as many as it was
        trained for; `wordpiece_bert.finetune.model_for` makes a new head.
    activation_fn : callable, optional
        The function from logits [B, labels] to scores, [B, labels] or [B]; by default the one that the model's folder
        names, or the sigmoid for a single label, else the identity. It takes and returns arrays of NumPy; of torch's
        modules, those that a folder may name are accepted.
    max_length : int, optional
        Longest row in tokens, with special tokens; by default the longest that tokenizer and model accept.

    Raises
    ------
    ModelNotFoundError, ConfigError, CheckpointError, TokenizerFormatError
        As for `BertModel` and `Tokenizer`; a ConfigError also for a model of another class, and for an activation that
        is not supported.
    InputError
        The device is not the CPU, or an argument is wrong.

    Examples
    --------
    >>> from wordpiece_bert import CrossEncoder
    >>> ranker = CrossEncoder("models/ranker")
    >>> ranker.predict([("bread", "bread dough"), ("bread", "a bicycle")]).round(2)
    array([0.74, 0.41], dtype=float32)
    """

    _folder: RankingFolder
    _model: SequenceClassification | ModuleModel
    _tokenizer: AnyTokenizer

    @refusing_peer_arguments
    def __init__(
        self,
        model: str | os.PathLike[str],
        backend: str = "rust",
        dtype: str = "float32",
        *,
        num_labels: int | None = None,
        activation_fn: ActivationFn | None = None,
        max_length: int | None = None,
        device: str | None = None,
        threads: int | None = None,
        revision: str | None = None,
        download: bool = False,
        calibrate: Sequence[str] | None = None,
        instructions: str | None = None,
        word_splitter: WordSplitter | None = None,
        prompts: Mapping[str, str] | None = None,
        default_prompt_name: str | None = None,
    ) -> None:
        loading = Loading(
            *(backend, dtype, revision, download),
            calibrate=calibrate,
            word_splitter=word_splitter,
            instructions=instructions,
        )
        settings = Settings(prompts, default_prompt_name)
        check_device(device)
        activation_fn = checked_activation(activation_fn)
        folder = loading.find(model)
        options = engine_options(loading) | {"activation_fn": activation_fn, "max_length": max_length}
        self._source = Source.of(model, folder, revision, **options, threads=threads, **settings.given())
        self._folder = settings.of(read_ranking_folder(folder))
        home, modules = self._folder.transformer, self._folder.modules
        tokenizer = tokenizer_of(home, word_splitter=word_splitter)  # before the weights, which take longer to read
        self._tokenizer = with_lowercase(tokenizer) if self._folder.do_lower_case else tokenizer
        self._model = _classifier(home, loading) if modules is None else ModuleModel(home, modules, loading)
        self._num_labels = self._model.config.num_labels if modules is None else modules.num_labels
        if num_labels is not None and whole_number("num_labels", num_labels, 1) != self._num_labels:
            raise InputError(
                f"{folder}: num_labels is {num_labels}, but the model has {self._num_labels}; "
                "wordpiece_bert.finetune.model_for(name, 'SequenceClassification', labels=[...]) makes a new head"
            )
        self._activation = activation_fn or self._folder.activation or (sigmoid if self._num_labels == 1 else identity)
        self._threads = threads
        self._max_length = self._folder.max_length
        if max_length is not None:
            longest_row = self._model.config.longest_row
            self._max_length = whole_number("max_length", max_length, 1, longest_row, meaning="the model's longest row")

    from_pretrained = FromPretrained(__init__)

    @property
    def max_length(self) -> int:
        """The longest row in tokens, including special tokens; longer pairs are truncated."""
        return self._max_length

    @property
    def num_labels(self) -> int:
        """The number of scores of each pair."""
        return self._num_labels

    @property
    def engine(self) -> EngineInfo:
        """How the model computes on this machine: CPU, dtype, instructions, threads, and the reason."""
        return self._model.engine.with_threads(self._threads)

    @property
    def tokenizer(self) -> AnyTokenizer:
        """The tokenizer."""
        return self._tokenizer

    @completed_by(ENCODING)
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
        pairs : iterable of (str, str)
            Pairs of texts, each a tuple or a list, or a single pair.
        batch_size : int, default 32
            The most pairs that go through the model at once.
        activation_fn : callable, optional
            The function from logits [B, labels] to scores, [B, labels] or [B]; by default the encoder's.
        apply_softmax : bool, default False
            Whether to apply the softmax to the scores of several labels, which makes them probabilities.
        convert_to_numpy : bool, default True
            Whether the result is one array, rather than a list of scores.
        sentences, inputs : iterable of (str, str)
            Other names of `pairs`, of sentence-transformers.
        prompt_name : str, optional
            The name of the model's prompt to put before the first text of each pair; by default the model's default
            prompt, if any.
        return_truncated : bool, default False
            Whether to also return which pairs were truncated to `max_length`.

        Returns
        -------
        array
            float32 [n] for a model with one label, or where `activation_fn` returns [B]; else [n, labels]. Without the
            first dimension for a single pair.
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

        Examples
        --------
        >>> from wordpiece_bert import CrossEncoder
        >>> ranker = CrossEncoder("models/ranker")
        >>> ranker.predict([("bread", "bread dough"), ("bread", "a bicycle")]).round(2)
        array([0.74, 0.41], dtype=float32)
        """
        check_tensors(convert_to_tensor)
        check_flags(apply_softmax=apply_softmax, convert_to_numpy=convert_to_numpy, return_truncated=return_truncated)
        single, items = _check_pairs(one_of(pairs=pairs, sentences=sentences, inputs=inputs))
        prefix = self._prompt(prompt, prompt_name)
        if prefix:
            items = [(prefix + first, second) for first, second in items]
        batch_size = whole_number("batch_size", batch_size, 1)
        rows = self._tokenizer.encodings(
            items,
            truncation="longest_first",
            max_length=self.max_length,
            stride=0,
            padding=False,
            threads=self._threads,
        )
        encodings = model_encodings(self._tokenizer, rows)
        truncated = np.array([encoding.truncated for encoding in encodings], np.bool_)
        activation = checked_activation(activation_fn) or self._activation
        scores = np.zeros((len(items), self.num_labels), np.float32)
        batches = list(encoding_batches(encodings, batch_size))
        tokens = sum(map(len, encodings))
        for batch in with_progress(batches, show=shows_progress(show_progress_bar)):
            y = activated(activation, self._model.infer(**batch.inputs, threads=self._threads))  # [B, labels] or [B]
            notify(len(batch.encodings), batch.tokens, tokens)
            y = softmax(y) if apply_softmax and y.ndim == 2 and self.num_labels > 1 else y
            if y.ndim < scores.ndim:
                scores = scores[:, 0]
            scores[batch.encodings] = y[batch.rows]
        result: Any = scores[:, 0] if scores.ndim == 2 and self.num_labels == 1 else scores
        if convert_to_tensor:
            result = tensors(np.ascontiguousarray(result))
        elif not convert_to_numpy:
            result = list(result)
        if not return_truncated:
            warn_truncated(truncated, self.max_length, "pairs")
            return result[0] if single else result
        return (result[0], bool(truncated[0])) if single else (result, truncated)

    @completed_by(ENCODING)
    def rank(
        self,
        query: str,
        documents: Iterable[str],
        top_k: int | None = None,
        return_documents: bool = False,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        activation_fn: ActivationFn | None = None,
        apply_softmax: bool = False,
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        *,
        prompt_name: str | None = None,
        prompt: str | None = None,
    ) -> list[Answer]:
        """Rank documents by their relevance to a query.

        Parameters
        ----------
        query, documents : str, iterable of str
            The query, and the texts to rank.
        top_k : int, optional
            How many documents to return; by default all.
        return_documents : bool, default False
            Whether to return their texts, too.
        batch_size : int, default 32
            The most pairs that go through the model at once.
        activation_fn : callable, optional
            The function from logits [B, 1] to scores; by default the encoder's.
        prompt_name : str, optional
            The name of the model's prompt to put before the query; by default the model's default prompt, if any.
        apply_softmax, convert_to_numpy : bool, default False and True
            Arguments of sentence-transformers that change nothing: there is one label, and scores are floats.
        convert_to_tensor : bool, default False
            Whether the scores are tensors of PyTorch with one number each.

        Returns
        -------
        list of Answer
            Dicts with ``corpus_id`` (the index in `documents`), ``score`` (a float, or a tensor) and, with
            `return_documents`, ``text``; the highest score first. The attribute ``truncated`` of each is whether the
            query and the document were truncated.

        Raises
        ------
        InputError
            The model has several labels, a document is not a str, or an argument is wrong.

        Warns
        -----
        TruncationWarning
            Documents were truncated.

        Examples
        --------
        >>> from wordpiece_bert import CrossEncoder
        >>> ranker = CrossEncoder("models/ranker")
        >>> found = ranker.rank("bread", ["a bicycle", "bread dough"], return_documents=True)
        >>> [answer["text"] for answer in found]
        ['bread dough', 'a bicycle']
        """
        if self.num_labels != 1:
            raise InputError(f"rank needs a model with one label; this one has {self.num_labels}: use predict")
        if top_k is not None:
            top_k = whole_number("top_k", top_k, 1, others="or None for all")
        check_flags(apply_softmax=apply_softmax, convert_to_numpy=convert_to_numpy, return_documents=return_documents)
        check_tensors(convert_to_tensor)
        texts = one_or_many(documents, name="documents")[1]
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
        shown = tensors(np.ascontiguousarray(scores)) if convert_to_tensor else scores.tolist()
        for i in np.argsort(-scores, kind="stable")[:top_k]:
            answer: dict[str, Any] = {"corpus_id": int(i), "score": shown[int(i)]}
            text = {"text": texts[i]} if return_documents else {}
            ranked.append(Answer(answer | text, truncated=bool(truncated[i])))
        return ranked

    def __repr__(self) -> str:
        return f"CrossEncoder({self.num_labels} labels, at most {self.max_length} tokens, {self._model!r})"


add_peer_names(CrossEncoder, INSTEAD_IN_RANKERS | NOT_WRITTEN)


def _check_pairs(pairs: Any) -> tuple[bool, list[tuple[str, str]]]:
    """Return whether the argument is a single pair, and the pairs as a list."""
    if not iterates(pairs) or isinstance(pairs, str | bytes):
        raise InputError(f"pairs must be a list of pairs of texts, not {type(pairs).__name__}")
    items = list(pairs)
    single = len(items) == 2 and all(isinstance(item, str) for item in items)
    if single:
        items = [items]
    for index, item in enumerate(items):
        if not isinstance(item, tuple | list) or len(item) != 2 or not all(isinstance(text, str) for text in item):
            raise InputError(f"pairs[{index}] must be two texts, not {quoted(item)}")
    return single, [(first, second) for first, second in items]


def _classifier(folder: Path, loading: Loading) -> SequenceClassification:
    """Load a model for sequence classification."""
    loaded = load_any(folder, loading)
    if not isinstance(loaded, SequenceClassification):
        kind = type(loaded).__name__
        raise ConfigError(f"{folder}: a cross encoder is a model for sequence classification, not {kind}")
    return loaded

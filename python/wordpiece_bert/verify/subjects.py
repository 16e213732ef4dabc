"""The kinds of models that are verified: what ours and a reference make of the same texts, and how that is compared."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from wordpiece_bert._internal.batching import pad_rows, sorted_batches
from wordpiece_bert._internal.safe_json import read_object
from wordpiece_bert.bert.auto import read_config
from wordpiece_bert.bert.config import find_config
from wordpiece_bert.bert.functional import pool
from wordpiece_bert.bert.heads.kinds import MaskedLM, QuestionAnswering, SequenceClassification, TokenClassification
from wordpiece_bert.errors import ConfigError, InputError
from wordpiece_bert.sentence.activations import identity
from wordpiece_bert.sentence.cross_encoder import CrossEncoder
from wordpiece_bert.sentence.dense.body import Call
from wordpiece_bert.sentence.dense.parts import transformer_of
from wordpiece_bert.sentence.encoder_loading import encoder_class
from wordpiece_bert.sentence.folders.content_files import module_folders
from wordpiece_bert.sentence.folders.kinds import (
    CROSS,
    MULTI_VECTOR,
    SENTENCE,
    SPARSE,
    STATIC,
    is_model2vec,
    kind_of,
    makes_sentence_vectors,
)
from wordpiece_bert.sentence.folders.modules import read_folder
from wordpiece_bert.sentence.parts import prompt_of
from wordpiece_bert.sentence.rows import rows_of
from wordpiece_bert.tasks.inference import encode, infer
from wordpiece_bert.tasks.task_loading import has_frozen_head, load, longest_row
from wordpiece_bert.verify.measures import of_labels, of_scores, of_vectors
from wordpiece_bert.verify.references import (
    MODEL2VEC,
    ONNX,
    SENTENCE_TRANSFORMERS,
    TRANSFORMERS,
    network,
    onnx_file,
    peer,
)

if TYPE_CHECKING:
    from pathlib import Path

    from wordpiece_bert._internal.batching import Encoded
    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.verify.references import Network

#: The texts that go through a model at once.
_BATCH = 32
#: Queries that a ranker ranks the other texts for, where the file has texts and no pairs.
_QUERIES = 10
#: Texts whose token vectors are compared with each other.
_COMPARED = 200


class Subject:
    """A model of one kind, and the texts that it is verified with.

    Parameters
    ----------
    folder : pathlib.Path
        The folder of the model.
    texts : list
        The texts, or pairs of texts.
    """

    #: What such a model is called.
    name: str = ""
    #: What it can be compared with, the best first; float32 is always possible.
    references: tuple[str, ...] = (SENTENCE_TRANSFORMERS,)
    #: Whether the NumPy engine computes it.
    has_engines: ClassVar[bool] = True

    def __init__(self, folder: Path, texts: list[Any]) -> None:
        self.folder = folder
        self.texts = texts

    def load(self, **loading: Any) -> Any:
        """Load the model of this package; the arguments are as for `SentenceEncoder`."""
        raise NotImplementedError

    def ours(self, model: Any) -> Any:
        """Return what our model makes of the texts."""
        raise NotImplementedError

    def theirs(self, model: Any, reference: str) -> Any:
        """Return what a reference makes of the texts; `model` is ours, for its tokenizer and settings."""
        raise NotImplementedError

    def measures(self, model: Any, a: Any, b: Any) -> dict[str, float]:
        """Compare two results of `ours` or `theirs`."""
        raise NotImplementedError


def subject_of(folder: Path, texts: list[Any]) -> Subject:
    """Return the kind of model that a folder has.

    Raises
    ------
    InputError
        There is no measure for it, or the texts do not fit it.
    ConfigError
        The configuration is malformed.
    """
    if has_frozen_head(folder):
        raise InputError(f"{folder} is a head on the vectors of an encoder: verify the encoder's folder")
    pairs = isinstance(texts[0], tuple)
    kind = kind_of(folder)
    if kind is CROSS or _is_ranker(folder):
        return _Ranker(folder, texts)
    made: Subject
    if kind is SENTENCE and not makes_sentence_vectors(folder):
        return _Head(folder, texts)
    made = {SPARSE: _Sparse, MULTI_VECTOR: _TokenVectors, STATIC: _Static, SENTENCE: _Sentence}[kind](folder, texts)
    if pairs:
        raise InputError(f"{folder} is a {kind.name}, of single texts: name one field or column")
    return made


def _architecture(folder: Path) -> str:
    return next(iter(read_config(folder).architectures or ()), "") if find_config(folder).is_file() else ""


def _is_ranker(folder: Path) -> bool:
    """Return whether a folder without modules has a single score, which is not called a regression."""
    if (folder / "modules.json").is_file() or not _architecture(folder).endswith("ForSequenceClassification"):
        return False
    config = read_config(folder)
    return config.num_labels == 1 and config.problem_type != "regression"


class _Sentence(Subject):
    name = "sentence encoder"
    references: tuple[str, ...] = (SENTENCE_TRANSFORMERS, TRANSFORMERS, ONNX)
    #: The class of sentence-transformers.
    peer_class: ClassVar[str] = "SentenceTransformer"

    def __init__(self, folder: Path, texts: list[Any]) -> None:
        super().__init__(folder, texts)
        self._file = onnx_file(folder)

    def load(self, **loading: Any) -> Any:
        return encoder_class(self.folder)(self.folder, **loading)

    def ours(self, model: Any) -> Array:
        vectors: Array = model.encode(self.texts, batch_size=_BATCH, return_truncated=True)[0]
        return vectors

    def theirs(self, model: Any, reference: str) -> Array:
        if reference == SENTENCE_TRANSFORMERS:
            return self._of_peer()
        parts = read_folder(self.folder)
        if parts.layers is not None:
            raise InputError(f"{self.folder} pools several layers, which only {SENTENCE_TRANSFORMERS} can be asked for")
        run = network(reference, parts.transformer, self._file, "AutoModel")
        prefix = prompt_of(model)
        rows = rows_of(model.tokenizer, [prefix + text for text in self.texts], model.max_seq_length, None)
        skip = transformer_of(model).skipped(Call(prefix=prefix, max_seq_length=model.max_seq_length))
        vectors = np.zeros((len(rows), parts.dimension), np.float32)
        for batch in sorted_batches(rows.lengths, _BATCH):
            ids, mask = pad_rows(rows, batch)
            x = run({"input_ids": ids, "attention_mask": mask.astype(np.int64), "token_type_ids": np.zeros_like(ids)})
            y = np.concatenate([pool(x, mask, mode, skip) for mode in parts.pooling.modes], axis=1)
            for module in parts.modules:
                y = module(y)
            vectors[batch] = y
        return vectors[:, : model.dimension]

    def _of_peer(self) -> Array:
        with peer(SENTENCE_TRANSFORMERS, self.folder):
            import sentence_transformers

            model = getattr(sentence_transformers, self.peer_class)(str(self.folder), device="cpu")
            return self._as_array(model.encode(self.texts, batch_size=_BATCH, show_progress_bar=False))

    def _as_array(self, found: Any) -> Array:
        return np.asarray(found, np.float32)

    def measures(self, model: Any, a: Any, b: Any) -> dict[str, float]:
        del model
        return of_vectors(a, b)


class _Static(_Sentence):
    name = "static encoder"
    has_engines = False

    def __init__(self, folder: Path, texts: list[Any]) -> None:
        super().__init__(folder, texts)
        config = folder / "config.json"
        # Such folders say how sentence-transformers reads them, but it counts unknown tokens, which model2vec does not.
        of_model2vec = config.is_file() and is_model2vec(read_object(config, ConfigError))
        self.references = (MODEL2VEC,) if of_model2vec else (SENTENCE_TRANSFORMERS,)

    def theirs(self, model: Any, reference: str) -> Array:
        if reference == SENTENCE_TRANSFORMERS:
            return self._of_peer()
        with peer(reference, self.folder):
            from model2vec import StaticModel

            return self._as_array(StaticModel.from_pretrained(str(self.folder)).encode(self.texts))


class _Sparse(_Sentence):
    name = "sparse encoder"
    references = (SENTENCE_TRANSFORMERS,)
    peer_class = "SparseEncoder"

    def ours(self, model: Any) -> Array:
        vectors: Array = model.encode(self.texts, batch_size=_BATCH, return_truncated=True)[0].toarray()
        return vectors

    def _as_array(self, found: Any) -> Array:
        return np.asarray(found.to_dense(), np.float32)


class _TokenVectors(_Sentence):
    name = "multi-vector encoder"
    references = (SENTENCE_TRANSFORMERS,)
    peer_class = "MultiVectorEncoder"

    def ours(self, model: Any) -> Any:
        return list(model.encode(self.texts, batch_size=_BATCH, return_truncated=True)[0])

    def _as_array(self, found: Any) -> Any:
        return [np.asarray(one, np.float32) for one in found]

    def measures(self, model: Any, a: Any, b: Any) -> dict[str, float]:
        for text, x, y in zip(self.texts, a, b, strict=True):
            if len(x) != len(y):
                raise InputError(f"ours has {len(x)} vectors and theirs {len(y)} for the text {text[:80]!r}")
        first, second = a[:_COMPARED], b[:_COMPARED]
        alike = model.similarity(first, first), model.similarity(second, second)
        return of_vectors(np.concatenate(a), np.concatenate(b), alike)


class _Network(NamedTuple):
    """A reference with the call of our models with a head."""

    run: Network

    def infer(self, **inputs: Any) -> Array:
        return self.run(inputs)  # type: ignore[arg-type]  # the keys of ModelInputs


class _Ranker(Subject):
    """A cross encoder of one score, or of several labels."""

    name = "ranker"
    references: tuple[str, ...] = (SENTENCE_TRANSFORMERS, TRANSFORMERS, ONNX)

    def __init__(self, folder: Path, texts: list[Any]) -> None:
        if isinstance(texts[0], str):
            queries = min(_QUERIES, math.isqrt(len(texts)))
            documents = texts[queries : queries + max(len(texts) // queries, 1)]
            texts = [(query, document) for query in texts[:queries] for document in documents]
            if not texts:
                raise InputError(f"{folder} ranks texts for queries: give at least two texts, or pairs of both")
        super().__init__(folder, texts)
        if len(module_folders(folder)) > 1:  # its scores are of modules, for which the others would draw a head
            self.references = (SENTENCE_TRANSFORMERS,)

    def load(self, **loading: Any) -> CrossEncoder:
        return CrossEncoder(self.folder, **loading)

    def ours(self, model: Any) -> Array:
        scores: Array = model.predict(self.texts, _BATCH, activation_fn=identity, return_truncated=True)[0]
        return scores

    def theirs(self, model: Any, reference: str) -> Array:
        if reference == SENTENCE_TRANSFORMERS:
            with peer(reference, self.folder):
                import sentence_transformers
                import torch

                ranker = sentence_transformers.CrossEncoder(str(self.folder), device="cpu")
                found = ranker.predict(
                    self.texts, batch_size=_BATCH, activation_fn=torch.nn.Identity(), show_progress_bar=False
                )
            return np.asarray(found, np.float32)
        run = network(reference, self.folder, onnx_file(self.folder), "AutoModelForSequenceClassification")
        prefix = prompt_of(model)
        pairs = [(prefix + first, second) for first, second in self.texts]
        network_model: Any = _Network(run)
        logits = np.stack(infer(network_model, encode(model.tokenizer, pairs, model.max_length), _BATCH))
        return logits[:, 0] if model.num_labels == 1 else logits

    def measures(self, model: Any, a: Any, b: Any) -> dict[str, float]:
        if model.num_labels > 1:
            return of_labels(a, b)
        groups: dict[str, list[int]] = {}
        for index, (query, _) in enumerate(self.texts):
            groups.setdefault(query, []).append(index)
        return of_scores(a, b, [np.array(group) for group in groups.values()])


class _Head(Subject):
    """A model with a head for labels of texts, of tokens, for answers, or for masked words."""

    references = (TRANSFORMERS, ONNX)

    def load(self, **loading: Any) -> Any:
        del loading["threads"]
        loaded = load(self.folder, **loading)
        for kind, name, peer_class in _HEADS:
            if isinstance(loaded.model, kind):
                self.name, self._peer_class = name, peer_class
                return loaded
        kinds = ", ".join(name for _, name, _ in _HEADS)
        raise InputError(f"{self.folder} has a {type(loaded.model).__name__}: verified are encoders, rankers, {kinds}")

    def ours(self, model: Any) -> list[Array]:
        return self._rows(model, model.model)

    def theirs(self, model: Any, reference: str) -> list[Array]:
        return self._rows(model, _Network(network(reference, self.folder, onnx_file(self.folder), self._peer_class)))

    def _rows(self, loaded: Any, model: Any) -> list[Array]:
        """Return rows of logits: of each text, of each token, of each masked place, or of both ends of each answer."""
        encodings = encode(loaded.tokenizer, self.texts, longest_row(*loaded))
        if isinstance(loaded.model, MaskedLM):
            mask = loaded.tokenizer.token_to_id(loaded.tokenizer.mask_token)
            places = [len(one) // 2 for one in encodings]
            masked: list[Any] = [_masked(one, place, mask) for one, place in zip(encodings, places, strict=True)]
            found = []
            for start in range(0, len(masked), _BATCH):  # a row has a number for each token of the vocabulary
                part = slice(start, start + _BATCH)
                found += [
                    x[place].copy() for x, place in zip(infer(model, masked[part], _BATCH), places[part], strict=True)
                ]
            return found
        logits = infer(model, encodings, _BATCH)
        if isinstance(loaded.model, TokenClassification):
            return [token for x in logits for token in x]
        if isinstance(loaded.model, QuestionAnswering):
            return [column for x in logits for column in x.T]
        return logits

    def measures(self, model: Any, a: Any, b: Any) -> dict[str, float]:
        if len(a[0]) > 1:
            return of_labels(a, b)
        return of_scores(np.concatenate(a), np.concatenate(b), [np.arange(len(a))])


#: The kinds of heads, what their models are called, and their classes in transformers.
_HEADS = (
    (SequenceClassification, "classifier of texts", "AutoModelForSequenceClassification"),
    (TokenClassification, "classifier of tokens", "AutoModelForTokenClassification"),
    (QuestionAnswering, "model for answers", "AutoModelForQuestionAnswering"),
    (MaskedLM, "model for masked words", "AutoModelForMaskedLM"),
)


@dataclass(frozen=True)
class _Row:
    """An encoded text with a masked token."""

    ids: list[int]
    token_type_ids: list[int]

    def __len__(self) -> int:
        return len(self.ids)


def _masked(encoding: Encoded, place: int, mask: int) -> _Row:
    ids = list(encoding.ids)
    ids[place] = mask
    return _Row(ids, list(encoding.token_type_ids))

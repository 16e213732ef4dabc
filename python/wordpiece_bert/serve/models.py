"""The models of a server: rows of texts or pairs in, vectors or scores out, batched over requests."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from wordpiece_bert._internal.batching import encoding_batches
from wordpiece_bert._internal.safe_json import read_object
from wordpiece_bert.batch import RaggedBatch
from wordpiece_bert.bert.config import find_config
from wordpiece_bert.bert.functional import normalize
from wordpiece_bert.errors import ConfigError, InputError
from wordpiece_bert.hub import find_model
from wordpiece_bert.sentence.activations import identity
from wordpiece_bert.sentence.arguments import prompt_text
from wordpiece_bert.sentence.cross_encoder import CrossEncoder
from wordpiece_bert.sentence.encoder import SentenceEncoder
from wordpiece_bert.sentence.folder import Normalize
from wordpiece_bert.sentence.static import StaticEncoder
from wordpiece_bert.serve.batching import Batcher
from wordpiece_bert.serve.errors import RequestError
from wordpiece_bert.serve.pairs import PairEncoder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import numpy.typing as npt

    from wordpiece_bert.serve.batching import Part
    from wordpiece_bert.serve.metrics import Metrics
    from wordpiece_bert.serve.settings import ServerSettings

__all__ = ["Answer", "Models", "ServedEncoder", "ServedRanker", "check_tokens", "load_model"]

# Texts of more characters in all are tokenized in a thread, so that they do not hold up the event loop.
_INLINE_CHARACTERS = 1 << 14

Item = TypeVar("Item")


class Answer(NamedTuple):
    """The results of a request."""

    #: Vectors [n, d] or scores [n].
    values: npt.NDArray[Any]
    #: Whether each text was truncated, [n].
    truncated: npt.NDArray[np.bool_]
    #: The number of tokens of all rows.
    tokens: int


class ServedEncoder:
    """A sentence encoder behind a queue."""

    def __init__(self, name: str, encoder: SentenceEncoder, settings: ServerSettings, metrics: Metrics) -> None:
        self.name = name
        self.encoder = encoder
        self.tokenizer = encoder.tokenizer
        self._settings = settings
        self._batcher = Batcher(self._run, settings, metrics, name)
        modules = encoder._folder.modules
        normalizes = bool(modules) and isinstance(modules[-1], Normalize)
        self._normalizes = normalizes or getattr(encoder._folder, "least_length", None) is not None
        self._prefix(None)  # a prompt that the model does not have is found at the start, not by the first request

    async def embed(
        self, texts: list[str], *, dimensions: int | None, prompt_name: str | None, truncate: bool
    ) -> Answer:
        """Return the vectors of texts: those of `SentenceEncoder.encode`.

        With fewer `dimensions` the vectors are truncated, and normalized again if the model normalizes them.
        """
        self._check_dimensions(dimensions)
        prefix = self._prefix(prompt_name)
        characters = sum(map(len, texts))
        rows: RaggedBatch = await _tokenized(lambda: self.encoder._rows(texts, prefix, None, 0), characters)
        check_tokens(len(rows.ids), self._settings.max_tokens)
        _check_truncated(rows.truncated, truncate=truncate, limit=self.encoder.max_seq_length)
        vectors = await self._batcher.submit(rows, rows.lengths, self.encoder._skipped(prefix))
        return Answer(self._shortened(vectors, dimensions), rows.truncated, len(rows.ids))

    def _prefix(self, prompt_name: str | None) -> str:
        """Return what is put before each text of a request that names this prompt, or none."""
        settings = self._settings
        if prompt_name is None:
            return self.encoder._prompt(settings.prompt, settings.prompt_name)
        return self.encoder._prompt(None, prompt_name)

    def _check_dimensions(self, dimensions: int | None) -> None:
        if dimensions is not None and not 1 <= dimensions <= self.encoder.dimension:
            message = f"dimensions must be from 1 to {self.encoder.dimension}, not {dimensions}"
            raise RequestError(400, message, param="dimensions")

    def _shortened(self, vectors: npt.NDArray[Any], dimensions: int | None) -> npt.NDArray[Any]:
        if dimensions is None or dimensions == vectors.shape[1]:
            return vectors
        return normalize(vectors[:, :dimensions]) if self._normalizes else vectors[:, :dimensions]

    def _run(self, skip: int, parts: Sequence[Part]) -> npt.NDArray[Any]:
        rows = _joined([part.rows[part.start : part.stop] for part in parts])
        return self.encoder._sentence_vectors(rows, 32, skip, progress=False)[:, : self.encoder.dimension]

    async def close(self) -> None:
        """End the work."""
        await self._batcher.close()


class ServedStaticEncoder(ServedEncoder):
    """A static encoder. A text takes microseconds, so nothing is gained by batches over requests."""

    async def embed(
        self, texts: list[str], *, dimensions: int | None, prompt_name: str | None, truncate: bool
    ) -> Answer:
        """Return the vectors of texts: those of `StaticEncoder.encode`."""
        self._check_dimensions(dimensions)
        prefix = self._prefix(prompt_name)

        def encode() -> Answer:
            rows = self.tokenizer.encode_batch(
                [prefix + text for text in texts], add_special_tokens=False, truncation=False, padding=False, threads=1
            )
            limit = self.encoder.max_seq_length
            tokens = int(np.minimum(rows.lengths, limit).sum())
            check_tokens(tokens, self._settings.max_tokens)
            vectors, truncated = self.encoder.encode(texts, prompt=prefix, return_truncated=True)
            _check_truncated(truncated, truncate=truncate, limit=limit)
            return Answer(self._shortened(vectors, dimensions), truncated, tokens)

        return await asyncio.to_thread(encode)


class ServedRanker:
    """A cross encoder behind a queue."""

    def __init__(self, name: str, ranker: CrossEncoder, settings: ServerSettings, metrics: Metrics) -> None:
        if ranker.num_labels != 1:
            raise ConfigError(f"{name}: a model that ranks has one label; this one has {ranker.num_labels}")
        self.name = name
        self.ranker = ranker
        self.tokenizer = ranker.tokenizer
        self._pairs = PairEncoder(ranker.tokenizer, ranker.max_length)
        self._settings = settings
        self._batcher = Batcher(self._run, settings, metrics, name)

    async def rank(self, query: str, documents: list[str], *, raw_scores: bool, truncate: bool) -> Answer:
        """Return the score of each document: those of `CrossEncoder.predict`."""
        ranker = self.ranker
        prefix = prompt_text(None, None, ranker._folder.prompts, ranker._folder.default_prompt_name)
        characters = len(query) + sum(map(len, documents))
        rows = await _tokenized(lambda: self._pairs.rows(prefix + query, documents), characters)
        tokens = int(rows.lengths.sum())
        check_tokens(tokens, self._settings.max_tokens)
        _check_truncated(rows.truncated, truncate=truncate, limit=ranker.max_length)
        scores = await self._batcher.submit(rows, rows.lengths, raw_scores)
        return Answer(scores, rows.truncated, tokens)

    def _run(self, raw_scores: bool, parts: Sequence[Part]) -> npt.NDArray[Any]:
        rows = [row for part in parts for row in part.rows[part.start : part.stop]]
        activation = identity if raw_scores else self.ranker._activation
        scores = np.zeros(len(rows), np.float32)
        for batch, inputs in encoding_batches(rows, 32):
            scores[batch] = activation(self.ranker._model.infer(**inputs, threads=self.ranker._threads))[:, 0]
        return scores

    async def close(self) -> None:
        """End the work."""
        await self._batcher.close()


class Models:
    """The models of a server by name.

    Raises
    ------
    InputError
        There is no model, or one is neither a `SentenceEncoder` nor a `CrossEncoder`.
    """

    def __init__(
        self, models: Mapping[str, SentenceEncoder | CrossEncoder], settings: ServerSettings, metrics: Metrics
    ) -> None:
        if not models:
            raise InputError("a server needs a model: give a dict of names and encoders")
        self._models: dict[str, ServedEncoder | ServedRanker] = {}
        for name, model in models.items():
            try:
                name.encode()
            except UnicodeEncodeError as cause:
                raise InputError(
                    f"models has the name {name!r}, which is not Unicode: give the model another name"
                ) from cause
            if isinstance(model, StaticEncoder):
                self._models[name] = ServedStaticEncoder(name, model, settings, metrics)
            elif isinstance(model, SentenceEncoder):
                self._models[name] = ServedEncoder(name, model, settings, metrics)
            elif isinstance(model, CrossEncoder):
                self._models[name] = ServedRanker(name, model, settings, metrics)
            else:
                raise InputError(
                    f"models[{name!r}] must be a SentenceEncoder or a CrossEncoder, not {type(model).__name__}"
                )

    @property
    def names(self) -> list[str]:
        """The names of all models."""
        return list(self._models)

    def encoder(self, name: str | None) -> ServedEncoder:
        """Return the sentence encoder of a name; without a name, the first."""
        found = self._find(name, (ServedEncoder,), "a sentence encoder, which makes vectors")
        assert isinstance(found, ServedEncoder)
        return found

    def ranker(self, name: str | None) -> ServedRanker:
        """Return the cross encoder of a name; without a name, the first."""
        found = self._find(name, (ServedRanker,), "a cross encoder, which ranks")
        assert isinstance(found, ServedRanker)
        return found

    def any(self, name: str | None) -> ServedEncoder | ServedRanker:
        """Return the model of a name; without a name, the first."""
        return self._find(name, (ServedEncoder, ServedRanker), "a model")

    def _find(self, name: str | None, kinds: tuple[type, ...], meaning: str) -> ServedEncoder | ServedRanker:
        served = ", ".join(map(repr, self._models))
        if name is not None and name not in self._models:
            message = f"no model {name!r:.200}; this server has {served}"
            raise RequestError(404, message, param="model", code="model_not_found")
        candidates = self._models.values() if name is None else [self._models[name]]
        for model in candidates:
            if isinstance(model, kinds):
                return model
        what = "this server has no model that is" if name is None else f"the model {name!r} is not"
        raise RequestError(400, f"{what} {meaning}; the models are {served}", param="model")

    async def close(self) -> None:
        """End the work of all models."""
        await asyncio.gather(*(model.close() for model in self._models.values()))


def load_model(
    name: str,
    *,
    backend: str = "rust",
    dtype: str = "float32",
    threads: int | None = None,
    download: bool = False,
    calibrate: list[str] | None = None,
) -> SentenceEncoder | CrossEncoder:
    """Load a sentence encoder, or the cross encoder of a folder whose model classifies sequences.

    Raises
    ------
    ModelNotFoundError, ConfigError, CheckpointError, TokenizerFormatError
        As for `SentenceEncoder` and `CrossEncoder`.
    """
    folder = find_model(name, download=download)
    cls = CrossEncoder if _is_ranker(folder) else SentenceEncoder
    return cls(name, backend=backend, dtype=dtype, threads=threads, calibrate=calibrate)


def _is_ranker(folder: Path) -> bool:
    """Whether a folder has a model for sequence classification that is no part of a sentence encoder."""
    if (folder / "modules.json").is_file():
        return False
    config = find_config(folder)
    architectures = read_object(config, ConfigError).get("architectures") if config.is_file() else None
    return isinstance(architectures, list) and any(
        isinstance(name, str) and name.endswith("ForSequenceClassification") for name in architectures
    )


async def _tokenized(tokenize: Callable[[], Item], characters: int) -> Item:
    """Tokenize texts: short ones at once, long ones in a thread."""
    return await asyncio.to_thread(tokenize) if characters > _INLINE_CHARACTERS else tokenize()


def check_tokens(tokens: int, most: int) -> None:
    """Refuse a request that has more tokens in all than the server allows."""
    if tokens > most:
        message = f"the request has more than the server's limit of {most} tokens"
        raise RequestError(400, message, code="too_many_tokens")


def _check_truncated(truncated: npt.NDArray[np.bool_], *, truncate: bool, limit: int) -> None:
    """Refuse truncated texts unless truncation is allowed."""
    if not truncate and truncated.any():
        first = int(truncated.argmax())
        message = (
            f"text {first} has more than the model's {limit} tokens ({int(truncated.sum())} such texts); shorten "
            'it, or allow truncation with "truncate": true'
        )
        raise RequestError(400, message, code="text_too_long")


def _joined(batches: Sequence[RaggedBatch]) -> RaggedBatch:
    """Return the rows of batches as one batch."""
    if len(batches) == 1:
        return batches[0]
    lengths = np.concatenate([batch.lengths for batch in batches])
    return RaggedBatch(
        ids=np.concatenate([batch.ids for batch in batches]),
        row_offsets=np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]),
        truncated=np.concatenate([batch.truncated for batch in batches]),
    )

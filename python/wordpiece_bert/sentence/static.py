"""`StaticEncoder`: sentence vectors without an encoder, the mean of the tokens' own vectors."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, SupportsIndex, cast

import numpy as np

from wordpiece_bert._internal.atomic_folder import AtomicFolder
from wordpiece_bert._internal.checks import check_device, whole_number
from wordpiece_bert._internal.progress import Progress, notify
from wordpiece_bert._internal.texts import check_texts, warn_truncated
from wordpiece_bert.bert.engines.choice import describe_engine
from wordpiece_bert.errors import InputError
from wordpiece_bert.hub import find_model
from wordpiece_bert.sentence.arguments import check_tensors, one_of, tensors
from wordpiece_bert.sentence.base import given_settings, with_settings
from wordpiece_bert.sentence.content_files import content_states
from wordpiece_bert.sentence.encoder import SentenceEncoder, TokenVectors, check_pool
from wordpiece_bert.sentence.save import write_modules_after_static
from wordpiece_bert.sentence.source import Source
from wordpiece_bert.sentence.static_folder import (
    StaticParts,
    read_static_folder,
    write_static_folder,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from wordpiece_bert import _core
    from wordpiece_bert._internal.safe_json import JsonObject
    from wordpiece_bert.bert.engines import EngineInfo
    from wordpiece_bert.bert.functional import Array, Mask
    from wordpiece_bert.sentence.arguments import OutputValue, Texts
    from wordpiece_bert.sentence.static_folder import StaticFolder

__all__ = ["StaticEncoder"]

# A list with a progress bar is encoded so many texts at a time.
_TEXTS_PER_STEP = 1 << 16
#: The value of `max_length` that stands for the setting of the model.
_OF_MODEL: Literal["model"] = "model"
MaxLength = SupportsIndex | Literal["model"] | None


class StaticEncoder(SentenceEncoder):
    """A static model: the vector of a text is the mean of its tokens' vectors, which do not depend on each other.

    `SentenceEncoder` and `SentenceEncoder.from_pretrained` return one for a folder of model2vec, or with a
    StaticEmbedding of sentence-transformers. Texts become vectors in one call of Rust code; Arrow columns are read in
    place. Threads may share it.

    Parameters
    ----------
    model : str or os.PathLike
        The model's name or folder.
    dtype : {"float32", "auto"}
        The number type of the computation, float32; tables of other types are widened.
    backend, keep_half, calibrate
        For the interface of `SentenceEncoder`; a static model has one implementation.
    device, threads, revision, download, prompts, default_prompt_name, similarity_fn_name, truncate_dim
        As for `SentenceEncoder`.

    Raises
    ------
    ModelNotFoundError, ConfigError, CheckpointError, TokenizerFormatError
        As for `SentenceEncoder.from_pretrained`; a CheckpointError also if table and tokenizer do not fit together.
    InputError
        An argument is wrong.
    """

    def __init__(
        self,
        model: str | os.PathLike[str],
        *,
        backend: str = "rust",
        dtype: str = "float32",
        device: str | None = None,
        threads: int | None = None,
        revision: str | None = None,
        download: bool = False,
        keep_half: bool = False,
        calibrate: Sequence[str] | None = None,
        prompts: Mapping[str, str] | None = None,
        default_prompt_name: str | None = None,
        similarity_fn_name: str | None = None,
        truncate_dim: int | None = None,
    ) -> None:
        check_device(device)
        if calibrate is not None:
            raise InputError("calibrate is for dtype='int8', which a static model does not have: leave it out")
        if dtype not in ("float32", "auto"):
            raise InputError(f"dtype must be 'float32' for a static model, which computes in it, not {dtype!r}")
        found = find_model(model, revision=revision, download=download)
        files = content_states(found.absolute())
        given = given_settings(
            prompts=prompts,
            default_prompt_name=default_prompt_name,
            similarity_fn_name=similarity_fn_name,
            truncate_dim=truncate_dim,
        )
        parts = read_static_folder(found)
        self._set_up_static(parts._replace(folder=with_settings(parts.folder, given)), threads)
        self._source = replace(Source.of(model, found, revision, threads=threads, **given), files=files)

    @classmethod
    def _from_parts(
        cls, parts: StaticParts, threads: int | None, information: JsonObject | None = None
    ) -> StaticEncoder:
        """Make an encoder of its parts; `information` goes into the config.json of a saved folder."""
        self = object.__new__(cls)
        self._set_up_static(parts, threads, information)
        return self

    def _set_up_static(self, parts: StaticParts, threads: int | None, information: JsonObject | None = None) -> None:
        self._folder: StaticFolder
        self._folder, self._tokenizer, self._embeddings = parts
        self._threads = threads
        self._source = None
        self._information = information or {}
        self._max_seq_length = self._folder.max_seq_length
        self._modules = list(self._folder.modules)
        lengths = [len(token) for token in self._tokenizer.get_vocab()]
        #: The characters that model2vec reads of a text for each token that it keeps.
        self._chars_per_token = int(np.median(lengths)) if lengths else 0
        is_model2vec = self._folder.layout == "model2vec"
        self._dropped = self._tokenizer._inner.unk_id if is_model2vec else None

    @property
    def engine(self) -> EngineInfo:
        """How the encoder computes on this machine: a static model adds rows of its table in float32."""
        engine = describe_engine("rust", "float32", requested="float32").with_threads(self._threads)
        return replace(engine, reason="a static model adds rows of its table in float32")

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Write a folder that `from_pretrained`, sentence-transformers and model2vec load.

        It has the layout from which the model was loaded, so that it keeps its rules: model2vec's leaves out unknown
        tokens and reads as many characters as `max_seq_length` usually needs, sentence-transformers' does neither. All
        files appear, or replace older ones, only when they are complete; other files stay.

        Parameters
        ----------
        folder
            The folder; it is created if need be.

        Raises
        ------
        InputError
            There is a file of that name, or the tokenizer cannot be written.
        OSError
            A file cannot be written; then nothing has changed.
        """
        with AtomicFolder(Path(folder)) as output:
            output.begin()
            self._write_files(output)
            output.commit()

    def _write_files(self, output: AtomicFolder) -> None:
        settings = replace(self._folder, max_seq_length=self._max_seq_length)
        tokenizer = self._tokenizer
        if settings.layout == "sentence-transformers" and self._max_seq_length != self._folder.max_seq_length:
            tokenizer = tokenizer.with_truncation(max_length=self._max_seq_length)
        write_static_folder(output, StaticParts(settings, tokenizer, self._embeddings), self._information)
        if settings.layout == "sentence-transformers":
            write_modules_after_static(output, settings, normalized=settings.least_length is not None)

    @property
    def max_seq_length(self) -> int:
        """The most tokens of a text that count; ``sys.maxsize`` if texts are not cut. It may be set."""
        return self._max_seq_length

    @max_seq_length.setter
    def max_seq_length(self, value: int) -> None:
        self._max_seq_length = whole_number("max_seq_length", value, 1)

    def encode(  # type: ignore[override]  # max_length is one more argument
        self,
        texts: str | Texts | None = None,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        output_value: OutputValue = "sentence_embedding",
        precision: str = "float32",
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        device: str | None = None,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        pool: None = None,
        *,
        sentences: str | Texts | None = None,
        inputs: str | Texts | None = None,
        return_truncated: bool = False,
        windows: None = None,
        stride: int = 0,
        max_length: MaxLength = _OF_MODEL,
    ) -> Any:
        """Turn texts into vectors.

        Parameters
        ----------
        texts
            One text, an iterable of texts, or a column of strings (Arrow or NumPy), which is read in place.
        batch_size, windows, stride
            For the interface of `SentenceEncoder.encode`: all texts are computed at once, and none is too long.
        output_value
            ``"sentence_embedding"``; ``"token_embeddings"`` for the vectors of each text's tokens, without `max_length`
            unless it is given; None for a dict of both for each text.
        max_length
            The most tokens of a text that count; None for all of them. By default `max_seq_length`.
        prompt_name, prompt, show_progress_bar, precision, convert_to_numpy, convert_to_tensor, device, \
normalize_embeddings, truncate_dim, pool, sentences, inputs, return_truncated
            As for `SentenceEncoder.encode`.

        Returns
        -------
        array or list of arrays
            As `SentenceEncoder.encode`. A text without tokens has a vector of zeros.

        Raises
        ------
        InputError
            A text is not a str (the message has its index), or an argument is wrong.

        Warns
        -----
        TruncationWarning
            Texts were cut, and `return_truncated` is false.
        """
        check_device(device)
        check_pool(pool)
        check_tensors(convert_to_tensor)
        whole_number("batch_size", batch_size, 1)
        if (windows, stride) != (None, 0):
            raise InputError(
                "windows and stride are for models with a longest row; here, pass max_length=None to cut nothing"
            )
        given = one_of(texts=texts, sentences=sentences, inputs=inputs)
        single = isinstance(given, str)
        prefix = self._prompt(prompt, prompt_name)
        if single or prefix:
            given = [prefix + text for text in check_texts(given)[1]]
        result: Any
        if output_value == "sentence_embedding":
            vectors, truncated = self._means(given, max_length, show=bool(show_progress_bar))
            arrays = convert_to_numpy or convert_to_tensor
            result = self._presented(vectors, precision, truncate_dim, normalized=normalize_embeddings, arrays=arrays)
        else:
            self._check_token_output(output_value, precision, truncate_dim, normalized=normalize_embeddings)
            texts = check_texts(given)[1]
            result, truncated = self._token_rows(texts, None if _is_of_model(max_length) else max_length)
            if output_value is None:
                vectors, truncated = self._means(texts, max_length, show=False)
                result = [
                    {
                        "input_ids": ids,
                        "attention_mask": np.ones(len(ids), np.int64),
                        "token_embeddings": x,
                        "sentence_embedding": vector,
                    }
                    for (ids, x), vector in zip(result, vectors, strict=True)
                ]
            else:
                result = [x for _, x in result]
        if single:
            result = result[0]
        if convert_to_tensor:
            result = tensors(result)
        if not return_truncated:
            warn_truncated(truncated, self._longest(max_length) or 0)
            return result
        return result, bool(truncated[0]) if single else truncated

    def encode_tokens(self, texts: str | Texts, *, batch_size: int = 32) -> Any:
        """Return the vectors of the tokens of texts, with their offsets in the texts; without a prompt, uncut.

        Parameters
        ----------
        texts
            As for `encode`.
        batch_size
            For the interface of `SentenceEncoder.encode_tokens`.

        Returns
        -------
        TokenVectors
            The tokens that count, without special tokens; for a list of texts, a list of these.

        Raises
        ------
        InputError
            A text is not a str, or an argument is wrong.
        """
        whole_number("batch_size", batch_size, 1)
        single, items = check_texts(texts)
        rows = self._tokenizer.encode_batch(
            items,
            add_special_tokens=False,
            truncation=False,
            padding=False,
            return_offsets=True,
            threads=self._threads,
        )
        assert rows.offsets is not None
        found = []
        for start, end in zip(rows.row_offsets[:-1].tolist(), rows.row_offsets[1:].tolist(), strict=True):
            counts = np.flatnonzero(rows.ids[start:end] != self._dropped) + start
            ids = np.ascontiguousarray(rows.ids[counts], np.uint32)
            tokens = cast("list[str]", self._tokenizer.convert_ids_to_tokens(ids))  # every id has one
            offsets = [(first, last) for first, last in rows.offsets[counts].tolist()]
            found.append(TokenVectors(self._embeddings.tokens(ids), offsets, tokens, truncated=False))
        return found[0] if single else found

    def encode_chunks(self, text: object, chunks: object, *_: object, **__: object) -> NoReturn:
        """Raise an error: the tokens of a static model do not depend on the text around a chunk.

        Parameters
        ----------
        text, chunks
            As for `SentenceEncoder.encode_chunks`.

        Raises
        ------
        InputError
            Always.
        """
        raise InputError(
            "late chunking needs a model whose tokens see each other; with a static model, encode the chunks"
        )

    def __repr__(self) -> str:
        longest = "" if self._max_seq_length == sys.maxsize else f", at most {self._max_seq_length} tokens"
        rows, width, tokens = self._embeddings.shape
        return f"StaticEncoder(dimension {self.dimension}{longest}, {tokens} tokens, table {rows} × {width})"

    def _encode_block(self, block: _core.TextBlock) -> tuple[Array, Mask, int]:
        """Turn a block of texts from files into vectors; also return which were cut, and the number of tokens."""
        vectors, truncated, tokens = self._embeddings.encode_block(
            self._tokenizer._inner, block, *self._call(_OF_MODEL), self._threads
        )
        return self._after_mean(vectors), truncated, tokens

    def _means(self, texts: Any, max_length: MaxLength, *, show: bool) -> tuple[Array, Mask]:
        """Turn texts into vectors, [n, d], with all modules of the model; also return which were cut, [n]."""
        call = self._call(max_length)

        def encode(part: Any) -> tuple[Array, Mask]:
            vectors, truncated, tokens = self._embeddings.encode(
                self._tokenizer._inner, part, *call, self._threads, None
            )
            notify(len(vectors), tokens)
            return self._after_mean(vectors), truncated

        if not show or not isinstance(texts, list | tuple) or len(texts) <= _TEXTS_PER_STEP:
            return encode(texts)
        done: list[tuple[Array, Mask]] = []
        with Progress(len(texts), "row") as bar:
            for start in range(0, len(texts), _TEXTS_PER_STEP):
                done.append(encode(texts[start : start + _TEXTS_PER_STEP]))
                bar.update(min(start + _TEXTS_PER_STEP, len(texts)))
        vectors, truncated = zip(*done, strict=True)
        return np.concatenate(vectors), np.concatenate(truncated)

    def _after_mean(self, vectors: Array) -> Array:
        return self._after_pooling(vectors) if self._modules else vectors

    def _longest(self, max_length: MaxLength) -> int | None:
        """Return the most tokens of a text that count; None for all."""
        if _is_of_model(max_length):
            return None if self._max_seq_length == sys.maxsize else self._max_seq_length
        return None if max_length is None else whole_number("max_length", cast("SupportsIndex", max_length), 1)

    def _chars(self, longest: int | None) -> int | None:
        """Return the most characters of a text that are read for so many tokens; None for all."""
        if not longest or self._folder.layout != "model2vec":
            return None
        return min(longest * self._chars_per_token, sys.maxsize)

    def _call(self, max_length: MaxLength) -> tuple[_core.Options, int | None, int | None, float | None]:
        """Return the options of tokenizing, the most characters, the token left out, and the least length."""
        longest = self._longest(max_length)
        chars = self._chars(longest)
        truncation = None
        if longest is not None:
            settings = self._tokenizer.truncation if self._folder.layout == "sentence-transformers" else None
            truncation = {
                "stride": 0,
                "strategy": "longest_first",
                "direction": "right",
                **(settings or {}),
                "max_length": longest,
            }
        options = self._tokenizer._inner.options(False, truncation, None, "char", False)  # type: ignore[arg-type]
        return options, chars, self._dropped, self._folder.least_length

    def _token_rows(
        self, texts: list[str], max_length: MaxLength
    ) -> tuple[list[tuple[npt.NDArray[np.int64], Array]], Mask]:
        """Return the ids and vectors of each text's tokens, [tokens] and [tokens, d], and which texts were cut, [n]."""
        longest = self._longest(max_length)
        chars = self._chars(longest)
        rows = self._tokenizer.encode_batch(
            [text[:chars] for text in texts],
            add_special_tokens=False,
            truncation=longest is not None,
            max_length=longest,
            padding=False,
            threads=self._threads,
        )
        found = []
        for row in rows:
            ids = row[row != self._dropped] if self._dropped is not None else row
            found.append((ids.astype(np.int64), self._embeddings.tokens(np.ascontiguousarray(ids, np.uint32))))
        shortened = np.array([chars is not None and len(text) > chars for text in texts], np.bool_)
        return found, rows.truncated | shortened


def _is_of_model(max_length: object) -> bool:
    return isinstance(max_length, str) and max_length == _OF_MODEL

"""The body of a static model: the vector of a text is the mean of its tokens' vectors, which are rows of a table."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from wordpiece_bert._internal.checks import thread_count, whole_number
from wordpiece_bert._internal.log import tell
from wordpiece_bert._internal.parts import core_of
from wordpiece_bert._internal.progress import notify, shown_progress
from wordpiece_bert._internal.texts import check_texts
from wordpiece_bert.bert.engines.choice import describe_engine
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence.dense.body import Call, TokenVectors, is_of_model
from wordpiece_bert.sentence.folders.save import write_modules_after_static, write_settings
from wordpiece_bert.sentence.folders.static import StaticParts, read_static_folder, write_static_folder
from wordpiece_bert.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from pathlib import Path
    from typing import NoReturn

    import numpy.typing as npt

    from wordpiece_bert import _core
    from wordpiece_bert._internal.atomic_folder import AtomicFolder
    from wordpiece_bert._internal.safe_json import JsonObject
    from wordpiece_bert.bert.engines import EngineInfo
    from wordpiece_bert.bert.functional import Array, Mask
    from wordpiece_bert.bert.loading import Loading
    from wordpiece_bert.sentence.encoder_base import Settings
    from wordpiece_bert.tokenizer.subword import AnyTokenizer

# A list with a progress bar is encoded so many texts at a time.
_TEXTS_PER_STEP = 1 << 16

# The rows of a table that are in memory at once where they are added in NumPy.
_TOKENS_PER_STEP = 1 << 15


# The options of loading that a table has not, with the values that mean nothing.
_NOT_OF_TABLES: dict[str, tuple[object, ...]] = {
    "backend": ("rust",),
    "dtype": ("float32", "auto"),
    "calibrate": (None,),
    "word_splitter": (None,),
    "instructions": (None,),
}


def load_table(found: Path, loading: Loading, settings: Settings, threads: int | None) -> TableBody:
    """Load the static model of a folder.

    Raises
    ------
    InputError
        An option is given that is for models with an engine.
    """
    for name, without_effect in _NOT_OF_TABLES.items():
        value = getattr(loading, name)
        if value not in without_effect:
            raise InputError(
                f"{name} must be {without_effect[0]!r} for a static model, which has a tokenizer.json and adds rows "
                f"of its table in float32, not {value!r:.80}"
            )
    parts = read_static_folder(found)
    body = TableBody(parts._replace(folder=settings.of(parts.folder)), threads)
    tell("loaded a static model from %s: %s", found, body.engine)
    return body


class TableBody:
    """A table of token vectors; see `Body` for the methods that all bodies have.

    Parameters
    ----------
    parts : StaticParts
        The settings, the tokenizer and the table.
    threads : int or None
        The number of threads; None for the default.
    information : dict, optional
        Fields of the config.json that `write_files` writes in the layout of model2vec.
    """

    def __init__(self, parts: StaticParts, threads: int | None, information: JsonObject | None = None) -> None:
        self.folder, self.tokenizer, self.embeddings = parts
        self.threads = thread_count(threads)
        self._information = information or {}
        lengths = [len(token) for token in self.tokenizer.get_vocab()]
        #: The characters that model2vec reads of a text for each token that it keeps.
        self._chars_per_token = int(np.median(lengths)) if lengths else 0
        self._is_model2vec = self.folder.layout == "model2vec"
        self._dropped = _unknown(self.tokenizer) if self._is_model2vec else None
        self._set_core()

    def _set_core(self) -> None:
        #: The core that tokenizes and adds rows in one pass; None for a tokenizer of the package ``tokenizers``.
        self._core = core_of(self.tokenizer) if isinstance(self.tokenizer, Tokenizer) else None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_core"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._set_core()

    @property
    def engine(self) -> EngineInfo:
        """How the body computes on this machine: it adds rows of its table in float32."""
        engine = describe_engine("rust", "float32", requested="float32").with_threads(self.threads)
        return replace(engine, reason="a static model adds rows of its table in float32")

    def checked_length(self, name: str, value: object) -> int:
        """Check the longest text in tokens; `name` is the name of the argument."""
        return whole_number(name, cast("int", value), 1)

    def longest_row(self, call: Call) -> int | None:
        """Return the longest text in tokens of a call; None for no limit."""
        if is_of_model(call.max_length):
            return None if call.max_seq_length == sys.maxsize else call.max_seq_length
        return None if call.max_length is None else self.checked_length("max_length", call.max_length)

    def vectors(self, texts: Any, call: Call) -> tuple[Array, Mask]:
        """Return the vectors of texts; without a prompt, the texts of a column are read in place."""
        _refuse_windows(call)
        if call.prefix:
            texts = [call.prefix + text for text in check_texts(texts)[1]]
        core = self._core
        options = None if core is None else self.options(call, core)

        def encode(part: Any) -> tuple[Array, Mask]:
            if core is None or options is None:
                vectors, truncated, tokens = self._means(check_texts(part)[1], self.longest_row(call))
            else:
                vectors, truncated, tokens = self.embeddings.encode(core, part, *options, self.threads, None)
            notify(len(vectors), tokens)
            return self._after_mean(vectors), truncated

        if not call.progress or not isinstance(texts, list | tuple) or len(texts) <= _TEXTS_PER_STEP:
            return encode(texts)
        texts = check_texts(texts)[1]
        done: list[tuple[Array, Mask]] = []
        with shown_progress(len(texts), "row", True) as bar:
            for start in range(0, len(texts), _TEXTS_PER_STEP):
                done.append(encode(texts[start : start + _TEXTS_PER_STEP]))
                bar.update(min(start + _TEXTS_PER_STEP, len(texts)))
        vectors, truncated = zip(*done, strict=True)
        return np.concatenate(vectors), np.concatenate(truncated)

    def block_vectors(self, block: _core.TextBlock, max_seq_length: int) -> tuple[Array, Mask, int]:
        """Turn a block of texts from files into vectors; also return which were cut, and the number of tokens."""
        call = Call(max_seq_length=max_seq_length)
        if self._core is None:
            vectors, truncated, tokens = self._means(block.texts(), self.longest_row(call))
        else:
            vectors, truncated, tokens = self.embeddings.encode_block(
                self._core, block, *self.options(call, self._core), self.threads
            )
        return self._after_mean(vectors), truncated, tokens

    def _means(self, texts: list[str], longest_row: int | None) -> tuple[Array, Mask, int]:
        """Return the means of the tokens' vectors [n, width], which texts were cut, and the number of tokens.

        The tokenizer is one of the package ``tokenizers``, which takes most of a call's time.
        """
        chars = self._chars(longest_row)
        rows = self.tokenizer.encode_batch(
            [text[:chars] for text in texts],
            add_special_tokens=False,
            truncation=longest_row is not None,
            max_length=longest_row,
            padding=False,
            threads=self.threads,
        )
        kept = rows.ids != self._dropped if self._dropped is not None else np.ones(len(rows.ids), np.bool_)
        ends = np.concatenate([[0], np.cumsum(kept)])[rows.row_offsets]  # [n + 1]
        ids, lengths = np.ascontiguousarray(rows.ids[kept], np.uint32), np.diff(ends)
        vectors = np.zeros((len(texts), self.embeddings.shape[1]), np.float32)
        start = 0
        while start < len(texts):  # rows of at most so many tokens at a time, one row at least
            stop = max(start + 1, int(np.searchsorted(ends, ends[start] + _TOKENS_PER_STEP, side="right")) - 1)
            x = self.embeddings.tokens(ids[ends[start] : ends[stop]])
            ones = np.ones(lengths[start:stop].max(), np.float32)
            for row in np.flatnonzero(lengths[start:stop]) + start:
                first, length = ends[row] - ends[start], lengths[row]
                # A product of a row of ones: many times as fast as np.add.reduceat, and rounded less.
                vectors[row] = (ones[:length] @ x[first : first + length]) / length
            start = stop
        if self.folder.least_length is not None:
            norms = np.sqrt(np.square(vectors).sum(axis=1, keepdims=True))
            vectors /= np.maximum(norms, np.float32(self.folder.least_length))
        shortened = np.array([chars is not None and len(text) > chars for text in texts], np.bool_)
        return vectors, rows.truncated | shortened, len(ids)

    def token_vectors(self, texts: Any, call: Call) -> tuple[list[tuple[npt.NDArray[np.int64], Array]], Mask]:
        """Return the ids and vectors of each text's tokens, which only a `max_length` of the call cuts."""
        _refuse_windows(call)
        longest_row = None if is_of_model(call.max_length) else self.longest_row(call)
        chars = self._chars(longest_row)
        items = [call.prefix + text for text in check_texts(texts)[1]]
        rows = self.tokenizer.encode_batch(
            [text[:chars] for text in items],
            add_special_tokens=False,
            truncation=longest_row is not None,
            max_length=longest_row,
            padding=False,
            threads=self.threads,
        )
        found = []
        for row in rows:
            ids = row[row != self._dropped] if self._dropped is not None else row
            found.append((ids.astype(np.int64), self.embeddings.tokens(np.ascontiguousarray(ids, np.uint32))))
        shortened = np.array([chars is not None and len(text) > chars for text in items], np.bool_)
        return found, rows.truncated | shortened

    def named_tokens(self, texts: list[str], call: Call) -> list[TokenVectors]:
        """Return the vectors of the tokens that count, without special tokens, uncut."""
        del call
        rows = self.tokenizer.encode_batch(
            texts,
            add_special_tokens=False,
            truncation=False,
            padding=False,
            return_offsets=True,
            threads=self.threads,
        )
        assert rows.offsets is not None
        found = []
        for start, end in zip(rows.row_offsets[:-1].tolist(), rows.row_offsets[1:].tolist(), strict=True):
            counts = np.flatnonzero(rows.ids[start:end] != self._dropped) + start
            ids = np.ascontiguousarray(rows.ids[counts], np.uint32)
            tokens = cast("list[str]", self.tokenizer.convert_ids_to_tokens(ids))  # every id has one
            offsets = [(first, last) for first, last in rows.offsets[counts].tolist()]
            found.append(TokenVectors(self.embeddings.tokens(ids), offsets, tokens, truncated=False))
        return found

    def chunk_vectors(self, texts: list[str], chunks: Any, call: Call, *, sections: bool) -> NoReturn:
        """Raise an error: the tokens of a static model do not depend on the text around a chunk."""
        del texts, chunks, call, sections
        raise InputError(
            "late chunking needs a model whose tokens see each other; with a static model, encode the chunks"
        )

    def write_files(self, output: AtomicFolder, max_seq_length: int) -> None:
        """Write the files in the layout from which the model was loaded, which keeps its rules."""
        settings = replace(self.folder, max_seq_length=max_seq_length)
        tokenizer = self.tokenizer
        is_changed = not self._is_model2vec and max_seq_length != self.folder.max_seq_length
        if is_changed and isinstance(tokenizer, Tokenizer):
            tokenizer = tokenizer.with_truncation(max_length=max_seq_length)
        write_static_folder(output, StaticParts(settings, tokenizer, self.embeddings), self._information)
        if self._is_model2vec:
            write_settings(output, settings)
        else:
            write_modules_after_static(output, settings, normalized=settings.least_length is not None)

    def described(self, max_seq_length: int) -> str:
        """Describe the encoder."""
        dimension = self.folder.truncate_dim or self.folder.dimension
        at_most = "" if max_seq_length == sys.maxsize else f", at most {max_seq_length} tokens"
        rows, width, tokens = self.embeddings.shape
        return f"dimension {dimension}{at_most}, {tokens} tokens, table {rows} × {width}"

    def options(self, call: Call, core: _core.Tokenizer) -> tuple[_core.Options, int | None, int | None, float | None]:
        """Return the options of tokenizing, the most characters, the token left out, and the least length."""
        longest_row = self.longest_row(call)
        truncation = None
        if longest_row is not None:
            settings = None if self._is_model2vec else core.truncation
            truncation = {
                "stride": 0,
                "strategy": "longest_first",
                "direction": "right",
                **(settings or {}),
                "max_length": longest_row,
            }
        options = core.options(False, truncation, None, "char", False)  # type: ignore[arg-type]
        return options, self._chars(longest_row), self._dropped, self.folder.least_length

    def _chars(self, longest_row: int | None) -> int | None:
        """Return the most characters of a text that are read for so many tokens; None for all."""
        if not longest_row or not self._is_model2vec:
            return None
        return min(longest_row * self._chars_per_token, sys.maxsize)

    def _after_mean(self, vectors: Array) -> Array:
        for module in self.folder.modules:
            vectors = module(vectors)
        return vectors


def _unknown(tokenizer: AnyTokenizer) -> int | None:
    """Return the id of the token that model2vec leaves out: the id of what the tokenizer's model does not know."""
    return core_of(tokenizer).unk_id if isinstance(tokenizer, Tokenizer) else tokenizer.unknown_id


def _refuse_windows(call: Call) -> None:
    if (call.windows, call.stride) != (None, 0):
        raise InputError(
            "windows and stride are for models with a longest row; here, pass max_length=None to cut nothing"
        )

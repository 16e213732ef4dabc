"""The body of a sentence encoder with a BERT model: a tokenizer, the model, a pooling, and the modules after it."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from wordpiece_bert._internal.batching import Passes, pad_rows
from wordpiece_bert._internal.checks import thread_count, whole_number
from wordpiece_bert._internal.parts import write_files
from wordpiece_bert._internal.texts import check_texts, warn_truncated
from wordpiece_bert.bert.auto import load_base
from wordpiece_bert.bert.engines import get_engine
from wordpiece_bert.bert.functional import normalize
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence.dense.body import TokenVectors, is_of_model
from wordpiece_bert.sentence.dense.late_chunking import check_chunks, mean_of_chunks, sections_of, tokens_of_texts
from wordpiece_bert.sentence.dense.recent_rows import RecentVectors
from wordpiece_bert.sentence.dense.windows import COMBINATIONS, combine, cut_into_windows
from wordpiece_bert.sentence.folders.modules import Dense, Normalize, read_folder
from wordpiece_bert.sentence.folders.save import write_modules
from wordpiece_bert.sentence.rows import model_tokenizer, passes, rows_of

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    from wordpiece_bert._internal.atomic_folder import AtomicFolder
    from wordpiece_bert.bert.engines import EngineInfo
    from wordpiece_bert.bert.functional import Array, Mask
    from wordpiece_bert.bert.loading import Loading
    from wordpiece_bert.bert.model import BertModel
    from wordpiece_bert.sentence.dense.body import Call
    from wordpiece_bert.sentence.encoder_base import Settings
    from wordpiece_bert.sentence.folders.modules import SentenceFolder
    from wordpiece_bert.tokenizer.ragged_batch import RaggedBatch
    from wordpiece_bert.tokenizer.subword import AnyTokenizer

#: The most tokens of one call of the Rust engine: up to a second of work, the longest until Ctrl-C has an effect.
TOKENS_PER_CALL = 16_384


def load_transformer(found: Path, loading: Loading, settings: Settings, threads: int | None) -> TransformerBody:
    """Load the model and the tokenizer of a folder."""
    folder = settings.of(read_folder(found))
    tokenizer = model_tokenizer(folder.transformer, lowercase=folder.do_lower_case, word_splitter=loading.word_splitter)
    model = load_base(folder.transformer, loading)
    return TransformerBody(model, tokenizer, folder, threads)


class TransformerBody:
    """A BERT model with a pooling; see `Body` for the methods that all bodies have.

    Parameters
    ----------
    model : BertModel
        The model.
    tokenizer : Tokenizer
        The tokenizer, in lower case if the folder says so.
    folder : SentenceFolder
        The modules after the model, and the settings.
    threads : int or None
        The number of threads; None for the default.
    """

    def __init__(self, model: BertModel, tokenizer: AnyTokenizer, folder: SentenceFolder, threads: int | None) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.folder = folder
        self.threads = thread_count(threads)
        engine = get_engine(model.backend, model.dtype, model.instructions)
        self._modules = [
            replace(module, linear=engine.linear) if isinstance(module, Dense) else module for module in folder.modules
        ]

    @property
    def engine(self) -> EngineInfo:
        """How the model computes on this machine: CPU, dtype, instructions, threads, and the reason."""
        return self.model.engine.with_threads(self.threads)

    def checked_length(self, name: str, value: object) -> int:
        """Check the longest text in tokens; `name` is the name of the argument."""
        longest_row = self.model.config.longest_row
        return whole_number(name, cast("int", value), 1, longest_row, meaning="the model's longest row")

    def longest_row(self, call: Call) -> int:
        """Return the longest row of a call in tokens."""
        if is_of_model(call.max_length):
            return call.max_seq_length
        if call.max_length is None:
            raise InputError(
                f"max_length must be a number: this model's longest row has {self.model.config.longest_row} tokens; "
                "windows= splits longer texts"
            )
        return self.checked_length("max_length", call.max_length)

    def vectors(self, texts: Any, call: Call) -> tuple[Array, Mask]:
        """Run the model over texts: their vectors, [n, d], and which were truncated, [n]."""
        items = check_texts(texts)[1]
        rows = self.rows(items, call)
        vectors = self.pooled(rows, call.batch_size, self.skipped(call), progress=call.progress)
        if call.windows is not None:
            vectors = self._combined(vectors, rows, call, len(items))
        return vectors, rows.truncated

    def token_vectors(self, texts: Any, call: Call) -> tuple[list[tuple[npt.NDArray[np.int64], Array]], Mask]:
        """Run the model over texts: the ids and vectors of their tokens, and which were truncated."""
        if call.windows is not None:
            raise InputError("windows are for sentence vectors; token vectors cannot be combined")
        rows = self.rows(check_texts(texts)[1], call)
        vectors = self.vectors_of_tokens(rows, call.batch_size, progress=call.progress)
        return [(ids.astype(np.int64), x) for ids, x in zip(rows, vectors, strict=True)], rows.truncated

    def named_tokens(self, texts: list[str], call: Call) -> list[TokenVectors]:
        """Run the model over texts: the vectors of their tokens, [CLS] and [SEP] among them, with their offsets."""
        rows = rows_of(self.tokenizer, texts, self.longest_row(call), self.threads, return_offsets=True)
        assert rows.offsets is not None
        vectors = self.vectors_of_tokens(rows, call.batch_size)
        warn_truncated(rows.truncated, self.longest_row(call))
        found = []
        for index, x in enumerate(vectors):
            start, end = rows.row_offsets[index : index + 2].tolist()
            offsets = [(first, last) for first, last in rows.offsets[start:end].tolist()]
            tokens = cast("list[str]", self.tokenizer.convert_ids_to_tokens(rows.ids[start:end]))  # every id has one
            found.append(TokenVectors(x, offsets, tokens, bool(rows.truncated[index])))
        return found

    def chunk_vectors(self, texts: list[str], chunks: Any, call: Call, *, sections: bool) -> list[Array]:
        """Run the model over entire texts: the vectors of their chunks, [chunks, d], for late chunking.

        With `sections` a text that is longer than a row goes through the model in sections of entire chunks.
        """
        spans = check_chunks(chunks, len(texts))
        self.check_pools_chunks()
        longest_row = self.longest_row(call)
        tokens = tokens_of_texts(self.tokenizer, texts, call.prefix, None if sections else longest_row, self.threads)
        parts = sections_of(tokens, spans, longest_row)
        found: dict[int, Array] = {}
        batches = Passes(parts.rows, call.batch_size, bound_padding=True)
        for batch in batches.shown(show=False):
            x, mask = self._token_states(parts.rows, batch)  # [B, S, H], [B, S]
            for index, i in batches.sharing(batch):
                found[index] = self.vectors_of_chunks(x[i, mask[i]], parts.starts[index], parts.chunks[index])
        bounds = itertools.pairwise(parts.firsts.tolist())
        return [np.concatenate([found[index] for index in range(first, end)]) for first, end in bounds]

    def check_pools_chunks(self) -> None:
        """Refuse late chunking with a pooling that chunks cannot have."""
        if self.folder.pooling.modes != ("mean",):
            modes = ", ".join(self.folder.pooling.modes)
            raise InputError(
                f"late chunking takes the mean of tokens, but this model was trained with the pooling {modes}"
            )

    def vectors_of_chunks(self, x: Array, starts: npt.NDArray[np.int64], chunks: npt.NDArray[np.int64]) -> Array:
        """Vectors of a text's tokens [tokens, H], which begin at `starts` -> vectors of its chunks [chunks, d]."""
        return self._after_pooling(mean_of_chunks(x, starts, chunks))

    def write_files(self, output: AtomicFolder, max_seq_length: int) -> None:
        """Write the files of a folder of sentence-transformers."""
        more: dict[str, Any] = {} if self.folder.layers is None else {"output_hidden_states": True}
        write_files(self.model, output, **more)
        write_files(self.tokenizer, output)
        hidden_size = self.model.config.hidden_size
        write_modules(output, self.folder, hidden_size=hidden_size, max_seq_length=max_seq_length)

    def described(self, max_seq_length: int) -> str:
        """Describe the encoder."""
        dimension = self.folder.truncate_dim or self.folder.dimension
        return f"dimension {dimension}, at most {max_seq_length} tokens, {self.model!r}"

    def rows(self, texts: list[str], call: Call) -> RaggedBatch:
        """Tokenize all texts: one row for each, or one for each of its windows."""
        longest_row = self.longest_row(call)
        if call.windows is None:
            if call.stride != 0:
                raise InputError(
                    f"stride={call.stride!r} is for windows, of which there are none: pass windows='mean' or 'max' too"
                )
            return rows_of(self.tokenizer, [call.prefix + text for text in texts], longest_row, self.threads)
        if call.windows not in COMBINATIONS:
            raise InputError(f"windows must be None or one of {', '.join(COMBINATIONS)}, not {call.windows!r}")
        return cut_into_windows(self.tokenizer, texts, call.prefix, longest_row, call.stride, self.threads)

    def skipped(self, call: Call) -> int:
        """Return how many tokens at the start of each row belong to the prompt and so are not pooled."""
        if self.folder.pooling.include_prompt or not call.prefix:
            return 0
        longest_row = self.longest_row(call)
        encoding = self.tokenizer.encode(call.prefix, truncation=True, max_length=longest_row, padding=False)
        closing = encoding.special_tokens_mask[-1:]  # [SEP], which in a row follows the text, not the prompt
        return len(encoding.ids) - int(sum(closing))

    def pooled(self, rows: RaggedBatch, batch_size: int, skip: int, *, progress: bool = False) -> Array:
        """Run the model and all modules: a vector for each row, [rows, d].

        Parameters
        ----------
        rows : RaggedBatch
            The rows.
        batch_size : int
            The most rows that go through the NumPy engine at once.
        skip : int
            How many tokens at the start of each row are not pooled.
        progress : bool, default False
            Whether to show a progress bar.
        """
        modes = self.folder.pooling.modes
        vectors = np.zeros((len(rows), self.folder.dimension), np.float32)  # [rows, d]
        recent = RecentVectors(rows, (self, skip), vectors)
        if self.folder.layers is None:
            parts = passes(self.model, rows, batch_size, TOKENS_PER_CALL, bound_padding=True, known=recent.known)
        else:
            parts = Passes(rows, batch_size, bound_padding=True, known=recent.known)
        for part in parts.shown(show=progress):
            if self.folder.layers is None:
                y = self.model.pooled(rows, part, modes, skip, self.threads)  # [B, modes · H]
            else:
                x, mask = self._token_states(rows, part)  # [B, S, H], [B, S]
                y = np.concatenate([self.model.pool(x, mask, mode, skip) for mode in modes], axis=1)
            vectors[part] = self._after_pooling(y)
        parts.repeat(vectors)
        recent.keep()
        return vectors

    def _combined(self, vectors: Array, rows: RaggedBatch, call: Call, texts: int) -> Array:
        """Vectors of windows [windows, d] -> vectors of texts [n, d]."""
        assert rows.overflow_to_sample is not None
        combined = combine(vectors, rows.overflow_to_sample, call.windows, texts)
        modules = self.folder.modules
        return normalize(combined) if modules and isinstance(modules[-1], Normalize) else combined

    def vectors_of_tokens(self, rows: RaggedBatch, batch_size: int, *, progress: bool = False) -> list[Array]:
        """Run the model: the vectors of each row's tokens, [tokens, H]."""
        vectors: dict[int, Array] = {}
        batches = Passes(rows, batch_size, bound_padding=True)
        for batch in batches.shown(show=progress):
            x, mask = self._token_states(rows, batch)  # [B, S, H], [B, S]
            vectors |= {index: x[i, mask[i]] for index, i in batches.sharing(batch)}
        return [vectors[index] for index in range(len(rows))]

    def _token_states(self, rows: RaggedBatch, batch: npt.NDArray[np.intp]) -> tuple[Array, Mask]:
        """Run the model over some rows: the vectors to pool, [B, S, H], and which of them are tokens, [B, S]."""
        ids, mask = pad_rows(rows, batch)  # [B, S]
        layers = self.folder.layers
        if layers is None:
            return self.model(ids, mask, visible_only=True, threads=self.threads).last_hidden_state, mask
        states = self.model(ids, mask, output_hidden_states=True, visible_only=True, threads=self.threads).hidden_states
        assert states is not None
        return layers(states), mask

    def _after_pooling(self, y: Array) -> Array:
        """[n, modes · H] -> [n, d]."""
        for module in self._modules:
            y = module(y)
        return y

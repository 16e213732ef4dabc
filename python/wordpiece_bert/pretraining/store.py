"""Token stores: a tokenized corpus as memory-mapped arrays, with the bounds of sentences and documents."""

from __future__ import annotations

import json
import os
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from wordpiece_bert._internal.atomic_file import AtomicFile, write_text
from wordpiece_bert._internal.checks import iterates
from wordpiece_bert._internal.file_locks import only_writer
from wordpiece_bert._internal.mapped_files import require_whole
from wordpiece_bert._internal.notebook import table_html
from wordpiece_bert._internal.safe_json import quoted
from wordpiece_bert.errors import InputError
from wordpiece_bert.pretraining.index import (
    INDEX,
    JOURNAL,
    check_file,
    ids_dtype,
    open_array,
    path_of,
    read_index,
    release_pages,
    verify_file,
    whole,
)
from wordpiece_bert.pretraining.parts import check_offsets, entries_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

    from wordpiece_bert._internal.safe_json import JsonObject

TOKENS_FORMAT = "wordpiece-bert tokens"
#: The counts of a store, in the order of its index.
COUNTS = ("documents", "documents_empty", "sentences", "sentences_empty", "tokens", "skipped", "bytes")

#: The files of a shard, in the order of the index.
ARRAYS = ("ids", "sentence_offsets", "document_offsets", "document_ids")
# Elements that are written at a time.
_CHUNK = 1 << 20
# Megatron-LM reads uint16 for vocabularies below this size, and int32 for others.
_MEGATRON_UINT16 = 65_500

Value = TypeVar("Value")


class StoreShard:
    """The arrays of one shard, mapped into memory when they are first used.

    Attributes
    ----------
    tokens, sentences, documents : int
        How many the shard has.
    """

    def __init__(self, folder: Path, entry: JsonObject, dtype: np.dtype[Any]) -> None:
        self._folder = folder
        self._files: JsonObject = entry["files"]
        self._dtype = dtype
        self._arrays: dict[str, npt.NDArray[Any]] = {}
        where = folder / INDEX
        self.tokens = whole(where, entry, "tokens")
        self.sentences = whole(where, entry, "sentences")
        self.documents = whole(where, entry, "documents")
        if self._files.keys() != set(ARRAYS):
            raise InputError(
                f"{where}: a shard must have the files {', '.join(ARRAYS)}, not {', '.join(self._files):.80}"
            )

    @property
    def ids(self) -> npt.NDArray[Any]:
        """The ids of all sentences, one after the other: uint16 or uint32 [tokens]."""
        return self._array("ids", self._dtype, self.tokens)

    @property
    def sentence_offsets(self) -> npt.NDArray[np.int64]:
        """Where each sentence begins in `ids`, and the end of the last: int64 [sentences + 1]."""
        return self._array("sentence_offsets", np.int64, self.sentences + 1)

    @property
    def document_offsets(self) -> npt.NDArray[np.int64]:
        """The first sentence of each document, and the number of sentences: int64 [documents + 1]."""
        return self._array("document_offsets", np.int64, self.documents + 1)

    @property
    def document_ids(self) -> npt.NDArray[np.uint64]:
        """The id of each document: uint64 [documents]."""
        return self._array("document_ids", np.uint64, self.documents)

    def _array(self, name: str, dtype: npt.DTypeLike, length: int) -> npt.NDArray[Any]:
        """Return an array, mapped when it is first used; later, if its file is still as long."""
        if (found := self._arrays.get(name)) is not None:
            require_whole(found)
            return found
        return self._arrays.setdefault(name, open_array(self._folder, self._files[name], dtype, length))

    def release(self) -> None:
        """Let the system have the memory of the pages that were read; reading them again brings them back."""
        for array in self._arrays.values():
            release_pages(array)

    def document(self, number: int) -> list[npt.NDArray[Any]]:
        """Return the sentences of a document of this shard, as arrays of ids."""
        first, end = self.document_offsets[number], self.document_offsets[number + 1]
        bounds = self.sentence_offsets[first : end + 1].tolist()
        return [self.ids[a:b] for a, b in pairwise(bounds)]

    def _check_offsets(self) -> None:
        """Check that offsets ascend from 0 to the number of what they divide."""
        for name, offsets, end in (
            ("sentence_offsets", self.sentence_offsets, self.tokens),
            ("document_offsets", self.document_offsets, self.sentences),
        ):
            if len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != end or (np.diff(offsets) <= 0).any():
                path = path_of(self._folder, self._files[name])
                raise InputError(f"{path}: offsets must ascend from 0 to {end:,}; make the store again")


class TokenStore:
    """A tokenized corpus in a folder, as `build_token_store` and `merge_token_stores` write it.

    Opening checks the sizes of all files; the arrays are mapped into memory when they are used. A store is pickled as
    its path. While it is in use, its files must not be cut or overwritten. A file that was shortened is an `InputError`
    at the next use; one that is shortened while its array is read ends the process (SIGBUS), as the system does where
    the file no longer has a mapped page. Removing the folder is safe.

    Parameters
    ----------
    path : path
        The folder.

    Attributes
    ----------
    path : Path
        The folder.
    documents, documents_empty, sentences, sentences_empty, tokens : int
        How many the store has, and how many documents and sentences were dropped because they have no tokens.
    skipped : int
        Texts that could not be read and were skipped (``errors="skip"``).
    bytes : int
        The size of the texts that were read.
    dtype : numpy.dtype
        The type of ids: uint16 or uint32.
    vocab_size : int
        The number of tokens of the tokenizer, added tokens included.
    fingerprint : str
        The fingerprint of the tokenizer.
    options : dict
        The arguments of `build_token_store`.
    shards : tuple of StoreShard
        The arrays.

    Raises
    ------
    InputError
        The folder is not a token store, was not finished, or a file is missing or cut.

    Examples
    --------
    >>> from wordpiece_bert import Tokenizer
    >>> from wordpiece_bert.pretraining import TokenStore, build_token_store
    >>> tokenizer = Tokenizer.from_pretrained("models/words")
    >>> _ = build_token_store(
    ...     tokenizer,
    ...     "examples/texts/documents.txt",
    ...     "corpus.tokens",
    ...     show_progress_bar=False,
    ... )
    >>> store = TokenStore("corpus.tokens")
    >>> store.verify()
    >>> store.documents, store.tokens
    (3, 92)
    >>> len(store.shards[0].document(0))
    4
    >>> [file.name for file in store.to_megatron("corpus")]
    ['corpus.bin', 'corpus.idx']
    """

    path: Path
    dtype: np.dtype[Any]
    vocab_size: int
    fingerprint: str
    options: dict[str, Any]
    shards: tuple[StoreShard, ...]
    documents: int
    documents_empty: int
    sentences: int
    sentences_empty: int
    tokens: int
    skipped: int
    bytes: int

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        index = read_index(self.path, TOKENS_FORMAT)
        self._index = index
        where = self.path / INDEX
        self.dtype = ids_dtype(where, index)
        counts = _checked(where, index, "counts", dict)
        for name in COUNTS:
            setattr(self, name, whole(where, counts, name))
        self.vocab_size = whole(where, index, "vocab_size")
        self.fingerprint = _checked(where, index, "tokenizer", str)
        self.options = _checked(where, index, "options", dict)
        self.shards = tuple(StoreShard(self.path, entry, self.dtype) for entry in index["shards"])
        for name in ("documents", "sentences", "tokens"):
            total = sum(getattr(shard, name) for shard in self.shards)
            if total != getattr(self, name):
                raise InputError(
                    f"{where}: counts has {getattr(self, name):,} {name}, but its shards have {total:,} in all"
                )
        for file in files_of(self):
            check_file(self.path, file)

    def verify(self) -> None:
        """Read all files, and check their checksums and that the offsets ascend.

        Raises
        ------
        InputError
            A file is not as it was written; the message names it.
        """
        for file in files_of(self):
            verify_file(self.path, file)
        for shard in self.shards:
            check_offsets(shard)

    def to_megatron(self, prefix: str | os.PathLike[str]) -> tuple[Path, Path]:
        """Write the store as an indexed dataset of Megatron-LM, which draws its samples from it itself.

        A sentence becomes a sequence. Ids are uint16 for vocabularies below 65,500 tokens and int32 otherwise, as in
        Megatron-LM. Both files appear when they are complete, the index last.

        Parameters
        ----------
        prefix : path
            The paths of the files without ``.bin`` and ``.idx``.

        Returns
        -------
        tuple of Path
            The ``.bin`` and the ``.idx`` file.

        Raises
        ------
        InputError
            An id or a sentence does not fit the format, or `prefix` is inside the store.
        OSError
            A file cannot be written.
        """
        binary, index = Path(f"{os.fspath(prefix)}.bin"), Path(f"{os.fspath(prefix)}.idx")
        if Path(os.path.realpath(binary.parent)).is_relative_to(os.path.realpath(self.path)):
            raise InputError(f"prefix {os.fspath(prefix)!r} is inside the store: choose another folder")
        for shard in self.shards:
            check_offsets(shard)
        dtype = np.dtype("<u2" if self.vocab_size < _MEGATRON_UINT16 else "<i4")
        with AtomicFile(binary) as ids, AtomicFile(index) as bounds:
            ids.begin()
            bounds.begin()
            with ids.naming_errors():
                for shard in self.shards:
                    for chunk in _chunks(shard.ids):
                        if chunk.size and chunk.max() > np.iinfo(dtype).max:
                            raise InputError(f"{binary}: the id {chunk.max()} does not fit Megatron's {dtype}")
                        ids.file.write(chunk.astype(dtype).data)
            with bounds.naming_errors():
                code = 8 if dtype.itemsize == 2 else 4
                counts = np.array([self.sentences, self.documents + 1], "<u8").tobytes()
                bounds.file.write(b"MMIDIDX\0\0" + np.array([1], "<u8").tobytes() + bytes([code]) + counts)
                for chunk in self._megatron_bounds(dtype.itemsize):
                    bounds.file.write(np.ascontiguousarray(chunk).data)
            ids.sync()
            bounds.sync()
            ids.owner.do(index.unlink, missing_ok=True)  # an old index must never stand beside new ids
            ids.rename()
            bounds.rename()
        return binary, index

    def _megatron_bounds(self, width: int) -> Iterator[npt.NDArray[Any]]:
        """Yield the lengths of sentences, their positions in bytes, and the bounds of documents."""
        for shard in self.shards:
            for start in range(0, shard.sentences, _CHUNK):
                lengths = np.diff(shard.sentence_offsets[start : start + _CHUNK + 1])
                if lengths.max() > np.iinfo(np.int32).max:
                    raise InputError(f"a sentence has {lengths.max():,} tokens, more than Megatron-LM's index holds")
                yield lengths.astype("<i4")
        before = 0
        for shard in self.shards:
            for chunk in _chunks(shard.sentence_offsets[:-1]):
                yield (chunk.astype("<i8") + before) * width
            before += shard.tokens
        before = 0
        for shard in self.shards:
            for chunk in _chunks(shard.document_offsets[:-1]):
                yield chunk.astype("<i8") + before
            before += shard.sentences
        yield np.array([before], "<i8")

    def __reduce__(self) -> tuple[type[TokenStore], tuple[Path]]:
        return TokenStore, (self.path,)

    def __repr__(self) -> str:
        return (
            f"TokenStore({str(self.path)!r}: {self.documents:,} documents, {self.sentences:,} sentences, "
            f"{self.tokens:,} tokens, {self.dtype}, {len(self.shards):,} shards)"
        )

    def _repr_html_(self) -> str:
        rows = [(name.replace("_", " "), f"{getattr(self, name):,}") for name in COUNTS]
        rows += [("type of ids", str(self.dtype)), ("shards", f"{len(self.shards):,}")]
        return table_html(f"Token store {self.path}", ("", ""), rows)


def files_of(store: TokenStore) -> Iterator[JsonObject]:
    """Yield the files of a store as its index has them: names, sizes and checksums."""
    for entry in entries_of(store):
        yield from entry["files"].values()


def _checked(path: Path, index: JsonObject, name: str, kind: type[Value]) -> Value:
    """Return a field of an index that must be of a type."""
    value = index.get(name)
    if not isinstance(value, kind):
        raise InputError(f"{path}: {name} is missing or has the wrong type: {quoted(value)}; make the store again")
    return value


def _chunks(array: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
    for start in range(0, len(array), _CHUNK):
        yield array[start : start + _CHUNK]


def merge_token_stores(
    stores: Iterable[str | os.PathLike[str] | TokenStore], output: str | os.PathLike[str]
) -> TokenStore:
    """Make one store of several without copying them: an ``index.json`` that names their shards by relative path.

    Parameters
    ----------
    stores : iterable of path or TokenStore
        The stores, in order: of parts (``part=(i, n)``) or of different corpora. They stay where they are.
    output : path
        The folder of the new store. If it has the same merged store already, that is returned.

    Returns
    -------
    TokenStore
        The merged store. The stores and `output` can be moved together, not apart.

    Raises
    ------
    InputError
        Their tokenizers or types of ids differ, one is given twice, also in a merged store, or `output` holds something
        else.

    Examples
    --------
    >>> from wordpiece_bert import Tokenizer
    >>> from wordpiece_bert.pretraining import build_token_store, merge_token_stores
    >>> tokenizer = Tokenizer.from_pretrained("models/words")
    >>> options = {"show_progress_bar": False}
    >>> _ = build_token_store(
    ...     tokenizer, "examples/texts/documents.txt", "documents.tokens", **options
    ... )
    >>> _ = build_token_store(
    ...     tokenizer, "examples/texts/people.txt", "people.tokens", **options
    ... )
    >>> merge_token_stores(["documents.tokens", "people.tokens"], "all.tokens").documents
    6
    """
    if isinstance(stores, str | os.PathLike | TokenStore) or not iterates(stores):
        raise InputError(f"stores must be a list of token stores, not {stores!r:.80}")
    parts = [store if isinstance(store, TokenStore) else TokenStore(store) for store in stores]
    if not parts:
        raise InputError("stores is empty: pass at least one token store")
    folder = Path(output)
    _check_mergeable(parts, folder)
    first = parts[0]
    real = Path(os.path.realpath(folder))
    options = {name: value for name, value in first.options.items() if all(p.options.get(name) == value for p in parts)}
    index = {
        "format": TOKENS_FORMAT,
        "version": 1,
        "dtype": first.dtype.name,
        "tokenizer": first.fingerprint,
        "vocab_size": first.vocab_size,
        "options": options,
        "counts": {name: sum(getattr(part, name) for part in parts) for name in COUNTS},
        "shards": list(chain.from_iterable(_entries_from(part, real) for part in parts)),
    }
    with only_writer(folder):
        if (folder / JOURNAL).exists():
            raise InputError(
                f"{folder}: has an unfinished store ({JOURNAL}); choose another output, or finish or delete it"
            )
        if not (folder / INDEX).exists():
            write_text(folder / INDEX, json.dumps(index, indent=1) + "\n")
        elif read_index(folder, TOKENS_FORMAT) != index:
            raise InputError(f"{folder}: has another token store already; choose another output, or delete it")
        return TokenStore(folder)


def _check_mergeable(parts: list[TokenStore], folder: Path) -> None:
    seen: dict[str, TokenStore] = {}
    for part in parts:
        for what in ("fingerprint", "dtype"):
            mine, its = getattr(parts[0], what), getattr(part, what)
            if mine != its:
                name = "tokenizer" if what == "fingerprint" else "dtype"
                raise InputError(
                    f"{part.path}: its {name} is {its}, but that of {parts[0].path} is {mine}; both must agree"
                )
        real = os.path.realpath(part.path)
        places = {real, *(os.path.realpath(path_of(Path(real), file)) for file in files_of(part))}
        if twice := places & seen.keys():
            raise InputError(f"{part.path}: is given twice in stores: its shards are in {seen[twice.pop()].path} too")
        seen |= dict.fromkeys(places, part)
    if os.path.realpath(folder) in seen:
        raise InputError(f"{folder}: is one of the stores to merge; choose another output")


def _entries_from(part: TokenStore, folder: Path) -> Iterator[JsonObject]:
    """Yield the shards of a store, with names relative to another folder."""
    base = Path(os.path.realpath(part.path))
    for entry in entries_of(part):
        files = {
            what: {**file, "name": Path(os.path.relpath(path_of(base, file), folder)).as_posix()}
            for what, file in entry["files"].items()
        }
        yield {**entry, "files": files}

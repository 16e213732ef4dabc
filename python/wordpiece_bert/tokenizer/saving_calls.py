"""Saving and comparing tokenizers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, TypeVar

from wordpiece_bert import _core
from wordpiece_bert._internal.lazy import lazy_module
from wordpiece_bert._internal.numerics import versioned
from wordpiece_bert._internal.peer_arguments import TOKENIZER_ARGUMENTS, refusing
from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer import pretrained
from wordpiece_bert.tokenizer.pretrained import SPECIAL_TOKEN_ROLES
from wordpiece_bert.tokenizer.tokenizer_base import TokenizerBase, word_core
from wordpiece_bert.tokenizer.vocabulary_calls import VocabularyCalls

if TYPE_CHECKING:
    from wordpiece_bert._internal import atomic_file, atomic_folder
    from wordpiece_bert._internal.atomic_folder import AtomicFolder
    from wordpiece_bert.tokenizer import word_splitter
    from wordpiece_bert.tokenizer.pretrained import FolderSettings, WordRules
    from wordpiece_bert.tokenizer.tokenizer_base import StrPath
    from wordpiece_bert.tokenizer.word_splitter import WordSplitter
else:
    atomic_file = lazy_module("wordpiece_bert._internal.atomic_file")
    atomic_folder = lazy_module("wordpiece_bert._internal.atomic_folder")
    word_splitter = lazy_module("wordpiece_bert.tokenizer.word_splitter")

AnyTokenizer = TypeVar("AnyTokenizer", bound=TokenizerBase)


class SavingCalls(VocabularyCalls):
    """The methods that write a tokenizer to files, and that compare and copy it."""

    __slots__ = ()

    def to_json(self) -> str:
        """Return the text of a tokenizer.json, from which `tokenizers` makes a tokenizer with the same results.

        If the ids of the vocabulary have gaps (a vocab.txt with blank or repeated lines), `tokenizers` would give new
        added tokens other ids on reading the text. They are then in its vocabulary as well.

        Returns
        -------
        str
            The text of the file.

        Raises
        ------
        InputError
            The ids have gaps, and an added token could be a piece of ordinary words if it were in the vocabulary.

        Examples
        --------
        >>> import json
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(["[UNK]", "new", "york", "##er"])
        >>> json.loads(tokenizer.to_json())["model"]["vocab"]
        {'[UNK]': 0, 'new': 1, 'york': 2, '##er': 3}
        """
        return self._inner.to_json()

    @refusing(TOKENIZER_ARGUMENTS["save"])
    def save(self, path: StrPath) -> None:
        """Write a tokenizer.json, atomically.

        Parameters
        ----------
        path : str or os.PathLike
            The file to create or replace.

        Raises
        ------
        InputError
            As for `to_json`.
        OSError
            The file cannot be written.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(
        ...     ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"]
        ... )
        >>> tokenizer.save("tokenizer.json")
        >>> Tokenizer.from_file("tokenizer.json") == tokenizer
        True
        """
        from pathlib import Path

        atomic_file.write_text(Path(path), self.to_json())

    @refusing(TOKENIZER_ARGUMENTS["save_pretrained"])
    def save_pretrained(self, folder: StrPath) -> None:
        """Write a model folder that transformers loads with the same ids.

        The files are tokenizer.json, tokenizer_config.json, special_tokens_map.json, and vocab.txt if that format can
        represent the vocabulary. Other files of an existing folder stay.

        The files appear, or replace older ones, only when all of them are complete. A folder in which the replacement
        was interrupted is refused by every load, until something is saved there again.

        Parameters
        ----------
        folder : path
            The folder; it is created if need be.

        Raises
        ------
        InputError
            There is a file of that name. Also as for `to_json`.
        OSError
            A file cannot be written; then nothing has changed.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(
        ...     ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"]
        ... )
        >>> tokenizer.save_pretrained("folder")
        >>> Tokenizer.from_pretrained("folder") == tokenizer
        True
        """
        with atomic_folder.written_folder(folder) as output:
            self._write_files(output)

    def _write_files(self, output: AtomicFolder) -> None:
        """Write the files of `save_pretrained`."""
        roles = {role: token for role in SPECIAL_TOKEN_ROLES if (token := self._role(role)) is not None}
        words = word_core(self._inner)
        pretrained.write_folder(
            output, self._inner, self._settings._replace(special_tokens=roles), None if words is None else words.rules
        )

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the tokenizer's definition, in hex. It is the same in every process: a key for cached results.

        A version of the package that computes other ids gives another one.

        A tokenizer with a ``word_splitter`` has none, because a function has none: reading it is an InputError.
        """
        if self._fingerprint is None:
            settings = self._settings
            if word_core(self._inner) is not None:
                raise InputError("a tokenizer with a word_splitter has no fingerprint, because a function has none")
            other_settings = {
                "model_max_length": settings.model_max_length,
                "padding_side": self.padding_side,
                "truncation_side": self.truncation_side,
                "special_tokens": {role: self._role(role) for role in SPECIAL_TOKEN_ROLES},
                "model_input_names": settings.model_input_names,
                # Only if it is set, so that the fingerprints of other tokenizers stay as they were.
                **({"clean_up_tokenization_spaces": True} if settings.clean_up_tokenization_spaces else {}),
                **self._unusual_special_tokens(),
            }
            try:
                definition = self.to_json()
            except InputError:  # no file holds it
                definition = self._inner.snapshot()
            import hashlib
            import json

            content = f"{definition}\n{json.dumps(other_settings, sort_keys=True)}"
            self._fingerprint = hashlib.sha256(versioned(content).encode()).hexdigest()
        return self._fingerprint

    def _unusual_special_tokens(self) -> dict[str, list[str]]:
        """Return the special tokens for the fingerprint if they are not those that the tokenizer marks."""
        listed = self.all_special_tokens
        return {} if set(listed) == set(self._marked_special_tokens()) else {"all_special_tokens": sorted(listed)}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SavingCalls):
            return NotImplemented
        if self is other:
            return True
        words, others = word_core(self._inner), word_core(other._inner)
        if words is None or others is None:
            return words is others and self.fingerprint == other.fingerprint
        return bool(self.__reduce__() == other.__reduce__())

    def __hash__(self) -> int:
        return hash(self.fingerprint if word_core(self._inner) is None else self._inner.snapshot())

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        words = word_core(self._inner)
        own = () if words is None else (words.splitter, words.rules)
        return restored, (type(self), self._inner.state(), self._settings, *own)

    def __repr__(self) -> str:
        about = [f"vocab_size={self.vocab_size}", self._inner.summary()]
        added = len(self) - self.vocab_size
        if added:
            about.append(f"added_tokens={added}")
        if self.model_max_length is not None:
            about.append(f"model_max_length={self.model_max_length}")
        if self.truncation is not None:
            about.append(f"truncation={self.truncation['max_length']}")
        if self.padding is not None:
            about.append(f"padding={self.padding['length'] or 'longest'}")
        return f"Tokenizer({', '.join(about)})"


def restored(
    cls: type[AnyTokenizer],
    text: str,
    settings: FolderSettings,
    splitter: WordSplitter | None = None,
    rules: WordRules | None = None,
) -> AnyTokenizer:
    """Create a tokenizer from the state of its core, as its pickle has it."""
    core: Any = _core.Tokenizer.restore(text)
    if splitter is not None and rules is not None:
        core = word_splitter.WordCore(core, splitter, rules)
    return cls._build(core, settings)

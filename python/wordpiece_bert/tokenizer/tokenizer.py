"""The `Tokenizer` class: how one is made. The parts that it joins have its other methods; `_core` does the work."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, Self

from wordpiece_bert import _core
from wordpiece_bert._internal.checks import check_instance, checked_flag, checked_path, iterates, whole_number
from wordpiece_bert._internal.lazy import lazy_module
from wordpiece_bert._internal.log import tell
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.parts import core_of
from wordpiece_bert._internal.peer_arguments import TOKENIZER_ARGUMENTS, refusing
from wordpiece_bert._internal.warn import warn
from wordpiece_bert.errors import InputError, ModelNotFoundError, TokenizerFormatError, VocabError, VocabWarning
from wordpiece_bert.tokenizer import pretrained
from wordpiece_bert.tokenizer.call_options import resolve
from wordpiece_bert.tokenizer.decoding_calls import DecodingCalls
from wordpiece_bert.tokenizer.file_calls import FileCalls
from wordpiece_bert.tokenizer.model_input_calls import ModelInputCalls
from wordpiece_bert.tokenizer.option_types import CallOptions
from wordpiece_bert.tokenizer.parameters import NORMALIZING, PIECES, SPLITTING
from wordpiece_bert.tokenizer.pretrained import SPECIAL_TOKEN_ROLES, FolderSettings
from wordpiece_bert.tokenizer.saving_calls import SavingCalls
from wordpiece_bert.tokenizer.text_calls import TextCalls

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from wordpiece_bert import hub
    from wordpiece_bert.tokenizer import added_token, vocabulary_remarks
    from wordpiece_bert.tokenizer import word_splitter as word_splitters
    from wordpiece_bert.tokenizer.added_token import AddedToken
    from wordpiece_bert.tokenizer.pretrained import AddedTokenFields, LoadedFolder
    from wordpiece_bert.tokenizer.tokenizer_base import StrPath
    from wordpiece_bert.tokenizer.word_splitter import WordSplitter
else:
    added_token = lazy_module("wordpiece_bert.tokenizer.added_token")
    hub = lazy_module("wordpiece_bert.hub")
    vocabulary_remarks = lazy_module("wordpiece_bert.tokenizer.vocabulary_remarks")
    word_splitters = lazy_module("wordpiece_bert.tokenizer.word_splitter")

# What to do where texts are normalized so that tokens of a vocab.txt are in none, as arguments and in a folder.
_OPTIONS = {
    "lowercase": "use lowercase=False if the model is cased",
    "strip_accents": "use strip_accents=False if the model was trained with accents",
}
_FILE_OPTIONS = {
    "lowercase": 'write "do_lower_case": false into tokenizer_config.json if the model is cased',
    "strip_accents": 'write "strip_accents": false into tokenizer_config.json if the model was trained with accents',
}

# A warning about a vocab.txt describes this many lines, and counts the rest.
_LINES_SHOWN = 5


class Tokenizer(ModelInputCalls, TextCalls, FileCalls, DecodingCalls, SavingCalls):
    """A WordPiece tokenizer: converts text to the inputs of BERT models, and token ids back to text.

    A tokenizer is immutable. Threads may share it, and results do not depend on the number of threads. It can be
    pickled, copied and compared; two tokenizers are equal if they have the same definition.

    Create one with `from_vocab`, `from_file`, `from_json` or `from_pretrained`. `encode` returns all details of one
    text, `encode_batch` flat arrays for many, and ``tokenizer(texts, padding=True)`` the same arrays as in
    transformers.

    Examples
    --------
    >>> from wordpiece_bert import Tokenizer
    >>> tokenizer = Tokenizer.from_vocab(
    ...     ["[UNK]", "[CLS]", "[SEP]", "un", "##afford", "##able"]
    ... )
    >>> tokenizer.encode_ids("Unaffordable")
    array([1, 3, 4, 5, 2], dtype=uint32)
    >>> tokenizer.decode([1, 3, 4, 5, 2])
    'unaffordable'
    """

    __slots__ = ()

    # --- construction

    @classmethod
    @refusing(TOKENIZER_ARGUMENTS["from_vocab"])
    @completed_by(NORMALIZING, PIECES)
    def from_vocab(
        cls,
        vocab: StrPath | Sequence[str] | Mapping[str, int],
        *,
        lowercase: bool = True,
        strip_accents: bool | None = None,
        clean_text: bool = True,
        tokenize_chinese_chars: bool = True,
        unk_token: str = "[UNK]",
        cls_token: str = "[CLS]",
        sep_token: str = "[SEP]",
        pad_token: str = "[PAD]",
        mask_token: str = "[MASK]",
        continuing_subword_prefix: str = "##",
        max_input_chars_per_word: int = 100,
        strict: bool = False,
    ) -> Self:
        """Create a BERT tokenizer from a vocabulary.

        Each of the five special tokens that is in the vocabulary is registered: it is matched in texts as it is, and
        `decode` omits it. If the vocabulary has both `cls_token` and `sep_token`, rows are ``[CLS] A [SEP]`` and
        ``[CLS] A [SEP] B [SEP]``; otherwise no special tokens are added, and a file gives a warning.

        Parameters
        ----------
        vocab : path, sequence of str, or mapping of str to int
            A vocab.txt (one token per line, whose id is the line number from 0), the tokens in the order of their ids,
            or token -> id.
        strict : bool, default False
            Raise an error instead of a warning for a vocab.txt with blank or duplicate lines, white space at the end of
            a line, or a byte order mark.

        Returns
        -------
        Tokenizer
            The tokenizer, without truncation or padding.

        Raises
        ------
        VocabError
            The vocabulary is empty, has no `unk_token`, has two tokens with one id or a duplicate token in a list, or
            is not UTF-8. With `strict`, also for everything that would be a warning.
        ModelNotFoundError
            The file does not exist.
        InputError
            An option has the wrong type or is out of range.

        Warns
        -----
        VocabWarning
            Lines of a vocab.txt look like mistakes; every id is still the number of its line. Or it has no `cls_token`
            or no `sep_token`, so that no special tokens are added; or one token in a hundred or more is in no text,
            because texts are put into lower case or lose their accents.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(
        ...     ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"]
        ... )
        >>> tokenizer.encode("New Yorker").tokens
        ['[CLS]', 'new', 'york', '##er', '[SEP]']
        """
        flags = {
            "lowercase": lowercase,
            "clean_text": clean_text,
            "tokenize_chinese_chars": tokenize_chinese_chars,
            "strict": strict,
        } | ({} if strip_accents is None else {"strip_accents": strip_accents})
        for name, value in flags.items():
            checked_flag(name, value, or_none=name == "strip_accents")
        roles = dict(zip(SPECIAL_TOKEN_ROLES, (unk_token, sep_token, pad_token, cls_token, mask_token), strict=True))
        normalizer = _core.BertNormalizer(
            lowercase=lowercase,
            strip_accents=strip_accents,
            clean_text=clean_text,
            tokenize_chinese_chars=tokenize_chinese_chars,
        )
        core, remarks = _core_of_vocab(
            vocab,
            roles,
            normalizer,
            strict=strict,
            continuing_subword_prefix=continuing_subword_prefix,
            max_input_chars_per_word=whole_number("max_input_chars_per_word", max_input_chars_per_word, 0),
        )
        missing = vocabulary_remarks.missing_specials(core, (cls_token, sep_token))
        if missing:
            remarks.append(
                f"{missing}, so no special tokens are added to texts; add what is missing if the model was trained "
                "with it"
            )
        if isinstance(vocab, str | os.PathLike):
            remarks += vocabulary_remarks.unreachable_tokens(core, normalizer, _OPTIONS)
            if remarks:
                warn(f"{os.fspath(vocab)}: {'; '.join(remarks)}", VocabWarning)
        return cls._build(core, FolderSettings(special_tokens=roles))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Create a tokenizer from the text of a tokenizer.json.

        Components that are not supported are a `TokenizerFormatError` with their names. The file's truncation and
        padding are the defaults of `encode`, `encode_batch` and `encodings`; `with_truncation` and `with_padding` make
        a tokenizer without them.

        Parameters
        ----------
        text : str
            The JSON text.

        Returns
        -------
        Tokenizer
            A tokenizer that returns the same ids as `tokenizers` does for the file.

        Raises
        ------
        TokenizerFormatError
            The text is not JSON, or a part of it is invalid or not supported; the message names the component and the
            field.
        VocabError
            The vocabulary is empty, has no unknown token, or has two tokens with one id.

        Warns
        -----
        UserWarning
            The padding has a pad_id that is not the id of its pad_token.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(
        ...     ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"]
        ... )
        >>> again = Tokenizer.from_json(tokenizer.to_json())
        >>> again == tokenizer
        True
        """
        return cls._from_json_core(_core.Tokenizer.from_json(text))

    @classmethod
    def _from_json_core(cls, core: _core.Tokenizer) -> Self:
        """Create a tokenizer around what was read from a tokenizer.json, and warn about its padding."""
        if contradiction := _pad_contradiction(core):
            pad_id = core.padding["pad_id"] if core.padding else 0
            warn(f"{contradiction}; rows are padded with {pad_id}")
        return cls._from_core(core)

    @classmethod
    def from_file(cls, path: StrPath) -> Self:
        """Create a tokenizer from a tokenizer.json file, as `from_json` does from its text.

        Parameters
        ----------
        path : str or os.PathLike
            The file.

        Returns
        -------
        Tokenizer
            The tokenizer.

        Raises
        ------
        ModelNotFoundError
            The file does not exist.
        TokenizerFormatError, VocabError
            As for `from_json`; the message begins with the path.

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
        data = _read(path)
        with _naming(path):
            return cls._from_json_core(_core.Tokenizer.from_bytes(data))

    @classmethod
    @refusing(TOKENIZER_ARGUMENTS["from_pretrained"])
    @completed_by(SPLITTING)
    def from_pretrained(
        cls,
        name: StrPath,
        *,
        revision: str | None = None,
        download: bool = False,
        word_splitter: WordSplitter | None = None,
    ) -> Self:
        """Load the tokenizer of a model that is on this machine.

        The tokenizer.json of the model's folder is used as it is. If there is none, its vocab.txt is used with the
        options of tokenizer_config.json. Special and added tokens of the folder's other files are added. As in
        transformers, the truncation and padding that a tokenizer.json sets do not apply: pass them to the call, or use
        `from_file`, which keeps them.

        Parameters
        ----------
        name : str or os.PathLike
            ``"minilm"``, a folder, or ``"org/name"`` in the local Hugging Face cache.
        revision : str, optional
            Branch, tag or commit of a model in the Hugging Face cache; ``"main"`` by default.
        download : bool, default False
            Download a model that is not in the cache, with huggingface_hub.

        Returns
        -------
        Tokenizer
            The tokenizer.

        Raises
        ------
        InputError
            The tokenizer of the folder splits texts itself, and there is a `word_splitter`; or that is not a function.
            Calls of the tokenizer also raise it if the function returns something else than a list of str.
        ModelNotFoundError
            There is no such model on this machine, or its folder has neither tokenizer.json nor vocab.txt.
        TokenizerFormatError, VocabError
            A file is invalid, contradicts itself or is not supported; or another program finds the words, and there is
            no `word_splitter`.

        Warns
        -----
        UserWarning
            tokenizer_config.json contradicts tokenizer.json, or gives other ids for added tokens, or the padding of
            tokenizer.json has a pad_id that is not the id of its pad_token.
        VocabWarning
            As for `from_vocab`, if there is no tokenizer.json and no file says whether texts are put into lower case;
            or vocab.txt has no token for ``[CLS]`` or ``[SEP]``, which is then added with the next id.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_pretrained("minilm")
        >>> tokenizer.tokenize("Unaffordable cafés")
        ['una', '##ff', '##ord', '##able', 'cafes']
        """
        folder = hub.find_model(name, revision=revision, download=download)
        word_splitters.check_splitter(word_splitter)
        loaded = pretrained.load_folder(folder, split_words=word_splitter is not None)
        tell("loaded a tokenizer from %s", folder)
        tokenizer = cls._load(folder, loaded)
        if word_splitter is not None:
            assert loaded.vocab is not None
            assert loaded.vocab.words is not None, "load_folder returns the rules of words for a splitter"
            core: Any = word_splitters.WordCore(core_of(tokenizer), word_splitter, loaded.vocab.words)
            tokenizer = cls._build(core, loaded.settings)
        messages = [*loaded.warnings, *pretrained.moved_tokens(loaded, tokenizer.token_to_id)]
        if contradiction := _pad_contradiction(core_of(tokenizer)):
            messages.append(f"{folder}: {contradiction}; rows are padded with the id of the pad_token")
        for message in messages:
            warn(message)
        return cls._without_file_settings(tokenizer)

    @classmethod
    def _load(cls, folder: Path, loaded: LoadedFolder) -> Self:
        """Build the tokenizer that a folder describes."""
        settings = loaded.settings
        if loaded.json is not None:
            with _naming(folder / "tokenizer.json"):
                core = _core.Tokenizer.from_bytes(loaded.json)
        else:
            assert loaded.vocab is not None, "load_folder returns one of the two"
            normalizer = _core.BertNormalizer(
                lowercase=loaded.vocab.lowercase,
                strip_accents=loaded.vocab.strip_accents,
                clean_text=True,
                tokenize_chinese_chars=loaded.vocab.tokenize_chinese_chars,
            )
            roles = dict(settings.special_tokens)
            core, remarks = _core_of_vocab(loaded.vocab.path, roles, normalizer)
            named = [roles[role] for role in ("cls_token", "sep_token") if role in roles]
            missing = vocabulary_remarks.missing_specials(core, named)
            if missing:
                remarks.append(
                    f"{missing}: it is added after the other tokens, as in transformers, and the model has no "
                    "embedding for it unless it was trained so"
                )
            if loaded.vocab.options_are_defaults:
                remarks += vocabulary_remarks.unreachable_tokens(core, normalizer, _FILE_OPTIONS)
            if remarks:
                warn(f"{loaded.vocab.path}: {'; '.join(remarks)}", VocabWarning)
        adding = [_fields(token) for token in loaded.added_tokens]
        present = {fields[0]: fields for _, fields in core.added_tokens()}
        if any(present.get(fields[0]) != fields for fields in adding):  # else nothing would change
            core = core.with_added_tokens(adding)
        tokenizer = cls._build(core, settings)
        if loaded.vocab is not None and not core.special_tokens_added(pair=False):
            cls_id, sep_id = tokenizer.cls_token_id, tokenizer.sep_token_id
            if cls_id is not None and sep_id is not None:
                cls_token, sep_token = settings.special_tokens["cls_token"], settings.special_tokens["sep_token"]
                tokenizer = cls._build(core.with_bert_template(cls_token, sep_token), settings)
        return tokenizer

    # --- tokenizers with other settings

    def _without_file_settings(self) -> Self:
        """Return a tokenizer without the truncation and padding of its tokenizer.json.

        As in transformers, their sides stay the defaults of calls, and padding has token type 0.
        """
        truncation, padding = self._inner.truncation, self._inner.padding
        if truncation is None and padding is None:
            return self
        settings = self._settings
        if settings.truncation_side is None and truncation and truncation["direction"] == "left":
            settings = settings._replace(truncation_side="left")
        if settings.padding_side is None and padding and padding["direction"] == "left":
            settings = settings._replace(padding_side="left")
        return self._build(self._inner.with_settings(None, None), settings)

    def with_truncation(
        self,
        truncation: bool | str | None = True,
        *,
        max_length: int | None = None,
        stride: int = 0,
        truncation_side: str | None = None,
    ) -> Self:
        """Return a tokenizer that truncates by default, or one that does not. This one does not change.

        The setting is the default of `encode`, `encode_batch`, `encodings` and `encode_files`, and is saved in the
        tokenizer.json. The call ``tokenizer(...)`` ignores it, as in transformers.

        Parameters
        ----------
        truncation : bool, str or None, default True
            True for "longest_first", or the name of a strategy; None or False for a tokenizer without truncation.
        max_length : int, optional
            The longest row in tokens, special tokens included. Defaults to `model_max_length`.
        stride : int, default 0
            How many tokens a window shares with the one before.
        truncation_side : {"right", "left"}, optional
            Where texts are cut. Defaults to `truncation_side`.

        Returns
        -------
        Tokenizer
            The new tokenizer.

        Raises
        ------
        InputError
            A value is wrong, or there is no maximum length.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(
        ...     ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"]
        ... )
        >>> short = tokenizer.with_truncation(max_length=3)
        >>> short.encode("New Yorker").tokens
        ['[CLS]', 'new', '[SEP]']
        """
        options = resolve(
            self._inner,
            self._defaults._replace(truncation=None, padding=None),
            CallOptions(
                truncation=truncation or False, max_length=max_length, stride=stride, truncation_side=truncation_side
            ),
        )
        return self._build(self._inner.with_settings(options.truncation, self._inner.padding), self._settings)

    def with_padding(
        self,
        padding: bool | str | None = True,
        *,
        max_length: int | None = None,
        pad_to_multiple_of: int | None = None,
        padding_side: str | None = None,
    ) -> Self:
        """Return a tokenizer that pads by default, or one that does not. This one does not change.

        The setting is the default of `encode`, `encode_batch` and `encodings`, and is saved in the tokenizer.json. The
        call ``tokenizer(...)`` ignores it, as in transformers.

        Parameters
        ----------
        padding : bool, str or None, default True
            True or "longest" for the longest row of the batch, "max_length" for `max_length`; None or False for a
            tokenizer without padding.
        max_length : int, optional
            The length for "max_length". Defaults to `model_max_length`.
        pad_to_multiple_of : int, optional
            Round lengths up to a multiple of this.
        padding_side : {"right", "left"}, optional
            Where padding is added. Defaults to `padding_side`.

        Returns
        -------
        Tokenizer
            The new tokenizer.

        Raises
        ------
        InputError
            A value is wrong, there is no length, or the vocabulary has no padding token.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(
        ...     ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"]
        ... )
        >>> padded = tokenizer.with_padding()
        >>> padded.encode_batch(["New Yorker", "york"]).to_list()
        [[2, 4, 5, 6, 3], [2, 5, 3, 0, 0]]
        """
        options = resolve(
            self._inner,
            self._defaults._replace(truncation=None, padding=None),
            CallOptions(
                truncation=False,
                padding=padding or False,
                max_length=max_length,
                pad_to_multiple_of=pad_to_multiple_of,
                padding_side=padding_side,
            ),
        )
        return self._build(self._inner.with_settings(self._inner.truncation, options.padding), self._settings)

    def with_added_tokens(self, tokens: Iterable[str | AddedToken], *, special: bool = False) -> Self:
        """Return a tokenizer with more added tokens. This one does not change.

        A token that the vocabulary has keeps its id; a new one gets the next id after all others. For a token added
        before, the new flags replace the old ones.

        Parameters
        ----------
        tokens : iterable of str or AddedToken
            The tokens; `AddedToken` for tokens with flags.
        special : bool, default False
            Add all of them as special tokens: `decode` omits them, and they are matched in the original text. BERT's,
            such as [MASK], get the roles that no token has.

        Returns
        -------
        Tokenizer
            The new tokenizer.

        Raises
        ------
        InputError
            A token is empty, or becomes empty by normalization, or is neither a str nor an `AddedToken`.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(
        ...     ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"]
        ... )
        >>> more = tokenizer.with_added_tokens(["[NAME]"], special=True)
        >>> more.encode("New [NAME]").tokens
        ['[CLS]', 'new', '[NAME]', '[SEP]']
        >>> more.token_to_id("[NAME]")
        7
        """
        if isinstance(tokens, str | added_token.AddedToken):
            raise InputError(f"tokens must be a list of tokens, not the single token {str(tokens)!r}")
        check_instance("tokens", tokens, Iterable, "a list of tokens")
        added = []
        for index, token in enumerate(tokens):
            if isinstance(token, str):
                added.append(added_token.AddedToken(token, special=special))
            elif isinstance(token, added_token.AddedToken):
                if special and not token.special:
                    flags = {"single_word": token.single_word, "lstrip": token.lstrip, "rstrip": token.rstrip}
                    token = added_token.AddedToken(token.content, **flags, normalized=False, special=True)
                added.append(token)
            else:
                raise InputError(f"token {index} must be a str or an AddedToken, not {type(token).__name__}: {token!r}")
        settings = self._settings
        new = [token.content for token in added if token.special]
        roles = {role: usual for role, usual in SPECIAL_TOKEN_ROLES.items() if usual in new}
        settings = settings._replace(special_tokens={**roles, **settings.special_tokens})
        if settings.listed_special_tokens is not None:
            settings = settings._replace(listed_special_tokens=(*settings.listed_special_tokens, *new))
        return self._build(self._inner.with_added_tokens([_fields(token) for token in added]), settings)


def _core_of_vocab(
    vocab: object,
    roles: dict[str, str],
    normalizer: _core.BertNormalizer,
    *,
    strict: bool = False,
    continuing_subword_prefix: str = "##",
    max_input_chars_per_word: int = 100,
) -> tuple[_core.Tokenizer, list[str]]:
    """Create a core tokenizer from a vocabulary; also return what looks like mistakes in the lines of a vocab.txt."""
    path = vocab if isinstance(vocab, str | os.PathLike) else None
    with _naming(path):
        core, oddities = _core.Tokenizer.from_vocab(
            _vocabulary(vocab),
            roles,
            normalizer,
            strict=strict,
            continuing_subword_prefix=continuing_subword_prefix,
            max_input_chars_per_word=max_input_chars_per_word,
        )
    more = len(oddities) - _LINES_SHOWN
    return core, oddities[:_LINES_SHOWN] + ([f"and {more:,} more such lines"] if more > 0 else [])


def _pad_contradiction(core: _core.Tokenizer) -> str | None:
    """Return what is wrong with the padding of a tokenizer.json whose pad_id is not the id of its pad_token."""
    padding = core.padding
    if padding is None:
        return None
    actual = core.token_to_id(padding["pad_token"])
    if actual == padding["pad_id"]:
        return None
    has = f"has the id {actual}" if actual is not None else "is not in the vocabulary"
    return f"padding: pad_id is {padding['pad_id']}, but its pad_token {padding['pad_token']!r} {has}"


@contextlib.contextmanager
def _naming(path: StrPath | None) -> Iterator[None]:
    """Prefix errors about a file with its path."""
    try:
        yield
    except (VocabError, TokenizerFormatError) as error:
        if path is None:
            raise
        raise type(error)(f"{os.fspath(path)}: {error}") from error.__cause__


def _read(path: StrPath) -> bytes:
    try:
        with open(checked_path(path), "rb") as file:
            return file.read()
    except FileNotFoundError as cause:
        raise ModelNotFoundError(f"no file {os.fspath(path)!r}: there is nothing at {os.path.abspath(path)}") from cause


def _vocabulary(vocab: object) -> bytes | list[Any] | dict[Any, Any]:
    if isinstance(vocab, str | os.PathLike):
        return _read(vocab)
    if isinstance(vocab, Mapping):
        return dict(vocab)
    if iterates(vocab) and not isinstance(vocab, bytes | bytearray | AbstractSet):
        return list(vocab)
    raise InputError(
        f"a vocabulary must be a path, a list of tokens or a dict of tokens and ids, not {type(vocab).__name__}"
    )


def _fields(token: AddedToken | AddedTokenFields) -> tuple[str, bool, bool, bool, bool, bool]:
    return token.content, token.single_word, token.lstrip, token.rstrip, token.normalized, token.special


def _name_the_methods() -> None:
    """Give the methods of all parts the name of the class, as in ``Tokenizer.encode() got an unexpected keyword …``."""
    for part in Tokenizer.__mro__[1:-1]:
        for name, member in vars(part).items():
            function: Any = getattr(member, "__func__", None) or getattr(member, "fget", None) or member
            while hasattr(function, "__code__"):
                function.__qualname__ = f"Tokenizer.{name}"
                function = getattr(function, "__wrapped__", None)


_name_the_methods()

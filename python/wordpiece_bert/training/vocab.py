"""`Vocab`: a trained vocabulary."""

from __future__ import annotations

import inspect
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Unpack

from wordpiece_bert._internal.atomic_file import write_text
from wordpiece_bert._internal.checks import check_several
from wordpiece_bert._internal.notebook import RECORDS, records_html
from wordpiece_bert._internal.parameters import completed_by, taking
from wordpiece_bert.errors import VocabError
from wordpiece_bert.tokenizer.parameters import PIECES
from wordpiece_bert.tokenizer.tokenizer import Tokenizer
from wordpiece_bert.training.options import AsCounted, NormalizerSettings
from wordpiece_bert.training.parameters import AS_COUNTED, Algorithm
from wordpiece_bert.training.vocab_summary import is_placeholder

StrPath = str | os.PathLike[str]


class TokenizerOptions(AsCounted, total=False):
    """The options of `Vocab.tokenizer`."""

    unk_token: str
    cls_token: str
    sep_token: str
    pad_token: str
    mask_token: str
    continuing_subword_prefix: str
    max_input_chars_per_word: int


#: The defaults of the options that only `Tokenizer.from_vocab` has.
PIECE_DEFAULTS = {
    name: parameter.default
    for name, parameter in inspect.signature(Tokenizer.from_vocab).parameters.items()
    if name not in AsCounted.__annotations__
}


@dataclass(frozen=True, slots=True, repr=False)
class Vocab:
    """The result of `train_vocab`: tokens, how often each is used, and how they were trained.

    ``vocab.save("vocab.txt")`` and ``vocab.save_pretrained(folder)`` write it to files, ``vocab.tokenizer()`` returns
    its tokenizer.

    Examples
    --------
    >>> from wordpiece_bert import train_vocab
    >>> vocab = train_vocab(["new york new yorker"] * 3, 23)
    >>> vocab
    Vocab(23 tokens by bpe)
    >>> vocab.tokens[-4:], vocab.counts[-4:]
    (['##rk', 'new', 'york', '##er'], [0, 6, 6, 3])
    """

    #: The tokens in the order of their ids.
    tokens: list[str]
    #: How often each token occurs when the training words are tokenized with this vocabulary; 0 for special tokens.
    counts: list[int]
    #: The training algorithm.
    algorithm: Algorithm
    #: The special tokens.
    special_tokens: list[str]
    #: The normalizer settings of the word counts; None if unknown.
    normalizer: NormalizerSettings | None
    #: For an extended vocabulary: id of each new token -> ids of its pieces under the old vocabulary ([UNK] if it has
    #: none).
    pieces: dict[int, list[int]] = field(default_factory=dict)
    #: For an extended vocabulary: the number of tokens of the old one.
    base_size: int | None = None
    #: The messages of the warnings that training raised: what was skipped, and why the size is not the requested one.
    notes: list[str] = field(default_factory=list)
    #: top_down: the threshold at which the search ended.
    threshold: int | None = None

    def __post_init__(self) -> None:
        check_several("tokens", self.tokens)
        check_several("special_tokens", self.special_tokens)

    def __len__(self) -> int:
        """Return the number of tokens."""
        return len(self.tokens)

    def __repr__(self) -> str:
        return f"Vocab({len(self.tokens):,} tokens by {self.algorithm})"

    def _repr_html_(self) -> str:
        used = enumerate(zip(self.tokens[: RECORDS + 1], self.counts, strict=False))
        return records_html(repr(self), [{"id": index, "token": token, "uses": n} for index, (token, n) in used])

    def save(self, path: StrPath) -> None:
        """Write a vocab.txt, with one token per line, atomically.

        Parameters
        ----------
        path : path
            The file to create or replace.

        Raises
        ------
        VocabError
            A token has a line break or ends in white space. `save_pretrained` can write such tokens.
        OSError
            The file cannot be written.

        Examples
        --------
        >>> from pathlib import Path
        >>> from wordpiece_bert import train_vocab
        >>> vocab = train_vocab(["new york new yorker"] * 3, 23)
        >>> vocab.save("vocab.txt")
        >>> Path("vocab.txt").read_text().split()[-2:]
        ['york', '##er']
        """
        for token in self.tokens:
            if "\n" in token or token != token.rstrip():
                raise VocabError(f"a vocab.txt cannot hold the token {token!r}; use save_pretrained")
        write_text(Path(path), "".join(f"{token}\n" for token in self.tokens))

    @completed_by(AS_COUNTED, PIECES)
    @taking(TokenizerOptions, PIECE_DEFAULTS)
    def save_pretrained(
        self,
        folder: StrPath,
        **options: Unpack[TokenizerOptions],
    ) -> None:
        """Write the folder of the tokenizer, as `Tokenizer.save_pretrained` does.

        Parameters
        ----------
        folder : path
            The folder; it is created if need be.

        Raises
        ------
        VocabError, OSError
            As for `tokenizer` and `Tokenizer.save_pretrained`.

        Examples
        --------
        >>> from wordpiece_bert import train_vocab
        >>> vocab = train_vocab(["new york new yorker"] * 3, 23)
        >>> vocab.save_pretrained("folder")
        >>> from wordpiece_bert import Tokenizer
        >>> Tokenizer.from_pretrained("folder").tokenize("New Yorker")
        ['new', 'york', '##er']
        """
        self.tokenizer(**options).save_pretrained(folder)

    @completed_by(AS_COUNTED, PIECES)
    @taking(TokenizerOptions, PIECE_DEFAULTS)
    def tokenizer(
        self,
        **options: Unpack[TokenizerOptions],
    ) -> Tokenizer:
        """Return the tokenizer: this vocabulary with its special tokens and the normalizer settings of its word counts.

        Returns
        -------
        Tokenizer
            The tokenizer.

        Raises
        ------
        VocabError
            The unknown token is not in the vocabulary.

        Examples
        --------
        >>> from wordpiece_bert import train_vocab
        >>> vocab = train_vocab(["new york new yorker"] * 3, 23)
        >>> vocab.tokenizer().tokenize("New Yorker")
        ['new', 'york', '##er']
        """
        settings = self.normalizer or NormalizerSettings()
        usual = settings.as_dict()
        if settings.strip_accents == settings.lowercase:
            del usual["strip_accents"]  # as model files do if accents are treated like case
        as_counted = AsCounted.__annotations__
        given = {name: value for name, value in options.items() if value is not None or name not in as_counted}
        made = Tokenizer.from_vocab(self.tokens, **{**usual, **given})  # type: ignore[arg-type]
        known = made.all_special_tokens
        more = (token for token in self.special_tokens if token not in known and not is_placeholder(token))
        return made.with_added_tokens(more, special=True)

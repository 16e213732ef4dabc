"""A trained vocabulary."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wordpiece_bert._internal.atomic_file import write_text
from wordpiece_bert.errors import VocabError
from wordpiece_bert.tokenizer import Tokenizer
from wordpiece_bert.training.options import Algorithm, NormalizerSettings

__all__ = ["Vocab"]

StrPath = str | os.PathLike[str]


@dataclass(frozen=True, slots=True, repr=False)
class Vocab:
    """A vocabulary as `train_vocab` makes it: tokens, how often each is used, and how it came about.

    ``vocab.save("vocab.txt")`` and ``vocab.save_pretrained(folder)`` write it, ``vocab.tokenizer()`` is the tokenizer.
    """

    #: The tokens; the id of one is its place.
    tokens: list[str]
    #: How often each token is used when the training words are cut by longest match with this vocabulary, 0 for special
    #: tokens. The same meaning for all algorithms.
    counts: list[int]
    #: Who learned it.
    algorithm: Algorithm
    #: The special tokens.
    special_tokens: list[str]
    #: What was done to the texts; None where words were given whose normalizer is not known.
    normalizer: NormalizerSettings | None
    #: Of an extended vocabulary: id of each new token -> ids of its pieces under the old one ([UNK] where it had none).
    pieces: dict[int, list[int]] = field(default_factory=dict)
    #: Of an extended vocabulary: how many tokens the old one had.
    base_size: int | None = None
    #: What was left out, and why the size is not what was asked for, in sentences; they were warnings as well.
    notes: list[str] = field(default_factory=list)
    #: top_down: the threshold that the search ended with.
    threshold: int | None = None

    def __len__(self) -> int:
        """Return the number of tokens."""
        return len(self.tokens)

    def __repr__(self) -> str:
        return f"Vocab({len(self.tokens):,} tokens by {self.algorithm})"

    def save(self, path: StrPath) -> None:
        """Write a vocab.txt: a token a line. Under its final name it is whole or not there.

        Raises
        ------
        VocabError
            A token has a line break in it or ends in white space; `save_pretrained` writes those as well.
        """
        for token in self.tokens:
            if "\n" in token or token != token.rstrip():
                message = f"a vocab.txt cannot hold the token {token!r}; use save_pretrained"
                raise VocabError(message)
        write_text(Path(path), "".join(f"{token}\n" for token in self.tokens))

    def save_pretrained(self, folder: StrPath, **options: Any) -> None:  # noqa: ANN401
        """Write the folder of a tokenizer, as `Tokenizer.save_pretrained`.

        Parameters
        ----------
        folder
            The folder; it is made where it is missing.
        **options
            As for `tokenizer`.
        """
        self.tokenizer(**options).save_pretrained(folder)

    def tokenizer(self, **options: Any) -> Tokenizer:  # noqa: ANN401
        """Return the tokenizer: this vocabulary with the normalizer that its words were made by.

        Parameters
        ----------
        **options
            Those of `Tokenizer.from_vocab`, such as ``unk_token="<unk>"``.

        Raises
        ------
        VocabError
            The unknown token is not in the vocabulary.
        """
        settings = self.normalizer or NormalizerSettings()
        made = {
            "lowercase": settings.lowercase,
            # As files have it: nothing is said where accents go with case.
            "strip_accents": None if settings.strip_accents == settings.lowercase else settings.strip_accents,
            "clean_text": settings.clean_text,
            "tokenize_chinese_chars": settings.tokenize_chinese_chars,
        }
        return Tokenizer.from_vocab(self.tokens, **(made | options))

"""The options of token stores, checked, and the core's builder for them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from wordpiece_bert import _core
from wordpiece_bert._internal.checks import checked_choice, checked_strings, whole_number
from wordpiece_bert.errors import InputError
from wordpiece_bert.pretraining.parameters import DOCUMENTS, ERRORS, ID_TYPES, SENTENCES, SHARD_TOKENS
from wordpiece_bert.tokenizer.parts import plain_core

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wordpiece_bert._internal.safe_json import JsonObject
    from wordpiece_bert.pretraining.parameters import OnError
    from wordpiece_bert.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True, kw_only=True)
class StoringOptions:
    """The arguments of `build_token_store` that decide what is in a store."""

    documents: str = "blank-line"
    sentences: str = "lines"
    abbreviations: Iterable[str] | None = None
    field: str | None = None
    column: str | None = None
    id_field: str | None = None
    id_column: str | None = None
    dtype: str | None = None
    shard_tokens: int = SHARD_TOKENS
    part: tuple[int, int] | None = None
    errors: OnError = "strict"

    def checked(self) -> StoringOptions:
        """Return the options after checking them, but for `part`, which the files decide as well.

        Raises
        ------
        InputError
            One is out of range, needs another, or has no effect with another.
        """
        checked_choice("documents", self.documents, DOCUMENTS)
        checked_choice("sentences", self.sentences, SENTENCES)
        checked_choice("errors", self.errors, ERRORS)
        if self.dtype is not None:
            checked_choice("dtype", self.dtype, ID_TYPES, "None, ")
        words = None if self.abbreviations is None else checked_strings("abbreviations", self.abbreviations)
        shard_tokens = whole_number("shard_tokens", self.shard_tokens, 1)
        for name in ("field", "column", "id_field", "id_column"):
            value: object = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise InputError(f"{name} must be a name, not {value!r:.80}")
        if self.id_field is not None and self.field is None:
            raise InputError(f"id_field={self.id_field!r} is for JSON lines: pass field, the one with the texts, too")
        if self.id_column is not None and self.column is None:
            raise InputError(f"id_column={self.id_column!r} is for tables: pass column, the one with the texts, too")
        if (self.field or self.column) and self.documents != "blank-line":
            raise InputError(f"documents={self.documents!r} is for text: each value of a field or column is a document")
        if words is not None and self.sentences != "split":
            raise InputError("abbreviations is for sentences='split', which keeps them whole: pass that too")
        return replace(self, abbreviations=words, shard_tokens=shard_tokens)

    def recorded(self, input_bytes: Sequence[int | None]) -> JsonObject:
        """Return the arguments as the index records them, with the sizes of the files."""
        names = ("documents", "sentences", "abbreviations", "field", "column", "id_field", "id_column", "shard_tokens")
        options: dict[str, Any] = {name: getattr(self, name) for name in (*names, "errors")}
        return options | {"part": None if self.part is None else list(self.part), "input_bytes": list(input_bytes)}

    def builder(
        self, tokenizer: Tokenizer, file_numbers: Sequence[int], threads: int | None
    ) -> _core.TokenStoreBuilder:
        """Return what makes the arrays of a store of files with these numbers in the whole list."""
        return _core.TokenStoreBuilder(
            plain_core(tokenizer, "a token store"),
            file_numbers=file_numbers,
            documents="value" if self.field or self.column else self.documents,
            split=self.sentences == "split",
            abbreviations=None if self.abbreviations is None else list(self.abbreviations),
            dtype=self.dtype,
            shard_tokens=self.shard_tokens,
            threads=threads,
        )

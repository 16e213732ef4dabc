"""What the functions of this room take as a model: the one place that finds model, tokenizer and limits in it."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeGuard, cast

from wordpiece_bert._internal.checks import check_instance, whole_number
from wordpiece_bert.bert.base_model import Model
from wordpiece_bert.errors import InputError
from wordpiece_bert.hub import find_model
from wordpiece_bert.sentence.cross_encoder import CrossEncoder
from wordpiece_bert.sentence.dense.parts import transformer_of
from wordpiece_bert.sentence.dense.sentence_encoder import SentenceEncoder
from wordpiece_bert.sentence.folders.kinds import CROSS, MULTI_VECTOR, SENTENCE, kind_of, makes_sentence_vectors
from wordpiece_bert.sentence.folders.modules import read_folder
from wordpiece_bert.sentence.folders.multi_vector import read_multi_vector_folder
from wordpiece_bert.sentence.folders.ranking import read_ranking_folder
from wordpiece_bert.sentence.parts import model_of, prompt_of
from wordpiece_bert.tasks.task_loading import has_frozen_head, loaded, longest_row
from wordpiece_bert.tokenizer.subword import SubwordTokenizer, model_encodings, tokenizer_of
from wordpiece_bert.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from wordpiece_bert.sentence.folders.kinds import Kind
    from wordpiece_bert.tasks.task_loading import Source
    from wordpiece_bert.tokenizer.subword import AnyEncoding, AnyTokenizer

#: A model and its tokenizer, a name or a folder, or an object that has a model.
AnySource: TypeAlias = "Source | SentenceEncoder | CrossEncoder"


class Resolved(NamedTuple):
    """A model with its tokenizer, and how its owner encodes a text."""

    model: Model
    tokenizer: AnyTokenizer
    #: What is put before each text: the default prompt of an encoder.
    prefix: str
    #: In tokens.
    longest_row: int

    def texts(self, text: str, pair: str | None) -> tuple[str, ...]:
        """Return what goes through the model."""
        return (self.prefix + text,) if pair is None else (self.prefix + text, pair)

    def encode(self, text: str, pair: str | None, max_length: int | None) -> AnyEncoding:
        """Encode a text or a pair for a view, truncated to `max_length` and to the longest row.

        Raises
        ------
        InputError
            The text is not a str, or has no token; `max_length` is not a whole number, or too small for the special
            tokens.
        """
        check_instance("text", text, str)
        given = self.longest_row if max_length is None else whole_number("max_length", max_length, 1)
        most = min(given, self.longest_row)
        encoding = self.tokenizer.encode(self.prefix + text, pair, truncation=True, max_length=most, padding=False)
        if not len(encoding):
            raise InputError(f"the text has no token: {text[:80]!r}")
        return model_encodings(self.tokenizer, [encoding])[0]


def is_source(value: object) -> TypeGuard[AnySource]:
    """Return whether a value is a model in one of its forms, rather than a trace or arrays."""
    pair = isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], Model)
    return pair or isinstance(value, str | PathLike | SentenceEncoder | CrossEncoder)


def resolve(source: AnySource) -> Resolved:
    """Return the model in a source, with its head if it has one.

    Raises
    ------
    InputError
        There is none in it.
    """
    if isinstance(source, SentenceEncoder):
        body = transformer_of(source)
        return Resolved(body.model, body.tokenizer, prompt_of(source), source.max_seq_length)
    if isinstance(source, CrossEncoder):
        return Resolved(model_of(source), source.tokenizer, prompt_of(source), source.max_length)
    given = transformer_folder(find_model(source)) if isinstance(source, str | PathLike) else source
    model, tokenizer = loaded(given)
    return Resolved(model, tokenizer, "", longest_row(model, tokenizer))


def as_sentence_encoder(source: AnySource) -> SentenceEncoder | None:
    """Return the sentence encoder that a source is or names; None for a model with a head and for other sources."""
    if isinstance(source, SentenceEncoder):
        return source
    if isinstance(source, str | PathLike):
        folder = find_model(source)
        if makes_sentence_vectors(folder) and not has_frozen_head(folder):
            return SentenceEncoder(folder)
    return None


def tokenizer_in(source: AnyTokenizer | AnySource, what: str = "tokens") -> AnyTokenizer:
    """Return the tokenizer that a source is or has, for a function; the weights of a named model are not read.

    Raises
    ------
    InputError
        There is none in it.
    """
    if isinstance(source, str | PathLike):
        return tokenizer_of(transformer_folder(find_model(source)))
    if isinstance(source, SentenceEncoder | CrossEncoder):
        return source.tokenizer
    found = source[1] if isinstance(source, tuple) and len(source) == 2 else source
    if not isinstance(found, Tokenizer | SubwordTokenizer):
        raise InputError(f"{what} needs a Tokenizer, or a model with one, not {type(source).__name__}")
    return found


def transformer_folder(folder: Path) -> Path:
    """Return the folder of the model itself in a folder that has modules after it; otherwise the folder."""
    if not (folder / "modules.json").is_file():
        return folder
    readers: dict[Kind, Callable[[Path], Any]] = {
        SENTENCE: read_folder,
        CROSS: read_ranking_folder,
        MULTI_VECTOR: read_multi_vector_folder,
    }
    reader = readers.get(kind_of(folder))
    return folder if reader is None else cast("Path", reader(folder).transformer)

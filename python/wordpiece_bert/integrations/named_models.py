"""Models and tokenizers by name, loaded once in a process, and the error of a library that is not installed.

A name names a folder, whose files may be exchanged, and a relative path is another folder after a change of the
working directory. So what is kept is found by the absolute path, and loaded again if the files are no longer the same.
What another program stores of a model is its absolute path with the digests of its contents.
"""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.numerics import versions
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.errors import InputError, MissingPackageError, WordPieceError
from wordpiece_bert.hub import find_model
from wordpiece_bert.integrations.options import NAMED
from wordpiece_bert.sentence.dense.model_contents import model_digests
from wordpiece_bert.sentence.dense.sentence_encoder import SentenceEncoder, sentence_encoder
from wordpiece_bert.sentence.folders.contents import json_digest
from wordpiece_bert.sentence.kept_models import KeptModels
from wordpiece_bert.sentence.source import lasting_name
from wordpiece_bert.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable

_tokenizers, _encoders = KeptModels(), KeptModels()


def _kept(models: KeptModels, name: str | os.PathLike[str], load: Callable[[str], Any], *options: object) -> Any:
    """Return the model of a name, which `load` loads unless it is kept."""
    lasting = lasting_name(name)
    return models.get(find_model(lasting).absolute(), lambda: load(lasting), lasting, *options)


def import_package(module: str, extra: str) -> Any:
    """Import a module of another package.

    Parameters
    ----------
    module : str
        The module.
    extra : str
        What installs it: the extra of this package.

    Raises
    ------
    MissingPackageError
        It is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as cause:
        raise MissingPackageError(
            f"{module.partition('.')[0]} is not installed: pip install 'wordpiece-bert[{extra}]'"
        ) from cause


def given_model(
    model: SentenceEncoder | str | os.PathLike[str] | None, model_name: str | os.PathLike[str] | None
) -> SentenceEncoder | str | os.PathLike[str]:
    """Return the model that a class for a framework was given by one of two names, or ``"minilm"``.

    Raises
    ------
    InputError
        Both are given.
    """
    if model is not None and model_name is not None:
        raise InputError(
            f"model and model_name are two names of one argument: give one of {model!r} and {model_name!r}"
        )
    return model if model is not None else model_name if model_name is not None else "minilm"


def tokenizer_of(tokenizer: Tokenizer | str | os.PathLike[str]) -> Tokenizer:
    """Return a tokenizer, or the one of a name, which is loaded once, and again if its files have changed."""
    if isinstance(tokenizer, Tokenizer):
        return tokenizer
    if not isinstance(tokenizer, str | os.PathLike):
        raise InputError(f"tokenizer must be a Tokenizer or the name of a model, not {type(tokenizer).__name__}")
    found: Tokenizer = _kept(_tokenizers, tokenizer, Tokenizer.from_pretrained)
    return found


def checked_options(
    model: object, dtype: str | None, encoder_options: Mapping[str, Any] | None, **others: Any
) -> dict[str, Any]:
    """Return the arguments for `SentenceEncoder` of a model that is given by its name.

    Parameters
    ----------
    model : object
        What was given as the model.
    dtype, encoder_options
        The table `NAMED` describes them.
    **others : optional
        More arguments; None for the default.

    Raises
    ------
    InputError
        The model is an encoder, which has options, or there is no such option, or one is given twice.
    """
    given = {name: value for name, value in {"dtype": dtype, **others}.items() if value is not None}
    if encoder_options is not None and not isinstance(encoder_options, Mapping):
        raise InputError(f"encoder_options must be a dict of arguments of SentenceEncoder, not {encoder_options!r:.80}")
    options = dict(encoder_options or {})
    known = [*list(inspect.signature(SentenceEncoder).parameters)[1:], "max_seq_length"]
    if unknown := [name for name in options if name not in known]:
        raise InputError(f"encoder_options has {unknown[0]!r}, but SentenceEncoder has {', '.join(known)}")
    if twice := [name for name in options if name in given]:
        raise InputError(f"{twice[0]} is given twice, as {given[twice[0]]!r} and in encoder_options: give it once")
    if (dtype is not None or options) and not isinstance(model, str | os.PathLike):
        name = "encoder_options" if dtype is None else "dtype"
        raise InputError(
            f"{name} is for a model that is given by its name: give it when the {type(model).__name__} is made"
        )
    return options | given


@completed_by(NAMED)
def encoder_of(
    model: SentenceEncoder | str | os.PathLike[str],
    threads: int | None = None,
    *,
    dtype: str | None = None,
    encoder_options: Mapping[str, Any] | None = None,
) -> SentenceEncoder:
    """Return a sentence encoder, or the one of a name, which is loaded once, and again if its files have changed.

    Parameters
    ----------
    model : SentenceEncoder, str or os.PathLike
        The encoder or its name.
    threads : int, optional
        The number of threads of an encoder that is loaded here.

    Raises
    ------
    InputError
        As for `checked_options`.
    """
    options = checked_options(model, dtype, encoder_options, threads=threads)
    if not isinstance(model, str | os.PathLike):
        return sentence_encoder(model, "model")
    key = repr(sorted(options.items()))  # the values need not be hashable
    length = options.pop("max_seq_length", None)

    def load(name: str) -> SentenceEncoder:
        encoder = SentenceEncoder.from_pretrained(name, **options)
        if length is not None:
            encoder.max_seq_length = length
        return encoder

    found: SentenceEncoder = _kept(_encoders, model, load, key)
    return found


def contents_of(encoder: SentenceEncoder) -> dict[str, str]:
    """Return what another program stores of an encoder: digests of contents and settings, and versions of its vectors.

    Parameters
    ----------
    encoder : SentenceEncoder
        The encoder.
    """
    settings = [dict(encoder.prompts), encoder.default_prompt_name, encoder.truncate_dim]
    return model_digests(encoder) | {"settings": json_digest(settings)} | versions(encoder.engine.dtype)


def stored_contents(load: Callable[[], SentenceEncoder]) -> dict[str, str] | None:
    """Return what `contents_of` returns of the encoder that a function loads; None if it is not on this machine."""
    try:
        return contents_of(load())
    except WordPieceError:
        return None


def check_contents(model: str, now: Mapping[str, str], stored: Mapping[str, str]) -> None:
    """Check that a model is the one with which vectors were made that a program has stored.

    Parameters
    ----------
    model : str
        Its name, for the message.
    now, stored : mapping
        The digests of its contents now, and as they were then.

    Raises
    ------
    InputError
        Its contents differ.
    """
    # What was stored without versions has the first ones.
    then = {name: "1" for name in ("numerics", "ids") if name in now} | dict(stored)
    if different := [part for part, digest in then.items() if now.get(part) != digest]:
        if changed := [part for part in different if part in ("numerics", "ids")]:
            raise InputError(
                f"{model}: this version of wordpiece-bert computes other vectors than are stored "
                f"({', '.join(f'{name} {then[name]}, now {now.get(name)}' for name in changed)}): make the vectors "
                "again, or install the version that made them"
            )
        raise InputError(
            f"{model}: is not the model with which the stored vectors were made: other {', '.join(different)}; "
            "restore its files, or make the vectors again with the new model"
        )

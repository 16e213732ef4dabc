"""Models and tokenizers by name, loaded once in a process, and the error of a library that is not installed."""

from __future__ import annotations

import importlib
import os
import threading
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from wordpiece_bert.errors import InputError, MissingPackageError
from wordpiece_bert.sentence.dense.encoder import SentenceEncoder, sentence_encoder
from wordpiece_bert.tokenizer import Tokenizer

if TYPE_CHECKING:
    from wordpiece_bert.sentence.dense.base import DenseEncoder

__all__ = ["encoder_of", "given_model", "import_package", "tokenizer_of"]

# The most models of each kind that are kept; a process seldom uses more than one.
_KEPT = 4

_lock = threading.Lock()


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
    model: DenseEncoder | str | os.PathLike[str] | None, model_name: str | os.PathLike[str] | None
) -> DenseEncoder | str | os.PathLike[str]:
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
    """Return a tokenizer, or that of a name, which is loaded once in a process."""
    if isinstance(tokenizer, Tokenizer):
        return tokenizer
    if not isinstance(tokenizer, str | os.PathLike):
        raise InputError(f"tokenizer must be a Tokenizer or the name of a model, not {type(tokenizer).__name__}")
    with _lock:
        return _load_tokenizer(os.fspath(tokenizer))


def encoder_of(model: DenseEncoder | str | os.PathLike[str], threads: int | None = None) -> SentenceEncoder:
    """Return a sentence encoder, or that of a name, which is loaded once in a process.

    Parameters
    ----------
    model : SentenceEncoder, str or os.PathLike
        The encoder or its name.
    threads : int, optional
        The number of threads of an encoder that is loaded here.
    """
    if not isinstance(model, str | os.PathLike):
        return sentence_encoder(model, "model")
    with _lock:
        return _load_encoder(os.fspath(model), threads)


@lru_cache(_KEPT)
def _load_tokenizer(name: str) -> Tokenizer:
    return Tokenizer.from_pretrained(name)


@lru_cache(_KEPT)
def _load_encoder(name: str, threads: int | None) -> SentenceEncoder:
    return SentenceEncoder.from_pretrained(name, threads=threads)

"""Every error and warning of the package, in one place.

All errors derive from `WordPieceError`, so one ``except`` catches whatever this package refuses. Each also derives
from the built-in that people would catch for the same mistake elsewhere, so code which expects a `ValueError` goes on
working::

    WordPieceError
    ├── VocabError            ValueError                     a vocabulary that cannot be used
    ├── TokenizerFormatError  ValueError                     a tokenizer file that is broken or not supported
    ├── InputError            ValueError, TypeError          a text, an array or an option passed to a call
    ├── TrainingError         ValueError                     a vocabulary that cannot be trained as asked
    ├── ConfigError           ValueError                     a model configuration that is broken or not supported
    ├── CheckpointError       ValueError, OSError            a weight file that is broken or does not fit its config
    ├── ModelNotFoundError    ValueError, FileNotFoundError  a model that is not on this machine
    └── InternalError         RuntimeError                   a bug of this package

A message says what is wrong, which value, where (file, line, index in the batch, tensor name) and what to do about it.
The compiled core raises these same classes.
"""

__all__ = [
    "CheckpointError",
    "CheckpointWarning",
    "ConfigError",
    "InputError",
    "InternalError",
    "ModelNotFoundError",
    "TokenizerFormatError",
    "TrainingError",
    "TrainingWarning",
    "TruncationWarning",
    "VocabError",
    "VocabWarning",
    "WordPieceError",
]


class WordPieceError(Exception):
    """Base of all errors which this package raises on purpose."""


class VocabError(WordPieceError, ValueError):
    """A vocabulary cannot be used: empty, without its unknown token, with ids that clash, not UTF-8, too large."""


class TokenizerFormatError(WordPieceError, ValueError):
    """A tokenizer file is broken, or names a component that is not supported (the message has its name)."""


class InputError(WordPieceError, ValueError, TypeError):
    """An argument of a call is wrong: a text, an item of a batch, an array, an option or a combination of options.

    It is a `ValueError` and a `TypeError` at once: both are what callers write for "you passed me the wrong thing".
    """


class TrainingError(WordPieceError, ValueError):
    """A vocabulary cannot be trained as asked: no words, a size below the alphabet, options against the counts."""


class ConfigError(WordPieceError, ValueError):
    """A model configuration is broken, contradicts itself, or asks for something this package does not compute."""


class CheckpointError(WordPieceError, ValueError, OSError):
    """A weight file is truncated, malformed, hostile, in a format not read here, or does not fit the configuration."""


class ModelNotFoundError(WordPieceError, ValueError, FileNotFoundError):
    """No model of this name is on this machine; the message lists where it was looked for and what to run."""


class InternalError(WordPieceError, RuntimeError):
    """Something that cannot happen did: a bug of this package, never the caller's fault. Please report it."""


class CheckpointWarning(UserWarning):
    """A weight file holds tensors that the model does not use, such as those of a head; the message has their names."""


class TrainingWarning(UserWarning):
    """A vocabulary was trained, but something was left out, or the size is not what was asked for."""


class TruncationWarning(UserWarning):
    """Texts were cut at the model's maximum length; the message has how many, and the index of the first."""


class VocabWarning(UserWarning):
    """A ``vocab.txt`` has a line that is blank, repeated or trimmed; ids are those of the lines all the same."""

"""The errors and warnings of the package.

All errors derive from `WordPieceError`, so one ``except`` clause catches everything that this package refuses. Each
also derives from the built-in exception that other libraries raise for the same mistake, so code that expects a
`ValueError` keeps working::

    WordPieceError
    ├── VocabError            ValueError                     a vocabulary that cannot be used
    ├── TokenizerFormatError  ValueError                     a tokenizer file that is invalid or not supported
    ├── InputError            ValueError, TypeError          a text, an array or an option passed to a call
    ├── TrainingError         ValueError                     a vocabulary that cannot be trained as requested
    ├── ConfigError           ValueError                     a model configuration that is invalid or not supported
    ├── CheckpointError       ValueError, OSError            a weight file that is invalid or does not fit its config
    ├── NonFiniteError        ArithmeticError                a loss, a gradient or logits that are NaN or infinite
    ├── ModelNotFoundError    ValueError, FileNotFoundError  a model that is not on this machine
    ├── MissingPackageError   InputError, ImportError        an optional package that is not installed
    └── InternalError         RuntimeError                   a bug in this package

A message says what is wrong, which value, where (file, line, index in the batch, name of a tensor), and what to do. The
compiled core raises the same classes.

Stability: stable.
"""

__all__ = [
    "CheckpointError",
    "CheckpointWarning",
    "ConfigError",
    "InputError",
    "InternalError",
    "MissingPackageError",
    "ModelNotFoundError",
    "NonFiniteError",
    "TokenizerFormatError",
    "TrainingError",
    "TrainingWarning",
    "TruncationWarning",
    "VectorsWarning",
    "VocabError",
    "VocabWarning",
    "WordPieceError",
]


class WordPieceError(Exception):
    """Base class of all errors that this package raises deliberately.

    Examples
    --------
    >>> from wordpiece_bert import Tokenizer, WordPieceError
    >>> try:
    ...     Tokenizer.from_vocab(["a", "b"])
    ... except WordPieceError as error:
    ...     print(type(error).__name__)
    VocabError
    """


class VocabError(WordPieceError, ValueError):
    """A vocabulary cannot be used: empty, without its unknown token, with duplicate ids, not UTF-8, or too large."""


class TokenizerFormatError(WordPieceError, ValueError):
    """A tokenizer file is invalid, or has a component that is not supported. The message names the component."""


class InputError(WordPieceError, ValueError, TypeError):
    """An argument of a call is wrong: a text, an item of a batch, an array, an option or a combination of options.

    It is both a `ValueError` and a `TypeError`, because callers write either one to catch a wrong argument.
    """


class TrainingError(WordPieceError, ValueError):
    """A vocabulary cannot be trained as requested: no words, or options that contradict how they were counted."""


class ConfigError(WordPieceError, ValueError):
    """A model configuration is invalid, contradicts itself, or requests something this package does not compute."""


class CheckpointError(WordPieceError, ValueError, OSError):
    """A weight file is truncated, malformed, malicious, in an unsupported format, or does not fit the configuration."""


class NonFiniteError(WordPieceError, ArithmeticError):
    """A loss, a gradient or the largest logit of a task is NaN or infinite; nothing has changed.

    The message names the step and the parameter, or the logit.
    """


class ModelNotFoundError(WordPieceError, ValueError, FileNotFoundError):
    """No model of this name is on this machine. The message names the searched locations and the way to get it."""


class MissingPackageError(InputError, ImportError):
    """A call or a module needs a package that is not installed. The message has the command that installs it."""


class InternalError(WordPieceError, RuntimeError):
    """A bug in this package, independent of the arguments of the call. Please report it."""


class CheckpointWarning(UserWarning):
    """A weight file holds tensors that the model does not use, or a model's labels lack the one that a task needs.

    The message names them.
    """


class TrainingWarning(UserWarning):
    """Something in a training that may not be meant.

    Texts or rows were skipped, truncated or given twice, labels look alike, or a vocabulary has another size.
    """


class TruncationWarning(UserWarning):
    """Texts were truncated to the model's maximum length. The message has their number and the index of the first."""


class VectorsWarning(UserWarning):
    """A file of vectors has no fingerprint, or the fingerprint of another model or of other texts."""


class VocabWarning(UserWarning):
    """A ``vocab.txt`` has a line that looks like a mistake, lacks [CLS] or [SEP], or does not fit the normalization."""

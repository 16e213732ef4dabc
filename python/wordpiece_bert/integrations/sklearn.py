"""Texts to counts of tokens, or to sentence vectors, as transformers of scikit-learn. Needs scikit-learn.

Stability: provisional.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from wordpiece_bert._internal.checks import checked_flag, whole_number
from wordpiece_bert._internal.numerics import versions
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.errors import InputError, WordPieceError
from wordpiece_bert.integrations.named_models import (
    check_contents,
    contents_of,
    encoder_of,
    import_package,
    tokenizer_of,
)
from wordpiece_bert.integrations.options import NAMED
from wordpiece_bert.sentence.dense.sentence_encoder import SentenceEncoder
from wordpiece_bert.sentence.source import lasting_name
from wordpiece_bert.tokenizer.parameters import ENCODING

import_package("sklearn", "sklearn")

from scipy import sparse  # noqa: E402 - after the error that names the extra
from sklearn.base import BaseEstimator, TransformerMixin  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from wordpiece_bert.sentence.dense.windows import Combination
    from wordpiece_bert.tokenizer.tokenizer import Tokenizer

__all__ = ["SentenceEmbedder", "WordPieceVectorizer"]


class _TextTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc, unused-ignore]
    """A transformer of texts that learns nothing from them.

    After `fit`, and in a pickle, it has the digests of a named model's contents, so that what was fitted on its vectors
    or counts gets no others; a pickle has its absolute path as well.
    """

    #: The parameter that names the model.
    _named: ClassVar[str]
    _contents: dict[str, str] | None = None
    # What was compared with `_contents`.
    _compared: Any = None

    def __getstate__(self) -> dict[str, Any]:
        """Return what a pickle has."""
        state: dict[str, Any] = {**super().__getstate__()}
        state.pop("_compared", None)
        given = state[self._named]
        if isinstance(given, str | os.PathLike):
            state[self._named] = lasting_name(given)
            if self._contents is None:
                with suppress(WordPieceError):  # it is not on this machine: there is nothing to compare with later
                    state["_contents"] = self._digests(self._load())
        return state

    def set_params(self, **params: Any) -> Self:
        """Set parameters, as scikit-learn's estimators do; what was fitted is forgotten.

        Parameters
        ----------
        **params : object
            The parameters by name.

        Returns
        -------
        self
            This object.

        Raises
        ------
        ValueError
            There is no such parameter.
        """
        self._contents = None
        changed: Self = super().set_params(**params)
        return changed

    def _same(self, loaded: Any) -> Any:
        """Return what was loaded by name; refuse it if it is not what was fitted."""
        if self._contents is not None and self._compared is not loaded:
            check_contents(str(getattr(self, self._named)), self._digests(loaded), self._contents)
            self._compared = loaded
        return loaded

    def _digests(self, loaded: Any) -> dict[str, str]:
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None) -> Self:
        """Load what is named and check the options; the texts are not used.

        Parameters
        ----------
        X : iterable of str
            The texts.
        y : ignored
            Not used.

        Returns
        -------
        self
            This object.

        Raises
        ------
        InputError
            An option is wrong.
        """
        self._contents = None  # what it is fitted with now may be another model
        self.transform([])  # it checks every option, also where there is no text
        if isinstance(getattr(self, self._named), str | os.PathLike):
            self._contents = self._digests(self._load())
        return self

    def _check_flags(self, *names: str) -> None:
        """Check options that are True or False; a grid of NumPy has booleans of its own."""
        for name in names:
            value = getattr(self, name)
            checked_flag(name, bool(value) if isinstance(value, np.bool_) else value)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.requires_fit = False
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return True


@completed_by(ENCODING)
class WordPieceVectorizer(_TextTransformer):
    """Texts to the counts of their tokens, as a sparse matrix with a column for each id of the vocabulary.

    It is what ``CountVectorizer`` is for words: put a ``TfidfTransformer`` after it for weights.

    Parameters
    ----------
    tokenizer : Tokenizer, str or os.PathLike, default "minilm"
        The tokenizer, or the name or folder of a model.
    binary : bool, default False
        Whether each count above 0 is 1.
    add_special_tokens : bool, default False
        Whether special tokens, such as [CLS], are counted.
    max_length : int, optional
        The number of tokens of a text after which it is truncated.
    dtype : dtype_like, default "int64"
        The type of the counts.

    Examples
    --------
    A pipeline of it, ``TfidfTransformer`` and ``LogisticRegression`` classifies texts.

    >>> from wordpiece_bert.integrations.sklearn import WordPieceVectorizer
    >>> vectorizer = WordPieceVectorizer("models/words").fit(["bread and flour"])
    >>> counts = vectorizer.transform(["bread and flour", "bread, bread"])
    >>> counts.shape, int(counts.sum())
    ((2, 67), 6)
    >>> names = vectorizer.get_feature_names_out()
    >>> int(counts[1, names.tolist().index("bread")])
    2
    """

    _named = "tokenizer"

    def __init__(
        self,
        tokenizer: Tokenizer | str | os.PathLike[str] = "minilm",
        *,
        binary: bool = False,
        add_special_tokens: bool = False,
        max_length: int | None = None,
        threads: int | None = None,
        dtype: npt.DTypeLike = "int64",
    ) -> None:
        self.tokenizer = tokenizer
        self.binary = binary
        self.add_special_tokens = add_special_tokens
        self.max_length = max_length
        self.threads = threads
        self.dtype = dtype

    def _load(self) -> Tokenizer:
        found: Tokenizer = self._same(tokenizer_of(self.tokenizer))
        return found

    def _digests(self, loaded: Any) -> dict[str, str]:
        return {"tokenizer": loaded.fingerprint} | versions()

    def transform(self, X: Any) -> Any:
        """Count the tokens of texts.

        Parameters
        ----------
        X : iterable of str
            The texts: a list, an array, a series, or a data frame with one column.

        Returns
        -------
        scipy.sparse.csr_matrix
            The counts, [n, V].
        """
        self._check_flags("binary", "add_special_tokens")
        tokenizer, dtype = self._load(), _number_dtype(self.dtype)
        rows = tokenizer.encode_batch(
            _texts(X),
            add_special_tokens=bool(self.add_special_tokens),
            truncation=self.max_length is not None,
            max_length=self.max_length,
            padding=False,
            threads=self.threads,
        )
        shape = (len(rows), _columns(tokenizer))
        ones = np.ones(len(rows.ids), dtype)
        counts = sparse.csr_matrix((ones, rows.ids.astype(np.int32), rows.row_offsets), shape)
        counts.sum_duplicates()
        if self.binary:
            counts.data.fill(1)
        return counts

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Return the token of each column.

        Parameters
        ----------
        input_features : ignored
            Not used.

        Returns
        -------
        ndarray of object
            The tokens by id; an id without a token has the name ``id17``.
        """
        tokenizer = self._load()
        tokens = tokenizer.convert_ids_to_tokens(range(_columns(tokenizer)))
        return np.array([f"id{i}" if token is None else token for i, token in enumerate(tokens)], object)


@completed_by(NAMED, SentenceEncoder.encode)
class SentenceEmbedder(_TextTransformer):
    """Texts to sentence vectors.

    Parameters
    ----------
    model : SentenceEncoder, str or os.PathLike, default "minilm"
        The encoder, or its name or folder; a name is loaded once in each process.
    threads : int, optional
        The number of threads of a model that is loaded by name.

    Examples
    --------
    >>> from wordpiece_bert.integrations.sklearn import SentenceEmbedder
    >>> embedder = SentenceEmbedder("models/static").fit(["to bake bread"])
    >>> embedder.transform(["to bake bread", "a bicycle"]).shape
    (2, 67)
    >>> embedder.get_feature_names_out()[:2]
    array(['embedding0', 'embedding1'], dtype=object)
    """

    _named = "model"

    def __init__(
        self,
        model: SentenceEncoder | str | os.PathLike[str] = "minilm",
        *,
        prompt_name: str | None = None,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        windows: Combination | None = None,
        stride: int = 0,
        threads: int | None = None,
        dtype: str | None = None,
        encoder_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.model = model
        self.prompt_name = prompt_name
        self.normalize_embeddings = normalize_embeddings
        self.truncate_dim = truncate_dim
        self.windows = windows
        self.stride = stride
        self.threads = threads
        self.dtype = dtype
        self.encoder_options = encoder_options

    def _load(self) -> SentenceEncoder:
        if self.threads is not None:
            whole_number("threads", self.threads, 1)
        loaded = encoder_of(self.model, self.threads, dtype=self.dtype, encoder_options=self.encoder_options)
        found: SentenceEncoder = self._same(loaded)
        return found

    def _digests(self, loaded: Any) -> dict[str, str]:
        return contents_of(loaded)

    @completed_by(WordPieceVectorizer.transform)
    def transform(self, X: Any) -> npt.NDArray[Any]:
        """Turn texts into vectors.

        Returns
        -------
        ndarray
            The vectors, float32 [n, d].
        """
        self._check_flags("normalize_embeddings")
        return self._load().encode(
            _texts(X),
            prompt_name=self.prompt_name,
            normalize_embeddings=bool(self.normalize_embeddings),
            truncate_dim=self.truncate_dim,
            windows=self.windows,
            stride=self.stride,
        )

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Return the name of each number of a vector.

        Parameters
        ----------
        input_features : ignored
            Not used.

        Returns
        -------
        ndarray of object
            ``embedding0``, ``embedding1`` and so on.
        """
        width = self._load().dimension if self.truncate_dim is None else self.truncate_dim
        return np.array([f"embedding{index}" for index in range(width)], object)


def _number_dtype(dtype: object) -> np.dtype[Any]:
    """Return a type of counts, checked."""
    try:
        found: np.dtype[Any] = np.dtype(dtype)  # type: ignore[call-overload]
    except TypeError:
        found = np.dtype(object)
    if dtype is None or found.kind not in "biuf" or found == np.float16:
        raise InputError(
            f"dtype must be a type of numbers that a sparse matrix can have, such as 'int64', not {dtype!r:.80}"
        )
    return found


def _columns(tokenizer: Tokenizer) -> int:
    """Return the number of ids, those between others included."""
    return max(tokenizer.get_vocab().values()) + 1


def _texts(X: Any) -> Any:
    """Return the texts of an argument of scikit-learn: it may be a data frame or an array with one column."""
    if isinstance(X, str):
        raise InputError("X must be an iterable of texts, not one str")
    shape: Any = getattr(X, "shape", ())
    if len(shape) == 2:
        if shape[1] != 1:
            raise InputError(f"X must be texts, or have one column of texts; it has {shape[1]} columns")
        return X[:, 0] if isinstance(X, np.ndarray) else X[X.columns[0]]
    return X

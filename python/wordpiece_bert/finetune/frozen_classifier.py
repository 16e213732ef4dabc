"""A classifier or regressor of texts and pairs: a sentence encoder that does not change, and a head on its vectors.

The vectors are computed once, and may be kept in a folder, by a fingerprint of encoder and texts; the head is fitted in
seconds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from wordpiece_bert._internal.atomic_file import AtomicFile
from wordpiece_bert._internal.atomic_folder import check_complete, written_folder
from wordpiece_bert._internal.checks import check_instance
from wordpiece_bert._internal.log import tell
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.parts import write_files
from wordpiece_bert._internal.safe_json import read_object
from wordpiece_bert._internal.texts import one_or_many, row_texts
from wordpiece_bert.bert.checkpoint import read_tensors
from wordpiece_bert.bert.checkpoint.safetensors import safetensors_chunks
from wordpiece_bert.bert.parameters import LOADING
from wordpiece_bert.errors import CheckpointError, InputError
from wordpiece_bert.finetune.estimator import Estimator, agreement
from wordpiece_bert.finetune.frozen_heads import LogisticRegression, Ridge, probabilities
from wordpiece_bert.finetune.labels import class_labels, class_name, number_labels, warn_alike
from wordpiece_bert.finetune.learnable import warn_equal_labels
from wordpiece_bert.finetune.parameters import FITTING
from wordpiece_bert.hub import find_model
from wordpiece_bert.sentence.dense.encoder_fingerprint import default_prompt, fingerprint_of
from wordpiece_bert.sentence.dense.sentence_encoder import SentenceEncoder, sentence_encoder
from wordpiece_bert.tokenizer.corpus.vector_fingerprint import TextsDigest

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from wordpiece_bert.tokenizer.arrow_table import ArrowArray, ArrowStream
    from wordpiece_bert.tokenizer.subword import AnyTokenizer

    Texts = Iterable[str | tuple[str, str] | Mapping[str, str]] | ArrowArray | ArrowStream

#: The files of a saved classifier, beside the files of its encoder.
SETTINGS, WEIGHTS = "frozen_head.json", "frozen_head.safetensors"
_FORMAT, _VERSION = "wordpiece-bert frozen head", 1
#: The types of labels in a saved classifier; in files that name none, labels are strings.
_DTYPES = ("str", "object", "bool", *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)))
_DTYPES += ("float16", "float32", "float64")


class FrozenClassifier(Estimator):
    """Labels, or numbers, for texts and pairs of texts, from the vectors of a sentence encoder that is not trained.

    The features of a pair are ``[u; v; |u − v|; u·v]`` of the vectors u and v of its texts (Conneau et al. 2017,
    section 3.1). It is an estimator as scikit-learn's are: `sklearn.base.clone`, cross-validation and searches
    work with it.

    Parameters
    ----------
    encoder : SentenceEncoder, str or os.PathLike
        The encoder, or its name or folder; static models are encoders too.
    head : LogisticRegression or Ridge, optional
        The head, `LogisticRegression` by default; `Ridge` predicts numbers.

    Attributes
    ----------
    encoder : SentenceEncoder
        The encoder.
    head : LogisticRegression or Ridge
        The head.
    classes_ : ndarray
        The labels, sorted, of the type that `fit` got; a regression has none.
    labels : list of str
        The names of the labels in that order; ``["LABEL_0"]`` for a regression, empty before `fit`.
    takes_pairs : bool
        Whether it was fitted to pairs.

    Examples
    --------
    >>> from wordpiece_bert.finetune import FrozenClassifier, LogisticRegression
    >>> texts = ["a great film", "a dull film", "a wonderful story", "a boring story"]
    >>> classifier = FrozenClassifier("models/static", LogisticRegression(C=100))
    >>> _ = classifier.fit(texts, ["good", "bad", "good", "bad"])
    >>> classifier.predict(["a wonderful film"])
    array(['good'], dtype='<U4')
    >>> classifier.predict_proba(["a wonderful film"]).round(2)
    array([[0.46, 0.54]])
    >>> classifier.save_pretrained("classifier")
    >>> FrozenClassifier.from_pretrained("classifier").scores(["a wonderful film"]).argmax(
    ...     axis=1
    ... )
    array([1])
    """

    encoder: SentenceEncoder
    head: LogisticRegression | Ridge
    labels: list[str]
    takes_pairs: bool

    def __init__(
        self, encoder: SentenceEncoder | str | os.PathLike[str], head: LogisticRegression | Ridge | None = None
    ) -> None:
        if head is not None and not isinstance(head, LogisticRegression | Ridge):
            raise InputError(f"head must be a LogisticRegression or a Ridge, not {type(head).__name__}")
        self._encoder = encoder  # as it was passed, for get_params
        self.encoder = sentence_encoder(encoder)
        self.head = LogisticRegression() if head is None else head
        self.labels = []
        self.takes_pairs = False

    def __repr__(self) -> str:
        state = f"labels {', '.join(self.labels)}" if self.labels else "not fitted"
        return f"FrozenClassifier({self.encoder!r}, {type(self.head).__name__}, {state})"

    @property
    def tokenizer(self) -> AnyTokenizer:
        """The tokenizer of the encoder."""
        return self.encoder.tokenizer

    @property
    def is_regression(self) -> bool:
        """Whether it predicts numbers."""
        return isinstance(self.head, Ridge)

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The labels, sorted, of the type that `fit` got."""
        if isinstance(self.head, Ridge) or not self.labels:  # AttributeError, by which scikit-learn recognizes both
            what = "a regression" if isinstance(self.head, Ridge) else "a FrozenClassifier that is not fitted"
            raise AttributeError(f"{what} has no classes_")
        return self.head.classes_

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether it is fitted: scikit-learn asks it before the last step of a pipeline predicts."""
        return bool(self.labels)

    def _kind(self) -> str:
        return "regressor" if self.is_regression else "classifier"

    @completed_by(FITTING)
    def fit(
        self,
        texts: Texts,
        labels: Sequence[Any],
        *,
        cache: str | os.PathLike[str] | None = None,
        show_progress_bar: bool | None = None,
    ) -> Self:
        """Compute the vectors of texts, and fit the head to them.

        Parameters
        ----------
        labels : sequence
            One label for each text: strings, whole numbers or booleans, in a list, an array or a column of pandas,
            Polars or Arrow. `predict` returns the same type. Numbers for `Ridge`.

        Returns
        -------
        FrozenClassifier
            This object.

        Raises
        ------
        InputError
            There are no texts, texts and pairs are mixed, or there are more or fewer labels than texts; a label is
            missing (None, NaN, an empty string), a list or a fraction, or they are of several types. The message has
            the row.

        Warns
        -----
        TrainingWarning
            Two labels differ in white space alone.
        """
        firsts, seconds = _divided(texts)
        right = number_labels(labels) if self.is_regression else class_labels(labels)
        if len(right) != len(firsts):
            raise InputError(f"there are {len(firsts)} texts, but {len(right)} labels")
        if (right == right[0]).all():
            if not self.is_regression:
                raise InputError(f"all {len(right)} labels are {right.tolist()[0]!r}: at least two classes are needed")
            warn_equal_labels(len(right), right.tolist()[0])
        # A new head with the settings of the given one, which may be fitted for another classifier, too.
        head = type(self.head)(**self.head.get_params())
        self.head = head.fit(self._features(firsts, seconds, cache, show_progress_bar), right)
        self.labels = ["LABEL_0"] if isinstance(self.head, Ridge) else list(map(class_name, self.head.classes_))
        warn_alike(self.labels)
        self.takes_pairs = seconds is not None
        return self

    @completed_by(FITTING)
    def scores(
        self, texts: Texts, *, batch_size: int = 32, cache: str | os.PathLike[str] | None = None
    ) -> npt.NDArray[np.float64]:
        """Return the scores of texts before softmax, [n, labels]; for a regression the predictions, [n, 1].

        Returns
        -------
        ndarray of float64
            The scores, [n, labels], or the predictions, [n, 1].
        """
        return self._scored(texts, batch_size, cache)[0]

    @completed_by(FITTING)
    def predict(
        self, texts: Texts, *, batch_size: int = 32, cache: str | os.PathLike[str] | None = None
    ) -> npt.NDArray[Any]:
        """Return the most probable label of each text, [n], of the type of `classes_`; for a regression float64.

        Returns
        -------
        ndarray
            The labels, [n], or float64 [n] for a regression.
        """
        scores = self.scores(texts, batch_size=batch_size, cache=cache)
        return scores[:, 0] if self.is_regression else self.classes_[scores.argmax(axis=1)]

    @completed_by(FITTING)
    def predict_proba(
        self, texts: Texts, *, batch_size: int = 32, cache: str | os.PathLike[str] | None = None
    ) -> npt.NDArray[np.float64]:
        """Return the probability of each label, [n, labels].

        Returns
        -------
        ndarray of float64
            The probabilities, [n, labels], in the order of `classes_`.

        Raises
        ------
        InputError
            It is a regression.
        """
        if self.is_regression:
            raise InputError("a regression has no probabilities: call predict")
        return probabilities(self.scores(texts, batch_size=batch_size, cache=cache))

    @completed_by(FITTING)
    def score(
        self,
        texts: Texts,
        labels: Sequence[Any],
        sample_weight: npt.ArrayLike | None = None,
        *,
        batch_size: int = 32,
        cache: str | os.PathLike[str] | None = None,
    ) -> float:
        """Return the share of labels that are predicted correctly; for a regression R².

        Parameters
        ----------
        labels : sequence
            One label for each text, of the type that `fit` got; numbers for a regression. Labels that `fit` did not
            get are never predicted.
        sample_weight : array_like, optional
            How much each text counts, [n].

        Returns
        -------
        float
            The accuracy, from 0 to 1; or the coefficient of determination, 1 at best.

        Raises
        ------
        InputError
            It is not fitted, there are not as many labels or weights as texts, or a label is missing or of another
            type than in `fit`.

        Examples
        --------
        >>> from wordpiece_bert.finetune import FrozenClassifier
        >>> texts, labels = ["a great film", "a dull film"] * 2, ["good", "bad"] * 2
        >>> FrozenClassifier("models/static").fit(texts, labels).score(texts, labels)
        1.0
        """
        return agreement(self._kind(), self.predict(texts, batch_size=batch_size, cache=cache), labels, sample_weight)

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Write a folder that `from_pretrained` and `wordpiece_bert.tasks.classify` load.

        It is the folder of the encoder, which sentence-transformers loads as well, with two files for the head. Other
        libraries know no such head: transformers' ``AutoModelForSequenceClassification`` loads the folder with a random
        one, and says so in a warning. For a model that classifies there, fine-tune one with `Trainer`.

        Parameters
        ----------
        folder : str or os.PathLike
            The folder; it is created if need be.

        Raises
        ------
        InputError
            It is not fitted, or there is a file of that name.
        OSError
            A file cannot be written.
        """
        self._check_fitted()
        settings = {
            "format": _FORMAT,
            "version": _VERSION,
            "head": type(self.head).__name__,
            "parameters": self.head.get_params(),
            "labels": self.labels,
            "dtype": "float64" if self.is_regression else _dtype_name(self.classes_),
            "pairs": self.takes_pairs,
            "dimension": self.encoder.dimension,
        }
        arrays = {"coef": np.atleast_2d(self.head.coef_), "intercept": np.atleast_1d(np.asarray(self.head.intercept_))}
        with written_folder(folder) as output:
            write_files(self.encoder, output)
            output.write(WEIGHTS, safetensors_chunks(arrays))
            output.write_text(SETTINGS, json.dumps(settings, indent=1, ensure_ascii=False, default=float) + "\n")

    @classmethod
    @completed_by(FITTING, LOADING)
    def from_pretrained(
        cls,
        name: str | os.PathLike[str],
        *,
        backend: str = "rust",
        dtype: str = "float32",
        threads: int | None = None,
        download: bool = False,
        calibrate: Sequence[str] | None = None,
        instructions: str | None = None,
    ) -> Self:
        """Load what `save_pretrained` wrote.

        Returns
        -------
        FrozenClassifier
            The classifier, whose scores equal the saved one's to the precision of float32.

        Raises
        ------
        CheckpointError
            The folder has no head, or the head does not fit the encoder.
        """
        folder = find_model(name, download=download)
        if not (folder / SETTINGS).is_file():
            raise CheckpointError(
                f"{folder}: there is no {SETTINGS}, so it is no folder of FrozenClassifier.save_pretrained"
            )
        check_complete(folder)
        settings = read_settings(folder)
        encoder = SentenceEncoder(
            folder, backend, dtype, threads=threads, calibrate=calibrate, instructions=instructions
        )
        given = settings.get("parameters", {})
        try:
            head = Ridge(**given) if settings.get("head") == "Ridge" else LogisticRegression(**given)
        except (TypeError, InputError) as error:
            raise CheckpointError(
                f"{folder / SETTINGS}: the parameters of the head are {given!r:.80}: {error}"
            ) from None
        classifier = cls(encoder, head)
        classifier._restore(folder, settings, read_tensors(folder / WEIGHTS))
        return classifier

    def _restore(self, folder: Path, settings: dict[str, Any], tensors: Mapping[str, npt.NDArray[Any]]) -> None:
        labels, pairs = settings.get("labels"), settings.get("pairs") is True
        dtype = settings.get("dtype", "str")
        width = self.encoder.dimension * (4 if pairs else 1)
        shapes = {key: list(array.shape) for key, array in tensors.items()}
        if isinstance(labels, list) and labels and all(isinstance(label, str) for label in labels):
            rows = 1 if len(labels) == 2 else len(labels)
            if shapes == {"coef": [rows, width], "intercept": [rows]}:
                self.labels, self.takes_pairs = labels, pairs
                coefficients, intercept = (np.asarray(tensors[key], np.float64) for key in ("coef", "intercept"))
                if isinstance(self.head, Ridge):
                    self.head.coef_, self.head.intercept_ = coefficients[0], float(intercept[0])
                else:
                    self.head.coef_, self.head.intercept_ = coefficients, intercept
                    self.head.classes_ = _classes(folder, labels, dtype)
                return
        raise CheckpointError(
            f"{folder}: the head has the labels {labels!r:.80} and the tensors {shapes}, which do not fit each other "
            f"and {width} features"
        )

    def _check_fitted(self) -> None:
        if not self.labels:
            raise InputError("this FrozenClassifier is not fitted yet: call fit first")

    def _features(
        self,
        firsts: list[str],
        seconds: list[str] | None,
        cache: str | os.PathLike[str] | None,
        show_progress_bar: bool | None,
    ) -> npt.NDArray[np.float32]:
        def vectors(texts: list[str]) -> npt.NDArray[np.float32]:
            if cache is not None:
                return cached_vectors(self.encoder, texts, cache, show_progress_bar=show_progress_bar)
            return self.encoder.encode(texts, show_progress_bar=show_progress_bar)

        u = vectors(firsts)
        return u if seconds is None else _pair_features(u, vectors(seconds))

    def _scored(
        self, texts: Texts, batch_size: int, cache: str | os.PathLike[str] | None = None
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        """Return the scores [n, labels], and which texts were truncated, [n]; none with a cache."""
        self._check_fitted()
        firsts, seconds = _divided(texts)
        if (seconds is not None) != self.takes_pairs:
            kinds = ("texts", "pairs of texts")
            raise InputError(
                f"this classifier was fitted to {kinds[self.takes_pairs]}, not to {kinds[not self.takes_pairs]}"
            )
        if cache is not None:
            return self._head_scores(self._features(firsts, seconds, cache, None)), np.zeros(len(firsts), np.bool_)
        u, cut = self.encoder.encode(firsts, batch_size=batch_size, return_truncated=True)
        if seconds is None:
            return self._head_scores(u), cut
        v, cut_too = self.encoder.encode(seconds, batch_size=batch_size, return_truncated=True)
        return self._head_scores(u, v), cut | cut_too

    def _head_scores(
        self, x: npt.NDArray[np.float32], seconds: npt.NDArray[np.float32] | None = None
    ) -> npt.NDArray[np.float64]:
        """Features [n, D], or the vectors [n, d] of the texts of pairs -> [n, labels]."""
        if seconds is not None:
            x = _pair_features(x, seconds)
        if isinstance(self.head, Ridge):
            return self.head.predict(x)[:, None]
        scores = self.head.decision_function(x)
        if scores.ndim == 1:  # two labels: softmax([0, z]) = [1 − σ(z), σ(z)]
            scores = np.stack([np.zeros_like(scores), scores], axis=1)
        return scores


def read_settings(folder: Path) -> dict[str, Any]:
    """Read the settings of the head in a folder.

    Raises
    ------
    CheckpointError
        They are of another format or version.
    """
    settings = read_object(folder / SETTINGS, CheckpointError)
    found = {key: settings.get(key) for key in ("format", "version")}
    if found != {"format": _FORMAT, "version": _VERSION}:
        raise CheckpointError(f"{folder / SETTINGS}: format and version are {found}, not {_FORMAT!r} and {_VERSION}")
    return settings


@completed_by(FITTING)
def cached_vectors(
    encoder: SentenceEncoder,
    texts: Sequence[str],
    folder: str | os.PathLike[str],
    *,
    show_progress_bar: bool | None = None,
) -> npt.NDArray[np.float32]:
    """Return the vectors of texts from a file, a memory map; without the file they are computed, and written to it.

    Parameters
    ----------
    encoder : SentenceEncoder
        The encoder.
    texts : sequence of str
        The texts.
    folder : str or os.PathLike
        The folder of the files, ``FINGERPRINT.npy`` each. The fingerprint is a hash of the encoder's weights, tokenizer
        and settings, of its dtype and of the texts, so that another encoder or other texts have another file.

    Returns
    -------
    ndarray
        float32 [n, d], read-only.

    Raises
    ------
    OSError
        The file cannot be written.

    Examples
    --------
    The second call reads a file:

    >>> from wordpiece_bert import SentenceEncoder
    >>> from wordpiece_bert.finetune import cached_vectors
    >>> encoder = SentenceEncoder("models/static")
    >>> cached_vectors(encoder, ["a great film", "a dull film"], "cache").shape
    (2, 67)
    >>> type(cached_vectors(encoder, ["a great film", "a dull film"], "cache")).__name__
    'memmap'
    """
    check_instance("encoder", encoder, SentenceEncoder)
    texts, digest = row_texts("texts", texts), TextsDigest()
    digest.add(texts)
    file = Path(folder) / f"{fingerprint_of(encoder, digest, prompt=default_prompt(encoder)).key()}.npy"
    shape = (len(texts), encoder.dimension)
    if file.is_file():
        try:
            stored: npt.NDArray[np.float32] = np.load(file, mmap_mode="r", allow_pickle=False)
        except Exception:  # noqa: BLE001 - NumPy raises errors of any class for a damaged file, which is written again
            stored = np.empty((0, 0), np.float32)
        if stored.shape == shape and stored.dtype == np.float32:
            tell("read %d vectors from %s", len(texts), file)
            return stored
    vectors = np.ascontiguousarray(encoder.encode(texts, show_progress_bar=show_progress_bar), np.float32)
    file.parent.mkdir(parents=True, exist_ok=True)
    with AtomicFile(file) as output:
        output.begin()
        with output.naming_errors():
            np.lib.format.write_array(output.file, vectors, allow_pickle=False)
        output.commit()
    tell("wrote %d vectors to %s", len(texts), file)
    found: npt.NDArray[np.float32] = np.load(file, mmap_mode="r", allow_pickle=False)
    return found


def _pair_features(u: npt.NDArray[np.float32], v: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """[n, d] and [n, d] -> [u; v; |u − v|; u·v], [n, 4d]."""
    return np.concatenate([u, v, np.abs(u - v), u * v], axis=1)


def _divided(texts: Texts) -> tuple[list[str], list[str] | None]:
    """Return the texts, and the second texts if they are pairs."""
    _, items = one_or_many(texts)
    if not items:
        raise InputError("there are no texts")
    pairs = [_pair(index, item) for index, item in enumerate(items)]
    firsts = [first for first, _ in pairs]
    seconds = [second for _, second in pairs if second is not None]
    if not seconds:
        return firsts, None
    if len(seconds) != len(firsts):
        alone = next(index for index, (_, second) in enumerate(pairs) if second is None)
        raise InputError(f"texts[{alone}] is a text, others are pairs: pass one kind")
    return firsts, seconds


def _pair(index: int, item: object) -> tuple[str, str | None]:
    if isinstance(item, str):
        return item, None
    parts = (item.get("text"), item.get("text_pair")) if isinstance(item, Mapping) else item
    if isinstance(item, Mapping) and isinstance(item.get("text"), str) and item.get("text_pair") is None:
        return item["text"], None
    if not isinstance(parts, tuple | list) or len(parts) != 2 or not all(isinstance(part, str) for part in parts):
        raise InputError(f"texts[{index}] must be a str or a pair of two, not {item!r:.80}")
    return parts[0], parts[1]


def _dtype_name(classes: npt.NDArray[Any]) -> str:
    return "str" if classes.dtype.kind == "U" else classes.dtype.name


def _classes(folder: Path, names: list[str], dtype: object) -> npt.NDArray[Any]:
    """Return the sorted labels of these names."""
    try:
        if dtype in ("str", "object"):
            return np.array(names, dtype)
        if dtype == "bool":
            return np.array([["False", "True"].index(name) for name in names], np.bool_)
        if dtype in _DTYPES:
            return np.array([int(name) for name in names]).astype(dtype)
    except (ValueError, OverflowError):
        pass
    raise CheckpointError(f"{folder}: the head has the labels {names!r:.80}, which are not of the type {dtype!r:.40}")

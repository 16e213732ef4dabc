"""`StaticClassifier`: the heads that model2vec trains on static models, read and run.

A head is linear layers with ReLU between them. Its folder is the static model's with ``head.safetensors`` and an
entry ``head_config`` in ``config.json`` (model2vec 0.10). Older folders have a scikit-learn pipeline in an archive of
skops, ``pipeline.skops``, which names classes to construct: it is refused, and nothing of it is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from wordpiece_bert._internal.checks import checked_probability
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.safe_json import quoted, read_object
from wordpiece_bert._internal.texts import check_texts
from wordpiece_bert.bert.checkpoint import read_tensors
from wordpiece_bert.bert.functional import relu, sigmoid, softmax
from wordpiece_bert.bert.parameters import LOADING
from wordpiece_bert.errors import CheckpointError, ConfigError, InputError
from wordpiece_bert.hub import find_model
from wordpiece_bert.sentence.dense.static import StaticEncoder

if TYPE_CHECKING:
    import os
    from pathlib import Path

    import numpy.typing as npt

    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.sentence.arguments import Texts

    #: The weight [out, in] and the bias [out] of a layer.
    Layer = tuple[Array, Array]

WEIGHTS, LEGACY = "head.safetensors", "pipeline.skops"
#: The functions of the outputs, by the names of model2vec, and what they make of a model.
_ACTIVATIONS = ("softmax", "sigmoid", "identity")


@completed_by(LOADING)
class StaticClassifier:
    """A static model with a head of model2vec: one label for each text, any number of them, or numbers.

    Parameters
    ----------
    model : str or os.PathLike
        The folder that model2vec wrote, or ``"org/name"`` in the local Hugging Face cache.

    Attributes
    ----------
    encoder : StaticEncoder
        The static model.
    classes_ : ndarray or None
        The labels in the order of the outputs; None for a head that predicts numbers.
    activation : {"softmax", "sigmoid", "identity"}
        What is applied to the outputs: one label for each text, any number of labels, or numbers.

    Raises
    ------
    ConfigError
        The folder has no head, one of an older format, or one that its configuration does not describe.
    CheckpointError
        The layers do not fit the model, each other or the labels.
    ModelNotFoundError, TokenizerFormatError
        As for `StaticEncoder`.

    Examples
    --------
    >>> from wordpiece_bert.sentence import StaticClassifier
    >>> classifier = StaticClassifier("my-model2vec-classifier")  # doctest: +SKIP
    >>> classifier.predict(["a great film"])  # doctest: +SKIP
    array(['positive'], dtype='<U8')
    >>> classifier.predict_proba(["a great film"]).round(2)  # doctest: +SKIP
    array([[0.08, 0.92]], dtype=float32)
    """

    encoder: StaticEncoder
    classes_: npt.NDArray[Any] | None
    activation: Literal["softmax", "sigmoid", "identity"]

    def __init__(self, model: str | os.PathLike[str], *, threads: int | None = None, download: bool = False) -> None:
        folder = find_model(model, download=download)
        self._layers, self.activation, self.classes_ = read_head(folder)
        self.encoder = StaticEncoder(folder, threads=threads)
        widths = [self.encoder.dimension, *(len(bias) for _, bias in self._layers)]
        shapes = [weight.shape for weight, _ in self._layers]
        if shapes != list(zip(widths[1:], widths[:-1], strict=True)):
            raise CheckpointError(
                f"{folder / WEIGHTS}: layers of shapes {[list(shape) for shape in shapes]} do not follow vectors of "
                f"{widths[0]} numbers and each other"
            )
        if self.classes_ is not None and len(self.classes_) != widths[-1]:
            raise CheckpointError(f"{folder}: the head has {widths[-1]} outputs, but {len(self.classes_)} classes")

    def predict(self, texts: str | Texts, *, threshold: float = 0.5) -> npt.NDArray[Any]:
        """Predict the label of each text, its labels, or numbers.

        Parameters
        ----------
        texts : str, iterable of str or Arrow column
            The texts.
        threshold : float, default 0.5
            For any number of labels: the probability above which a label is predicted.

        Returns
        -------
        ndarray
            The labels [n]; for any number of labels an array of objects, an array of labels for each text; for numbers
            float32 [n, outputs].

        Raises
        ------
        InputError
            A text is not a str, or an argument is wrong.
        """
        least = checked_probability("threshold", threshold)
        outputs = self._outputs(texts)
        if self.classes_ is None:
            return outputs
        if self.activation == "softmax":
            return cast("npt.NDArray[Any]", self.classes_[outputs.argmax(axis=1)])
        found = np.empty(len(outputs), object)
        for row, scores in enumerate(sigmoid(outputs)):
            found[row] = self.classes_[scores > least]
        return found

    def predict_proba(self, texts: str | Texts) -> Array:
        """Return the probability of each label.

        Parameters
        ----------
        texts : str, iterable of str or Arrow column
            The texts.

        Returns
        -------
        ndarray
            float32 [n, labels]; the sum of a row is 1 for ``"softmax"``.

        Raises
        ------
        InputError
            The head predicts numbers, or a text is not a str.
        """
        if self.activation == "identity":
            raise InputError("a head that predicts numbers has no probabilities: call predict")
        outputs = self._outputs(texts)
        return softmax(outputs) if self.activation == "softmax" else sigmoid(outputs)

    def _outputs(self, texts: str | Texts) -> Array:
        """Return what the last layer makes of texts, [n, outputs]."""
        return self._outputs_of(self.encoder.encode(check_texts(texts)[1]))

    def _outputs_of(self, vectors: Array) -> Array:
        x: Array = np.asarray(vectors, np.float32)
        for number, (weight, bias) in enumerate(self._layers):
            x = (relu(x) if number else x) @ weight.T + bias
        return x

    def __repr__(self) -> str:
        labels = "numbers" if self.classes_ is None else f"{len(self.classes_)} labels"
        return f"StaticClassifier({labels}, {len(self._layers)} layers, {self.encoder!r})"


def has_static_head(folder: Path) -> bool:
    """Return whether a folder of a static model has a head, in the present format or an older one."""
    return (folder / WEIGHTS).is_file() or (folder / LEGACY).is_file()


def read_head(
    folder: Path,
) -> tuple[list[Layer], Literal["softmax", "sigmoid", "identity"], npt.NDArray[Any] | None]:
    """Read the layers, the activation and the classes of a folder's head.

    Raises
    ------
    ConfigError, CheckpointError
        As for `StaticClassifier`.
    """
    if not (folder / WEIGHTS).is_file():
        if (folder / LEGACY).is_file():
            raise ConfigError(
                f"{folder / LEGACY}: an archive of skops names classes to construct, and is not read; convert the "
                "folder with model2vec 0.10: StaticModelPipeline.from_pretrained(folder).save_pretrained(folder)"
            )
        raise ConfigError(f"{folder}: has no {WEIGHTS}: StaticEncoder loads static models without a head")
    file = folder / "config.json"
    settings = read_object(file, ConfigError).get("head_config")
    settings = settings if isinstance(settings, dict) else {}
    count, activation, classes = (settings.get(name) for name in ("n_layers", "activation", "classes"))
    if not isinstance(count, int) or isinstance(count, bool) or count < 1 or activation not in _ACTIVATIONS:
        raise ConfigError(
            f"{file}: head_config must have n_layers above 0 and a known activation, not {settings!r:.120}"
        )
    labels = isinstance(classes, list) and bool(classes) and all(isinstance(x, str | int) for x in classes)
    if labels == (activation == "identity") or (not labels and classes is not None):
        raise ConfigError(f"{file}: classes {quoted(classes)} do not go with the activation {activation!r} of the head")
    tensors = read_tensors(folder / WEIGHTS)
    layers = []
    for number in range(count):
        weight, bias = (tensors.get(f"head.{number}.{part}") for part in ("weight", "bias"))
        if weight is None or bias is None or weight.ndim != 2 or bias.shape != weight.shape[:1]:
            raise CheckpointError(f"{folder / WEIGHTS}: layer {number} of {count} is missing or malformed")
        layers.append((np.asarray(weight, np.float32), np.asarray(bias, np.float32)))
    kind = cast("Literal['softmax', 'sigmoid', 'identity']", activation)
    return layers, kind, np.asarray(classes) if labels else None

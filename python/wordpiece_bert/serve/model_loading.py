"""The model of a folder, as the class for what its files say it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from wordpiece_bert._internal.checks import checked_choice
from wordpiece_bert._internal.safe_json import read_object
from wordpiece_bert.bert.config import find_config
from wordpiece_bert.errors import ConfigError, InputError
from wordpiece_bert.hub import find_model
from wordpiece_bert.sentence.cross_encoder import CrossEncoder
from wordpiece_bert.sentence.dense.sentence_encoder import SentenceEncoder
from wordpiece_bert.sentence.dense.static_classifier import StaticClassifier, has_static_head
from wordpiece_bert.sentence.folders.kinds import CROSS, MULTI_VECTOR, SENTENCE, SPARSE, STATIC, kind_of
from wordpiece_bert.sentence.m3.heads import SPARSE_FILE, VECTORS_FILE
from wordpiece_bert.sentence.m3.m3_encoder import M3Encoder
from wordpiece_bert.sentence.multi_vector.multi_vector_encoder import MultiVectorEncoder
from wordpiece_bert.sentence.sparse.sparse_encoder import SparseEncoder
from wordpiece_bert.tasks import load
from wordpiece_bert.tasks.task_loading import has_frozen_head

if TYPE_CHECKING:
    from pathlib import Path

    from wordpiece_bert.serve.models import AnyModel

#: The kinds of models by the name of the option `kind`.
KINDS = ("embedding", "sparse", "multi-vector", "m3", "sequence-classifier", "token-classifier", "fill-mask")

_CLASSIFIER = "sequence-classifier"

_ENCODERS: dict[str, type[Any]] = {
    "embedding": SentenceEncoder,
    "sparse": SparseEncoder,
    "multi-vector": MultiVectorEncoder,
    "m3": M3Encoder,
}
# The kind by the kind of an encoder's folder.
_ENCODER_KINDS = {
    SENTENCE: "embedding",
    STATIC: "embedding",
    SPARSE: "sparse",
    MULTI_VECTOR: "multi-vector",
    CROSS: _CLASSIFIER,
}
# The kind by the ending of the class that a configuration names, of a folder that is not a sentence encoder.
_HEADS = {
    "ForSequenceClassification": _CLASSIFIER,
    "ForTokenClassification": "token-classifier",
    "ForMaskedLM": "fill-mask",
    "ForPreTraining": "fill-mask",
}


def load_model(
    name: str,
    *,
    kind: str | None = None,
    backend: str = "rust",
    dtype: str = "float32",
    threads: int | None = None,
    download: bool = False,
    calibrate: list[str] | None = None,
    instructions: str | None = None,
) -> AnyModel:
    """Load a model as what its folder says it is.

    Parameters
    ----------
    name : str
        The name or folder.
    kind : str, optional
        One of `KINDS`, where the folder of a masked-language model does not say for what it is.

    Raises
    ------
    ModelNotFoundError, ConfigError, CheckpointError, TokenizerFormatError
        As for the class; a ConfigError also for a model of another head, which the server does not have.
    InputError
        `threads` is given for a model that has no threads of its own.
    """
    if kind is not None:
        checked_choice("kind", kind, KINDS)
    folder = find_model(name, download=download)
    found = kind or _kind_of(folder)
    options: dict[str, Any] = {"backend": backend, "dtype": dtype, "calibrate": calibrate, "instructions": instructions}
    if found == _CLASSIFIER:
        return _classifier(folder, name, threads=threads, **options)
    if found in _ENCODERS:
        return cast("AnyModel", _ENCODERS[found](name, threads=threads, **options))
    if threads is not None:
        message = f"threads={threads} is not for the model {name}: a {found} computes with the threads of the process"
        raise InputError(f"{message}, which set_num_threads or --threads set")
    return load(name, **options)


def _classifier(folder: Path, name: str, *, threads: int | None, **options: Any) -> AnyModel:
    """Load a classifier: a model with a head, or a head on the vectors of a sentence encoder."""
    if has_frozen_head(folder):
        from wordpiece_bert.finetune.frozen_classifier import FrozenClassifier  # most servers have none

        return FrozenClassifier.from_pretrained(name, threads=threads, **options)
    if _has_static_head(folder):
        SentenceEncoder(name, **options)  # refuses the options that a static model does not have
        return StaticClassifier(name, threads=threads)
    return CrossEncoder(name, threads=threads, **options)


def _has_static_head(folder: Path) -> bool:
    return has_static_head(folder) and kind_of(folder) is STATIC


def _kind_of(folder: Path) -> str:
    """Return the kind of a folder: by its head, its modules, or the class that its configuration names."""
    if has_frozen_head(folder) or _has_static_head(folder):
        return _CLASSIFIER
    if (folder / SPARSE_FILE).is_file() and (folder / VECTORS_FILE).is_file():
        return "m3"
    if (folder / "modules.json").is_file():
        return _ENCODER_KINDS[kind_of(folder)]
    config = find_config(folder)
    architectures = read_object(config, ConfigError).get("architectures") if config.is_file() else None
    for name in architectures if isinstance(architectures, list) else []:
        head = isinstance(name, str) and name.partition("For")[1:]
        if head and head[0]:
            ending = "".join(head)
            if ending not in _HEADS:
                raise ConfigError(f"{config}: the server has nothing for a model of the class {name}")
            return _HEADS[ending]
    return _ENCODER_KINDS[kind_of(folder)]

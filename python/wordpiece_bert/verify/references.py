"""Programs that models are compared with: which are installed, and encoders and heads as they compute them.

Each is imported when it is used. Code in a model's folder is never run.
"""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from wordpiece_bert.errors import InputError, MissingPackageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from wordpiece_bert._internal.batching import ModelInputs
    from wordpiece_bert.bert.functional import Array

    #: The padded inputs of a model -> its hidden states [B, S, H], or its logits.
    Network: TypeAlias = Callable[[ModelInputs], Array]

SENTENCE_TRANSFORMERS, TRANSFORMERS = "sentence-transformers", "transformers"
MODEL2VEC, ONNX, OURS = "model2vec", "onnx", "ours"

#: What each reference imports, and how the packages are installed.
PEERS = {
    SENTENCE_TRANSFORMERS: (("torch", "sentence_transformers"), "pip install sentence-transformers"),
    TRANSFORMERS: (("torch", "transformers"), "pip install torch transformers"),
    MODEL2VEC: (("model2vec",), "pip install model2vec"),
    ONNX: (("onnxruntime",), "pip install onnxruntime"),
}

#: Where exporters put the graph of a model.
_ONNX_FILES = ("onnx/model.onnx", "model.onnx")
#: The output of a graph that is wanted, by the names that exporters give.
_OUTPUTS = ("last_hidden_state", "token_embeddings", "logits")


def is_installed(reference: str) -> bool:
    """Return whether the packages of a reference are there; none is imported."""
    return all(find_spec(package) is not None for package in PEERS[reference][0])


def require(reference: str) -> str:
    """Return a reference with the versions of its packages.

    Raises
    ------
    MissingPackageError
        One is not installed.
    """
    packages, command = PEERS[reference]
    if not is_installed(reference):
        missing = next(package for package in packages if find_spec(package) is None)
        raise MissingPackageError(
            f"the reference {reference} needs the package {missing.replace('_', '-')}: {command}, or use "
            "reference='ours', which compares with float32"
        )
    return ", ".join(f"{name} {version(name)}" for name in (package.replace("_", "-") for package in packages[::-1]))


def onnx_file(folder: Path) -> Path | None:
    """Return the ONNX file of a folder; None if it has none."""
    return next((folder / name for name in _ONNX_FILES if (folder / name).is_file()), None)


@contextmanager
def peer(reference: str, folder: Path) -> Iterator[None]:
    """Run code of a reference without its warnings and progress bars, and report its errors with the model's folder.

    Raises
    ------
    InputError
        The reference failed; the message has what it said.
    """
    bars: Any = None
    if find_spec("transformers") is not None and reference in (SENTENCE_TRANSFORMERS, TRANSFORMERS):
        import transformers

        bars = transformers.utils.logging

        shown, level = bars.is_progress_bar_enabled(), bars.get_verbosity()
        bars.disable_progress_bar()
        bars.set_verbosity_error()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except Exception as cause:  # every library has errors of its own
        message = " ".join(str(cause).split())
        raise InputError(
            f"{reference} cannot run {folder}: {type(cause).__name__}: {message[:500]}; reference='ours' compares with "
            "float32"
        ) from cause
    finally:
        if bars is not None:
            bars.set_verbosity(level)
            if shown:
                bars.enable_progress_bar()


def network(reference: str, folder: Path, file: Path | None, class_name: str) -> Network:
    """Return a model as transformers or ONNX Runtime computes it.

    Parameters
    ----------
    reference : str
        `TRANSFORMERS` or `ONNX`.
    folder : pathlib.Path
        The folder of the model.
    file : pathlib.Path or None
        The ONNX file.
    class_name : str
        The class of transformers, such as ``"AutoModel"``; its ``logits`` are the result if it has a head.
    """
    if reference == ONNX:
        assert file is not None
        return _onnx(file)
    import torch
    import transformers

    with peer(reference, folder):
        model = getattr(transformers, class_name).from_pretrained(str(folder), dtype=torch.float32).eval()
    takes_types = "token_type_ids" in signature(model.forward).parameters

    def run(inputs: ModelInputs) -> Array:
        given = {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in inputs.items()}
        if not takes_types:
            given.pop("token_type_ids")
        with peer(reference, folder), torch.inference_mode():
            out = model(**given)
        found = out.get("logits", None) if class_name != "AutoModel" else out.last_hidden_state
        if found is None and "start_logits" in out:
            found = torch.stack([out.start_logits, out.end_logits], dim=-1)
        return _floats(out[0] if found is None else found)

    return run


def _onnx(file: Path) -> Network:
    import onnxruntime

    with peer(ONNX, file):
        session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    wanted = {one.name for one in session.get_inputs()}
    outputs = [one.name for one in session.get_outputs()]
    chosen = next((name for name in _OUTPUTS if name in outputs), None)
    if chosen is None and not {"start_logits", "end_logits"} <= set(outputs):
        raise InputError(f"{file}: the graph has none of the outputs {', '.join(_OUTPUTS)}, but {', '.join(outputs)}")

    def run(inputs: ModelInputs) -> Array:
        given = {name: np.asarray(array, np.int64) for name, array in inputs.items() if name in wanted}
        with peer(ONNX, file):
            found = session.run([chosen] if chosen else ["start_logits", "end_logits"], given)
        return _floats(found[0] if chosen else np.stack(found, axis=-1))

    return run


def _floats(x: Any) -> Array:
    return np.asarray(x, np.float32)

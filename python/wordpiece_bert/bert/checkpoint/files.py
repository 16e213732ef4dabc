"""Which file of a model folder holds the weights, and how a file is read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from wordpiece_bert.bert.checkpoint.safetensors import AnyArray, read_safetensors
from wordpiece_bert.errors import CheckpointError, ModelNotFoundError

if TYPE_CHECKING:
    import os

__all__ = ["find_weights", "read_tensors"]

_WEIGHTS = "model.safetensors"

# Other forms of the weights, by their names in a folder, in the order in which to mention them.
_OTHER_FORMS = {
    "model.safetensors.index.json": "safetensors split into several files",
    "pytorch_model.bin": "a PyTorch pickle",
    "pytorch_model.bin.index.json": "PyTorch pickles split into several files",
    "tf_model.h5": "TensorFlow (Keras) weights",
    "flax_model.msgpack": "Flax weights",
    "*.ckpt.index": "a TensorFlow checkpoint",
    "*.ckpt-*": "a TensorFlow checkpoint",
    "*.onnx": "an ONNX graph",
    "onnx/*.onnx": "an ONNX graph",
    "*.gguf": "a GGUF file",
    "*.pt": "a PyTorch pickle",
    "*.pth": "a PyTorch pickle",
}

_CONVERT = (
    "Convert it once, where torch and transformers are installed:\n"
    '    python -c "from transformers import AutoModel as M; M.from_pretrained({folder!r}).save_pretrained({folder!r})"'
)


def find_weights(folder: str | os.PathLike[str]) -> Path:
    """Return the weight file of a model folder.

    Raises
    ------
    CheckpointError
        The weights are there in a form which is not read; the message names the file and how to convert it.
    ModelNotFoundError
        The folder holds no weights.
    """
    folder = Path(folder)
    if (file := folder / _WEIGHTS).is_file():
        return file
    for pattern, form in _OTHER_FORMS.items():
        if found := sorted(folder.glob(pattern)):
            _refuse_form(found[0], form)
    message = f"{folder} holds no weights: there is no {_WEIGHTS}, and nothing else that looks like them"
    raise ModelNotFoundError(message)


def read_tensors(file: str | os.PathLike[str]) -> dict[str, AnyArray]:
    """Read all tensors of one checkpoint file, checked as if its author meant harm.

    Parameters
    ----------
    file
        A ``.safetensors`` file.

    Returns
    -------
    dict of str to array
        By the names in the file; floating-point tensors (float64, float32, float16, bfloat16) as float32, integers and
        booleans as they are stored.

    Raises
    ------
    CheckpointError
        The file is missing, malformed, or in another form (which the message names).
    """
    file = Path(file)
    if file.suffix == ".safetensors":
        return read_safetensors(file)
    for pattern, form in _OTHER_FORMS.items():
        if file.match(pattern) or (file.suffix == ".bin" and pattern == "pytorch_model.bin"):
            _refuse_form(file, form)
    message = f"{file}: not a weight file that is read here; its name must end in .safetensors"
    raise CheckpointError(message)


def _refuse_form(file: Path, form: str) -> NoReturn:
    message = f"{file} is {form}, which is not read; {_WEIGHTS} is. {_CONVERT.format(folder=str(file.parent))}"
    raise CheckpointError(message)

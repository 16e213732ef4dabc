"""Which file of a model folder holds the weights, and how a file of each form is read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from wordpiece_bert._internal.safe_json import inside, quoted, read_json
from wordpiece_bert.bert.checkpoint.safetensors import AnyArray, read_safetensors
from wordpiece_bert.bert.checkpoint.tensorflow_files import read_tensorflow_checkpoint
from wordpiece_bert.bert.checkpoint.torch_files import read_torch_file
from wordpiece_bert.bert.half_precision import is_half, widen
from wordpiece_bert.errors import CheckpointError, ModelNotFoundError

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

__all__ = ["find_weights", "non_finite", "read_tensors"]

# The first that exists is read.
_FORMS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")

# After these, the index of a TensorFlow checkpoint: the name in Google's release, and those that training gives.
_TENSORFLOW = "*.ckpt*.index"

# Other forms of the weights, by their names in a folder, in the order in which to mention them.
_OTHER_FORMS = {
    "tf_model.h5": "TensorFlow (Keras) weights",
    "flax_model.msgpack": "Flax weights",
    "*.ckpt*": "a part of a TensorFlow checkpoint, whose .index file is not there",
    "*.onnx": "an ONNX graph",
    "onnx/*.onnx": "an ONNX graph",
    "*.gguf": "a GGUF file",
}

_CONVERT = (
    "Convert it once, where torch and transformers are installed:\n"
    '    python -c "from transformers import AutoModel as M; M.from_pretrained({folder!r}).save_pretrained({folder!r})"'
)

#: Largest index file. One of a thousand tensors has some 100 kB.
_LARGEST_INDEX = 10_000_000


def find_weights(folder: str | os.PathLike[str]) -> Path:
    """Return the weight file of a model folder, or its index where the weights are split into several.

    Raises
    ------
    CheckpointError
        The weights are there in a form which is not read; the message names the file and how to convert it.
    ModelNotFoundError
        The folder holds no weights.
    """
    folder = Path(folder)
    for name in _FORMS:
        if (file := folder / name).is_file():
            return file
    indexes = sorted(folder.glob(_TENSORFLOW))
    if len(indexes) > 1:
        names = ", ".join(quoted(file.name) for file in indexes)
        _refuse(folder, f"holds several TensorFlow checkpoints: {names}. Leave one")
    if indexes:
        return indexes[0]
    for pattern, form in _OTHER_FORMS.items():
        if found := sorted(folder.glob(pattern)):
            _refuse_form(found[0], form)
    message = f"{folder} holds no weights: there is no {' nor '.join(_FORMS)}, and nothing else that looks like them"
    raise ModelNotFoundError(message)


def read_tensors(file: str | os.PathLike[str], *, keep_half: bool = False) -> dict[str, AnyArray]:
    """Read all tensors of one checkpoint, checked as if its author meant harm.

    Parameters
    ----------
    file
        A ``.safetensors`` file, a file that ``torch.save`` wrote (``.bin``, ``.pt``, ``.pth``), the index of several
        (``.json``), or that of a TensorFlow checkpoint (``.index``); the files that an index names are read too.
    keep_half
        Whether to leave float16 and bfloat16 as they are, as float16 and `wordpiece_bert.bert.half_precision.BFLOAT16`.

    Returns
    -------
    dict of str to array
        By the names in the file (those of a TensorFlow checkpoint as PyTorch has them); floating-point tensors
        (float64, float32, float16, bfloat16) as float32, integers and booleans as they are stored.

    Raises
    ------
    CheckpointError
        The file is missing, malformed, or in another form (which the message names).
    """
    file = Path(file)
    if file.suffix == ".safetensors":
        return read_safetensors(file, keep_half=keep_half)
    if file.suffix == ".json":
        return _read_shards(file, keep_half=keep_half)
    if file.suffix in (".bin", ".pt", ".pth"):
        return read_torch_file(file, keep_half=keep_half)
    if file.suffix == ".index":
        return read_tensorflow_checkpoint(file, keep_half=keep_half)
    for pattern, form in _OTHER_FORMS.items():
        if file.match(pattern):
            _refuse_form(file, form)
    message = (
        f"{file}: not a weight file that is read here; its name must end in .safetensors, .bin, .index.json or .index"
    )
    raise CheckpointError(message)


def non_finite(tensors: Mapping[str, AnyArray]) -> dict[str, int]:
    """Count the numbers in each tensor that are NaN or infinite; tensors without any are left out."""
    counts = {}
    for name, tensor in tensors.items():
        if is_half(tensor.dtype) or tensor.dtype.kind == "f":
            count = int(tensor.size - np.isfinite(widen(tensor)).sum())
            if count:
                counts[name] = count
    return counts


def _read_shards(index: Path, *, keep_half: bool) -> dict[str, AnyArray]:
    """Read weights that are split into several files: ``weight_map`` of their index says which tensor is in which."""
    content = read_json(index, CheckpointError, max_bytes=_LARGEST_INDEX)
    places = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(places, dict) or not all(isinstance(name, str) for name in places.values()):
        _refuse(index, "must hold a weight_map from the names of tensors to the names of files")
    tensors: dict[str, AnyArray] = {}
    for name in dict.fromkeys(places.values()):
        if "/" in name or Path(name).suffix not in (".safetensors", ".bin"):
            _refuse(index, f"names the file {quoted(name)}; a plain name of a .safetensors or .bin file is expected")
        shard = read_tensors(inside(index.parent, name, str(index), CheckpointError), keep_half=keep_half)
        if missing := [tensor for tensor, place in places.items() if place == name and tensor not in shard]:
            _refuse(index, f"says that {quoted(missing[0])} is in {quoted(name)}, where it is not")
        if twice := tensors.keys() & shard.keys():
            _refuse(index, f"has {quoted(min(twice))} in two files")
        tensors |= shard
    return tensors


def _refuse_form(file: Path, form: str) -> NoReturn:
    known = "safetensors, PyTorch files and TensorFlow checkpoints are"
    _refuse(file, f"this is {form}, which is not read; {known}. {_CONVERT.format(folder=str(file.parent))}")


def _refuse(file: Path, what: str) -> NoReturn:
    message = f"{file}: {what}"
    raise CheckpointError(message)

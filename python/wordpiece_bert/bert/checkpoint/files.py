"""Finds the weight file of a model folder, and reads weight files of every supported format."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.safe_json import inside, quoted, read_json
from wordpiece_bert.bert.checkpoint.safetensors import AnyArray, stored_safetensors
from wordpiece_bert.bert.half_precision import is_half
from wordpiece_bert.bert.stored_tensor import NumbersFile, StoredTensor, blocks, count_non_finite, loaded_all
from wordpiece_bert.errors import CheckpointError, ModelNotFoundError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

# The first of these that exists is read.
_FILE_NAMES = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")

# After these, the index of a TensorFlow checkpoint, as Google's releases (bert_model) and training (model) name it.
_TENSORFLOW = "*.ckpt*.index"

# Formats that are not supported, by the name of the file; messages name the first that is found.
_UNSUPPORTED = {
    "tf_model.h5": "TensorFlow (Keras) weights",
    "flax_model.msgpack": "Flax weights",
    "*.ckpt*": "a part of a TensorFlow checkpoint without its .index file",
    "*.onnx": "an ONNX graph",
    "onnx/*.onnx": "an ONNX graph",
    "*.gguf": "a GGUF file",
}

_CONVERT = (
    "Convert it once, where torch and transformers are installed:\n"
    '    python -c "from transformers import AutoModel as M; M.from_pretrained({folder!r}).save_pretrained({folder!r})"'
)

#: Largest index file, in bytes. For a thousand tensors it has about 100 kB.
_LARGEST_INDEX = 10_000_000


def find_weights(folder: str | os.PathLike[str]) -> Path:
    """Return the weight file of a model folder, or the index file if the weights are split into several files.

    Parameters
    ----------
    folder : str or os.PathLike
        The folder of a model.

    Returns
    -------
    Path
        The path of the file.

    Raises
    ------
    CheckpointError
        The weights are in a format that is not supported; the message names the file and how to convert it.
    ModelNotFoundError
        The folder has no weights.

    Examples
    --------
    >>> from wordpiece_bert.bert.checkpoint import find_weights
    >>> find_weights("models/reviews").name
    'model.safetensors'
    """
    folder = Path(folder)
    for name in _FILE_NAMES:
        if (file := folder / name).is_file():
            return file
    indexes = sorted(folder.glob(_TENSORFLOW))
    if len(indexes) > 1:
        names = ", ".join(quoted(file.name) for file in indexes)
        raise CheckpointError(f"{folder}: has several TensorFlow checkpoints: {names}. Keep only one of them")
    if indexes:
        return indexes[0]
    for pattern, what in _UNSUPPORTED.items():
        if found := sorted(folder.glob(pattern)):
            _refuse_format(found[0], what)
    raise ModelNotFoundError(
        f"{folder} has no weights: there is no {' nor '.join(_FILE_NAMES)}, and no file of another format"
    )


@contextmanager
def open_tensors(file: str | os.PathLike[str]) -> Iterator[dict[str, StoredTensor]]:
    """Open a checkpoint, and return its tensors, whose numbers are read when they are needed.

    Files are untrusted: nothing in them is executed, and every size is checked before memory is allocated for it.

    Parameters
    ----------
    file : str or PathLike
        A ``.safetensors`` file, a file that ``torch.save`` wrote (``.bin``, ``.pt``, ``.pth``), the index of several
        (``.json``), or a TensorFlow checkpoint's index (``.index``). The files that an index names are opened, too.

    Yields
    ------
    dict of str to StoredTensor
        Tensors by the names in the file; names of TensorFlow are converted to PyTorch's. They can be read until the
        block ends. Floating-point tensors (float64, float32, float16, bfloat16) become float32, integers and booleans
        keep their dtype.

    Raises
    ------
    CheckpointError
        The file is missing, malformed, or in another format (which the message names).
    """
    with ExitStack() as stack:
        yield _opened(Path(file), stack)


@completed_by(open_tensors)
def read_tensors(file: str | os.PathLike[str]) -> dict[str, AnyArray]:
    """Read all tensors of one checkpoint.

    Returns
    -------
    dict of str to array
        The tensors of `open_tensors`, in memory. Two names for one tensor of a file are two names for one array.

    Raises
    ------
    CheckpointError
        As for `open_tensors`.

    Examples
    --------
    >>> from wordpiece_bert.bert.checkpoint import find_weights, read_tensors
    >>> tensors = read_tensors(find_weights("models/reviews"))
    >>> tensors["classifier.weight"].shape, tensors["classifier.weight"].dtype
    ((2, 67), dtype('float32'))
    """
    with open_tensors(file) as tensors:
        return loaded_all(tensors)


def _opened(file: Path, stack: ExitStack) -> dict[str, StoredTensor]:
    """Return the tensors of one checkpoint, whose files are closed by `stack`."""
    if file.suffix == ".safetensors":
        return stored_safetensors(_file(file, stack))
    if file.suffix == ".json":
        return _opened_shards(file, stack)
    if file.suffix in (".bin", ".pt", ".pth"):
        from wordpiece_bert.bert.checkpoint.torch_files import torch_tensors

        return torch_tensors(_file(file, stack))
    if file.suffix == ".index":
        from wordpiece_bert.bert.checkpoint.tensorflow_files import tensorflow_tensors

        return tensorflow_tensors(file, lambda path: _file(path, stack))
    for pattern, what in _UNSUPPORTED.items():
        if file.match(pattern):
            _refuse_format(file, what)
    raise CheckpointError(f"{file}: not a weight file; its name must end in .safetensors, .bin, .index.json or .index")


def _file(file: Path, stack: ExitStack) -> NumbersFile:
    try:
        return stack.enter_context(NumbersFile(file))
    except OSError as cause:
        raise CheckpointError(f"{file}: cannot be read: {cause.strerror or cause}") from cause


def non_finite(tensors: Mapping[str, AnyArray | StoredTensor]) -> dict[str, int]:
    """Return how many numbers of each tensor are NaN or infinite; tensors without such numbers are omitted.

    Parameters
    ----------
    tensors : mapping of str to ndarray or StoredTensor
        The tensors by name. Those that are in a file are read one after the other.

    Returns
    -------
    dict of str to int
        The numbers by the names of the tensors.

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert.bert.checkpoint import non_finite
    >>> non_finite({"a": np.array([1.0, np.nan, np.inf]), "b": np.zeros(3)})
    {'a': 2}
    """
    counts = {}
    for name, tensor in tensors.items():
        if is_half(tensor.dtype) or tensor.dtype.kind == "f":
            count = sum(map(count_non_finite, blocks(tensor)))
            if count:
                counts[name] = count
    return counts


def _opened_shards(index: Path, stack: ExitStack) -> dict[str, StoredTensor]:
    """Open weights that are split into several files; ``weight_map`` of the index has the file of each tensor."""
    content = read_json(index, CheckpointError, max_bytes=_LARGEST_INDEX)
    file_names = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(file_names, dict) or not all(isinstance(name, str) for name in file_names.values()):
        raise CheckpointError(f"{index}: must have a weight_map from the names of tensors to the names of files")
    tensors: dict[str, StoredTensor] = {}
    for name in dict.fromkeys(file_names.values()):
        if "/" in name or Path(name).suffix not in (".safetensors", ".bin"):
            raise CheckpointError(
                f"{index}: names the file {quoted(name)}; a plain name of a .safetensors or .bin file is expected"
            )
        shard = _opened(inside(index.parent, name, str(index), CheckpointError), stack)
        if missing := [tensor for tensor, file in file_names.items() if file == name and tensor not in shard]:
            raise CheckpointError(f"{index}: says that {quoted(missing[0])} is in {quoted(name)}, where it is not")
        if duplicates := tensors.keys() & shard.keys():
            raise CheckpointError(f"{index}: has {quoted(min(duplicates))} in two files")
        tensors |= shard
    return tensors


def _refuse_format(file: Path, what: str) -> NoReturn:
    supported = "safetensors, PyTorch files and TensorFlow checkpoints are"
    raise CheckpointError(
        f"{file}: this is {what}, which is not supported; {supported}. {_CONVERT.format(folder=str(file.parent))}"
    )

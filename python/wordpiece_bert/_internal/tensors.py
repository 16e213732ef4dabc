"""Tensors of PyTorch, which is imported only where a call asks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wordpiece_bert.errors import InputError, MissingPackageError

if TYPE_CHECKING:
    from collections.abc import Mapping


def check_tensor_type(tensor_type: object) -> None:
    """Check a `return_tensors`; an `InputError` for anything but None, ``"np"`` and ``"pt"``."""
    if tensor_type is not None and not (isinstance(tensor_type, str) and tensor_type in ("np", "pt")):
        raise InputError(
            f"return_tensors must be 'np', 'pt' or None, not {tensor_type!r}; other libraries convert NumPy arrays"
        )


def to_torch(arrays: Mapping[str, Any], instead: str = "return_tensors='np'") -> dict[str, Any]:
    """Convert arrays to tensors of PyTorch that share their memory.

    Parameters
    ----------
    arrays : mapping
        The arrays by name; tensors among them stay as they are.
    instead : str
        The argument of the call that gives arrays, for the message.

    Raises
    ------
    MissingPackageError
        PyTorch is not installed.
    """
    try:
        import torch  # type: ignore[import-not-found, unused-ignore]
    except ImportError as cause:
        raise MissingPackageError(f"tensors need PyTorch: pip install torch, or use {instead} for arrays") from cause
    return {name: array if is_tensor(array) else torch.from_numpy(array) for name, array in arrays.items()}


def is_tensor(value: object) -> bool:
    """Whether a value is a tensor of PyTorch; without importing it."""
    return type(value).__module__.partition(".")[0] == "torch"

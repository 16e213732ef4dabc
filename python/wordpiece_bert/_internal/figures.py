"""Figures of matplotlib, which is imported where one is drawn."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.atomic_file import write_bytes
from wordpiece_bert._internal.parameters import Parameters
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    import os

#: Where a plot goes.
PLOTTED = Parameters(
    """
    path : path
        The file to write; its suffix determines the format (``.svg``, ``.png``, ``.pdf``).
    """
)


def new_figure(what: str, remedy: str = "", **settings: Any) -> tuple[Any, Any]:
    """Return a figure and its canvas, which draws pixels without a display.

    Parameters
    ----------
    what : str
        What is drawn, for the error.
    remedy : str, default ""
        What else the user can do, for the error.
    **settings
        The arguments of ``matplotlib.figure.Figure``.

    Raises
    ------
    InputError
        matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as cause:
        raise InputError(f"{what} needs matplotlib: pip install 'wordpiece-bert[plot]'{remedy}") from cause
    figure = Figure(**settings)
    return figure, FigureCanvasAgg(figure)


def save_figure(figure: Any, path: str | os.PathLike[str]) -> None:
    """Write a figure to a file, atomically.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        The figure.
    path : str or os.PathLike
        The file; its suffix determines the format.

    Raises
    ------
    InputError
        The suffix is another one.
    OSError
        The file cannot be written.
    """
    file = Path(path)
    kind = file.suffix.lower().removeprefix(".")
    if kind not in figure.canvas.get_supported_filetypes():
        raise InputError(f"{file}: a plot is written as .svg, .png or .pdf; choose a name with such a suffix")
    content = io.BytesIO()
    figure.savefig(content, format=kind)
    write_bytes(file, content.getvalue())

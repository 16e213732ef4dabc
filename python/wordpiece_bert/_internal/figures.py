"""Figures of matplotlib, which is imported where one is drawn."""

from __future__ import annotations

from typing import Any

from wordpiece_bert._internal.parameters import Parameters
from wordpiece_bert.errors import InputError

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

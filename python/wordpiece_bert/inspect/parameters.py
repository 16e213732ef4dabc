"""What the parameters of views mean."""

from __future__ import annotations

from wordpiece_bert._internal.parameters import Parameters

#: What most views have.
VIEWING = Parameters(
    """
    max_length : int, optional
        The most tokens, special tokens included. By default the most that the model accepts.
    title : str
        A line above the view.
    """
)

"""Models that a process has loaded, so that the same model is loaded once.

What is kept is found by an absolute path and the options of loading, and loaded again if a file there has changed.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.log import tell
from wordpiece_bert.sentence.folders.content_files import FileState, folder_states

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

#: The most models of each kind that are kept; a process seldom uses more than one.
_KEPT = 4


class KeptModels:
    """The models of a kind that were loaded last, each with the state of its files before it was loaded."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[object, ...], tuple[tuple[FileState, ...], Any]] = OrderedDict()
        self._renew_lock()
        # A thread that a forked process does not have may have held it.
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew_lock)

    def _renew_lock(self) -> None:
        self._lock = threading.RLock()

    def get(self, folder: Path, load: Callable[[], Any], *options: object) -> Any:
        """Return the model of a folder.

        Parameters
        ----------
        folder : Path
            The folder, an absolute path.
        load : callable
            Loads the model, if none is kept that was loaded with the same options from the same files.
        *options : object
            What the model depends on beside the folder, hashable.
        """
        with self._lock:
            key, states = (str(folder), *options), folder_states(folder)
            before, model = self._kept.pop(key, ((), None))
            if model is None or before != states:
                model = load()
            else:
                tell("used the model of %s that was loaded before", folder)
            self._kept[key] = states, model
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
            return model

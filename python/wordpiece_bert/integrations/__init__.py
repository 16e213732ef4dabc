"""Texts in the libraries that hold them: each module works with the library of its name, and imports it.

`arrow` is the core of all: functions from Arrow batches to Arrow batches. Where a library is missing, the error of the
import or the call has the command that installs it.

Stability: provisional.
"""

__all__: list[str] = []

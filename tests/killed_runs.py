"""Runs that are killed at a chosen call, or change of the disk: seconds would say nothing on a busy machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from wordpiece_bert._internal import atomic_file

# Counted are the calls and returns that the package makes in the main thread, calls of compiled functions included.
_COUNTED = """
import os, signal, sys
last, program = int(sys.argv[1]), sys.argv[2]
del sys.argv[1:3]
calls = 0

def count(frame, event, argument):
    global calls
    if frame.f_globals.get("__name__", "").startswith(("wordpiece_bert.pretraining", "wordpiece_bert.finetune")):
        calls += 1
        if calls == last:
            os.kill(os.getpid(), signal.SIGKILL)

sys.setprofile(count)
exec(compile(program, "<program>", "exec"), {"__name__": "__main__"})
sys.setprofile(None)
print(calls)
"""


def _run(command: Sequence[str], last: int) -> int | None:
    """Run a program, and return how many calls it made; `None` if it was killed at call ``last``."""
    program = [sys.executable, "-c", _COUNTED, str(last), *command]
    ended = subprocess.run(program, stdout=subprocess.PIPE, encoding="utf-8", check=False)
    assert ended.returncode in (0, -signal.SIGKILL)
    return int(ended.stdout.splitlines()[-1]) if ended.returncode == 0 else None


def finish_after_kills(
    whole: Sequence[str],
    killed: Sequence[str],
    shares: Iterable[float],
    after_kill: Callable[[], None] | None = None,
) -> None:
    """Run a program to its end; and, with other arguments, again and again until it ends.

    The first of these runs are killed, each when it has made a share of the calls of the whole one. The first is for certain;
    one that goes on makes fewer calls and may come to its end before.

    Parameters
    ----------
    whole, killed : sequence of str
        The program, and its arguments.
    shares : iterable of float
        When to kill a run, from 0 to 1.
    after_kill : callable, optional
        Called after each kill.
    """
    calls, kills = _run(whole, 0), 0
    assert calls is not None
    for share in shares:
        if _run(killed, int(share * calls)) is not None:
            break
        kills += 1
        if after_kill is not None:
            after_kill()
    assert _run(killed, 0) is not None
    assert kills


def killed_at(change: int | None, call: Callable[[], int]) -> int:
    """Return the exit status of a call in a child process, which is killed just before a change of the disk, if one is given."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    count = 0

    def counted(function: Any) -> Any:
        def changing(*arguments: Any, **options: Any) -> Any:
            nonlocal count
            count += 1
            if count == change:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **options)

        return changing

    for name in ("rename", "replace", "unlink", "rmdir", "mkdir", "fsync", "fdatasync", "link"):
        setattr(os, name, counted(getattr(os, name)))
    atomic_file._sync_data = os.fdatasync
    status = 1
    try:
        status = call()
    finally:
        os._exit(status)

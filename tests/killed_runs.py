"""Builders of pre-training data killed at a chosen call: seconds would say nothing on a busy machine."""

from __future__ import annotations

import signal
import subprocess
import sys

# Counted are the calls and returns that the package makes in the main thread, those of compiled functions included.
_COUNTED = """
import os, signal, sys
last, program = int(sys.argv[1]), sys.argv[2]
del sys.argv[1:3]
calls = 0

def count(frame, event, argument):
    global calls
    if frame.f_globals.get("__name__", "").startswith("wordpiece_bert.pretraining"):
        calls += 1
        if calls == last:
            os.kill(os.getpid(), signal.SIGKILL)

sys.setprofile(count)
exec(compile(program, "<program>", "exec"), {"__name__": "__main__"})
sys.setprofile(None)
print(calls)
"""


def _run(last: int, program: str, arguments: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", _COUNTED, str(last), program, *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, encoding="utf-8", check=False)


def count_calls(program: str, *arguments: str) -> int:
    """Run a program to its end; return how many calls and returns ``wordpiece_bert.pretraining`` made."""
    ended = _run(0, program, arguments)
    assert ended.returncode == 0
    return int(ended.stdout.splitlines()[-1])


def kill_at(call: int, program: str, *arguments: str) -> bool:
    """Run a program that is killed at this call; return whether it was, or came to its end before."""
    ended = _run(call, program, arguments)
    assert ended.returncode in (0, -signal.SIGKILL)
    return ended.returncode != 0

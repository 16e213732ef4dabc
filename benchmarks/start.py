"""The command `start`: from the start of a process to its first vector, in fresh processes.

The steps are cumulative, and the best of several processes counts, because other programs may share the machine. CPU
seconds are the sum over all threads. The modules are compiled to bytecode beforehand, as an installer does.
"""

from __future__ import annotations

import argparse
import compileall
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import wordpiece_bert
from benchmarks import report

#: Label -> the program, with the model's name as its first argument.
STEPS = {
    "Python alone": "pass",
    "import numpy": "import numpy",
    "import SentenceEncoder": "from wordpiece_bert import SentenceEncoder",
    "load the model": "import sys; from wordpiece_bert import SentenceEncoder; SentenceEncoder(sys.argv[1])",
    "first vector": (
        "import sys; from wordpiece_bert import SentenceEncoder; SentenceEncoder(sys.argv[1]).encode('a b')"
    ),
    "wordpiece-bert --help": "import sys; sys.argv[1:] = ['--help']; from wordpiece_bert.cli import main; main()",
}


def measure(program: str, model: str, rounds: int) -> tuple[float, float]:
    """Return the least seconds and CPU seconds of fresh processes that run a program."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    times = []
    for _ in range(rounds):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run([sys.executable, "-c", program, model], check=True, env=environment, stdout=subprocess.DEVNULL)
        seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append((seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
    return min(wall for wall, _ in times), min(cpu for _, cpu in times)


def table(model: str, rounds: int) -> str:
    """Measure all steps and return them as a table."""
    compileall.compile_dir(Path(wordpiece_bert.__file__).parent, quiet=1)
    cells = []
    for label, program in STEPS.items():
        seconds, cpu = measure(program, model, rounds)
        cells.append([label, f"{1000 * seconds:.0f}", f"{1000 * cpu:.0f}"])
    return "\n".join(report.markdown(["", "ms", "CPU ms"], cells))


def main(arguments: list[str]) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="benchmarks start", description=__doc__)
    parser.add_argument("--model", default="minilm", help="name or folder of the model (default: minilm)")
    parser.add_argument("--quick", action="store_true", help="fewer processes, to check that the benchmark works")
    options = parser.parse_args(arguments)
    print(table(options.model, 2 if options.quick else 10))
    return 0

"""The command `start`: from the start of a process to its first ids and its first vector, in fresh processes.

The steps are cumulative, and take turns; medians count, because other programs may share the machine. CPU seconds are the sum
over all threads. Tokenizers of other libraries read the same tokenizer.json; a library that is not installed is left out. The
modules are compiled to bytecode beforehand, as an installer does.
"""

from __future__ import annotations

import argparse
import compileall
import os
import resource
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from statistics import median

import wordpiece_bert
from benchmarks import report
from wordpiece_bert.hub import find_model

_TEXT = "A text, to be encoded."
#: Label -> the program, with the model's name, its tokenizer.json and the number of threads as its arguments.
STEPS = {
    "Python alone": "pass",
    "import numpy": "import numpy",
    "import Tokenizer": "from wordpiece_bert import Tokenizer",
    "load tokenizer.json": "import sys; from wordpiece_bert import Tokenizer; Tokenizer.from_file(sys.argv[2])",
    "first ids": (
        f"import sys; from wordpiece_bert import Tokenizer; Tokenizer.from_file(sys.argv[2]).encode({_TEXT!r}).ids"
    ),
    "import SentenceEncoder": "from wordpiece_bert import SentenceEncoder",
    "load the model": "import sys; from wordpiece_bert import SentenceEncoder; SentenceEncoder(sys.argv[1])",
    "first vector": (
        "import sys; from wordpiece_bert import SentenceEncoder; "
        "SentenceEncoder(sys.argv[1], threads=int(sys.argv[3])).encode('a b')"
    ),
    "wordpiece-bert --help": "import sys; sys.argv[1:] = ['--help']; from wordpiece_bert.cli import main; main()",
}
#: Library -> what makes its tokenizer of a tokenizer.json, and what encodes a text with it.
PEERS = {
    "tokenizers": ("from tokenizers import Tokenizer; t = Tokenizer.from_file(sys.argv[2])", "t.encode({text!r}).ids"),
    "kitoken": (
        "from kitoken import Kitoken; t = Kitoken.from_tokenizers_file(sys.argv[2])",
        "t.encode({text!r}, True)",
    ),
    "nanotoken": ("import nanotoken; t = nanotoken.Tokenizer(sys.argv[2])", "t.encode({text!r})"),
    "tokie": ("from tokie import Tokenizer; t = Tokenizer.from_json(sys.argv[2])", "t.encode({text!r}).ids"),
    "transformers": (
        "from transformers import PreTrainedTokenizerFast; t = PreTrainedTokenizerFast(tokenizer_file=sys.argv[2])",
        "t({text!r}).input_ids",
    ),
}


def steps() -> dict[str, str]:
    """Return the steps of this package, and of the other libraries that are installed."""
    found = dict(STEPS)
    for name, (load, encode) in PEERS.items():
        if find_spec(name):
            found[f"{name}: load tokenizer.json"] = f"import sys; {load}"
            found[f"{name}: first ids"] = f"import sys; {load}; {encode.format(text=_TEXT)}"
    return found


def measure(arguments: list[str], rounds: int) -> dict[str, tuple[float, float]]:
    """Return the median seconds and CPU seconds of fresh processes for each step; the steps take turns."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    times: dict[str, list[tuple[float, float]]] = {label: [] for label in steps()}
    for _ in range(rounds):
        for label, program in steps().items():
            before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            command = [sys.executable, "-c", program, *arguments]
            subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
            seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
            times[label].append((seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
    return {
        label: (median(wall for wall, _ in found), median(cpu for _, cpu in found)) for label, found in times.items()
    }


def table(found: dict[str, tuple[float, float]]) -> str:
    """Return what was measured as a table."""
    cells = []
    for label, (seconds, cpu) in found.items():
        ours = label.partition(": ")[2]
        ratio = f"{found[ours][0] / seconds:.2f}" if ours else ""
        cells.append([label, f"{1000 * seconds:.0f}", f"{1000 * cpu:.0f}", ratio])
    return "\n".join(report.markdown(["", "ms", "CPU ms", "ours ÷ it"], cells))


def main(arguments: list[str]) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="benchmarks start", description=__doc__)
    parser.add_argument("--model", default="minilm", help="name or folder of the model (default: minilm)")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="numbers of threads (default: 1 2)")
    parser.add_argument("--quick", action="store_true", help="fewer processes, to check that the benchmark works")
    parser.add_argument("--record", type=Path, nargs="?", const=report.RECORDS)
    options = parser.parse_args(arguments)
    compileall.compile_dir(Path(wordpiece_bert.__file__).parent, quiet=1)
    file = find_model(options.model) / "tokenizer.json"
    rounds = 2 if options.quick else 15
    lines = [report.heading("From the start of a process", f"one; medians of {rounds} processes")]
    found = {}
    for threads in options.threads:
        found[threads] = measure([options.model, str(file), str(threads)], rounds)
        lines.append(f"## {threads} thread{'s' * (threads != 1)}\n\n{table(found[threads])}\n")
    print(*lines, sep="\n")
    if options.record:
        print(report.save("start", "\n".join(lines), {"seconds and CPU seconds": found}, options.record))
    return 0

"""An engine in a process of its own, and the environments that engines run in."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from benchmarks.definitions import ENGINES
from benchmarks.texts import ROOT

if TYPE_CHECKING:
    from types import TracebackType

    from benchmarks.definitions import Contestant

PROGRAMS = Path(__file__).with_name("engines")

#: What does not fit into the environment of the others, and the requirements to install.
OWN_ENVIRONMENTS = {
    "tokenizers-rc": ["tokenizers==1.0.0rc3"],
    "tensorflow-text": ["tensorflow-text==2.21.1"],
    "onnxruntime": ["onnxruntime==1.31.1", "onnx==1.23.2", "sympy", "tokenizers==0.23.3"],
}

#: Of these only the package itself: what it depends on is a gigabyte, and not needed for what is measured.
ALONE = {"tensorflow-text"}


class MissingError(Exception):
    """An engine is not here, or does not do what is asked."""


class EngineError(Exception):
    """An engine failed."""


def python_of(engine: str, folder: Path = ROOT / "build" / "bench") -> Path:
    """The Python that runs an engine; the environment is made when it is first needed.

    Raises
    ------
    MissingError
        It cannot be made.
    """
    requirements = OWN_ENVIRONMENTS.get(engine)
    if requirements is None:
        return Path(sys.executable)
    requirement = requirements[0]
    environment = folder / requirement.replace("==", "-")
    python = environment / "bin" / "python"
    done = environment / "installed.stamp"
    if not done.exists():
        print(f"Making an environment for {requirement} …", file=sys.stderr)
        venv.create(environment, with_pip=True, clear=True)
        pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
        wanted = [["--no-deps", *requirements], ["numpy"]] if engine in ALONE else [[*requirements, "numpy"]]
        for one in wanted:
            outcome = subprocess.run([*pip, *one], capture_output=True, text=True, check=False)
            if outcome.returncode:
                break
        if outcome.returncode:
            last = (outcome.stderr.strip().splitlines() or ["pip said nothing"])[-1]
            raise MissingError(f"{requirement} could not be installed: {last}")
        done.touch()
    return python


def cores(count: int) -> list[int]:
    """The cores to pin to: the last ones that this process may use, since the first serve interrupts."""
    if not hasattr(os, "sched_getaffinity"):
        return []
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < count:
        raise MissingError(f"{count} cores are needed, and there is {len(usable)}")
    return usable[-count:]


@dataclass
class Loaded:
    """What loading took."""

    seconds: float
    resident: int


class Engine:
    """A live process of an engine, pinned and idle between requests. A context manager: at its end the process ends."""

    def __init__(self, engine: str, core_count: int = 1, program: str | None = None) -> None:
        self.engine = engine
        pinned = cores(core_count)
        threads = str(core_count)
        environment = os.environ | {
            "OMP_NUM_THREADS": threads,
            "RAYON_NUM_THREADS": threads,
            "TOKENIZERS_PARALLELISM": "false",
        }
        # The driver's own search path is not the engine's: of one it would see packages of another environment.
        environment.pop("PYTHONPATH", None)
        self._process = subprocess.Popen(
            [python_of(engine), PROGRAMS / (program or ENGINES[engine])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
            encoding="utf-8",
        )
        try:
            self.version: str = self.ask(do="pin", cores=pinned)["version"]
        except BaseException:
            self.close()
            raise

    def ask(self, **request: object) -> dict[str, Any]:
        """Send a request, wait for its answer."""
        assert self._process.stdin is not None, "piped"
        assert self._process.stdout is not None, "piped"
        with contextlib.suppress(BrokenPipeError):  # its end is told below
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise EngineError(f"{self.engine} ended with status {self._process.wait()} at {request['do']}")
        answer: dict[str, Any] = json.loads(line)
        if "missing" in answer:
            raise MissingError(answer["missing"])
        if "error" in answer:
            raise EngineError(f"{self.engine}: {answer['error']}")
        return answer

    def load(self, tokenizer: Path) -> Loaded:
        """Load a tokenizer.json."""
        return Loaded(**self.ask(do="load", tokenizer=str(tokenizer)))

    def prepare(self, contestant: Contestant, tokenizer: Path, texts: Path) -> None:
        """Have everything ready for a pass."""
        self.ask(do="texts", path=str(texts))
        self.load(tokenizer)
        self.ask(do="work", work=contestant.work, options=contestant.options)

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None, "piped"
        assert self._process.stdout is not None, "piped"
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

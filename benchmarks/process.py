"""Runs engines in separate processes, and creates the environments they need."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.definitions import ENGINES, Contestant
from benchmarks.texts import ROOT

PROGRAMS = Path(__file__).with_name("engines")

#: Engines that need a separate environment, with the requirements to install.
OWN_ENVIRONMENTS = {
    "tokenizers-rc": ["tokenizers==1.0.0rc3"],
    "tensorflow-text": ["tensorflow-text==2.21.1"],
    "onnxruntime": ["onnxruntime==1.32.0", "onnx==1.23.2", "sympy", "tokenizers==0.23.3"],
    "openvino": ["openvino==2026.4.1", "nncf==3.4.0", "onnx==1.23.2", "tokenizers==0.23.3"],
    "ctranslate2": ["ctranslate2==4.8.5", "tokenizers==0.23.3"],
    "llama.cpp": ["xllamacpp==2026.10.11549", "gguf==0.19.0"],
    "flashrank": ["FlashRank==0.2.10", "onnxruntime==1.32.0", "tokenizers==0.23.3"],
    "torch": ["torch==2.15.0", "transformers==5.23.0"],
    "export": ["torch==2.15.0", "transformers==5.23.0", "onnx==1.23.2"],
    "optimum": ["torch==2.15.0", "optimum-onnx==0.1.0", "transformers==4.57.6", "onnxruntime==1.32.0", "onnx==1.23.2"],
    "bertviz": ["torch==2.15.0", "transformers==5.23.0", "bertviz==1.4.1", "ipython"],
}

#: Where the first requirement of an environment is looked for before the usual index: torch for CPUs alone, which takes
#: a tenth of the space.
FIRST_INDEX = dict.fromkeys(("torch", "export", "optimum", "bertviz"), "https://download.pytorch.org/whl/cpu")

#: Engines installed without their dependencies, which take a gigabyte and are not needed for the benchmark.
ALONE = {"tensorflow-text"}


class MissingError(Exception):
    """An engine is not installed, or does not support the work."""


class EngineError(Exception):
    """An engine failed."""


def python_of(engine: str, folder: Path = ROOT / "build" / "bench") -> Path:
    """Return the Python interpreter for an engine; its environment is created on first use.

    Raises
    ------
    MissingError
        The environment cannot be created.
    """
    requirements = OWN_ENVIRONMENTS.get(engine)
    if requirements is None:
        return Path(sys.executable)
    requirement = requirements[0]
    environment = folder / (
        f"{engine}-" * (engine in {"export", "optimum", "bertviz"}) + requirement.replace("==", "-")
    )
    python = environment / "bin" / "python"
    done = environment / "installed.stamp"
    if environment in _FAILED:
        raise MissingError(_FAILED[environment])
    if not done.exists():
        print(f"Creating an environment for {requirement} …", file=sys.stderr)
        try:
            _install(engine, requirements, environment, python)
        except (OSError, subprocess.CalledProcessError) as error:
            printed = (getattr(error, "stderr", None) or "").strip().splitlines()
            _FAILED[environment] = f"{requirement} could not be installed: {printed[-1] if printed else error}"
            shutil.rmtree(environment, ignore_errors=True)
            raise MissingError(_FAILED[environment]) from None
        done.touch()
    return python


#: Environments that could not be created -> why; they are not tried again.
_FAILED: dict[Path, str] = {}


def _install(engine: str, requirements: list[str], environment: Path, python: Path) -> None:
    """Create an environment and install the requirements."""
    venv.create(environment, with_pip=True, clear=True)
    pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    if engine in FIRST_INDEX:
        alone = ["--retries", "0", "--index-url", FIRST_INDEX[engine], requirements[0]]
        subprocess.run([*pip, *alone], capture_output=True, check=False)
    for one in [["--no-deps", *requirements], ["numpy"]] if engine in ALONE else [[*requirements, "numpy"]]:
        subprocess.run([*pip, *one], capture_output=True, text=True, check=True)


def cores(count: int) -> list[int]:
    """Return the cores to pin to: the last ones that this process may use, because the first serve interrupts."""
    if not hasattr(os, "sched_getaffinity"):
        return []
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < count:
        raise MissingError(f"{count} cores are needed, but only {len(usable)} are available")
    return usable[-count:]


@dataclass
class Loaded:
    """Seconds and growth of resident memory (bytes) of loading."""

    seconds: float
    resident: int


class Engine:
    """A running process of an engine, pinned to cores and idle between requests. A context manager that ends the process."""

    def __init__(
        self,
        engine: str,
        core_count: int = 1,
        program: str | None = None,
        python: Path | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self.engine = engine
        pinned = cores(core_count)
        threads = str(core_count)
        environment = os.environ | {
            "OMP_NUM_THREADS": threads,
            "RAYON_NUM_THREADS": threads,
            "TOKENIZERS_PARALLELISM": "false",
        }
        interpreter = python or python_of(engine)
        if interpreter != Path(sys.executable):
            # Without the driver's PYTHONPATH, which would make packages of another environment visible.
            environment.pop("PYTHONPATH", None)
        environment |= variables or {}
        self._process = subprocess.Popen(
            [interpreter, PROGRAMS / (program or ENGINES[engine])],
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
        """Send a request and wait for the answer."""
        assert self._process.stdin is not None, "piped"
        assert self._process.stdout is not None, "piped"
        with contextlib.suppress(BrokenPipeError):  # reported below
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
        """Load texts, tokenizer and work, so that a pass can be timed."""
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

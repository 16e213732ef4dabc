"""Run the steps of the Dockerfile without Docker: the wheel of dist/ in an environment of its own, and its server.

    python scripts/container.py [--port 8123]

Each instruction is taken from the Dockerfile and carried out in build/container: folders of the image are folders
there, pip is the pip of a new environment, and the server and its health check run as the user of the image, where this
process may change the user and that user can read the files; the output says which user it was. An instruction that is
not known here is an error, so that a change of the Dockerfile is noticed. Then the server ranks two texts with a model
of examples/make_models.py, and ends when it is told to.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "container"
#: The port in the Dockerfile.
PORT = 8000


class Image:
    """What the instructions of a Dockerfile make, in a folder instead of a container."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.users: dict[str, int] = {}
        self.user: int | None = None
        self.health: list[str] = []
        self.entry: list[str] = []
        self.environment = FOLDER / "environment"
        self.variables = os.environ | {"PATH": f"{self.environment / 'bin'}:{os.environ['PATH']}"}

    def apply(self, instruction: str, argument: str) -> None:
        """Carry out one instruction."""
        steps = {
            "FROM": self._from,
            "COPY": self._copy,
            "RUN": self._run,
            "USER": self._set_user,
            "WORKDIR": self._set_folder,
            "EXPOSE": self._expose,
            "HEALTHCHECK": self._set_health,
            "ENTRYPOINT": self._set_entry,
        }
        if instruction not in steps:
            sys.exit(f"error: this script does not know {instruction} {argument}")
        print(f"{instruction} {argument}", flush=True)
        steps[instruction](argument)

    def _from(self, argument: str) -> None:
        print(f"    {argument} is Python {sys.version.split()[0]} here")
        subprocess.run([sys.executable, "-m", "venv", "--clear", self.environment], check=True)

    def _copy(self, argument: str) -> None:
        *sources, target = shlex.split(argument)
        files = [path for source in sources for path in ROOT.glob(source)]
        if not files:
            sys.exit(f"error: there is no {' '.join(sources)}: make wheel")
        for path in files:
            destination = self._inside(target) / path.name
            destination.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, destination)

    def _run(self, argument: str) -> None:
        for command in argument.split("&&"):
            program, *arguments = shlex.split(command)
            if program == "useradd":
                self.users[arguments[-1]] = int(arguments[arguments.index("--uid") + 1])
                continue
            if program not in ("pip", "rm"):
                sys.exit(f"error: this script does not know the command {program}")
            arguments = [str(self._inside(one)) if one.startswith("/") else one for one in arguments]
            subprocess.run([program, *arguments], check=True, env=self.variables, cwd=FOLDER)

    def _set_user(self, argument: str) -> None:
        self.user = self.users[argument]

    def _set_folder(self, argument: str) -> None:
        self.folder = self._inside(argument)
        self.folder.mkdir(exist_ok=True)

    def _expose(self, argument: str) -> None:
        if int(argument) != PORT:
            sys.exit(f"error: the Dockerfile exposes port {argument}, and this script expects {PORT}")

    def _set_health(self, argument: str) -> None:
        self.health = json.loads(argument[argument.index("CMD") + 3 :])

    def _set_entry(self, argument: str) -> None:
        self.entry = json.loads(argument)

    def _inside(self, path: str) -> Path:
        return FOLDER / "root" / path.lstrip("/")

    def started(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start the entry point with further arguments."""
        return subprocess.Popen(self._command(*self.entry, *arguments), **self._settings())

    def is_healthy(self) -> bool:
        """Run the health check."""
        return (
            subprocess.run(self._command(*self.health), **self._settings(), stderr=subprocess.DEVNULL).returncode == 0
        )

    def _command(self, *words: str) -> list[str]:
        return [re.sub(rf"\b{PORT}\b", str(self.port), word) for word in words]

    def _settings(self) -> dict[str, object]:
        user = {} if self.user is None else {"user": self.user, "group": self.user, "extra_groups": []}
        return {"cwd": self.folder, "env": self.variables | {"HOME": "/nonexistent"}, **user}

    def drop_user_if_impossible(self) -> None:
        """Keep the user of this process if the user of the image cannot run Python here, and say so."""
        python = [self.environment / "bin" / "python", "-c", "import wordpiece_bert._core"]
        try:
            subprocess.run(python, check=True, capture_output=True, **self._settings())
        except (OSError, subprocess.SubprocessError) as error:
            print(f"    as user {os.geteuid()} here, not {self.user}: {error}")
            self.user = None
        else:
            print(f"    as user {self.user}")


def instructions(text: str) -> list[tuple[str, str]]:
    """Return the instructions of a Dockerfile with their arguments."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in joined.splitlines())]


def ranked(port: int) -> list[dict[str, float]]:
    """Ask the server to rank two texts."""
    content = json.dumps({"query": "bread", "texts": ["a bicycle", "bread dough"]}).encode()
    address = f"http://127.0.0.1:{port}/rerank"
    request = urllib.request.Request(address, content, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def main() -> None:
    """Carry out the Dockerfile, then use the server."""
    parser = argparse.ArgumentParser(description="Run the steps of the Dockerfile without Docker.")
    parser.add_argument("--port", type=int, default=8123, help="the port of the server (default: 8123)")
    port = parser.parse_args().port
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    image = Image(port)
    for instruction, argument in instructions((ROOT / "Dockerfile").read_text(encoding="utf-8")):
        image.apply(instruction, argument)
    image.drop_user_if_impossible()
    make_models = [image.environment / "bin" / "python", ROOT / "examples" / "make_models.py", image.folder]
    subprocess.run(make_models, check=True, stdout=subprocess.DEVNULL, cwd=FOLDER)
    server = image.started("ranker")
    try:
        deadline = time.monotonic() + 60
        while not image.is_healthy():
            if server.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"error: the server is not healthy (exit status {server.poll()})")
            time.sleep(0.5)
        found = ranked(port)
        if [one["index"] for one in found] != [1, 0]:
            sys.exit(f"error: the server ranked wrongly: {found}")
    finally:
        server.send_signal(signal.SIGTERM)
        status = server.wait(timeout=30)
    if status not in (0, -signal.SIGTERM):
        sys.exit(f"error: the server ended with status {status}")
    if image.is_healthy():
        sys.exit("error: the health check succeeds without a server")
    print("the server was healthy, ranked two texts, and ended when it was told to")


if __name__ == "__main__":
    main()

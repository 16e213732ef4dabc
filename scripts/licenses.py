"""Write THIRD-PARTY-LICENSES.txt: the license texts of what the compiled core links, which wheel and sdist carry.

The crates are those of Cargo.lock that the core links on any platform. Their texts, and the texts of the C libraries in
them, come from Cargo's registry on this machine; a text that several have stands once.

Usage: ``licenses.py``, or ``licenses.py --check`` to compare only, in the root of the repository.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
FILE = ROOT / "THIRD-PARTY-LICENSES.txt"
#: The files of a crate, and of a C library inside it, that have its terms.
TERMS = re.compile(r"(licen[cs]e|copying|notice|unlicense)([-._].*)?", re.IGNORECASE)


def linked() -> dict[str, tuple[str, Path]]:
    """Return the license and the folder of each crate, by name and version."""
    tree = ["cargo", "tree", "--locked", "--package", "wordpiece-python", "--edges", "normal", "--target", "all"]
    names = subprocess.run([*tree, "--prefix", "none", "--format", "{p}"], cwd=ROOT, check=True, capture_output=True)
    wanted = {tuple(line.split()[:2]) for line in names.stdout.decode().splitlines() if line}
    done = subprocess.run(
        ["cargo", "metadata", "--locked", "--format-version", "1"], cwd=ROOT, check=True, capture_output=True
    )
    return {
        f"{one['name']} {one['version']}": (one["license"], Path(one["manifest_path"]).parent)
        for one in json.loads(done.stdout)["packages"]
        if (one["name"], f"v{one['version']}") in wanted and one["source"] is not None
    }


def content() -> str:
    """Return what the file should have."""
    owners: dict[str, list[str]] = {}
    lines = ["The compiled core of wordpiece-bert links these crates, and the C libraries in them.", ""]
    for name, (terms, folder) in sorted(linked().items()):
        lines.append(f"{name}: {terms}")
        inner = [folder, *(one for one in folder.iterdir() if one.is_dir())]
        files = sorted(path for one in inner for path in one.iterdir() if path.is_file() and TERMS.fullmatch(path.name))
        for path in files:
            text = "\n".join(line.rstrip() for line in path.read_text(encoding="utf-8").strip().splitlines())
            owners.setdefault(text, []).append(f"{name} {path.relative_to(folder).as_posix()}")
    for text, found in owners.items():
        lines += ["", "=" * 100, *found, "=" * 100, "", text]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if "--check" not in sys.argv:
        FILE.write_text(content(), encoding="utf-8")
    elif FILE.read_text(encoding="utf-8") != content():
        sys.exit(f"{FILE.name} is not that of Cargo.lock: run scripts/licenses.py")

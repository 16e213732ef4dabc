"""Print the oldest versions of other packages that pyproject.toml names, as constraints for pip.

    python scripts/oldest.py > constraints.txt

They are the versions of the dependencies and of the extras. What the tests compare with has one version (group
``test``), and stays as it is.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


def oldest() -> dict[str, str]:
    """Return the oldest version of each package, by name."""
    content = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))
    project, groups = content["project"], content["dependency-groups"]
    kept = {one.partition("==")[0] for one in groups["test"] if "==" in one}
    required = [
        *project["dependencies"],
        *(one for extra in project["optional-dependencies"].values() for one in extra),
    ]
    found: dict[str, str] = {}
    for requirement in required:
        name, version = re.match(r"([\w.-]+)>=([\d.]+)", requirement).groups()  # type: ignore[union-attr]
        if found.setdefault(name, version) != version:
            raise SystemExit(f"pyproject.toml names two oldest versions of {name}: {found[name]} and {version}")
    return {name: version for name, version in sorted(found.items()) if name not in kept}


if __name__ == "__main__":
    for name, version in oldest().items():
        print(f"{name}=={version}")

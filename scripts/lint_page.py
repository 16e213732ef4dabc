"""Lint the scripts of the inspection pages with oxlint, joined as a page has them.

The scripts are one program in a page, where each uses names of the others. Single files would seem to use names that
are not there, and to declare names that are not used. What oxlint finds is shown at its place in the file. A page has
the scripts of the kinds that it shows: those of each kind are looked at for names that they lack.

Usage: ``lint_page.py OXLINT``, the path of the program. Its settings are in .oxlintrc.json.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from wordpiece_bert import inspect  # noqa: F401 - registers the kinds
from wordpiece_bert.inspect.kinds import KINDS
from wordpiece_bert.inspect.packed_page import page_script

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "python" / "wordpiece_bert" / "inspect" / "page"
#: It runs in a notebook beside a page, by itself.
ALONE = "frame.js"


def starts(script: str) -> dict[int, Path]:
    """Return the files of a script by the number of the line at which they start.

    Raises
    ------
    SystemExit
        The script lacks one: the installed package is another.
    """
    found = {}
    for path in sorted(FOLDER.glob("*.js")):
        place = script.find(path.read_text(encoding="utf-8"))
        if path.name != ALONE:
            if place < 0:
                sys.exit(f"{path.relative_to(ROOT)}: the script of a page does not have it: install the package first")
            found[script.count("\n", 0, place) + 1] = path
    return found


def main() -> None:
    """Lint, and say what was found."""
    script = page_script()
    begin = starts(script)
    with tempfile.TemporaryDirectory() as folder:
        joined = Path(folder, "page.js")
        joined.write_text(script, encoding="utf-8")
        command = [sys.argv[1], "--config", str(ROOT / ".oxlintrc.json"), "--format", "unix", "--deny-warnings"]
        run = subprocess.run([*command, str(joined), str(FOLDER / ALONE)], capture_output=True, text=True, check=False)
        joined.unlink()
        for name in KINDS:
            Path(folder, f"{name}.js").write_text(page_script({name}), encoding="utf-8")
        parts = subprocess.run(
            [*command, "--allow", "all", "--deny", "no-undef", folder], capture_output=True, text=True, check=False
        )

    def placed(match: re.Match[str]) -> str:
        line = int(match[1])
        start = max((one for one in begin if one <= line), default=1)
        return f"{begin[start].relative_to(ROOT) if begin else 'page.js'}:{line - start + 1}:"

    print(re.sub(r"^\S*page\.js:(\d+):", placed, run.stdout, flags=re.MULTILINE).strip())
    print(parts.stdout.strip())
    if run.returncode or parts.returncode:
        print(run.stderr + parts.stderr, file=sys.stderr, end="")
        sys.exit(1)


if __name__ == "__main__":
    main()

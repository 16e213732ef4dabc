"""Print what of the complete check the changed files call for: targets of make with their variables, a line each.

``make check-changed`` runs them. Changed is what differs from the commit that ``.ci/last-full-check`` names, in
commits, in the working tree and among new files. The Python halves of lint and test run always; ``TABLE`` says whether
the Rust halves do, and which parts of ``make check-nightly``. All of them run where the commit is not known (a clone
without history, an archive), and for a file that no row has.

Usage: ``changed_parts.py [--nightly | PATH ...]``, in the root of the repository: with paths, as if these were changed;
``--nightly`` prints all parts.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

LAST = Path(".ci/last-full-check")

#: Targets of make in the order in which they run, after lint, test and what is thorough, and before Arm.
PARTS = ("test-integrations", "docs", "test-browser", "test-firefox", "test-torch", "test-oldest")
#: What runs before a merge, as far as it is called for, and what runs beside it by night.
ALL = "rust thorough crates test-integrations docs test-browser test-torch kernels tokenizer"
NIGHTLY = f"{ALL} test-firefox test-oldest"

#: Files, and what they call for beside lint-python and test-python; `*` also stands for folders, and the first row
#: that has a path decides. A room that nothing below imports (`[tool.importlinter]` in pyproject.toml) calls for the
#: thorough tests that name it (`thorough:serve`), and a test for itself; every other file of the package for all of
#: them. `rust` are lint-rust and the tests of the crates in `make test`, `crates` the tests of all crates; `kernels`
#: and `tokenizer` the crates whose tests run for Arm under emulation.
TABLE = (
    ("rust/*.md python/*.md tests/*.md benchmarks/records/*", ""),
    ("rust/kernels/*", "rust thorough crates test-torch kernels"),
    ("rust/wordpiece/* rust/arrow/*", "rust thorough crates test-integrations tokenizer"),
    ("rust/parallel/*", "rust thorough crates test-torch kernels tokenizer"),
    ("rust/python/*", "rust thorough crates test-integrations test-torch docs"),
    ("python/wordpiece_bert/inspect/*", "thorough:inspect docs test-browser test-torch"),
    ("python/wordpiece_bert/integrations/*", "thorough:integrations docs test-integrations test-torch"),
    ("python/wordpiece_bert/serve/*", "thorough:serve docs test-browser test-integrations"),
    ("python/wordpiece_bert/cli/* python/wordpiece_bert/__main__.py", "thorough docs"),
    ("python/wordpiece_bert/pretraining/*", "thorough docs test-integrations test-torch"),
    ("python/wordpiece_bert/bert/* python/wordpiece_bert/sentence/*", "thorough docs test-torch"),
    ("python/wordpiece_bert/finetune/* python/wordpiece_bert/tasks/*", "thorough docs test-torch"),
    ("python/wordpiece_bert/evaluation/* python/wordpiece_bert/util.py", "thorough docs test-torch"),
    ("python/wordpiece_bert/verify/*", "thorough:verify docs test-torch"),
    ("python/wordpiece_bert/training/*", "thorough docs"),
    ("python/*", "thorough docs test-integrations test-torch"),
    ("docs/* README.md CHANGELOG.md CONTRIBUTING.md", "thorough:docs docs test-browser"),
    ("examples/*", "thorough docs test-browser"),
    ("benchmarks/*", "thorough:benchmarks test-torch"),
    ("tests/test_inspect_firefox.py", "test-firefox"),
    ("tests/test_*_browser.py tests/test_gallery.py tests/test_inspect_*browser*.py", "test-browser"),
    ("tests/test_inspect_frames.py tests/test_inspect_looks.py tests/test_inspect_scripts.py", "test-browser"),
    ("tests/test_inspect_random.py tests/test_inspect_svg.py tests/test_inspect_texts.py", "test-browser"),
    ("tests/browser_pages.py tests/chromium.py tests/svg_cells.py", "test-browser test-firefox"),
    ("tests/page_*.py tests/inspect_fixtures.py", "thorough:inspect test-browser test-firefox"),
    (
        "tests/test_integrations_torch.py tests/test_integrations_frames.py tests/test_integrations_mteb.py",
        "thorough:self test-integrations test-torch",
    ),
    ("tests/test_integrations_*.py tests/test_*spark.py tests/test_serve.py", "thorough:self test-integrations"),
    ("tests/test_serve_clients.py tests/test_serve_telemetry.py", "thorough:self test-integrations"),
    ("tests/serve_*.py tests/server_process.py", "thorough:serve test-integrations"),
    ("tests/test_*torch*.py tests/test_pretraining_streaming.py tests/test_accelerate.py", "thorough:self test-torch"),
    ("tests/test_deberta.py tests/test_sentence_save.py tests/test_distill.py", "thorough:self test-torch"),
    ("tests/test_against_sentence_transformers.py tests/test_peer_snippets.py", "thorough:self test-torch"),
    ("tests/test_static_classifier.py", "thorough:self test-torch"),
    ("tests/test_*.py", "thorough:self"),
    ("tests/typing/* tests/data/public_names.txt", ""),
    ("tests/*", "rust thorough crates test-integrations test-torch"),
    ("scripts/check_site.py scripts/check_docstrings.py", "docs"),
    ("scripts/check_modules.py scripts/lint-targets.sh clippy.toml rustfmt.toml", "rust"),
    ("scripts/test-emulated.sh", "kernels tokenizer"),
    ("scripts/changed_parts.py scripts/check-parts.sh scripts/beside.sh", ALL),
    # Each has a test in `make test`, or its own target of make, which no complete check calls.
    ("scripts/*", ""),
    (".ci/last-full-check", ""),
    # pyproject.toml counts where more changed than the settings of the linters.
    ("Makefile .ci/* .cargo/* Cargo.toml Cargo.lock pyproject.toml", ALL),
    # lint reads them.
    (".github/* .oxlintrc.json .editorconfig", ""),
    ("SECURITY.md LICENSE-* THIRD-PARTY-LICENSES.txt deny.toml Dockerfile .dockerignore .gitattributes .gitignore", ""),
)
#: Tables of pyproject.toml that only programs of `make lint` read.
FOR_LINT = ("importlinter", "mypy", "ruff", "size")


def git(*arguments: str) -> str:
    """Return what a command of git prints; raise CalledProcessError if it fails, OSError without git."""
    command = ["git", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, errors="surrogateescape").stdout


def changed() -> list[str] | None:
    """Return the paths that differ from the commit of the last full check, or None if that is not known."""
    try:
        commit = next(line for line in LAST.read_text(encoding="utf-8").splitlines() if line and line[0] != "#").strip()
        git("merge-base", "--is-ancestor", commit, "HEAD")
        listed = git("diff", "--name-only", "--no-renames", "-z", commit)
        listed += git("ls-files", "--others", "--exclude-standard", "-z")
        paths = {path for path in listed.split("\0") if path}
        if "pyproject.toml" in paths and without_lint(git("show", f"{commit}:pyproject.toml")) == without_lint(
            Path("pyproject.toml").read_text(encoding="utf-8")
        ):
            paths.remove("pyproject.toml")
    except (OSError, StopIteration, ValueError, subprocess.CalledProcessError) as error:
        print(f"changed since the last full check: not known ({error}), so that all parts run", file=sys.stderr)
        return None
    return sorted(paths)


def without_lint(text: str) -> dict[str, object]:
    """Return a pyproject.toml without the settings of the linters."""
    settings = tomllib.loads(text)
    settings["tool"] = {name: table for name, table in settings.get("tool", {}).items() if name not in FOR_LINT}
    return settings


def called_by(path: str) -> list[str]:
    """Return the parts that a path calls for."""
    for globs, parts in TABLE:
        if any(fnmatch(path, one) for one in globs.split()):
            return [f"thorough:{path}" if part == "thorough:self" else part for part in parts.split()]
    return ALL.split()


def thorough_tests(word: str) -> set[str]:
    """Return the files with thorough tests in which a word begins with this one; a path of a file stands for itself."""
    listed = set(re.findall(r'^ +"(\w+)",$', Path("tests/conftest.py").read_text("utf-8"), re.MULTILINE))
    marks = re.compile(r"@given\(|mark\.thorough|\bkernel_paths\b")
    found = set()
    for path in Path("tests").glob("test_*.py"):
        text = path.read_text("utf-8")
        if path.as_posix() == word or re.search(rf"\b{word}", text):
            in_thorough = any(part.startswith("thorough") for part in called_by(path.as_posix()))
            if in_thorough and (path.stem.removeprefix("test_") in listed or marks.search(text)):
                found.add(path.as_posix())
    return found


def parts_for(paths: list[str] | None) -> set[str]:
    """Return the parts that changed paths call for, all of them if the paths are not known, and print the reasons."""
    if paths is None:
        return set(ALL.split())
    reasons: dict[str, list[str]] = {}
    for path in paths:
        for part in called_by(path):
            reasons.setdefault(part, []).append(path)
    for part, because in reasons.items():
        if part.startswith("thorough:") and ("thorough" in reasons or "/" in part):
            continue
        more = f" and {len(because) - 1} more" if len(because) > 1 else ""
        print(f"{part}: {because[0]}{more}", file=sys.stderr)
    return set(reasons)


def commands(parts: set[str]) -> list[str]:
    """Return the targets of make with their variables, in the order in which they run."""
    # The thorough tests in one run with the others, in which each has its turn once.
    python = "test-python-full" if "thorough" in parts else "test-python"
    test = [
        "test",
        *[f"PYTHON_TESTS={python}"] * ("thorough" in parts),
        *["RUST_TESTS=--workspace"] * ("crates" in parts),
    ]
    found = ["lint", " ".join(test)] if "rust" in parts else ["lint-python", python]
    files = set().union(*(thorough_tests(part.partition(":")[2]) for part in parts if ":" in part))
    if files and "thorough" not in parts:
        found.append(f"test-thorough-python ARGS={shlex.quote(' '.join(sorted(files)))}")
    # test-browser makes the documentation.
    found += [part for part in PARTS if part in parts and not (part == "docs" and "test-browser" in parts)]
    crates = {"kernels": "wordpiece-parallel wordpiece-kernels", "tokenizer": "wordpiece-arrow wordpiece"}
    if emulated := [crates[part] for part in crates if part in parts]:
        found.append(f"test-aarch64 CRATES={shlex.quote(' '.join(emulated))}")
    return found


if __name__ == "__main__":
    arguments = sys.argv[1:]
    chosen = set(NIGHTLY.split()) if arguments == ["--nightly"] else parts_for(arguments or changed())
    print("\n".join(commands(chosen)))

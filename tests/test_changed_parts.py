"""What a change calls for before a merge: every file has a row in the table, and what is not known calls for all."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "scripts"))
import changed_parts  # noqa: E402 - a script, in a folder that is not a package

GLOBS = [one for globs, _ in changed_parts.TABLE for one in globs.split()]
ALL = set(changed_parts.ALL.split())


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture(scope="module")
def tracked() -> list[str]:
    try:
        return git(ROOT, "ls-files").splitlines()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this is not a clone of the repository, or git is missing")


def test_every_file_has_a_row_and_every_row_a_file(tracked: list[str]) -> None:
    assert [path for path in tracked if not any(fnmatch(path, one) for one in GLOBS)] == []
    # A README in a room of the package is expected, but not there yet.
    assert [one for one in GLOBS if not any(fnmatch(path, one) for path in tracked)] in ([], ["python/*.md"])


def test_every_part_is_called_for_by_a_file_and_is_a_target(tracked: list[str]) -> None:
    called = {part for path in tracked for part in changed_parts.called_by(path) if ":" not in part}
    assert called | {"test-oldest"} == set(changed_parts.NIGHTLY.split())
    phony = re.search(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split()  # type: ignore[index]
    targets = {
        one.split()[0] for one in changed_parts.commands(set(changed_parts.NIGHTLY.split()) | {"thorough:serve"})
    }
    assert {*targets, *changed_parts.PARTS, "test-thorough-python", "test-python-full"} - set(phony) == set()


@pytest.mark.parametrize("target", ["test-integrations", "test-torch", "test-browser", "test-firefox"])
def test_a_file_of_tests_calls_for_the_targets_that_run_it(target: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    browser = re.search(r"^BROWSER_TESTS := .*addsuffix \.py,([\w\s]+)\)\)", makefile, re.MULTILINE)[1]  # type: ignore[index]
    firefox = re.search(r"^FIREFOX_TESTS := (.+)$", makefile, re.MULTILINE)[1]  # type: ignore[index]
    lists = {
        "$(BROWSER_TESTS)": " ".join(f"tests/test_{name}.py" for name in browser.split()),
        "$(FIREFOX_TESTS)": firefox,
    }
    recipe = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)[1]  # type: ignore[index]
    for name, files in lists.items():
        recipe = recipe.replace(name, files)
    named = re.findall(r"tests/test_[\w*]+\.py", recipe)
    run = {path.relative_to(ROOT).as_posix() for one in named for path in ROOT.glob(one)}
    assert run
    assert {path for path in run if target not in changed_parts.called_by(path)} == set()


def test_the_first_row_decides() -> None:
    assert changed_parts.called_by("rust/kernels/DESIGN.md") == []
    assert "kernels" in changed_parts.called_by("rust/kernels/src/lib.rs")
    assert changed_parts.called_by("tests/test_x.py") == ["thorough:tests/test_x.py"]
    assert set(changed_parts.called_by("a new folder/file")) == ALL


def test_commands_run_each_test_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert changed_parts.commands(set()) == ["lint-python", "test-python"]
    lint, test, some = changed_parts.commands({"rust", "thorough:serve", "thorough:tests/test_docs.py"})
    assert (lint, test) == ("lint", "test")
    files = some.removeprefix("test-thorough-python ARGS=").strip("'").split()
    assert {"tests/test_docs.py", "tests/test_serve_limits.py", "tests/test_story.py"} <= {*files}
    assert {"tests/test_bert.py", "tests/test_int8.py", "tests/test_site_browser.py"}.isdisjoint(files)
    # All of them take the place of some.
    assert changed_parts.commands({"thorough", "thorough:serve"}) == ["lint-python", "test-python-full"]
    assert changed_parts.commands({"rust", "thorough", "thorough:serve", "crates"})[1:] == [
        "test PYTHON_TESTS=test-python-full RUST_TESTS=--workspace"
    ]
    assert changed_parts.commands({"docs", "test-browser", "kernels"})[2:] == [
        "test-browser",
        "test-aarch64 CRATES='wordpiece-parallel wordpiece-kernels'",
    ]


PYPROJECT = '[project]\nname = "a"\n[tool.size]\npython = 1\n'


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose last full check was its first commit."""
    monkeypatch.chdir(tmp_path)
    for name in ("a.py", "b.py", "c.py"):
        (tmp_path / name).write_text("")
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "first")
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "last-full-check").write_text(f"# checked\n{git(tmp_path, 'rev-parse', 'HEAD')}\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "the file")
    return tmp_path


def test_changed_is_what_was_committed_edited_moved_and_made(clone: Path) -> None:
    assert changed_parts.changed() == [".ci/last-full-check"]
    git(clone, "mv", "a.py", "moved.py")
    git(clone, "commit", "--quiet", "--message", "moved")
    (clone / "b.py").write_text("1")
    (clone / "new name.py").write_text("")
    assert changed_parts.changed() == [".ci/last-full-check", "a.py", "b.py", "moved.py", "new name.py"]


def test_settings_of_linters_call_for_nothing(clone: Path) -> None:
    (clone / "pyproject.toml").write_text(PYPROJECT.replace("python = 1", "python = 2"))
    assert changed_parts.changed() == [".ci/last-full-check"]
    (clone / "pyproject.toml").write_text(PYPROJECT.replace('"a"', '"b"'))
    assert changed_parts.changed() == [".ci/last-full-check", "pyproject.toml"]


def test_a_commit_that_is_not_known_calls_for_all(clone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    last = clone / ".ci" / "last-full-check"
    # Of another branch, as in a clone without history, and none.
    other = git(clone, "commit-tree", "HEAD^{tree}", "-m", "not in the history")
    for commit in (other, "0" * 40, "# none"):
        last.write_text(commit)
        assert changed_parts.parts_for(changed_parts.changed()) == ALL
        assert "all parts run" in capsys.readouterr().err
    last.unlink()
    assert changed_parts.changed() is None


def test_names_and_settings_that_cannot_be_read_end_nothing(clone: Path) -> None:
    (clone / os.fsdecode(b"\xe9.md")).write_text("")
    assert changed_parts.changed() == [".ci/last-full-check", os.fsdecode(b"\xe9.md")]
    (clone / "pyproject.toml").write_text("[")
    assert changed_parts.changed() is None


def test_nothing_changed_calls_for_the_python_halves_of_lint_and_test(clone: Path) -> None:
    assert changed_parts.commands(changed_parts.parts_for([])) == ["lint-python", "test-python"]


def test_what_the_rust_halves_read_calls_for_them(tracked: list[str]) -> None:
    found = {path for path in tracked if "rust" in changed_parts.called_by(path)}
    sources = {path for path in tracked if path.startswith("rust/") and not path.endswith(".md")}
    read = {"Cargo.toml", "Cargo.lock", "Makefile", "clippy.toml", "rustfmt.toml", "scripts/check_modules.py"}
    cases = {path for path in tracked if re.match(r"tests/data/cases/.*\.toml", path)}
    assert cases
    assert sources | read | cases <= found
    python = {path for path in tracked if path.startswith(("python/", "docs/", "examples/", "benchmarks/"))}
    assert not found & python
    # All tests of the crates are among the tests of Rust.
    assert {path for path in tracked if "crates" in changed_parts.called_by(path)} <= found


def test_the_file_names_a_commit() -> None:
    lines = (ROOT / ".ci" / "last-full-check").read_text(encoding="utf-8").splitlines()
    assert [line[0] for line in lines[:-1]] == ["#"] * (len(lines) - 1)
    assert re.fullmatch("[0-9a-f]{40}", lines[-1])


def test_tables_for_linters_exist() -> None:
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    assert set(changed_parts.FOR_LINT) - set(tools) == set()

"""What `scripts/wheels.py` does to a wheel, on a small one, and what it reports. `make wheel` builds and tests real ones."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
NAME = "toy-1.0-cp311-abi3-manylinux2014_x86_64.whl"


@pytest.fixture(scope="module")
def wheels() -> Any:
    spec = importlib.util.spec_from_file_location("wheels", ROOT / "scripts" / "wheels.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["wheels"] = module  # where its dataclass looks for annotations
    spec.loader.exec_module(module)
    return module


LICENSES = ("LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY-LICENSES.txt")


def toy(path: Path, serial: str, text: str = "", licenses: tuple[str, ...] = LICENSES) -> Path:
    bill = {"serialNumber": serial, "metadata": {"timestamp": serial}, "ref": f"path+file://{ROOT}/rust/kernels#0.1.0"}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("toy.py", text)
        archive.writestr("toy-1.0.dist-info/sboms/toy.cyclonedx.json", json.dumps(bill))
        for name in licenses:
            archive.writestr(f"toy-1.0.dist-info/licenses/{name}", "the terms")
        archive.writestr("toy-1.0.dist-info/RECORD", "of other files")
    return path


def test_two_builds_differ_in_nothing_and_hold_no_path(wheels: Any, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    paths = [toy(tmp_path / folder / NAME, serial) for folder, serial in (("a", "1"), ("b", "2"))]
    for path in paths:
        wheels.without_paths(path)
        wheels.check_contents(wheels.Wheel("x86_64-unknown-linux-gnu"), path)
    contents = []
    for path in paths:
        with zipfile.ZipFile(path) as archive:
            contents.append({name: archive.read(name) for name in archive.namelist()})
    assert contents[0] == contents[1]
    record = contents[0]["toy-1.0.dist-info/RECORD"].decode().splitlines()
    # The digest of an empty file, without padding.
    assert record[0] == "toy.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0"
    assert record[-1] == "toy-1.0.dist-info/RECORD,,"


def test_a_path_of_the_builder_is_refused(wheels: Any, tmp_path: Path) -> None:
    path = toy(tmp_path / NAME, "1", text=f"# built in {ROOT}/rust")
    wheels.without_paths(path)
    with pytest.raises(wheels.WheelError, match=r"toy\.py holds the path"):
        wheels.check_contents(wheels.Wheel("x86_64-unknown-linux-gnu"), path)


def test_a_wheel_without_the_licenses_of_what_it_links_is_refused(wheels: Any, tmp_path: Path) -> None:
    with pytest.raises(wheels.WheelError, match=r"has no THIRD-PARTY-LICENSES\.txt"):
        wheels.check_contents(wheels.Wheel("x86_64-unknown-linux-gnu"), toy(tmp_path / NAME, "1", "", LICENSES[:2]))
    assert set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["license-files"]) == set(LICENSES)
    text = (ROOT / "THIRD-PARTY-LICENSES.txt").read_text(encoding="utf-8")
    locked = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    known = {f"{one['name']} {one['version']}" for one in locked}
    names = re.findall(r"^([\w-]+ \S+): ", text, re.MULTILINE)
    assert set(names) <= known, "run scripts/licenses.py"
    assert len(names) == len(set(names)) > 30
    for owner in ("zstd-sys \\S+ zstd/LICENSE", "onig_sys \\S+ oniguruma/COPYING", "numpy \\S+ LICENSE"):
        assert re.search(f"^{owner}$", text, re.MULTILINE), owner


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("cargo") is None, reason="asks cargo")
def test_the_licenses_are_of_all_that_is_linked() -> None:
    subprocess.run([sys.executable, ROOT / "scripts" / "licenses.py", "--check"], check=True)


def test_a_wheel_for_one_version_of_python_and_one_too_large_are_refused(wheels: Any, tmp_path: Path) -> None:
    wheel = wheels.Wheel("x86_64-unknown-linux-gnu")
    with pytest.raises(wheels.WheelError, match="is not for cp311-abi3"):
        wheels.check_contents(wheel, toy(tmp_path / NAME.replace("cp311-abi3", "cp311-cp311"), "1"))
    free = wheels.WHEELS["manylinux-x86_64-free-threaded"]
    with pytest.raises(wheels.WheelError, match="is not for cp314-cp314t"):
        wheels.check_contents(free, toy(tmp_path / NAME, "1"))
    large = tmp_path / NAME
    large.write_bytes(bytes(wheels.LIMIT + 1))
    with pytest.raises(wheels.WheelError, match=r"5,000,001 bytes, more than 5,000,000"):
        wheels.check_contents(wheel, large)


@pytest.fixture
def pretended(wheels: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Exception | None]:
    """What the build of each wheel raises, by its name; the others are a toy, which no test runs."""
    errors: dict[str, Exception | None] = {}

    def build_wheel(name: str, *, twice: bool) -> Path:
        assert not twice
        if error := errors.get(name):
            raise error
        return toy(tmp_path / NAME, "1")

    def test_wheel(name: str, path: Path) -> None:
        if error := errors.get(f"test of {name}"):
            raise error

    monkeypatch.setattr(wheels, "BUILD", tmp_path / "build")
    monkeypatch.setattr(wheels, "build_wheel", build_wheel)
    monkeypatch.setattr(wheels, "test_wheel", test_wheel)
    return errors


@pytest.fixture
def lines_of(
    wheels: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[list[str], int]]:
    """A function that runs the command; it returns the lines that it prints, and its exit status."""

    def run(*arguments: str) -> tuple[list[str], int]:
        monkeypatch.setattr(sys, "argv", ["wheels.py", "--output", str(tmp_path / "dist"), *arguments])
        with pytest.raises(SystemExit) as ended:
            wheels.main()
        return capsys.readouterr().out.splitlines(), int(ended.value.code or 0)

    return run


def test_a_failure_does_not_end_the_other_wheels(
    wheels: Any,
    tmp_path: Path,
    lines_of: Callable[..., tuple[list[str], int]],
    pretended: dict[str, Exception | None],
) -> None:
    names = ["manylinux-x86_64", "musllinux-x86_64", "musllinux-aarch64", "manylinux-aarch64"]
    pretended["manylinux-x86_64"] = subprocess.CalledProcessError(101, Path("/somewhere/maturin"))
    pretended["musllinux-x86_64"] = wheels.WheelError("two builds differ")
    pretended["musllinux-aarch64"] = FileNotFoundError(2, "No such file or directory", "maturin")
    lines, status = lines_of(*names)
    assert lines == [
        "manylinux-x86_64: not built: maturin failed with exit status 101",
        "musllinux-x86_64: not built: two builds differ",
        "musllinux-aarch64: not built: [Errno 2] No such file or directory: 'maturin'",
        f"manylinux-aarch64: {NAME}, 0.00 MB: built, tested",
    ]
    assert status == 1
    assert (tmp_path / "dist" / NAME).exists()


@pytest.mark.parametrize(("arguments", "expected"), [((), 0), (("--strict",), 1)])
def test_what_this_machine_cannot_build_is_a_failure_only_if_that_is_asked(
    wheels: Any,
    tmp_path: Path,
    lines_of: Callable[..., tuple[list[str], int]],
    pretended: dict[str, Exception | None],
    arguments: tuple[str, ...],
    expected: int,
) -> None:
    pretended["windows-x86_64"] = wheels.UnavailableError("needs mingw-w64")
    pretended["test of musllinux-x86_64"] = wheels.UnavailableError("nothing here runs it")
    lines, status = lines_of("windows-x86_64", "musllinux-x86_64", *arguments)
    assert lines == [
        "windows-x86_64: not built: needs mingw-w64",
        f"musllinux-x86_64: {NAME}, 0.00 MB: built, not tested: nothing here runs it",
    ]
    assert status == expected


def test_a_wheel_that_fails_its_test_is_not_kept(
    wheels: Any,
    tmp_path: Path,
    lines_of: Callable[..., tuple[list[str], int]],
    pretended: dict[str, Exception | None],
) -> None:
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / NAME).write_text("of an earlier build")
    pretended["test of manylinux-x86_64"] = subprocess.CalledProcessError(1, "python")
    lines, status = lines_of("manylinux-x86_64")
    assert lines == [f"manylinux-x86_64: {NAME}, 0.00 MB: built, refused: python failed with exit status 1"]
    assert status == 1
    assert not (tmp_path / "dist" / NAME).exists()


# --- scripts/smoke.py, which compares two builds


@pytest.fixture
def smoke(monkeypatch: pytest.MonkeyPatch) -> Any:
    spec = importlib.util.spec_from_file_location("smoke", ROOT / "scripts" / "smoke.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ids", lambda: "ids")
    monkeypatch.setattr(module, "vectors", lambda: {"float32": "vectors", "bfloat16": "vectors"})
    return module


@pytest.mark.parametrize(
    ("changes", "arguments", "complaint"),
    [
        ({}, ("--same-cpu",), None),
        ({"ids": "others"}, (), "ids differ"),
        ({"vectors": {"float32": "vectors", "bfloat16": "others"}}, (), "vectors in bfloat16 differ"),
        ({"vectors": {"float32": "vectors", "bfloat16": "others"}, "instruction_sets": {}}, (), None),  # another CPU
        ({"vectors": {"float32": "others", "bfloat16": ""}, "instruction_sets": {}}, (), "vectors in float32 differ"),
        ({"instruction_sets": {}}, ("--same-cpu",), "instruction_sets differ"),
    ],
)
def test_two_builds_on_one_cpu_find_the_same_instruction_sets(
    smoke: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    changes: dict[str, Any],
    arguments: tuple[str, ...],
    complaint: str | None,
) -> None:
    monkeypatch.setattr(sys, "argv", ["smoke.py"])
    smoke.main()
    other = tmp_path / "other.json"
    other.write_text(json.dumps(json.loads(capsys.readouterr().out) | changes))
    monkeypatch.setattr(sys, "argv", ["smoke.py", "--compare", str(other), *arguments])
    if complaint is None:
        smoke.main()
        return
    with pytest.raises(SystemExit, match=complaint):
        smoke.main()

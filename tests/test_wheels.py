"""What `scripts/wheels.py` does to a wheel, on a small one. `make wheel` builds and tests real ones."""

from __future__ import annotations

import importlib.util
import json
import sys
import zipfile
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


def toy(path: Path, serial: str, text: str = "") -> Path:
    bill = {"serialNumber": serial, "metadata": {"timestamp": serial}, "ref": f"path+file://{ROOT}/rust/kernels#0.1.0"}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("toy.py", text)
        archive.writestr("toy-1.0.dist-info/sboms/toy.cyclonedx.json", json.dumps(bill))
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
    assert record[2] == "toy-1.0.dist-info/RECORD,,"


def test_a_path_of_the_builder_is_refused(wheels: Any, tmp_path: Path) -> None:
    path = toy(tmp_path / NAME, "1", text=f"# built in {ROOT}/rust")
    wheels.without_paths(path)
    with pytest.raises(wheels.WheelError, match=r"toy\.py holds the path"):
        wheels.check_contents(wheels.Wheel("x86_64-unknown-linux-gnu"), path)


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

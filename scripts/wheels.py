"""Build wheels for this and other platforms into dist/, test those that can run here, and say for each what was done.

    python scripts/wheels.py [NAME ...] [--output DIR] [--strict]

NAME is one of the WHEELS below, ``sdist``, or ``all``; without names, the wheel for any Linux on this processor. Run it
with a Python that has maturin[zig] and auditwheel (`make wheel` installs them). Builds are reproducible: paths of this
machine are mapped away, and times are taken from the last commit. With --twice each wheel is built twice, and the files
must be equal.

Prints a line for each: "built, tested", "built, not tested: REASON", "built, refused: REASON" (it fails a test, and is
not in DIR) or "not built: REASON". The exit status is 1 if a build or a test fails, with --strict also if this machine
lacks something that a build needs.
"""

from __future__ import annotations

import argparse
import base64
import csv
import hashlib
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SMOKE = ROOT / "scripts" / "smoke.py"
BUILD = ROOT / "build" / "wheels"
BIN = Path(sysconfig.get_path("scripts"))
#: Where cargo builds.
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
#: The files with licenses that a wheel must have.
LICENSES = ("LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY-LICENSES.txt")
#: The most that a wheel or the source archive may take, in bytes.
LIMIT = 5_000_000
#: Debian 12's packages of a Python for 64-bit Arm that runs the package with NumPy.
ARM64_PACKAGES = [
    "gcc-12-base",
    "libbz2-1.0",
    "libc6",
    "libcrypt1",
    "libexpat1",
    "libffi8",
    "libgcc-s1",
    "liblzma5",
    "libpython3.11-minimal",
    "libpython3.11-stdlib",
    "libssl3",
    "libstdc++6",
    "python3.11-minimal",
    "zlib1g",
]


class UnavailableError(Exception):
    """A step that cannot be done on this machine; the message says why."""


class WheelError(Exception):
    """A wheel that must not be published; the message says why."""


@dataclass(frozen=True)
class Wheel:
    """What to build."""

    target: str  # Rust's name of the platform
    compatibility: str = ""  # maturin's, of Linux
    floor: str = ""  # the newest glibc of which the library may need symbols
    interpreter: str = ""  # a Python that the wheel is for alone; without it, for the stable ABI of Python 3.11
    tag: str = "cp311-abi3"  # Python and ABI in the name of the wheel


WHEELS = {
    "manylinux-x86_64": Wheel("x86_64-unknown-linux-gnu", "manylinux2014", "2.17"),
    "manylinux-aarch64": Wheel("aarch64-unknown-linux-gnu", "manylinux2014", "2.17"),
    "manylinux-x86_64-free-threaded": Wheel(
        "x86_64-unknown-linux-gnu", "manylinux2014", "2.17", "python3.14t", "cp314-cp314t"
    ),
    "musllinux-x86_64": Wheel("x86_64-unknown-linux-musl", "musllinux_1_2"),
    "musllinux-aarch64": Wheel("aarch64-unknown-linux-musl", "musllinux_1_2"),
    "windows-x86_64": Wheel("x86_64-pc-windows-gnu"),
}


def run(*command: object, env: dict[str, str] | None = None, cwd: Path = ROOT) -> str:
    """Run a command and return what it printed; what it printed is shown if it fails."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=os.environ | (env or {}),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.stderr.write(done.stdout + done.stderr)
        raise subprocess.CalledProcessError(done.returncode, command[0])
    return done.stdout


def builders_paths() -> dict[Path, str]:
    """The folders of this machine that a library could name, and what stands for them instead."""
    sysroot = Path(run("rustc", "--print", "sysroot").strip())
    cargo = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    return {ROOT: "/wordpiece-bert", cargo: "/cargo", sysroot: "/rust"}


def reproducible() -> dict[str, str]:
    """The environment of a build: no path of this machine in the library, no time but the commit's."""
    paths = builders_paths().items()
    rust = " ".join([os.environ.get("RUSTFLAGS", ""), *(f"--remap-path-prefix={path}={name}" for path, name in paths)])
    c = " ".join(f"-ffile-prefix-map={path}={name}" for path, name in paths)
    when = os.environ.get("SOURCE_DATE_EPOCH") or run("git", "log", "-1", "--format=%ct").strip()
    return {"SOURCE_DATE_EPOCH": when, "RUSTFLAGS": rust.strip(), "CFLAGS": c, "PYO3_PYTHON": sys.executable}


def build(wheel: Wheel, folder: Path) -> Path:
    """Build a wheel and return its path."""
    have_target(wheel.target)
    if wheel.interpreter and shutil.which(wheel.interpreter) is None:
        raise UnavailableError(f"needs {wheel.interpreter}")
    command: list[object] = [BIN / "maturin", "build", "--release", "--locked", "--target", wheel.target]
    if "windows" in wheel.target:
        if shutil.which("x86_64-w64-mingw32-gcc") is None:
            raise UnavailableError("needs mingw-w64: apt-get install gcc-mingw-w64-x86-64")
    else:
        command += ["--zig", "--compatibility", wheel.compatibility]
    environment = reproducible() | {"PATH": f"{BIN}:{os.environ['PATH']}"}
    if wheel.interpreter:
        command += ["--interpreter", wheel.interpreter]
        environment["PYO3_PYTHON"] = wheel.interpreter
    shutil.rmtree(folder, ignore_errors=True)
    run(*command, "--out", folder, env=environment)
    (path,) = folder.glob("*.whl")
    without_paths(path)
    return path


def have_target(target: str) -> None:
    """Install Rust's standard library for a target if it is missing."""
    if (Path(run("rustc", "--print", "sysroot").strip()) / "lib" / "rustlib" / target).is_dir():
        return
    if shutil.which("rustup") is None or subprocess.run(["rustup", "target", "add", target], check=False).returncode:
        raise UnavailableError(f"needs Rust's standard library for {target}: rustup target add {target}")


def without_paths(path: Path) -> None:
    """Write the wheel again without the builder's paths, random numbers and times in its bill of materials."""
    with zipfile.ZipFile(path) as archive:
        files = {info: archive.read(info) for info in archive.infolist()}
    for info, content in files.items():
        if info.filename.endswith(".cyclonedx.json"):
            bill = json.loads(content.decode().replace(f"file://{ROOT}", "file:///wordpiece-bert"))
            bill.pop("serialNumber", None)
            bill["metadata"].pop("timestamp", None)
            files[info] = json.dumps(bill, indent=1).encode()
    (record,) = (info for info in files if info.filename.endswith(".dist-info/RECORD"))
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    for info, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        writer.writerow([info.filename, *(["", ""] if info is record else [f"sha256={digest}", len(content)])])
    files[record] = table.getvalue().encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for info, content in files.items():
            archive.writestr(info, content)


def check_size(path: Path) -> None:
    """Refuse a file that is larger than LIMIT."""
    if path.stat().st_size > LIMIT:
        raise WheelError(f"{path.name} has {path.stat().st_size:,} bytes, more than {LIMIT:,}")


def check_contents(wheel: Wheel, path: Path) -> None:
    """Check size, tag and licenses, that no file holds a path of this machine, and which symbols the library needs."""
    check_size(path)
    if f"-{wheel.tag}-" not in path.name:
        raise WheelError(f"{path.name} is not for {wheel.tag}")
    paths = re.compile("|".join(re.escape(str(found)) for found in builders_paths()).encode())
    with zipfile.ZipFile(path) as archive:
        if missing := [name for name in LICENSES if not any(one.endswith(name) for one in archive.namelist())]:
            raise WheelError(f"{path.name} has no {missing[0]}")
        for name in archive.namelist():
            if found := paths.search(archive.read(name)):
                raise WheelError(f"{path.name}: {name} holds the path {found.group().decode()}")
    if wheel.floor:
        needed = re.findall(r"GLIBC_([\d.]+)", run(BIN / "auditwheel", "show", path))
        highest = max(needed, key=version_key, default="0")
        if version_key(highest) > version_key(wheel.floor):
            raise WheelError(f"{path.name} needs glibc {highest}, above {wheel.floor}")


def version_key(version: str) -> tuple[int, ...]:
    """Return "2.17" as (2, 17)."""
    return tuple(map(int, version.split(".")))


def test_native(path: Path, interpreter: str) -> None:
    """Install a wheel and NumPy, and nothing else, and compare it with the package of this Python, if it has one."""
    folder = BUILD / "environment"
    run(interpreter, "-m", "venv", "--clear", folder)
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", path)
    own = BUILD / "native.json"
    elsewhere = BUILD  # not the source tree, from which Python would import the package
    arguments: list[object] = []
    if (
        subprocess.run([sys.executable, "-c", "import wordpiece_bert"], cwd=elsewhere, capture_output=True).returncode
        == 0
    ):
        own.write_text(run(sys.executable, SMOKE, cwd=elsewhere), encoding="utf-8")
        arguments = ["--compare", own, "--same-cpu"]
    run(python, SMOKE, *arguments, cwd=elsewhere)
    run(folder / "bin" / "wordpiece-bert", "--help", cwd=elsewhere)


def test_aarch64(path: Path) -> None:
    """Run the wheel in Debian's Python for 64-bit Arm under QEMU."""
    emulator = shutil.which("qemu-aarch64")
    if emulator is None or shutil.which("apt-get") is None or os.geteuid() != 0:
        raise UnavailableError("needs qemu-aarch64 (apt-get install qemu-user), apt-get and root")
    root = BUILD / "arm64"
    python = root / "usr" / "bin" / "python3.11"
    if not python.exists():
        downloads = BUILD / "arm64-packages"
        downloads.mkdir(parents=True, exist_ok=True)
        try:
            run("dpkg", "--add-architecture", "arm64")
            run("apt-get", "update", "-qq")
            run("apt-get", "download", *(f"{name}:arm64" for name in ARM64_PACKAGES), cwd=downloads)
        except subprocess.CalledProcessError:
            raise UnavailableError("Debian's packages of Python 3.11 for arm64 cannot be downloaded") from None
        for package in downloads.glob("*.deb"):
            run("dpkg", "-x", package, root)
    site = BUILD / "arm64-site"
    shutil.rmtree(site, ignore_errors=True)
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", "--target", site)
    platforms = ("--platform", "manylinux2014_aarch64", "--platform", "manylinux_2_28_aarch64")
    run(*pip, "--only-binary", ":all:", *platforms, "--python-version", "3.11", path, "numpy")
    # One thread: with -L, programs of several threads can hang in QEMU 7.2. `make test-aarch64` has more.
    threads = {"OPENBLAS_NUM_THREADS": "1", "WORDPIECE_BERT_NUM_THREADS": "1", "PYTHONPATH": str(site)}
    run(emulator, "-L", root, python, "-S", SMOKE, env=threads, cwd=BUILD)


def build_wheel(name: str, *, twice: bool) -> Path:
    """Build one of the WHEELS, with ``twice`` a second time, and return its path."""
    wheel = WHEELS[name]
    path = build(wheel, BUILD / name)
    if twice:
        first = hashlib.sha256(path.read_bytes()).digest()
        shutil.rmtree(TARGET / wheel.target, ignore_errors=True)
        path = build(wheel, BUILD / name)
        if hashlib.sha256(path.read_bytes()).digest() != first:
            raise WheelError("two builds differ")
    return path


def test_wheel(name: str, path: Path) -> None:
    """Check what is in a wheel, and run it where something here can."""
    wheel = WHEELS[name]
    check_contents(wheel, path)
    if name.startswith(f"manylinux-{platform.machine()}"):
        test_native(path, wheel.interpreter or sys.executable)
    elif name == "manylinux-aarch64":
        test_aarch64(path)
    else:
        raise UnavailableError("nothing here runs it")


def build_source_archive() -> Path:
    """Build the source archive and return its path."""
    folder = BUILD / "sdist"
    shutil.rmtree(folder, ignore_errors=True)
    run(BIN / "maturin", "sdist", "--out", folder, env=reproducible())
    (path,) = folder.glob("*.tar.gz")
    return path


def test_source_archive(path: Path) -> None:
    """Check what is in the source archive, and install and exercise the package from it."""
    check_size(path)
    with tarfile.open(path) as archive:
        names = archive.getnames()
    if not any(name.endswith("rust/python/Cargo.toml") for name in names):
        raise WheelError(f"{path.name} has no crates")
    test_native(path, sys.executable)


def reason_of(error: Exception) -> str:
    """Say in a few words what failed; the output of a command was shown before."""
    if isinstance(error, subprocess.CalledProcessError):
        return f"{Path(error.cmd).name} failed with exit status {error.returncode}"
    return str(error)


def report(name: str, folder: Path, *, twice: bool, strict: bool) -> bool:
    """Build and test one wheel or the source archive, and print what was done.

    Returns whether nothing failed; with ``strict``, what cannot be built on this machine has failed, too.
    """
    source = name == "sdist"
    try:
        path = build_source_archive() if source else build_wheel(name, twice=twice)
    except UnavailableError as error:
        print(f"{name}: not built: {error}", flush=True)
        return not strict
    except (OSError, WheelError, subprocess.CalledProcessError) as error:
        print(f"{name}: not built: {reason_of(error)}", flush=True)
        return False
    same = ", two builds the same" if twice and not source else ""
    built = f"{name}: {path.name}, {path.stat().st_size / 1e6:.2f} MB{same}: built"
    try:
        if source:
            test_source_archive(path)
        else:
            test_wheel(name, path)
    except UnavailableError as error:
        result = f"not tested: {error}"
    except (OSError, WheelError, subprocess.CalledProcessError) as error:
        print(f"{built}, refused: {reason_of(error)}", flush=True)
        (folder / path.name).unlink(missing_ok=True)  # the wheel of an earlier build
        return False
    else:
        result = "tested"
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, folder)
    print(f"{built}, {result}", flush=True)
    return True


def main() -> None:
    """Build what the arguments name."""
    known = [*WHEELS, "sdist"]
    parser = argparse.ArgumentParser(
        description="Build wheels and the source archive, and test those that can run here."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join([*known, "all"]))
    parser.add_argument("--output", type=Path, default=ROOT / "dist", metavar="DIR", help="default: dist")
    parser.add_argument("--twice", action="store_true", help="build each wheel twice and compare the files")
    parser.add_argument("--strict", action="store_true", help="fail if something cannot be built on this machine")
    arguments = parser.parse_args()
    names = arguments.names or [f"manylinux-{platform.machine()}"]
    if names == ["all"]:
        names = known
    if unknown := set(names) - set(known):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(known)} and all")
    output = arguments.output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    BUILD.mkdir(parents=True, exist_ok=True)
    done = [report(name, output, twice=arguments.twice, strict=arguments.strict) for name in names]
    sys.exit(not all(done))


if __name__ == "__main__":
    main()

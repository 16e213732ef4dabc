"""Saving a folder: all files or none, whatever happens in between."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import wordpiece_bert as wb
from processes import python
from small_tokenizer import tokenizer
from wordpiece_bert._internal.atomic_file import AtomicFile, write_text
from wordpiece_bert._internal.atomic_folder import MARKER, AtomicFolder, check_complete
from wordpiece_bert.errors import InputError, ModelNotFoundError

OLD = {"a.txt": "old a", "b.txt": "old b", "sub/c.txt": "old c"}
NEW = {"a.txt": "new a", "b.txt": "new b", "sub/c.txt": "new c"}

needs_locks = pytest.mark.skipif(os.name == "nt", reason="needs locks that end with their process")


def save(folder: Path, files: dict[str, str]) -> None:
    with AtomicFolder(folder) as output:
        output.begin()
        for name, text in files.items():
            output.write_text(name, text)
        output.commit()


def contents(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_text() for path in files}


def test_a_new_folder_appears_with_all_files(tmp_path: Path) -> None:
    folder = tmp_path / "x" / "y"
    with AtomicFolder(folder) as output:
        output.begin()
        output.write_text("a.txt", "a")
        assert not folder.exists()
        output.commit()
    assert contents(tmp_path) == {"x/y/a.txt": "a"}


def test_files_are_replaced_together_and_others_stay(tmp_path: Path) -> None:
    save(tmp_path, OLD | {"mine.txt": "m", "obsolete.txt": "o"})
    with AtomicFolder(tmp_path) as output:
        output.begin()
        for name, text in NEW.items():
            output.write_text(name, text)
        output.discard("obsolete.txt")
        output.discard("absent.txt")
        assert {path: (tmp_path / path).read_text() for path in OLD} == OLD
        output.commit()
    assert contents(tmp_path) == NEW | {"mine.txt": "m"}


@pytest.mark.parametrize("exists", [False, True])
def test_an_error_leaves_what_was_there(tmp_path: Path, exists: bool) -> None:
    folder = tmp_path / "model"
    if exists:
        save(folder, OLD)

    def fail() -> None:
        with AtomicFolder(folder) as output:
            output.begin()
            output.write_text("a.txt", "new a")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert contents(tmp_path) == ({f"model/{name}": text for name, text in OLD.items()} if exists else {})
    assert [path.name for path in tmp_path.iterdir()] == (["model"] if exists else [])


@needs_locks
@pytest.mark.parametrize("exists", [False, True])
def test_a_full_disk_leaves_what_was_there(tmp_path: Path, exists: bool) -> None:
    folder = tmp_path / "model"
    if exists:
        tokenizer().save_pretrained(folder)
    before = contents(tmp_path)
    code = """
import resource, signal, sys, wordpiece_bert as wb
tok = wb.Tokenizer.from_vocab(["[UNK]", *(f"token{i}" for i in range(1000))])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (8000, resource.RLIM_INFINITY))  # above the config, below the vocabulary
try:
    tok.save_pretrained(sys.argv[1])
except OSError as error:
    print(error)
"""
    done = python(code, folder)
    assert "tokenizer.json" in done.stdout, done.stderr
    assert contents(tmp_path) == before
    assert not list(tmp_path.glob(".*"))


def test_a_file_in_place_of_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "model"):
        with pytest.raises(InputError, match="is not a folder"):
            save(path, NEW)


# --- killed processes

KILLED = """
import os, signal, sys
from pathlib import Path
from wordpiece_bert._internal import atomic_file, atomic_folder
folder, renames = Path(sys.argv[1]), int(sys.argv[2])
original = atomic_file.AtomicFile.rename
def rename(self):
    global renames
    if self.target.name != atomic_folder.MARKER:
        if renames == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        renames -= 1
    original(self)
atomic_file.AtomicFile.rename = rename
with atomic_folder.AtomicFolder(folder) as output:
    output.begin()
    for name in ("a.txt", "b.txt", "sub/c.txt"):
        output.write_text(name, "new " + name.split("/")[-1][0])
    output.commit()
"""


@needs_locks
@pytest.mark.parametrize("renames", [0, 1, 2])
def test_a_folder_with_files_of_two_saves_is_refused_until_it_is_saved_again(tmp_path: Path, renames: int) -> None:
    folder = tmp_path / "model"
    save(folder, OLD)
    assert python(KILLED, folder, renames).returncode == -9
    with pytest.raises(ModelNotFoundError, match=r"interrupted .*: a\.txt, b\.txt, sub/c\.txt\. Save into .* again"):
        check_complete(folder)
    with pytest.raises(ModelNotFoundError, match="interrupted"):
        wb.Tokenizer.from_pretrained(folder)
    with pytest.raises(ModelNotFoundError, match="interrupted"):
        wb.BertModel.from_pretrained(folder)
    # Another save into the folder that does not replace all of them does not make it complete.
    save(folder, {"a.txt": "third a", "d.txt": "d"})
    assert json.loads((folder / MARKER).read_text()) == ["b.txt", "sub/c.txt"]
    save(folder, NEW)
    check_complete(folder)
    assert contents(folder) == NEW | {"d.txt": "d"}  # the temporary files of the killed process are gone


@needs_locks
def test_a_killed_save_of_a_new_folder_leaves_nothing_after_the_next(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    assert python(KILLED.replace("output.commit()", "os.kill(os.getpid(), signal.SIGKILL)"), folder, 9).returncode == -9
    assert [path.suffix for path in tmp_path.iterdir()] == [".part"]
    save(folder, NEW)
    assert contents(tmp_path) == {f"model/{name}": text for name, text in NEW.items()}


@needs_locks
def test_temporary_files_of_dead_processes_are_removed_and_those_of_living_ones_stay(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    code = """
import os, signal, sys
from pathlib import Path
from wordpiece_bert._internal.atomic_file import AtomicFile
with AtomicFile(Path(sys.argv[1])) as output:
    output.begin()
    os.kill(os.getpid(), signal.SIGKILL)
"""
    assert python(code, path).returncode == -9
    (dead,) = tmp_path.iterdir()
    other = tmp_path / dead.name.replace("x.txt", "y.txt")
    other.write_text("of another output")
    with AtomicFile(path) as living:
        living.begin()
        living.file.write(b"living")
        assert not dead.exists()
        write_text(path, "second writer")
        living.commit()
    assert contents(tmp_path) == {"x.txt": "living", other.name: "of another output"}


@needs_locks
def test_of_two_writers_of_one_folder_one_wins_whole(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from wordpiece_bert._internal.atomic_folder import AtomicFolder
for _ in range(40):
    with AtomicFolder(Path(sys.argv[1])) as output:
        output.begin()
        for name in "abcdef":
            output.write_text(name, sys.argv[2])
        output.commit()
"""
    folder = tmp_path / "model"
    command = [sys.executable, "-c", code, str(folder)]
    writers = [subprocess.Popen([*command, writer]) for writer in ("one", "two")]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0]
    found = contents(tmp_path)
    assert found.keys() == {f"model/{name}" for name in "abcdef"}
    assert len(set(found.values())) == 1

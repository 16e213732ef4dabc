"""Atomic writes of several files: all of them appear in a folder, or none.

A new folder is written under a temporary name beside its own, and renamed. In a folder that exists, every file is
written and synced under a temporary name beside its own, and only then all are renamed; other files stay. Several
renames are not one atomic step. So the file `MARKER` is in the folder from before the first to after the last of them,
and `check_complete`, which every load calls, refuses a folder that has it.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol, Self

from wordpiece_bert._internal.atomic_file import AtomicFile, part_name, part_pattern, sync_folder
from wordpiece_bert._internal.checks import checked_path
from wordpiece_bert._internal.file_locks import exclusive, hold, remove_abandoned
from wordpiece_bert._internal.owner import Owner
from wordpiece_bert._internal.signals import uninterrupted
from wordpiece_bert.errors import InputError, ModelNotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


#: The file that marks a folder while files in it are being exchanged: a JSON list of their names.
MARKER = ".unfinished_save.json"


class FileSink(Protocol):
    """What takes the files of a folder."""

    def write(self, name: str, chunks: Iterable[bytes | memoryview]) -> None:
        """Write a file."""

    def write_text(self, name: str, text: str) -> None:
        """Write a file with a text as UTF-8."""


class AtomicFolder:
    """Writes files into a folder atomically. Use it as a context; without `commit` nothing changes.

    Two processes that save into one folder at the same time do not mix: the files of the last one win.

    Parameters
    ----------
    folder : Path
        The folder, which is created if need be. A link to a folder is followed; links to files in it are replaced.

    Examples
    --------
    >>> with AtomicFolder(Path("model")) as output:  # doctest: +SKIP
    ...     output.begin()
    ...     output.write_text("config.json", "{}")
    ...     output.commit()
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder
        self._folder = Path(os.path.realpath(checked_path(folder)))
        self._stack = ExitStack()
        self._owner = Owner()
        self._files: dict[str, AtomicFile] = {}
        self._obsolete: list[str] = []
        #: The temporary folder, and its open descriptor, whose lock says that this process is alive.
        self._staging: Path | None = None

    def __enter__(self) -> Self:
        return self

    def begin(self) -> None:
        """Prepare for writing. Call it inside the context.

        Raises
        ------
        InputError
            `folder` is a file, or is inside one.
        OSError
            The folder that holds it is not writable.
        """
        if self._folder.is_dir():
            return
        try:
            self._folder.parent.mkdir(parents=True, exist_ok=True)
            if self._folder.exists():
                raise FileExistsError
        except (FileExistsError, NotADirectoryError) as cause:
            raise InputError(
                f"{str(self.path)!r} is not a folder, and none can be created there; choose another path"
            ) from cause
        remove_abandoned(self._folder.parent, part_pattern(self._folder.name))
        self._stage()

    def _stage(self) -> None:
        """Create the temporary folder and lock it."""
        while True:
            self._staging = self._folder.with_name(part_name(self._folder.name))
            self._staging.mkdir()
            if os.name == "nt":
                return
            descriptor = os.open(self._staging, os.O_RDONLY)
            self._stack.callback(os.close, descriptor)
            if hold(descriptor, self._staging):
                return

    def write(self, name: str, chunks: Iterable[bytes | memoryview]) -> None:
        """Write a file, under a temporary name.

        Parameters
        ----------
        name : str
            The path of the file in the folder, with ``/`` between its parts.
        chunks : iterable of bytes or memoryview
            Its contents.

        Raises
        ------
        OSError
            The file cannot be written; the message names it.
        """
        base = self._folder if self._staging is None else self._staging
        path = base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        file = self._stack.enter_context(AtomicFile(path))
        file.path = self.path / name  # for messages
        file.begin()
        file.write(chunks)
        file.sync()
        if self._staging is not None:
            file.rename()
        self._files[name] = file

    def write_text(self, name: str, text: str) -> None:
        """Write a file with a text as UTF-8, as `write` does."""
        self.write(name, [text.encode("utf-8")])

    def discard(self, name: str) -> None:
        """Remove a file in `commit`, if it is there: one of an older save that would contradict the new files."""
        self._obsolete.append(name)

    def commit(self) -> None:
        """Give all files their final names.

        Raises
        ------
        OSError
            A file cannot be renamed.
        """
        self._owner.check(self.path)
        if self._staging is None:
            self._exchange()
            return
        for folder in {self._staging, *((self._staging / name).parent for name in self._files)}:
            sync_folder(folder)
        with exclusive(self._folder.parent):
            try:
                self._staging.rename(self._folder)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST) and not isinstance(error, PermissionError):
                    error.filename = str(self.path)
                    raise
                created_meanwhile = self._folder.is_dir()
                if not created_meanwhile:
                    raise
            else:
                self._staging = None
                sync_folder(self._folder.parent)
                return
        self._move_staged()

    def _move_staged(self) -> None:
        """Write the files of the temporary folder into a folder that another process created meanwhile."""
        staging, files = self._staging, list(self._files)
        assert staging is not None
        self._staging = None
        self._stack.callback(self._owner.do, shutil.rmtree, staging, ignore_errors=True)
        for name in files:
            with (staging / name).open("rb") as stream:
                self.write(name, _chunks(stream))
        self._exchange()

    def _exchange(self) -> None:
        """Rename all temporary files. The marker is there from before the first to after the last rename."""
        for name, file in self._files.items():
            if file.target.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(self.path / name))
        obsolete = [name for name in self._obsolete if name not in self._files and (self._folder / name).is_file()]
        names = [*self._files, *obsolete]
        with exclusive(self._folder), uninterrupted():
            # Of an interrupted save, those files stay marked that this one does not replace.
            unfinished = [name for name in _marked(self._folder) or () if name not in names]
            marked = len(names) > 1 or bool(unfinished)
            if marked:
                self._mark([*unfinished, *names])
            for file in self._files.values():
                file.rename()
            for name in obsolete:
                self._owner.do((self._folder / name).unlink, missing_ok=True)
            for folder in {file.target.parent for file in self._files.values()}:
                sync_folder(folder)
            if unfinished:
                self._mark(unfinished)
            else:
                self._owner.do((self._folder / MARKER).unlink, missing_ok=True)

    def _mark(self, names: list[str]) -> None:
        self._owner.check(self.path)
        with AtomicFile(self._folder / MARKER) as marker:
            marker.begin()
            marker.file.write((json.dumps(names) + "\n").encode())
            marker.commit()
        sync_folder(self._folder)

    def __exit__(self, *_: object) -> None:
        if self._staging is not None:
            self._owner.do(shutil.rmtree, self._staging, ignore_errors=True)
        self._stack.close()


@contextmanager
def written_folder(folder: str | os.PathLike[str]) -> Iterator[AtomicFolder]:
    """Write a folder in one block: its files get their names when the block ends, and never if it raises."""
    with AtomicFolder(Path(folder)) as output:
        output.begin()
        yield output
        output.commit()


def _chunks(stream: BinaryIO) -> Iterable[bytes]:
    while chunk := stream.read(1 << 20):
        yield chunk


def _marked(folder: Path) -> list[str] | None:
    """Return the names in the marker of a folder; None without one."""
    try:
        text = (folder / MARKER).read_bytes()
    except OSError:
        return None
    names: object = []
    with suppress(ValueError, RecursionError):
        names = json.loads(text)
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def check_complete(folder: Path) -> None:
    """Refuse a folder in which some files are of an interrupted save, and others of the save before.

    If another process is exchanging the files just now, wait for it.

    Raises
    ------
    ModelNotFoundError
        The folder has the marker of an interrupted save; the message says what to do.
    """
    if _marked(folder) is None:
        return
    with exclusive(folder):  # a live writer holds this lock
        names = _marked(folder)
    if names is not None:
        shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
        raise ModelNotFoundError(
            f"{folder}: a save was interrupted while it replaced files here, so some are new and some old: {shown}. "
            f"Save into the folder again, or restore these files from a copy and delete {MARKER}"
        )

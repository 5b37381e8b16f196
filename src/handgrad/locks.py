"""A lock on a folder: one process at a time; the operating system holds it, so that it ends with the process."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from handgrad.errors import RunError

NAME = ".lock"
FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)  # an untrusted link would name another file


class FolderLock:
    """A reentrant context manager that locks a folder for this process.

    The folder is made, and removed at the end when it was made here and is empty.

    Raises
    ------
    RunError
        On entering, when another process has the lock (it is named), or the folder cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place, FolderLock(Path(place, "run")):
    ...     print([path.name for path in Path(place, "run").iterdir()])
    ['.lock']
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / NAME
        self.depth = 0
        self.made: list[Path] = []
        self.file: BinaryIO | None = None

    def __enter__(self) -> FolderLock:
        if self.depth == 0:
            self._acquire()
        self.depth += 1
        return self

    def __exit__(self, *error: object) -> None:
        self.depth -= 1
        if self.depth == 0:
            self._release()

    def _acquire(self) -> None:
        self.made = [place for place in (self.folder, *self.folder.parents) if not place.exists()]
        try:
            while self.file is None:
                self.folder.mkdir(parents=True, exist_ok=True)
                file = os.fdopen(os.open(self.path, FLAGS, 0o644), "r+b")
                if not _lock(file):
                    file.seek(0)
                    holder = file.read(20).decode(errors="replace").strip() or "unknown"
                    file.close()
                    raise RunError(
                        f"{self.folder}: another process is training into this folder: its process id is {holder}",
                        fix="wait until it has ended, or choose another folder",
                    )
                if _is_at(file, self.path):  # and not one that its last holder has just removed
                    self.file = file
                else:
                    file.close()
            self.file.seek(0)
            self.file.truncate()
            self.file.write(f"{os.getpid()}\n".encode())
            self.file.flush()
        except FileExistsError:
            raise RunError(f"{self.folder}: cannot be written: it is no folder") from None
        except OSError as error:
            self._release()
            raise RunError(f"{self.folder}: cannot be written: {error.strerror or error}") from None

    def _release(self) -> None:
        if self.file is not None:
            if sys.platform == "win32":
                self.file.close()  # an open file cannot be removed there
            with suppress(OSError):
                self.path.unlink()
            with suppress(OSError):  # a full disk, again
                self.file.close()
            self.file = None
        with suppress(OSError):
            for place in self.made:
                place.rmdir()


def _lock(file: BinaryIO) -> bool:
    """Lock an open file, unless another process has."""
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(2**20)  # beyond what is written: a locked byte cannot be read
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def _is_at(file: BinaryIO, path: Path) -> bool:
    """Whether a path still leads to an open file."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.lstat())
    except FileNotFoundError:
        return False

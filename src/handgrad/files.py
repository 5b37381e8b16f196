"""The files of run folders: written atomically, checked while they are read, as they may be untrusted; a folder's lock."""

from __future__ import annotations

import errno
import json
import os
import secrets
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Any, BinaryIO, TypeVar

import msgspec
import numpy as np

from handgrad.arrays import Array
from handgrad.errors import HandgradError, RunError, notify
from handgrad.forks import LOCK

T = TypeVar("T")
LOCK_FLAGS = (
    os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
)  # an untrusted link would name another file
NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}
"""What a file system answers that has no locks, such as some of those in a network."""

OTHER_FOLDER = "choose a folder that you may write, with --out on the command line"
TYPES = {"F16": "float16", "F32": "float32", "F64": "float64", "I64": "int64", "U8": "uint8", "BOOL": "bool"}
"""NumPy's names of the types that a network's arrays may have, by those of safetensors."""


def write_file(path: Path, content: bytes | str) -> None:
    """Write a file atomically: to a temporary file in the same folder, fsync, rename, fsync the folder.

    A link, a pipe or a device in its place is replaced, never written to. Raises `RunError` where that cannot be done.
    """
    data = content.encode() if isinstance(content, str) else content
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        _fsync_folder(path.parent)
    except FileExistsError:  # from mkdir
        raise RunError(f"{path}: cannot be written: {path.parent} is no folder") from None
    except OSError as error:
        raise RunError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


LEFT_BEHIND = ".*.????????.tmp"
"""What a process that was killed leaves of `write_file`, as a pattern of names."""


def write_output(path: Path, content: bytes | str) -> None:
    """Write to a path that the user names: as `write_file`, but straight to a pipe or device such as ``/dev/stdout``."""
    if not path.exists() or (
        path.is_file() and not path.is_relative_to("/dev")
    ):  # where a link leads to a file
        write_file(path, content)
        return
    try:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise RunError(f"{path}: cannot be written: {error.strerror or error}") from None


def refuse_link(folder: Path) -> Path:
    """Return a folder within a run folder; raises `RunError` when it is a link, which leads out of an untrusted one."""
    if folder.is_symlink():
        raise RunError(f"{folder}: is a link that leads out of the folder", fix="put the folder itself there")
    return folder


def _fsync_folder(folder: Path) -> None:
    """Flush a folder with fsync, so that a new name in it is on the disk too; Windows does so itself, and opens no folder."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_file(path: Path, most: int) -> int:
    """Return the size of a run folder's file; raises `RunError` when it is missing, no file in it, or over ``most`` bytes."""
    try:
        found = path.stat()
        inside = path.resolve().is_relative_to(path.parent.resolve())
    except (OSError, RuntimeError) as error:  # RuntimeError: links that lead to each other
        raise RunError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    if not inside:
        raise RunError(f"{path}: is a link that leads out of the folder", fix="put the file itself there")
    if not S_ISREG(found.st_mode):
        raise RunError(
            f"{path}: is a {'folder' if S_ISDIR(found.st_mode) else 'pipe or a device'}, and no file"
        )
    if found.st_size > most:
        raise RunError(f"{path}: {found.st_size:,} bytes, and a run's has at most {most:,}")
    return found.st_size


def read_file(path: Path, most: int) -> bytes:
    """Read a run folder's file; raises `RunError` as `check_file`."""
    size = check_file(path, most)
    try:
        with path.open("rb") as file:
            return file.read(size)
    except OSError as error:
        raise RunError(f"{path}: {error.strerror or error}") from None


def parse_json(data: bytes, kind: type[T], place: str) -> T:
    """Read JSON as a type; raises `RunError` at ``place`` when it is none, nested too deep, or names a key twice."""
    try:
        return msgspec.convert(json.loads(data, object_pairs_hook=_once), kind)
    except (ValueError, msgspec.MsgspecError, RecursionError) as error:  # UnicodeDecodeError is a ValueError
        raise RunError(f"{place}: damaged, or not handgrad's: {error}") from None


def parse_versioned(data: bytes, kind: type[T], place: str, *formats: int) -> T:
    """Read JSON with the number of its ``format`` as a type; raises `RunError` as `parse_json`, and for another format."""
    found = parse_json(data, dict[str, Any], place).get("format")
    if found not in formats:
        raise RunError(
            f"{place}: format {found!r}, and this handgrad reads {' and '.join(map(str, formats))}",
            fix="install a newer handgrad"
            if isinstance(found, int) and found > max(formats)
            else "use the version of handgrad that wrote it",
        )
    return parse_json(data, kind, place)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {twice!r:.60} is there twice")
    return table


def tensor_bytes(arrays: Mapping[str, Array], header: object = None, **metadata: str) -> bytes:
    """Return arrays as a safetensors file, with a header as JSON under "handgrad" in its metadata."""
    with LOCK:
        from safetensors.numpy import save

    if header is not None:
        metadata["handgrad"] = msgspec.json.encode(header).decode()
    # safetensors writes the memory as it is: a transposed view would be saved wrong
    contiguous = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    return save(contiguous, metadata or None)


class Tensors:
    """A safetensors file, open for reading: its ``metadata`` and shapes are read before any array is made."""

    def __init__(self, path: Path, file: Any) -> None:
        self.path, self.file = path, file
        self.metadata: dict[str, str] = file.metadata() or {}

    @classmethod
    @contextmanager
    def open(cls, path: Path) -> Iterator[Tensors]:
        """Open a run folder's file; raises `RunError` as `check_file`, and when it is damaged."""
        check_file(path, 2**63)
        with cls.open_anywhere(path, RunError) as tensors:
            yield tensors

    @classmethod
    @contextmanager
    def open_anywhere(cls, path: Path, error: type[HandgradError]) -> Iterator[Tensors]:
        """Open a file of the user's, which a link may lead to; raises ``error`` when it is missing or damaged."""
        with LOCK:
            from safetensors import SafetensorError, safe_open

        try:
            path.open("rb").close()  # whose error states the problem better than that of safetensors
            with safe_open(path, framework="numpy") as file:
                yield cls(path, file)
        except OSError as cause:
            raise error(f"{path}: {cause.strerror or cause}") from None
        except SafetensorError as cause:
            raise error(f"{path}: damaged, or no safetensors file: {cause}") from None

    def header(self, kind: type[T], *formats: int) -> T:
        """Return the header given to `tensor_bytes`; raises `RunError` as `parse_versioned`."""
        return parse_versioned(self.metadata.get("handgrad", "").encode(), kind, str(self.path), *formats)

    def shapes(self) -> dict[str, tuple[tuple[int, ...], str]]:
        """Return each array's shape and type."""
        slices = {name: self.file.get_slice(name) for name in self.file.keys()}  # noqa: SIM118 - not a mapping
        return {
            name: (tuple(found.get_shape()), TYPES.get(found.get_dtype(), found.get_dtype()))
            for name, found in slices.items()
        }

    def check(self, wanted: Mapping[str, Array]) -> None:
        """Check that the arrays are those wanted, by name, shape and type; raises `RunError`."""
        check_arrays(str(self.path), self.shapes(), {n: (a.shape, a.dtype.name) for n, a in wanted.items()})

    def read(self, name: str) -> Array:
        """Return an array."""
        array: Array = self.file.get_tensor(name)
        return array


def check_arrays(
    place: str,
    found: Mapping[str, tuple[tuple[int, ...], str]],
    wanted: Mapping[str, tuple[tuple[int, ...], str]],
) -> None:
    """Check that a file has a network's arrays, each with its shape and type; raises `RunError` at ``place``."""
    for name in sorted(found.keys() | wanted.keys()):
        if name not in found or name not in wanted:
            owner = "the network" if name not in found else "the file"
            raise RunError(f"{place}: {name} is only in {owner}")
        if found[name] != wanted[name]:
            one, other = (
                f"{kind}({', '.join(map(str, shape))})" for shape, kind in (found[name], wanted[name])
            )
            raise RunError(f"{place}: {name} is {one} in the file and {other} in the network")


class FolderLock:
    """A reentrant context manager that locks a folder, which is made where it is missing, for this process.

    The operating system holds the lock, so that it ends with the process. Another process that has it, or a folder that
    cannot be written, is a `RunError` on entering. A folder made here is removed at the end when it is empty.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / ".lock"
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
                file = os.fdopen(os.open(self.path, LOCK_FLAGS, 0o644), "r+b")
                if not _lock(file, self.folder):
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
            for left in self.folder.glob(LEFT_BEHIND):
                with suppress(OSError):
                    left.unlink()
        except FileExistsError:
            raise RunError(f"{self.folder}: cannot be written: it is no folder", fix=OTHER_FOLDER) from None
        except OSError as error:
            self._release()
            problem = f"{self.folder}: cannot be written: {error.strerror or error}"
            raise RunError(problem, fix=OTHER_FOLDER) from None

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


def _lock(file: BinaryIO, folder: Path) -> bool:
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
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        notify(f"{folder}: its file system has no locks, so that another process could train into it too")
    return True


def _is_at(file: BinaryIO, path: Path) -> bool:
    """Whether a path still leads to an open file."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.lstat())
    except FileNotFoundError:
        return False

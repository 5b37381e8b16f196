"""The files of run folders: written atomically, and checked while they are read, because they may be untrusted."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Any, TypeVar

import msgspec
from numpy.typing import NDArray

from handgrad.errors import HandgradError, RunError

T = TypeVar("T")
Array = NDArray[Any]

TYPES = {"F16": "float16", "F32": "float32", "F64": "float64", "I64": "int64", "U8": "uint8", "BOOL": "bool"}
"""NumPy's names of the types that a network's arrays may have, by those of safetensors."""


def write_file(path: Path, content: bytes | str) -> None:
    """Write a file atomically: to a temporary file in the same folder, fsync, rename, fsync the folder.

    What is no file, such as a pipe, is written to directly.

    Raises
    ------
    RunError
        When the folder cannot be written, or the disk is full.
    """
    data = content.encode() if isinstance(content, str) else content
    temporary = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():
            path.write_bytes(data)
            return
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
    """Return the size of a run folder's file.

    Raises
    ------
    RunError
        When it is missing, a link out of the folder, a pipe or a device, or larger than ``most`` bytes.
    """
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
    """Read JSON as a type.

    Raises
    ------
    RunError
        Beginning with ``place``, when it is no JSON, nested too deep, names a key twice, or is of another type.

    Examples
    --------
    >>> parse_json(b'{"a": 1, "a": 2}', dict[str, int], "run.json")
    Traceback (most recent call last):
    handgrad.errors.RunError: run.json: damaged, or not handgrad's: the key 'a' is there twice
    """
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
            fix="use the version of handgrad that wrote it",
        )
    return parse_json(data, kind, place)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r:.60} is there twice")
    return table


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
        from safetensors import SafetensorError, safe_open

        try:
            path.open("rb").close()  # whose error states the problem better than that of safetensors
            with safe_open(path, framework="numpy") as file:
                yield cls(path, file)
        except OSError as cause:
            raise error(f"{path}: {cause.strerror or cause}") from None
        except SafetensorError as cause:
            raise error(f"{path}: damaged, or no safetensors file: {cause}") from None

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

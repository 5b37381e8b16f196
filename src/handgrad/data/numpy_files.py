"""NumPy's own files: .npy, which is mapped into memory, and .npz. Neither is ever unpickled."""

from __future__ import annotations

import math
import os
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from numpy.lib import format as npy

from handgrad.arguments import judged
from handgrad.arrays import Array
from handgrad.data.dataset import Dataset, Task
from handgrad.data.reading import Contents, Request, check_claim, check_shape, make_dataset, reading
from handgrad.errors import DataError

NUMBERS = "biuf"
NUMBERS_OR_TEXT = "biufU"

# What a damaged archive makes zipfile and NumPy raise; RuntimeError is for what zipfile does not support.
DAMAGE = (ValueError, RuntimeError, zlib.error, zipfile.BadZipFile)


@judged
def read_npy(
    path: str | os.PathLike[str],
    *,
    target: str | os.PathLike[str] | Sequence[str] | None,
    task: Task | None = None,
) -> Dataset:
    """Map the features from one .npy file, and read the targets from another.

    Parameters
    ----------
    path
        Features, shape (n, ...). They stay on the disk until they are used.
    target
        The path of the targets, shape (n,) or (n, k).
    task
        As for `load`.

    Returns
    -------
    Dataset
        ``x`` is a read-only ``np.memmap`` of the file's type and shape.

    Raises
    ------
    DataError
        When a file is missing, damaged, or holds Python objects, or the arrays do not suit each other.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder, "x.npy"), np.ones((4, 3), dtype=np.float32))
    ...     np.save(Path(folder, "t.npy"), np.array([0, 1, 1, 0]))
    ...     data = read_npy(Path(folder, "x.npy"), target=Path(folder, "t.npy"))
    ...     data.x.shape, data.x.dtype, data.task
    ((4, 3), dtype('float32'), 'classification')
    """
    return make_dataset(Path(path), npy_contents(Path(path), Request(target, task)))


def npy_contents(path: Path, request: Request) -> Contents:
    """Map the features, and the targets from their own file."""
    if request.columns is not None:
        return Contents(_map(path, NUMBERS))
    if not isinstance(request.target, str | os.PathLike):
        raise DataError(
            f"{path}: target is {request.target!r}, and must be the path of one file",
            fix="name the .npy file of the targets as target",
        )
    targets = Path(request.target)
    return Contents(_map(path, NUMBERS), _map(targets, NUMBERS_OR_TEXT), str(targets), request.task)


def _map(path: Path, kinds: str) -> Array:
    with reading(path, ValueError):
        with path.open("rb") as file:
            _check_header(path, file, path.stat().st_size, kinds)
        return npy.open_memmap(path, mode="r")


@judged
def read_npz(path: str | os.PathLike[str], *, task: Task | None = None) -> Dataset:
    """Read the arrays ``x`` and ``t``, also called ``X`` and ``y``, from one .npz file.

    Parameters
    ----------
    path
        The file: ``x`` of shape (n, ...), ``t`` of shape (n,) or (n, k).
    task
        As for `load`.

    Returns
    -------
    Dataset
        ``x`` of the file's type and shape.

    Raises
    ------
    DataError
        When the file is missing or damaged, an array is missing or holds Python objects, or the file asks for
        more memory than a packed file of its size may.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(Path(folder, "d.npz"), x=np.eye(3), t=np.array([0.5, 1.5, 2.5]))
    ...     read_npz(Path(folder, "d.npz")).task
    'regression'
    """
    return make_dataset(Path(path), npz_contents(Path(path), Request(task=task)))


def npz_contents(path: Path, request: Request) -> Contents:
    """Read ``x``, and ``t`` where targets are asked for."""
    with reading(path, *DAMAGE), zipfile.ZipFile(path) as archive:
        features = _find(path, archive, "x", "X")
        target = _find(path, archive, "t", "y") if request.columns is None else None
        check_claim(path, features.file_size + (target.file_size if target else 0))
        x = _read_member(path, archive, features, NUMBERS)
        if target is None:
            return Contents(x)
        targets = _read_member(path, archive, target, NUMBERS_OR_TEXT)
    return Contents(x, targets, f"{path}, {target.filename}", request.task)


def _find(path: Path, archive: zipfile.ZipFile, *names: str) -> zipfile.ZipInfo:
    members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
    member = next((members[name] for name in names if name in members), None)
    if member is None:
        raise DataError(
            f"{path}: there is no array {' or '.join(names)}", given=f"the arrays {', '.join(members)}"
        )
    # Other ways of packing have no bound on how much a few bytes become; NumPy writes none of them.
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise DataError(f"{path}: {member.filename} is packed otherwise than NumPy does")
    return member


def _read_member(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo, kinds: str) -> Array:
    with archive.open(member.filename) as file:
        _check_header(path / member.filename, file, member.file_size, kinds)
    with archive.open(member.filename) as file:
        values: Array = npy.read_array(file, allow_pickle=False)
    return values


def _check_header(path: Path, file: IO[bytes], size: int, kinds: str) -> None:
    """Check that the array in a file of ``size`` bytes is of a wanted kind, and just fills the file."""
    try:
        version = npy.read_magic(file)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read(file)
    except Exception as error:  # the header is Python text, and damage to it may raise what it likes
        raise DataError(f"{path}: the array's header cannot be read: {error}") from error
    if dtype.kind not in kinds or dtype.itemsize == 0:
        wanted = "numbers" if kinds == NUMBERS else "numbers or text"
        raise DataError(f"{path}: the array has dtype {dtype}, and {wanted} are needed")
    check_shape(path, shape)
    expected, found = math.prod(shape) * dtype.itemsize, size - file.tell()
    if expected != found:
        raise DataError(f"{path}: {expected} bytes of data expected by the header, {found} found")

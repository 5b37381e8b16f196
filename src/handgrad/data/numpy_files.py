"""NumPy's own files: .npy, which is mapped into memory, and .npz, also of scipy's sparse rows. None is ever unpickled."""

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
from handgrad.arrays import Array, as_rows
from handgrad.data.dataset import Dataset, Task
from handgrad.data.reading import Contents, Request, check_claim, check_shape, make_dataset, reading
from handgrad.errors import DataError, listed, need

NUMBERS = "biuf"
NUMBERS_OR_TEXT = "biufU"
WHOLE, TEXT = "iu", "SU"

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
    targets = _target_file(path, request)
    return Contents(_map(path, NUMBERS), _map(targets, NUMBERS_OR_TEXT), str(targets), request.task)


def _target_file(path: Path, request: Request) -> Path:
    """Return the path of the file of the targets."""
    if request.target is None:
        raise DataError(
            f"{path}: no target is named, and its targets are in another file",
            fix="name the .npy file of the targets: --target FILE",
        )
    if not isinstance(request.target, str | os.PathLike):
        raise DataError(
            f"{path}: target is {request.target!r}, and must be the path of one file",
            fix="name the .npy file of the targets as target",
        )
    return Path(request.target)


def _map(path: Path, kinds: str) -> Array:
    with reading(path, ValueError):
        with path.open("rb") as file:
            _check_header(path, file, path.stat().st_size, kinds)
        return npy.open_memmap(path, mode="r")


@judged
def read_npz(
    path: str | os.PathLike[str], *, target: str | os.PathLike[str] | None = None, task: Task | None = None
) -> Dataset:
    """Read the arrays ``x`` and ``t``, also called ``X`` and ``y``, from one .npz file; or sparse rows.

    Parameters
    ----------
    path
        The file: ``x`` of shape (n, ...), ``t`` of shape (n,) or (n, k). Or what ``scipy.sparse.save_npz`` wrote, by row
        or by column (csr, csc).
    target
        Of sparse rows, the path of the .npy file of their targets.
    task
        As for `load`.

    Returns
    -------
    Dataset
        ``x`` of the file's type and shape, sparse rows as a ``scipy.sparse.csr_array``.

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
    return make_dataset(Path(path), npz_contents(Path(path), Request(target, task)))


SPARSE = ("data", "indices", "indptr", "shape")
FORMAT = "format"  # the member that only scipy's files have, with the SPARSE ones where it is csr or csc


def holds_sparse_rows(path: Path) -> bool:
    """Return whether a .npz file is one of scipy's, whose targets are in another file."""
    try:
        with zipfile.ZipFile(path) as archive:
            return f"{FORMAT}.npy" in archive.namelist()
    except (OSError, *DAMAGE):  # which reading it tells
        return False


def npz_contents(path: Path, request: Request) -> Contents:
    """Read ``x``, and ``t`` where targets are asked for."""
    if holds_sparse_rows(path):
        if request.columns is not None:
            return Contents(_read_sparse(path))
        targets_of = _target_file(path, request)
        return Contents(_read_sparse(path), _map(targets_of, NUMBERS_OR_TEXT), str(targets_of), request.task)
    if request.target is not None:
        raise DataError(
            f"{path}: target is {request.target!r}, and this source has its own target",
            fix="leave out target",
        )
    with reading(path, *DAMAGE), zipfile.ZipFile(path) as archive:
        features = _find(path, archive, "x", "X")
        target = _find(path, archive, "t", "y") if request.columns is None else None
        check_claim(path, features.file_size + (target.file_size if target else 0))
        x = _read_member(path, archive, features, NUMBERS)
        if target is None:
            return Contents(x)
        targets = _read_member(path, archive, target, NUMBERS_OR_TEXT)
    return Contents(x, targets, f"{path}, {target.filename}", request.task)


def _read_sparse(path: Path) -> Array:
    """Read rows as ``scipy.sparse.save_npz`` writes them."""
    with reading(path, *DAMAGE), zipfile.ZipFile(path) as archive:
        layout = _read_member(path, archive, _find(path, archive, FORMAT), TEXT, scalar=True)
        name = str(layout.astype(str))
        if name not in ("csr", "csc"):
            raise DataError(
                f"{path}: a sparse matrix in the layout {name!r}, and csr and csc are read",
                fix="save it by row: scipy.sparse.save_npz(file, x.tocsr())",
            )
        members = [_find(path, archive, each) for each in SPARSE]
        check_claim(path, sum(member.file_size for member in members))
        kinds = (NUMBERS, WHOLE, WHOLE, WHOLE)
        data, indices, starts, shape = (
            _read_member(path, archive, member, own) for member, own in zip(members, kinds, strict=True)
        )
        if shape.shape != (2,) or {each.ndim for each in (data, indices, starts)} != {1}:
            found = ", ".join(
                f"{each} {values.shape}"
                for each, values in zip(SPARSE, (data, indices, starts, shape), strict=True)
            )
            raise DataError(f"{path}: not a sparse matrix of scipy's: the arrays are {found}")
        if shape.astype(object).prod() >= 2**63:
            raise DataError(f"{path}: a sparse matrix of {shape[0]} by {shape[1]} numbers is too large")
        sparse = need("scipy.sparse", f"{path}, a file of sparse rows,", "sklearn")
        kind = sparse.csr_array if name == "csr" else sparse.csc_array
        rows: Array = as_rows(f"{path}: x", kind((data, indices, starts), shape=tuple(shape.tolist())))
    return rows


def _find(path: Path, archive: zipfile.ZipFile, *names: str) -> zipfile.ZipInfo:
    members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
    member = next((members[name] for name in names if name in members), None)
    if member is None:
        raise DataError(
            f"{path}: there is no array {' or '.join(names)}", given=f"the arrays {listed(members)}"
        )
    # Other ways of packing have no bound on how much a few bytes become; NumPy writes none of them.
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise DataError(f"{path}: {member.filename} is packed otherwise than NumPy does")
    return member


def _read_member(
    path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo, kinds: str, *, scalar: bool = False
) -> Array:
    with archive.open(member.filename) as file:
        _check_header(path / member.filename, file, member.file_size, kinds, scalar=scalar)
    with archive.open(member.filename) as file:
        values: Array = npy.read_array(file, allow_pickle=False)
    return values


def _check_header(path: Path, file: IO[bytes], size: int, kinds: str, *, scalar: bool = False) -> None:
    """Check that the array in a file of ``size`` bytes is of a wanted kind, and just fills the file; or is one value."""
    try:
        version = npy.read_magic(file)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read(file)
    except Exception as error:  # the header is Python text, and damage to it may raise what it likes
        raise DataError(f"{path}: the array's header cannot be read: {error}") from error
    if dtype.kind not in kinds or dtype.itemsize == 0:
        words = {NUMBERS: "numbers", NUMBERS_OR_TEXT: "numbers or text", TEXT: "text", WHOLE: "whole numbers"}
        wanted = words[kinds]
        raise DataError(f"{path}: the array has dtype {dtype}, and {wanted} are needed")
    if scalar and shape != ():
        raise DataError(f"{path}: the array has shape {shape}, and a single value is needed")
    if not scalar:
        check_shape(path, shape)
    expected, found = math.prod(shape) * dtype.itemsize, size - file.tell()
    if expected != found:
        raise DataError(f"{path}: {expected} bytes of data expected by the header, {found} found")

"""The IDX format, in which the MNIST digits are stored.

An IDX file is 0, 0, a type code and the rank, one byte each; then the size of each axis, a big-endian uint32;
then the values, big-endian, last axis fastest. The file is plain, or packed with gzip as a whole.
"""

from __future__ import annotations

import gzip
import math
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from handgrad.arguments import judged
from handgrad.arrays import Array
from handgrad.data.reading import check_claim, check_shape, reading
from handgrad.errors import DataError

TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
GZIP_MAGIC = b"\x1f\x8b"
BLOCK = 2**16  # bytes read at a time: what a core's cache holds


@judged
def read_idx(path: str | os.PathLike[str]) -> Array:
    """Read an IDX file, packed with gzip or not, whatever its name.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    NDArray
        An array of the shape and type that the file's header gives, in the machine's byte order.

    Raises
    ------
    DataError
        When the file is missing, not IDX, damaged, shorter or longer than its header states, or asks for more
        memory than a packed file of its size may.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "t10k-labels-idx1-ubyte")
    ...     _ = path.write_bytes(bytes([0, 0, 8, 1]) + bytes([0, 0, 0, 3]) + bytes([7, 2, 1]))
    ...     read_idx(path)
    array([7, 2, 1], dtype=uint8)
    """
    path = Path(path)
    dtype, shape = read_idx_header(path)
    values = np.empty(shape, dtype)
    read_idx_into(values, path)
    return values.astype(dtype.newbyteorder("="), copy=False)


def read_idx_header(path: Path) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Read the type and the shape of an IDX file's values, and check that the file may ask for so much memory."""
    with _unpacked(path) as (source, packed):
        dtype, shape = _read_header(path, source)
        size = math.prod(shape) * dtype.itemsize
        if packed:
            check_claim(path, size)
        else:
            _check_size(path, size, path.stat().st_size - source.tell())
    return dtype, shape


def read_idx_into(values: Array, path: Path) -> None:
    """Read an IDX file's values into an array of the file's type and shape, which may be a part of a larger one."""
    with _unpacked(path) as (source, _):
        _read_header(path, source)
        found, view = 0, values.reshape(-1).view(np.uint8).data
        try:
            while found < len(view) and (content := source.read1(min(BLOCK, len(view) - found))):
                view[found : found + len(content)] = content
                found += len(content)
            found += len(source.read(1))  # at the end of a gzip file, that checks its checksum
        except EOFError:
            if found == len(view):  # in the checksum
                raise
        _check_size(path, len(view), found)


@contextmanager
def _unpacked(path: Path) -> Iterator[tuple[Any, bool]]:
    """Open a file for reading what is in it, and say whether it is packed."""
    with reading(path, zlib.error), path.open("rb") as file:
        packed = file.read(2) == GZIP_MAGIC
        file.seek(0)
        yield (gzip.GzipFile(fileobj=file) if packed else file), packed


def _read_header(path: Path, file: Any) -> tuple[np.dtype[Any], tuple[int, ...]]:
    magic = file.read(4)
    if len(magic) < 4 or magic[:2] != b"\0\0" or magic[2] not in TYPES or not 1 <= magic[3] <= 32:
        codes = ", ".join(f"{code:02x}" for code in TYPES)
        raise DataError(
            f"{path}: not an IDX file: it begins with {magic.hex(' ') or 'nothing'}, and must begin, in "
            f"hexadecimal, with 00 00, a type ({codes}) and a rank from 01 to 20"
        )
    rank = magic[3]
    sizes = file.read(4 * rank)
    if len(sizes) < 4 * rank:
        raise DataError(
            f"{path}: the file is cut short: {4 * rank} bytes of sizes expected, {len(sizes)} found"
        )
    shape = struct.unpack(f">{rank}I", sizes)
    check_shape(path, shape)
    return np.dtype(TYPES[magic[2]]), shape


def _check_size(path: Path, expected: int, found: int) -> None:
    if found != expected:
        problem = "is cut short" if found < expected else "goes on after its data"
        more = " or more" if found > expected else ""
        raise DataError(
            f"{path}: the file {problem}: {expected} bytes of data expected, {found}{more} found",
            fix="get the file again",
        )

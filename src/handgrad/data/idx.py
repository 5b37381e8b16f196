"""The IDX format, and the MNIST digits, which are stored in it.

An IDX file is 0, 0, a type code and the rank, one byte each; then the size of each axis, a big-endian uint32;
then the values, big-endian, last axis fastest. The file is plain, or packed with gzip as a whole.
"""

from __future__ import annotations

import math
import os
import struct
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from handgrad.arguments import judged
from handgrad.data.dataset import Dataset
from handgrad.data.download import fetch_mnist
from handgrad.data.untrusted import check_claim, check_shape, reading
from handgrad.errors import DataError

TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
GZIP_MAGIC = b"\x1f\x8b"
BLOCK = 2**20  # bytes read at a time

MNIST_VARIABLE = "HANDGRAD_MNIST"


@judged
def read_idx(path: str | os.PathLike[str]) -> NDArray[Any]:
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
    with reading(path, EOFError, zlib.error), path.open("rb") as file:
        packed = file.read(2) == GZIP_MAGIC
        file.seek(0)
        source = _GzipStream(file) if packed else file
        dtype, shape = _read_header(path, source)
        size = math.prod(shape) * dtype.itemsize
        if packed:
            check_claim(path, size)
        else:  # before memory is taken
            _check_size(path, size, path.stat().st_size - file.tell())
        values = np.empty(shape, dtype)
        found, view = 0, values.reshape(-1).view(np.uint8).data
        # One byte more is asked for: at the end of a gzip stream that is what checks its checksum.
        while found <= size and (content := source.read(min(BLOCK, size + 1 - found))):
            view[found : found + len(content)] = content[: size - found]
            found += len(content)
        _check_size(path, size, found)
        if isinstance(source, _GzipStream) and not source.stream.eof:
            raise EOFError("it is cut short")
    return values.astype(dtype.newbyteorder("="), copy=False)


class _GzipStream:
    """What a gzip file holds, unpacked in large pieces: twice as fast as Python's own reader of small ones."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.packed = file, b""
        self.stream = zlib.decompressobj(wbits=31)  # 31: with gzip's header and checksum

    def read(self, size: int) -> bytes:
        """Return some bytes, ``size`` at most; none at the end."""
        content = b""
        while not (content or self.stream.eof) and (packed := self.packed or self.file.read(BLOCK)):
            content = self.stream.decompress(packed, size)
            self.packed = self.stream.unconsumed_tail
        return content


def _read_header(path: Path, file: BinaryIO | _GzipStream) -> tuple[np.dtype[Any], tuple[int, ...]]:
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


@judged
def mnist(folder: str | os.PathLike[str] | None = None) -> Dataset:
    """Read the MNIST digits, or a set in the same four files, such as Fashion-MNIST.

    Parameters
    ----------
    folder
        Where the four files are, packed with gzip or not. Without it, the folder that the environment
        variable ``HANDGRAD_MNIST`` names; without that, the download cache, which is filled when it is empty.

    Returns
    -------
    Dataset
        ``x`` uint8 of shape (70000, 784), ``t`` of shape (70000,), classes 0 to 9. The last 10,000 rows are
        the fixed test set.

    Raises
    ------
    DataError
        When a file is missing or wrong, or nothing can be downloaded.
    MissingPackageError
        When a download is needed, and pooch is not installed.

    Examples
    --------
    >>> mnist("no-such-folder")
    Traceback (most recent call last):
    handgrad.errors.DataError: no-such-folder: there is no file train-images-idx3-ubyte
      fix    put the four MNIST files there, or name their folder in HANDGRAD_MNIST
    """
    place = Path(folder or os.environ.get(MNIST_VARIABLE) or fetch_mnist())
    x, t = _read_pair(place, "train")
    x_test, t_test = _read_pair(place, "t10k")
    if x.shape[1:] != x_test.shape[1:]:
        raise DataError(
            f"{place}: train has images of {x.shape[1:]} pixels and t10k of {x_test.shape[1:]}; they must agree"
        )
    train_rows, rows = len(x), len(x) + len(x_test)
    x.resize((rows, *x.shape[1:]), refcheck=False)  # in place: a copy would take as long as reading it
    x[train_rows:] = x_test
    return Dataset(
        name="mnist",
        x=x.reshape(rows, -1),
        t=np.concatenate([t, t_test]).astype(np.int64),
        task="classification",
        classes=tuple("0123456789"),
        test_rows=len(x_test),
    )


def _read_pair(folder: Path, part: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Read images, shape (n, height, width), and their labels, shape (n,)."""
    images = _read_bytes(folder, f"{part}-images", rank=3)
    labels = _read_bytes(folder, f"{part}-labels", rank=1)
    if len(images) != len(labels):
        raise DataError(
            f"{folder}: {part} has {len(images)} images and {len(labels)} labels; they must agree"
        )
    return images, labels


def _read_bytes(folder: Path, stem: str, rank: int) -> NDArray[np.uint8]:
    names = [f"{stem}{mark}idx{rank}-ubyte{suffix}" for mark in "-." for suffix in ("", ".gz")]
    path = next((folder / name for name in names if (folder / name).is_file()), None)
    if path is None:
        raise DataError(
            f"{folder}: there is no file {names[0]}",
            fix=f"put the four MNIST files there, or name their folder in {MNIST_VARIABLE}",
        )
    values = read_idx(path)
    if values.dtype != np.uint8 or values.ndim != rank:
        raise DataError(f"{path}: bytes of rank {rank} expected, {values.dtype} of rank {values.ndim} found")
    return values

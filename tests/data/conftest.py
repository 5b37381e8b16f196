"""Files that several tests of data make."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

CODES = {"u1": 0x08, "i1": 0x09, "i2": 0x0B, "i4": 0x0C, "f4": 0x0D, "f8": 0x0E}

IdxBytes = Callable[[NDArray], bytes]


@pytest.fixture(scope="session")
def idx_bytes() -> IdxBytes:
    """Write an array as IDX, straight from the format's description."""

    def write(values: NDArray) -> bytes:
        header = bytes([0, 0, CODES[values.dtype.str[1:]], values.ndim])
        sizes = struct.pack(f">{values.ndim}I", *values.shape)
        return header + sizes + values.astype(values.dtype.newbyteorder(">")).tobytes()

    return write


@pytest.fixture
def mnist_folder(tmp_path: Path, idx_bytes: IdxBytes) -> Path:
    """Make a small set in MNIST's four files: 12 training and 7 test images of 5 by 3 pixels."""
    rng = np.random.default_rng(0)
    for part, rows in (("train", 12), ("t10k", 7)):
        images = rng.integers(0, 256, (rows, 5, 3), dtype=np.uint8)
        labels = (np.arange(rows) % 10).astype(np.uint8)
        (tmp_path / f"{part}-images-idx3-ubyte").write_bytes(idx_bytes(images))
        (tmp_path / f"{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx_bytes(labels)))
    return tmp_path

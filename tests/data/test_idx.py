"""IDX files are read exactly, and a file that is not what it says is refused before memory is taken."""

from __future__ import annotations

import gzip
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from handgrad.data import read_idx
from handgrad.errors import DataError

IdxBytes = Callable[[NDArray], bytes]


@settings(deadline=None)
@given(
    values=hnp.arrays(
        st.sampled_from(["u1", "i1", "i2", "i4", "f4", "f8"]).map(np.dtype),
        hnp.array_shapes(max_dims=4, max_side=6),
    ),
    packed=st.booleans(),
)
def test_every_type_and_shape_is_read_back(
    values: NDArray, packed: bool, idx_bytes: IdxBytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("idx") / "values"
    content = idx_bytes(values)
    path.write_bytes(gzip.compress(content) if packed else content)
    read = read_idx(path)
    assert read.dtype == values.dtype
    assert read.dtype.isnative
    np.testing.assert_array_equal(read, values)


def test_gzip_is_recognised_by_content_not_by_name(tmp_path: Path, idx_bytes: IdxBytes) -> None:
    values = np.array([[7, 2, 1], [0, 4, 1]], np.int16)
    (tmp_path / "plain.gz").write_bytes(idx_bytes(values))
    (tmp_path / "packed").write_bytes(gzip.compress(idx_bytes(values)))
    assert np.array_equal(read_idx(tmp_path / "plain.gz"), values)
    assert np.array_equal(read_idx(str(tmp_path / "packed")), values)


def test_more_than_one_block_is_read(tmp_path: Path, idx_bytes: IdxBytes) -> None:
    values = np.random.default_rng(0).integers(0, 256, (3, 1_000_003), dtype=np.uint8)
    (tmp_path / "packed").write_bytes(gzip.compress(idx_bytes(values), 1))
    assert np.array_equal(read_idx(tmp_path / "packed"), values)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "begins with nothing, and must begin"),
        (b"\0\0\x08", "begins with 00 00 08,"),
        (b"\x89PNG....", "not an IDX file: it begins with 89 50 4e 47"),
        (b"\0\0\x07\x01", r"00 00 07 01.* a type \(08, 09, 0b, 0c, 0d, 0e\)"),
        (b"\0\0\x08\0", "a rank from 01 to 20"),
        (b"\0\0\x08\x21" + bytes(200), "begins with 00 00 08 21"),
        (b"\0\0\x08\x03\0\0\0\x02\0\0", "cut short: 12 bytes of sizes expected, 6 found"),
        (b"\0\0\x08\x02\0\0\0\0\xff\xff\xff\xff", r"the array has shape \(0, 4294967295\)"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_a_wrong_header_is_refused(tmp_path: Path, content: bytes, packed: bool, message: str) -> None:
    path = tmp_path / "f.idx"
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(DataError, match=f"f.idx: .*{message}"):
        read_idx(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: content[:-3], "is cut short: 24 bytes of data expected, 21 found"),
        (lambda content: content + b"x", "goes on after its data: 24 bytes of data expected, 25 or more"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_data_shorter_or_longer_than_the_header_says_is_refused(
    tmp_path: Path, idx_bytes: IdxBytes, change: Callable[[bytes], bytes], packed: bool, message: str
) -> None:
    content = change(idx_bytes(np.arange(12, dtype=np.int16).reshape(3, 4)))
    path = tmp_path / "f.idx"
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(DataError, match=f"f.idx: the file {message}"):
        read_idx(path)


def test_a_gzip_file_cut_short_says_how_much_was_found(tmp_path: Path, idx_bytes: IdxBytes) -> None:
    values = np.random.default_rng(0).integers(0, 256, 50_000, dtype=np.uint8)
    packed = gzip.compress(idx_bytes(values))
    path = tmp_path / "f.gz"
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(DataError, match=r"cut short: 50000 bytes of data expected, 2\d{4} found"):
        read_idx(path)


@pytest.mark.parametrize("end", [-1, -8])
def test_a_gzip_file_without_its_checksum_is_refused(tmp_path: Path, idx_bytes: IdxBytes, end: int) -> None:
    path = tmp_path / "f.gz"
    path.write_bytes(gzip.compress(idx_bytes(np.arange(9, dtype=np.uint8)))[:end])
    with pytest.raises(DataError, match=r"f\.gz: the file is cut short"):
        read_idx(path)


@pytest.mark.parametrize("place", [-6, 14])
def test_a_damaged_gzip_file_is_refused(tmp_path: Path, idx_bytes: IdxBytes, place: int) -> None:
    """Place -6 is in the checksum, and 14 in the packed data."""
    content = bytearray(gzip.compress(idx_bytes(np.arange(200, dtype=np.uint8))))
    content[place] ^= 0xFF
    path = tmp_path / "f.gz"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"f\.gz: "):
        read_idx(path)


def test_a_plain_file_that_claims_terabytes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "huge"
    path.write_bytes(b"\0\0\x0e\x02" + struct.pack(">II", 2**20, 2**20) + bytes(10))
    with pytest.raises(DataError, match="cut short: 8796093022208 bytes of data expected, 10 found"):
        read_idx(path)


def test_a_packed_file_that_claims_terabytes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "huge.gz"
    path.write_bytes(gzip.compress(b"\0\0\x0e\x02" + struct.pack(">II", 2**20, 2**20)))
    with pytest.raises(
        DataError, match=r"claims 8796093022208 bytes of contents, and 268435456 is the limit"
    ):
        read_idx(path)


def test_what_follows_the_data_of_a_packed_file_is_not_unpacked(tmp_path: Path, idx_bytes: IdxBytes) -> None:
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(idx_bytes(np.arange(3, dtype=np.uint8)) + bytes(64 * 2**20), 1))
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="3 bytes of data expected, 4 or more found"):
            read_idx(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * 2**20


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nothing\.gz: there is no such file\n  fix    check the path"):
        read_idx(tmp_path / "nothing.gz")
    with pytest.raises(DataError, match="the file cannot be read"):
        read_idx(tmp_path)

"""NumPy's files are read without unpickling, and their headers are checked before memory is taken."""

from __future__ import annotations

import pickle
import struct
import sys
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.lib import format as npy
from numpy.typing import NDArray

from handgrad.data import load, load_features, read_npy, read_npz, reading
from handgrad.errors import DataError, MissingPackageError


class Unpickled:
    """Reports being unpickled by raising."""

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, ("raise SystemExit('unpickled')",)


def header(shape: tuple[int, ...], descr: str = "<f8") -> bytes:
    """Write the header of a .npy file alone."""
    buffer = BytesIO()
    npy.write_array_header_1_0(buffer, {"descr": descr, "fortran_order": False, "shape": shape})
    return buffer.getvalue()


def archive(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path


def saved(values: Any) -> bytes:
    buffer = BytesIO()
    np.save(buffer, values)
    return buffer.getvalue()


X, T = saved(np.arange(6.0).reshape(3, 2)), saved(np.array([0.5, 1.5, 2.5]))


@settings(deadline=None)
@given(
    x=hnp.arrays(
        st.sampled_from(["u1", "i4", "f4", ">f8"]).map(np.dtype),
        hnp.array_shapes(min_dims=2, max_dims=4, max_side=5),
        elements=st.integers(0, 100),
    ),
    packed=st.booleans(),
    names=st.sampled_from([("x", "t"), ("X", "y")]),
)
def test_arrays_are_read_back_with_their_dtype(
    x: NDArray, packed: bool, names: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("arrays")
    t = np.arange(len(x)) + 0.5
    save = np.savez_compressed if packed else np.savez
    save(folder / "d.npz", **dict(zip(names, (x, t), strict=True)))
    np.save(folder / "x.npy", x)
    np.save(folder / "t.npy", t)
    for data in (read_npz(folder / "d.npz"), read_npy(folder / "x.npy", target=str(folder / "t.npy"))):
        assert data.x.dtype == x.dtype
        np.testing.assert_array_equal(data.x, x)
        np.testing.assert_array_equal(data.t, t)


def test_npy_features_are_mapped(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((4, 3), np.float32))
    np.save(tmp_path / "t.npy", np.array(["b", "a", "b", "a"]))
    data = read_npy(tmp_path / "x.npy", target=tmp_path / "t.npy")
    assert isinstance(data.x, np.memmap)
    assert not data.x.flags.writeable
    assert (data.name, data.classes, data.t.tolist()) == ("x.npy", ("a", "b"), [1, 0, 1, 0])


def test_npz_task_may_be_given(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", x=np.ones((4, 3)), t=np.array([[0], [1], [0], [1]]))
    assert read_npz(tmp_path / "d.npz").classes == ("0", "1")
    assert read_npz(tmp_path / "d.npz", task="regression").t.dtype == np.float64


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        (None, "no target is named, and its targets are in another file"),
        (["a.npy", "b.npy"], "target is .*, and must be the path of one file"),
    ],
)
def test_npy_needs_one_file_of_targets(tmp_path: Path, target: Any, problem: str) -> None:
    with pytest.raises(DataError, match=rf"x\.npy: {problem}"):
        read_npy(tmp_path / "x.npy", target=target)


WRONG = [
    (saved(np.array([[None]])), "dtype object, and numbers are needed"),
    (saved(np.array([["a"]])), "dtype <U1, and numbers are needed"),
    (saved(np.zeros(3, [("a", "f4")])), "dtype .*, and numbers are needed"),
    (pickle.dumps(Unpickled()), "the array's header cannot be read: the magic string is not correct"),
    (b"", "the array's header cannot be read: EOF"),
    (X[:9], "the array's header cannot be read"),
    (X[:-1], "48 bytes of data expected by the header, 47 found"),
    (X + b"x", "48 bytes of data expected by the header, 49 found"),
    (header((2**40, 8)), "70368744177664 bytes of data expected by the header, 0 found"),
    (header((0, 2**62)), r"the array has shape \(0, 4611686018427387904\), and one axis or more"),
    (header((-3, -2)) + bytes(48), r"the array has shape \(-3, -2\)"),
    (header(()) + bytes(8), r"the array has shape \(\)"),
]


@pytest.mark.parametrize(("content", "message"), WRONG)
def test_a_wrong_array_is_refused_in_npy(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "x.npy").write_bytes(content)
    (tmp_path / "t.npy").write_bytes(T)
    with pytest.raises(DataError, match=rf"x\.npy: .*{message}"):
        read_npy(tmp_path / "x.npy", target=str(tmp_path / "t.npy"))


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize(("content", "message"), WRONG)
def test_a_wrong_array_is_refused_in_npz(tmp_path: Path, content: bytes, message: str, method: int) -> None:
    path = archive(tmp_path / "d.npz", {"x.npy": content, "t.npy": T}, method)
    with pytest.raises(DataError, match=rf"d\.npz.*: .*{message}"):
        read_npz(path)


def test_texts_of_no_length_are_refused(tmp_path: Path) -> None:
    """Any number of them fits into a file without data."""
    path = archive(tmp_path / "d.npz", {"x.npy": X, "t.npy": header((2**40,), "<U0")})
    with pytest.raises(DataError, match=r"dtype <U0, and numbers or text are needed"):
        read_npz(path)


def test_a_missing_array_is_named(tmp_path: Path) -> None:
    path = archive(tmp_path / "d.npz", {"x.npy": X, "labels.npy": T})
    with pytest.raises(DataError, match=r"d\.npz: there is no array t or y\n  given  the arrays x, labels"):
        read_npz(path)


def test_a_small_archive_that_unpacks_to_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deflate packs zeros a thousand times, so that the sizes are summed before anything is unpacked."""
    monkeypatch.setattr(reading, "FREE", 2**20)
    zeros = saved(np.zeros((600, 1000), np.uint8))
    path = archive(tmp_path / "d.npz", {"x.npy": zeros, "t.npy": zeros})
    with pytest.raises(DataError, match=r"d\.npz: the file claims 1200256 bytes of contents, and 1048576 is"):
        read_npz(path)


def test_a_member_that_claims_gigabytes_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "d.npz", {"x.npy": X, "t.npy": T})
    content = bytearray(path.read_bytes())
    entry = content.index(b"PK\x01\x02")  # the first entry of the central directory; the size is 24 bytes on
    content[entry + 24 : entry + 28] = struct.pack("<I", 2**32 - 2)
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"claims 42949\d{5} bytes of contents, and 268435456 is the limit"):
        read_npz(path)


def test_an_archive_packed_otherwise_than_numpy_does_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "d.npz", {"x.npy": X, "t.npy": T}, zipfile.ZIP_BZIP2)
    with pytest.raises(DataError, match=r"d\.npz: x\.npy is packed otherwise than NumPy"):
        read_npz(path)


def test_an_encrypted_archive_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "d.npz", {"x.npy": X, "t.npy": T})
    content = bytearray(path.read_bytes())
    for mark, flags in (
        (b"PK\x03\x04", 6),
        (b"PK\x01\x02", 8),
    ):  # the member's own header, and the directory's
        content[content.index(mark) + flags] |= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"d\.npz: the file cannot be read: File 'x\.npy' is encrypted"):
        read_npz(path)


def test_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "d.npz", {"x.npy": X, "t.npy": T}, zipfile.ZIP_STORED)
    content = bytearray(path.read_bytes())
    content[content.index(X) + len(X) - 1] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"d\.npz.*: Bad CRC-32"):
        read_npz(path)
    path.write_bytes(b"no archive")
    with pytest.raises(DataError, match=r"d\.npz: the file cannot be read: File is not a zip file"):
        read_npz(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"gone\.npz: there is no such file"):
        read_npz(tmp_path / "gone.npz")
    (tmp_path / "x.npy").write_bytes(X)
    with pytest.raises(DataError, match=r"gone\.npy: there is no such file"):
        read_npy(tmp_path / "x.npy", target=str(tmp_path / "gone.npy"))


def sparse_rows(layout: str = "csr", dtype: str = "float32") -> Any:
    from scipy.sparse import random

    return random(23, 11, 0.2, format=layout, dtype=dtype, rng=np.random.default_rng(0))


@pytest.mark.peers
@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("layout", ["csr", "csc"])
@pytest.mark.parametrize("array", [True, False])
def test_sparse_rows_are_those_that_were_saved(
    tmp_path: Path, layout: str, array: bool, compressed: bool
) -> None:
    """By row or by column, of scipy's matrices and arrays; with the targets of another file."""
    import scipy.sparse

    x = sparse_rows(layout)
    kind = {"csr": scipy.sparse.csr_array, "csc": scipy.sparse.csc_array}[layout]
    scipy.sparse.save_npz(tmp_path / "x.npz", kind(x) if array else x, compressed=compressed)
    np.save(tmp_path / "t.npy", np.array([f"{k % 3}" for k in range(23)]))
    data = read_npz(tmp_path / "x.npz", target=tmp_path / "t.npy")
    assert (type(data.x), data.x.dtype, len(data)) == (scipy.sparse.csr_array, np.float32, 23)
    np.testing.assert_array_equal(data.x.toarray(), x.toarray())  # type: ignore[attr-defined]
    assert data.classes == ("0", "1", "2")
    other = load(str(tmp_path / "x.npz"), target=str(tmp_path / "t.npy"))
    np.testing.assert_array_equal(other.t, data.t)
    rows: Any = load_features(tmp_path / "x.npz")
    np.testing.assert_array_equal(rows.toarray(), x.toarray())


DAMAGE: dict[str, tuple[str, Any]] = {
    "columns outside": ("indices", lambda indices: indices + 11),
    "starts that fall": ("indptr", lambda starts: starts[::-1].copy()),
    "fewer starts": ("indptr", lambda starts: starts[:-1]),
    "numbers for columns": ("indices", lambda indices: indices + 0.5),
    "text": ("data", lambda data: data.astype(str)),
    "not finite": ("data", lambda data: np.where(np.arange(len(data)) == 3, np.inf, data)),
}


@pytest.mark.peers
@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_sparse_rows_are_an_error_with_the_file(tmp_path: Path, damage: str) -> None:
    import scipy.sparse

    scipy.sparse.save_npz(tmp_path / "x.npz", sparse_rows())
    with np.load(tmp_path / "x.npz") as file:
        members = dict(file)
    name, change = DAMAGE[damage]
    np.savez(tmp_path / "x.npz", **members | {name: change(members[name])})
    with pytest.raises(DataError, match=r"x\.npz"):
        load_features(tmp_path / "x.npz")
    np.savez(tmp_path / "x.npz", **{key: value for key, value in members.items() if key != name})
    with pytest.raises(DataError, match=rf"x\.npz: there is no array {name}"):
        load_features(tmp_path / "x.npz")


@pytest.mark.peers
def test_sparse_rows_have_their_targets_in_another_file(tmp_path: Path) -> None:
    import scipy.sparse

    scipy.sparse.save_npz(tmp_path / "x.npz", sparse_rows())
    with pytest.raises(DataError, match="its targets are in another file"):
        read_npz(tmp_path / "x.npz")
    np.savez(tmp_path / "own.npz", x=np.ones((3, 2)), t=np.arange(3) / 2)
    with pytest.raises(DataError, match="this source has its own target"):
        read_npz(tmp_path / "own.npz", target="t.npy")


def test_without_scipy_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    parts = {"data": [1.0, 2.0], "indices": [0, 1], "indptr": [0, 1, 2], "shape": [2, 3]}
    np.savez(tmp_path / "x.npz", format=np.bytes_("csr"), **{k: np.array(v) for k, v in parts.items()})
    with pytest.raises(MissingPackageError, match=r"x\.npz, a file of sparse rows, needs the package scipy"):
        load_features(tmp_path / "x.npz")

"""MNIST is put together from four files, wherever they are, and they must agree."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from handgrad.data import mnist, read_idx
from handgrad.errors import DataError

IdxBytes = Callable[[NDArray], bytes]


def test_rows_are_flat_and_test_rows_last(mnist_folder: Path) -> None:
    data = mnist(mnist_folder)
    assert data.x.shape == (19, 15)
    assert data.x.dtype == np.uint8
    assert data.test_rows == 7
    assert data.classes == tuple("0123456789")
    test = read_idx(mnist_folder / "t10k-images-idx3-ubyte")
    assert np.array_equal(data.x[12:].reshape(7, 5, 3), test)
    assert data.t[12:].tolist() == list(range(7))


def test_the_environment_variable_names_the_folder(
    mnist_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HANDGRAD_MNIST", str(mnist_folder))
    assert len(mnist()) == 19


def test_the_download_cache_is_the_last_place(mnist_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HANDGRAD_MNIST", raising=False)
    monkeypatch.setattr("handgrad.data.builtin.fetch_mnist", lambda: mnist_folder)
    assert len(mnist()) == 19


def test_names_with_a_dot_are_found(mnist_folder: Path) -> None:
    for path in mnist_folder.iterdir():
        path.rename(path.with_name(path.name.replace("-idx", ".idx")))
    assert len(mnist(mnist_folder)) == 19


def test_a_missing_file_is_named(mnist_folder: Path) -> None:
    (mnist_folder / "t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(DataError, match=r"there is no file t10k-labels-idx1-ubyte\n.*HANDGRAD_MNIST"):
        mnist(mnist_folder)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("t10k-labels-idx1-ubyte", np.zeros(6, np.uint8), "t10k has 7 images and 6 labels; they must agree"),
        ("train-labels-idx1-ubyte", np.zeros((12, 1), np.uint8), "bytes of rank 1 expected, uint8 of rank 2"),
        ("train-labels-idx1-ubyte", np.zeros(12, np.int32), "bytes of rank 1 expected, int32 of rank 1"),
        (
            "train-images-idx3-ubyte",
            np.zeros((12, 5, 4), np.uint8),
            r"train has images of \(5, 4\) pixels and t10k of",
        ),
        ("train-labels-idx1-ubyte", np.full(12, 10, np.uint8), r"mnist: t\[0\] is 10, and the 10 classes"),
    ],
)
def test_files_that_do_not_agree_are_refused(
    mnist_folder: Path, idx_bytes: IdxBytes, name: str, values: NDArray, message: str
) -> None:
    (mnist_folder / name).write_bytes(idx_bytes(values))
    with pytest.raises(DataError, match=message):
        mnist(mnist_folder)


# MD5 of the four files as published, unpacked: they are the same however the files are packed.
PUBLISHED = [
    "6bbc9ace898e44ae57da46a324031adb",
    "a25bea736e30d166cdddb491f175f624",
    "2646ac647ad5339dbf082846283269ea",
    "27ae3e4e09519cfbb04c329615203637",
]


@pytest.mark.mnist
def test_the_mnist_files_are_read_as_published(idx_bytes: IdxBytes) -> None:
    data = mnist(os.environ["HANDGRAD_MNIST"])
    assert data.x.shape == (70_000, 784)
    assert data.test_rows == 10_000
    images, labels = data.x.reshape(-1, 28, 28), data.t.astype(np.uint8)
    parts = [images[:60_000], labels[:60_000], images[60_000:], labels[60_000:]]
    assert [hashlib.md5(idx_bytes(part)).hexdigest() for part in parts] == PUBLISHED

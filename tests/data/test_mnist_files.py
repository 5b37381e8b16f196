"""The real MNIST files, where the environment variable HANDGRAD_MNIST says they are."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from handgrad.data import mnist

# MD5 of the four files as published, unpacked: they are the same however the files are packed.
PUBLISHED = [
    "6bbc9ace898e44ae57da46a324031adb",
    "a25bea736e30d166cdddb491f175f624",
    "2646ac647ad5339dbf082846283269ea",
    "27ae3e4e09519cfbb04c329615203637",
]


@pytest.mark.mnist
def test_the_mnist_files_are_read_as_published(idx_bytes: Callable[[NDArray], bytes]) -> None:
    data = mnist(os.environ["HANDGRAD_MNIST"])
    assert data.x.shape == (70_000, 784)
    assert data.test_rows == 10_000
    images, labels = data.x.reshape(-1, 28, 28), data.t.astype(np.uint8)
    parts = [images[:60_000], labels[:60_000], images[60_000:], labels[60_000:]]
    assert [hashlib.md5(idx_bytes(part)).hexdigest() for part in parts] == PUBLISHED

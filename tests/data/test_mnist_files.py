"""The real MNIST files, where the environment variable HANDGRAD_MNIST says they are."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest

from handgrad.data import load
from handgrad.data.download import SHA256


@pytest.mark.mnist
def test_the_mnist_files_are_the_published_ones_and_read_as_published() -> None:
    folder = Path(os.environ["HANDGRAD_MNIST"])
    for name, sha256 in SHA256.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == sha256
    data = load("mnist")
    assert data.x.shape == (70_000, 784)
    assert data.test_rows == 10_000
    assert np.bincount(data.t[:60_000]).tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert np.bincount(data.t[60_000:]).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert data.t[:5].tolist() == [5, 0, 4, 1, 9]
    assert data.t[60_000:60_005].tolist() == [7, 2, 1, 0, 4]
    np.testing.assert_allclose(data.x[:60_000].mean() / 255, 0.1307, atol=5e-5)

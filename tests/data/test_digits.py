"""The digits in the package are UCI's."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from handgrad.data import digits


def test_digits_have_the_shapes_ranges_and_counts_of_the_uci_set() -> None:
    data = digits()
    assert data.x.shape == (1797, 64)
    assert data.x.dtype == np.uint8
    assert (data.x.min(), data.x.max()) == (0, 16)
    assert data.classes == tuple("0123456789")
    assert np.bincount(data.t).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert (data.task, data.test_rows) == ("classification", 0)


def test_digits_are_unchanged() -> None:
    """The file in the package is a binary, so that its contents are pinned here."""
    data = digits()
    content = hashlib.sha256(data.x.tobytes() + data.t.astype(np.uint8).tobytes()).hexdigest()
    assert content == "87ff0c9e40dc7e2c0e34e7257799c2e3f3aec1a016363bb11cad869ec428a826"


@pytest.mark.peers
def test_digits_are_those_of_scikit_learn() -> None:
    from sklearn.datasets import load_digits

    theirs, ours = load_digits(), digits()
    assert np.array_equal(ours.x, theirs.data)
    assert np.array_equal(ours.t, theirs.target)

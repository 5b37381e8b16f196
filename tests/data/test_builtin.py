"""The digits in the package are UCI's; generated sets are balanced, fixed by their seed, and on their curves."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np
import pytest

from handgrad.data import Dataset, digits, moons, spirals, xor
from handgrad.errors import DataError

every = pytest.mark.parametrize("make", [moons, spirals, xor])


@every
def test_classes_are_balanced_and_all_rows_made(make: Callable[..., Dataset]) -> None:
    data = make(rows=101)
    assert data.x.shape == (101, 2)
    assert data.x.dtype == np.float64
    assert np.bincount(data.t).tolist() == [51, 50]
    assert data.classes == ("0", "1")
    assert len(make()) == 1000


@every
def test_the_seed_fixes_the_points(make: Callable[..., Dataset]) -> None:
    assert np.array_equal(make(seed=2).x, make(seed=2).x)
    assert not np.array_equal(make(seed=2).x, make(seed=3).x)
    noise = {moons: 0.1, spirals: 0.03, xor: 0.1}[make]
    assert np.array_equal(make().x, make(rows=1000, noise=noise, seed=0).x)


@every
def test_noise_is_the_standard_deviation_added(make: Callable[..., Dataset]) -> None:
    added = make(rows=4000, noise=0.5).x - make(rows=4000, noise=0).x
    np.testing.assert_allclose(added.std(axis=0), 0.5, rtol=0.05)


def test_moons_without_noise_are_two_half_circles() -> None:
    data = moons(rows=60, noise=0)
    centres = np.array([[0, 0], [1, 0.5]])[data.t]
    np.testing.assert_allclose(np.hypot(*(data.x - centres).T), 1)
    assert data.x[data.t == 0, 1].min() >= 0
    assert data.x[data.t == 1, 1].max() <= 0.5


def test_spirals_without_noise_have_an_angle_that_grows_with_the_radius() -> None:
    data = spirals(rows=90, noise=0, arms=3)
    assert np.bincount(data.t).tolist() == [30, 30, 30]
    radius = np.hypot(*data.x.T)
    angle = 2 * np.pi * (1.5 * radius + data.t / 3)
    np.testing.assert_allclose(data.x, radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1))


def test_xor_is_class_1_where_the_signs_differ() -> None:
    data = xor(rows=200, noise=0)
    assert np.array_equal(data.t, data.x.prod(axis=1) < 0)
    assert set(map(tuple, np.sign(data.x).tolist())) == {(1, 1), (1, -1), (-1, 1), (-1, -1)}


@every
def test_too_few_rows_are_refused(make: Callable[..., Dataset]) -> None:
    with pytest.raises(DataError, match=f"{make.__name__}: rows is 1, and must be 2 or more"):
        make(rows=1)


@every
@pytest.mark.parametrize("noise", [-0.5, float("inf"), float("nan")])
def test_noise_out_of_range_is_refused(make: Callable[..., Dataset], noise: float) -> None:
    with pytest.raises(DataError, match=f"{make.__name__}: noise is {noise}, and must be 0 or more"):
        make(noise=noise)


def test_one_arm_is_refused() -> None:
    with pytest.raises(DataError, match="spirals: arms is 1, and must be 2 or more"):
        spirals(arms=1)


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

"""The named primitives: what NumPy cannot say in one pure expression."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handgrad.rules import PRIMITIVES, primitive
from handgrad.rules.primitives import (
    add_rows_at,
    block_diagonal,
    diagonal_blocks,
    normal_cdf,
    one_hot,
    rows,
    uniform,
)

GOLDEN = 0x9E3779B97F4A7C15
KEYS = st.tuples(*[st.integers(0, 2**62)] * 3)


def test_rows_join_all_axes_but_the_last() -> None:
    """The order of the rows is that of the axes."""
    v = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    np.testing.assert_array_equal(rows(v), np.arange(2 * 3 * 4 * 5).reshape(24, 5))
    np.testing.assert_array_equal(rows(v[0, 0]), v[0, 0])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_one_hot_has_a_one_at_each_class_and_none_for_a_number_that_is_no_class(dtype: str) -> None:
    """The classes and the type are those of the array it is made like."""
    found = one_hot(np.array([[2, 0], [-100, 3]]), np.zeros((2, 2, 3), dtype))
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, [[[0, 0, 1], [1, 0, 0]], [[0, 0, 0], [0, 0, 0]]])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_added_at_repeated_indices_add_up(dtype: str) -> None:
    """As a product with the one-hot matrix has it, for indices of any number of axes."""
    rng = np.random.default_rng(0)
    i, v = rng.integers(0, 3, (5, 4)), rng.normal(size=(5, 4, 2)).astype(dtype)
    table = np.zeros((3, 2), dtype)
    found = add_rows_at(i, v, table)
    expected = rows(one_hot(i, np.zeros((1, 3)))).T @ rows(v)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype == "float32" else 1e-14)
    assert not table.any()


@pytest.mark.parametrize("groups", [1, 3])
def test_diagonal_blocks_are_the_adjoint_of_block_diagonal(groups: int) -> None:
    """⟨block_diagonal(W), V⟩ = ⟨W, diagonal_blocks(V)⟩; what is outside of the blocks counts for neither."""
    rng = np.random.default_rng(0)
    W, V = rng.normal(size=(5, 2, 12)), rng.normal(size=(5 * groups * 2, 12))
    put = rows(block_diagonal(W, groups))
    assert put.shape == V.shape
    assert np.count_nonzero(put) == W.size
    assert np.sum(put * V) == pytest.approx(np.sum(rows(W) * diagonal_blocks(V, groups, 2)), rel=1e-12)


@given(key=KEYS, shape=st.lists(st.integers(0, 6), max_size=3).map(tuple))
def test_uniform_numbers_are_a_function_of_key_and_position(
    key: tuple[int, int, int], shape: tuple[int, ...]
) -> None:
    """The same key gives the same numbers, at the same positions of a longer array too."""
    found = uniform(shape, key)
    assert (found.shape, found.dtype) == (shape, np.float32)
    assert ((found >= 0) & (found < 1)).all()
    np.testing.assert_array_equal(found.ravel(), uniform((1000,), key)[: found.size])


@given(key=KEYS, place=st.integers(0, 2))
def test_uniform_numbers_change_with_every_part_of_the_key(key: tuple[int, int, int], place: int) -> None:
    """Another seed, step or stream shares no more numbers than chance has it."""
    other = tuple(part + (k == place) for k, part in enumerate(key))
    assert (uniform((100,), key) == uniform((100,), other)).sum() <= 1


def split_mix(state: int) -> int:
    """Return what SplitMix64 draws after ``state``, in whole numbers of any size, cut down to 64 bits."""
    z = (state + GOLDEN) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


@given(key=KEYS)
def test_uniform_numbers_are_those_of_split_mix(key: tuple[int, int, int]) -> None:
    """A mask drawn today is drawn again by every later version: its top 24 bits, counted on from the mixed key."""
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423]  # from the seed 1234567
    assert [split_mix(1234567 + GOLDEN * k) for k in range(3)] == published
    start = 0
    for part in key:
        start = split_mix(start + GOLDEN * part)
    expected = [split_mix(start + GOLDEN * position) >> 40 for position in range(6)]
    assert (uniform((2, 3), key).ravel() * 2**24).tolist() == expected


def test_uniform_numbers_are_even_and_unrelated() -> None:
    """Mean, variance, every sixteenth of [0, 1), and neighbours in position, step and stream."""
    draws = np.stack([uniform((2000,), (3, step, stream)) for step in range(10) for stream in range(5)])
    draws = draws.astype(np.float64)
    several = 5 / np.sqrt(draws.size)
    assert abs(draws.mean() - 0.5) < several * np.sqrt(1 / 12)
    assert abs(draws.var() - 1 / 12) < several * np.sqrt(1 / 180)
    shares = np.histogram(draws, 16, (0, 1))[0] / draws.size
    assert np.abs(shares - 1 / 16).max() < several * np.sqrt(1 / 16)
    for one, other in ((draws[:, 1:], draws[:, :-1]), (draws[5:], draws[:-5]), (draws[1:], draws[:-1])):
        assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < several


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normal_cdf_is_accurate_in_both_tails(dtype: str) -> None:
    """Against the C library's erfc, over all ranges of its approximations; e^-v²/2 costs v² roundings."""
    v = np.concatenate([np.linspace(-37, 9, 4001), [0.0, -0.46875 * 2**0.5, -4 * 2**0.5]]).astype(dtype)
    expected = np.array([math.erfc(-x / math.sqrt(2)) / 2 for x in v.tolist()])
    found = normal_cdf(v)
    assert found.dtype == dtype
    allowed = np.where(v < 0, 4 + v.astype(float) ** 2, 4) * np.finfo(np.float64).eps + np.finfo(dtype).eps
    normal = expected > np.finfo(dtype).tiny
    assert (np.abs(found - expected) <= allowed * expected)[normal].all()
    assert (found[~normal] <= np.finfo(dtype).tiny).all()


def test_normal_cdf_of_infinities() -> None:
    """Nothing lies below -∞ and everything below ∞."""
    np.testing.assert_array_equal(normal_cdf(np.array([-np.inf, -1e300, 1e300, np.inf])), [0, 0, 1, 1])


def test_a_primitive_of_ones_own_can_be_read_by_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """The decorator makes it known by its name."""
    monkeypatch.setitem(PRIMITIVES, "thrice", None)

    @primitive
    def thrice(v: np.ndarray) -> np.ndarray:
        return 3 * v

    assert PRIMITIVES["thrice"] is thrice

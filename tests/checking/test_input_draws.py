"""Other inputs like the ones at hand stay what they are: whole, of one sign, shares, symmetric, where forward is finite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from handgrad import CheckError
from handgrad.checking.input_draws import fresh, jittered, perturb_off_kinks, shorter
from handgrad.checking.subject import Subject

RNG = np.random.default_rng(2)
SQUARE = RNG.normal(size=(4, 4))
SHARES = RNG.dirichlet(np.ones(3), 5)

INPUTS = {
    "signs": RNG.normal(size=(5, 3)),
    "positive": RNG.uniform(0.5, 9.0, size=(5, 3)),
    "fractions": RNG.uniform(0.9, 1.0, size=7),
    "shares": SHARES,
    "shares of columns": SHARES.T,
    "symmetric": SQUARE + SQUARE.T,
    "whole": np.array([3.0, -1.0, 0.0]),
    "indices": np.array([2, 0, 1]),
    "single": np.float32(RNG.normal(size=6)),
    "empty": np.zeros((0, 2)),
}


@pytest.mark.parametrize("size", [1.0, 0.01])
def test_jittered_inputs_stay_in_their_domain(size: float) -> None:
    """And are others, but for what only makes sense as it is."""
    moved = jittered(INPUTS, np.random.default_rng(0), size)
    assert {name: (v.shape, v.dtype) for name, v in moved.items()} == {
        name: (v.shape, v.dtype) for name, v in INPUTS.items()
    }
    for name in ("whole", "indices", "empty"):
        np.testing.assert_array_equal(moved[name], INPUTS[name])
    for name in ("signs", "positive", "fractions", "shares", "symmetric", "single"):
        away = np.abs(moved[name] - INPUTS[name])
        assert 0 < np.median(away) < size * np.median(np.abs(INPUTS[name]))
    assert np.all(moved["positive"] > 0)
    assert np.all((moved["fractions"] > 0) & (moved["fractions"] < 1))
    np.testing.assert_allclose(moved["shares"].sum(axis=1), 1)
    np.testing.assert_allclose(moved["shares of columns"].sum(axis=0), 1)
    np.testing.assert_array_equal(moved["symmetric"], moved["symmetric"].T)


def test_beside_the_inputs_is_a_thousandth_away_and_off_every_kink() -> None:
    """Zeros move as far as a typical number does; the largest does not grow; and what is not asked about stays."""
    given = {"x": np.array([0.0, 1.0, -1.0, 4.0, 4.0]), "t": np.array([1.0, 2.0])}
    subject = Subject.of(lambda x, t: x.sum() * t, lambda g, x, t: {"x": x}, given)
    moved = perturb_off_kinks(subject, given, ("x",), np.random.default_rng(0))
    np.testing.assert_array_equal(moved["t"], given["t"])
    away = np.abs(moved["x"] - given["x"])
    assert np.all(away > 0)
    assert np.all(away < 0.02)
    assert np.all(np.abs(moved["x"][3:]) < 4)
    assert np.unique(np.abs(moved["x"])).size == 5


def test_beside_the_end_of_a_domain_is_the_side_that_it_has() -> None:
    """The square root at 0 has one; a function that is finite at these inputs alone has none."""
    x = np.array([1.0, 0.0])
    for forward, moves in ((np.sqrt, True), (lambda v: np.where(v == x, v, np.nan), False)):
        subject = Subject.of(forward, lambda g, x: {"x": g}, {"x": x})
        moved = perturb_off_kinks(subject, {"x": x}, ("x",), np.random.default_rng(3))["x"]
        assert np.all(np.isfinite(forward(moved)))
        assert bool(np.all(moved != x)) == moves


def test_fresh_inputs_are_finite_ones() -> None:
    """Moved by less and less, until forward is finite; drawn anew, where that is possible, in the same sizes."""
    x = np.array([0.05, 2.5, -0.05])

    def narrow(x: Any) -> Any:
        return np.log(0.1 - np.abs(x[::2])) + np.log(np.abs(x[1]))

    subject = Subject.of(narrow, lambda g, x: {"x": g}, {"x": x})
    for seed in range(20):
        found = fresh({"x": x}, subject, np.random.default_rng(seed))["x"]
        assert np.all(np.isfinite(narrow(found)))
        assert np.all(found != x)
    sizes = iter([(4,), (3,)])
    drawn = fresh(lambda generator: {"x": np.full(next(sizes), 0.01)}, subject, np.random.default_rng(0))
    np.testing.assert_array_equal(drawn["x"], np.full(3, 0.01))
    with pytest.raises(CheckError, match="no other inputs"):
        fresh(lambda generator: {"x": np.full(3, 0.1)}, subject, np.random.default_rng(0))


def test_shorter_inputs_have_a_row_or_a_length_less() -> None:
    """Of the first axis, then wherever the length stands; rows of shares add up to 1 again."""
    given = {"x": INPUTS["signs"], "t": SHARES, "W": np.ones((3, 5))}
    rows, everywhere = shorter(given, 5)
    assert [v.shape for v in rows.values()] == [(4, 3), (4, 3), (3, 5)]
    assert [v.shape for v in everywhere.values()] == [(4, 3), (4, 3), (3, 4)]
    np.testing.assert_array_equal(rows["x"], given["x"][:4])
    _, classes = shorter(given, 3)
    assert [v.shape for v in classes.values()] == [(5, 2), (5, 2), (2, 5)]
    np.testing.assert_allclose(classes["t"].sum(axis=1), 1)
    np.testing.assert_allclose(classes["t"][:, 0] / classes["t"][:, 1], SHARES[:, 0] / SHARES[:, 1])
    np.testing.assert_allclose(list(shorter({"q": SHARES[0]}, 3))[-1]["q"], classes["t"][0])
    np.testing.assert_allclose(list(shorter({"q": SHARES[:, None]}, 3))[-1]["q"], classes["t"][:, None])
    last = {"t": np.eye(3)[[2, 0]]}
    np.testing.assert_array_equal(list(shorter(last, 3))[-1]["t"], [[1, 0], [1, 0]])

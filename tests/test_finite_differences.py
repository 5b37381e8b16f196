"""Numerical derivatives: what they are, how well they are known, and what is allowed at a kink."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from handgrad.finite_differences import NumericalJacobian, directional_derivatives, numerical_jacobian

SMOOTH: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], list[float]]] = {
    "polynomial": (lambda x: x**3 - 2 * x, lambda x: 3 * x**2 - 2, [0.0, 1e-3, 1.0, -7.0, 1e4]),
    "tanh": (np.tanh, lambda x: 1 - np.tanh(x) ** 2, [0.0, 0.5, -2.0, 12.0]),
    "exp": (np.exp, np.exp, [-30.0, 0.0, 5.0]),
    "log": (np.log, lambda x: 1 / x, [1e-8, 1e-3, 1.0, 1e5]),
    "sqrt": (np.sqrt, lambda x: 0.5 / np.sqrt(x), [1e-6, 0.2, 9.0]),
    "sine of a large number": (lambda x: np.sin(x), np.cos, [1e3, 1e5]),
    "pole nearby": (lambda x: 1 / (x - 1), lambda x: -1 / (x - 1) ** 2, [1.001, 0.999]),
}


@pytest.mark.parametrize("dtype", [np.float64, np.longdouble])
@pytest.mark.parametrize("name", SMOOTH)
def test_slopes_are_right_within_their_error_bounds(name: str, dtype: type) -> None:
    """Whatever the scale; and the error bounds are narrow enough to judge by."""
    function, derivative, places = SMOOTH[name]
    x = np.array(places, dtype)
    found = numerical_jacobian(function, x)
    expected = np.diag(derivative(x))
    off = np.abs(found.low - expected)
    assert np.all(off <= 8 * found.error + 1e-15 * np.abs(expected)), (off, found.error)
    assert np.all(np.diag(found.error) <= 1e-6 * np.abs(np.diag(expected)).max())
    np.testing.assert_array_equal(found.low, found.high)
    assert not found.kinks.any()


def test_some_coordinates_may_be_asked_for() -> None:
    """In the order of the question."""
    found = numerical_jacobian(
        lambda x: np.array([(x * [[1, 2], [3, 4]]).sum()]), np.ones((2, 2)), [(1, 0), (0, 1)]
    )
    np.testing.assert_allclose(found.low, [[3, 2]], rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.longdouble])
def test_a_kink_has_two_slopes_and_allows_what_is_between(dtype: type) -> None:
    """At zero of relu, of the absolute value, and where two entries tie for the maximum."""
    found = numerical_jacobian(
        lambda x: np.array([np.maximum(x[0], 0), np.abs(x[1]), np.max(x[2:])]), np.array([0, 0, 1, 1], dtype)
    )
    np.testing.assert_allclose(found.low, [[0, 0, 0, 0], [0, -1, 0, 0], [0, 0, 0, 0]], atol=1e-6)
    np.testing.assert_allclose(found.high, [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1]], atol=1e-6)
    assert found.kinks.tolist() == [True] * 4
    low, high, error = found.allowed(np.array([-2.0, 1.0, 3.0]))
    np.testing.assert_allclose(low, [-2, -1, 0, 0], atol=1e-6)
    np.testing.assert_allclose(high, [0, 1, 3, 3], atol=1e-6)
    assert np.all(error < 1e-6)


def test_a_kink_beside_the_place_is_none() -> None:
    """The step is made small enough to stay on one side."""
    found = numerical_jacobian(lambda x: np.maximum(x, 0), np.array([1e-4, -1e-5, 3.0]))
    np.testing.assert_allclose(found.low, np.diag([1.0, 0, 1]), atol=1e-6)
    np.testing.assert_allclose(found.high, np.diag([1.0, 0, 1]), atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.longdouble])
def test_a_slope_with_a_kink_is_within_its_error_bound(dtype: type) -> None:
    """Where the second derivative jumps, as ELU's does at 0, differences converge more slowly."""

    def elu(x: Any) -> Any:
        return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))

    found = numerical_jacobian(elu, np.array([0.0, 1.0, -1.0], dtype))
    assert np.all(np.abs(np.diag(found.low) - [1, 1, np.exp(-1)]) <= 8 * np.diag(found.error))


def test_where_a_function_ends_only_small_steps_are_taken() -> None:
    """The square root just above 0; and at 0 itself there is no slope to be had."""
    found = numerical_jacobian(np.sqrt, np.array([1e-9, 1.0]))
    np.testing.assert_allclose(np.diag(found.low), 0.5 / np.sqrt([1e-9, 1.0]), rtol=1e-6)
    assert np.isinf(numerical_jacobian(np.sqrt, np.array([0.0])).error).all()


def test_a_rough_function_has_wide_error_bounds() -> None:
    """Waves much shorter than every step leave the slope unknown, and the error bound says so."""
    found = numerical_jacobian(lambda x: np.sin(x) + 1e-3 * np.sin(1e15 * x), np.array([1.0]))
    assert float(found.error[0, 0]) > 1e-2


@pytest.mark.parametrize("factor", [1.0, 2.7])
def test_float32_inside_is_seen(factor: float) -> None:
    """Outputs that stand still until the inputs move by 1e-7 have few digits, whatever their type says."""

    def narrow(x: Any) -> Any:
        return factor * np.tanh(x.astype(np.float32)).astype(np.float64)

    x = np.linspace(-4, 4, 9) + 0.1
    found = numerical_jacobian(narrow, x)
    off = np.abs(np.diag(found.low) - factor * (1 - np.tanh(x) ** 2))
    assert np.all(off <= 8 * np.diag(found.error))
    assert np.all(np.diag(found.error) <= 1e-3)


def test_directions_are_sums_of_coordinates() -> None:
    """Every output along every direction, at a place of any shape."""
    rng = np.random.default_rng(0)
    x, W, directions = rng.normal(size=(2, 3)), rng.normal(size=(3, 4)), rng.normal(size=(5, 2, 3))
    found = directional_derivatives(lambda v: np.tanh(v @ W).ravel(), x, directions)
    assert found.low.shape == (8, 5)
    slope = 1 - np.tanh(x @ W) ** 2
    expected = np.stack([(slope * (v @ W)).ravel() for v in directions], axis=1)
    np.testing.assert_allclose(found.low, expected, rtol=1e-8)


def test_nothing_to_move_is_no_slope() -> None:
    """An empty argument."""
    found = numerical_jacobian(lambda x: np.ones(3), np.zeros((0, 2)))
    assert found.low.shape == (3, 0)


def test_allowed_adds_the_size_of_what_cancels() -> None:
    """Magnitudes add up though the slopes cancel, and every error counts."""
    found = NumericalJacobian(
        np.array([[1.0], [-1.0]]), np.array([[1.0], [-1.0]]), np.array([[1e-3], [2e-3]])
    )
    low, high, error = found.allowed(np.array([1.0, 1.0]))
    assert (float(low[0]), float(high[0])) == (0, 0)
    assert float(error[0]) == pytest.approx(3e-3)
    assert found.magnitude(np.array([1.0, 1.0])).tolist() == [2]

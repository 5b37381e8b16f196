"""What a loss makes of its targets and weights, and what an optimiser makes of a gradient: constant rules."""

from __future__ import annotations

import numpy as np
import pytest

from handgrad import rules
from handgrad.rules import RULES, Rule

DTYPES = pytest.mark.parametrize("dtype", ["float32", "float64"])


@DTYPES
def test_class_numbers_become_shares(dtype: str) -> None:
    """Each row has all of its share at its class; an ignored class number has none."""
    q = rules.one_hot_targets(np.array([[1], [-100]]), np.zeros((2, 1, 3), dtype))
    assert q.dtype == dtype
    np.testing.assert_array_equal(q, [[[0, 1, 0]], [[0, 0, 0]]])


@DTYPES
def test_smoothing_moves_a_share_to_all_classes(dtype: str) -> None:
    """(1 - smoothing) q + smoothing / C still adds up to 1."""
    smooth = rules.smoothed_targets(np.array([[0.0, 1.0, 0.0, 0.0]], dtype), smoothing=0.2)
    assert smooth.dtype == dtype
    np.testing.assert_allclose(smooth, [[0.05, 0.85, 0.05, 0.05]], rtol=1e-6)


@DTYPES
def test_smoothing_moves_an_answer_towards_the_other(dtype: str) -> None:
    """(1 - smoothing) t + smoothing / 2: a yes and a no still add up to 1."""
    smooth = rules.smoothed_answers(np.array([[0.0, 1.0], [0.5, 0.0]], dtype), smoothing=0.2)
    assert smooth.dtype == dtype
    np.testing.assert_allclose(smooth, [[0.1, 0.9], [0.5, 0.1]], rtol=1e-6)


@DTYPES
def test_targets_are_standardised(dtype: str) -> None:
    """(t - t_mean) / t_deviation, by output."""
    mean, deviation = np.array([3, -1], dtype), np.array([2, 0.5], dtype)
    s = rules.standardised_targets(np.array([[5.0, -1], [3, 0]], dtype), mean, deviation)
    assert s.dtype == dtype
    np.testing.assert_array_equal(s, [[1, 0], [0, 2]])


@DTYPES
def test_rows_are_counted(dtype: str) -> None:
    """Every row once; not those whose target is ignored; each as often as its class."""
    w = rules.every_row(np.zeros((3, 2, 5), dtype))
    np.testing.assert_array_equal(w, np.ones((3, 2), dtype))
    np.testing.assert_array_equal(rules.every_row(np.zeros((3, 1), dtype)), np.ones(3, dtype))
    counted = rules.counted_rows(np.array([2, -1, 0]), np.array([3, 5, 7], dtype), ignored=-1)
    np.testing.assert_array_equal(counted, np.array([3, 0, 7], dtype))
    v = rules.class_weighted_rows(counted, np.eye(3, dtype=dtype), np.array([0.5, 2, 4], dtype))
    np.testing.assert_array_equal(v, np.array([1.5, 0, 28], dtype))
    assert w.dtype == counted.dtype == v.dtype == dtype


@DTYPES
def test_gradients_are_clipped_and_decayed(dtype: str) -> None:
    """The norm is brought down to its most, never up; decay adds weight_decay · W."""
    g = np.array([3.0, -4.0], dtype)
    squares = rules.squared_norm(g)
    scale = rules.clip_scale(squares, max_norm=2.0)
    assert squares == 25
    assert squares.dtype == scale.dtype == dtype
    np.testing.assert_allclose(rules.clipped_gradient(g, scale), [1.2, -1.6], rtol=1e-6)
    assert rules.clip_scale(squares, max_norm=6.0) == 1
    decayed = rules.decayed_gradient(g, np.array([10.0, 20.0], dtype), weight_decay=0.1)
    np.testing.assert_allclose(decayed, [4, -2], rtol=1e-6)
    assert decayed.dtype == dtype


@pytest.mark.parametrize(
    "constant", [rule for rule in RULES.values() if rule.constant], ids=lambda rule: rule.name
)
def test_nothing_flows_back_through_a_constant_rule(constant: Rule) -> None:
    """No argument of a constant rule has a gradient."""
    assert constant.differentiable == ()

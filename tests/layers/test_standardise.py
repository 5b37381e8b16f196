"""The mean and the deviation that a network standardises its input by."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from handgrad import Linear, MeanSquaredError, Network, Standardise
from handgrad.layers.initialisers import common_statistics, feature_statistics

Statistics = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]

ROWS = 20_000  # more than are taken at a time


@pytest.mark.parametrize("shape", [(ROWS, 3), (ROWS // 4, 4, 3)], ids=["rank2", "rank3"])
def test_statistics_are_those_of_numpy(shape: tuple[int, ...]) -> None:
    """Over all rows, whatever part of them is taken at a time: by feature, or of all numbers together."""
    x = np.random.default_rng(0).normal([5, -100, 0.01], [1, 20, 0.001], shape).astype(np.float32)
    rows = x.reshape(-1, 3).astype(np.float64)
    mean, deviation = feature_statistics(x)
    np.testing.assert_allclose(mean, rows.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(deviation, rows.std(axis=0), rtol=1e-6)
    mean, deviation = common_statistics(x)
    np.testing.assert_allclose(mean, [rows.mean()] * 3, rtol=1e-6)
    np.testing.assert_allclose(deviation, [rows.std()] * 3, rtol=1e-6)


@pytest.mark.parametrize("value", [0.0, 0.1, 3.3, 1_000_000.1, -7])
@pytest.mark.parametrize("statistics", [feature_statistics, common_statistics])
def test_a_constant_has_deviation_1(statistics: Statistics, value: float) -> None:
    """Exactly, though the mean of equal numbers is rounded and their variance then not 0."""
    for rows in (1, 3, 7, 10, 100, 12_345):
        mean, deviation = statistics(np.full((rows, 2), value))
        np.testing.assert_allclose(mean, [value, value], rtol=1e-12)
        np.testing.assert_array_equal(deviation, [1, 1])


@pytest.mark.parametrize("over", ["feature", "all"])
def test_a_fitted_network_gives_its_first_layer_standard_rows(over: str) -> None:
    """The training rows have mean 0 and deviation 1, each feature by itself or all together."""
    x = np.random.default_rng(0).normal([5, -100], [1, 20], (50, 2))
    network = Network(Standardise(over), Linear(2, 2), inputs=2, loss=MeanSquaredError(), dtype="float64")
    network.parameters["W1"][...] = np.eye(2)
    network.standardise(x, np.arange(40))
    rows = network.output(x)[:40]
    axis = 0 if over == "feature" else None
    np.testing.assert_allclose(rows.mean(axis=axis), 0, atol=1e-12)
    np.testing.assert_allclose(rows.std(axis=axis), 1, rtol=1e-12)

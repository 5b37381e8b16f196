"""The mean and the deviation that a network standardises its input, and its targets, by."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from handgrad import (
    Adam,
    HalfSquaredError,
    Huber,
    Layer,
    Linear,
    Loss,
    MeanSquaredError,
    Network,
    Poisson,
    ReLU,
    SoftmaxCrossEntropy,
    Standardise,
    StandardiseTargets,
    Tanh,
    train,
)  # fmt: skip
from handgrad.errors import ConfigurationError
from handgrad.layers.initialisers import common_statistics, feature_statistics, input_statistics

Statistics = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]

ROWS = 20_000  # more than are taken at a time


@pytest.mark.parametrize("shape", [(ROWS, 3), (ROWS // 4, 4, 3)], ids=["rank2", "rank3"])
@pytest.mark.parametrize("by_feature", [feature_statistics, input_statistics])
def test_statistics_are_those_of_numpy(shape: tuple[int, ...], by_feature: Statistics) -> None:
    """Over all rows, whatever part of them is taken at a time: by feature, or of all numbers together."""
    x = np.random.default_rng(0).normal([5, -100, 0.01], [1, 20, 0.001], shape).astype(np.float32)
    rows = x.reshape(-1, 3).astype(np.float64)
    mean, deviation = by_feature(x)
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


def test_a_feature_of_nothing_but_0_and_1_stays_as_it_is() -> None:
    """One that also holds another number, in the last of 5,000 rows, is standardised; so is one of -1 and 1."""
    x = np.random.default_rng(0).integers(0, 2, (5000, 4)).astype(float)
    x[:, 0] *= 3
    x[-1, 2] = 0.5
    x[:, 3] = 2 * x[:, 3] - 1
    mean, deviation = input_statistics(x)
    np.testing.assert_allclose(mean, [x[:, 0].mean(), 0, x[:, 2].mean(), x[:, 3].mean()])
    np.testing.assert_allclose(deviation, [x[:, 0].std(), 1, x[:, 2].std(), x[:, 3].std()])
    assert feature_statistics(x)[1][1] < 0.6


@pytest.mark.parametrize("value", [0.1, 3.3, -7])
def test_a_constant_input_is_0_after_the_layer(value: float) -> None:
    mean, deviation = input_statistics(np.full((3000, 2), value))
    np.testing.assert_allclose(mean, [value, value], rtol=1e-12)
    np.testing.assert_array_equal(deviation, [1, 1])


@pytest.mark.parametrize("over", ["feature", "all"])
def test_a_fitted_network_gives_its_first_layer_standard_rows(over: str) -> None:
    """The training rows have mean 0 and deviation 1, each feature by itself or all together."""
    x = np.random.default_rng(0).normal([5, -100], [1, 20], (50, 2))
    network = Network(Standardise(over), Linear(2, 2), inputs=2, loss=MeanSquaredError(), dtype="float64")
    network.parameters["W1"][...] = np.eye(2)
    network.standardise(x, rows=np.arange(40))
    rows = network.output(x)[:40]
    axis = 0 if over == "feature" else None
    np.testing.assert_allclose(rows.mean(axis=axis), 0, atol=1e-12)
    np.testing.assert_allclose(rows.std(axis=axis), 1, rtol=1e-12)


@pytest.mark.parametrize("loss", [HalfSquaredError(), MeanSquaredError(), Huber(0.5)], ids=repr)
def test_standardised_targets_are_undone_in_predictions(loss: Loss) -> None:
    """The loss is of standard targets, by output; where what comes in is 0, the training rows' means come out."""
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=(50, 3)), rng.normal([5e5, -2], [1e5, 0.1], (50, 2))
    linear = Linear(3, 2, initialiser="zeros")
    network = Network(linear, StandardiseTargets(), loss=loss, dtype="float64")
    network.standardise(x, t, rows=np.arange(40))
    kept = t[:40]
    for given in (network.predict(x), network.output(x)):
        np.testing.assert_allclose(given, np.broadcast_to(kept.mean(axis=0), t.shape), rtol=1e-12)
    standard = (t - kept.mean(axis=0)) / kept.std(axis=0)
    expected = Network(linear, loss=loss, dtype="float64").gradients(x, standard)
    gradients = network.gradients(x, t)
    for name in ("W1", "b1"):
        np.testing.assert_allclose(gradients[name], expected[name], rtol=1e-9, atol=1e-12)


def test_standardised_targets_are_learned_in_any_unit() -> None:
    """The same network learns prices around 5e5 as it learns them divided by 1e5: weights, predictions and scores."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(200, 3))
    t = 5 + x @ [1.0, -2.0, 0.5]

    def trained(unit: float) -> tuple[Network, float]:
        layers = (Linear(3, 8), Tanh(), Linear(8, 1), StandardiseTargets())
        network = Network(*layers, loss=MeanSquaredError(), dtype="float64")
        history = train(network, x, unit * t, epochs=20, validation=0.2, optimiser=Adam(0.02))
        return network, history.epochs[-1].validation_metric or 0.0

    one, score = trained(1.0)
    other, other_score = trained(1e5)
    np.testing.assert_allclose(other.parameters["W1"], one.parameters["W1"], rtol=1e-6)
    np.testing.assert_allclose(other.predict(x), 1e5 * one.predict(x), rtol=1e-6)
    assert other_score == pytest.approx(score, rel=1e-6)
    assert score > 0.5


def test_standardised_targets_are_saved(tmp_path: Path) -> None:
    """With their statistics."""
    network = Network(Linear(3, 1), StandardiseTargets(), loss=Huber(0.5))
    network.standardise(np.zeros((4, 3)), np.array([[1.0], [2], [3], [6]]))
    network.save(tmp_path / "network.safetensors")
    loaded = Network.load(tmp_path / "network.safetensors")
    assert repr(loaded) == repr(network)
    np.testing.assert_array_equal(loaded.states["t_mean1"], [3])
    np.testing.assert_array_equal(loaded.predict(np.ones((2, 3))), network.predict(np.ones((2, 3))))


@pytest.mark.parametrize(
    ("layers", "loss", "problem"),
    [
        ([StandardiseTargets(), ReLU()], MeanSquaredError(), "StandardiseTargets has layers after it"),
        ([StandardiseTargets()], Poisson(), "Poisson(): StandardiseTargets would make other numbers"),
        ([StandardiseTargets()], SoftmaxCrossEntropy(), "SoftmaxCrossEntropy(): StandardiseTargets would"),
    ],
)
def test_standardised_targets_are_refused(layers: list[Layer], loss: Loss, problem: str) -> None:
    """Where the layer is not the last, and where targets are no values on a line."""
    with pytest.raises(ConfigurationError, match=re.escape(problem)):
        Network(Linear(3, 2), *layers, loss=loss)

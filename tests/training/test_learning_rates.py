"""The range test that finds a learning rate, and the rate that a divergence advises."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from handgrad import (
    SGD,
    Adam,
    BatchNorm,
    ConfigurationError,
    Dropout,
    HandgradError,
    Linear,
    MeanSquaredError,
    Network,
    Optimiser,
    ReLU,
    SoftmaxCrossEntropy,
    Standardise,
    TrainingError,
    train,
)
from handgrad.data import moons
from handgrad.training import RangeTest, find_learning_rate
from handgrad.training.learning_rates import Trial, training_program
from handgrad.training.rows import Subset

from ..conftest import EACH_ENGINE

X = np.random.default_rng(0).normal(3, 2, size=(200, 6))
T = X[:, :2] - X[:, 2:4]


def network(**more: Any) -> Network:
    layers = [Standardise(), Linear(6, 12), BatchNorm(), ReLU(), Dropout(0.1), Linear(12, 2)]
    return Network(*layers, loss=MeanSquaredError(), **more)


def test_the_network_stays_as_it_is_and_the_seed_decides_the_rate() -> None:
    made = network()
    before = {name: array.tobytes() for name, array in made.arrays.items()}
    first, same, other = (find_learning_rate(made, X, T, seed=seed) for seed in (0, 0, 1))
    assert {name: array.tobytes() for name, array in made.arrays.items()} == before
    np.testing.assert_array_equal(first.losses, same.losses)
    assert first.learning_rate == same.learning_rate
    assert not np.array_equal(first.losses[:20], other.losses[:20])


def test_rows_by_number_are_those_alone_and_a_micro_batch_changes_rounding_only() -> None:
    """So that a large file is not copied, and a batch that fits the memory in parts is not computed at once."""
    made, some = (
        Network(Linear(6, 12), ReLU(), Linear(12, 2), loss=MeanSquaredError(), dtype="float64"),
        np.arange(7, 150),
    )
    alone = find_learning_rate(made, X[some], T[some], batch_size=20)
    by_number = find_learning_rate(made, X, T, rows=some, batch_size=20)
    np.testing.assert_array_equal(alone.losses, by_number.losses)
    in_parts = find_learning_rate(made, X, T, rows=some, batch_size=20, micro_batch=8)
    assert not np.array_equal(alone.losses, in_parts.losses)
    np.testing.assert_allclose(alone.losses[:100], in_parts.losses[:100], rtol=1e-10)
    with pytest.raises(HandgradError, match="devices"):
        find_learning_rate(made, X, T, devices=2)


@pytest.mark.parametrize("engine", EACH_ENGINE)
def test_the_losses_are_those_of_a_training_at_these_rates(engine: str) -> None:
    """Each batch's loss before its step; the smoothed ones are a mean of those so far; it ends where they grow."""
    found = find_learning_rate(network(dtype="float64"), X, T, engine=engine, batch_size=30)
    steps, seen = len(found.rates), []

    class Rates:
        def rates(self, learning_rate: float, epochs: int, steps_of_epoch: int) -> Any:
            return np.geomspace(1e-6, 10, 150)[: epochs * steps_of_epoch]

    def look(record: Any) -> None:
        seen.append(record.loss)

    from handgrad.training import training_run

    made = network(dtype="float64")
    epochs = steps // 7
    run: Any = training_run.train.__wrapped__  # the schedule is no `Schedule`
    run(made, X, T, epochs=epochs, batch_size=30, engine=engine, schedule=Rates(), after_batch=look)
    np.testing.assert_allclose(found.losses[: 7 * epochs], seen, rtol=1e-6)
    np.testing.assert_array_equal(found.rates, np.geomspace(1e-6, 10, 150)[:steps])
    weights = 0.9 ** np.arange(steps)[::-1]
    assert found.smooth[-1] == pytest.approx((weights * found.losses).sum() / weights.sum())
    assert steps == 150 or found.smooth[-1] > 4 * found.smooth.min() >= found.smooth[:-1].max() / 1e9
    assert found.learning_rate == pytest.approx(found.rates[found.smooth.argmin()] / 10, rel=5e-3)


@pytest.mark.parametrize("optimiser", [Adam(), SGD(), SGD(momentum=0.9)])
def test_training_at_the_rate_found_is_no_worse_than_most(optimiser: Optimiser) -> None:
    """Of rates a factor ten apart, at most one does better."""
    rows = moons()

    def loss(rate: float) -> float:
        made = Network(Standardise(), Linear(2, 24), ReLU(), Linear(24, 2), loss=SoftmaxCrossEntropy())
        kind = type(optimiser)
        more = {"momentum": optimiser.momentum} if isinstance(optimiser, SGD) else {}
        history = train(made, rows.x, rows.t, epochs=12, optimiser=kind(rate, **more), validation=0.3)
        return min(record.validation_loss or 9.0 for record in history.epochs)

    made = Network(Standardise(), Linear(2, 24), ReLU(), Linear(24, 2), loss=SoftmaxCrossEntropy())
    found = find_learning_rate(made, rows.x, rows.t, optimiser=optimiser)
    others = [loss(10.0**k) for k in (-5, -4, -3, -2, -1)]
    assert sum(other < loss(found.learning_rate) for other in others) <= 1


def test_an_unknown_engine_is_an_error() -> None:
    made = Network(Linear(2, 3), loss=SoftmaxCrossEntropy())
    with pytest.raises(ConfigurationError, match=r"no engine is called 'compild'\n.*did you mean 'compiled'"):
        find_learning_rate(made, np.eye(2), np.array([0, 1]), engine="compild")


def test_a_loss_that_never_falls_is_an_error() -> None:
    """With the inputs at 1e25, the first step at any rate is too long."""
    made = Network(Linear(6, 12), ReLU(), Linear(12, 2), loss=MeanSquaredError())
    with pytest.raises(
        TrainingError, match="find_learning_rate: the loss falls at no learning rate from 1e-06 to 10"
    ):
        find_learning_rate(made, 1e25 * X, T)


def test_the_picture_is_written(tmp_path: Path) -> None:
    found = find_learning_rate(network(), X, T)
    found.plot(tmp_path / "found.png", title="a network")
    assert (tmp_path / "found.png").read_bytes().startswith(b"\x89PNG")
    assert str(found).startswith(f"learning rate {found.learning_rate:g}, found by a range test of ")
    never_falling = RangeTest(
        0.1, found.rates, -found.losses, -found.smooth
    )  # a loss below zero is drawn too
    never_falling.plot(tmp_path / "below.png")


def test_the_largest_finite_rate_is_finite_and_little_more_is_not() -> None:
    """From the network's weights, which stay as they are; of 1, 2, 5, 10 and so on."""
    made = Network(Linear(6, 12), ReLU(), Linear(12, 2), loss=MeanSquaredError())
    rows = Subset({"x": X, "t": T}, np.arange(len(X)))
    initial = {name: array.copy() for name, array in made.parameters.items()}

    def largest_finite_rate(below: float) -> float | None:
        trial = Trial(made, training_program(made, SGD(), rows, 32), rows, 32, 0, "compiled")
        return trial.largest_finite_rate(below, 20)

    found = largest_finite_rate(1e6)
    assert found is not None
    assert all(np.array_equal(initial[name], array) for name, array in made.parameters.items())

    def losses(rate: float) -> list[float]:
        for name, array in made.parameters.items():
            array[...] = initial[name]
        return [record.loss for record in train(made, X, T, epochs=8, optimiser=SGD(rate)).epochs]

    assert losses(found)[-1] <= losses(found)[0]
    with pytest.raises(TrainingError):
        losses(10 * found)
    for array in made.parameters.values():
        array[...] = np.nan
    assert largest_finite_rate(1e-9) is None

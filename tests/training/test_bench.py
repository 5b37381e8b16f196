"""Timing engines from Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from handgrad import (
    SGD,
    BatchNorm,
    ConfigurationError,
    DataError,
    Dropout,
    Linear,
    Network,
    ReLU,
    ShapeError,
    SoftmaxCrossEntropy,
    Standardise,
    TrainingError,
)
from handgrad.engines import ENGINES, Epoch, ReferenceEngine, UnsupportedLineError
from handgrad.engines.reference import BoundReference
from handgrad.training import measure_engines

ROWS = 70
RNG = np.random.default_rng(0)
BOTH = ["compiled", "reference"]
"""The engines that need no optional package."""
X, T = RNG.normal(2, 3, size=(ROWS, 5)), RNG.integers(0, 3, ROWS)


def network() -> Network:
    layers = [Standardise(), Linear(5, 7), BatchNorm(), ReLU(), Dropout(0.3), Linear(7, 3)]
    return Network(*layers, loss=SoftmaxCrossEntropy(), inputs=5)


def test_the_network_stays_as_it_is() -> None:
    """Weights, running statistics and the standardisation; the engines train copies."""
    timed = network()
    before = {name: array.copy() for name, array in timed.arrays.items()}
    measure_engines(timed, X, T, batch_size=16, seconds=0.02)
    assert all(np.array_equal(array, before[name]) for name, array in timed.arrays.items())


def test_every_engine_has_its_turns_one_after_the_other() -> None:
    """Interleaved, so that what slows the machine down slows all of them; progress rises from 0."""
    told: list[tuple[str, float]] = []
    times = measure_engines(
        network(), X, T, engines=BOTH, seconds=0.02, progress=lambda *step: told.append(step)
    )
    assert [each.engine for each in times] == BOTH
    turns = [name for name, _ in told[len(BOTH) :]]
    assert turns == BOTH * (len(turns) // len(BOTH))
    assert {share for _, share in told[: len(BOTH)]} == {0}  # while each is made ready
    np.testing.assert_allclose([share for _, share in told[len(BOTH) :]], np.arange(len(turns)) / len(turns))


def test_numbers_follow_from_one_another() -> None:
    times = measure_engines(network(), X, T, batch_size=20, engines=BOTH, seconds=0.02)
    steps = [each.step_seconds for each in times]
    for each in times:
        assert each.step_seconds is not None
        assert each.ratio == each.step_seconds / min(filter(None, steps))
        assert each.rows_per_second == 20 / each.step_seconds
        assert each.startup_seconds > 0
        assert each.spread is not None
        assert each.spread >= 1
        assert each.facts["engine"] == each.engine
        assert not each.problem


def test_every_step_is_of_a_whole_batch_of_rows_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step is a step: 70 rows are three batches of 20, each with its learning rate."""
    seen: list[Epoch] = []

    class Watched(BoundReference):
        def epoch(self, epoch: Epoch, progress: Any = None) -> tuple[float, float]:
            seen.append(epoch)
            return super().epoch(epoch, progress)

    class Watching(ReferenceEngine):
        def bind(self, program: Any, arrays: Any) -> Watched:
            return Watched(program, arrays)

    monkeypatch.setitem(ENGINES, "watching", Watching)
    measure_engines(network(), X, T, batch_size=20, seconds=0.2, engines=["watching"], optimiser=SGD(0.25))
    for epoch in seen:
        assert len(set(epoch.order.tolist())) == len(epoch) * 20
        assert epoch.learning_rates.tolist() == [0.25] * len(epoch)


class Unwilling(ReferenceEngine):
    """Refuses every program."""

    def bind(self, program: Any, arrays: Any) -> Any:
        """Say no."""
        raise UnsupportedLineError(program.lines[1], "it has no mind to")


def test_an_engine_that_cannot_run_a_line_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps its place, and the others are timed."""
    monkeypatch.setitem(ENGINES, "unwilling", Unwilling)
    unwilling, reference = measure_engines(network(), X, T, engines=["unwilling", "reference"], seconds=0.01)
    assert (unwilling.engine, unwilling.step_seconds, unwilling.ratio) == ("unwilling", None, None)
    assert "it has no mind to" in unwilling.problem
    assert reference.ratio == 1.0
    (alone,) = measure_engines(network(), X, T, engines=["unwilling"], seconds=0.01)
    assert alone.problem


@pytest.mark.parametrize(
    ("x", "t", "settings", "error", "said"),
    [
        (X, T, {"engines": ["refrence"]}, ConfigurationError, "did you mean 'reference'"),
        (X, T, {"batch_size": 0}, ConfigurationError, "measure_engines: batch_size is 0"),
        (X, T, {"seconds": 0}, ConfigurationError, "seconds is 0"),
        (X[:, :4], T, {}, ShapeError, "rows of"),
        (X[:0], T[:0], {}, DataError, "no rows"),
        (X, T[:9], {}, DataError, "70 rows and t has 9"),
        (np.full_like(X, np.nan), T, {}, DataError, "must be finite"),
        (X, T, {"optimiser": SGD(1e30), "batch_size": 4}, TrainingError, "is not finite"),
    ],
)
def test_what_does_not_fit_is_an_error(
    x: Any, t: Any, settings: Any, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        measure_engines(network(), x, t, **{"seconds": 0.05, "engines": ["reference"], **settings})

"""A loss that is not finite: the first line where that is so, the step, the likely cause; and no weight is lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from handgrad import (
    SGD,
    BatchNorm,
    Dropout,
    Layer,
    Linear,
    Loss,
    MeanSquaredError,
    Network,
    ReLU,
    SoftmaxCrossEntropy,
    Standardise,
    StandardiseTargets,
    TrainingError,
    rule,
    train,
)
from handgrad.layers import Graph, Value, reduce_to_mean
from handgrad.rules import Target
from handgrad.training import EpochRecord

Array = NDArray[Any]

ROWS, FEATURES = 20, 3
X = np.random.default_rng(0).normal(size=(ROWS, FEATURES))
T = X @ [[1.0], [-2.0], [0.5]]


def network(**more: Any) -> Network:
    layers = [Linear(FEATURES, 4), ReLU(), Linear(4, 1)]
    return Network(*layers, loss=MeanSquaredError(), **{"dtype": "float64", **more})


class Watch:
    """Remembers the weights of the last finished epoch."""

    def __init__(self, network: Network) -> None:
        self.network, self.epochs = network, 0
        self.look(None)

    def look(self, record: EpochRecord | None) -> None:
        """Remember the weights as they are after an epoch."""
        self.epochs = record.epoch if record else 0
        self.weights = {name: array.tobytes() for name, array in self.network.arrays.items()}

    def fails(self, x: Array = X, t: Array = T, **settings: Any) -> TrainingError:
        """Train until the error, and check that the network has the last finished epoch's weights."""
        with pytest.raises(TrainingError) as caught:
            train(self.network, x, t, after_epoch=self.look, progress=False, **settings)
        assert self.weights == {name: array.tobytes() for name, array in self.network.arrays.items()}
        assert caught.value.__cause__ is None
        return caught.value


@pytest.mark.parametrize("batch_size", [5, ROWS])
def test_a_learning_rate_that_is_too_high_is_named(batch_size: int) -> None:
    """Weights that grow beyond measure are the learning rate's doing, in one epoch or over several."""
    error = Watch(network()).fails(epochs=50, batch_size=batch_size, shuffle=False, optimiser=SGD(1e6))
    assert error.problem.startswith("step ")
    assert "(batch " in error.problem
    assert " line `" in error.problem
    assert "the learning rate: W1 has grown from" in error.fix
    rate, _, rest = error.fix.partition("; try a learning rate of ")[2].partition(" instead of 1e+06")
    assert (
        rest
        == ", the largest tried that stays finite for 50 steps from the initial weights, or clip_norm=1.0"
    )
    for times, good in ((1, True), (10, False)):
        losses = [np.nan]
        try:
            made = network()
            losses = [r.loss for r in train(made, X, T, epochs=50, optimiser=SGD(times * float(rate))).epochs]
        except TrainingError:
            pass
        assert (losses[-1] <= losses[0]) == good


def test_the_step_and_the_entry_are_the_ones_that_failed() -> None:
    """Step, batch, line, layer, shape, first entry, and how large what the line reads was."""
    x = np.ones((ROWS, FEATURES))
    x[13] = 1e200  # its square is infinite, its sum is not
    error = Watch(network()).fails(x, epochs=1, batch_size=5, shuffle=False, optimiser=SGD(1e-9))
    assert error.problem == (
        "step 3 (batch 3 of 4): line `l = (error * error).mean(axis=-1)` (loss, MeanSquaredError()) "
        "gave infinity (5,); first at l[3]"
    )
    assert error.given.startswith("|error| up to ")
    assert error.fix == (
        "likely cause: the scale of the data: x goes up to 1e+200; "
        "give the data in another unit: divide it by a power of 10"
    )


def test_masks_are_drawn_again_and_running_statistics_kept() -> None:
    """The lines run again are those of the step, with whatever it draws and changes on the way."""
    layers = [Linear(FEATURES, 4), BatchNorm(), Dropout(0.5), Linear(4, 1)]
    made = Network(*layers, loss=MeanSquaredError(), dtype="float64")
    error = Watch(made).fails(epochs=200, batch_size=5, optimiser=SGD(1e6))
    assert "the learning rate: " in error.fix
    assert " line `" in error.problem


def test_the_epochs_before_are_kept() -> None:
    """After some good epochs the failing one is undone: the step is counted from the first epoch."""
    made = network()
    watch = Watch(made)
    error = watch.fails(epochs=60, batch_size=7, optimiser=SGD(0.6))
    assert watch.epochs >= 2
    step = int(error.problem.split()[1])
    assert watch.epochs * 3 < step <= (watch.epochs + 1) * 3
    assert "the learning rate" in error.fix
    assert np.isfinite(made.predict(X)).all()


@pytest.mark.filterwarnings("error")
def test_an_update_that_spoils_the_weights_after_the_last_loss_is_found() -> None:
    """No loss is computed after the last step of a training: its weights are looked at all the same."""
    made = network(dtype="float32")
    error = Watch(made).fails(epochs=1, batch_size=ROWS, optimiser=SGD(1e39))
    assert error.problem.startswith(
        "step 1 (batch 1 of 1): line `W1 -= learning_rate * dW1` (update, sgd) gave"
    )
    assert "the learning rate: W1 has grown from" in error.fix


def test_data_too_large_for_the_networks_type_is_named() -> None:
    """1e300 is finite in the data and infinite in float32."""
    x = X.copy()
    x[2, 1] = -1e300
    for first in ([], [Standardise()]):
        made = Network(*first, Linear(FEATURES, 1), loss=MeanSquaredError())
        error = Watch(made).fails(x, epochs=1, batch_size=ROWS) if not first else None
        if error is None:
            with pytest.raises(TrainingError) as caught:
                train(made, x, T, epochs=1, batch_size=ROWS)
            error = caught.value
        assert error.problem == "step 1 (batch 1 of 1): x goes up to 1e+300, too large for float32"
        assert error.fix == "likely cause: the scale of the data; divide it, or train in float64"


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_data_whose_squares_are_too_large_is_named(engine: str) -> None:
    """No engine and no standardisation helps, so none is advised."""
    unit = "give the data in another unit: divide it by a power of 10"
    for layers, x, t, problem in (
        ([Standardise(), Linear(FEATURES, 1)], 1e200 * X, T, "deviation1 is not finite: x goes up to"),
        (
            [Linear(FEATURES, 1), StandardiseTargets()],
            X,
            1e200 * T,
            "t_deviation1 is not finite: t goes up to",
        ),
        ([Linear(FEATURES, 1)], X, 1e200 * T, "step 1 (batch 1 of "),
        ([Linear(FEATURES, 1)], 1e200 * X, T, "step 1 (batch 1 of "),
    ):
        made = Network(*layers, loss=MeanSquaredError(), dtype="float64")
        with pytest.raises(TrainingError) as caught:
            train(made, x, t, engine=engine)
        assert caught.value.problem.startswith(problem)
        assert caught.value.fix.endswith(unit)


def test_targets_that_are_not_standardised_are_named() -> None:
    made = Network(Linear(FEATURES, 1), loss=MeanSquaredError())
    with pytest.raises(TrainingError) as caught:
        train(made, X, 1e30 * T)
    assert caught.value.fix.startswith("likely cause: the scale of the targets: t goes up to ")
    assert caught.value.fix.endswith("; standardise them: put StandardiseTargets() last")


def test_validation_rows_with_a_loss_that_is_not_finite_stop_the_training() -> None:
    """They are named as such, with the line; the epoch before them is undone."""
    far = X.copy()
    far[3, 0] = 1e200
    error = Watch(network()).fails(epochs=5, validation=(far, T), optimiser=SGD(1e-6))
    assert error.problem.startswith(
        "the validation rows (batch 1 of 1): line `l = (error * error).mean(axis=-1)` (loss, MeanSquaredError())"
    )
    assert "the scale of the data: x goes up to 1e+200" in error.fix


@rule("N... F, N... F -> N...")
def naive_cross_entropy(p, q: Target):
    """Measure shares as a textbook does, without care for zero."""
    l = -(q * np.log(p)).sum(axis=-1)  # noqa: E741
    return l  # noqa: RET504 - rules return names


@naive_cross_entropy.backward
def naive_cross_entropy_backward(dl, p, q):
    dp = -q / p * dl[..., None]
    return dp  # noqa: RET504 - rules return names


@rule("N... F -> N... F")
def naive_softmax(z):
    """Divide by the sum, without taking the largest away first."""
    e = np.exp(z)
    y = e / e.sum(axis=-1, keepdims=True)
    return y  # noqa: RET504 - rules return names


@naive_softmax.backward
def naive_softmax_backward(dy, y):
    dz = y * (dy - (dy * y).sum(axis=-1, keepdims=True))
    return dz  # noqa: RET504 - rules return names


@rule("N... F -> N... F")
def reciprocal(z):
    """Divide one by each value."""
    a = 1 / z
    return a  # noqa: RET504 - rules return names


@reciprocal.backward
def reciprocal_backward(da, a):
    dz = -da * a * a
    return dz  # noqa: RET504 - rules return names


@dataclass(frozen=True, eq=False, repr=False)
class Naive(Layer):
    """A layer that applies one of the rules above."""

    which: str

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        return graph.apply({"softmax": naive_softmax, "reciprocal": reciprocal}[self.which], x)


@dataclass(frozen=True, eq=False, repr=False)
class NaiveCrossEntropy(Loss):
    """A loss of a user's own."""

    def connect(self, graph: Graph, y: Value, t: Value, w: Value | None) -> Value:  # noqa: D102 - as in Loss
        return reduce_to_mean(graph, graph.apply(naive_cross_entropy, y, t), w)


def test_the_logarithm_of_zero_in_a_users_own_loss_is_named() -> None:
    """The line with the logarithm, not the sum after it; the advice is to take logits."""
    x = np.where(np.arange(ROWS)[:, None] % 2, [900.0, 0, 0], [0, 900.0, 0])
    made = Network(
        Linear(3, 2, initialiser="ones"), Naive("softmax"), loss=NaiveCrossEntropy(), dtype="float64"
    )
    made.parameters["W1"][...] = [[0.9, -0.2], [-0.2, 0.9], [0, 0]]
    error = Watch(made).fails(x, np.tile([0.5, 0.5], (ROWS, 1)), epochs=1, optimiser=SGD(1e-3))
    assert error.problem.startswith("step 1 (batch 1 of 1): line `e1 = np.exp(z1)` (forward, layer 2, Naive(")
    assert error.fix == (
        "likely cause: the exponential of a large number; subtract the largest first, or bound what comes in"
    )

    error = Watch(made).fails(
        x * 0.8, np.tile([0.5, 0.5], (ROWS, 1)), epochs=1, optimiser=SGD(1e-3)
    )  # a share is e⁻⁷⁹²: 0
    assert "(loss, NaiveCrossEntropy()) gave infinity (20,); first at l[0]" in error.problem
    assert error.fix == (
        "likely cause: the logarithm of 0 or of a negative number; use a loss that takes logits"
    )


def test_a_division_by_zero_in_a_users_own_rule_is_named() -> None:
    """The rule's line, its layer, and the denominator."""
    made = Network(Linear(FEATURES, 2, initialiser="zeros"), Naive("reciprocal"), loss=MeanSquaredError())
    error = Watch(made).fails(X, np.ones((ROWS, 2)), epochs=1, batch_size=8)
    assert error.problem == (
        "step 1 (batch 1 of 3): line `a1 = 1 / z1` (forward, layer 2, Naive('reciprocal')) "
        "gave infinity (8, 2); first at a1[0, 0]"
    )
    assert error.given == "|z1| up to 0"
    assert error.fix == (
        "likely cause: a division by 0, or the root of a negative number; add a small number to the denominator"
    )


def test_an_engine_that_alone_finds_a_loss_not_finite_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the reference engine's lines are all finite, the other engine is the one to doubt."""
    from handgrad.engines import ENGINES, Epoch, NonFiniteLossError, ReferenceEngine
    from handgrad.engines.reference import BoundReference

    class Failing(BoundReference):
        def epoch(self, epoch: Epoch, progress: Any = None) -> tuple[float, float]:
            raise NonFiniteLossError(1)

    class FailingEngine(ReferenceEngine):
        def bind(self, program: Any, arrays: Any) -> BoundReference:
            return Failing(program, arrays)

    monkeypatch.setitem(ENGINES, "failing", FailingEngine)
    error = Watch(network()).fails(epochs=2, batch_size=5, engine="failing")
    assert error.problem == (
        "the loss of batch 2 is not finite, but on the reference engine every line of it is"
    )
    assert error.fix == "train with engine='reference'"


@pytest.mark.filterwarnings("error")
def test_numpys_warnings_do_not_come_before_the_error() -> None:
    """One error says all: no RuntimeWarning of a line inside is printed on the way."""
    made = Network(Linear(FEATURES, 8), ReLU(), Linear(8, 2), loss=SoftmaxCrossEntropy())
    Watch(made).fails(t=np.arange(ROWS) % 2, epochs=50, batch_size=5, optimiser=SGD(1e20))

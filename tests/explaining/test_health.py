"""Planted illnesses are named with their cause; healthy networks get no finding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from handgrad import (
    ELU,
    GELU,
    SGD,
    Adam,
    BatchNorm,
    Dropout,
    HalfSquaredError,
    Layer,
    LayerNorm,
    Linear,
    MeanSquaredError,
    Network,
    Optimiser,
    ReLU,
    Residual,
    Sigmoid,
    Softmax,
    SoftmaxCrossEntropy,
    Softplus,
    Standardise,
    StandardiseTargets,
    Tanh,
    rule,
    train,
)
from handgrad.data import digits, moons
from handgrad.explaining.execution import execute_network
from handgrad.explaining.health import measure_health
from handgrad.explaining.record import Health, HealthFinding
from handgrad.layers import Graph, Value

Array = NDArray[Any]

DIGITS, MOONS = digits(), moons(rows=700)
SINE = np.random.default_rng(7).uniform(-2, 2, (300, 1))
TABLE = np.random.default_rng(8).normal(size=(442, 10))
PRICE = 150 + 40 * TABLE[:, :2].sum(axis=1, keepdims=True) + 20 * np.abs(TABLE[:, 2:3])


def measured(
    network: Network, x: Array, t: Array, optimiser: Optimiser | None = None, *, rows: int = 32, seed: int = 0
) -> Health:
    few = np.random.default_rng(seed).permutation(len(x))[:rows]
    return measure_health(execute_network(network, x[few], t[few]), network, optimiser)


def shallow(seed: int = 0, **more: Any) -> Network:
    network = Network(
        Standardise(), Linear(64, 48, **more), ReLU(), Linear(48, 10), loss=SoftmaxCrossEntropy(), seed=seed
    )
    network.standardise(DIGITS.x)
    return network


def deep(activation: Callable[[], Layer], scale: float, depth: int = 6) -> Network:
    layers = [layer for _ in range(depth) for layer in (Linear(40, 40), activation())]
    network = Network(
        Standardise(), Linear(64, 40), activation(), *layers, Linear(40, 10), loss=SoftmaxCrossEntropy()
    )
    network.standardise(DIGITS.x)
    for name, array in network.parameters.items():
        array *= scale if name.startswith("W") else 1
    return network


def only(health: Health) -> HealthFinding:
    (finding,) = health.findings
    return finding


HEALTHY: dict[str, tuple[Callable[[int], Network], Array, Array, Optimiser]] = {
    "digits, ReLU": (
        lambda seed: Network(
            Standardise(), Linear(64, 256), ReLU(), Linear(256, 10), loss=SoftmaxCrossEntropy(), seed=seed
        ),
        DIGITS.x, DIGITS.t, Adam(),
    ),
    "digits, batch norm and dropout": (
        lambda seed: Network(
            Standardise(), Linear(64, 50, bias=False), BatchNorm(), ReLU(), Dropout(0.3), Linear(50, 10),
            loss=SoftmaxCrossEntropy(), seed=seed,
        ),
        DIGITS.x, DIGITS.t, SGD(),
    ),
    "digits, deep and residual": (
        lambda seed: Network(
            Standardise(), Linear(64, 36),
            *[Residual(LayerNorm(), Linear(36, 36), GELU(), Linear(36, 36)) for _ in range(3)],
            *[layer for _ in range(5) for layer in (Linear(36, 36), ReLU())], Linear(36, 10),
            loss=SoftmaxCrossEntropy(), seed=seed,
        ),
        DIGITS.x, DIGITS.t, Adam(),
    ),
    "moons, tanh": (
        lambda seed: Network(Linear(2, 16), Tanh(), Linear(16, 2), loss=SoftmaxCrossEntropy(), seed=seed),
        MOONS.x, MOONS.t, Adam(0.01),
    ),
    "a sine": (
        lambda seed: Network(Linear(1, 30), Tanh(), Linear(30, 1), loss=HalfSquaredError(), seed=seed),
        SINE, np.sin(3 * SINE), Adam(0.01),
    ),
    "prices, not scaled": (
        lambda seed: Network(Standardise(), Linear(10, 64), ReLU(), Linear(64, 1), loss=MeanSquaredError(), seed=seed),
        TABLE, PRICE, Adam(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_network_gets_no_finding_before_during_and_after_training(name: str, seed: int) -> None:
    make, x, t, optimiser = HEALTHY[name]
    network = make(seed)
    network.standardise(x)
    found = [measured(network, x, t, optimiser, rows=rows, seed=seed).findings for rows in (16, 32, 100)]

    def look(record: Any) -> None:
        found.append(measured(network, x, t, seed=record.epoch).findings)

    train(network, x, t, epochs=5, optimiser=optimiser, seed=seed, after_epoch=look)

    assert found == [()] * 8


def test_a_bias_before_batch_norm_does_nothing() -> None:
    """Its gradient is 0 but for rounding: batch norm takes off again what all rows share."""
    network = Network(Linear(64, 9), BatchNorm(), ReLU(), Linear(9, 10), loss=SoftmaxCrossEntropy())

    finding = only(measured(network, DIGITS.x, DIGITS.t))

    assert (finding.code, finding.place) == ("no-effect", "b1")
    assert "b1 does not change the loss on these rows" in finding.evidence
    assert "takes what all rows share off again" in finding.cause
    assert finding.change == "Leave it out: bias=False in layer 1, Linear(64, 9)."


@pytest.mark.parametrize("seed", range(4))
def test_a_dead_layer_is_named_with_the_bias_that_keeps_it_off(seed: int) -> None:
    network = shallow(seed)
    network.parameters["b1"][:] = -25

    finding = only(measured(network, DIGITS.x, DIGITS.t, Adam(), seed=seed))

    assert (finding.code, finding.place) == ("dead-units", "a1")
    assert "48 of the 48 units of a1" in finding.evidence
    assert "bias b1 is -25" in finding.cause
    assert "It started at 0" in finding.cause
    assert "Set b1 back to zeros" in finding.change


def test_half_a_layer_that_a_bias_keeps_off_is_named_too() -> None:
    network = shallow()
    network.parameters["b1"][:24] = -25

    assert "24 of the 48 units" in only(measured(network, DIGITS.x, DIGITS.t)).evidence


def test_units_that_too_long_steps_have_killed_are_traced_to_the_learning_rate() -> None:
    network = Network(Linear(64, 48), ReLU(), Linear(48, 10), loss=SoftmaxCrossEntropy())
    network.parameters["W1"][:] = -10 * np.abs(network.parameters["W1"])  # and what comes in is above 0

    finding = only(measured(network, DIGITS.x / 16, DIGITS.t))

    assert (finding.code, finding.place) == ("dead-units", "a1")
    assert "W1 is 10 times as large as it started" in finding.cause
    assert "learning rate ten times lower" in finding.change


@pytest.mark.parametrize("activation", [ReLU, ELU, Softplus, GELU])
def test_dead_is_what_has_no_slope_whatever_the_rule_is_called(activation: Callable[[], Layer]) -> None:
    network = Network(
        Standardise(),
        Linear(64, 20),
        activation(),
        Linear(20, 10),
        loss=SoftmaxCrossEntropy(),
        dtype="float64",
    )
    network.standardise(DIGITS.x)
    network.parameters["b1"][:] = -60

    assert only(measured(network, DIGITS.x, DIGITS.t)).code == "dead-units"


@rule("... -> ...")
def clipped(z):  # type: ignore[no-untyped-def]
    """Keep a number between -1 and 1."""
    y = np.clip(z, -1, 1)
    return y  # noqa: RET504 - a rule names what it returns


@clipped.backward
def clipped_backward(dy, z):  # type: ignore[no-untyped-def]
    dz = dy * (np.abs(z) < 1)
    return dz  # noqa: RET504


@dataclass(frozen=True, eq=False, repr=False)
class Clipped(Layer):
    """A layer of the user's own."""

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        return graph.apply(clipped, x)


@pytest.mark.parametrize("activation", [Tanh, Sigmoid, Clipped])
@pytest.mark.parametrize("seed", range(3))
def test_a_saturated_layer_is_named_with_the_weights_that_drive_it(
    activation: Callable[[], Layer], seed: int
) -> None:
    network = Network(
        Standardise(), Linear(64, 30), activation(), Linear(30, 10), loss=SoftmaxCrossEntropy(), seed=seed
    )
    network.standardise(DIGITS.x)
    network.parameters["W1"] *= 30

    finding = only(measured(network, DIGITS.x, DIGITS.t, seed=seed))

    assert (finding.code, finding.place) == ("saturated", "y1" if activation is Clipped else "a1")
    assert "30 times as large as it started" in finding.cause
    assert "Divide W1 by" in finding.change


def test_a_layer_saturated_by_large_rows_is_traced_to_them() -> None:
    network = Network(Linear(2, 16), Tanh(), Linear(16, 2), loss=SoftmaxCrossEntropy())

    finding = only(measured(network, MOONS.x * 200, MOONS.t))

    assert finding.code == "saturated"
    assert "x has entries of size" in finding.cause
    assert "Standardise() first" in finding.change


@pytest.mark.parametrize("activation", [Sigmoid, Tanh, ReLU])
def test_a_vanishing_gradient_is_traced_to_small_weights(activation: Callable[[], Layer]) -> None:
    finding = only(measured(deep(activation, 0.1), DIGITS.x, DIGITS.t, Adam()))

    assert (finding.code, finding.place) == ("vanishing", "z1")
    assert "the weights are too small" in finding.cause
    assert "initialiser=" in finding.change


def test_every_use_of_a_shared_layer_counts() -> None:
    shared = Linear(6, 6)
    layers = [layer for _ in range(4) for layer in (shared, Sigmoid())]
    network = Network(*layers, Linear(6, 2), loss=SoftmaxCrossEntropy())
    network.parameters["W1"] *= 0.02
    x = np.random.default_rng(1).normal(size=(40, 6))
    health = measured(network, x, np.arange(40) % 2)
    places = [layer.place for layer in health.layers if "weight_norm" in layer.measures]
    assert places == ["z1", "z2", "z3", "z4", "z5"]
    assert only(health).code == "vanishing"


def test_a_vanishing_gradient_is_traced_to_the_rules_where_they_make_it_small() -> None:
    finding = only(measured(deep(Sigmoid, 1, depth=9), DIGITS.x, DIGITS.t))

    assert finding.code == "vanishing"
    assert "each rule a factor: a10 × 0.2" in finding.cause
    assert "ReLU()" in finding.change


def test_an_exploding_gradient_is_traced_to_large_weights() -> None:
    finding = only(measured(deep(ReLU, 6), DIGITS.x, DIGITS.t))

    assert (finding.code, finding.place) == ("exploding", "z1")
    assert "the weights are too large" in finding.cause
    assert "clip_norm" in finding.change


def regression(*last: Layer) -> Network:
    layers = [Standardise(), Linear(10, 64), Tanh(), Linear(64, 1), *last]
    return Network(*layers, loss=MeanSquaredError())


@pytest.mark.parametrize("grown", [1, 1e5], ids=["as they started", "grown"])
def test_large_targets_are_named_and_not_the_weights_that_follow_them(grown: float) -> None:
    """Weights as large as the targets need to be make the gradient of the first layer large."""
    network, t = regression(), 4e4 * PRICE
    network.standardise(TABLE, t)
    network.parameters["W2"] *= grown

    finding = only(measured(network, TABLE, t, Adam()))

    assert (finding.code, finding.place) == ("large-targets", "t")
    assert f"deviation {np.std(t[np.random.default_rng(0).permutation(len(t))[:32]]):.3g}" in finding.evidence
    assert "StandardiseTargets() last" in finding.change
    assert "weight" not in finding.change
    assert ("The gradient has norm" in finding.cause) == (grown > 1)


def test_large_targets_that_are_standardised_or_learned_are_no_illness() -> None:
    t = 4e4 * PRICE
    network = regression(StandardiseTargets())
    network.standardise(TABLE, t)
    assert measured(network, TABLE, t).findings == ()
    learned = Network(Linear(10, 1), loss=MeanSquaredError())
    x = np.concatenate([TABLE[:, :9], PRICE], axis=1)
    learned.parameters["W1"][:] = 4e4 * np.eye(10)[:, 9:]
    assert measured(learned, x, t).findings == ()


@pytest.mark.parametrize("start", ["zeros", "ones"])
@pytest.mark.parametrize("activation", [ReLU, Tanh, Sigmoid])
def test_an_initialisation_that_makes_all_units_the_same_is_named(
    start: str, activation: Callable[[], Layer]
) -> None:
    network = Network(
        Standardise(), Linear(64, 12, initialiser=start), activation(), Linear(12, 10, initialiser=start),
        loss=SoftmaxCrossEntropy(),
    )  # fmt: skip
    network.standardise(DIGITS.x)

    finding = only(measured(network, DIGITS.x, DIGITS.t, Adam()))

    assert (finding.code, finding.place) == ("symmetric", "z1")
    assert f"All entries of W1 are {0 if start == 'zeros' else 1}" in finding.cause
    assert "random" in finding.change


def test_an_output_that_starts_at_zero_is_no_illness() -> None:
    network = Network(
        Standardise(), Linear(64, 12), Tanh(), Linear(12, 10, initialiser="zeros"), loss=SoftmaxCrossEntropy()
    )
    network.standardise(DIGITS.x)

    assert measured(network, DIGITS.x, DIGITS.t, Adam()).findings == ()


@pytest.mark.parametrize(("rows", "seed"), [(32, 0), (32, 1), (100, 2)])
@pytest.mark.parametrize("optimiser", [Adam(0.1), SGD(10.0), SGD(1.0, momentum=0.9)], ids=repr)
def test_a_learning_rate_ten_times_too_high_is_named(optimiser: Optimiser, rows: int, seed: int) -> None:
    network = HEALTHY["digits, ReLU"][0](seed)
    network.standardise(DIGITS.x)

    finding = only(measured(network, DIGITS.x, DIGITS.t, optimiser, rows=rows, seed=seed))

    assert (finding.code, finding.place) == ("large-updates", "learning rate")
    assert f"learning rate {optimiser.learning_rate:g}" in finding.evidence
    assert "its first update changes W" in finding.cause
    lower = [f"Try a learning rate of {optimiser.learning_rate / times:g}." for times in (10, 100)]
    assert finding.change in lower


@pytest.mark.parametrize(
    ("rate", "change"),
    [
        (30.0, "Try a learning rate of 0.03."),  # at 0.3, a hundredth of it, the loss grows as well
        (1e8, "Try a much lower learning rate: the loss falls at none of those that were tried."),
    ],
)
def test_no_learning_rate_is_recommended_at_which_the_loss_does_not_fall(rate: float, change: str) -> None:
    network = HEALTHY["digits, ReLU"][0](0)
    network.standardise(DIGITS.x)

    assert only(measured(network, DIGITS.x, DIGITS.t, Adam(rate), rows=32)).change == change


def test_a_learning_rate_that_moves_nothing_is_named() -> None:
    assert only(measured(shallow(), DIGITS.x, DIGITS.t, SGD(1e-9))).code == "small-updates"


def test_trying_a_learning_rate_leaves_the_network_as_it_is() -> None:
    network = shallow()
    before = {name: array.copy() for name, array in network.arrays.items()}

    measured(network, DIGITS.x, DIGITS.t, Adam(0.1))

    for name, array in network.arrays.items():
        np.testing.assert_array_equal(array, before[name])


def test_rows_that_contradict_one_another_are_named() -> None:
    x = np.concatenate([DIGITS.x[:16], DIGITS.x[:16]])
    t = np.concatenate([DIGITS.t[:16], (DIGITS.t[:16] + 1) % 10])

    health = measure_health(execute_network(shallow(), x, t), shallow())

    assert only(health).code == "conflicting-rows"
    assert f"rows 0 and 16 have the same x, and the targets {t[0]} and {t[16]}" in only(health).evidence


def test_what_is_measured_stands_beside_each_layer() -> None:
    network = shallow()
    few = slice(0, 32)

    health = measure_health(execute_network(network, DIGITS.x[few], DIGITS.t[few]), network, SGD(0.5))
    layers = {layer.place: layer for layer in health.layers}
    gradients = network.gradients(DIGITS.x[few], DIGITS.t[few])

    assert list(layers) == ["z1", "a1", "z2"]
    assert layers["a1"].measures == {"dead": 0.0}
    assert layers["z1"].layer == "layer 2, Linear(64, 48)"
    assert layers["z2"].measures["weight_norm"] == pytest.approx(
        np.linalg.norm(network.parameters["W2"]), rel=1e-6
    )
    assert set(layers["z2"].measures) == {"gradient_norm", "weight_norm", "update_to_weight"}
    assert layers["z2"].measures["update_to_weight"] > 0
    assert gradients.keys() == network.parameters.keys()


def test_softmax_is_not_taken_for_a_rule_that_acts_entry_by_entry() -> None:
    network = Network(Linear(64, 7), Softmax(), Linear(7, 10), loss=SoftmaxCrossEntropy())

    assert "dead" not in {
        name for layer in measured(network, DIGITS.x / 16, DIGITS.t).layers for name in layer.measures
    }

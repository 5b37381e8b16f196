"""Where weights start: variances, bounds, seeds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from handgrad import INITIALISERS, BatchNorm, Embedding, LayerNorm, Linear, Network, ReLU
from handgrad.layers import Parameter

FAN_IN, FAN_OUT = 300, 500

VARIANCES: dict[str, float] = {
    "he_normal": 2 / FAN_IN,
    "he_uniform": 2 / FAN_IN,
    "glorot_normal": 2 / (FAN_IN + FAN_OUT),
    "glorot_uniform": 2 / (FAN_IN + FAN_OUT),
    "lecun_normal": 1 / FAN_IN,
    "lecun_uniform": 1 / FAN_IN,
    "small_normal": 0.02**2,
    "standard_normal": 1,
}
"""By the papers' formulas."""


@pytest.mark.parametrize("name", VARIANCES)
def test_the_variance_is_that_of_the_paper(name: str) -> None:
    """Mean and variance are within five standard deviations of what they should be, over 150,000 draws."""
    draws = INITIALISERS[name](np.random.default_rng(0), (FAN_IN, FAN_OUT), FAN_IN, FAN_OUT)
    kurtosis = 1.8 if name.endswith("uniform") else 3
    scaled = draws / np.sqrt(VARIANCES[name])
    assert draws.shape == (FAN_IN, FAN_OUT)
    assert abs(scaled.mean()) < 5 / np.sqrt(draws.size)
    assert abs(scaled.var() - 1) < 5 * np.sqrt((kurtosis - 1) / draws.size)
    if name.endswith("uniform"):
        assert 1.73 < np.abs(scaled).max() <= np.sqrt(3)


def test_every_initialiser_is_tested_here() -> None:
    """The rest are constants."""
    for name in INITIALISERS.keys() - VARIANCES.keys():
        draws = INITIALISERS[name](np.random.default_rng(0), (2, 3), 2, 3)
        np.testing.assert_array_equal(draws, np.full((2, 3), {"zeros": 0, "ones": 1}[name]))


@pytest.mark.parametrize("layout", ["in_out", "out_in"])
def test_a_layer_gives_its_own_fans(layout: str) -> None:
    """Fan-in is what meets in one output, in both layouts of W."""
    network = Network(Linear(400, 30, initialiser="lecun_uniform", layout=layout))
    W = network.parameters["W1"]
    assert W.shape == ((400, 30) if layout == "in_out" else (30, 400))
    np.testing.assert_allclose(np.abs(W).max(), np.sqrt(3 / 400), rtol=1e-3)


def test_biases_start_at_0_gains_at_1_and_tables_normal() -> None:
    """The rest of what layers keep."""
    network = Network(Embedding(200, 100), LayerNorm(), Linear(100, 3), BatchNorm(), inputs=4)
    arrays = network.arrays
    assert not arrays["b1"].any()
    for gain, shift in (("gamma1", "beta1"), ("gamma2", "beta2"), ("running_var2", "running_mean2")):
        assert (arrays[gain] == 1).all()
        assert not arrays[shift].any()
    assert arrays["E1"].std() == pytest.approx(1, abs=0.03)


def make(*, seed: int = 0, dtype: str = "float64", outputs: tuple[int, ...] = ()) -> Network:
    layers = [layer for size in outputs for layer in (ReLU(), Linear(6, size))]
    return Network(Linear(4, 6), *layers, seed=seed, dtype=dtype)


def test_the_same_seed_starts_the_same_and_another_differs() -> None:
    """Weights are a function of the seed."""
    assert all((make(seed=3).parameters[name] == v).all() for name, v in make(seed=3).parameters.items())
    assert (make(seed=3).parameters["W1"] != make(seed=4).parameters["W1"]).all()


def test_a_layer_added_at_the_end_leaves_the_weights_before_it() -> None:
    """The seed's numbers are drawn in the layers' order."""
    shorter, longer = make(outputs=(6,)), make(outputs=(6, 5))
    for name, v in shorter.parameters.items():
        np.testing.assert_array_equal(longer.parameters[name], v)
    assert (longer.parameters["W2"][:, :5] != longer.parameters["W3"]).all()


def test_float32_weights_are_the_float64_ones_rounded() -> None:
    """The type is no part of the seed."""
    half, full = make(dtype="float32").parameters["W1"], make(dtype="float64").parameters["W1"]
    assert (half.dtype, full.dtype) == (np.float32, np.float64)
    np.testing.assert_array_equal(half, full.astype(np.float32))


def test_a_parameter_may_start_as_a_given_array() -> None:
    """A copy of it, in the network's type."""
    given = np.array([1.0, 2.0])
    draw: Callable[..., np.ndarray] = Parameter((2,), given).initial
    found = draw(np.random.default_rng(0), np.dtype("float32"))
    assert found.dtype == np.float32
    found[0] = 7
    assert given[0] == 1

"""Dropout as a layer: its masks, their shares, and what tells them apart."""

from __future__ import annotations

import numpy as np
import pytest

from handgrad import Dropout, Linear, MeanSquaredError, Network
from handgrad.errors import ConfigurationError

from .networks import Array, run, step

ROWS = 400
NETWORK = Network(
    Dropout(0.3), Linear(50, 40), Dropout(0.7), Linear(40, 50), Dropout(0.3), loss=MeanSquaredError()
)


def masks(*, seed: int = 0, number: int = 1) -> list[Array]:
    """Return the masks of the three layers at one step."""
    program = NETWORK.program().without_updates()
    names = [line.target for line in program.phase("sample")]
    rows = np.ones((ROWS, 50))
    outputs = run(program.keeping(*names), NETWORK, x=rows, t=rows, seed=seed, step=number)
    return [outputs[name] for name in names]


def test_the_share_that_is_kept_is_1_minus_rate() -> None:
    """Within five standard deviations, over all values and in every column."""
    for mask, rate in zip(masks(), (0.3, 0.7, 0.3), strict=True):
        deviation = np.sqrt(rate * (1 - rate))
        assert abs(mask.mean() - (1 - rate)) < 5 * deviation / np.sqrt(mask.size)
        assert (np.abs(mask.mean(axis=0) - (1 - rate)) < 5 * deviation / np.sqrt(ROWS)).all()


def test_masks_are_a_function_of_seed_and_step() -> None:
    """The same seed and step draw the same masks, whatever was drawn between."""
    once = masks(seed=3, number=8)
    masks(seed=4, number=9)
    for one, again in zip(once, masks(seed=3, number=8), strict=True):
        np.testing.assert_array_equal(one, again)


def test_masks_of_other_seeds_steps_and_layers_are_unrelated() -> None:
    """Two masks that keep 7 of 10 agree where chance has it: in 58 of 100 places."""
    first, _, third = masks(seed=0, number=1)
    others = {"layer": third, "seed": masks(seed=1, number=1)[0], "step": masks(seed=0, number=2)[0]}
    for name, other in others.items():
        assert abs((first == other).mean() - 0.58) < 5 * 0.5 / np.sqrt(first.size), name


def test_training_uses_the_mask_of_its_step_forward_and_backward() -> None:
    """What was dropped gives no gradient to the weights behind it, what was kept gives it scaled."""
    network = Network(Dropout(0.5), Linear(4, 1), loss=MeanSquaredError(), dtype="float64")
    x, t = np.ones((1, 4)), np.array([[50.0]])
    program = network.program().without_updates()
    mask = run(program.keeping("kept1"), network, x=x, t=t, seed=5, step=2)["kept1"]
    assert mask.any()
    assert not mask.all()
    found = step(network, x=x, t=t, seed=5, step=2)
    output = (2.0 * mask @ network.parameters["W1"]).item()
    np.testing.assert_allclose(found["loss"], (output - 50) ** 2)
    np.testing.assert_allclose(found["dW1"], 2 * (output - 50) * 2 * mask.T)


def test_outside_training_nothing_is_dropped() -> None:
    """Evaluation has no sample lines and gives the values themselves."""
    network = Network(Dropout(0.9), Linear(4, 3), loss=MeanSquaredError(), dtype="float64")
    x = np.random.default_rng(0).normal(size=(7, 4))
    np.testing.assert_allclose(network.output(x), x @ network.parameters["W1"], rtol=1e-14)
    for program in (network.evaluation_program(), network.loss_program()):
        assert program.phase("sample") == ()
        assert program.scalars == ()


@pytest.mark.parametrize("rate", [-0.1, 1.0, 1.5, float("nan")])
def test_a_rate_out_of_range_is_named(rate: float) -> None:
    """Nothing can be kept at rate 1, and nothing scaled by 1 / 0."""
    with pytest.raises(ConfigurationError, match=f"Dropout: rate is {rate}"):
        Dropout(rate)

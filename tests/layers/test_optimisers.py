"""Optimisers, run as the written-out program's update lines, against PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from handgrad import SGD, Adam, AdamW, Linear, Network, Optimiser, RMSProp, SoftmaxCrossEntropy, Tanh, rules
from handgrad.engines import Epoch, ReferenceEngine
from handgrad.errors import ConfigurationError

from ..rules.checks import relative_error
from ..rules.table import UPDATES, UpdateRow
from .networks import step

STEPS, ROWS, BATCH = 100, 23, 5

EACH = pytest.mark.parametrize("row", UPDATES, ids=lambda row: repr(row.optimiser))


def network() -> Network:
    layers = Linear(4, 6), Tanh(), Linear(6, 3)
    return Network(*layers, loss=SoftmaxCrossEntropy(), seed=1, dtype="float64")


def data() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, classes, the order of 100 batches, and a learning rate for each."""
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=(ROWS, 4)), rng.integers(0, 3, ROWS)
    return x, t, rng.integers(0, ROWS, STEPS * BATCH), rng.uniform(0.005, 0.05, STEPS)


@pytest.mark.peers
@EACH
def test_100_steps_lead_where_torch_s_lead(torch: Any, row: UpdateRow) -> None:
    """From the same start, with a learning rate that changes, every weight agrees to 1e-10 of its norm."""
    optimiser = row.optimiser
    ours, (x, t, order, rates) = network(), data()
    theirs = {key: torch.tensor(v, requires_grad=True) for key, v in ours.parameters.items()}

    program = ours.program(optimiser)
    slots = {key: np.zeros(shape) for key, shape in program.slots.items()}
    epoch = Epoch({"x": x, "t": t}, order, BATCH, rates)
    ReferenceEngine().bind(program, {**ours.arrays, **slots}).epoch(epoch)

    stepper, clipped = row.peer(torch.optim, list(theirs.values())), 0
    for number, rate in enumerate(rates):
        rows = torch.tensor(order[number * BATCH : (number + 1) * BATCH])
        hidden = torch.tanh(torch.tensor(x)[rows] @ theirs["W1"] + theirs["b1"])
        stepper.zero_grad()
        loss = torch.nn.CrossEntropyLoss()(hidden @ theirs["W2"] + theirs["b2"], torch.tensor(t)[rows])
        loss.backward()
        if optimiser.clip_norm is not None:
            norm = torch.nn.utils.clip_grad_norm_(theirs.values(), optimiser.clip_norm)
            clipped += bool(norm > optimiser.clip_norm)
        stepper.param_groups[0]["lr"] = rate
        stepper.step()
    for key, v in theirs.items():
        assert relative_error(ours.parameters[key], v.detach().numpy()) <= 1e-10, key
    assert optimiser.clip_norm in (None, 1e6) or 0 < clipped < STEPS, "clip at some steps and not at others"


@EACH
def test_every_optimiser_starts_with_slots_of_zeros_in_the_parameters_shapes(row: UpdateRow) -> None:
    """Slots are named after the parameter they belong to."""
    shapes = {"W1": (4, 6), "b1": (6,), "W2": (6, 3), "b2": (3,)}
    slots = row.optimiser.rule.slots
    wanted = {f"{slot}_{name}": shape for name, shape in shapes.items() for slot in slots}
    assert network().program(row.optimiser).slots == wanted


def test_an_optimiser_chooses_its_rule() -> None:
    """By its settings; weight decay is added to the gradient but where the rule itself has it."""
    assert SGD().rule is rules.sgd
    assert SGD(momentum=0.9).rule is rules.sgd_momentum
    assert SGD(momentum=0.9, nesterov=True).rule is rules.sgd_nesterov
    assert Adam(weight_decay=0.1).decays_gradient
    assert not AdamW(weight_decay=0.1).decays_gradient
    assert not Adam().decays_gradient


def test_the_gradients_a_program_gives_are_neither_clipped_nor_decayed() -> None:
    """What is done to a gradient before the step has names of its own."""
    x, t, *_ = data()
    plain, ours = step(network(), x=x, t=t), network()
    program = ours.program(SGD(clip_norm=1e-3, weight_decay=0.5))
    outputs = ReferenceEngine().bind(program, ours.arrays).run(x=x, t=t, learning_rate=0.1, step=1)
    np.testing.assert_array_equal(outputs["dW1"], plain["dW1"])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@EACH
def test_weights_keep_their_type(row: UpdateRow, dtype: str) -> None:
    """Every line of a step computes in the network's own type, from float32 to float32."""
    made = Network(Linear(4, 3), Tanh(), loss=SoftmaxCrossEntropy(), dtype=dtype)
    lines = made.program(row.optimiser).phase("update")
    assert {line.dtype for line in lines} == {dtype}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SGD(0), "SGD: learning_rate is 0"),
        (lambda: SGD(-0.1), "SGD: learning_rate is -0.1"),
        (lambda: Adam(float("nan")), "Adam: learning_rate is nan"),
        (lambda: SGD(momentum=1), "SGD: momentum is 1"),
        (lambda: SGD(nesterov=True), "SGD: nesterov needs a momentum"),
        (lambda: RMSProp(decay=-0.5), r"RMSProp: decay is -0\.5"),
        (lambda: RMSProp(epsilon=0), "RMSProp: epsilon is 0"),
        (lambda: Adam(beta1=1.0), r"Adam: beta1 is 1\.0"),
        (lambda: AdamW(weight_decay=-1), "AdamW: weight_decay is -1"),
        (lambda: SGD(clip_norm=0), "SGD: clip_norm is 0"),
    ],
    ids=lambda value: "" if callable(value) else value,
)
def test_settings_out_of_range_are_named(make: Callable[[], Optimiser], message: str) -> None:
    """An optimiser that cannot be is refused when it is made."""
    with pytest.raises(ConfigurationError, match=message):
        make()


def test_an_optimiser_is_shown_as_the_call_that_makes_it() -> None:
    """What is at its default is left out."""
    assert repr(SGD(0.5, momentum=0.9)) == "SGD(0.5, momentum=0.9)"
    assert repr(AdamW(weight_decay=0.1, clip_norm=1.0)) == "AdamW(weight_decay=0.1, clip_norm=1.0)"

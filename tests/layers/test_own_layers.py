"""Rules and layers of one's own, written in a file of one's own, are rules and layers like any other."""

from __future__ import annotations

import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

from handgrad import (
    ConfigurationError,
    Layer,
    Linear,
    Loss,
    MeanSquaredError,
    Network,
    ShapeError,
    rule,
    rules,
    train,
)
from handgrad.layers import Graph, Parameter, Value, reduce_to_mean
from handgrad.rules import RULES, Mask, Target, add, identity
from handgrad.rules.primitives import rows, uniform

from .networks import check_slopes, run, step


@rule("N... I, I -> N... I")
def scaled_square(x, g, *, power_of_two=1.0):
    """Multiply the square by a gain: ``s = g x²``."""
    square = x * x
    s = power_of_two * g * square
    return s  # noqa: RET504 - rules return names


@scaled_square.backward
def scaled_square_backward(ds, x, g, square, *, power_of_two):
    dx = 2 * power_of_two * ds * g * x  # the slope of x² is 2x
    dg = power_of_two * rows(ds * square).sum(axis=0)  # the same g serves every row: the rows add up
    return dx, dg


@dataclass(frozen=True, eq=False, repr=False)
class ScaledSquare(Layer):
    """A layer with a parameter and an option."""

    power_of_two: float = 1.0

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        gain = Parameter((int(x.shape[-1]),), "ones")
        return graph.apply(scaled_square, x, gain, layer=self, power_of_two=self.power_of_two)


@rule("A..., A... -> A...", evaluation=identity)
def noisy_sign(x, coin: Mask):
    """Turn the sign of some values."""
    y = x * (2 * coin - 1)
    return y  # noqa: RET504 - rules return names


@noisy_sign.backward
def noisy_sign_backward(dy, coin):
    dx = dy * (2 * coin - 1)
    return dx  # noqa: RET504 - rules return names


@noisy_sign.draws
def noisy_sign_draws(shape, key):
    coin = uniform(shape, key) < 0.5
    return coin  # noqa: RET504 - rules return names


@dataclass(frozen=True, eq=False, repr=False)
class NoisySign(Layer):
    """A layer that draws a mask."""

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        return graph.apply(noisy_sign, x)


@rule("N T F, F O -> N O")
def pooled(x, W):
    """Add the rows of each sample up, then map them: from rank 3 to rank 2."""
    z = x.sum(axis=1) @ W
    return z  # noqa: RET504 - rules return names


@pooled.backward
def pooled_backward(dz, x, W):
    dx = np.zeros_like(x) + (dz @ W.T)[:, None]  # every row of a sample is in its sum
    dW = rows(x).T @ rows(np.zeros_like(x[..., :1]) + dz[:, None])  # every row of every sample adds up
    return dx, dW


@dataclass(frozen=True, eq=False, repr=False)
class Pooled(Layer):
    """A layer that takes an axis away."""

    outputs: int

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        shape = int(x.shape[-1]), self.outputs
        return graph.apply(pooled, x, Parameter(shape, "he_normal", *shape), layer=self)


@rule("... -> ...")
def broken(z):
    """Fail when it runs, on a line of this file."""
    a = z @ np.ones((4, 4, 4))[:, :, :3] @ z
    return a  # noqa: RET504 - rules return names


@broken.backward
def broken_backward(da):
    dz = da
    return dz  # noqa: RET504 - rules return names


RNG = np.random.default_rng(0)
MATRICES = {"x": RNG.normal(size=(6, 5)), "t": RNG.normal(size=(6, 3))}
STACKS = {"x": RNG.normal(size=(6, 4, 5)), "t": RNG.normal(size=(6, 3))}

NETWORKS = {
    "parameter-and-option": (Network(Linear(5, 7), ScaledSquare(2.0), Linear(7, 3)), MATRICES),
    "mask": (Network(Linear(5, 7), NoisySign(), Linear(7, 3)), MATRICES),
    "rank-3-to-rank-2": (Network(Linear(5, 7), Pooled(3), inputs=(4, 5)), STACKS),
}


@pytest.mark.parametrize("kind", NETWORKS)
def test_a_network_of_own_layers_has_the_right_gradients(kind: str) -> None:
    """Parameters, options, masks and a change of rank, against central differences."""
    plain, given = NETWORKS[kind]
    made = Network(*plain.body.layers, loss=MeanSquaredError(), inputs=plain.row, dtype="float64")
    check_slopes(made, **given)


@dataclass(frozen=True, eq=False, repr=False)
class OwnLoss(Loss):
    """A loss that ends as handgrad's own do, and says no more than it must."""

    def connect(self, graph: Graph, y: Value, t: Value, w: Value | None) -> Value:  # noqa: D102 - as in Loss
        return reduce_to_mean(graph, graph.apply(rules.mean_squared_error, y, t), w)


@pytest.mark.parametrize("weighted", [False, True])
def test_an_own_loss_is_the_mean_over_the_rows(weighted: bool) -> None:
    """Weighted or not, and of nothing else beside it."""
    own, ours = (
        Network(Linear(5, 3), loss=loss).program(weighted=weighted)
        for loss in (OwnLoss(), MeanSquaredError())
    )
    assert [str(line) for line in own.lines] == [str(line) for line in ours.lines]


@rule("N... O, N... O -> N...")
def fourth_power(y, t: Target):
    """Average the fourth powers, with the names that a reduction has: ``loss = Σ_o (y - t)⁴ / O``."""
    count = y.shape[-1]
    total = ((y - t) ** 4).sum(axis=-1)
    loss = total / count
    return loss  # noqa: RET504 - rules return names


@fourth_power.backward
def fourth_power_backward(dloss, y, t, count):
    dy = 4 * (y - t) ** 3 * dloss[..., None] / count
    return dy  # noqa: RET504 - rules return names


@dataclass(frozen=True, eq=False, repr=False)
class FourthPower(Loss):
    """The mean of fourth powers."""

    def connect(self, graph: Graph, y: Value, t: Value, w: Value | None) -> Value:  # noqa: D102 - as in Loss
        return reduce_to_mean(graph, graph.apply(fourth_power, y, t), w, l2=self.l2)


@pytest.mark.parametrize("l2", [0.0, 0.5])
def test_a_rule_of_the_rows_may_call_its_own_as_the_reduction_does(l2: float) -> None:
    """Loss, total and count are the program's: its gradients and the loss it reports are those of the mean."""
    made = Network(Linear(5, 4), Linear(4, 3), loss=FourthPower(l2=l2), dtype="float64")
    check_slopes(made, **MATRICES)
    rows = ((made.output(MATRICES["x"]) - MATRICES["t"]) ** 4).mean(axis=-1)
    squares = sum((W**2).sum() for W in made.parameters.values() if W.ndim > 1)
    found = run(made.program().without_updates(), made, **MATRICES)
    assert found["total"] / found["count"] == pytest.approx(rows.mean() + l2 / 2 * squares / len(rows))
    assert train(made, **MATRICES, epochs=1).epochs[-1].loss > 0


@dataclass(frozen=True, eq=False, repr=False)
class Unreduced(FourthPower):
    """A loss that is one of each row, and stays so."""

    def connect(self, graph: Graph, y: Value, t: Value, w: Value | None) -> Value:  # noqa: D102 - as in Loss
        return graph.apply(fourth_power, y, t)


@dataclass(frozen=True, eq=False, repr=False)
class Unweighted(FourthPower):
    """A loss that forgets the rows' weights."""

    def connect(self, graph: Graph, y: Value, t: Value, w: Value | None) -> Value:  # noqa: D102 - as in Loss
        return reduce_to_mean(graph, graph.apply(fourth_power, y, t), None)


def test_a_loss_that_is_no_mean_of_weighted_rows_is_refused() -> None:
    """It says which rule ends it, or that the weights are forgotten, and what to end it with."""
    with pytest.raises(ConfigurationError) as raised:
        Network(Linear(5, 3), loss=Unreduced())
    assert str(raised.value).splitlines() == [
        "Unreduced(): its last rule, fourth_power, is no reduction to one loss with its total and count",
        "  fix    end its connect with handgrad.layers.reduce_to_mean(graph, l, w)",
    ]
    with pytest.raises(
        ConfigurationError, match="the rows have weights, and its connect makes no use of them"
    ):
        Network(Linear(5, 3), loss=Unweighted()).program(weighted=True)


def test_an_own_rule_is_an_ordinary_function() -> None:
    """It can be called at a prompt, it has its docstring, and its backward is a function too."""
    x, g = np.array([[3.0, -1.0]]), np.array([1.0, 10.0])
    np.testing.assert_array_equal(scaled_square(x, g), [[9, 10]])
    np.testing.assert_array_equal(scaled_square(x, g, power_of_two=2), [[18, 20]])
    assert scaled_square.__doc__.startswith("Multiply the square by a gain")
    dx, _ = scaled_square_backward(np.ones((1, 2)), x, g, x * x, power_of_two=1)
    np.testing.assert_array_equal(dx, scaled_square.gradients(np.ones((1, 2)), x, g)["x"])
    np.testing.assert_array_equal(dx, [[6, -20]])
    assert repr(scaled_square) == "<rule scaled_square: N... I, I -> N... I>"


def test_an_own_rule_is_not_one_of_handgrad_s() -> None:
    """It may have the name of one, and takes its place nowhere but here."""
    assert "scaled_square" not in RULES


def test_arrays_that_do_not_fit_an_own_rule_are_named() -> None:
    """Nothing is broadcast where the signature has no such axis, forward or backward."""
    x, g = np.ones((4, 2)), np.ones(2)
    with pytest.raises(
        ShapeError, match=r"scaled_square: axis I is 2 in x\(4, 2\)\[1\] but 1 in g\(1,\)\[0\]"
    ):
        scaled_square(x, np.ones(1))
    with pytest.raises(ShapeError, match=r"scaled_square: takes 2 arrays \(x, g\), and 1 are given"):
        scaled_square.values(x)
    with pytest.raises(ShapeError, match=r"scaled_square: ds is \(2,\), and s is \(4, 2\)"):
        scaled_square.gradients(np.ones(2), x, g)


def test_an_own_rule_stands_in_the_program_with_its_names_numbers_and_reasons() -> None:
    """The option is written as its number, the names carry the layer's, the reasons come along."""
    made = Network(Linear(5, 7), ScaledSquare(2.0), Linear(7, 3), loss=MeanSquaredError())
    lines = {line.target: line for line in made.program().lines}
    assert str(lines["s1"]) == "s1 = 2.0 * g1 * square1"
    assert str(lines["dz1"]) == "dz1 = 2 * 2.0 * ds1 * g1 * z1"
    assert lines["dg1"].expression == "2.0 * (ds1 * square1).sum(axis=0)"
    assert lines["dg1"].reason == "the same g1 serves every row: the rows add up"
    assert lines["dg1"].rule == "scaled_square"
    assert lines["dg1"].layer == "layer 2, ScaledSquare(power_of_two=2.0)"


def test_a_mask_is_drawn_before_the_forward_and_is_the_same_in_the_backward() -> None:
    """Another step draws another mask, and outside training there is none."""
    made = Network(NoisySign(), Linear(5, 3), loss=MeanSquaredError(), dtype="float64")
    program = made.program().without_updates().keeping("coin1")
    first, second = (run(program, made, **MATRICES, step=k)["coin1"] for k in (1, 2))
    assert (first != second).any()
    np.testing.assert_allclose(made.output(MATRICES["x"]), MATRICES["x"] @ made.parameters["W1"])


@rule("N... I, I -> N... I")
def gained(h, u):
    """Multiply by a gain."""
    y = h * u
    return y  # noqa: RET504 - rules return names


@gained.backward
def gained_backward(dy, h, u):
    dz = dy * 3.0  # a name of its own, which is also how the gradient of a value z1 is called
    db = dz / 3.0  # and that of a bias b1
    dh = db * u
    du = (dh * h / u).sum(axis=0)  # what reads a gradient needs it for the data, too
    return dh, du


@dataclass(frozen=True, eq=False, repr=False)
class GainedTwice(Layer):
    """Two gains of one value, added up."""

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        gains = (Parameter((int(x.shape[-1]),), "ones") for _ in range(2))
        return graph.apply(add, *(graph.apply(gained, x, gain) for gain in gains))


@pytest.mark.parametrize("before", [(), (Linear(5, 5),)], ids=["the-data", "a-value"])
def test_names_of_an_own_rule_are_never_those_of_another_s_gradient(before: tuple[Layer, ...]) -> None:
    """A backward may call what it computes by the way as it likes: each name is made once, each slope right."""
    made = Network(*before, GainedTwice(), Linear(5, 3), loss=MeanSquaredError(), inputs=5, dtype="float64")
    targets = [line.target for line in made.program().without_updates().lines]
    assert len(targets) == len(set(targets))
    check_slopes(made, **MATRICES)


def test_a_traceback_ends_on_the_rule_s_own_line() -> None:
    """Called or run with its backward, a rule that fails shows the line of its own file."""
    for call in (broken, broken.values):
        with pytest.raises(ValueError, match="matmul") as caught:
            call(np.ones(2))
        last = traceback.extract_tb(caught.tb)[-1]
        assert Path(last.filename) == Path(__file__)
        assert last.line == "a = z @ np.ones((4, 4, 4))[:, :, :3] @ z"


def test_a_debugger_steps_through_the_rule_s_own_lines() -> None:
    """Forward and backward run line by line in this file."""
    seen: list[str] = []

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line" and frame.f_code.co_filename == __file__:
            seen.append(source[frame.f_lineno - 1].strip().partition(" = ")[0])
        return trace

    source = Path(__file__).read_text(encoding="utf-8").splitlines()
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        scaled_square.gradients(np.ones((1, 2)), np.ones((1, 2)), np.ones(2))
    finally:
        sys.settrace(before)
    assert seen == ["square", "s", "dx", "dg"]


def test_a_plain_class_is_a_layer_too() -> None:
    """A layer need not be a dataclass."""

    class Twice(Layer):
        def connect(self, graph: Graph, x: Value) -> Value:
            return ScaledSquare().connect(graph, x)

    made = Network(Twice(), Linear(5, 3), loss=MeanSquaredError(), inputs=5)
    assert repr(made) == "Network(Twice(), Linear(5, 3), loss=MeanSquaredError())"
    assert step(made, **MATRICES)["dg1"].shape == (5,)

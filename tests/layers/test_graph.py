"""The graph of a network: shapes that must fit, values used several times, parameters shared."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from handgrad import (
    LSTM,
    BatchNorm,
    Embedding,
    Layer,
    LayerNorm,
    LeakyReLU,
    Linear,
    MeanSquaredError,
    Network,
    ReLU,
    Repeat,
    Residual,
    Sequential,
    SoftmaxCrossEntropy,
    Softplus,
    Standardise,
    Tanh,
    rules,
)
from handgrad.errors import ConfigurationError, RuleError, ShapeError
from handgrad.layers import Graph, Parameter, Value

from .networks import check_slopes, step

CLASHES = {
    "two-layers": (
        (Linear(5, 7), ReLU(), Linear(8, 3)),
        "layer 3, Linear(8, 3): axis I is 7 in x(n, 7)[1] but 8 in W(8, 3)[0]",
        "a1(n, 7) comes from layer 1, Linear(5, 7)",
    ),
    "out-in": (
        (Linear(5, 7), Linear(8, 3, layout="out_in")),
        "layer 2, Linear(8, 3, layout='out_in'): axis I is 7 in x(n, 7)[1] but 8 in W(3, 8)[1]",
        "z1(n, 7) comes from layer 1, Linear(5, 7)",
    ),
    "inside": (
        (Linear(5, 7), Sequential(ReLU(), Linear(6, 7))),
        "layer 2, Sequential → layer 2, Linear(6, 7): axis I is 7 in x(n, 7)[1] but 6 in W(6, 7)[0]",
        "a1(n, 7) comes from layer 1, Linear(5, 7)",
    ),
    "residual": (
        (Linear(5, 7), Residual(Linear(7, 6), ReLU())),
        "layer 2, Residual: axis A... is (n, 7) in x(n, 7)[0:2] but (n, 6) in y(n, 6)[0:2]",
        "z1(n, 7) comes from layer 1, Linear(5, 7); "
        "a2(n, 6) comes from layer 2, Residual → layer 1, Linear(7, 6)",
    ),
}
"""Layers that do not fit: the error's first line, and who gave what."""


@pytest.mark.parametrize("kind", CLASHES)
def test_a_shape_error_names_both_layers_the_axis_and_both_sizes(kind: str) -> None:
    """It comes when the network is made, and goes past the layers that only pass a shape on."""
    layers, problem, given = CLASHES[kind]
    with pytest.raises(ShapeError) as caught:
        Network(*layers)
    assert (caught.value.problem, caught.value.given) == (problem, given)
    assert caught.value.fix == "make the two sizes the same"


def test_the_data_is_named_when_it_does_not_fit() -> None:
    """A first layer that does not fit its input blames the data, and so do rows given later."""
    with pytest.raises(ShapeError, match=r"axis I is 6 in x\(n, 3, 6\)\[2\] but 5 in W") as caught:
        Network(Linear(5, 7), inputs=(3, 6))
    assert caught.value.given == "x(n, 3, 6) comes from the data"
    with pytest.raises(ShapeError, match=r"the data has rows of \(6,\), the network takes \(5,\)"):
        Network(Linear(5, 7)).output(np.ones((2, 6)))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Network(), ConfigurationError, "a network needs a layer"),
        (lambda: Network(Linear(2, 3), ReLU), ConfigurationError, "Network: layer 2 is the class ReLU"),
        (lambda: Network(ReLU()), ConfigurationError, "the layers do not determine how long a row is"),
        (lambda: Network(Embedding(5, 7), Linear(7, 2)), ConfigurationError, "not say how many indices"),
        (lambda: Network(ReLU(), Embedding(5, 7), inputs=4), ConfigurationError, "a1 holds values, and"),
        (lambda: Network(Linear(2, 3), Standardise()), ConfigurationError, "takes the data itself"),
        (lambda: Network(LayerNorm(), inputs=()), ShapeError, r"LayerNorm\(\): x\(n,\) has no features"),
        (lambda: Linear(0, 3), ConfigurationError, "Linear: inputs is 0"),
        (lambda: Linear(3, True), ConfigurationError, "Linear: outputs is True"),
        (lambda: Embedding(2.0, 3), ConfigurationError, r"Embedding: entries is 2\.0"),
        (lambda: Linear(2, 3, layout="oi"), ConfigurationError, "Linear: layout is 'oi'"),
        (
            lambda: Network(Linear(2, 3), LeakyReLU(float("inf"))), ConfigurationError,
            r"^layer 2, LeakyReLU\(slope=inf\): slope is inf\n  fix    give a finite number$",
        ),
        (
            lambda: Network(Linear(2, 3, initialiser="he")), ConfigurationError,
            r"^layer 1, Linear\(2, 3, initialiser='he'\): no initialiser is called 'he'\n  fix    choose from ",
        ),
    ],
    ids=[
        "no-layer", "no-instance", "no-row", "no-indices", "values-as-indices", "standardise-inside",
        "no-features", "size-0", "size-true", "size-float", "layout", "infinity", "initialiser",
    ],
)  # fmt: skip
def test_layers_that_cannot_be_are_named(
    make: Callable[[], object], error: type[Exception], message: str
) -> None:
    """A setting that is missing or out of range is refused when the layer or the network is made."""
    with pytest.raises(error, match=message):
        make()


def test_a_network_is_shown_as_the_calls_that_make_it() -> None:
    """What is at its default is left out."""
    layers = "Linear(5, 7, bias=False), BatchNorm(momentum=0.2), Residual(Linear(7, 7), LeakyReLU(slope=0.3))"
    made = eval(f"Network({layers})")
    assert repr(made) == f"Network({layers})"
    assert type(made.body.layers[1]) is BatchNorm
    assert type(made.body.layers[2].layers[1]) is LeakyReLU


def data(outputs: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {"x": rng.normal(size=(6, 5)), "t": rng.normal(size=(6, outputs))}


def made_of(*layers: Layer) -> Network:
    return Network(*layers, loss=MeanSquaredError(), inputs=5, dtype="float64")


@dataclass(frozen=True, eq=False, repr=False)
class ThreeTimes(Layer):
    """Use one value three times, twice of them in the same line: ``(x + x) + tanh(x)``."""

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        return graph.apply(rules.add, graph.apply(rules.add, x, x), graph.apply(rules.tanh, x))


SHARED, TIED = Linear(7, 7), Linear(5, 5)

FAN_OUTS = {
    "residual": made_of(Linear(5, 7), Residual(Tanh()), Linear(7, 3)),
    "shortcut": made_of(
        Linear(5, 7), Residual(Linear(7, 4), Tanh(), shortcut=Linear(7, 4, bias=False)), Linear(4, 3)
    ),
    "residual-in-residual": made_of(Linear(5, 7), Residual(Tanh(), Residual(Linear(7, 7))), Linear(7, 3)),
    "three-times": made_of(Linear(5, 7), ThreeTimes(), Linear(7, 3)),
    "shared-twice": made_of(Linear(5, 7), SHARED, Tanh(), SHARED, Linear(7, 3)),
    "shared-three-times": made_of(TIED, Tanh(), TIED, Tanh(), TIED),
    "shared-in-residual": made_of(Linear(5, 7), Residual(SHARED, Softplus(), SHARED), Linear(7, 3)),
}


@pytest.mark.parametrize("kind", FAN_OUTS)
def test_gradients_of_a_value_used_several_times_add_up(kind: str) -> None:
    """Every gradient is the loss's slope, by central differences."""
    network = FAN_OUTS[kind]
    check_slopes(network, **data(network.output_shape[-1]))


@pytest.mark.parametrize(
    ("kind", "target", "expression", "reason"),
    [
        ("residual", "dz1", "dz1_r1 + dz1_a1", "z1 is used twice"),
        ("three-times", "dz1", "dz1_a1 + dz1_r1 + dz1_r1_y", "z1 is used 3 times"),
        ("shared-twice", "dW2", "dW2_z3 + dW2_z2", "W2 is used twice"),
        ("shared-twice", "db2", "db2_z3 + db2_z2", "b2 is used twice"),
        ("shared-three-times", "dW1", "dW1_z3 + dW1_z2 + dW1_z1", "W1 is used 3 times"),
    ],
)
def test_the_gradients_add_up_in_one_visible_line(
    kind: str, target: str, expression: str, reason: str
) -> None:
    """The line stands after all its parts and before its first use, with its reason."""
    lines = FAN_OUTS[kind].program().lines
    (place,) = (k for k, line in enumerate(lines) if line.target == target)
    assert lines[place].expression == expression
    assert lines[place].reason == f"{reason}: what reaches the loss on each way adds up"
    made = [line.target for line in lines[:place]]
    assert set(expression.split(" + ")) <= set(made)
    assert not any(target in line.reads for line in lines[:place])


TIED_TO = (
    Linear(5, 7),
    Tanh(),
    Linear(7, 5, layout="out_in", tied="W1"),
    Tanh(),
    Linear(5, 7, bias=False, tied="W1"),
)


def test_the_gradients_of_tied_weights_add_up() -> None:
    """In both layouts; the array is drawn, updated and counted once, in an L2 penalty too."""
    network = Network(*TIED_TO, loss=MeanSquaredError(l2=0.3), dtype="float64")
    assert list(network.parameters) == ["W1", "b1", "b2"]
    assert network.program().line("dW1").expression == "dW1_penalty + dW1_z3 + dW1_z2 + dW1_z1"
    check_slopes(network, **data(7))


@pytest.mark.parametrize(
    ("layer", "error", "message"),
    [
        (
            Linear(7, 5, tied="W2"),
            ConfigurationError,
            "no layer before it has an array 'W2'\n  fix    choose from W1, b1",
        ),
        (Linear(7, 5, tied="W1"), ShapeError, r"W is W1\(5, 7\), and \(7, 5\) is needed"),
    ],
)
def test_weights_that_cannot_be_tied_are_named(layer: Layer, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^layer 2, .*: {message}"):
        Network(Linear(5, 7), layer)


def test_tied_weights_are_initialised_by_their_own_layer() -> None:
    with pytest.raises(
        ConfigurationError, match="E1 has its layer's initialiser, and this layer's is 'zeros'"
    ):
        Linear(4, 7, layout="out_in", tied="E1", initialiser="zeros")


@pytest.mark.parametrize("shape", [(6,), (2, 4, 6)])
def test_a_layer_that_needs_other_axes_advises_to_reshape(shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match=r"x has . axes") as caught:
        Network(LSTM(6, 5), inputs=shape)
    assert caught.value.fix == "put Reshape(…) before it"


def test_repeated_blocks_have_arrays_of_their_own() -> None:
    """Its lines are those of the layers written so often; each block's numbers are as far from those of the one before."""
    once = (LayerNorm(), Residual(Linear(7, 7), Tanh()))
    network = made_of(Linear(5, 7), Repeat(*once, times=3))
    written = made_of(Linear(5, 7), *once, LayerNorm(), Residual(Linear(7, 7), Tanh()), LayerNorm(),
                      Residual(Linear(7, 7), Tanh()))  # fmt: skip
    lines, others = (
        [re.sub(r"\d+", "", str(line)) for line in each.program().lines] for each in (network, written)
    )
    assert lines == others
    numbers = [int(name.removeprefix("gamma")) for name in network.parameters if name.startswith("gamma")]
    weights = [int(name.removeprefix("W")) for name in network.parameters if name.startswith("W")]
    assert {*np.diff(numbers)} == {*np.diff(weights[1:])} == {1}
    assert network.nodes()[6].layer == "layer 2, Repeat → block 2 → layer 2, Residual → layer 1, Linear(7, 7)"
    assert repr(network) == repr(eval(repr(network)))
    with pytest.raises(
        ShapeError, match=r"^layer 1, Repeat → block 2 → layer 1, Linear\(5, 4\): axis I is 4"
    ):
        Network(Repeat(Linear(5, 4), times=2))
    with pytest.raises(ConfigurationError, match="Repeat: times is 0"):
        Repeat(Tanh(), times=0)


def test_a_table_of_one_entry_can_be_looked_up() -> None:
    """Index 0 is all there is, and it fits."""
    network = Network(Embedding(1, 3), inputs=2, loss=MeanSquaredError())
    assert network.program().line("dE1").shape == (1, 3)


def test_a_shared_layer_has_its_parameters_once() -> None:
    """One W and one b, drawn once and updated once."""
    network = FAN_OUTS["shared-twice"]
    assert list(network.parameters) == ["W1", "b1", "W2", "b2", "W4", "b4"]
    assert [line.target for line in network.program().phase("update")] == list(network.parameters)


def test_rules_that_share_an_array_of_their_layer_share_its_number() -> None:
    """The class weights are read by two rules of the loss, and no name of the second comes twice."""
    network = Network(Linear(3, 2), loss=SoftmaxCrossEntropy(class_weight=[1, 2]))
    lines = network.program(weighted=True).phase("loss")
    assert str(lines[-4]) == "v = w * (q @ class_weight)"
    assert [line.target for line in lines] == [
        "q",
        "r",
        "s",
        "e",
        "whole",
        "l",
        "v",
        "total",
        "count",
        "loss",
    ]


@dataclass(frozen=True, eq=False, repr=False)
class Block(Layer):
    """Make its layers anew whenever it is connected."""

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        return Sequential(Linear(5, 5), Tanh()).connect(graph, x)


def test_layers_made_while_connecting_do_not_share_by_accident() -> None:
    """Each block has a W of its own, though the layers of the one before are gone and their place free."""
    gc.collect()
    network = made_of(*(Block() for _ in range(6)))
    assert sum(name.startswith("W") for name in network.parameters) == 6
    check_slopes(network, **data(5))


@dataclass(frozen=True, eq=False, repr=False)
class Nameless(Layer):
    """Give its parameters without saying whose they are."""

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        return graph.apply(rules.linear_without_bias, x, Parameter((5, 5), "he_normal", 5, 5))


def test_parameters_of_no_layer_are_not_shared() -> None:
    """Without ``layer=``, a parameter is used where it is given and nowhere else."""
    assert list(made_of(Nameless(), Nameless()).parameters) == ["W1", "W2"]


@dataclass(frozen=True, eq=False, repr=False)
class Misspelt(Layer):
    """Give an option its rule does not have."""

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        return graph.apply(rules.leaky_relu, x, slop=0.3)


def test_an_option_the_rule_does_not_have_is_named() -> None:
    """A misspelt option is refused, not left unread."""
    with pytest.raises(RuleError, match="leaky_relu has no option slop"):
        made_of(Misspelt())


def test_the_gradient_of_an_unused_parameter_is_left_out() -> None:
    """What the loss does not depend on has no gradient and no update."""

    class Ignored(Layer):
        def connect(self, graph: Graph, x: Value) -> Value:
            Linear(5, 9).connect(graph, x)
            return x

    network = made_of(Ignored(), Linear(5, 3))
    outputs = step(network, **data(3))
    assert [name for name in outputs if name.startswith("dW")] == ["dW2"]
    assert "z1" not in {line.target for line in network.program().lines}

"""Rules of a user's own are compiled; a line that cannot be is named, and training goes on with the reference."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from handgrad import SGD, Layer, Linear, MeanSquaredError, Network, rule, train
from handgrad.engines import Epoch, ReferenceEngine, UnsupportedLineError
from handgrad.engines.compiled import CompiledEngine
from handgrad.errors import HandgradNotice
from handgrad.layers import Graph, Parameter, Value
from handgrad.rules import Index, Rule
from handgrad.rules.primitives import add_rows_at, rows

from .agreement import BOUNDS, Case, check_agreement, check_case

# ruff: noqa: RET504 - rules return names


@rule("... -> ...")
def kinked(z, *, low=-0.5, high=0.75):
    """Clip, choose and compare."""
    inside = (z > low) & (z <= high)
    outside = ~inside
    c = np.clip(z, low, high)
    a = np.where(inside, c * c, 0.5 * c) + outside * np.abs(z) * 0.1
    return a


@kinked.backward
def kinked_backward(da, z, inside, outside, c):
    dz = np.where(inside, 2 * c * da, 0.0) + outside * np.sign(z) * 0.1 * da
    return dz


@rule("... -> ...")
def wave(z, *, frequency=1.5):
    """Add sines, cosines, powers, roots and the rest of elementary functions."""
    s = np.sin(frequency * z)
    q = np.sqrt(1 + z**2)
    a = (
        s * np.exp(-(z**2)) / q
        + np.log1p(np.abs(z)) * np.cos(z)
        + q**1.5
        + np.arctan(z)
        + np.sinh(z) / np.cosh(z)
    )
    return a


@wave.backward
def wave_backward(da, z, s, q, *, frequency):
    inner = np.exp(-(z**2)) / q
    first = frequency * np.cos(frequency * z) * inner - s * inner * (2 * z + z / q**2)
    second = np.sign(z) / (1 + np.abs(z)) * np.cos(z) - np.log1p(np.abs(z)) * np.sin(z)
    dz = da * (first + second + 1.5 * z / np.sqrt(q) + 1 / (1 + z * z) + np.cosh(z) ** -2)
    return dz


@rule("... -> ...")
def assorted(z):
    """Take every other function there is, kept in its domain."""
    u = np.tanh(z) * 0.9
    a = np.arcsin(u) + np.arccos(u) * u + np.tan(u) + np.floor(z) * 0.01 + np.ceil(z) * 0.01 + np.expm1(u)
    b = a + np.log(2 + u) + np.square(u) + np.reciprocal(2 + u) + np.negative(u) + np.maximum(u, 0.1)
    c = (
        b
        + np.minimum(u, -0.1)
        + np.power(np.absolute(u), 2.5)
        + np.multiply(u, u)
        - np.subtract(u, 1)
        + (2 + u) ** -2
    )
    return c


@assorted.backward
def assorted_backward(dc, u):
    du = dc * u
    dz = du * (1 - u * u)
    return dz


@rule("N... F -> N... F")
def root_mean_square(x, *, epsilon=1e-3):
    """Sum over axes, with the axes kept."""
    square = np.sum(x**2, axis=-1, keepdims=True) / x.shape[-1]
    r = 1 / np.sqrt(square + epsilon)
    y = x * r
    return y


@root_mean_square.backward
def root_mean_square_backward(dy, r, y):
    dx = r * (dy - y * (dy * y).mean(axis=-1, keepdims=True))
    return dx


@rule("N... F, F, F -> N... F")
def scaled(x, gain, shift):
    """Take parameters of the features, and the largest and smallest of each row and of each column."""
    top = x.max(axis=-1, keepdims=True)
    low = np.min(x, axis=-1, keepdims=True)
    y = (x - low) / (top - low + 1) * gain + np.exp(shift)
    return y


@scaled.backward
def scaled_backward(dy, x, gain, shift, top, low):
    span = top - low + 1
    dx = dy * gain / span
    dgain = rows(dy * (x - low) / span).sum(axis=0)
    dshift = rows(dy).sum(axis=0) * np.exp(shift)
    return dx, dgain, dshift


@rule("N... F -> N... F")
def centred_on_the_batch(x):
    """Take means over the batch and over everything, and the largest of each column."""
    m = rows(x).mean(axis=0)
    largest = rows(x).max(axis=0)
    whole = (x * x).mean()
    y = (x - m) / (1 + whole) + 0.1 * largest
    return y


@centred_on_the_batch.backward
def centred_on_the_batch_backward(dy, whole):
    dx = dy / (1 + whole) - rows(dy).sum(axis=0) / (1 + whole)
    return dx


@rule("... -> ...")
def decided_once(z):
    """Compare single numbers, and sum what comparisons give."""
    size = np.sqrt((z * z).mean())
    large = size > 0.5
    share = ((z > 0) * 0.5).sum() / z.size
    a = np.where(large, z / size, z) * (1 + share) + (size > share) * 0.1
    return a


@decided_once.backward
def decided_once_backward(da, size, large, share):
    dz = da * np.where(large, 1 / size, 1.0) * (1 + share)
    return dz


@rule("N... I, I J, J O -> N... O")
def bottleneck(x, U, V):
    """Multiply twice in one line, once two weights."""
    z = x @ (U @ V)
    return z


@bottleneck.backward
def bottleneck_backward(dz, x, U, V):
    dW = rows(x).T @ rows(dz)
    dx = dz @ V.T @ U.T
    dU = dW @ V.T
    dV = U.T @ dW
    return dx, dU, dV


@dataclass(frozen=True, eq=False, repr=False)
class Own(Layer):
    """A layer of a rule, with parameters of one size for each of the lists given."""

    rule: Rule
    shapes: tuple[tuple[int, ...], ...] = ()
    options: dict[str, float] = field(default_factory=dict)

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        kept = [
            Parameter(shape, "glorot_normal" if len(shape) > 1 else "ones", *shape[:2])
            for shape in self.shapes
        ]
        return graph.apply(self.rule, x, *kept, layer=self, **self.options)


RNG = np.random.default_rng(0)
X = {2: RNG.normal(size=(23, 5)), 3: RNG.normal(size=(23, 4, 5))}
T = {2: RNG.normal(size=(23, 3)), 3: RNG.normal(size=(23, 4, 3))}

OWN = {
    "kinked": Own(kinked),
    "kinked elsewhere": Own(kinked, options={"low": -0.2, "high": 0.1}),
    "wave": Own(wave),
    "assorted": Own(assorted),
    "root mean square": Own(root_mean_square),
    "scaled": Own(scaled, ((19,), (19,))),
    "centred on the batch": Own(centred_on_the_batch),
    "decided once": Own(decided_once),
    "bottleneck": Own(bottleneck, ((19, 2), (2, 19))),
}


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("name", OWN)
def test_a_rule_of_ones_own_is_compiled(name: str, rank: int, dtype: str) -> None:
    """It gives the numbers of its own NumPy lines."""

    def network(dtype: str) -> Network:
        layers = [Linear(5, 19, bias=False), OWN[name], Linear(19, 3)]
        inputs = (5,) if rank == 2 else (4, 5)
        return Network(*layers, loss=MeanSquaredError(), inputs=inputs, dtype=dtype)

    check_case(Case(network, {"x": X[rank], "t": T[rank]}, rate=0.01), dtype, (6, 30))


# What is not compiled: each rule with the line that stops it, and a word of the reason.


@rule("... -> ...")
def sorted_values(z):
    a = np.sort(z) + z * 0
    return a


@sorted_values.backward
def sorted_values_backward(da):
    dz = da * 1.0
    return dz


@rule("N... F -> N... F")
def reversed_features(x):
    y = x[..., ::-1] * 1.0
    return y


@reversed_features.backward
def reversed_features_backward(dy):
    dx = dy[..., ::-1] * 1.0
    return dx


@rule("... -> ...")
def remainder(z):
    a = z % 1.0
    return a


@remainder.backward
def remainder_backward(da):
    dz = da * 1.0
    return dz


@rule("... -> ...")
def chained(z):
    a = np.where((z > 0) == (z > -1), z, 0.5 * z) + np.cumsum(z, axis=-1)
    return a


@chained.backward
def chained_backward(da):
    dz = da * 1.0
    return dz


@rule("... -> ...")
def counted(z):
    a = z * (z > 0).sum()
    return a


@counted.backward
def counted_backward(da, z):
    dz = da * (z > 0).sum()
    return dz


@rule("N... F -> N... F")
def median_of_rows(x):
    y = x - np.median(x, axis=-1, keepdims=True)
    return y


@median_of_rows.backward
def median_of_rows_backward(dy):
    dx = 1.0 * dy
    return dx


NOT_COMPILED = {
    "sorted_values": (sorted_values, "a1 = np.sort(z1) + z1 * 0", "np.sort"),
    "reversed_features": (reversed_features, "y1 = z1[..., ::-1] * 1.0", "with a step"),
    "remainder": (remainder, "a1 = z1 % 1.0", "%"),
    "chained": (chained, "a1 = np.where", "np.cumsum"),
    "counted": (counted, "a1 = z1 * (z1 > 0).sum()", "truth values"),
    "median_of_rows": (median_of_rows, "y1 = z1 - np.median", "np.median"),
}


def with_rule(own: Rule) -> Network:
    layers = [Linear(5, 7), Own(own), Linear(7, 3)]
    return Network(*layers, loss=MeanSquaredError(), dtype="float64", seed=0)


@pytest.mark.parametrize("name", NOT_COMPILED)
def test_a_line_that_is_not_compiled_is_named(name: str) -> None:
    """Line, layer and reason; training goes on with the reference engine and gives its numbers."""
    own, line, reason = NOT_COMPILED[name]
    program, made = with_rule(own).program(), with_rule(own)
    with pytest.raises(UnsupportedLineError) as caught:
        CompiledEngine().bind(program, made.arrays)
    assert str(caught.value.line).startswith(line)
    assert line in str(caught.value)
    assert "layer 2, Own(" in str(caught.value)
    assert reason in str(caught.value).partition("): ")[2]

    with pytest.warns(HandgradNotice, match="the compiled engine is not used") as noticed:
        history = train(made, X[2], T[2], epochs=2, batch_size=6, optimiser=SGD(1e-5))
    assert len(noticed) == 1
    assert line in str(noticed[0].message)
    assert history.facts["engine"] == "reference"
    expected = with_rule(own)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # who asks for the reference hears nothing
        train(expected, X[2], T[2], epochs=2, batch_size=6, optimiser=SGD(1e-5), engine="reference")
    for kept, array in expected.arrays.items():
        assert made.arrays[kept].tobytes() == array.tobytes(), kept


@rule("N..., V D -> N... D")
def looked_up_shifted(i: Index, E):
    S = E + 1.0
    h = S[i]
    return h


@looked_up_shifted.backward
def looked_up_shifted_backward(dh, i, E):
    dE = add_rows_at(i, dh, E)
    return dE


class ShiftedTable(Layer):
    """Look rows up in a table that is computed."""

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        return graph.apply(looked_up_shifted, x, Parameter((5, 4), "standard_normal"), layer=self)


def test_rows_of_a_computed_table_are_not_compiled() -> None:
    """Native code looks rows up only where it has looked at all indices before."""
    made = Network(ShiftedTable(), Linear(4, 2), inputs=(), loss=MeanSquaredError())
    with pytest.raises(
        UnsupportedLineError, match="indexing other than rows of a parameter by whole numbers"
    ):
        CompiledEngine().bind(made.program().without_updates(), made.arrays)


@pytest.mark.parametrize("options", [{"frequency": 1.5}, {"frequency": 0.3}])
def test_an_epoch_of_ones_own_rule_agrees(options: dict[str, float]) -> None:
    """Through `Epoch` too, with SGD that is fused into the products."""
    results = []
    for engine in (CompiledEngine(), ReferenceEngine()):
        made = Network(
            Linear(5, 19), Own(wave, options=options), Linear(19, 3), loss=MeanSquaredError(), dtype="float64"
        )
        bound: Any = engine.bind(made.program(SGD()).keeping("total", "count"), made.arrays)
        loss = bound.epoch(Epoch({"x": X[2], "t": T[2]}, np.arange(23), 6, np.full(4, 0.01)))
        results.append(made.arrays | {"loss": np.array(loss)})
    check_agreement(*results, "float64", "wave")

"""Loops over time of a user's own are compiled as NumPy runs them, whatever they read and write; or not at all."""

# ruff: noqa: RET504 - rules return names

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pytest

from handgrad import Layer, Linear, MeanSquaredError, Network, rule
from handgrad.engines import UnsupportedLineError
from handgrad.engines.compiled import CompiledEngine
from handgrad.layers import Graph, Value
from handgrad.rules import Rule

from .agreement import BOUNDS, Case, check_case

ROWS, TIMES, FEATURES = 23, 5, 3
RNG = np.random.default_rng(0)
DATA = {name: RNG.normal(size=(ROWS, TIMES, FEATURES)) for name in ("x", "t")}


@rule("N T F -> N T F")
def summed(x):
    """Add up in place what a line has computed before."""
    y = 2 * x
    for t in range(x.shape[1] - 1):
        y[:, t + 1] += y[:, t]
    return y


@rule("N T F -> N T F")
def mirrored(x):
    """Read what other times will write, still as it was, and what they have written."""
    y = x * x
    for t in range(x.shape[1]):
        y[:, t] = x[:, t] + 0.5 * y[:, x.shape[1] - 1 - t]
    return y


@rule("N T F -> N T F")
def some_times(x):
    """Leave some times as they were."""
    y = np.tanh(x)
    for t in reversed(range(x.shape[1] - 3)):
        y[:, t + 1] = y[:, t + 3] * x[:, t]
    return y


@rule("N T F -> N T F")
def feature_by_feature(x):
    """Write parts of a time, and read them together."""
    u = np.zeros_like(x)
    y = np.zeros_like(x)
    for t in range(x.shape[1]):
        u[:, t, 0] = x[:, t, 1]
        u[:, t, 1] = u[:, t, 0] * x[:, t, 2]
        u[:, t, 2:] = x[:, t, :1] - 1
        y[:, t] = np.exp(u[:, t]) + u[:, t, :1]
    return y


@rule("N T F -> N T F")
def twice(x):
    """Go through an array in two loops, the second backward."""
    y = np.zeros_like(x)
    for t in range(x.shape[1]):
        y[:, t] = x[:, t] * 3
    for s in reversed(range(x.shape[1] - 1)):
        y[:, s] += 0.5 * y[:, s + 1]
    return y


@rule("N T F -> N T F")
def last_of_an_axis(x):
    y = np.zeros_like(x)
    for t in range(x.shape[1]):
        y[:, t] = x[:, t] + y[:, t - 1]
    return y


@rule("N T F -> N T F")
def number_of_time(x):
    y = np.zeros_like(x)
    for t in range(x.shape[1]):
        y[:, t] = x[:, t] * t
    return y


@rule("N T F -> N T F")
def number_of_next_time(x):
    y = np.zeros_like(x)
    for t in range(x.shape[1]):
        y[:, t] = x[:, t] * (t + 1)
    return y


@rule("N T F -> N T F")
def time_added(x):
    y = np.zeros_like(x)
    for t in range(x.shape[1]):
        y[:, t] = x[:, t] + t
    return y


IN_NO_INDEX = "a loop's variable in anything but an index, as `t`, `t + 1` or `t - 1`"

COMPILED = (summed, some_times, feature_by_feature, twice)
NOT_COMPILED = {
    last_of_an_axis: "an index that is outside of an axis at some time",
    number_of_time: IN_NO_INDEX,
    number_of_next_time: IN_NO_INDEX,
    time_added: IN_NO_INDEX,
    mirrored: "it overwrites what another step of its time still reads",
}
for each in (*COMPILED, *NOT_COMPILED):

    @each.backward
    def scaled(dy):
        dx = 2 * dy  # no gradient: both engines are to compute what the lines state
        return dx


@dataclass(frozen=True, eq=False, repr=False)
class Own(Layer):
    """Apply a rule."""

    rule: Rule

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        return graph.apply(self.rule, x)


def network(of: Rule, dtype: str) -> Network:
    layers = Linear(FEATURES, FEATURES), Own(of), Linear(FEATURES, FEATURES)
    return Network(*layers, loss=MeanSquaredError(), inputs=(TIMES, FEATURES), dtype=dtype)


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("of", COMPILED, ids=lambda of: of.name)
def test_a_loop_is_compiled_as_numpy_runs_it(of: Rule, dtype: str) -> None:
    check_case(Case(lambda dtype: network(of, dtype), DATA, rate=0.001), dtype)


@pytest.mark.parametrize("of", NOT_COMPILED, ids=lambda of: of.name)
def test_what_is_not_compiled_is_named(of: Rule) -> None:
    """An address outside of an array would be read; so would a number that no step has."""
    made = network(of, "float64")
    with pytest.raises(UnsupportedLineError, match=re.escape(NOT_COMPILED[of])):
        CompiledEngine().bind(made.program(optimiser=None), made.arrays)

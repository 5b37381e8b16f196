"""Which layer leads from some rows to a value that the author's forward computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from handgrad import rules
from handgrad.adopting.traced_values import Array, TracedValues, as_rows
from handgrad.layers import ACTIVATIONS, ELU, GELU, BatchNorm, Layer, LayerNorm, LeakyReLU, Linear, Softmax
from handgrad.tolerance import close

NOWHERE = -1  # in a trace

Take = Callable[[Array], Array]


@dataclass(frozen=True)
class Kept:
    """Where an array of a layer is in the author's program: which value, and how it is taken from it."""

    leaf: int
    take: Take


Owned = tuple[Layer, dict[str, Kept]]
"""A layer, and its arrays by their names in its rule."""


@dataclass(frozen=True)
class Step:
    """A layer of the network, and the value of the author's forward that it computes."""

    layer: Layer
    owned: tuple[Owned, ...]
    value: int
    rows: list[Array]  # at every draw


def possible_steps(rows: list[Array], values: TracedValues, parameters: Sequence[int]) -> Iterator[Step]:
    """Yield the linear maps and activations that fit some rows, whether the forward computes their values or not.

    A forward that goes through its rows one by one never has them together.
    """
    for candidates in (_linear, _elementwise):
        for made, owned, outputs in candidates(rows, values, parameters):
            yield Step(made, ((made, owned),) if owned else (), NOWHERE, outputs)


def steps_from(rows: list[Array], values: TracedValues, parameters: Sequence[int]) -> Iterator[Step]:
    """Yield the layers that lead from some rows to values of the forward; those with parameters first."""
    for candidates in (_linear, _normalised, _elementwise):
        for made, owned, outputs in candidates(rows, values, parameters):
            found = values.find(outputs)
            if found is not None:
                yield Step(made, ((made, owned),) if owned else (), found, outputs)


Candidate = tuple[Layer, dict[str, Kept], list[Array]]


def _linear(rows: list[Array], values: TracedValues, parameters: Sequence[int]) -> Iterator[Candidate]:
    """Yield linear maps by every parameter whose sizes fit, with a bias of its own, in the weights, or without one."""
    features = rows[0].shape[1]
    for leaf in parameters:
        arrays = values.at(leaf)
        for weight, bias in _matrices(arrays[0].shape, features):
            matrices = [weight(array) for array in arrays]
            outputs = matrices[0].shape[1]
            z = [x @ w for x, w in zip(rows, matrices, strict=True)]
            kept = {"W": Kept(leaf, weight)}
            if bias is not None:
                z = [a + bias(array) for a, array in zip(z, arrays, strict=True)]
                yield Linear(features, outputs), {**kept, "b": Kept(leaf, bias)}, z
                continue
            for other in parameters:
                b = values.at(other)
                if other != leaf and b[0].size == outputs and b[0].shape.count(1) >= b[0].ndim - 1:
                    moved = [a + each.reshape(-1) for a, each in zip(z, b, strict=True)]
                    own = Kept(other, _flat)
                    yield Linear(features, outputs), {**kept, "b": own}, moved
            yield Linear(features, outputs, bias=False), kept, z


def _matrices(shape: tuple[int, ...], features: int) -> Iterator[tuple[Take, Take | None]]:
    """Yield how an array of this shape is a (features, outputs) matrix, and a bias where it has one row more."""
    if len(shape) > 2:
        return
    for turned in (False, True) if len(shape) == 2 else (False,):
        length = shape[-1] if turned else shape[0] if shape else 1
        matrix = partial(_matrix, turned=turned)
        if length == features:
            yield matrix, None
        if length == features + 1:
            yield partial(_part, matrix=matrix, rows=slice(None, -1)), partial(_part, matrix=matrix, rows=-1)
            yield partial(_part, matrix=matrix, rows=slice(1, None)), partial(_part, matrix=matrix, rows=0)
    if features == 1 and len(shape) == 1 and shape[0] > 1:
        yield _one_row, None


def _matrix(array: Array, *, turned: bool) -> Array:
    if array.ndim == 2:
        return array.T if turned else array
    return array.reshape(-1, 1)


def _one_row(array: Array) -> Array:
    return array.reshape(1, -1)


def _part(array: Array, *, matrix: Take, rows: Any) -> Array:
    return matrix(array)[rows]


def _flat(array: Array) -> Array:
    return array.reshape(-1)


def _elementwise(rows: list[Array], values: TracedValues, _: Sequence[int]) -> Iterator[Candidate]:
    """Yield activations; a slope or an α is a number that the forward is written with."""
    for layer, function in _activations(values.numbers):
        outputs = [function(x) for x in rows]
        if not close(outputs[-1], rows[-1]):  # a rectifier of what is positive does nothing
            yield layer, {}, outputs


def _activations(numbers: Sequence[float]) -> Iterator[tuple[Layer, Callable[[Array], Array]]]:
    for kind in ACTIVATIONS.values():
        layer = kind()
        yield layer, layer.rule.function  # type: ignore[attr-defined]  # they apply one rule
    yield GELU("tanh"), rules.gelu_tanh.function
    yield Softmax(), rules.softmax.function
    for number in numbers:
        if 0 < number < 1:
            yield LeakyReLU(number), partial(rules.leaky_relu.function, slope=number)
        if number > 0:
            yield ELU(number), partial(rules.elu.function, alpha=number)


def _normalised(rows: list[Array], values: TracedValues, parameters: Sequence[int]) -> Iterator[Candidate]:
    """Yield normalisations with a gain and a shift; ε is a number that the forward is written with, or 0."""
    features = rows[0].shape[1]
    fitting = [i for i in parameters if values.at(i)[0].size == features]
    if len(fitting) < 2 or features == 1:
        return
    nothing = [np.zeros(features)] * 2  # running statistics, which training does not read
    for epsilon in (*(number for number in values.numbers if 0 < number < 0.1), 0.0):
        for gamma in fitting:
            for beta in (i for i in fitting if i != gamma):
                pairs = zip(rows, values.at(gamma), values.at(beta), strict=True)
                given = [(x, _flat(g), _flat(b)) for x, g, b in pairs]
                kept = {"gamma": Kept(gamma, _flat), "beta": Kept(beta, _flat)}
                by_row = [rules.layer_norm.function(*each, epsilon=epsilon) for each in given]
                yield LayerNorm(epsilon=epsilon), kept, by_row
                if len(rows[0]) > 1:
                    by_column = [
                        rules.batch_norm.function(*each, *nothing, epsilon=epsilon) for each in given
                    ]
                    yield BatchNorm(epsilon=epsilon), kept, by_column


def same_rows(value: int, values: TracedValues, count: int) -> Iterator[list[Array]]:
    """Yield a value at every draw as a matrix of so many rows, in each layout in which it is one."""
    forms = [list(as_rows(array, count)) for array in values.at(value)]
    yield from (list(each) for each in zip(*forms, strict=True))

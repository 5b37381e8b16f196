"""From an estimator's parameters and rows to handgrad's own objects: networks, optimisers, bound programs.

Bound programs are cached for every fit of the same shape, which makes fits of few rows quick.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import NotFittedError

from handgrad.arrays import Array
from handgrad.engines import DEFAULT_ENGINE, BoundProgram, bind
from handgrad.errors import EstimatorError
from handgrad.layers import ACTIVATIONS as ELEMENTWISE
from handgrad.layers import SGD, Adam, Cosine, Layer, OneCycle, Optimiser, Schedule, Sigmoid
from handgrad.network import Network
from handgrad.program import Program

ACTIVATIONS: dict[str, type[Layer] | None] = {
    "identity": None,
    "logistic": Sigmoid,
    **{name: layer for name, layer in ELEMENTWISE.items() if layer is not Sigmoid},
}
"""The activations by scikit-learn's names, and those it does not have."""

SCHEDULES: dict[str, Schedule] = {"cosine": Cosine(), "one_cycle": OneCycle()}
"""The learning rates that are known before the training starts; scikit-learn's own follow from it."""

FIND = "find"
"""The learning rate that a range test finds."""

MAX_CACHED = 8
"""Programs that wait for a fit of their shape: a grid search over a few shapes finds them all, and memory stays small."""


def build_optimiser(estimator: Any) -> Optimiser:
    """Return the optimiser that an estimator's parameters describe."""
    rate, momentum = float(estimator.learning_rate_init), float(estimator.momentum)
    if estimator.solver == "adam":
        beta1, beta2 = float(estimator.beta_1), float(estimator.beta_2)
        return Adam(rate, beta1=beta1, beta2=beta2, epsilon=float(estimator.epsilon))
    return SGD(rate, momentum=momentum, nesterov=bool(estimator.nesterovs_momentum) and momentum > 0)


def draw_weights(network: Network, activation: str, state: np.random.RandomState) -> None:
    """Draw weights and biases as scikit-learn does: the same state gives the same numbers."""
    factor = 2 if activation == "logistic" else 6
    for W, b in zip(parameters_of(network, "W"), parameters_of(network, "b"), strict=True):
        bound = np.sqrt(factor / sum(W.shape))
        W[...] = state.uniform(-bound, bound, W.shape)
        b[...] = state.uniform(-bound, bound, b.shape)


class ParameterList(list[Array]):
    """Arrays of a network in a list; setting one writes its numbers into the network."""

    def __setitem__(self, place: Any, numbers: Any) -> None:
        self[place][...] = numbers


def parameters_of(network: Network, letter: str) -> ParameterList:
    """Return the weights ("W") or the biases ("b") of the linear layers, in order."""
    return ParameterList(
        array for name, array in network.parameters.items() if re.fullmatch(rf"{letter}\d+", name)
    )


def parameter_list(letter: str, meaning: str) -> property:
    """Return the property of an estimator that has the network's weights or biases, and writes into them."""
    name = {"W": "coefs_", "b": "intercepts_"}[letter]

    def assign(estimator: Any, arrays: list[ArrayLike]) -> None:
        if not hasattr(estimator, "network_"):
            raise NotFittedError(
                f"This {type(estimator).__name__} instance is not fitted yet: {name} are the arrays of its network, which "
                f"'fit' or 'partial_fit' makes. Call one of them first, then set {name}."
            )
        found = parameters_of(estimator.network_, letter)
        own, given = [array.shape for array in found], [np.shape(array) for array in arrays]
        if own != given:
            raise EstimatorError(f"{name} are {own}, and {given} are given")
        for array, numbers in zip(found, arrays, strict=True):
            array[...] = numbers

    return property(lambda estimator: parameters_of(estimator.network_, letter), assign, doc=meaning)


_cache: OrderedDict[tuple[str, ...], FitProgram] = OrderedDict()


@dataclass(frozen=True)
class FitProgram:
    """A program, bound to ``arrays`` of its own: parameters, buffers and the optimiser's slots."""

    program: Program
    bound: BoundProgram
    arrays: dict[str, Array]

    def load(self, arrays: dict[str, Array]) -> None:
        """Copy numbers in, by name; what is not given is 0."""
        for name, own in self.arrays.items():
            own[...] = arrays.get(name, 0)

    def store(self, network: Network) -> None:
        """Copy the numbers into the network's arrays."""
        for name, array in network.arrays.items():
            array[...] = self.arrays[name]


@contextmanager
def fit_program(network: Network, optimiser: Optimiser | None, *, weighted: bool) -> Iterator[FitProgram]:
    """Lend the training program of a network: with an optimiser's updates, or with the gradients as outputs.

    Nobody else has it meanwhile. Taking and giving back are single operations on the dictionary, so that threads
    need no lock; one that finds nothing makes a program of its own.
    """
    at_any_rate = optimiser and replace(optimiser, learning_rate=1.0)  # the rate comes with each epoch
    key = (repr(network), str(network.row), network.dtype, repr(at_any_rate), str(weighted))
    found = _cache.pop(key, None)
    if found is None:
        program = network.program(optimiser, weighted=weighted)
        program = program.keeping("total", "count") if optimiser else program.without_updates()
        arrays = {name: array.copy() for name, array in network.arrays_for(program).items()}
        found = FitProgram(program, bind(DEFAULT_ENGINE, program, arrays), arrays)
    try:
        yield found
    finally:
        _cache[key] = found
        while len(_cache) > MAX_CACHED:
            _cache.popitem(last=False)

"""The weights and biases of a network by layer: drawn, shown in lists, and written through them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from handgrad.network import Network
from handgrad.sklearn.errors import EstimatorError

Array = NDArray[Any]


def draw_weights(network: Network, activation: str, state: np.random.RandomState) -> None:
    """Draw weights and biases as scikit-learn does: the same state gives the same numbers."""
    factor = 2 if activation == "logistic" else 6
    for W, b in zip(weights_of(network), biases_of(network), strict=True):
        bound = np.sqrt(factor / sum(W.shape))
        W[...] = state.uniform(-bound, bound, W.shape)
        b[...] = state.uniform(-bound, bound, b.shape)


def weights_of(network: Network) -> list[Array]:
    """Return the matrices of the linear layers, in order."""
    return [array for name, array in network.parameters.items() if re.fullmatch(r"W\d+", name)]


def biases_of(network: Network) -> list[Array]:
    """Return the biases of the linear layers, in order."""
    return [array for name, array in network.parameters.items() if re.fullmatch(r"b\d+", name)]


class Written(list[Array]):
    """Arrays of a network in a list; setting one writes its numbers into the network."""

    def __setitem__(self, place: Any, numbers: Any) -> None:
        self[place][...] = numbers


def write(own: list[Array], arrays: list[ArrayLike], name: str) -> None:
    """Write arrays into those of the network, after a look at their shapes."""
    shapes, given = [array.shape for array in own], [np.shape(array) for array in arrays]
    if shapes != given:
        raise EstimatorError(f"{name} are {shapes}, and {given} are given")
    for array, numbers in zip(own, arrays, strict=True):
        array[...] = numbers

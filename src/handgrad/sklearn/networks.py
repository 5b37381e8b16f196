"""From an estimator's parameters to handgrad's own objects: a network with its weights, an optimiser, learning rates."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from handgrad.errors import EstimatorError
from handgrad.layers import ACTIVATIONS as ELEMENTWISE
from handgrad.layers import (
    SGD,
    Adam,
    BatchNorm,
    Cosine,
    Dropout,
    Layer,
    LayerNorm,
    Linear,
    Loss,
    OneCycle,
    Optimiser,
    Schedule,
    Sigmoid,
)
from handgrad.network import Network
from handgrad.network.network import DType

Array = NDArray[Any]

ACTIVATIONS: dict[str, type[Layer] | None] = {
    "identity": None,
    "logistic": Sigmoid,
    **{name: layer for name, layer in ELEMENTWISE.items() if layer is not Sigmoid},
}
"""The activations by scikit-learn's names, and those it does not have."""

NORMALISATIONS: dict[str, type[Layer]] = {"batch": BatchNorm, "layer": LayerNorm}

SCHEDULES: dict[str, Schedule] = {"cosine": Cosine(), "one_cycle": OneCycle()}
"""The learning rates that are known before the training starts; scikit-learn's own follow from it."""


def build_network(
    units: list[int], activation: str, normalisation: str | None, dropout: float, loss: Loss, dtype: DType
) -> Network:
    """Put the layers of an estimator together; normalisation and dropout are those of each hidden layer."""
    layers: list[Layer] = []
    *hidden, last = pairwise(units)
    for inputs, outputs in hidden:
        layers.append(Linear(inputs, outputs, initialiser="glorot_uniform"))
        layers += [NORMALISATIONS[normalisation]()] if normalisation else []
        kind = ACTIVATIONS[activation]
        layers += [kind()] if kind else []
        layers += [Dropout(dropout)] if dropout else []
    return Network(*layers, Linear(*last, initialiser="glorot_uniform"), loss=loss, dtype=dtype)


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

    def assign(self, arrays: list[ArrayLike], name: str) -> None:
        """Write all arrays into the network, if their shapes are its own."""
        own, given = [array.shape for array in self], [np.shape(array) for array in arrays]
        if own != given:
            raise EstimatorError(f"{name} are {own}, and {given} are given")
        for place, numbers in enumerate(arrays):
            self[place] = numbers


def parameters_of(network: Network, letter: str) -> ParameterList:
    """Return the weights ("W") or the biases ("b") of the linear layers, in order."""
    return ParameterList(
        array for name, array in network.parameters.items() if re.fullmatch(rf"{letter}\d+", name)
    )

"""From an estimator's parameters to handgrad's own objects: a network, an optimiser, learning rates."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.layers import (
    ELU,
    GELU,
    SGD,
    Adam,
    BatchNorm,
    Cosine,
    Dropout,
    Layer,
    LayerNorm,
    LeakyReLU,
    Linear,
    Loss,
    OneCycle,
    Optimiser,
    ReLU,
    Schedule,
    Sigmoid,
    SiLU,
    Softplus,
    Tanh,
)
from handgrad.network import Network

Array = NDArray[Any]

ACTIVATIONS: dict[str, type[Layer] | None] = {
    "identity": None,
    "logistic": Sigmoid,
    "tanh": Tanh,
    "relu": ReLU,
    "leaky_relu": LeakyReLU,
    "elu": ELU,
    "gelu": GELU,
    "silu": SiLU,
    "softplus": Softplus,
}
"""The activations by scikit-learn's names, and those it does not have."""

NORMALISATIONS: dict[str, type[Layer]] = {"batch": BatchNorm, "layer": LayerNorm}

SCHEDULES: dict[str, Schedule] = {"cosine": Cosine(), "one_cycle": OneCycle()}
"""The learning rates that are known before the training starts; scikit-learn's own follow from it."""


def build_network(
    units: list[int], activation: str, normalisation: str | None, dropout: float, loss: Loss, dtype: str
) -> Network:
    """Put the layers of an estimator together; each hidden layer may be normalised and thinned out."""
    layers: list[Layer] = []
    *hidden, last = pairwise(units)
    for inputs, outputs in hidden:
        layers.append(Linear(inputs, outputs, initialiser="glorot_uniform"))
        layers += [NORMALISATIONS[normalisation]()] if normalisation else []
        kind = ACTIVATIONS[activation]
        layers += [kind()] if kind else []
        layers += [Dropout(dropout)] if dropout else []
    return Network(*layers, Linear(*last, initialiser="glorot_uniform"), loss=loss, dtype=dtype)


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


def build_optimiser(parameters: dict[str, Any]) -> Optimiser:
    """Return the optimiser that an estimator's parameters describe."""
    rate = float(parameters["learning_rate_init"])
    if parameters["solver"] == "adam":
        return Adam(
            rate,
            beta1=float(parameters["beta_1"]),
            beta2=float(parameters["beta_2"]),
            epsilon=float(parameters["epsilon"]),
        )
    momentum = float(parameters["momentum"])
    return SGD(rate, momentum=momentum, nesterov=bool(parameters["nesterovs_momentum"]) and momentum > 0)

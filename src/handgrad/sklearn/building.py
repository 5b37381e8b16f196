"""From an estimator's parameters to handgrad's own objects: a network, an optimiser, learning rates."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

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

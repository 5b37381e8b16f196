"""Layers, losses and optimisers: rules with what they keep and how it starts, and the graph they make."""

from handgrad.layers.composition import Residual, Sequential
from handgrad.layers.elementwise import (
    ELU,
    GELU,
    Dropout,
    LeakyReLU,
    ReLU,
    Sigmoid,
    SiLU,
    Softmax,
    Softplus,
    Tanh,
)
from handgrad.layers.graph import Graph, Node, Parameter, Value
from handgrad.layers.initialisers import INITIALISERS
from handgrad.layers.layer import Layer
from handgrad.layers.linear import Embedding, Linear
from handgrad.layers.losses import (
    LOSSES,
    BinaryCrossEntropy,
    HalfSquaredError,
    Huber,
    Loss,
    MeanSquaredError,
    Poisson,
    SoftmaxCrossEntropy,
    reduce_to_mean,
)
from handgrad.layers.normalisation import BatchNorm, LayerNorm, Standardise
from handgrad.layers.optimisers import OPTIMISERS, SGD, Adam, AdamW, Optimiser, RMSProp
from handgrad.layers.schedules import SCHEDULES, Constant, Cosine, OneCycle, Schedule, StepDecay

LAYERS: dict[str, type[Layer]] = {
    kind.__name__: kind
    for kind in (
        BatchNorm,
        Dropout,
        ELU,
        Embedding,
        GELU,
        LayerNorm,
        LeakyReLU,
        Linear,
        ReLU,
        Residual,
        Sequential,
        SiLU,
        Sigmoid,
        Softmax,
        Softplus,
        Standardise,
        Tanh,
    )
}
"""Every layer by name, for configurations."""

__all__ = [
    "ELU",
    "GELU",
    "INITIALISERS",
    "LAYERS",
    "LOSSES",
    "OPTIMISERS",
    "SCHEDULES",
    "SGD",
    "Adam",
    "AdamW",
    "BatchNorm",
    "BinaryCrossEntropy",
    "Constant",
    "Cosine",
    "Dropout",
    "Embedding",
    "Graph",
    "HalfSquaredError",
    "Huber",
    "Layer",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "Loss",
    "MeanSquaredError",
    "Node",
    "OneCycle",
    "Optimiser",
    "Parameter",
    "Poisson",
    "RMSProp",
    "ReLU",
    "Residual",
    "Schedule",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "SoftmaxCrossEntropy",
    "Softplus",
    "Standardise",
    "StepDecay",
    "Tanh",
    "Value",
    "reduce_to_mean",
]

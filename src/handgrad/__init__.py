"""Neural networks whose every gradient is written out by hand: readable, proved and fast."""

from typing import TYPE_CHECKING, Any

from handgrad.errors import (
    ConfigurationError,
    ConversionError,
    DataError,
    HandgradError,
    MissingPackageError,
    RuleError,
    RunError,
    ShapeError,
    TrainingError,
)
from handgrad.layers import (
    ELU,
    GELU,
    INITIALISERS,
    SGD,
    Adam,
    AdamW,
    BatchNorm,
    BinaryCrossEntropy,
    Constant,
    Cosine,
    Dropout,
    Embedding,
    HalfSquaredError,
    Huber,
    Layer,
    LayerNorm,
    LeakyReLU,
    Linear,
    Loss,
    MeanSquaredError,
    OneCycle,
    Optimiser,
    Poisson,
    ReLU,
    Residual,
    RMSProp,
    Sequential,
    Sigmoid,
    SiLU,
    Softmax,
    SoftmaxCrossEntropy,
    Softplus,
    Standardise,
    StepDecay,
    Tanh,
)
from handgrad.network import Network
from handgrad.program import Loop
from handgrad.rules import rule, update
from handgrad.training import History, train

if TYPE_CHECKING:
    from handgrad.checking.check import check
    from handgrad.checking.subject import CheckError
    from handgrad.checkpoints import Checkpoints
    from handgrad.explaining.explain import explain
    from handgrad.explaining.explanation import Explanation

__version__ = "0.1.0"

__all__ = [
    "ELU",
    "GELU",
    "INITIALISERS",
    "SGD",
    "Adam",
    "AdamW",
    "BatchNorm",
    "BinaryCrossEntropy",
    "CheckError",
    "Checkpoints",
    "ConfigurationError",
    "Constant",
    "ConversionError",
    "Cosine",
    "DataError",
    "Dropout",
    "Embedding",
    "Explanation",
    "HalfSquaredError",
    "HandgradError",
    "History",
    "Huber",
    "Layer",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "Loop",
    "Loss",
    "MeanSquaredError",
    "MissingPackageError",
    "Network",
    "OneCycle",
    "Optimiser",
    "Poisson",
    "RMSProp",
    "ReLU",
    "Residual",
    "RuleError",
    "RunError",
    "Sequential",
    "ShapeError",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "SoftmaxCrossEntropy",
    "Softplus",
    "Standardise",
    "StepDecay",
    "Tanh",
    "TrainingError",
    "check",
    "explain",
    "rule",
    "train",
    "update",
]


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Import what takes long, or is for few, when it is first asked for."""
        if name == "Checkpoints":
            from handgrad.checkpoints import Checkpoints

            return Checkpoints
        if name in ("CheckError", "check"):
            from handgrad import checking

            return getattr(checking, name)
        if name in ("Explanation", "explain"):
            from handgrad import explaining

            return getattr(explaining, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

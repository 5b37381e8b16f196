"""Neural networks whose every gradient is written out by hand: readable, proved and fast."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from handgrad.checking.check import check
    from handgrad.checking.subject import CheckError
    from handgrad.checkpoints import Checkpoints
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
    from handgrad.explaining.explain import explain
    from handgrad.explaining.explanation import Explanation
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
    from handgrad.training import History
    from handgrad.training.train import train

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


# fmt: off
MODULES = (
    "errors", "layers", "network", "program", "rules", "training", "checkpoints", "checking", "explaining", "data",
)
# fmt: on
"""What can be reached as ``handgrad.name``; public names are looked for in this order, the quickest to import first."""

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Import what a name stands for when it is first asked for, so that help and errors wait for nothing."""
        if name in MODULES:
            return import_module(f"handgrad.{name}")
        if name in __all__:
            modules = (import_module(f"handgrad.{module}") for module in MODULES)
            globals()[name] = next(getattr(module, name) for module in modules if hasattr(module, name))
            return globals()[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        """Return the public names too, which are not there before they are asked for."""
        return sorted({*globals(), *MODULES, *__all__})

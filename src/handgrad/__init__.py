"""Neural networks whose every gradient is written out by hand: readable, proved and fast."""

from handgrad.errors import (
    ConfigurationError,
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

__version__ = "0.1.0"

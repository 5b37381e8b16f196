"""Layers with parameters or buffers: linear maps, embeddings, normalisation."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Literal

from handgrad import rules
from handgrad.arguments import Count
from handgrad.errors import ConfigurationError, ShapeError
from handgrad.layers.graph import Graph, Parameter, Value, fitted_mean_and_deviation
from handgrad.layers.layer import Layer
from handgrad.rules import show_shape

__all__ = [
    "BatchNorm",
    "Embedding",
    "GroupNorm",
    "LayerNorm",
    "Linear",
    "RMSNorm",
    "Standardise",
    "StandardiseTargets",
]


@dataclass(frozen=True, eq=False, repr=False)
class Linear(Layer):
    """Map each row affinely: ``z = x W + b``.

    Parameters
    ----------
    inputs : int
        I, features of the input.
    outputs : int
        O, features of the output.
    bias : bool, default True
        Whether there is a b (O,); it starts at 0.
    layout : "in_out" or "out_in", default "in_out"
        W is stored as (I, O), or as (O, I), as PyTorch does. The text of the rule's lines changes with it.
    initialiser : str, default "he_normal"
        The name of one of `handgrad.INITIALISERS`, for W.
    tied : str or None, default None
        The name of an array of an earlier layer that is this W too, of the shape that ``layout`` demands: "E1" for the
        table of an embedding, with ``layout="out_in"``. Its gradient is the sum of those of both uses. A square array has
        the shape of both layouts, and ``layout`` alone decides which is computed.

    Examples
    --------
    >>> Linear(784, 128)
    Linear(784, 128)
    >>> from handgrad import Network, SoftmaxCrossEntropy
    >>> layers = Embedding(7, 4), Linear(4, 7, bias=False, layout="out_in", tied="E1")
    >>> program = Network(*layers, loss=SoftmaxCrossEntropy(), inputs=(5,)).program()
    >>> print(program.line("z1"), "·", program.line("dE1"))
    z1 = h1 @ E1.T · dE1 = dE1_z1 + dE1_h1
    """

    inputs: Count
    outputs: Count
    bias: bool = True
    layout: Literal["in_out", "out_in"] = "in_out"
    initialiser: str = "he_normal"
    tied: str | None = None

    def __post_init__(self) -> None:
        if self.tied is not None and self.initialiser != Linear.initialiser:
            raise ConfigurationError(
                f"{self!r}: {self.tied} has its layer's initialiser, and this layer's is {self.initialiser!r}",
                fix="give the initialiser to the earlier layer only",
            )

    def input_shape(self) -> tuple[int, ...]:  # noqa: D102 - as in Layer
        return (self.inputs,)

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        rule = {
            (True, "in_out"): rules.linear,
            (False, "in_out"): rules.linear_without_bias,
            (True, "out_in"): rules.linear_out_in,
            (False, "out_in"): rules.linear_out_in_without_bias,
        }[self.bias, self.layout]
        shape = (self.inputs, self.outputs) if self.layout == "in_out" else (self.outputs, self.inputs)
        tied = None if self.tied is None else graph.array(self.tied)
        if tied is not None and tied.shape != shape:
            raise ShapeError(
                f"{graph.origin}: W is {tied.name}{show_shape(tied.shape)}, and {show_shape(shape)} is needed",
                fix="give its sizes as inputs and outputs, or the other layout",
            )
        kept: list[Value | Parameter] = [
            tied or Parameter(shape, self.initialiser, self.inputs, self.outputs)
        ]
        kept += [Parameter((self.outputs,), "zeros")] if self.bias else []
        return graph.apply(rule, x, *kept, layer=self)


@dataclass(frozen=True, eq=False, repr=False)
class Embedding(Layer):
    """Look up a row of a table for each index.

    Parameters
    ----------
    entries : int
        V, rows of the table: the input holds whole numbers from 0 to V - 1.
    features : int
        D, the length of each row.
    initialiser : str, default "standard_normal"
        The name of one of `handgrad.INITIALISERS`, for the table.
    """

    entries: Count
    features: Count
    initialiser: str = "standard_normal"

    def input_shape(self) -> tuple[int, ...]:  # noqa: D102 - as in Layer
        raise ConfigurationError(
            f"{self!r} does not say how many indices a row has",
            fix="give inputs=7, or inputs=() for one alone",
        )

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        shape = (self.entries, self.features)
        return graph.apply(rules.embedding, x, Parameter(shape, self.initialiser, *shape), layer=self)


@dataclass(frozen=True, eq=False, repr=False)
class BatchNorm(Layer):
    """Normalise each feature over the batch, ``y = γ x̂ + β``; outside training, by running statistics.

    Parameters
    ----------
    epsilon : float, default 1e-5
        ε, added to the variance.
    momentum : float, default 0.1
        How much of each batch's statistics goes into the running ones, as in PyTorch.
    """

    _: KW_ONLY
    epsilon: float = 1e-5
    momentum: float = 0.1

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        kept = _per_feature(self, x, "ones", "zeros", "zeros", "ones")
        return graph.apply(
            rules.batch_norm, x, *kept, layer=self, epsilon=self.epsilon, momentum=self.momentum
        )


@dataclass(frozen=True, eq=False, repr=False)
class LayerNorm(Layer):
    """Normalise each row over its features: ``y = γ x̂ + β``.

    Parameters
    ----------
    epsilon : float, default 1e-5
        ε, added to the variance.
    """

    _: KW_ONLY
    epsilon: float = 1e-5

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        kept = _per_feature(self, x, "ones", "zeros")
        return graph.apply(rules.layer_norm, x, *kept, layer=self, epsilon=self.epsilon)


@dataclass(frozen=True, eq=False, repr=False)
class RMSNorm(Layer):
    """Divide each row by the root of its mean square: ``y = γ x̂``.

    Parameters
    ----------
    epsilon : float, default 1e-5
        ε, added to the mean square.
    """

    _: KW_ONLY
    epsilon: float = 1e-5

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        return graph.apply(
            rules.rms_norm, x, *_per_feature(self, x, "ones"), layer=self, epsilon=self.epsilon
        )


@dataclass(frozen=True, eq=False, repr=False)
class GroupNorm(Layer):
    """Normalise each image over its places and over groups of channels: ``y = γ x̂ + β``, x (n, H, V, C).

    Parameters
    ----------
    groups : int, default 1
        How many parts the channels are divided into.
    epsilon : float, default 1e-5
        ε, added to the variance.
    """

    groups: Count = 1
    _: KW_ONLY
    epsilon: float = 1e-5

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        kept = _per_feature(self, x, "ones", "zeros")
        if int(x.shape[-1]) % self.groups:
            raise ConfigurationError(
                f"{graph.origin}: {x.shape[-1]} channels are not {self.groups} groups of equally many",
                fix="give groups that divide the channels",
            )
        options = {"groups": self.groups, "epsilon": self.epsilon}
        return graph.apply(rules.group_norm, x, *kept, layer=self, **options)


@dataclass(frozen=True, eq=False, repr=False)
class Standardise(Layer):
    """Give the input mean 0 and deviation 1 over the training rows, on which `handgrad.train` fits it.

    Parameters
    ----------
    over : "feature" or "all", default "feature"
        Each column by itself, for different units, except that one of nothing but 0 and 1 stays as it is; or all numbers
        together, for one unit, as pixels.
    """

    over: Literal["feature", "all"] = "feature"

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        if x.kind != "input":
            raise ConfigurationError(f"{graph.origin}: Standardise takes the data itself", fix="put it first")
        _per_feature(self, x)
        statistics = "input_statistics" if self.over == "feature" else "common_statistics"
        mean, deviation = fitted_mean_and_deviation("x", x, statistics)
        return graph.apply(rules.standardise, x, mean, deviation, layer=self)


@dataclass(frozen=True, eq=False, repr=False)
class StandardiseTargets(Layer):
    """Train on targets of mean 0 and deviation 1 over the training rows, by output; the last layer of a network.

    The loss compares what comes in with ``s = (t - t_mean) / t_deviation``; outside training the layer brings it back
    to the targets' unit: ``y = z t_deviation + t_mean``. `handgrad.train` fits the statistics. The loss is then in
    deviations of the targets.

    Parameters
    ----------
    by : "mean" or "median", default "mean"
        Mean and deviation; or median and scaled median absolute deviation, which outliers hardly change: for `Huber`.

    Examples
    --------
    >>> from handgrad import HalfSquaredError, Linear, Network
    >>> network = Network(Linear(3, 1), StandardiseTargets(), loss=HalfSquaredError())
    >>> [str(line) for line in network.program().phase("loss")][:2]
    ['s = (t - t_mean1) / t_deviation1', 'error = z1 - s']
    """

    by: Literal["mean", "median"] = "mean"

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        _per_feature(self, x)
        statistics = "feature_statistics" if self.by == "mean" else "robust_statistics"
        return graph.apply(rules.unstandardise, x, *fitted_mean_and_deviation("t", x, statistics), layer=self)


def _per_feature(layer: Layer, x: Value, *starts: str) -> list[Parameter]:
    """Return parameters of the length of the input's last axis."""
    if len(x.shape) < 2 or not isinstance(x.shape[-1], int):
        raise ShapeError(f"{layer!r}: {x.name}{show_shape(x.shape)} has no features to normalise")
    return [Parameter((x.shape[-1],), start) for start in starts]

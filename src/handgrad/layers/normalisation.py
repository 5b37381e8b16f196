"""Layers that normalise over the batch, over each row, or over the training rows."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Literal

from handgrad import rules
from handgrad.errors import ConfigurationError, ShapeError
from handgrad.layers.graph import Graph, Parameter, Value
from handgrad.layers.layer import Layer
from handgrad.rules import show_shape

__all__ = ["BatchNorm", "LayerNorm", "Standardise"]


@dataclass(frozen=True, eq=False, repr=False)
class BatchNorm(Layer):
    """Normalise each feature over the batch, and by running statistics outside training.

    Parameters
    ----------
    epsilon
        Added to the variance.
    momentum
        How much of each batch's statistics goes into the running ones.
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
    """Normalise each row over its features.

    Parameters
    ----------
    epsilon
        Added to the variance.
    """

    _: KW_ONLY
    epsilon: float = 1e-5

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        kept = _per_feature(self, x, "ones", "zeros")
        return graph.apply(rules.layer_norm, x, *kept, layer=self, epsilon=self.epsilon)


@dataclass(frozen=True, eq=False, repr=False)
class Standardise(Layer):
    """Give the input mean 0 and deviation 1 over the training rows, on which `handgrad.train` fits it.

    Parameters
    ----------
    over
        "feature" for columns of different units, each by itself; "all" for numbers of one unit, as pixels.
    """

    over: Literal["feature", "all"] = "feature"

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        if x.kind != "input":
            raise ConfigurationError(f"{graph.origin}: Standardise takes the data itself", fix="put it first")
        statistics = "feature_statistics" if self.over == "feature" else "common_statistics"
        mean, deviation = _per_feature(self, x, "zeros", "ones")
        mean, deviation = replace(mean, fit=(statistics, 0)), replace(deviation, fit=(statistics, 1))
        return graph.apply(rules.standardise, x, mean, deviation, layer=self)


def _per_feature(layer: Layer, x: Value, *starts: str) -> list[Parameter]:
    """Return parameters of the length of the input's last axis."""
    if len(x.shape) < 2 or not isinstance(x.shape[-1], int):
        raise ShapeError(f"{layer!r}: {x.name}{show_shape(x.shape)} has no features to normalise")
    return [Parameter((x.shape[-1],), start) for start in starts]

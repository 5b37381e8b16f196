"""Losses as a network takes them: what is made of the targets, a row's loss, the reduction to one number."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from handgrad import rules
from handgrad.errors import ConfigurationError
from handgrad.layers.graph import Graph, Parameter, Value
from handgrad.layers.layer import check_choice, show_call
from handgrad.rules import Rule, Shape


class Loss(ABC):
    """What a network is trained to make small.

    Attributes
    ----------
    task
        "classification" (class numbers), "labels" (yes-no answers) or "regression".
    prediction
        The rule that turns the network's output into its answer: softmax, sigmoid, or the identity.
    """

    task: Literal["classification", "labels", "regression"] = "regression"
    prediction: Rule = rules.identity

    def __repr__(self) -> str:
        return show_call(self)

    def target(self, output: Shape) -> tuple[Shape, str]:
        """Return the targets' shape for an output of this shape, and their kind: "target" or "class"."""
        return output, "target"

    @abstractmethod
    def connect(self, graph: Graph, y: Value, t: Value, w: Value | None) -> Value:
        """Apply the loss's rules to the network's output, targets, and row weights if there are any."""


def reduce_to_mean(graph: Graph, l: Value, w: Value | None, v: Value | None = None) -> Value:  # noqa: E741
    """Average the rows, each with weight ``w`` and counted ``v`` times (``w`` when not given)."""
    if w is None:
        return graph.apply(rules.mean, l)
    return graph.apply(rules.weighted_mean, l, w, w if v is None else v)


@dataclass(frozen=True, eq=False, repr=False)
class HalfSquaredError(Loss):
    """Half the sum of squared errors, ½ Σ (y - t)², over all outputs and rows (no 1/N anywhere)."""

    def connect(self, graph: Graph, y: Value, t: Value, w: Value | None) -> Value:  # noqa: D102 - as in Loss
        row = graph.apply(rules.half_squared_error, y, t)
        if w is None:
            return graph.apply(rules.sum_of_rows, row)
        return graph.apply(rules.weighted_sum_of_rows, row, w)


@dataclass(frozen=True, eq=False, repr=False)
class MeanSquaredError(Loss):
    """The mean of squared errors over all outputs and rows."""

    def connect(self, graph: Graph, y: Value, t: Value, w: Value | None) -> Value:  # noqa: D102 - as in Loss
        return reduce_to_mean(graph, graph.apply(rules.mean_squared_error, y, t), w)


@dataclass(frozen=True, eq=False, repr=False)
class Huber(Loss):
    """The mean of ½ e² for errors e up to ``delta``, and of ``delta (|e| - ½ delta)`` beyond."""

    delta: float = 1.0

    def __post_init__(self) -> None:
        if not self.delta > 0:
            raise ConfigurationError(f"Huber: delta is {self.delta}", fix="give a number above 0")

    def connect(self, graph: Graph, y: Value, t: Value, w: Value | None) -> Value:  # noqa: D102 - as in Loss
        return reduce_to_mean(graph, graph.apply(rules.huber, y, t, delta=self.delta), w)


@dataclass(frozen=True, eq=False, repr=False)
class BinaryCrossEntropy(Loss):
    """Yes-no answers given as logits; the targets are 0 or 1, or anything between.

    Parameters
    ----------
    positive_weight
        How many times a yes counts: one number for every output, or one for each.
    """

    positive_weight: float | Sequence[float] | None = None
    task = "labels"
    prediction = rules.sigmoid

    def __post_init__(self) -> None:
        if self.positive_weight is not None and not np.all(np.asarray(self.positive_weight) > 0):
            raise ConfigurationError(
                f"BinaryCrossEntropy: positive_weight is {self.positive_weight}", fix="give numbers above 0"
            )

    def connect(self, graph: Graph, y: Value, t: Value, w: Value | None) -> Value:  # noqa: D102 - as in Loss
        if self.positive_weight is None:
            return reduce_to_mean(graph, graph.apply(rules.binary_cross_entropy, y, t), w)
        outputs = int(y.shape[-1])
        weights = np.asarray(self.positive_weight, float)
        positive = np.full(outputs, weights) if weights.ndim == 0 else weights
        kept = Parameter(positive.shape, positive)
        row = graph.apply(rules.weighted_binary_cross_entropy, y, t, kept, layer=self)
        return reduce_to_mean(graph, row, w)


@dataclass(frozen=True, eq=False, repr=False)
class SoftmaxCrossEntropy(Loss):
    """One class of several; the network's outputs are logits.

    Parameters
    ----------
    targets
        "classes" for class numbers 0 to C - 1, "shares" for probabilities that add up to 1 in each row.
    smoothing
        How much of each row's share goes to all classes alike.
    ignored
        A class number whose rows do not count.
    class_weight
        How many times each class counts, C numbers. With class numbers the mean is over the weights of the
        rows' classes, with shares over the rows, as in PyTorch.
    """

    targets: Literal["classes", "shares"] = "classes"
    smoothing: float = 0.0
    ignored: int | None = None
    class_weight: Sequence[float] | None = None
    task = "classification"
    prediction = rules.softmax

    def __post_init__(self) -> None:
        check_choice("SoftmaxCrossEntropy", "targets", self.targets, ("classes", "shares"))
        if not 0 <= self.smoothing < 1:
            raise ConfigurationError(
                f"SoftmaxCrossEntropy: smoothing is {self.smoothing}", fix="give 0 or more and less than 1"
            )
        if self.targets == "shares" and self.ignored is not None:
            raise ConfigurationError(
                "SoftmaxCrossEntropy: ignored is a class number, and the targets are shares",
                fix="give those rows the sample weight 0",
            )
        if self.class_weight is not None and not np.all(np.asarray(self.class_weight) >= 0):
            raise ConfigurationError(
                f"SoftmaxCrossEntropy: class_weight is {self.class_weight}", fix="give numbers, 0 or more"
            )

    def target(self, output: Shape) -> tuple[Shape, str]:  # noqa: D102 - as in Loss
        return (output[:-1], "class") if self.targets == "classes" else (output, "target")

    def connect(self, graph: Graph, y: Value, t: Value, w: Value | None) -> Value:  # noqa: D102 - as in Loss
        if w is None and (self.ignored is not None or self.class_weight is not None):
            w = graph.apply(rules.every_row, y)
        if self.ignored is not None and w is not None:
            w = graph.apply(rules.counted_rows, t, w, ignored=self.ignored)
        q = graph.apply(rules.one_hot_targets, t, y) if self.targets == "classes" else t
        smooth = graph.apply(rules.smoothed_targets, q, smoothing=self.smoothing) if self.smoothing else q
        if self.class_weight is None:
            return reduce_to_mean(graph, graph.apply(rules.softmax_cross_entropy, y, smooth), w)
        weights = np.asarray(self.class_weight, float)
        kept = Parameter(weights.shape, weights)
        row = graph.apply(rules.class_weighted_cross_entropy, y, smooth, kept, layer=self)
        if self.targets == "shares" or w is None:
            return reduce_to_mean(graph, row, w)
        return reduce_to_mean(graph, row, w, graph.apply(rules.class_shares, w, q, kept, layer=self))


LOSSES: dict[str, type[Loss]] = {
    kind.__name__: kind
    for kind in (BinaryCrossEntropy, HalfSquaredError, Huber, MeanSquaredError, SoftmaxCrossEntropy)
}
"""Every loss by name, for configurations."""

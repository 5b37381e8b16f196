"""Losses as a network takes them: what is made of the targets, a row's loss, the reduction to one number."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial, reduce
from typing import ClassVar, Literal

import numpy as np

from handgrad import rules
from handgrad.arguments import Fraction, Judged, NonNegative, Positive
from handgrad.errors import ConfigurationError
from handgrad.layers.graph import Graph, Parameter, Value
from handgrad.layers.layer import show_call
from handgrad.rules import Rule, Shape

__all__ = [
    "BinaryCrossEntropy", "HalfSquaredError", "Huber", "Loss", "MeanSquaredError", "Poisson",
    "SoftmaxCrossEntropy",
]  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Loss(metaclass=Judged):
    """What a network is trained to make small.

    Parameters
    ----------
    l2 : float, default 0.0
        λ: ½ λ Σ W² over all weights, biases excepted, is added to the sum of a batch's rows.

    Attributes
    ----------
    task
        "classification" (class numbers), "labels" (yes-no answers) or "regression".
    prediction
        The rule that turns the network's output into its answer: softmax, sigmoid, exponential or the identity.
    least
        The least target there can be; None where any number will do.
    """

    _: KW_ONLY
    l2: NonNegative = 0.0
    task: ClassVar[Literal["classification", "labels", "regression"]] = "regression"
    prediction: ClassVar[Rule] = rules.identity
    least: ClassVar[float | None] = None

    def __repr__(self) -> str:
        return show_call(self)

    def target(self, output: Shape) -> tuple[Shape, str]:
        """Return the targets' shape for an output of this shape, and their kind: "target" or "class"."""
        return output, "target"

    @abstractmethod
    def connect(self, graph: Graph, y: Value, t: Value, w: Value | None) -> Value:
        """Apply the loss's rules to the network's output, targets, and row weights if there are any."""


def reduce_to_mean(
    graph: Graph,
    l: Value,  # noqa: E741
    w: Value | None,
    v: Value | None = None,
    *,
    l2: NonNegative = 0.0,
) -> Value:
    """Average the rows, each with weight ``w`` and counted ``v`` times (``w`` when not given).

    With ``l2``, half the sum of all squared weights counts so much beside the rows' sum.
    """
    weights = [] if w is None else [w, w if v is None else v]
    if not l2:
        return graph.apply(rules.weighted_mean if weights else rules.mean, l, *weights)
    rule = rules.penalised_weighted_mean if weights else rules.penalised_mean
    return graph.apply(rule, l, *weights, _half_squares(graph), l2=l2)


def _half_squares(graph: Graph) -> Value:
    """Add up half the squares of all weights, which are the parameters of two axes or more."""
    weights = {value.name: value for node in graph.nodes for value in node.inputs}
    halves = [
        graph.apply(rules.half_square, value)
        for value in weights.values()
        if value.kind == "parameter" and len(value.shape) > 1
    ]
    if not halves:
        raise ConfigurationError(
            f"{graph.origin}: the network has no weights that l2 could keep small", fix="leave l2 out"
        )
    return reduce(partial(graph.apply, rules.add), halves)


def _over_outputs(graph: Graph, m: Value, y: Value, outputs: str) -> Value:
    """Return a row's loss, which its rule averages over the outputs, as their mean or their sum."""
    if outputs == "mean" or y.shape[-1] == 1:
        return m
    return graph.apply(rules.sum_of_outputs, m, outputs=int(y.shape[-1]))


@dataclass(frozen=True, eq=False, repr=False)
class HalfSquaredError(Loss):
    """Half the sum of squared errors, ½ Σ (y - t)², over all outputs and rows (no 1/N anywhere).

    Parameters
    ----------
    reduction : "sum" or "mean", default "sum"
        Over the rows.
    l2 : float, default 0.0
        λ: ½ λ Σ W² over all weights, biases excepted, is added to the sum of a batch's rows.
    """

    reduction: Literal["sum", "mean"] = "sum"

    def connect(self, graph: Graph, y: Value, t: Value, w: Value | None) -> Value:  # noqa: D102 - as in Loss
        row = graph.apply(rules.half_squared_error, y, t)
        if self.reduction == "mean":
            return reduce_to_mean(graph, row, w, l2=self.l2)
        if self.l2:
            raise ConfigurationError(
                f"HalfSquaredError: l2 is {self.l2} beside a sum of rows", fix='give reduction="mean"'
            )
        if w is None:
            return graph.apply(rules.sum_of_rows, row)
        return graph.apply(rules.weighted_sum_of_rows, row, w)


@dataclass(frozen=True, eq=False, repr=False)
class MeanSquaredError(Loss):
    """The mean of squared errors over all outputs and rows.

    Parameters
    ----------
    l2 : float, default 0.0
        λ: ½ λ Σ W² over all weights, biases excepted, is added to the sum of a batch's rows.
    """

    def connect(self, graph: Graph, y: Value, t: Value, w: Value | None) -> Value:  # noqa: D102 - as in Loss
        return reduce_to_mean(graph, graph.apply(rules.mean_squared_error, y, t), w, l2=self.l2)


@dataclass(frozen=True, eq=False, repr=False)
class Huber(Loss):
    """The mean of ``½ e²`` for errors up to δ, and of ``δ (|e| - ½ δ)`` beyond.

    Parameters
    ----------
    delta : float, default 1.0
        δ, where the loss goes over from a square to a line.
    outputs : "mean" or "sum", default "mean"
        Over a row's outputs.
    l2 : float, default 0.0
        λ: ½ λ Σ W² over all weights, biases excepted, is added to the sum of a batch's rows.
    """

    delta: Positive = 1.0
    outputs: Literal["mean", "sum"] = "mean"

    def connect(self, graph: Graph, y: Value, t: Value, w: Value | None) -> Value:  # noqa: D102 - as in Loss
        mean = graph.apply(rules.huber, y, t, delta=self.delta)
        return reduce_to_mean(graph, _over_outputs(graph, mean, y, self.outputs), w, l2=self.l2)


@dataclass(frozen=True, eq=False, repr=False)
class Poisson(Loss):
    """Half the Poisson deviance of counts; the network's outputs are the logarithms of what is expected.

    Parameters
    ----------
    outputs : "mean" or "sum", default "mean"
        Over a row's outputs.
    l2 : float, default 0.0
        λ: ½ λ Σ W² over all weights, biases excepted, is added to the sum of a batch's rows.
    """

    outputs: Literal["mean", "sum"] = "mean"
    prediction = rules.exponential
    least = 0.0

    def connect(self, graph: Graph, y: Value, t: Value, w: Value | None) -> Value:  # noqa: D102 - as in Loss
        mean = graph.apply(rules.poisson_deviance, y, t)
        return reduce_to_mean(graph, _over_outputs(graph, mean, y, self.outputs), w, l2=self.l2)


@dataclass(frozen=True, eq=False, repr=False)
class BinaryCrossEntropy(Loss):
    """Yes-no answers given as logits; the targets are 0 or 1, or anything between.

    Parameters
    ----------
    positive_weight : float, list of float or None, default None
        How many times a yes counts: one number for every output, or one for each.
    outputs : "mean" or "sum", default "mean"
        Over a row's outputs.
    smoothing : float, default 0.0
        ε: the target becomes ``(1 - ε) t + ε / 2``.
    l2 : float, default 0.0
        λ: ½ λ Σ W² over all weights, biases excepted, is added to the sum of a batch's rows.
    """

    positive_weight: Positive | Sequence[Positive] | None = None
    outputs: Literal["mean", "sum"] = "mean"
    smoothing: Fraction = 0.0
    task = "labels"
    prediction = rules.sigmoid

    def connect(self, graph: Graph, y: Value, t: Value, w: Value | None) -> Value:  # noqa: D102 - as in Loss
        t = graph.apply(rules.smoothed_answers, t, smoothing=self.smoothing) if self.smoothing else t
        if self.positive_weight is None:
            mean = graph.apply(rules.binary_cross_entropy, y, t)
        else:
            weights = np.asarray(self.positive_weight, float)
            positive = np.full(int(y.shape[-1]), weights) if weights.ndim == 0 else weights
            kept = Parameter(positive.shape, positive)
            mean = graph.apply(rules.weighted_binary_cross_entropy, y, t, kept, layer=self)
        return reduce_to_mean(graph, _over_outputs(graph, mean, y, self.outputs), w, l2=self.l2)


@dataclass(frozen=True, eq=False, repr=False)
class SoftmaxCrossEntropy(Loss):
    """One class of several; the network's outputs are logits.

    Parameters
    ----------
    targets : "classes" or "probabilities", default "classes"
        "classes" for class numbers 0 to C - 1, "probabilities" for those of all classes, which add up to 1 in each row.
    smoothing : float, default 0.0
        ε: the target becomes ``(1 - ε) q + ε / C``.
    ignored : int or None, default None
        A label whose rows, or places of a sequence, do not count, as PyTorch's ``ignore_index``; -100 there.
    class_weight : list of float or None, default None
        How many times each class counts, C numbers. With class numbers the mean is over the weights of the
        rows' classes, with probabilities over the rows, as in PyTorch.
    l2 : float, default 0.0
        λ: ½ λ Σ W² over all weights, biases excepted, is added to the sum of a batch's rows.
    """

    targets: Literal["classes", "probabilities"] = "classes"
    smoothing: Fraction = 0.0
    ignored: int | None = None
    class_weight: Sequence[NonNegative] | None = None
    task = "classification"
    prediction = rules.softmax

    def __post_init__(self) -> None:
        if self.targets == "probabilities" and self.ignored is not None:
            raise ConfigurationError(
                "SoftmaxCrossEntropy: ignored is a class number, and the targets are probabilities",
                fix="give those rows the sample weight 0",
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
            return reduce_to_mean(graph, graph.apply(rules.softmax_cross_entropy, y, smooth), w, l2=self.l2)
        weights = np.asarray(self.class_weight, float)
        kept = Parameter(weights.shape, weights)
        row = graph.apply(rules.class_weighted_cross_entropy, y, smooth, kept, layer=self)
        if self.targets == "probabilities" or w is None:
            return reduce_to_mean(graph, row, w, l2=self.l2)
        counted = graph.apply(rules.class_weighted_rows, w, q, kept, layer=self)
        return reduce_to_mean(graph, row, w, counted, l2=self.l2)

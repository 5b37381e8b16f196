"""How good answers are: accuracy for classes and yes-no answers, R² for values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.layers import Loss

Array = NDArray[Any]


def metric_name(loss: Loss) -> str:
    """Return the name of the metric that goes with a loss: "accuracy" or "r2"."""
    return "r2" if loss.task == "regression" else "accuracy"


def measure_metric(loss: Loss, prediction: Array, t: Array, sample_weight: Array | None = None) -> float:
    """Return the metric of a network's predictions.

    Parameters
    ----------
    loss
        The network's loss, which determines what the predictions mean.
    prediction
        Probabilities (n, …, C), probabilities of a yes (n, …, O) or values (n, …, O).
    t
        The targets.
    sample_weight
        How much each row counts, if there are any.

    Examples
    --------
    >>> from handgrad import MeanSquaredError, SoftmaxCrossEntropy
    >>> measure_metric(SoftmaxCrossEntropy(), np.array([[0.9, 0.1], [0.6, 0.4]]), np.array([0, 1]))
    0.5
    >>> measure_metric(MeanSquaredError(), np.array([[1.0], [3.0]]), np.array([[1.0], [3.0]]))
    1.0
    """
    if loss.task == "classification":
        answers = prediction.argmax(axis=-1)
        probabilities = t.ndim > answers.ndim
        right = answers == (t.argmax(axis=-1) if probabilities else t)
        counts = t != getattr(loss, "ignored", None) if not probabilities else np.ones(right.shape, bool)
        return _average(right, sample_weight * counts if sample_weight is not None else counts)
    t = t.reshape(prediction.shape)
    if loss.task == "labels":
        return _average(((prediction > 0.5) == (t > 0.5)).mean(axis=-1), sample_weight)
    return r_squared(prediction, t, sample_weight)


def r_squared(prediction: Array, t: Array, sample_weight: Array | None = None) -> float:
    """Return R² = 1 - Σ (t - y)² / Σ (t - mean t)², averaged over the outputs; 1 is perfect, 0 the mean's.

    An output that never changes scores 1 when it is met exactly and 0 otherwise, as in scikit-learn.
    """
    y, t = (v.reshape(-1, v.shape[-1]).astype(np.float64) for v in (prediction, t))
    weight = (
        np.ones((len(t), 1))
        if sample_weight is None
        else np.asarray(sample_weight, np.float64).reshape(-1, 1)
    )
    unexplained = (weight * (t - y) ** 2).sum(axis=0)
    mean = (weight * t).sum(axis=0) / weight.sum()
    all_of_it = (weight * (t - mean) ** 2).sum(axis=0)
    constant = np.where(unexplained == 0, 1.0, 0.0)
    scores = np.where(all_of_it > 0, 1 - unexplained / np.where(all_of_it > 0, all_of_it, 1), constant)
    return float(scores.mean())


def _average(right: Array, sample_weight: Array | None) -> float:
    weight = np.ones(right.shape) if sample_weight is None else np.asarray(sample_weight, np.float64)
    return float((right * weight).sum() / max(weight.sum(), 1e-30))

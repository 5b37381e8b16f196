"""How good predictions are: the mean loss; accuracy for classes and yes-no answers, R² for values."""

from __future__ import annotations

import numpy as np

from handgrad.arrays import Array
from handgrad.layers import Loss

MIN_COUNT = 1e-30  # instead of a sum of weights that are all 0, as in the losses of the rules


def mean_loss(total: float, count: float) -> float:
    """Return the loss of what batches came to."""
    return total / max(count, MIN_COUNT)


def metric_name(loss: Loss) -> str:
    """Return the name of the metric that goes with a loss: "accuracy" or "r2"."""
    return "r2" if loss.task == "regression" else "accuracy"


def measure_metric(loss: Loss, prediction: Array, t: Array, sample_weight: Array | None = None) -> float:
    """Return the metric of probabilities (n, …, C), probabilities of a yes (n, …, O) or values (n, …, O)."""
    if loss.task == "classification":
        classes = prediction.argmax(axis=-1)
        if t.ndim > classes.ndim:
            return _average(classes == t.argmax(axis=-1), sample_weight)
        counts = (t != getattr(loss, "ignored", None)).astype(float)
        return _average(classes == t, counts if sample_weight is None else sample_weight * counts)
    t = t.reshape(prediction.shape)
    if loss.task == "labels":
        return _average(((prediction > 0.5) == (t > 0.5)).mean(axis=-1), sample_weight)
    return r_squared(prediction, t, sample_weight)


def r_squared(prediction: Array, t: Array, sample_weight: Array | None = None) -> float:
    """Return R² = 1 - Σ (t - y)² / Σ (t - mean t)², averaged over the outputs; 1 is perfect, 0 the mean's.

    An output that never changes scores 1 when it is met exactly and 0 otherwise, as in scikit-learn.
    """
    y, t = (v.reshape(-1, v.shape[-1]).astype(np.float64) for v in (prediction, t))
    weight = np.ones((len(t), 1))
    if sample_weight is not None:
        weight = np.asarray(sample_weight, np.float64).reshape(-1, 1)
    unexplained = (weight * (t - y) ** 2).sum(axis=0)
    mean = (weight * t).sum(axis=0) / weight.sum()
    all_of_it = (weight * (t - mean) ** 2).sum(axis=0)
    constant = np.where(unexplained == 0, 1.0, 0.0)
    scores = np.where(all_of_it > 0, 1 - unexplained / np.where(all_of_it > 0, all_of_it, 1), constant)
    return float(scores.mean())


def _average(right: Array, sample_weight: Array | None) -> float:
    weight = np.ones(right.shape) if sample_weight is None else np.asarray(sample_weight, np.float64)
    return mean_loss(float((right * weight).sum()), float(weight.sum()))

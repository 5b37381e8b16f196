"""How good predictions are: the mean loss; accuracy for classes and yes-no answers, R² for values, and more of both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from handgrad.arrays import MANY, Array
from handgrad.layers import Loss

MIN_COUNT = 1e-30  # instead of a sum of weights that are all 0, as in the losses of the rules


TAIL = 0.01  # of the rows, the farthest from the median
HEAVY = 0.98  # of the squared deviations; normal targets: up to 0.3, exponential 0.6, lognormal 0.95, one far outlier: 1


def tail_share(t: Array) -> float:
    """Return the share of the squared deviations from the median in a hundredth of the rows; of the output with most.

    The median, and from where on a deviation is among the largest hundredth, is measured on up to `MANY` rows at even
    distances; the squares of all rows are added, a part at a time, as there may be many.

    Examples
    --------
    >>> t = np.arange(200.0)[:, None]
    >>> round(tail_share(t), 2), round(tail_share(np.where(t == 7, 1e6, t)), 2)
    (0.03, 1.0)
    """
    count, far, total = (np.zeros(t.shape[1]) for _ in range(3))
    measured = np.asarray(t[:: -(-len(t) // MANY)], float)
    median = np.median(measured, axis=0)
    parts = _parts(t)
    unit = max(_unit(np.abs(t[part] - median)) for part in parts)
    least = np.sort(((measured - median) / unit) ** 2, axis=0)[-max(1, round(len(measured) * TAIL))]
    for part in parts:
        squares = ((t[part] - median) / unit) ** 2
        count, far = count + (squares > least).sum(axis=0), far + squares.sum(axis=0, where=squares > least)
        total += squares.sum(axis=0)
    far += (max(1, round(len(t) * TAIL)) - count) * least  # those that are just as far
    return float((far / np.where(total > 0, total, 1)).max())


def _parts(rows: Array) -> list[slice]:
    """Divide rows into parts: as float64 numbers, many would take several times their memory."""
    return [slice(start, start + MANY) for start in range(0, len(rows), MANY)]


def _unit(sizes: Array) -> float:
    """Return a unit in which squares do not overflow: a power of 2, so that nothing is rounded."""
    return float(np.ldexp(1.0, np.frexp(sizes.max(initial=0))[1] - 1))


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
    y, t = (v.reshape(-1, v.shape[-1]) for v in (prediction, t))
    weight = np.ones((len(t), 1)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    weight, parts = weight.reshape(-1, 1), _parts(t)
    unit = max(_unit(np.abs(t[part])) for part in parts)

    def total(values: Callable[[Array, Array], Array]) -> Array:
        scaled = ([np.divide(v[part], unit, dtype=np.float64) for v in (t, y)] for part in parts)
        sums = [(weight[part] * values(*v)).sum(axis=0) for part, v in zip(parts, scaled, strict=True)]
        return np.sum(sums, axis=0)

    mean = total(lambda t, y: t) / max(weight.sum(), MIN_COUNT)
    unexplained, all_of_it = total(lambda t, y: (t - y) ** 2), total(lambda t, y: (t - mean) ** 2)
    constant = np.where(unexplained == 0, 1.0, 0.0)
    scores = np.where(all_of_it > 0, 1 - unexplained / np.where(all_of_it > 0, all_of_it, 1), constant)
    return float(scores.mean())


def classification_scores(probabilities: Array, t: Array) -> dict[str, Any]:
    """Return what probabilities (n, C) come to for class numbers (n,).

    Accuracy, balanced accuracy, F1 (macro), the recall of each class and the confusion matrix (a row for each target, a
    column for each prediction). For two classes also the ROC curve with its area, and the calibration.

    Averages over the classes leave out those without rows, as in scikit-learn; their recall is None.
    """
    count = probabilities.shape[-1]
    pairs = count * t + probabilities.argmax(axis=-1)
    matrix = np.bincount(pairs, minlength=count**2).reshape(count, count)
    right, of_class, predicted = matrix.diagonal(), matrix.sum(axis=1), matrix.sum(axis=0)
    recall = right / np.maximum(of_class, 1)
    either = of_class + predicted > 0
    scores = {
        "accuracy": float(right.sum() / len(t)),
        "balanced_accuracy": float(recall[of_class > 0].mean()),
        "f1": float((2 * right[either] / (of_class + predicted)[either]).mean()),
        "majority_share": float(of_class.max() / len(t)),
        "recall": [float(share) if rows else None for share, rows in zip(recall, of_class, strict=True)],
        "confusion_matrix": matrix.tolist(),
    }
    if count != 2 or not of_class.all():
        return scores
    p = probabilities[:, 1].astype(np.float64)
    curve = roc_curve(p, t)
    (x, y), bins = curve.T, calibration(p, t)
    gaps = [bin_["rows"] * abs(bin_["predicted"] - bin_["observed"]) for bin_ in bins]
    return scores | {
        "roc_auc": float((np.diff(x) * (y[1:] + y[:-1]) / 2).sum()),
        "roc_curve": curve.tolist(),
        "calibration_error": float(sum(gaps) / len(t)),
        "calibration": bins,
    }


def balanced_accuracy_error(matrix: Array) -> float:
    """Return the standard error of the balanced accuracy of a confusion matrix."""
    rows = matrix.sum(axis=1)
    recall = (matrix.diagonal() + 1) / (rows + 2)  # never 0 or 1, so that few rows are never certain
    return float(np.sqrt((recall * (1 - recall) / np.maximum(rows, 1)).sum())) / len(matrix)


def roc_curve(p: Array, t: Array) -> Array:
    """Return the shares of false and of true positives (k, 2) at falling thresholds, from none predicted to all.

    Thresholds are left out where the curve goes straight on.
    """
    values, place = np.unique(-p, return_inverse=True)
    counts = np.stack([np.bincount(place, t == k, len(values)) for k in (0, 1)], axis=1)
    curve = np.concatenate([np.zeros((1, 2)), counts.cumsum(axis=0)])
    turns = np.diff(curve, 2, axis=0).any(axis=1)
    return curve[np.concatenate([[True], turns, [True]])] / curve[-1]


def calibration(p: Array, t: Array, bins: int = 10) -> list[dict[str, float]]:
    """Return, for each tenth of the probabilities that has rows, their mean and the share of the rows that are positive."""
    place = np.minimum((p * bins).astype(int), bins - 1)
    return [
        {"rows": int(rows.sum()), "predicted": float(p[rows].mean()), "observed": float(t[rows].mean())}
        for rows in (place == k for k in range(bins))
        if rows.any()
    ]


def regression_scores(prediction: Array, t: Array) -> dict[str, float]:
    """Return R² and, in the targets' unit, the root mean squared and the mean absolute error; means over the outputs."""

    def errors(part: slice) -> Array:
        return np.abs(t[part].astype(np.float64) - prediction[part])

    parts = _parts(t)
    unit = max(_unit(errors(part)) for part in parts)
    squares, sizes = np.zeros(t.shape[1:]), 0.0
    for part in parts:
        scaled = errors(part) / unit
        squares += (scaled**2).sum(axis=0)
        sizes += float(scaled.sum())
    return {
        "r2": r_squared(prediction, t),
        "root_mean_squared_error": float(np.sqrt(squares / len(t)).mean()) * unit,
        "mean_absolute_error": sizes / t.size * unit,
    }


def _average(right: Array, sample_weight: Array | None) -> float:
    weight = np.ones(right.shape) if sample_weight is None else np.asarray(sample_weight, np.float64)
    return mean_loss(float((right * weight).sum()), float(weight.sum()))

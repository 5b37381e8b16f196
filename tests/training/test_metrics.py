"""Metrics: accuracy and R² as scikit-learn defines them, by hand and against it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from handgrad import BinaryCrossEntropy, HalfSquaredError, Huber, Loss, MeanSquaredError, SoftmaxCrossEntropy
from handgrad.training import metrics
from handgrad.training.metrics import (
    calibration,
    classification_scores,
    measure_metric,
    metric_name,
    r_squared,
    regression_scores,
    tail_share,
)

Array = NDArray[Any]

SHARES = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4], [0.5, 0.4, 0.1]])
COLUMN = np.array([[1.0], [2.0], [4.0], [5.0]])


def hot(classes: list[int]) -> Array:
    return np.eye(3)[classes]


CASES: dict[str, tuple[Loss, Array, Array, Array | None, float]] = {
    "classes": (SoftmaxCrossEntropy(), SHARES, np.array([0, 1, 2, 2]), None, 3 / 4),
    "classes, weighted": (
        SoftmaxCrossEntropy(), SHARES, np.array([0, 0, 2, 2]), np.array([1.0, 2, 3, 0.5]), 4 / 6.5,
    ),
    "shares": (SoftmaxCrossEntropy(targets="probabilities"), SHARES, hot([0, 1, 1, 2]), None, 2 / 4),
    "ignored": (SoftmaxCrossEntropy(ignored=-100), SHARES, np.array([0, -100, 2, 1]), None, 2 / 3),
    "ignored, weighted": (
        SoftmaxCrossEntropy(ignored=1), SHARES, np.array([0, 1, 2, 2]), np.array([1.0, 9, 3, 2]), 4 / 6,
    ),
    "nothing counts": (SoftmaxCrossEntropy(ignored=0), SHARES, np.zeros(4, int), None, 0.0),
    "over time": (
        SoftmaxCrossEntropy(), SHARES.reshape(2, 2, 3), np.array([[0, 1], [0, 0]]), None, 3 / 4,
    ),
    "over time, weighted": (
        SoftmaxCrossEntropy(), SHARES.reshape(2, 2, 3), np.array([[0, 0], [2, 0]]),
        np.array([[1.0, 1], [2, 2]]), 5 / 6,
    ),
    "yes or no": (
        BinaryCrossEntropy(), np.array([[0.6], [0.5], [0.4], [0.9]]), np.array([[1], [1], [0], [1]]), None, 3 / 4,
    ),
    "several yes or no": (
        BinaryCrossEntropy(), np.array([[0.6, 0.1], [0.2, 0.9]]), np.array([[1.0, 1], [0, 1]]), None, 3 / 4,
    ),
    "yes or no, weighted": (
        BinaryCrossEntropy(), np.array([[0.6, 0.1], [0.2, 0.9]]), np.array([[1.0, 1], [0, 1]]),
        np.array([3.0, 1.0]), (3 * 0.5 + 1) / 4,
    ),
    "values met": (MeanSquaredError(), COLUMN, COLUMN, None, 1.0),
    "values at their mean": (HalfSquaredError(), np.full((4, 1), 3.0), COLUMN, None, 0.0),
    "values": (Huber(), np.array([[1.0], [3], [4], [4]]), COLUMN, None, 1 - 2 / 10),
    "values, weighted": (  # the mean is 4, the squares about it 9·1 + 4·1 + 0·4 + 1·2
        MeanSquaredError(), np.array([[1.0], [3], [4], [6]]), COLUMN, np.array([1.0, 1, 3, 2]), None,
    ),
    "a row a value": (MeanSquaredError(), np.array([[1.0], [3], [4], [4]]), COLUMN[:, 0], None, 1 - 2 / 10),
}  # fmt: skip
"""loss, prediction, targets, weights, and the metric."""


def by_hand(prediction: Array, t: Array, w: Array) -> float:
    mean = sum(w * t) / sum(w)
    return 1 - sum(w * (t - prediction) ** 2) / sum(w * (t - mean) ** 2)


@pytest.mark.parametrize("case", CASES)
def test_metric_by_hand(case: str) -> None:
    """What a person would count."""
    loss, prediction, t, w, expected = CASES[case]
    if expected is None:
        expected = by_hand(prediction[:, 0], t[:, 0], w)
    assert measure_metric(loss, prediction, t, w) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("case", [case for case in CASES if case.endswith("weighted")])
def test_weights_count_by_their_ratios(case: str) -> None:
    """However small they are."""
    loss, prediction, t, w, _ = CASES[case]
    assert w is not None
    assert measure_metric(loss, prediction, t, 1e-6 * w) == pytest.approx(
        measure_metric(loss, prediction, t, w)
    )


def test_r2_is_the_mean_over_the_outputs() -> None:
    """Each output has its own, however large its values; one that never changes is 1 when met, else 0."""
    t = np.array([[1.0, 1000, 7, 7], [2, 3000, 7, 7], [3, 8000, 7, 7]])
    y = t + np.array([[1.0, 1000, 0, 0.1], [0, 0, 0, 0], [-1, 0, 0, 0]])
    first, second = 1 - 2 / 2, 1 - 1e6 / 26e6
    assert r_squared(y, t) == pytest.approx((first + second + 1 + 0) / 4)


def test_r2_does_not_lose_small_differences_of_large_values() -> None:
    """float32 answers to targets around a million: the sums are taken in float64, about the mean."""
    t = (1e6 + np.arange(8.0)[:, None]).astype(np.float32)
    y = t + np.float32(1)
    assert r_squared(y, t) == pytest.approx(1 - 8 / 42)
    huge = np.array([[1e30], [-1e30]], np.float32)  # whose squares float32 does not have
    assert r_squared(huge / 2, huge) == pytest.approx(0.75)


def test_each_loss_has_its_metric() -> None:
    """Classes and yes-no answers have accuracy, values R²."""
    assert metric_name(SoftmaxCrossEntropy()) == metric_name(BinaryCrossEntropy()) == "accuracy"
    assert {metric_name(loss) for loss in (MeanSquaredError(), HalfSquaredError(), Huber())} == {"r2"}


def test_scores_of_classes_by_hand() -> None:
    """Ten rows of four classes: one without rows that is predicted once, one without rows or predictions."""
    t = np.array([0, 0, 0, 0, 0, 0, 1, 1, 1, 1])
    predicted = np.array([0, 0, 0, 0, 1, 2, 1, 1, 1, 0])
    scores = classification_scores(np.eye(4)[predicted], t)
    assert scores["confusion_matrix"] == [[4, 1, 1, 0], [1, 3, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert scores["recall"] == [4 / 6, 3 / 4, None, None]
    assert scores["accuracy"] == 0.7
    assert scores["majority_share"] == 0.6
    assert scores["balanced_accuracy"] == pytest.approx((4 / 6 + 3 / 4) / 2)
    assert scores["f1"] == pytest.approx(
        (8 / 11 + 6 / 8 + 0) / 3
    )  # 2 right / (rows + predicted); the last is left out
    assert "roc_auc" not in scores


def test_roc_and_calibration_by_hand() -> None:
    """A tie of both classes is a slope; the area is the share of pairs in order, a tie counting half."""
    p, t = np.array([0.95, 0.8, 0.8, 0.4, 0.3, 0.05]), np.array([1, 1, 0, 1, 0, 0])
    scores = classification_scores(np.stack([1 - p, p], axis=1), t)
    assert scores["roc_curve"] == [[0, 0], [0, 1 / 3], [1 / 3, 2 / 3], [1 / 3, 1], [1, 1]]
    assert scores["roc_auc"] == pytest.approx((3 + 2.5 + 2) / 9)
    assert [(each["rows"], each["observed"]) for each in scores["calibration"]] == [
        (1, 0), (1, 0), (1, 1), (2, 0.5), (1, 1)
    ]  # fmt: skip
    assert [each["predicted"] for each in scores["calibration"]] == pytest.approx([0.05, 0.3, 0.4, 0.8, 0.95])
    assert scores["calibration_error"] == pytest.approx((0.05 + 0.3 + 0.6 + 2 * 0.3 + 0.05) / 6)
    one = classification_scores(np.stack([1 - p, p], axis=1), np.ones(6, int))
    assert (one["accuracy"], one["recall"]) == (0.5, [None, 0.5])
    assert "roc_auc" not in one  # which needs both classes


def test_errors_of_values_by_hand() -> None:
    """In the unit of the targets; of several outputs the mean."""
    t, y = np.array([[1.0, 10], [2, 20], [3, 60]]), np.array([[1.0, 10], [2, 26], [6, 68]])
    assert regression_scores(y[:, :1], t[:, :1]) == {
        "r2": 1 - 9 / 2, "root_mean_squared_error": pytest.approx(3**0.5), "mean_absolute_error": 1,
    }  # fmt: skip
    both = regression_scores(y, t)
    assert both["root_mean_squared_error"] == pytest.approx((3**0.5 + (100 / 3) ** 0.5) / 2)
    assert both["mean_absolute_error"] == pytest.approx((1 + 14 / 3) / 2)


@pytest.mark.peers
@settings(deadline=None)
@given(seed=st.integers(0, 10**6), rows=st.integers(2, 60), count=st.integers(2, 5))
def test_scores_are_scikit_learns(seed: int, rows: int, count: int) -> None:
    """Of classes, with ties among the probabilities and classes without rows, and of values."""
    from sklearn import metrics

    rng = np.random.default_rng(seed)
    t, shares = rng.integers(0, count, rows), rng.integers(1, 5, (rows, count)).astype(float)
    shares /= shares.sum(axis=1, keepdims=True)
    scores, predicted = classification_scores(shares, t), shares.argmax(axis=1)
    labels, met = list(range(count)), np.unique(t)
    assert scores["confusion_matrix"] == metrics.confusion_matrix(t, predicted, labels=labels).tolist()
    assert scores["accuracy"] == metrics.accuracy_score(t, predicted)
    recall = metrics.recall_score(t, predicted, labels=met, average=None)
    assert [scores["recall"][k] for k in met] == pytest.approx(recall.tolist())
    assert scores["balanced_accuracy"] == pytest.approx(recall.mean())
    assert scores["f1"] == pytest.approx(metrics.f1_score(t, predicted, average="macro", zero_division=0))
    assert ("roc_auc" in scores) == (count == 2 and len(met) == 2)
    if "roc_auc" in scores:
        assert scores["roc_auc"] == pytest.approx(metrics.roc_auc_score(t, shares[:, 1]))
        x, y, _ = metrics.roc_curve(t, shares[:, 1], drop_intermediate=False)
        everywhere = set(zip(x.round(9), y.round(9), strict=True))  # ours leaves out more of those on a line
        assert {(round(x, 9), round(y, 9)) for x, y in scores["roc_curve"]} <= everywhere
    y, t = rng.normal(size=(2, rows, count))
    values = regression_scores(y, t)
    assert values["root_mean_squared_error"] == pytest.approx(metrics.root_mean_squared_error(t, y))
    assert values["mean_absolute_error"] == pytest.approx(metrics.mean_absolute_error(t, y))


@pytest.mark.peers
@settings(deadline=None)
@given(seed=st.integers(0, 10**6))
def test_calibration_is_scikit_learns(seed: int) -> None:
    from sklearn.calibration import calibration_curve

    rng = np.random.default_rng(seed)
    p = rng.uniform(size=200)
    t = (rng.uniform(size=200) < p).astype(int)
    observed, predicted = calibration_curve(t, p, n_bins=10)
    bins = calibration(p, t)
    assert [each["observed"] for each in bins] == pytest.approx(observed.tolist())
    assert [each["predicted"] for each in bins] == pytest.approx(predicted.tolist())


@pytest.mark.peers
@settings(deadline=None)
@given(seed=st.integers(0, 10**6), rows=st.integers(2, 30), weighted=st.booleans())
def test_metrics_are_scikit_learns(seed: int, rows: int, weighted: bool) -> None:
    """Accuracy and R², with sample weights and several outputs, as scikit-learn computes them."""
    from sklearn.metrics import accuracy_score, r2_score

    rng = np.random.default_rng(seed)
    w = rng.uniform(0.1, 3, rows) if weighted else None
    y, t = rng.normal(size=(2, rows, 3))
    t[:, 2] = 5.0  # an output that never changes
    if seed % 2:
        y[:, 2] = 5.0
    assert r_squared(y, t, w) == pytest.approx(r2_score(t, y, sample_weight=w), rel=1e-9)
    classes = rng.integers(0, 3, rows)
    shares = np.exp(y) / np.exp(y).sum(axis=1, keepdims=True)
    assert measure_metric(SoftmaxCrossEntropy(), shares, classes, w) == pytest.approx(
        accuracy_score(classes, shares.argmax(axis=1), sample_weight=w)
    )
    yes, p = rng.integers(0, 2, (rows, 1)), rng.uniform(size=(rows, 1))
    assert measure_metric(BinaryCrossEntropy(), p, yes, w) == pytest.approx(
        accuracy_score(yes[:, 0], p[:, 0] > 0.5, sample_weight=w)
    )


def test_scores_of_huge_targets_are_those_of_small_ones() -> None:
    """Their squares would overflow."""
    t = np.random.default_rng(0).normal(size=(50, 2))
    prediction, huge = t + 0.25 * t[::-1], 2.0**700
    small, large = regression_scores(prediction, t), regression_scores(huge * prediction, huge * t)
    assert large == {name: value * (1 if name == "r2" else huge) for name, value in small.items()}
    assert tail_share(huge * t) == tail_share(t)


@pytest.mark.parametrize("kind", ["normal", "ties", "outlier"])
def test_the_share_of_a_tail_is_that_of_the_sorted_squares(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of all rows; of more than are measured, nearly."""
    t = np.random.default_rng(0).normal(size=(1000, 2)) + 1e3
    t[:, 1] = {
        "normal": t[:, 1],
        "ties": np.arange(1000) % 20 == 0,
        "outlier": np.where(np.arange(1000) == 3, 1e9, t[:, 1]),
    }[kind]
    squares = np.sort((t - np.median(t, axis=0)) ** 2, axis=0)
    share = (squares[-10:].sum(axis=0) / squares.sum(axis=0)).max()
    assert tail_share(t) == pytest.approx(share, rel=1e-9)
    monkeypatch.setattr(metrics, "MANY", 250)
    assert tail_share(t) == pytest.approx(share, abs=0.03)

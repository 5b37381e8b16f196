"""Verdicts where numbers are hard: few digits, kinks and ties, saturation, scales; right is right, and wrong wrong."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from handgrad import check
from handgrad.checking.subject import Subject
from handgrad.checking.verdict.comparison import precision

Pair = tuple[Callable[..., Any], Callable[..., Any], dict[str, Any]]
RNG = np.random.default_rng(5)
X, ROUND = RNG.normal(size=(4, 5)), np.round(np.random.default_rng(1).normal(size=(4, 5)))
W, v = RNG.normal(size=(5, 3)), RNG.normal(size=3)
TIED = np.array([[1.0, 1, 0], [2, 2, 2], [0, 3, 3]])


@pytest.fixture(autouse=True)
def no_repairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take their time, and are not what is tested here."""
    monkeypatch.setattr(sys.modules["handgrad.checking.check"], "mend", lambda *_, **__: None)


def narrow(x: Any, W: Any, v: Any) -> Any:
    """Return a loss that is computed in float32 whatever the inputs are."""
    x, W, v = (np.asarray(each, np.float32) for each in (x, W, v))
    return ((np.tanh(x @ W) @ v) ** 2).mean(dtype=np.float64)


def narrow_backward(g: Any, x: Any, W: Any, v: Any, factor: float = 1.0) -> Any:
    a = np.tanh(x @ W)
    error = 2 * (a @ v) / len(x) * g
    dz = np.outer(error, v) * (1 - a * a)
    return {"x": dz @ W.T, "W": factor * x.T @ dz, "v": a.T @ error}


def softmax32(x: Any) -> Any:
    e = np.exp((x - x.max(axis=1, keepdims=True)).astype(np.float32))
    return (e / e.sum(axis=1, keepdims=True)).astype(np.float64)


def softmax_backward(g: Any, x: Any) -> Any:
    p = softmax32(x)
    return {"x": p * (g - (g * p).sum(axis=1, keepdims=True))}


def relu(x: Any) -> Any:
    return np.maximum(x, 0)


def split_evenly(g: Any, x: Any) -> Any:
    largest = x == x.max(axis=1, keepdims=True)
    return {"x": g[:, None] * largest / largest.sum(axis=1, keepdims=True)}


def to_the_first(g: Any, x: Any) -> Any:
    dx = np.zeros_like(x)
    dx[np.arange(len(x)), x.argmax(axis=1)] = g
    return {"x": dx}


def logistic(x: Any) -> Any:
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


def shrink(x: Any) -> Any:
    return np.sign(x) * np.maximum(np.abs(x) - 1e-5, 0)


def huber(x: Any) -> Any:
    return np.where(np.abs(x) <= 1, 0.5 * x * x, np.abs(x) - 0.5)


def softplus(x: Any) -> Any:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


RIGHT: dict[str, Pair] = {
    "a loss in float32": (narrow, narrow_backward, {"x": X, "W": W, "v": v}),
    "a softmax in float32": (softmax32, softmax_backward, {"x": 3 * X}),
    "an output in float32": (
        lambda x: np.exp(x).astype(np.float32), lambda g, x: {"x": (g * np.exp(x)).astype(np.float32)}, {"x": X}
    ),
    "the other value at zero": (relu, lambda g, x: {"x": g * (x >= 0)}, {"x": ROUND}),
    "two kinks that meet": (
        lambda x: np.maximum(x, 0) - np.maximum(-x, 0), lambda g, x: {"x": g * (x != 0)}, {"x": ROUND}
    ),
    "units that wait at zero": (
        lambda x, W: relu(x @ W).sum(), lambda g, x, W: {"x": g * (x @ W > 0) @ W.T}, {"x": 0 * X, "W": W}
    ),
    "a tie shared": (lambda x: x.max(axis=1), split_evenly, {"x": TIED}),
    "a tie to the first": (lambda x: x.max(axis=1), to_the_first, {"x": TIED}),
    "flat on both sides": (
        shrink, lambda g, x: {"x": g * (np.abs(x) > 1e-5)}, {"x": np.array([1, 2, 1e-6, 0, -1e-6, -3])}
    ),
    "the joint of huber": (huber, lambda g, x: {"x": g * np.clip(x, -1, 1)}, {"x": np.array([1, -1, 0.5, 2, 0])}),
    "smooth out of kinks": (softplus, lambda g, x: {"x": g * logistic(x)}, {"x": ROUND}),
    "saturation": (
        logistic,
        lambda g, x: {"x": g * np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))) ** 2},
        {"x": np.array([-800.0, -40, -10, 0, 10, 40, 800])},
    ),
    "1e-30": (lambda x, W: x @ W, lambda g, x, W: {"x": g @ W.T, "W": x.T @ g}, {"x": 1e-30 * X, "W": W}),
    "1e30": (lambda x: x**2, lambda g, x: {"x": 2 * g * x}, {"x": 1e30 * X}),
    "all scales at once": (
        np.arctan, lambda g, x: {"x": g / (1 + x * x)}, {"x": np.array([1e-12, 1, 1e12, -1e-3, 1e6])}
    ),
    "opposite terms": (lambda x, y: (x + y) - x, lambda g, x, y: {"x": 0 * g, "y": g}, {"x": v, "y": v[::-1]}),
}  # fmt: skip

WRONG: dict[str, Pair] = {
    "a loss in float32": (narrow, lambda g, **i: narrow_backward(g, **i, factor=1.01), RIGHT["a loss in float32"][2]),
    "a softmax in float32": (softmax32, lambda g, x: {"x": 1.001 * softmax_backward(g, x)["x"]}, {"x": 3 * X}),
    "float32": (np.exp, lambda g, x: {"x": g * np.exp(x) * np.float32(1.001)}, {"x": X.astype(np.float32)}),
    "returned in float16": (np.exp, lambda g, x: {"x": (g * np.exp(x)).astype(np.float16)}, {"x": X}),
    "returned in float32": (np.exp, lambda g, x: {"x": (g * np.exp(x)).astype(np.float32)}, {"x": X}),
    "twice at zero": (relu, lambda g, x: {"x": g * ((x > 0) + 2.0 * (x == 0))}, {"x": ROUND}),
    "twice at a joint of large numbers": (
        lambda x: np.maximum(x, 1e12), lambda g, x: {"x": g * ((x > 1e12) + 2.0 * (x == 1e12))}, {"x": np.array([1e12, 3e12])}
    ),
    "not summed": (lambda x, b: x + b, lambda g, x, b: {"x": g, "b": g}, {"x": X, "b": X[0]}),
    "summed": (lambda x: x * x, lambda g, x: {"x": (2 * g * x).sum(axis=0)}, {"x": X}),
    "below both slopes at zero": (np.abs, lambda g, x: {"x": g * np.where(x == 0, -1.5, np.sign(x))}, {"x": ROUND}),
    "at a joint only": (
        huber, lambda g, x: {"x": g * np.where(np.abs(x) == 1, 0, np.clip(x, -1, 1))}, {"x": np.array([1, 0.5, 2])}
    ),
    "where it saturates only": (
        softplus, lambda g, x: {"x": g * np.where(x > 10, 0, logistic(x))}, {"x": np.array([-3.0, 0, 2, 12, 20])}
    ),
    "in the tail only": (
        logistic,
        lambda g, x: {"x": g * np.where(x < -20, 2, 1 - logistic(x)) * logistic(x)},
        {"x": np.array([-30.0, 0, 1, 30])},
    ),
    "1e-30": (lambda x, W: x @ W, lambda g, x, W: {"x": g @ W.T, "W": 1.001 * x.T @ g}, RIGHT["1e-30"][2]),
    "1e30": (lambda x: x**2, lambda g, x: {"x": 2.000002 * g * x}, {"x": 1e30 * X}),
    "one small slope of all scales": (
        np.arctan, lambda g, x: {"x": g / (1 + x * x) * np.where(x > 1e3, 1.01, 1)}, {"x": np.array([1e-6, 1, 1e4])}
    ),
    "a large offset": (lambda x: 1e6 + (x**2).sum(), lambda g, x: {"x": 2.002 * g * x}, {"x": X}),
}  # fmt: skip


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", RIGHT)
def test_right_is_right(name: str, seed: int) -> None:
    """No false alarm, and no shrug."""
    report = check(*RIGHT[name], seed=seed)
    assert report.verdict == "right", str(report)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", WRONG)
def test_wrong_is_wrong(name: str, seed: int) -> None:
    """However little of it."""
    report = check(*WRONG[name], seed=seed)
    assert report.verdict == "wrong", str(report)


@pytest.mark.parametrize(
    ("forward", "kind"),
    [
        (np.tanh, np.longdouble),
        (lambda x: np.tanh(x.astype(np.float64)), np.float64),
        (lambda x: np.tanh(x if x.dtype == np.float64 else 2 * x), np.float64),
        (lambda x: np.tanh(x if x.dtype == np.float64 else x[:2]), np.float64),
        (lambda x: np.linalg.inv(x.T @ x), np.float64),
    ],
    ids=["as it is", "narrower", "another value", "another shape", "none"],
)
def test_slopes_are_found_in_the_widest_type_that_gives_the_same(
    forward: Callable[..., Any], kind: type
) -> None:
    """Digits beyond float64 are used where forward has them."""
    subject = Subject.of(forward, lambda g, x: {"x": g}, {"x": X[:, :3]})
    assert precision(subject, subject.inputs) is kind


def test_the_count_of_work_says_the_same_each_time() -> None:
    """It depends on what forward does, and on nothing else; a tracer that was there stays."""
    from handgrad.checking.verdict.directional import work_of

    subject = Subject.of(narrow, narrow_backward, {"x": X, "W": W, "v": v})
    before = sys.gettrace()
    counts = {work_of(subject, subject.inputs) for _ in range(3)}
    assert len(counts) == 1
    assert sys.gettrace() is before

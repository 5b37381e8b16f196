"""Verdicts where numbers are hard: few digits, kinks and ties, saturation, scales; right is right, and wrong wrong."""

from __future__ import annotations

import re
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


def largest(x: Any) -> Any:
    return x == x.max(axis=1, keepdims=True)


def pooled(x: Any) -> Any:
    """Return the maxima of windows of two, which overlap."""
    return np.maximum(x[:, 1:], x[:, :-1])


def pooled_backward(g: Any, x: Any) -> Any:
    dx, y = np.zeros_like(x), pooled(x)
    dx[:, 1:] += g * (x[:, 1:] == y)
    dx[:, :-1] += g * (x[:, :-1] == y)
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
    "ties in several rows": (lambda x: x.max(axis=1), to_the_first, {"x": np.array([[2.0, 2, 1], [2, 0, 2], [1, 2, 2]])}),
    "kinks that cancel when they move together": (
        lambda x: np.maximum(x[:2], 0) - np.maximum(-x[2:], 0),
        lambda g, x: {"x": np.concatenate([g * (x[:2] > 0), g * (x[2:] < 0)])},
        {"x": np.array([0.0, 3, 0, 2])},
    ),
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
    "twice at zero": (relu, lambda g, x: {"x": g * ((x > 0) + 2.0 * (x == 0))}, {"x": ROUND}),
    "a tie to each": (lambda x: x.max(axis=1), lambda g, x: {"x": g[:, None] * largest(x)}, {"x": TIED}),
    "a tie to none": (
        lambda x: x.max(axis=1), lambda g, x: {"x": g[:, None] * largest(x) * (largest(x).sum(axis=1, keepdims=True) == 1)},
        {"x": TIED},
    ),
    "a tie in a window to each": (pooled, pooled_backward, {"x": np.array([[3.0, 3, 1, 2], [0, 3, 5, 5], [4, 1, 2, 2]])}),
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


def wave(x: Any) -> Any:
    return np.sin(3000 * np.asarray(x, np.float64)) + x


@pytest.mark.parametrize("seed", [0, 2])
def test_slopes_that_contradict_the_chain_rule_are_asked_again_closer(seed: int) -> None:
    """The right gradient of a function that swings faster than the steps are short is right, and another is wrong."""
    inputs = {"x": np.random.default_rng(seed).normal(size=(4, 5))}
    report = check(wave, lambda g, x: {"x": g * (3000 * np.cos(3000 * x) + 1)}, inputs, seed=seed)
    assert report.verdict == "right"
    assert any("cannot be trusted" in note for note in report.not_proved)
    assert check(wave, lambda g, x: {"x": g * (2000 * np.cos(3000 * x) + 1)}, inputs).verdict == "wrong"


def test_a_formal_derivative_does_not_overrule_the_slopes() -> None:
    """``where`` takes a constant at 0, with the chain rule's derivative 0, and the function goes on with slope 1."""

    def forward(x: Any) -> Any:
        return np.where(x == 0, 0.0, x)

    assert check(forward, lambda g, x: {"x": g * (x != 0)}, {"x": np.array([0.0, 1.5])}).verdict == "wrong"


def test_slopes_that_settle_on_nothing_tell_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not right by the chain rule alone."""
    monkeypatch.setattr(sys.modules["handgrad.checking.verdict.slopes"], "STEPS", np.array([1e-3]))
    monkeypatch.setattr(sys.modules["handgrad.checking.verdict.slopes"], "NEAR", 0)
    inputs = {"x": np.random.default_rng(0).normal(size=(4, 5))}
    report = check(wave, lambda g, x: {"x": g * (3000 * np.cos(3000 * x) + 1)}, inputs)
    assert report.verdict == "cannot tell"


def shifted_relu(x: Any, W: Any, b: Any) -> Any:
    return relu(x @ W + b)


def masked_before_the_bias(g: Any, x: Any, W: Any, b: Any) -> Any:
    dz = g * (x @ W > 0)
    return {"x": dz @ W.T, "W": x.T @ dz, "b": dz.sum(axis=0)}


@pytest.mark.parametrize("seed", range(8))
def test_a_mask_that_is_right_by_chance_at_a_few_units_is_wrong(seed: int) -> None:
    """One row and three units: other inputs are judged before right is said."""
    rng = np.random.default_rng(seed)
    inputs = {"x": rng.normal(size=(1, 4)), "W": rng.normal(size=(4, 3)), "b": 0.3 * rng.normal(size=3)}
    assert check(shifted_relu, masked_before_the_bias, inputs, seed=seed).verdict == "wrong"


def test_a_gradient_of_zeros_is_judged_where_it_is_not_zero() -> None:
    """And where it is zero everywhere, nothing can be told."""
    inputs = {"x": X, "W": 0 * W}
    right = check(lambda x, W: x @ W, lambda g, x, W: {"x": g @ W.T, "W": x.T @ g}, inputs)
    cut = check(lambda x, W: x @ W, lambda g, x, W: {"x": 0 * x, "W": x.T @ g}, inputs)
    assert (right.verdict, cut.verdict) == ("right", "wrong")
    assert "right at the inputs that were given" in cut.reason
    step = check(np.sign, lambda g, x: {"x": 0 * x}, {"x": v})
    assert step.verdict == "cannot tell"
    assert step.not_proved[0].startswith("every gradient is zero")


def test_what_was_computed_before_and_passed_by_hand_ties_the_inputs() -> None:
    """At other inputs it would be stale: none are judged."""
    a = np.tanh(X)
    report = check(lambda x, a: np.tanh(x), lambda g, x, a: {"x": g * (1 - a * a)}, {"x": X, "a": a})
    assert report.verdict == "right", str(report)


# ------------------------------------------------------------------------------- a guard that forward alone has

LOGITS, CLASSES = RNG.normal(size=(2, 4, 3)), np.eye(3)[RNG.integers(3, size=(2, 4))]
KEPT = np.array([[1.0, 1, 1, 0], [1, 1, 0, 0]])
ROWS, SPREAD, HITS = RNG.normal(size=(9, 3)), 9 * RNG.normal(size=(40, 3)), RNG.integers(2, size=40) * 1.0
EPS = 1e-6


def softmax(z):
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


class Masked:
    """A layer whose epsilon is an attribute, over tokens that are not padding."""

    def __init__(self):
        self.eps = 1e-7

    def forward(self, logits, t):
        """Return the loss."""
        self.p, self.t = softmax(logits), t
        return -(t * np.log(self.p + self.eps)).sum(axis=-1)[KEPT > 0].mean()

    def backward(self):
        """Return the textbook's gradient."""
        return (self.p - self.t) * KEPT[..., None] / KEPT.sum()


def binary(w, x, t):
    p = sigmoid(x @ w)
    loss = -(t * np.log(p + EPS) + (1 - t) * np.log(1 - p + EPS)).sum()
    return loss, {"w": x.T @ (p - t)}


def mean_over_batch(W, x, t, eps=1e-8):
    p = softmax(x @ W)
    return -np.log(np.maximum(p, eps)[np.arange(len(t)), t]).mean(), {"W": x.T @ (p - np.eye(3)[t]) / len(t)}


def clipped(w, x, t, eps=1e-4):
    p = sigmoid(x @ w)
    inside = np.clip(p, eps, 1 - eps)
    return -(t * np.log(inside) + (1 - t) * np.log(1 - inside)).sum(), {"w": x.T @ (p - t)}


GUARDED = {
    "masked": (Masked(), {"logits": LOGITS, "t": CLASSES}),
    "binary": (binary, {"w": v, "x": ROWS, "t": HITS[:9]}),
    "mean": (mean_over_batch, {"W": 40 * RNG.normal(size=(3, 3)), "x": ROWS, "t": RNG.integers(3, size=9)}),
    "clipped": (clipped, {"w": v, "x": SPREAD, "t": HITS}),
}


@pytest.mark.parametrize("name", GUARDED)
def test_a_gradient_without_forwards_guard_against_the_logarithm_of_zero_is_right_but_for_it(name):
    forward, inputs = GUARDED[name]
    report = check(forward, inputs=inputs)
    assert (report.verdict, report.findings) == ("right, but", ()), str(report)
    assert "which forward and backward do not both have" in report.reason
    assert "(line " in report.reason
    assert re.search(r"right, but +d\w+ .*relative error up to \S+, far from these inputs", str(report)), str(
        report
    )


def test_a_guard_that_shows_only_at_other_inputs_is_no_mistake():
    """Where nothing is certain, as in the user's inputs, the guard changes nothing that can be seen."""
    inputs = {"W": 0.1 * RNG.normal(size=(3, 3)), "x": 9 * ROWS, "t": RNG.integers(3, size=9)}
    report = check(mean_over_batch, inputs=inputs)
    assert report.verdict in ("right", "right, but"), str(report)


def forgotten_mask(x):
    return np.clip(x, 0, 6)


def small_step(x):
    return np.maximum(x, 1e-4)


def capped(x):
    return np.clip(x, 1e-4, 1 - 1e-4)


@pytest.mark.parametrize("forward", [forgotten_mask, small_step, capped])
def test_a_forgotten_mask_is_no_guard(forward):
    """It cuts off what is not limited anyway."""
    assert check(forward, lambda grad_output, x: {"x": grad_output}, {"x": 3 * ROWS}).verdict == "wrong"

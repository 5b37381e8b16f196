"""Arguments with many entries: one wrong entry of ten thousand is found, in time, and nothing else is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from handgrad import ELU, BatchNorm, HalfSquaredError, Linear, Network, ReLU, SoftmaxCrossEntropy, Tanh, check
from handgrad.checking import Report
from handgrad.checking.subject import Subject
from handgrad.checking.verdict import analytic, comparison, directional
from handgrad.checking.verdict.contract import violations

Gradients = dict[str, Any]


def inputs() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    return {"x": rng.normal(size=(20, 100)), "W": rng.normal(size=(100, 100)) / 10, "b": rng.normal(size=100)}


def forward(x: Any, W: Any, b: Any) -> Any:
    return np.tanh(x @ W + b)


def opaque(x: Any, W: Any, b: Any) -> Any:
    """As `forward`, in a way that cannot be recorded."""
    x, W, b = (np.frombuffer(np.asarray(v).tobytes(), v.dtype).reshape(np.shape(v)) for v in (x, W, b))
    return forward(x, W, b)


def right(g: Any, x: Any, W: Any, b: Any) -> Gradients:
    dz = g * (1 - np.tanh(x @ W + b) ** 2)
    return {"x": dz @ W.T, "W": x.T @ dz, "b": dz.sum(axis=0)}


def off_by(part: float) -> Callable[..., Gradients]:
    def backward(g: Any, x: Any, W: Any, b: Any) -> Gradients:
        found = right(g, x, W, b)
        found["W"][37, 41] *= 1 + part
        return found

    return backward


def opposite(g: Any, x: Any, W: Any, b: Any) -> Gradients:
    found = right(g, x, W, b)
    return {**found, "W": -found["W"]}


def untransposed(g: Any, x: Any, W: Any, b: Any) -> Gradients:
    dz = g * (1 - np.tanh(x @ W + b) ** 2)
    return {"x": dz @ W, "W": x.T @ dz, "b": dz.mean(axis=0)}


def one_nan(g: Any, x: Any, W: Any, b: Any) -> Gradients:
    found = right(g, x, W, b)
    found["W"][3, 4] = np.nan
    return found


def flat(g: Any, x: Any, W: Any, b: Any) -> Gradients:
    found = right(g, x, W, b)
    return {**found, "W": found["W"].ravel()}


def wrong(report: Report) -> set[str]:
    return {each.name for each in report.arguments if each.verdict == "wrong"}


@pytest.fixture(autouse=True)
def no_repairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take their time, and are not what is tested here."""
    monkeypatch.setattr(sys.modules["handgrad.checking.check"], "REPAIR_SECONDS", 0.05)


@pytest.mark.parametrize("function", [forward, opaque])
def test_a_right_gradient_is_right(function: Callable[..., Any]) -> None:
    """Whether forward can be recorded or not; what was done is said."""
    report = check(function, right, inputs())
    assert report.verdict == "right", str(report)
    said = " ".join(report.tried)
    assert ("chain rule over a trace of forward" in said) == (function is forward)
    assert "random directions" in said


@pytest.mark.parametrize(("function", "part"), [(forward, 1e-3), (opaque, 1e-3), (forward, 1e-7)])
def test_one_entry_of_ten_thousand_is_found(function: Callable[..., Any], part: float) -> None:
    """Off by a thousandth of itself, or by much less where forward is recorded; it is the worst entry of the report."""
    report = check(function, off_by(part), inputs())
    assert wrong(report) == {"W"}
    assert all(finding.entry == (37, 41) for finding in report.findings)


def test_without_a_recording_the_entry_is_found_too() -> None:
    """By halving: the place is in the numbers of the judgement."""
    subject = Subject.of(opaque, off_by(1e-3), inputs())
    numerical = comparison.numerical_gradient(subject, subject.inputs, ("x", "W", "b"), 0)
    judgement = comparison.compare(subject, numerical)
    assert judgement.wrong == ("W",)
    assert [tuple(place) for place in np.argwhere(judgement.samples[0].wrong("W"))] == [(37, 41)]


@pytest.mark.parametrize("function", [forward, opaque])
def test_a_mistake_everywhere_is_named(function: Callable[..., Any]) -> None:
    """A sign needs no recording."""
    report = check(function, opposite, inputs())
    assert wrong(report) == {"W"}
    assert (report.findings[0].code, report.findings[0].argument) == ("wrong-sign", "W")


def test_a_mistake_in_a_recorded_forward_is_named() -> None:
    """Each argument has its own."""
    report = check(forward, untransposed, inputs())
    assert {(finding.code, finding.argument) for finding in report.findings} == {
        ("transposed", "x"),
        ("batch-mean-vs-sum", "b"),
    }


@pytest.mark.parametrize("function", [forward, opaque])
@pytest.mark.parametrize(("backward", "code"), [(one_nan, "dtype-or-overflow"), (flat, "wrong-shape")])
def test_what_is_no_gradient_at_all_is_named(function: Callable[..., Any], backward: Any, code: str) -> None:
    """Not a number, and another shape."""
    report = check(function, backward, inputs())
    assert wrong(report) == {"W"}
    assert report.findings[0].code == code


def pictures(rng: np.random.Generator) -> dict[str, Any]:
    x = rng.uniform(size=(32, 784)) * (rng.uniform(size=(32, 784)) < 0.2)
    return {"x": x, "t": rng.integers(0, 10, 32)}


def test_a_network_of_a_hundred_thousand_parameters_is_checked() -> None:
    """How long that takes is what `benchmarks/checking.py` prints."""
    network = Network(Linear(784, 128), ReLU(), Linear(128, 10), loss=SoftmaxCrossEntropy())
    report = check(network, inputs=pictures(np.random.default_rng(0)))
    assert report.verdict == "right", str(report)
    assert [each.name for each in report.arguments] == ["W1", "b1", "W2", "b2"]


NETWORKS = {
    "zero rows": Network(
        Linear(30, 17), ReLU(), Linear(17, 12), ReLU(), Linear(12, 3), loss=SoftmaxCrossEntropy()
    ),
    "normalised": Network(Linear(30, 17), BatchNorm(), ReLU(), Linear(17, 3), loss=HalfSquaredError()),
    "curved kinks": Network(Linear(30, 17), ELU(), Linear(17, 3), loss=SoftmaxCrossEntropy()),
    "smooth": Network(Linear(30, 17), Tanh(), Linear(17, 3), loss=HalfSquaredError()),
}


@pytest.mark.parametrize("way", ["recorded", "directions alone", "every coordinate"])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", NETWORKS)
def test_kinks_raise_no_false_alarm(monkeypatch: pytest.MonkeyPatch, name: str, seed: int, way: str) -> None:
    """Rows of zeros, and weights and pixels that are round numbers, put many units at their kink at once."""
    if way != "every coordinate":
        monkeypatch.setattr(directional, "SECONDS", 0)
        monkeypatch.setattr(directional, "FEW", 0)
    if way == "directions alone":
        monkeypatch.setattr(analytic.AnalyticGradient, "gradients", lambda self, upstream: None)
    network, rng = NETWORKS[name], np.random.default_rng(seed)
    x = np.round(rng.normal(size=(11, 30)))
    x[rng.uniform(size=11) < 0.4] = 0
    t = rng.integers(0, 3, 11) if isinstance(network.loss, SoftmaxCrossEntropy) else rng.normal(size=(11, 3))
    for parameter in network.parameters.values():
        parameter[...] = np.round(4 * parameter) / 4
    report = check(network, inputs={"x": x, "t": t}, seed=seed)
    assert report.verdict == "right", str(report)


def test_directions_find_mistakes_beside_kinks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A unit that passes its gradient on where it is dead, among those that stand at 0."""
    monkeypatch.setattr(directional, "SECONDS", 0)
    monkeypatch.setattr(directional, "FEW", 0)
    x = np.round(np.random.default_rng(0).normal(size=(40, 6)))

    def relu(x: Any) -> Any:
        return np.maximum(x, 0)

    assert check(relu, lambda g, x: {"x": g * (x > 0)}, {"x": x}).verdict == "right"
    assert check(relu, lambda g, x: {"x": g * (x >= 0)}, {"x": x}).verdict == "right"
    assert check(relu, lambda g, x: {"x": g * (x > -1.5)}, {"x": x}).verdict == "wrong"


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forward takes long, however small it is."""
    monkeypatch.setattr(analytic, "LONG", 0.0)
    monkeypatch.setattr(directional, "SECONDS", 0.0)
    monkeypatch.setattr(sys.modules["handgrad.checking.check"], "SECONDS_ELSEWHERE", 0.0)


@pytest.mark.usefixtures("slow")
def test_a_slow_forward_is_judged_along_a_direction_of_all_arguments_together() -> None:
    calls: list[int] = []

    def counted(x: Any, W: Any, b: Any) -> Any:
        calls.append(1)
        return forward(x, W, b)

    report = check(counted, right, inputs())
    assert report.verdict == "right"
    assert any("1 random direction of all of them together" in line for line in report.tried)
    assert "1 upstream gradient of both signs" in report.tried
    assert len(calls) <= 30  # 129 where it is not slow


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("part", [1e-3, -1e-6])
def test_one_wrong_entry_is_found_where_forward_is_slow(part: float) -> None:
    assert wrong(check(forward, off_by(part), inputs())) == {"W"}


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("factor", [1.001, 0.0])
def test_a_false_chain_rule_is_not_believed_where_forward_is_slow(
    monkeypatch: pytest.MonkeyPatch, factor: float
) -> None:
    of_chain_rule = analytic.AnalyticGradient.gradients

    def false(self: Any, upstream: Any) -> Any:
        found = of_chain_rule(self, upstream)
        return {**found, "b": factor * found["b"]} if found else found

    monkeypatch.setattr(analytic.AnalyticGradient, "gradients", false)
    report = check(forward, right, inputs())
    assert report.verdict == "right"
    assert not any("of all of them together" in line for line in report.tried)


@pytest.mark.usefixtures("slow")
def test_a_slow_forward_with_many_kinks_is_judged() -> None:
    """A direction meets kinks on all but the shortest steps; roundings of many outputs do not add up."""
    rng = np.random.default_rng(0)
    values = {"x": rng.normal(size=(150, 140)), "W": rng.normal(size=(140, 160)) / 12}

    def relu(x: Any, W: Any) -> Any:
        return np.maximum(x @ W, 0)

    def backward(g: Any, x: Any, W: Any) -> Gradients:
        dz = g * (x @ W > 0)
        return {"x": dz @ W.T, "W": x.T @ dz}

    report = check(relu, backward, values)
    assert report.verdict == "right", str(report)
    assert any("of all of them together" in line for line in report.tried)
    report = check(relu, lambda g, x, W: backward(g, x, W) | {"x": g @ W.T}, values)
    assert wrong(report) == {"x"}


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda g, d: np.clip(d, -0.5, 0.5), "uneven"),
        (lambda g, d: d + 1e-3, "affine"),
        (lambda g, d: d * g, "squared"),
    ],
)
def test_the_contract_is_seen_where_forward_is_slow(change: Callable[..., Any], kind: str) -> None:
    def backward(g: Any, x: Any) -> Gradients:
        return {"x": change(g, g * (1 - np.tanh(x) ** 2))}

    subject = Subject.of(np.tanh, backward, {"x": np.linspace(-1, 1, 12)})
    numerical = comparison.numerical_gradient(subject, subject.inputs, ("x",), 0)
    found = violations(subject, comparison.compare(subject, numerical).samples[0])
    assert {each.kind for each in found} == {kind}


def test_how_long_a_forward_takes_is_counted() -> None:
    """Over its operations, so that the same is looked at on every machine; and the wider type is dearer."""

    def seconds(rows: int, dtype: Any = np.float64) -> float:
        values = {"x": np.ones((rows, 300), dtype), "W": np.ones((300, 400), dtype), "b": np.ones(400, dtype)}
        return analytic.seconds_of(Subject.of(forward, right, values), values)

    assert seconds(20) == seconds(20)
    assert seconds(2000) - seconds(1000) == pytest.approx(2 * (seconds(1500) - seconds(1000)))
    assert seconds(1000) > 1000 * 300 * 400 * analytic.PRODUCT
    assert seconds(100, np.longdouble) > 10 * seconds(100)

"""What the rules' descriptions state: kinks, identities, what is scaled by what."""

from __future__ import annotations

from math import exp, log
from typing import Any

import numpy as np
import pytest

from handgrad import rules
from handgrad.rules import Rule

from .table import CASES, Case

KINKS: dict[str, tuple[Rule, dict[str, Any], float]] = {
    "relu": (rules.relu, {}, 0.0),
    "leaky_relu": (rules.leaky_relu, {"slope": 0.3}, 0.3),
    "elu-alpha=0.4": (rules.elu, {"alpha": 0.4}, 0.4),
    "elu-alpha=1.0": (rules.elu, {"alpha": 1.0}, 1.0),
}
"""Rules with a kink at 0, and the slope their descriptions state there."""


def cases_of(*chosen: Rule) -> list[Any]:
    return [pytest.param(case, id=str(case)) for case in CASES if case.rule in chosen]


@pytest.mark.parametrize("zero", [0.0, -0.0])
@pytest.mark.parametrize("kink", KINKS)
def test_slope_at_a_kink_is_the_documented_one(kink: str, zero: float) -> None:
    """At exactly 0, of either sign, the slope is the one the rule's description states."""
    rule, options, slope = KINKS[kink]
    found = rule.gradients(np.array([-2.0, 5.0]), np.array([zero, zero]), **options)["z"]
    np.testing.assert_array_equal(found, [-2 * slope, 5 * slope])


@pytest.mark.peers
@pytest.mark.parametrize("case", cases_of(rules.relu, rules.leaky_relu, rules.elu))
def test_slope_at_a_kink_is_that_of_torch(torch: Any, case: Case) -> None:
    """Where a description says "as PyTorch's", it is."""
    z = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    case.row.peer(torch, z, **case.options).backward(torch.tensor([-2.0, 5.0], dtype=torch.float64))
    found = case.rule.gradients(np.array([-2.0, 5.0]), np.zeros(2), **case.options)["z"]
    np.testing.assert_array_equal(found, z.grad.numpy())


@pytest.mark.parametrize("delta", [0.5, 1.0, 2.0])
def test_huber_has_no_kink_at_delta(delta: float) -> None:
    """At an error of exactly ±delta the slope from the square and from the line agree."""
    y = delta * np.array([[-1.0, 1.0]]) + np.array([[-1e-9], [0.0], [1e-9]])
    dy = rules.huber.gradients(np.ones(3), y, np.zeros_like(y), delta=delta)["y"]
    np.testing.assert_allclose(dy, delta * np.array([[-0.5, 0.5]] * 3), rtol=1e-8)


@pytest.mark.parametrize("rank", [2, 3])
def test_rows_of_softmax_gradient_add_up_to_zero(rank: int) -> None:
    """Shares add up to 1 whatever z is, so no direction of the upstream moves their sum."""
    case = next(case for case in CASES if case.rule is rules.softmax)
    inputs, upstream = case.draw(4, rank)
    np.testing.assert_allclose(rules.softmax(inputs["z"]).sum(axis=-1), 1, rtol=1e-14)
    dz = rules.softmax.gradients(upstream, inputs["z"])["z"]
    np.testing.assert_allclose(dz.sum(axis=-1), 0, atol=1e-15)
    assert np.abs(dz).max() > 0.01


@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("case", cases_of(rules.softmax_cross_entropy, rules.class_weighted_cross_entropy))
def test_rows_of_cross_entropy_gradient_add_up_to_zero(case: Case, rank: int) -> None:
    """Adding a number to all logits of a row changes nothing, with class weights too."""
    inputs, upstream = case.draw(4, rank)
    dz = case.rule.gradients(upstream, *inputs.values())["z"]
    np.testing.assert_allclose(dz.sum(axis=-1), 0, atol=1e-14)
    assert np.abs(dz).max() > 0.01


@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("rule", [rules.batch_norm, rules.layer_norm], ids=lambda rule: rule.name)
def test_normalised_values_cannot_be_shifted_or_scaled(rule: Rule, rank: int) -> None:
    """Along the normalised axes dx adds up to 0, and so does dx · x̂: shift and scale were taken out."""
    case = next(case for case in CASES if case.rule is rule)
    inputs, upstream = case.draw(5, rank)
    axes = (-1,) if rule is rules.layer_norm else tuple(range(rank - 1))
    options = {"epsilon": 1e-14}
    xhat = rule.values(*inputs.values(), **options)["xhat"]
    dx = rule.gradients(upstream, *inputs.values(), **options)["x"]
    np.testing.assert_allclose(xhat.mean(axis=axes), 0, atol=1e-14)
    np.testing.assert_allclose((xhat * xhat).mean(axis=axes), 1, rtol=1e-10)
    np.testing.assert_allclose(dx.sum(axis=axes), 0, atol=1e-12)
    np.testing.assert_allclose((dx * xhat).sum(axis=axes), 0, atol=1e-10)
    assert np.abs(dx).max() > 0.01


@pytest.mark.parametrize("rule", [rules.batch_norm, rules.layer_norm], ids=lambda rule: rule.name)
def test_a_variance_far_from_zero_is_not_a_difference_of_squares(rule: Rule) -> None:
    """Moved to 10,000, float32 values that are exact there are normalised as they were at 0."""
    x = np.array([[1, 2, 4], [0, 5, 3], [3, 1, 0]], np.float32)
    kept = [np.full(3, v, np.float32) for v in (1, 0, 0, 1)][: len(rule.forward.arguments) - 1]
    np.testing.assert_allclose(rule(x + 10_000, *kept), rule(x, *kept), atol=2e-3)


def test_a_batch_of_one_row_normalises_to_beta() -> None:
    """One row is its own mean: batch norm gives beta, and no gradient passes."""
    x, gamma, beta = np.array([[3.0, -7.0]]), np.array([2.0, 5.0]), np.array([0.5, -0.25])
    kept = gamma, beta, np.zeros(2), np.ones(2)
    np.testing.assert_array_equal(rules.batch_norm(x, *kept), [beta])
    dx = rules.batch_norm.gradients(np.array([[4.0, -1.0]]), x, *kept)["x"]
    np.testing.assert_array_equal(dx, [[0, 0]])


def test_dropout_at_rate_0_is_the_identity() -> None:
    """Nothing is dropped and nothing scaled, forward and backward."""
    rng = np.random.default_rng(0)
    x, upstream = rng.normal(size=(2, 5, 3))
    mask = rules.dropout.sample.run({"shape": x.shape, "key": (0, 1, 1), "rate": 0.0})["kept"]
    assert mask.all()
    np.testing.assert_array_equal(rules.dropout(x, mask, rate=0.0), x)
    np.testing.assert_array_equal(rules.dropout.gradients(upstream, x, mask, rate=0.0)["x"], upstream)


def test_dropout_keeps_the_expected_value() -> None:
    """What stays is scaled by 1 / (1 - rate), and what was dropped passes no gradient."""
    mask = np.array([[True, False, True, True]])
    np.testing.assert_array_equal(rules.dropout(np.full((1, 4), 3.0), mask, rate=0.25), [[4, 0, 4, 4]])
    dx = rules.dropout.gradients(np.array([[3.0, 6.0, -3.0, 9.0]]), np.ones((1, 4)), mask, rate=0.25)["x"]
    np.testing.assert_array_equal(dx, [[4, 0, -4, 12]])


def test_repeated_indices_add_up() -> None:
    """A row looked up three times gets the sum of three gradients, one never looked up gets zero."""
    i, E = np.array([[2, 0], [2, 2]]), np.zeros((4, 1))
    dE = rules.embedding.gradients(np.array([[[1.0], [10.0]], [[100.0], [-1000.0]]]), i, E)["E"]
    np.testing.assert_array_equal(dE, [[10], [0], [-899], [0]])


@pytest.mark.parametrize("row", [(2.0, -3.0, 0.5), (0.0, 0.0, 0.0)], ids=["ordinary", "even"])
def test_cross_entropy_is_minus_the_logarithm_of_the_softmax(row: tuple[float, ...]) -> None:
    """The two rules that are written together say what they would say apart."""
    z, q = np.array([row]), np.array([[0.2, 0.5, 0.3]])
    expected = -(q * np.log(rules.softmax(z))).sum(axis=-1)
    np.testing.assert_allclose(rules.softmax_cross_entropy(z, q), expected, rtol=1e-15)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [(rules.half_squared_error, 12.5), (rules.mean_squared_error, 12.5), (rules.huber, 3.0)],
    ids=["half_squared_error", "mean_squared_error", "huber"],
)
def test_losses_of_known_errors(rule: Rule, expected: float) -> None:
    """For the errors 3 and -4: ½ (9 + 16), (9 + 16) / 2, and the mean of 3 - ½ and 4 - ½."""
    np.testing.assert_array_equal(rule(np.array([[1.0, 0.0]]), np.array([[-2.0, 4.0]])), [expected])


def test_evaluation_of_batch_norm_uses_the_running_statistics() -> None:
    """Outside training y = gamma (x - running_mean) / √(running_var + epsilon) + beta, row by row."""
    kept = np.array([2.0]), np.array([1.0]), np.array([5.0]), np.array([3.0])
    found = rules.batch_norm.evaluation(np.array([[7.0], [1.0]]), *kept, epsilon=1.0)
    np.testing.assert_array_equal(found, [[3.0], [-3.0]])


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_weights_count_by_their_ratios(scale: float) -> None:
    """All weights a billionth of what they were: the same mean, and a penalty that weighs so much more."""
    losses, w, v = np.array([2.0, 5.0, 11.0]), np.array([0.5, 0.0, 0.25]), np.array([1.0, 0.0, 0.5])
    mean = rules.weighted_mean(losses, scale * w, scale * v)
    penalised = rules.penalised_weighted_mean(losses, scale * w, scale * v, np.array(3.0), l2=0.5)
    np.testing.assert_allclose([mean, penalised], [2.5, 2.5 + 1 / scale], rtol=1e-14)


def test_the_deviance_of_a_count_is_its_formula() -> None:
    """eᶻ - t z + t log t - t for counts below 1, at 1 and above; at 0 what is left of it, eᶻ."""
    z, t = np.array([[0.5], [-1.0], [0.25], [2.0]]), np.array([[0.0], [0.3], [1.0], [4.0]])
    expected = [exp(0.5)] + [exp(a) - b * a + b * log(b) - b for (a,), (b,) in zip(z[1:], t[1:], strict=True)]
    np.testing.assert_allclose(rules.poisson_deviance(z, t), expected, rtol=1e-14)

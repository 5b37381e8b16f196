"""Wrong backwards, planted by hand: the checks of this folder must fail on every one of them.

Each is a mistake that people make, and the right forward stands above it.
"""

# ruff: noqa: E741, RET504 - rules are written as mathematics, and return names

from __future__ import annotations

import numpy as np
import pytest

from handgrad import rules
from handgrad.rules import Mask, Rule, Target, rule
from handgrad.rules.primitives import rows

from .checks import check_against_differences, check_contract
from .table import TABLE, Case, Row


@rule("N... I, I I -> N... I")
def transpose_on_square_sizes(x, W):
    z = x @ W
    return z


@transpose_on_square_sizes.backward
def transpose_on_square_sizes_backward(dz, x, W):
    dx = dz @ W
    dW = rows(x).T @ rows(dz)
    return dx, dW


@rule("N... I, I O, O -> N... O")
def bias_not_summed(x, W, b):
    z = x @ W + b
    return z


@bias_not_summed.backward
def bias_not_summed_backward(dz, x, W):
    dx = dz @ W.T
    dW = rows(x).T @ rows(dz)
    db = dz
    return dx, dW, db


@rule("N... O, N... O -> N...")
def error_with_the_wrong_sign(y, t: Target):
    error = y - t
    l = 0.5 * (error * error).sum(axis=-1)
    return l


@error_with_the_wrong_sign.backward
def error_with_the_wrong_sign_backward(dl, error):
    dy = -error * dl[..., None]
    return dy


@rule("N... C -> N... C")
def softmax_diagonal_only(z):
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    y = e / e.sum(axis=-1, keepdims=True)
    return y


@softmax_diagonal_only.backward
def softmax_diagonal_only_backward(dy, y):
    dz = y * (1 - y) * dy
    return dz


@rule("N... ->")
def mean_for_sum(l):
    total = l.sum()
    count = l.size
    loss = total / count
    return loss


@mean_for_sum.backward
def mean_for_sum_backward(dloss, l):
    dl = np.full_like(l, dloss)
    return dl


@rule("N... F, F, F -> N... F")
def layer_norm_without_the_variance(x, gamma, beta, *, epsilon=1e-5):
    centred = x - x.mean(axis=-1, keepdims=True)
    rstd = 1 / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + epsilon)
    xhat = centred * rstd
    y = gamma * xhat + beta
    return y


@layer_norm_without_the_variance.backward
def layer_norm_without_the_variance_backward(dy, gamma, rstd, xhat):
    dgamma = rows(dy * xhat).sum(axis=0)
    dbeta = rows(dy).sum(axis=0)
    dxhat = dy * gamma
    dx = rstd * (dxhat - dxhat.mean(axis=-1, keepdims=True))
    return dx, dgamma, dbeta


@rule("... -> ...")
def upstream_ignored(z):
    a = np.tanh(z)
    return a


@upstream_ignored.backward
def upstream_ignored_backward(da, a):
    dz = 1 - a * a
    return dz


@rule("A..., A... -> A...")
def dropout_not_scaled_back(x, kept: Mask, *, rate=0.5):
    h = x * kept / (1 - rate)
    return h


@dropout_not_scaled_back.backward
def dropout_not_scaled_back_backward(dh, kept):
    dx = dh * kept
    return dx


@rule("... -> ...")
def float64_constant(z):
    a = 2 * z
    return a


@float64_constant.backward
def float64_constant_backward(da):
    dz = np.float64(2) * da
    return dz


@rule("A..., A... -> A...")
def memory_given_away(x, y):
    r = np.add(x, y)
    return r


@memory_given_away.backward
def memory_given_away_backward(dr, x):
    dx = np.multiply(dr, 1, out=dr)
    dy = dr
    return dx, dy


WRONG = {
    transpose_on_square_sizes: {},
    bias_not_summed: {},
    error_with_the_wrong_sign: {},
    softmax_diagonal_only: {},
    mean_for_sum: {},
    layer_norm_without_the_variance: {"epsilon": 1e-5},
    upstream_ignored: {},
    dropout_not_scaled_back: {"rate": 0.2},
}
"""Wrong numbers, each with the options it is run at."""

ILL_MANNERED = (bias_not_summed, float64_constant, memory_given_away)
"""Wrong shape, wrong type, and an argument changed in place."""


def case_of(wrong: Rule, options: dict[str, float]) -> Case:
    return Case(Row(wrong, peer=lambda torch, *arguments: None), options)


@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.name)
def test_central_differences_catch_it(wrong: Rule, rank: int) -> None:
    """The comparison with central differences fails on a wrong gradient."""
    with pytest.raises(AssertionError, match=r"is off by|is not"):
        check_against_differences(case_of(wrong, WRONG[wrong]), rank)


@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("wrong", ILL_MANNERED, ids=lambda wrong: wrong.name)
def test_the_contract_catches_it(wrong: Rule, rank: int) -> None:
    """The contract fails on a wrong shape, on a wrong type, and on a line that writes into its argument."""
    with pytest.raises((AssertionError, ValueError), match=r"another shape|another type|read-only"):
        check_contract(case_of(wrong, {}), rank, "float32")


def test_the_right_rules_pass_the_same_checks() -> None:
    """The checks do not fail on everything: the right layer norm passes where the mutant does not."""
    row = next(row for row in TABLE if row.rule is rules.layer_norm)
    check_against_differences(Case(row, {"epsilon": 1e-5}), 3)
    check_contract(Case(row, {"epsilon": 1e-5}), 3, "float32")

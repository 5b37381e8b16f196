"""Nothing overflows and nothing cancels, where the numbers are extreme."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext

import numpy as np
import pytest

from handgrad import rules
from handgrad.rules import Rule

from .table import Case, each_case

EXTREMES = np.array([-1e4, -40, -1e-4, 0, 1e-4, 40, 1e4])

EXPONENTIALS = ("exponential", "poisson_deviance")
"""Rules whose true value at 1e4 is beyond all numbers."""


@pytest.mark.parametrize(("case", "rank", "dtype"), each_case("float32", "float64"))
def test_extreme_values_give_finite_numbers(case: Case, rank: int, dtype: str) -> None:
    """At values from ±1e-4 to ±1e4 no line overflows, divides by zero or is undefined."""
    inputs, upstream = case.draw(2, rank, dtype=dtype)
    rng = np.random.default_rng(3)
    extremes = EXTREMES[:-1] if case.rule.name in EXPONENTIALS else EXTREMES
    for _ in range(5):
        for name in case.rule.differentiable:
            inputs[name] = rng.choice(extremes, inputs[name].shape).astype(dtype)
        with np.errstate(all="raise", under="ignore"):
            output = case.rule(*inputs.values(), **case.options)
            gradients = case.rule.gradients(upstream, *inputs.values(), **case.options)
        for name, v in {"output": output, **gradients}.items():
            assert np.isfinite(v).all(), f"{name} of {case}"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["softmax", "softmax_cross_entropy"])
def test_softmax_of_equal_extremes_is_even(name: str, dtype: str) -> None:
    """Shifting a row changes nothing: four equal values of any size have equal shares, and the loss log 4."""
    z = np.repeat(EXTREMES[:, None], 4, axis=1).astype(dtype)
    q = np.full_like(z, 0.25)
    found = rules.softmax(z) if name == "softmax" else rules.softmax_cross_entropy(z, q)
    expected = q if name == "softmax" else np.full(len(z), np.log(4), dtype)
    np.testing.assert_allclose(found, expected, rtol=4 * np.finfo(dtype).eps)


def decimal_sigmoid(z: Decimal) -> Decimal:
    return 1 / (1 + (-z).exp())


def tanh_slope(z: Decimal) -> Decimal:
    return 1 - (2 * decimal_sigmoid(2 * z) - 1) ** 2


def silu_slope(z: Decimal) -> Decimal:
    s = decimal_sigmoid(z)
    return s + z * s * (1 - s)


def gelu_tanh_parts(z: Decimal) -> tuple[Decimal, Decimal]:
    """Return the value and the slope, as the definition has them."""
    root = (2 / Decimal("3.14159265358979323846264338327950288419716939937510")).sqrt()
    inner, inner_slope = root * (z + Decimal("0.044715") * z**3), root * (1 + 3 * Decimal("0.044715") * z**2)
    s = decimal_sigmoid(2 * inner)
    return z * s, s + z * s * (1 - s) * 2 * inner_slope


def normal_share(z: Decimal) -> Decimal:
    return Decimal(math.erfc(-float(z) / math.sqrt(2))) / 2


def gelu_slope(z: Decimal) -> Decimal:
    return normal_share(z) + z * Decimal(math.exp(-(float(z) ** 2) / 2) / math.sqrt(2 * math.pi))


DEFINITIONS: dict[Rule, tuple[Callable[[Decimal], Decimal], Callable[[Decimal], Decimal]]] = {
    rules.sigmoid: (decimal_sigmoid, lambda z: decimal_sigmoid(z) * (1 - decimal_sigmoid(z))),
    rules.tanh: (lambda z: 2 * decimal_sigmoid(2 * z) - 1, tanh_slope),
    rules.silu: (lambda z: z * decimal_sigmoid(z), silu_slope),
    rules.softplus: (lambda z: (1 + z.exp()).ln(), decimal_sigmoid),
    rules.elu: (lambda z: z if z > 0 else z.exp() - 1, lambda z: Decimal(1) if z > 0 else z.exp()),
    rules.gelu: (lambda z: z * normal_share(z), gelu_slope),
    rules.gelu_tanh: (lambda z: gelu_tanh_parts(z)[0], lambda z: gelu_tanh_parts(z)[1]),
}
"""Value and slope by their definitions, for arithmetic with 350 digits, where cancelling costs nothing."""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rule", DEFINITIONS, ids=lambda rule: rule.name)
def test_values_and_slopes_keep_their_digits_in_the_tails(rule: Rule, dtype: str) -> None:
    """Wherever the true value can be represented, value and slope have all but the last few digits right.

    The bound is that of the exponent: e^-u with u rounded is off by u times the rounding.
    """
    z = np.array([1e-8, 1e-4, 0.3, 2, 6, 9, 12.5, 17, 20.5, 36, 37.5, 80, 300], dtype)
    z = np.concatenate([-z[::-1], z])
    found = rule(z), rule.gradients(np.ones_like(z), z)["z"]
    smallest = float(np.finfo(dtype).tiny)
    for values, definition in zip(found, DEFINITIONS[rule], strict=True):
        for at, value in zip(z.tolist(), values.tolist(), strict=True):
            with localcontext(prec=350, Emax=MAX_EMAX, Emin=MIN_EMIN):
                true = float(definition(Decimal(at)))
            exponent = max(1.0, -math.log(max(abs(true), smallest)))
            allowed = 8 * exponent * float(np.finfo(dtype).eps) * abs(true)
            assert abs(value - true) <= max(allowed, smallest), f"{rule.name} at {at}: {value}, not {true}"

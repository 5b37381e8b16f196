"""Optimisers as update rules: two steps by hand."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from handgrad import rules
from handgrad.rules import UpdateRule

W0, RATE = 5.0, 0.1

M1, M2 = 0.3, 0.9 * 0.3 + 0.1 * -1  # the mean of the gradients 3 and -1, as Adam fades it
V1, V2 = 0.009, 0.999 * 0.009 + 0.001 * 1  # and of their squares
ADAM_STEP_1 = RATE * (M1 / 0.1) / (sqrt(V1 / 0.001) + 1e-8)
ADAM_STEP_2 = RATE * (M2 / (1 - 0.9**2)) / (sqrt(V2 / (1 - 0.999**2)) + 1e-8)

TWO_STEPS: dict[str, tuple[UpdateRule, dict[str, float], float, float]] = {
    "sgd": (rules.sgd, {}, 5 - 0.3, 4.7 + 0.1),
    "momentum": (rules.sgd_momentum, {"momentum": 0.5}, 5 - 0.3, 4.7 - 0.1 * (1.5 - 1)),
    "nesterov": (rules.sgd_nesterov, {"momentum": 0.5}, 5 - 0.1 * 4.5, 4.55 - 0.1 * (-1 + 0.25)),
    "rmsprop": (
        rules.rmsprop,
        {"decay": 0.5, "epsilon": 0.25},
        5 - 0.3 / (sqrt(4.5) + 0.25),
        5 - 0.3 / (sqrt(4.5) + 0.25) + 0.1 / (sqrt(2.75) + 0.25),
    ),
    "adam": (rules.adam, {}, 5 - ADAM_STEP_1, 5 - ADAM_STEP_1 - ADAM_STEP_2),
    "adamw": (
        rules.adamw,
        {"weight_decay": 0.2},
        5 * 0.98 - ADAM_STEP_1,
        (5 * 0.98 - ADAM_STEP_1) * 0.98 - ADAM_STEP_2,
    ),
}
"""Where W = 5 goes with learning rate 0.1 and the gradients 3 and -1."""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", TWO_STEPS)
def test_two_steps_are_those_of_the_formula(name: str, dtype: str) -> None:
    """From slots of zeros, changing W and the slots in place and in their own type."""
    update, options, *expected = TWO_STEPS[name]
    W = np.array([[W0, -W0]], dtype)
    slots = [np.zeros_like(W) for _ in update.slots]
    for number, (gradient, after) in enumerate(zip((3, -1), expected, strict=True), 1):
        dW = gradient * np.array([[1, -1]], dtype)
        numbers = {"learning_rate": RATE, **({"step": number} if "step" in update.text.arguments else {})}
        update(W, dW, *slots, **numbers, **options)
        np.testing.assert_allclose(W, [[after, -after]], rtol=1e-6 if dtype == "float32" else 1e-14)
        np.testing.assert_array_equal(dW, gradient * np.array([[1, -1]]))
    assert {v.dtype for v in (W, *slots)} == {np.dtype(dtype)}

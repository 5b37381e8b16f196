"""A training loop in which gradients add up from step to step is said to be one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.checking.test_published_programs import checked

MODULES = """
import numpy as np


class Linear:
    def __init__(self, i, o):
        self.W = np.random.default_rng(0).normal(size=(i, o))
        self.dW = np.zeros_like(self.W)

    def forward(self, x):
        self.x = x
        return x @ self.W

    def backward(self, dout):
        self.dW += self.x.T @ dout
        return dout @ self.W.T

    def zero_grad(self):
        self.dW[...] = 0

    def step(self, rate):
        self.W -= rate * self.dW


r = np.random.default_rng(1)
x, t, layer = r.normal(size=(6, 3)), r.normal(size=(6, 2)), Linear(3, 2)
for epoch in range(5):
    layer.zero_grad()
    out = layer.forward(x)
    layer.backward(out - t)
    layer.step(0.01)
"""
ZERO = "    layer.zero_grad()\n"

SCALARS = """
class Value:
    def __init__(self, data):
        self.data, self.grad = data, 0.0
        self._backward = lambda: None

    def __mul__(self, other):
        out = Value(self.data * other.data)

        def _backward():
            self.grad += other.data * out.grad
            other.grad += self.data * out.grad

        out._backward = _backward
        out.made_of = self, other
        return out

    def backward(self):
        self.grad = 1.0
        self._backward()


w, x = Value(0.5), Value(2.0)
for k in range(20):
    loss = w * x
    w.grad = 0.0
    loss.backward()
    w.data -= 0.1 * w.grad
"""


@pytest.mark.parametrize(
    "source",
    [
        MODULES,
        MODULES.replace(ZERO, "    layer.dW = np.zeros((3, 2))\n"),
        MODULES.replace("zero_grad", "forget").replace("self.dW[...] = 0", "self.dW.fill(0)"),
        MODULES.replace(ZERO, "    zero_gradients([layer])\n").replace(
            "\nr = np", "\nfrom layers import zero_gradients\nr = np"
        ),
        MODULES.replace(ZERO, "").replace("self.dW += ", "self.dW = "),
        MODULES.replace(ZERO, "").replace("for epoch in range(5):", "if True:"),
        SCALARS,
    ],
    ids=["zero_grad", "in the loop", "filled", "of another file", "assigned", "one step", "scalars"],
)
def test_what_is_set_to_zero_is_not_warned_of(tmp_path: Path, source: str) -> None:
    assert "nothing that is called sets" not in checked(tmp_path, source).output


def test_gradients_that_add_up_over_the_steps_are_warned_of(tmp_path: Path) -> None:
    """``zero_grad`` is defined, and not called; each backward by itself is right."""
    done = checked(tmp_path, MODULES.replace(ZERO, ""))
    line = MODULES[: MODULES.index("for epoch")].count("\n") + 1
    assert (
        f":{line}: this loop trains, backward adds to dW, and nothing that is called sets dW to 0"
        in done.output
    )
    assert done.exit_code == 0

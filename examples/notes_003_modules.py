"""Modules that hand the gradient on to the module before them, with weights stored (out, in).

The question. The net is x1 = x W1ᵀ + b1, a1 = σ(x1), y = a1 W2ᵀ + b2 with each W stored (out, in), and
L = l(y). What does a module keep in its forward, what does its backward make of the gradient of its output
before it hands it on, and is the product with ∇σ a matrix product?

The answer. A module is one rule. It keeps its inputs; the rule's backward lines turn the gradient of the
output into those of the parameters, which stay with the module, and that of the input, which goes to the
module before. As the map is x Wᵀ, the way back is · W without a transpose, and dW is gradwrtoutputᵀ x. The
product with ∇σ is elementwise. The calls, one after the other, are the backward lines of the written-out
program.
"""

import sys

import numpy as np

from handgrad import HalfSquaredError, Linear, Network, Sigmoid
from handgrad.rules import half_squared_error, linear_out_in, sigmoid

n, d0, d1, d2 = 7, 5, 4, 3


class Module:
    """A rule with its parameters, in a chain of modules."""

    def __init__(self, rule, *parameters, previous_module=None):
        self.rule, self.parameters, self.previous_module = rule, parameters, previous_module

    def forward(self, *inputs):
        """Apply the rule, and keep what the way back needs."""
        self.last_input = inputs
        return self.rule(*inputs, *self.parameters)

    def backward(self, *gradwrtoutput):
        """Turn the gradient of the output into those of the parameters and of the input, and hand that on."""
        gradients = self.rule.gradients(*gradwrtoutput, *self.last_input, *self.parameters)
        gradwrtinput, *self.gradients = gradients.values()
        return self.propagate_gradient(gradwrtinput)

    def propagate_gradient(self, gradwrtinput):
        """Let the module before go on; at the first one, return the gradient of the net's input."""
        if self.previous_module is None:
            return gradwrtinput
        return self.previous_module.backward(gradwrtinput)


def main():
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=(n, d0)), rng.normal(size=(n, d2))
    layers = Linear(d0, d1, layout="out_in"), Sigmoid(), Linear(d1, d2, layout="out_in")
    network = Network(*layers, loss=HalfSquaredError(), dtype="float64")
    W1, b1, W2, b2 = (network.parameters[name] for name in ("W1", "b1", "W2", "b2"))

    first = Module(linear_out_in, W1, b1)
    sigma = Module(sigmoid, previous_module=first)
    second = Module(linear_out_in, W2, b2, previous_module=sigma)
    loss = Module(half_squared_error, previous_module=second)  # l takes the target too: *inputs

    def L(x):
        return loss.forward(second.forward(sigma.forward(first.forward(x))), t).sum()

    L(x)
    dx = loss.backward(np.ones(n))  # L adds up the rows, so that each row's gradient begins with 1

    program = network.program().phase("backward")
    print("Each module's backward, in the written-out program:")
    for name, value in (("loss", "l"), ("second", "z2"), ("sigma", "a1"), ("first", "z1")):
        print(f"  {name:7}", "; ".join(str(line) for line in program if line.undoes == value))

    gradients = dict(zip(("W1", "b1", "W2", "b2"), [*first.gradients, *second.gradients], strict=True))
    exact = {name: np.abs(gradients[name] - own).max() for name, own in network.gradients(x, t).items()}
    print("Largest difference:", ", ".join(f"d{name} {differs:.1e}" for name, differs in exact.items()))

    h = 1e-6
    steps = h * np.eye(x.size).reshape(-1, *x.shape)
    right = np.array([(L(x + step) - L(x - step)) / (2 * h) for step in steps]).reshape(x.shape)
    close = np.abs(dx - right).max()
    print(f"dL/dx {dx.shape}, which the first module returns, from central differences: {close:.1e}")
    return 0 if max(exact.values()) < 1e-12 and close < 1e-8 else 1


if __name__ == "__main__":
    sys.exit(main())

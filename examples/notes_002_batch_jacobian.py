"""The derivative of h = xW with respect to W, and why those of a batch may not be added up first.

The question. For one example x (1, D) and h = xW (1, H), how is dh/dW stored, and what multiplies what in the
chain rule? For the net H = XW, Hact = relu(H), score = Hact wout, prob = sigmoid(score), loss = Σ (prob - t)²
it comes out right with one example. With a batch, where the Jacobians of the examples were added up before
the chain rule, it does not: what is right? And is sigmoid(out) sigmoid(1 - out) the slope of sigmoid?

The answer. dh/dW is a tensor (H, D, H) that holds x_j at (k, j, k) and 0 elsewhere, so x in every column of a
(D, H) matrix is all of it. Column k meets dloss/dh_k only: for one example, that matrix times dh elementwise,
which is the outer product of x and dh. Each example has a dh of its own, so each is multiplied first and then
they are added, which is Xᵀ dH. Adding first is right only where all rows of dH are equal, as in a test with
ones. The slope is sigmoid(out) (1 - sigmoid(out)).
"""

import sys

import numpy as np

from handgrad import Linear, Loss, Network, ReLU, Sigmoid
from handgrad.rules import Target, linear_without_bias, relu, rule, sigmoid, sum_of_rows

X = np.array([[1.0, 2.0], [3.0, 4.0]])
t = np.array([[0.0], [1.0]])
W = np.array([[-0.3745, -0.5, 0.0358], [0.5516, -0.3, 0.3779]])
wout = np.array([[-0.6984], [0.4187], [0.2163]])
N, D, H = 2, 2, 3


@rule("N... O, N... O -> N...")
def squared_error(prob, t: Target):
    """Add up the squared errors of each row: ``Σ_o (prob - t)²``."""
    error = prob - t
    losses = (error * error).sum(axis=-1)
    return losses


@squared_error.backward
def squared_error_backward(dlosses, error):
    dprob = 2 * error * dlosses[..., None]  # the slope of a square is twice what is squared
    return dprob


class SquaredError(Loss):
    """The sum of squared errors, Σ (prob - t)², with no ½ and no mean."""

    def connect(self, graph, y, t, w):
        """Apply the rule, then add up the rows."""
        return graph.apply(sum_of_rows, graph.apply(squared_error, y, t))


def one_example(x):
    """Return dh/dW as the tensor it is: its part i is what the backward makes of 1 at h_i and 0 elsewhere."""
    return np.stack([linear_without_bias.gradients(one[None], x, W)["W"] for one in np.eye(H)])


def batch(X, W, wout):
    """Return dloss/dH, dloss/dW and dloss/dwout: each rule multiplies by its own Jacobian, row by row."""
    h = linear_without_bias(X, W)
    hact = relu(h)
    score = linear_without_bias(hact, wout)
    prob = sigmoid(score)

    dprob = squared_error.gradients(np.ones(len(X)), prob, t)["prob"]
    dscore = sigmoid.gradients(dprob, score)["z"]
    last = linear_without_bias.gradients(dscore, hact, wout)
    dH = relu.gradients(last["x"], h)["z"]
    return dH, linear_without_bias.gradients(dH, X, W)["W"], last["W"]


def numerical(f, v, h=1e-6):
    """Return (f(v + h) - f(v - h)) / 2h for each entry of v."""
    steps = h * np.eye(v.size).reshape(-1, *v.shape)
    return np.array([(f(v + step) - f(v - step)) / (2 * h) for step in steps]).reshape(v.shape)


def main():
    x = X[:1]
    tensor, stored = one_example(x), np.repeat(x.T, H, axis=1)
    print(f"dh/dW for x = {x[0]} is {tensor.shape}: dh_1/dW, dh_2/dW, dh_3/dW are")
    for row in range(D):
        print("  ", *tensor[:, row])
    print(f"  {np.count_nonzero(tensor)} of {tensor.size} numbers are not 0; stored as {stored.tolist()}")
    dH, dW, dwout = batch(X, W, wout)
    in_full = np.einsum("i,ijk->jk", dH[0], tensor)
    one = max(np.abs(in_full - short).max() for short in (stored * dH[0], np.outer(x, dH[0])))
    print(f"  dh times the tensor, stored * dh and outer(x, dh): largest difference {one:.1e}")

    layers = (Linear(D, H, bias=False), ReLU(), Linear(H, 1, bias=False), Sigmoid())
    network = Network(*layers, loss=SquaredError(), dtype="float64")
    network.parameters["W1"][...], network.parameters["W2"][...] = W, wout

    def loss(W, wout):
        return squared_error(sigmoid(relu(X @ W) @ wout), t).sum()

    program = network.gradients(X, t)
    by_steps = numerical(lambda W: loss(W, wout), W), numerical(lambda wout: loss(W, wout), wout)
    print(f"\nThe batch: dloss/dW =\n{dW.round(4)}\n  and dloss/dwout = {dwout[:, 0].round(4)}")
    exact = max(np.abs(program["W1"] - dW).max(), np.abs(program["W2"] - dwout).max())
    close = max(np.abs(by_steps[0] - dW).max(), np.abs(by_steps[1] - dwout).max())
    print(f"  largest difference from the program {exact:.1e}, from central differences {close:.1e}")
    print(f"  the program's line is {network.program().line('dW1')}, where z1 is H")

    # Each example's stored Jacobian meets its own row of dH; added up first, they all meet the same one.
    jacobians = np.repeat(X[:, :, None], H, axis=2)  # (N, D, H)
    print("\nJacobians added up before the chain rule, dloss/dW is off by", end=" ")
    off = []
    for upstream in (dH, np.ones((N, H))):
        multiplied_first = linear_without_bias.gradients(upstream, X, W)["W"]
        exact = max(exact, np.abs((jacobians * upstream[:, None, :]).sum(axis=0) - multiplied_first).max())
        added_first = jacobians.sum(axis=0) * upstream.mean(axis=0)
        off.append(np.linalg.norm(added_first - multiplied_first) / np.linalg.norm(multiplied_first))
    print(f"{off[0]:.0%} with the loss's dH, by {off[1]:.0%} with ones for dH")

    out = np.array([2.0])
    slope, steps = sigmoid.gradients(np.ones(1), out)["z"], numerical(sigmoid, out)
    print(f"\nThe slope of sigmoid at 2: rule {slope[0]:.4f}, central differences {steps[0]:.4f},", end=" ")
    print(f"sigmoid(out) sigmoid(1 - out) {(sigmoid(out) * sigmoid(1 - out))[0]:.4f}")
    close = max(close, np.abs(slope - steps)[0])
    return 0 if max(one, exact, off[1]) < 1e-12 and close < 1e-8 and off[0] > 0.1 else 1


if __name__ == "__main__":
    sys.exit(main())

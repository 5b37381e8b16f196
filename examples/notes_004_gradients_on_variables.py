"""Gradients that hang on their variables: x.g, of the shape of x.

The question. For y = x w + b with one number each, x.g = y.g w, w.g = y.g x and b.g = y.g. What becomes of
that when x is a batch (n, m), w a matrix (m, h) and b a row (h,), so that x.g.shape == x.shape for every
variable? How does `lin_grad` end, which has b.g and w.g = x.T @ y.g, and then x.g = y.g * w2.T?

The answer. A gradient adds up all the ways from its variable to the loss. An entry of x reaches its row of y
through each of the h columns of w: x.g = y.g @ w.T adds up over them. An entry of w serves every row:
w.g = x.T @ y.g adds up over the rows. A product with * adds nothing up: mostly its shapes do not fit, and
where they do, in squares, the numbers are wrong. And w is the layer's own, not w2: lin_grad serves any layer.
"""

import sys

import numpy as np

from handgrad import Linear, MeanSquaredError, Network, ReLU
from handgrad.rules import linear, mean, mean_squared_error, relu, show_shape

n, m, h1, h2 = 7, 5, 4, 3


class Variable(np.ndarray):
    """An array that a gradient can hang on, as x.g."""


def variable(array):
    return np.asarray(array).view(Variable)


def lin_grad(x, w, b, y):
    x.g, w.g, b.g = linear.gradients(y.g, x, w, b).values()  # y.g @ w.T, x.T @ y.g, y.g.sum(axis=0)


def relu_grad(x, y):
    x.g = relu.gradients(y.g, x)["z"]


def mse_grad(y, t):
    rows = mean_squared_error(y, t)
    y.g = mean_squared_error.gradients(mean.gradients(1.0, rows)["l"], y, t)["y"]


def forward(x, w1, b1, w2, b2):
    l1 = linear(x, w1, b1)
    l2 = relu(l1)
    return l1, l2, linear(l2, w2, b2)


def forward_and_backward(x, w1, b1, w2, b2, t):
    """Hang a gradient on every variable, the last first: each needs that of the one after it."""
    l1, l2, y = forward(x, w1, b1, w2, b2)
    mse_grad(y, t)
    lin_grad(l2, w2, b2, y)
    relu_grad(l1, l2)
    lin_grad(x, w1, b1, l1)
    return l1, l2, y


def numerical(f, v, h=1e-6):
    """Return (f(v + h) - f(v - h)) / 2h for each entry of v."""
    steps = h * np.eye(v.size).reshape(-1, *v.shape)
    return np.array([(f(v + step) - f(v - step)) / (2 * h) for step in steps]).reshape(v.shape)


def main():
    rng = np.random.default_rng(0)
    x, t = variable(rng.normal(size=(n, m))), rng.normal(size=(n, h2))
    network = Network(Linear(m, h1), ReLU(), Linear(h1, h2), loss=MeanSquaredError(), dtype="float64")
    w1, b1, w2, b2 = (variable(network.parameters[name]) for name in ("W1", "b1", "W2", "b2"))
    l1, l2, y = forward_and_backward(x, w1, b1, w2, b2, t)

    own = network.gradients(x, t)
    steps = numerical(lambda x: mean(mean_squared_error(forward(x, w1, b1, w2, b2)[2], t)), x)
    right = {"x": steps, "w1": own["W1"], "b1": own["b1"], "w2": own["W2"], "b2": own["b2"]}
    variables = {"x": x, "w1": w1, "b1": b1, "l1": l1, "l2": l2, "w2": w2, "b2": b2, "y": y}
    differs = {name: np.abs(variables[name].g - right[name]).max() for name in right}

    print("variable  shape   shape of .g   largest difference from")
    print("                                the program, or for x from central differences")
    for name, v in variables.items():
        shown = f"{differs[name]:.1e}" if name in right else ""
        print(f"  {name:6}  {show_shape(v.shape):6}  {show_shape(v.g.shape):11}   {shown}".rstrip())

    try:
        l1.g * w1.T
    except ValueError:
        print(f"\n* in place of @: {show_shape(l1.g.shape)} * {show_shape(w1.T.shape)} do not fit")
    y_g, w = rng.normal(size=(4, 4)), rng.normal(size=(4, 4))  # a batch of 4, 4 in and 4 out: now they do
    right_x = linear.gradients(y_g, np.zeros((4, 4)), w, np.zeros(4))["x"]
    wrong = np.linalg.norm(y_g * w.T - right_x) / np.linalg.norm(right_x)
    print(f"  with n = m = h = 4 they do, and x.g is off by {wrong:.0%}")
    fit = all(v.g.shape == v.shape for v in variables.values())
    return 0 if fit and max(differs.values()) < 1e-8 and wrong > 0.1 else 1


if __name__ == "__main__":
    sys.exit(main())

"""A shallow net: the shapes of its gradients, its numerical test, and what diag(φ') is.

The question. A batch x (n, d) goes through layer1 = x weights1 + bias1, x2 = φ(layer1) with φ = ReLU, and
y_pred = x2 weights2 + bias2; loss = ½ Σ (y - y_pred)². Which shape has the gradient of the loss, and which
have the biases? The chain rule seems to need φ', which is (n, m1), as a diagonal matrix (m1, m1): does an
SVD make it one?

The answer. A gradient has the shape of its variable, so that of the loss is y_pred - y, (n, m2): one row for
each example, not summed, not (1, d). A bias is one number for each unit, and its gradient is the sum over the
rows. There is one diagonal matrix for each example, and multiplying row i by diag(φ'[i]) is the elementwise
product with φ'[i]. No single (m1, m1) matrix does that for a whole batch; the one that an SVD makes fits,
and is wrong.
"""

import sys

import numpy as np

from handgrad import HalfSquaredError, Linear, Network, ReLU
from handgrad.rules import half_squared_error, linear, relu, show_shape

n, d, m1, m2 = 11, 3, 5, 2  # all different: a wrong shape cannot pass for a right one


def loss(x, weights1, bias1, weights2, bias2, y):
    x2 = relu(linear(x, weights1, bias1))  # a rule is an ordinary function of arrays
    y_pred = linear(x2, weights2, bias2)
    return half_squared_error(y_pred, y).sum()


def backprop(x, weights1, bias1, weights2, bias2, y):
    """Return the gradient of every value: a rule turns that of its output into those of its inputs."""
    layer1 = linear(x, weights1, bias1)
    x2 = relu(layer1)
    y_pred = linear(x2, weights2, bias2)

    d_l = half_squared_error.gradients(np.ones(len(x)), y_pred, y)["y"]  # y_pred - y: the rows are added up
    second = linear.gradients(d_l, x2, weights2, bias2)  # d_l weights2ᵀ, x2ᵀ d_l, and d_l summed over rows
    d_layer1 = relu.gradients(second["x"], layer1)["z"]
    first = linear.gradients(d_layer1, x, weights1, bias1)
    return {
        "y_pred": d_l,
        "x2": second["x"],
        "layer1": d_layer1,
        "weights1": first["W"],
        "bias1": first["b"],
        "weights2": second["W"],
        "bias2": second["b"],
    }


def numerical(f, v, h=1e-6):
    """Return (f(v + h) - f(v - h)) / 2h for each entry of v, which is nudged in place and put back."""
    slopes = np.empty_like(v)
    for k in np.ndindex(v.shape):
        middle = v[k]
        v[k] = middle + h
        above = f()
        v[k] = middle - h
        slopes[k] = (above - f()) / (2 * h)
        v[k] = middle
    return slopes


def off(wrong, right):
    """Return how far off a gradient is, in the length of the right one."""
    return np.linalg.norm(wrong - right) / np.linalg.norm(right)


def main():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(n, d)), rng.normal(size=(n, m2))
    network = Network(Linear(d, m1), ReLU(), Linear(m1, m2), loss=HalfSquaredError(), dtype="float64")
    names = ("weights1", "bias1", "weights2", "bias2")
    net = dict(zip(names, network.parameters.values(), strict=True))  # the same arrays, by our names
    net["bias1"][...], net["bias2"][...] = rng.normal(size=m1), rng.normal(size=m2)

    print("The gradients, written out (layer1 is z1, x2 is a1, y_pred is z2):")
    for line in network.program().phase("backward"):
        print(f"  {line!s:28} {show_shape(line.shape)}")

    gradients = backprop(x, **net, y=y)
    print("\nThe numerical test      shape     off the program's   off central differences")
    largest = 0.0
    for name, written_out in zip(names, network.gradients(x, y).values(), strict=True):
        right = numerical(lambda: loss(x, **net, y=y), net[name])
        exact, close = (np.abs(gradients[name] - other).max() for other in (written_out, right))
        print(f"  d_{name:18}  {show_shape(gradients[name].shape):9} {exact:<19.1e} {close:.1e}")
        largest = max(largest, exact, close)
    print(f"  largest difference {largest:.1e}")

    # φ' for the whole batch is (n, m1); as diagonal matrices it is (n, m1, m1).
    d_x2, d_layer1 = gradients["x2"], gradients["layer1"]
    slope = (linear(x, net["weights1"], net["bias1"]) > 0) * 1.0
    diagonals = slope[:, :, None] * np.eye(m1)
    row_by_row = np.abs(np.einsum("nj,njk->nk", d_x2, diagonals) - d_layer1).max()
    best = np.linalg.lstsq(d_x2, d_layer1)[0]  # the one matrix that comes nearest for all rows
    best_off = off(d_x2 @ best, d_layer1)
    print(f"\ndiag(φ') is {show_shape(diagonals.shape)}: {slope[0]} for example 0, {slope[1]} for example 1")
    print(f"  d_x2[i] diag(φ'[i]), row by row, against d_x2 * φ': largest difference {row_by_row:.1e}")
    print(f"  the best single {show_shape(best.shape)} matrix is off by {best_off:.0%}")

    # φ'ᵀ = U Σ Vᵀ: the numbers in Σ belong to turned axes, no longer to units or examples.
    singular = np.linalg.svd(slope.T, compute_uv=False)
    with_svd = x.T @ (d_x2 @ np.diag(singular))
    svd_off = off(with_svd, gradients["weights1"])
    shear = np.array([[1.0, 1.0], [0.0, 1.0]])  # it has an SVD and cannot be diagonalised
    print(f"\nThe singular values of φ'ᵀ are {singular.round(2)}")
    print(f"  with diag of them d_weights1 is {show_shape(with_svd.shape)}, as it should be,", end=" ")
    print(f"and off by {svd_off:.0%}")
    print(f"  [[1, 1], [0, 1]] has eigenvalues {np.linalg.eigvals(shear).real} and singular values", end=" ")
    print(f"{np.linalg.svd(shear, compute_uv=False).round(2)}: an SVD is no diagonalisation")

    def after_step(sign):
        return loss(x, **{name: net[name] - sign * 0.01 * gradients[name] for name in names}, y=y)

    start, down, up = loss(x, **net, y=y), after_step(1), after_step(-1)
    print(f"\nThe sign: one step takes the loss from {start:.2f} to {down:.2f} with y_pred - y,", end=" ")
    print(f"and to {up:.2f} with y - y_pred")
    right = largest < 1e-7 and row_by_row == 0 and down < start < up
    return 0 if right and min(best_off, svd_off) > 0.1 else 1


if __name__ == "__main__":
    sys.exit(main())

"""Arguments that a file itself calls its functions with: what forward returned, many rows, None, and zeros."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.checking.test_published_programs import checked

PENALISED = """
import numpy as np


class MLP:
    def __init__(self, l2=1e-2):
        r = np.random.default_rng(0)
        self.p = {"W0": r.normal(size=(5, 8)), "W1": r.normal(size=(8, 2))}
        self.l2 = l2

    def forward(self, x):
        self.x = x
        self.h = np.tanh(x @ self.p["W0"])
        self.o = self.h @ self.p["W1"]
        return self.o

    def loss(self, out, y):
        penalty = 0.5 * self.l2 * sum(np.sum(w * w) for w in self.p.values())
        return 0.5 * np.mean(np.sum((out - y) ** 2, axis=1)) + penalty

    def backward(self, y):
        d = (self.o - y) / len(y)
        g = {"W1": self.h.T @ d + self.l2 * self.p["W1"]}
        g["W0"] = self.x.T @ ((d @ self.p["W1"].T) * (1 - self.h**2)) + self.l2 * self.p["W0"]
        return g


if __name__ == "__main__":
    r = np.random.default_rng(1)
    x, y, net = r.normal(size=(12, 5)), r.normal(size=(12, 2)), MLP()
    for i in range(20):
        out = net.forward(x)
        loss = net.loss(out, y)
        g = net.backward(y)
        for k in g:
            net.p[k] -= 0.1 * g[k]
"""

COLUMNS = """
import numpy as np

rng = np.random.default_rng(0)
n, m = 200, ROWS
X = rng.random((n, m))
Y = rng.integers(0, 10, m)


def softmax(Z):
    return np.exp(Z) / np.exp(Z).sum(axis=0)


def forward_prop(W1, b1, W2, b2, X):
    Z1 = W1.dot(X) + b1
    A1 = np.maximum(Z1, 0)
    Z2 = W2.dot(A1) + b2
    return Z1, A1, Z2, softmax(Z2)


def one_hot(Y):
    found = np.zeros((Y.size, Y.max() + 1))
    found[np.arange(Y.size), Y] = 1
    return found.T


def backward_prop(Z1, A1, Z2, A2, W1, W2, X, Y):
    dZ2 = A2 - one_hot(Y)
    dW2 = 1 / m * dZ2.dot(A1.T)
    db2 = 1 / m * dZ2.sum(axis=1, keepdims=True)
    dZ1 = W2.T.dot(dZ2) * (Z1 > 0)
    dW1 = 1 / m * dZ1.dot(X.T)
    db1 = 1 / m * dZ1.sum(axis=1, keepdims=True)
    return dW1, db1, dW2, db2


def descend(X, Y, alpha, iterations):
    W1, b1 = rng.random((10, n)) - 0.5, rng.random((10, 1)) - 0.5
    W2, b2 = rng.random((10, 10)) - 0.5, rng.random((10, 1)) - 0.5
    for i in range(iterations):
        Z1, A1, Z2, A2 = forward_prop(W1, b1, W2, b2, X)
        dW1, db1, dW2, db2 = backward_prop(Z1, A1, Z2, A2, W1, W2, X, Y)
        W1, b1, W2, b2 = W1 - alpha * dW1, b1 - alpha * db1, W2 - alpha * dW2, b2 - alpha * db2


descend(X, Y, 0.1, 3)
"""

PRINTED = """
import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def sigmoid_derivative(x):
    return sigmoid(x) * (1 - sigmoid(x))


class NeuralNetwork:
    def __init__(self):
        rng = np.random.RandomState(42)
        self.weights1 = rng.randn(3, 4)
        self.weights2 = rng.randn(4, 1)

    def feedforward(self, X):
        self.layer1 = sigmoid(X @ self.weights1)
        self.output = sigmoid(self.layer1 @ self.weights2)
        return self.output

    def backprop(self, X, y, lr=0.5):
        delta = 2 * (y - self.output) * sigmoid_derivative(self.output)
        d_weights2 = self.layer1.T @ delta
        d_weights1 = X.T @ (delta @ self.weights2.T * sigmoid_derivative(self.layer1))
        self.weights1 += lr * d_weights1
        self.weights2 += lr * d_weights2


if __name__ == "__main__":
    X = np.array([[0, 0, 1], [0, 1, 1], [1, 0, 1], [1, 1, 1]], dtype=float)
    y = np.array([[0], [1], [1], [0]], dtype=float)
    nn = NeuralNetwork()
    for i in range(50):
        print(np.sum(np.square(y - nn.feedforward(X))))
        nn.backprop(X, y)
"""

OPTIONAL = """
import numpy as np


def linear_forward(x, W, b=None):
    y = x @ W
    if b is not None:
        y = y + b
    return y, (x, W, b)


def linear_backward(dy, cache):
    x, W, b = cache
    db = None if b is None else dy.sum(axis=0)
    return dy @ W.T, x.T @ dy, db
"""

STATE = """
import numpy as np


class Cell:
    def __init__(self):
        r = np.random.default_rng(0)
        self.W, self.U = r.normal(size=(3, 4)), r.normal(size=(4, 4))

    def forward(self, x, h_prev=None):
        if h_prev is None:
            h_prev = np.zeros((len(x), 4))
        self.cache = x, h_prev, np.tanh(x @ self.W + h_prev @ self.U)
        return self.cache[2] + h_prev

    def backward(self, dh):
        x, h_prev, h = self.cache
        dz = dh * (1 - h**2)
        self.dW, self.dU = x.T @ dz, h_prev.T @ dz
        return dz @ self.W.T, dz @ self.U.T + dh


if __name__ == "__main__":
    cell = Cell()
    cell.backward(np.ones_like(cell.forward(np.random.default_rng(1).normal(size=(5, 3)))))
"""

LAYERS = """
import numpy as np


class Dense:
    def __init__(self, a, b):
        r = np.random.default_rng(0)
        self.weights, self.bias = r.normal(size=(a, b)), r.normal(size=(1, b))

    def forward(self, x):
        self.input = x
        return np.dot(x, self.weights) + self.bias

    def backward(self, output_error, learning_rate):
        input_error = np.dot(output_error, self.weights.T)
        self.weights -= learning_rate * np.dot(self.input.T, output_error)
        self.bias -= learning_rate * output_error
        return input_error


dense = Dense(2, 3)
for row in [[0, 0], [0, 1], [1, 0], [1, 1]]:
    out = dense.forward(np.array([row]))
    dense.backward(out - 1.0, 0.1)
"""

MOMENTUM = """
import numpy as np


class Net:
    def __init__(self):
        self.W = np.random.default_rng(0).normal(size=(4, 3))
        self.v = {"W": 0}

    def forward(self, X):
        return X @ self.W

    def train(self, X, Y, lr=0.1):
        d = (self.forward(X) - Y) / len(X)
        g = {"W": X.T @ d}
        for k in g:
            self.v[k] = 0.9 * self.v[k] + g[k]
            setattr(self, k, getattr(self, k) - lr * self.v[k])


if __name__ == "__main__":
    r = np.random.default_rng(1)
    net = Net()
    for i in range(5):
        net.train(r.normal(size=(20, 4)), r.normal(size=(20, 3)))
"""


def test_a_loss_is_called_with_what_forward_returned(tmp_path: Path) -> None:
    """``loss(out, y)`` kept its ``out``: of the penalty alone, a right gradient was wrong, and its repair was zeros."""
    assert checked(tmp_path, PENALISED).exit_code == 0
    also = PENALISED.replace("def backward(self, y)", "def backward(self, out, y)").replace(
        "(self.o - y)", "(out - y)"
    )
    assert checked(tmp_path, also.replace("net.backward(y)", "net.backward(out, y)")).exit_code == 0


def test_what_another_class_returned_is_no_output_of_forward(tmp_path: Path) -> None:
    """Its loss takes what a layer's ``forward`` made of the output: nothing of it is taken to be the output itself."""
    halved = """class Half:
    def forward(self, z):
        return z / 2


if __name__"""
    text = PENALISED.replace("if __name__", halved).replace("net.loss(out", "net.loss(Half().forward(out)")
    for penalty in (" + penalty", ' + self.l2 * self.p["W0"]', ' + self.l2 * self.p["W1"]'):
        text = text.replace(penalty, "")
    done = checked(tmp_path, text)
    assert "no loss was found: taken to be 0.5 * sum((output - target)**2) / rows" in done.output
    assert done.exit_code == 0


TAKING_OUTPUT = PENALISED.replace("backward(y)", "backward(out, y)").replace("(self, y)", "(self, out, y)")


@pytest.mark.parametrize("backward", [PENALISED, TAKING_OUTPUT])
def test_a_mistake_beside_a_penalty_is_found_and_mended(tmp_path: Path, backward: str) -> None:
    twice = backward.replace("d + self.l2", "d + 2 * self.l2")
    assert '+ g = {"W1": self.h.T @ d + self.l2 * self.p["W1"]}' in checked(tmp_path, twice).output
    assert (
        "`self.h` should be `self.h ** 2`"
        in checked(tmp_path, backward.replace("self.h**2", "self.h")).output
    )


@pytest.mark.parametrize("rows", [50, 3000])
def test_columns_are_rows_where_there_are_as_many_targets(tmp_path: Path, rows: int) -> None:
    """The first 8 of the features were taken, nothing fitted, and of drawn columns the module's m was another number."""
    done = checked(tmp_path, COLUMNS.replace("ROWS", str(rows)))
    assert done.exit_code == 0, done.output
    done = checked(
        tmp_path, COLUMNS.replace("ROWS", str(rows)).replace("1 / m * dZ1.dot", "dZ1.dot"), "--verbose"
    )
    assert "wrong dW1 (10, 200)" in done.output
    assert "right db1 (10, 1)" in done.output
    assert f" of {rows} rows" in done.output


def test_a_repair_keeps_the_layout_of_a_bias(tmp_path: Path) -> None:
    """``dZ1.sum(axis=1)`` has the right numbers, and b1 - alpha * db1 would be (10, 10)."""
    text = COLUMNS.replace("ROWS", "50").replace(".sum(axis=1, keepdims=True)", ".sum()")
    output = checked(tmp_path, text).output
    assert "+ db1 = 1 / m * dZ1.sum(axis=1, keepdims=True)" in output
    assert "+ db2 = 1 / m * dZ2.sum(axis=1, keepdims=True)" in output


def test_the_error_that_a_file_prints_is_its_loss(tmp_path: Path) -> None:
    """Where every gradient was wrong, a cross-entropy was as likely, and the mistake another one."""
    done = checked(tmp_path, PRINTED)
    assert "taken to be sum((output - target)**2)" in done.output
    assert "wrong-evaluation-point in dweights1, and dweights2 with it" in done.output
    mean = checked(tmp_path, PRINTED.replace("np.sum(np.square", "np.mean(0.5 * np.square"))
    assert "taken to be 0.5 * sum((output - target)**2) / size" in mean.output


def test_an_argument_that_is_none_by_default_is_checked_too(tmp_path: Path) -> None:
    """What backward returned for it was never compared."""
    done = checked(tmp_path, OPTIONAL)
    assert (done.exit_code, "right db (5,)" in done.output) == (0, True)
    done = checked(tmp_path, OPTIONAL.replace("dy.sum(axis=0)", "dy.mean(axis=0)"))
    assert "batch-mean-vs-sum in db" in done.output
    done = checked(tmp_path, STATE)
    assert "right dh_prev (5, 4)" in done.output
    assert "but h_prev (5, 4), not None" in done.output
    assert (
        "wrong dh_prev (5, 4)"
        in checked(tmp_path, STATE.replace("dz @ self.U.T + dh", "dz @ self.U.T")).output
    )


def test_zeros_that_a_file_passes_are_drawn(tmp_path: Path) -> None:
    """The first sample is [0, 0]: a weight's gradient is zero there, right or not, and was not listed."""
    done = checked(tmp_path, LAYERS)
    assert "right dweights (2, 3)" in done.output
    assert "but x drawn, not 0" in done.output
    done = checked(tmp_path, LAYERS.replace("* np.dot(self.input.T", "* 2 * np.dot(self.input.T"))
    assert "every entry of dweights is 2 times the right one" in done.output


def test_an_update_that_is_not_along_the_gradient_is_said_not_to_be_judged(tmp_path: Path) -> None:
    said = "the update of W was not judged, only the gradients"
    assert said not in checked(tmp_path, MOMENTUM).output
    done = checked(
        tmp_path, MOMENTUM.replace("k) - lr * self.v[k]", "k) + lr * self.v[k] - lr * 0.1 * self.W")
    )
    assert "dW is v.W" in done.output
    assert said in done.output


ROWS = """
import numpy as np


class Regressor:
    def __init__(self, m):
        self.W, self.m = np.random.default_rng(0).normal(size=(90, 3)), m

    def forward(self, X):
        self.X = X
        return X @ self.W

    def backward(self, out, y):
        return {"W": self.X.T @ (out - y) / HELD}


def mse(out, y):
    return 0.5 * np.sum((out - y) ** 2) / len(y)


if __name__ == "__main__":
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(64, 90)), rng.normal(size=(64, 3))
    config = {"batch": 64}
    inverse = 1 / len(X)
    net = Regressor(len(X))
    for k in range(3):
        out = net.forward(X)
        mse(out, y)
        net.backward(out, y)
"""


@pytest.mark.parametrize("held", ["self.m", 'config["batch"]', "(1 / inverse)", "len(self.X)"])
def test_rows_are_all_taken_where_their_number_is_held_elsewhere(tmp_path: Path, held: str) -> None:
    """Of 8 rows the gradient was "0.125 times the right one", wherever the number was not a variable of the module."""
    done = checked(tmp_path, ROWS.replace("HELD", held), "--verbose")
    assert done.exit_code == 0, done.output
    assert ("8 of 64 rows" in done.output) == (held == "len(self.X)")
    assert (
        checked(tmp_path, ROWS.replace("HELD", held).replace("self.X.T @", "(self.X.T + 1) @")).exit_code == 1
    )


def test_a_methods_module_holds_the_number_of_rows_too(tmp_path: Path) -> None:
    """A few rows are taken of a class as of functions."""
    text = ROWS.replace("HELD", "rows").replace("size=(64, ", "size=(rows, ")
    text = text.replace("    rng = ", "    rows = 64\n    rng = ").replace(
        "if __name__", "rows = 64\n\nif __name__"
    )
    done = checked(tmp_path, text, "--verbose")
    assert "8 of 64 rows" in done.output
    assert done.exit_code == 0, done.output


FLAGS = """
import numpy as np


def forward(x, pad):
    return x * (1 - pad)


def backward(dout, x, pad):
    return np.where(pad == 1, 0, dout)


out = forward(np.array([0.5, -1.0, 2.0, 3.0]), np.zeros(4))
backward(np.ones(4), np.ones(4), np.zeros(4))
"""


def test_zeros_that_may_be_flags_are_drawn_as_flags(tmp_path: Path) -> None:
    """Of padding between 0 and 1 nothing is known: a right backward was wrong."""
    done = checked(tmp_path, FLAGS, "--verbose")
    assert done.exit_code == 0, done.output
    assert "pad drawn, not 0" in done.output
    assert checked(tmp_path, FLAGS.replace("pad == 1, 0, dout", "pad == 1, dout, dout")).exit_code == 1


def test_another_networks_output_is_a_target(tmp_path: Path) -> None:
    """A teacher's forward returned it, and one of the same class: it was taken for the student's output."""
    taught = (
        PENALISED.replace("y = net.", "y = ")
        .replace(
            "x, y, net = r.normal(size=(12, 5)), r.normal(size=(12, 2)), MLP()",
            "x, net, teacher = r.normal(size=(12, 5)), MLP(), MLP()",
        )
        .replace(
            "        loss = net",
            "        y = teacher.forward(x) + 0.0\n        y = teacher.forward(x)\n        loss = net",
        )
    )
    taught = taught.replace("np.random.default_rng(0)", "np.random.default_rng()")
    done = checked(tmp_path, taught)
    assert "cannot tell" not in done.output
    assert done.exit_code == 0, done.output


HELPERS = """

def average_gradients(workers):
    return sum(each.grads for each in workers) / len(workers)


def test_backward():
    assert np.allclose(backward(np.ones(4), np.ones(4), np.zeros(4)), 1)


def compare_gradients(x, y):
    return backward(x, x, y) - y


class EarlyStopping:
    def step(self, error, min_delta=0.1):
        self.best = min(self.best, error - min_delta)


def train_step(errors, rate):
    errors[0] -= rate * errors[1]
    return errors
"""


def test_helpers_of_gradients_are_no_backwards(tmp_path: Path) -> None:
    done = checked(tmp_path, FLAGS + HELPERS)
    assert "cannot tell" not in done.output
    assert done.exit_code == 0


LOGISTIC = """
import numpy as np


def cost(w, b, X, Y):
    A = 1 / (1 + np.exp(-(w.T @ X + b)))
    return -np.mean(Y * np.log(A) + (1 - Y) * np.log(1 - A))


def cost_gradient(w, b, X, Y, m):
    A = 1 / (1 + np.exp(-(w.T @ X + b)))
    return X @ (A - Y).T / m, np.sum(A - Y) / m


if __name__ == "__main__":
    r = np.random.default_rng(0)
    X, Y = r.normal(size=(3, 10)), (r.random((1, 10)) > 0.5).astype(float)
    w, b = np.zeros((3, 1)), 0.0
    cost(w, b, X, Y)
    cost_gradient(w, b, X, Y, X.shape[1])
"""


def test_a_gradient_of_a_cost_is_no_cost_with_a_gradient(tmp_path: Path) -> None:
    """Its second value is a sum, of the bias; m is no upstream gradient."""
    done = checked(tmp_path, LOGISTIC, "--verbose")
    assert "right dw (3, 1)" in done.output
    assert done.exit_code == 0, done.output
    assert checked(tmp_path, LOGISTIC.replace(".T / m", ".T")).exit_code == 1

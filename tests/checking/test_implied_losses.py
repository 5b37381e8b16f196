"""Which loss a gradient is judged by: one with weights of rows, one that no line computes, and none that is only watched."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.checking.test_published_programs import checked

WEIGHTED = """
import numpy as np


def forward(X, w):
    return 1 / (1 + np.exp(-X @ w))


def weighted_loss(p, y, importance):
    return -np.sum(importance * (y * np.log(p) + (1 - y) * np.log(1 - p))) / importance.sum()


def backward(X, p, y, importance):
    return X.T @ (importance * (p - y) / importance.sum())


if __name__ == "__main__":
    r = np.random.default_rng(0)
    X, w, importance = r.normal(size=(30, 4)), np.ones(4), r.uniform(size=30)
    y = (X[:, 0] > 0).astype(float)
    for step in range(10):
        p = forward(X, w)
        print(weighted_loss(p, y, importance))
        w = w - 0.1 * backward(X, p, y, importance)
"""

WEIGHTED_OBJECT = """
import numpy as np


def weighted_mse(out, target, importance):
    return np.sum(importance * (out - target) ** 2)


class Net:
    def __init__(self):
        self.W = np.random.default_rng(0).normal(size=(3, 2))

    def forward(self, x):
        self.x = x
        self.h = np.tanh(x @ self.W)
        return self.h

    def backward(self, target, importance):
        d = 2 * importance * (self.h - target) * (1 - self.h**2)
        self.dW = self.x.T @ d


if __name__ == "__main__":
    r = np.random.default_rng(1)
    x, t, importance = r.normal(size=(9, 3)), r.normal(size=(9, 2)), r.random((9, 1))
    net = Net()
    for step in range(5):
        out = net.forward(x)
        print(weighted_mse(out, t, importance))
        net.backward(t, importance)
        net.W -= 0.1 * net.dW
"""


@pytest.mark.parametrize(
    ("source", "mistake"), [(WEIGHTED, ("(p - y)", "(y - p)")), (WEIGHTED_OBJECT, (" * (1 - self.h**2)", ""))]
)
def test_a_loss_may_weight_its_rows(tmp_path: Path, source: str, mistake: tuple[str, str]) -> None:
    done = checked(tmp_path, source, "--verbose")
    assert "taken to be weighted_" in done.output
    assert done.exit_code == 0, done.output
    assert checked(tmp_path, source.replace(*mistake)).exit_code == 1


def test_gradients_of_another_loss_than_the_files_are_said_to_be(tmp_path: Path) -> None:
    done = checked(tmp_path, WEIGHTED_OBJECT.replace("2 * importance", "2"), "--verbose")
    other = "weighted_mse(output, target, importance), which the file defines, has other gradients"
    assert f"taken to be sum((output - target)**2); {other}" in done.output


WITHOUT_LOSS = """
import numpy as np


class Regression:
    def __init__(self):
        self.w, self.b = np.array([0.5, -0.3, 0.2]), 0.4

    def predict(self, X):
        return LINK(X @ self.w + self.b)

    def gradients(self, X, y):
        d = ERROR / len(y)
        self.dw, self.db = X.T @ d, d.sum()


r = np.random.default_rng(0)
X = r.normal(size=(40, 3))
y = r.poisson(np.exp(X @ np.array([0.5, -0.3, 0.2]))).astype(float) + 0.2
model = Regression()
model.gradients(X, y)
print("mse", np.mean((model.predict(X) - y) ** 2))
"""


@pytest.mark.parametrize(
    ("link", "error", "loss"),
    [
        ("np.exp", "(self.predict(X) - y)", "sum(output - target * log(output)) / rows"),
        ("1.0 *", "np.sign(self.predict(X) - y)", "sum(abs(output - target)) / rows"),
    ],
)
def test_poisson_and_absolute_errors_need_no_written_loss(
    tmp_path: Path, link: str, error: str, loss: str
) -> None:
    source = WITHOUT_LOSS.replace("LINK", link).replace("ERROR", error)
    done = checked(tmp_path, source, "--verbose")
    assert f"no loss was found: taken to be {loss}" in done.output
    assert done.exit_code == 0, done.output
    assert checked(tmp_path, source.replace("X.T @ d", "X.T @ d * 2")).exit_code == 1


WATCHED = """
import numpy as np


def train(X, w, t, epochs=10):
    errors = []
    for _ in range(epochs):
        out = X @ w
        LINE
        dw = X.T @ (out - t)
        w = w - 0.01 * dw
    return w


if __name__ == "__main__":
    r = np.random.default_rng(0)
    train(r.normal(size=(6, 3)), r.normal(size=(3, 2)), r.normal(size=(6, 2)))
"""


@pytest.mark.parametrize(
    "line", ["max_error = np.abs(out - t).max()", "errors.append(max(np.abs(out - t).ravel()))"]
)
def test_the_largest_error_is_watched_and_no_loss(tmp_path: Path, line: str) -> None:
    source = WATCHED.replace("LINE", line)
    assert checked(tmp_path, source).exit_code == 0
    assert checked(tmp_path, source.replace("X.T @ (out - t)", "X.T @ (t - out)")).exit_code == 1


SQUARE = """
import numpy as np


def forward(X, W, b):
    return np.tanh(W @ X + b)


def loss(A, Y):
    return np.sum((A - Y) ** 2)


def backward(X, A, Y):
    dZ = 2 * (A - Y) * (1 - A**2)
    return dZ @ X.T, dZ.sum(axis=1, keepdims=True)


r = np.random.default_rng(0)
X, Y, W, b = r.normal(size=(8, 8)), r.normal(size=(8, 8)), r.normal(size=(8, 8)), r.normal(size=(8, 1))
A = forward(X, W, b)
dW, db = backward(X, A, Y)
"""


def test_gradients_of_the_last_arguments_are_none_of_data_of_the_same_shape(tmp_path: Path) -> None:
    done = checked(tmp_path, SQUARE, "--verbose")
    assert "dW is returned [0], db is returned [1]" in done.output
    assert done.exit_code == 0, done.output
    assert checked(tmp_path, SQUARE.replace("dZ @ X.T", "(dZ @ X.T).T")).exit_code == 1


MINIBATCHES = """
import numpy as np

r = np.random.default_rng(0)
m = 5000
X, Y = r.normal(size=(m, 6)), r.normal(size=(m, 1))
W = np.ones((6, 1))


def forward(X, W):
    return X @ W


def loss(P, Y):
    return np.mean((P - Y) ** 2)


def backward(X, P, Y):
    return 2 * X.T @ (P - Y) / ROWS


if __name__ == "__main__":
    print(loss(forward(X, W), Y))
    for k in range(0, m, 64):
        xb, yb = X[k : k + 64], Y[k : k + 64]
        P = forward(xb, W)
        W = W - 0.1 * backward(xb, P, yb)
"""


def test_a_minibatch_is_divided_by_its_own_rows(tmp_path: Path) -> None:
    """Forward is first called with all rows, to print the loss; backward is given 64 of them."""
    assert checked(tmp_path, MINIBATCHES.replace("ROWS", "len(Y)")).exit_code == 0
    done = checked(tmp_path, MINIBATCHES.replace("ROWS", "m"))
    assert "every entry of dW is 0.0128 times the right one" in done.output
    assert done.exit_code == 1


COLUMNS = """
import numpy as np


def cost(w, b, X, Y):
    A = 1 / (1 + np.exp(-(w.T @ X + b)))
    return -np.mean(Y * np.log(A) + (1 - Y) * np.log(1 - A))


def cost_gradient(w, b, X, Y, m):
    A = 1 / (1 + np.exp(-(w.T @ X + b)))
    dw = X @ (A - Y).T / m
    db = np.sum(A - Y) / m
    return dw, db


r = np.random.default_rng(0)
X, Y = r.normal(size=(20, 400)), (r.random((1, 400)) > 0.5).astype(float)
w, b = np.ones((20, 1)), 0.0
for i in range(5):
    dw, db = cost_gradient(w, b, X, Y, X.shape[1])
    w = w - 0.1 * dw
"""


def test_the_number_of_rows_is_drawn_as_that_of_the_targets(tmp_path: Path) -> None:
    """The training is no call that is recorded: its lines are a script's."""
    assert checked(tmp_path, COLUMNS).exit_code == 0
    assert checked(tmp_path, COLUMNS.replace("A - Y) / m", "A - Y)")).exit_code == 1


SUMMED = """
import numpy as np


def forward(X, w, b):
    return X @ w + b


def loss(p, y):
    return np.mean((p - y) ** 2)


def backward(X, p, y):
    d = 2 * (p - y) / len(y)
    return X.T @ d, d.sum()


r = np.random.default_rng(0)
X, y, w, b = r.normal(size=(6, 3)), r.normal(size=(6, 1)), np.ones((3, 1)), BIAS
p = forward(X, w, b)
dw, db = backward(X, p, y)
"""


@pytest.mark.parametrize("bias", ["np.zeros(1)", "0.5", "np.ones((1, 1))"])
def test_a_number_after_a_gradient_is_that_of_the_only_bias(tmp_path: Path, bias: str) -> None:
    source = SUMMED.replace("BIAS", bias)
    assert checked(tmp_path, source).exit_code == 0
    done = checked(tmp_path, source.replace("d.sum()", "d.mean()"))
    assert "batch-mean-vs-sum in db" in done.output
    assert done.exit_code == 1


SAVED_INPUT = """
import numpy as np


class Net:
    def __init__(self, m):
        self.m, self.W = m, np.ones((20, 2))

    def forward(self, X):
        self.X = X
        return X @ self.W

    def loss(self, P, Y):
        return np.sum((P - Y) ** 2) / len(Y)

    def backward(self, P, Y):
        self.dW = 2 * self.X.T @ (P - Y) / self.m


r = np.random.default_rng(0)
X, Y = r.normal(size=(300, 20)), r.normal(size=(300, 2))
net = Net(len(X))
P = net.forward(X)
net.loss(P, Y)
net.backward(P, Y)
"""


def test_a_backward_that_reads_the_saved_input_takes_the_prediction(tmp_path: Path) -> None:
    assert checked(tmp_path, SAVED_INPUT).exit_code == 0
    assert checked(tmp_path, SAVED_INPUT.replace("= 2 * self", "= self")).exit_code == 1

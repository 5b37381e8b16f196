"""Networks in plain Python: lists, and lists of lists, of numbers are arrays to the check, and lists to their author."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.checking.test_published_programs import Checked, checked

from handgrad import check
from handgrad.checking.forward_trace import trace_forward
from handgrad.checking.interfaces.names import arrays_in
from handgrad.checking.interfaces.tensors import is_numbers

NET = """
import math
import random

random.seed(1)


def matmul(A, B):
    return [[sum(a * b for a, b in zip(row, col)) for col in zip(*B)] for row in A]


def transpose(A):
    return [list(r) for r in zip(*A)]


def sigmoid(z):
    return 1 / (1 + math.exp(-z))


class Net:
    def __init__(self, n_in, n_hidden, n_out):
        self.W1 = [[random.gauss(0, 1) for _ in range(n_hidden)] for _ in range(n_in)]
        self.W2 = [[random.gauss(0, 1) for _ in range(n_out)] for _ in range(n_hidden)]

    def forward(self, X):
        self.h = [[sigmoid(v) for v in row] for row in matmul(X, self.W1)]
        self.o = [[sigmoid(v) for v in row] for row in matmul(self.h, self.W2)]
        return self.o

    def backward(self, X, y):
        do = [[(o - t) * o * (1 - o) for o, t in zip(ro, rt)] for ro, rt in zip(self.o, y)]
        dW2 = matmul(transpose(self.h), do)
        dh = matmul(do, transpose(self.W2))
        dz = [[d * h * (1 - h) for d, h in zip(rd, rh)] for rd, rh in zip(dh, self.h)]
        dW1 = matmul(transpose(X), dz)
        return dW1, dW2


X = [[0, 0, 1], [0, 1, 1], [1, 0, 1], [1, 1, 1], [1, 0, 0]]
y = [[0], [1], [1], [0], [1]]
if __name__ == "__main__":
    net = Net(3, 4, 1)
    for _ in range(3):
        net.forward(X)
        for W, dW in zip((net.W1, net.W2), net.backward(X, y)):
            for i in range(len(W)):
                for j in range(len(W[0])):
                    W[i][j] -= 0.5 * dW[i][j]
"""

UNIT = """
import math
import random

random.seed(2)


class Unit:
    def __init__(self, n):
        self.weights = [random.uniform(-1, 1) for _ in range(n)]
        self.bias = random.uniform(-1, 1)
        self.lr = 0.1

    def predict(self, inputs):
        z = self.bias
        for w, x in zip(self.weights, inputs):
            z += w * x
        return 1 / (1 + math.exp(-z))

    def train(self, inputs, target):
        y = self.predict(inputs)
        error = y - target
        for i in range(len(self.weights)):
            self.weights[i] -= self.lr * error * y * (1 - y) * inputs[i]
        self.bias -= self.lr * error * y * (1 - y)


unit = Unit(3)
for x, t in (([0.1, 0.5, -0.3], 1), ([0.7, -0.2, 0.4], 0)):
    unit.train(x, t)
"""

SCRIPT = """
import math

X = [[0.5, 1.2], [-0.3, 0.8], [1.1, -0.7], [0.2, 0.1]]
Y = [1, 0, 1, 0]
w = [0, 0]
b = 0
for epoch in range(10):
    dw, db, loss = [0.0, 0.0], 0.0, 0.0
    for x, y in zip(X, Y):
        p = 1 / (1 + math.exp(-sum(wi * xi for wi, xi in zip(w, x)) - b))
        loss -= y * math.log(p) + (1 - y) * math.log(1 - p)
        for j in range(2):
            dw[j] += (p - y) * x[j]
        db += p - y
    for j in range(2):
        w[j] -= 0.1 * dw[j]
    b -= 0.1 * db
"""

PAIR = """
def predict(params, xs):
    w, b = params
    return [w * x + b for x in xs]


def loss(params, xs, ys):
    return sum((p - y) ** 2 for p, y in zip(predict(params, xs), ys)) / len(xs)


def gradients(params, xs, ys):
    ps = predict(params, xs)
    dw = sum(2 * (p - y) * x for p, y, x in zip(ps, ys, xs)) / len(xs)
    db = sum(2 * (p - y) for p, y in zip(ps, ys)) / len(xs)
    return [dw, db]


params = [0.5, -0.2]
xs, ys = [1.0, 2.0, 4.0], [0.3, 1.2, 2.0]
for _ in range(3):
    l = loss(params, xs, ys)
    params = [p - 0.01 * d for p, d in zip(params, gradients(params, xs, ys))]
"""


ROWS = """
import math

X = [[0.1, 0.9], [0.7, 0.4], [0.6, 0.8]]
y = [0, 1, 1]
W1 = [[0.3, -0.5], [0.8, 0.2], [-0.6, 0.4]]
b1 = [0.1, -0.2, 0.3]
W2 = [[0.7, -0.3, 0.5]]
b2 = [0.2]
learning_rate = 0.5
for epoch in range(3):
    total_loss = 0.0
    for xi, yi in zip(X, y):
        hidden = [math.tanh(sum(W1[j][i] * xi[i] for i in range(2)) + b1[j]) for j in range(3)]
        out = [sum(W2[k][j] * hidden[j] for j in range(3)) + b2[k] for k in range(1)]
        total_loss += 0.5 * (yi - out[0]) ** 2
        d_out = [yi - out[k] for k in range(1)]
        d_hidden = [0.0 for _ in range(3)]
        for j in range(3):
            for k in range(1):
                d_hidden[j] += d_out[k] * W2[k][j]
            d_hidden[j] *= 1 - hidden[j] ** 2
        for k in range(1):
            for j in range(3):
                W2[k][j] += learning_rate * d_out[k] * hidden[j]
            b2[k] += learning_rate * d_out[k]
        for j in range(3):
            for i in range(2):
                W1[j][i] += learning_rate * d_hidden[j] * xi[i]
            b1[j] += learning_rate * d_hidden[j]
"""

GLOBAL = """
import math

W = [[0.3, -0.5], [0.8, 0.2], [-0.6, 0.4]]
b = [0.1, -0.2, 0.3]
rate = 0.1


def step(x, target):
    z = [sum(W[i][j] * x[j] for j in range(2)) + b[i] for i in range(3)]
    exps = [math.exp(v) for v in z]
    p = [v / sum(exps) for v in exps]
    loss = -math.log(p[target])
    dz = p[:]
    dz[target] -= 1
    dW = [[0.0, 0.0] for _ in range(3)]
    for i in range(3):
        for j in range(2):
            dW[i][j] += dz[i] * x[j]
    for i in range(3):
        for j in range(2):
            W[i][j] -= rate * dW[i][j]
        b[i] -= rate * dz[i]
    return loss


for epoch in range(5):
    step([0.5, -1.5], 2)
"""

MIXED = """
import math

X = [[0.1, 0.9], [0.7, 0.4], [0.6, 0.8]]
y = [0, 1, 1]
W1 = [[0.3, -0.5], [0.8, 0.2], [-0.6, 0.4]]
W2 = [[0.7, -0.3, 0.5], [0.1, 0.2, -0.4]]
b2 = [0.2, 0.1]
lr = 0.5
for epoch in range(3):
    sq_error = 0.0
    for xi, yi in zip(X, y):
        h = [math.tanh(sum(W1[j][i] * xi[i] for i in range(2))) for j in range(3)]
        out = [sum(W2[k][j] * h[j] for j in range(3)) + b2[k] for k in range(2)]
        loss = sum(0.5 * (o - yi) ** 2 for o in out)
        d_out = [o - yi for o in out]
        d_h = [0.0, 0.0, 0.0]
        for k in range(2):
            for j in range(3):
                d_h[j] += d_out[k] * W2[k][j]
                W2[k][j] -= lr * d_out[k] * h[j]
            b2[k] -= lr * d_out[k]
            sq_error += d_out[k] ** 2
        for j in range(3):
            for i in range(2):
                W1[j][i] -= lr * d_h[j] * (1 - h[j] ** 2) * xi[i]
"""

SHARED = """
import random

random.seed(1)


class Net:
    def __init__(self):
        self.W = [random.gauss(0, 1) for _ in range(3)]
        self.params = [self.W]

    def forward(self, x):
        self.x = x
        return sum(a * b for a, b in zip(self.params[0], x))

    def backward(self, dy):
        self.dW = [dy * v for v in self.x]
        return [dy * v for v in self.params[0]]


net = Net()
net.forward([0.5, 1.5, -0.4])
net.backward(1.0)
"""

COPIED = """
X = [[0.1, 0.9], [0.7, 0.4], [0.6, 0.8]]
T = [0.2, 0.5, 0.9]
w = [0.3, -0.5]
rate = 0.1
for epoch in range(3):
    for x, t in zip(X, T):
        p = w[0] * x[0] + w[1] * x[1]
        loss = 0.5 * (p - t) ** 2
        dw = [(p - t) * x[0], (p - t) * x[1]]
        for j in range(2):
            for i in range(1):
                old = w
            w[j] -= rate * dw[j]
"""

PROCESS = """
import math


class Network:
    def __init__(self):
        self.weights = [[0.3, -0.6, 0.2], [0.8, 0.1, -0.4]]
        self.last = [0.7, -0.5]

    def process(self, x):
        self.h = [1 / (1 + math.exp(-sum(w * v for w, v in zip(row, x)))) for row in self.weights]
        return sum(w * h for w, h in zip(self.last, self.h))

    def train_step(self, x, expected, rate):
        out = self.process(x)
        delta = out - expected
        back = [delta * w for w in self.last]
        for k, h in enumerate(self.h):
            self.last[k] -= rate * delta * h
            for j, v in enumerate(x):
                self.weights[k][j] -= rate * back[k] * h * (1 - h) * v

    def train(self, rate, rows):
        for x, t in rows:
            self.train_step(x, t, rate)


Network().train(0.5, [([0.1, 0.5, -0.3], 1), ([0.7, -0.2, 0.4], 0)])
"""

UNNAMED = """
import math


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def dsigmoid(y):
    return y * (1 - y)


class Net:
    def __init__(self):
        self.w = [0.3, -0.2]

    def update(self, inputs):
        self.inputs = inputs
        self.out = sigmoid(sum(w * x for w, x in zip(self.w, inputs)))
        return self.out

    def backPropagate(self, wanted, N):
        for k, x in enumerate(self.inputs):
            change = dsigmoid(self.out) * (wanted - self.out) * x
            self.w[k] = self.w[k] + N * change


net = Net()
net.update([1.0, 2.0])
net.backPropagate(1.0, 0.5)
"""

RESIDUAL = """
class Unit:
    def __init__(self):
        self.w = [0.3, -0.2]

    def error(self, x, y):
        return sum(w * v for w, v in zip(self.w, x)) - y

    def train(self, x, y, lr):
        e = self.error(x, y)
        for k, v in enumerate(x):
            self.w[k] -= lr * e * v


unit = Unit()
for x, y in (([1.0, 2.0], 3.0), ([0.5, -1.0], 0.2)):
    unit.train(x, y, 0.1)
"""

RESIDUALS = """
import numpy as np


class Net:
    def __init__(self):
        self.w = np.array([0.3, -0.2, 0.5])

    def forward(self, x, y):
        return x @ self.w - y

    def train(self, x, y, lr=0.1):
        e = self.forward(x, y)
        self.w -= lr * x.T @ e / len(x)


rng = np.random.default_rng(1)
Net().train(rng.normal(size=(6, 3)), rng.normal(size=6))
"""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([0.5, 1], True),
        ([[1.0, 2.0], [3, 4]], True),
        ([np.float64(1.0), 2.0], True),
        ([1, 2], False),  # labels, sizes
        ([[1.0], [2.0, 3.0]], False),
        ([1.0, "a"], False),
        ([1.0, True], False),
        ([np.ones(2), np.ones(2)], False),
        ([], False),
        ([[], []], False),
        ((1.0, 2.0), False),  # a tuple is several values
        (1.0, False),
    ],
)
def test_which_lists_are_arrays(value: Any, expected: bool) -> None:
    assert is_numbers(value) is expected


def test_layers_of_different_sizes_are_an_array_each() -> None:
    found = arrays_in({"weights": [[[1.0, 2.0, 3.0]], [[4.0], [5.0]]]})
    assert {path: np.shape(array) for path, array in found.items()} == {
        ("weights", 0): (1, 3),
        ("weights", 1): (2, 1),
    }


def first_wrong_and_repair(folder: Path, text: str, old: str, new: str) -> Checked:
    """Return what is said of a program with a mistake in it, which is found in its line and mended to what it was."""
    assert text.count(old) == 1
    done = checked(folder, text.replace(old, new), "--fix", "--yes")
    assert done.exit_code == 0, done.output
    line = text[: text.index(old)].count("\n") + 1
    assert f"first wrong line: program.py:{line}: " in done.output
    assert (folder / "program.py").read_text() == text
    return done


@pytest.mark.parametrize(
    "text",
    [NET, UNIT, SCRIPT, PAIR, ROWS, GLOBAL, MIXED, SHARED, COPIED],
    ids=["net", "unit", "script", "pair", "rows", "global", "mixed", "shared", "copied"],
)
def test_right_programs_are_right(tmp_path: Path, text: str) -> None:
    done = checked(tmp_path, text)
    assert done.exit_code == 0, done.output
    assert " wrong " not in done.output


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("d * h * (1 - h)", "d * h", "missing-local-derivative in dW1"),
        ("(o - t) * o * (1 - o)", "(t - o) * o * (1 - o)", "wrong-sign in dW1, and dW2 with it"),
        ("matmul(transpose(X), dz)", "matmul(transpose(X), dh)", "missing-local-derivative in dW1"),
    ],
)
def test_a_mistake_between_lists_of_lists_is_found_and_mended(
    tmp_path: Path, old: str, new: str, code: str
) -> None:
    """No loss was found for such a network: its parameters were as many numbers, and its gradients none of theirs."""
    done = first_wrong_and_repair(tmp_path, NET, old, new)
    assert code in done.output


def test_an_update_of_each_weight_is_mended_where_it_computes_its_gradient(tmp_path: Path) -> None:
    done = first_wrong_and_repair(tmp_path, UNIT, "error * y * (1 - y) * inputs[i]", "error * y * inputs[i]")
    assert "missing-local-derivative in dweights" in done.output


def test_a_gradient_that_is_zero_in_a_balanced_batch_is_no_factor_of_rounding_errors(tmp_path: Path) -> None:
    """All weights are 0, and half of the labels 1: db was "-4e13 times the right one", and the script a crash before."""
    done = first_wrong_and_repair(tmp_path, SCRIPT, "db += p - y", "db += p + y")
    assert "wrong-sign in db" in done.output
    assert "times the right one" not in done.output
    assert "a slope is handed on" not in done.output


def test_a_list_of_two_gradients_is_that_of_a_list_of_two_numbers(tmp_path: Path) -> None:
    done = first_wrong_and_repair(
        tmp_path, PAIR, "zip(ps, ys)) / len(xs)\n    return", "zip(ps, ys))\n    return"
    )
    assert "`w` gets" not in done.output  # the first of several values that one line unpacks


def test_an_update_of_all_rows_of_a_list_is_one_step(tmp_path: Path) -> None:
    """Only the first entry was moved, and a right script wrong; the rate was "not the gradient of total_loss"."""
    done = first_wrong_and_repair(
        tmp_path, ROWS, "d_hidden[j] *= 1 - hidden[j] ** 2", "d_hidden[j] *= 1 - hidden[j]"
    )
    assert "right dW2, db2" in done.output
    assert "wrong-local-derivative in dW1, and db1 with it" in done.output


def test_a_statistic_beside_the_updates_says_nothing_of_a_sign(tmp_path: Path) -> None:
    """``sq_error += d_out[k] ** 2`` made ``d_out`` what is added, and so of the opposite sign: a wrong db was right."""
    done = checked(tmp_path, MIXED.replace("d_out = [o - yi", "d_out = [yi - o"))
    assert done.exit_code == 1
    assert "wrong dW1" in done.output
    assert "wrong db2" in done.output
    assert "norm" not in checked(tmp_path, MIXED.replace("sq_error", "norm")).output


def test_a_function_may_train_lists_of_its_module(tmp_path: Path) -> None:
    done = checked(tmp_path, GLOBAL.replace("dz[i] * x[j]", "p[i] * x[j]"), "--fix", "--yes")
    assert "wrong dW (3, 2)" in done.output
    assert "right db" in done.output
    assert "dz[i] * x[j]" in (tmp_path / "program.py").read_text()


def test_a_backward_that_is_not_judged_has_its_own_report(tmp_path: Path) -> None:
    """Its sigmoid was right, and the exit code 0: that every gradient is."""
    done = checked(tmp_path, UNNAMED)
    assert "sigmoid: right" in done.output
    assert "program.py:Net.backPropagate: cannot tell" in done.output
    assert "program.py:22: Net.backPropagate is not judged" in " ".join(done.output.split())
    assert done.exit_code == 2
    assert "dsigmoid is not judged" not in done.output
    summing = "def flatten_grads(grads):\n    return sum(grads)\n\n\n"
    unnamed = UNNAMED.replace("class", f"{summing}class").replace("update(", "ask(")
    unnamed = unnamed.replace("self.w[k] = self.w[k] + N * change", "self.edges[k].weight += N * delta")
    unnamed = unnamed.replace("change", "delta").replace("net.backPropagate(1.0, 0.5)\n", "")
    done = checked(tmp_path, unnamed.replace("backPropagate", "update_weights"))
    assert "flatten_grads" not in done.output
    assert "Net.update_weights: cannot tell" in done.output
    assert done.exit_code == 2
    optimiser = """

class SGD:
    def update(self, net, grads, delta=0.1):
        net.w = [w - delta * g for w, g in zip(net.w, grads)]
"""
    assert "SGD.update" not in checked(tmp_path, UNNAMED + optimiser).output
    others = "\n\nclass Timer:\n    def roll_back(self):\n        return 1\n"
    assert "not judged" not in checked(tmp_path, SHARED + others).output


def test_a_forward_of_any_name_is_the_one_that_a_training_runs_first(tmp_path: Path) -> None:
    done = checked(tmp_path, PROCESS)
    assert done.exit_code == 0, done.output
    assert "program.py:Network: right" in done.output
    wrong = checked(tmp_path, PROCESS.replace("back[k] * h * (1 - h) * v", "back[k] * h * v"))
    assert "wrong dweights (2, 3)" in wrong.output
    assert "right dlast" in wrong.output
    text = PROCESS.replace("rate", "factor").replace(
        "enumefactor", "enumerate"
    )  # which says nothing of a step
    assert "the update of self.weights was not judged" in checked(tmp_path, text).output


def log_and_exp(given: dict[str, Any]) -> Any:
    return math.log(given["x"]) + math.exp(given["x"])


def test_what_math_cannot_compute_is_as_numpy_has_it() -> None:
    """A trace that was run at other inputs raised "math domain error", and the check failed."""
    trace = trace_forward(log_and_exp, {"x": np.float64(2.0)}, [log_and_exp])
    assert np.isnan(trace.replay({"x": np.float64(-1.0)})[trace.output])
    assert np.isposinf(trace.replay({"x": np.float64(1000.0)})[trace.output])


class WithBias:
    """A layer that asks for lists: what is added to one is an entry more."""

    def __init__(self) -> None:
        self.W = [[0.5, -1.0, 0.2], [1.5, 0.3, -0.7]]
        self.factor = 1.0

    def forward(self, x: list[float]) -> list[float]:  # noqa: D102
        self.x = x + [1.0]  # noqa: RUF005 - as people write it
        assert all(isinstance(each, list) for each in (x, self.W, self.W[0]))
        return [sum(a * b for a, b in zip(self.x, row, strict=True)) for row in self.W]

    def backward(self, dy: list[float]) -> list[float]:  # noqa: D102
        assert isinstance(dy, list)
        self.dW = [[self.factor * d * a for a in self.x] for d in dy]
        return [sum(d * row[k] for d, row in zip(dy, self.W, strict=True)) for k in range(len(self.x) - 1)]


def test_lists_stay_lists() -> None:
    layer = WithBias()
    report = check(layer, inputs={"x": [0.4, -0.6]})
    assert report.verdict == "right"
    assert [each.name for each in report.arguments] == ["x", "W"]
    assert layer.W == [[0.5, -1.0, 0.2], [1.5, 0.3, -0.7]]
    layer.factor = 2.0
    report = check(layer, inputs={"x": [0.4, -0.6]})
    assert [each.name for each in report.arguments if each.verdict != "right"] == ["W"]


@pytest.mark.parametrize(
    ("text", "old", "new", "loss", "evidence"),
    [
        (
            RESIDUAL,
            "lr * e * v",
            "lr * e * e * v",
            "0.5 * sum(output**2)",
            "the derivative of the loss is taken at what it",
        ),
        (
            RESIDUALS,
            "w -= lr",
            "w += lr",
            "0.5 * sum(output**2) / rows",
            "the right one with the opposite sign",
        ),
    ],
)
def test_what_a_forward_subtracts_its_target_from_is_an_error(
    tmp_path: Path, text: str, old: str, new: str, loss: str, evidence: str
) -> None:
    """It was a loss by its name, or the target was subtracted once more: right programs were wrong."""
    done = checked(tmp_path, text)
    assert done.exit_code == 0, done.output
    assert f"no loss was found: taken to be {loss} -" in done.output
    wrong = checked(tmp_path, text.replace(old, new))
    assert wrong.exit_code == 1
    assert evidence in wrong.output
    assert "repair proved on fresh inputs" in wrong.output


COMPREHENSIONS = """
import math

X = [[0.1, 0.9], [0.7, 0.4], [0.6, 0.8]]
T = [[0, 1], [1, 0], [1, 1]]
W1 = [[0.3, -0.5], [0.8, 0.2], [-0.6, 0.4]]
W2 = [[0.7, -0.3, 0.5], [0.1, 0.2, -0.4]]
lr = 0.5
for epoch in range(3):
    for x, t in zip(X, T):
        h = [math.tanh(sum(w * v for w, v in zip(row, x))) for row in W1]
        out = [sum(w * v for w, v in zip(row, h)) for row in W2]
        d_out = [o - each for o, each in zip(out, t)]
        d_h = [sum(d_out[k] * W2[k][j] for k in range(2)) * (1 - h[j] ** 2) for j in range(3)]
        for k in range(2):
            for j in range(3):
                W2[k][j] -= lr * d_out[k] * h[j]
        for j in range(3):
            for i in range(2):
                W1[j][i] -= lr * d_h[j] * x[i]
"""

XOR = """
import math

data = [([1, 0], [1]), ([0, 1], [1]), ([1, 1], [0]), ([0, 0], [0])]
w_hidden = [[0.3, -0.5, 0.1], [0.8, 0.2, -0.4]]
w_out = [0.7, -0.3, 0.5]


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def feed_forward(x):
    hidden = [sigmoid(sum(w * v for w, v in zip(row, x + [1]))) for row in w_hidden]
    output = sigmoid(sum(w * v for w, v in zip(w_out, hidden + [1])))
    return hidden, output


def backprop(x, target, lr=0.5):
    hidden, output = feed_forward(x)
    delta = (output - target[0]) * output * (1 - output)
    deltas = [h * (1 - h) * delta * w_out[i] for i, h in enumerate(hidden)]
    for i, h in enumerate(hidden + [1]):
        w_out[i] -= lr * delta * h
    for i, row in enumerate(w_hidden):
        for j, v in enumerate(x + [1]):
            row[j] -= lr * deltas[i] * v


for epoch in range(3):
    for x, target in data:
        backprop(x, target)
"""


@pytest.mark.parametrize("error", ["o - each for o, each in zip(out, t)", "out[k] - t[k] for k in range(2)"])
def test_an_error_within_a_comprehension_is_one_of_whole_lists(tmp_path: Path, error: str) -> None:
    old = "o - each for o, each in zip(out, t)"
    done = checked(tmp_path, COMPREHENSIONS.replace(old, error))
    assert done.exit_code == 0, done.output
    assert "taken to be 0.5 * sum((output - target)**2), of output out, target t" in done.output
    assert checked(tmp_path, COMPREHENSIONS.replace(" * (1 - h[j] ** 2)", "")).exit_code == 1


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("(output - target[0])", "(target[0] - output)", "wrong-sign in dw_hidden, and dw_out with it"),
        ("h * (1 - h) * delta", "h * delta", "missing-local-derivative in dw_hidden"),
        ("w_out[i] for", "w_out[0] for", "wrong-evaluation-point in dw_hidden"),
    ],
)
def test_lists_of_the_module_that_a_backward_moves_are_parameters(
    tmp_path: Path, old: str, new: str, code: str
) -> None:
    """Nothing of a function that returned nothing was a gradient but its learning rate."""
    done = checked(tmp_path, XOR)
    assert done.exit_code == 0, done.output
    assert "right dw_hidden (2, 3)" in done.output
    assert "right dw_out (3,)" in done.output
    assert XOR.count(old) == 1
    wrong = checked(tmp_path, XOR.replace(old, new), "--fix", "--yes")
    assert wrong.exit_code == 0, wrong.output
    assert code in wrong.output
    assert (tmp_path / "program.py").read_text() == XOR


def test_lists_of_a_module_are_judged_only_with_a_target(tmp_path: Path) -> None:
    """A target among the module's own was unknown, and an upstream gradient was invented: wrong programs were right."""
    for text in (XOR, XOR.replace("(output - target[0])", "1")):
        own = text.replace("def backprop(x, target, lr=0.5):", "def backprop(x, lr=0.5):").replace(
            "backprop(x, target)", "backprop(x)"
        )
        done = checked(tmp_path, own)
        assert done.exit_code == 2, done.output
        assert "feed_forward: right" not in done.output


BASIS = """
import math

X = [[0.1, 0.9], [0.7, 0.4], [0.6, 0.8]]
w = [0.3, -0.5]
lr = 0.1
for x, t in zip(X, [0.2, 0.7, 0.4]):
    phi = [math.exp(-v * v) for v in x]
    pairs = [p - q for p, q in zip(phi, w)]
    y = sum(a * b for a, b in zip(w, phi))
    e = y - t
    for j in range(2):
        w[j] -= lr * e * phi[j]
"""

CUBE = """
def f(x, y):
    return x * x * x - y


def f_grad(x, y):
    return 3 * x * x, -1.0


f(1.5, 0.4)
f_grad(1.5, 0.4)
"""

POISSON = """
import numpy as np


class Unit:
    def __init__(self):
        self.w = np.array([0.3, -0.2])

    def loss(self, x, y):
        return np.exp(x @ self.w).sum() - y

    def gradient(self, x, y):
        return {"w": x.T @ np.exp(x @ self.w)}


unit = Unit()
x = np.array([[0.5, 1.0], [-0.3, 0.2], [0.1, 0.7]])
unit.loss(x, 0.5)
unit.gradient(x, 0.5)
"""


@pytest.mark.parametrize("text", [BASIS, CUBE, POISSON], ids=["basis", "cube", "poisson"])
def test_not_every_difference_is_an_error(tmp_path: Path, text: str) -> None:
    """One of a comprehension that no gradient needs; that of a function with a gradient of its own, or of a loss."""
    done = checked(tmp_path, text)
    assert done.exit_code == 0, done.output
    assert ": right" in done.output

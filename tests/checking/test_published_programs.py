"""What reading programs that people have published showed: their habits, in programs of our own."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from handgrad.cli import group

NEURON = """
import numpy as np

xs = np.array([[-2.0, 4.0], [7.0, -2.0], [1.0, 0.5]])
ys = np.array([5.0, -3.0, 0.2])
u, v, k = 0.1, 0.2, -0.3
du = dv = dk = 0.0
for i in range(len(xs)):
    h = u * xs[i][0] + v * xs[i][1]
    guess = k * h
    d_guess = 2 * (guess - ys[i])
    dk += d_guess * h
    dh = d_guess * k
    du += dh * xs[i][0]
    dv += dh * xs[i][1]
du /= len(xs)
dv /= len(xs)
dk /= len(xs)
u -= 0.1 * du
v -= 0.1 * dv
k -= 0.1 * dk
"""

ROWS = """
import numpy as np

rng = np.random.default_rng(0)
X = rng.normal(size=(20, 3))
y = (X[:, :1] > 0) * 1.0
W = rng.normal(size=(3, 1))
for epoch in range(3):
    dW = np.zeros_like(W)
    for i in range(len(X)):
        x = X[i : i + 1]
        p = 1 / (1 + np.exp(-(x @ W)))
        d = (p - y[i : i + 1]) * p * (1 - p)
        dW += x.T @ d
    W -= 0.1 * dW
"""

LOGISTIC = """
import numpy as np

rng = np.random.default_rng(1)
x = rng.normal(size=(40, 2))
y = (x[:, :1] > 0) * 1.0
w = rng.normal(size=(2, 1))
for epoch in range(5):
    p = 1 / (1 + np.exp(-np.dot(x, w)))
    loss = -np.sum(y * np.log(p) + (1 - y) * np.log(1 - p)) / x.shape[0]
    w = w - 0.001 * np.dot(x.T, p - y)
"""

XOR = """
import numpy as np

def sigmoid(x):
    return 1 / (1 + np.exp(-x))

def sigmoid_prime(x):
    return sigmoid(x) * (1 - sigmoid(x))

def moved(w, dw):
    return w + dw

X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
y = np.array([[0], [1], [1], [0]])
v, w = np.ones((2, 3)), np.ones((3, 1))
for epoch in range(4):
    h = X @ v
    step = 0.1 * (y - sigmoid(h) @ w)
    w += sigmoid(h).T @ step
    v += X.T @ (step @ w.T * sigmoid_prime(h))
"""

SEQUENCE = """
import numpy as np

class Model:
    def __init__(self, inputs, outputs):
        self.W = np.random.randn(outputs, inputs) * 0.3
        self.b = np.zeros((outputs, 1))

    def forward(self, xs):
        outputs = []
        for x in xs:
            z = self.W @ x.reshape(-1, 1) + self.b
            outputs.append(np.exp(z) / np.exp(z).sum())
        return outputs

    def loss(self, outputs, targets):
        return sum(-np.log(p[np.argmax(t), 0]) for p, t in zip(outputs, targets))

    def backward(self, xs, outputs, targets):
        dW, db = np.zeros_like(self.W), np.zeros_like(self.b)
        for x, p, t in zip(xs, outputs, targets):
            dz = p.copy()
            dz[np.argmax(t)] -= 1
            dW += dz @ x.reshape(1, -1)
            db += dz
        return dW, db

model = Model(6, 4)
xs = [np.random.randn(6) for _ in range(3)]
targets = [np.eye(4)[k] for k in (1, 3, 0)]
outputs = model.forward(xs)
loss = model.loss(outputs, targets)
grads = model.backward(xs, outputs, targets)
"""

CLIPPED = """
import numpy as np

class Dense:
    def __init__(self, n, m):
        self.W = np.random.randn(n, m)
        self.b = np.zeros((1, m))

    def forward(self, x):
        self.x = x
        return x @ self.W + self.b

    def backward(self, dout):
        dx = dout @ self.W.T
        dW = self.x.T @ dout
        db = dout.mean(axis=0, keepdims=True)
        for grad in (dW, db):
            np.clip(grad, -1, 1, out=grad)
        return dx, dW, db
"""

LOSS_LAYER = """
import numpy as np

class SquaredError:
    def forward(self, x, t):
        self.x, self.t = x, t
        return 0.5 * np.sum((x - t) ** 2)

    def backward(self, dout=1):
        batch_size = self.t.shape[0]
        dx = (self.x - self.t) / batch_size
        return dx

class Net:
    def __init__(self, inputs, outputs):
        self.W = np.random.randn(inputs, outputs)
        self.last = SquaredError()

    def loss(self, x, t):
        return self.last.forward(x @ self.W, t)

    def gradient(self, x, t):
        self.loss(x, t)
        return {"W": x.T @ self.last.backward()}
"""

HALF = """
import numpy as np

class Half:
    def forward(self, x):
        return 0.5 * x

    def backward(self, dout):
        return 0.5 * dout
"""

LAYER = """
from .halves import Half

class Layer:
    def __init__(self):
        self.half = Half()

    def forward(self, x):
        return self.half.forward(x) ** 2

    def backward(self, dout, x):
        return self.half.backward(dout * 2 * self.half.forward(x))
"""


AVERAGED = """
import numpy as np

rng = np.random.default_rng(1)
x = rng.normal(size=(40, 2))
y = (x[:, 0] > 0) * 1.0
w = rng.normal(size=2)
bias = 0.3
n = len(x)
for epoch in range(5):
    p = 1 / (1 + np.exp(-(x @ w + bias)))
    # loss
    dw = x.T @ (p - y)
    db = np.sum(p - y)
    w -= 0.5 * dw
    bias -= 0.5 * db
"""

ARRAY = """
import numpy as np

rng = np.random.default_rng(0)


class Net:
    def __init__(self):
        self.W = rng.normal(size=(3, 2))

    def forward(self, X):
        self.X = X
        L = X @ self.W
        return L

    def backward(self, y):
        d = (self.X @ self.W - y) / len(y)
        self.dW = self.X.T @ d


net = Net()
X, y = rng.normal(size=(5, 3)), rng.normal(size=(5, 2))
net.forward(X)
net.backward(y)
"""

BEHIND = """
import random

random.seed(0)
xs = [i / 10 for i in range(1, 10)]
ys = [3 * each + 4 + random.random() for each in xs]
w, b = 0.4, 0.7
for i in range(10):
    for x, y in zip(xs, ys):
        o = w * x + b - y
        loss = o**2
        dw = 2 * o * x
        db = 2 * o
        w = -0.1 * dw + w
        b = -0.1 * db + b
"""

SCALARS = """
import math

w1, w2, w5, w6 = 0.5, -0.4, 0.3, 0.9
x, t = 0.7, 1.0
for step in range(20):
    h1, h2 = math.tanh(w1 * x), math.tanh(w2 * x)
    z3 = w5 * h1 + w6 * h2
    loss = (z3 - t) ** 2
    dz3 = 2 * (z3 - t)
    dw5, dw6 = dz3 * h1, dz3 * h2
    dh1 = dz3 * w5
    dh2 = dz3 * w6
    dw1 = dh1 * (1 - h1**2) * x
    dw2 = dh2 * (1 - h2**2) * x
    w1 -= 0.1 * dw1
    w2 -= 0.1 * dw2
    w5 -= 0.1 * dw5
    w6 -= 0.1 * dw6
"""


class Checked:
    """What the command said of a file, and its exit code: 2 where it ended with an error."""

    def __init__(self, *arguments: str) -> None:
        done = CliRunner().invoke(group, ["check", *arguments], standalone_mode=False)
        self.exit_code = done.return_value if done.exception is None else 2
        # one line: where the report breaks its lines depends on the terminal
        self.output = " ".join((done.output + str(done.exception or "")).split())


def checked(folder: Path, text: str, *more: str) -> Checked:
    path = folder / "program.py"
    path.write_text(text)
    return Checked(str(path), *more)


def test_the_assumed_loss_of_a_loop_may_be_a_mean_over_its_passes(tmp_path: Path) -> None:
    """It was that of the last pass, and a right program wrong; what is assumed is said."""
    done = checked(tmp_path, NEURON)
    assert done.exit_code == 0, done.output
    said = "no loss was found: taken to be sum((output - target)**2), the mean over the passes of a loop, of output guess"
    assert said in done.output
    wrong = checked(tmp_path, NEURON.replace("dh = d_guess * k", "dh = d_guess"))
    assert wrong.exit_code == 1
    assert "no loss was found: taken to be" in wrong.output
    assert "right dk" in wrong.output


def test_the_assumed_loss_of_a_step_is_of_all_its_rows(tmp_path: Path) -> None:
    done = checked(tmp_path, ROWS)
    assert done.exit_code == 0, done.output
    assert "taken to be 0.5 * sum((output - target)**2), of output p, target y[i:i + 1]" in done.output
    assert checked(tmp_path, ROWS.replace(" * p * (1 - p)", " * p")).exit_code == 1


def test_an_update_may_be_written_out_with_its_product(tmp_path: Path) -> None:
    """``w = w - rate * X.T @ error`` was no update, and the file had nothing to check."""
    done = checked(tmp_path, LOGISTIC, "--fix", "--yes")
    assert done.exit_code == 0, done.output
    assert "40 times the right one" in done.output
    assert "np.dot(x.T, p - y) / len(x)" in (tmp_path / "program.py").read_text()


@pytest.mark.parametrize("loss", ["", "    loss = -np.mean(y * np.log(p) + (1 - y) * np.log(1 - p))\n"])
@pytest.mark.parametrize(
    ("update", "bias"),
    [
        ("0.5 * {} / len(x)", "b"),
        ("0.5 * {} / n", "bias"),
        ("0.5 / n * {}", "bias"),
        ("0.5 * (1 / x.shape[0]) * {}", "b"),
    ],
)
def test_an_update_may_average_what_its_lines_have_summed(
    tmp_path: Path, loss: str, update: str, bias: str
) -> None:
    """Of a mean loss it was 40 times the right gradient; without a loss, where only one of them was known by its name."""
    text = AVERAGED.replace("    # loss\n", loss).replace("bias", bias)
    text = text.replace("0.5 * dw", update.format("dw")).replace("0.5 * db", update.format("db"))
    done = checked(tmp_path, text)
    assert done.exit_code == 0, done.output
    wrong = checked(tmp_path, text.replace("np.sum(p - y)", "np.sum(p)"))
    assert "right dw" in wrong.output
    assert f"wrong d{bias}" in wrong.output


@pytest.mark.parametrize("divisor", ["n", "2", "(epoch + 1)"])
def test_an_update_may_divide_by_anything_what_is_the_gradient(tmp_path: Path, divisor: str) -> None:
    """Of a summed loss, the gradient is the sum, whatever rate it is multiplied with."""
    loss = "    loss = -np.sum(y * np.log(p) + (1 - y) * np.log(1 - p))\n"
    text = AVERAGED.replace("    # loss\n", loss).replace("bias", "b")
    text = text.replace("0.5 * dw", f"0.5 * dw / {divisor}").replace("0.5 * db", f"0.5 * db / {divisor}")
    done = checked(tmp_path, text)
    assert done.exit_code == 0, done.output
    assert "dw is dw" in done.output


def test_an_array_is_no_loss_by_its_name(tmp_path: Path) -> None:
    done = checked(tmp_path, ARRAY)
    assert done.exit_code == 0, done.output
    assert "no loss was found: taken to be 0.5 * sum((output - target)**2) / rows" in done.output


def test_a_forward_that_returns_its_loss_first_needs_no_other(tmp_path: Path) -> None:
    """A loss was assumed of it, and no arguments were found."""
    text = ARRAY.replace("L = X @ self.W", "L = 0.5 * np.sum((X @ self.W - y) ** 2) / len(y)")
    text = (
        text.replace("return L", "return L, X")
        .replace("(self, X)", "(self, X, y)")
        .replace("forward(X)", "forward(X, y)")
    )
    done = checked(tmp_path, text)
    assert done.exit_code == 0, done.output
    assert "no loss was found" not in done.output
    assert "right dW" in done.output


def test_a_weight_may_stand_behind_its_step(tmp_path: Path) -> None:
    """``w = -rate * dw + w`` was no update: the gradients were those of the last row, the loss that of all steps."""
    done = checked(tmp_path, BEHIND)
    assert done.exit_code == 0, done.output
    assert checked(tmp_path, BEHIND.replace("dw = 2 * o * x", "dw = o * x")).exit_code == 1


def test_no_repair_reads_the_values_that_a_script_is_given(tmp_path: Path) -> None:
    """``w5`` became ``__given__['w6']``."""
    done = checked(tmp_path, SCALARS.replace("dh2 = dz3 * w6", "dh2 = dz3 * w5"), "--fix", "--yes")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "program.py").read_text() == SCALARS


@pytest.mark.parametrize(
    "update",
    ["w += sigmoid(h).T @ step", "w = moved(w, dw)", "for _ in range(1):\n        w += sigmoid(h).T @ step"],
)
def test_a_training_that_is_not_judged_is_said_to_be_left_out(tmp_path: Path, update: str) -> None:
    """Only its sigmoid was, and nothing said so."""
    text = XOR.replace("w += sigmoid(h).T @ step", f"dw = sigmoid(h).T @ step\n    {update}")
    done = checked(tmp_path, text)
    assert "program.py:sigmoid: right" in done.output
    line = next(
        k for k, each in enumerate(text.splitlines(), 1) if each.strip() == update.splitlines()[-1].strip()
    )
    left = f"program.py:{line}: this update and the lines around it are not judged, only what they call"
    assert left in done.output


def test_what_forward_computes_is_taken_from_no_call(tmp_path: Path) -> None:
    """The loss got the outputs of the recorded call, and so depended on no parameter: another loss was assumed."""
    done = checked(tmp_path, SEQUENCE)
    assert done.exit_code == 0, done.output
    assert "no loss was found" not in done.output
    wrong = checked(tmp_path, SEQUENCE.replace("db += dz", "db = dz"))
    assert "right dW" in wrong.output
    assert "overwritten-not-accumulated in db" in wrong.output


def test_a_mistake_beside_a_clip_has_its_name_and_its_repair(tmp_path: Path) -> None:
    """All was not-proportional. Mended, it is right but for the clip."""
    done = checked(tmp_path, CLIPPED, "--fix", "--yes")
    assert "judged at gradients that are too small to be clipped (in line 18)" in done.output
    assert "right dx, dW" in done.output
    assert "batch-mean-vs-sum in db" in done.output
    assert "db = dout.sum(axis=0, keepdims=True)" in (tmp_path / "program.py").read_text()
    assert done.exit_code == 3
    assert "checked again: right, but" in done.output


def test_a_factor_is_not_exchanged_for_what_is_one_by_chance(tmp_path: Path) -> None:
    """``/ batch_size`` became ``/ dout``, the upstream gradient of a loss."""
    path = tmp_path / "program.py"
    path.write_text(LOSS_LAYER)
    done = Checked(f"{path}:Net", "--fix", "--yes")
    assert done.exit_code == 0, done.output
    assert "dx = self.x - self.t\n" in path.read_text()


@pytest.mark.parametrize("has_init", [True, False])
def test_relative_imports_are_of_the_folder(tmp_path: Path, has_init: bool) -> None:
    package = tmp_path / "parts_of_a_package"
    package.mkdir()
    (package / "halves.py").write_text(HALF)
    if has_init:
        (package / "__init__.py").write_text("from .halves import Half\n")
    done = checked(package, LAYER)
    assert done.exit_code == 0, done.output
    assert "program.py:Layer: right" in done.output
    missing = checked(package, LAYER.replace(".halves", ".quarters"))
    assert missing.exit_code == 2
    assert "No module named 'parts_of_a_package.quarters'" in missing.output


def test_a_notebook_is_told_how_it_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "lesson.ipynb"
    path.write_text("{}")
    done = Checked(str(path))
    assert done.exit_code == 2
    assert f"jupyter nbconvert --to script {path}" in done.output

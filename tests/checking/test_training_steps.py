"""Steps and layers around a backward: what is returned beside gradients, what is moved, what else is not judged."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.checking.test_published_programs import checked

STEP = """
import numpy as np


class Classifier:
    def __init__(self):
        self.W = np.random.default_rng(0).normal(size=(5, 3))

    def forward(self, X):
        return X @ self.W

    def step(self, X, y, lr):
        S = self.forward(X)
        P = np.exp(S) / np.exp(S).sum(axis=1, keepdims=True)
        loss = -np.log(P[np.arange(len(y)), y]).mean()
        P[np.arange(len(y)), y] -= 1
        self.W -= lr * X.T @ P / len(y)
        return loss


r = np.random.default_rng(1)
X, y, net = r.normal(size=(8, 5)), r.integers(0, 3, 8), Classifier()
print(net.step(X, y, 0.1))
"""


def test_the_loss_that_a_step_returns_is_no_gradient(tmp_path: Path) -> None:
    """Labels are whole numbers, so that the rows are the only other argument."""
    done = checked(tmp_path, STEP)
    assert done.exit_code == 0, done.output
    assert checked(tmp_path, STEP.replace("X.T @ P / len(y)", "X.T @ P")).exit_code == 1


LAST_STATE = """
import numpy as np


def forward(x, Wh, Wy):
    h = np.tanh(x @ Wh)
    y = h @ Wy
    return y, h, (x, Wh, Wy)


def backward(dy, h_last, cache):
    x, Wh, Wy = cache
    dWy = h_last.T @ dy
    dz = dy @ Wy.T * (1 - h_last**2)
    return x.T @ dz, dWy


r = np.random.default_rng(0)
x, Wh, Wy = r.normal(size=(6, 4)), r.normal(size=(4, 3)), r.normal(size=(3, 2))
y, h, cache = forward(x, Wh, Wy)
backward(y - 1, h, cache)
"""


def test_what_forward_returns_beside_its_output_may_be_given_to_backward(tmp_path: Path) -> None:
    """``h_last`` is no second upstream gradient."""
    done = checked(tmp_path, LAST_STATE, "--verbose")
    assert "right dWy (3, 2)" in done.output
    assert done.exit_code == 0, done.output
    assert checked(tmp_path, LAST_STATE.replace(" * (1 - h_last**2)", "")).exit_code == 1


SUMMED_STEP = """
import numpy as np

r = np.random.default_rng(0)
X, w, b = r.normal(size=(50, 3)), np.zeros(3), 0.5
y = X @ np.array([1.0, -2.0, 0.5])
for step in range(100):
    out = X @ w + b
    diff = out - y
    loss = np.mean(diff**2)
    w -= 0.1 * 2 * X.T @ diff / len(y)
    b -= 0.1 * 2 * diff.mean()
"""


def test_a_bias_is_moved_by_a_number_times_a_mean(tmp_path: Path) -> None:
    assert checked(tmp_path, SUMMED_STEP).exit_code == 0
    done = checked(tmp_path, SUMMED_STEP.replace("diff.mean()", "diff.sum()"))
    assert "wrong db" in done.output
    assert done.exit_code == 1


MODULES = """
import numpy as np


class LayerNorm:
    def __init__(self, size):
        self.params = {"gamma": np.full(size, 1.5), "beta": np.zeros(size)}
        self.grads = {}

    def forward(self, x):
        self.scale = 1 / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)
        self.hat = (x - x.mean(axis=-1, keepdims=True)) * self.scale
        return self.params["gamma"] * self.hat + self.params["beta"]

    def backward(self, dy):
        self.grads["gamma"], self.grads["beta"] = (dy * self.hat).sum(0), dy.sum(0)
        d = dy * self.params["gamma"]
        return self.scale * (d - d.mean(-1, keepdims=True) - self.hat * (d * self.hat).mean(-1, keepdims=True))


class Linear:
    def __init__(self, i, o):
        self.params = {"W": np.random.default_rng(i).normal(size=(i, o)), "b": np.zeros(o)}
        self.grads = {}

    def forward(self, x):
        self.x = x
        return x @ self.params["W"] + self.params["b"]

    def backward(self, dy):
        self.grads["W"], self.grads["b"] = self.x.T @ dy, dy.sum(0)
        return dy @ self.params["W"].T


class Sequential:
    def __init__(self, *layers):
        self.layers = list(layers)

    def forward(self, x):
        for each in self.layers:
            x = each.forward(x)
        return x

    def backward(self, dy):
        for each in reversed(self.layers):
            dy = each.backward(dy)
        return dy


def train(net, x, t):
    for step in range(3):
        out = net.forward(x)
        net.backward(2 * (out - t) / out.size)
        for layer in net.layers:
            for name in layer.params:
                layer.params[name] -= 0.1 * layer.grads[name]


r = np.random.default_rng(0)
net = Sequential(Linear(4, 6), LayerNorm(6), Linear(6, 3))
train(net, r.normal(size=(7, 4)), r.normal(size=(7, 3)))
"""


def test_each_module_of_a_list_has_the_gradients_of_its_dictionary(tmp_path: Path) -> None:
    """Only the first of each kind was matched, and a repair that set gamma aside was proved."""
    done = checked(tmp_path, MODULES, "--verbose")
    assert done.exit_code == 0, done.output
    found = done.output[done.output.index("Sequential: right") :]
    assert found.count("dlayers[") >= 6, found
    line = MODULES[: MODULES.index("def train")].count("\n") + 1
    assert (
        f"program.py:{line}: the gradient that train gives to a backward is not judged, only the backward"
        in done.output
    )
    wrong = MODULES.replace("self.hat * (d * self.hat)", "self.hat * (dy * self.hat)")
    mended = checked(tmp_path, wrong, "--fix", "--yes")
    assert "+ return self.scale * (d - d.mean(-1, keepdims=True) - self.hat * (d * self.hat)" in mended.output
    assert mended.exit_code == 0


FRAME = """
import numpy as np
import pandas

table = pandas.DataFrame({"a": [1.0, 2.0, 3.0], "b": [0.5, 0.1, 0.7]})
x = table[["a"]].to_numpy()


def scale(x, w):
    return x * w


def scale_backward(dy, x, w):
    return dy * w, (dy * x).sum(axis=0)


scale(x, np.array([2.0]))
"""


@pytest.mark.peers
def test_a_data_frame_is_no_network(tmp_path: Path) -> None:
    """It has methods that are called query and update."""
    done = checked(tmp_path, FRAME)
    assert "table" not in done.output
    assert done.exit_code == 0, done.output


PARTS = """
import numpy as np


def mean_path(dxhat, x):
    std = x.std(axis=0)
    xhat = (x - x.mean(axis=0)) / std
    return (dxhat MEAN- xhat * (dxhat * xhat).mean(axis=0)) / std


def normalise(x):
    return (x - x.mean(axis=0)) / x.std(axis=0)


def normalise_backward(dout, x):
    return mean_path(dout, x)


def cost(W, x, t):
    return 0.5 * np.sum((normalise(x @ W) - t) ** 2)


def cost_grad(W, x, t):
    z = x @ W
    return x.T @ normalise_backward(normalise(z) - t, z)


r = np.random.default_rng(0)
W, x, t = r.normal(size=(4, 3)), r.normal(size=(6, 4)), r.normal(size=(6, 3))
cost(W, x, t)
cost_grad(W, x, t)
"""


def test_a_part_without_one_of_its_paths_is_not_right_as_a_part(tmp_path: Path) -> None:
    assert checked(tmp_path, PARTS.replace("MEAN", "- dxhat.mean(axis=0) ")).exit_code == 0
    done = checked(tmp_path, PARTS.replace("MEAN", ""))
    assert "right as a part" not in done.output
    assert done.exit_code == 1


CUT_SHORT = """
import numpy as np


def forward(x, w):
    return x @ w


def backward(dy, x, w):
    return dy @ w.T, x.T @ dy


def train(steps):
    w = np.ones((3, 2))
    for step in range(steps):
        backward(forward(np.ones((4, 3)), w), np.ones((4, 3)), w)
    return w


w = train(100_000)
print(w.sum())
"""


def test_what_was_not_run_since_a_training_was_ended_is_said_to_be(tmp_path: Path) -> None:
    """It is no fault of the file, in which the name is defined."""
    done = checked(tmp_path, CUT_SHORT)
    first, last = (CUT_SHORT[: CUT_SHORT.index(each)].count("\n") + 1 for each in ("w = train", "print("))
    assert f"program.py:{last}: not run, since line {first} was ended early" in done.output
    assert "NameError" not in done.output
    assert done.exit_code == 0

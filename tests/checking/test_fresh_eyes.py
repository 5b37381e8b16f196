"""Habits in programs of people who had not read the checker: each was judged wrongly, or not at all, at its first run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ..conftest import ENVIRONMENT, Command

BIAS = """
class Linear:
    def __init__(self, d, m):
        self.W = np.random.randn(d, m)
        self.b = np.zeros((1, 1))

    def forward(self, x):
        self.x = x
        return self.b + x @ self.W

    def backward(self, d_prev):
        self.dW = self.x.T @ d_prev
        self.db = d_prev.sum(axis=0)
        return d_prev @ self.W.T

if __name__ == "__main__":
    layer = Linear(3, 4)
    y = layer.forward(np.random.randn(5, 3))
    layer.backward(np.ones_like(y))
"""

ENTRYWISE = """
def lin(x, w, b):
    return x @ w + b

def lin_backward(y_g, x, w, b):
    b_g = y_g.sum(axis=0)
    w_g = x.T @ y_g
    x_g = y_g * w.T
    return x_g, w_g, b_g
"""

CALLED = """
if __name__ == "__main__":
    rng = np.random.default_rng(0)
    x, w, b = rng.normal(size=(5, 3)), rng.normal(size=(3, 2)), np.zeros(2)
    y = lin(x, w, b)
    print(lin_backward(np.ones_like(y), x, w, b))
"""

OF_OUTPUT = """
def f(x): return np.tanh(x)
def f_prime(x): return 1 - x**2
print(f_prime(f(np.linspace(-2, 2, 9))))
"""

LAYER = """
class Layer:
    def __init__(self, n_in, n_out):
        self.weights = np.random.randn(n_out, n_in)

    def forward(self, vect_in):
        self.layer_input = vect_in
        return self.weights @ vect_in

    def backward(self, chain):
        self.dweights = np.outer(chain, self.layer_input)
        return self.weights.T @ chain

layer = Layer(4, 3)
x, label = np.random.randn(4, 1), np.random.randn(3, 1)
for step in range(3):
    out = layer.forward(x)
    E = 0.5 * np.sum((label - out) ** 2)
    dE_ds = label - out
    layer.backward(dE_ds)
    layer.weights -= 0.1 * layer.dweights
"""

UNSCALED = """
rng = np.random.default_rng(0)
X = rng.normal(size=(50, 4)) * 30
y = (X[:, :1] > 0).astype(float)
W = rng.normal(size=(4, 1))
for i in range(200):
    p = 1 / (1 + np.exp(-X @ W))
    loss = -np.mean(y * np.log(p) + (1 - y) * np.log(1 - p))
    dW = X.T @ (p - y) / len(X)
    W -= 0.5 * dW
"""

OVERFLOWING = """
class Net:
    def __init__(self):
        self.W = np.random.default_rng(0).normal(size=(4, 3)) * 500

    def forward(self, x):
        self.x = x
        e = np.exp(x @ self.W)
        self.p = e / e.sum(axis=1, keepdims=True)
        return self.p

    def loss(self, p, y):
        return -np.log(p[np.arange(len(y)), y]).mean()

    def backward(self, y):
        d = self.p.copy()
        d[np.arange(len(y)), y] -= 1
        self.dW = self.x.T @ (d / len(y))
        return self.dW

if __name__ == "__main__":
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(8, 4)), rng.integers(0, 3, 8)
    net = Net()
    p = net.forward(x)
    print(net.loss(p, y))
    net.backward(y)
"""

LETTERS = """
rng = np.random.default_rng(0)
E, C = rng.normal(size=(6, 3)), rng.normal(size=(6, 3))
center, context = rng.integers(0, 6, 11), rng.integers(0, 6, 11)

def loss_and_grads(E, C, center, context):
    v, u = E[center], C[context]
    p = 1 / (1 + np.exp(-np.sum(v * u, axis=1)))
    loss = -np.log(p).sum() / len(center)
    ds = (p - 1) / len(center)
    dE, dC = np.zeros_like(E), np.zeros_like(C)
    dE[center] += ds[:, None] * u
    np.add.at(dC, context, ds[:, None] * v)
    return loss, dE, dC

for epoch in range(3):
    loss, dE, dC = loss_and_grads(E, C, center, context)
    E -= 0.5 * dE
    C -= 0.5 * dC
"""

UPSTREAM = """
class Layer:
    def __init__(self, rng):
        self.W, self.b = rng.normal(size=(3, 2)), np.zeros(2)

    def forward(self, x):
        self.x = x
        self.y = np.tanh(x @ self.W + self.b)
        return self.y

    def backward(self, d_outputs):
        dz = d_outputs * (1 - self.y**2)
        return self.x.T @ dz, dz.sum(axis=0)

def train():
    rng = np.random.default_rng(0)
    net, x, target = Layer(rng), rng.normal(size=(5, 3)), rng.normal(size=(5, 2))
    for _ in range(3):
        y = net.forward(x)
        dW, db = net.backward(2 * (y - target) / y.size)
        net.W -= 0.1 * dW
        net.b -= 0.1 * db

train()
"""

ALONE = """
class Layer:
    def __init__(self, n, m):
        self.W = np.random.randn(n, m)

    def forward(self, x):
        self.x = x
        return np.tanh(x @ self.W)

    def backward(self, dout):
        dW = self.x.T @ (dout * (1 - np.tanh(self.x @ self.W) ** 2))
        return dW
"""

RETURNED = """
class Model:
    def __init__(self):
        self.W1, self.W2 = np.random.randn(3, 6), np.random.randn(6, 2)

    def forward(self, X, training=True):
        self.X = X
        self.h = np.tanh(X @ self.W1)
        return self.h @ self.W2

    def loss(self, out, Y):
        return 0.5 * np.sum((out - Y) ** 2) / len(Y)

    def backward(self, out, Y):
        dout = (out - Y) / len(Y)
        self.dW2 = self.h.T @ dout
        self.dW1 = self.X.T @ (dout @ self.W2.T * (1 - self.h**2))

model, X, Y = Model(), np.random.randn(9, 3), np.random.randn(9, 2)
out = model.forward(X)
model.loss(out, Y)
model.backward(out, Y)
"""

FILLED = """
def cell(x, h, P):
    r = 1 / (1 + np.exp(-(x @ P["Wr"])))
    a = np.tanh(x @ P["W"] + (r * h) @ P["U"])
    return a, (x, h, r, a)

def cell_back(da, cache, P, G):
    x, h, r, a = cache
    dz = da * (1 - a**2)
    G["W"] += x.T @ dz
    G["U"] += (r * h).T @ dz
    drh = dz @ P["U"].T
    G["Wr"] += x.T @ (drh * h * r * (1 - r))
    return drh * r

rng = np.random.default_rng(0)
P = {"W": rng.normal(size=(2, 4)), "U": rng.normal(size=(4, 4)), "Wr": rng.normal(size=(2, 4))}
G = {k: np.ones_like(v) for k, v in P.items()}
a, cache = cell(rng.normal(size=(5, 2)), rng.normal(size=(5, 4)), P)
cell_back(np.ones_like(a), cache, P, G)
"""

PRINTED = """
class Net:
    def __init__(self):
        self.W = np.random.randn(4, 3)

    def forward(self, X, train=True):
        self.X = X
        if train:
            self.m = (np.random.rand(*X.shape) < 0.8) / 0.8
            self.X = X * self.m
        e = np.exp(self.X @ self.W)
        self.P = e / e.sum(axis=1, keepdims=True)
        return self.P

    def loss(self, T):
        return -np.mean(np.sum(T * np.log(self.P), axis=1))

    def backward(self, T):
        return self.X.T @ (self.P - T) / len(T)

    def fit(self, X, T):
        for s in range(0, len(X), 5):
            self.forward(X[s : s + 5])
            self.W -= 0.1 * self.backward(T[s : s + 5])
        self.forward(X, train=False)
        print(self.loss(T))

Net().fit(np.random.randn(15, 4), np.eye(3)[np.random.randint(0, 3, 15)])
"""

ONE_ROW = """
class Softmax:
    def __init__(self, n, classes):
        self.w, self.b = np.random.randn(n, classes) / n, np.zeros(classes)

    def forward(self, x):
        self.x = x
        e = np.exp(x @ self.w + self.b)
        self.p = e / e.sum()
        return self.p

    def backprop(self, label, rate):
        d = self.p.copy()
        d[label] -= 1
        dx = self.w @ d
        self.w -= rate * np.outer(self.x, d)
        self.b -= rate * d
        return dx

layer = Softmax(30, 2)
for label in (1, 0):
    out = layer.forward(np.random.rand(30) - 0.5)
    loss = -np.log(out[label])
    layer.backprop(label, 0.05)
"""

MOMENTUM = """
import argparse

def main(argv=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.1)
    args = parser.parse_args(argv)
    g = np.random.default_rng(1)
    x, t, w = g.normal(size=(9, 3)), g.normal(size=(9, 2)), g.normal(size=(3, 2))
    vw = np.zeros_like(w)
    for step in range(5):
        y = x @ w
        loss = 0.5 * np.mean(np.sum((y - t) ** 2, axis=1))
        dw = x.T @ (y - t) / len(x)
        vw = 0.9 * vw + args.lr * dw
        w += vw

if __name__ == "__main__":
    main()
"""

DECAY = """
def loss_and_grads(X, y, W1, W2, reg=0.05):
    h = np.maximum(0, X.dot(W1))
    scores = h.dot(W2)
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    loss = -np.log(p[np.arange(len(X)), y]).sum() / len(X)
    loss += reg * (np.sum(W1 * W1) + np.sum(W2 * W2))
    d = p.copy()
    d[np.arange(len(X)), y] -= 1
    d /= len(X)
    dW2 = h.T.dot(d) + 2 * reg * W2
    dh = d.dot(W2.T)
    dh[h <= 0] = 0
    dW1 = X.T.dot(dh)
    return loss, dW1, dW2

rng = np.random.default_rng(0)
loss_and_grads(rng.normal(size=(20, 4)), rng.integers(0, 3, 20), rng.normal(size=(4, 10)), rng.normal(size=(10, 3)))
"""

GROWN = """
def log_loss(X, y, w, b, lam):
    p = 1 / (1 + np.exp(-predict(X, w, b)))
    return -np.mean(y * np.log(p) + (1 - y) * np.log(1 - p)) + 0.5 * lam * np.sum(w**2)

def predict(X, w, b):
    return X @ w + b

def gradients(X, y, w, b, lam):
    err = (1 / (1 + np.exp(-predict(X, w, b))) - y) / len(y)
    dw = X.T @ err + lam * w
    db = err
    return dw, db

def fit(X, y):
    w, b = np.zeros(X.shape[1]), 0.0
    for _ in range(3):
        dw, db = gradients(X, y, w, b, 0.1)
        w = w - 0.5 * dw
        b = b - 0.5 * db
        print(log_loss(X, y, w, b, 0.1))

X = np.random.default_rng(0).normal(size=(11, 3))
fit(X, (X[:, 0] > 0).astype(float))
"""

PARTS = """
def run(layers, X):
    for W, b in layers[:-1]:
        X = np.tanh(X @ W + b)
    return X @ layers[-1][0] + layers[-1][1]

def total_loss(layers, X, y):
    return 0.5 * np.mean(np.sum((run(layers, X) - y) ** 2, axis=1)) + 0.05 * sum(np.sum(W * W) for W, _ in layers)

def micro_grads(layers, X, y):
    (W, b), (V, c) = layers
    h = np.tanh(X @ W + b)
    d = h @ V + c - y
    dz = d @ V.T * (1 - h**2)
    return [(X.T @ dz, dz.sum(axis=0)), (h.T @ d, d.sum(axis=0))]

def full_grads(layers, X, y, micro=4):
    total = [[0.1 * W, np.zeros_like(b)] for W, b in layers]
    for s in range(0, len(y), micro):
        for acc, part in zip(total, micro_grads(layers, X[s : s + micro], y[s : s + micro])):
            acc[0] += part[0] / len(y)
            acc[1] += part[1] / len(y)
    return total

rng = np.random.default_rng(0)
layers = [(rng.normal(size=(3, 6)), np.zeros(6)), (rng.normal(size=(6, 2)), np.zeros(2))]
full_grads(layers, rng.normal(size=(9, 3)), rng.normal(size=(9, 2)))
"""

GLOBAL = """
rng = np.random.default_rng(0)
Wfc = rng.normal(size=(3, 12)) * 0.2

def loss_and_grads(img, label):
    flat = np.tanh(img).reshape(-1)
    s = Wfc @ flat
    p = np.exp(s) / np.exp(s).sum()
    d_s = p.copy()
    d_s[label] -= 1
    d_W = np.outer(d_s, flat)
    return -np.log(p[label]), d_W

loss_and_grads(rng.normal(size=(4, 3)), 1)
"""

WHOLE = """
class Regression:
    def __init__(self, n):
        self.w = np.zeros(n)

    def loss(self, X, y):
        r = X @ self.w - y
        return np.where(np.abs(r) <= 1, 0.5 * r**2, np.abs(r) - 0.5).mean()

    def gradient(self, X, y):
        r = X @ self.w - y
        dr = np.zeros_like(y)
        small = np.abs(r) <= 1
        dr[small] = r[small]
        dr[~small] = np.sign(r[~small])
        return X.T @ dr / len(y)

rng = np.random.default_rng(0)
model, X, y = Regression(4), rng.normal(size=(30, 4)), rng.integers(-2, 3, 30)
model.loss(X, y)
model.gradient(X, y)
"""

ORDER = """
def conv_forward(x, w):
    n, c, h, k = *x.shape[:3], w.shape[-1]
    cols = np.stack([x[:, :, i : h - k + 1 + i, j : x.shape[3] - k + 1 + j] for i in range(k) for j in range(k)], axis=2)
    cols = cols.reshape(n, c * k * k, -1).transpose(1, 2, 0).reshape(c * k * k, -1)
    out = (w.reshape(len(w), -1) @ cols).reshape(len(w), h - k + 1, x.shape[3] - k + 1, n).transpose(3, 0, 1, 2)
    return out, (w, cols)

def conv_backward(dout, cache):
    w, cols = cache
    flat = dout.transpose(1, 0, 2, 3).reshape(len(w), -1)
    dw = (flat @ cols.T).reshape(w.shape)
    return dw

rng = np.random.default_rng(0)
out, cache = conv_forward(rng.normal(size=(4, 2, 5, 6)), rng.normal(size=(3, 2, 2, 2)))
conv_backward(np.ones_like(out), cache)
"""

CENTRED = """
class BatchNorm:
    def __init__(self, n):
        self.gamma, self.beta = np.linspace(0.5, 2, n), np.zeros(n)

    def forward(self, x):
        mu = x.mean(axis=0)
        self.xmu = x - mu
        self.ivar = 1 / np.sqrt((self.xmu**2).mean(axis=0) + 1e-5)
        self.xhat = self.xmu * self.ivar
        return self.gamma * self.xhat + self.beta

    def backward(self, dout):
        self.dgamma, self.dbeta = (dout * self.xhat).sum(axis=0), dout.sum(axis=0)
        dxhat = dout * self.gamma
        dvar = (dxhat * self.xmu).sum(axis=0) * -0.5 * self.ivar**3
        dx = dxhat * self.ivar + dvar * 2 * self.xmu / len(dout)
        return dx

bn = BatchNorm(4)
bn.backward(bn.forward(np.random.randn(7, 4)))
"""

FROM_THE_END = """
def sigmoid(z):
    return 1 / (1 + np.exp(-z))

def sigmoid_prime(z):
    return sigmoid(z) * (1 - sigmoid(z))

class Network:
    def __init__(self, sizes):
        self.weights = [np.random.randn(m, n) for n, m in zip(sizes, sizes[1:])]

    def backprop(self, x, y):
        nabla_w = [np.zeros(w.shape) for w in self.weights]
        activation, activations, zs = x, [x], []
        for w in self.weights:
            zs.append(w @ activation)
            activation = sigmoid(zs[-1])
            activations.append(activation)
        delta = (activations[-1] - y) * sigmoid_prime(zs[-1])
        nabla_w[-1] = delta @ activations[-2].T
        for l in range(2, len(self.weights) + 1):
            delta = self.weights[-l + 1].T @ delta * sigmoid_prime(activations[-l])
            nabla_w[-l] = delta @ activations[-l - 1].T
        return nabla_w

    def feedforward(self, a):
        for w in self.weights:
            a = sigmoid(w @ a)
        return a

net = Network([4, 6, 5, 3])
net.backprop(np.random.randn(4, 1), np.eye(3)[:, :1])
"""


@pytest.fixture
def write(tmp_path: Path) -> Path:
    """Return a file to be written."""
    return tmp_path / "given.py"


def test_a_file_s_own_bias_is_judged_as_it_is(handgrad: Command, write: Path) -> None:
    """One number for all units: drawn sizes at which that fits, one unit, would hide that nothing sums over the units."""
    write.write_text("import numpy as np\n" + BIAS)
    said = handgrad("check", "given.py", code=1).stdout
    assert "wrong        db (1, 1)  of another shape" in said
    assert "right        dx, dW" in said
    assert "broadcast-not-summed in db" in said


def test_of_sizes_those_at_which_most_gradients_fit_are_taken(handgrad: Command, write: Path) -> None:
    """It was judged at inputs of three axes, where the right gradients of w and b were called wrong, and rewritten."""
    write.write_text("import numpy as np\n" + ENTRYWISE)
    said = handgrad("check", "given.py", code=1).stdout
    assert "right        dw, db" in said
    assert "given.py:9: x_g = y_g * w.T" in said
    assert "elementwise-instead-of-matmul in dx" in said


def test_what_a_backward_raises_at_the_file_s_own_call_is_the_answer(handgrad: Command, write: Path) -> None:
    write.write_text("import numpy as np\n" + ENTRYWISE + CALLED)
    said = handgrad("check", "given.py", code=2).stderr
    assert (
        "Error: backward raised ValueError: operands could not be broadcast together with shapes (5,2) (2,3)"
        in said
    )
    assert "x(5, 3), w(3, 2), b(2,); at " in said
    assert "given.py:9: x_g = y_g * w.T" in said


def test_a_derivative_in_the_output_is_said_to_be_one(handgrad: Command, write: Path) -> None:
    write.write_text("import numpy as np\n" + OF_OUTPUT)
    said = handgrad("check", "given.py").stdout
    assert "- f_prime was called as f_prime(f(x)): given x itself it is wrong" in said
    write.write_text(
        write.read_text().replace("1 - x**2", "1 - np.tanh(x)**2").replace("f_prime(f(", "f_prime((")
    )
    assert "was called as" not in handgrad("check", "given.py").stdout


def test_lines_around_what_they_call_are_said_not_to_be_judged(handgrad: Command, write: Path) -> None:
    """The sign of the loss's gradient is wrong there, and only the class is judged."""
    write.write_text("import numpy as np\n" + LAYER)
    done = handgrad("check", "given.py")
    assert "given.py:Layer: right" in done.stdout
    assert done.stderr == (
        "left out: given.py:22: this update and the lines around it are not judged, only what they call\n"
    )


def test_a_forward_that_is_not_finite_names_its_line(write: Path) -> None:
    """In a process in which NumPy warns as it does, and raises nothing."""
    write.write_text("import numpy as np\n" + UNSCALED)
    command = [sys.executable, "-m", "handgrad", "check", "given.py"]
    done = subprocess.run(command, cwd=write.parent, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 2
    assert (
        "Error: forward is not finite at these inputs\n  given  divide by zero encountered in log at "
        in done.stderr
    )
    assert "given.py:9: loss = -np.mean(y * np.log(p)" in done.stderr
    assert "np.logaddexp(0, z) - t * z" in done.stderr


def test_a_softmax_that_overflows_is_named_without_raw_warnings(write: Path) -> None:
    """It is a method, which the check calls through a function of its own."""
    write.write_text("import numpy as np\n" + OVERFLOWING)
    command = [sys.executable, "-m", "handgrad", "check", "given.py"]
    done = subprocess.run(command, cwd=write.parent, env=ENVIRONMENT, capture_output=True, text=True)
    problem, given, fix = done.stderr.splitlines()
    assert problem == "Error: forward is not finite at these inputs"
    assert given.startswith("  given  invalid value encountered in divide at ")
    assert given.endswith("given.py:10: self.p = e / e.sum(axis=1, keepdims=True)")
    assert fix.endswith(
        "or subtract the maximum before exp, which overflows: np.exp(z - z.max(axis=-1, keepdims=True))"
    )


def test_a_parameter_called_e_is_no_loss(handgrad: Command, write: Path) -> None:
    """Its gradient, which loses repeated rows, was not judged, and the rest called right."""
    write.write_text("import numpy as np\n" + LETTERS)
    said = handgrad("check", "given.py", code=1).stdout
    assert "wrong        dE (6, 3)" in said
    assert "right        dC" in said
    assert "np.add.at(dE, center, ds[:, None] * u)" in said


@pytest.mark.parametrize(
    "program",
    [UPSTREAM, ALONE, RETURNED, FILLED, PRINTED, ONE_ROW, PARTS, GLOBAL],
    ids=["d_outputs", "dW alone", "out", "G", "printed", "label", "micro_grads", "global W"],
)
def test_right_programs_are_right(handgrad: Command, write: Path, program: str) -> None:
    """Each was called wrong, or could not be judged, for a name or the order of its calls."""
    write.write_text("import numpy as np\nnp.random.seed(3)\n" + program)
    assert ": right\n" in handgrad("check", "given.py").stdout


def test_gradients_that_add_up_in_a_dictionary_are_judged(handgrad: Command, write: Path) -> None:
    write.write_text("import numpy as np\n" + FILLED.replace("return drh * r", "return drh"))
    said = handgrad("check", "given.py", code=1).stdout
    assert "wrong        dh (5, 4)" in said
    assert "drh * r" in said


def test_a_momentum_is_said_not_to_be_judged_and_argparse_reads_no_arguments_of_ours(
    handgrad: Command, write: Path
) -> None:
    """The sign of the velocity is wrong, and its gradient right."""
    write.write_text("import numpy as np\n" + MOMENTUM)
    done = handgrad("check", "given.py")
    assert "- the update was not judged, only its gradients: w += vw\n" in done.stdout
    assert "usage:" not in done.stderr


def test_a_forgotten_weight_decay_is_repaired_by_its_name(handgrad: Command, write: Path) -> None:
    """0.05 twice is a tenth, which two rows in twenty are too."""
    write.write_text("import numpy as np\n" + DECAY)
    assert "+    dW1 = X.T.dot(dh) + 2 * reg * W1" in handgrad("check", "given.py", code=1).stdout


def test_a_loss_of_the_same_arguments_is_differentiated_at_the_gradient_s_own(
    handgrad: Command, write: Path
) -> None:
    """It was `predict`, and b a vector, which it becomes with its first update: a right gradient was rewritten."""
    write.write_text("import numpy as np\n" + GROWN)
    said = handgrad("check", "given.py:log_loss", code=1).stdout
    assert "wrong        db ()  of another shape" in said
    assert "right        dw" in said
    assert "broadcast-not-summed in db" in said


@pytest.mark.parametrize(
    ("program", "name", "line"),
    [
        (WHOLE, "dtype-or-overflow in dw", "+        dr = np.zeros_like(r)"),
        (ORDER, "wrong-position in dw", "+    flat = dout.transpose(1, 2, 3, 0).reshape(len(w), -1)"),
        (CENTRED, "missing-term in dx", "+        dx = (dxhat - dxhat.mean(axis=0)) * self.ivar"),
        (FROM_THE_END, "wrong-evaluation-point in dweights[0]", "sigmoid_prime(zs[-l])"),
    ],
    ids=["integers", "axes", "centred", "-l"],
)
def test_what_was_noticed_alone_is_named_and_mended(
    handgrad: Command, write: Path, program: str, name: str, line: str
) -> None:
    write.write_text("import numpy as np\nnp.random.seed(3)\n" + program)
    said = handgrad("check", "given.py", code=1).stdout
    assert name in said
    assert line in said

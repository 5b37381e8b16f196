"""Programs that somebody wrote to learn from the notes, with fresh eyes: each was called right, or judged at odd sizes."""

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

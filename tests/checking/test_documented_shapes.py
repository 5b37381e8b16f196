"""Functions that a file never calls: their docstrings and their gradients say which shapes they take."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from handgrad.checking.user_files.documented_shapes import documented_arrays
from handgrad.cli import group

GROUP_NORM = '''
import numpy as np


def groupnorm_forward(x, gamma, beta, G):
    """
    - x: Input data of shape (N, C, H, W)
    - gamma: Scale parameter, of shape (1, C, 1, 1)
    - beta: Shift parameter, of shape (1, C, 1, 1)
    """
    N, C, H, W = x.shape
    xg = x.reshape(N, G, C // G, H, W)
    mu = xg.mean(axis=(2, 3, 4), keepdims=True)
    inv = 1 / np.sqrt(xg.var(axis=(2, 3, 4), keepdims=True) + 1e-5)
    xhat = ((xg - mu) * inv).reshape(N, C, H, W)
    return gamma * xhat + beta, (G, gamma, xhat, inv)


def groupnorm_backward(dout, cache):
    G, gamma, xhat, inv = cache
    N, C, H, W = dout.shape
    dbeta = dout.sum(axis=(0, 2, 3), keepdims=True)
    dgamma = (dout * xhat).sum(axis=(0, 2, 3), keepdims=True)
    dxhat = (dout * gamma).reshape(N, G, C // G, H, W)
    xh = xhat.reshape(N, G, C // G, H, W)
    s1 = dxhat.mean(axis=(2, 3, 4), keepdims=True)
    s2 = (dxhat * xh).mean(axis=(2, 3, 4), keepdims=True)
    dx = inv * (dxhat - s1 - xh * s2)
    return dx.reshape(N, C, H, W), dgamma, dbeta
'''

SCALE = """
import numpy as np


def cosine_forward(x, scale):
    norm = np.sqrt((x * x).sum(axis=1, keepdims=True))
    u = x / norm
    return scale * u, (u, norm, scale)


def cosine_backward(g, cache):
    u, norm, scale = cache
    dx = scale / norm * (g - u * (g * u).sum(axis=1, keepdims=True))
    return dx, (g * u).sum()
"""

LOSSES = """
import numpy as np


def focal_loss(logits, targets, gamma=2.0):
    p = 1 / (1 + np.exp(-logits))
    pt = np.where(targets == 1, p, 1.0 - p)
    loss = -((1.0 - pt) ** gamma) * np.log(pt)
    sign = np.where(targets == 1, 1.0, -1.0)
    grad = sign * (1.0 - pt) ** gamma * (gamma * pt * np.log(pt) - (1.0 - pt))
    return loss.mean(), grad / loss.size


def dice_loss(logits, targets, smooth=1.0):
    p = 1 / (1 + np.exp(-logits))
    total = p.sum() + targets.sum() + smooth
    dice = (2.0 * (p * targets).sum() + smooth) / total
    dp = -(2.0 * targets - dice) / total
    return 1.0 - dice, dp * p * (1.0 - p)
"""

TRAINING = """
import numpy as np


def propagate(w, b, X, Y):
    A = 1 / (1 + np.exp(-(np.dot(w.T, X) + b)))
    cost = -np.mean(Y * np.log(A) + (1 - Y) * np.log(1 - A))
    grads = {"dw": np.dot(X, (A - Y).T) / X.shape[1], "db": np.mean(A - Y)}
    return grads, cost


def optimize(w, b, X, Y, steps, rate):
    costs = []
    for i in range(steps):
        grads, cost = propagate(w, b, X, Y)
        w = w - rate * grads["dw"]
        b = b - rate * grads["db"]
        costs.append(cost)
    return {"w": w, "b": b}, grads, costs
"""


def checked(path: Path, source: str) -> str:
    path.write_text(source)
    done = CliRunner().invoke(group, ["check", str(path)], standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done.output


@pytest.mark.parametrize(
    ("source", "right"),
    [
        (GROUP_NORM, ["groupnorm_forward"]),
        (SCALE, ["cosine_forward"]),
        (LOSSES, ["focal_loss", "dice_loss"]),
        (TRAINING, ["propagate"]),
    ],
)
def test_what_a_file_never_calls_is_called_as_it_says(source: str, right: list[str], tmp_path: Path) -> None:
    """Every function is judged, at shapes of its docstring or its gradients; a training of a judged one is left out."""
    output = checked(tmp_path / "program.py", source)
    for name in right:
        assert f"{name}: right" in output
    assert "wrong" not in output.replace("prove", "")
    assert "cannot tell" not in output


def test_a_bias_summed_over_everything_is_no_single_number(tmp_path: Path) -> None:
    """Forward would take it; a bias of a layer is as long as its output all the same."""
    source = """
import numpy as np


def affine_forward(x, w, b):
    return x @ w + b, (x, w, b)


def affine_backward(dout, cache):
    x, w, b = cache
    return dout @ w.T, x.T @ dout, np.sum(dout)
"""
    assert "affine_forward: wrong" in checked(tmp_path / "program.py", source)


def test_equal_letters_are_equal_sizes() -> None:
    def f() -> None:
        """Do nothing.

        Arguments:
            x (ndarray): data of shape (batch, T, D)
            w -- weights, shape (D, H * 2)
            v = matrix (D, 4)
            y: labels, as they come
            p, q: (batch, D) pairs, s: (batch,)
        """

    arrays = documented_arrays([f], ["x", "v", "y", "p", "q"])
    shapes = {name: array.shape for name, array in arrays.items()}
    assert shapes == {"x": (2, 3, 5), "v": (5, 4), "p": (2, 5), "q": (2, 5)}
    assert all(np.all(array) for array in arrays.values())

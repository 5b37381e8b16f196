"""Repairs of statements at the wrong place, of slices, and of numbers that stand for an expression of forward's."""

import importlib.util

import numpy as np
import pytest

from handgrad import check

RNG = np.random.default_rng(3)


def load(path, text):
    path.write_text(text)
    specification = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


CORRELATION = """import numpy as np


def forward(x, w):
    out = np.zeros((len(x), x.shape[1] - len(w) + 1))
    for i in range(out.shape[1]):
        out[:, i] = x[:, i : i + len(w)] @ w
    return out


def backward(dout, x, w):
    dx = np.zeros_like(x)
    for n in range(len(x)):
        dw = np.zeros_like(w)
        for i in range(dout.shape[1]):
            dw += dout[n, i] * x[n, i : i + len(w)]
            dx[n, i : i + len(w)] += dout[n, i] * w
    return dx, dw
"""
DECAYED = """import numpy as np


def forward(x):
    h = np.zeros(x.shape[1])
    for t in range(len(x)):
        h = 0.5 * h + np.sin(x[t])
    return h


def backward(dh, x):
    dx = np.zeros_like(x)
    for t in reversed(range(len(x))):
        dx[t] = dh * np.cos(x[t])
        dh = 0.5 * dh
        return dx
"""
AVERAGED = """import numpy as np


def forward(x, w):
    loss = 0.0
    for row in x:
        loss += np.sum(np.tanh(row @ w)) / len(x)
    return loss


def backward(dout, x, w):
    dw = np.zeros_like(w)
    for row in x:
        dw += dout * np.outer(row, 1 - np.tanh(row @ w) ** 2)
        dw /= len(x)
    return None, dw
"""
LAST = """import numpy as np


def forward(x, w):
    return np.array([np.sum(np.tanh(row * w)) for row in x])


def backward(dout, x, w):
    dw = np.zeros_like(w)
    for row, upstream in zip(x, dout):
        slope = upstream * (1 - np.tanh(row * w) ** 2)
    dw += row * slope
    return None, dw
"""
LOGITS = """import numpy as np


def forward(x, y):
    p = np.exp(x - x.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return -np.log(p[np.arange(len(x)), y]).mean()


def backward(dout, x, y):
    n = len(x)
    d = np.exp(x - x.max(axis=1, keepdims=True))
    d /= d.sum(axis=1, keepdims=True)
    d[np.arange(n), y] -= 1
    d *= dout
    return d
"""
STRIDE = """import numpy as np


def forward(x, w, step):
    rows = range((len(x) - len(w)) // int(step) + 1)
    return np.array([x[t * step : t * step + len(w)] @ w for t in rows])


def backward(dout, x, w, step):
    dx, dw = np.zeros_like(x), np.zeros_like(w)
    for t in range(len(dout)):
        dx[t : t + len(w)] += dout[t] * w
        dw += dout[t] * x[t * step : t * step + len(w)]
    return dx, dw, None
"""
SCORES = """import numpy as np


def forward(q, k):
    d = q.shape[1]
    return np.tanh(q @ k.T / np.sqrt(d))


def backward(dout, q, k):
    d = q.shape[1]
    ds = dout * (1 - np.tanh(q @ k.T / np.sqrt(d)) ** 2) / 2
    return ds @ k, ds.T @ q
"""
FLIPPED = """import numpy as np


def correlate(x, k):
    rows, columns = x.shape[0] - k.shape[0] + 1, x.shape[1] - k.shape[1] + 1
    out = np.zeros((rows, columns))
    for i in range(rows):
        for j in range(columns):
            out[i, j] = np.sum(x[i : i + k.shape[0], j : j + k.shape[1]] * k)
    return out


def forward(x, k):
    return correlate(x, k)


def backward(dout, x, k):
    padded = np.pad(dout, [(n - 1, n - 1) for n in k.shape])
    return correlate(padded, k), correlate(x, dout)
"""
DELTA = """import numpy as np


def forward(x, w, v):
    l1 = 1 / (1 + np.exp(-x @ w))
    return l1 @ v


def backward(l2_delta, x, w, v):
    l1 = 1 / (1 + np.exp(-x @ w))
    l1_delta = l2_delta.dot(v.T)
    return l1_delta @ w.T, x.T @ l1_delta, l1.T @ l2_delta
"""

JACOBIANS = """
import numpy as np

def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)

def forward(z):
    return softmax(z)

def backward(dy, z):
    p = softmax(z)
    J = np.zeros((z.shape[1], z.shape[1]))
    for i in range(len(z)):
        J += np.diag(p[i]) - np.outer(p[i], p[i])
    return dy @ J
"""


@pytest.mark.parametrize(
    ("text", "inputs", "codes", "new"),
    [
        (CORRELATION, {"x": (3, 6), "w": (2,)}, ["overwritten-not-accumulated"], ["    dw = np.zeros_like(w)"]),
        (DECAYED, {"x": (4, 3)}, ["missing-term", "overwritten-not-accumulated"], ["    return dx"]),
        (AVERAGED, {"x": (3, 4), "w": (4, 2)}, ["batch-mean-vs-sum"], ["    dw /= len(x)"]),
        (LAST, {"x": (3, 4), "w": (4,)}, ["overwritten-not-accumulated"], ["        dw += row * slope"]),
        (LOGITS, {"x": (5, 3), "y": 3}, ["batch-mean-vs-sum"], ["    d /= n"]),
        (STRIDE, {"x": (9,), "w": (3,), "step": 2}, ["wrong-evaluation-point"],
         ["        dx[t * step : t * step + len(w)] += dout[t] * w"]),
        (SCORES, {"q": (3, 6), "k": (5, 6)}, ["constant-factor"],
         ["    ds = dout * (1 - np.tanh(q @ k.T / np.sqrt(d)) ** 2) / np.sqrt(d)"]),
        (FLIPPED, {"x": (4, 5), "k": (2, 3)}, ["wrong-position"],
         ["    return correlate(padded, k[::-1, ::-1]), correlate(x, dout)"]),
        (DELTA, {"x": (5, 3), "w": (3, 4), "v": (4, 2)}, ["missing-local-derivative"],
         ["    l1_delta = l2_delta.dot(v.T) * l1 * (1 - l1)"]),
        (JACOBIANS, {"z": (7, 6)}, ["averaged-batch"],  # the return within the loop is right for one row
         ["    return p * (dy - (dy * p).sum(axis=1, keepdims=True))"]),
    ],
    ids=["reset", "returned", "averaged", "last", "logits", "stride", "scores", "flipped", "delta", "Jacobians"],
)  # fmt: skip
def test_a_mistake_of_place_or_size_is_named_and_mended_for_any_size(tmp_path, text, inputs, codes, new):
    module = load(tmp_path / "program.py", text)
    given = {
        name: RNG.normal(size=shape) if isinstance(shape, tuple) else np.array(shape)
        for name, shape in inputs.items()
    }
    if "y" in given:
        given["y"] = np.array([0, 2, 1, 1, 0])
    report = check(module.forward, module.backward, given)
    finding = report.findings[0]
    assert [finding.code, finding.alternative][: len(codes)] == codes
    assert report.mended.any_size
    added = [line[1:] for line in report.mended.diff.splitlines()[3:] if line[:1] == "+"]
    assert added == new


def test_a_repair_for_images_as_large_as_the_window_is_none(tmp_path):
    """There the flipped result is the result of the flipped window; an image that is larger by itself tells."""
    module = load(tmp_path / "program.py", FLIPPED)
    same = {"x": RNG.normal(size=(3, 4)), "k": RNG.normal(size=(3, 4))}
    report = check(module.forward, module.backward, same)
    assert report.mended is None or "correlate(padded, k)[::-1, ::-1]" not in report.mended.text

"""Repairs in the author's own functions: methods, imported files, loops; and what is no repair."""

import importlib.util
import sys

import numpy as np
import pytest

from handgrad import check
from handgrad.checking.live_code import functions_of, running

X = np.random.default_rng(5).normal(size=(5, 4))


def load(path, text):
    path.write_text(text)
    specification = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(specification)
    sys.modules[path.stem] = module
    specification.loader.exec_module(module)
    return module


def changed(report):
    lines = report.mended.diff.splitlines()[3:]
    return [line[1:].strip() for line in lines if line[:1] == "-"], [
        line[1:].strip() for line in lines if line[:1] == "+"
    ]


SIGMOID = """import numpy as np


class Sigmoid:
    def forward(self, x):
        self.x = x
        self.out = 1 / (1 + np.exp(-x))
        return self.out

    def backward(self, dout):
        return dout * self.x * (1 - self.x)
"""


def test_a_method_is_mended_with_what_its_object_holds(tmp_path):
    module = load(tmp_path / "sigmoid_layer.py", SIGMOID)
    method = module.Sigmoid.backward
    code = method.__code__
    report = check(module.Sigmoid(), inputs={"x": X})
    assert report.findings[0].code == "wrong-evaluation-point"
    assert changed(report)[1] == ["return dout * self.out * (1 - self.out)"]
    assert module.Sigmoid.backward is method
    assert method.__code__ is code


def test_the_mistake_is_mended_in_the_file_that_has_it(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    text = SIGMOID.replace("return dout * self.x * (1 - self.x)", "return dout * self.out")
    (tmp_path / "layers_of_mine.py").write_text(text)
    main = load(
        tmp_path / "main_of_mine.py",
        "from layers_of_mine import Sigmoid\n\n\nlayer = Sigmoid()\n\n\n"
        "def forward(x):\n    return layer.forward(x)\n\n\n"
        'def backward(grad_output, x):\n    return {"x": layer.backward(grad_output)}\n',
    )
    report = check(main.forward, main.backward, {"x": X})
    assert report.mended.path == tmp_path / "layers_of_mine.py"
    assert changed(report) == (["return dout * self.out"], ["return dout * self.out * (1 - self.out)"])


NETWORK = """import numpy as np


class Network:
    def __init__(self):
        draw = np.random.default_rng(3)
        sizes = (4, 5, 3, 2)
        self.weights = [draw.normal(size=pair) for pair in zip(sizes[:-1], sizes[1:])]

    def forward(self, x):
        self.inputs = []
        for W in self.weights:
            self.inputs.append(x)
            x = np.tanh(x @ W)
        self.out = x
        return x

    def backward(self, dout):
        outputs = [*self.inputs[1:], self.out]
        self.grads = []
        for l in reversed(range(3)):
            dz = dout * (1 - outputs[l])
            self.grads.insert(0, self.inputs[l].T @ dz)
            dout = dz @ self.weights[l].T
        return dout
"""


def test_a_line_in_a_loop_is_mended_for_every_layer(tmp_path):
    module = load(tmp_path / "looping.py", NETWORK)
    report = check(module.Network(), inputs={"x": X})
    assert {result.verdict for result in report.arguments} == {"wrong"}
    assert report.first_wrong.source == "dz = dout * (1 - outputs[l])"
    assert changed(report)[1] == ["dz = dout * (1 - outputs[l] ** 2)"]


GATES = """import numpy as np


def forward(i, f, g, c):
    return f * c + i * g, (i, f, g, c)


def backward(dout, cache):
    i, f, g, c = cache
    di = dout * c
    df = dout * g
    dg = dout * i
    return di, df, dg, dout * f
"""


def test_names_taken_for_each_other_in_two_lines_are_exchanged(tmp_path):
    module = load(tmp_path / "gates.py", GATES.replace("return di, df, dg", "return di * i, df * i, dg"))
    module = load(tmp_path / "gates.py", GATES)
    inputs = {name: X + k for k, name in enumerate("ifgc")}
    report = check(module.forward, module.backward, inputs)
    assert changed(report)[1] == ["di = dout * g", "df = dout * c"]


def test_a_factor_of_a_window_is_written_by_its_size(tmp_path):
    text = """import numpy as np


def pool(x, size):
    n, h, w = x.shape
    return x.reshape(n, h // size, size, w // size, size).mean(axis=(2, 4)), (x.shape, size)


def pool_backward(dout, cache):
    shape, size = cache
    return np.repeat(np.repeat(dout, size, axis=1), size, axis=2)
"""
    module = load(tmp_path / "pooling.py", text)
    x = np.random.default_rng(1).normal(size=(3, 4, 6))
    report = check(module.pool, module.pool_backward, {"x": x, "size": 2})
    assert changed(report)[1] == ["return np.repeat(np.repeat(dout, size, axis=1), size, axis=2) / size ** 2"]
    assert report.findings[0].any_size


GATED = """import numpy as np


class Gated:
    def __init__(self):
        self.U = np.random.default_rng(2).normal(size=(4, 4))

    def forward(self, x, r):
        self.x, self.r = x, r
        self.n = np.tanh((r * x) @ self.U)
        return x * r + self.n

    def backward(self, dout):
        da = dout * (1 - self.n**2)
        drx = da @ self.U.T
        self.dU = (self.r * self.x).T @ da
        dr = drx * self.x + dout * self.x
        dx = dout * self.r
        return dx, dr
"""


def test_a_path_that_is_left_out_is_added_in_the_authors_names(tmp_path):
    module = load(tmp_path / "gated.py", GATED)
    report = check(module.Gated(), inputs={"x": X, "r": X[::-1] + 2})
    assert [result.name for result in report.arguments if result.verdict == "wrong"] == ["x"]
    old, [new] = changed(report)
    assert old == ["dx = dout * self.r"]
    assert new in ("dx = (dout + drx) * self.r", "dx = dout * self.r + drx * self.r")


WRONG_AND_CALLED = """import numpy as np


def penalised(x, strength):
    return (x * x).sum() * strength


def gradient(x, strength):
    return np.cosh(x) * strength * 0.37


def forward(x):
    return penalised(x, 0.25)


def backward(grad_output, x):
    return {"x": grad_output * gradient(x, 0.25)}
"""


def test_a_wrong_function_is_not_called_with_other_numbers_instead(tmp_path):
    module = load(tmp_path / "penalty.py", WRONG_AND_CALLED)
    report = check(module.forward, module.backward, {"x": X})
    assert report.first_wrong.source == "return np.cosh(x) * strength * 0.37"
    assert changed(report)[0] == ["return np.cosh(x) * strength * 0.37"]


def test_functions_run_other_code_for_a_while_only():
    def add(a):
        return a + 1

    def multiply(a):
        return a * 3

    code = add.__code__
    with running({add: multiply.__code__}):
        assert add(5) == 15
    assert add.__code__ is code
    with pytest.raises(KeyboardInterrupt), running({add: multiply.__code__}):
        raise KeyboardInterrupt
    assert add(5) == 6


def test_the_functions_that_a_call_reaches_come_with_their_depth():
    def inner():
        return 1

    def outer():
        return inner() + inner()

    reached = functions_of(outer)
    assert reached[inner] == reached[outer] + 1


FILTERED = """import numpy as np


def forward(x):
    return np.tanh(x) / np.sqrt((x * x).mean() + 1e-8)


def backward(grad_output, x):
    n = np.sqrt((x * x).mean() + 1e-8)
    g = FILTER
    return {"x": g * (1 - np.tanh(x) ** 2) / n - x * (g * np.tanh(x)).sum() / n**3 / x.size}
"""


@pytest.mark.parametrize(
    ("filtered", "mended"),
    [
        ("np.where(np.abs(grad_output) < 1e-6, 0.0, grad_output)", "grad_output"),
        ("grad_output * (np.abs(grad_output) > 1e-6)", "grad_output"),
        (
            "np.sign(grad_output) * np.maximum(np.abs(grad_output), 1e-6)",
            "np.sign(grad_output) * np.abs(grad_output)",
        ),
    ],
)
def test_a_threshold_is_taken_away_and_not_moved_out_of_sight(tmp_path, filtered, mended):
    module = load(tmp_path / "filtered.py", FILTERED.replace("FILTER", filtered))
    report = check(module.forward, module.backward, {"x": X})
    assert report.verdict == "wrong"
    assert changed(report) == ([f"g = {filtered}"], [f"g = {mended}"])


LEAKY = """import numpy as np


def forward(x):
    return np.where(x > THRESHOLD, x, 0.1 * x)


def backward(grad_output, x):
    return {"x": grad_output * np.where(x > 0.5, 1.0, 0.1)}
"""


@pytest.mark.parametrize("threshold", ["0", "0.2"])
def test_the_threshold_that_forward_has_is_one_to_compare_with(tmp_path, threshold):
    module = load(tmp_path / "leaky.py", LEAKY.replace("THRESHOLD", threshold))
    report = check(module.forward, module.backward, {"x": X})
    assert changed(report)[1] == [f'return {{"x": grad_output * np.where(x > {threshold}, 1.0, 0.1)}}']


WINNERS = """import numpy as np


def forward(x):
    return x.max(axis=1)


def backward(grad_output, x):
    most = x.max(axis=1, keepdims=True)
    return {"x": grad_output[:, None] * np.isclose(x, most, TOLERANCE)}
"""


@pytest.mark.parametrize("tolerance", ["rtol=0.2", "atol=0.5", "rtol=0, atol=0.5", "0.2"])
def test_what_is_nearly_equal_becomes_what_is_equal(tmp_path, tolerance):
    x = X.copy()
    x[:, 2] = 2.0
    x[:, 3] = 1.9
    module = load(tmp_path / "winners.py", WINNERS.replace("TOLERANCE", tolerance))
    report = check(module.forward, module.backward, {"x": x})
    assert changed(report)[1] == ['return {"x": grad_output[:, None] * (x == most)}']


GROUPED = """import numpy as np


def normalised(x, group):
    mean = x.reshape(len(x), 2, -1).mean(axis=2)
    return x - mean[:, group]


def forward(x, gain):
    group = np.arange(x.shape[1]) // 2
    return gain * normalised(x, group)


def backward(grad_output, x, gain):
    places = np.arange(x.shape[1]) % 2
    return {"gain": (grad_output * normalised(x, PLACES)).sum(axis=0)}
"""


@pytest.mark.parametrize("places", ["places", "np.arange(x.shape[1]) % 2"])
def test_an_index_is_computed_and_never_written_as_numbers(tmp_path, places):
    module = load(tmp_path / "grouped.py", GROUPED.replace("PLACES", places))
    report = check(module.forward, module.backward, {"x": X, "gain": X[0]})
    assert "np.arange(x.shape[1]) // 2" in changed(report)[1][0]


RECOMPUTED = """import numpy as np


def forward(x, W, b):
    z = x @ W + b
    return np.tanh(z)


def backward(grad_output, x, W, b):
    z = x @ W - 2 * b.sum()
    dz = grad_output * (1 - np.tanh(z) ** 2)
    return {"x": dz @ W.T, "W": x.T @ dz, "b": dz.sum(axis=0)}
"""


def test_a_value_of_forwards_is_computed_as_forward_does(tmp_path):
    module = load(tmp_path / "recomputed.py", RECOMPUTED)
    draw = np.random.default_rng(4)
    report = check(
        module.forward, module.backward, {"x": X, "W": draw.normal(size=(4, 3)), "b": draw.normal(size=3)}
    )
    assert changed(report)[1] == ["z = x @ W + b"]
    assert report.findings[0].code == "wrong-evaluation-point"


SPRINGS = """import numpy as np


def forward(x):
    energy = 0.0
    for k in range(len(x) - 1):
        energy = energy + 0.5 * (x[k + 1] - x[k]) ** 2
    return energy


def backward(grad_output, x):
    dx = np.zeros_like(x)
    for k in range(len(x) - 1):
        dx[k + 1] += grad_output * (x[k + 1] - x[k])
    return {"x": dx}
"""


def test_the_other_end_of_a_difference_gets_its_gradient(tmp_path):
    module = load(tmp_path / "springs.py", SPRINGS)
    report = check(module.forward, module.backward, {"x": X[:, 0].copy()})
    assert changed(report) == ([], ["dx[k] -= grad_output * (x[k + 1] - x[k])"])
    assert report.findings[0].code == "missing-term"


def test_what_forward_moves_on_backward_moves_back(tmp_path):
    text = """import numpy as np


def forward(x, places):
    return np.roll(x, places, axis=0) * 3


def backward(grad_output, x, places):
    return {"x": np.roll(grad_output, places, axis=0) * 3}
"""
    module = load(tmp_path / "rolled.py", text)
    report = check(module.forward, module.backward, {"x": X, "places": 1})
    assert changed(report)[1] == ['return {"x": np.roll(grad_output, -places, axis=0) * 3}']


EARLY = """
import numpy as np

rng = np.random.default_rng(0)
X, t = rng.normal(size=(7, 3)), rng.normal(size=(7, 2))
W1, W2 = rng.normal(size=(3, 4)), rng.normal(size=(4, 2))
lr = 0.1
for step in range(5):
    h = np.tanh(X @ W1)
    error = h @ W2 - t
    loss = 0.5 * (error**2).sum()
    dW2 = h.T @ error
    W2 -= lr * dW2
    dh = error @ W2.T
    dW1 = X.T @ (dh * (1 - h**2))
    W1 -= lr * dW1
"""


def test_a_step_that_is_taken_too_early_is_moved_and_never_left_out(handgrad, tmp_path):
    """Without it the gradient would be right too, and W2 would not be trained."""
    path = tmp_path / "early.py"
    path.write_text(EARLY)
    handgrad("check", path, "--fix", "--yes", code=0)
    lines = path.read_text().splitlines()
    assert lines.index("    W2 -= lr * dW2") == lines.index("    dh = error @ W2.T") + 1
    assert sorted(lines) == sorted(EARLY.splitlines())

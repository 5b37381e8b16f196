"""The first wrong line of a backward: found where it is, and nowhere where a convention only looks wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from handgrad.checking import Report, check
from handgrad.checking.input_draws import draw
from handgrad.checking.interfaces import adapt_script, pair_of
from handgrad.checking.intermediates import FirstWrong, first_wrong
from handgrad.checking.subject import Subject
from handgrad.checking.verdict.comparison import Evidence, compare, numerical_gradient

RNG = np.random.default_rng(7)
X, Y = RNG.normal(size=(6, 4)), RNG.normal(size=(6, 2))
NETWORK = """
import numpy as np

class Net:
    def __init__(self):
        rng = np.random.default_rng(1)
        self.W1, self.b1 = rng.normal(size=(4, 5)), rng.normal(size=5)
        self.W2, self.b2 = rng.normal(size=(5, 2)), rng.normal(size=2)

    def loss(self, X, y):
        m = len(X)
        Z1 = X @ self.W1 + self.b1
        A1 = np.tanh(Z1)
        Z2 = A1 @ self.W2 + self.b2
        loss = 0.5 * np.sum((Z2 - y) ** 2) / m
        dZ2 = Z2 - y
        dW2 = A1.T @ dZ2 / m
        db2 = dZ2.sum(axis=0) / m
        dA1 = dZ2 @ self.W2.T
        dZ1 = dA1 * (1 - A1**2)
        dW1 = X.T @ dZ1 / m
        db1 = dZ1.sum(axis=0) / m
        return loss, {"W1": dW1, "b1": db1, "W2": dW2, "b2": db2}
"""


def given(tmp_path: Path, source: str, **inputs: np.ndarray) -> tuple[Any, ...]:
    path = tmp_path / "code_as_it_stands.py"
    path.write_text(source)
    names: dict[str, Any] = {"__name__": path.stem}
    exec(compile(source, path, "exec"), names)
    if "Net" in names:
        return names["Net"]().loss, None, {"X": X, "y": Y}
    return names["forward"], names["backward"], inputs


def first_of(forward: Any, backward: Any, inputs: Any) -> FirstWrong | None:
    pair = pair_of(forward, backward, inputs)
    subject = Subject.of(pair.forward, pair.backward, draw(pair.inputs, np.random.default_rng(0)))
    comparison = compare(subject, numerical_gradient(subject, subject.inputs, subject.arguments(), 0))
    assert comparison.wrong
    return first_wrong(Evidence(subject, (comparison,), comparison.wrong))


def mutated(old: str, new: str) -> str:
    assert NETWORK.count(old) == 1
    return NETWORK.replace(old, new)


def test_a_network_that_divides_by_m_in_its_last_lines_is_right(tmp_path):
    report = check(*given(tmp_path, NETWORK))
    assert report.verdict == "right"
    assert report.first_wrong is None


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("dZ1 = dA1 * (1 - A1**2)", "dZ1 = dA1 * (1 - Z1**2)", "the gradient of Z1"),
        ("dA1 = dZ2 @ self.W2.T", "dA1 = dZ2 @ self.W2.T * A1", "the gradient of A1"),
        ("dZ2 = Z2 - y", "dZ2 = Z2 + y", "the gradient of Z2"),
        ("db1 = dZ1.sum(axis=0) / m", "db1 = dZ1.sum(axis=0)", "the gradient of b1"),
        ("dW2 = A1.T @ dZ2 / m", "dW2 = Z1.T @ dZ2 / m", "the gradient of W2"),
    ],
)
def test_the_line_that_was_made_wrong_is_the_first_wrong_line(tmp_path, old, new, what):
    first = first_of(*given(tmp_path, mutated(old, new)))
    assert first is not None
    assert (first.source, first.what, first.name) == (new, what, new.split()[0])
    assert first.got != first.expected


def test_lines_that_are_wrong_only_because_of_it_are_listed(tmp_path):
    report = check(*given(tmp_path, mutated("dA1 * (1 - A1**2)", "dA1 * (1 - A1)")))
    first = report.first_wrong
    assert first is not None
    assert {line.split(": ")[1] for line in first.later} == {"dW1", "db1"}
    assert set(first.mends) == {"self.W1", "self.b1"} or set(first.mends) == {"W1", "b1"}
    assert {"dW2", "db2"} <= {line.split(": ")[1] for line in first.right}
    lines = str(report).splitlines()
    at = next(k for k, line in enumerate(lines) if "first wrong line" in line)
    assert at <= len(report.arguments) + 2
    assert "dZ1 = dA1 * (1 - A1)" in lines[at]
    assert Report.from_json(report.to_json()) == report


def test_a_factor_left_out_of_one_last_line_is_not_blamed_on_the_lines_before_it(tmp_path):
    changed = mutated("db2 = dZ2.sum(axis=0) / m", "db2 = dZ2.sum(axis=0) / (2 * m)")
    first = first_of(*given(tmp_path, changed))
    assert first is not None
    assert first.name == "db2"


def test_a_wrong_helper_is_named_rather_than_its_caller(tmp_path):
    source = """
import numpy as np

def sigmoid(z):
    return 1 / (1 + np.exp(-z))

def sigmoid_prime(z):
    s = sigmoid(z)
    return s * (1 + s)

def forward(x, w):
    z = x @ w
    a = sigmoid(z)
    return a * a

def backward(grad_output, x, w):
    z = x @ w
    a = sigmoid(z)
    da = grad_output * 2 * a
    delta = da * sigmoid_prime(z)
    return {"x": delta @ w.T, "w": x.T @ delta}
"""
    first = first_of(*given(tmp_path, source, x=X, w=RNG.normal(size=(4, 3))))
    assert first is not None
    assert first.source == "return s * (1 + s)"
    assert set(first.mends) == {"x", "w"}


def test_a_gradient_in_the_making_is_judged_after_its_last_term(tmp_path):
    source = """
import numpy as np

def forward(x, w):
    h = np.zeros(w.shape[0])
    for row in x:
        h = np.tanh(row @ w + h)
    return h

def backward(grad_output, x, w):
    hs = [np.zeros(w.shape[0])]
    for row in x:
        hs.append(np.tanh(row @ w + hs[-1]))
    dw, dx, dh = np.zeros_like(w), np.zeros_like(x), grad_output
    for t in reversed(range(len(x))):
        dz = dh * (1 - hs[t + 1] ** 2)
        dw += np.outer(x[t], dz)
        dx[t] = dz @ w
        dh = dz
    return {"x": dx, "w": dw}
"""
    first = first_of(*given(tmp_path, source, x=RNG.normal(size=(5, 3)), w=RNG.normal(size=(3, 3))))
    assert first is not None
    assert first.source == "dx[t] = dz @ w"
    assert first.mends == ("x",)


def test_a_backward_without_a_source_has_no_first_wrong_line():
    names: dict[str, Any] = {}
    exec("def backward(grad_output, x): return {'x': grad_output}", names)
    assert first_of(np.tanh, names["backward"], {"x": X}) is None


def test_the_author_s_functions_are_as_they_were(tmp_path):
    path = tmp_path / "own.py"
    path.write_text(
        "import numpy as np\ndef forward(x):\n    y = x**3\n    return y\n"
        "def backward(grad_output, x):\n    dx = grad_output * x**2\n    return {'x': dx}\n"
    )
    names: dict[str, Any] = {}
    exec(compile(path.read_text(), path, "exec"), names)
    before, known = names["backward"].__code__, set(names)
    first = first_of(names["forward"], names["backward"], {"x": X})
    assert first is not None
    assert first.line == 6
    assert names["backward"].__code__ is before
    assert set(names) == known


PROGRAMS = Path(__file__).parent / "programs"
_FIXED: dict[str, Any] = {"__name__": "labels"}
exec(compile((PROGRAMS / "labels.py").read_text(), PROGRAMS / "labels.py", "exec"), _FIXED)
UNLIKE = {
    "notes_shallow_svd"
}  # the line after the labelled one: what the labelled one computes has no gradient
NUMPY = [
    label
    for label in _FIXED["LABELS"]
    if label.codes and not label.shape.startswith(("torch", "jax")) and label.name not in UNLIKE
]


NO_LINE = {  # a gradient that is forgotten, one that is right and returned twice, a rule that runs forward
    "torch_function_forgotten_bias",
    "jax_distance_sign",
    "jax_gelu_jvp",
}
PEERS = [
    label
    for label in _FIXED["LABELS"]
    if label.codes and label.shape in ("torch.autograd.Function", "jax") and label.name not in NO_LINE
]


def of_a_library(label: Any) -> tuple[Any, None, Any]:
    """Run a program of PyTorch or JAX, and return what its author gives to `check`."""
    path = PROGRAMS / f"{label.name}.py"
    names: dict[str, Any] = {"__name__": label.name, "np": np, "rng": np.random.default_rng(8)}
    exec(compile(path.read_text(), path, "exec"), names)
    exec(label.call, names)
    name, _, arguments = label.loss.partition("(")
    inputs = (
        {each: names[each] for each in label.gradients}
        if label.shape == "jax"
        else eval(f"({arguments[:-1]},)", names)
    )
    return names[name.removesuffix(".apply")], None, inputs


NOT_PLACED = {"torch_function_film", "jax_safe_norm_jvp", "torch_function_gelu_erf"}
"""Not found, or found at the line that returns what the labelled one computes."""


@pytest.mark.peers
@pytest.mark.parametrize("label", PEERS, ids=lambda label: label.name)
def test_the_first_wrong_line_of_a_function_of_torch_or_jax_is_the_labelled_one(label):
    first = first_of(*of_a_library(label))
    text = (PROGRAMS / f"{label.name}.py").read_text()
    line = text[: text.index(label.line)].count("\n") + 1
    assert label.name in NOT_PLACED or (first is not None and first.line == line)


@pytest.mark.peers
@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("torch_function_rmsnorm_sum", "(dxhat * xhat).mean(dim=-1, keepdim=True))"),
        ("torch_function_ignored_rows", "grad = grad / valid.sum() * valid[:, None]"),
        ("torch_function_causal_mask", "(grad_att - (grad_att * att).sum(dim=-1, keepdim=True))"),
        ("torch_function_embedding_assigned", "grad_table.index_put_((indices,), grad_output, accumulate=True)"),
        ("torch_function_conv_unfold", "dw = (g @ cols.transpose(1, 2)).sum(dim=0).view_as(w)"),
        ("torch_function_huber", "torch.sign(err) * ctx.delta)"),
        ("torch_function_needs_input_grad", "grad_weight = grad_output.t().mm(input)\n"),
    ],
)  # fmt: skip
def test_a_function_of_torch_is_repaired_as_its_author_would(name: str, right: str):
    """In the author's line and words: an option is no number, a sum over an axis is ``dim``."""
    label = next(each for each in _FIXED["LABELS"] if each.name == name)
    report = check(*of_a_library(label))
    assert report.findings[0].code in label.codes
    assert report.mended is not None
    added = "".join(line for line in report.mended.diff.splitlines(keepends=True) if line.startswith("+"))
    assert right in added
    assert added.count("\n") == 2  # the file's name, and one line


@pytest.mark.parametrize("label", NUMPY, ids=lambda label: label.name)
def test_the_first_wrong_line_of_a_program_is_the_labelled_one(label):
    path = PROGRAMS / f"{label.name}.py"
    if label.shape == "script":
        pair = adapt_script(path)
        given = pair.forward, pair.backward, pair.inputs
    else:
        names: dict[str, Any] = {"__name__": label.name, "np": np, "rng": np.random.default_rng(8)}
        exec(compile(path.read_text(), path, "exec"), names)
        exec(label.call, names)
        given = eval(_FIXED["GIVEN"][label.name], names)
    first = first_of(*given)
    assert first is not None
    text = path.read_text()
    assert first.line == text[: text.index(label.line)].count("\n") + 1

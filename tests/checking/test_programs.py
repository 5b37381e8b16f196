"""The programs in ``programs`` are right or wrong as their labels state: proved without handgrad.

The labels were fixed before any version of the checker had seen the programs.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from handgrad.checking import check
from handgrad.checking.interfaces import adapt_script, pair_of

PROGRAMS = Path(__file__).parent / "programs"
STEP = 1e-6  # of the central differences: their error is about 1e-9 where values are about 1


def names_of(path: Path) -> dict[str, Any]:
    """Run a file and return what it defines."""
    names: dict[str, Any] = {"__name__": path.stem, "np": np, "rng": np.random.default_rng(8)}
    exec(compile(path.read_text(), path, "exec"), names)
    return names


_FIXED = names_of(PROGRAMS / "labels.py")
LABELS = {label.name: label for label in _FIXED["LABELS"]}
GIVEN = _FIXED["GIVEN"]
NUMPY = [
    label
    for label in LABELS.values()
    if label.shape not in ("script", "torch", "torch.autograd.Function", "jax")
]
SCRIPTS = [label for label in LABELS.values() if label.shape == "script"]


def numerical_gradient(loss: Callable[[], float], array: np.ndarray) -> np.ndarray:
    gradient = np.empty(array.shape)
    for index in np.ndindex(array.shape):
        before = array[index]
        array[index] = before + STEP
        above = loss()
        array[index] = before - STEP
        gradient[index] = (above - loss()) / (2 * STEP)
        array[index] = before
    return gradient


def wrong_gradients(names: dict[str, Any], loss: Callable[[], float], gradients: str) -> set[str]:
    pairs = eval(gradients, names)
    expected = {name: numerical_gradient(loss, array) for name, (array, _) in pairs.items()}
    return {
        name for name, (_, gradient) in pairs.items()
        if np.shape(gradient) != expected[name].shape
        or not np.allclose(gradient, expected[name], rtol=1e-4, atol=1e-6)
    }  # fmt: skip


def test_every_program_has_a_label_that_fits_it():
    assert {path.stem for path in PROGRAMS.glob("*.py")} - {"labels"} == set(LABELS)
    for label in LABELS.values():
        assert bool(label.codes) == bool(label.where) == bool(label.line)
        assert label.line in (PROGRAMS / f"{label.name}.py").read_text()


@pytest.mark.parametrize("label", NUMPY, ids=lambda label: label.name)
def test_a_program_is_as_wrong_as_its_label_states(label):
    names = names_of(PROGRAMS / f"{label.name}.py")
    exec(label.call, names)
    assert wrong_gradients(names, lambda: float(eval(label.loss, names)), label.gradients) == set(label.where)


@pytest.mark.parametrize("label", SCRIPTS, ids=lambda label: label.name)
def test_a_script_is_as_wrong_as_its_label_states(label):
    source = (PROGRAMS / f"{label.name}.py").read_text()
    head = source[: source.index(label.call)]  # up to the first update
    start, end, loss = label.loss
    names: dict[str, Any] = {}
    exec(head + ("    break\n" if label.call.startswith(" ") else ""), names)
    for name in names:  # numbers become arrays, to be perturbed
        if isinstance(names[name], float) and name in label.gradients:
            names[name] = np.array(names[name])
    lines = compile(textwrap.dedent(head[head.index(start) : head.index(end)]), label.name, "exec")

    def run() -> float:
        exec(lines, names)
        return float(eval(loss, names))

    assert wrong_gradients(names, run, label.gradients) == set(label.where)


@pytest.mark.peers
@pytest.mark.parametrize(
    "label", [x for x in LABELS.values() if x.shape == "torch"], ids=lambda label: label.name
)
def test_a_torch_script_is_as_wrong_as_its_label_states(label):
    import torch

    source = (PROGRAMS / f"{label.name}.py").read_text()
    names: dict[str, Any] = {}
    exec(source, names)
    gradients = eval(label.gradients)
    for name in gradients:
        names[name].requires_grad_()
    forward = source[source.index(label.call) : source.index("\n", source.index("loss = "))]
    exec(forward, names)
    right = torch.autograd.grad(names["loss"], [names[name] for name in gradients])
    wrong = {n for n, g in zip(gradients, right, strict=True) if not torch.allclose(g, names["d" + n])}
    assert wrong == set(label.where)


@pytest.mark.peers
@pytest.mark.parametrize(
    "label", [x for x in LABELS.values() if x.shape == "torch"], ids=lambda label: label.name
)
def test_a_torch_script_is_taken_as_it_stands(label):
    pair = adapt_script(PROGRAMS / f"{label.name}.py")
    gradients = pair.backward(np.float64(1.0), **pair.inputs)
    assert set(gradients) == set(eval(label.gradients))

    def loss() -> float:
        return float(pair.forward(**pair.inputs))

    wrong = {
        name for name, gradient in gradients.items()
        if not np.allclose(gradient, numerical_gradient(loss, pair.inputs[name]), rtol=1e-4, atol=1e-6)
    }  # fmt: skip
    assert wrong == set(label.where)


@pytest.mark.peers
@pytest.mark.parametrize(
    "label",
    [x for x in LABELS.values() if x.shape == "torch.autograd.Function"],
    ids=lambda label: label.name,
)
def test_a_torch_function_is_as_wrong_as_its_label_states(label):
    import torch

    names = names_of(PROGRAMS / f"{label.name}.py")
    exec(label.call, names)
    inputs = {n: v for n, v in names.items() if isinstance(v, torch.Tensor) and v.requires_grad}
    output = eval(label.loss, names)
    upstream = torch.randn(output.shape, dtype=torch.float64)
    found = torch.autograd.grad(output, list(inputs.values()), upstream, allow_unused=True)
    given = [torch.zeros_like(v) if g is None else g for v, g in zip(inputs.values(), found, strict=True)]

    def loss() -> float:
        return float((eval(label.loss, names) * upstream).sum().detach())

    expected = [numerical_gradient(loss, value.detach().numpy()) for value in inputs.values()]
    wrong = {
        n
        for n, g, e in zip(inputs, given, expected, strict=True)
        if not np.allclose(g, e, rtol=1e-4, atol=1e-6)
    }
    assert wrong == set(label.where)


@pytest.mark.peers
@pytest.mark.parametrize(
    "label", [x for x in LABELS.values() if x.shape == "jax"], ids=lambda label: label.name
)
def test_a_jax_function_is_as_wrong_as_its_label_states(label):
    import jax

    with jax.enable_x64(True):
        names = names_of(PROGRAMS / f"{label.name}.py")
        exec(label.call, names)
        arguments = {name: names[name] for name in label.gradients}
        function = eval(label.loss.partition("(")[0], names)
        upstream = np.random.default_rng(2).normal(size=function(*arguments.values()).shape)
        given = jax.vjp(function, *arguments.values())[1](upstream)

        def loss() -> float:
            return float((function(*arguments.values()) * upstream).sum())

        expected = [numerical_gradient(loss, value) for value in arguments.values()]
    wrong = {
        n
        for n, g, e in zip(arguments, given, expected, strict=True)
        if not np.allclose(g, e, rtol=1e-4, atol=1e-6)
    }
    assert wrong == set(label.where)


@pytest.mark.parametrize("label", [*NUMPY, *SCRIPTS], ids=lambda label: label.name)
def test_a_program_is_taken_as_it_stands_and_its_gradients_are_judged(label):
    if label.shape == "script":
        pair = adapt_script(PROGRAMS / f"{label.name}.py")
    else:
        names = names_of(PROGRAMS / f"{label.name}.py")
        exec(label.call, names)
        pair = pair_of(*eval(GIVEN[label.name], names))
    assert isinstance(pair.inputs, dict)
    outputs = pair.forward(**pair.inputs)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    generator = np.random.default_rng(3)
    upstream = tuple(np.asarray(generator.normal(size=np.shape(output))) for output in outputs)
    gradients = pair.backward(upstream if len(upstream) > 1 else upstream[0], **pair.inputs)

    def loss() -> float:
        found = pair.forward(**pair.inputs)
        found = found if isinstance(found, tuple) else (found,)
        return sum(float(np.sum(part * weight)) for part, weight in zip(found, upstream, strict=True))

    wrong = {
        name for name, gradient in gradients.items()
        if not np.allclose(gradient, numerical_gradient(loss, pair.inputs[name]), rtol=1e-4, atol=1e-6)
    }  # fmt: skip
    assert len(wrong) == len(label.where)


def test_a_method_that_is_the_forward_is_not_taken_for_the_backward():
    class Doubled:
        def forward(self, x):
            return 2 * x

        def backward(self, g):
            return g

    pair = pair_of(Doubled().forward, None, {"x": np.ones(3)})
    assert np.array_equal(pair.backward(np.ones(3), x=np.ones(3))["x"], np.ones(3))


class _NetworkWithCaches:
    """Its output and its targets, and its input and its first layer's gradient, have the same shape."""

    def __init__(self):
        rng = np.random.default_rng(1)
        self.W1, self.b1, self.W2 = rng.normal(size=(4, 5)), rng.normal(size=5), rng.normal(size=(5, 2))

    def forward(self, x):
        self.x = np.array(x)
        self.h = np.tanh(self.x @ self.W1 + self.b1)
        self.out = self.h @ self.W2
        return self.out

    def loss(self, x, y):
        return 0.5 * np.sum((self.forward(x) - y) ** 2)

    def backward(self, x, y):
        d = self.out - y
        self.dW2 = self.h.T @ d
        dh = (d @ self.W2.T) * (1 - self.h**2)
        self.dW1, self.db1 = x.T @ dh, dh.sum(axis=0)


class _FixedPositions:
    """The table is trained, the positions are not; what forward saves has their shape."""

    def __init__(self):
        rng = np.random.default_rng(1)
        self.table, self.positions = rng.normal(size=(5, 3)), rng.normal(size=(4, 3))

    def forward(self, tokens):
        self.tokens, self.h = tokens, self.table[tokens] + self.positions
        return np.tanh(self.h)

    def backward(self, upstream):
        self.dtable = np.zeros_like(self.table)
        np.add.at(self.dtable, self.tokens, upstream * (1 - np.tanh(self.h) ** 2))


class _FirstLayer:
    """It returns no gradient of its input, of which it saves a copy."""

    def __init__(self):
        self.W = np.random.default_rng(1).normal(size=(6, 5))

    def forward(self, x):
        self.x = x.reshape(len(x), -1)
        return self.x @ self.W

    def backward(self, upstream):
        self.dW = self.x.T @ upstream


@pytest.mark.parametrize(
    ("layer", "inputs", "differentiated"),
    [
        (
            _NetworkWithCaches,
            {"x": np.arange(24.0).reshape(6, 4) / 7, "y": np.arange(12.0).reshape(6, 2) / 5},
            {"W1", "b1", "W2"},
        ),
        (_FixedPositions, {"tokens": np.array([0, 1, 1, 4])}, {"table"}),
        (_FirstLayer, {"x": np.arange(24.0).reshape(4, 6) / 7}, {"W"}),
    ],
)
def test_what_forward_saves_is_not_taken_for_a_gradient(layer, inputs, differentiated):
    report = check(layer(), inputs=inputs)
    assert report.verdict == "right"
    assert {each.name for each in report.arguments} == differentiated

"""What is stated of a batch holds of all its rows: each sentence, and each formula by indices, against the numbers."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from handgrad import (
    GELU,
    BatchNorm,
    Dropout,
    Embedding,
    LayerNorm,
    Linear,
    MeanSquaredError,
    Network,
    ReLU,
    Residual,
    SoftmaxCrossEntropy,
    Tanh,
)
from handgrad.explaining.execution import Execution, execute_network, execute_rule
from handgrad.explaining.explainer import explain_execution
from handgrad.explaining.jacobians import Dependency, jacobian_record
from handgrad.explaining.record import Jacobian
from handgrad.explaining.shape_ledger import AxisNames
from handgrad.program.lines_in_python import evaluate

from ..rules.table import CASES, Case

Array = NDArray[Any]
FACTOR = re.compile(r"(?P<name>I\[\w+\]|\w+|\(.+\))(?:\[(?P<letters>[^\[\]]*)\])?$")
SHARED = Linear(6, 6)


def pair_of(jacobian: Jacobian, execution: Execution) -> Dependency:
    """Return the two values that a record is of: by the output's own line alone, where it states that."""
    alone = jacobian.explanation.startswith(f"By the line of {jacobian.output} alone, not through ")
    return Dependency(execution, jacobian.output, jacobian.input, direct=alone)


def number_of(text: str, of: str, execution: Execution) -> tuple[Array, list[str]]:
    """Return the numbers and the letters of a factor: ``(z1 > 0)[n, o1]``."""
    found = FACTOR.fullmatch(text)
    assert found, text
    name, letters = found["name"], [each for each in (found["letters"] or "").split(", ") if each]
    if name.startswith("I["):
        table = execution.exact[of]
        return np.eye(len(table))[execution.exact[name[2:-1]]], letters
    return np.asarray(evaluate(name, execution.exact), float), letters


def computed(formula: str, of: str, execution: Execution) -> tuple[str, Array]:
    """Compute a formula as it is written, term by term, and return the name of its gradient."""
    left, _, right = formula.partition(" = ")
    target, _, wanted = left.partition("[")
    letters = [each for each in wanted.removesuffix("]").split(", ") if each]
    sums = re.match(r"Σ_(\w+′*|\{[^}]*\}) ", right)
    summed = sums[1].strip("{}").split(", ") if sums else []
    factors = [number_of(each, of, execution) for each in right[sums.end() if sums else 0 :].split(" · ")]
    used = {letter for _, own in factors for letter in own}
    assert used - {"0"} - {*letters} == {*summed}, formula  # every letter is of the result, or summed over
    codes = {letter: k for k, letter in enumerate(dict.fromkeys([*letters, *sorted(used)]))}
    operands: list[Any] = []
    for value, own in factors:
        assert value.ndim == len(own), formula
        taken = value[tuple(0 if letter == "0" else slice(None) for letter in own)]
        operands += [taken, [codes[letter] for letter in own if letter != "0"]]
    known = [letter for letter in letters if letter in used]
    product = np.einsum(*operands, [codes[letter] for letter in known])
    constant = tuple(k for k, letter in enumerate(letters) if letter not in used)
    return target, np.asarray(np.expand_dims(product, constant))


def derivative_holds(jacobian: Jacobian, execution: Execution) -> None:
    """Compare ∂z1[n, o′]/∂W1[i, o] = x[n, i] · δ[o′, o], factor by factor, with the Jacobian of all rows."""
    (text,) = (step.text for step in jacobian.steps if step.text.startswith("∂"))
    left, _, right = text.partition(" = ")
    full = pair_of(jacobian, execution).full()
    own = re.fullmatch(r"∂\w+\[(.*)\]/∂\w+\[(.*)\]", left)
    assert own, text
    letters = [*own[1].split(", "), *own[2].split(", ")]
    sizes = dict(zip(letters, full.shape, strict=True))
    found = np.ones(full.shape)
    for factor in right.split(" · "):
        delta = re.fullmatch(r"δ\[(\S+), (\S+)\]", factor)
        value, axes = (
            (np.eye(sizes[delta[1]]), [delta[1], delta[2]])
            if delta
            else number_of(factor, jacobian.input, execution)
        )
        value = value[tuple(0 if letter == "0" else slice(None) for letter in axes)]
        axes = [letter for letter in axes if letter != "0"]
        order = np.argsort([letters.index(letter) for letter in axes])
        shape = [sizes[letter] if letter in axes else 1 for letter in letters]
        found = found * np.transpose(value, order).reshape(shape)
    np.testing.assert_allclose(found, full, rtol=0, atol=1e-10 * np.abs(full).max(), err_msg=text)


def entry_holds(text: str, execution: Execution) -> None:
    """Compute z1[n, o] = Σ_i x[n, i] · W1[i, o] + b1[o] entry by entry, as it is written."""
    written = re.sub(
        r"\[([^\]]*)\]",
        lambda m: "[" + ", ".join(each if each == "0" else f"at_{each}" for each in m[1].split(", ")) + "]",
        text.replace("·", "*").replace("′", "_"),
    )
    left, _, right = written.partition(" = ")
    sizes = {
        letter: size
        for name, letters in re.findall(r"(\w+)\[([^\]]*)\]", written)
        for letter, size in zip(letters.split(", "), execution.exact[name].shape, strict=True)
    }
    while found := re.search(r"(Σ|max)_(\w+) ", right):
        depth, end = 0, found.end()
        while end < len(right) and depth >= 0 and not (depth == 0 and right[end : end + 3] in (" + ", " - ")):
            depth += {"(": 1, ")": -1}.get(right[end], 0)
            end += 1 if depth >= 0 else 0
        call = "sum" if found[1] == "Σ" else "max"
        inner = f"{call}({right[found.end() : end]} for at_{found[2]} in range({sizes[f'at_{found[2]}']}))"
        right = right[: found.start()] + inner + right[end:]
    right = right.replace("≥", ">=").replace("≤", "<=")
    functions = {
        name: getattr(np, name)
        for name in ("tanh", "exp", "log", "abs", "where", "sqrt", "sin", "cos", "log1p", "expm1")
    }
    name, _, letters = left.removesuffix("]").partition("[")
    at = [each for each in letters.split(", ") if each]
    expected = execution.exact[name]
    for index in np.ndindex(expected.shape):
        scope = {**functions, **execution.exact, **dict(zip(at, index, strict=True))}
        found_here = eval(
            right, {"__builtins__": {"sum": sum, "max": max, "min": min, "range": range}} | scope
        )
        np.testing.assert_allclose(found_here, expected[index], rtol=1e-9, atol=1e-12, err_msg=text)


def steps_hold(jacobian: Jacobian, execution: Execution) -> None:
    """Compare a derivation's forward line and derivative with the program, and its end with the formula."""
    if not jacobian.steps:
        return
    assert all(step.reason for step in jacobian.steps)
    if "∂" not in jacobian.steps[0].text:
        entry_holds(jacobian.steps[0].text, execution)
    if len(jacobian.steps) > 1:
        assert jacobian.steps[-1].text == jacobian.formula
        derivative_holds(jacobian, execution)


def holds(jacobian: Jacobian, execution: Execution) -> None:
    """Compare what the sentences of a Jacobian state of the batch with the program's numbers."""
    rows, why = execution.rows, jacobian.explanation
    pair = pair_of(jacobian, execution)
    assert jacobian.explanation.startswith("By the line") == bool(pair.detours)
    if jacobian.formula:
        target, found = computed(jacobian.formula, jacobian.input, execution)
        right = execution.exact.get(target, pair.pull(execution.exact[f"d{jacobian.output}"]))
        scale = np.abs(right).max()
        np.testing.assert_allclose(np.broadcast_to(found, np.shape(right)), right, rtol=0, atol=1e-10 * scale)
        assert jacobian.formula in why
    if rows == 1:
        assert not re.search(r"\brows\b", why)
        return
    if "no other: the batch's" in why or "Rows meet here" in why:
        meets = False
        for row in range(rows):
            upstream = np.zeros(np.shape(execution.exact[jacobian.output]))
            upstream[row] = np.random.default_rng(row).normal(size=upstream.shape[1:])
            others = np.delete(pair.pull(upstream), row, axis=0)
            meets |= bool(np.abs(others).max(initial=0) > 1e-9)
        assert meets == ("Rows meet here" in why), why
    if re.search(r"\bAll \d+ rows share", why):
        assert execution.shapes[jacobian.input][:1] != ("n",)
        assert "what they send back adds up" in why


@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_stated_of_a_rule_holds_for_the_whole_batch(case: Case, rank: int) -> None:
    for rows in (1, 4):
        inputs, _ = case.draw(3, rank, batch=rows)
        execution = execute_rule(case.rule, list(inputs.values()), **case.options)
        for of in case.rule.differentiable:
            for example in (None, execution.rows - 1):
                found = jacobian_record(execution, AxisNames(execution), case.rule.output, of, example)
                holds(found, execution)
                if example is None:
                    steps_hold(found, execution)


NETWORKS = {
    "batch norm": Network(Linear(3, 6), BatchNorm(), ReLU(), Linear(6, 2), loss=SoftmaxCrossEntropy()),
    "residual": Network(
        Linear(3, 6),
        Tanh(),
        Residual(LayerNorm(), Linear(6, 6), GELU()),
        Linear(6, 2),
        loss=MeanSquaredError(),
    ),
    "shared": Network(Linear(3, 6), SHARED, Tanh(), SHARED, Linear(6, 2), loss=SoftmaxCrossEntropy()),
    "dropout": Network(Linear(3, 5), Dropout(0.4), Linear(5, 1), loss=MeanSquaredError()),
    "texts": Network(Embedding(11, 4), Linear(4, 3), inputs=6, loss=SoftmaxCrossEntropy()),
}


@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("name", NETWORKS)
def test_what_is_stated_of_a_network_holds_for_the_whole_batch(name: str, rows: int) -> None:
    network, rng = NETWORKS[name], np.random.default_rng(8)
    if name == "batch norm" and rows == 1:
        rows = 2  # one row has no variance
    x = rng.integers(0, 11, (rows, 6)) if name == "texts" else rng.normal(size=(rows, 3))
    classes = rng.integers(0, 2, x.shape if name == "texts" else rows)
    regression = isinstance(network.loss, MeanSquaredError)
    t = rng.normal(size=(rows, *network.output_shape[1:])) if regression else classes
    execution = execute_network(network, x, t)
    found = explain_execution(execution).jacobians
    for each in found:
        holds(each, execution)
        steps_hold(each, execution)
    formulas = {f"{each.output}:{each.input}": each.formula for each in found}
    if name == "texts":
        assert formulas["z1:W1"]
    else:  # one row has its n too
        assert formulas["z1:W1"] == "dW1[i, o1] = Σ_n x[n, i] · dz1[n, o1]"
        assert formulas["z1:b1"] == "db1[o1] = Σ_n dz1[n, o1]"
    steps = {f"{each.output}:{each.input}": [step.text for step in each.steps] for each in found}
    if name == "dropout" and rows > 1:
        assert steps["z1:W1"] == [
            "z1[n, o1] = Σ_i x[n, i] · W1[i, o1] + b1[o1]",
            "∂z1[n, o1′]/∂W1[i, o1] = x[n, i] · δ[o1′, o1]",
            "dW1[i, o1] = Σ_{n, o1′} ∂z1[n, o1′]/∂W1[i, o1] · dz1[n, o1′]",
            "dW1[i, o1] = Σ_n x[n, i] · dz1[n, o1]",
        ]
    if name == "batch norm":
        assert formulas["y1:gamma1"] == "dgamma1[o1] = Σ_n xhat1[n, o1] · dy1[n, o1]"
        assert not formulas["y1:z1"]
    if (
        name == "shared"
    ):  # one use has a gradient of its own; so has the other, though z3 depends on W2 through z2 too
        assert formulas["z2:W2"].startswith("dW2_z2[")
        assert formulas["z3:W2"].startswith("dW2_z3[")
    if name == "residual":
        (skip,) = (each for each in found if (each.output, each.input) == ("r2", "a1"))
        assert (skip.structure, skip.gradient) == ("diagonal", "da1_r2")


def test_rows_that_pass_nothing_are_not_what_is_shown() -> None:
    """Row 0's units are all dead; the first row that is not is taken."""
    network = Network(Linear(2, 4), ReLU(), Linear(4, 2), loss=MeanSquaredError(), dtype="float64")
    network.parameters["W1"][...], network.parameters["b1"][...] = 1.0, 0.0
    x = np.array([[-1.0, -2.0], [-1.0, -1.0], [2.0, 1.0]])
    found = explain_execution(execute_network(network, x, np.ones((3, 2)))).jacobians
    assert {each.example for each in found} == {2}


@pytest.mark.parametrize("target", ["dW1", "dW2", "da1"])
def test_the_transpose_that_is_stated_gives_the_gradient(target: str) -> None:
    """Of square layers, whose shapes would fit any other product as well."""
    network = Network(Linear(4, 4), Tanh(), Linear(4, 4), loss=SoftmaxCrossEntropy(), dtype="float64")
    execution = execute_network(network, np.random.default_rng(0).normal(size=(4, 4)), np.array([0, 1, 2, 3]))
    explanation = explain_execution(execution)
    line = next(each for each in explanation.lines if each.target == target)
    (jacobian,) = (
        each for each in explanation.jacobians if (each.output, each.input) == explanation.between(line)
    )
    product = re.search(r"; the sum runs over .* axis, so it is \((.+)\)\[", jacobian.steps[-1].reason)
    assert product
    assert product[1].count(".T") == 1
    np.testing.assert_allclose(evaluate(product[1], execution.exact), execution.exact[target], rtol=1e-12)

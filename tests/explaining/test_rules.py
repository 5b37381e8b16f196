"""Every rule is explained from its own text: what is claimed of its Jacobians is what the slopes of forward are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from handgrad import rules
from handgrad.explaining import Explanation, explain
from handgrad.explaining.execution import execute_rule
from handgrad.explaining.explainer import explain_execution
from handgrad.explaining.jacobian_structure import recognise
from handgrad.explaining.jacobians import Dependency, jacobian_record
from handgrad.explaining.shape_ledger import AxisNames
from handgrad.finite_differences import numerical_jacobian

from ..rules.table import BY_KIND, CASES, TABLE, Case, Row, normal

Array = NDArray[Any]


def large(row: Row) -> list[Array]:
    """Draw the arguments of a rule with 17 rows and axes of 19, 23, …: a low rank saves numbers."""
    rule = row.rule
    fixed = row.fixed_sizes(row.options[0])
    letters = dict.fromkeys(axis for axes in rule.signature.inputs for axis in axes if axis not in fixed)
    sizes: dict[str, tuple[int, ...]] = {axis: (n,) for axis, n in zip(letters, (17, 19, 23), strict=False)}
    sizes |= fixed
    rng, drawn = np.random.default_rng(5), {}
    kinds = rule.forward.kinds
    pairs = zip(kinds, rule.signature.inputs, strict=True)
    for name, axes in sorted(pairs, key=lambda pair: kinds[pair[0]] != "value"):
        shape = tuple(size for axis in axes for size in sizes[axis])
        drawn[name] = row.draws.get(name, BY_KIND.get(kinds[name], normal))(rng, shape, drawn)
    return [drawn[name] for name in kinds]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.rule.name)
def test_the_structure_of_each_jacobian_is_recognised_and_named(row: Row) -> None:
    """What is stored is named by the values and the parts of lines that have its numbers."""
    execution = execute_rule(row.rule, large(row), **row.options[0])
    explanation = explain_execution(execution, [(row.rule.output, name) for name in row.rule.differentiable])
    found = {each.input: f"{each.structure}: {each.stored}" for each in explanation.jacobians}
    said = f"jacobians={dict(row.jacobians)}, and handgrad finds jacobians={found}"
    assert found == row.jacobians, f"tests/rules/table.py: the row of {row.rule.name} has {said}"
    for each in explanation.jacobians:
        assert each.proof < 1e-12
        assert each.stored_numbers < each.full_numbers or each.structure == "full"
        assert each.stored_operations <= each.full_operations


@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_stored_form_is_the_full_numerical_jacobian(case: Case, rank: int) -> None:
    """Each row of the stored form, by a unit upstream gradient, has the slopes of forward in it."""
    for example, (execution, output, of) in each_jacobian(case, rank):
        dependency = Dependency(execution, output, of, example)
        full = dependency.full()
        outputs = np.ndim(np.asarray(execution.exact[output])[dependency.index(output)])
        stored = recognise(full, outputs)
        units = np.eye(int(np.prod(full.shape[:outputs]))).reshape(-1, *full.shape[:outputs])
        found = np.stack([stored.pull(unit).ravel() for unit in units])
        expected = numerical(case, execution.exact, of, dependency)
        size = np.abs(expected).max() or 1.0
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * size)
        record = jacobian_record(execution, AxisNames(execution), output, of, example)
        assert record.structure in (stored.kind, "sparse")  # the latter where no value has its numbers
        assert record.full_numbers == expected.size
        assert len(record.output_axes) == len(record.output_sizes)


def each_jacobian(case: Case, rank: int) -> Iterator[tuple[int | None, tuple[Any, str, str]]]:
    """Yield every Jacobian of a rule on a batch of 3 rows: of all of them, and of one."""
    inputs, _ = case.draw(3, rank, batch=3)
    execution = execute_rule(case.rule, list(inputs.values()), **case.options)
    for of in case.rule.differentiable:
        for example in (None, 1):
            if execution.rows > 1 or example is None:
                yield example, (execution, case.rule.output, of)


def numerical(case: Case, values: dict[str, Any], of: str, dependency: Dependency) -> Array:
    """Find the Jacobian by differences of the rule as the plain function it is."""
    arguments = {name: values[name] for name in case.rule.forward.arguments}
    place = np.asarray(np.asarray(arguments[of], float)[dependency.index(of)])

    def made(part: Array) -> Array:
        moved = np.array(arguments[of], float)
        moved[dependency.index(of)] = part.reshape(place.shape)
        found = case.rule(*{**arguments, of: moved}.values(), **case.options)
        return np.asarray(found, float)[dependency.index(dependency.output)].ravel()

    return numerical_jacobian(made, place.ravel()).low


@pytest.mark.parametrize("case", CASES, ids=str)
def test_ledger_derivation_and_witness_are_generated(case: Case) -> None:
    """A gradient has its value's shape and letters; every line is written as a formula and found to be right."""
    inputs, _ = case.draw(7, 2)
    explanation = explain_execution(execute_rule(case.rule, list(inputs.values()), **case.options))
    assert Explanation.from_json(explanation.to_json()) == explanation
    for name, value in inputs.items():
        assert explanation.ledger[name].sizes == value.shape
        assert len(explanation.ledger[name].axes) == value.ndim
    for name in case.rule.differentiable:
        gradient = explanation.ledger[f"d{name}"]
        assert (gradient.kind, gradient.gradient_of) == ("gradient", name)
        assert (gradient.axes, gradient.sizes) == (explanation.ledger[name].axes, inputs[name].shape)
        assert explanation.derivations[name].factors[-1].sizes == inputs[name].shape
        assert explanation.derivations[name].text.startswith(f"d{name} = ")
    kept = {name for name, entry in explanation.ledger.items() if entry.kept_for}
    assert kept == set(case.rule.cached)
    backward = [line for line in explanation.lines if line.phase == "backward"]
    assert [line.reason for line in backward] == [line.reason for line in case.rule.backward_text.lines]
    for line in backward:
        assert line.undoes == case.rule.output
        assert line.witness is not None
        assert (line.target, line.witness.verdict) == (line.target, "right")
    for line in explanation.lines:
        assert line.tex.count("{") == line.tex.count("}")
        assert len(re.findall(r"\\left\b", line.tex)) == len(re.findall(r"\\right\b", line.tex))


def test_a_rule_without_gradient_has_a_ledger_and_nothing_else() -> None:
    """What prepares targets is shown, and nothing is differentiated."""
    explanation = explain(rules.smoothed_targets, np.array([[0.0, 1.0, 0.0]]))
    assert explanation.ledger["smooth"].axes == ("N", "C")
    assert (explanation.derivations, explanation.jacobians) == ({}, ())

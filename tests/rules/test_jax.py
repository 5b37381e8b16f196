"""A third opinion on every rule: JAX's derivative of the forward lines as they are written, on jax.numpy.

PyTorch's functions are its own: here the backward is compared with the derivative of this very forward. Every rule's lines
run, so none is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from handgrad.engines.jax_engine import _names as names_on_jax
from handgrad.rules import Rule
from handgrad.rules.rule_source import blocks, show_index

from .checks import relative_error, shapes
from .table import Case, each_case
from .test_mutants import WRONG, case_of

pytestmark = pytest.mark.peers


@pytest.fixture(scope="module")
def jax() -> Iterator[Any]:
    """JAX, in float64."""
    import jax

    with jax.enable_x64(True):
        yield jax


def output_on_jax(jax: Any, rule: Rule, values: dict[str, Any]) -> Any:
    """Run forward; where a line writes a part of an array, that part of a new one, as JAX's arrays do not change."""
    names, scope = names_on_jax(jax), dict(values)

    def value(source: str) -> Any:
        return eval(source, names, scope)

    for block in blocks(rule.forward.lines):
        for time in value(str(block[0].loop).partition(" in ")[2]) if block[0].loop else [None]:
            if block[0].loop:
                scope[block[0].loop.variable] = time
            for line in block:
                expression = str(line).partition(f" {line.operator} ")[2]
                if line.index is None:
                    scope[line.target] = value(expression)
                else:
                    assert line.operator == "=", "no forward adds to parts"
                    part = scope[line.target].at[value(f"np.s_[{show_index(line.index)}]")]
                    scope[line.target] = part.set(value(expression))
    return scope[rule.output]


def check_against_jax(jax: Any, case: Case, rank: int) -> None:
    """Check that the output and every gradient are JAX's, to 1e-10 of their norm."""
    rule = case.rule
    inputs, upstream = case.draw(1, rank)

    def forward(trained: dict[str, Any]) -> Any:
        return output_on_jax(jax, rule, {**rule.settings(case.options), **inputs, **trained})

    output, vjp = jax.vjp(forward, {name: jax.numpy.asarray(inputs[name]) for name in rule.differentiable})
    (expected,) = vjp(jax.numpy.asarray(upstream))
    found = rule.gradients(upstream, *inputs.values(), **case.options)
    pairs = {f"d{name}": (found[name], expected[name]) for name in rule.differentiable}
    pairs["output"] = rule(*inputs.values(), **case.options), output
    least = 1e-3 * float(np.linalg.norm(upstream))
    for name, (ours, theirs) in pairs.items():
        error = relative_error(ours, np.asarray(theirs), least=least)
        assert error <= 1e-10, f"{name} of {case} is off by {error:.1e} at {shapes(inputs)}"


@pytest.mark.parametrize(("case", "rank"), each_case())
def test_output_and_gradients_are_those_of_jax(jax: Any, case: Case, rank: int) -> None:
    check_against_jax(jax, case, rank)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.name)
def test_jax_catches_wrong_backwards(jax: Any, wrong: Rule) -> None:
    with pytest.raises(AssertionError, match=r"is off by|is not"):
        check_against_jax(jax, case_of(wrong, WRONG[wrong]), 3)

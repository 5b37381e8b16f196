"""Wrong versions of handgrad's own backwards, one for each mistake of the vocabulary that a rule's lines allow."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from handgrad.checking.input_draws import draw_for
from handgrad.program.lines_in_python import run_source
from handgrad.rules import RULES, Rule
from handgrad.rules.rule_source import blocks, source_of_block


@dataclass(frozen=True)
class Mutant:
    """A wrong backward of a rule, and the codes that name it fairly."""

    rule: Rule
    argument: str
    what: str
    codes: tuple[str, ...]
    backward: Callable[..., dict[str, Any]]

    @property
    def id(self) -> str:
        """Its name in test reports."""
        return f"{self.rule.name}-{self.argument}-{self.what}"

    def inputs(self, generator: np.random.Generator) -> dict[str, Any]:
        """Draw inputs for the rule."""
        return draw_for(self.rule, generator)

    def forward(self, **values: Any) -> Any:
        """Run the rule's own forward."""
        return self.rule(*values.values())


def mutants() -> Iterator[Mutant]:
    """Yield every mutant of every rule that has a backward."""
    for rule in RULES.values():
        if rule.constant:
            continue
        for argument in rule.differentiable:
            for what, codes, change in CHANGES:
                backward = _changed(rule, argument, change)
                if backward is not None and _differs(rule, argument, backward):
                    yield Mutant(rule, argument, what, codes, backward)


def _sign(line: ast.expr, upstream: str) -> ast.expr | None:
    return ast.UnaryOp(ast.USub(), line)


def _twice(line: ast.expr, upstream: str) -> ast.expr | None:
    return ast.BinOp(ast.Constant(2.0), ast.Mult(), line)


def _zero(line: ast.expr, upstream: str) -> ast.expr | None:
    return ast.BinOp(ast.Constant(0.0), ast.Mult(), line)


def _not_summed(line: ast.expr, upstream: str) -> ast.expr | None:
    """``rows(dz).sum(axis=0)`` becomes ``rows(dz)``."""
    match line:
        case ast.Call(
            func=ast.Attribute(value=inner, attr="sum"),
            keywords=[ast.keyword(arg="axis", value=ast.Constant(0))],
        ):
            return inner
    return None


def _averaged(line: ast.expr, upstream: str) -> ast.expr | None:
    """``rows(dz).sum(axis=0)`` becomes ``rows(dz).mean(axis=0)``."""
    match line:
        case ast.Call(
            func=ast.Attribute(value=inner, attr="sum"),
            keywords=[ast.keyword(arg="axis", value=ast.Constant(0))] as axes,
        ):
            return ast.Call(ast.Attribute(inner, "mean", ast.Load()), [], axes)
    return None


def _ones(line: ast.expr, upstream: str) -> ast.expr | None:
    class Ones(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            if node.id == upstream:
                return ast.parse(f"np.ones_like({upstream})", mode="eval").body
            return node

    return Ones().visit(line)


def _bare(line: ast.expr, upstream: str) -> ast.expr | None:
    """``da * slope`` becomes ``da``."""
    first = line
    while isinstance(first, ast.BinOp) and isinstance(first.op, ast.Mult | ast.Div):
        first = first.left
    if first is not line and isinstance(first, ast.Name) and first.id == upstream:
        return first
    return None


CHANGES: tuple[tuple[str, tuple[str, ...], Callable[[ast.expr, str], ast.expr | None]], ...] = (
    ("sign", ("wrong-sign",), _sign),
    ("twice", ("constant-factor", "batch-mean-vs-sum"), _twice),
    ("zero", ("zero-gradient",), _zero),
    ("not summed", ("broadcast-not-summed", "wrong-shape"), _not_summed),
    ("averaged", ("batch-mean-vs-sum",), _averaged),
    ("ones", ("ignores-upstream",), _ones),
    ("bare", ("missing-local-derivative", "wrong-local-derivative"), _bare),
)


def _changed(
    rule: Rule, argument: str, change: Callable[[ast.expr, str], ast.expr | None]
) -> Callable[..., dict[str, Any]] | None:
    """Return the rule's backward with the line of one gradient changed."""
    text, upstream = rule.backward_text, f"d{rule.output}"
    sources = []
    for block in blocks(text.lines):
        line = block[0]
        source = source_of_block(block)
        if line.target == f"d{argument}" and not line.loop:
            changed = change(ast.parse(ast.unparse(line.expression), mode="eval").body, upstream)
            if changed is None:
                return None
            source = f"{line.target} = {ast.unparse(ast.fix_missing_locations(changed))}"
        sources.append(source)

    def backward(grad_output: Any, **values: Any) -> dict[str, Any]:
        scope = rule.values(*values.values()) | {upstream: grad_output}
        for source in sources:
            run_source(source, scope)
        return {name: scope[f"d{name}"] for name in rule.differentiable}

    return backward


def _differs(rule: Rule, argument: str, backward: Callable[..., dict[str, Any]]) -> bool:
    """Whether a change makes a difference: twice zero is zero."""
    generator = np.random.default_rng(0)
    inputs = draw_for(rule, generator)
    upstream = generator.normal(size=np.shape(rule(*inputs.values())))
    right = rule.gradients(upstream, *inputs.values())[argument]
    wrong = backward(upstream, **inputs)[argument]
    return np.shape(wrong) != np.shape(right) or not np.allclose(wrong, right)

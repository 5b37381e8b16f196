"""Lines of source under construction: what is computed twice is named once, what is used once is put in place."""

from __future__ import annotations

import ast
import copy
import keyword
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_ATOM = re.compile(r"-?\w[\w.]*(\.shape\[\w+\])?|-?[\d.]+e-\d+")  # ``x``, ``-2``, ``x.T``, ``x.shape[0]``
_MARK = re.compile(r"_v(\d+)_")
_WIDTH = 96  # of a line, where that can be helped
# The longest expression that is put in place of its only use, in letters; less where that makes a line too long.
_LONGEST_INLINE = (60, 36, 0)
_NAMED = 24  # the same where the user gave it a name


@dataclass(eq=False)
class _Block:
    """One assignment, or the statements that fill an array."""

    name: str  # a mark, until lines are rendered
    hint: str
    expression: ast.expr | None
    statements: list[ast.stmt] = field(default_factory=list)

    def marks(self) -> list[str]:
        parts = [self.expression] if self.expression is not None else self.statements
        names = [n.id for part in parts for n in ast.walk(part) if isinstance(n, ast.Name)]
        return list(filter(_MARK.fullmatch, names))


class CodeLines:
    """The lines so far, and the numbers they give for a sample."""

    def __init__(self, scope: Mapping[str, Any]) -> None:
        self.scope: dict[str, Any] = {"np": np, **scope}
        self.env = dict(self.scope)
        self.blocks: list[_Block] = []
        self._known: dict[str, str] = {}
        self._count = 0

    def mark(self) -> str:
        """Return a name that stands for a variable until it has one."""
        self._count += 1
        return f"_v{self._count}_"

    def run(self, expression: ast.expr) -> Any:
        """Return an expression's number."""
        return eval(ast.unparse(expression), self.env)

    def attempt(self, expression: ast.expr, statements: list[ast.stmt] | None = None) -> Any:
        """Return an expression's number after some statements; None if it cannot be computed."""
        try:
            env = dict(self.env) if statements else self.env
            exec(_text(statements or []), env)
            return eval(ast.unparse(expression), env)
        except Exception:  # a spelling that does not fit these shapes
            return None

    def define(self, expression: ast.expr, hint: str, statements: list[ast.stmt] | None = None) -> ast.expr:
        """Add a line, unless the expression is known or too small for one; return how to refer to it."""
        if statements:
            self._add_statements(statements, hint, expression)
            if isinstance(expression, ast.Name):
                return expression
        return expression if _ATOM.fullmatch(ast.unparse(expression)) else self.named(expression, hint)

    def named(self, expression: ast.expr, hint: str) -> ast.Name:
        """Add a line, unless there is one of the expression; return its variable."""
        if isinstance(expression, ast.Name) and is_mark(expression):
            return expression
        text = ast.unparse(expression)
        if text not in self._known:
            name = self._known[text] = self.mark()
            self.blocks.append(_Block(name, hint, expression))
            self.env[name] = self.run(expression)
        return ast.Name(self._known[text])

    def _add_statements(self, statements: list[ast.stmt], hint: str, result: ast.expr) -> None:
        """Add statements; each starts with the assignment of a mark, or changes the one before."""
        exec(_text(statements), self.env)
        for statement in statements:
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                name = statement.targets[0].id
                own = hint if isinstance(result, ast.Name) and result.id == name else ""
                draws = isinstance(self.env[name], (np.random.Generator, np.random.RandomState))
                self.blocks.append(_Block(name, "rng" if draws else own, None, [statement]))
            else:
                self.blocks[-1].statements.append(statement)

    def render(self, results: Mapping[str, ast.Name]) -> tuple[list[str], dict[str, str]]:
        """Return the lines that the results need, and the variable of each: "d" and its key, where that is free."""
        for longest in _LONGEST_INLINE:
            lines, names = self._rendered(results, longest)
            if all(len(line) <= _WIDTH for line in lines):
                break
        return lines, names

    def _rendered(self, results: Mapping[str, ast.Name], longest: int) -> tuple[list[str], dict[str, str]]:
        ends = {end.id: f"d{argument}" for argument, end in reversed(list(results.items()))}
        taken = {*self.scope, *(f"d{argument}" for argument in results)}
        blocks = self._needed(set(ends))
        uses = Counter(name for block in blocks for name in block.marks())
        names: dict[str, ast.expr] = {}
        lines: list[str] = []
        for block in blocks:
            hint = "d" if block.hint in ends.values() else block.hint
            if block.expression is not None:
                expression = simplified(_put(block.expression, names))
                text = ast.unparse(expression)
                most = min(longest, _NAMED) if hint and not hint.startswith("d") else longest
                is_short = uses[block.name] == 1 and len(text) <= most
                if block.name not in ends and (is_short or isinstance(expression, (ast.Name, ast.Constant))):
                    names[block.name] = expression
                    continue
            name = names[block.name] = ast.Name(ends.get(block.name) or _free_name(hint, taken))
            if block.expression is not None:
                lines.append(f"{name.id} = {text}")
            lines += [ast.unparse(_put(statement, names)) for statement in block.statements]
        return lines, {argument: ast.unparse(names[end.id]) for argument, end in results.items()}

    def _needed(self, ends: set[str]) -> list[_Block]:
        needed, blocks = set(ends), []
        for block in reversed(self.blocks):
            if block.name in needed:
                blocks.append(block)
                needed.update(block.marks())
        return blocks[::-1]


def is_mark(name: ast.Name) -> bool:
    """Whether a name is one of these lines' own."""
    return bool(_MARK.fullmatch(name.id))


def _free_name(hint: str, taken: set[str]) -> str:
    name, count = hint if hint not in ("", "d") else f"{hint or 'v'}1", 1
    while name in taken or keyword.iskeyword(name):
        count += 1
        name = f"{hint or 'v'}{count}" if not hint[-1:].isdigit() else f"{hint}_{count}"
    taken.add(name)
    return name


def _text(statements: list[ast.stmt]) -> str:
    return "\n".join(map(ast.unparse, statements))


class _Names(ast.NodeTransformer):
    def __init__(self, names: Mapping[str, ast.expr]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.names.get(node.id, node)


def _put(node: Any, names: Mapping[str, ast.expr]) -> Any:
    """Return a copy with names in the place of marks."""
    return _Names(names).visit(copy.deepcopy(node))


def simplified(node: ast.expr) -> ast.expr:
    """Gather the signs and constant factors of products.

    Examples
    --------
    >>> ast.unparse(simplified(ast.parse("2 * (0.5 * g) * -a", mode="eval").body))
    '-g * a'
    >>> ast.unparse(simplified(ast.parse("-g / b + -(-h)", mode="eval").body))
    '-g / b + h'
    >>> ast.unparse(simplified(ast.parse("g.sum(axis=0, keepdims=True).squeeze(axis=0)", mode="eval").body))
    'g.sum(axis=0)'
    """
    return _Simplifier().visit(node)


class _Simplifier(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        short = re.fullmatch(r"(.*)\.sum\((axis=.+), keepdims=True\)\.squeeze\(\2\)", ast.unparse(node))
        return ast.parse(f"{short[1]}.sum({short[2]})", mode="eval").body if short else node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        return _product(node) if isinstance(node.op, ast.USub) else node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.op, (ast.Mult, ast.Div)):
            return _product(node)
        if isinstance(node.op, (ast.Add, ast.Sub)) and (right := _without_sign(node.right)) is not None:
            return ast.BinOp(node.left, ast.Sub() if isinstance(node.op, ast.Add) else ast.Add(), right)
        return node


def _product(node: ast.expr) -> ast.expr:
    """Gather the sign and the constant of a chain of products and quotients."""
    constant: float = 1
    rest: list[tuple[ast.operator, ast.expr]] = []
    for operator, factor in _factors(node):
        while (opposite := _without_sign(factor)) is not None:
            constant, factor = -constant, opposite
        number = factor.value if isinstance(factor, ast.Constant) else None
        if isinstance(operator, ast.Mult) and isinstance(number, (int, float)):
            constant *= number
        else:
            rest.append((operator, factor))
    result: ast.expr | None = None
    if abs(constant) != 1 or not rest or isinstance(rest[0][0], ast.Div):
        result = ast.Constant(abs(constant))
    for operator, factor in rest:
        result = factor if result is None else ast.BinOp(result, operator, factor)
    assert result is not None
    return _negated(result) if constant < 0 else result


def _factors(node: ast.expr) -> list[tuple[ast.operator, ast.expr]]:
    """Return the factors of a chain of products and quotients, each with its operator."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
        inner = node.right  # a quotient on the right keeps its order: a * (b / c) is not taken apart
        if isinstance(node.op, ast.Mult) and isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Mult):
            return _factors(node.left) + _factors(inner)
        return [*_factors(node.left), (node.op, inner)]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return [(ast.Mult(), ast.Constant(-1)), *_factors(node.operand)]
    return [(ast.Mult(), node)]


def _without_sign(node: ast.expr) -> ast.expr | None:
    """Return the opposite of an expression that starts with a minus, None for another."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return node.operand
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div, ast.MatMult)):
        left = _without_sign(node.left)
        return ast.BinOp(left, node.op, node.right) if left is not None else None
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and node.value < 0:
        return ast.Constant(-node.value)
    return None


def _negated(node: ast.expr) -> ast.expr:
    """Put a minus at the front of a chain of products."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
        return ast.BinOp(_negated(node.left), node.op, node.right)
    return ast.UnaryOp(ast.USub(), node)

"""Lines of source under construction: what is computed twice is named once, what is used once is put in place."""

from __future__ import annotations

import ast
import keyword
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_MARK = re.compile(r"_v(\d+)_")
_WIDTH = 96  # of a line, where that can be helped
_NAMED = 24  # the longest expression that is put in place of its only use although the user gave it a name


@dataclass(eq=False)
class _Block:
    """One assignment, or the statements that fill an array."""

    name: str  # a mark, until lines are rendered
    hint: str
    expression: ast.expr | None
    statements: list[ast.stmt] = field(default_factory=list)


class Lines:
    """The lines so far, and the numbers they give for a sample."""

    def __init__(self, scope: Mapping[str, Any]) -> None:
        self.scope: dict[str, Any] = {"np": np, **scope}
        self.env = dict(self.scope)
        self.taken = {*scope, "np"}
        self.blocks: list[_Block] = []
        self._known: dict[str, str] = {}
        self._count = 0

    # ------------------------------------------------------------------ building

    def mark(self) -> str:
        """Return a name that stands for a variable until it has one."""
        self._count += 1
        return f"_v{self._count}_"

    def is_defined(self, name: ast.Name) -> bool:
        """Whether a name is one of these lines' own."""
        return bool(_MARK.fullmatch(name.id))

    def run(self, expression: ast.expr) -> Any:
        """Return an expression's number."""
        return eval(ast.unparse(expression), self.env)

    def attempt(self, expression: ast.expr, statements: list[ast.stmt] | None = None) -> Any:
        """Return an expression's number after some statements; None if it cannot be computed."""
        try:
            if not statements:
                return self.run(expression)
            env = dict(self.env)
            exec(_text(statements), env)
            return eval(ast.unparse(expression), env)
        except Exception:  # a spelling that does not fit these shapes
            return None

    def define(self, expression: ast.expr, hint: str, statements: list[ast.stmt] | None = None) -> ast.expr:
        """Add a line, unless the expression is known or too small for one; return how to refer to it."""
        if statements:
            self._add_statements(statements, hint, expression)
            if isinstance(expression, ast.Name):
                return expression
        return expression if _is_atom(expression) else self.named(expression, hint)

    def named(self, expression: ast.expr, hint: str) -> ast.Name:
        """Add a line, unless there is one of the expression; return its variable."""
        if isinstance(expression, ast.Name) and self.is_defined(expression):
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

    # ------------------------------------------------------------------ rendering

    def render(
        self, results: Mapping[str, ast.Name], *, cancel: bool = True
    ) -> tuple[list[str], dict[str, str]]:
        """Return the lines that the results need, and the variable of each result.

        Parameters
        ----------
        results
            What to name "d" and the key.
        cancel
            Whether ``g / a * a`` may become ``g``.
        """
        taken = set(self.taken)
        for longest in (60, 36, 0):
            self.taken = set(taken)
            lines, names = self._rendered(results, longest, cancel)
            if all(len(line) <= _WIDTH for line in lines):
                break
        self.taken = taken
        return lines, names

    def _rendered(
        self, results: Mapping[str, ast.Name], longest: int, cancel: bool
    ) -> tuple[list[str], dict[str, str]]:
        ends = {argument: expression.id for argument, expression in results.items()}
        needed = self._needed(set(ends.values()))
        blocks = [b for b in self.blocks if b.name in needed]
        uses = Counter(name for b in blocks for part in _parts(b) for name in _marks(part))
        names: dict[str, ast.expr] = {}
        lines: list[str] = []
        self.taken |= {f"d{argument}" for argument in results}
        filled: set[str] = set()
        for block in blocks:
            if block.expression is None:
                source = _copied_name(block.statements[0])
                if source in filled and uses[source] == 1:  # nobody else needs what it was: no copy
                    names[block.name] = names[source]
                    statements = block.statements[1:]
                else:
                    names[block.name] = ast.Name(self._name_of(block, ends))
                    statements = block.statements
                filled.add(block.name)
                lines += [ast.unparse(_put(_uncopied(statement), names)) for statement in statements]
                continue
            expression = simplified(_put(block.expression, names), cancel=cancel)
            text = ast.unparse(expression)
            limit = min(longest, _NAMED) if block.hint and not block.hint.startswith("d") else longest
            is_small = isinstance(expression, (ast.Name, ast.Constant)) or (
                uses[block.name] == 1 and len(text) <= limit
            )
            if is_small and block.name not in ends.values():
                names[block.name] = expression
            else:
                names[block.name] = ast.Name(self._name_of(block, ends))
                lines.append(f"{ast.unparse(names[block.name])} = {text}")
        return lines, {a: ast.unparse(names[end]) for a, end in ends.items()}

    def _name_of(self, block: _Block, ends: Mapping[str, str]) -> str:
        """Return the variable of a block: ``dW`` for the gradient of W, another name for all else."""
        own = [f"d{argument}" for argument, end in ends.items() if end == block.name]
        if own:
            return own[0]
        return self._free_name("d" if block.hint in {f"d{argument}" for argument in ends} else block.hint)

    def _needed(self, ends: set[str]) -> set[str]:
        needed = set(ends)
        for block in reversed(self.blocks):
            if block.name in needed:
                for part in _parts(block):
                    needed.update(_marks(part))
        return needed

    def _free_name(self, hint: str) -> str:
        name, count = hint if hint not in ("", "d") else f"{hint or 'v'}1", 1
        while name in self.taken or keyword.iskeyword(name):
            count += 1
            name = f"{hint or 'v'}{count}" if not hint[-1:].isdigit() else f"{hint}_{count}"
        self.taken.add(name)
        return name


def _copied_name(statement: ast.stmt) -> str:
    """Return the x of ``d = x.copy()``, or ""."""
    value = statement.value if isinstance(statement, ast.Assign) else None
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "copy":
        return value.func.value.id if isinstance(value.func.value, ast.Name) else ""
    return ""


def _uncopied(statement: ast.stmt) -> ast.stmt:
    """Return ``d = np.zeros(n)`` for ``d = np.zeros(n).copy()``."""
    value = statement.value if isinstance(statement, ast.Assign) else None
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "copy":
        made = value.func.value
        anew = ("np.zeros", "np.ones", "np.full", "np.array")
        if isinstance(made, ast.Call) and ast.unparse(made.func) in anew:
            return ast.parse(f"{ast.unparse(statement.targets[0])} = {ast.unparse(made)}").body[0]  # type: ignore
    return statement


def _parts(block: _Block) -> list[ast.AST]:
    return [block.expression] if block.expression is not None else list(block.statements)


def _marks(node: ast.AST) -> list[str]:
    return [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and _MARK.fullmatch(n.id)]


def _is_atom(expression: ast.expr) -> bool:
    """Whether an expression is as short as a name: ``x``, ``2``, ``x.T``, ``len(x)``, ``x.shape[0]``."""
    if isinstance(expression, (ast.Attribute, ast.Subscript)) and ast.unparse(expression).count("[") <= 1:
        inner = expression.value
        if isinstance(expression, ast.Attribute) or (
            isinstance(inner, ast.Attribute) and inner.attr == "shape"
        ):
            return _is_atom(inner)
    if isinstance(expression, ast.UnaryOp):
        return isinstance(expression.op, ast.USub) and isinstance(
            expression.operand, (ast.Constant, ast.Name)
        )
    return isinstance(expression, (ast.Name, ast.Constant))


def _text(statements: list[ast.stmt]) -> str:
    return "\n".join(map(ast.unparse, statements))


class _Names(ast.NodeTransformer):
    def __init__(self, names: Mapping[str, ast.expr]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.names.get(node.id, node)


def _put(node: Any, names: Mapping[str, ast.expr]) -> Any:
    """Return a copy with names in the place of marks."""
    mode = "exec" if isinstance(node, ast.stmt) else "eval"
    tree: Any = ast.parse(ast.unparse(node), mode=mode)
    return _Names(names).visit(tree.body[0] if mode == "exec" else tree.body)


# ---------------------------------------------------------------------- simplifying products and sums


def simplified(node: ast.expr, *, cancel: bool = True) -> ast.expr:
    """Return an expression with its constant factors and signs gathered, and what cancels left out.

    Examples
    --------
    >>> ast.unparse(simplified(ast.parse("2 * (0.5 * g) * -a", mode="eval").body))
    '-g * a'
    >>> ast.unparse(simplified(ast.parse("-g / b + -(-h)", mode="eval").body))
    '-g / b + h'
    """
    return _Simplifier(cancel).visit(node)


class _Simplifier(ast.NodeTransformer):
    def __init__(self, cancel: bool) -> None:
        self.cancel = cancel

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "squeeze":
            summed = node.func.value
            axis, kept = ast.unparse(node.keywords[0]), "keepdims=True"
            if isinstance(summed, ast.Call) and [ast.unparse(k) for k in summed.keywords] == [axis, kept]:
                return ast.Call(summed.func, summed.args, summed.keywords[:1])
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        return _product(node, self.cancel) if isinstance(node.op, ast.USub) else node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.op, (ast.Mult, ast.Div)):
            return _product(node, self.cancel)
        if isinstance(node.op, ast.Add):
            if (right := _without_sign(node.right)) is not None:
                return ast.BinOp(node.left, ast.Sub(), right)
        elif isinstance(node.op, ast.Sub) and (right := _without_sign(node.right)) is not None:
            return ast.BinOp(node.left, ast.Add(), right)
        return node


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


def _product(node: ast.expr, cancel: bool) -> ast.expr:
    """Gather the sign and the constant of a chain of products and quotients."""
    factors: list[tuple[bool, ast.expr]] = []  # (divides, factor)
    _collect(node, factors)
    sign, constant = 1, 1.0
    whole = True  # whether the constant is an integer
    rest: list[tuple[bool, ast.expr]] = []
    for divides, factor in factors:
        while (opposite := _without_sign(factor)) is not None:
            sign, factor = -sign, opposite
        number = factor.value if isinstance(factor, ast.Constant) else None
        if not divides and isinstance(number, (int, float)) and not isinstance(number, bool):
            constant *= number
            whole &= isinstance(number, int)
        elif not (divides and number == 1) and not (cancel and _cancelled(rest, divides, factor)):
            rest.append((divides, factor))
    result: ast.expr | None = None
    if constant != 1 or not rest or rest[0][0]:
        result = ast.Constant(int(constant) if whole or constant == 1 else constant)
    for divides, factor in rest:
        result = factor if result is None else ast.BinOp(result, ast.Div() if divides else ast.Mult(), factor)
    assert result is not None
    return _negated(result) if sign < 0 else result


def _cancelled(rest: list[tuple[bool, ast.expr]], divides: bool, factor: ast.expr) -> bool:
    """Take the opposite of a factor away, if it is there."""
    text = ast.unparse(factor)
    for k, (other, known) in enumerate(rest):
        if other != divides and k and ast.unparse(known) == text:  # the first may give the product its shape
            del rest[k]
            return True
    return False


def _negated(node: ast.expr) -> ast.expr:
    """Put a minus at the front of a chain of products."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
        return ast.BinOp(_negated(node.left), node.op, node.right)
    return ast.UnaryOp(ast.USub(), node)


def _collect(node: ast.expr, factors: list[tuple[bool, ast.expr]]) -> None:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        _collect(node.left, factors)
        # a quotient on the right keeps its order: a * (b / c) is not taken apart
        inner = node.right
        if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Mult):
            _collect(inner, factors)
        else:
            factors.append((False, inner))
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        _collect(node.left, factors)
        factors.append((True, node.right))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        factors.append((False, ast.Constant(-1)))
        _collect(node.operand, factors)
    else:
        factors.append((False, node))

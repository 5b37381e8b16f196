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

from handgrad.checking.gradient_code.simplification import simplified

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


class CodeLines:
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
        for longest in _LONGEST_INLINE:
            self.taken = taken | {f"d{argument}" for argument in results}
            lines, names = self._rendered(results, longest, cancel)
            if all(len(line) <= _WIDTH for line in lines):
                break
        self.taken = taken
        return lines, names

    def _rendered(
        self, results: Mapping[str, ast.Name], longest: int, cancel: bool
    ) -> tuple[list[str], dict[str, str]]:
        ends = {end.id: f"d{argument}" for argument, end in reversed(list(results.items()))}
        blocks = self._needed(set(ends))
        uses = Counter(name for b in blocks for part in _parts(b) for name in _marks(part))
        names: dict[str, ast.expr] = {}
        lines: list[str] = []
        filled: set[str] = set()

        def own_name(block: _Block) -> ast.Name:
            hint = "d" if block.hint in ends.values() else block.hint
            return ast.Name(ends.get(block.name) or self._free_name(hint))

        for block in blocks:
            if block.expression is None:
                source, statements = _copied_name(block.statements[0]), block.statements
                if source in filled and uses[source] == 1:  # nobody else needs what it was: no copy
                    names[block.name], statements = names[source], statements[1:]
                else:
                    names[block.name] = own_name(block)
                filled.add(block.name)
                lines += [ast.unparse(_put(_uncopied(statement), names)) for statement in statements]
                continue
            expression = simplified(_put(block.expression, names), cancel=cancel)
            text = ast.unparse(expression)
            is_named = block.hint and not block.hint.startswith("d")
            is_short = uses[block.name] == 1 and len(text) <= (min(longest, _NAMED) if is_named else longest)
            if (is_short or isinstance(expression, (ast.Name, ast.Constant))) and block.name not in ends:
                names[block.name] = expression
            else:
                name = names[block.name] = own_name(block)
                lines.append(f"{name.id} = {text}")
        return lines, {a: ast.unparse(names[end.id]) for a, end in results.items()}

    def _needed(self, ends: set[str]) -> list[_Block]:
        needed, blocks = set(ends), []
        for block in reversed(self.blocks):
            if block.name in needed:
                blocks.append(block)
                needed.update(name for part in _parts(block) for name in _marks(part))
        return blocks[::-1]

    def _free_name(self, hint: str) -> str:
        name, count = hint if hint not in ("", "d") else f"{hint or 'v'}1", 1
        while name in self.taken or keyword.iskeyword(name):
            count += 1
            name = f"{hint or 'v'}{count}" if not hint[-1:].isdigit() else f"{hint}_{count}"
        self.taken.add(name)
        return name


def _copied(statement: ast.stmt) -> ast.expr | None:
    """Return the x of ``d = x.copy()``."""
    value = statement.value if isinstance(statement, ast.Assign) else None
    is_copy = (
        isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "copy"
    )
    return value.func.value if is_copy else None  # type: ignore[union-attr]


def _copied_name(statement: ast.stmt) -> str:
    copied = _copied(statement)
    return copied.id if isinstance(copied, ast.Name) else ""


def _uncopied(statement: ast.stmt) -> ast.stmt:
    """Return ``d = np.zeros(n)`` for ``d = np.zeros(n).copy()``."""
    made = _copied(statement)
    if isinstance(made, ast.Call) and ast.unparse(made.func) in (
        "np.zeros",
        "np.ones",
        "np.full",
        "np.array",
    ):
        assert isinstance(statement, ast.Assign)
        return ast.parse(f"{ast.unparse(statement.targets[0])} = {ast.unparse(made)}").body[0]
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

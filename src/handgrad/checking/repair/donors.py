"""Expressions of the file itself: what is needed in one place often stands in another."""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Iterator
from typing import Any

import numpy as np

from handgrad.checking.repair.guard import OutOfTimeError
from handgrad.checking.repair.source import Source
from handgrad.checking.repair.templates import fill
from handgrad.checking.repair.trace import Facts
from handgrad.checking.repair.trial import LONGEST_RUN, Bench

Donor = tuple[ast.expr, Any]  # an expression and what it is worth


class Donors:
    """The file's expressions that mean something at a statement, and what they are worth there."""

    def __init__(self, bench: Bench, facts: Facts) -> None:
        self._bench, self._facts = bench, facts
        self._known: dict[int, list[Donor]] = {}

    @property
    def names(self) -> dict[str, Any]:
        """A copy of the module's names."""
        return self._bench.names()

    def at(self, statement: ast.stmt) -> list[Donor]:
        """Return the expressions whose names are all in scope at a statement, each text once."""
        if id(statement) not in self._known:
            scope = self._facts.scopes.get(id(statement), {})
            self._known[id(statement)] = list(self._worth(scope))
        return self._known[id(statement)]

    def _worth(self, scope: dict[str, Any]) -> Iterator[Donor]:
        names = self._bench.names()
        seen = set()
        for node in _candidates(self._bench.source, scope):
            text = ast.unparse(node)
            if text in seen:
                continue
            seen.add(text)
            used = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)} & scope.keys()
            try:
                own = copy.deepcopy({name: scope[name] for name in used})  # it may change what it is given
                with self._bench.guard.limit(LONGEST_RUN):
                    value = eval(compile(text, "<donor>", "eval"), {**names, **own})
            except (Exception, OutOfTimeError):
                continue
            yield node, value
            if isinstance(value, tuple):
                yield from ((fill("A[K]", A=node, K=k), part) for k, part in enumerate(value))


def _candidates(source: Source, scope: dict[str, Any]) -> Iterator[ast.expr]:
    known = scope.keys() | source.globals.keys() | vars(builtins).keys()
    forward = source.parameters(source.forward)
    if source.forward and all(name in scope for name in forward):
        yield ast.parse(f"{source.forward}({', '.join(forward)})", mode="eval").body
    closed = source.units.keys() - source.donating
    for unit in sorted(source.donating, key=list(source.units).index):
        for node in ast.walk(source.units[unit]):
            if isinstance(node, ast.Name) and node.id in scope:
                continue
            if not isinstance(
                node, ast.BinOp | ast.Call | ast.Compare | ast.Subscript | ast.Attribute | ast.Name
            ):
                continue
            if isinstance(getattr(node, "ctx", None), ast.Load | None):
                names = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
                if names <= known and not (names - scope.keys()) & closed:
                    yield node


def call_templates(source: Source) -> list[str]:
    """Return what the file's calls do to their first argument: ``"np.exp(A)"``, ``"A.cumsum(axis=1)"``, ``"sig(A)"``."""
    found = {}
    for name, unit in source.units.items():
        for node in ast.walk(unit) if name in source.donating else ():
            template = _as_template(node)
            if template is not None:
                found[template] = True
    kin = {
        "np.sin(A)": "np.cos(A)",
        "np.cos(A)": "np.sin(A)",
        "np.sinh(A)": "np.cosh(A)",
        "np.log(A)": "np.exp(A)",
    }
    return [*found, *(kin[template] for template in found if template in kin)]


def _as_template(node: ast.AST) -> str | None:
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        slices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if any(isinstance(item, ast.Slice) for item in slices) and _constant(node.slice):
            return f"A[{ast.unparse(node.slice)}]"
    if not isinstance(node, ast.Call) or any(isinstance(argument, ast.Starred) for argument in node.args):
        return None
    rest = [*node.args[1:], *(keyword.value for keyword in node.keywords)]
    if isinstance(node.func, ast.Attribute) and not _is_numpy(node.func.value):
        if node.func.attr in ("backward", "copy", "sum", "mean") or not all(
            map(_constant, [*node.args, *rest])
        ):
            return None
        return ast.unparse(ast.Call(fill(f"A.{node.func.attr}"), node.args, node.keywords))
    if not node.args or not all(map(_constant, rest)) or not isinstance(node.func, ast.Name | ast.Attribute):
        return None
    name = ast.unparse(node.func)
    if name in (
        "len",
        "range",
        "int",
        "float",
        "tuple",
        "list",
        "np.asarray",
        "np.array",
        "np.zeros_like",
        "np.zeros",
    ):
        return None
    if isinstance(node.func, ast.Attribute) and not hasattr(np, node.func.attr):
        return None
    return ast.unparse(ast.Call(node.func, [fill("A"), *node.args[1:]], node.keywords))


def _is_numpy(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("np", "numpy")


def _constant(node: ast.expr) -> bool:
    return not any(isinstance(inner, ast.Name) for inner in ast.walk(node))

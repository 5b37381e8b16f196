"""The value of every expression of a backward when it runs, and the names in scope at each statement."""

from __future__ import annotations

import ast
import copy
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from handgrad.checking.repair.module_source import compile_unit
from handgrad.checking.repair.run_limits import OutOfTimeError
from handgrad.checking.repair.sandbox import LONGEST_RUN, Sandbox
from handgrad.checking.subject import CheckError

RUN = 30.0  # microseconds for a run of a backward that does nothing
LARGEST = 200_000  # entries; what is larger is kept without a copy


@dataclass
class Observed:
    """What one run of a backward shows.

    Attributes
    ----------
    values
        The first value of each expression, by the id of its node.
    counts
        How often it was evaluated.
    scopes
        The local names before each statement's first run, by the id of its node.
    """

    values: dict[int, Any] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)
    scopes: dict[int, dict[str, Any]] = field(default_factory=dict)

    @property
    def work(self) -> float:
        """How long a run takes, in microseconds of a usual machine."""
        sizes = {node: np.size(value) for node, value in self.values.items() if isinstance(value, np.ndarray)}
        return RUN + sum(times * (2 + 0.01 * sizes.get(node, 0)) for node, times in self.counts.items())

    def see(self, node: int, value: Any) -> Any:
        """Keep a value of an expression."""
        self.counts[node] = self.counts.get(node, 0) + 1
        if node not in self.values:
            self.values[node] = _kept(value)
        return value

    def enter(self, node: int, names: dict[str, Any]) -> None:
        """Keep the names in scope at a statement."""
        if node not in self.scopes:
            self.scopes[node] = {name: _kept(value) for name, value in names.items()}


def observe(sandbox: Sandbox) -> Observed:
    """Run a backward once with its expressions observed; forward runs unobserved."""
    observed = Observed()
    source = sandbox.source
    codes = dict(source.codes)
    for name in source.reachable(source.backward):
        codes[name] = compile_unit(_watched(source.units[name]), str(source.path))
    watching = [False]

    def see(node: int, value: Any) -> Any:
        return observed.see(node, value) if watching[0] else value

    def enter(node: int, names: dict[str, Any]) -> None:
        if watching[0]:
            observed.enter(node, names)

    subject = sandbox.assemble(codes, {"__see__": see, "__enter__": enter})
    inner = subject.backward

    def backward(*args: Any, **kwargs: Any) -> Any:
        watching[0] = True
        return inner(*args, **kwargs)

    with suppress(CheckError, OutOfTimeError, MemoryError), sandbox.guard.limit(LONGEST_RUN):
        replace(subject, backward=backward).run_backward(sandbox.target.upstream, sandbox.target.inputs)
    # where it failed, what was seen before that is kept
    sandbox.running = observed.work
    return observed


def _kept(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.size <= LARGEST:
        return value.copy()
    if isinstance(value, tuple):
        return tuple(_kept(item) for item in value)
    return value


def _watched(unit: ast.stmt) -> ast.stmt:
    """Return a copy of a unit whose expressions and statements tell the observed what they are worth."""
    for node in ast.walk(unit):
        node.original = id(node)  # type: ignore[attr-defined]  # survives the copy (`key` is a field of some)
    watched: ast.stmt = _Watching().visit(copy.deepcopy(unit))
    return ast.fix_missing_locations(watched)


class _Watching(ast.NodeTransformer):
    """Wraps what is evaluated, and leaves alone what is a place to store or a module's name."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and not isinstance(node, ast.ClassDef | ast.Module):
                setattr(node, name, [part for statement in block for part in (_entry(statement), statement)])
        return _seen(node) if isinstance(node, ast.expr) and _has_value(node) else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Leave the name of what is called alone, but watch what a method belongs to."""
        function = node.func
        if isinstance(function, ast.Attribute):
            function.value = self.visit(function.value)
        elif not isinstance(function, ast.Name):
            node.func = self.visit(function)
        node.args = [self.visit(argument) for argument in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        return _seen(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Leave defaults, decorators and annotations alone."""
        body = [self.visit(statement) for statement in node.body]
        node.body = [part for statement in body for part in (_entry(statement), statement)]
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Watch the value only."""
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        """Leave texts alone."""
        return node


def _seen(node: ast.expr) -> ast.expr:
    """Return ``__see__(key, node)``."""
    return ast.Call(ast.Name("__see__", ast.Load()), [ast.Constant(getattr(node, "original", 0)), node], [])


def _has_value(node: ast.expr) -> bool:
    if isinstance(node, ast.Slice | ast.Starred | ast.JoinedStr | ast.FormattedValue | ast.NamedExpr):
        return False
    if isinstance(node, ast.Tuple) and any(isinstance(item, ast.Slice) for item in node.elts):
        return False
    return isinstance(getattr(node, "ctx", None), ast.Load | None)


def _entry(statement: ast.AST) -> ast.stmt:
    locals_ = ast.Call(ast.Name("locals", ast.Load()), [], [])
    key = ast.Constant(getattr(statement, "original", 0))
    return ast.Expr(ast.Call(ast.Name("__enter__", ast.Load()), [key, locals_], []))

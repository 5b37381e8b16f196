"""The edits of the first wrong line that give it its right value: evaluated there, without a run of backward."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from handgrad.checking.intermediates import FirstWrong, RightNumbers
from handgrad.checking.repair.expressions import Observed, is_end, is_float
from handgrad.checking.repair.guard import OutOfTimeError
from handgrad.checking.repair.module_source import Change
from handgrad.checking.repair.sandbox import Sandbox
from handgrad.checking.subject import Array
from handgrad.tolerance import SAME, close

LIMIT = 0.5  # seconds for one edit: it evaluates one expression
EVALUATED = 20.0  # microseconds


def fitting(
    sandbox: Sandbox, observed: Observed, first: FirstWrong, changes: Iterable[Change]
) -> Iterator[Change]:
    """Yield those of some changes with which the first wrong line has its right value.

    Where it adds to an array in a loop, that is what it has added in the end.
    """
    line = _Line.of(sandbox, observed, first)
    got = first.numbers.got if first.numbers is not None else 0.0
    least = SAME * float(np.abs(got).max(initial=0))  # a right value of zero is what is left of others
    for change in changes if line is not None else ():
        assert line is not None
        if all(id(edit.old) in line.nodes and isinstance(edit.new, ast.expr) for edit in change.edits):
            sandbox.guard.spend(EVALUATED * len(line.passes))
            with sandbox.source.edited(change.edits):
                value = line.value()
            if value is not None and close(value, line.right, least=least):
                yield change


class _Line:
    """The expression of the first wrong line that has its value, and the names in scope when it ran."""

    def __init__(self, sandbox: Sandbox, node: ast.expr, passes: list[dict[str, Any]], right: Array) -> None:
        self.sandbox, self.node, self.passes, self.right = sandbox, node, passes, right
        self.nodes = {id(each) for each in ast.walk(node)}
        self.holder, self.field = sandbox.source.parents[id(node)]
        field = getattr(self.holder, self.field)
        self.number = field.index(node) if isinstance(field, list) else None

    @classmethod
    def of(cls, sandbox: Sandbox, observed: Observed, first: FirstWrong) -> _Line | None:
        """Return the line, or None where it computes something else than was seen to be wrong."""
        if first.numbers is None:
            return None
        right, got, _, times, _ = first.numbers
        for statement in sandbox.source.statements_at(first.line):
            passes = observed.passes.get(id(statement), [])[: times + 1]
            if not passes:
                continue
            if isinstance(statement, ast.AugAssign):
                return cls._added(sandbox, statement, passes, first.numbers)
            for node in (each for each in ast.walk(statement) if isinstance(each, ast.expr)):
                is_value = is_end(sandbox.source, node) or isinstance(
                    sandbox.source.parents[id(node)][0], ast.Call
                )
                seen = observed.values.get(id(node))
                if is_value and is_float(seen) and close(seen, got):
                    line = cls(sandbox, node, passes[-1:], right)
                    value = line.value()
                    return line if value is not None and close(value, got) else None
        return None

    @classmethod
    def _added(
        cls, sandbox: Sandbox, statement: ast.AugAssign, passes: list[dict[str, Any]], numbers: RightNumbers
    ) -> _Line | None:
        """Return what is added in all passes of a loop, to zeros, or else in the last of them."""
        if not isinstance(statement.op, ast.Add):
            return None
        for some in (passes, passes[-1:]):
            line = cls(sandbox, statement.value, some, numbers.value)
            value = line.value()
            if value is None or value.shape != numbers.value.shape:
                return None
            if close(value, numbers.got):
                return line
        line.right = value + numbers.value - numbers.got
        adds_nothing = np.abs(line.right).max(initial=0) <= SAME**2 * np.abs(value).max(initial=0)
        return None if adds_nothing else line  # the line should not be there

    def value(self) -> Any:
        """Return the expression's value as it is now, the sum of those where it is added; None where it has none."""
        now = getattr(self.holder, self.field)
        tree = ast.fix_missing_locations(ast.Expression(now if self.number is None else now[self.number]))
        source = self.sandbox.source
        try:
            code = compile(tree, str(source.path), "eval")
            with self.sandbox.running_codes(dict(source.codes)), self.sandbox.guard.limit(LIMIT):
                values = [np.asarray(eval(code, self.sandbox.names, dict(each))) for each in self.passes]
        except (Exception, OutOfTimeError):  # whatever an edit or the author's functions raise
            return None
        if any(each.dtype.kind not in "fiub" for each in values):  # a generator, whose sum is left out
            return None
        return sum(values[1:], values[0]) if len({each.shape for each in values}) == 1 else None

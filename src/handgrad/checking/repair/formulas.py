"""Replacing an expression by another small one over the names in scope.

Where backward is linear in an expression, the value it should have had is known (:mod:`.holes`), and the
expressions with that value are looked up. Elsewhere, in loops and inside nonlinear functions, they are tried.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any

import numpy as np

from handgrad.checking.repair.donors import Donors
from handgrad.checking.repair.holes import Hole
from handgrad.checking.repair.places import Place, dimensions, is_float
from handgrad.checking.repair.source import Change, Edit, Source
from handgrad.checking.repair.table import Entry, Table, scalings
from handgrad.checking.repair.templates import fill
from handgrad.checking.repair.trial import Bench
from handgrad.checking.subject import Array

MOST_CHANGES = 80  # that one search proposes
BUILDING = 0.4  # seconds for one table
NEAR = 6.0  # what costs less needs no deeper search
FARTHEST = 13.0  # what costs more has the right value by chance as often as not
BASE = 2.0  # what a formula costs before its tokens are counted


def formula_changes(holes: Sequence[Hole], donors: Donors, bench: Bench, until: float) -> list[Change]:
    """Return replacements of one expression that should make gradients right, the nearest first.

    Deeper expressions are looked for only where no shallow one is found.
    """
    source, effort = bench.source, bench.effort
    tables: dict[int, Table] = {}
    found: dict[tuple[int, str], Change] = {}
    for search in (_with_value, _undone_once, _undone_twice):
        for hole in holes:
            statement = id(source.statement_of(hole.place.node))
            if effort.spent > until:
                break
            if statement not in tables:
                most = min(until, effort.spent + BUILDING)
                leaves = _leaves(hole.place, donors)
                tables[statement] = Table(leaves, source, donors.names, hole.tolerance, effort, until=most)
            old = source.segment(hole.place.node)
            for node, more in search(hole, tables[statement]):
                new = ast.unparse(ast.fix_missing_locations(node))
                cost = (
                    BASE + 0.25 * (_tokens_changed(old, new) + more) + 0.1 * _depth(source, hole.place.node)
                )
                found.setdefault((id(hole.place.node), new), Change((Edit(hole.place.node, node),), cost))
        if any(change.cost <= NEAR for change in found.values()) or (found and search is _undone_once):
            break
    near = [change for change in found.values() if change.cost <= FARTHEST]
    return sorted(near, key=lambda change: change.cost)[:MOST_CHANGES]


def tried_changes(places: list[Place], donors: Donors) -> Iterator[Change]:
    """Yield replacements to be tried for expressions that are evaluated several times."""
    for place in places:
        if (
            not is_float(place.value)
            or isinstance(place.node, ast.Constant)
            or place.facts.counts[id(place.node)] < 2
        ):
            continue
        for other, value, cost in _leaves(place, donors)[:30]:
            for template in _TRIED:
                if _shape(template, place.value, value) == np.shape(place.value):
                    new = fill(template, A=place.node, B=other)
                    yield Change((Edit(place.node, new),), BASE + 0.25 * (cost + len(_tokens(template))))


_TRIED = (
    "B", "A * B", "A + B", "A - B", "B - A", "A @ B", "B @ A", "A @ B.T", "B.T @ A", "A * (1 - B)",
    "A * (1 - B ** 2)", "A * (B > 0)", "A / B",
)  # fmt: skip


def _shape(template: str, a: Any, b: Any) -> tuple[int, ...] | None:
    try:
        return np.shape(eval(template, {"A": np.asarray(a), "B": np.asarray(b)}))
    except (ValueError, TypeError):
        return None


def _leaves(place: Place, donors: Donors) -> list[tuple[ast.expr, Any, float]]:
    """Return the names in scope at an expression, and the expressions of the file that mean something there."""
    leaves: list[tuple[ast.expr, Any, float]] = [
        (ast.Name(name, ast.Load()), value, 1.0)
        for name, value in place.scope.items()
        if dimensions(value) >= 0
    ]
    for node, value in donors.at(place.source.statement_of(place.node)):
        if dimensions(value) >= 0:
            calls = sum(isinstance(inner, ast.Call) for inner in ast.walk(node))
            leaves.append((node, value, 1 + 0.1 * len(_tokens(ast.unparse(node))) + 0.5 * calls))
    return sorted(leaves, key=lambda leaf: leaf[2])


def _with_value(hole: Hole, table: Table) -> Iterator[tuple[ast.expr, float]]:
    """Yield the table's expressions that would do, and multiples of them, with their cost."""
    if hole.target is None:
        shape = table.shape(hole.start.shape)
        for k in np.flatnonzero(hole.suits(shape.rows)).tolist():
            yield shape.entries[k].node, shape.entries[k].cost
        for k, factor in hole.multiples(shape.rows):
            yield from _scaled(shape.entries[k], factor, hole)
        return
    for entry in table.find(hole.target):
        yield entry.node, entry.cost
    for entry, factor in table.shape(hole.target.shape).multiples(hole.target):
        yield from _scaled(entry, factor, hole)


def _scaled(entry: Entry, factor: float, hole: Hole) -> Iterator[tuple[ast.expr, float]]:
    for template, parts, cost in scalings(factor, hole.place.scope):
        yield fill(template, **dict(zip("AB", (entry.node, *parts), strict=False))), entry.cost + cost


def _undone_once(hole: Hole, table: Table) -> Iterator[tuple[ast.expr, float]]:
    """Yield ``outer ∘ inner`` where the outer operand is near and the inner one is in the table."""
    if hole.target is not None:
        yield from _undone(hole.target, table, table.near[:150])
        return
    shape = table.shape(hole.start.shape)
    trying = 20 + 1e-3 * shape.rows.size * len(hole.wanted)
    for outer in table.leaves[:20]:
        if not _fits(outer.value.shape, hole.start.shape):
            continue
        table.effort.spend(3 * trying)
        a = np.broadcast_to(outer.value, hole.start.shape).ravel()
        for template, rows in (
            ("A * B", a * shape.rows),
            ("A + B", a + shape.rows),
            ("A - B", a - shape.rows),
        ):
            for place in np.flatnonzero(hole.suits(rows)).tolist():
                entry = shape.entries[place]
                yield fill(template, A=outer.node, B=entry.node), outer.cost + entry.cost + 1


def _undone_twice(hole: Hole, table: Table) -> Iterator[tuple[ast.expr, float]]:
    """Yield ``outer ∘ (middle ∘ inner)``."""
    if hole.target is None:
        return
    for outer in table.leaves[:30]:
        for template, rest in _apart(hole.target, outer, table):
            for node, cost in _undone(rest, table, table.leaves[:30]):
                yield fill(template, A=outer.node, B=node), cost + outer.cost + 1


def _undone(target: Array, table: Table, outers: list[Entry]) -> Iterator[tuple[ast.expr, float]]:
    for outer in outers:
        for template, rest in _apart(target, outer, table):
            for entry in table.find(rest):
                if template == "B / A" and entry.is_condition:
                    continue
                risk = table.risk(outer) if template == "B / A" else 0.0
                yield fill(template, A=outer.node, B=entry.node), outer.cost + entry.cost + 1 + (risk or 0.0)


def _apart(target: Array, outer: Entry, table: Table) -> Iterator[tuple[str, Array]]:
    """Yield what is left of a value when one operand of its last operation is taken away."""
    a = outer.value
    if not _fits(a.shape, target.shape):
        return
    yield "A + B", target - a
    yield "A - B", a - target
    if np.all(a != 0):
        yield "A * B", target / a
        if table.risk(outer) is not None:
            yield "B / A", target * a


def _fits(shape: tuple[int, ...], whole: tuple[int, ...]) -> bool:
    """Whether a shape broadcasts to another."""
    try:
        return np.broadcast_shapes(shape, whole) == whole
    except ValueError:
        return False


def _depth(source: Source, node: ast.AST) -> int:
    depth = 0
    while not isinstance(node, ast.stmt):
        node, depth = source.parents[id(node)][0], depth + 1
    return depth


def _tokens(text: str) -> list[str]:
    return re.findall(r"\w+|[^\w\s]", text)


def _tokens_changed(old: str, new: str) -> float:
    """Return how many tokens stand in one text and not in the other."""
    a, b = _tokens(old), _tokens(new)
    changes = SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    return float(sum(max(i2 - i1, j2 - j1) for tag, i1, i2, j1, j2 in changes if tag != "equal"))

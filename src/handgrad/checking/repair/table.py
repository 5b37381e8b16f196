"""Small expressions over the names in scope, to be found by what they are worth."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from handgrad.checking.effort import Effort
from handgrad.checking.repair.donors import call_templates
from handgrad.checking.repair.places import dimensions, is_float, sizes
from handgrad.checking.repair.source import Source
from handgrad.checking.repair.templates import fill
from handgrad.checking.subject import Array

MOST = 8_000  # expressions in a table
LARGEST = 4_096  # entries of a value
RISK = 9.0  # what it costs to divide by what may be zero
SMALL = 1e-12  # what is all below is no use


@dataclass(frozen=True)
class Entry:
    """An expression, and what it is worth; ``parts`` fill the template."""

    value: Array
    template: str
    parts: tuple[Entry | ast.expr, ...]
    cost: float
    is_condition: bool = False

    @property
    def node(self) -> ast.expr:
        """The expression."""
        nodes = [part.node if isinstance(part, Entry) else part for part in self.parts]
        return fill(self.template, **dict(zip("ABC", nodes, strict=False)))


class Table:
    """Expressions up to a size over leaves, each value once."""

    def __init__(
        self,
        leaves: Sequence[tuple[ast.expr, Any, float]],
        source: Source,
        names: Mapping[str, Any],
        tolerance: float,
        effort: Effort,
        *,
        until: float,
    ) -> None:
        self.entries: list[Entry] = []
        self._seen: set[tuple[Any, ...]] = set()
        self._tolerance, self.effort, self._until = tolerance, effort, until
        self._shapes: dict[tuple[int, ...], _Shape] = {}
        self._names = names
        self._denominators = {
            ast.unparse(node.right)
            for node in ast.walk(source.tree)
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
        }
        for node, value, cost in leaves:
            self._add(value, "A", (node,), cost)
        self.leaves = list(self.entries)
        near = self.leaves[:24]
        templates = ["1 - A", "A ** 2", "1 / A", "A > 0", "np.sign(A)", "np.sqrt(A)", *call_templates(source)]
        for entry in near:
            self._alone(entry, list(dict.fromkeys(templates)))
        self.near = list(self.entries)
        self._idioms(near)
        self._pairs(near, near)
        for entry in self.entries[len(self.near) : len(self.near) + 600]:
            self._reduced(entry)
        self._pairs(near[:12], self.near[len(self.leaves) :][:300])

    def risk(self, entry: Entry) -> float | None:
        """Return what it costs to divide by a value: more where it may be zero, None for a condition."""
        if entry.is_condition:
            return None
        if entry.value.ndim == 0 or ast.unparse(ast.fix_missing_locations(entry.node)) in self._denominators:
            return 0.0
        return RISK / 3 if np.all(entry.value > 0) and entry.template != "A ** 2" else RISK

    def _full(self) -> bool:
        return len(self.entries) >= MOST or self.effort.spent > self._until

    def _add(self, value: Any, template: str, parts: tuple[Any, ...], cost: float) -> None:
        self.effort.spend(14)
        if dimensions(value) < 0 or np.size(value) > LARGEST or np.size(value) == 0:
            return
        self.effort.spend(0.01 * np.size(value))
        array = np.asarray(value)
        number = array.astype(np.float64)
        if not np.isfinite(number).all() or np.all(np.abs(number) < SMALL):
            return
        key = (array.shape, number.astype(np.float32).tobytes())
        if key not in self._seen:
            self._seen.add(key)
            is_condition = array.dtype == bool
            self.entries.append(Entry(number, template, parts, cost + is_condition, is_condition))

    def _alone(self, entry: Entry, templates: Sequence[str]) -> None:
        """Add what one operation makes of a value."""
        a = entry.value
        self._reduced(entry)
        if a.ndim == 2:
            self._add(a.T, "A.T", (entry,), entry.cost + 1)
        if a.ndim == 1:
            self._add(a[:, None], "A[:, None]", (entry,), entry.cost + 1.5)
        if a.ndim > 2:
            self._add(a.reshape(-1, a.shape[-1]), "A.reshape(-1, A.shape[-1])", (entry,), entry.cost + 3)
            self._add(np.swapaxes(a, -1, -2), "np.swapaxes(A, -1, -2)", (entry,), entry.cost + 2)
        for template in templates:
            if template in ("1 / A", "np.sqrt(A)") and not np.all(a > 0):
                continue
            if template in ("A > 0", "np.sign(A)") and (a.ndim == 0 or entry.is_condition):
                continue
            try:
                value = eval(_code(template), {**self._names, "A": a.copy()})
            except Exception:  # what a function of the user's raises for this value: it is no candidate
                continue
            self._add(value, template, (entry,), entry.cost + (RISK if template == "1 / A" else 1.5))

    def _idioms(self, entries: Sequence[Entry]) -> None:
        """Add what softmax and normalisation do to a gradient: the part along a value is taken out."""
        for left in entries:
            for right in entries:
                a, b = left.value, right.value
                if left is right or a.shape != b.shape or a.ndim == 0 or self._full():
                    continue
                for axis in range(a.ndim):
                    along = (a * b).sum(axis=axis, keepdims=True)
                    cost = left.cost + right.cost + 5
                    mean = f"(A * B).mean(axis={axis}, keepdims=True)"
                    own = a.mean(axis=axis, keepdims=True)
                    rest = a - b * along / a.shape[axis]
                    both = (left, right)
                    self._add(
                        b * (a - along), f"B * (A - (A * B).sum(axis={axis}, keepdims=True))", both, cost
                    )
                    self._add(rest, f"A - B * {mean}", both, cost)
                    self._add(
                        rest - own, f"A - A.mean(axis={axis}, keepdims=True) - B * {mean}", both, cost + 2
                    )

    def _reduced(self, entry: Entry) -> None:
        a = entry.value
        if a.ndim == 0:
            return
        self._add(a.sum(), "A.sum()", (entry,), entry.cost + 1.5)
        for axis in range(a.ndim):
            for name in ("sum", "mean"):
                kept = getattr(a, name)(axis=axis, keepdims=True)
                more = 2 + 0.5 * (name == "mean")
                self._add(kept, f"A.{name}(axis={axis}, keepdims=True)", (entry,), entry.cost + more + 0.5)
                self._add(kept.squeeze(axis), f"A.{name}(axis={axis})", (entry,), entry.cost + more)

    def _pairs(self, lefts: Sequence[Entry], rights: Sequence[Entry]) -> None:
        """Add every product, sum and difference of two."""
        for left in lefts:
            for right in rights:
                if self._full():
                    return
                self._pair(left, right)

    def _pair(self, left: Entry, right: Entry) -> None:
        a, b = left.value, right.value
        cost = left.cost + right.cost + 1
        both = (left, right)
        if a.ndim == 2 and b.ndim in (1, 2):
            for template, x, y in _MATRIX[: 4 if b.ndim == 2 else 2]:
                first = a.T if x else a
                second = b.T if y else b
                if first.shape[-1] == second.shape[0]:
                    self._add(first @ second, template, both, cost + 0.5 * (x + y))
        if a.ndim == 1 and b.ndim == 2 and len(a) == len(b):
            self._add(a @ b, "A @ B", both, cost)
        if a.ndim == b.ndim == 1:
            self._add(np.outer(a, b), "np.outer(A, B)", both, cost)
            self._add(np.outer(b, a), "np.outer(B, A)", both, cost)
        if a.ndim > 2 and b.ndim == a.ndim:
            for template, x, y in _MATRIX:
                first = np.swapaxes(a, -1, -2) if x else a
                second = np.swapaxes(b, -1, -2) if y else b
                if first.shape[-1] == second.shape[-2] and first.shape[:-2] == second.shape[:-2]:
                    stacked = template.replace("A.T", "np.swapaxes(A, -1, -2)").replace(
                        "B.T", "np.swapaxes(B, -1, -2)"
                    )
                    self._add(first @ second, stacked, both, cost + 2 * (x + y))
        if not _broadcast(a.shape, b.shape):
            return
        self._add(a * b, "A * B", both, cost)
        if left is right:
            return
        self._add(a + b, "A + B", both, cost)
        self._add(a - b, "A - B", both, cost)
        self._add(b - a, "B - A", both, cost)
        for over, under, template in ((left, right, "A / B"), (right, left, "B / A")):
            risk = self.risk(under)
            if risk is not None and not over.is_condition:
                self._add(over.value / under.value, template, both, cost + risk)

    def shape(self, shape: tuple[int, ...]) -> _Shape:
        """Return the entries of one shape, ready to be searched."""
        if shape not in self._shapes:
            same = [entry for entry in self.entries if entry.value.shape == shape]
            self._shapes[shape] = _Shape(same, shape, self._tolerance)
        return self._shapes[shape]

    def find(self, target: Array) -> Iterator[Entry]:
        """Yield the expressions that have a value, or one that broadcasts to it."""
        self.effort.spend(45)
        yield from self.shape(target.shape).find(target)
        for axis in range(target.ndim):
            first = target.take([0], axis=axis)
            if target.shape[axis] > 1 and np.all(np.abs(target - first) <= self._tolerance * np.abs(first)):
                yield from self.shape(first.shape).find(first)
                if axis == 0:
                    yield from self.shape(first.shape[1:]).find(first[0])


class _Shape:
    """Values of one shape, found by two projections: one for the value itself, one for its direction."""

    def __init__(self, entries: list[Entry], shape: tuple[int, ...], tolerance: float) -> None:
        self.entries, self._tolerance = entries, tolerance
        size = int(np.prod(shape))
        rng = np.random.default_rng(size)
        self._one, self._two = rng.normal(size=(2, size))
        self.rows = np.array([entry.value.ravel() for entry in entries]).reshape(len(entries), size)
        self._places = _Sorted(self.rows @ self._one)
        with np.errstate(all="ignore"):
            self._directions = _Sorted((self.rows @ self._one) / (self.rows @ self._two))

    def find(self, target: Array) -> Iterator[Entry]:
        flat = target.ravel()
        slack = self._tolerance * np.abs(flat).max()
        for k in self._places.near(float(flat @ self._one), slack * np.abs(self._one).sum()):
            if np.all(np.abs(self.rows[k] - flat) <= slack):
                yield self.entries[k]

    def multiples(self, target: Array) -> Iterator[tuple[Entry, float]]:
        """Yield the expressions of which a value is a multiple, with the factor."""
        flat = target.ravel()
        slack = self._tolerance * np.abs(flat).max()
        below = float(flat @ self._two)
        ratio = float(flat @ self._one) / below if below else np.inf
        if flat.size < 2 or not np.isfinite(ratio) or slack == 0:
            return
        for k in self._directions.near(ratio, 10 * self._tolerance * max(abs(ratio), 1e-3)):
            factor = below / float(self.rows[k] @ self._two)
            if np.all(np.abs(factor * self.rows[k] - flat) <= slack):
                yield self.entries[k], factor


class _Sorted:
    def __init__(self, numbers: Array) -> None:
        self.order = np.argsort(numbers)
        self.numbers = numbers[self.order]

    def near(self, number: float, slack: float) -> list[int]:
        start, stop = np.searchsorted(self.numbers, [number - slack, number + slack])
        return [int(k) for k in self.order[start : stop + 1][:50]]


def scalings(factor: float, scope: dict[str, Any]) -> Iterator[tuple[str, tuple[ast.expr, ...], float]]:
    """Yield templates for a multiple: ``2 * A``, ``A / len(x)``, ``-A``; with their cost."""
    sign = "-" if factor < 0 else ""
    magnitude = abs(factor)

    def is_(number: float) -> bool:
        return abs(magnitude - number) <= 1e-6 * number

    if is_(1):
        yield f"{sign}A", (), 1
    for number in (2, 3, 4):
        if is_(number):
            yield f"{sign}{number} * A", (), 1.5 if number == 2 else 8
        if is_(1 / number):
            yield f"{sign}A / {number}", (), 1.5 if number == 2 else 8
    for name, value in scope.items():
        if is_float(value) and np.ndim(value) == 0 and is_(abs(float(value))):
            yield ("A * B" if (value > 0) == (factor > 0) else "-A * B"), (ast.Name(name, ast.Load()),), 2
    for size in sizes(scope):
        value = eval(
            compile(ast.Expression(ast.fix_missing_locations(size)), "<size>", "eval"), {"len": len}, scope
        )
        for times in (1, 2):
            front = sign + ("2 * " if times == 2 else "")
            if is_(times * value):
                yield f"{front}A * B", (size,), 2 + 8 * (times - 1)
            if is_(times / value):
                yield f"{front}A / B", (size,), 2 + 8 * (times - 1)


_MATRIX = (
    ("A @ B", False, False),
    ("A.T @ B", True, False),
    ("A @ B.T", False, True),
    ("A.T @ B.T", True, True),
)


def _broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return all(x == y or x == 1 or y == 1 for x, y in zip(reversed(a), reversed(b), strict=False))


_CODES: dict[str, Any] = {}


def _code(template: str) -> Any:
    if template not in _CODES:
        _CODES[template] = compile(template, "<template>", "eval")
    return _CODES[template]

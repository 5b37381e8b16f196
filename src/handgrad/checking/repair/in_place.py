"""A wrong gradient computed anew in the line that computes it, from what is in scope there.

The right gradient is written from the trace of forward. What the author's own lines have computed already takes the place
of the expressions that are equal to it, often until a single operation is left.
"""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Iterator, Mapping
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np

from handgrad.checking.adjoint import adjoints
from handgrad.checking.forward_trace import ForwardTrace
from handgrad.checking.gradient_code import GradientCode, write_gradient
from handgrad.checking.gradient_code.code_lines import simplified
from handgrad.checking.intermediates import FirstWrong, RightNumbers
from handgrad.checking.repair.expressions import Observed, fill, is_end, is_float, names_in
from handgrad.checking.repair.guard import LONGEST_RUN, OutOfTimeError
from handgrad.checking.repair.module_source import Change, Edit
from handgrad.checking.repair.reuse import PLAIN, changed_by, in_scope, in_scope_number, names_of, needed
from handgrad.checking.repair.sandbox import Sandbox
from handgrad.checking.subject import Array
from handgrad.tolerance import close

COST = 5.0  # more than any small edit, and for each line more
OF_A_LINE = 3.0
OF_A_TERM = 2.5
LONGEST_LINE = 90  # characters, with what is put into it
UPSTREAM = "grad_output"


class Place(NamedTuple):
    """An expression of backward that computes a gradient: of an argument, or else of the value that has the right numbers."""

    node: ast.expr
    argument: str = ""
    right: RightNumbers | None = None
    is_derivative: bool = False  # by itself, that the upstream gradient is multiplied with elsewhere


def in_place(
    sandbox: Sandbox, observed: Observed, trace: ForwardTrace, wrong: list[str], first: FirstWrong | None
) -> Iterator[Change]:
    """Yield changes that compute gradients anew where they are computed: the first that is wrong, or each one."""
    writer = _Writer(sandbox, observed, trace)
    groups = [[place] for place in writer.first_places(first)] if first is not None else []
    places = [writer.place_of(name) for name in wrong]
    groups += [[place for place in places if place is not None]]
    for group in groups:
        change = writer.change(group) if group else None
        if change is not None:
            yield change


def missing_terms(
    sandbox: Sandbox, observed: Observed, trace: ForwardTrace, first: FirstWrong
) -> Iterator[Change]:
    """Yield changes that add what the first wrong value lacks, where that is in scope."""
    writer = _Writer(sandbox, observed, trace)
    yield from (change for place in writer.first_places(first) for change in writer.with_term(place))


class _Writer:
    def __init__(self, sandbox: Sandbox, observed: Observed, trace: ForwardTrace) -> None:
        self.sandbox, self.source, self.observed = sandbox, sandbox.source, observed
        self.target = sandbox.target
        self.trace = trace.with_identifiers()
        self.names = dict(zip(trace.inputs, self.trace.inputs, strict=True))
        upstream = self.target.upstream
        # A loss has its gradients for 1, and the upstream gradient is multiplied with them elsewhere.
        self.scale = float(upstream[0]) if len(upstream) == 1 and upstream[0].ndim == 0 else 1.0
        self._is_given = self.scale == 1.0 or any(
            is_float(value) and np.ndim(value) == 0 and value == self.scale
            for value in observed.values.values()
        )
        self.is_given = self._is_given
        self.unit = 1.0 if self.is_given else self.scale
        given = upstream[0] if len(upstream) == 1 else tuple(upstream)
        self.known: dict[str, Any] = {"np": np, **self.trace.modules}
        self.known |= {text: self.trace.values[index] for index, text in self.trace.texts.items()}
        self.known |= {text: function for function, text in self.trace.spellings.items()}
        self.known |= {self.names[name]: self.target.inputs[name] for name in self.names}
        self.known[UPSTREAM] = given

    def place_of(self, argument: str) -> Place | None:
        """Return where the gradient of an argument is computed, or else where it is read last."""
        gradient = self.observed.gradients.get(argument)
        if gradient is None:
            return None
        found = [node for node in self._ends() if self._has(node, np.asarray(gradient) / self.unit)]
        computed = [node for node in found if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript)]
        return Place((computed or found)[0], argument) if found else None

    def first_places(self, first: FirstWrong) -> Iterator[Place]:
        """Yield the expressions of the first wrong line, and arguments there, that have the right value's shape."""
        right = first.numbers
        statements = self.source.statements_at(first.line) if right is not None else []
        here = {id(node): node for statement in statements for node in ast.walk(statement)}
        for number in self.observed.values if right is not None else ():
            node, value = here.get(number), self.observed.values[number]
            if not isinstance(node, ast.expr) or not is_float(value):
                continue
            assert right is not None
            is_given = isinstance(self.source.parents[number][0], ast.Call) and close(value, right.got)
            if np.shape(value) == right.value.shape and (is_given or is_end(self.source, node)):
                yield from (Place(node, "", right, alone) for alone in (False, True))

    def with_term(self, place: Place) -> Iterator[Change]:
        """Yield a wrong value with the term that it lacks: a number times something in scope, or a product."""
        if place.right is None or place.is_derivative or place.right.got.shape != place.right.value.shape:
            return
        lacks = place.right.value - place.right.got
        scope = self.observed.scopes.get(id(self.source.enclosing(place.node, ast.stmt)), {})
        module = {name: value for name, value in self.source.globals.items() if isinstance(value, np.ndarray)}
        floats = {
            text: value for text, value in (module | scope).items() if is_float(value) and np.any(value)
        }
        nothing = not np.any(place.right.got)
        for text, other in floats.items():
            if np.shape(other) != lacks.shape:
                continue
            factor = float(np.sum(lacks * other) / np.sum(np.square(other)))
            if not factor or not close(factor * other, lacks):
                continue
            number = in_scope_number(ast.Constant(abs(factor)), scope)
            sign, term = "+" if factor > 0 else "-", "B" if close(abs(factor), 1.0) else "C * B"
            if term == "B" or self._is_known(number):
                new = fill(f"A {sign} {term}", A=place.node, B=text, C=number)
                yield Change((Edit(place.node, new),), OF_A_TERM, "missing-term")
        for one, other in permutations(floats, 2):
            for template, value in _products(floats[one], floats[other], lacks.shape):
                for sign in "+-":
                    if close(value if sign == "+" else -value, lacks):
                        text = f"{'-' * (sign == '-')}{template}" if nothing else f"A {sign} {template}"
                        new = fill(text, A=place.node, B=one, C=other)
                        yield Change((Edit(place.node, new),), OF_A_TERM, "missing-term")

    def _ends(self) -> Iterator[ast.expr]:
        """Yield the expressions that are assigned or returned, in the order in which they ran."""
        nodes = {id(node): node for unit in self.source.units for node in ast.walk(unit)}
        for number in self.observed.values:
            node = nodes.get(number)
            if isinstance(node, ast.expr) and is_end(self.source, node):
                yield node

    def _has(self, node: ast.expr, gradient: Array) -> bool:
        value = self.observed.values[id(node)]
        return is_float(value) and np.shape(value) == gradient.shape and close(np.asarray(value), gradient)

    def change(self, places: list[Place]) -> Change | None:
        """Return the change that computes gradients anew at several places, or None where it cannot be written there."""
        self.is_given = self._is_given and not any(place.is_derivative for place in places)
        edits: list[Edit] = []
        before: dict[int, tuple[ast.stmt, list[ast.stmt]]] = {}
        lines = 0
        for place in places:
            written = self._written(place)
            if written is None:
                return None
            body, result = written
            statement = self.source.enclosing(place.node, ast.stmt)
            assert isinstance(statement, ast.stmt)
            before.setdefault(id(statement), (statement, []))[1].extend(body)
            edits.append(Edit(place.node, result))
            lines += len(body)
        inserted = [Edit(statement, (*body, statement)) for statement, body in before.values() if body]
        words = "the gradient is written anew" if inserted else ""
        return Change((*inserted, *edits), COST + OF_A_LINE * lines, description=words, is_new=True)

    def _code(self, place: Place) -> tuple[GradientCode, str] | None:
        """Return the right gradient's code, and the name of what it is the gradient of."""
        name = self.names.get(place.argument, "")
        trace = self.trace
        if place.right is not None:
            node = self._node(place.right.value, None if place.is_derivative else place.right.upstream)
            if node is None:
                return None
            name = "value_"
            trace = trace.cut_at(node, name)
            self.known[name] = trace.values[node]
        code = write_gradient(trace, name)
        return (code, name) if code is not None else None

    def _node(self, right: Array, upstream: list[Array] | None) -> int | None:
        """Return the value of forward's whose gradient some numbers are; an upstream gradient that is left out is 1."""
        trace = self.trace
        ones = [np.ones(np.shape(trace.values[k])) for k in trace.outputs]
        found = adjoints(trace, trace.values, ones if upstream is None else [np.asarray(u) for u in upstream])
        fits = (k for k, v in found.items() if np.shape(v) == right.shape and close(np.asarray(v), right))
        return next(fits, None)

    def _written(self, place: Place) -> tuple[list[ast.stmt], ast.expr] | None:
        """Return statements and an expression of the right gradient, in names that are in scope at its place."""
        found, statement = self._code(place), self.source.enclosing(place.node, ast.stmt)
        scope = self.observed.scopes.get(id(statement))
        if found is None or scope is None:
            return None
        code, name = found
        known = dict(self.known)
        if not self.is_given:
            known[UPSTREAM] = np.float64(1.0)
        taken = {*self.source.globals, *names_of(scope), *names_in(statement)}
        aliases: dict[str, ast.expr] = {}
        statements: list[ast.stmt] = []
        for line in ast.parse("\n".join(code.lines)).body:
            text = ast.unparse(line)
            new = self._line(line, scope, known, aliases)
            try:
                with self.sandbox.guard.limit(LONGEST_RUN):
                    exec(compile(text, "<line>", "exec"), known)
            except (Exception, OutOfTimeError):  # what the author's functions raise
                return None
            target = new.targets[0] if isinstance(new, ast.Assign) else None
            if isinstance(new, ast.Assign) and isinstance(target, ast.Name):
                is_last = target.id == code.results[name]
                if is_last or isinstance(new.value, ast.Name | ast.Attribute | ast.Subscript):
                    aliases[target.id] = new.value
                    continue
                free = target.id
                while free in taken:
                    free += "_"
                taken.add(free)
                aliases[target.id] = ast.Name(free, ast.Load())
                new = ast.Assign([ast.Name(free, ast.Store())], new.value)
            statements.append(new)
        result = aliases[code.results[name]]
        statements, result = _inlined(needed(statements, names_in(result)), result)
        written: list[ast.AST] = [result, *statements]
        made = {made for line in statements for made in changed_by(line)}
        allowed = {*made, *names_of(scope), *self.source.globals, *vars(builtins), "np"}
        if any(names_in(each) - allowed for each in written) or not all(map(self._is_known, written)):
            return None
        return statements, result

    def _line(
        self, line: ast.stmt, scope: Mapping[str, Any], known: dict[str, Any], aliases: Mapping[str, ast.expr]
    ) -> ast.stmt:
        """Return a line of gradient code in names that are in scope."""
        if isinstance(line, ast.Assign | ast.AugAssign):
            line.value = in_scope(line.value, scope, known)
            if not self.is_given:
                line.value = simplified(_without_unit(line.value))
        if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
            return ast.Assign(line.targets, _renamed(line.value, aliases))
        renamed: ast.stmt = _renamed(line, aliases)
        return renamed

    def _is_known(self, node: ast.AST) -> bool:
        """Whether an expression's numbers are a formula's own, or stand in the author's file."""
        numbers = {
            float(each.value)
            for each in ast.walk(node)
            if isinstance(each, ast.Constant) and isinstance(each.value, float | int)
        }
        return numbers <= PLAIN | self._numbers

    @property
    def _numbers(self) -> set[float]:
        nodes = (node for node in ast.walk(self.source.tree) if isinstance(node, ast.Constant))
        return {float(node.value) for node in nodes if isinstance(node.value, float | int)}


def _products(one: Array, other: Array, shape: tuple[int, ...]) -> Iterator[tuple[str, Array]]:
    """Yield the products of two arrays that have a shape, as templates, with their values."""
    if np.shape(one) == np.shape(other) == shape:
        yield "B * C", one * other
    if np.ndim(one) == np.ndim(other) == 2:
        for template, a, b in (("B @ C", one, other), ("B.T @ C", one.T, other), ("B @ C.T", one, other.T)):
            if a.shape[1] == b.shape[0] and (a.shape[0], b.shape[1]) == shape:
                yield template, a @ b


def _without_unit(node: ast.expr) -> ast.expr:
    """Return an expression with 1 for the upstream gradient."""

    class Unit(ast.NodeTransformer):
        def visit_Name(self, name: ast.Name) -> ast.expr:
            return ast.Constant(1.0) if name.id == UPSTREAM else name

    visited: ast.expr = Unit().visit(copy.deepcopy(node))
    return visited


def _renamed(node: Any, aliases: Mapping[str, ast.expr]) -> Any:
    class Aliases(ast.NodeTransformer):
        def visit_Name(self, name: ast.Name) -> ast.expr:
            return name if hasattr(name, "settled") else aliases.get(name.id, name)

    return Aliases().visit(node)


def _inlined(statements: list[ast.stmt], result: ast.expr) -> tuple[list[ast.stmt], ast.expr]:
    """Put what is read once into the line that reads it, as long as that stays short."""
    left = list(statements)
    for line in reversed(statements):
        if not isinstance(line, ast.Assign) or not isinstance(line.targets[0], ast.Name):
            continue
        name, after = line.targets[0].id, left[left.index(line) + 1 :]
        reads = [
            node for each in (*after, result) for node in ast.walk(each) if getattr(node, "id", "") == name
        ]
        new: ast.expr = _renamed(copy.deepcopy(result), {name: line.value})
        in_result = any(getattr(node, "id", "") == name for node in ast.walk(result))
        if len(reads) == 1 and in_result and len(ast.unparse(new)) <= LONGEST_LINE:
            left.remove(line)
            result = new
    return left, result

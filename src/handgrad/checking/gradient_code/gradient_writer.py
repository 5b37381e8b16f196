"""The right gradient of an argument, written as NumPy source from a trace.

The lines compute the gradient from ``grad_output`` and the forward's inputs. Every line is run while it is
written and compared with the numbers of `handgrad.checking.adjoint`: what does not agree is not returned.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import numpy as np

from handgrad.checking.adjoint import KINKED, adjoints, vjp_text
from handgrad.checking.adjoint.chain_rule import sides, vector_jacobian_product
from handgrad.checking.adjoint.vjp_table import reduced
from handgrad.checking.forward_trace import ForwardTrace
from handgrad.checking.forward_trace.operation import Operation
from handgrad.checking.forward_trace.spelling import NoTextError, parsed
from handgrad.checking.gradient_code.code_lines import CodeLines, is_mark
from handgrad.checking.gradient_code.known_gradients import known_gradients, perturbed
from handgrad.checking.gradient_code.letter_substitution import UPSTREAM, LetterSubstitution, Piece
from handgrad.tolerance import reordered

_MOST_OPERATIONS = 600  # more are a loop, which nobody reads written out
# How an entry looks at a kink from the other side, see `chain_rule.sides`.
_OTHER_SIDES = (
    ("np.sign(a)", "np.where(a < 0, -1, 1)"), ("np.sign(a)", "np.where(a > 0, 1, -1)"),
    (" > ", " >= "), (" < ", " <= "), (">=", ">"), ("<=", "<"),
)  # fmt: skip


@dataclass(frozen=True)
class GradientCode:
    """Source lines, and the variable that holds each argument's gradient after them."""

    lines: tuple[str, ...]
    results: dict[str, str]


@dataclass(frozen=True)
class _Term:
    """What one operand of one operation contributes to a gradient."""

    expression: ast.expr | None  # None: entries that the operation read, to be added where they belong
    value: Any
    operation: Operation | None = None


def write_gradient(trace: ForwardTrace, arguments: str | Sequence[str]) -> GradientCode | None:
    """Write the gradient of one or several arguments as lines of NumPy; None when an operation has no text.

    Examples
    --------
    >>> import numpy as np
    >>> from handgrad.checking.forward_trace import trace_forward
    >>> given = {"x": np.ones((5, 3)), "W": np.ones((3, 2))}
    >>> trace = trace_forward(lambda v: np.tanh(v["x"] @ v["W"]), given)
    >>> print("\\n".join(write_gradient(trace, "W").lines))
    dW = x.T @ (grad_output * (1 - np.tanh(x @ W) ** 2))
    """
    wanted = [arguments] if isinstance(arguments, str) else list(arguments)
    with np.errstate(all="ignore"):
        try:
            wide = _in_double(trace)
            # also right off zeros and ties, in case the values at hand hide what the gradient depends on
            return _Writer(wide, wanted).write(perturbed(wide) or wide)
        except Exception:  # a spelling is a service: what cannot be spelled is left to the caller
            return None


class _Writer:
    def __init__(self, trace: ForwardTrace, wanted: list[str]) -> None:
        self.trace, self.wanted, self.values = trace, wanted, trace.values
        self.is_single = any(np.asarray(self.values[i]).dtype.itemsize < 8 for i in trace.active)
        self.same = partial(reordered, single=self.is_single)  # up to rounding
        random = np.random.default_rng(0)
        self.upstream = [random.normal(size=np.shape(self.values[i])) for i in trace.outputs]
        self.given = self.upstream[0] if len(self.upstream) == 1 else tuple(self.upstream)
        named = {text: self.values[i] for i, text in trace.texts.items()}
        named |= {text: function for function, text in trace.spellings.items()} | trace.modules
        known = {text: item for text, item in named.items() if text.isidentifier()}
        self.lines = CodeLines(_inputs(trace) | {UPSTREAM: self.given} | known)
        self.letters = LetterSubstitution(trace, self.lines)
        self.at_kinks = sides(trace, trace.values)
        self.terms: dict[int, list[_Term]] = {}
        self.gradients: dict[int, tuple[ast.expr, Any]] = {}
        # variable of a gradient -> what does where its shape, or the zeros in it, do not matter
        self.simpler: dict[str, ast.expr] = {}

    def write(self, other: ForwardTrace) -> GradientCode | None:
        """Write the lines; None if they do not give the gradient, also at the values of `other`."""
        trace = self.trace
        leaves = [trace.inputs[name] for name in self.wanted]
        path = trace.descendants(leaves) & (trace.active | {*leaves})
        if sum(operation.output in path for operation in trace.operations) > _MOST_OPERATIONS:
            raise NoTextError("a loop of so many operations is not written out")
        for k, i in enumerate(trace.outputs):
            text = UPSTREAM if len(trace.outputs) == 1 else f"{UPSTREAM}[{k}]"
            self.terms.setdefault(i, []).append(_Term(parsed(text), self.upstream[k]))
        known = known_gradients(trace, leaves, path) if not self.is_single else {}
        for operation in reversed(trace.operations):
            if operation.output not in path or operation.output not in self.terms:
                continue
            gradient, value = self.gradient(operation.output)
            if operation.name in ("max", "min") and self.cancels(operation.output):
                continue
            if operation.number in known and self.known(operation, *known[operation.number], gradient, value):
                continue
            for k, i in enumerate(operation.inputs):
                if i in path and i in trace.active and not _is_dead(operation, k, trace):
                    self.operand(operation, k, gradient, value)
        results = {name: self.result(name, i) for name, i in zip(self.wanted, leaves, strict=True)}
        lines, names = self.lines.render(results)
        is_right = self.is_right(lines, names, trace) and self.is_right(lines, names, other)
        return GradientCode(tuple(lines), names) if is_right else None

    def is_right(self, lines: Sequence[str], names: dict[str, str], at: ForwardTrace) -> bool:
        """Run the final lines, and compare, where there is a finite gradient to compare with."""
        scope = self.lines.scope | _inputs(at)
        exec("\n".join(lines), scope)
        found = adjoints(at, at.values, self.given)
        right = {n: found.get(at.inputs[n], np.zeros(np.shape(at.values[at.inputs[n]]))) for n in self.wanted}
        return all(self.same(scope[names[n]], r) for n, r in right.items() if np.all(np.isfinite(r)))

    def result(self, name: str, leaf: int) -> ast.Name:
        """Write the last line of an argument's gradient: an array of its own, in its shape."""
        if leaf not in self.terms:
            return self.lines.named(parsed(f"np.zeros_like({name})"), f"d{name}")
        full, right = self.gradient(leaf)
        simple = self.simple(full)
        expression = simple if self.broadcasts(self.lines.run(simple), right) else full
        if np.shape(self.lines.run(expression)) != np.shape(right):
            expression = parsed(f"np.full_like({name}, {ast.unparse(expression)})")
        elif isinstance(expression, (ast.Attribute, ast.Subscript)) or (
            isinstance(expression, ast.Name) and not is_mark(expression)
        ):
            expression = _copied(expression)
        return self.lines.named(expression, f"d{name}")

    def broadcasts(self, value: Any, to: Any) -> bool:
        """Whether an array agrees with another after it is broadcast to it."""
        try:
            return value is not None and self.same(np.broadcast_to(value, np.shape(to)), to)
        except ValueError:
            return False

    def gradient(self, value: int) -> tuple[ast.expr, Any]:
        """Return the gradient of a value, the sum of its terms, and its numbers."""
        if value not in self.gradients:
            terms = self.terms[value]  # less than all where a known gradient leads past it
            right = sum((term.value for term in terms[1:]), terms[0].value)
            entries = [term.operation for term in terms if term.operation is not None]
            rest = [term.expression for term in terms if term.expression is not None]
            if entries:
                written = self.gathered(value, rest, entries, right)
            elif len(rest) > 1:
                written = self.defined(value, right, (([], _sum(form)) for form in self.forms(rest)))
            else:
                (written,) = rest
            self.gradients[value] = written, right
        return self.gradients[value]

    def simple(self, gradient: ast.expr) -> ast.expr:
        """Return the shorter expression of a gradient, which may lack its shape, or its zeros."""
        while isinstance(gradient, ast.Name) and gradient.id in self.simpler:
            gradient = self.simpler[gradient.id]
        return gradient

    def forms(self, gradients: Sequence[ast.expr]) -> list[list[ast.expr]]:
        """Return the shorter expressions of gradients, and the full ones."""
        return [list(map(self.simple, gradients)), list(gradients)]

    def defined(self, value: int, right: Any, pieces: Iterable[Piece]) -> ast.expr:
        """Write the first of some spellings of a gradient that gives its numbers, broadcast where it need be."""
        hint = f"d{self.trace.names.get(value, '')}"
        for statements, expression in pieces:
            found = self.lines.attempt(expression, statements)
            if self.broadcasts(found, right):
                written = self.lines.define(expression, hint, statements)
                if np.shape(found) == np.shape(right):
                    return written
                shape = ast.unparse(self.letters.sizes.shape(value))
                name = self.lines.named(parsed(f"np.broadcast_to({ast.unparse(written)}, {shape})"), hint)
                self.simpler[name.id] = written
                return name
        raise NoTextError("a gradient could not be written")

    def gathered(
        self, value: int, rest: Sequence[ast.expr], entries: Sequence[Operation], right: Any
    ) -> ast.expr:
        """Write a gradient as an array that the gradients of its entries are added to."""
        parts = [*rest, *(self.gradient(operation.output)[0] for operation in entries)]
        zeros = self.letters.sizes.zeros(value)

        def piece(form: list[ast.expr]) -> Piece:
            start = _sum(form[: len(rest)]) if rest else zeros
            if np.shape(self.lines.attempt(start)) != np.shape(right):
                start = ast.BinOp(start, ast.Add(), zeros)
            elif rest and not isinstance(start, ast.BinOp):
                start = _copied(start)
            name = self.lines.mark()
            statements = ast.parse(f"{name} = {ast.unparse(start)}").body
            for operation, gradient in zip(entries, form[len(rest) :], strict=True):
                line = (vjp_text(operation, 0, self.values) or "").split("\n")[1]
                line = line if len(parts) == 1 else line.replace("] = g", "] += g")
                statements.append(self.letters.statement(line, operation, gradient, name))
            return statements, ast.Name(name)

        return self.defined(value, right, map(piece, self.forms(parts)))

    def cancels(self, value: int) -> bool:
        """Whether the terms of a gradient cancel, as those of the maximum that softmax subtracts."""
        sizes = [term.value for term in self.terms[value]] + self.upstream
        largest = max(float(np.max(np.abs(g), initial=0.0)) for g in sizes)
        total = self.gradients[value][1]
        return reordered(total, np.zeros_like(total), largest)

    def known(self, operation: Operation, source: int, text: str, gradient: ast.expr, value: Any) -> bool:
        """Write a well-known gradient that ends with an operation; tell whether it could be."""
        seeds = {operation.output: value}
        right = adjoints(self.trace, self.values, None, seeds=seeds, until=[source])[source]
        try:
            pieces = (self.letters.put(text, operation, form) for (form,) in self.forms([gradient]))
            self.terms.setdefault(source, []).append(_Term(self.defined(source, right, pieces), right))
        except NoTextError:
            return False
        return True

    def operand(self, operation: Operation, k: int, gradient: ast.expr, value: Any) -> None:
        """Write what an operand gets of an operation's gradient."""
        i, at_kink = operation.inputs[k], self.at_kinks.get(operation.number)
        right = vector_jacobian_product(operation, k, self.values, value, at_kink)
        terms = self.terms.setdefault(i, [])
        if operation.name == "getitem" and k == 0 and operation.options["key"] not in ((), (Ellipsis,)):
            terms.append(_Term(None, right, operation))
            return
        term = self.defined(i, right, self.candidates(operation, k, gradient))
        if operation.name == "setitem" and k == 0 and isinstance(term, ast.Name):
            self.simpler[term.id] = self.simple(gradient)
        terms.append(_Term(term, right))

    def candidates(self, operation: Operation, k: int, gradient: ast.expr) -> Iterator[Piece]:
        """Yield the spellings of what an operand gets, the simplest first."""
        text, forms = vjp_text(operation, k, self.values), [form for (form,) in self.forms([gradient])]
        if text is None:
            raise NoTextError(f"{operation.name} has no derivative in the table")
        if text.startswith("np.broadcast_to("):  # stretching can wait
            inner = parsed(text)
            assert isinstance(inner, ast.Call)
            yield self.letters.put(ast.unparse(inner.args[0]), operation, forms[0])
        others = [text.replace(*sides) for sides in _OTHER_SIDES] if operation.name in KINKED else []
        if operation.is_elementwise:
            shapes = [np.shape(self.values[i]) for i in (operation.output, operation.inputs[k])]
            others.append(f"np.where(g == 0, 0, {text})")  # against 0 times infinity
        for spelling in dict.fromkeys((text, *others)):
            if operation.is_elementwise:
                spelling = reduced(spelling, *shapes)
            for form in forms:
                yield self.letters.put(spelling, operation, form)


def _in_double(trace: ForwardTrace) -> ForwardTrace:
    if all(np.asarray(trace.values[i]).dtype.itemsize >= 8 for i in trace.active):
        return trace
    inputs = {n: np.asarray(v, float) if v.dtype.kind == "f" else v for n, v in _inputs(trace).items()}
    return replace(trace, values=trace.replay(inputs))


def _inputs(trace: ForwardTrace) -> dict[str, Any]:
    return {name: trace.values[i] for name, i in trace.inputs.items()}


def _is_dead(operation: Operation, k: int, trace: ForwardTrace) -> bool:
    """Whether an operand never gets a gradient, as when a factor or an exponent is the constant 0."""
    if operation.name == "multiply" or (operation.name == "power" and k == 0):
        other = operation.inputs[1 - k]
        return other in trace.constants and not np.any(trace.values[other])
    # all that was there is overwritten
    key = operation.options["key"] if operation.name == "setitem" and k == 0 else (0,)
    return all(part is ... or part == slice(None) for part in key)


def _sum(terms: Iterable[ast.expr]) -> ast.expr:
    return reduce(lambda total, term: ast.BinOp(total, ast.Add(), term), terms)


def _copied(array: ast.expr) -> ast.expr:
    return ast.Call(ast.Attribute(array, "copy"), [], [])

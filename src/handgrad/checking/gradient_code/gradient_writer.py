"""The right gradient of an argument, written as NumPy source from a trace.

The lines compute the gradient from ``grad_output`` and the forward's inputs. Every line is run while it is
written and compared with the numbers of `handgrad.checking.adjoint`: what does not agree is not returned.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np

from handgrad.checking.adjoint import KINKED, adjoints
from handgrad.checking.adjoint.chain_rule import sides, vector_jacobian_product
from handgrad.checking.adjoint.vjp_table import reduction_text, vjp_text
from handgrad.checking.forward_trace import ForwardTrace
from handgrad.checking.forward_trace.operation import Operation
from handgrad.checking.forward_trace.spelling import NoTextError, parsed
from handgrad.checking.gradient_code.axis_sizes import UPSTREAM
from handgrad.checking.gradient_code.code_lines import CodeLines
from handgrad.checking.gradient_code.known_gradients import known_gradients, perturbed
from handgrad.checking.gradient_code.letter_substitution import LetterSubstitution, Piece
from handgrad.tolerance import reordered

_MOST_OPERATIONS = 600  # more are a loop, which nobody reads written out


@dataclass(frozen=True)
class GradientCode:
    """Source lines, and the variable that holds each argument's gradient after them."""

    lines: tuple[str, ...]
    results: dict[str, str]


@dataclass(eq=False)
class _Gradient:
    """The gradient of a value: its text, and a simpler one that does where its shape or its zeros do not matter."""

    simple: ast.expr
    full: ast.expr | None  # None: not written yet
    value: Any
    parent: _Gradient | None = None  # of which the entries that `assignment` overwrote are taken away
    assignment: Operation | None = None


@dataclass(frozen=True)
class _Term:
    """What one operand of one operation contributes to a gradient."""

    expression: ast.expr | None  # None: entries that were read, to be added where they belong
    value: Any
    lazy: _Gradient | None = None
    operation: Operation | None = None


def write_gradient(trace: ForwardTrace, arguments: str | Sequence[str]) -> GradientCode | None:
    """Write the gradient of one or several arguments as lines of NumPy.

    Parameters
    ----------
    trace
        From `trace_forward`.
    arguments
        Names of inputs.

    Returns
    -------
    GradientCode or None
        None when an operation has no text.

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
            first = _in_double(trace)
            # off zeros and ties, in case the values at hand hide what the gradient depends on
            second = perturbed(first) or first
            return _Writer(first, wanted).write(second) or _Writer(second, wanted).write(first)
        except Exception:  # a spelling is a service: what cannot be spelled is left to the caller
            return None


class _Writer:
    def __init__(self, trace: ForwardTrace, wanted: list[str]) -> None:
        self.trace, self.wanted, self.values = trace, wanted, trace.values
        self.is_single = any(np.asarray(self.values[i]).dtype.itemsize < 8 for i in trace.active)
        random = np.random.default_rng(0)
        self.upstream = [random.normal(size=np.shape(self.values[i])) for i in trace.outputs]
        self.given = self.upstream[0] if len(self.upstream) == 1 else tuple(self.upstream)
        named = {text: self.values[i] for i, text in trace.texts.items()}
        named |= {text: function for function, text in trace.spellings.items()} | trace.modules
        known = {text: item for text, item in named.items() if text.isidentifier()}
        self.lines = CodeLines(_inputs(trace) | {UPSTREAM: self.given} | known)
        self.letters = LetterSubstitution(trace, self.lines)
        self.terms: dict[int, list[_Term]] = {}
        self.gradients: dict[int, _Gradient] = {}

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
            gradient = self.gradient(operation.output)
            if operation.name in ("max", "min") and self.cancels(operation.output):
                continue
            if operation.number in known and self.known(operation, *known[operation.number], gradient):
                continue
            for k, i in enumerate(operation.inputs):
                if i in path and i in trace.active:
                    self.operand(operation, k, gradient)
        results = {name: self.result(name, i) for name, i in zip(self.wanted, leaves, strict=True)}
        for cancel in (True, False):
            lines, names = self.lines.render(results, cancel=cancel)
            if self.is_right(lines, names, trace) and self.is_right(lines, names, other):
                return GradientCode(tuple(lines), names)
        return None

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
        gradient = self.gradient(leaf)
        is_simple = gradient.parent is None and self.broadcasts(
            self.lines.run(gradient.simple), gradient.value
        )
        expression = gradient.simple if is_simple else self.whole(leaf, gradient)
        if np.shape(self.lines.run(expression)) != np.shape(gradient.value):
            expression = _call("np.full_like", ast.Name(name), expression)
        elif isinstance(expression, (ast.Attribute, ast.Subscript)) or (
            isinstance(expression, ast.Name) and not self.lines.is_defined(expression)
        ):
            expression = _method(expression, "copy")
        return self.lines.named(expression, f"d{name}")

    def same(self, a: Any, b: Any) -> bool:
        """Whether two arrays agree up to rounding."""
        return reordered(a, b, single=self.is_single)

    def broadcasts(self, value: Any, to: Any) -> bool:
        """Whether an array agrees with another after it is broadcast to it."""
        try:
            return self.same(np.broadcast_to(value, np.shape(to)), to)
        except ValueError:
            return False

    # ------------------------------------------------------------------ gradients of values

    def hint(self, value: int) -> str:
        return f"d{self.trace.names.get(value, '')}"

    def gradient(self, value: int) -> _Gradient:
        """Return the gradient of a value: the sum of its terms."""
        if value not in self.gradients:
            self.gradients[value] = self.summed(value)
        return self.gradients[value]

    def summed(self, value: int) -> _Gradient:
        terms = self.terms[value]
        # less than all where a known gradient leads past it
        right = sum((f.value for f in terms[1:]), terms[0].value)
        if any(f.expression is None for f in terms):
            return self.gathered(value, terms, right)
        if len(terms) == 1 and terms[0].lazy is not None:
            return terms[0].lazy
        for whole in (False, True):
            expression = self.added(value, terms, whole)
            found = self.lines.attempt(expression)
            if found is not None and self.broadcasts(found, right):
                defined = self.lines.define(expression, self.hint(value))
                return _Gradient(defined, defined if np.shape(found) == np.shape(right) else None, right)
        raise NoTextError("a sum of gradients could not be written")

    def added(self, value: int, terms: Sequence[_Term], whole: bool) -> ast.expr:
        texts = (self.whole(value, f.lazy) if whole and f.lazy else f.expression for f in terms)
        return reduce(lambda total, term: ast.BinOp(total, ast.Add(), term), filter(None, texts))

    def gathered(self, value: int, terms: Sequence[_Term], right: Any) -> _Gradient:
        """Write a gradient as an array that the gradients of its entries are added to."""
        rest = [f for f in terms if f.expression is not None]
        entries = [f for f in terms if f.expression is None]
        zeros = self.letters.sizes.zeros(value)
        for whole in (False, True):
            start = self.added(value, rest, whole) if rest else zeros
            if rest and np.shape(self.lines.attempt(start)) != np.shape(right):
                start = ast.BinOp(start, ast.Add(), zeros)
            elif rest and not isinstance(start, ast.BinOp):
                start = _method(start, "copy")
            name, alone = self.lines.mark(), not rest and len(entries) == 1
            block = ast.parse(f"{name} = {ast.unparse(start)}").body
            block += [self.entry(term, name, whole, alone=alone) for term in entries]
            found = self.lines.attempt(ast.Name(name), block)
            if found is not None and self.same(found, right):
                defined = self.lines.define(ast.Name(name), self.hint(value), block)
                return _Gradient(defined, defined, right)
        raise NoTextError("a gradient could not be gathered")

    def entry(self, term: _Term, name: str, whole: bool, *, alone: bool) -> ast.stmt:
        operation, lazy = term.operation, term.lazy
        assert operation is not None
        assert lazy is not None
        line = (vjp_text(operation, 0, self.values) or "").split("\n")[1]
        line = line if alone else line.replace("] = g", "] += g")
        gradient = self.whole(operation.output, lazy) if whole else lazy.simple
        return self.letters.statement(line, operation, gradient, name)

    def whole(self, value: int, gradient: _Gradient) -> ast.expr:
        """Return the text of a gradient in its full shape, with its zeros."""
        if gradient.full is None:
            statements: list[ast.stmt] = []
            if gradient.assignment is not None and gradient.parent is not None:
                operation = gradient.assignment
                before = self.whole(operation.output, gradient.parent)
                text = vjp_text(operation, 0, self.values) or ""
                statements, expression = self.letters.put(text, operation, before)
            else:
                expression = _call("np.broadcast_to", gradient.simple, self.letters.sizes.shape(value))
            gradient.full = self.lines.define(expression, self.hint(value), statements)
        return gradient.full

    def cancels(self, value: int) -> bool:
        """Whether the terms of a gradient cancel, as those of the maximum that softmax subtracts."""
        sizes = [f.value for f in self.terms[value]] + self.upstream
        largest = max(float(np.max(np.abs(g), initial=0.0)) for g in sizes)
        total = self.gradients[value].value
        return reordered(total, np.zeros_like(total), largest)

    # ------------------------------------------------------------------ what operations contribute

    def known(self, operation: Operation, source: int, text: str, gradient: _Gradient) -> bool:
        """Write a well-known gradient that ends with an operation; tell whether it could be."""
        seeds = {operation.output: gradient.value}
        right = adjoints(self.trace, self.values, None, seeds=seeds, until=[source])[source]
        for full in (False, True):
            start = self.whole(operation.output, gradient) if full else gradient.simple
            statements, expression = self.letters.put(text, operation, start)
            value = self.lines.attempt(expression, statements)
            if value is not None and self.same(value, right):
                defined = self.lines.define(expression, self.hint(source), statements)
                self.terms.setdefault(source, []).append(_Term(defined, right))
                return True
        return False

    def operand(self, operation: Operation, k: int, gradient: _Gradient) -> None:
        """Write what an operand gets of an operation's gradient."""
        if _is_dead(operation, k, self.trace):
            return
        at_kink = sides(self.trace, self.values).get(operation.number)
        right = vector_jacobian_product(operation, k, self.values, gradient.value, at_kink)
        terms = self.terms.setdefault(operation.inputs[k], [])
        if operation.name == "getitem" and k == 0 and operation.options["key"] not in ((), (Ellipsis,)):
            terms.append(_Term(None, right, gradient, operation))
            return
        if operation.name == "setitem" and k == 0:
            lazy = _Gradient(gradient.simple, None, right, gradient, operation)
            terms.append(_Term(lazy.simple, right, lazy))
            return
        for statements, expression in self.candidates(operation, k, gradient):
            value = self.lines.attempt(expression, statements)
            if value is not None and self.broadcasts(value, right):
                defined = self.lines.define(expression, self.hint(operation.inputs[k]), statements)
                same = np.shape(value) == np.shape(right)
                terms.append(_Term(defined, right, None if same else _Gradient(defined, None, right)))
                return
        raise NoTextError(f"the derivative of {operation.name} could not be written")

    def candidates(self, operation: Operation, k: int, gradient: _Gradient) -> Iterator[Piece]:
        """Yield the spellings of what an operand gets, the simplest first."""
        text = vjp_text(operation, k, self.values)
        if text is None:
            raise NoTextError(f"{operation.name} has no derivative in the table")
        summed = (
            reduction_text(
                np.shape(self.values[operation.output]), np.shape(self.values[operation.inputs[k]])
            )
            if operation.is_elementwise
            else ""
        )
        if text.startswith("np.broadcast_to("):  # stretching can wait
            inner = parsed(text)
            assert isinstance(inner, ast.Call)
            yield self.letters.put(ast.unparse(inner.args[0]), operation, gradient.simple)
        for local in _variants(operation, text):
            complete = f"({local}){summed}" if summed else local
            yield self.letters.put(complete, operation, gradient.simple)
            yield self.letters.put(complete, operation, self.whole(operation.output, gradient))


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
    if operation.name == "setitem" and k == 0:  # all that was there is overwritten
        return all(part is ... or part == slice(None) for part in operation.options["key"])
    return operation.name == "copysign" and k == 1


def _variants(operation: Operation, text: str) -> list[str]:
    """Return spellings of an entry: the usual one, those for the other side of a kink, one against 0 times infinity."""
    if "\n" in text:
        return [text]
    found = [text]
    if operation.name in KINKED:
        found += [text.replace("np.sign(a)", f"np.where(a {side})") for side in ("< 0, -1, 1", "> 0, 1, -1")]
        found += [text.replace(" > ", " >= "), text.replace(" < ", " <= ")]
        found += [text.replace(">=", ">"), text.replace("<=", "<")]
    return [*dict.fromkeys(found), f"np.where(g == 0, 0, {text})"]


def _call(function: str, *args: ast.expr) -> ast.expr:
    return ast.Call(parsed(function), list(args), [])


def _method(array: ast.expr, name: str) -> ast.expr:
    return ast.Call(ast.Attribute(array, name), [], [])

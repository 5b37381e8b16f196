"""The letters of the tables (``a``, ``b``, ``out``, ``g``) become the user's values, and their sizes symbolic ones."""

from __future__ import annotations

import ast

import numpy as np

from handgrad.checking.forward_trace import ForwardTrace
from handgrad.checking.forward_trace.operation import Operation, operand_name
from handgrad.checking.forward_trace.spelling import forward_text, literal, parsed
from handgrad.checking.gradient_code.code_lines import CodeLines

UPSTREAM = "grad_output"
"""What the generated code calls the gradient of the output."""

Piece = tuple[list[ast.stmt], ast.expr]  # statements, and the expression that is their result
Axes = tuple[str, ...]  # the spelling of each axis of a value: ``x.shape[0]`` rather than 5


class LetterSubstitution:
    """Turns texts of the tables into expressions of the user's values, whose lines it writes where needed."""

    def __init__(self, trace: ForwardTrace, lines: CodeLines) -> None:
        self.trace, self.lines, self.sizes = trace, lines, AxisSizes(trace)
        self._values: dict[int, ast.expr] = {}

    def put(self, text: str, operation: Operation, gradient: ast.expr | None) -> Piece:
        """Return a text with the operation's values, and the gradient of its output, in place of its letters."""
        *statements, last = text.split("\n")
        change = _Substitution(self, operation, gradient, {})
        return [change.visit(ast.parse(line).body[0]) for line in statements], change.visit(parsed(last))

    def statement(self, text: str, operation: Operation, gradient: ast.expr, array: str) -> ast.stmt:
        """Return one statement; `array` is what the table's own ``d`` is called."""
        return _Substitution(self, operation, gradient, {"d": array}).visit(ast.parse(text).body[0])

    def value(self, i: int) -> ast.expr:
        """Return the text of a value of the forward pass; its line is written when it is first needed."""
        if i not in self._values:
            self._values[i] = self._value(i)
        return self._values[i]

    def _value(self, i: int) -> ast.expr:
        trace = self.trace
        if i in trace.texts:
            return parsed(trace.texts[i])
        if i not in trace.producer:
            return parsed(literal(trace.values[i]))
        operation = trace.producer[i]
        statements, expression = self.put(forward_text(operation, trace.spellings), operation, None)
        return self.lines.define(expression, trace.names.get(i, ""), statements)


class _Substitution(ast.NodeTransformer):
    """Puts values in the place of letters, and symbolic sizes in the place of their shapes."""

    def __init__(
        self,
        owner: LetterSubstitution,
        operation: Operation,
        gradient: ast.expr | None,
        local: dict[str, str],
    ) -> None:
        self.owner, self.sizes, self.gradient, self.local = owner, owner.sizes, gradient, local
        self.names = {operand_name(k): i for k, i in enumerate(operation.inputs)} | {"out": operation.output}

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id == "g" and self.gradient is not None:
            return self.gradient
        if node.id in self.names:
            return self.owner.value(self.names[node.id])
        if node.id in ("d", "p"):  # the table's own variables
            return ast.Name(self.local.setdefault(node.id, self.owner.lines.mark()), node.ctx)
        return node

    def _index(self, node: ast.AST) -> int | None:
        return self.names.get(node.id) if isinstance(node, ast.Name) else None

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        i = self._index(node.value)
        if i is not None and node.attr in ("shape", "size"):
            return self.sizes.shape(i) if node.attr == "shape" else self.sizes.size(i)
        return self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            i, axis = self._index(node.value.value), node.slice
            if i is not None and isinstance(axis, ast.Constant) and isinstance(axis.value, int):
                return parsed(self.sizes.axes(i)[axis.value])
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if ast.unparse(node.func) == "np.zeros_like" and (i := self._index(node.args[0])) is not None:
            return self.sizes.zeros(i)
        return self.generic_visit(node)


class AxisSizes:
    """Knows which axis of an input each axis of a value comes from."""

    def __init__(self, trace: ForwardTrace) -> None:
        self.trace = trace
        self._inputs = {i: trace.texts[i] for i in trace.inputs.values()}
        self._axes: dict[int, Axes] = {}

    def axes(self, value: int) -> Axes:
        """Return the spelling of every axis of a value."""
        if value not in self._axes:
            shape, operation = np.shape(self.trace.values[value]), self.trace.producer.get(value)
            if text := self._inputs.get(value):
                found: Axes | None = tuple(f"{text}.shape[{k}]" for k in range(len(shape)))
            else:
                found = self._computed(operation, shape) if operation else None
            self._axes[value] = found or tuple(map(str, shape))
        return self._axes[value]

    def shape(self, value: int) -> ast.expr:
        """Return ``value.shape``."""
        array, axes = self._like(value), self.axes(value)
        return parsed(f"{array}.shape" if array else f"({', '.join(axes)}{',' * (len(axes) == 1)})")

    def size(self, value: int) -> ast.expr:
        """Return ``value.size``."""
        array = self._like(value)
        return parsed(f"{array}.size" if array else " * ".join(self.axes(value)) or "1")

    def zeros(self, value: int) -> ast.expr:
        """Return an array of zeros like a value."""
        text = self._inputs.get(value)
        return parsed(f"np.zeros_like({text})" if text else f"np.zeros({ast.unparse(self.shape(value))})")

    def _like(self, value: int) -> str:
        """Return an input, or the upstream gradient, that has the shape of a value for good reason."""
        output = {self.trace.output: UPSTREAM} if len(self.trace.outputs) == 1 else {}
        known, axes = self._inputs | output, self.axes(value)
        return known.get(value) or next((t for i, t in known.items() if axes and axes == self.axes(i)), "")

    def _computed(self, operation: Operation, shape: tuple[int, ...]) -> Axes | None:
        operands = [self.axes(i) for i in operation.inputs]
        first = operands[0] if operands else ()
        if operation.is_elementwise:
            return tuple(self._broadcast(operation, k - len(shape), n) for k, n in enumerate(shape))
        if operation.name == "matmul" and all(operands):
            left, right = operands
            rows, columns = left[-2:-1] if len(left) > 1 else (), right[-1:] if len(right) > 1 else ()
            batch = max(left[:-2], right[:-2], key=len)
            return (*batch, *rows, *columns)
        if operation.name == "transpose":
            return tuple(first[k] for k in operation.options["axes"])
        if operation.name in ("sum", "mean", "max", "min", "var", "std"):
            axis = operation.options.get("axis")
            every = range(len(first)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
            gone = {int(k) % len(first) for k in every}
            one = ("1",) if len(shape) == len(first) else ()
            return tuple(t for k, text in enumerate(first) for t in (one if k in gone else (text,)))
        return first if operation.name == "setitem" else None

    def _broadcast(self, operation: Operation, k: int, n: int) -> str:
        for i in operation.inputs:
            shape = np.shape(self.trace.values[i])
            if len(shape) >= -k and shape[k] == n and not self.axes(i)[k].isdigit():
                return self.axes(i)[k]
        return str(n)

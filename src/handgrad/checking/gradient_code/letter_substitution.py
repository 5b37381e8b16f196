"""The letters of the tables (``a``, ``b``, ``out``, ``g``) become the user's values."""

from __future__ import annotations

import ast

from handgrad.checking.forward_trace import ForwardTrace
from handgrad.checking.forward_trace.operation import Operation, operand_name
from handgrad.checking.forward_trace.spelling import forward_text, literal, parsed
from handgrad.checking.gradient_code.axis_sizes import AxisSizes
from handgrad.checking.gradient_code.code_lines import CodeLines

Piece = tuple[list[ast.stmt], ast.expr]  # statements, and the expression that is their result


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
        self.owner, self.gradient, self.local = owner, gradient, local
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
            return self.owner.sizes.shape(i) if node.attr == "shape" else self.owner.sizes.size(i)
        return self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            i, axis = self._index(node.value.value), node.slice
            if i is not None and isinstance(axis, ast.Constant) and isinstance(axis.value, int):
                return parsed(self.owner.sizes.axes(i)[axis.value])
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if ast.unparse(node.func) == "np.zeros_like" and (i := self._index(node.args[0])) is not None:
            return self.owner.sizes.zeros(i)
        return self.generic_visit(node)

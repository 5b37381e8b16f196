"""The table's letters become the user's values."""

from __future__ import annotations

import ast

from handgrad.checking.forward_trace import ForwardTrace
from handgrad.checking.forward_trace.spelling import forward_text, literal, parsed
from handgrad.checking.forward_trace.statements import operand_name
from handgrad.checking.forward_trace.tracer import Operation
from handgrad.checking.gradient_code.lines import Lines
from handgrad.checking.gradient_code.sizes import Sizes

Piece = tuple[list[ast.stmt], ast.expr]  # statements, and the expression that is their result


class Speller:
    """Turns texts of the table into expressions of the user's values, whose lines it writes where needed."""

    def __init__(self, trace: ForwardTrace, lines: Lines, sizes: Sizes) -> None:
        self.trace, self.lines, self.sizes = trace, lines, sizes
        self._values: dict[int, ast.expr] = {}

    def put(self, text: str, operation: Operation, gradient: ast.expr | None) -> Piece:
        """Return a text with the operation's values, and the gradient of its output, in place of its letters."""
        *statements, last = text.split("\n")
        change = _Substitution(self, _names(operation), gradient, {})
        done = [change.visit(ast.parse(line).body[0]) for line in statements]
        return done, change.visit(parsed(last))

    def statement(
        self, text: str, operation: Operation, gradient: ast.expr, local: dict[str, str]
    ) -> ast.stmt:
        """Return one statement; `local` says what the table's own variables are called."""
        return _Substitution(self, _names(operation), gradient, local).visit(ast.parse(text).body[0])

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
        text = forward_text(operation, trace.spellings)
        statements, expression = self.put(text, operation, None)
        return self.lines.define(expression, trace.names.get(i, ""), statements)


def _names(operation: Operation) -> dict[str, int]:
    return {operand_name(k): i for k, i in enumerate(operation.inputs)} | {"out": operation.output}


class _Substitution(ast.NodeTransformer):
    """Puts values in the place of the table's letters, and symbolic sizes in the place of their shapes."""

    def __init__(
        self, speller: Speller, names: dict[str, int], gradient: ast.expr | None, local: dict[str, str]
    ) -> None:
        self.speller, self.names, self.gradient, self.local = speller, names, gradient, local

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id == "g" and self.gradient is not None:
            return self.gradient
        if node.id in self.names:
            return self.speller.value(self.names[node.id])
        if node.id in ("d", "p"):  # the table's own variables
            return ast.Name(self.local.setdefault(node.id, self.speller.lines.mark()), node.ctx)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.value, ast.Name) and node.value.id in self.names:
            if node.attr == "shape":
                return self.speller.sizes.shape(self.names[node.value.id])
            if node.attr == "size":
                return self.speller.sizes.size(self.names[node.value.id])
        return self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        shaped = node.value
        if (
            isinstance(shaped, ast.Attribute)
            and shaped.attr == "shape"
            and isinstance(shaped.value, ast.Name)
        ):
            name = shaped.value.id
            if (
                name in self.names
                and isinstance(node.slice, ast.Constant)
                and isinstance(node.slice.value, int)
            ):
                return self.speller.sizes.axis(self.names[name], node.slice.value)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        like = node.args[0] if ast.unparse(node.func) == "np.zeros_like" else None
        if isinstance(like, ast.Name) and like.id in self.names:
            return self.speller.sizes.zeros(self.names[like.id])
        return self.generic_visit(node)

"""Generated expressions, simplified: signs and constant factors are gathered, and what cancels is left out."""

from __future__ import annotations

import ast


def simplified(node: ast.expr, *, cancel: bool = True) -> ast.expr:
    """Return a simpler expression of the same value; ``g / a * a`` becomes ``g`` only if `cancel`.

    Examples
    --------
    >>> ast.unparse(simplified(ast.parse("2 * (0.5 * g) * -a", mode="eval").body))
    '-g * a'
    >>> ast.unparse(simplified(ast.parse("-g / b + -(-h)", mode="eval").body))
    '-g / b + h'
    >>> ast.unparse(simplified(ast.parse("g.sum(axis=0, keepdims=True).squeeze(axis=0)", mode="eval").body))
    'g.sum(axis=0)'
    """
    return _Simplifier(cancel).visit(node)


class _Simplifier(ast.NodeTransformer):
    def __init__(self, cancel: bool) -> None:
        self.cancel = cancel

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "squeeze" and node.keywords:
            summed, axis = node.func.value, ast.unparse(node.keywords[0])
            if isinstance(summed, ast.Call) and [ast.unparse(k) for k in summed.keywords] == [
                axis,
                "keepdims=True",
            ]:
                return ast.Call(summed.func, summed.args, summed.keywords[:1])
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        return self.product(node) if isinstance(node.op, ast.USub) else node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.op, (ast.Mult, ast.Div)):
            return self.product(node)
        if isinstance(node.op, (ast.Add, ast.Sub)) and (right := _without_sign(node.right)) is not None:
            return ast.BinOp(node.left, ast.Sub() if isinstance(node.op, ast.Add) else ast.Add(), right)
        return node

    def product(self, node: ast.expr) -> ast.expr:
        """Gather the sign and the constant of a chain of products and quotients."""
        sign, constant = 1, 1
        rest: list[tuple[bool, ast.expr]] = []
        for divides, factor in _factors(node):
            while (opposite := _without_sign(factor)) is not None:
                sign, factor = -sign, opposite
            number = factor.value if isinstance(factor, ast.Constant) else None
            if not divides and isinstance(number, (int, float)) and not isinstance(number, bool):
                constant *= number  # type: ignore[assignment]
            elif not (divides and number == 1) and not (self.cancel and _cancels(rest, divides, factor)):
                rest.append((divides, factor))
        result: ast.expr | None = None
        if constant != 1 or not rest or rest[0][0]:
            result = ast.Constant(1 if constant == 1 else constant)
        for divides, factor in rest:
            operation = ast.Div() if divides else ast.Mult()
            result = factor if result is None else ast.BinOp(result, operation, factor)
        assert result is not None
        return _negated(result) if sign < 0 else result


def _factors(node: ast.expr) -> list[tuple[bool, ast.expr]]:
    """Return the factors of a chain of products and quotients, each with whether it divides."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        inner = node.right  # a quotient on the right keeps its order: a * (b / c) is not taken apart
        is_product = isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Mult)
        return _factors(node.left) + (_factors(inner) if is_product else [(False, inner)])
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return [*_factors(node.left), (True, node.right)]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return [(False, ast.Constant(-1)), *_factors(node.operand)]
    return [(False, node)]


def _cancels(rest: list[tuple[bool, ast.expr]], divides: bool, factor: ast.expr) -> bool:
    """Take the opposite of a factor away, if it is there; the first may give the product its shape."""
    text = ast.unparse(factor)
    for k, (other, known) in enumerate(rest[1:], start=1):
        if other != divides and ast.unparse(known) == text:
            del rest[k]
            return True
    return False


def _without_sign(node: ast.expr) -> ast.expr | None:
    """Return the opposite of an expression that starts with a minus, None for another."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return node.operand
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div, ast.MatMult)):
        left = _without_sign(node.left)
        return ast.BinOp(left, node.op, node.right) if left is not None else None
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and node.value < 0:
        return ast.Constant(-node.value)
    return None


def _negated(node: ast.expr) -> ast.expr:
    """Put a minus at the front of a chain of products."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
        return ast.BinOp(_negated(node.left), node.op, node.right)
    return ast.UnaryOp(ast.USub(), node)

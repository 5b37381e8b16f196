"""Lines of a program in mathematical notation: from Python's syntax tree to TeX."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from handgrad.program.lines_in_python import evaluate

GREEK = {"alpha", "beta", "gamma", "delta", "epsilon", "eta", "lambda", "mu", "rho", "sigma", "tau"}
LOSS = "L"
FUNCTIONS = {
    "np.log": r"\log", "np.tanh": r"\tanh", "np.sin": r"\sin", "np.cos": r"\cos",
    "np.maximum": r"\max", "np.minimum": r"\min", "normal_cdf": r"\Phi",
}  # fmt: skip
COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Gt: ">", ast.GtE: r"\geq", ast.Lt: "<", ast.LtE: r"\leq", ast.Eq: "=", ast.NotEq: r"\neq",
}  # fmt: skip
SUM, ENTRYWISE, PRODUCT, SIGN, POWER, ATOM = range(6)
"""The precedence of the parts of a formula, the lowest first."""

OF_ONE = {
    "np.abs": (r"\left|%s\right|", ATOM), "np.sqrt": (r"\sqrt{%s}", ATOM), "np.exp": ("e^{%s}", POWER),
    "np.expm1": ("e^{%s} - 1", SUM), "np.log1p": (r"\log\left(1 + %s\right)", POWER),
    "np.ones_like": (r"\mathbf{1}%.0s", ATOM),
}  # fmt: skip
"""Functions of one argument, each with its precedence."""

BINARY: dict[type[ast.operator], tuple[str, int, int, int]] = {
    ast.Add: ("%s + %s", SUM, SUM, SUM), ast.Sub: ("%s - %s", SUM, ENTRYWISE, SUM),
    ast.Div: (r"\frac{%s}{%s}", SUM, SUM, POWER), ast.Pow: ("{%s}^{%s}", ATOM, SUM, POWER),
}  # fmt: skip
"""Operators, each with the precedences of its operands and its own."""

LONG = (
    90  # characters of a factor too long for a brace under it, or to be above a line: neither can be broken
)


def name_to_tex(name: str) -> str:
    """Write a name as mathematics does.

    Examples
    --------
    >>> print(name_to_tex("W1"), name_to_tex("gamma2"), name_to_tex("xhat"), name_to_tex("l"))
    W_{1} \\gamma_{2} \\hat{x} \\ell
    """
    stem, digits = re.fullmatch(r"(.*?)(\d*)", name).groups()  # type: ignore[union-attr]
    if name == "loss":
        return LOSS
    if stem.endswith("hat") and len(stem) == 4:
        written = rf"\hat{{{stem[0]}}}"
    elif stem in GREEK:
        written = rf"\{stem}"
    elif stem == "l":
        written = r"\ell"
    else:
        written = stem if len(stem) == 1 else rf"\mathrm{{{stem.replace('_', chr(92) + '_')}}}"
    return f"{written}_{{{digits}}}" if digits and stem else written or digits


def derivative_to_tex(output: str, value: str) -> str:
    """Write the derivative of one value with respect to another."""
    return rf"\frac{{\partial {name_to_tex(output)}}}{{\partial {name_to_tex(value)}}}"


@dataclass(frozen=True)
class Formula(ast.NodeVisitor):
    """Writes expressions over the values of an execution as TeX: each part, with its precedence."""

    scope: Mapping[str, Any]  # the values, whose shapes tell a product of numbers from one of arrays
    gradients: Mapping[str, str]  # the value that each gradient belongs to
    letters: Callable[[tuple[int, ...]], tuple[str, ...]]  # of a shape's axes, for sums over them
    braces: bool = False  # whether the shape is written under each factor

    def line(self, target: str, operator: str, expression: str) -> str:
        """Write a whole line; its target is a name or a part of one."""
        left, right = self.write(target), self.write(expression)
        if operator == "=":
            return f"{left} = {right}"
        return rf"{left} \leftarrow {left} {operator[0]} {self._at(ast.parse(expression, mode='eval').body, ENTRYWISE)}"

    def write(self, expression: str) -> str:
        """Write an expression."""
        return self.visit(ast.parse(expression, mode="eval").body)[0]

    def name(self, name: str) -> str:
        """Write a name; that of a gradient as a derivative of the loss."""
        if name == "dloss":  # 1: ∂L/∂L within a fraction is no help
            return r"\mathrm{d}L"
        if name not in self.gradients:
            return name_to_tex(name)
        of = self.gradients[name]
        part = name.removeprefix(f"d{of}").strip("_")
        return derivative_to_tex("loss", of) + (rf"\big|_{{{name_to_tex(part)}}}" if part else "")

    def shape(self, node: ast.expr) -> tuple[int, ...]:
        """Return the shape of a part of an expression."""
        with np.errstate(all="ignore"):
            return np.shape(evaluate(ast.unparse(node), self.scope))

    def _at(self, node: ast.expr, level: int = SUM) -> str:
        """Write a part, in brackets where its precedence is below a level."""
        text, own = self.visit(node)
        return text if own >= level else rf"\left({text}\right)"

    def _factor(self, node: ast.expr, level: int = PRODUCT) -> str:
        """Write one factor of a product, with its shape under it unless it is a product itself."""
        text = self._at(node, level)
        inner = isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult | ast.Mult)
        shape = self.shape(node) if self.braces and not inner and len(text) <= LONG else ()
        sizes = r" \times ".join(map(str, shape))
        return rf"\underbrace{{{text}}}_{{{sizes}}}" if shape else text

    def generic_visit(self, node: ast.AST) -> tuple[str, int]:
        return rf"\text{{{_plain(ast.unparse(node))}}}", ATOM

    def visit_Name(self, node: ast.Name) -> tuple[str, int]:
        return self.name(node.id), ATOM

    def visit_Constant(self, node: ast.Constant) -> tuple[str, int]:
        if not isinstance(node.value, int | float):
            return self.generic_visit(node)
        number = f"{node.value:.6g}"
        mantissa, e, exponent = number.partition("e")
        return (rf"{mantissa} \cdot 10^{{{int(exponent)}}}", PRODUCT) if e else (number, ATOM)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> tuple[str, int]:
        sign = {ast.USub: "-", ast.UAdd: "+"}.get(type(node.op), r"\lnot ")
        return f"{sign}{self._at(node.operand, SIGN)}", SIGN

    def visit_BinOp(self, node: ast.BinOp) -> tuple[str, int]:
        left, right = node.left, node.right
        if isinstance(node.op, ast.Div) and len(long := self._at(left, ENTRYWISE)) > LONG:
            return f"{long} / {self._at(right, POWER)}", ENTRYWISE
        if type(node.op) in BINARY:
            form, of_left, of_right, precedence = BINARY[type(node.op)]
            return form % (self._at(left, of_left), self._at(right, of_right)), precedence
        if isinstance(node.op, ast.Mult) and self.shape(left) and self.shape(right):
            return rf"{self._factor(left, ENTRYWISE)} \odot {self._factor(right, PRODUCT)}", ENTRYWISE
        if isinstance(node.op, ast.Mult | ast.MatMult):
            if isinstance(right, ast.Constant) and not isinstance(left, ast.Constant):
                left, right = (
                    right,
                    left,
                )  # a number comes first: after a ⊙ it would seem to be one of its factors
            sign = r"\cdot" if isinstance(right, ast.Constant) else r"\,"
            return f"{self._factor(left)} {sign} {self._factor(right, SIGN)}", PRODUCT
        return self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> tuple[str, int]:
        return rf"\mathbf{{1}}\left[{self._condition(node)}\right]", ATOM

    def _condition(self, node: ast.expr) -> str:
        if not isinstance(node, ast.Compare):
            return self._at(node)
        parts = [self._at(node.left)]
        for operator, side in zip(node.ops, node.comparators, strict=True):
            parts += [COMPARISONS.get(type(operator), "?"), self._at(side)]
        return " ".join(parts)

    def visit_Attribute(self, node: ast.Attribute) -> tuple[str, int]:
        if node.attr == "T":
            return f"{{{self._at(node.value, ATOM)}}}^{{\\top}}", POWER
        if node.attr == "size":
            return _sizes(self.letters(self.shape(node.value))), PRODUCT
        return self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> tuple[str, int]:
        index = ast.unparse(node.slice)
        if index == "(..., None)":  # broadcast over the last axis: mathematics does not write it
            return self.visit(node.value)
        if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            chosen = evaluate(f"letters[{index}]", {"letters": self.letters(self.shape(node.value.value))})
            return _sizes([chosen] if isinstance(chosen, str) else chosen), ATOM
        inner = self._at(node.slice) if isinstance(node.slice, ast.Name) else rf"\text{{{_plain(index)}}}"
        return f"{{{self._at(node.value, ATOM)}}}_{{{inner}}}", ATOM

    def visit_Call(self, node: ast.Call) -> tuple[str, int]:
        name, arguments = ast.unparse(node.func), node.args
        if isinstance(node.func, ast.Attribute) and not name.startswith("np."):
            return self._reduction(node, node.func)
        # shapes would be in the way within a function's arguments
        inner = self if name in ("rows", "np.where") else replace(self, braces=False)
        written = [inner._at(argument) for argument in arguments]
        if name in OF_ONE:
            form, precedence = OF_ONE[name]
            return form % written[0], precedence
        match name:
            case "np.where":
                case = rf"{written[1]} & {self._condition(arguments[0])} \\ {written[2]} & \text{{else}}"
                return rf"\begin{{cases}} {case} \end{{cases}}", ATOM
            case "np.full_like":
                number = inner._at(arguments[1], PRODUCT)
                return (r"\mathbf{1}", ATOM) if number == "1" else (rf"{number} \, \mathbf{{1}}", PRODUCT)
            case "rows":
                return written[0], self.visit(arguments[0])[1]
            case "one_hot" | "add_rows_at":  # the last argument only lends its shape
                written = written[:-1]
        function = FUNCTIONS.get(name) or rf"\operatorname{{{_plain(name.removeprefix('np.'))}}}"
        return rf"{function}\left({', '.join(written)}\right)", POWER

    def _reduction(self, node: ast.Call, method: ast.Attribute) -> tuple[str, int]:
        """Write ``v.sum(axis=0)`` and its like, with the letter of the axis."""
        letters = self.letters(self.shape(method.value))
        axes = {word.arg: word.value for word in node.keywords}.get("axis")
        numbers = evaluate(ast.unparse(axes), {}) if axes is not None else range(len(letters))
        chosen = [letters[k] for k in ((numbers,) if isinstance(numbers, int) else numbers)]
        below = " ".join(name_to_tex(letter.lower()) for letter in chosen)
        signs = {
            "sum": rf"\sum_{{{below}}}", "mean": rf"\frac{{1}}{{{_sizes(chosen)}}} \sum_{{{below}}}",
            "max": rf"\max_{{{below}}}", "min": rf"\min_{{{below}}}",
        }  # fmt: skip
        if method.attr not in signs:
            return self.generic_visit(node)
        return f"{signs[method.attr]} {self._at(method.value, PRODUCT)}", PRODUCT


def _sizes(letters: Sequence[str]) -> str:
    """Write the product of some axes' sizes."""
    return r" \, ".join(map(name_to_tex, letters)) or "1"


def _plain(text: str) -> str:
    """Escape what TeX would read as more than a character."""
    return re.sub(r"([\\{}$&#^_%~])", lambda m: {"\\": "/", "^": "", "~": ""}.get(m[1], "\\" + m[1]), text)

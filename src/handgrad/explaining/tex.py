"""Lines of a program in mathematical notation: from Python's syntax tree to TeX."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
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

Letters = Callable[[tuple[int, ...]], tuple[str, ...]]  # of a shape's axes


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


class Formula:
    """Writes expressions over the values of an execution as TeX.

    Parameters
    ----------
    scope
        The values, whose shapes tell a product of numbers from one of arrays.
    gradients
        The value that each gradient belongs to, by the gradient's name.
    letters
        The letters of a shape's axes, for sums over them.
    braces
        Whether the shape is written under each factor.
    """

    def __init__(
        self,
        scope: Mapping[str, Any],
        gradients: Mapping[str, str],
        letters: Letters,
        *,
        braces: bool = False,
    ) -> None:
        self.scope, self.gradients, self.letters, self.braces = scope, gradients, letters, braces
        self._shapes: dict[str, tuple[int, ...]] = {}

    def line(self, target: str, operator: str, expression: str) -> str:
        """Write a whole line."""
        return f"{self.name(target)} {operator} {self.write(expression)}"

    def write(self, expression: str) -> str:
        """Write an expression."""
        return self._write(ast.parse(expression, mode="eval").body)[0]

    def name(self, name: str) -> str:
        """Write a name; that of a gradient as a derivative of the loss."""
        if name not in self.gradients:
            return name_to_tex(name)
        of = self.gradients[name]
        part = name.removeprefix(f"d{of}").strip("_")
        return derivative_to_tex("loss", of) + (rf"\big|_{{{name_to_tex(part)}}}" if part else "")

    def shape(self, node: ast.expr) -> tuple[int, ...]:
        """Return the shape of a part of an expression."""
        text = ast.unparse(node)
        if text not in self._shapes:
            with np.errstate(all="ignore"):
                self._shapes[text] = np.shape(evaluate(text, self.scope))
        return self._shapes[text]

    @cached_property
    def _arguments(self) -> Formula:
        """Writes the arguments of a function, where shapes would be in the way."""
        return Formula(self.scope, self.gradients, self.letters)

    def _at(self, node: ast.expr, level: int = SUM) -> str:
        """Write a part, in brackets where its precedence is below a level."""
        text, own = self._write(node)
        return text if own >= level else rf"\left({text}\right)"

    def _factor(self, node: ast.expr, level: int = PRODUCT) -> str:
        """Write one factor of a product, with its shape under it unless it is a product itself."""
        text = self._at(node, level)
        inner = isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult | ast.Mult)
        shape = self.shape(node) if self.braces and not inner else ()
        sizes = r" \times ".join(map(str, shape))
        return rf"\underbrace{{{text}}}_{{{sizes}}}" if shape else text

    def _write(self, node: ast.expr) -> tuple[str, int]:
        """Write a part of an expression, and return its precedence."""
        writer = getattr(self, f"_write_{type(node).__name__}", _as_text)
        written: tuple[str, int] = writer(node)
        return written

    def _write_Name(self, node: ast.Name) -> tuple[str, int]:  # noqa: N802
        return self.name(node.id), ATOM

    def _write_Constant(self, node: ast.Constant) -> tuple[str, int]:  # noqa: N802
        if not isinstance(node.value, int | float):
            return _as_text(node)
        number = f"{node.value:.6g}"
        mantissa, e, exponent = number.partition("e")
        return (rf"{mantissa} \cdot 10^{{{int(exponent)}}}", PRODUCT) if e else (number, ATOM)

    def _write_UnaryOp(self, node: ast.UnaryOp) -> tuple[str, int]:  # noqa: N802
        sign = {ast.USub: "-", ast.UAdd: "+"}.get(type(node.op), r"\lnot ")
        return f"{sign}{self._at(node.operand, SIGN)}", SIGN

    def _write_BinOp(self, node: ast.BinOp) -> tuple[str, int]:  # noqa: N802
        left, right = node.left, node.right
        match node.op:
            case ast.Add():
                return f"{self._at(left, SUM)} + {self._at(right, SUM)}", SUM
            case ast.Sub():
                return f"{self._at(left, SUM)} - {self._at(right, ENTRYWISE)}", SUM
            case ast.Div():
                return rf"\frac{{{self._at(left)}}}{{{self._at(right)}}}", POWER
            case ast.Pow():
                return f"{{{self._at(left, ATOM)}}}^{{{self._at(right)}}}", POWER
            case ast.MatMult():
                return rf"{self._factor(left)} \, {self._factor(right, SIGN)}", PRODUCT
            case ast.Mult():
                if self.shape(left) and self.shape(right):
                    written = self._factor(left, ENTRYWISE), self._factor(right, PRODUCT)
                    return r" \odot ".join(written), ENTRYWISE
                sign = r"\cdot" if isinstance(right, ast.Constant) else r"\,"
                return f"{self._factor(left)} {sign} {self._factor(right, SIGN)}", PRODUCT
        return _as_text(node)

    def _write_Compare(self, node: ast.Compare) -> tuple[str, int]:  # noqa: N802
        return rf"\mathbf{{1}}\left[{self._condition(node)}\right]", ATOM

    def _condition(self, node: ast.expr) -> str:
        if not isinstance(node, ast.Compare):
            return self._at(node)
        parts = [self._at(node.left)]
        for operator, side in zip(node.ops, node.comparators, strict=True):
            parts += [COMPARISONS.get(type(operator), "?"), self._at(side)]
        return " ".join(parts)

    def _write_Attribute(self, node: ast.Attribute) -> tuple[str, int]:  # noqa: N802
        if node.attr == "T":
            return f"{{{self._at(node.value, ATOM)}}}^{{\\top}}", POWER
        if node.attr == "size":
            return _sizes(self.letters(self.shape(node.value))), PRODUCT
        return _as_text(node)

    def _write_Subscript(self, node: ast.Subscript) -> tuple[str, int]:  # noqa: N802
        index = ast.unparse(node.slice)
        if index == "(..., None)":  # broadcast over the last axis: mathematics does not write it
            return self._write(node.value)
        if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            letters = self.letters(self.shape(node.value.value))
            axis = evaluate(index, {})
            return _sizes([letters[axis]] if isinstance(axis, int) else letters), ATOM
        inner = self._at(node.slice) if isinstance(node.slice, ast.Name) else rf"\text{{{_plain(index)}}}"
        return f"{{{self._at(node.value, ATOM)}}}_{{{inner}}}", ATOM

    def _write_Call(self, node: ast.Call) -> tuple[str, int]:  # noqa: N802
        name, arguments = ast.unparse(node.func), node.args
        if isinstance(node.func, ast.Attribute) and not name.startswith("np."):
            return self._reduction(node, node.func)
        write = self._at if name in ("rows", "np.where") else self._arguments._at
        written = [write(argument) for argument in arguments]
        if name in OF_ONE:
            form, precedence = OF_ONE[name]
            return form % written[0], precedence
        match name:
            case "np.where":
                case = rf"{written[1]} & {self._condition(arguments[0])} \\ {written[2]} & \text{{else}}"
                return rf"\begin{{cases}} {case} \end{{cases}}", ATOM
            case "np.full_like":
                return rf"{self._arguments._at(arguments[1], PRODUCT)} \, \mathbf{{1}}", PRODUCT
            case "rows":
                return written[0], self._write(arguments[0])[1]
            case "one_hot" | "add_rows_at":  # the last argument only lends its shape
                written = written[:-1]
        function = FUNCTIONS.get(name) or rf"\operatorname{{{_plain(name.removeprefix('np.'))}}}"
        return rf"{function}\left({', '.join(written)}\right)", POWER

    def _reduction(self, node: ast.Call, method: ast.Attribute) -> tuple[str, int]:
        """Write ``v.sum(axis=0)`` and its like, with the letter of the axis."""
        letters = self.letters(self.shape(method.value))
        axes = {word.arg: word.value for word in node.keywords}.get("axis")
        chosen = letters if axes is None else (letters[evaluate(ast.unparse(axes), {})],)
        below = " ".join(name_to_tex(letter.lower()) for letter in chosen)
        signs = {
            "sum": rf"\sum_{{{below}}}", "mean": rf"\frac{{1}}{{{_sizes(chosen)}}} \sum_{{{below}}}",
            "max": rf"\max_{{{below}}}", "min": rf"\min_{{{below}}}",
        }  # fmt: skip
        if method.attr not in signs:
            return _as_text(node)
        return f"{signs[method.attr]} {self._at(method.value, PRODUCT)}", PRODUCT


def _as_text(node: ast.expr) -> tuple[str, int]:
    return rf"\text{{{_plain(ast.unparse(node))}}}", ATOM


def _sizes(letters: Sequence[str]) -> str:
    """Write the product of some axes' sizes."""
    return r" \, ".join(map(name_to_tex, letters)) or "1"


def _plain(text: str) -> str:
    """Escape what TeX would read as more than a character."""
    return re.sub(r"([\\{}$&#^_%~])", lambda m: {"\\": "/", "^": "", "~": ""}.get(m[1], "\\" + m[1]), text)

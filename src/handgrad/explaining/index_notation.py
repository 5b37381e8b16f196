"""A forward line by the indices of one entry: ``z1[n, o] = Σ_i x[n, i] · W1[i, o] + b1[o]``."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from handgrad.program.lines_in_python import evaluate

SUM, SIGMA, PRODUCT, ATOM = range(4)
"""The precedence of the parts of an entry, the lowest first: a Σ is over the product that follows it."""

BINARY: dict[type[ast.operator], tuple[str, int, int, int]] = {
    ast.Add: ("%s + %s", SUM, SUM, SUM), ast.Sub: ("%s - %s", SUM, PRODUCT, SUM),
    ast.Mult: ("%s · %s", PRODUCT, PRODUCT, PRODUCT), ast.Div: ("%s / %s", PRODUCT, ATOM, PRODUCT),
    ast.Pow: ("%s ** %s", ATOM, ATOM, ATOM),
}  # fmt: skip
"""Operators, each with the least precedences of its operands and its own."""

COMPARED: dict[type[ast.cmpop], str] = {ast.Gt: ">", ast.GtE: "≥", ast.Lt: "<", ast.LtE: "≤"}


class UnwrittenError(Exception):
    """A part of a line that is no entry of its operands' entries: windows, other shapes."""


@dataclass(frozen=True)
class Entry:
    """Writes one entry of an expression over the values of an execution."""

    scope: Mapping[str, Any]
    letters: Callable[[str], tuple[str, ...]]  # of a value's axes: those that are summed over have its letter

    def write(self, node: ast.expr, at: Sequence[str], level: int = SUM) -> str:
        """Write the entry of a part at these indices, in brackets where its precedence is below a level."""
        text, own = self._part(node, tuple(at))
        return text if own >= level else f"({text})"

    def _part(self, node: ast.expr, at: tuple[str, ...]) -> tuple[str, int]:
        match node:
            case ast.Constant(value=int() | float() as number):
                return f"{number:g}", ATOM
            case ast.Name():
                return self._entry(node, at), ATOM
            case ast.UnaryOp(op=ast.USub()):
                return f"-{self.write(node.operand, at, ATOM)}", PRODUCT
            case ast.BinOp(op=ast.MatMult()):
                return self._product(node, at), SIGMA
            case ast.BinOp() if type(node.op) in BINARY:
                form, left, right, own = BINARY[type(node.op)]
                return form % (self.write(node.left, at, left), self.write(node.right, at, right)), own
            case ast.Attribute(attr="T") if len(at) == 2:
                return self._part(node.value, at[::-1])
            case ast.Compare(ops=[operator], comparators=[right]) if type(operator) in COMPARED:
                return (
                    f"({self.write(node.left, at)} {COMPARED[type(operator)]} {self.write(right, at)})",
                    ATOM,
                )
            case ast.Subscript() if ast.unparse(node.slice) == "(..., None)":
                return self._part(node.value, at[:-1])
            case ast.Call(func=ast.Attribute() as function):
                return self._call(node, function, at)
        raise UnwrittenError

    def _shape(self, node: ast.expr) -> tuple[int, ...]:
        with np.errstate(all="ignore"):
            return np.shape(evaluate(ast.unparse(node), self.scope))

    def _entry(self, node: ast.Name, at: tuple[str, ...]) -> str:
        """Write an entry of a value: its last axes are those of the result, and one of a single number is broadcast."""
        shape = self._shape(node)
        if len(shape) > len(at):
            raise UnwrittenError
        own = [
            letter if size > 1 or letter.rstrip("′") == axis.lower() else "0"
            for letter, size, axis in zip(
                at[len(at) - len(shape) :], shape, self.letters(node.id), strict=True
            )
        ]
        return f"{node.id}[{', '.join(own)}]" if own else node.id

    def _product(self, node: ast.BinOp, at: tuple[str, ...]) -> str:
        shape = self._shape(node.left)
        if len(shape) != len(at) or len(self._shape(node.right)) != 2:
            raise UnwrittenError
        along = self._letter(node.left, at)
        left = self.write(node.left, (*at[:-1], along), PRODUCT)
        return f"Σ_{along} {left} · {self.write(node.right, (along, at[-1]), PRODUCT)}"

    def _letter(self, node: ast.expr, used: Sequence[str]) -> str:
        """Return a letter for the last axis of a part, which is summed over."""
        letter = (self.letters(node.id)[-1] if isinstance(node, ast.Name) else "k").lower()
        return primed(letter if letter.isidentifier() else "k", used)

    def _call(self, node: ast.Call, function: ast.Attribute, at: tuple[str, ...]) -> tuple[str, int]:
        """Write a function of entries, or a sum or a largest entry along the last axis."""
        if ast.unparse(function.value) == "np":
            if node.keywords:
                raise UnwrittenError
            name = {"maximum": "max", "minimum": "min"}.get(function.attr, function.attr)
            return f"{name}({', '.join(self.write(argument, at) for argument in node.args)})", ATOM
        options = {word.arg: ast.unparse(word.value) for word in node.keywords}
        shape = self._shape(function.value)
        if function.attr not in ("sum", "max") or options.get("axis") != "-1" or not shape:
            raise UnwrittenError
        along = self._letter(function.value, at)
        inner = at[:-1] if "keepdims" in options else at
        sign = {"sum": "Σ", "max": "max"}[function.attr]
        return f"{sign}_{along} {self.write(function.value, (*inner, along), PRODUCT)}", SIGMA


def primed(letter: str, used: Collection[str]) -> str:
    """Return a letter, with primes where it is taken."""
    while letter in used:
        letter += "′"
    return letter


def forward_entry(target: str, tree: ast.expr, at: Sequence[str], entry: Entry) -> str:
    """Return a line for one entry of its target; "" where it is more than entries of its operands."""
    try:
        written = entry.write(tree, at)
    except UnwrittenError:
        return ""
    return f"{target}[{', '.join(at)}] = {written}" if at else f"{target} = {written}"

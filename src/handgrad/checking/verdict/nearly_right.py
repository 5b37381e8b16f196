"""What lies between right and wrong: a gradient that is right but for its digits, a rounded constant or a clip.

Each is proved: without the clip, or with the constant's other value, the gradient is right.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from handgrad.checking.adjoint import adjoints
from handgrad.checking.forward_guards import Guard
from handgrad.checking.forward_trace import ForwardTrace, Operation
from handgrad.checking.live_code import functions_of, is_authors, recompiled, running
from handgrad.checking.subject import Array, CheckError, Subject
from handgrad.checking.verdict.comparison import Comparison, compare, numerical_gradient
from handgrad.checking.verdict.contract import violations
from handgrad.tolerance import rounding_error

SMALL = 2e-3  # of an entry: so much a constant with three digits is off
EPSILON = 1e-3  # what is smaller may be there against a division by zero
NEGLIGIBLE = 1e-6  # what is no larger is meant to make no difference
NEARER = 0.05  # of what is off may be left without what is taken for its cause
TRIED = 1e-4  # of a constant, to see what the gradient makes of it
SOLVED = 3  # steps of Newton's to the value that a rounded constant stands for
MOST_CONSTANTS = 12  # that are solved for together
SINGLE = np.zeros(0, np.float32)


def nearly_right(subject: Subject, comparison: Comparison, *, is_uneven: bool) -> str:
    """Return what keeps a wrong gradient from being right, where that is no mistake in its mathematics; or ""."""
    if is_uneven or not comparison.wrong:
        return _clipped(subject, comparison)
    return (
        _single(comparison)
        or _clipped(subject, comparison)
        or _unguarded(comparison)
        or _constant(subject, comparison)
    )


def _single(comparison: Comparison) -> str:
    """Look whether all that is off is what float32 has no digits for."""
    eps = rounding_error(SINGLE)
    for sample in comparison.samples:
        for name in comparison.wrong:
            got, bounds = sample.got[name], sample.bounds[name]
            wide = replace(sample.rounding[name], eps=eps).bounds(bounds.low, bounds.high, 0.0, bounds.size)
            with np.errstate(all="ignore"):
                is_single = np.array_equal(got, got.astype(np.float32)) and got.dtype != np.float16
            if not is_single or wide.wrong(got).any() or not np.any(got):
                return ""
    return "the gradient is right for float32, in which it is returned, and has no more digits"


def _clipped(subject: Subject, comparison: Comparison) -> str:
    """Look whether the gradient is right without what clips it in backward, by its entries or by its norm."""
    places, codes = clips(subject, comparison)
    if not places:
        return ""
    try:
        with running(codes):
            found = compare(subject, comparison.numerical)
            if found.wrong or any(each.kind != "mutated" for each in violations(subject, found.samples[0])):
                return ""
    except CheckError:
        return ""
    return f"the gradient is clipped in {places}: without that it is right"


def clips(subject: Subject, comparison: Comparison) -> tuple[str, dict[FunctionType, CodeType]]:
    """Return the lines in which backward clips, in words, and the code of the author's functions without that."""
    finder = _Unclipped()
    functions = functions_reached(subject, comparison)
    codes = recompiled(functions, lambda tree, path, is_script: finder.visit(tree))
    spans = [[line for _, _, line in each.__code__.co_lines() if line] for each in functions]
    ran = {line for span in spans if span for line in range(min(span), max(span) + 1)}
    return " and ".join(f"line {line}" for line in sorted(finder.lines & ran)), codes


class _Unclipped(ast.NodeTransformer):
    """Hands on what is clipped: by ``np.clip`` or the method, under an ``if`` on a norm, by a factor ``min(1, c / norm)``."""

    def __init__(self) -> None:
        self.lines: set[int] = set()

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name("np" | "numpy"), attr="clip"), args=[array, *_]):
                pass
            case ast.Call(func=ast.Attribute(value=array, attr="clip")):
                pass
            case ast.Call(func=ast.Name("min") | ast.Attribute(attr="minimum"), args=[*parts]) if any(
                map(_is_norm, parts)
            ) and any(_is_one(each) for each in parts):
                array = next(each for each in parts if _is_one(each))
            case _:
                return node
        self.lines.add(node.lineno)
        return array

    def visit_If(self, node: ast.If) -> ast.AST:
        self.generic_visit(node)
        moves = all(isinstance(each, ast.Assign | ast.AugAssign | ast.For) for each in node.body)
        if moves and not node.orelse and isinstance(node.test, ast.Compare) and _is_norm(node.test):
            self.lines.add(node.body[0].lineno)
            node.test = ast.Constant(value=False)
        return node


def _is_norm(node: ast.AST) -> bool:
    names = (getattr(each, "id", getattr(each, "attr", "")) for each in ast.walk(node))
    return any("norm" in name for name in names)


def _is_one(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value == 1


def _is_right(subject: Subject, comparison: Comparison) -> bool:
    try:
        return not compare(subject, comparison.numerical).wrong
    except CheckError:
        return False


def functions_reached(subject: Subject, comparison: Comparison) -> list[FunctionType]:
    """Return the author's functions that forward and backward run."""
    sample = comparison.samples[0]
    return list(functions_of(lambda: subject.run_backward(sample.upstream, sample.inputs)))


# -------------------------------------------------------------------- what guards forward against log(0) and 1/0


def _unguarded(comparison: Comparison) -> str:
    """Look whether backward is the gradient of forward without a guard: ``p + 1e-7``, ``np.clip(p, eps, 1 - eps)``."""
    trace = comparison.numerical.analytic.trace
    if trace is None:
        return ""
    guards = {each: index for each in trace.operations if (index := _guarded(each, trace.values)) is not None}
    by_line: dict[Any, dict[Operation, int]] = {}
    for each, index in guards.items():
        by_line.setdefault(each.place, {})[each] = index
    for some in (*by_line.values(), guards):
        if some and _is_gradient_without(some, trace, comparison):
            first = next(iter(some))
            value = min(_bounds(first, trace.values))
            line = f"`{trace.source(first)}` (line {first.place[1]})"
            return f"the gradient is right but for {value:g} in {line}, which forward and backward do not both have"
    return ""


def guards_of_forward_alone(comparison: Comparison) -> dict[Guard, str]:
    """Return what guards forward alone, as in ``np.log(p + 1e-9)``, with its lines: of it, no edit of backward is exact."""
    trace = comparison.numerical.analytic.trace
    if trace is None:
        return {}
    found: dict[Guard, str] = {}
    for each in trace.operations:
        if each.name == "add" and _guarded(each, trace.values) is not None:
            file, line, _ = each.place
            (value,) = _bounds(each, trace.values)
            if value <= NEGLIGIBLE and is_authors(file):
                found[Guard(Path(file), line, value)] = f"{value:g} in `{trace.source(each)}` (line {line})"
    return {each: text for each, text in found.items() if each.is_forward_s_alone(found)}


def _bounds(operation: Operation, values: Sequence[Any]) -> list[float]:
    """Return the operands that are single numbers and no results."""
    return [float(values[i]) for i in operation.inputs if np.ndim(values[i]) == 0]


def _guarded(operation: Operation, values: Sequence[Any]) -> int | None:
    """Return the operand that an operation hands on but for a small number, or None.

    What limits is a guard for what is limited anyway: probabilities and sizes. What cuts off other values is none.
    """
    if operation.name not in ("add", "maximum", "fmax", "minimum", "fmin", "clip"):
        return None
    several = [i for i in operation.inputs if np.ndim(values[i]) > 0]
    bounds = _bounds(operation, values)
    if len(several) != 1 or not bounds:
        return None
    value = values[several[0]]
    is_small = all(0 < bound <= EPSILON for bound in bounds)
    match operation.name:
        case "add":
            fits = is_small
        case "maximum" | "fmax":
            fits = is_small and bool(np.all(value >= 0))
        case "minimum" | "fmin":
            fits = 0 < 1 - bounds[0] <= EPSILON and bool(np.all(value <= 1))
        case _:
            is_small = 0 < bounds[0] <= EPSILON and 0 < 1 - bounds[-1] <= EPSILON
            fits = is_small and bool(np.all((value >= 0) & (value <= 1)))
    return several[0] if fits else None


def _is_gradient_without(guards: dict[Operation, int], trace: ForwardTrace, comparison: Comparison) -> bool:
    """Whether backward's wrong gradients are those of forward with each guard left out."""
    handed_on = {
        each: replace(each, name="positive", function=np.positive, inputs=(index,))
        for each, index in guards.items()
    }
    without = replace(trace, operations=tuple(handed_on.get(each, each) for each in trace.operations))
    values = without.replay(comparison.numerical.exact)
    for sample in comparison.samples:
        found = adjoints(without, values, sample.upstream)
        for name in comparison.wrong:
            got, right = sample.got[name], sample.expected(name)
            if got.shape != right.shape:
                return False
            off = np.asarray(found.get(trace.inputs[name], 0.0)) + np.zeros(got.shape) - got
            if not np.abs(off).max(initial=0) <= NEARER * np.abs(right - got).max(initial=0):
                return False
    return True


# ------------------------------------------------------------------------------------------- constants


def _constant(subject: Subject, comparison: Comparison) -> str:
    """Look for constants of the author's with other values of which the gradient is right: one of them, or several."""
    if not all(_is_small(comparison, name) for name in comparison.wrong):
        return ""
    constants = [
        _Constant(function, number, value)
        for function in functions_reached(subject, comparison)
        for number, value in enumerate(function.__code__.co_consts)
        if type(value) is float and value != 0 and np.isfinite(value)
    ]
    several = [constants] if 1 < len(constants) <= MOST_CONSTANTS else []
    groups = [*([each] for each in constants), *several]
    return next(filter(None, (_other_values(subject, comparison, group) for group in groups)), "")


@dataclass(frozen=True)
class _Constant:
    """A number in a function's code."""

    function: FunctionType
    number: int
    value: float

    @property
    def place(self) -> str:
        code = self.function.__code__
        return f"{code.co_name} (line {code.co_firstlineno})"

    def is_rounded(self, other: float) -> bool:
        """Whether it is another number with as many digits as are written."""
        digits = len(repr(self.value).partition("e")[0].partition(".")[2])
        return "e" not in repr(self.value) and abs(other - self.value) <= 0.51 * 0.1**digits


def _with(constants: Sequence[_Constant], values: Iterable[float]) -> dict[FunctionType, CodeType]:
    """Return the code of the constants' functions with other values in it."""
    every: dict[FunctionType, list[Any]] = {
        each.function: [*each.function.__code__.co_consts] for each in constants
    }
    for each, value in zip(constants, values, strict=True):
        every[each.function][each.number] = value
    return {
        function: function.__code__.replace(co_consts=tuple(consts)) for function, consts in every.items()
    }


def _is_small(comparison: Comparison, name: str) -> bool:
    """Whether all that is wrong of a gradient is small beside each of its entries."""
    for sample in comparison.samples:
        got, right = sample.got[name], sample.expected(name)
        if got.shape != right.shape or not np.all(np.isfinite(got)):
            return False
        if np.abs(got - right).max(initial=0) > SMALL * np.abs(right).max(initial=0):
            return False
    return True


def _other_values(subject: Subject, comparison: Comparison, constants: Sequence[_Constant]) -> str:
    """Return what constants are to be, in words: left out, or the values that they are a rounding of; or ""."""
    sample, values = comparison.samples[0], np.array([each.value for each in constants])
    right = np.concatenate([sample.expected(name).ravel() for name in comparison.wrong])

    def run(others: Array) -> Array:
        with running(_with(constants, map(float, others))):
            found = subject.run_backward(sample.upstream, sample.inputs)
        return np.concatenate([np.asarray(found[name], np.float64).ravel() for name in comparison.wrong])

    try:
        first = constants[0]
        if len(constants) == 1 and abs(first.value) <= EPSILON:
            without = _with(constants, [0.0])
            if _without(subject, comparison, first.function, without[first.function]):
                said = f"right but for {first.value:g}, which forward and backward do not both have"
                return f"the gradient is {said}, in {first.place}"
        others = values
        for _ in range(SOLVED):
            got = run(others)
            steps = TRIED * others
            slopes = np.stack(
                [
                    run(others + np.where(np.arange(len(values)) == k, steps, 0)) - got
                    for k in range(len(values))
                ],
                1,
            )
            if not np.any(slopes):
                return ""
            others = others + steps * np.linalg.lstsq(slopes, right - got, rcond=1e-9)[0]
        changed = [
            (each, float(other)) for each, other in zip(constants, others, strict=True)
            if abs(other / each.value - 1) > 1e-9
        ]  # fmt: skip
        if not changed or not all(each.is_rounded(other) for each, other in changed):
            return ""
        with running(_with(constants, map(float, others))):
            is_right = _is_right(subject, comparison)
    except (CheckError, KeyError, ValueError, np.linalg.LinAlgError):
        return ""
    known = min(int(-np.log10(abs(other / each.value - 1))) for each, other in changed)
    texts = (f"{each.value:g} is {other:.10g}, rounded, in {each.place}" for each, other in changed)
    return f"the gradient is right to {known} digits: {'; '.join(texts)}" if is_right else ""


def _without(subject: Subject, comparison: Comparison, function: FunctionType, code: CodeType) -> bool:
    """Whether backward is the gradient of forward when a number that is nearly 0 is 0, in whichever of the two it is."""
    with running({function: code}):
        if _is_right(subject, comparison):
            return True
        numerical = numerical_gradient(subject, comparison.numerical.inputs, comparison.arguments, 0)
    pairs = zip(comparison.samples, compare(subject, numerical).samples, strict=True)
    return not any(
        replace(sample, bounds=other.bounds).is_wrong(name)
        for sample, other in pairs
        for name in comparison.arguments
    )

"""Whether a factor is the number of rows: by the sizes of the inputs, by fewer rows, by what forward averages over."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice

import numpy as np

from handgrad.checking.forward_trace import ForwardTrace
from handgrad.checking.input_draws import shorter
from handgrad.checking.subject import CheckError, widened
from handgrad.checking.verdict.comparison import Evidence, compare, numerical_gradient
from handgrad.tolerance import close

CLEARLY = 4  # a product of two sizes that is no larger may be any constant
SQUARES = (2, 4)  # sizes that are common constants


def counts_features(evidence: Evidence, argument: str, factor: float) -> bool:
    """Whether a factor is the number of the argument's own columns, and of no rows anywhere: no batch is that."""
    size = round(max(abs(factor), 1 / abs(factor)))
    tables = [shape for shape in _shapes_of(evidence) if len(shape) > 1 and size in shape]
    own = evidence.subject.inputs[argument].shape[-1:] == (size,)
    return own and bool(tables) and not any(size in table[:-1] for table in tables)


def _shapes_of(evidence: Evidence) -> list[tuple[int, ...]]:
    return [value.shape for value in evidence.subject.inputs.values()]


def batch_sizes(
    evidence: Evidence,
    arguments: tuple[str, ...],
    factor: float,
    factor_at: Callable[[Evidence], float | None],
) -> str:
    """Say whether a factor is the number of rows or its inverse; fewer rows decide, where they can be had."""
    sizes = {size for shape in _shapes_of(evidence) for size in shape if size > 1}
    single = [(size,) for size in sizes if _is_times(factor, size)]
    products = [(a, b) for a in sizes for b in sizes if a * b > CLEARLY and _is_times(factor, a * b)]
    for parts in single or products:
        total, first = math.prod(parts), parts[0]
        what = f"{total} is {'the length of an axis' if parts in single else 'a product of the sizes'}"
        known = (factor_at(other) for other in _with_fewer(evidence, arguments, first))
        fewer = next((each for each in known if each is not None), None)
        if fewer is None and total not in SQUARES:
            return what
        if fewer is not None and _is_times(fewer, total // first * (first - 1)):
            return f"{what}, and with {first - 1} for {first} it is {fewer:.6g} times"
    averaged = (
        count for count in _averaged(evidence.trace) if count not in SQUARES and _is_times(factor, count)
    )
    return "".join(f"{count} is how many forward averages over" for count in islice(averaged, 1))


def _averaged(trace: ForwardTrace | None) -> Iterator[int]:
    """Yield how many entries each average of a trace has: a mean, or a sum that is divided by one of its lengths."""
    summed: dict[int, tuple[int, ...]] = {}  # by the number of the sum
    if trace is None:
        return
    for operation in trace.operations:
        operands = [trace.values[k] for k in operation.inputs]
        if operation.name == "mean":
            yield np.size(operands[0]) // max(np.size(trace.values[operation.output]), 1)
        elif operation.name == "sum":
            summed[operation.output] = (np.size(operands[0]), *np.shape(operands[0]))
        elif operation.name in ("divide", "multiply") and np.size(operands[1]) == 1:
            number = float(np.ravel(operands[1])[0])
            number = 1 / number if operation.name == "multiply" and number else number
            yield from (n for n in summed.get(operation.inputs[0], ()) if close(number, n))


def _is_times(factor: float, number: int) -> bool:
    """Whether a factor is a number or its inverse."""
    return close(abs(factor), number) or close(abs(factor) * number, 1.0)


def _with_fewer(evidence: Evidence, arguments: tuple[str, ...], size: int) -> Iterator[Evidence]:
    """Yield the evidence with every axis of this length one shorter, as far as the functions take it."""
    for inputs in shorter(widened(evidence.subject.inputs, np.float64), size):
        try:
            numerical = numerical_gradient(evidence.subject, inputs, arguments, 1)
            comparison = compare(evidence.subject, numerical)
        except (CheckError, ValueError, IndexError):
            continue
        yield Evidence(replace(evidence.subject, inputs=inputs), (comparison,), arguments)

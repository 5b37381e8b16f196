"""Derivatives of operations that the table does not know, by differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from handgrad.checking.forward_trace.tracer import ELEMENTWISE, Operation

_STEP = 6e-4  # about the fifth root of the rounding error, for a difference of fourth order


def numerical_contribution(operation: Operation, k: int, values: Sequence[Any], gradient: Any) -> Any:
    """Return the gradient of operand `k`, by central differences of fourth order."""
    operands = [values[i] for i in operation.inputs]
    mine = np.asarray(operands[k], dtype=float)
    steps = _STEP * np.maximum(np.abs(mine), 0.1)

    def run(changed: Any) -> Any:
        operands[k] = changed
        return np.asarray(operation.function(*operands, **operation.options), dtype=float)

    if operation.kind == ELEMENTWISE and mine.shape == np.shape(values[operation.output]):
        return gradient * _difference(run, mine, steps, steps)
    result = np.zeros(mine.size)
    for j in range(mine.size):
        direction = np.zeros(mine.size)
        direction[j] = steps.flat[j]
        slope = _difference(run, mine, direction.reshape(mine.shape), steps.flat[j])
        result[j] = np.sum(gradient * slope)
    return result.reshape(mine.shape)


def _difference(run: Callable[[Any], Any], at: Any, direction: Any, step: Any) -> Any:
    coarse = (run(at + direction) - run(at - direction)) / (2 * step)
    fine = (run(at + direction / 2) - run(at - direction / 2)) / step
    return (4 * fine - coarse) / 3

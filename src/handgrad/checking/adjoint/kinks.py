"""Which way to look at a kink: the derivatives of one pass must all look the same way.

At a kink every value between the left and the right derivative is right, but not every mixture of them:
``np.where(x >= 0, 1 / (1 + e), e / (1 + e))`` with ``e = np.exp(-abs(x))`` is smooth at 0, and its gradient is
right there only if `abs` takes the side that the comparison took. So the operations that have a kink at a
value are differentiated a little beside it, on the side that the forward's comparisons agree with.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from handgrad.checking.forward_trace import ForwardTrace
from handgrad.checking.forward_trace.tracer import Operation

KINKED = frozenset(("absolute", "fabs", "maximum", "minimum", "fmax", "fmin"))
COMPARISONS = frozenset(("less", "less_equal", "greater", "greater_equal"))
_NUDGE = 1e-7
_kept: list[tuple[ForwardTrace, Sequence[Any], dict[int, dict[int, Any]]]] = []  # of the last few calls


def sides(trace: ForwardTrace, values: Sequence[Any]) -> dict[int, dict[int, Any]]:
    """Return, for each operation that is at a kink, the operands it is to be differentiated at.

    Returns
    -------
    dict
        Number of an operation -> value -> the array to use instead; empty when nothing is at a kink.
    """
    for known, at, found in _kept:
        if known is trace and at is values:
            return found
    found = _find(trace, values)
    _kept.insert(0, (trace, values, found))
    del _kept[4:]
    return found


def _find(trace: ForwardTrace, values: Sequence[Any]) -> dict[int, dict[int, Any]]:
    with np.errstate(all="ignore"):
        ties = {o.number: tie for o in trace.operations if (tie := _ties(o, trace, values)) is not None}
        kinks = [o for o in trace.operations if o.number in ties and o.name in KINKED]
        if not kinks:
            return {}
        compared = [o for o in trace.operations if o.number in ties and o.name in COMPARISONS]
        for direction in (-1.0, 1.0):
            beside = trace.replay(_nudged(trace, values, direction))
            if all(_agrees(o, ties[o.number], values, beside) for o in compared):
                break
        return {o.number: _overlay(o, ties[o.number], values, beside) for o in kinks}


def _ties(operation: Operation, trace: ForwardTrace, values: Sequence[Any]) -> Any:
    """Return where an operation is at a kink or a jump; None for nowhere."""
    if operation.name not in KINKED and operation.name not in COMPARISONS:
        return None
    a = values[operation.inputs[0]]
    tie = a == (values[operation.inputs[1]] if len(operation.inputs) > 1 else 0)
    return tie if np.any(tie) else None


def _nudged(trace: ForwardTrace, values: Sequence[Any], direction: float) -> dict[str, Any]:
    """Return the inputs a little larger or smaller; what was equal stays equal."""
    inputs = {}
    for name, i in trace.inputs.items():
        value = values[i]
        if i in trace.active and np.size(value):
            scale = np.max(np.abs(value)) or 1.0
            value = value + direction * _NUDGE * np.where(value == 0, scale, np.abs(value))
        inputs[name] = value
    return inputs


def _agrees(operation: Operation, tie: Any, values: Sequence[Any], beside: Sequence[Any]) -> bool:
    now, then = values[operation.output], beside[operation.output]
    return bool(np.all((now == then) | ~np.asarray(tie)))


def _overlay(operation: Operation, tie: Any, values: Sequence[Any], beside: Sequence[Any]) -> dict[int, Any]:
    found = {}
    for i in operation.inputs:
        if np.shape(values[i]) == np.shape(tie):
            found[i] = np.where(tie & np.isfinite(beside[i]), beside[i], values[i])
    return found

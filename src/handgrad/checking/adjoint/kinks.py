"""Which way to look at a kink: the derivatives of one pass must all look the same way.

At a kink every value between the left and the right derivative is right, but not every mixture of them:
``np.where(x >= 0, 1 / (1 + e), e / (1 + e))`` with ``e = np.exp(-abs(x))`` is smooth at 0, and its gradient is
right there only if `abs` takes the side that the comparison took. So the operations that have a kink at a
value are differentiated at slightly perturbed inputs, on the side that the forward's comparisons agree with.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from handgrad.checking.forward_trace import ForwardTrace
from handgrad.checking.forward_trace.tracer import Operation

KINKED = frozenset(("absolute", "fabs", "maximum", "minimum", "fmax", "fmin"))
COMPARISONS = frozenset(("less", "less_equal", "greater", "greater_equal"))
_PERTURBATION = 1e-7  # relative: far above rounding, far below what changes a comparison elsewhere
_recent: list[tuple[ForwardTrace, Sequence[Any], dict[int, dict[int, Any]]]] = []  # of the last few calls


def sides(trace: ForwardTrace, values: Sequence[Any]) -> dict[int, dict[int, Any]]:
    """Return, for each operation that is at a kink, the operands it is to be differentiated at.

    Returns
    -------
    dict
        Number of an operation -> value -> the array to use instead; empty when nothing is at a kink.
    """
    for known, at, found in _recent:
        if known is trace and at is values:
            return found
    found = _find(trace, values)
    _recent.insert(0, (trace, values, found))
    del _recent[4:]
    return found


def _find(trace: ForwardTrace, values: Sequence[Any]) -> dict[int, dict[int, Any]]:
    with np.errstate(all="ignore"):
        found = ((o, _ties(o, values)) for o in trace.operations if o.name in KINKED | COMPARISONS)
        ties = [(o, tie) for o, tie in found if np.any(tie)]
        if not any(o.name in KINKED for o, _ in ties):
            return {}
        for direction in (-1.0, 1.0):
            moved = trace.replay(_perturbed_inputs(trace, values, direction))
            if all(
                np.all((values[o.output] == moved[o.output]) | ~np.asarray(tie))
                for o, tie in ties
                if o.name in COMPARISONS
            ):
                break
    return {
        o.number: {
            i: np.where(tie & np.isfinite(moved[i]), moved[i], values[i])
            for i in o.inputs
            if np.shape(values[i]) == np.shape(tie)
        }
        for o, tie in ties
        if o.name in KINKED
    }


def _ties(operation: Operation, values: Sequence[Any]) -> Any:
    """Return where an operation is at a kink or a jump."""
    return values[operation.inputs[0]] == (values[operation.inputs[1]] if len(operation.inputs) > 1 else 0)


def _perturbed_inputs(trace: ForwardTrace, values: Sequence[Any], direction: float) -> dict[str, Any]:
    """Return the inputs a little larger or smaller; what was equal stays equal."""
    inputs = {}
    for name, i in trace.inputs.items():
        value = values[i]
        if i in trace.active and np.size(value):
            scale = np.max(np.abs(value)) or 1.0
            value = value + direction * _PERTURBATION * np.where(value == 0, scale, np.abs(value))
        inputs[name] = value
    return inputs

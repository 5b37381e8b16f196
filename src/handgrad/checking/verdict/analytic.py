"""The analytic gradient of forward, for a second opinion: the chain rule over a trace of what forward does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from types import FunctionType
from typing import Any

import numpy as np

from handgrad.checking.adjoint import COMPARISONS, KINKED, adjoints, vjp_text
from handgrad.checking.forward_trace import ForwardTrace, Operation, UntraceableError, trace_forward
from handgrad.checking.subject import Array, Gradients, Inputs, Subject, closure
from handgrad.tolerance import close

LARGEST_NUMERICAL = 500  # entries of an operand whose derivative is found by differences
TWO_SIDED = KINKED | COMPARISONS | {"equal", "not_equal"}
MANY_SIDED = {"max", "min", "clip", "sort", "argsort", "argmax", "argmin", "partition"} | {
    "np.median", "quantile", "sign", "heaviside", "norm"
}  # fmt: skip


class AnalyticGradient:
    """The gradient of every argument at some inputs, where forward can be traced."""

    def __init__(self, subject: Subject, inputs: Inputs) -> None:
        self.subject, self.inputs = subject, inputs
        self._known: dict[bytes, Gradients] = {}

    @cached_property
    def trace(self) -> ForwardTrace | None:
        """What forward does."""
        return traced(self.subject, self.inputs)

    @cached_property
    def exists(self) -> bool:
        """Whether forward can be traced, and every large operand has a derivative with a formula."""
        trace = self.trace
        return trace is not None and not any(
            np.size(trace.values[operation.inputs[k]]) > LARGEST_NUMERICAL
            and vjp_text(operation, k, trace.values) is None
            for operation, k in trace.edges()
        )

    def gradients(self, upstream: Sequence[Array]) -> Gradients | None:
        """Return the gradients for an upstream one, or None."""
        if not self.exists:
            return None
        wide = [np.asarray(part, np.float64) for part in upstream]
        key = b"".join(part.tobytes() for part in wide)
        if key not in self._known and (trace := self.trace):
            found = adjoints(trace, trace.values, wide)
            self._known[key] = {
                name: np.asarray(found.get(index, 0.0), np.float64) + np.zeros(self.inputs[name].shape)
                for name, index in trace.inputs.items()
            }
        return self._known[key]

    def kinks_left(self, name: str, index: tuple[int, ...]) -> int | None:
        """Return how many kinks forward leaves when one entry is perturbed, or None when that is not known."""
        trace = self.trace
        if trace is None or any(o.name in MANY_SIDED for o in trace.operations):
            return None
        point = self.inputs[name].copy()
        point[index] += 1e-7 * (np.abs(point[index]) or 1.0)
        moved = trace.replay({**self.inputs, name: point})
        return sum(
            int(np.sum(_at_kink(operation, trace.values) & ~_at_kink(operation, moved)))
            for operation in trace.operations
            if operation.name in TWO_SIDED
        )


def _at_kink(operation: Operation, values: Sequence[Any]) -> Array:
    """Return where the two sides of an operation meet: its operands are equal, or its only one is 0."""
    first, *second = (values[k] for k in operation.inputs)
    return np.asarray(first == (second[0] if second else 0))


def traced(subject: Subject, inputs: Mapping[str, Any]) -> ForwardTrace | None:
    """Return a trace of a subject's forward, or None when it cannot be traced."""
    on_numpy = getattr(subject.forward, "on_numpy", None)  # another library's, on NumPy's arrays
    chosen = on_numpy or subject.forward

    def forward(given: dict[str, Any]) -> Any:
        return chosen(*given.values()) if subject.positional else chosen(**given)

    try:
        trace = trace_forward(forward, inputs, _functions(chosen))
    except UntraceableError:
        return None
    ends = [trace.values[index] for index in trace.outputs]
    outputs = subject.run_forward(dict(inputs)) if on_numpy else ends
    same = len(ends) == len(outputs) and all(map(close, ends, outputs))
    return trace if same else None


def _functions(function: Any) -> list[FunctionType]:
    """Return a function with those its module and its closure hold: forward may call any of them."""
    start = getattr(function, "__wrapped__", function)
    if not isinstance(start, FunctionType):
        return []
    found = [*start.__globals__.values(), *closure(start).values()]
    return [start, *(value for value in found if isinstance(value, FunctionType))]

"""Forward recorded, for a second opinion of its gradient: the chain rule over what it did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from handgrad.checking.adjoint import adjoints, vjp_text
from handgrad.checking.adjoint.kinks import COMPARISONS, KINKED
from handgrad.checking.forward_trace import ForwardTrace, UntraceableError, trace_forward
from handgrad.checking.subject import Array, Inputs, Subject, closure

LARGEST_NUMERICAL = 500  # entries of an operand whose derivative is found by differences
TWO_SIDED = KINKED | COMPARISONS | {"equal", "not_equal"}
MANY_SIDED = {"max", "min", "clip", "sort", "argsort", "argmax", "argmin", "partition"} | {
    "np.median", "quantile", "sign", "heaviside", "norm"
}  # fmt: skip


class Reference:
    """The chain rule over a recording of forward: a gradient of every argument, if forward can be recorded."""

    def __init__(self, subject: Subject, inputs: Inputs) -> None:
        self.subject, self.inputs = subject, inputs
        self._recording: Any = None
        self._known: dict[bytes, Mapping[str, Array] | None] = {}

    @property
    def recorded(self) -> bool:
        """Whether there are such gradients."""
        return any(gradients is not None for gradients in self._known.values())

    def gradients(self, upstream: Sequence[Array]) -> Mapping[str, Array] | None:
        """Return the gradients for an upstream one, or None."""
        key = b"".join(np.asarray(part, np.float64).tobytes() for part in upstream)
        if key not in self._known:
            self._known[key] = self._carry(upstream)
        return self._known[key]

    def kinks_left(self, name: str, index: tuple[int, ...]) -> int | None:
        """Return how many kinks forward leaves when one entry moves a little, or None when that is not known."""
        recording = self._record()
        if recording is None or any(o.name in MANY_SIDED for o in recording.operations):
            return None
        point = self.inputs[name].copy()
        point[index] += 1e-7 * (np.abs(point[index]) or 1.0)
        moved, left = recording.replay({**self.inputs, name: point}), 0
        for operation in recording.operations:
            if operation.name in TWO_SIDED:
                now, then = (_meets(operation, values) for values in (recording.values, moved))
                left += int(np.sum(now & ~then))
        return left

    def _record(self) -> Any:
        """Return forward's recording, or None."""
        try:
            self._recording = self._recording or trace_subject(self.subject, self.inputs)
        except UntraceableError:
            return None
        return self._recording

    def _carry(self, upstream: Sequence[Array]) -> Mapping[str, Array] | None:
        recording = self._record()
        if recording is None:
            return None
        for operation, k in recording.edges():
            size = np.size(recording.values[operation.inputs[k]])
            if size > LARGEST_NUMERICAL and vjp_text(operation, k, recording.values) is None:
                return None
        found = adjoints(recording, recording.values, [np.asarray(part, np.float64) for part in upstream])
        return {
            name: np.asarray(found.get(index, 0.0), np.float64) + np.zeros(self.inputs[name].shape)
            for name, index in recording.inputs.items()
        }


def _meets(operation: Any, values: Sequence[Any]) -> Array:
    """Return where the two sides of an operation meet: its operands are equal, or its only one is 0."""
    first, *second = (values[k] for k in operation.inputs)
    return np.asarray(first == (second[0] if second else 0))


def trace_subject(subject: Subject, inputs: Mapping[str, Any]) -> ForwardTrace:
    """Record a subject's forward; raises `UntraceableError` when it cannot be followed."""
    chosen = (
        getattr(subject.forward, "in_numpy", None) or subject.forward
    )  # another library's, in NumPy's names

    def forward(given: dict[str, Any]) -> Any:
        return chosen(*given.values()) if subject.positional else chosen(**given)

    recording = trace_forward(forward, inputs, _functions(chosen))
    if chosen is not subject.forward and not _agree(recording, subject.run_forward(dict(inputs))):
        raise UntraceableError("in NumPy's names forward gives something else")
    return recording


def _agree(recording: ForwardTrace, outputs: list[Any]) -> bool:
    """Whether a recording ends in these outputs."""
    found = [recording.values[index] for index in recording.outputs]
    return len(found) == len(outputs) and all(map(np.allclose, found, outputs))


def _functions(function: Any) -> list[FunctionType]:
    """Return a function with those its module and its closure hold: forward may call any of them."""
    start = getattr(function, "__wrapped__", function)
    if not isinstance(start, FunctionType):
        return []
    found = [start, *(v for v in start.__globals__.values() if isinstance(v, FunctionType))]
    return found + [value for value in closure(start).values() if isinstance(value, FunctionType)]

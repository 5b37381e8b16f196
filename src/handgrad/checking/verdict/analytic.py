"""The gradient by the chain rule over a trace of forward, and how long one run of forward takes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from handgrad.checking.adjoint import COMPARISONS, KINKED, adjoints, ties_of, vjp_text
from handgrad.checking.forward_trace import ForwardTrace, Operation, UntraceableError, is_users, trace_forward
from handgrad.checking.subject import Array, Gradients, Inputs, Subject
from handgrad.tolerance import close

LARGEST_NUMERICAL = 500  # entries of an operand whose derivative is found by differences
EMPTY = CellType()  # of a closure: of a name that has no value yet
TWO_SIDED = KINKED | COMPARISONS | {"equal", "not_equal"}
MANY_SIDED = {"max", "min", "clip", "sort", "argsort", "argmax", "argmin", "partition"} | {
    "median", "quantile", "sign", "heaviside", "norm"
}  # fmt: skip

# Seconds of a machine of 2024. They are counted, so that what is looked at is the same on every machine.
CALL = 1e-5
OPERATION = 2e-6
ENTRY = 1e-9  # of an array that is computed
INPUT = 1e-8  # of the inputs' entries, which are copied, and moved by random numbers
PRODUCT = 5e-11  # of two numbers in a matrix product
WIDE = 40  # times as long in a type that no processor multiplies many of
LONG = 0.01  # of one run: then it is run as few times as will do
TIMED = 3  # runs of a forward that cannot be traced, of which the shortest counts


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
        return trace is not None and all(
            np.size(trace.values[operation.inputs[k]]) <= LARGEST_NUMERICAL
            or vjp_text(operation, k, trace.values) is not None
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
            int(np.sum(ties_of(operation, trace.values) & ~ties_of(operation, moved)))
            for operation in trace.operations
            if operation.name in TWO_SIDED
        )


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
    if on_numpy:
        ends, outputs = [trace.values[index] for index in trace.outputs], subject.run_forward(dict(inputs))
        return trace if len(ends) == len(outputs) and all(map(close, ends, outputs)) else None
    return trace


def _functions(function: Any) -> list[FunctionType]:
    """Return the functions that a forward may call: of its module, and of what closures and objects of anyone's hold."""
    left, seen, found = [getattr(function, "__wrapped__", function)], {}, []
    while left:
        item = left.pop()
        if id(item) in seen or isinstance(item, type | ModuleType | np.ndarray):
            continue
        seen[id(item)] = item  # alive, so that no other gets its number
        if isinstance(item, FunctionType):
            found.append(item)
            left += [cell.cell_contents for cell in item.__closure__ or () if cell != EMPTY]
            left += (
                (each for each in item.__globals__.values() if isinstance(each, FunctionType))
                if is_users(item)
                else ()
            )
        elif isinstance(item, MethodType):
            left += [item.__func__, item.__self__]
        elif isinstance(item, dict | list | tuple):
            left += item.values() if isinstance(item, dict) else item
        elif hasattr(item, "__dict__"):
            names = (each for kind in type(item).__mro__ for each in vars(kind).values())
            methods = [each for each in names if isinstance(each, FunctionType) and is_users(each)]
            adapts = type(item).__module__.startswith("handgrad.checking.interfaces")  # holds the author's
            left += [*methods, *vars(item).values()] if methods or adapts else []
    return found


def seconds_of(subject: Subject, inputs: Inputs) -> float:
    """Return how long one run of forward takes at some sizes: counted over its trace, measured where it has none."""
    key = str([(value.shape, value.dtype) for value in inputs.values()])
    if key not in subject.seconds:
        trace = traced(subject, inputs)
        entries = sum(value.size for value in inputs.values())
        subject.seconds[key] = (
            _measured(subject, inputs)
            if trace is None
            else CALL + INPUT * entries + sum(_counted(each, trace.values) for each in trace.operations)
        )
    return subject.seconds[key]


def is_slow(subject: Subject, inputs: Inputs) -> bool:
    """Whether forward takes so long that it is run as few times as will do."""
    return seconds_of(subject, inputs) > LONG


def _counted(operation: Operation, values: Sequence[Any]) -> float:
    """Return how long an operation takes."""
    result, operands = values[operation.output], [np.shape(values[k]) for k in operation.inputs]
    product = PRODUCT * (WIDE if result.dtype == np.longdouble else 1)
    if operation.name == "matmul":
        return OPERATION + product * np.size(result) * operands[0][-1]
    if operation.name == "einsum":
        subscripts = operation.options["subscripts"].partition("->")[0].split(",")
        lengths = dict(
            pair
            for letters, shape in zip(subscripts, operands, strict=True)
            for pair in zip(letters, shape, strict=False)
        )
        return OPERATION + product * float(np.prod(list(lengths.values())))
    read = {"getitem": [], "setitem": operation.inputs[1:2], "add_at": operation.inputs[1:2]}
    written = [] if operation.name in ("setitem", "add_at") else [operation.output]
    entries = [np.size(values[k]) for k in (*written, *read.get(operation.name, operation.inputs))]
    return OPERATION + ENTRY * max(entries)


def _measured(subject: Subject, inputs: Inputs) -> float:
    taken = []
    for _ in range(TIMED):
        started = time.thread_time()
        subject.run_forward(inputs)
        taken.append(time.thread_time() - started)
        if taken[-1] > LONG:
            break
    return min(taken)

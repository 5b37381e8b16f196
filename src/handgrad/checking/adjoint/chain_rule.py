"""The chain rule over a trace: gradients of all its values, and what each edge contributes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Any

import numpy as np

from handgrad.checking.adjoint import array_vjps, matrix_vjps  # noqa: F401 - they register entries
from handgrad.checking.adjoint.kinks import sides
from handgrad.checking.adjoint.vjp_table import Site, is_broadcasting, local_text, reduction_text
from handgrad.checking.forward_trace import Array, ForwardTrace
from handgrad.checking.forward_trace.tracer import ELEMENTWISE, Operation


@dataclass(frozen=True)
class Mutation:
    """A mistake at one edge: what flows along it is replaced.

    Attributes
    ----------
    operation, operand
        The edge: the number of the operation and which of its operands.
    change
        Called with the right contribution, the operation, the values and the gradient of the operation's
        output; returns what flows instead.
    """

    operation: int
    operand: int
    change: Callable[[Any, Operation, Sequence[Any], Any], Any]


def adjoints(
    trace: ForwardTrace,
    values: Sequence[Any],
    upstream: Any,
    *,
    mutations: Mutation | Sequence[Mutation] | None = None,
    seeds: Mapping[int, Any] | None = None,
    until: Iterable[int] | None = None,
) -> dict[int, Any]:
    """Carry the gradient of the output back to every value that has one.

    Parameters
    ----------
    trace
        From `trace_forward`.
    values
        ``trace.values``, or those of a replay.
    upstream
        The gradient of the output; a sequence of them when forward returns several; None for none.
    mutations
        Mistakes to make on the way.
    seeds
        Gradients of further values to start from, by number: what is added there.
    until
        Only the gradients of these values are wanted: other paths are not followed.

    Returns
    -------
    dict
        Number of a value -> its gradient. What the output does not depend on is not in it.

    Examples
    --------
    >>> import numpy as np
    >>> from handgrad.checking.forward_trace import trace_forward
    >>> trace = trace_forward(lambda given: given["x"] ** 2, {"x": np.array([1.0, 3.0])})
    >>> adjoints(trace, trace.values, np.ones(2))[trace.inputs["x"]]
    array([2., 6.])
    """
    gradients: dict[int, Any] = {}
    for index, start in [*_starts(trace, upstream), *(seeds or {}).items()]:
        _add(gradients, index, np.asarray(start))
    plants: dict[tuple[int, int], Mutation] = {}
    for mistake in (mutations,) if isinstance(mutations, Mutation) else mutations or ():
        plants[mistake.operation, mistake.operand] = mistake
    wanted = _descendants(trace, until) if until is not None else trace.active
    kinks = sides(trace, values)
    with np.errstate(all="ignore"):
        for operation in reversed(trace.operations):
            gradient = gradients.get(operation.output)
            if gradient is None or operation.output not in wanted:
                continue
            for k, index in enumerate(operation.inputs):
                if index not in trace.active or index not in wanted:
                    continue
                flow = vector_jacobian_product(operation, k, values, gradient, kinks.get(operation.number))
                if plants and (operation.number, k) in plants:
                    flow = plants[operation.number, k].change(flow, operation, values, gradient)
                _add(gradients, index, flow)
    return gradients


def _starts(trace: ForwardTrace, upstream: Any) -> list[tuple[int, Any]]:
    if upstream is None:
        return []
    if len(trace.outputs) == 1:
        only = upstream[0] if isinstance(upstream, (tuple, list)) and len(upstream) == 1 else upstream
        return [(trace.output, only)]
    return [(i, g) for i, g in zip(trace.outputs, upstream, strict=True) if g is not None]


def _add(gradients: dict[int, Any], index: int, flow: Any) -> None:
    gradients[index] = gradients[index] + flow if index in gradients else flow


def _descendants(trace: ForwardTrace, starts: Iterable[int]) -> set[int]:
    found = set(starts)
    for operation in trace.operations:
        if any(i in found for i in operation.inputs):
            found.add(operation.output)
    return found


def vector_jacobian_product(
    operation: Operation,
    k: int,
    values: Sequence[Any],
    gradient: Any,
    beside: Mapping[int, Any] | None = None,
) -> Any:
    """Return the gradient of operand `k` through an operation, from the gradient of its output.

    At a kink, `beside` has the operands to look at (see `handgrad.checking.adjoint.kinks`).
    """
    if beside:
        values = list(values)
        for i, value in beside.items():
            values[i] = value
    site = Site(operation, k, values)
    text = local_text(site)
    if text is None:
        return _numerical_vjp(operation, k, values, gradient)
    shape = site.shape(k)
    flow = _run(text, operation, values, gradient)
    if is_broadcasting(operation):
        if not np.isfinite(flow).all():
            flow = np.where(gradient == 0, 0, flow)  # 0 times infinity: nothing arrives, nothing passes
        if flow.shape != shape:
            flow = summed(np.broadcast_to(flow, np.shape(values[operation.output])), shape)
    return flow


def stretched_axes(full: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the axes along which a shape was broadcast to the full one.

    Examples
    --------
    >>> stretched_axes((7, 5, 3), (1, 3)), stretched_axes((5, 3), (5, 3))
    ((0, 1), ())
    """
    extra = len(full) - len(shape)
    ones = (k + extra for k, n in enumerate(shape) if n == 1 and full[k + extra] != 1)
    return (*range(extra), *ones)


def summed(flow: Any, shape: tuple[int, ...]) -> Any:
    """Sum a gradient over what was broadcast, to the operand's shape."""
    return flow.sum(axis=stretched_axes(np.shape(flow), shape)).reshape(shape)


_NAME = re.compile(r"\b([abcg]|out|v\d+)\b")


@lru_cache(maxsize=4096)
def _compiled(text: str) -> tuple[CodeType, tuple[str, ...], bool]:
    names = tuple(dict.fromkeys(_NAME.findall(text)))
    *statements, last = text.split("\n")
    if not statements:
        return compile(text, "<derivative>", "eval"), names, False
    return compile("\n".join([*statements, f"result = {last}"]), "<derivative>", "exec"), names, True


def _run(text: str, operation: Operation, values: Sequence[Any], gradient: Any) -> Any:
    """Evaluate an entry of the table."""
    code, names, several = _compiled(text)
    scope: dict[str, Any] = {"np": np}
    for name in names:
        if name == "g":
            scope[name] = gradient
        elif name == "out":
            scope[name] = values[operation.output]
        else:
            k = "abc".find(name) if len(name) == 1 else int(name[1:])
            if 0 <= k < len(operation.inputs):
                scope[name] = values[operation.inputs[k]]
    if not several:
        return eval(code, scope)
    exec(code, scope)
    return scope["result"]


_STEP = 6e-4  # about the fifth root of the rounding error, for a difference of fourth order


def _numerical_vjp(operation: Operation, k: int, values: Sequence[Any], gradient: Any) -> Any:
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


def vjp_text(operation: Operation, k: int, values: Sequence[Any]) -> str | None:
    """Return the text of an edge's contribution, with the sums over what was broadcast; None if there is none."""
    site = Site(operation, k, values)
    text = local_text(site)
    if text is None or not is_broadcasting(operation):
        return text
    summed = reduction_text(np.shape(site.out), site.shape(k))
    if not summed:
        return text
    return f"{text}{summed}" if text.isidentifier() else f"({text}){summed}"


def jacobian(trace: ForwardTrace, values: Sequence[Any], from_value: int, to_value: int) -> Array:
    """Return the matrix of derivatives of one value's entries (rows) by another's (columns)."""
    rows, columns = int(np.size(values[to_value])), int(np.size(values[from_value]))
    matrix = np.zeros((rows, columns))
    if rows == 0 or columns == 0:
        return matrix
    shape = np.shape(values[to_value])
    for row in range(rows):
        basis = np.zeros(rows)
        basis[row] = 1
        found = adjoints(trace, values, None, seeds={to_value: basis.reshape(shape)}, until=[from_value])
        if from_value in found:
            matrix[row] = np.ravel(found[from_value])
    return matrix

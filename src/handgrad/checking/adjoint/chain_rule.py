"""The chain rule over a trace: the adjoints of all its values, operation by operation from the output back."""

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
from handgrad.checking.adjoint.vjp_table import Site, is_broadcasting, local_text, reduced
from handgrad.checking.forward_trace import Array, ForwardTrace
from handgrad.checking.forward_trace.operands import operand_name
from handgrad.checking.forward_trace.tracer import ELEMENTWISE, Operation

_STEP = 6e-4  # about the fifth root of the rounding error: best for a difference of fourth order
_SMALLEST_SIZE = 0.1  # steps are relative to an entry, but not to one near 0


@dataclass(frozen=True)
class Mutation:
    """A mistake in one vector-Jacobian product.

    Attributes
    ----------
    operation, operand
        The number of the operation, and which of its operands.
    change
        Called with the right product, the operation, the values and the gradient of the operation's output; returns
        what takes its place.
    """

    operation: int
    operand: int
    change: Callable[[Any, Operation, Sequence[Any], Any], Any]


def adjoints(
    trace: ForwardTrace,
    values: Sequence[Any],
    upstream: Any,
    *,
    mutations: Mutation | Sequence[Mutation] = (),
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

    def add(index: int, gradient: Any) -> None:
        gradients[index] = gradients[index] + gradient if index in gradients else gradient

    for index, start in [*_starts(trace, upstream), *(seeds or {}).items()]:
        add(index, np.asarray(start))
    several = (mutations,) if isinstance(mutations, Mutation) else mutations
    changes = {(mutation.operation, mutation.operand): mutation.change for mutation in several}
    wanted = trace.active if until is None else trace.active & trace.descendants(until)
    at_kinks = sides(trace, values)
    with np.errstate(all="ignore"):
        for operation in reversed(trace.operations):
            gradient = gradients.get(operation.output)
            if gradient is None or operation.output not in wanted:
                continue
            for k, index in enumerate(operation.inputs):
                if index in wanted:
                    at_kink = at_kinks.get(operation.number)
                    product = vector_jacobian_product(operation, k, values, gradient, at_kink)
                    if change := changes.get((operation.number, k)):
                        product = change(product, operation, values, gradient)
                    add(index, product)
    return gradients


def _starts(trace: ForwardTrace, upstream: Any) -> list[tuple[int, Any]]:
    if upstream is None:
        return []
    if len(trace.outputs) == 1:
        only = upstream[0] if isinstance(upstream, (tuple, list)) and len(upstream) == 1 else upstream
        return [(trace.output, only)]
    return [(i, g) for i, g in zip(trace.outputs, upstream, strict=True) if g is not None]


def vector_jacobian_product(
    operation: Operation,
    k: int,
    values: Sequence[Any],
    gradient: Any,
    at_kink: Mapping[int, Any] | None = None,
) -> Any:
    """Return the gradient of operand `k` through an operation, from the gradient of its output.

    `at_kink` has the operands to take at a kink (see `handgrad.checking.adjoint.kinks`).
    """
    if at_kink:
        values = [*values]
        for i, value in at_kink.items():
            values[i] = value
    site = Site(operation, k, values)
    text = local_text(site)
    if text is None:
        return _numerical_product(operation, k, values, gradient)
    shape = site.shape(k)
    product = _run(text, operation, values, gradient)
    if is_broadcasting(operation):
        if not np.isfinite(product).all():
            product = np.where(gradient == 0, 0, product)  # 0 times infinity: no gradient stays none
        if product.shape != shape:
            product = summed(np.broadcast_to(product, np.shape(values[operation.output])), shape)
    return product


def vjp_text(operation: Operation, k: int, values: Sequence[Any]) -> str | None:
    """Return the text of operand `k`'s gradient, with the sums over what was broadcast; None if there is none."""
    site = Site(operation, k, values)
    text = local_text(site)
    if text is None or not is_broadcasting(operation):
        return text
    return reduced(text, np.shape(site.out), site.shape(k))


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


def summed(gradient: Any, shape: tuple[int, ...]) -> Any:
    """Sum a gradient over what was broadcast, to the operand's shape."""
    return gradient.sum(axis=stretched_axes(np.shape(gradient), shape)).reshape(shape)


def jacobian(trace: ForwardTrace, values: Sequence[Any], from_value: int, to_value: int) -> Array:
    """Return the matrix of derivatives of one value's entries (rows) by another's (columns)."""
    rows, columns = int(np.size(values[to_value])), int(np.size(values[from_value]))
    matrix = np.zeros((rows, columns))
    for row, basis in enumerate(np.eye(rows) if columns else ()):
        seeds = {to_value: basis.reshape(np.shape(values[to_value]))}
        found = adjoints(trace, values, None, seeds=seeds, until=[from_value])
        if from_value in found:
            matrix[row] = np.ravel(found[from_value])
    return matrix


# ---------------------------------------------------------------------- one product

_NAME = re.compile(r"\b([abcg]|out|v\d+)\b")


@lru_cache(maxsize=4096)
def _compiled(text: str) -> tuple[CodeType, frozenset[str]]:
    *statements, last = text.split("\n")
    code = compile("\n".join([*statements, f"result = {last}"]), "<derivative>", "exec")
    return code, frozenset(_NAME.findall(text))


def _run(text: str, operation: Operation, values: Sequence[Any], gradient: Any) -> Any:
    """Evaluate an entry of the table."""
    code, names = _compiled(text)
    scope: dict[str, Any] = {"np": np, "g": gradient, "out": values[operation.output]}
    for k, i in enumerate(operation.inputs):
        if (name := operand_name(k)) in names:
            scope[name] = values[i]
    exec(code, scope)
    return scope["result"]


def _numerical_product(operation: Operation, k: int, values: Sequence[Any], gradient: Any) -> Any:
    """Return the gradient of operand `k` by central differences of fourth order."""
    operands = [values[i] for i in operation.inputs]
    mine = np.asarray(operands[k], dtype=float)
    steps = _STEP * np.maximum(np.abs(mine), _SMALLEST_SIZE)

    def run(changed: Any) -> Any:
        operands[k] = changed
        return np.asarray(operation.function(*operands, **operation.options), dtype=float)

    def difference(direction: Any, step: Any) -> Any:
        coarse = (run(mine + direction) - run(mine - direction)) / (2 * step)
        fine = (run(mine + direction / 2) - run(mine - direction / 2)) / step
        return (4 * fine - coarse) / 3

    if operation.kind == ELEMENTWISE and mine.shape == np.shape(values[operation.output]):
        return gradient * difference(steps, steps)
    result = np.zeros(mine.size)
    for j in range(mine.size):
        direction = np.zeros(mine.size)
        direction[j] = steps.flat[j]
        result[j] = np.sum(gradient * difference(direction.reshape(mine.shape), steps.flat[j]))
    return result.reshape(mine.shape)

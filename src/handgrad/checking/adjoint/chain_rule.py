"""The chain rule over a trace: the adjoints of all its values, operation by operation from the output back.

At a kink every value between the left and the right derivative is right, but not every mixture of them:
``np.where(x >= 0, 1 / (1 + e), e / (1 + e))`` with ``e = np.exp(-abs(x))`` is smooth at 0, and its gradient is
right there only if `abs` takes the side that the comparison took. So the operations that have a kink at a
value are differentiated at slightly perturbed inputs, on the side that the forward's comparisons agree with.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any

import numpy as np

from handgrad.checking.adjoint import array_vjps  # noqa: F401 - it registers entries
from handgrad.checking.adjoint.vjp_table import vjp_text
from handgrad.checking.forward_trace import ForwardTrace
from handgrad.checking.forward_trace.operation import Operation, operand_name

KINKED = frozenset(("absolute", "fabs", "maximum", "minimum", "fmax", "fmin"))
COMPARISONS = frozenset(("less", "less_equal", "greater", "greater_equal"))
_STEP = 6e-4  # about the fifth root of the rounding error: best for a difference of fourth order
_SMALLEST_SIZE = 0.1  # steps are relative to an entry, but not to one near 0
_PERTURBATION = 1e-7  # relative: far above rounding, far below what changes a comparison elsewhere


def adjoints(
    trace: ForwardTrace,
    values: Sequence[Any],
    upstream: Any,
    *,
    seeds: Mapping[int, Any] | None = None,
    until: Iterable[int] | None = None,
) -> dict[int, Any]:
    """Carry the gradient of the output back to every value that has one, and return these by number.

    `upstream` is a sequence when forward returns several outputs. `seeds` adds gradients of further values to start
    from. With `until`, only the paths to these values are followed.

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

    several = upstream if isinstance(upstream, (tuple, list)) else [upstream] * len(trace.outputs)
    for index, start in [*zip(trace.outputs, several, strict=True), *(seeds or {}).items()]:
        if start is not None:
            add(index, np.asarray(start))
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
                    add(index, vector_jacobian_product(operation, k, values, gradient, at_kink))
    return gradients


_NAME = re.compile(r"\b([abcg]|out|v\d+)\b")


def vector_jacobian_product(
    operation: Operation,
    k: int,
    values: Sequence[Any],
    gradient: Any,
    at_kink: Mapping[int, Any] | None = None,
) -> Any:
    """Return the gradient of operand `k` from that of the output; `at_kink` has operands to take in place of values."""
    if at_kink:
        values = [at_kink.get(i, value) for i, value in enumerate(values)]
    text, shape = vjp_text(operation, k, values), np.shape(values[operation.inputs[k]])
    if text is None:
        return _numerical_product(operation, k, values, gradient)
    product = _run(text, operation, values, gradient)
    if operation.is_elementwise:
        if not np.isfinite(product).all():
            product = np.where(gradient == 0, 0, product)  # 0 times infinity: no gradient stays none
        if product.shape != shape:
            product = _summed(np.broadcast_to(product, np.shape(values[operation.output])), shape)
    return product


def _summed(gradient: Any, shape: tuple[int, ...]) -> Any:
    """Sum a gradient over what was broadcast, to the operand's shape."""
    extra = gradient.ndim - len(shape)
    ones = [k + extra for k, n in enumerate(shape) if n == 1 and gradient.shape[k + extra] != 1]
    return gradient.sum(axis=(*range(extra), *ones)).reshape(shape)


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

    if operation.is_elementwise and mine.shape == np.shape(values[operation.output]):
        return gradient * difference(steps, steps)
    result = np.zeros(mine.size)
    for j in range(mine.size):
        direction = np.zeros(mine.size)
        direction[j] = steps.flat[j]
        result[j] = np.sum(gradient * difference(direction.reshape(mine.shape), steps.flat[j]))
    return result.reshape(mine.shape)


def sides(trace: ForwardTrace, values: Sequence[Any]) -> dict[int, dict[int, Any]]:
    """Return, for each operation at a kink, the operands it is to be differentiated at: value -> array to use instead."""
    with np.errstate(all="ignore"):
        found = ((o, ties_of(o, values)) for o in trace.operations if o.name in KINKED | COMPARISONS)
        ties = [(o, tie) for o, tie in found if np.any(tie)]
        if not any(o.name in KINKED for o, _ in ties):
            return {}
        for step in (lambda _: -_PERTURBATION, lambda _: _PERTURBATION):
            moved = trace.replay(perturbed_inputs(trace, values, step))
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


def ties_of(operation: Operation, values: Sequence[Any]) -> Any:
    """Return where an operation is at a kink or a jump: its operands are equal, or its only one is 0."""
    first, *second = (values[k] for k in operation.inputs)
    return np.asarray(first == (second[0] if second else 0))


def perturbed_inputs(
    trace: ForwardTrace, values: Sequence[Any], step: Callable[[tuple[int, ...]], Any]
) -> dict[str, Any]:
    """Return the inputs changed by relative steps; with one step for all, what was equal stays equal."""
    inputs = {}
    for name, i in trace.inputs.items():
        value = values[i]
        if i in trace.active and np.size(value):
            scale = np.max(np.abs(value)) or 1.0
            value = value + step(np.shape(value)) * np.where(value == 0, scale, np.abs(value))
        inputs[name] = value
    return inputs

"""Functions with a well-known gradient, of several operations each: sigmoid, softmax, normalisation.

A function runs from a value, its source, to an operation's output. Whether it is a sigmoid is not read off its
operations, which can be spelled in many ways, but off its derivative: a known gradient is the right one if it
agrees with the chain rule between the two, for a random upstream gradient, at two points.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from handgrad.checking.adjoint import adjoints
from handgrad.checking.adjoint.chain_rule import perturbed_inputs
from handgrad.checking.forward_trace import ForwardTrace
from handgrad.checking.forward_trace.operation import Operation
from handgrad.tolerance import close

_MOST_OPERATIONS = 120  # a longer trace is a loop, written out one by one
_MOST_ENTRIES = 4096  # of a value that is searched: each candidate is computed
_MOST_SOURCES = 8  # a well-known function is spelled in fewer operations that keep its shape
_LAST_OPERATIONS = ("divide", "multiply", "subtract", "where", "setitem")


def known_gradients(trace: ForwardTrace, leaves: Sequence[int], path: set[int]) -> dict[int, tuple[int, str]]:
    """Return well-known gradients: number of a function's last operation -> its source, and the text.

    `path` has the values between the leaves, whose gradients are wanted, and the outputs.
    """
    other = perturbed(trace) if len(trace.operations) <= _MOST_OPERATIONS else None
    if other is None:
        return {}
    found = {}
    for operation in trace.operations:
        if operation.output in path and operation.name in _LAST_OPERATIONS:
            for source in _sources(trace, operation, leaves, path):
                if text := _known_gradient(trace, operation, source, [trace.values, other.values]):
                    found[operation.number] = source, text
                    break
    return found


def perturbed(trace: ForwardTrace) -> ForwardTrace | None:
    """Return the trace at inputs changed by about a tenth, off zeros and ties; None if a value's shape changes too."""
    random = np.random.default_rng(1)
    inputs = perturbed_inputs(trace, trace.values, lambda shape: 0.1 * random.normal(size=shape))
    try:
        values = trace.replay(inputs)
    except (ValueError, IndexError):
        return None
    same = all(np.shape(new) == np.shape(old) for new, old in zip(values, trace.values, strict=True))
    return replace(trace, values=values) if same else None


def _sources(trace: ForwardTrace, operation: Operation, leaves: Sequence[int], path: set[int]) -> list[int]:
    """Return the values of the output's shape that all ways to the leaves lead through, the farthest first."""
    shape = np.shape(trace.values[operation.output])
    if not shape or np.size(trace.values[operation.output]) > _MOST_ENTRIES:
        return []
    ancestors = trace.ancestors(operation.output) & path
    near = [i for i in sorted(ancestors, reverse=True) if np.shape(trace.values[i]) == shape]
    sources = []
    for source in reversed(near[1 : 1 + _MOST_SOURCES]):
        reached = {operation.output}
        for other in reversed(trace.operations):
            if other.output in reached and other.output != source:
                reached.update(i for i in other.inputs if i in path)
        if reached & {source, *leaves} == {source}:
            sources.append(source)
    return sources


def _known_gradient(
    trace: ForwardTrace, operation: Operation, source: int, points: Sequence[Sequence[Any]]
) -> str:
    upstream = np.random.default_rng(2).normal(size=np.shape(points[0][operation.output]))
    cases = []
    for values in points:
        seeds = {operation.output: upstream}
        right = adjoints(trace, values, None, seeds=seeds, until=[source]).get(source)
        if right is None or not np.all(np.isfinite(right)) or not np.any(right):
            return ""
        operands = {"abc"[k]: values[i] for k, i in enumerate(operation.inputs[:3])}
        cases.append(({"np": np, "g": upstream, "out": values[operation.output], **operands}, right))
    if not np.ptp(points[-1][operation.output]) > 0:
        return ""  # a constant fits too much
    candidates = _candidates(operation, np.ndim(upstream))
    return next((text for text in candidates if all(_fits(text, *case) for case in cases)), "")


def _candidates(operation: Operation, ndim: int) -> Iterator[str]:
    yield "g * out * (1 - out)"  # sigmoid
    yield "g * (1 - out ** 2)"  # tanh
    over = {"divide": ["/ b"], "multiply": ["* b", "* a"]}.get(operation.name, [])
    axes = [f"axis={k}, keepdims=True" for k in range(ndim)] if ndim > 1 else [""]
    if ndim > 2:
        axes += [f"axis={tuple(j for j in range(ndim) if j != k)}, keepdims=True" for k in range(ndim)]
        axes += [f"axis={tuple(range(k, ndim))}, keepdims=True" for k in range(1, ndim - 1)]
    for axis in axes:
        yield f"out * (g - (g * out).sum({axis}))"  # softmax
        yield f"g - np.exp(out) * g.sum({axis})"  # its logarithm
        for scale in over:
            yield f"(g - g.mean({axis}) - out * (g * out).mean({axis})) {scale}"  # standardisation
            yield f"(g - out * (g * out).sum({axis})) {scale}"  # division by the norm
            yield f"(g - out * (g * out).mean({axis})) {scale}"  # by the root of the mean square


def _fits(text: str, scope: dict[str, Any], right: Any) -> bool:
    try:
        return close(eval(text, scope), right)
    except ValueError:
        return False

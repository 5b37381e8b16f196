"""Functions that have a name: sigmoid, softmax, normalisation. Several operations with one well-known gradient.

A region runs from a value to one that all of it is computed from. Whether it is a sigmoid is not read off its
operations, which can be spelled in many ways, but off its derivative: a known gradient is the right one if it
agrees with the chain rule over the region, for a random upstream, at two points.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from handgrad.checking.adjoint import adjoints
from handgrad.checking.forward_trace import ForwardTrace
from handgrad.checking.forward_trace.tracer import Operation

_LONGEST = 120  # operations; longer traces are loops, written out one by one


@dataclass(frozen=True)
class Region:
    """From `source` to the output of an operation, the gradient is `text` (in the letters of the table)."""

    source: int
    text: str


def regions(trace: ForwardTrace, leaves: Sequence[int], path: set[int]) -> dict[int, Region]:
    """Return the regions with a well-known gradient, by the number of the operation they end with.

    Parameters
    ----------
    trace
        The forward pass.
    leaves
        The inputs whose gradients are wanted: no way to them may lead past a region's source.
    path
        The values between the leaves and the outputs.
    """
    found: dict[int, Region] = {}
    if len(trace.operations) > _LONGEST:
        return found
    other = beside(trace)
    if other is None:
        return found
    points = [trace.values, other.values]
    for operation in trace.operations:
        if operation.output not in path or operation.name not in (
            "divide",
            "multiply",
            "subtract",
            "where",
            "setitem",
        ):
            continue
        for source in _sources(trace, operation, leaves, path):
            text = _known_gradient(trace, operation, source, points)
            if text:
                found[operation.number] = Region(source, text)
                break
    return found


def beside(trace: ForwardTrace) -> ForwardTrace | None:
    """Return the trace of inputs changed by about a tenth, so that nothing is zero or equal by chance.

    None when a value has another shape there, because it picks entries by their size.
    """
    draw = np.random.default_rng(1)
    inputs = {}
    for name, i in trace.inputs.items():
        value = trace.values[i]
        if i in trace.active:
            shift = draw.normal(size=np.shape(value))
            value = np.asarray(value, float) + 0.1 * np.where(
                value == 0, np.abs(shift), shift * np.abs(value)
            )
        inputs[name] = value
    try:
        values = trace.replay(inputs)
    except (ValueError, IndexError):
        return None
    same = all(np.shape(new) == np.shape(old) for new, old in zip(values, trace.values, strict=True))
    return replace(trace, values=values) if same else None


def _sources(trace: ForwardTrace, operation: Operation, leaves: Sequence[int], path: set[int]) -> list[int]:
    """Return the values of the output's shape that all ways to the leaves lead through, the farthest first."""
    shape = np.shape(trace.values[operation.output])
    if not shape or np.size(trace.values[operation.output]) > 4096:
        return []
    ancestors = trace.ancestors(operation.output) & path
    near = [i for i in sorted(ancestors, reverse=True) if np.shape(trace.values[i]) == shape][1:9]
    return [i for i in reversed(near) if _separates(trace, operation, i, leaves, path)]


def _separates(
    trace: ForwardTrace, operation: Operation, source: int, leaves: Sequence[int], path: set[int]
) -> bool:
    reached = {operation.output}
    for other in reversed(trace.operations):
        if other.output in reached and other.output != source:
            reached.update(i for i in other.inputs if i in path)
    return source in reached and not any(leaf in reached for leaf in leaves if leaf != source)


def _known_gradient(
    trace: ForwardTrace, operation: Operation, source: int, points: Sequence[Sequence[Any]]
) -> str:
    draw = np.random.default_rng(2)
    upstream = draw.normal(size=np.shape(trace.values[operation.output]))
    scopes, flows = [], []
    for values in points:
        flow = adjoints(trace, values, None, seeds={operation.output: upstream}, until=[source]).get(source)
        if flow is None or not np.all(np.isfinite(flow)) or not np.any(flow):
            return ""
        operands = {"abc"[k]: values[i] for k, i in enumerate(operation.inputs[:3])}
        scopes.append({"np": np, "g": upstream, "out": values[operation.output], **operands})
        flows.append(flow)
    if not np.ptp(points[-1][operation.output]) > 0:
        return ""  # a constant fits too much
    for text in _candidates(operation, np.ndim(upstream)):
        if all(_fits(text, scope, flow) for scope, flow in zip(scopes, flows, strict=True)):
            return text
    return ""


def _candidates(operation: Operation, ndim: int) -> Iterator[str]:
    """Yield the well-known gradients."""
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


def _fits(text: str, scope: dict[str, Any], flow: Any) -> bool:
    try:
        value = eval(text, scope)
    except ValueError:
        return False
    return np.shape(value) == np.shape(flow) and bool(
        np.allclose(value, flow, rtol=1e-8, atol=1e-10 * float(np.max(np.abs(flow))))
    )

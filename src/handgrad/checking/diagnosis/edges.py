"""Mistakes in what flows along one edge: its sign, its size, its orientation, its slope, the point it is taken at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from handgrad.checking.adjoint import summed
from handgrad.checking.diagnosis.axes import broadcast_sums, moved_axes
from handgrad.checking.diagnosis.paths import left_out
from handgrad.checking.diagnosis.planted import Change, Flow, Mistake, Planted, at, edge_groups
from handgrad.checking.diagnosis.products import other_products, rows_first
from handgrad.checking.diagnosis.replayed import Replays
from handgrad.checking.forward_trace import Operation


def at_edges(replays: Replays, *, loops: bool = False) -> Iterator[Planted]:
    """Yield mistakes in what flows along an edge: its sign, its size, its orientation, or whether it is there."""
    for edges in edge_groups(replays, loops=loops):
        if replays.late:
            return
        operation, k = edges[0]
        label = replays.label(operation.inputs[k])
        extra = 0.02 * (len(edges) > 1)
        for code, words, cost, change in _mistakes(replays, operation, k, label):
            yield Planted(code, words, cost + extra, at(edges, change), operation)
        if len(edges) == 1:
            yield from left_out(replays, operation, k, label)


def _mistakes(replays: Replays, operation: Operation, k: int, label: str) -> Iterator[Mistake]:
    name, shape = operation.name, np.shape(replays.first.values[operation.inputs[k]])
    twice = (
        0.6 if len(set(operation.inputs)) < len(operation.inputs) else 0.0
    )  # of x * x one half undoes the other
    words = f"the gradient of {label} through {name} has the opposite sign"
    yield "wrong-sign", words, 1.0 + twice, lambda flow: -flow.right
    yield from _sizes(replays, operation, k, label)
    if len(shape) >= 2 and shape[-1] == shape[-2]:
        cost = 1.0 if operation.kind == "product" else 1.9
        words = f"the gradient of {label} is transposed"
        yield "transposed", words, cost, lambda flow: np.swapaxes(flow.right, -1, -2)
    if operation.kind == "elementwise":
        yield from _slopes(operation, label)
        yield from broadcast_sums(replays, operation, k, label)
    if name in ("matmul", "dot") and len(operation.inputs) == 2:
        yield from other_products(k, label)
    if name == "einsum":
        yield from rows_first(operation, k, label)
    if operation.kind in ("reduction", "structural"):
        yield from moved_axes(replays, operation, k, label)
    yield from _too_early(replays, operation, label)
    yield from _at_other_points(replays, operation, k, label)


def _sizes(replays: Replays, operation: Operation, k: int, label: str) -> Iterator[Mistake]:
    """Yield a factor: the length of an axis or its inverse, or a constant."""
    values = replays.first.values
    shapes = [np.shape(values[v]) for v in (operation.inputs[k], operation.output)]
    entrywise = operation.kind == "elementwise" and shapes[0] == shapes[1]
    for n in sorted({n for shape in shapes for n in shape if n > 1}) if not entrywise else ():
        cost = 1.9 if n in (2, 3, 4) else 1.25
        for factor, words in ((1 / n, "divided"), (float(n), "multiplied")):
            text = f"the gradient of {label} is {words} by {n}, the length of an axis"
            yield "batch-mean-vs-sum", text, cost, _times(factor)
    several = len(replays.recording.readers.get(operation.inputs[k], ())) > 1
    for factor in (2.0, 0.5, 3.0, 1 / 3, 4.0, 0.25):
        text = f"the gradient of {label} through {operation.name} is {factor:.4g} times the right one"
        code = "extra-term" if several and factor == 2.0 else "constant-factor"
        if entrywise and operation.name not in ("add", "subtract"):
            code = "wrong-local-derivative"
        yield code, text, 1.45 if several else 1.5, _times(factor)


def _times(factor: float) -> Change:
    return lambda flow: factor * flow.right


def _slopes(operation: Operation, label: str) -> Iterator[Mistake]:
    """Yield the slope of one elementwise operation, left out and multiplied in twice."""
    if operation.name != "add":
        words = f"the gradient of {label} lacks the factor of {operation.name}"
        yield "missing-local-derivative", words, 1.2, _above
        words = f"the factor of {operation.name} is in the gradient of {label} twice"
        yield "extra-term", words, 1.5, _squared


def _above(flow: Flow) -> Any:
    """Return what arrives at the operation."""
    return summed(np.asarray(flow.gradient), flow.shape)


def _squared(flow: Flow) -> Any:
    above = _above(flow)
    return np.where(above == 0, flow.right, flow.right * flow.right / above)


def _too_early(replays: Replays, operation: Operation, label: str) -> Iterator[Mistake]:
    """Yield the gradient of a later value of the same shape, in place of the output's."""
    first, shape = replays.first, np.shape(replays.first.values[operation.output])
    for other, gradient in first.gradients.items():
        if other == operation.output or np.shape(gradient) != shape:
            continue
        if operation.output in replays.ancestors(other):
            after = replays.label(operation.output)
            words = f"the gradient of {label} is made from that of {replays.label(other)}, before the slope to {after}"
            yield "missing-local-derivative", words, 1.3, _from_that_of(other)


def _from_that_of(value: int) -> Change:
    return lambda flow: flow.from_gradient(flow.replay.gradients[value])


def _at_other_points(replays: Replays, operation: Operation, k: int, label: str) -> Iterator[Mistake]:
    """Yield another value of the same shape that stands for an operand."""
    if operation.kind not in ("elementwise", "product"):
        return
    values = replays.first.values
    real = [i for i, value in enumerate(values) if np.asarray(value).dtype.kind == "f"]
    for j, index in enumerate(operation.inputs):
        if (j == k and operation.kind != "elementwise") or index in replays.recording.constants:
            continue
        for other in real if index in real else ():
            if (
                other != index
                and np.ndim(values[other])
                and np.shape(values[other]) == np.shape(values[index])
            ):
                at_other = f"is taken at {replays.label(other)}, not at {replays.label(index)}"
                words = f"the gradient of {label} through {operation.name} {at_other}"
                yield "wrong-evaluation-point", words, 1.4, _with_operand(j, other)


def _with_operand(j: int, other: int) -> Change:
    def elsewhere(flow: Flow) -> Any:
        operation, values = flow.operation, list(flow.replay.values)
        values[operation.inputs[j]] = values[other]
        values[operation.output] = operation.run(values)
        return flow.from_gradient(flow.gradient, values)

    return elsewhere

"""Mistakes in the axes: what was broadcast summed over others, or not; what was moved or added up undone along others."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from handgrad.checking.adjoint import stretched_axes, vector_jacobian_product
from handgrad.checking.diagnosis.planted import Change, Flow, Mistake
from handgrad.checking.diagnosis.replayed import Replays
from handgrad.checking.forward_trace import Operation
from handgrad.checking.subject import Array


def broadcast_sums(replays: Replays, operation: Operation, k: int, label: str) -> Iterator[Mistake]:
    """Yield sums of what was broadcast over other axes, over some of them only, or taken from one row."""
    shape = np.shape(replays.first.values[operation.inputs[k]])
    full = np.shape(replays.first.values[operation.output])
    if shape == full:
        return
    right = stretched_axes(full, shape)
    for axes in (axes for size in range(1, len(full) + 1) for axes in combinations(range(len(full)), size)):
        left = math.prod(full[a] for a in range(len(full)) if a not in axes)
        if axes != right and left == math.prod(shape):
            words = f"the gradient of {label} is summed over the axes {axes}, not {right}"
            yield "wrong-axis", words, 1.05, _summed_over(axes)
    for row, which in ((0, "first"), (-1, "last")):
        words = f"the gradient of {label} is that of the {which} row only: the rows are not summed"
        yield "broadcast-not-summed", words, 1.1, _one_row(row, right)
    for axis in right:
        words = f"the gradient of {label} is not summed over axis {axis}"
        yield "broadcast-not-summed", words, 1.15, _summed_without(axis, right)


def _spread(flow: Flow) -> Array:
    """Return what flows along an edge before it is summed to the operand's shape."""
    values, index = list(flow.replay.values), flow.operation.inputs[flow.k]
    values[index] = np.broadcast_to(values[index], np.shape(values[flow.operation.output]))
    return np.asarray(flow.from_gradient(flow.gradient, values))


def _summed_over(axes: tuple[int, ...]) -> Change:
    return lambda flow: _spread(flow).sum(axis=axes).reshape(flow.shape)


def _one_row(row: int, axes: tuple[int, ...]) -> Change:
    def one(flow: Flow) -> Any:
        rows = _spread(flow)
        for axis in sorted(axes, reverse=True):
            rows = np.take(rows, row, axis=axis)
        return rows.reshape(flow.shape)

    return one


def _summed_without(axis: int, axes: tuple[int, ...]) -> Change:
    def partly(flow: Flow) -> Any:
        rest = tuple(a for a in axes if a != axis)
        return np.take(_spread(flow), [0], axis=axis).sum(axis=rest).reshape(flow.shape) if rest else None

    return partly


def moved_axes(replays: Replays, operation: Operation, k: int, label: str) -> Iterator[Mistake]:
    """Undo what moves or adds up entries along another axis, or as another such operation."""
    name, dimensions = operation.name, np.ndim(replays.first.values[operation.inputs[k]])
    if "axis" in operation.options and dimensions > 1:
        for axis in range(dimensions):
            words = f"the gradient of {label} is carried back through {name} along axis {axis}"
            yield "wrong-axis", words, 1.1, _along(axis, dimensions)
    if name in ("repeat", "tile"):
        words = f"the gradient of {label} undoes {name} as if it were the other of repeat and tile"
        yield "wrong-axis", words, 1.1, _exchanged
    if name in ("getitem", "take"):
        for which in ("last", "first"):
            words = (
                f"{label} is taken several times at one index, and only the {which} of its gradients is there"
            )
            yield "overwritten-not-accumulated", words, 0.95, _one_of_each(which)
    if name == "mean":
        words = f"the gradient of {label} lacks the 1/n of the mean"
        yield "batch-mean-vs-sum", words, 1.05, _unscaled


def _along(axis: int, dimensions: int) -> Change:
    def along(flow: Flow) -> Any:
        operation, values = flow.operation, flow.replay.values
        if operation.options["axis"] in (axis, axis - dimensions):
            return None
        changed = replace(operation, options={**operation.options, "axis": axis})
        gradient, wanted = np.asarray(flow.gradient), np.shape(changed.run(values))
        return vector_jacobian_product(changed, flow.k, values, gradient.reshape(wanted))

    return along


def _exchanged(flow: Flow) -> Any:
    size, n = np.size(flow.right), np.size(flow.gradient) // max(np.size(flow.right), 1)
    gradient = np.ravel(flow.gradient)
    tiled = flow.operation.name == "tile"
    found = gradient.reshape(size, n).sum(axis=1) if tiled else gradient.reshape(n, size).sum(axis=0)
    return found.reshape(flow.shape)


def _one_of_each(which: str) -> Change:
    """Let entries that were taken several times keep one of their gradients."""

    def kept(flow: Flow) -> Any:
        operation, values = flow.operation, flow.replay.values
        positions = np.arange(np.size(flow.right)).reshape(flow.shape)
        indices = [values[i] for i in operation.inputs[1:]]
        taken = np.asarray(operation.function(positions, *indices, **operation.options)).ravel()
        gradient, found = np.ravel(flow.gradient), np.zeros(np.size(flow.right))
        for position in range(taken.size) if which == "last" else reversed(range(taken.size)):
            found[taken[position]] = gradient[position]
        return found.reshape(flow.shape)

    return kept


def _unscaled(flow: Flow) -> Any:
    return flow.right * (np.size(flow.right) / max(np.size(flow.gradient), 1))

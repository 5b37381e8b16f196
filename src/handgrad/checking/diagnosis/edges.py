"""Mistakes in what flows along one edge: its sign, its size, its orientation, its slope, the axes it is summed over."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from handgrad.checking.adjoint import edge_contribution
from handgrad.checking.diagnosis.paths import left_out
from handgrad.checking.diagnosis.planted import Change, Planted, at, edge_groups
from handgrad.checking.diagnosis.replayed import Replay, Replays
from handgrad.checking.recording import Operation
from handgrad.checking.subject import Array

STAR = "elementwise-instead-of-matmul"


def at_edges(replays: Replays, *, loops: bool = False) -> Iterator[Planted]:
    """Yield mistakes in what flows along an edge: its sign, its size, its orientation, or whether it is there."""
    for edges in edge_groups(replays, loops=loops):
        if replays.late:
            return
        operation, k = edges[0]
        label = replays.label(operation.inputs[k])
        extra = 0.02 * (len(edges) > 1)
        for code, words, cost, change in _changes(replays, operation, k, label):
            yield Planted(code, words, cost + extra, at(edges, change), operation)
        if len(edges) == 1:
            yield from left_out(replays, operation, k, label)


def _changes(
    replays: Replays, operation: Operation, k: int, label: str
) -> Iterator[tuple[str, str, float, Change]]:
    name = operation.name
    twice = (
        0.6 if len(set(operation.inputs)) < len(operation.inputs) else 0.0
    )  # of x * x one half undoes the other
    words = f"the gradient of {label} through {name} has the opposite sign"
    yield "wrong-sign", words, 1.0 + twice, lambda r, o, j, flow, g: -flow
    yield from _sizes(replays, operation, k, label)
    shape = np.shape(replays.first.values[operation.inputs[k]])
    if len(shape) >= 2 and shape[-1] == shape[-2]:
        cost = 1.0 if operation.kind == "product" else 1.9
        yield (
            "transposed",
            f"the gradient of {label} is transposed",
            cost,
            lambda r, o, j, flow, g: np.swapaxes(flow, -1, -2),
        )
    if operation.kind == "elementwise":
        yield from _slopes(replays, operation, k, label)
        yield from _sums(replays, operation, k, label)
    if name in ("matmul", "dot") and len(operation.inputs) == 2:
        yield from _products(operation, k, label)
    if name == "einsum":
        yield from _rows_first(operation, k, label)
    if operation.kind in ("reduction", "structural"):
        yield from _axes(replays, operation, k, label)
    yield from _neighbours(replays, operation, k, label)


def _sizes(
    replays: Replays, operation: Operation, k: int, label: str
) -> Iterator[tuple[str, str, float, Change]]:
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
    return lambda r, o, j, flow, g: factor * flow


def _slopes(
    replays: Replays, operation: Operation, k: int, label: str
) -> Iterator[tuple[str, str, float, Change]]:
    """Mistakes in the slope of one elementwise operation."""
    name = operation.name

    def left_out(r: Replay, o: Operation, j: int, flow: Any, g: Any) -> Any:
        return reduced(np.asarray(g), np.shape(flow))

    def twice(r: Replay, o: Operation, j: int, flow: Any, g: Any) -> Any:
        above = reduced(np.asarray(g), np.shape(flow))
        return np.where(above == 0, flow, flow * flow / above)

    if name not in ("add",):
        yield "missing-local-derivative", f"the gradient of {label} lacks the factor of {name}", 1.2, left_out
        yield "extra-term", f"the factor of {name} is in the gradient of {label} twice", 1.5, twice


def _sums(
    replays: Replays, operation: Operation, k: int, label: str
) -> Iterator[tuple[str, str, float, Change]]:
    """Yield sums of what was broadcast over other axes, over some of them only, or taken from one row."""
    shape = np.shape(replays.first.values[operation.inputs[k]])
    full = np.shape(replays.first.values[operation.output])
    if shape == full:
        return
    extra = len(full) - len(shape)
    right = tuple(range(extra)) + tuple(
        a + extra for a, n in enumerate(shape) if n == 1 and full[a + extra] > 1
    )
    for axes in _axis_sets(len(full)):
        left = math.prod(full[a] for a in range(len(full)) if a not in axes)
        if axes == right or left != math.prod(shape):
            continue

        def other(r: Replay, o: Operation, j: int, flow: Any, g: Any, axes: tuple[int, ...] = axes) -> Any:
            return _spread(r, o, j, g).sum(axis=axes).reshape(np.shape(flow))

        yield (
            "wrong-axis",
            f"the gradient of {label} is summed over the axes {axes}, not {right}",
            1.05,
            other,
        )
    yield from _unsummed(right, label)


def _unsummed(right: tuple[int, ...], label: str) -> Iterator[tuple[str, str, float, Change]]:
    """Yield one row in place of the sum of all, and sums that leave out an axis."""
    for row, which in ((0, "first"), (-1, "last")):

        def one(r: Replay, o: Operation, j: int, flow: Any, g: Any, row: int = row) -> Any:
            rows = _spread(r, o, j, g)
            for axis in sorted(right, reverse=True):
                rows = np.take(rows, row, axis=axis)
            return rows.reshape(np.shape(flow))

        words = f"the gradient of {label} is that of the {which} row only: the rows are not summed"
        yield "broadcast-not-summed", words, 1.1, one
    for axis in right:

        def partly(r: Replay, o: Operation, j: int, flow: Any, g: Any, axis: int = axis) -> Any:
            rest = tuple(a for a in right if a != axis)
            rows = np.take(_spread(r, o, j, g), [0], axis=axis).sum(axis=rest) if rest else None
            return None if rows is None else rows.reshape(np.shape(flow))

        yield "broadcast-not-summed", f"the gradient of {label} is not summed over axis {axis}", 1.15, partly


def _spread(replayed: Replay, operation: Operation, k: int, gradient: Any) -> Array:
    """Return what flows along an edge before it is summed to the operand's shape."""
    values = list(replayed.values)
    values[operation.inputs[k]] = np.broadcast_to(
        values[operation.inputs[k]], np.shape(values[operation.output])
    )
    return np.asarray(edge_contribution(operation, k, values, gradient))


def _axis_sets(count: int) -> Iterator[tuple[int, ...]]:
    for size in range(1, count + 1):
        yield from combinations(range(count), size)


def _products(operation: Operation, k: int, label: str) -> Iterator[tuple[str, str, float, Change]]:
    """Another product of the upstream gradient with the other operand than the right one."""

    def turned(v: Any) -> Any:
        return np.swapaxes(v, -1, -2) if np.ndim(v) >= 2 else v

    left = k == 0
    products: list[tuple[str, str, Callable[[Any, Any], Any]]] = [
        ("transposed", "the other factor is not transposed", lambda g, b: g @ b if left else b @ g),
        ("transposed", "the factors are the wrong way round", lambda g, b: turned(b) @ g if left else g @ turned(b)),
        ("transposed", "the factors are the wrong way round", lambda g, b: b @ g if left else g @ b),
        ("transposed", "the upstream gradient is transposed", lambda g, b: turned(g) @ b if left else b @ turned(g)),
        ("transposed", "both are transposed", lambda g, b: turned(g) @ turned(b) if left else turned(b) @ turned(g)),
        (STAR, "`*` stands where `@` belongs", lambda g, b: g * b),
        (STAR, "`*` stands where `@` belongs", lambda g, b: g * turned(b)),
        (STAR, "`*` stands where `@` belongs", lambda g, b: turned(g) * b),
        (STAR, "a sum of products stands where `@` belongs", lambda g, b: (g * b).sum(axis=0)),
        (STAR, "a sum of products stands where `@` belongs", lambda g, b: (g * b).sum(axis=-1, keepdims=True)),
        (STAR, "a sum of products stands where `@` belongs", lambda g, b: (g * turned(b)).sum(axis=-1, keepdims=True)),
    ]  # fmt: skip
    for code, words, product in products:

        def change(r: Replay, o: Operation, j: int, flow: Any, g: Any, product: Any = product) -> Any:
            return product(np.asarray(g), np.asarray(r.values[o.inputs[1 - j]]))

        yield code, f"in the gradient of {label}, {words}", 1.0 if code == "transposed" else 1.05, change
    for rows in ("mean", "sum"):
        for scale in (0, 1, -1):

            def averaged(
                r: Replay, o: Operation, j: int, flow: Any, g: Any, rows: str = rows, scale: int = scale
            ) -> Any:
                other = np.asarray(r.values[o.inputs[1 - j]])
                found = _averaged(np.asarray(g), other, j, rows)
                n = np.shape(g)[-2 if j == 1 and np.ndim(g) > 1 else -1] if np.ndim(g) else 1
                return None if found is None else found * float(n) ** scale

            done = "averaged" if rows == "mean" else "summed"
            yield (
                "averaged-batch",
                f"in the gradient of {label}, rows are {done} before they are multiplied",
                1.1,
                averaged,
            )


def _rows_first(operation: Operation, k: int, label: str) -> Iterator[tuple[str, str, float, Change]]:
    """Sum, or average, some factors of an einsum over a letter of all before they are multiplied."""
    left, arrow, out = operation.options["subscripts"].replace(" ", "").partition("->")
    letters = left.split(",")
    if not arrow or "." in left or len(letters) != len(operation.inputs):
        return
    mine = letters[k]
    factors = [out, *(part for j, part in enumerate(letters) if j != k)]
    for row in sorted(set("".join(factors)) - set(mine)):
        holding = [j for j, part in enumerate(factors) if row in part]
        for apart in (some for size in range(1, len(holding)) for some in combinations(holding[1:], size)):
            other = next(letter for letter in "zyxwvutsrq" if letter not in left + out)
            spelt = [part.replace(row, other) if j in apart else part for j, part in enumerate(factors)]
            if not set(mine) <= set("".join(spelt)):
                continue
            for done, power in (("summed", 0), ("averaged", 1), ("averaged", 2)):

                def first(
                    r: Replay, o: Operation, j: int, flow: Any, g: Any,
                    text: str = f"{','.join(spelt)}->{mine}", row: str = row, power: int = power,
                ) -> Any:  # fmt: skip
                    values = [
                        np.asarray(g),
                        *(np.asarray(r.values[i]) for n, i in enumerate(o.inputs) if n != j),
                    ]
                    rows = next(
                        np.shape(v)[part.index(row)]
                        for v, part in zip(values, factors, strict=True)
                        if row in part
                    )
                    return np.einsum(text, *values) / float(rows) ** power

                words = f"in the gradient of {label}, rows are {done} before they are multiplied"
                yield "averaged-batch", words, 1.1, first


def _averaged(g: Array, b: Array, k: int, rows: str) -> Any:
    """Return the outer product of averages over the rows, where the right one is a sum of outer products."""
    if g.ndim < 2 or b.ndim < 2:
        if g.ndim == 1 and b.ndim == 2 and k == 1:  # a vector of weights: bᵀ g
            return getattr(b, rows)(axis=0) * getattr(g, rows)()
        return None
    if k == 1:  # out = b @ w: dw = bᵀ g, summed over the rows
        left, right = getattr(b, rows)(axis=-2), getattr(g, rows)(axis=-2)
    else:  # out = w @ b: dw = g bᵀ, summed over the columns
        left, right = getattr(g, rows)(axis=-1), getattr(b, rows)(axis=-1)
    return left[..., :, None] * right[..., None, :]


def _axes(
    replays: Replays, operation: Operation, k: int, label: str
) -> Iterator[tuple[str, str, float, Change]]:
    """Undo what moves or adds up entries along another axis, or as another such operation."""
    shape = np.shape(replays.first.values[operation.inputs[k]])
    name = operation.name
    if "axis" in operation.options and len(shape) > 1:
        for axis in range(len(shape)):

            def along(r: Replay, o: Operation, j: int, flow: Any, g: Any, axis: int = axis) -> Any:
                if o.options["axis"] in (axis, axis - len(shape)):
                    return None
                changed = replace(o, options={**o.options, "axis": axis})
                gradient = np.asarray(g)
                wanted = np.shape(changed.run(r.values))
                if gradient.shape != wanted:
                    gradient = gradient.reshape(wanted)
                return edge_contribution(changed, j, r.values, gradient)

            yield (
                "wrong-axis",
                f"the gradient of {label} is carried back through {name} along axis {axis}",
                1.1,
                along,
            )
    if name in ("repeat", "tile"):

        def exchanged(r: Replay, o: Operation, j: int, flow: Any, g: Any) -> Any:
            size, n = np.size(flow), np.size(g) // max(np.size(flow), 1)
            gradient = np.ravel(g)
            found = (
                gradient.reshape(n, size).sum(axis=0)
                if o.name == "repeat"
                else gradient.reshape(size, n).sum(axis=1)
            )
            return found.reshape(np.shape(flow))

        yield (
            "wrong-axis",
            f"the gradient of {label} undoes {name} as if it were the other of repeat and tile",
            1.1,
            exchanged,
        )
    if name in ("getitem", "take"):
        yield from _gathered(label)
    if name in ("mean",):

        def unscaled(r: Replay, o: Operation, j: int, flow: Any, g: Any) -> Any:
            return flow * (np.size(flow) / max(np.size(g), 1))

        yield "batch-mean-vs-sum", f"the gradient of {label} lacks the 1/n of the mean", 1.05, unscaled


def _gathered(label: str) -> Iterator[tuple[str, str, float, Change]]:
    """Entries that were taken several times keep one of their gradients."""
    for which in ("last", "first"):

        def kept(r: Replay, o: Operation, j: int, flow: Any, g: Any, which: str = which) -> Any:
            positions = np.arange(np.size(flow)).reshape(np.shape(flow))
            taken = np.asarray(
                o.function(positions, *[r.values[i] for i in o.inputs[1:]], **o.options)
            ).ravel()
            gradient, found = np.ravel(g), np.zeros(np.size(flow))
            order = range(taken.size) if which == "last" else range(taken.size - 1, -1, -1)
            for position in order:
                found[taken[position]] = gradient[position]
            return found.reshape(np.shape(flow))

        words = f"{label} is taken several times at one index, and only the {which} of its gradients is there"
        yield "overwritten-not-accumulated", words, 0.95, kept


def _neighbours(
    replays: Replays, operation: Operation, k: int, label: str
) -> Iterator[tuple[str, str, float, Change]]:
    """Let the gradient of another value arrive, or another value stand for an operand."""
    recording, first = replays.recording, replays.first
    shape = np.shape(first.values[operation.output])
    for other, gradient in first.gradients.items():
        if other == operation.output or np.shape(gradient) != shape:
            continue
        if operation.output not in replays.ancestors(other):
            continue

        def too_early(r: Replay, o: Operation, j: int, flow: Any, g: Any, other: int = other) -> Any:
            return r.flow_of(o, j, r.gradients[other])

        after = replays.label(operation.output)
        words = f"the gradient of {label} is made from that of {replays.label(other)}, before the slope to {after}"
        yield "missing-local-derivative", words, 1.3, too_early
    for j, index in enumerate(operation.inputs):
        if j == k and operation.kind != "elementwise":
            continue
        value = first.values[index]
        if (
            index in recording.constants
            or operation.kind not in ("elementwise", "product")
            or np.asarray(value).dtype.kind != "f"
        ):
            continue
        for other, candidate in enumerate(first.values):
            if (
                other == index
                or np.shape(candidate) != np.shape(value)
                or np.asarray(candidate).dtype.kind != "f"
                or not np.ndim(candidate)
            ):
                continue

            def elsewhere(
                r: Replay, o: Operation, kk: int, flow: Any, g: Any, j: int = j, other: int = other
            ) -> Any:
                values = list(r.values)
                values[o.inputs[j]] = r.values[other]
                values[o.output] = o.run(values)
                return r.flow_of(o, kk, g, values)

            at_other = f"is taken at {replays.label(other)}, not at {replays.label(index)}"
            words = f"the gradient of {label} through {operation.name} {at_other}"
            yield "wrong-evaluation-point", words, 1.4, elsewhere


def reduced(flow: Array, shape: tuple[int, ...]) -> Array:
    """Sum a gradient to the shape of what was broadcast."""
    extra = flow.ndim - len(shape)
    axes = tuple(range(extra)) + tuple(
        k + extra for k, n in enumerate(shape) if n == 1 and flow.shape[k + extra] > 1
    )
    return flow.sum(axis=axes).reshape(shape) if axes else flow

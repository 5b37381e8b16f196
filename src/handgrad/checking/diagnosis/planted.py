"""Known mistakes, planted in the chain rule over the recording: which gives the user's numbers?

A mistake is made at an edge (what flows from an operation back to one of its operands), or at the same edge of
every turn of a loop; or it is a gradient added at a value. Each generator yields one kind of mistake at every place.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from handgrad.checking.adjoint import Plant, cotangents
from handgrad.checking.diagnosis.evidence import Guess, agree
from handgrad.checking.diagnosis.replayed import Replay, Replays
from handgrad.checking.recording import Operation
from handgrad.checking.subject import Array

Predict = Callable[[Replay], Mapping[str, Array] | None]


@dataclass(frozen=True)
class Planted:
    """A mistake to try.

    Attributes
    ----------
    code, evidence, cost
        As a guess's.
    predict
        What every argument's gradient would be for it, by name; None where the mistake cannot be made.
    operation
        Where.
    """

    code: str
    evidence: str
    cost: float
    predict: Predict
    operation: Operation | None = None


def plant(replays: Replays, mistakes: Iterable[Planted], *, seconds: float) -> list[Guess]:
    """Return the mistakes that reproduce backward's numbers for every sample, within a time."""
    end = time.thread_time() + seconds
    found: list[Guess] = []
    replays.deadline = end
    for mistake in mistakes:
        if replays.late:
            break
        explained = _explained(mistake, replays)
        if explained:
            whole = 0.0 if len(explained) == len(replays.wrong) else 0.05
            found.append(
                Guess(mistake.code, explained, mistake.evidence, mistake.cost + whole, replays.place(mistake.operation))
            )
    return found


def _explained(mistake: Planted, replays: Replays) -> tuple[str, ...]:
    """Return the wrong arguments that a mistake explains for every sample; none when it would spoil a right one.

    A mistake that explains some of several wrong arguments may well spoil others: they have one of their own.
    """
    left = replays.wrong
    for replayed in replays.all:
        with np.errstate(all="ignore"):
            predicted = mistake.predict(replayed)
        if predicted is None:
            return ()
        left = tuple(name for name in left if _gives(replayed, predicted, name))
        if not left:
            return ()
        right = (name for name in replays.right if name in predicted)
        if left == replays.wrong and not all(_gives(replayed, predicted, name) for name in right):
            return ()
    return left


def _gives(replayed: Replay, predicted: Mapping[str, Array], name: str) -> bool:
    if name not in predicted:
        return False
    right, got = replayed.sample.middle(name), replayed.sample.got[name]
    size = float(np.abs(right).max(initial=0)) * 1e-3
    found = np.asarray(predicted[name], float)
    # a small error is explained only by what comes much nearer than the right gradient does
    nearer = float(np.abs(found - got).max(initial=0)) <= 0.05 * float(np.abs(right - got).max(initial=0))
    return agree(found, got, size) and (nearer or not replayed.sample.wrong(name).any())


# ---------------------------------------------------------------------------------------------- at edges

Change = Callable[[Replay, Operation, int, Any, Any], Any]  # (replay, operation, operand, right flow, gradient)


def at(edges: list[tuple[Operation, int]], change: Change) -> Predict:
    """Return the gradients when ``change`` makes what flows along some edges, all at once."""

    def predict(replayed: Replay) -> Mapping[str, Array] | None:
        failed = False

        def plant_at(operation: Operation, k: int) -> Plant:
            def changed(flow: Any, _operation: Operation, _values: Any, gradient: Any) -> Any:
                nonlocal failed
                try:
                    wrong = change(replayed, operation, k, flow, gradient)
                    if wrong is not None and np.shape(wrong) != np.shape(flow):
                        wrong = np.broadcast_to(wrong, np.shape(flow))
                except (ValueError, IndexError):  # the shapes do not fit: nobody can have written this
                    wrong = None
                if wrong is None:
                    failed = True
                    return flow
                return wrong

            return Plant(operation.number, k, changed)

        plants = [plant_at(operation, k) for operation, k in edges]
        found = cotangents(replayed.recording, replayed.values, replayed.upstream, plant=plants)
        return None if failed else replayed.named(found)

    return predict


def edge_groups(replays: Replays, *, loops: bool) -> Iterator[list[tuple[Operation, int]]]:
    """Yield every edge by itself, or the edges that one line of the source makes in several turns."""
    lines: dict[tuple[Any, ...], list[tuple[Operation, int]]] = {}
    for operation, k in replays.recording.edges():
        if operation.output not in replays.first.gradients:
            continue
        if not loops:
            yield [(operation, k)]
        lines.setdefault((operation.place, operation.name, k, np.shape(replays.first.values[operation.output])), []).append((operation, k))
    for group in lines.values() if loops else ():
        if len(group) > 1:
            yield group


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
            yield from _left_out(replays, operation, k, label)


def _changes(replays: Replays, operation: Operation, k: int, label: str) -> Iterator[tuple[str, str, float, Change]]:
    name = operation.name
    twice = 0.6 if len(set(operation.inputs)) < len(operation.inputs) else 0.0  # of x * x one half undoes the other
    words = f"the gradient of {label} through {name} has the opposite sign"
    yield "wrong-sign", words, 1.0 + twice, lambda r, o, j, flow, g: -flow
    yield from _sizes(replays, operation, k, label)
    shape = np.shape(replays.first.values[operation.inputs[k]])
    if len(shape) >= 2 and shape[-1] == shape[-2]:
        cost = 1.0 if operation.kind == "product" else 1.9
        yield "transposed", f"the gradient of {label} is transposed", cost, lambda r, o, j, flow, g: np.swapaxes(flow, -1, -2)
    if operation.kind == "elementwise":
        yield from _slopes(replays, operation, k, label)
        yield from _sums(replays, operation, k, label)
    if name in ("matmul", "dot") and len(operation.inputs) == 2:
        yield from _products(operation, k, label)
    if operation.kind in ("reduction", "structural"):
        yield from _axes(replays, operation, k, label)
    yield from _neighbours(replays, operation, k, label)


def _sizes(replays: Replays, operation: Operation, k: int, label: str) -> Iterator[tuple[str, str, float, Change]]:
    """A factor: the length of an axis or its inverse, or a constant."""
    values = replays.first.values
    shapes = [np.shape(values[v]) for v in (operation.inputs[k], operation.output)]
    entrywise = operation.kind == "elementwise" and shapes[0] == shapes[1]
    for n in sorted({n for shape in shapes for n in shape if n > 1}) if not entrywise else ():
        cost = 1.9 if n in (2, 3, 4) else 1.25
        for factor, words in ((1 / n, "divided"), (float(n), "multiplied")):
            text = f"the gradient of {label} is {words} by {n}, the length of an axis"
            yield "batch-mean-vs-sum", text, cost, lambda r, o, j, flow, g, f=factor: f * flow
    several = len(replays.recording.readers.get(operation.inputs[k], ())) > 1
    for factor in (2.0, 0.5, 3.0, 1 / 3, 4.0, 0.25):
        text = f"the gradient of {label} through {operation.name} is {factor:.4g} times the right one"
        code = "extra-term" if several and factor == 2.0 else "constant-factor"
        if entrywise and operation.name not in ("add", "subtract"):
            code = "wrong-local-derivative"
        yield code, text, 1.45 if several else 1.5, lambda r, o, j, flow, g, f=factor: f * flow


def _slopes(replays: Replays, operation: Operation, k: int, label: str) -> Iterator[tuple[str, str, float, Change]]:
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


def _sums(replays: Replays, operation: Operation, k: int, label: str) -> Iterator[tuple[str, str, float, Change]]:
    """What was broadcast is summed over other axes, averaged, or taken from one row."""
    shape = np.shape(replays.first.values[operation.inputs[k]])
    full = np.shape(replays.first.values[operation.output])
    if shape == full:
        return

    def spread(r: Replay, o: Operation, j: int, g: Any) -> Array:
        values = list(r.values)
        values[o.inputs[j]] = np.broadcast_to(values[o.inputs[j]], np.shape(values[o.output]))
        from handgrad.checking.adjoint import edge_contribution

        return np.asarray(edge_contribution(o, j, values, g))

    extra = len(full) - len(shape)
    right = tuple(range(extra)) + tuple(a + extra for a, n in enumerate(shape) if n == 1 and full[a + extra] > 1)
    for axes in _axis_sets(len(full)):
        if axes == right or int(np.prod([full[a] for a in range(len(full)) if a not in axes])) != int(np.prod(shape)):
            continue

        def other(r: Replay, o: Operation, j: int, flow: Any, g: Any, axes: tuple[int, ...] = axes) -> Any:
            return spread(r, o, j, g).sum(axis=axes).reshape(np.shape(flow))

        yield "wrong-axis", f"the gradient of {label} is summed over the axes {axes}, not {right}", 1.05, other

    def first(r: Replay, o: Operation, j: int, flow: Any, g: Any) -> Any:
        rows = spread(r, o, j, g)
        for axis in sorted(right, reverse=True):
            rows = np.take(rows, 0, axis=axis)
        return rows.reshape(np.shape(flow))

    def last(r: Replay, o: Operation, j: int, flow: Any, g: Any) -> Any:
        rows = spread(r, o, j, g)
        for axis in sorted(right, reverse=True):
            rows = np.take(rows, -1, axis=axis)
        return rows.reshape(np.shape(flow))

    yield "broadcast-not-summed", f"the gradient of {label} is that of the first row only: the rows are not summed", 1.1, first
    yield "broadcast-not-summed", f"the gradient of {label} is that of the last row only: the rows are not summed", 1.1, last
    for axis in right:
        def partly(r: Replay, o: Operation, j: int, flow: Any, g: Any, axis: int = axis) -> Any:
            rest = tuple(a for a in right if a != axis)
            rows = np.take(spread(r, o, j, g), [0], axis=axis).sum(axis=rest) if rest else None
            return None if rows is None else rows.reshape(np.shape(flow))

        yield "broadcast-not-summed", f"the gradient of {label} is not summed over axis {axis}", 1.15, partly


def _axis_sets(count: int) -> Iterator[tuple[int, ...]]:
    from itertools import combinations

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
        ("transposed", "the upstream gradient is transposed", lambda g, b: turned(g) @ turned(b) if left else turned(b) @ turned(g)),
        ("elementwise-instead-of-matmul", "`*` stands where `@` belongs", lambda g, b: g * b),
        ("elementwise-instead-of-matmul", "`*` stands where `@` belongs", lambda g, b: g * turned(b)),
        ("elementwise-instead-of-matmul", "`*` stands where `@` belongs", lambda g, b: turned(g) * b),
        ("elementwise-instead-of-matmul", "a sum of products stands where `@` belongs", lambda g, b: (g * b).sum(axis=0)),
        ("elementwise-instead-of-matmul", "a sum of products stands where `@` belongs", lambda g, b: (g * b).sum(axis=-1, keepdims=True)),
        ("elementwise-instead-of-matmul", "a sum of products stands where `@` belongs", lambda g, b: (g * turned(b)).sum(axis=-1, keepdims=True)),
    ]  # fmt: skip
    for code, words, product in products:
        def change(r: Replay, o: Operation, j: int, flow: Any, g: Any, product: Any = product) -> Any:
            return product(np.asarray(g), np.asarray(r.values[o.inputs[1 - j]]))

        yield code, f"in the gradient of {label}, {words}", 1.0 if code == "transposed" else 1.05, change
    for rows in ("mean", "sum"):
        for scale in (0, 1, -1):
            def averaged(r: Replay, o: Operation, j: int, flow: Any, g: Any, rows: str = rows, scale: int = scale) -> Any:
                other = np.asarray(r.values[o.inputs[1 - j]])
                found = _averaged(np.asarray(g), other, j, rows)
                n = np.shape(g)[-2 if j == 1 and np.ndim(g) > 1 else -1] if np.ndim(g) else 1
                return None if found is None else found * float(n) ** scale

            done = "averaged" if rows == "mean" else "summed"
            yield "averaged-batch", f"in the gradient of {label}, rows are {done} before they are multiplied", 1.1, averaged


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


def _axes(replays: Replays, operation: Operation, k: int, label: str) -> Iterator[tuple[str, str, float, Change]]:
    """What moves or adds up entries is undone along another axis, or as another such operation."""
    shape = np.shape(replays.first.values[operation.inputs[k]])
    name = operation.name
    if "axis" in operation.options and len(shape) > 1:
        for axis in range(len(shape)):
            def along(r: Replay, o: Operation, j: int, flow: Any, g: Any, axis: int = axis) -> Any:
                from dataclasses import replace

                from handgrad.checking.adjoint import edge_contribution

                if o.options["axis"] in (axis, axis - len(shape)):
                    return None
                changed = replace(o, options={**o.options, "axis": axis})
                gradient = np.asarray(g)
                wanted = np.shape(changed.run(r.values))
                if gradient.shape != wanted:
                    gradient = gradient.reshape(wanted)
                return edge_contribution(changed, j, r.values, gradient)

            yield "wrong-axis", f"the gradient of {label} is carried back through {name} along axis {axis}", 1.1, along
    if name in ("repeat", "tile"):
        def exchanged(r: Replay, o: Operation, j: int, flow: Any, g: Any) -> Any:
            size, n = np.size(flow), np.size(g) // max(np.size(flow), 1)
            gradient = np.ravel(g)
            found = gradient.reshape(n, size).sum(axis=0) if o.name == "repeat" else gradient.reshape(size, n).sum(axis=1)
            return found.reshape(np.shape(flow))

        yield "wrong-axis", f"the gradient of {label} undoes {name} as if it were the other of repeat and tile", 1.1, exchanged
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
            taken = np.asarray(o.function(positions, *[r.values[i] for i in o.inputs[1:]], **o.options)).ravel()
            gradient, found = np.ravel(g), np.zeros(np.size(flow))
            order = range(taken.size) if which == "last" else range(taken.size - 1, -1, -1)
            for position in order:
                found[taken[position]] = gradient[position]
            return found.reshape(np.shape(flow))

        words = f"{label} is taken several times at one index, and only the {which} of its gradients is there"
        yield "overwritten-not-accumulated", words, 0.95, kept


def _neighbours(replays: Replays, operation: Operation, k: int, label: str) -> Iterator[tuple[str, str, float, Change]]:
    """The gradient of another value arrives, or another value stands for an operand."""
    recording, first = replays.recording, replays.first
    shape = np.shape(first.values[operation.output])
    for other, gradient in first.gradients.items():
        if other == operation.output or np.shape(gradient) != shape:
            continue
        if operation.output not in replays.ancestors(other):
            continue

        def too_early(r: Replay, o: Operation, j: int, flow: Any, g: Any, other: int = other) -> Any:
            return r.flow_of(o, j, r.gradients[other])

        words = f"the gradient of {label} is made from that of {replays.label(other)}, before it passed the slope to {replays.label(operation.output)}"
        yield "missing-local-derivative", words, 1.3, too_early
    for j, index in enumerate(operation.inputs):
        if j == k and operation.kind != "elementwise":
            continue
        value = first.values[index]
        if index in recording.constants or operation.kind not in ("elementwise", "product") or np.asarray(value).dtype.kind != "f":
            continue
        for other, candidate in enumerate(first.values):
            if other == index or np.shape(candidate) != np.shape(value) or np.asarray(candidate).dtype.kind != "f" or not np.ndim(candidate):
                continue

            def elsewhere(r: Replay, o: Operation, kk: int, flow: Any, g: Any, j: int = j, other: int = other) -> Any:
                values = list(r.values)
                values[o.inputs[j]] = r.values[other]
                values[o.output] = o.run(values)
                return r.flow_of(o, kk, g, values)

            words = f"the gradient of {label} through {operation.name} is taken at {replays.label(other)}, not at {replays.label(index)}"
            yield "wrong-evaluation-point", words, 1.4, elsewhere


def shifted(replays: Replays) -> Iterator[Planted]:
    """Yield a neighbour's step: in every turn of a loop, the operand of the next turn, or of the one before."""
    names = replays.recording.names
    chains: dict[tuple[str, tuple[int, ...]], list[int]] = {}
    for value in sorted(names):
        chains.setdefault((names[value], np.shape(replays.first.values[value])), []).append(value)
    following = {a: b for chain in chains.values() for a, b in zip(chain, chain[1:], strict=False)}
    for step, table in (("next", following), ("one before", {b: a for a, b in following.items()})):
        for edges in (*edge_groups(replays, loops=True), *edge_groups(replays, loops=False)):
            operation, k = edges[0]
            for j, index in enumerate(operation.inputs):
                if (j == k and operation.kind != "elementwise") or index not in table:
                    continue

                def neighbour(r: Replay, o: Operation, kk: int, flow: Any, g: Any, j: int = j, table: Any = table) -> Any:
                    values = list(r.values)
                    values[o.inputs[j]] = r.values[table.get(o.inputs[j], o.inputs[j])]
                    return r.flow_of(o, kk, g, values)

                label = replays.label(operation.inputs[k])
                words = f"the gradient of {label} through {operation.name} takes {replays.label(index)} of the {step} step"
                yield Planted("wrong-evaluation-point", words, 1.3, at(edges, neighbour), operation)


def several_left_out(replays: Replays) -> Iterator[Planted]:
    """Yield two or three paths that are left out together, as the mean's and the variance's of a normalisation."""
    from itertools import combinations

    readers = replays.recording.readers
    branching = [
        (o, k) for o, k in replays.recording.edges()
        if o.output in replays.first.gradients
        and sum(reader.output in replays.first.gradients for reader, _ in readers[o.inputs[k]]) > 1
    ]  # fmt: skip
    if len(branching) > 14:
        return
    for count in (2, 3):
        for edges in combinations(branching, count):
            labels = " and ".join(dict.fromkeys(f"{o.name} to {replays.label(o.inputs[k])}" for o, k in edges))
            cut = at(list(edges), lambda r, o, j, flow, g: np.zeros_like(flow))
            yield Planted("missing-term", f"the paths through {labels} are left out", 1.25 + 0.1 * count, cut, edges[0][0])


def _left_out(replays: Replays, operation: Operation, k: int, label: str) -> Iterator[Planted]:
    """A path that is left out: of one, of several, or all but one of several of a kind."""
    recording, index = replays.recording, operation.inputs[k]
    readers = [(o, j) for o, j in recording.readers[index] if o.output in replays.first.gradients]
    cut = at([(operation, k)], lambda r, o, j, flow, g: np.zeros_like(flow))
    if len(readers) < 2:
        yield Planted("zero-gradient", f"nothing flows back through {operation.name} to {label}", 2.0, cut, operation)
        yield Planted("missing-term", f"the path through {operation.name} to {label} is left out", 1.9, cut, operation)
        return
    words = f"{label} is used {len(readers)} times, and what flows back through {operation.name} is left out"
    yield Planted("missing-term", words, 1.3, cut, operation)


def accumulations(replays: Replays) -> Iterator[Planted]:
    """Yield one gradient that stands for the sum of several of a kind, and a sum that lacks one."""
    recording = replays.recording
    for index, every in recording.readers.items():
        readers = [edge for edge in every if edge[0].output in replays.first.gradients]
        for operation, k in readers if index in recording.active and len(readers) > 1 else ():
            alike = [edge for edge in readers if edge[0].name == operation.name and edge[1] == k]
            if len(alike) < 2:
                continue
            label = replays.label(index)
            others = [edge for edge in readers if edge != (operation, k)]
            words = f"{label} is used {len(readers)} times, and one of its gradients stands for their sum"
            yield Planted("overwritten-not-accumulated", words, 1.2, at(others, _nothing), operation)
            if len(alike) > 2:
                words = f"{label} is used {len(readers)} times, and one of its gradients is left out"
                yield Planted("missing-term", words, 1.25, at([(operation, k)], _nothing), operation)


def _nothing(replayed: Replay, operation: Operation, k: int, flow: Any, gradient: Any) -> Any:
    return np.zeros_like(flow)


def reduced(flow: Array, shape: tuple[int, ...]) -> Array:
    """Sum a gradient to the shape of what was broadcast."""
    extra = flow.ndim - len(shape)
    axes = tuple(range(extra)) + tuple(k + extra for k, n in enumerate(shape) if n == 1 and flow.shape[k + extra] > 1)
    return flow.sum(axis=axes).reshape(shape) if axes else flow


# --------------------------------------------------------------------------------------------- at values


def at_values(replays: Replays) -> Iterator[Planted]:
    """Yield mistakes in the gradient of one value: ones for it, its sign, its rows averaged."""
    recording = replays.recording
    for index, gradient in replays.first.gradients.items():
        operation = recording.producer.get(index)
        label = replays.label(index)
        if index in recording.outputs:
            yield Planted("ignores-upstream", "the upstream gradient is taken to be ones", 0.5, setting(index, np.ones_like), operation)
        elif operation is not None:
            yield Planted("ignores-upstream", f"what arrives at {label} is taken to be ones", 0.8, setting(index, np.ones_like), operation)
            yield Planted("wrong-sign", f"the gradient of {label} has the opposite sign", 0.9, setting(index, np.negative), operation)
            yield Planted("zero-gradient", f"the gradient of {label} is lost: nothing flows through it", 1.9, setting(index, np.zeros_like), operation)
        if operation is not None:
            for axis, length in enumerate(np.shape(gradient)):
                if length > 1:
                    yield from _along_axis(index, axis, length, label, operation)


def _along_axis(index: int, axis: int, length: int, label: str, operation: Operation) -> Iterator[Planted]:
    for reduce, words in ((np.mean, "averaged"), (np.sum, "summed")):
        def made(g: Any, reduce: Any = reduce) -> Any:
            return np.broadcast_to(reduce(g, axis=axis, keepdims=True), np.shape(g))

        text = f"the gradient of {label} is {words} over axis {axis} before it is handed on"
        yield Planted("averaged-batch", text, 1.6, setting(index, made), operation)
    text = f"the gradient of {label} is divided by the length of axis {axis}"
    cost = 1.9 if length in (2, 3, 4) else 1.4
    yield Planted("batch-mean-vs-sum", text, cost, setting(index, lambda g: g / np.shape(g)[axis]), operation)
    text = text.replace("divided", "multiplied")
    yield Planted("batch-mean-vs-sum", text, cost, setting(index, lambda g: g * np.shape(g)[axis]), operation)


def setting(index: int, make: Callable[[Any], Any]) -> Predict:
    """Return the gradients when a value has another gradient than its right one."""

    def predict(replayed: Replay) -> Mapping[str, Array]:
        right = replayed.gradients[index]
        return replayed.with_added({index: make(right) - right})

    return predict


def additions(replays: Replays) -> Iterator[Planted]:
    """Yield a multiple of a value that is added to an argument's gradient, as weight decay is."""
    for name in replays.wrong:
        shape = replays.first.shape(name)
        for index, value in enumerate(replays.first.values):
            if np.shape(value) != shape or not np.ndim(value) or np.asarray(value).dtype.kind != "f":
                continue

            def predict(replayed: Replay, index: int = index, name: str = name) -> Mapping[str, Array] | None:
                added = np.asarray(replayed.values[index], float)
                start = np.asarray(replays.first.values[index], float)
                factor = float((replays.first.off(name) * start).sum() / max((start * start).sum(), 1e-300))
                return {name: replayed.sample.middle(name) + factor * added}

            yield Planted("extra-term", f"a multiple of {replays.label(index)} is added to d{name}", 1.5, predict)

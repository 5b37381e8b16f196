"""Paths that are left out, taken from a neighbour's step, or added: which ways a value reaches the output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from handgrad.checking.diagnosis.guess import CLOSE
from handgrad.checking.diagnosis.planted import Change, Flow, Planted, Predict, at, edge_groups
from handgrad.checking.diagnosis.replayed import Replay, Replays
from handgrad.checking.forward_trace import Operation
from handgrad.checking.subject import Array

FEWEST = 3  # entries that one factor must explain


def shifted(replays: Replays) -> Iterator[Planted]:
    """Yield a neighbour's step: in every turn of a loop, the operand of the next turn, or of the one before."""
    names = replays.recording.names
    chains: dict[tuple[str, tuple[int, ...]], list[int]] = {}
    for value in sorted(names):
        chains.setdefault((names[value], np.shape(replays.first.values[value])), []).append(value)
    following = {a: b for chain in chains.values() for a, b in pairwise(chain)}
    for step, table in (("next", following), ("one before", {b: a for a, b in following.items()})):
        for edges in (*edge_groups(replays, loops=True), *edge_groups(replays, loops=False)):
            operation, k = edges[0]
            for j, index in enumerate(operation.inputs):
                if (j == k and operation.kind != "elementwise") or index not in table:
                    continue
                label = replays.label(operation.inputs[k])
                words = f"the gradient of {label} through {operation.name} takes {replays.label(index)} of the {step} step"
                yield Planted(
                    "wrong-evaluation-point", words, 1.3, at(edges, _neighbour(j, table)), operation
                )


def _neighbour(j: int, table: Mapping[int, int]) -> Change:
    """Take operand j of the step that follows in a table."""

    def neighbour(flow: Flow) -> Any:
        values, index = list(flow.replay.values), flow.operation.inputs[j]
        values[index] = values[table.get(index, index)]
        return flow.from_gradient(flow.gradient, values)

    return neighbour


def several_left_out(replays: Replays) -> Iterator[Planted]:
    """Yield two or three paths that are left out together, as the mean's and the variance's of a normalisation."""
    readers = replays.recording.readers
    branching = [
        (o, k)
        for o, k in replays.recording.edges()
        if o.output in replays.first.gradients
        and sum(reader.output in replays.first.gradients for reader, _ in readers[o.inputs[k]]) > 1
    ]
    if len(branching) > 14:
        return
    for count in (2, 3):
        for edges in combinations(branching, count):
            labels = " and ".join(
                dict.fromkeys(f"{o.name} to {replays.label(o.inputs[k])}" for o, k in edges)
            )
            cut = at(list(edges), _nothing)
            yield Planted(
                "missing-term",
                f"the paths through {labels} are left out",
                1.25 + 0.1 * count,
                cut,
                edges[0][0],
            )


def left_out(replays: Replays, operation: Operation, k: int, label: str) -> Iterator[Planted]:
    """Leave a path out: of one, of several, or all but one of several of a kind."""
    recording, index = replays.recording, operation.inputs[k]
    readers = [(o, j) for o, j in recording.readers[index] if o.output in replays.first.gradients]
    cut = at([(operation, k)], _nothing)
    if len(readers) < 2:
        yield Planted(
            "zero-gradient", f"nothing flows back through {operation.name} to {label}", 2.0, cut, operation
        )
        yield Planted(
            "missing-term", f"the path through {operation.name} to {label} is left out", 1.9, cut, operation
        )
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


def _nothing(flow: Flow) -> Any:
    return np.zeros_like(flow.right)


def factors(replays: Replays) -> Iterator[Planted]:
    """Yield a value that is missing as a factor of the wrong entries alone, or that is too many there."""
    replayed = replays.first
    for name in replays.wrong:
        wrong, right = replayed.sample.wrong(name), replayed.sample.expected(name)
        got = np.asarray(replayed.sample.got[name], float)
        for index, value in enumerate(replayed.values):
            if np.shape(value) != wrong.shape or np.asarray(value).dtype.kind != "f" or wrong.sum() < FEWEST:
                continue
            factor = np.asarray(value)[wrong]
            for code, words, power in (("missing-local-derivative", "lack", -1), ("extra-term", "have", 1)):
                with np.errstate(all="ignore"):
                    times = got[wrong] / (right[wrong] * factor**power)
                if not np.ptp(times) <= CLOSE * np.abs(times[0]) or np.ptp(factor) <= CLOSE * np.abs(
                    factor[0]
                ):
                    continue
                made = _with_factor(name, index, power, float(times[0]))
                many = " too many" if power > 0 else ""
                text = (
                    f"{int(wrong.sum())} entries of d{name} {words} the factor {replays.label(index)}{many}"
                )
                yield Planted(code, text, 1.75, made)


def _with_factor(name: str, index: int, power: int, times: float) -> Predict:
    def predict(replayed: Replay) -> Mapping[str, Array]:
        right, wrong = replayed.sample.expected(name), replayed.sample.wrong(name)
        factor = np.asarray(replayed.values[index], float)
        return {name: np.where(wrong, times * right * factor**power, right)}

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
                return {name: replayed.sample.expected(name) + factor * added}

            yield Planted(
                "extra-term", f"a multiple of {replays.label(index)} is added to d{name}", 1.5, predict
            )

"""Mistakes in which backward reads another array than forward did: after its update, transposed, or mirrored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from handgrad.checking.diagnosis.mutated_chain_rule import MutatedChainRule, Point
from handgrad.checking.forward_trace import ForwardTrace
from handgrad.checking.mistakes import Diagnosis
from handgrad.tolerance import close

STALE, TURNED = 0.6, 0.7  # costs, as in `local_mutations`
RATE = 1e-3  # of the update that shows how gradients change with it
VIEWS = frozenset(
    ("getitem", "reshape", "transpose", "swapaxes", "moveaxis", "squeeze", "expand_dims", "flip")
)

Change = Callable[[Any], Any]


def changed_arrays(chain: MutatedChainRule) -> Iterator[Diagnosis]:
    """Carry the error back through an input that is not what it was in forward."""
    trace = chain.trace
    for name, index in trace.inputs.items():
        if index not in trace.active or chain.is_spent:
            continue
        if names := _after_update(chain, name):
            words = f"d{names[0]} is right for {name} after its update by d{name}: it came before the error was passed on"
            yield Diagnosis("stale-or-mutated-state", names, words, STALE)
        for what, code, change in _turns(np.shape(trace.values[index])):
            names = chain.wrong
            for point in chain.points:
                moved = _with_input(trace, point, index, change(point.values[index]))
                names = chain.met(chain.at_values(point, moved), point, names)
                if not names:
                    break
            if names:
                yield Diagnosis(code, names, f"d{names[0]} is right for {name} {what}", TURNED)


def _turns(shape: tuple[int, ...]) -> Iterator[tuple[str, str, Change]]:
    axes = range(len(shape))
    for one, other in combinations(reversed(axes), 2):
        # in memory as it was: a matrix of windows has the same shape with the window's axes exchanged
        if shape[one] == shape[other] or len(shape) > 2:
            words = "transposed" if len(shape) == 2 else f"with its axes {other} and {one} exchanged"
            yield words, "transposed", partial(_exchanged, one=one, other=other)
    several = [axes[-2:], axes[:2]] if len(shape) > 1 else []
    for flipped in (*several, *([axis] for axis in axes)):
        if max(shape[axis] for axis in flipped) > 1:
            words = f"flipped along its axis {flipped[0]}" if len(flipped) == 1 else (
                f"flipped along its axes {flipped[0]} and {flipped[1]}")  # fmt: skip
            yield words, "wrong-position", partial(np.flip, axis=tuple(flipped))


def _exchanged(value: Any, one: int, other: int) -> Any:
    return np.swapaxes(value, one, other).reshape(value.shape)


def _with_input(trace: ForwardTrace, point: Point, index: int, value: Any) -> list[Any]:
    """Return the values with another array for an input and in the views of it, and all else as it was."""
    values, views = list(point.values), {index}
    values[index] = value
    for operation in trace.operations:
        if operation.name in VIEWS and operation.inputs[0] in views:
            values[operation.output] = operation.run(values)
            views.add(operation.output)
    return values


def _after_update(chain: MutatedChainRule, name: str) -> tuple[str, ...]:
    """Return whose gradients are those at an array after its update, at one learning rate for all."""
    index, rates, names = chain.trace.inputs[name], [], tuple(n for n in chain.wrong if n != name)
    for point in chain.points:
        sample = point.sample
        upstream = np.concatenate([part.ravel() for part in sample.upstream])
        update = sample.got.get(name)
        if not names or update is None or update.shape != np.shape(point.values[index]):
            return ()
        update = update / (upstream.item() if upstream.size == 1 else 1.0)  # the loss's own step

        def at(rate: float, point: Point = point, update: Any = update) -> dict[str, Any]:
            moved = _with_input(chain.trace, point, index, point.values[index] - rate * update)
            return chain.at_values(point, moved)

        near = at(RATE)
        parts = [(near[n] - sample.expected(n)).ravel() for n in names]
        part = np.concatenate(parts) / RATE
        off = np.concatenate([(sample.got[n] - sample.expected(n)).ravel() for n in names])
        if not np.any(part):
            return ()
        rates.append(float(off @ part / (part @ part)))
        names = chain.met(at(rates[-1]), point, names)
    return names if names and rates[0] > 0 and all(close(rate, rates[0]) for rate in rates) else ()

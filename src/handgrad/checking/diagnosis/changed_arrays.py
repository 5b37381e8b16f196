"""Mistakes in which backward reads another array than forward did: transposed, or mirrored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from handgrad.checking.diagnosis.mutated_chain_rule import MutatedChainRule, Point
from handgrad.checking.forward_trace import ForwardTrace
from handgrad.checking.mistakes import Diagnosis

TURNED = 0.7  # the cost, as in `local_mutations`
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

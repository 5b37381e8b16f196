"""Known mistakes, planted in the chain rule over the recording, to see which gives the user's numbers.

A mistake is made at an edge (what flows from an operation back to one of its operands), or at the same edge of
every turn of a loop; or it is a gradient added at a value. Each generator yields one kind of mistake at every place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from handgrad.checking.adjoint import Mutation, adjoints, vector_jacobian_product
from handgrad.checking.diagnosis.guess import Guess, agree, nearer
from handgrad.checking.diagnosis.replayed import Replay, Replays
from handgrad.checking.forward_trace import Operation
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
    """Return the mistakes that reproduce backward's numbers for every sample, within a usual machine's seconds."""
    found: list[Guess] = []
    replays.until = replays.effort.spent + seconds
    for mistake in mistakes:
        if replays.late:
            break
        replays.pay()
        explained = _explained(mistake, replays)
        if explained:
            whole = 0.0 if len(explained) == len(replays.wrong) else 0.05
            found.append(
                Guess(
                    mistake.code,
                    explained,
                    mistake.evidence,
                    mistake.cost + whole,
                    replays.place(mistake.operation),
                )
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
    right, got = replayed.sample.expected(name), replayed.sample.got[name]
    size = float(np.abs(right).max(initial=0)) * 1e-3
    found = np.asarray(predicted[name], float)
    return agree(found, got, size) and (nearer(found, got, right) or not replayed.sample.wrong(name).any())


@dataclass(frozen=True)
class Flow:
    """What flows along an edge: there a mistake may be made.

    Attributes
    ----------
    replay, operation, k
        Where: an operand of an operation, in one sample.
    right
        What flows when all is right.
    gradient
        Of the operation's output.
    """

    replay: Replay
    operation: Operation
    k: int
    right: Any
    gradient: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """The operand's shape."""
        return np.shape(self.right)

    @property
    def others(self) -> list[Array]:
        """The values of the other operands."""
        return [np.asarray(self.replay.values[i]) for j, i in enumerate(self.operation.inputs) if j != self.k]

    def from_gradient(self, gradient: Any, values: list[Any] | None = None) -> Any:
        """Return what would flow from another gradient of the output, or at other values."""
        return vector_jacobian_product(
            self.operation, self.k, self.replay.values if values is None else values, gradient
        )


Change = Callable[[Flow], Any]
"""Return what flows instead; None where the mistake cannot be made."""

Mistake = tuple[str, str, float, Change]
"""Code, evidence, cost, and what flows instead."""


def at(edges: list[tuple[Operation, int]], change: Change) -> Predict:
    """Return the gradients when ``change`` makes what flows along some edges, all at once."""

    def predict(replayed: Replay) -> Mapping[str, Array] | None:
        failed = False

        def plant_at(operation: Operation, k: int) -> Mutation:
            def changed(flow: Any, _operation: Operation, _values: Any, gradient: Any) -> Any:
                nonlocal failed
                try:
                    wrong = change(Flow(replayed, operation, k, flow, gradient))
                    if wrong is not None and np.shape(wrong) != np.shape(flow):
                        wrong = np.broadcast_to(wrong, np.shape(flow))
                except (ValueError, IndexError):  # the shapes do not fit: nobody can have written this
                    wrong = None
                if wrong is None:
                    failed = True
                    return flow
                return wrong

            return Mutation(operation.number, k, changed)

        plants = [plant_at(operation, k) for operation, k in edges]
        found = adjoints(replayed.recording, replayed.values, replayed.upstream, mutations=plants)
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
        lines.setdefault(
            (operation.place, operation.name, k, np.shape(replays.first.values[operation.output])), []
        ).append((operation, k))
    for group in lines.values() if loops else ():
        if len(group) > 1:
            yield group


def setting(index: int, make: Callable[[Any], Any]) -> Predict:
    """Return the gradients when a value has another gradient than its right one."""

    def predict(replayed: Replay) -> Mapping[str, Array]:
        right = replayed.gradients[index]
        return replayed.with_added({index: make(right) - right})

    return predict

"""A network of handgrad's layers that computes what an author's forward computes, found by its values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from handgrad.adopting.layer_recognition import Kept, Owned, Step, possible_steps, same_rows, steps_from
from handgrad.adopting.loss_recognition import FoundLoss, find_loss
from handgrad.adopting.own_rules import own_steps
from handgrad.adopting.traced_values import Array, TracedValues
from handgrad.layers import Layer, Linear, Residual
from handgrad.network import Network

LONGEST = 60  # layers
MOST_UNSEEN = 200  # steps that are tried where the forward shows none of them: about a second
MOST_STEPS = 2000  # that are tried: a network of 60 layers needs 60


@dataclass(frozen=True)
class Recognised:
    """The layers that were found, the loss, and the rows that go in."""

    layers: tuple[Layer, ...]
    owned: tuple[Owned, ...]
    rows: Array
    loss: FoundLoss | None
    output: Array  # of the last layer

    def network(self, values: Mapping[int, Any] | Sequence[Any]) -> Network:
        """Return the network with the author's parameters."""
        inputs = self.rows.shape[1]
        loss = self.loss.loss if self.loss else None
        network = Network(*self.layers, loss=loss, inputs=inputs, dtype="float64")
        self.fill(network, values)
        return network

    def arrays(self, network: Network) -> Iterator[tuple[str, Kept]]:
        """Yield the names of the network's parameters, and where the author has them."""
        graph = network.graph()
        for layer, kept in self.owned:
            names = graph.names_of(layer)
            yield from ((names[argument], each) for argument, each in kept.items())

    def fill(self, network: Network, values: Mapping[int, Any] | Sequence[Any]) -> None:
        """Put the author's parameters into the network."""
        for name, kept in self.arrays(network):
            network.parameters[name][...] = kept.take(np.asarray(values[kept.leaf]))


@dataclass
class Search:
    """A search for a chain of layers from some data to the loss, or to the output of a forward that has none."""

    values: TracedValues
    parameters: Sequence[int]
    targets: Sequence[int]
    longest: tuple[Step, ...] = ()
    tried: int = 0
    data: int = -1
    own_rules: bool = False
    loss_alone: FoundLoss | None = None  # of the data, without a layer
    stuck: set[int] = field(default_factory=set)
    seen: set[tuple[int, int]] = field(default_factory=set)

    def run(self, data: int, count: int, *, own_rules: bool) -> Recognised | None:
        """Return a network that takes a value as so many rows, or None; with rules of its own only where asked."""
        signs = (1, -1) if data in self.values.constants else (1,)  # -X may have been computed beforehand
        for form, sign in product(same_rows(data, self.values, count), signs):
            rows = [sign * each.astype(float) for each in form]
            self.seen, self.stuck, self.data, self.own_rules = set(), set(), data, own_rules
            chain = self._from(rows, (), [rows])
            if chain is not None:
                steps, loss = chain
                return self._recognised(rows[0], steps, loss)
        return None

    def _recognised(self, rows: Array, steps: tuple[Step, ...], loss: FoundLoss | None) -> Recognised:
        return Recognised(
            layers=tuple(step.layer for step in steps),
            owned=tuple(owned for step in steps for owned in step.owned),
            rows=rows,
            loss=loss,
            output=steps[-1].rows[0],
        )

    def run_unseen(self, data: int, count: int) -> Recognised | None:
        """Return a network that gives the loss, whatever the forward computes on the way; or None.

        Each parameter is in one layer, and between two linear maps is at most one activation.
        """
        for rows in same_rows(data, self.values, count):
            self.tried = 0
            if count == 1:  # a row is a value of the forward, if anything is
                return None
            found = self._unseen(rows, (), tuple(self.parameters))
            if found is not None:
                return self._recognised(rows[0], *found)
        return None

    def _unseen(
        self, rows: list[Array], steps: tuple[Step, ...], left: tuple[int, ...]
    ) -> tuple[tuple[Step, ...], FoundLoss | None] | None:
        ends, loss = self._ends(rows, steps)
        if ends:
            return steps, loss
        for step in possible_steps(rows, self.values, left):
            self.tried += 1
            if self.tried > MOST_UNSEEN:
                return None
            if not step.owned and (not steps or not steps[-1].owned):
                continue
            used = {kept.leaf for _, owned in step.owned for kept in owned.values()}
            found = self._unseen(step.rows, (*steps, step), tuple(i for i in left if i not in used))
            if found is not None:
                return found
        return None

    def _from(
        self, rows: list[Array], steps: tuple[Step, ...], past: list[list[Array]]
    ) -> tuple[tuple[Step, ...], FoundLoss | None] | None:
        """Return the steps to the end, from some rows; the first way that leads there."""
        if len(steps) > len(self.longest):
            self.longest = steps
        ends, loss = self._ends(rows, steps)
        if ends:
            return steps, loss
        if len(steps) == LONGEST or self.loss_alone is not None:
            return None
        for step in (*steps_from(rows, self.values, self.parameters),):
            key = (step.value, len(step.owned))
            self.tried += 1
            if key in self.seen or self.tried > MOST_STEPS:
                continue
            self.seen.add(key)
            found = self._from(step.rows, (*steps, step), [*past, step.rows])
            if found is not None:
                return found
        for joined, at in self._joined(rows, steps, past):
            found = self._from(joined.rows, (*steps[:at], joined), [*past[: at + 1], joined.rows])
            if found is not None:
                return found
        start = steps[-1].value if steps else self.data
        if self.own_rules and start not in self.stuck:
            self.stuck.add(start)
            for step in own_steps(start, rows, self.values):
                found = self._from(step.rows, (*steps, step), [*past, step.rows])
                if found is not None:
                    return found
        return None

    def _joined(
        self, rows: list[Array], steps: tuple[Step, ...], past: list[list[Array]]
    ) -> Iterator[tuple[Step, int]]:
        """Yield the residual blocks that end here: an earlier value is added."""
        for at, before in enumerate(past[:-1]):
            if before[0].shape != rows[0].shape:
                continue
            total = [a + b for a, b in zip(before, rows, strict=True)]
            value = self.values.find(total)
            key = (-1 if value is None else value, -at)
            if value is not None and key not in self.seen:
                self.seen.add(key)
                inside = steps[at:]
                owned = tuple(each for step in inside for each in step.owned)
                yield Step(Residual(*(step.layer for step in inside)), owned, value, total), at

    def _ends(self, rows: list[Array], steps: tuple[Step, ...]) -> tuple[bool, FoundLoss | None]:
        """Return whether the network ends with some rows, and its loss."""
        trace = self.values.trace
        if np.size(trace.values[trace.output]) > 1 or not self.targets:
            return bool(steps) and self.values.is_at(trace.output, rows), None
        losses = [array.item() for array in self.values.at(trace.output)]
        weights = [list(self._weights(owned)) for step in steps for owned in step.owned]
        flat = [each for owned in weights for each in owned]
        for target in self.targets:
            for targets in self._targets(target, rows[0].shape):
                found = find_loss(rows, targets, losses, flat, self.values)
                if found is not None:
                    self.loss_alone = found if not steps else None
                    return bool(steps), found
        return False, None

    def _weights(self, owned: Owned) -> Iterator[list[Array]]:
        layer, kept = owned
        if isinstance(layer, Linear):
            yield [kept["W"].take(array) for array in self.values.at(kept["W"].leaf)]

    def _targets(self, target: int, shape: tuple[int, ...]) -> Iterator[list[Array]]:
        """Yield a value at every draw as targets: class numbers, or a matrix of the outputs' shape."""
        arrays = self.values.at(target)
        if arrays[0].size == shape[0] and arrays[0].dtype.kind in "iu":
            yield [array.reshape(-1) for array in arrays]
        forms = [form for form in same_rows(target, self.values, shape[0]) if form[0].shape == shape]
        yield from ([array.astype(float) for array in form] for form in forms)
        if not forms and arrays[0].shape == shape[len(shape) - arrays[0].ndim :]:  # the same for all rows
            yield [np.broadcast_to(array, shape).astype(float) for array in arrays]

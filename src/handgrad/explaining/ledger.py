"""The shape ledger: every value with its axes, what its gradient is, and what is kept of it for which line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from handgrad.explaining.record import LedgerEntry
from handgrad.explaining.samples import sample, summarise
from handgrad.explaining.tracing import Trace
from handgrad.layers import Node
from handgrad.rules import Shape

Axes = tuple[str, ...]


@dataclass
class AxisNames:
    """One letter for each axis of a network: the rules' letters, numbered like their layers where they repeat.

    An axis keeps the letter that the first rule gave it: the O of a layer is not the I of the next.
    """

    trace: Trace
    known: dict[str, Axes] = field(default_factory=dict)
    at: dict[str, dict[str, int | str]] = field(default_factory=dict)  # by node's output: letter -> size

    def __post_init__(self) -> None:
        for node in self.trace.nodes:
            self._name(node)
        self._shorten()

    def of(self, name: str) -> Axes:
        """Return the letters of a value; of a local one, those of the rule's axes of the same sizes."""
        if name in self.known:
            return self.known[name]
        shape = self.trace.shapes.get(name, ())
        node = self.trace.node_of(name) or self._undone(name)
        return self.fit(shape, node)

    def fit(self, shape: Shape, node: Node | None) -> Axes:
        """Return letters for a shape, in n or as it is, that comes up within a node's lines, or anywhere."""
        values = self.known if node is None else [value.name for value in (node.output, *node.inputs)]
        for name in values:
            known = self.trace.shapes[name]
            if len(known) == len(shape) and all(map(self._same, known, shape)):
                return self.known[name]
        if node is None:
            return tuple(map(str, shape))
        left = dict(self.at[node.output.name])
        letters = []
        for size in shape:
            letter = next((axis for axis, known in left.items() if self._same(known, size)), str(size))
            left.pop(letter, None)
            letters.append(letter)
        return tuple(letters)

    def _same(self, known: int | str, size: int | str) -> bool:
        return known == size or (known == "n" and size == self.trace.rows)

    def _undone(self, name: str) -> Node | None:
        line = next((line for line in self.trace.program.lines if line.target == name), None)
        return next((node for node in self.trace.nodes if line and node.output.name == line.undoes), None)

    def _name(self, node: Node) -> None:
        """Give letters to what goes into a node and comes out of it; what has some already hands them on."""
        letters: dict[str, Axes] = {}
        pairs = list(zip(node.inputs, node.rule.signature.inputs, strict=True))
        for value, axes in sorted(pairs, key=lambda pair: pair[0].name not in self.known):
            for axis, part in _parts(axes, value.shape):
                if axis not in letters:
                    width = len(part)
                    own = self.known.get(value.name)
                    letters[axis] = tuple(own[k] for k in part) if own else _fresh(axis, width, node.suffix)
            if value.name not in self.known:
                self.known[value.name] = tuple(
                    letter for axis, _ in _parts(axes, value.shape) for letter in letters[axis]
                )
        self.known[node.output.name] = tuple(
            letter for axis in node.rule.signature.output for letter in letters[axis]
        )
        self.at[node.output.name] = {
            letter: size
            for value in (*node.inputs, node.output)
            for letter, size in zip(self.known[value.name], value.shape, strict=True)
        }

    def _shorten(self) -> None:
        """Leave the number out where a letter stands for one axis only."""
        used = {axis for axes in self.known.values() for axis in axes}
        letters: dict[str, set[str]] = {}
        for axis in used:
            letters.setdefault(axis.rstrip("0123456789"), set()).add(axis)
        short = {axis: letter for letter, axes in letters.items() for axis in axes if len(axes) == 1}
        self.known = {name: tuple(short.get(a, a) for a in axes) for name, axes in self.known.items()}
        self.at = {
            name: {short.get(a, a): size for a, size in sizes.items()} for name, sizes in self.at.items()
        }


def _parts(axes: Axes, shape: Shape) -> Iterator[tuple[str, range]]:
    """Pair each letter of a signature's argument with the places it takes in a shape."""
    position = 0
    for axis in axes:
        width = 1 + len(shape) - len(axes) if axis.endswith("...") else 1
        yield axis, range(position, position + width)
        position += width


def _fresh(axis: str, width: int, suffix: str) -> Axes:
    """Name an axis that nothing has named: the rows are N, whatever the rule calls them."""
    if not axis.endswith("..."):
        return (f"{axis}{suffix}",)
    return tuple("NMLKJ"[k] if k < 5 else f"A{k}" for k in range(width))


def ledger(trace: Trace, axes: AxisNames) -> dict[str, LedgerEntry]:
    """Return an entry for every value of a trace, in the order they come up."""
    gradients = gradients_of(trace)
    belongs = {gradient: name for name, found in gradients.items() for gradient in found}
    kept_for = _kept_for(trace, belongs)
    kinds = _kinds(trace)
    entries: dict[str, LedgerEntry] = {}
    for name, kind in kinds.items():
        value = np.asarray(trace.values[name])
        of = belongs.get(name, "")
        entries[name] = LedgerEntry(
            name=name,
            kind="gradient" if of else kind,
            axes=axes.of(of or name),
            shape=trace.shapes[name],
            sizes=value.shape,
            dtype=str(value.dtype),
            bytes=value.nbytes,
            gradient_of=of,
            gradient=next(reversed(gradients.get(name, [])), ""),
            kept_for=kept_for.get(name, ()),
            summary=summarise(value),
            sample=sample(value),
        )
    return entries


def _kinds(trace: Trace) -> dict[str, str]:
    """Return what every value is, by name, in the order they come up."""
    program = trace.program
    kinds = {value.name: value.kind for value in program.inputs}
    kinds |= dict.fromkeys(program.parameters, "parameter") | dict.fromkeys(program.states, "state")
    masks = {value.name for node in trace.nodes for value in node.inputs if value.kind == "mask"}
    for line in program.lines:
        kinds.setdefault(line.target, "mask" if line.target in masks else "value")
    return kinds


def gradients_of(trace: Trace) -> dict[str, list[str]]:
    """Return the names of the gradients that each value has: its parts first where it is used several times."""
    made = [line.target for line in trace.program.lines if line.phase == "backward"]
    made += [value.name for value in trace.program.inputs if value.kind == "upstream"]
    values = {value.name for node in trace.nodes for value in (*node.inputs, node.output)}
    found: dict[str, list[str]] = {}
    for name in values:
        own = [target for target in made if target.startswith(f"d{name}_") and _is_part(trace, name, target)]
        own += [target for target in made if target == f"d{name}"]
        if own:
            found[name] = own
    return found


def _is_part(trace: Trace, name: str, target: str) -> bool:
    """Whether a target is what one use of a value hands back: ``dh1_r2``."""
    users = [node for node in trace.nodes if any(value.name == name for value in node.inputs)]
    return any(target.startswith(f"d{name}_{node.output.name}") for node in users)


def _kept_for(trace: Trace, belongs: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return, for each value that the forward leaves, the backward lines that read it."""
    made = {line.target for line in trace.program.lines if line.phase == "backward"}
    kept: dict[str, tuple[str, ...]] = {}
    for line in trace.program.phase("backward"):
        for name in sorted(line.reads - made - belongs.keys()):
            if name in trace.given or name in trace.shapes:
                kept[name] = (*kept.get(name, ()), line.target)
    return kept

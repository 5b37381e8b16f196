"""The shape ledger: every value with its axes, its gradient, and the backward lines it is saved for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from handgrad.explaining.execution import Execution
from handgrad.explaining.record import ArraySample, LedgerEntry, Summary
from handgrad.layers import Node
from handgrad.rules import Shape

Axes = tuple[str, ...]

MAX_SAMPLE = 2048  # numbers of an array that a record holds


class AxisNames:
    """One letter for each axis of a network: the rules' letters, numbered like their layers where they repeat.

    An axis keeps the letter that the first rule gave it: the O of a layer is not the I of the next.
    """

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        self.known: dict[str, Axes] = {}
        self.sizes: dict[str, dict[str, int | str]] = {}  # by node's output: letter -> size
        for node in execution.nodes:
            self._name(node)
        self._shorten()

    def of(self, name: str) -> Axes:
        """Return the letters of a value; of a local one, those of the rule's axes of the same sizes."""
        if name in self.known:
            return self.known[name]
        execution = self.execution
        undone = next((line.undoes for line in execution.program.lines if line.target == name), "")
        node = execution.node_of(name) or next((n for n in execution.nodes if n.output.name == undone), None)
        return self.fit(execution.shapes.get(name, ()), node)

    def fit(self, shape: Shape, node: Node | None) -> Axes:
        """Return letters for a shape, in n or as it is, that comes up within a node's lines, or anywhere."""
        values = self.known if node is None else [value.name for value in (node.output, *node.inputs)]
        for name in values:
            known = self.execution.shapes[name]
            if len(known) == len(shape) and all(map(self._same, known, shape)):
                return self.known[name]
        left = dict(self.sizes[node.output.name]) if node is not None else {}
        letters = []
        for size in shape:
            letter = next((axis for axis, known in left.items() if self._same(known, size)), str(size))
            left.pop(letter, None)
            letters.append(letter)
        return tuple(letters)

    def _same(self, known: int | str, size: int | str) -> bool:
        return known == size or (known == "n" and size == self.execution.rows)

    def _name(self, node: Node) -> None:
        """Give letters to a node's inputs and output; values that have letters pass theirs on."""
        letters: dict[str, Axes] = {}
        pairs = list(zip(node.inputs, node.rule.signature.inputs, strict=True))
        for value, axes in sorted(pairs, key=lambda pair: pair[0].name not in self.known):
            own = self.known.get(value.name)
            parts = list(_axis_positions(axes, len(value.shape)))
            for axis, positions in parts:
                if axis not in letters:
                    named = tuple(own[k] for k in positions) if own else None
                    letters[axis] = named or _new_letters(axis, positions, node.suffix)
            self.known.setdefault(value.name, tuple(letter for axis, _ in parts for letter in letters[axis]))
        output = node.output.name
        for axis, positions in _axis_positions(node.rule.signature.output, len(node.output.shape)):
            if axis not in letters:  # computed
                letters[axis] = _new_letters(axis, positions, node.suffix)
        self.known[output] = tuple(letter for axis in node.rule.signature.output for letter in letters[axis])
        self.sizes[output] = {
            letter: size
            for value in (*node.inputs, node.output)
            for letter, size in zip(self.known[value.name], value.shape, strict=True)
        }

    def _shorten(self) -> None:
        """Leave the number out where a letter is of one axis only."""
        letters: dict[str, set[str]] = {}
        for axis in {axis for axes in self.known.values() for axis in axes}:
            letters.setdefault(axis.rstrip("0123456789"), set()).add(axis)
        short = {axis: letter for letter, axes in letters.items() for axis in axes if len(axes) == 1}
        self.known = {name: tuple(short.get(a, a) for a in axes) for name, axes in self.known.items()}
        self.sizes = {
            name: {short.get(a, a): size for a, size in sizes.items()} for name, sizes in self.sizes.items()
        }


def _axis_positions(axes: Axes, dimensions: int) -> Iterator[tuple[str, range]]:
    """Pair each letter of a signature's argument with the axes it takes of a value."""
    position = 0
    for axis in axes:
        width = 1 + dimensions - len(axes) if axis.endswith("...") else 1
        yield axis, range(position, position + width)
        position += width


def _new_letters(axis: str, positions: range, suffix: str) -> Axes:
    """Name axes that nothing has named: the rows are N, whatever the rule calls them; what follows them, as images are."""
    width = len(positions)
    if not axis.endswith("..."):
        return (f"{axis}{suffix}",)
    if positions.start == 0:
        return tuple("NMLKJ"[k] if k < 5 else f"A{k}" for k in range(width))
    return tuple(f"{letter}{suffix}" for letter in {1: "F", 2: "TF", 3: "HVC"}.get(width, "ABCDEFG"[:width]))


def ledger(execution: Execution, axes: AxisNames) -> dict[str, LedgerEntry]:
    """Return an entry for every value of an execution, in the order they come up."""
    whole = {of: gradient for gradient, of in execution.gradient_of.items()}
    saved_for: dict[str, list[str]] = {}
    for line in execution.backward:
        for name in line.reads:
            saved_for.setdefault(name, []).append(line.target)
    made = {line.target for line in execution.backward} | execution.gradient_of.keys()
    entries: dict[str, LedgerEntry] = {}
    for name, kind in _kinds(execution).items():
        value = np.asarray(execution.values[name])
        of = execution.gradient_of.get(name, "")
        entries[name] = LedgerEntry(
            name=name,
            kind="gradient" if of else kind,
            axes=axes.of(of or name),
            shape=execution.shapes[name],
            sizes=value.shape,
            dtype=str(value.dtype),
            bytes=value.nbytes,
            gradient_of=of,
            gradient=whole.get(name, ""),
            kept_for=() if name in made else tuple(dict.fromkeys(saved_for.get(name, ()))),
            summary=summarise(value),
            sample=sample(value),
            rounding=name in execution.rounding,
        )
    return entries


def _kinds(execution: Execution) -> dict[str, str]:
    """Return what every value is, by name, in the order they come up."""
    program = execution.program
    kinds = {value.name: value.kind for value in program.inputs}
    kinds |= dict.fromkeys(program.parameters, "parameter") | dict.fromkeys(program.states, "state")
    masks = {value.name for node in execution.nodes for value in node.inputs if value.kind == "mask"}
    for line in program.lines:
        kinds.setdefault(line.target, "mask" if line.target in masks else "value")
    return kinds


def sample(value: Any, most: int = MAX_SAMPLE, *, square: bool = False) -> ArraySample:
    """Take the first indices of the longest axes, half of one at a time, until there are few enough numbers.

    Of axes that are equally long all are halved together if it is to be ``square``: so a diagonal stays one.

    Examples
    --------
    >>> sample([[1.0, 2.0, 3.0]], most=2)
    ArraySample(shape=(1, 2), numbers=(1.0, 2.0))
    """
    array = np.asarray(value)
    sizes = list(array.shape)
    while np.prod(sizes) > most:
        longest = max(range(array.ndim), key=lambda axis: (sizes[axis], axis))
        long = [axis for axis in range(array.ndim) if sizes[axis] == sizes[longest]] if square else [longest]
        for axis in long:
            sizes[axis] = -(-sizes[axis] // 2)
    taken = array[tuple(map(slice, sizes))]
    numbers = (
        float(f"{number:.6g}") + 0.0 if np.isfinite(number) else None for number in taken.flat
    )  # no -0
    return ArraySample(taken.shape, tuple(numbers))


def summarise(value: Any) -> Summary:
    """Return an array's range, mean, spread and norm."""
    array = np.asarray(value, np.float64).ravel()
    finite = array[np.isfinite(array)]
    not_finite = array.size - finite.size
    if not finite.size:
        return Summary(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, not_finite)
    with np.errstate(over="ignore"):
        numbers = [finite.min(), finite.mean(), finite.max(), finite.std(), np.linalg.norm(finite)]
    least, mean, most, deviation, norm = np.nan_to_num(numbers).tolist()
    return Summary(least, mean, most, deviation, norm, float(np.mean(array == 0)), not_finite)

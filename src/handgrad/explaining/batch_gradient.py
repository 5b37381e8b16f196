"""The gradient that a line makes for a whole batch, by indices: guessed from one row's Jacobian, proved on all rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from handgrad.explaining.index_notation import primed
from handgrad.explaining.jacobian_structure import EXACT, Named, StoredForm
from handgrad.explaining.record import Step
from handgrad.tolerance import close

if TYPE_CHECKING:
    from handgrad.explaining.jacobians import Dependency

Array = NDArray[Any]
Rows = Literal["shared", "separate", "joined", "summed", "none"]

MAX_AXES = 5  # of a value whose indices are tried in every order


def rows_of(dependency: Dependency) -> Rows:
    """Return how the rows of a batch depend on each other between two values, from the numbers of all rows.

    They are "shared" by an input that has no rows, "summed" in an output that has none, "joined" where a row of the
    output depends on another row of the input, "separate" where none does, and "none" where neither has rows.
    """
    execution = dependency.execution
    output, of = (execution.shapes[name][:1] == ("n",) for name in (dependency.output, dependency.input))
    if execution.rows < 2 or not (output or of):
        return "none"
    if not of:
        return "shared"
    if not output:
        return "summed"
    return "joined" if _meet(dependency) else "separate"


def _meet(dependency: Dependency) -> bool:
    """Whether an upstream gradient of some rows reaches others: two rows differ in a bit of their numbers."""
    upstream = _upstream(dependency)
    numbers = np.arange(len(upstream))
    for bit in range((len(upstream) - 1).bit_length()):
        for side in (0, 1):
            chosen = (numbers >> bit & 1) == side
            found = np.abs(dependency.pull(upstream * chosen.reshape(-1, *[1] * (upstream.ndim - 1))))
            if found[~chosen].max(initial=0) > EXACT * found.max(initial=0):
                return True
    return False


def telling_row(dependencies: Sequence[Dependency]) -> int:
    """Return the first row that sends a gradient back through the most of these pairs: no unit's dead row."""
    rows = dependencies[0].execution.rows
    passed = np.zeros(rows)
    for each in dependencies:
        if each.is_analytic and each.execution.shapes[each.input][:1] == ("n",):
            passed += np.abs(each.pull(_upstream(each))).reshape(rows, -1).max(axis=1, initial=0) > 0
    return int(np.argmax(passed))


def _upstream(dependency: Dependency) -> Array:
    shape = np.shape(dependency.execution.exact[dependency.output])
    return np.asarray(np.random.default_rng(0).normal(size=shape))


@dataclass(frozen=True)
class Indices:
    """The letters of an output's axes and of an input's, all rows included; a letter of both is on the diagonal."""

    output: tuple[str, ...]
    input: tuple[str, ...]


def indices(
    dependency: Dependency, stored: StoredForm, rows: Rows, axes: Sequence[tuple[str, ...]]
) -> Indices:
    """Name the axes of two values, from their letters and from which of them one row's Jacobian pairs."""
    own = [tuple(letter.lower() for letter in letters) for letters in axes]
    skipped = [len(dependency.index(name)) for name in (dependency.output, dependency.input)]
    output = _distinct(own[0], set())
    paired = dict(zip(stored.outputs, output[skipped[0] :], strict=True))
    used = set(output)
    into: list[str] = []
    if skipped[1]:
        only = rows == "none" and bool(skipped[0])  # one row, which both have
        into.append(output[0] if rows == "separate" or only else _distinct(own[1][:1], used)[0])
    for number, letter in zip(stored.inputs, own[1][skipped[1] :], strict=True):
        same = stored.sizes[number] == 1 and letter in output and letter not in into
        found = (
            paired[number]
            if number in paired
            else letter
            if same
            else _distinct((letter,), used | {*into})[0]
        )
        into.append(found)
    return Indices(output, tuple(into))


def _distinct(letters: Sequence[str], used: set[str]) -> tuple[str, ...]:
    """Return the letters, with primes where they are taken; sizes that have no letter get one."""
    found: list[str] = []
    spare = iter("ijkuvabcdefg")
    for letter in letters:
        while not letter.isidentifier():
            letter = next(each for each in spare if each not in {*letters, *used})
        found.append(primed(letter, {*used, *found}))
    return tuple(found)


@dataclass(frozen=True)
class GradientByIndices:
    """A gradient as a sum of products of entries, ``dW1[i, o] = Σ_n x[n, i] · dz1[n, o]``.

    ``factor`` is the entry of the Jacobian where it is not 0 (x[n, i]; "" for 1). It is 0 where the indices differ
    along the axes that output and input share.
    """

    target: str
    output: str
    of: str
    place: Indices
    factor: str

    def __str__(self) -> str:
        summed = [letter for letter in self.place.output if letter not in self.place.input]
        gradient = _at(f"d{self.output}", self.place.output)
        return f"{_at(self.target, self.place.input)} = {_sums(summed)}{_product(self.factor, gradient)}"

    def steps(self, forward: str) -> Iterator[Step]:
        """Yield how it follows from the forward line, written by the same indices, and from the chain rule."""
        if forward:
            yield Step(forward, f"one entry of {self.output}")
        shared = [letter for letter in self.place.output if letter in self.place.input]
        if not shared:
            return
        used = {*self.place.output, *self.place.input}
        other = {letter: primed(letter, used) for letter in shared}
        output = tuple(other.get(letter, letter) for letter in self.place.output)
        derivative = f"∂{_at(self.output, output)}/∂{_at(self.of, self.place.input)}"
        deltas = " · ".join(f"δ[{other[letter]}, {letter}]" for letter in shared)
        equal = " and ".join(f"{other[letter]} = {letter}" for letter in shared)
        entry = _at(self.of, self.place.input)
        yield Step(
            f"{derivative} = {_product(self.factor, deltas)}",
            f"{entry} is in the entries of {self.output} with {equal} and in no other: δ is 1 where its two indices are "
            "equal, else 0",
        )
        yield Step(
            f"{_at(self.target, self.place.input)} = {_sums(output)}{derivative} · {_at(f'd{self.output}', output)}",
            f"the chain rule: the sum over every entry of {self.output}",
        )
        yield Step(str(self), f"δ leaves only the terms with {equal}{self._why_transposed()}")

    def _why_transposed(self) -> str:
        """Return why one factor is transposed where the sum is a product of two matrices; "" where none is."""
        found = re.fullmatch(r"(\w+)\[([^,]+), ([^,]+)\]", self.factor)
        summed = [letter for letter in self.place.output if letter not in self.place.input]
        if not found or len(summed) != 1 or len(self.place.output) != 2 or len(self.place.input) != 2:
            return ""
        factors = {found[1]: (found[2], found[3]), f"d{self.output}": self.place.output}
        (over,), (row, column) = summed, self.place.input
        left, right = sorted(factors, key=lambda name: row not in factors[name])
        wanted = {left: (row, over), right: (over, column)}
        turned = [name for name in factors if factors[name] != wanted[name]]
        if len(turned) != 1 or factors[turned[0]] != wanted[turned[0]][::-1]:
            return ""
        axis = ("first", "second")[factors[turned[0]].index(over)]
        product = " @ ".join(f"{name}.T" if name in turned else name for name in (left, right))
        return f"; the sum runs over {over}, {turned[0]}'s {axis} axis, so it is {_at(f'({product})', (row, column))}"


def gradient_formula(
    dependency: Dependency, place: Indices, named: Named, axes: Callable[[str], tuple[str, ...]]
) -> GradientByIndices | None:
    """Return a gradient as a sum of products by indices; None if it is none. ``axes`` are the letters of a value's axes.

    It is tried with each value the backward reads, and holds when it gives what the backward lines do, on all rows,
    for a random upstream gradient.
    """
    target, upstream = _target(dependency), _upstream(dependency)
    if not target:
        return None
    right = dependency.pull(upstream)
    if not np.abs(right).max(initial=0) > 0:
        return None
    sizes = dict(zip(place.output, upstream.shape, strict=True)) | dict(
        zip(place.input, right.shape, strict=True)
    )
    numbers = {letter: k for k, letter in enumerate(sizes)}
    wanted, given = ([numbers[each] for each in letters] for letters in (place.input, place.output))
    for name, value in [("1", np.ones(())), *named]:
        for letters in _letterings(value.shape, sizes):
            own = [numbers[letter] for letter in letters if letter != "0"]
            known = [number for number in wanted if number in (*own, *given)]
            product = np.einsum(np.squeeze(value), own, upstream, given, known)
            along = tuple(k for k, number in enumerate(wanted) if number not in known)
            found = np.broadcast_to(np.expand_dims(product, along), right.shape)  # along these it is constant
            if close(found, right, least=float(np.abs(right).max())):
                full = _of_one_entry(name, letters, sizes, axes)
                return GradientByIndices(
                    target, dependency.output, dependency.input, place, _factor(name, full)
                )
    return None


def _of_one_entry(
    name: str, letters: tuple[str, ...], sizes: dict[str, int], axes: Callable[[str], tuple[str, ...]]
) -> tuple[str, ...]:
    """Put an axis's own letter where it has one entry: the row of a batch of one is its n, not 0."""
    for each in re.findall(r"[^\W\d]\w*", name):
        own = [letter.lower() for letter in axes(each)]
        if len(own) == len(letters):
            return tuple(
                letter if old == "0" and sizes.get(letter) == 1 else old
                for old, letter in zip(letters, own, strict=True)
            )
    return letters


def _target(dependency: Dependency) -> str:
    """Return the gradient that one line makes from the output's, or that it would make of an input; "" if it is none."""
    execution, of = dependency.execution, dependency.input
    lines = [
        line for line in execution.backward if line.rule and execution.gradient_of.get(line.target) == of
    ]
    made = [line.target for line in lines if line.undoes == dependency.output]
    users = [node for node in execution.nodes if of in (value.name for value in node.inputs)]
    if not lines and len(users) == 1:
        made = [f"d{of}"]
    return made[0] if len(made) == 1 and len(dependency.nodes) == 1 else ""


def _letterings(shape: tuple[int, ...], sizes: dict[str, int]) -> Iterator[tuple[str, ...]]:
    """Yield each way to put letters to the axes of a value; an axis of one number has the index 0."""
    long = [size for size in shape if size > 1]
    if len(long) > MAX_AXES:
        return
    for chosen in permutations([letter for letter in sizes if sizes[letter] > 1], len(long)):
        if all(sizes[letter] == size for letter, size in zip(chosen, long, strict=True)):
            rest = iter(chosen)
            yield tuple(next(rest) if size > 1 else "0" for size in shape)


def _factor(name: str, letters: tuple[str, ...]) -> str:
    """Write an entry of what the upstream gradient is multiplied by, "" for 1."""
    compound = not name.isidentifier() and not name.startswith("I[")
    return "" if name == "1" else _at(f"({name})" if compound else name, letters)


def _product(factor: str, rest: str) -> str:
    return f"{factor} · {rest}" if factor else rest


def _sums(letters: Sequence[str]) -> str:
    """Write the sum over some letters."""
    return f"Σ_{{{', '.join(letters)}}} " if len(letters) > 1 else f"Σ_{letters[0]} " if letters else ""


def _at(name: str, letters: Sequence[str]) -> str:
    return f"{name}[{', '.join(letters)}]" if letters else name

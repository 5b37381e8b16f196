"""Which steps compute windows, and what is computed from them: windows are read where they are, and seldom stored.

A product with windows is contractions of the images themselves; what is added up of a product's windows alone, too. All
else that has a value for every place of every window is computed on the way, where it is reduced, added up or stored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from handgrad.engines.compiled.contractions import ImageContractions
from handgrad.engines.compiled.convolution import products_of_windows, products_with_windows, sums_of_windows
from handgrad.program.lowered import REDUCTIONS, VIEWS, Extent, LoweredValue, UnsupportedLineError
from handgrad.program.windows import WindowGeometry

Users: TypeAlias = Mapping[LoweredValue, set[LoweredValue]]


@dataclass(eq=False)
class WindowProduct:
    """Contractions of images with a matrix, or with other images."""

    value: LoweredValue
    source: LoweredValue
    matrix: LoweredValue
    contractions: ImageContractions

    @property
    def reads(self) -> Iterator[LoweredValue]:
        """What it takes from memory."""
        yield from (self.source, self.matrix)

    @property
    def images(self) -> Extent:
        """How many images there are."""
        return Extent(self.source.size.factor // self.contractions.sizes[0], self.source.size.rows)


@dataclass(eq=False)
class WindowLoop:
    """One value computed from windows: ``inside`` are those values of every place that it computes on the way."""

    value: LoweredValue
    inside: tuple[LoweredValue, ...]

    @property
    def reads(self) -> Iterator[LoweredValue]:
        """What it takes from memory."""
        for value in dict.fromkeys((*self.inside, self.value)):
            for operand in value.inputs:
                if operand not in self.inside and operand.base is not self.operand:
                    yield operand.source

    @property
    def sums_windows(self) -> bool:
        """Whether it sums all windows, place by place, and not the places of each."""
        return self.value.operation in REDUCTIONS and self.value.attribute == (0,)

    @cached_property
    def operand(self) -> LoweredValue:
        """The value of every place of every window that is computed and then reduced, put back or stored."""
        is_last = self.value.operation in {*REDUCTIONS, "add_windows"}
        operand = self.value.inputs[0] if is_last else self.value
        return operand.base if self.sums_windows else operand

    @cached_property
    def geometry(self) -> WindowGeometry:
        """How the windows are taken, all of them."""
        found = {value.attribute[0] for value in self.inside if value.operation == "windows"}
        if self.value.operation == "add_windows":
            found.add(self.value.attribute)
        if len(found) != 1:
            assert self.value.line is not None
            raise UnsupportedLineError(self.value.line, "windows of several sizes together are not compiled")
        return found.pop()

    @property
    def images(self) -> Extent:
        """How many images there are."""
        p, q = self.geometry.counts
        size = self.operand.size
        return Extent(size.factor // (p * q * self.geometry.places * self.geometry.channels), size.rows)


WindowStep: TypeAlias = WindowLoop | WindowProduct


class WindowSteps:
    """The steps of the values that some users need; ``steps`` has them by their values, ``absorbed`` needs no step."""

    def __init__(
        self,
        users: Users,
        needed: list[LoweredValue],
        wanted: Collection[LoweredValue],
        is_elementwise: Callable[[LoweredValue], bool],
    ) -> None:
        self.users, self.wanted, self.is_elementwise = users, wanted, is_elementwise
        self.steps: dict[LoweredValue, WindowStep] = {}
        self.absorbed: set[LoweredValue] = set()
        self.inside: dict[LoweredValue, None] = {}  # what has a value for every place of every window
        for value in needed:
            shared = [v for v in value.inputs if v in self.inside and v.shape == value.shape]
            if value.operation in ("windows", "first_largest") or (shared and is_elementwise(value)):
                self.inside[value] = None
        for value in needed:
            if value.operation == "add_windows":
                self.absorb(value.inputs[0])
        for value in needed:
            self.find(value)
        for value in needed:
            if value.operation == "block_diagonal":
                self.absorb_blocks(value)
        in_memory = {*wanted, *self.reads()}
        for value in self.inside:
            known = self.inside.keys() | self.steps.keys() | self.absorbed
            computed_there = known.issuperset(self.readers(value))
            if computed_there and value not in in_memory:
                self.absorbed.add(value)
            else:
                self.steps[value] = self.loop(value, value)

    def absorb(self, value: LoweredValue) -> None:
        """Compute what only windows that are added up need at their places, from the last operation on."""
        only = all(user in self.inside or user.operation == "add_windows" for user in self.users[value])
        if value in self.inside or not only or value in self.wanted or not self.is_elementwise(value):
            return
        self.inside[value] = None
        for operand in value.inputs:
            if operand.shape == value.shape:
                self.absorb(operand)

    def find(self, value: LoweredValue) -> None:
        """Take a value as a step of its own if it is one."""
        step: WindowStep | None = None
        if value.operation == "product":
            step = _product(value)
        elif value.operation == "diagonal_blocks":
            step = self.within_groups(value)
        elif value.operation == "add_windows":
            step = self.added(value) or self.loop(value, value.inputs[0])
        elif value.operation in REDUCTIONS and value.inputs[0].base in self.inside:
            (v,) = value.inputs
            of_places = v in self.inside and value.attribute == (len(v.shape) - 2,)
            of_windows = v.is_contiguous and v.shape[1:] == v.base.shape[-2:] and value.attribute == (0,)
            if of_places or (of_windows and value.operation == "sum"):
                step = self.loop(value, v.base)
        if step is not None:
            self.steps[value] = step

    def added(self, value: LoweredValue) -> WindowProduct | None:
        """Return the step that adds up the windows of a product which nothing else needs, or None."""
        (v,) = value.inputs
        product = v.base
        if product.operation != "product" or not v.is_contiguous or product in self.wanted:
            return None
        if any(user is not value for user in self.readers(product)):
            return None
        (dz, w), geometry = product.inputs, value.attribute
        rows = geometry.places * geometry.channels
        transposed = w.operation == "transpose" and w.inputs[0].is_contiguous
        if not transposed or [size.factor for size in w.shape][1:] != [rows] or not dz.is_contiguous:
            return None
        self.absorbed.add(product)
        matrix, groups = _blocks(w)
        return WindowProduct(value, dz.base, matrix, sums_of_windows(geometry, dz.shape[-1].factor, groups))

    def within_groups(self, value: LoweredValue) -> WindowProduct:
        """Return the step that computes those blocks of a product with windows which are on its diagonal."""
        product, (groups, _) = value.inputs[0].base, value.attribute
        found = _product(product, groups) if product.operation == "product" else None
        if found is None or any(user is not value for user in self.readers(product)):
            assert value.line is not None
            raise UnsupportedLineError(
                value.line, "blocks of anything but a product with windows are not compiled"
            )
        self.absorbed.add(product)
        self.steps.pop(product)
        return replace(found, value=value)

    def absorb_blocks(self, value: LoweredValue) -> None:
        """Take a matrix that is 0 but for blocks on its diagonal as done: steps read the blocks."""
        if any(user not in self.steps and user not in self.absorbed for user in self.readers(value)):
            assert value.line is not None
            raise UnsupportedLineError(
                value.line, "blocks that multiply anything but windows are not compiled"
            )
        self.absorbed.add(value)

    def loop(self, value: LoweredValue, operand: LoweredValue) -> WindowLoop:
        """Return the loop that computes a value, with all that its operand needs at every place."""
        needed: dict[LoweredValue, None] = {}

        def visit(inner: LoweredValue) -> None:
            if inner in self.inside and inner not in needed:
                for each in inner.inputs:
                    visit(each)
                needed[inner] = None

        visit(operand)
        return WindowLoop(value, tuple(needed))

    def readers(self, value: LoweredValue) -> Iterator[LoweredValue]:
        """Yield what reads a value, itself or a view of it."""
        for user in self.users[value]:
            if user.operation in VIEWS:
                yield from self.readers(user)
            else:
                yield user

    def reads(self) -> Iterator[LoweredValue]:
        """Yield what any of the steps takes from memory."""
        for step in self.steps.values():
            yield from step.reads
        for value in self.inside:
            yield from (operand.source for operand in value.inputs if operand not in self.inside)


def _product(value: LoweredValue, groups: int = 1) -> WindowProduct | None:
    """Return a product with windows as contractions of images, or None; of dW in so many groups, the blocks alone."""
    left, right = value.inputs
    (windows, is_transposed), transposed_right = left.matrix, right.operation == "transpose"
    if windows.operation != "windows" or transposed_right or not right.is_contiguous:
        return None
    whole = left.inputs[0] if is_transposed else left
    geometry: WindowGeometry
    geometry, fill = windows.attribute
    (x,) = windows.inputs
    entries = geometry.places * geometry.channels
    plain = whole.is_contiguous and whole.shape[-1].factor == entries and x.is_contiguous
    if not plain or len(right.shape) != 2 or (fill and any(geometry.padding)):
        return None
    outputs = right.shape[1].factor
    if is_transposed:
        return WindowProduct(value, x.base, right.base, products_with_windows(geometry, outputs, groups))
    matrix, groups = _blocks(right)
    return WindowProduct(value, x.base, matrix, products_of_windows(geometry, outputs, groups))


def _blocks(matrix: LoweredValue) -> tuple[LoweredValue, int]:
    """Return what has a matrix's numbers in memory, and how many blocks of it are on its diagonal, with 0 around them."""
    base = matrix.base
    return (base.inputs[0].base, base.attribute) if base.operation == "block_diagonal" else (base, 1)

"""Putting the values of a program in order: products of matrices, and fused loops.

A product is a step; any other value joins the first loop that can take it, else it begins one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from handgrad.engines.compiled.fusion import CHEAP, FusedLoop, fits
from handgrad.program.lowered import GIVEN, VIEWS, Lowered, LoweredValue, UnsupportedLineError, users_of

NUMBERS = frozenset({"scalar", "size", "constant"})


@dataclass(eq=False)
class Product:
    """A product of matrices; when it has a target, ``target += sign · scale · product`` in place."""

    value: LoweredValue
    target: LoweredValue | None = None
    scale: LoweredValue | None = None
    sign: float = 1.0

    @property
    def reads(self) -> Iterator[LoweredValue]:
        """What it takes from memory."""
        yield from (operand.matrix[0] for operand in self.value.inputs)
        if self.target is not None:
            yield self.target.inputs[0]
        if self.scale is not None:
            yield self.scale


@dataclass(eq=False)
class Check:
    """The place where a loss that is not finite stops the step, before a parameter, state or slot changes."""

    reads: tuple[LoweredValue, ...] = ()


Step: TypeAlias = FusedLoop | Product | Check


class StepSchedule:
    """The steps, in order, that compute what is wanted of a program.

    Before the first update one stops when what is checked is not finite.

    ``made`` is the number of the step that computes a value; ``stored`` are the values that a step reads from memory, or
    that are wanted at the end.
    """

    def __init__(
        self, lowered: Lowered, wanted: tuple[LoweredValue, ...], checked: tuple[LoweredValue, ...]
    ) -> None:
        self.steps: list[Step] = []
        self.made: dict[LoweredValue, int] = {}
        self.barrier = 0
        self.checked, self.updates = checked, lowered.updates
        self.wanted = tuple(value.base for value in wanted)
        self.users = users_of((*wanted, *lowered.assigned))
        self.accumulated = {
            value: product for value in lowered.assigned if (product := self._accumulated(value)) is not None
        }
        self.absorbed = {
            part for value, step in self.accumulated.items() for part in (value.inputs[1], step.value)
        }
        needed = [value for value in lowered.values if value in self.users]
        self.repeated = frozenset(
            v for v in needed if v.operation in CHEAP and not self.is_needed_in_memory(v)
        )
        numbers = self._numbers(needed)
        self.updates -= numbers.keys()
        for value in (*numbers, *(value for value in needed if value not in numbers)):
            self.place(value)
        if checked and not self.barrier:
            self.steps.append(Check(checked))
        self.stored = self._stored()

    def place(self, value: LoweredValue) -> None:
        """Give a value its place: in a loop that has its operands, or a step of its own."""
        if value.operation in GIVEN | VIEWS or value in self.absorbed or value in self.repeated:
            return
        if value in self.updates and not self.barrier and self.checked:
            self.steps.append(Check(self.checked))
            self.barrier = len(self.steps)
        if value in self.accumulated:
            self.append(value, self.accumulated[value])
        elif value.operation == "product":
            self.append(value, Product(value))
        elif not self.join(value):
            fit = next(iter(fits(value)), None)
            if fit is None:
                assert value.line is not None
                raise UnsupportedLineError(
                    value.line, f"{value.operation} over axes that are no rows or columns is not compiled"
                )
            loop = FusedLoop(fit.rows, fit.columns, self.repeated)
            loop.add(value, fit)
            self.append(value, loop)

    def _numbers(self, needed: list[LoweredValue]) -> dict[LoweredValue, None]:
        """Return the numbers that follow from the step and the sizes alone: they come first."""
        numbers: dict[LoweredValue, None] = {}
        for value in needed:
            computed = value.shape == () and not value.target and value.operation not in GIVEN | VIEWS
            if computed and all(v in numbers or v.operation in NUMBERS for v in value.inputs):
                numbers[value] = None
        return numbers

    def is_needed_in_memory(self, value: LoweredValue) -> bool:
        """Whether an array filled with one number is more than an operand of loops."""
        return value in self.wanted or any(
            user.operation in ("product", "transpose") for user in self.users[value]
        )

    def append(self, value: LoweredValue, step: Step) -> None:
        self.made[value] = len(self.steps)
        self.steps.append(step)

    def join(self, value: LoweredValue) -> bool:
        """Put a value into a loop that computes or reads one of its operands, if one can take it."""
        operands = [operand.source for operand in value.inputs]
        first = max((self.made[v] for v in self._needed(operands) if v in self.made), default=0)
        if value in self.updates:
            first = max(first, self.barrier)
        if value.target:
            first = max(first, *self._readers(value))
        related = {operand for operand in operands if operand.shape != ()}
        for number in range(first, len(self.steps)):
            loop = self.steps[number]
            if not isinstance(loop, FusedLoop) or not related & {*loop.levels, *loop.reads}:
                continue  # what has nothing in common stays apart, so that every network has the same few loops
            fit = loop.fit(value)
            if fit is not None:
                loop.add(value, fit)
                self.made[value] = number
                return True
        return False

    def _needed(self, operands: list[LoweredValue]) -> Iterator[LoweredValue]:
        """Yield what has to be there for these operands, through those that a loop computes itself."""
        for operand in operands:
            yield operand
            if operand in self.repeated:
                yield from self._needed([inner.source for inner in operand.inputs])

    def _readers(self, value: LoweredValue) -> Iterator[int]:
        """Yield the steps that read what a value overwrites."""
        yield 0
        old = value.inputs[0].base
        yield from (number for number, step in enumerate(self.steps) if old in step.reads)

    def _accumulated(self, value: LoweredValue) -> Product | None:
        """Return the product that can be added into a parameter in place, so that it is never stored, if it is one.

        ``W -= learning_rate * (x.T @ dz)`` is one product with a scale, added to W.
        """
        if value.operation not in ("add", "subtract"):
            return None
        factor, scale = self._scaled_product(value, value.inputs[1])
        if factor.operation != "product" or factor.shape != value.shape:
            return None
        used = [operand.matrix[0] for operand in factor.inputs]
        used += [scale] if scale is not None else []
        # the product is done late, where it is added: what it reads must not change before
        if any(operand.operation == "load" or operand.target for operand in used):
            return None
        return Product(factor, value, scale, -1.0 if value.operation == "subtract" else 1.0)

    def _scaled_product(
        self, value: LoweredValue, change: LoweredValue
    ) -> tuple[LoweredValue, LoweredValue | None]:
        """Return the only thing that is added to a value, and the Python number it is multiplied by, if any."""
        if change.operation == "multiply" and self._only_user(change, value):
            for scale, factor in (change.inputs, change.inputs[::-1]):
                if scale.shape == () and scale.type == "weak" and scale.operation not in VIEWS:
                    return (factor, scale) if self._only_user(factor, change) else (change, None)
        return (change, None) if self._only_user(change, value) else (value, None)

    def _only_user(self, value: LoweredValue, user: LoweredValue) -> bool:
        return self.users[value] == {user} and value not in self.wanted

    def _stored(self) -> set[LoweredValue]:
        stored = {value for value in self.wanted if value.operation not in GIVEN}
        for step in self.steps:
            stored |= {value for value in step.reads if value in self.made}
            if isinstance(step, Product) and step.target is None:
                stored.add(step.value)
        return stored

    @cached_property
    def last_use(self) -> dict[LoweredValue, int]:
        """The last step that reads each stored value; the number of steps for what is asked for at the end."""
        last = {value: number for number, step in enumerate(self.steps) for value in step.reads}
        return last | {value: len(self.steps) for value in (*self.wanted, *self.checked)}

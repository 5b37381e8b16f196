"""The steps of a program: products of matrices, and loops over rows and columns that compute several values together.

A value joins the first loop that computes or reads one of its operands, has the same rows and columns
(`loop_fits`), and has nothing that it needs still incomplete: a sum over columns is complete at the end of its row, a
sum over rows only at the end of the loop. Else it begins a loop.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias

from handgrad.engines.compiled.blas import library_is_chosen
from handgrad.engines.compiled.fused_loop import SPECIAL, FusedLoop, possible_fits
from handgrad.engines.compiled.placement import Homes, homes_of
from handgrad.engines.compiled.tiled_products import is_of_sequences
from handgrad.engines.compiled.triangles import triangular
from handgrad.engines.compiled.window_steps import WindowStep, WindowSteps
from handgrad.program.lowered import (
    GIVEN,
    REDUCTIONS,
    VIEWS,
    Lowered,
    LoweredValue,
    TimeLoop,
    UnsupportedLineError,
    users_of,
)

CHEAP = frozenset({"broadcast", "is_class"})
"""Operations that each loop does again where it needs their result, unless a product needs it in memory."""

NUMBERS = frozenset({"scalar", "size", "constant"})


@dataclass(eq=False)
class Product:
    """A product of matrices, or of stacks; when it has a target, ``target += sign · scale · product`` in place."""

    value: LoweredValue
    target: LoweredValue | None = None
    scale: LoweredValue | None = None
    sign: float = 1.0

    @property
    def is_of_two_matrices(self) -> bool:
        """Whether it is one product of matrices as they are in memory, transposed or not."""
        left, right = self.value.inputs
        return is_matrix(left) and is_matrix(right) and len(right.shape) <= 2

    @property
    def reads(self) -> Iterator[LoweredValue]:
        """What it takes from memory."""
        yield from (operand.base for operand in self.value.inputs)
        if self.target is not None:
            yield self.target.inputs[0]
        if self.scale is not None:
            yield self.scale


def is_matrix(value: LoweredValue) -> bool:
    """Whether all elements of a value's base are a matrix, its rows one after the other, or its columns."""
    if value.operation == "transpose":
        return len(value.shape) == 2 and value.inputs[0].is_contiguous
    return value.is_contiguous


@dataclass(eq=False)
class Check:
    """The place where a loss that is not finite stops the step, before a parameter, state or slot changes."""

    reads: tuple[LoweredValue, ...] = ()


Step: TypeAlias = FusedLoop | Product | WindowStep | Check


class StepSchedule:
    """The steps, in order, that compute what is wanted of a program.

    ``made`` is the number of the step that computes a value, ``begun`` of the first that writes into its memory; ``stored``
    are the values that are in memory, ``homes`` where those of them are written that have none of their own. Of ``sparse``
    inputs no batch is: products read them where they are.
    """

    def __init__(
        self,
        lowered: Lowered,
        wanted: tuple[LoweredValue, ...],
        checked: tuple[LoweredValue, ...],
        sparse: Collection[str] = (),
    ) -> None:
        self.steps: list[Step] = []
        self.made: dict[LoweredValue, int] = {}
        self.touching: dict[LoweredValue, set[int]] = {}  # the steps that read or compute a value
        self.again: dict[str, int] = {}  # the first step that computes something of a block again
        self.barrier = 0  # the number of the first step that may change a parameter, state or slot
        self.checked, self.updates = checked, lowered.updates
        self.wanted = tuple(value.base for value in wanted)
        self.users = users_of((*wanted, *lowered.assigned), lowered.loops)
        self.loop_of = {value: loop for loop in lowered.loops for value in loop.values}
        self.spans: dict[TimeLoop, range] = {}  # the steps of each loop over time
        # a product that is done late holds what it reads, which computing again is there to release
        saves_memory = any(value.line is not None and value.line.again for value in lowered.values)
        self.accumulated = {
            value: product
            for value in (() if saves_memory else lowered.assigned)
            if (product := self._accumulated(value)) is not None
        }
        self.absorbed = {
            part for value, step in self.accumulated.items() for part in (value.inputs[1], step.value)
        }
        needed = [value for value in lowered.values if value in self.users]
        windows = WindowSteps(self.users, needed, self.wanted, self._is_elementwise)
        self.window_steps = windows.steps
        self.absorbed |= windows.absorbed
        in_memory = {*self.wanted, *windows.reads()} | {v for v in needed if self._is_read_in_memory(v)}
        self.homes: Homes
        self.homes, self.copied = homes_of(
            needed, self.users, {*self.wanted, *self.absorbed, *self.window_steps}
        )
        self.repeated = frozenset(v for v in needed if v.operation in CHEAP and v not in in_memory)
        apart = {*self.wanted, *self.absorbed, *self.window_steps, *self.loop_of, *self.repeated}
        self.triangles = triangular(needed, self.users, apart)
        numbers: dict[
            LoweredValue, None
        ] = {}  # those that follow from the step and the sizes alone come first
        for value in needed:
            computed = value.shape == () and not value.target and value.operation not in GIVEN | VIEWS
            if computed and all(v in numbers or v.operation in NUMBERS for v in value.inputs):
                numbers[value] = None
        self.updates -= numbers.keys()
        for value in reversed(needed):  # what only updates need is computed where they are, and never stored
            is_whole = self._is_elementwise(value) and not value.size.rows and value not in self.loop_of
            if is_whole and self.users[value] <= self.updates:
                self.updates |= {value}
        self.absorbed |= {v for v in needed if v.operation == "take" and v.inputs[0].attribute in sparse}
        late = [value for value in needed if value in self.updates]
        for value in (*numbers, *(v for v in needed if v not in numbers and v not in self.updates), *late):
            self.place(value)
        self._check_order(lowered.loops)
        if checked and not self.barrier:
            self.steps.append(Check(checked))
        self.stored = {value for value in self.wanted if value.operation not in GIVEN}
        self.stored |= {value for step in self.steps for value in step.reads if value in self.made}
        self.stored |= {step.value for step in self.steps if isinstance(step, Product) and not step.target}
        self.stored |= self.window_steps.keys()
        self.stored |= self.homes.keys()
        self.stored = set(map(whole_of, self.stored)) | {v for v in needed if v.operation == "memory"}
        self.begun = dict(self.made)
        for value, home in self.homes.items():
            number = self.made[value]
            if home.base.operation == "memory":  # what one time leaves for another
                number = self.span_of(number).start
            self.begun[home.base] = min(self.begun.get(home.base, number), number)
            self.made.setdefault(home.base, number)

    def place(self, value: LoweredValue) -> None:
        """Add a value to a loop that has its operands, or as a step of its own."""
        if value.operation in GIVEN | VIEWS or value in self.absorbed or value in self.repeated:
            return
        if value in self.loop_of:
            start = self.spans.get(self.loop_of[value], range(len(self.steps), 0)).start
            self._place(value)
            self.spans[self.loop_of[value]] = range(start, len(self.steps))
        else:
            self._place(value)

    def _place(self, value: LoweredValue) -> None:
        if value in self.updates and not self.barrier and self.checked:
            self.steps.append(Check(self.checked))
            self.barrier = len(self.steps)
        if value in self.accumulated:
            self.append(value, self.accumulated[value])
        elif value in self.window_steps:
            self.append(value, self.window_steps[value])
        elif value.operation == "product":
            self.append(value, Product(value))
        elif value.operation == "filled":
            loops = {self.loop_of.get(part) for part in value.inputs} - {None, self.loop_of.get(value)}
            made = [self.made[part] for part in value.inputs if part in self.made]
            ends = [self.spans[loop].stop - 1 for loop in loops if loop is not None]
            if made:
                self.made[value] = max(made + ends)
        elif value.operation == "concatenate" or value in self.copied:  # its parts are written into it
            parts = value.inputs if value.operation == "concatenate" else [self.copied[value]]
            self.made[value] = max(self.made[part] for part in parts)
        elif not self.join(value):
            fit = next(possible_fits(value, self.homes), None)
            if fit is None:
                assert value.line is not None
                raise UnsupportedLineError(
                    value.line, f"{value.operation} over axes that are no rows or columns is not compiled"
                )
            loop = FusedLoop(fit.rows, fit.columns, self.repeated, self.homes, self.triangles)
            loop.add(value, fit)
            self.append(value, loop)

    def append(self, value: LoweredValue, step: Step) -> None:
        self.made[value] = len(self.steps)
        self.steps.append(step)
        self.touch(self.made[value], {value, *step.reads})

    def touch(self, number: int, values: Iterable[LoweredValue]) -> None:
        for value in values:
            self.touching.setdefault(value, set()).add(number)

    def join(self, value: LoweredValue) -> bool:
        """Put a value into a loop that computes or reads one of its operands, if one can take it."""
        operands = [operand.source for operand in value.inputs]
        first = max((self._ready(v) for v in self._needed(operands) if v in self.made), default=0)
        if value in self.updates:
            first = max(first, self.barrier)
        if value.line is not None and value.line.again:  # not where forward has its operands
            first = max(first, self.again.setdefault(value.line.again, len(self.steps)))
        if value.target:  # after all that reads what it overwrites
            first = max(first, *self.touching.get(value.inputs[0].base, ()), 0)
        # what has nothing in common stays apart, so that every network has the same few loops
        related = (self.touching.get(operand, ()) for operand in operands if operand.shape != ())
        span = self.spans.get(self.loop_of[value], range(0)) if value in self.loop_of else None
        for number in sorted(set().union(*related)):
            loop = self.steps[number]
            if span is not None and number not in span:
                continue
            if span is None and any(number in each for each in self.spans.values()):
                continue
            if number < first or not isinstance(loop, FusedLoop):
                continue
            fit = loop.fit(value)
            if fit is not None:
                self.touch(number, loop.add(value, fit))
                self.made[value] = number
                return True
        return False

    def _check_order(self, loops: Iterable[TimeLoop]) -> None:
        """Refuse steps of a loop over time that would read what another has overwritten already."""
        for view, copy, is_same in (each for loop in loops for each in loop.before):
            if view not in self.users or copy not in self.users:
                continue
            late = self.made[copy] + is_same
            if any(self.made[reader] >= late for reader in self._readers(view)):
                assert copy.line is not None
                raise UnsupportedLineError(
                    copy.line, "it overwrites what another step of its time still reads"
                )

    def _readers(self, view: LoweredValue) -> Iterator[LoweredValue]:
        for user in self.users[view]:
            if user.operation in VIEWS:
                yield from self._readers(user)
            elif user in self.made:
                yield user

    def _ready(self, value: LoweredValue) -> int:
        """Return the first step that can read a value: the loop that computes it, if it is whole there."""
        step = self.steps[self.made[value]]
        return self.made[value] + (not isinstance(step, FusedLoop) or value not in step.levels)

    def _is_read_in_memory(self, value: LoweredValue) -> bool:
        """Whether something other than a loop reads a value, or a loop in another order."""
        return any(
            user.operation in ("product", "transpose", "slice")
            or (user.operation == "reshape" and self._is_read_in_memory(user))
            for user in self.users[value]
        )

    def _is_elementwise(self, value: LoweredValue) -> bool:
        fixed = GIVEN | VIEWS | REDUCTIONS | SPECIAL | {"product"}
        return value.operation not in fixed and value.shape != () and value not in self.wanted

    def _needed(self, operands: list[LoweredValue]) -> Iterator[LoweredValue]:
        """Yield these operands, and those of the ones that a loop computes itself."""
        for operand in operands:
            yield operand
            if operand in self.repeated:
                yield from self._needed([inner.source for inner in operand.inputs])

    def _accumulated(self, value: LoweredValue) -> Product | None:
        """Return ``W -= scale * (x.T @ dz)`` as one product that is added to W and never stored, if a value is one."""
        if value.operation not in ("add", "subtract"):
            return None
        change = factor = value.inputs[1]
        scale = None
        if change.operation == "multiply":
            for number, other in (change.inputs, change.inputs[::-1]):
                if number.shape == () and number.type == "weak" and number.operation not in VIEWS:
                    scale, factor = number, other
                    break
        product = factor.base
        if product.operation != "product" or not factor.is_contiguous or factor.shape != value.shape:
            return None
        way = dict.fromkeys((product, factor, change, value))
        if not all(self._only_user(part, user) for part, user in pairwise(way)):
            return None
        step = Product(product, value, scale, -1.0 if value.operation == "subtract" else 1.0)
        # the product is done late, where it is added: what it reads must not change before
        used = [operand.base for operand in product.inputs] + ([scale] if scale else [])
        if any(operand.operation == "load" or operand.target for operand in used):
            return None
        of_windows = any(operand.base.operation == "windows" for operand in product.inputs)
        in_tiles = is_of_sequences(product) and not library_is_chosen()
        return step if step.is_of_two_matrices and not of_windows and not in_tiles else None

    def _only_user(self, value: LoweredValue, user: LoweredValue) -> bool:
        return self.users[value] == {user} and value not in self.wanted

    @cached_property
    def last_use(self) -> dict[LoweredValue, int]:
        """The last step that reads each stored value; the number of steps for what is asked for at the end."""
        last: dict[LoweredValue, int] = {}
        for number, step in enumerate(self.steps):
            span = self.span_of(number)
            for value in map(whole_of, step.reads):
                of_one_time = value.operation != "memory" and self.begun.get(value, -1) in span
                last[value] = max(last.get(value, 0), number if of_one_time else span.stop - 1)
        return last | {whole_of(value): len(self.steps) for value in (*self.wanted, *self.checked)}

    def span_of(self, number: int) -> range:
        """Return the steps that are repeated with a step: those of its loop over time, or itself."""
        spans = (span for span in self.spans.values() if number in span)
        return next(spans, range(number, number + 1))


def whole_of(value: LoweredValue) -> LoweredValue:
    """Return the memory that a value is a version of, or itself."""
    memory: LoweredValue = value.attribute if value.operation == "filled" else value
    return memory

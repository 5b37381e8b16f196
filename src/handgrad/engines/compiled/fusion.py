"""The steps of a program: products of matrices, and loops over rows and columns that compute several values together.

Each value of a loop is at one of four levels: one for every place (``full``), one for every row, one for every column,
or a single one (``scalar``). A value joins the first loop that computes or reads one of its operands, has the same rows
and columns, and has nothing that it needs still incomplete: a sum over columns is complete at the end of its row, a
sum over rows only at the end of the loop. Else it begins a loop.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

from handgrad.program.lowered import (
    GIVEN,
    ONE,
    REDUCTIONS,
    VIEWS,
    Extent,
    Extents,
    Lowered,
    LoweredValue,
    UnsupportedLineError,
    product,
    users_of,
)

Level: TypeAlias = Literal["full", "row", "column", "scalar"]
Direction: TypeAlias = Literal["rows", "columns", "not"]

SPECIAL = frozenset({"take", "add_rows_at", "uniform", "is_class"})
"""Operations whose place in a loop is fixed."""

CHEAP = frozenset({"broadcast", "is_class"})
"""Operations that each loop does again where it needs their result, unless a product needs it in memory."""

NUMBERS = frozenset({"scalar", "size", "constant"})


@dataclass(frozen=True)
class Fit:
    """One way to compute a value in a loop: the loop's size, and the level of the result and of each operand."""

    rows: Extent
    columns: Extent
    level: Level
    operands: tuple[Level, ...]


@dataclass(eq=False)
class FusedLoop:
    """Values computed together, row by row, in order, each at its level; ``repeated`` are the cheap ones."""

    rows: Extent
    columns: Extent
    repeated: frozenset[LoweredValue] = frozenset()
    values: list[LoweredValue] = field(default_factory=list)
    levels: dict[LoweredValue, Level] = field(default_factory=dict)
    fits: dict[LoweredValue, Fit] = field(default_factory=dict)

    @property
    def reads(self) -> Iterator[LoweredValue]:
        """What it takes from memory."""
        for value in self.values:
            yield from (operand.source for operand in value.inputs if operand.source not in self.levels)

    def add(self, value: LoweredValue, fit: Fit) -> None:
        """Compute a value here, after whatever cheap operands it has."""
        for operand in value.inputs:
            if operand.source in self.repeated and operand.source not in self.levels:
                self.add(operand.source, next(self.own_fits(operand.source)))
        self.values.append(value)
        self.levels[value], self.fits[value] = fit.level, fit

    def fit(self, value: LoweredValue) -> Fit | None:
        """Return how a value would be computed in this loop, or None when it cannot be."""
        own = (fit for fit in self.own_fits(value) if self.has_ready(value, fit))
        return next(own, None) or self.fit_in_row(value)

    def own_fits(self, value: LoweredValue) -> Iterator[Fit]:
        return (fit for fit in fits(value) if (fit.rows, fit.columns) == (self.rows, self.columns))

    def fit_in_row(self, value: LoweredValue) -> Fit | None:
        """Return how a value of one number a row would be computed at the end of each row."""
        is_reduction = value.operation in REDUCTIONS
        sizes = [operand.source.size for operand in value.inputs]
        if (
            value.operation in SPECIAL
            or self.rows == ONE
            or not self.rows.rows
            or product(value.inputs[0].shape if is_reduction else value.shape) != self.rows
            or not any(self.levels.get(v.source) == "row" for v in value.inputs)
            or (is_reduction and product(value.shape) != ONE)
            or any(size not in (self.rows, ONE) for size in sizes)
        ):
            return None
        operands: tuple[Level, ...] = tuple("row" if size == self.rows else "scalar" for size in sizes)
        fit = Fit(self.rows, self.columns, "scalar" if is_reduction else "row", operands)
        return fit if self.has_ready(value, fit) else None

    def has_ready(self, value: LoweredValue, fit: Fit) -> bool:
        """Whether each operand that this loop computes is complete where the value needs it, and as it needs it."""
        for operand, level in zip(value.inputs, fit.operands, strict=True):
            made = operand.source
            if made in self.repeated and level != "full":
                return False
            if made in self.levels and not (self.levels[made] == level and level in ("full", "row")):
                return False
        return not (value.target and any(self.is_row_reduction(v) for v in self.values))

    def is_row_reduction(self, value: LoweredValue) -> bool:
        return value.operation in REDUCTIONS and self.levels[value] == "row"

    def sums_columns(self, value: LoweredValue) -> bool:
        """Whether a reduction goes over the columns of each row."""
        return "full" in self.fits[value].operands

    @property
    def passes(self) -> dict[LoweredValue, int]:
        """In which pass over the columns of a row each value is computed; a row's own values come before it."""
        passes: dict[LoweredValue, int] = {}
        for value in self.values:
            made = [operand.source for operand in value.inputs if operand.source in passes]
            before = (passes[v] + (self.is_row_reduction(v) and self.sums_columns(v)) for v in made)
            passes[value] = max(before, default=0)
        return passes

    @property
    def carried(self) -> set[LoweredValue]:
        """What one pass computes and a later one reads: it goes through memory."""
        passes = self.passes
        return {
            operand.source
            for value in self.values
            for operand in value.inputs
            if operand.source not in self.repeated
            and self.levels.get(operand.source) == "full"
            and passes[operand.source] < passes[value]
        }

    @property
    def has_only_numbers(self) -> bool:
        """Whether nothing in it has rows or columns."""
        return all(level == "scalar" and v.operation not in REDUCTIONS for v, level in self.levels.items())

    @property
    def direction(self) -> Direction:
        """Along what it may be divided without changing the order of any sum."""
        levels = {self.levels[v] for v in self.values if v.operation in {*REDUCTIONS, "add_rows_at"}}
        of_one_row = self.rows == ONE and "row" in levels
        if "scalar" in levels or {"row", "column"} <= levels or of_one_row or self.has_only_numbers:
            return "not"
        return "columns" if "column" in levels or self.rows == ONE else "rows"


def fits(value: LoweredValue) -> Iterator[Fit]:
    """Yield the loops a value can be computed in, the most natural one first."""
    shape = value.inputs[0].shape if value.operation in {*REDUCTIONS, "add_rows_at"} else value.shape
    splits = _splits(shape)
    level: Level | None = "full" if shape else "scalar"
    fixed: tuple[Level, ...] = ()
    match value.operation:
        case "add_rows_at":
            splits, level, fixed = [len(shape) - 1], "column", ("full", "row")
        case "take":
            splits, fixed = [len(value.inputs[1].shape)], ("column", "row")
        case "is_class":
            splits, fixed = [len(shape) - 1], ("row",)
        case "uniform":
            fixed = ("scalar",) * 3
    for split in splits:
        levels: tuple[Level | None, ...] = fixed or tuple(
            _level(operand, shape, split) for operand in value.inputs
        )
        if value.operation in REDUCTIONS:
            level = _reduced(value.attribute, len(shape), split)
        operands = tuple(level for level in levels if level is not None)
        if level is not None and len(operands) == len(levels):
            yield Fit(product(shape[:split]), product(shape[split:]), level, operands)


def _splits(shape: Extents) -> list[int]:
    """Return where the axes may be divided into rows and columns, the natural place first."""
    first = max(len(shape) - 1, 0) if product(shape).rows and len(shape) > 1 else 0
    return [first, *(split for split in range(len(shape), -1, -1) if split != first)]


def _level(operand: LoweredValue, whole: Extents, split: int) -> Level | None:
    """Return at which level an operand is in a loop over ``whole``, or None."""
    shape = operand.source.shape if operand.source is not operand.base else operand.shape
    if shape == whole and whole:
        return "full"
    if all(size == ONE for size in shape):
        return "scalar"
    aligned = (ONE,) * (len(whole) - len(shape)) + shape
    rows, columns = aligned[:split], aligned[split:]
    if columns == whole[split:] and all(size == ONE for size in rows):
        return "column"
    if rows == whole[:split] and all(size == ONE for size in columns):
        return "row"
    return None


def _reduced(along: tuple[int, ...], axes: int, split: int) -> Level | None:
    """Return at which level a reduction along these axes leaves its result, or None."""
    levels: dict[tuple[int, ...], Level] = {
        tuple(range(split)): "column", tuple(range(split, axes)): "row", tuple(range(axes)): "scalar",
    }  # fmt: skip
    return levels.get(along)


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

    ``made`` is the number of the step that computes a value; ``stored`` are the values that are in memory. Of ``sparse``
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
        self.barrier = 0  # the number of the first step that may change a parameter, state or slot
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
        in_memory = {*self.wanted} | {  # what a product reads
            v for v in needed if any(user.operation in ("product", "transpose") for user in self.users[v])
        }
        self.repeated = frozenset(v for v in needed if v.operation in CHEAP and v not in in_memory)
        numbers: dict[
            LoweredValue, None
        ] = {}  # those that follow from the step and the sizes alone come first
        for value in needed:
            computed = value.shape == () and not value.target and value.operation not in GIVEN | VIEWS
            if computed and all(v in numbers or v.operation in NUMBERS for v in value.inputs):
                numbers[value] = None
        self.updates -= numbers.keys()
        for value in reversed(needed):  # what only updates need is computed where they are, and never stored
            if self._is_elementwise(value) and not value.size.rows and self.users[value] <= self.updates:
                self.updates |= {value}
        self.absorbed |= {v for v in needed if v.operation == "take" and v.inputs[0].attribute in sparse}
        late = [value for value in needed if value in self.updates]
        for value in (*numbers, *(v for v in needed if v not in numbers and v not in self.updates), *late):
            self.place(value)
        if checked and not self.barrier:
            self.steps.append(Check(checked))
        self.stored = {value for value in self.wanted if value.operation not in GIVEN}
        self.stored |= {value for step in self.steps for value in step.reads if value in self.made}
        self.stored |= {step.value for step in self.steps if isinstance(step, Product) and not step.target}

    def place(self, value: LoweredValue) -> None:
        """Add a value to a loop that has its operands, or as a step of its own."""
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
            fit = next(fits(value), None)
            if fit is None:
                assert value.line is not None
                raise UnsupportedLineError(
                    value.line, f"{value.operation} over axes that are no rows or columns is not compiled"
                )
            loop = FusedLoop(fit.rows, fit.columns, self.repeated)
            loop.add(value, fit)
            self.append(value, loop)

    def append(self, value: LoweredValue, step: Step) -> None:
        self.made[value] = len(self.steps)
        self.steps.append(step)

    def join(self, value: LoweredValue) -> bool:
        """Put a value into a loop that computes or reads one of its operands, if one can take it."""
        operands = [operand.source for operand in value.inputs]
        first = max((self.made[v] for v in self._needed(operands) if v in self.made), default=0)
        if value in self.updates:
            first = max(first, self.barrier)
        if value.target:  # after all that reads what it overwrites
            old = value.inputs[0].base
            first = max(first, *(number for number, step in enumerate(self.steps) if old in step.reads), 0)
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
        if factor.operation != "product" or factor.shape != value.shape:
            return None
        if not self._only_user(change, value) or (scale and not self._only_user(factor, change)):
            return None
        used = [operand.matrix[0] for operand in factor.inputs] + ([scale] if scale else [])
        # the product is done late, where it is added: what it reads must not change before
        if any(operand.operation == "load" or operand.target for operand in used):
            return None
        return Product(factor, value, scale, -1.0 if value.operation == "subtract" else 1.0)

    def _only_user(self, value: LoweredValue, user: LoweredValue) -> bool:
        return self.users[value] == {user} and value not in self.wanted

    @cached_property
    def last_use(self) -> dict[LoweredValue, int]:
        """The last step that reads each stored value; the number of steps for what is asked for at the end."""
        last = {value: number for number, step in enumerate(self.steps) for value in step.reads}
        return last | {value: len(self.steps) for value in (*self.wanted, *self.checked)}

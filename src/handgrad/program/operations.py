"""The operations that lines are lowered to: what each takes, and the shape and type of its result."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.program.lowered import ONE, Extent, Extents, LoweredValue, Type, broadcast, product, reshaped
from handgrad.program.program import ProgramLine

COMPARISONS = ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")

TRUTH_VALUES = frozenset({*COMPARISONS, "logical_and", "logical_or", "logical_not"})
"""Operations that give truth values."""

MAX_POWER = 8
"""Powers up to this are written out as products; beyond, one pow is as fast."""


class Operations:
    """Makes the values of one program: each operation on the same operands once."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype
        self.line: ProgramLine | None = None
        self.times = 1  # of the loop at hand
        self.known: dict[tuple[Any, ...], LoweredValue] = {}
        self.values: list[LoweredValue] = []

    def value(
        self,
        operation: str,
        inputs: Iterable[LoweredValue],
        shape: Extents,
        kind: Type,
        attribute: Any = None,
    ) -> LoweredValue:
        """Return the value of an operation: the same one every time."""
        operands = tuple(inputs)
        key = (operation, operands, shape, kind, _exact(attribute))
        if key not in self.known:
            self.known[key] = LoweredValue(operation, operands, shape, kind, attribute, self.line)
            self.values.append(self.known[key])
        return self.known[key]

    def as_value(self, thing: Any) -> LoweredValue:
        """Return what an expression gave as a value: numbers, sizes and arrays of numbers are values too."""
        if isinstance(thing, LoweredValue):
            return thing
        if isinstance(thing, Extent) and thing.times:
            raise NotImplementedError("the time of a loop as a number")
        if isinstance(thing, Extent):
            return self.value("size", (), (), "weak", thing) if thing.rows else self.as_value(thing.factor)
        if isinstance(thing, int | float):
            return self.value("constant", (), (), "weak", float(thing))
        if isinstance(thing, np.ndarray):
            return self.table(thing)
        raise NotImplementedError(f"{thing!r} is no array or number")

    def table(self, numbers: NDArray[Any]) -> LoweredValue:
        """Return an array that follows from options and sizes alone, as a value."""
        types: dict[str, Type] = {self.dtype: "float", "int64": "int", "bool": "bool"}
        if numbers.dtype.name not in types:
            raise NotImplementedError(f"an array of {numbers.dtype}")
        shape = tuple(map(Extent, numbers.shape))
        return self.value("table", (), shape, types[numbers.dtype.name], np.ascontiguousarray(numbers))

    # elementwise

    def elementwise(self, operation: str, *operands: Any) -> LoweredValue:
        values = tuple(map(self.as_value, operands))
        if operation == "power":
            return self.power(*values)
        shape = broadcast(*(value.shape for value in values))
        kind: Type = "bool" if operation in TRUTH_VALUES else _promote(operation, values)
        if operation == "where" and values[0].type != "bool":
            raise NotImplementedError("a condition that is no comparison")
        types = {value.type for value in values}
        if operation.startswith("logical") and types != {"bool"}:
            raise NotImplementedError("logic of other things than comparisons")
        if operation == "floor_divide" and types != {"weak"}:
            raise NotImplementedError("// of arrays")
        if "int" in types and any(v.operation == "constant" and v.attribute % 1 for v in values):
            raise NotImplementedError("whole numbers beside a fraction")
        return self.value(operation, values, shape, kind)

    def power(self, base: LoweredValue, exponent: LoweredValue) -> LoweredValue:
        """Write powers by small whole numbers out as products."""
        number = exponent.attribute if exponent.operation == "constant" else None
        if number == 0.5:
            return self.elementwise("sqrt", base)
        if number is not None and number == int(number) and 1 <= abs(number) <= MAX_POWER:
            result = base
            for _ in range(int(abs(number)) - 1):
                result = self.elementwise("multiply", result, base)
            return result if number > 0 else self.elementwise("divide", 1, result)
        shape = broadcast(base.shape, exponent.shape)
        return self.value("power", (base, exponent), shape, _promote("power", (base, exponent)))

    def broadcast(self, value: LoweredValue, shape: Extents, kind: Type) -> LoweredValue:
        if value.shape != ():
            raise NotImplementedError("an array filled with more than one number")
        if kind != "float":
            raise NotImplementedError("a filled array of other numbers than the program's")
        return self.value("broadcast", (value,), shape, kind)

    # reductions, products, rows of a table

    def reduce(
        self, kind: str, array: LoweredValue, axis: Any = None, keepdims: bool = False
    ) -> LoweredValue:
        """Sum, average, or find the largest or smallest along axes."""
        axes = range(len(array.shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        along = tuple(sorted(a % len(array.shape) for a in axes)) if array.shape else ()
        shape = tuple(
            ONE if place in along else size
            for place, size in enumerate(array.shape)
            if keepdims or place not in along
        )
        if not along:
            return array
        if array.type == "bool":
            raise NotImplementedError("a reduction of truth values")
        if array.type in ("int", "single"):
            raise NotImplementedError("a reduction of other numbers than the program's")
        if array.type == "weak":
            array = self.value("convert", (array,), array.shape, "float")
        count = product(tuple(array.shape[a] for a in along))
        if array.base.operation == "broadcast":  # one number everywhere
            (number,) = array.base.inputs
            if kind == "sum":
                number = self.elementwise("multiply", number, count)
            return self.broadcast(number, shape, array.type) if shape else number
        if kind == "mean":
            return self.elementwise("divide", self.reduce("sum", array, along, keepdims), count)
        last = tuple(a for a in along if {*range(a, len(array.shape))} <= {*along})
        if last and last != along and along != tuple(range(len(along))):
            # a row's own sum first, then those of several rows
            rest = self.reduce(kind, array, last)
            return self.reshape(self.reduce(kind, rest, along[: -len(last)]), shape)
        return self.value(kind, (array,), shape, array.type, along)

    def product(self, left: LoweredValue, right: LoweredValue) -> LoweredValue:
        """Multiply matrices or stacks of them; a left operand of more axes is a matrix of rows."""
        if not right.shape or len(left.shape) < 2:
            raise NotImplementedError(f"a product of {len(left.shape)} and {len(right.shape)} axes")
        inner = right.shape[-2] if len(right.shape) > 1 else right.shape[0]
        if left.shape[-1] != inner:
            raise NotImplementedError(f"a product over {left.shape[-1]} and {inner}")
        if left.type != "float" or right.type != "float":
            raise NotImplementedError("a product of other numbers than the program's")
        stacks = broadcast(left.shape[:-2], right.shape[:-2])
        shape = (*stacks, left.shape[-2], *(right.shape[-1:] if len(right.shape) > 1 else ()))
        operands = map(self.with_a_contiguous_axis, (left, right))
        return self.value("product", operands, shape, "float")

    def take(self, table: LoweredValue, index: LoweredValue) -> LoweredValue:
        if index.type != "int" or len(table.shape) != 2 or table.operation != "load":
            raise NotImplementedError("indexing other than rows of a parameter by whole numbers")
        return self.value("take", (table, self.contiguous(index)), (*index.shape, table.shape[1]), table.type)

    # the same elements in another shape or order

    def reshape(self, array: LoweredValue, given: tuple[Any, ...]) -> LoweredValue:
        """See the same elements in another shape; one size may be -1."""
        sizes = [size if isinstance(size, Extent) else Extent(size) for size in given]
        total = array.size
        if Extent(-1) in sizes:
            place = sizes.index(Extent(-1))
            sizes[place] = total // product(tuple(size for size in sizes if size != Extent(-1)))
        shape = tuple(sizes)
        if product(shape) != total:
            raise NotImplementedError("a shape of another size")
        if shape == array.shape:
            return array
        if array.base.target:
            raise NotImplementedError("what a line has changed, in another shape")  # it may change again
        if array.operation == "reshape":
            return self.reshape(array.inputs[0], shape)
        if reshaped(array.shape, array.view.strides, shape) is None:
            array = self.copy(array)
        return self.view("reshape", array, shape)

    def transpose(self, array: LoweredValue, axes: tuple[int, ...]) -> LoweredValue:
        """Put the axes into another order."""
        if array.operation == "transpose":
            array, axes = array.inputs[0], tuple(array.attribute[axis] for axis in axes)
        if axes == tuple(range(len(array.shape))):
            return array
        return self.view("transpose", array, tuple(array.shape[axis] for axis in axes), axes)

    def swapped(self, array: LoweredValue, one: int, other: int) -> LoweredValue:
        """Exchange two axes."""
        axes = list(range(len(array.shape)))
        axes[one], axes[other] = axes[other], axes[one]
        return self.transpose(array, tuple(axes))

    def slice(self, array: LoweredValue, axis: int, part: slice) -> LoweredValue:
        """See a part of the elements along an axis."""
        size = array.shape[axis]
        if part == slice(None):
            return array
        if size.rows or part.step not in (None, 1):
            raise NotImplementedError("a slice of the batch's rows, or one with a step")
        start, stop, _ = part.indices(size.factor)
        length = max(stop - start, 0)
        if not length:
            raise NotImplementedError("an empty slice")
        if length == size.factor:
            return array
        shape = (*array.shape[:axis], Extent(length), *array.shape[axis + 1 :])
        return self.view("slice", array, shape, (axis, Extent(start), Extent(stop)))

    def moving(self, array: LoweredValue, axis: int, start: Extent) -> LoweredValue:
        """See one place along an axis that moves with the time of a loop."""
        ends = start.at(1), start.at(1, self.times - 1)
        if array.shape[axis].rows or not all(0 <= end < array.shape[axis].factor for end in ends):
            raise NotImplementedError("an index that is outside of an axis at some time")
        shape = (*array.shape[:axis], ONE, *array.shape[axis + 1 :])
        return self.view("slice", array, shape, (axis, start, start + ONE))

    def view(
        self, operation: str, array: LoweredValue, shape: Extents, attribute: Any = None
    ) -> LoweredValue:
        """Return a view; what is one number everywhere is that in any other shape."""
        if array.operation == "broadcast":
            return self.broadcast(array.inputs[0], shape, array.type)
        return self.value(operation, (array,), shape, array.type, attribute)

    def indexed(self, array: LoweredValue, index: tuple[Any, ...]) -> LoweredValue:
        """Return ``array[index]`` for an index of numbers, slices, ``...`` and ``None``."""
        named = sum(part is not None and part is not ... for part in index)
        if ... not in index:
            index = (*index, ...)
        place = index.index(...)
        rest = [slice(None)] * (len(array.shape) - named)
        shape: list[Extent] = []
        axis = 0
        for part in (*index[:place], *rest, *index[place + 1 :]):
            if part is None:
                shape.append(ONE)
                continue
            if isinstance(part, int):
                array = self.slice(array, axis, slice(part, part + 1 or None))
            elif isinstance(part, Extent):
                array = self.moving(array, axis, part)
            else:
                array = self.slice(array, axis, part)
                shape.append(array.shape[axis])
            axis += 1
        return self.reshape(array, tuple(shape))

    def concatenate(self, parts: list[LoweredValue], axis: int) -> LoweredValue:
        """Put arrays one behind the other along an axis: each is copied to its place in the whole."""
        axis %= len(parts[0].shape)
        sizes = [part.shape[axis] for part in parts]
        whole, starts = sizes[0], [Extent(0)]
        for size in sizes[1:]:
            starts.append(whole)
            whole = whole + size
        if any(part.type != parts[0].type for part in parts):
            raise NotImplementedError("arrays of several types side by side")
        shape = (*parts[0].shape[:axis], whole, *parts[0].shape[axis + 1 :])
        copies = tuple(
            self.value("copy", (part,), part.shape, part.type, (axis, start, tuple(parts)))
            for part, start in zip(parts, starts, strict=True)
        )
        return self.value("concatenate", copies, shape, parts[0].type, axis)

    def copy(self, array: LoweredValue) -> LoweredValue:
        """Return the same elements one after the other."""
        return self.value("copy", (array,), array.shape, array.type)

    def contiguous(self, array: LoweredValue) -> LoweredValue:
        return array if array.is_contiguous else self.copy(array)

    def with_a_contiguous_axis(self, array: LoweredValue) -> LoweredValue:
        """Return a matrix, or a stack of them, as BLAS reads it: of its two axes, one is contiguous."""
        last = zip(array.shape[-2:], array.view.strides[-2:], strict=True)
        return array if any(ONE in pair for pair in last) else self.copy(array)


def _exact(attribute: Any) -> Any:
    """Return what tells attributes apart: 0.0 and -0.0 are two numbers."""
    if isinstance(attribute, np.ndarray):
        return attribute.shape, attribute.tobytes()
    return attribute.hex() if isinstance(attribute, float) else attribute


def _promote(operation: str, values: tuple[LoweredValue, ...]) -> Type:
    """Return the type of an arithmetic result, as NumPy 2 has it."""
    types = {value.type for value in (values[1:] if operation == "where" else values)}
    for kind in ("float", "single", "int"):
        if kind in types:
            if kind == "int" and (operation in ("divide", "exp", "sqrt") or "weak" in types):
                raise NotImplementedError("arithmetic of whole numbers that gives others")
            return kind
    if types == {"bool"} and operation != "where":
        raise NotImplementedError("arithmetic of truth values alone")
    return "bool" if types == {"bool"} else "weak"

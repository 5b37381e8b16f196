"""NumPy's functions, the methods of arrays and the primitives, lowered to operations."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.program.lowered import ONE, REDUCTIONS, Extent, LoweredValue, Type
from handgrad.program.operations import TRUTH_VALUES, Operations

ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "power": operator.pow,
    "floor_divide": operator.floordiv,
}

SAME_NAME = TRUTH_VALUES | {
    "maximum", "minimum", "absolute", "exp", "log", "log1p", "expm1", "tanh", "sqrt", "sign", "sin", "cos", "tan",
    "sinh", "cosh", "arctan", "arcsin", "arccos", "floor", "ceil", "power", "add", "subtract", "multiply", "divide",
    "negative",
}  # fmt: skip
"""NumPy's elementwise functions that are operations of the same name."""

OTHER_NAMES = {"abs": "absolute", "true_divide": "divide", "fabs": "absolute", "amax": "max", "amin": "min"}

TABLES = frozenset({"arange", "tri", "ones", "zeros"})
"""NumPy's functions whose result follows from options and sizes alone."""


class Functions(Operations):
    """Calls by name."""

    def apply(self, name: str, *operands: Any) -> Any:
        """Apply an elementwise operation; what follows from options and sizes alone is computed now, by NumPy."""
        if any(isinstance(operand, Extent) and operand.times for operand in operands):
            return moved(name, *operands)
        known = [fixed(operand) for operand in operands]
        if not any(operand is None for operand in known):
            if any(isinstance(operand, np.ndarray) for operand in known):
                return getattr(np, name)(*known)
            if name in ARITHMETIC:
                return ARITHMETIC[name](*known)
        return self.elementwise(name, *operands)

    def numpy(self, name: str, arguments: list[Any], keywords: Mapping[str, Any]) -> Any:
        name = OTHER_NAMES.get(name, name)
        if name in REDUCTIONS or name == "mean":
            return self.reduce(name, *arguments, **keywords)
        if name == "zeros" and isinstance(arguments[0], tuple) and any(_grows(size) for size in arguments[0]):
            shape = tuple(size if isinstance(size, Extent) else Extent(whole(size)) for size in arguments[0])
            return self.broadcast(self.as_value(0.0), shape, *(arguments[1:] or ["float"]))
        if name in TABLES:
            return self.computed(name, arguments, keywords)
        if name in SAME_NAME and not keywords:
            return self.apply(name, *arguments)
        match name, arguments:
            case "concatenate", [list(parts)] if {*keywords} == {"axis"}:
                return self.concatenate([self.as_value(part) for part in parts], keywords["axis"])
            case _ if keywords:
                pass
            case "where", [_, _, _]:
                return self.elementwise("where", *arguments)
            case "clip", [x, low, high]:
                return self.elementwise("minimum", self.elementwise("maximum", x, low), high)
            case "square", [x]:
                return self.elementwise("multiply", x, x)
            case "reciprocal", [x]:
                return self.elementwise("divide", 1, x)
            case "full_like", [like, number]:
                return self.broadcast(self.as_value(number), like.shape, like.type)
            case (("zeros_like" | "ones_like"), [like]):
                return self.broadcast(self.as_value(float(name == "ones_like")), like.shape, like.type)
            case "expand_dims", [x, axes]:
                return self.expand_dims(x, axes if isinstance(axes, tuple) else (axes,))
            case "shape", [x]:
                return self.as_value(x).shape
            case (("matmul" | "dot"), [left, right]):
                return self.product(self.as_value(left), self.as_value(right))
            case "transpose", [x]:
                return self.transpose(x, tuple(range(len(x.shape)))[::-1])
            case "swapaxes", [x, one, other]:
                return self.swapped(x, one, other)
        raise NotImplementedError(f"np.{name} with these arguments is not compiled")

    def computed(self, name: str, arguments: list[Any], keywords: Mapping[str, Any]) -> NDArray[Any]:
        """Return what NumPy's function gives for sizes and options."""
        if name in ("ones", "zeros") and len(arguments) == 2:
            arguments, keywords = arguments[:1], {"dtype": arguments[1]}
        if "dtype" in keywords:
            keywords = {"dtype": self.dtype_of(keywords["dtype"])}
        given = [tuple(map(whole, a)) if isinstance(a, tuple) else whole(a) for a in arguments]
        found: NDArray[Any] = getattr(np, name)(*given, **keywords)
        return found

    def dtype_of(self, kind: Type) -> str:
        """Return what NumPy calls the numbers of a value."""
        return {"single": "float32", "int": "int64", "bool": "bool"}.get(kind, self.dtype)

    def expand_dims(self, x: LoweredValue, axes: tuple[int, ...]) -> LoweredValue:
        shape = list(x.shape)
        for axis in sorted(axis % (len(x.shape) + len(axes)) for axis in axes):
            shape.insert(axis, ONE)
        return self.reshape(x, tuple(shape))

    def method(
        self, name: str, array: LoweredValue, arguments: list[Any], keywords: Mapping[str, Any]
    ) -> Any:
        if name in REDUCTIONS or name == "mean":
            return self.reduce(name, array, *arguments, **keywords)
        match name, arguments:
            case "reshape", [tuple() as shape]:
                return self.reshape(array, shape)
            case "reshape", _:
                return self.reshape(array, tuple(arguments))
            case "swapaxes", [one, other]:
                return self.swapped(array, one, other)
            case "astype", [kind] if kind == array.type:
                return array
            case "astype", ["float"]:
                return self.value("convert", (array,), array.shape, "float")
        raise NotImplementedError(f".{name} with these arguments is not compiled")

    # handgrad's primitives

    def primitive_rows(self, v: LoweredValue) -> LoweredValue:
        return self.reshape(v, (Extent(-1), v.shape[-1]))

    def primitive_one_hot(self, t: LoweredValue, like: LoweredValue) -> LoweredValue:
        if t.type != "int":
            raise NotImplementedError("classes that are no whole numbers")
        label = self.reshape(self.contiguous(t), (*t.shape, ONE))
        return self.value("is_class", (label,), (*t.shape, like.shape[-1]), like.type)

    def primitive_add_rows_at(self, i: LoweredValue, v: LoweredValue, like: LoweredValue) -> LoweredValue:
        fits = v.shape == (*i.shape, like.shape[-1]) and len(like.shape) == 2 and not like.shape[0].rows
        plain = i.type == "int" and v.type == "float" and v.operation != "broadcast"
        if not (fits and plain):
            raise NotImplementedError("add_rows_at of other things than rows, one for each index")
        operands = map(self.contiguous, (v, i))
        return self.value("add_rows_at", operands, like.shape, "float")

    def primitive_uniform(self, shape: tuple[Any, ...], key: tuple[Any, ...]) -> LoweredValue:
        sizes = tuple(size if isinstance(size, Extent) else Extent(size) for size in shape)
        kind: Type = "float" if self.dtype == "float32" else "single"
        return self.value("uniform", tuple(map(self.as_value, key)), sizes, kind)

    def primitive_normal_cdf(self, v: LoweredValue) -> LoweredValue:
        return self.elementwise("normal_cdf", v)

    def primitive_sigmoid(self, v: LoweredValue) -> LoweredValue:
        e = self.elementwise("exp", self.elementwise("negative", self.elementwise("absolute", v)))
        above = self.elementwise("where", self.elementwise("greater_equal", v, 0), 1, e)
        return self.elementwise("divide", above, self.elementwise("add", 1, e))

    def primitive_join_last(self, v: LoweredValue) -> LoweredValue:
        return self.reshape(v, (*v.shape[:-2], v.shape[-2] * v.shape[-1]))

    def primitive_split_last(self, v: LoweredValue, parts: Any) -> LoweredValue:
        return self.reshape(v, (*v.shape[:-1], whole(parts), Extent(-1)))


def _grows(size: Any) -> bool:
    return isinstance(size, Extent) and size.rows


def fixed(thing: Any) -> Any:
    """Return a number or an array that follows from options and sizes alone, else None."""
    if isinstance(thing, Extent):
        return None if thing.rows or thing.times else thing.factor
    return thing if isinstance(thing, int | float | np.ndarray) else None


def moved(name: str, one: Any, other: Any) -> Extent:
    """Return a time of a loop that is so many later, or earlier."""
    if name not in ("add", "subtract") or not all(isinstance(each, Extent | int) for each in (one, other)):
        raise NotImplementedError("a loop's variable in anything but an index, as `t`, `t + 1` or `t - 1`")
    one, other = (each if isinstance(each, Extent) else Extent(each) for each in (one, other))
    return Extent.__add__(one, other if name == "add" else other * Extent(-1))


def whole(thing: Any) -> int:
    """Return a size as a number."""
    found = fixed(thing)
    if not isinstance(found, int):
        raise NotImplementedError(f"{thing} is no size that is known beforehand")
    return found

"""Classes of one's own whose values differentiate themselves, like micrograd's: each operation as two functions of arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from handgrad.checking.interfaces.methods import BACKWARDS, methods_of
from handgrad.checking.interfaces.names import plain
from handgrad.checking.interfaces.own_objects import Pair
from handgrad.checking.interfaces.signatures import parameters_of, required
from handgrad.checking.subject import Array

DATA = ("data", "value", "val", "array", "x", "v")
GRADIENTS = ("grad", "gradient", "g", "derivative", "adjoint")
OPERATORS = (
    "__add__", "__mul__", "__sub__", "__truediv__", "__pow__", "__matmul__", "__neg__", "__rsub__", "__rtruediv__",
)  # fmt: skip
OTHERS = {"other", "o", "y", "b", "x", "that", "rhs", "right", "tensor", "t", "v", "w", "weight", "weights"}
FLAGS = {"requiresgrad", "autograd", "track", "trackgrad"}
NO_OPERATIONS = (
    "zero", "reset", "clear", "copy", "clone", "detach", "numpy", "item", "tolist", "topo", "build", "step", "size", "arg",
    "all", "shape", "accumulate", "unbroadcast", "parameters", "update", "dim", "set", "is", "has",
)  # fmt: skip
EXPONENT = 3
ROWS, INNER, COLUMNS = 4, 3, 5
BEFORE = 0.37  # of the upstream gradient: what a gradient holds already, and what is to be added to


class _Attributes(NamedTuple):
    """Where a class has its numbers and their gradient, and how it is made."""

    data: str
    gradient: str
    is_scalar: bool  # whether it holds one Python number
    flags: dict[str, bool]


def operations_of(cls: Any) -> Iterator[tuple[str, Pair]]:
    """Yield each operation of a class whose values have a gradient and a backward, and then several operations together.

    What is no such class has none.
    """
    attributes = _attributes(cls)
    if attributes is None:
        return
    names = [
        name for name, each in vars(cls).items() if isinstance(each, FunctionType) and _is_operation(name)
    ]
    for name in names:
        method = getattr(cls, name)
        takes = required(method)[1:]
        other = len(takes) == 1 and (name in OPERATORS or plain(takes[0]) in OTHERS)
        if name.strip("_") in ("pow", "power", "rsub", "rtruediv"):
            pair = _pair(cls, attributes, name, lambda a, method=method: method(a, EXPONENT), ("self",))
        elif other or not takes:
            pair = _pair(cls, attributes, name, method, ("self", *takes))
        else:
            continue
        if pair is not None:
            yield name, pair
    if {"__add__", "__mul__"} <= {*names} and (pair := _pair(cls, attributes, "", _used_twice, ("a", "b"))):
        yield _backward_name(cls), pair


def _is_operation(name: str) -> bool:
    known = plain(name)
    return name in OPERATORS or not (
        name.startswith("_") or known in BACKWARDS or known.startswith(NO_OPERATIONS)
    )


def _used_twice(a: Any, b: Any) -> Any:
    """Return a value of which each other is used more than once, on paths of several lengths."""
    product = a * b
    return (product + a) * (product + b)


def _backward_name(cls: type) -> str:
    return next((name for name in vars(cls) if plain(name) in BACKWARDS), "")


def _attributes(cls: Any) -> _Attributes | None:
    """Return where a class has its numbers and gradients, or None where it is none whose values differentiate themselves."""
    if not isinstance(cls, type) or not {*OPERATORS} & {*vars(cls)} or methods_of(cls).forward is not None:
        return None
    if not _backward_name(cls):
        return None
    try:
        names = [name for name in parameters_of(cls) if plain(name) in FLAGS]
        flags = dict.fromkeys(names, True)
        made = cls(0.5, **flags)
        kept = vars(made)
        data = next(name for name in DATA if name in kept and np.all(kept[name] == 0.5))
        gradient = next(
            name for name in GRADIENTS if hasattr(made, name) and not callable(getattr(made, name))
        )
        is_scalar = type(kept[data]) is float and not {"np", "numpy"} & {
            *chain(*map(_names_used, vars(cls).values()))
        }
    except Exception:  # whatever the class's own code raises: it is another kind of class
        return None
    return _Attributes(data, gradient, is_scalar, flags)


def _names_used(value: Any) -> tuple[str, ...]:
    return value.__code__.co_names if isinstance(value, FunctionType) else ()


def _pair(
    cls: type, attributes: _Attributes, name: str, function: Callable[..., Any], arguments: tuple[str, ...]
) -> Pair | None:
    """Return a function of values as two functions of arrays, at drawn ones that it takes; None where there are none."""
    count, shapes = len(arguments), _shapes(name)
    if attributes.is_scalar:
        shapes = [[(ROWS,), (ROWS,)]]
    generator = np.random.default_rng(0)
    for each in shapes:
        normal = [np.asarray(generator.normal(size=shape)) for shape in each[:count]]
        for drawn in (normal, [0.3 + np.abs(value) for value in normal]):  # for logarithms
            inputs = dict(zip(arguments, drawn, strict=True))
            for wraps in (False, True):
                expression = Expression(cls, attributes, function, alone=bool(name), wraps=wraps)
                pair = expression.pair(inputs, name or _backward_name(cls))
                if pair is not None:
                    return pair
    return None


def _shapes(name: str) -> list[list[tuple[int, ...]]]:
    """Return the shapes that an operation's arguments may have, those that its name speaks for first."""
    alike: list[tuple[int, ...]]
    product: list[tuple[int, ...]]
    alike, product = [(ROWS, INNER), (ROWS, INNER)], [(ROWS, INNER), (INNER, COLUMNS)]
    return [product, alike] if any(word in name for word in ("mat", "dot", "mm")) else [alike, product]


@dataclass(frozen=True)
class Expression:
    """A function of a class's values: one operation ``alone``, or several."""

    cls: type
    attributes: _Attributes
    function: Callable[..., Any]
    alone: bool
    wraps: bool  # whether the class's backward is given the upstream gradient as one of its values

    def pair(self, inputs: dict[str, Array], name: str) -> Pair | None:
        """Return two functions of arrays, or None where they do not run at some inputs."""
        try:
            with np.errstate(all="ignore"):
                output = self.forward(**inputs)
                gradients = self.backward(np.ones(np.shape(output)), **inputs)
        except Exception:  # it takes other arguments
            return None
        is_number = np.asarray(output).dtype.kind == "f" and bool(np.all(np.isfinite(output)))
        passes = any(map(np.any, gradients.values())) or bool(self._parents(*self._runs(inputs)[0]))
        return Pair(self.forward, self.backward, inputs, name) if is_number and passes else None

    def forward(self, /, **values: Any) -> Any:
        """Return the numbers of what the function makes of values with these numbers."""
        runs = self._runs(values)
        outputs = [self._data(output) for _, output in runs]
        if self.attributes.is_scalar:
            return np.stack(outputs)
        return outputs[0] if self._closure(*runs[0]) or self._upstream_parameter() else outputs[0].sum()

    def backward(self, upstream: Any, /, **values: Any) -> dict[str, Any]:
        """Return the gradients that the class's own backward leaves in the values."""
        found: list[list[Any]] = []
        runs = self._runs(values)
        for number, (leaves, output) in enumerate(runs):
            part = float(upstream[number]) if self.attributes.is_scalar else np.asarray(upstream)
            found.append(self._gradients(leaves, output, part))
        if self.attributes.is_scalar:
            return {
                name: np.array(column) for name, column in zip(values, zip(*found, strict=True), strict=True)
            }
        return dict(zip(values, found[0], strict=True))

    def _runs(self, values: dict[str, Any]) -> list[tuple[list[Any], Any]]:
        """Return the values that were made, and what was made of them: once, or for each number."""
        rows = zip(*values.values(), strict=True) if self.attributes.is_scalar else [values.values()]
        made = [[self.cls(value, **self.attributes.flags) for value in row] for row in rows]
        return [(leaves, self.function(*leaves)) for leaves in made]

    def _data(self, value: Any) -> Any:
        return getattr(value, self.attributes.data)

    def _parents(self, leaves: list[Any], output: Any) -> list[Any]:
        """Return the values that an output remembers to be made of."""
        lists = [each for each in vars(output).values() if isinstance(each, set | frozenset | list | tuple)]
        held = {id(each) for some in lists for each in some}
        return [leaf for leaf in leaves if id(leaf) in held]

    def _closure(self, leaves: list[Any], output: Any) -> Callable[..., Any] | None:
        """Return what passes a gradient back from an output to what it was made of, if that is these values."""
        if not self.alone or len(self._parents(leaves, output)) < len(leaves):
            return None
        named = ((name, each) for name, each in vars(output).items() if isinstance(each, FunctionType))
        return next((each for name, each in named if "back" in name or "grad" in name), None)

    def _upstream_parameter(self) -> str:
        names = list(parameters_of(getattr(self.cls, _backward_name(self.cls))))[1:2]
        return next((name for name in names if plain(name).startswith(("g", "d", "up", "out"))), "")

    def _gradients(self, leaves: list[Any], output: Any, upstream: Any) -> list[Any]:
        closure, attribute = self._closure(leaves, output), self.attributes.gradient
        if closure is None and self._upstream_parameter():
            given = self.cls(upstream) if self.wraps else upstream
            getattr(output, _backward_name(self.cls))(given)
            return [self._gradient(leaf) for leaf in leaves]
        if closure is None:
            getattr(output, _backward_name(self.cls))()
            return [upstream * self._gradient(leaf) for leaf in leaves]
        before = []
        for leaf in leaves:  # as if it was used before, for its gradients add up
            held = getattr(leaf, attribute)
            before.append(0.0 if held is None else held + BEFORE * np.mean(upstream))
            setattr(
                leaf, attribute, None if held is None else before[-1] + np.zeros(np.shape(self._data(leaf)))
            )
        setattr(output, attribute, upstream)
        closure(*[upstream] * len(parameters_of(closure)))
        return [self._gradient(leaf) - known for leaf, known in zip(leaves, before, strict=True)]

    def _gradient(self, leaf: Any) -> Any:
        gradient = getattr(leaf, self.attributes.gradient)
        gradient = self._data(gradient) if isinstance(gradient, self.cls) else gradient
        return np.zeros(np.shape(self._data(leaf))) if gradient is None else np.asarray(gradient)

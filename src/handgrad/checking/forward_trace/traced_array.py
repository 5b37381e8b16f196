"""A value that a forward pass computes while it is traced: an array that remembers where it comes from."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

if TYPE_CHECKING:  # a tracer writes down traced values, and they what is done to them on their tracer
    from handgrad.checking.forward_trace.tracer import Tracer

View = tuple[str, Callable[..., Any], tuple[Any, ...], dict[str, Any]]  # how an array is read from another


class UntraceableError(Exception):
    """The forward cannot be traced; the message gives the reason. Nothing is wrong with the user's code."""


def _of_plain(function: Callable[..., Any]) -> Any:
    """Return the method that calls a function of Python's on the plain array."""
    return lambda self, *args: function(self.plain(), *args)


class TracedArray(NDArrayOperatorsMixin):
    """An array of a traced forward pass.

    Its plain value never changes: an assignment to its entries makes a new value, and the views of it
    (slices, transposes) are read again when they are next used.
    """

    __slots__ = ("__weakref__", "_base", "_index", "_seen", "_tracer", "_value", "_view")
    __array_priority__ = 1000.0

    def __init__(
        self,
        tracer: Tracer,
        value: Any,
        index: int | None = None,
        base: TracedArray | None = None,
        view: View | None = None,
    ) -> None:
        self._tracer, self._value, self._index = tracer, value, index
        self._base, self._view = base, view
        self._seen = base.plain() if base is not None else None

    def plain(self) -> Any:
        """Return the array, or NumPy scalar, that NumPy itself would hold here."""
        if self._base is not None and self._base.plain() is not self._seen:
            assert self._view is not None
            name, function, rest, options = self._view
            fresh = self._tracer.apply(name, function, (self._base, *rest), options)
            self._value, self._index, self._seen = fresh._value, fresh._index, self._base.plain()
        return self._value

    def index(self) -> int | None:
        """Return the number of the traced value; None for what does not depend on the inputs."""
        self.plain()
        return self._index

    def text(self) -> str:
        """Return how an input is written, "" for what is computed."""
        return self._tracer.texts.get(index, "") if (index := self.index()) is not None else ""

    def is_view(self, base: TracedArray, key: tuple[Any, ...]) -> bool:
        """Whether this is ``base[key]``, up to date."""
        view = self._view
        return self._base is base and view is not None and view[0] == "getitem" and view[3]["key"] == key

    def write(self, fresh: TracedArray) -> None:
        """Put another value in this one's place, and in that of the array it is a view of."""
        if self._base is not None:
            assert self._view is not None
            self._base.write(self._tracer.write_through(self._base, self._view, fresh))
            self._seen = self._base.plain()
        self._value, self._index = fresh.plain(), fresh.index()

    def assign(self, fresh: Any) -> TracedArray:
        """Store a result in place, in this array's dtype, as ``+=`` and ``out=`` do; a scalar is not changed."""
        mine = self.plain()
        if type(mine) is not np.ndarray:
            return fresh
        if type(fresh) is not TracedArray:
            fresh = self._tracer.constant(fresh)
        if not np.can_cast(fresh.dtype, mine.dtype, "same_kind"):
            raise TypeError(f"cannot store {fresh.dtype} in place in {mine.dtype}")
        fresh = fresh.astype(mine.dtype)
        if fresh.plain().shape != mine.shape:
            fresh = np.broadcast_to(fresh, mine.shape)
        self.write(fresh)
        return self

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *args: Any, **options: Any) -> Any:
        return self._tracer.functions.ufunc(self._tracer, ufunc, method, args, options)

    def __array_function__(self, function: Any, _types: Any, args: Any, options: Any) -> Any:
        return self._tracer.functions.call(self._tracer, function, args, options)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        value = self.plain()
        if self._index is not None and value.dtype.kind == "f":
            raise UntraceableError("a value was stored in, or given to, something that the trace cannot see")
        return np.array(value, dtype=dtype)

    @property
    def __class__(self) -> Any:  # isinstance(x, np.ndarray) is true
        return type(self._value)

    @__class__.setter
    def __class__(self, _: Any) -> None:
        raise TypeError("a traced value has the class of its array")

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape, whose sizes know their spelling."""
        shape = self.plain().shape
        if not (text := self.text()):
            return shape
        return SymbolicShape(SymbolicSize(n, f"{text}.shape[{k}]") for k, n in enumerate(shape))

    @property
    def size(self) -> int:
        """The number of entries."""
        size = self.plain().size
        return SymbolicSize(size, f"{text}.size") if (text := self.text()) else size

    def __getattr__(self, name: str) -> Any:
        tracer, value = self._tracer, self.plain()
        if name in _COMPUTED:
            return _COMPUTED[name](self)
        if name in ("ndim", "dtype", "itemsize", "nbytes", "strides", "flags"):
            return getattr(value, name)
        if name.startswith("__") or not hasattr(value, name):
            raise AttributeError(f"{type(value).__name__!r} object has no attribute {name!r}")
        return lambda *args, **options: tracer.functions.method(tracer, name, self, args, options)

    __len__ = _of_plain(len)
    __bool__ = _of_plain(bool)
    __int__ = _of_plain(int)
    __index__ = _of_plain(operator.index)
    __hash__ = _of_plain(hash)
    __repr__ = _of_plain(repr)
    __str__ = _of_plain(str)
    __format__ = _of_plain(format)

    def __float__(self) -> float:
        if self.index() is not None and self.dtype.kind == "f":
            raise UntraceableError("a value became a plain number, out of sight of the trace")
        return float(self.plain())

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        return self._tracer.getitem(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.write(self._tracer.setitem(self, key, value))

    def __contains__(self, item: Any) -> bool:
        return bool((self == item).any())

    def __deepcopy__(self, _memo: Any = None) -> Any:
        return self.copy()

    __copy__ = __deepcopy__

    def __pow__(self, other: Any) -> Any:  # Python's operator has last bits of its own: x ** 2 is np.square
        return self._tracer.apply("power", operator.pow, (self, other), {})

    def __rpow__(self, other: Any) -> Any:
        return self._tracer.apply("power", operator.pow, (other, self), {})


_COMPUTED: dict[str, Callable[[TracedArray], Any]] = {
    "T": np.transpose,
    "mT": lambda array: np.swapaxes(array, -1, -2),
    "flat": lambda array: np.reshape(array, -1),
    "real": lambda array: array,  # only real numbers are traced
}


class SymbolicSize(int):
    """A size that knows how it is spelled: ``x.shape[0]`` rather than 5."""

    text: str

    def __new__(cls, value: int, text: str) -> SymbolicSize:
        """Make an integer with a spelling."""
        size = super().__new__(cls, value)
        size.text = text
        return size


class SymbolicShape(tuple[int, ...]):
    """A shape that knows how it is spelled."""

    __slots__ = ()

    @property
    def text(self) -> str:
        """The spelling, ``x.shape``, from that of the first size."""
        first = self[0] if self else 0
        return first.text.removesuffix("[0]") if isinstance(first, SymbolicSize) else ""


def _spelled(name: str, symbol: str) -> Callable[[SymbolicSize, Any], Any]:
    """Return an operator of integers that spells its result, where the other is an integer too."""

    def operate(self: SymbolicSize, other: Any) -> Any:
        result = getattr(int, name)(self, other)
        if result is NotImplemented or not isinstance(other, int):
            return result
        pair = (other, self) if name.startswith("__r") else (self, other)
        texts = [getattr(size, "text", str(size)) for size in pair]
        return SymbolicSize(result, f" {symbol} ".join(f"({t})" if " " in t else t for t in texts))

    return operate


for _name, _symbol in (("add", "+"), ("sub", "-"), ("mul", "*"), ("floordiv", "//")):
    for _method in (f"__{_name}__", f"__r{_name}__"):
        setattr(SymbolicSize, _method, _spelled(_method, _symbol))

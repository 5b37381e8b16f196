"""A value that a forward pass computes while it is recorded: an array that remembers where it comes from."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from handgrad.checking.forward_trace.symbolic_sizes import SymbolicShape, SymbolicSize

if TYPE_CHECKING:  # a tracer writes down traced values, and they what is done to them on their tracer
    from handgrad.checking.forward_trace.tracer import Tracer

View = tuple[str, Callable[..., Any], tuple[Any, ...], dict[str, Any]]  # how an array is read from another


class UntraceableError(Exception):
    """The forward cannot be traced; the message gives the reason. Nothing is wrong with the user's code."""


class TracedArray(NDArrayOperatorsMixin):
    """An array of a recorded forward pass.

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

    # ------------------------------------------------------------------ the value, and views of other values

    def plain(self) -> Any:
        """Return the array, or NumPy scalar, that NumPy itself would hold here."""
        if self._base is not None and self._base.plain() is not self._seen:
            assert self._view is not None
            name, function, rest, options = self._view
            fresh = self._tracer.view(name, function, (self._base, *rest), options)
            self._value, self._index, self._seen = fresh._value, fresh._index, self._base.plain()
        return self._value

    def index(self) -> int | None:
        """Return the number of the recorded value; None for what does not depend on the inputs."""
        self.plain()
        return self._index

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
        tracer, mine = self._tracer, self.plain()
        if type(mine) is not np.ndarray:
            return fresh
        if not isinstance(fresh, TracedArray):
            fresh = tracer.constant(fresh)
        theirs = fresh.plain()
        if not np.can_cast(theirs.dtype, mine.dtype, "same_kind"):
            raise TypeError(f"cannot store {theirs.dtype} in place in {mine.dtype}")
        if theirs.dtype != mine.dtype:
            fresh = tracer.call("astype", (fresh, mine.dtype), {})
        if theirs.shape != mine.shape:
            fresh = tracer.call("broadcast_to", (fresh, mine.shape), {})
        self.write(fresh)
        return self

    # ------------------------------------------------------------------ what NumPy asks

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *args: Any, **options: Any) -> Any:
        return self._tracer.ufunc(ufunc, method, args, options)

    def __array_function__(self, function: Any, _types: Any, args: Any, options: Any) -> Any:
        return self._tracer.call_function(function, args, options)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        value = self.plain()
        if self._index is not None and value.dtype.kind == "f":
            raise UntraceableError("a value was stored in, or given to, something that the trace cannot see")
        return np.array(value, dtype=dtype)

    # ------------------------------------------------------------------ attributes

    @property
    def __class__(self) -> Any:  # isinstance(x, np.ndarray) is true
        return type(self._value)

    @__class__.setter
    def __class__(self, _: Any) -> None:
        raise TypeError("a recorded value has the class of its array")

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape, whose sizes know their spelling."""
        value = self.plain()
        text = self._tracer.text_of(self._index)
        return (
            SymbolicShape(SymbolicSize(n, f"{text}.shape[{k}]") for k, n in enumerate(value.shape))
            if text
            else value.shape
        )

    @shape.setter
    def shape(self, shape: Any) -> None:
        self.write(self._tracer.call("reshape", (self, shape), {}))

    @property
    def size(self) -> int:
        """The number of entries."""
        value = self.plain()
        text = self._tracer.text_of(self._index)
        return SymbolicSize(value.size, f"{text}.size") if text else value.size

    @property
    def T(self) -> Any:  # noqa: N802 - NumPy's name
        """The transpose."""
        return self._tracer.call("transpose", (self,), {})

    @property
    def mT(self) -> Any:  # noqa: N802 - NumPy's name
        """The transpose of the last two axes."""
        return self._tracer.call("swapaxes", (self, -1, -2), {})

    @property
    def real(self) -> TracedArray:
        """The array itself: only real numbers are recorded."""
        return self

    @property
    def flat(self) -> Any:
        """The entries one after the other."""
        return self._tracer.call("reshape", (self, -1), {})

    @flat.setter
    def flat(self, value: Any) -> None:
        self.flat[:] = value

    def __getattr__(self, name: str) -> Any:
        tracer, value = self._tracer, self.plain()
        if name in ("ndim", "dtype", "itemsize", "nbytes", "strides", "flags"):
            return getattr(value, name)
        if name.startswith("__") or not hasattr(value, name):
            raise AttributeError(f"{type(value).__name__!r} object has no attribute {name!r}")

        def method(*args: Any, **options: Any) -> Any:
            return tracer.method(name, self, args, options)

        return method

    # ------------------------------------------------------------------ Python's own protocols

    def __len__(self) -> int:
        return len(self.plain())

    def __iter__(self) -> Iterator[Any]:
        for k in range(len(self.plain())):
            yield self[k]

    def __getitem__(self, key: Any) -> Any:
        return self._tracer.getitem(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.write(self._tracer.setitem(self, key, value))

    def __bool__(self) -> bool:
        return bool(self.plain())

    def __int__(self) -> int:
        return int(self.plain())

    def __float__(self) -> float:
        value = float(self.plain())
        self._tracer.leaked |= self._index is not None and self._value.dtype.kind == "f"
        return value

    def __index__(self) -> int:
        return operator.index(self.plain())

    def __contains__(self, item: Any) -> bool:
        return bool((self == item).any())

    def __hash__(self) -> int:
        return hash(self.plain())

    def __repr__(self) -> str:
        return repr(self.plain())

    def __str__(self) -> str:
        return str(self.plain())

    def __format__(self, spec: str) -> str:
        return format(self.plain(), spec)

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, _memo: Any) -> Any:
        return self.copy()

    def __round__(self, digits: int = 0) -> Any:
        return self._tracer.call("round", (self, digits), {})

    def __pow__(self, other: Any) -> Any:  # Python's operator has last bits of its own: x ** 2 is np.square
        return self._tracer.power(self, other)

    def __rpow__(self, other: Any) -> Any:
        return self._tracer.power(other, self)

    def __ipow__(self, other: Any) -> Any:
        return self.assign(self**other)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

"""What traced arrays write to: every elementary operation of a forward pass, in the order in which it ran."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from handgrad.checking.forward_trace.operands import Slot, getitem, setitem
from handgrad.checking.forward_trace.source_lines import look_around
from handgrad.checking.forward_trace.symbolic_sizes import SymbolicSize
from handgrad.checking.forward_trace.traced_array import TracedArray, UntraceableError, View

ELEMENTWISE, STRUCTURAL, REDUCTION, PRODUCT, OTHER = (
    "elementwise",
    "structural",
    "reduction",
    "product",
    "other",
)
_KINDS: dict[str, str] = {
    name: kind
    for kind, names in {
        ELEMENTWISE: "where clip round nan_to_num sinc astype elementwise "
        "expit erf erfc log_expit xlogy gammaln logit ndtr",
        STRUCTURAL: "getitem setitem add_at reshape transpose swapaxes moveaxis expand_dims squeeze broadcast_to "
        "repeat tile flip roll rot90 pad diag diagonal tril triu take take_along_axis concatenate stack sort "
        "sliding_window_view",
        REDUCTION: "sum mean prod max min var std norm cumsum cumprod",
        PRODUCT: "matmul einsum",
    }.items()
    for name in names.split()
}
_VIEWS = frozenset((
    "getitem", "reshape", "transpose", "swapaxes", "moveaxis", "squeeze", "expand_dims",
    "broadcast_to", "diagonal", "flip",
))  # fmt: skip
_MOST_OPERATIONS, _MOST_BYTES = 20_000, 2**29  # a longer trace answers no question in a reasonable time


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """One elementary step: ``values[output] = function(*(values[i] for i in inputs), **options)``.

    Attributes
    ----------
    name
        NumPy's name (``"exp"``, ``"matmul"``, ``"getitem"``), the key of the table of derivatives.
    kind
        ``"elementwise"``, ``"structural"`` (moves entries), ``"reduction"``, ``"product"`` or ``"other"``.
    place
        File, line and function of the user's source.
    """

    number: int
    name: str
    kind: str
    function: Callable[..., Any]
    inputs: tuple[int, ...]
    options: dict[str, Any]
    output: int
    place: tuple[str, int, str]

    def run(self, values: Sequence[Any]) -> Any:
        """Compute the output from the values."""
        return self.function(*[values[i] for i in self.inputs], **self.options)


class Tracer:
    """What `TracedArray` values write to while the forward pass runs."""

    def __init__(self, scopes: Sequence[dict[str, Any]], functions: Any, through_source: Any) -> None:
        # How NumPy's functions are run is known by modules that know this one.
        self.call: Callable[..., Any] = partial(functions.call, self)
        self.call_function: Callable[..., Any] = partial(functions.call_function, self)
        self.ufunc: Callable[..., Any] = partial(functions.ufunc, self)
        self.method: Callable[..., Any] = partial(functions.method, self)
        self.through_source: Callable[..., Any] = partial(through_source, self)
        self.library_scopes: dict[int, dict[str, Any]] = {}
        self.values: list[Any] = []
        self.operations: list[Operation] = []
        self.names: dict[int, str] = {}  # value -> the user's name of it
        self.texts: dict[int, str] = {}  # input or constant -> how it is written
        self.spellings: dict[Any, str] = {}  # function -> how the user's module calls it
        self.modules: dict[str, Any] = {}  # the user's name of a module -> the module
        self.constant_values: set[int] = set()
        self.leaked = False  # whether a value became a plain number, somewhere out of sight
        self._bytes = 0
        self._scopes = {id(scope) for scope in scopes}
        self._constant_of: dict[Any, int] = {}
        self._alive: list[Any] = []  # constants known by id must not be collected
        self._writers: dict[int, Operation] = {}  # value -> the assignment that made it

    # ------------------------------------------------------------------ values

    def input(self, name: str, value: Any) -> TracedArray:
        """Add an input: its own copy, so that nothing changes it."""
        index = self._add(np.array(value))
        self.names[index] = self.texts[index] = name
        return TracedArray(self, self.values[index], index)

    def constant(self, value: Any, text: str = "") -> TracedArray:
        """Return something that does not depend on the inputs, as an array that can be written to."""
        array = np.array(value) if not isinstance(value, np.generic) else value
        if text:
            self.texts[self._constant_index(array)] = text
        return TracedArray(self, array)

    def constants(self, result: Any) -> Any:
        """Return what a function gives as constants of the trace, where it is arrays."""
        if type(result) is np.ndarray and result.dtype.kind in "fiub":
            return self.constant(result)
        return type(result)(map(self.constants, result)) if type(result) in (tuple, list) else result

    def text_of(self, index: int | None) -> str:
        """Return how an input is spelled, "" for what is computed."""
        return self.texts.get(index, "") if index is not None else ""

    def _add(self, value: Any) -> int:
        self.values.append(value)
        return len(self.values) - 1

    def _constant_index(self, value: Any) -> int:
        text = value.text if isinstance(value, SymbolicSize) else ""
        if isinstance(value, (list, tuple)):
            value = np.array(value)
        key = id(value) if isinstance(value, np.ndarray) else (type(value), value, text, repr(value))
        if key not in self._constant_of:
            self._constant_of[key] = index = self._add(int(value) if text else value)
            self._alive.append(value)
            self.constant_values.add(index)
            if text:
                self.texts[index] = text
        return self._constant_of[key]

    def index_of(self, operand: Any) -> int:
        """Return the number of an operand's value; what is new becomes a constant."""
        if type(operand) is TracedArray:
            index = operand.index()
            return index if index is not None else self._constant_index(operand.plain())
        return self._constant_index(operand)

    # ------------------------------------------------------------------ running an operation

    def apply(
        self, name: str, function: Callable[..., Any], operands: Sequence[Any], options: dict[str, Any]
    ) -> TracedArray:
        """Run an operation on plain values and record it, if it depends on an input."""
        operands = [self._unlisted(o) for o in operands]
        plain = [o.plain() if type(o) is TracedArray else o for o in operands]
        result = function(*plain, **options)
        if not hasattr(result, "dtype"):
            result = np.asarray(result)[()]
        if result.dtype.kind not in "fiub":
            raise UntraceableError(f"{name} gives {result.dtype} values, and only real numbers are traced")
        base = view = None
        if name in _VIEWS and type(result) is np.ndarray and np.may_share_memory(result, plain[0]):
            base, view = operands[0], (name, function, tuple(operands[1:]), options)
        index = None
        if any(type(o) is TracedArray and o.index() is not None for o in operands):
            index = self.record(name, function, operands, options, result)
        return TracedArray(self, result, index, base if type(base) is TracedArray else None, view)

    def record(
        self,
        name: str,
        function: Callable[..., Any],
        operands: Sequence[Any],
        options: dict[str, Any],
        result: Any,
    ) -> int:
        """Record an operation and return the number of its value."""
        self._bytes += result.nbytes
        if len(self.operations) >= _MOST_OPERATIONS or self._bytes > _MOST_BYTES:
            raise UntraceableError("the forward pass is too long: check it on smaller inputs")
        inputs = tuple([self.index_of(o) for o in operands])
        output = self._add(result)
        place, target = look_around(self._scopes)
        kind = _KINDS.get(name) or (ELEMENTWISE if _is_elementwise(name) else OTHER)
        operation = Operation(len(self.operations), name, kind, function, inputs, options, output, place)
        self.operations.append(operation)
        if name in ("setitem", "add_at"):
            self._writers[output] = operation
            target = self.names.get(inputs[0], target)
        if target:
            self.names[output] = target
        return output

    def power(self, base: Any, exponent: Any) -> TracedArray:
        """Run ``base ** exponent``."""
        return self.apply("power", operator.pow, (base, exponent), {})

    def _unlisted(self, operand: Any) -> Any:
        return self.call("asarray", (operand,), {}) if isinstance(operand, (list, tuple)) else operand

    # ------------------------------------------------------------------ entries, read and written

    def getitem(self, array: TracedArray, key: Any) -> TracedArray:
        """Read entries."""
        template, rest = self.split_key(key)
        if not rest and None in template and all(p is None or p is ... or p == slice(None) for p in template):
            return self.call("expand_dims", (array, _new_axes(template, array.ndim)), {})
        forwarded = self._forwarded(array, template) if not rest else None
        if forwarded is not None:
            return forwarded
        return self.apply("getitem", getitem, (array, *rest), {"key": template})

    def view(
        self, name: str, function: Callable[..., Any], operands: tuple[Any, ...], options: dict[str, Any]
    ) -> TracedArray:
        """Read a view again, after the array under it was written to."""
        if name == "getitem" and len(operands) == 1:
            forwarded = self._forwarded(operands[0], options["key"])
            if forwarded is not None:
                return forwarded
        return self.apply(name, function, operands, options)

    def setitem(self, array: TracedArray, key: Any, value: Any) -> TracedArray:
        """Return what an array is after an assignment."""
        template, rest = self.split_key(key)
        if not rest and type(value) is TracedArray and value.is_view(array, template):
            return array  # `y[0] += 1` has written through the view y[0] already
        return self.apply("setitem", setitem, (array, value, *rest), {"key": template})

    def _forwarded(self, array: TracedArray, key: tuple[Any, ...]) -> TracedArray | None:
        """Return the scalar or row that was last assigned at `key`, when that is certain and it has this shape.

        A loop that writes `h[t]` and reads `h[t - 1]` is so recorded as a chain.
        """
        index = array.index()
        while index is not None and index in self._writers:
            writer = self._writers[index]
            theirs = writer.options["key"]
            if writer.name == "setitem" and len(writer.inputs) == 2 and theirs == key:
                stored = self.values[writer.inputs[1]]
                plain = array.plain()[key]
                if np.shape(stored) != plain.shape or getattr(stored, "dtype", None) != plain.dtype:
                    return None
                source = None if writer.inputs[1] in self.constant_values else writer.inputs[1]
                if type(plain) is not np.ndarray:
                    return TracedArray(self, plain, source)
                return TracedArray(self, plain, source, array, ("getitem", getitem, (), {"key": key}))
            if not _disjoint(theirs, key):
                return None
            index = writer.inputs[0]
        return None

    def split_key(self, key: Any) -> tuple[tuple[Any, ...], list[Any]]:
        """Part an index into what is fixed and the index arrays, which are operands."""
        rest: list[Any] = []
        template: list[Any] = []
        for part in key if isinstance(key, tuple) else (key,):
            if isinstance(part, (list, range)):
                part = self._unlisted(list(part)) if len(part) else np.array([], dtype=int)
            if type(part) is TracedArray or isinstance(part, np.ndarray):
                template.append(Slot(len(rest)))
                rest.append(part)
            elif isinstance(part, slice):
                bounds = (part.start, part.stop, part.step)
                template.append(slice(*[None if v is None else operator.index(v) for v in bounds]))
            elif part is None or part is Ellipsis or isinstance(part, (bool, np.bool_)):
                template.append(part)
            else:
                template.append(operator.index(part))
        return tuple(template), rest

    def write_through(self, base: TracedArray, view: View, fresh: Any) -> Any:
        """Return what an array becomes when a view of it becomes `fresh`."""
        name, function, rest, options = view
        if name == "getitem":
            return self.apply("setitem", setitem, (base, fresh, *rest), options)
        shape = base.plain().shape
        if name in ("reshape", "squeeze", "expand_dims"):
            return self.call("reshape", (fresh, shape), {})
        if name in ("transpose", "swapaxes", "moveaxis"):
            marks = np.empty(tuple(range(2, 2 + len(shape))), dtype=bool)
            order = [n - 2 for n in function(marks, **options).shape]
            return self.call("transpose", (fresh, tuple(int(k) for k in np.argsort(order))), {})
        if name == "flip":
            return self.apply(name, function, (fresh,), options)
        raise UntraceableError(f"an assignment through {name} is not followed")


def _is_elementwise(name: str) -> bool:
    ufunc = getattr(np, name, None)
    return isinstance(ufunc, np.ufunc) and ufunc.signature is None


def _new_axes(template: tuple[Any, ...], ndim: int) -> tuple[int, ...]:
    """Return where an index of full slices puts new axes."""
    taken = sum(isinstance(p, slice) for p in template)
    k = template.index(...) if ... in template else len(template)
    full = template[:k] + (slice(None),) * (ndim - taken) + template[k + 1 :]
    return tuple(axis for axis, part in enumerate(full) if part is None)


def _disjoint(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    """Whether two indices surely meet no common entry: different integers of one sign at one place."""
    for left, right in zip(a, b, strict=False):
        if type(left) is int and type(right) is int:
            if left != right and (left < 0) == (right < 0):
                return True
        elif type(left) not in (int, slice) or type(right) not in (int, slice):
            return False
    return False

"""What traced arrays write to: every elementary operation of a forward pass, in the order in which it ran."""

from __future__ import annotations

import dis
import operator
import sys
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from itertools import pairwise
from types import CodeType, FrameType
from typing import Any

import numpy as np

from handgrad.checking.forward_trace.operation import Operation, Slot, getitem, setitem
from handgrad.checking.forward_trace.traced_array import SymbolicSize, TracedArray, UntraceableError, View

_VIEWS = frozenset((
    "getitem", "reshape", "transpose", "swapaxes", "moveaxis", "squeeze", "expand_dims",
    "broadcast_to", "diagonal", "flip",
))  # fmt: skip
_MOST_OPERATIONS, _MOST_BYTES = 20_000, 2**29  # a longer trace answers no question in a reasonable time
_CALLERS = 4  # frames between an operation and the assignment that stores what a function returns of it


class Tracer:
    """What `TracedArray` values write to while the forward pass runs."""

    def __init__(
        self, scopes: Sequence[dict[str, Any]], files: Collection[str], functions: Any, through_source: Any
    ) -> None:
        self.functions, self.through_source = functions, through_source  # of modules that know this one
        self.library_scopes: dict[int, dict[str, Any]] = {}
        self.values: list[Any] = []
        self.operations: list[Operation] = []
        self.names: dict[int, str] = {}  # value -> the user's name of it
        self.texts: dict[int, str] = {}  # input or constant -> how it is written
        self.spellings: dict[Any, str] = {}  # function -> how the user's module calls it
        self.modules: dict[str, Any] = {}  # the user's name of a module -> the module
        self.constant_values: set[int] = set()
        self._bytes = 0
        self._scopes, self._files = {id(scope) for scope in scopes}, files
        self._constant_of: dict[Any, int] = {}
        self._alive: list[Any] = []  # constants known by id must not be collected

    def _is_users(self, frame: FrameType) -> bool:
        """Whether a frame runs the user's code; a script's lines run in names of their own."""
        return id(frame.f_globals) in self._scopes or frame.f_code.co_filename in self._files

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

    def array(self, item: Any) -> TracedArray:
        """Return what NumPy's asarray makes of something, as a traced array."""
        if type(item) is TracedArray:
            return item
        if holds_traced(item):
            return np.stack([self.array(part) for part in item])  # type: ignore[return-value]
        return self.constant(item)

    def _add(self, value: Any) -> int:
        self.values.append(value)
        return len(self.values) - 1

    def _constant_index(self, value: Any) -> int:
        text = value.text if isinstance(value, SymbolicSize) else ""
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
        index = operand.index() if type(operand) is TracedArray else None
        if index is not None:
            return index
        plain = bare(operand)
        return self._constant_index(np.array(plain) if isinstance(plain, (list, tuple)) else plain)

    def apply(
        self, name: str, function: Any, operands: Sequence[Any], options: dict[str, Any]
    ) -> TracedArray:
        """Run an operation on plain values and record it, if it depends on an input."""
        operands = [self.array(o) if isinstance(o, (list, tuple)) else o for o in operands]
        plain = [bare(o) for o in operands]
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
        self, name: str, function: Any, operands: Sequence[Any], options: dict[str, Any], result: Any
    ) -> int:
        """Record an operation and return the number of its value."""
        self._bytes += result.nbytes
        if len(self.operations) >= _MOST_OPERATIONS or self._bytes > _MOST_BYTES:
            raise UntraceableError("the forward pass is too long: check it on smaller inputs")
        inputs = tuple([self.index_of(o) for o in operands])
        output = self._add(result)
        place, target = _place_and_target(self._is_users)
        self.operations.append(
            Operation(len(self.operations), name, function, inputs, options, output, place)
        )
        if name in ("setitem", "add_at"):
            target = self.names.get(inputs[0], target)
        if target:
            self.names[output] = target
        return output

    def getitem(self, array: TracedArray, key: Any) -> Any:
        """Read entries."""
        template, rest = self.split_key(key)
        if not rest and None in template and all(p is None or p is ... or p == slice(None) for p in template):
            return np.expand_dims(array, _new_axes(template, array.ndim))
        return self.apply("getitem", getitem, (array, *rest), {"key": template})

    def setitem(self, array: TracedArray, key: Any, value: Any) -> TracedArray:
        """Return what an array is after an assignment."""
        template, rest = self.split_key(key)
        if not rest and type(value) is TracedArray and value.is_view(array, template):
            return array  # `y[0] += 1` has written through the view y[0] already
        return self.apply("setitem", setitem, (array, value, *rest), {"key": template})

    def split_key(self, key: Any) -> tuple[tuple[Any, ...], list[Any]]:
        """Part an index into what is fixed and the index arrays, which are operands."""
        rest: list[Any] = []
        template: list[Any] = []
        for part in key if isinstance(key, tuple) else (key,):
            if isinstance(part, (list, range)):
                part = self.array(list(part)) if len(part) else np.array([], dtype=int)
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
        numbers = np.arange(base.size).reshape(base.plain().shape)
        order = np.argsort(function(numbers, **options), axis=None)
        if order.size != numbers.size:
            raise UntraceableError(f"an assignment through {name} is not followed")
        in_order = np.array_equal(order, numbers.ravel())
        return np.reshape(fresh if in_order else np.reshape(fresh, -1)[order], numbers.shape)


def bare(item: Any) -> Any:
    """Return the plain value of a traced one, anything else as it is."""
    return item.plain() if type(item) is TracedArray else item


def holds_traced(item: Any) -> bool:
    """Whether a traced value is somewhere in an argument."""
    if type(item) in (list, tuple):
        return any(map(holds_traced, item))
    return type(item) is TracedArray or (type(item) is dict and holds_traced(list(item.values())))


def _new_axes(template: tuple[Any, ...], ndim: int) -> tuple[int, ...]:
    """Return where an index of full slices puts new axes."""
    taken = sum(isinstance(p, slice) for p in template)
    k = template.index(...) if ... in template else len(template)
    full = template[:k] + (slice(None),) * (ndim - taken) + template[k + 1 :]
    return tuple(axis for axis, part in enumerate(full) if part is None)


def _place_and_target(is_users: Callable[[FrameType], bool]) -> tuple[tuple[str, int, str], str]:
    """Return the place of the user's line that runs now, and the variable that its result is stored in."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and not is_users(frame):
        frame = frame.f_back
    if frame is None:
        return ("", 0, ""), ""
    place = (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
    target = "return"
    for _ in range(_CALLERS):
        if target != "return" or frame is None or not is_users(frame):
            break
        target, frame = _targets(frame.f_code).get(frame.f_lasti, ""), frame.f_back
    return place, "" if target == "return" else target


@lru_cache(maxsize=512)
def _targets(code: CodeType) -> dict[int, str]:
    """Map the offset of an instruction to the variable its result is stored in, or to "return"."""
    instructions = [i for i in dis.get_instructions(code) if i.opname not in ("EXTENDED_ARG", "NOP")]
    targets: dict[int, str] = {}
    for now, after in pairwise(instructions):
        name = ""
        if now.opname.startswith("UNPACK"):
            continue  # several values, the first of which is stored next
        if after.opname.startswith(("STORE_FAST", "STORE_NAME", "STORE_DEREF", "STORE_GLOBAL")):
            name = after.argval if isinstance(after.argval, str) else after.argval[0]
        elif after.opname == "RETURN_VALUE":
            name = "return"
        # while a Python function is called, the offset points behind the call's inline cache
        targets.update(dict.fromkeys(range(now.offset, after.offset, 2), name))
    return targets

"""NumPy's functions on traced values.

A function is recorded as one operation where the table of derivatives knows it, is traced through NumPy's own
Python source where it has one (`np.vstack`, `np.meshgrid`, `np.cov`), and is else one opaque operation, with a
numerical derivative.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import lru_cache
from types import FunctionType
from typing import Any

import numpy as np

from handgrad.checking.forward_trace.operation import Slot, add_at, call_template, fill
from handgrad.checking.forward_trace.traced_array import TracedArray, UntraceableError
from handgrad.checking.forward_trace.tracer import Tracer, holds_traced

# Recorded as one operation: the first argument is an operand, or the first two, and all others are options.
OPERANDS = {
    **dict.fromkeys((
        "sum", "mean", "prod", "max", "min", "var", "std", "cumsum", "cumprod", "all", "any", "argmax", "argmin",
        "argsort", "count_nonzero", "sort", "swapaxes", "moveaxis", "squeeze", "broadcast_to",
        "repeat", "tile", "flip", "roll", "rot90", "diag", "diagonal", "tril", "triu", "round", "nan_to_num", "sinc",
        "pad", "median", "logsumexp", "softmax", "log_softmax", "linalg.norm", "linalg.inv", "linalg.det", "linalg.cholesky",
        "erf", "erfc",
    ), 1),
    **dict.fromkeys(("take_along_axis", "cross", "searchsorted", "linalg.solve"), 2),
}  # fmt: skip
# Their Python source would be recorded as operations that nobody recognises.
_OPAQUE = frozenset((
    "percentile", "quantile", "nanmedian", "lib.stride_tricks.sliding_window_view", "nonzero",
    "convolve", "correlate", "choose", "compress", "linalg.eigh", "linalg.eigvalsh", "linalg.svd", "linalg.qr", "linalg.pinv",
    "linalg.lstsq", "linalg.cond", "linalg.slogdet",
))  # fmt: skip
Args = tuple[Any, ...]
Options = dict[str, Any]
SPECIAL: dict[str, Callable[..., Any]] = {}


def special(function: Callable[..., Any]) -> Callable[..., Any]:
    """Register ``_name(tracer, *args, **options)`` as what runs NumPy's `name`, or the method of that name."""
    SPECIAL[function.__name__.strip("_")] = function
    return function


_PRIVATE = re.compile(r"^numpy\.(_core\.\w+\.)?")  # where NumPy keeps a function is not how it is called


def call(tracer: Tracer, function: Any, args: Args, options: Options) -> Any:
    """Run a function of NumPy on traced arguments."""
    if isinstance(function, np.ufunc):
        return ufunc(tracer, function, "__call__", args, options)
    name = _PRIVATE.sub("", f"{function.__module__}.{function.__name__}")
    if name in SPECIAL:
        return _special(tracer, name, args, options)
    if name in OPERANDS:
        return known(tracer, name, function, args, options)
    source = getattr(function, "_implementation", function)
    if isinstance(source, FunctionType) and name not in _OPAQUE:
        # It fails where C code is further down, or by a mistake of the caller's, which is raised again below.
        try:
            return tracer.through_source(tracer, source)(*args, **options)
        except Exception:
            if function.__name__.startswith("_"):  # a helper of a function that is then called as a whole
                raise
    return opaque(tracer, f"np.{name}", function, args, options)


def _special(tracer: Tracer, name: str, args: Args, options: Options) -> Any:
    out = options.pop("out", None)
    return _stored(SPECIAL[name](tracer, *args, **options), out, name)


def _stored(result: Any, out: Any, name: str) -> Any:
    """Store a result where ``out=`` wants it."""
    if out is None:
        return result
    if type(out) is not TracedArray:
        raise UntraceableError(f"np.{name} writes into an array that the trace cannot see")
    return out.assign(result)


def method(tracer: Tracer, name: str, array: TracedArray, args: Args, options: Options) -> Any:
    """Run a method of an array."""
    if name in ("reshape", "transpose") and len(args) > 1:
        args = (args,)
    if name == "fill":
        array[...] = args[0]
    elif name == "sort":
        array.assign(np.sort(array, *args, **options))
    elif name == "put":
        array.flat[args[0]] = args[1]
    elif name in SPECIAL:
        return _special(tracer, name, (array, *args), options)
    elif hasattr(np, name) and name not in ("partition", "resize"):  # these change the array in place
        return call(tracer, getattr(np, name), (array, *args), options)
    elif name != "setflags":
        raise UntraceableError(f"the method {name} of an array is not followed")
    return None


_signature = lru_cache(maxsize=256)(inspect.signature)


def known(tracer: Tracer, name: str, function: Any, args: Args, options: Options) -> Any:
    """Run a function whose operands and options are known apart."""
    bound = _signature(function).bind(*args, **options)
    named = bound.arguments.pop("kwargs", {})
    given = {**bound.arguments, **named}
    operands = [given.pop(n) for n in list(_signature(function).parameters)[: OPERANDS[name]]]
    out = given.pop("out", None)
    fixed = {n: _static(o) for n, o in given.items()}
    if holds_traced(fixed):
        result = opaque(tracer, f"np.{name}", function, tuple(operands), given)
    else:
        result = tracer.apply(name.removeprefix("linalg."), function, operands, fixed)
    return _stored(result, out, name)


def _static(option: Any) -> Any:
    """Turn traced integers (an axis, a shift) into plain ones."""
    if type(option) is TracedArray and option.dtype.kind in "iub":
        return option.plain() if option.ndim else option.plain()[()]
    return type(option)(map(_static, option)) if type(option) in (tuple, list) else option


def opaque(tracer: Tracer, name: str, function: Any, args: Args, options: Options) -> Any:
    """Run a function that nothing is known of, as one operation (several, when it returns several arrays)."""
    operands: list[Any] = []
    template = _template((tuple(args), dict(options)), operands)
    given, named = fill(template, [o.plain() for o in operands])
    result = function(*given, **named)
    if result is None:
        raise UntraceableError(f"{name} changes its arguments in a way that is not followed")
    fixed = {"function": function, "template": template}

    def recorded(part: Any, which: dict[str, int]) -> Any:
        if not isinstance(part, (np.ndarray, np.generic, float)):
            return part  # a flag, a shape, a dtype: nothing that has a derivative
        return tracer.apply(name, call_template, operands, fixed | which)

    if not isinstance(result, (tuple, list)):
        return recorded(result, {})
    parts = [recorded(part, {"part": k}) for k, part in enumerate(result)]
    return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)


def _template(item: Any, operands: list[Any]) -> Any:
    """Return an argument with a slot in the place of each traced value."""
    if type(item) is TracedArray:
        operands.append(item)
        return Slot(len(operands) - 1)
    if type(item) in (list, tuple):
        return type(item)(_template(part, operands) for part in item)
    if type(item) is dict:
        return {name: _template(part, operands) for name, part in item.items()}
    return item


_REDUCTIONS = {"add": np.sum, "multiply": np.prod, "maximum": np.max, "minimum": np.min}
_USUAL = {"dtype": None, "out": None, "keepdims": False, "initial": np._NoValue, "where": True}


def ufunc(tracer: Tracer, function: np.ufunc, how: str, args: Args, options: Options) -> Any:
    """Run a ufunc, or its reduce, accumulate, outer or at."""
    if how == "at":
        return _at(tracer, function, *args)
    out = options.pop("out", None)
    if how == "__call__":
        out, args = args[function.nin :] or out, args[: function.nin]
    if type(out) is tuple:
        out = out[0] if out else None
    args = tuple(tracer.array(a) if isinstance(a, (list, tuple)) else a for a in args)
    return _stored(_run_ufunc(tracer, function, how, args, options, out), out, function.__name__)


def _run_ufunc(tracer: Tracer, function: np.ufunc, how: str, args: Args, options: Options, out: Any) -> Any:
    name = function.__name__
    if how == "__call__" and function.nout == 1:
        where, _ = options.pop("where", True), options.pop("subok", None)
        result = tracer.apply(name, function, args, options)
        if where is True or where is np._NoValue:
            return result
        rest = out if type(out) is TracedArray else tracer.constant(np.zeros_like(result.plain()))
        return np.where(where, result, rest)
    if how == "reduce" and name in (*_REDUCTIONS, "logaddexp"):
        given = {"axis": 0} | dict(zip(("axis", *_USUAL), args[1:], strict=False)) | options
        given = {n: v for n, v in given.items() if n == "axis" or v is not _USUAL[n]}
        if name == "logaddexp":
            return tracer.apply("logaddexp.reduce", function.reduce, args[:1], given)
        return call(tracer, _REDUCTIONS[name], args[:1], given)
    if how == "accumulate" and name in ("add", "multiply"):
        axis = args[1] if len(args) > 1 else options.get("axis", 0)
        return call(tracer, np.cumsum if name == "add" else np.cumprod, (args[0], axis), {})
    if how == "outer" and function.nin == 2:
        left, right = map(tracer.array, args[:2])
        column = np.reshape(left, (*left.shape, *[1] * right.ndim))
        return tracer.apply(name, function, (column, right), options)
    run = function if how == "__call__" else getattr(function, how)
    return opaque(tracer, f"np.{name}" if how == "__call__" else f"np.{name}.{how}", run, args, options)


def _at(tracer: Tracer, function: np.ufunc, array: Any, key: Any, value: Any = None) -> None:
    name = function.__name__
    if type(array) is not TracedArray or name not in ("add", "subtract"):
        raise UntraceableError(
            f"np.{name}.at is not followed, or writes into an array that the trace cannot see"
        )
    template, rest = tracer.split_key(key)
    value = value if name == "add" else np.negative(tracer.array(value))
    array.write(tracer.apply("add_at", add_at, (array, value, *rest), {"key": template}))

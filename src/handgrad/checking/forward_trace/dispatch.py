"""NumPy's functions as a trace runs them: each becomes one operation, or a few."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from handgrad.checking.forward_trace import statements
from handgrad.checking.forward_trace.statements import Slot
from handgrad.checking.forward_trace.traced_array import TracedArray, UntraceableError
from handgrad.checking.forward_trace.tracer import Tracer

# Operands | options, in the order of NumPy's own arguments. What is not here, nor among the functions below,
# is recorded as one opaque operation with a numerical derivative.
_SIGNATURES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    line.split(":")[0].strip(): (
        tuple(line.split(":")[1].split("|")[0].split()),
        tuple(line.split(":")[1].split("|")[1].split()),
    )
    for line in """
        sum: a | axis dtype out keepdims initial where
        mean: a | axis dtype out keepdims where
        prod: a | axis dtype out keepdims initial where
        max: a | axis out keepdims initial where
        min: a | axis out keepdims initial where
        var: a | axis dtype out ddof keepdims where
        std: a | axis dtype out ddof keepdims where
        cumsum: a | axis dtype out
        cumprod: a | axis dtype out
        all: a | axis out keepdims where
        any: a | axis out keepdims where
        argmax: a | axis out keepdims
        argmin: a | axis out keepdims
        argsort: a | axis kind order
        count_nonzero: a | axis keepdims
        sort: a | axis kind order
        trace: a | offset axis1 axis2 dtype out
        swapaxes: a | axis1 axis2
        moveaxis: a | source destination
        expand_dims: a | axis
        squeeze: a | axis
        broadcast_to: array | shape subok
        repeat: a | repeats axis
        tile: A | reps
        flip: m | axis
        roll: a | shift axis
        rot90: m | k axes
        diag: v | k
        diagonal: a | offset axis1 axis2
        tril: m | k
        triu: m | k
        take: a indices | axis out mode
        take_along_axis: arr indices | axis
        round: a | decimals out
        nan_to_num: x | copy nan posinf neginf
        sinc: x |
        dot: a b | out
        vdot: a b |
        inner: a b |
        outer: a b | out
        tensordot: a b | axes
        kron: a b |
        cross: a b | axisa axisb axisc axis
        sign: x |
        searchsorted: a v | side sorter
        isclose: a b | rtol atol equal_nan
        pad: array | pad_width mode constant_values
    """.strip().splitlines()
}
_LINALG: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "norm": (("x",), ("ord", "axis", "keepdims")),
    "solve": (("a", "b"), ()),
    "inv": (("a",), ()),
    "det": (("a",), ()),
    "cholesky": (("a",), ("upper",)),
}
_ALIASES = {
    "amax": "max",
    "amin": "min",
    "concat": "concatenate",
    "permute_dims": "transpose",
    "round_": "round",
    "around": "round",
    "abs": "absolute",
    "asanyarray": "asarray",
    "asfarray": "asarray",
    "row_stack": "vstack",
    "pow": "power",
    "vecdot": "np.vecdot",
}
SPECIAL: dict[str, Callable[..., Any]] = {}


def special(function: Callable[..., Any]) -> Callable[..., Any]:
    """Register a function ``_name(tracer, *args, **options)`` as NumPy's `name`."""
    SPECIAL[function.__name__.strip("_")] = function
    return function


def call(tracer: Tracer, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Run a function of NumPy, by its name, on traced arguments."""
    name = _ALIASES.get(name, name)
    if name in SPECIAL:
        return SPECIAL[name](tracer, *args, **options)
    if name in _SIGNATURES:
        return _known(tracer, name, getattr(np, name), _SIGNATURES[name], args, options)
    if name.startswith("linalg.") and name[7:] in _LINALG:
        return _known(tracer, name[7:], getattr(np.linalg, name[7:]), _LINALG[name[7:]], args, options)
    function: Any = np
    for part in name.split("."):
        function = getattr(function, part)
    if isinstance(function, np.ufunc):
        return ufunc(tracer, function, "__call__", args, options)
    return opaque(tracer, f"np.{name}", function, args, options)


def call_function(tracer: Tracer, function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Run a function of NumPy that was called with a traced value, as it hands itself over."""
    name, module = getattr(function, "__name__", "function"), getattr(function, "__module__", "")
    if module == "numpy.linalg" and name not in ("outer", "trace", "diagonal", "tensordot", "matmul"):
        name = f"linalg.{name}"
    elif name in ("as_strided", "sliding_window_view"):
        name = f"lib.stride_tricks.{name}"
    elif getattr(np, name, None) is not function and name not in SPECIAL:
        return opaque(tracer, f"{module}.{name}", function, args, options)
    return call(tracer, name, args, options)


_METHODS_TO_OPERATIONS = frozenset((
    "all", "any", "argmax", "argmin", "argsort", "clip", "cumprod", "cumsum", "diagonal", "dot",
    "max", "mean", "min", "prod", "repeat", "round", "searchsorted", "squeeze", "std", "sum",
    "swapaxes", "take", "trace", "var", "nonzero", "choose", "compress", "conj", "reshape",
    "transpose", "ravel",
))  # fmt: skip


def method(
    tracer: Tracer, name: str, array: TracedArray, args: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """Run a method of an array."""
    if name in ("reshape", "transpose") and len(args) > 1:
        args = (args,)
    if name in _METHODS_TO_OPERATIONS:
        return call(tracer, "conjugate" if name == "conj" else name, (array, *args), options)
    if name in ("copy", "flatten", "astype", "item", "tolist"):
        return SPECIAL[name](tracer, array, *args, **options)
    if name == "fill":
        array[...] = args[0]
    elif name == "sort":
        array.assign(call(tracer, "sort", (array, *args), options))
    elif name == "put":
        array.flat[args[0]] = args[1]
    elif name == "conjugate":
        return array
    elif name not in ("setflags",):
        raise UntraceableError(f"the method {name} of an array is not followed")
    return None


def _known(
    tracer: Tracer,
    name: str,
    function: Callable[..., Any],
    signature: tuple[tuple[str, ...], tuple[str, ...]],
    args: tuple[Any, ...],
    options: dict[str, Any],
) -> Any:
    """Run a function whose operands and options are known apart."""
    operand_names, option_names = signature
    count = len(operand_names)
    options = dict(options)
    operands = list(args[:count]) + [options.pop(n) for n in operand_names[len(args) :]]
    options.update(zip(option_names, args[count:], strict=False))
    out = options.pop("out", None)
    if any(isinstance(o, (list, tuple)) for o in operands):
        operands = [
            call(tracer, "asarray", (o,), {}) if isinstance(o, (list, tuple)) else o for o in operands
        ]
    if any(holds_traced(o) for o in options.values()):
        options = {n: _static(o) for n, o in options.items()}
        if any(holds_traced(o) for o in options.values()):
            result = opaque(tracer, f"np.{name}", function, tuple(operands), options)
            return out.assign(result) if out is not None else result
    result = tracer.apply(name, function, operands, options)
    return out.assign(result) if out is not None else result


def _static(option: Any) -> Any:
    """Turn traced integers (an axis, a shift) into plain ones."""
    if type(option) is TracedArray and option.plain().dtype.kind in "iub":
        return option.plain() if option.plain().ndim else option.plain()[()]
    if type(option) is tuple or type(option) is list:
        return type(option)(_static(part) for part in option)
    return option


def as_array(tracer: Tracer, item: Any) -> Any:
    """Return what NumPy's asarray makes of something."""
    return call(tracer, "asarray", (item,), {})


def bare(item: Any) -> Any:
    """Return what a traced value is worth, anything else as it is."""
    return item.plain() if type(item) is TracedArray else item


def holds_traced(item: Any) -> bool:
    """Whether a traced value is somewhere in an argument."""
    if type(item) is TracedArray:
        return True
    if type(item) in (list, tuple):
        return any(holds_traced(part) for part in item)
    return type(item) is dict and any(holds_traced(part) for part in item.values())


# ---------------------------------------------------------------------- any other function


def opaque(
    tracer: Tracer, name: str, function: Callable[..., Any], args: Any, options: dict[str, Any]
) -> Any:
    """Run a function that nothing is known of, as one operation (several, when it returns several arrays)."""
    operands: list[Any] = []
    template = (_template(tuple(args), operands), _template(dict(options), operands))
    plain = [o.plain() for o in operands]
    given_args, given_options = statements.fill(template, plain)
    result = function(*given_args, **given_options)
    fixed = {"function": function, "template": template}
    if isinstance(result, (tuple, list)):
        parts = [
            _opaque_part(tracer, name, operands, {**fixed, "part": k}, part) for k, part in enumerate(result)
        ]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    return _opaque_part(tracer, name, operands, fixed, result)


def _opaque_part(tracer: Tracer, name: str, operands: list[Any], options: dict[str, Any], part: Any) -> Any:
    if not isinstance(part, (np.ndarray, np.generic, float)):
        return part  # a flag, a shape, a dtype: nothing that has a derivative
    return tracer.apply(name, statements.opaque, operands, options)


def _template(item: Any, operands: list[Any]) -> Any:
    if type(item) is TracedArray:
        operands.append(item)
        return Slot(len(operands) - 1)
    if type(item) in (list, tuple):
        return type(item)(_template(part, operands) for part in item)
    if type(item) is dict:
        return {name: _template(part, operands) for name, part in item.items()}
    if isinstance(item, slice):
        return slice(*(_template(part, operands) for part in (item.start, item.stop, item.step)))
    return item


# ---------------------------------------------------------------------- ufuncs and their methods


def ufunc(
    tracer: Tracer, function: np.ufunc, how: str, args: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """Run a ufunc, or its reduce, accumulate, outer or at."""
    name = function.__name__
    if how == "at":
        return _at(tracer, function, *args)
    out = options.pop("out", None)
    if how == "__call__":
        out, args = args[function.nin :] or out, args[: function.nin]
    if type(out) is tuple:
        out = out[0] if out else None
    result = _run_ufunc(tracer, function, name, how, args, options, out)
    if out is None:
        return result
    if type(out) is not TracedArray:
        raise UntraceableError(f"np.{name} writes into an array that the trace cannot see")
    return out.assign(result)


_REDUCTIONS = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min"}


def _run_ufunc(
    tracer: Tracer, function: np.ufunc, name: str, how: str, args: Any, options: dict[str, Any], out: Any
) -> Any:
    args = tuple(as_array(tracer, a) if isinstance(a, (list, tuple)) else a for a in args)
    if how == "__call__" and function.nout == 1:
        where = options.pop("where", True)
        result = tracer.apply(name, function, args, options)
        if where is not True:
            rest = out if type(out) is TracedArray else tracer.constant(np.zeros_like(result.plain()))
            result = call(tracer, "where", (where, result, rest), {})
        return result
    if how == "reduce" and name in _REDUCTIONS:
        return call(tracer, _REDUCTIONS[name], args[:1], _reduce_options(args[1:], options))
    if how == "accumulate" and name in ("add", "multiply"):
        axis = args[1] if len(args) > 1 else options.get("axis", 0)
        return call(tracer, "cumsum" if name == "add" else "cumprod", (args[0], axis), {})
    if how == "outer" and function.nin == 2:
        left, right = (as_array(tracer, a) for a in args[:2])
        left = call(tracer, "reshape", (left, tuple(left.shape) + (1,) * right.ndim), {})
        return tracer.apply(name, function, (left, right), options)
    if how == "__call__":
        return opaque(tracer, f"np.{name}", function, args, options)
    return opaque(tracer, f"np.{name}.{how}", getattr(function, how), args, options)


def _reduce_options(rest: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
    given = dict(zip(("axis", "dtype", "out", "keepdims", "initial", "where"), rest, strict=False)) | options
    given.setdefault("axis", 0)
    given = {
        n: v for n, v in given.items() if not (n in ("dtype", "out") and v is None) and v is not np._NoValue
    }
    if given.get("where") is True:
        del given["where"]
    return given


def _at(tracer: Tracer, function: np.ufunc, array: Any, key: Any, value: Any = None) -> None:
    if type(array) is not TracedArray:
        raise UntraceableError(f"np.{function.__name__}.at writes into an array that the trace cannot see")
    if function.__name__ not in ("add", "subtract"):
        raise UntraceableError(f"np.{function.__name__}.at is not followed")
    if function.__name__ == "subtract":
        value = tracer.apply("negative", np.negative, (value,), {})
    template, rest = tracer.split_key(key)
    if isinstance(value, (list, tuple)):
        value = as_array(tracer, value)
    array.write(tracer.apply("add_at", statements.add_at, (array, value, *rest), {"key": template}))

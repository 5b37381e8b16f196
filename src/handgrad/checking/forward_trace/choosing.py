"""NumPy's functions that choose among entries, weigh them, or write into arrays, as a trace runs them."""

from __future__ import annotations

from typing import Any

import numpy as np

from handgrad.checking.forward_trace import statements
from handgrad.checking.forward_trace.dispatch import SPECIAL, as_array, bare, call, opaque, special, ufunc
from handgrad.checking.forward_trace.traced_array import TracedArray, UntraceableError
from handgrad.checking.forward_trace.tracer import Tracer


@special
def _where(tracer: Tracer, condition: Any, *branches: Any, **named: Any) -> Any:
    if not branches:
        return _nonzero(tracer, condition)
    operands = [as_array(tracer, o) if isinstance(o, (list, tuple)) else o for o in (condition, *branches)]
    return tracer.apply("where", np.where, (*operands, *named.values()), {})


@special
def _nonzero(tracer: Tracer, a: Any) -> Any:
    return tuple(tracer.constant(i) for i in np.nonzero(a.plain() if type(a) is TracedArray else a))


@special
def _clip(tracer: Tracer, a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, **named: Any) -> Any:
    low, high = named.get("min", a_min), named.get("max", a_max)
    if high is None:
        return ufunc(tracer, np.maximum, "__call__", (a, low), {"out": out})
    if low is None:
        return ufunc(tracer, np.minimum, "__call__", (a, high), {"out": out})
    operands = [as_array(tracer, o) if isinstance(o, (list, tuple)) else o for o in (a, low, high)]
    result = tracer.apply("clip", np.clip, operands, {})
    return result if out is None else out.assign(result)


@special
def _select(tracer: Tracer, conditions: Any, choices: Any, default: Any = 0) -> Any:
    result = default
    for condition, choice in reversed(list(zip(conditions, choices, strict=True))):
        result = _where(tracer, condition, choice, result)
    return result


@special
def _ptp(tracer: Tracer, a: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    options = {"axis": axis, "keepdims": keepdims}
    return call(tracer, "max", (a,), options) - call(tracer, "min", (a,), options)


@special
def _average(tracer: Tracer, a: Any, axis: Any = None, weights: Any = None, **rest: Any) -> Any:
    if weights is None and not rest:
        return call(tracer, "mean", (a,), {"axis": axis})
    a, weights = as_array(tracer, a), as_array(tracer, weights)
    if rest or (weights.ndim != a.ndim and not (weights.ndim == 1 and isinstance(axis, int))):
        return opaque(tracer, "np.average", np.average, (a, axis, weights), rest)
    if weights.ndim != a.ndim:
        weights = weights.reshape([-1 if k == axis % a.ndim else 1 for k in range(a.ndim)])
    total = call(tracer, "sum", (weights,), {"axis": axis})
    return call(tracer, "sum", (a * weights,), {"axis": axis}) / total


@special
def _polyval(tracer: Tracer, p: Any, x: Any) -> Any:
    result: Any = np.zeros_like(bare(x))
    for coefficient in as_array(tracer, p):
        result = result * x + coefficient
    return result


def _as_strided(tracer: Tracer, x: Any, *args: Any, **options: Any) -> Any:
    if not bare(x).flags.c_contiguous:
        raise UntraceableError("as_strided of an array that is not contiguous is not followed")
    return opaque(tracer, "np.lib.stride_tricks.as_strided", statements.as_strided, (x, *args), options)


SPECIAL["lib.stride_tricks.as_strided"] = _as_strided


@special
def _einsum(tracer: Tracer, *args: Any, out: Any = None, **options: Any) -> Any:
    if not isinstance(args[0], str):
        return opaque(tracer, "np.einsum", np.einsum, args, options)
    result = tracer.apply("einsum", statements.einsum, args[1:], {"subscripts": args[0], **options})
    return result if out is None else out.assign(result)


@special
def _apply_along_axis(tracer: Tracer, function: Any, axis: int, arr: Any, *args: Any, **options: Any) -> Any:
    moved = call(tracer, "moveaxis", (as_array(tracer, arr), axis, -1), {})
    shape = moved.plain().shape[:-1]
    results = [as_array(tracer, function(moved[where], *args, **options)) for where in np.ndindex(*shape)]
    inner = results[0].plain().shape
    stacked = call(tracer, "stack", (results,), {}).reshape((*shape, *inner))
    return call(tracer, "moveaxis", (stacked, -1, axis), {}) if len(inner) == 1 else stacked


@special
def _copyto(tracer: Tracer, dst: Any, src: Any, where: Any = True, **_: Any) -> None:
    dst[...] = src if where is True else _where(tracer, where, src, dst)


@special
def _fill_diagonal(tracer: Tracer, a: Any, val: Any, wrap: bool = False) -> None:
    n = np.arange(min(a.plain().shape))
    a[(n,) * a.ndim] = val


@special
def _put_along_axis(tracer: Tracer, arr: Any, indices: Any, values: Any, axis: int) -> None:
    plain = indices.plain() if type(indices) is TracedArray else np.asarray(indices)
    key = list(np.indices(plain.shape, sparse=True))
    key[axis % len(key)] = indices
    arr[tuple(key)] = values

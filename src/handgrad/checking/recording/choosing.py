"""NumPy's functions that choose among entries, weigh them, or write into arrays, as a recording runs them."""

from __future__ import annotations

from typing import Any

import numpy as np

from handgrad.checking.recording import primitives
from handgrad.checking.recording.dispatch import SPECIAL, as_array, bare, call, opaque, special, ufunc
from handgrad.checking.recording.tape import Tape
from handgrad.checking.recording.traced import NotRecordedError, Traced


@special
def _where(tape: Tape, condition: Any, *branches: Any, **named: Any) -> Any:
    if not branches:
        return _nonzero(tape, condition)
    operands = [as_array(tape, o) if isinstance(o, (list, tuple)) else o for o in (condition, *branches)]
    return tape.apply("where", np.where, (*operands, *named.values()), {})


@special
def _nonzero(tape: Tape, a: Any) -> Any:
    return tuple(tape.constant(i) for i in np.nonzero(a.plain() if type(a) is Traced else a))


@special
def _clip(tape: Tape, a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, **named: Any) -> Any:
    low, high = named.get("min", a_min), named.get("max", a_max)
    if high is None:
        return ufunc(tape, np.maximum, "__call__", (a, low), {"out": out})
    if low is None:
        return ufunc(tape, np.minimum, "__call__", (a, high), {"out": out})
    operands = [as_array(tape, o) if isinstance(o, (list, tuple)) else o for o in (a, low, high)]
    result = tape.apply("clip", np.clip, operands, {})
    return result if out is None else out.assign(result)


@special
def _select(tape: Tape, conditions: Any, choices: Any, default: Any = 0) -> Any:
    result = default
    for condition, choice in reversed(list(zip(conditions, choices, strict=True))):
        result = _where(tape, condition, choice, result)
    return result


@special
def _ptp(tape: Tape, a: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    options = {"axis": axis, "keepdims": keepdims}
    return call(tape, "max", (a,), options) - call(tape, "min", (a,), options)


@special
def _average(tape: Tape, a: Any, axis: Any = None, weights: Any = None, **rest: Any) -> Any:
    if weights is None and not rest:
        return call(tape, "mean", (a,), {"axis": axis})
    a, weights = as_array(tape, a), as_array(tape, weights)
    if rest or (weights.ndim != a.ndim and not (weights.ndim == 1 and isinstance(axis, int))):
        return opaque(tape, "np.average", np.average, (a, axis, weights), rest)
    if weights.ndim != a.ndim:
        weights = weights.reshape([-1 if k == axis % a.ndim else 1 for k in range(a.ndim)])
    total = call(tape, "sum", (weights,), {"axis": axis})
    return call(tape, "sum", (a * weights,), {"axis": axis}) / total


@special
def _polyval(tape: Tape, p: Any, x: Any) -> Any:
    result: Any = np.zeros_like(bare(x))
    for coefficient in as_array(tape, p):
        result = result * x + coefficient
    return result


def _as_strided(tape: Tape, x: Any, *args: Any, **options: Any) -> Any:
    if not bare(x).flags.c_contiguous:
        raise NotRecordedError("as_strided of an array that is not contiguous is not followed")
    return opaque(tape, "np.lib.stride_tricks.as_strided", primitives.as_strided, (x, *args), options)


SPECIAL["lib.stride_tricks.as_strided"] = _as_strided


@special
def _einsum(tape: Tape, *args: Any, out: Any = None, **options: Any) -> Any:
    if not isinstance(args[0], str):
        return opaque(tape, "np.einsum", np.einsum, args, options)
    result = tape.apply("einsum", primitives.einsum, args[1:], {"subscripts": args[0], **options})
    return result if out is None else out.assign(result)


@special
def _apply_along_axis(tape: Tape, function: Any, axis: int, arr: Any, *args: Any, **options: Any) -> Any:
    moved = call(tape, "moveaxis", (as_array(tape, arr), axis, -1), {})
    shape = moved.plain().shape[:-1]
    results = [as_array(tape, function(moved[where], *args, **options)) for where in np.ndindex(*shape)]
    inner = results[0].plain().shape
    stacked = call(tape, "stack", (results,), {}).reshape((*shape, *inner))
    return call(tape, "moveaxis", (stacked, -1, axis), {}) if len(inner) == 1 else stacked


@special
def _copyto(tape: Tape, dst: Any, src: Any, where: Any = True, **_: Any) -> None:
    dst[...] = src if where is True else _where(tape, where, src, dst)


@special
def _fill_diagonal(tape: Tape, a: Any, val: Any, wrap: bool = False) -> None:
    n = np.arange(min(a.plain().shape))
    a[(n,) * a.ndim] = val


@special
def _put_along_axis(tape: Tape, arr: Any, indices: Any, values: Any, axis: int) -> None:
    plain = indices.plain() if type(indices) is Traced else np.asarray(indices)
    key = list(np.indices(plain.shape, sparse=True))
    key[axis % len(key)] = indices
    arr[tuple(key)] = values

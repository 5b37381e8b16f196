"""NumPy's functions that put arrays together and take them apart, as a trace runs them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from handgrad.checking.forward_trace import statements
from handgrad.checking.forward_trace.dispatch import SPECIAL, as_array, call, opaque, special
from handgrad.checking.forward_trace.traced_array import TracedArray
from handgrad.checking.forward_trace.tracer import Tracer


@special
def _concatenate(
    tracer: Tracer, parts: Any, axis: Any = 0, out: Any = None, dtype: Any = None, **_: Any
) -> Any:
    operands = [as_array(tracer, p) for p in parts]
    result = tracer.apply("concatenate", statements.concatenate, operands, {"axis": axis})
    if dtype is not None:
        result = result.astype(dtype)
    return result if out is None else out.assign(result)


@special
def _stack(tracer: Tracer, parts: Any, axis: int = 0, out: Any = None, dtype: Any = None, **_: Any) -> Any:
    operands = [as_array(tracer, p) if isinstance(p, (list, tuple)) else p for p in parts]
    result = tracer.apply("stack", statements.stack, operands, {"axis": axis})
    if dtype is not None:
        result = result.astype(dtype)
    return result if out is None else out.assign(result)


def _at_least(tracer: Tracer, item: Any, ndim: int) -> Any:
    array = as_array(tracer, item)
    shapes = {0: (1,) * ndim, 1: (1, array.size) if ndim == 2 else (1, array.size, 1)}
    if array.ndim >= ndim:
        return array
    if array.ndim == 2:
        return array[:, :, None]
    return array.reshape((array.size,) if ndim == 1 else shapes[array.ndim])


def _each(results: list[Any]) -> Any:
    return results[0] if len(results) == 1 else tuple(results)


for _n in (1, 2, 3):
    SPECIAL[f"atleast_{_n}d"] = lambda tracer, *items, _n=_n: _each([_at_least(tracer, i, _n) for i in items])


@special
def _vstack(tracer: Tracer, parts: Any, **_: Any) -> Any:
    return _concatenate(tracer, [_at_least(tracer, p, 2) for p in parts], 0)


@special
def _hstack(tracer: Tracer, parts: Any, **_: Any) -> Any:
    arrays = [_at_least(tracer, p, 1) for p in parts]
    return _concatenate(tracer, arrays, 0 if arrays[0].ndim == 1 else 1)


@special
def _dstack(tracer: Tracer, parts: Any, **_: Any) -> Any:
    return _concatenate(tracer, [_at_least(tracer, p, 3) for p in parts], 2)


@special
def _column_stack(tracer: Tracer, parts: Any) -> Any:
    arrays = [as_array(tracer, p) for p in parts]
    return _concatenate(tracer, [a if a.ndim > 1 else a.reshape((-1, 1)) for a in arrays], 1)


@special
def _append(tracer: Tracer, arr: Any, values: Any, axis: Any = None) -> Any:
    if axis is None:
        return _concatenate(tracer, [as_array(tracer, arr).ravel(), as_array(tracer, values).ravel()], 0)
    return _concatenate(tracer, [arr, values], axis)


@special
def _array_split(tracer: Tracer, a: Any, sections: Any, axis: int = 0) -> Any:
    a = as_array(tracer, a)
    pieces = np.array_split(np.arange(a.shape[axis]), sections)
    before = (slice(None),) * (axis % a.ndim)
    starts = np.cumsum([0] + [len(p) for p in pieces])
    if not isinstance(sections, (int, np.integer)):
        return [a[(*before, slice(int(p[0]), int(p[-1]) + 1) if len(p) else slice(0, 0))] for p in pieces]
    return [a[(*before, slice(int(i), int(j)))] for i, j in pairwise(starts)]


@special
def _split(tracer: Tracer, a: Any, sections: Any, axis: int = 0) -> Any:
    if isinstance(sections, (int, np.integer)) and as_array(tracer, a).shape[axis] % sections:
        raise ValueError("array split does not result in an equal division")
    return _array_split(tracer, a, sections, axis)


SPECIAL["vsplit"] = lambda tracer, a, sections: _split(tracer, a, sections, 0)
SPECIAL["hsplit"] = lambda tracer, a, sections: _split(tracer, a, sections, 1 if a.ndim > 1 else 0)
SPECIAL["dsplit"] = lambda tracer, a, sections: _split(tracer, a, sections, 2)
SPECIAL["flipud"] = lambda tracer, m: call(tracer, "flip", (m, 0), {})
SPECIAL["fliplr"] = lambda tracer, m: call(tracer, "flip", (m, 1), {})


@special
def _broadcast_arrays(tracer: Tracer, *arrays: Any, **_: Any) -> Any:
    shape = np.broadcast_shapes(
        *(np.shape(a.plain()) if type(a) is TracedArray else np.shape(a) for a in arrays)
    )
    return tuple(call(tracer, "broadcast_to", (a, shape), {}) for a in arrays)


@special
def _meshgrid(tracer: Tracer, *arrays: Any, indexing: str = "xy", **_: Any) -> Any:
    order = list(range(len(arrays)))
    if indexing == "xy" and len(arrays) > 1:
        order[:2] = [1, 0]
    arrays = tuple(as_array(tracer, a).ravel() for a in arrays)
    shape = tuple(arrays[k].plain().size for k in order)
    results = []
    for k, array in enumerate(arrays):
        placed = array.reshape(tuple(-1 if order[j] == k else 1 for j in range(len(arrays))))
        results.append(call(tracer, "broadcast_to", (placed, shape), {}).copy())
    return results


@special
def _rollaxis(tracer: Tracer, a: Any, axis: int, start: int = 0) -> Any:
    ndim = as_array(tracer, a).ndim
    axis, start = axis % ndim, start + ndim if start < 0 else start
    return call(tracer, "moveaxis", (a, axis, start - 1 if axis < start else start), {})


@special
def _diff(tracer: Tracer, a: Any, n: int = 1, axis: int = -1, **rest: Any) -> Any:
    a = as_array(tracer, a)
    if rest:
        return opaque(tracer, "np.diff", np.diff, (a, n, axis), rest)
    before = (slice(None),) * (axis % a.ndim)
    for _ in range(n):
        a = a[(*before, slice(1, None))] - a[(*before, slice(None, -1))]
    return a

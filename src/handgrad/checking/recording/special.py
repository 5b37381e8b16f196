"""NumPy's functions that a recording takes apart, or whose operands stand in lists."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from handgrad.checking.recording import primitives
from handgrad.checking.recording.dispatch import SPECIAL, call, holds_traced, opaque, special, ufunc
from handgrad.checking.recording.tape import Tape
from handgrad.checking.recording.traced import NotRecordedError, Traced

# ---------------------------------------------------------------------- making arrays


@special
def _array(
    tape: Tape, item: Any, dtype: Any = None, *, copy: Any = True, ndmin: int = 0, order: Any = None, **_: Any
) -> Any:
    if type(item) is Traced:
        result = _copy(tape, item)
    elif holds_traced(item):
        result = _stacked(tape, list(item))
    else:
        return tape.constant(np.array(item, dtype=dtype, ndmin=ndmin))
    if dtype is not None:
        result = _astype(tape, result, dtype)
    while result.ndim < ndmin:
        result = result[None]
    return result


def _stacked(tape: Tape, parts: list[Any]) -> Any:
    parts = [_stacked(tape, list(p)) if isinstance(p, (list, tuple)) else p for p in parts]
    return _stack(tape, parts)


@special
def _fromiter(tape: Tape, items: Any, dtype: Any = None, count: int = -1) -> Any:
    return _array(tape, list(items)[: count if count >= 0 else None], dtype)


@special
def _asarray(tape: Tape, item: Any, dtype: Any = None, **_: Any) -> Any:
    if type(item) is Traced:
        plain = item.plain()
        if dtype is not None and np.dtype(dtype) != plain.dtype:
            return _astype(tape, item, dtype)
        return item if type(plain) is np.ndarray else Traced(tape, np.asarray(plain), item.index())
    return _array(tape, item, dtype)


@special
def _ascontiguousarray(tape: Tape, item: Any, dtype: Any = None, **_: Any) -> Any:
    array = _asarray(tape, item, dtype)
    plain = array.plain()
    if plain.flags.c_contiguous and plain.ndim:
        return array
    return Traced(tape, np.ascontiguousarray(plain), array.index()) if plain.ndim else array[None]


@special
def _copy(tape: Tape, item: Any, order: Any = "C", **_: Any) -> Any:
    array = _asarray(tape, item)
    return Traced(tape, np.array(array.plain(), order=order), array.index())


@special
def _flatten(tape: Tape, item: Any, order: Any = "C") -> Any:
    return _copy(tape, _reshape(tape, item, -1, order=order))


@special
def _astype(tape: Tape, item: Any, dtype: Any, **_: Any) -> Any:
    dtype = np.dtype(dtype)
    array = _asarray(tape, item) if isinstance(item, (list, tuple)) else item
    if array.dtype == dtype:
        return (
            Traced(tape, np.array(array.plain(), order="K")[()], array.index())
            if array.ndim == 0
            else _copy(tape, array, order="K")
        )
    return tape.apply("astype", primitives.astype, (array,), {"dtype": dtype})


@special
def _item(tape: Tape, array: Any, *where: Any) -> Any:
    if where:
        return array[where] if len(where) > 1 else array.flat[where[0]]
    return array.flat[0] if array.ndim else array[()]


@special
def _tolist(tape: Tape, array: Any) -> Any:
    return [_tolist(tape, part) for part in array] if array.ndim else array


@special
def _reshape(
    tape: Tape, a: Any, shape: Any = None, order: str = "C", *, newshape: Any = None, **_: Any
) -> Any:
    shape = shape if shape is not None else newshape
    sizes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    a = _asarray(tape, a)
    if order in ("K", "A"):
        flags = a.plain().flags
        order = "F" if flags.f_contiguous and not flags.c_contiguous else "C"
    options = {"shape": tuple(_plain_size(n) for n in sizes)}
    return tape.apply(
        "reshape", primitives.reshape, (a,), options | ({"order": order} if order != "C" else {})
    )


def _plain_size(size: Any) -> int:
    return size if isinstance(size, int) else int(size)


@special
def _ravel(tape: Tape, a: Any, order: str = "C") -> Any:
    return _reshape(tape, a, -1, order=order)


@special
def _transpose(tape: Tape, a: Any, axes: Any = None) -> Any:
    a = _asarray(tape, a)
    if axes is None and a.ndim < 2:
        return a
    fixed = tuple(range(a.ndim))[::-1] if axes is None else tuple(int(k) % a.ndim for k in axes)
    return tape.apply("transpose", np.transpose, (a,), {"axes": fixed})


@special
def _matrix_transpose(tape: Tape, a: Any) -> Any:
    return call(tape, "swapaxes", (a, -1, -2), {})


# ---------------------------------------------------------------------- putting together and taking apart


@special
def _concatenate(tape: Tape, parts: Any, axis: Any = 0, out: Any = None, dtype: Any = None, **_: Any) -> Any:
    operands = [_asarray(tape, p) for p in parts]
    result = tape.apply("concatenate", primitives.concatenate, operands, {"axis": axis})
    if dtype is not None:
        result = _astype(tape, result, dtype)
    return result if out is None else out.assign(result)


@special
def _stack(tape: Tape, parts: Any, axis: int = 0, out: Any = None, dtype: Any = None, **_: Any) -> Any:
    operands = [_asarray(tape, p) if isinstance(p, (list, tuple)) else p for p in parts]
    result = tape.apply("stack", primitives.stack, operands, {"axis": axis})
    if dtype is not None:
        result = _astype(tape, result, dtype)
    return result if out is None else out.assign(result)


def _at_least(tape: Tape, item: Any, ndim: int) -> Any:
    array = _asarray(tape, item)
    shapes = {0: (1,) * ndim, 1: (1, array.size) if ndim == 2 else (1, array.size, 1)}
    if array.ndim >= ndim:
        return array
    if array.ndim == 2:
        return array[:, :, None]
    return _reshape(tape, array, (array.size,) if ndim == 1 else shapes[array.ndim])


def _each(results: list[Any]) -> Any:
    return results[0] if len(results) == 1 else tuple(results)


for _n in (1, 2, 3):
    SPECIAL[f"atleast_{_n}d"] = lambda tape, *items, _n=_n: _each([_at_least(tape, i, _n) for i in items])


@special
def _vstack(tape: Tape, parts: Any, **_: Any) -> Any:
    return _concatenate(tape, [_at_least(tape, p, 2) for p in parts], 0)


@special
def _hstack(tape: Tape, parts: Any, **_: Any) -> Any:
    arrays = [_at_least(tape, p, 1) for p in parts]
    return _concatenate(tape, arrays, 0 if arrays[0].ndim == 1 else 1)


@special
def _dstack(tape: Tape, parts: Any, **_: Any) -> Any:
    return _concatenate(tape, [_at_least(tape, p, 3) for p in parts], 2)


@special
def _column_stack(tape: Tape, parts: Any) -> Any:
    arrays = [_asarray(tape, p) for p in parts]
    return _concatenate(tape, [a if a.ndim > 1 else _reshape(tape, a, (-1, 1)) for a in arrays], 1)


@special
def _append(tape: Tape, arr: Any, values: Any, axis: Any = None) -> Any:
    if axis is None:
        return _concatenate(tape, [_ravel(tape, arr), _ravel(tape, values)], 0)
    return _concatenate(tape, [arr, values], axis)


@special
def _array_split(tape: Tape, a: Any, sections: Any, axis: int = 0) -> Any:
    a = _asarray(tape, a)
    pieces = np.array_split(np.arange(a.shape[axis]), sections)
    before = (slice(None),) * (axis % a.ndim)
    starts = np.cumsum([0] + [len(p) for p in pieces])
    if not isinstance(sections, (int, np.integer)):
        return [a[(*before, slice(int(p[0]), int(p[-1]) + 1) if len(p) else slice(0, 0))] for p in pieces]
    return [a[(*before, slice(int(i), int(j)))] for i, j in pairwise(starts)]


@special
def _split(tape: Tape, a: Any, sections: Any, axis: int = 0) -> Any:
    if isinstance(sections, (int, np.integer)) and _asarray(tape, a).shape[axis] % sections:
        raise ValueError("array split does not result in an equal division")
    return _array_split(tape, a, sections, axis)


SPECIAL["vsplit"] = lambda tape, a, sections: _split(tape, a, sections, 0)
SPECIAL["hsplit"] = lambda tape, a, sections: _split(tape, a, sections, 1 if a.ndim > 1 else 0)
SPECIAL["dsplit"] = lambda tape, a, sections: _split(tape, a, sections, 2)
SPECIAL["flipud"] = lambda tape, m: call(tape, "flip", (m, 0), {})
SPECIAL["fliplr"] = lambda tape, m: call(tape, "flip", (m, 1), {})


@special
def _broadcast_arrays(tape: Tape, *arrays: Any, **_: Any) -> Any:
    shape = np.broadcast_shapes(*(np.shape(a.plain()) if type(a) is Traced else np.shape(a) for a in arrays))
    return tuple(call(tape, "broadcast_to", (a, shape), {}) for a in arrays)


@special
def _meshgrid(tape: Tape, *arrays: Any, indexing: str = "xy", **_: Any) -> Any:
    order = list(range(len(arrays)))
    if indexing == "xy" and len(arrays) > 1:
        order[:2] = [1, 0]
    arrays = tuple(_ravel(tape, a) for a in arrays)
    shape = tuple(arrays[k].plain().size for k in order)
    results = []
    for k, array in enumerate(arrays):
        placed = _reshape(tape, array, tuple(-1 if order[j] == k else 1 for j in range(len(arrays))))
        results.append(_copy(tape, call(tape, "broadcast_to", (placed, shape), {})))
    return results


@special
def _rollaxis(tape: Tape, a: Any, axis: int, start: int = 0) -> Any:
    ndim = _asarray(tape, a).ndim
    axis, start = axis % ndim, start + ndim if start < 0 else start
    return call(tape, "moveaxis", (a, axis, start - 1 if axis < start else start), {})


@special
def _diff(tape: Tape, a: Any, n: int = 1, axis: int = -1, **rest: Any) -> Any:
    a = _asarray(tape, a)
    if rest:
        return opaque(tape, "np.diff", np.diff, (a, n, axis), rest)
    before = (slice(None),) * (axis % a.ndim)
    for _ in range(n):
        a = a[(*before, slice(1, None))] - a[(*before, slice(None, -1))]
    return a


# ---------------------------------------------------------------------- choosing


@special
def _where(tape: Tape, condition: Any, *branches: Any, **named: Any) -> Any:
    if not branches:
        return _nonzero(tape, condition)
    operands = [_asarray(tape, o) if isinstance(o, (list, tuple)) else o for o in (condition, *branches)]
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
    operands = [_asarray(tape, o) if isinstance(o, (list, tuple)) else o for o in (a, low, high)]
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
    a, weights = _asarray(tape, a), _asarray(tape, weights)
    if rest or (weights.ndim != a.ndim and not (weights.ndim == 1 and isinstance(axis, int))):
        return opaque(tape, "np.average", np.average, (a, axis, weights), rest)
    if weights.ndim != a.ndim:
        weights = _reshape(tape, weights, [-1 if k == axis % a.ndim else 1 for k in range(a.ndim)])
    total = call(tape, "sum", (weights,), {"axis": axis})
    return call(tape, "sum", (a * weights,), {"axis": axis}) / total


@special
def _polyval(tape: Tape, p: Any, x: Any) -> Any:
    result: Any = np.zeros_like(_bare(x))
    for coefficient in _asarray(tape, p):
        result = result * x + coefficient
    return result


def _as_strided(tape: Tape, x: Any, *args: Any, **options: Any) -> Any:
    if not _bare(x).flags.c_contiguous:
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
    moved = call(tape, "moveaxis", (_asarray(tape, arr), axis, -1), {})
    shape = moved.plain().shape[:-1]
    results = [_asarray(tape, function(moved[where], *args, **options)) for where in np.ndindex(*shape)]
    inner = results[0].plain().shape
    stacked = _reshape(tape, _stack(tape, results), (*shape, *inner))
    return call(tape, "moveaxis", (stacked, -1, axis), {}) if len(inner) == 1 else stacked


# ---------------------------------------------------------------------- writing into arrays


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


def _like(tape: Tape, name: str) -> Callable[..., Any]:
    def make(a: Any, *args: Any, **options: Any) -> Any:
        return tape.constant(getattr(np, name)(_bare(a), *args, **options))

    return make


for _name in ("zeros_like", "ones_like", "empty_like"):
    SPECIAL[_name] = lambda tape, *args, _name=_name, **options: _like(tape, _name)(*args, **options)


@special
def _full_like(tape: Tape, a: Any, fill_value: Any, dtype: Any = None, **_: Any) -> Any:
    made = tape.constant(np.zeros_like(_bare(a), dtype=dtype))
    made[...] = fill_value
    return made


@special
def _full(tape: Tape, shape: Any, fill_value: Any, dtype: Any = None, **_: Any) -> Any:
    made = tape.constant(np.zeros(shape, dtype=dtype or np.asarray(_bare(fill_value)).dtype))
    made[...] = fill_value
    return made


SPECIAL["linalg.slogdet"] = lambda tape, a: (
    tape.constant(np.linalg.slogdet(a.plain())[0]),
    tape.apply("logabsdet", primitives.logabsdet, (a,), {}),
)
SPECIAL["shape"] = lambda tape, a: _asarray(tape, a).shape
SPECIAL["ndim"] = lambda tape, a: _asarray(tape, a).ndim
SPECIAL["size"] = lambda tape, a, axis=None: (
    _asarray(tape, a).size if axis is None else _asarray(tape, a).shape[axis]
)
SPECIAL["result_type"] = lambda tape, *items: np.result_type(
    *(i.plain() if type(i) is Traced else i for i in items)
)
SPECIAL["allclose"] = lambda tape, *args, **options: np.allclose(*(_bare(a) for a in args), **options)
SPECIAL["array_equal"] = lambda tape, *args, **options: np.array_equal(*(_bare(a) for a in args), **options)
SPECIAL["may_share_memory"] = SPECIAL["shares_memory"] = lambda tape, *args: False
SPECIAL["iscomplexobj"] = lambda tape, a: False
SPECIAL["isscalar"] = lambda tape, a: np.isscalar(_bare(a))
SPECIAL["ndenumerate"] = lambda tape, a: ((where, a[where]) for where in np.ndindex(*np.shape(_bare(a))))


def _bare(item: Any) -> Any:
    return item.plain() if type(item) is Traced else item

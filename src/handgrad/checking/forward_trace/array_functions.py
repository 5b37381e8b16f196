"""The functions of NumPy that a trace runs in its own way: what is no array operation, or written in C."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from handgrad.checking.forward_trace.numpy_functions import SPECIAL, opaque, special
from handgrad.checking.forward_trace.operation import as_strided
from handgrad.checking.forward_trace.traced_array import TracedArray, UntraceableError
from handgrad.checking.forward_trace.tracer import Tracer, bare, holds_traced

# ---------------------------------------------------------------------- arrays made, copied, converted


@special
def _array(tracer: Tracer, item: Any, dtype: Any = None, *, ndmin: int = 0, **_: Any) -> Any:
    if not holds_traced(item):
        return tracer.constant(np.array(item, dtype=dtype, ndmin=ndmin))
    result = _copy(tracer, item) if type(item) is TracedArray else tracer.array(item)
    if dtype is not None:
        result = result.astype(dtype)
    return result[(None,) * (ndmin - result.ndim)] if result.ndim < ndmin else result


@special
def _asarray(tracer: Tracer, item: Any, dtype: Any = None, **_: Any) -> Any:
    if type(item) is not TracedArray:
        return _array(tracer, item, dtype)
    if dtype is not None and np.dtype(dtype) != item.dtype:
        return item.astype(dtype)
    plain = item.plain()
    return item if type(plain) is np.ndarray else TracedArray(tracer, np.asarray(plain), item.index())


@special
def _ascontiguousarray(tracer: Tracer, item: Any, dtype: Any = None, **_: Any) -> Any:
    return _copy(tracer, _asarray(tracer, item, dtype))


@special
def _copy(tracer: Tracer, item: Any, order: Any = "C", **_: Any) -> Any:
    array = tracer.array(item)
    return TracedArray(tracer, np.array(array.plain(), order=order), array.index())


@special
def _flatten(tracer: Tracer, item: Any, order: Any = "C") -> Any:
    return _copy(tracer, np.reshape(item, -1, order=order))


@special
def _astype(tracer: Tracer, item: Any, dtype: Any, **_: Any) -> Any:
    array, dtype = tracer.array(item), np.dtype(dtype)
    if array.dtype != dtype:
        return tracer.apply("astype", np.ndarray.astype, (array,), {"dtype": dtype})
    plain = np.array(array.plain(), order="K")
    return TracedArray(tracer, plain if array.ndim else plain[()], array.index())


@special
def _item(_: Tracer, array: Any, *where: Any) -> Any:
    if where:
        return array[where] if len(where) > 1 else array.flat[where[0]]
    return array.flat[0] if array.ndim else array[()]


@special
def _tolist(tracer: Tracer, array: Any) -> Any:
    return [_tolist(tracer, part) for part in array] if array.ndim else array


@special
def _empty_like(tracer: Tracer, a: Any, *args: Any, **options: Any) -> Any:
    return tracer.constant(np.empty_like(bare(a), *args, **options))


# ---------------------------------------------------------------------- in another shape, chosen, joined, multiplied


@special
def _reshape(tracer: Tracer, a: Any, shape: Any, order: str = "C", **_: Any) -> Any:
    a = _asarray(tracer, a)
    if order in ("K", "A"):
        order = "F" if a.flags.f_contiguous and not a.flags.c_contiguous else "C"
    sizes = tuple(shape) if np.ndim(bare(shape)) else (shape,)
    options = {"shape": tuple(n if isinstance(n, int) else int(n) for n in sizes)}
    return tracer.apply("reshape", np.reshape, (a,), options | ({"order": order} if order != "C" else {}))


@special
def _ravel(tracer: Tracer, a: Any, order: str = "C") -> Any:
    a = _asarray(tracer, a)
    return a if a.ndim == 1 else np.reshape(a, -1, order=order)  # type: ignore[call-overload]


@special
def _transpose(tracer: Tracer, a: Any, axes: Any = None) -> Any:
    a = _asarray(tracer, a)
    if axes is None and a.ndim < 2:
        return a
    fixed = tuple(range(a.ndim))[::-1] if axes is None else tuple(int(k) % a.ndim for k in axes)
    return tracer.apply("transpose", np.transpose, (a,), {"axes": fixed})


@special
def _expand_dims(tracer: Tracer, a: Any, axis: Any) -> Any:
    a, axes = _asarray(tracer, a), tuple(int(k) for k in np.atleast_1d(bare(axis)))
    fixed = tuple(sorted(k % (a.ndim + len(axes)) for k in axes))
    return tracer.apply("expand_dims", np.expand_dims, (a,), {"axis": fixed}) if axes else a


@special
def _trace(_: Tracer, a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, **options: Any) -> Any:
    return np.diagonal(a, offset, axis1, axis2).sum(-1, **options)


def _joined(function: Any) -> Any:
    return lambda *parts, axis: function(parts, axis=axis)


@special
def _concatenate(tracer: Tracer, parts: Any, axis: Any = 0, dtype: Any = None, **_: Any) -> Any:
    operands = [tracer.array(p) if axis is not None else _ravel(tracer, p) for p in parts]
    result = tracer.apply("concatenate", _joined(np.concatenate), operands, {"axis": axis or 0})
    return result if dtype is None else result.astype(dtype)


@special
def _stack(tracer: Tracer, parts: Any, axis: int = 0, dtype: Any = None, **_: Any) -> Any:
    result = tracer.apply("stack", _joined(np.stack), parts, {"axis": axis})
    return result if dtype is None else result.astype(dtype)


@special
def _array_split(tracer: Tracer, a: Any, sections: Any, axis: int = 0) -> Any:
    a = tracer.array(a)
    numbers = np.array_split(np.arange(a.shape[axis]), bare(sections))
    ends = np.cumsum([0, *map(len, numbers)]).tolist()
    return [a[(*[slice(None)] * (axis % a.ndim), slice(*two))] for two in pairwise(ends)]


@special
def _where(tracer: Tracer, condition: Any, *branches: Any, **named: Any) -> Any:
    if not branches:
        return opaque(tracer, "np.nonzero", np.nonzero, (condition,), {})
    return tracer.apply("where", np.where, (condition, *branches, *named.values()), {})


@special
def _clip(tracer: Tracer, a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, **named: Any) -> Any:
    a, low, high = tracer.array(a), named.get("min", a_min), named.get("max", a_max)
    if high is None:
        return np.maximum(a, low, out=out)
    if low is None:
        return np.minimum(a, high, out=out)
    result = tracer.apply("clip", np.clip, (a, low, high), {})
    return result if out is None else out.assign(result)


@special
def _select(tracer: Tracer, conditions: Any, choices: Any, default: Any = 0) -> Any:
    result = default
    for condition, choice in reversed(list(zip(conditions, choices, strict=True))):
        result = _where(tracer, condition, choice, result)
    return result


@special
def _take(tracer: Tracer, a: Any, indices: Any, axis: Any = None, *, mode: str = "raise") -> Any:
    if mode != "raise":
        return opaque(tracer, "np.take", np.take, (a, indices), {"axis": axis, "mode": mode})
    a = _ravel(tracer, a) if axis is None else tracer.array(a)
    key = (slice(None),) * (0 if axis is None else axis % a.ndim)
    return a[(*key, tracer.array(indices))].copy()


@special
def _copyto(_: Tracer, dst: Any, src: Any, where: Any = True, **_options: Any) -> None:
    dst[...] = src if where is True else np.where(where, src, dst)


@special
def _dot(tracer: Tracer, a: Any, b: Any) -> Any:
    a, b = tracer.array(a), tracer.array(b)
    if not a.ndim or not b.ndim:
        return np.multiply(a, b)
    if b.ndim == 1 or (a.ndim <= 2 and b.ndim == 2):
        return tracer.apply("matmul", np.dot, (a, b), {})
    return _contraction(tracer, np.dot, a, b, [a.ndim - 1], [b.ndim - 2])


@special
def _inner(tracer: Tracer, a: Any, b: Any) -> Any:
    b = tracer.array(b)
    return _dot(tracer, a, b if b.ndim < 2 else np.swapaxes(b, -1, -2))


@special
def _tensordot(tracer: Tracer, a: Any, b: Any, axes: Any = 2) -> Any:
    a, b = tracer.array(a), tracer.array(b)
    left, right = (range(-axes, 0), range(axes)) if isinstance(axes, (int, np.integer)) else axes
    return _contraction(
        tracer, np.tensordot, a, b,
        [int(k) % a.ndim for k in np.atleast_1d(left)], [int(k) % b.ndim for k in np.atleast_1d(right)], axes=axes,
    )  # fmt: skip


def _contraction(
    tracer: Tracer, function: Any, a: Any, b: Any, left: list[int], right: list[int], **options: Any
) -> Any:
    """Record a sum over pairs of axes as the einsum that it is; `function` gives its last bits."""
    letters = iter("ijklmnopqrstuvwxyzabcdefgh")
    shared = [next(letters) for _ in left]
    terms = [
        [shared[own.index(k)] if k in own else next(letters) for k in range(item.ndim)]
        for item, own in ((a, left), (b, right))
    ]
    free = [n for n in terms[0] + terms[1] if n not in shared]
    subscripts = f"{''.join(terms[0])},{''.join(terms[1])}->{''.join(free)}"
    return tracer.apply(
        "einsum", lambda a, b, subscripts: function(a, b, **options), (a, b), {"subscripts": subscripts}
    )


@special
def _einsum(tracer: Tracer, *args: Any, **options: Any) -> Any:
    if not isinstance(args[0], str):
        return opaque(tracer, "np.einsum", np.einsum, args, options)

    def compute(*operands: Any, subscripts: str, **rest: Any) -> Any:
        return np.einsum(subscripts, *operands, **rest)

    return tracer.apply("einsum", compute, args[1:], {"subscripts": args[0], **options})


def _as_strided(tracer: Tracer, x: Any, *args: Any, **options: Any) -> Any:
    if not bare(x).flags.c_contiguous:
        raise UntraceableError("as_strided of an array that is not contiguous is not followed")
    return opaque(tracer, "np.lib.stride_tricks.as_strided", as_strided, (x, *args), options)


def _slogdet(tracer: Tracer, a: Any) -> Any:
    sign = tracer.constant(np.linalg.slogdet(bare(a))[0])
    return sign, tracer.apply("logabsdet", lambda a: np.linalg.slogdet(a)[1], (a,), {})


SPECIAL["asanyarray"] = _asarray
SPECIAL["lib.stride_tricks.as_strided"] = _as_strided
SPECIAL["linalg.slogdet"] = _slogdet

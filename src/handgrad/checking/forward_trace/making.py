"""NumPy's functions that make arrays, or the same array in another form, as a trace runs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from handgrad.checking.forward_trace import statements
from handgrad.checking.forward_trace.dispatch import SPECIAL, bare, call, holds_traced, special
from handgrad.checking.forward_trace.traced_array import TracedArray
from handgrad.checking.forward_trace.tracer import Tracer


@special
def _array(
    tracer: Tracer,
    item: Any,
    dtype: Any = None,
    *,
    copy: Any = True,
    ndmin: int = 0,
    order: Any = None,
    **_: Any,
) -> Any:
    if type(item) is TracedArray:
        result = _copy(tracer, item)
    elif holds_traced(item):
        result = _stacked(tracer, list(item))
    else:
        return tracer.constant(np.array(item, dtype=dtype, ndmin=ndmin))
    if dtype is not None:
        result = _astype(tracer, result, dtype)
    while result.ndim < ndmin:
        result = result[None]
    return result


def _stacked(tracer: Tracer, parts: list[Any]) -> Any:
    parts = [_stacked(tracer, list(p)) if isinstance(p, (list, tuple)) else p for p in parts]
    return call(tracer, "stack", (parts,), {})


@special
def _fromiter(tracer: Tracer, items: Any, dtype: Any = None, count: int = -1) -> Any:
    return _array(tracer, list(items)[: count if count >= 0 else None], dtype)


@special
def _asarray(tracer: Tracer, item: Any, dtype: Any = None, **_: Any) -> Any:
    if type(item) is TracedArray:
        plain = item.plain()
        if dtype is not None and np.dtype(dtype) != plain.dtype:
            return _astype(tracer, item, dtype)
        return item if type(plain) is np.ndarray else TracedArray(tracer, np.asarray(plain), item.index())
    return _array(tracer, item, dtype)


@special
def _ascontiguousarray(tracer: Tracer, item: Any, dtype: Any = None, **_: Any) -> Any:
    array = _asarray(tracer, item, dtype)
    plain = array.plain()
    if plain.flags.c_contiguous and plain.ndim:
        return array
    return TracedArray(tracer, np.ascontiguousarray(plain), array.index()) if plain.ndim else array[None]


@special
def _copy(tracer: Tracer, item: Any, order: Any = "C", **_: Any) -> Any:
    array = _asarray(tracer, item)
    return TracedArray(tracer, np.array(array.plain(), order=order), array.index())


@special
def _flatten(tracer: Tracer, item: Any, order: Any = "C") -> Any:
    return _copy(tracer, _reshape(tracer, item, -1, order=order))


@special
def _astype(tracer: Tracer, item: Any, dtype: Any, **_: Any) -> Any:
    dtype = np.dtype(dtype)
    array = _asarray(tracer, item) if isinstance(item, (list, tuple)) else item
    if array.dtype == dtype and array.ndim == 0:
        return TracedArray(tracer, np.array(array.plain(), order="K")[()], array.index())
    if array.dtype == dtype:
        return _copy(tracer, array, order="K")
    return tracer.apply("astype", statements.astype, (array,), {"dtype": dtype})


@special
def _item(tracer: Tracer, array: Any, *where: Any) -> Any:
    if where:
        return array[where] if len(where) > 1 else array.flat[where[0]]
    return array.flat[0] if array.ndim else array[()]


@special
def _tolist(tracer: Tracer, array: Any) -> Any:
    return [_tolist(tracer, part) for part in array] if array.ndim else array


@special
def _reshape(
    tracer: Tracer, a: Any, shape: Any = None, order: str = "C", *, newshape: Any = None, **_: Any
) -> Any:
    shape = shape if shape is not None else newshape
    sizes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    a = _asarray(tracer, a)
    if order in ("K", "A"):
        flags = a.plain().flags
        order = "F" if flags.f_contiguous and not flags.c_contiguous else "C"
    options = {"shape": tuple(_plain_size(n) for n in sizes)}
    return tracer.apply(
        "reshape", statements.reshape, (a,), options | ({"order": order} if order != "C" else {})
    )


def _plain_size(size: Any) -> int:
    return size if isinstance(size, int) else int(size)


@special
def _ravel(tracer: Tracer, a: Any, order: str = "C") -> Any:
    return _reshape(tracer, a, -1, order=order)


@special
def _transpose(tracer: Tracer, a: Any, axes: Any = None) -> Any:
    a = _asarray(tracer, a)
    if axes is None and a.ndim < 2:
        return a
    fixed = tuple(range(a.ndim))[::-1] if axes is None else tuple(int(k) % a.ndim for k in axes)
    return tracer.apply("transpose", np.transpose, (a,), {"axes": fixed})


@special
def _matrix_transpose(tracer: Tracer, a: Any) -> Any:
    return call(tracer, "swapaxes", (a, -1, -2), {})


def _like(tracer: Tracer, name: str) -> Callable[..., Any]:
    def make(a: Any, *args: Any, **options: Any) -> Any:
        return tracer.constant(getattr(np, name)(bare(a), *args, **options))

    return make


for _name in ("zeros_like", "ones_like", "empty_like"):
    SPECIAL[_name] = lambda tracer, *args, _name=_name, **options: _like(tracer, _name)(*args, **options)


@special
def _full_like(tracer: Tracer, a: Any, fill_value: Any, dtype: Any = None, **_: Any) -> Any:
    made = tracer.constant(np.zeros_like(bare(a), dtype=dtype))
    made[...] = fill_value
    return made


@special
def _full(tracer: Tracer, shape: Any, fill_value: Any, dtype: Any = None, **_: Any) -> Any:
    made = tracer.constant(np.zeros(shape, dtype=dtype or np.asarray(bare(fill_value)).dtype))
    made[...] = fill_value
    return made


SPECIAL["linalg.slogdet"] = lambda tracer, a: (
    tracer.constant(np.linalg.slogdet(a.plain())[0]),
    tracer.apply("logabsdet", statements.logabsdet, (a,), {}),
)
SPECIAL["shape"] = lambda tracer, a: _asarray(tracer, a).shape
SPECIAL["ndim"] = lambda tracer, a: _asarray(tracer, a).ndim
SPECIAL["size"] = lambda tracer, a, axis=None: (
    _asarray(tracer, a).size if axis is None else _asarray(tracer, a).shape[axis]
)
SPECIAL["result_type"] = lambda tracer, *items: np.result_type(
    *(i.plain() if type(i) is TracedArray else i for i in items)
)
SPECIAL["allclose"] = lambda tracer, *args, **options: np.allclose(*(bare(a) for a in args), **options)
SPECIAL["array_equal"] = lambda tracer, *args, **options: np.array_equal(*(bare(a) for a in args), **options)
SPECIAL["may_share_memory"] = SPECIAL["shares_memory"] = lambda tracer, *args: False
SPECIAL["iscomplexobj"] = lambda tracer, a: False
SPECIAL["isscalar"] = lambda tracer, a: np.isscalar(bare(a))
SPECIAL["ndenumerate"] = lambda tracer, a: ((where, a[where]) for where in np.ndindex(*np.shape(bare(a))))

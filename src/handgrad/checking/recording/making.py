"""NumPy's functions that make arrays, or the same array in another form, as a recording runs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from handgrad.checking.recording import primitives
from handgrad.checking.recording.dispatch import SPECIAL, bare, call, holds_traced, special
from handgrad.checking.recording.tape import Tape
from handgrad.checking.recording.traced import Traced


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
    return call(tape, "stack", (parts,), {})


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
    if array.dtype == dtype and array.ndim == 0:
        return Traced(tape, np.array(array.plain(), order="K")[()], array.index())
    if array.dtype == dtype:
        return _copy(tape, array, order="K")
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


def _like(tape: Tape, name: str) -> Callable[..., Any]:
    def make(a: Any, *args: Any, **options: Any) -> Any:
        return tape.constant(getattr(np, name)(bare(a), *args, **options))

    return make


for _name in ("zeros_like", "ones_like", "empty_like"):
    SPECIAL[_name] = lambda tape, *args, _name=_name, **options: _like(tape, _name)(*args, **options)


@special
def _full_like(tape: Tape, a: Any, fill_value: Any, dtype: Any = None, **_: Any) -> Any:
    made = tape.constant(np.zeros_like(bare(a), dtype=dtype))
    made[...] = fill_value
    return made


@special
def _full(tape: Tape, shape: Any, fill_value: Any, dtype: Any = None, **_: Any) -> Any:
    made = tape.constant(np.zeros(shape, dtype=dtype or np.asarray(bare(fill_value)).dtype))
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
SPECIAL["allclose"] = lambda tape, *args, **options: np.allclose(*(bare(a) for a in args), **options)
SPECIAL["array_equal"] = lambda tape, *args, **options: np.array_equal(*(bare(a) for a in args), **options)
SPECIAL["may_share_memory"] = SPECIAL["shares_memory"] = lambda tape, *args: False
SPECIAL["iscomplexobj"] = lambda tape, a: False
SPECIAL["isscalar"] = lambda tape, a: np.isscalar(bare(a))
SPECIAL["ndenumerate"] = lambda tape, a: ((where, a[where]) for where in np.ndindex(*np.shape(bare(a))))

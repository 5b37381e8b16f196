"""Arrays that stand for their shape and type: lines run on them without computing or holding all the numbers.

Each is one number, seen everywhere: NumPy's own functions compute with that number, and what they make has the shape that
they would make.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from handgrad.arrays import Array


class Everywhere(np.ndarray[Any, Any]):
    """One number in every place of an array."""

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *given: Any, out: Any = None, **options: Any
    ) -> Any:
        """Compute with the one number; ``out`` is not written to, and what would be in it is returned."""
        plain = [each.view(np.ndarray) if isinstance(each, Everywhere) else each for each in given]
        if method == "at":
            return None
        if method == "reduce":
            return _reduced(ufunc, plain[0], **options)
        if method != "__call__":
            return getattr(ufunc, method)(*plain, **options)
        try:
            shape = _product(plain) if ufunc is np.matmul else np.broadcast_shapes(*map(np.shape, plain))
        except ValueError:
            return ufunc(*plain, **options)  # NumPy's own error
        ones = [_one(each) for each in plain]
        made = ones[0] * ones[1] if ufunc is np.matmul else ufunc(*ones, **options)
        if out is not None:
            made = np.asarray(made).astype(out[0].dtype)
        if isinstance(made, tuple):
            return tuple(everywhere(each, shape) for each in made)
        return everywhere(made, shape)

    def __array_function__(self, function: Any, types: Any, given: Any, options: Any) -> Any:
        """Compute with the one number where a function works on each number by itself."""
        if function is np.where and len(given) == 3:
            shape = np.broadcast_shapes(*map(np.shape, given))
            return everywhere(np.where(*map(_one, given)), shape)
        if function in (np.zeros_like, np.ones_like, np.full_like):
            return everywhere(function(_one(given[0]), *given[1:], **options), given[0].shape)
        return super().__array_function__(function, types, given, options)

    def astype(self, dtype: Any, *given: Any, **options: Any) -> Any:
        """Convert the one number."""
        return everywhere(_one(self).astype(dtype), self.shape)


def everywhere(number: Any, shape: Sequence[int]) -> Any:
    """Return an array of this shape that has one number in every place; without axes, the number."""
    return np.broadcast_to(np.asarray(number), tuple(shape)).view(Everywhere) if len(shape) else number


def _one(each: Any) -> Any:
    """Return one number of an array, as an array without axes; what is no array, as it is."""
    if not isinstance(each, np.ndarray):
        return each
    return np.asarray(each)[(0,) * each.ndim]


def _product(given: Sequence[Array]) -> tuple[int, ...]:
    a, b = (np.shape(each) for each in given)
    if len(a) < 2 or len(b) < 2 or a[-1] != b[-2]:
        raise ValueError
    return (*np.broadcast_shapes(a[:-2], b[:-2]), a[-2], b[-1])


def _reduced(
    ufunc: np.ufunc, array: Array, axis: Any = 0, dtype: Any = None, *, keepdims: bool = False, **rest: Any
) -> Any:
    ndim = array.ndim
    axes = range(ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    over = {each % ndim for each in axes}
    sizes = [(1 if k in over else size) for k, size in enumerate(array.shape) if keepdims or k not in over]
    few = ufunc.reduce(np.asarray(_one(array))[None], axis=0, dtype=dtype)
    return everywhere(few, sizes)

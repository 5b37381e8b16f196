"""NumPy's counterparts of PyTorch's functions, by name: an axis is called ``axis``, and the tables say of which names.

They are what forwards run on to be traced, so they are built of what a trace knows. An option that one does not take
makes it raise, and only the diagnosis by a trace is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from handgrad.checking.interfaces.neural_counterparts import LAYERS, LOSSES, NEURAL


class Extremes(NamedTuple):
    """What ``max`` and ``min`` along an axis return."""

    values: Any
    indices: Any


def _extremes(largest: bool) -> Callable[..., Any]:
    both, every, places = (np.maximum, np.max, np.argmax) if largest else (np.minimum, np.min, np.argmin)

    def of(x: Any, axis: Any = None, keepdims: bool = False, other: Any = None) -> Any:
        if axis is None:
            return every(x) if other is None else both(x, other)
        if not isinstance(axis, int):
            return both(x, axis)
        return Extremes(every(x, axis=axis, keepdims=keepdims), places(x, axis=axis, keepdims=keepdims))

    return of


def _along(x: Any, axis: int, index: Any) -> tuple[Any, ...]:
    """Return the key of the entries that an array of indices along an axis picks."""
    shape = np.shape(index)
    key = [np.arange(n).reshape(-1, *(1 for _ in shape[k + 1 :])) for k, n in enumerate(shape)]
    key[axis] = index
    return tuple(key)


def _scattered(x: Any, axis: int, index: Any, values: Any, *, added: bool = False) -> Any:
    """Return a copy with values at some entries, or added to them."""
    result, key = np.copy(x), _along(x, axis, index)
    if isinstance(values, np.ndarray):
        values = values[tuple(slice(n) for n in np.shape(index))]
    if added:
        np.add.at(result, key, values)
    else:
        result[key] = values
    return result


def _split(x: Any, size: int | list[int], axis: int = 0) -> tuple[Any, ...]:
    length = np.shape(x)[axis]
    sizes = [size] * -(-length // size) if isinstance(size, int) else list(size)
    ends = np.cumsum(sizes)
    before = (slice(None),) * (axis % np.ndim(x))
    return tuple(x[(*before, slice(end - n, end))] for n, end in zip(sizes, ends, strict=True))


def _chunk(x: Any, count: int, axis: int = 0) -> tuple[Any, ...]:
    return _split(x, -(-np.shape(x)[axis] // count), axis)


def _expanded(x: Any, *shape: Any) -> Any:
    shape = tuple(unpacked(shape))
    own = (1,) * (len(shape) - np.ndim(x)) + np.shape(x)
    return np.broadcast_to(x, tuple(n if n >= 0 else m for n, m in zip(shape, own, strict=True)))


def _flattened(x: Any, start: int = 0, end: int = -1) -> Any:
    shape, end = np.shape(x), end % np.ndim(x)
    return np.reshape(x, (*shape[:start], -1, *shape[end + 1 :]))


def _number(x: Any) -> Any:
    return x if x.dtype.kind == "f" else x * 1.0


def unpacked(shape: tuple[Any, ...]) -> Any:
    """Return sizes or axes that are given as one argument or as several."""
    return shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape


def _variance(
    x: Any, axis: Any = None, keepdims: bool = False, unbiased: bool = True, correction: int = 1
) -> Any:
    return np.var(x, axis=axis, keepdims=keepdims, ddof=correction if unbiased else 0)


def _clamp(x: Any, min: Any = None, max: Any = None) -> Any:  # noqa: A002 - torch's names
    return np.clip(x, min, max)


def _same(x: Any, *args: Any, **options: Any) -> Any:
    return x


def _var_mean(x: Any, **options: Any) -> Any:
    axes = {name: value for name, value in options.items() if name in ("axis", "keepdims")}
    return _variance(x, **options), np.mean(x, **axes)


def _sorted(x: Any, axis: int = -1, descending: bool = False, stable: bool = False) -> Any:
    order = np.argsort(-x if descending else x, axis=axis, kind="stable")
    return Extremes(np.take_along_axis(x, order, axis), order)


def _top(x: Any, k: int, axis: int = -1, largest: bool = True, sorted: bool = True) -> Any:  # noqa: A002 - torch's
    first = (slice(None),) * (axis % np.ndim(x)) + (slice(k),)
    return Extremes(*(each[first] for each in _sorted(x, axis, largest)))


def _index_added(x: Any, axis: int, index: Any, values: Any, alpha: float = 1) -> Any:
    result = np.copy(x)
    np.add.at(result, (slice(None),) * (axis % np.ndim(x)) + (index,), alpha * values)
    return result


def _index_put(x: Any, key: Any, values: Any, accumulate: bool = False) -> Any:
    result = np.copy(x)
    if accumulate:
        np.add.at(result, tuple(key), values)
    else:
        result[tuple(key)] = values
    return result


def _added(factor: float) -> Callable[..., Any]:
    def of(x: Any, y: Any, alpha: float = 1) -> Any:
        if factor * alpha == 1:
            return np.add(x, y)
        return np.subtract(x, y) if factor * alpha == -1 else x + factor * alpha * y

    return of


def _product_added(x: Any, a: Any, b: Any, beta: float = 1, alpha: float = 1) -> Any:
    product = np.matmul(a, b)
    return (x if beta == 1 else beta * x) + (product if alpha == 1 else alpha * product)


# --------------------------------------------------------------------------------------------------- tables

ALONG_AXIS: dict[str, Callable[..., Any]] = {
    "sum": np.sum, "mean": np.mean, "prod": np.prod, "amax": np.max, "amin": np.min, "cumsum": np.cumsum,
    "cumprod": np.cumprod, "stack": np.stack, **dict.fromkeys(("cat", "concat"), np.concatenate),
    "squeeze": np.squeeze, "unsqueeze": np.expand_dims,
    "var": _variance, "std": lambda x, **options: np.sqrt(_variance(x, **options)), "var_mean": _var_mean,
    "argmax": np.argmax, "argmin": np.argmin, "max": _extremes(True), "min": _extremes(False), "flip": np.flip,
    **{name: NEURAL[name] for name in ("softmax", "log_softmax", "logsumexp", "glu")},
}  # fmt: skip
"""What may be given an axis, and whether it is kept, by position."""

OPERATORS: dict[str, Callable[..., Any]] = {
    "add": _added(1), "sub": _added(-1), "mul": np.multiply, "truediv": np.divide, "pow": np.power, "matmul": np.matmul,
    "mod": np.mod, "floordiv": np.floor_divide, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal, "and": np.logical_and, "or": np.logical_or,
    "neg": np.negative, "invert": np.logical_not, "abs": np.abs,
}  # fmt: skip

SHAPES: dict[str, Callable[..., Any]] = {
    "flatten": _flattened, "expand": _expanded, "t": np.transpose, "transpose": np.swapaxes, "ravel": np.ravel,
    **dict.fromkeys(("reshape", "view"), lambda x, *shape: np.reshape(x, unpacked(shape))),
    **dict.fromkeys(("reshape_as", "view_as"), lambda x, other: np.reshape(x, np.shape(other))),
    "expand_as": lambda x, other: np.broadcast_to(x, np.shape(other)),
    "permute": lambda x, *axes, axis=None: np.transpose(x, axis or unpacked(axes)),
    **dict.fromkeys(("movedim", "moveaxis"), np.moveaxis), **dict.fromkeys(("swapdims", "swapaxes"), np.swapaxes),
    "split": _split, "chunk": _chunk, "unbind": lambda x, axis=0: tuple(np.moveaxis(x, axis, 0)),
    **dict.fromkeys(("repeat", "tile"), lambda x, *counts, axis=None: np.tile(x, axis or unpacked(counts))),
    "repeat_interleave": np.repeat, "roll": lambda x, shifts, axis=None: np.roll(x, shifts, axis),
    "tril": lambda x, diagonal=0: np.tril(x, diagonal), "triu": lambda x, diagonal=0: np.triu(x, diagonal),
    "diag": lambda x, diagonal=0: np.diag(x, diagonal), "trace": np.trace,
    "diagonal": lambda x, offset=0, axis1=0, axis2=1: np.diagonal(x, offset, axis1, axis2),
}  # fmt: skip

INDEXED: dict[str, Callable[..., Any]] = {
    "where": np.where, "masked_select": lambda x, mask: x[mask],
    "masked_fill": lambda x, mask, value: np.where(mask, value, x),
    "gather": lambda x, axis, index: x[_along(x, axis, index)], "index_add": _index_added, "index_put": _index_put,
    "take_along_dim": lambda x, index, axis: np.take_along_axis(x, index, axis),
    **dict.fromkeys(("select", "index_select"), lambda x, axis, index: np.take(x, index, axis)),
    "narrow": lambda x, axis, start, length: np.take(x, np.arange(start, start + length), axis),
    "scatter": _scattered, "scatter_add": partial(_scattered, added=True), "sort": _sorted, "topk": _top,
    "argsort": lambda x, axis=-1, descending=False: np.argsort(-x if descending else x, axis=axis, kind="stable"),
}  # fmt: skip

ARITHMETIC: dict[str, Callable[..., Any]] = {
    **{
        name: getattr(np, name)
        for name in (
            "exp", "log", "sqrt", "sin", "cos", "sinh", "cosh", "square", "log1p", "expm1", "maximum", "minimum", "sign",
            "log2", "log10", "dot", "outer", "einsum", "power", "logaddexp", "reciprocal", "tan", "exp2", "hypot", "ceil",
            "floor", "trunc", "round", "all", "any", "multiply", "subtract", "divide", "logical_not", "logical_and",
            "logical_or", "logical_xor", "isnan", "isinf", "isfinite", "remainder", "fmod", "floor_divide", "inner", "fmax",
            "fmin", "nan_to_num", "diff", "vstack", "hstack",
        )
    },
    **{f"a{name}": getattr(np, f"arc{name}") for name in ("sin", "cos", "tan", "tan2", "sinh", "cosh", "tanh")},
    **dict.fromkeys(("mm", "bmm", "mv"), np.matmul), **dict.fromkeys(("addmm", "baddbmm", "addmv"), _product_added),
    "ger": np.outer, "tensordot": lambda a, b, axis=2: np.tensordot(a, b, axes=axis), "true": np.divide, "div": np.divide,
    "absolute": np.abs, "clamp": _clamp, "clip": _clamp, "rsqrt": lambda x: 1 / np.sqrt(x),
    "clamp_min": lambda x, low: np.maximum(x, low), "clamp_max": lambda x, high: np.minimum(x, high),
    "addcmul": lambda x, a, b, value=1: x + value * (a * b), "addcdiv": lambda x, a, b, value=1: x + value * (a / b),
    "lerp": lambda x, y, weight: x + weight * (y - x),
    "xlogy": lambda x, y: np.where(x == 0, 0, x * np.log(np.where(x == 0, 1, y))),
    "cdist": lambda x, y, p=2.0, **_: np.sqrt(np.sum((x[..., :, None, :] - y[..., None, :, :]) ** 2, axis=-1)),
}  # fmt: skip

COPIES: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("contiguous", "detach", "to", "type_as", "as_tensor", "tensor", "cpu", "cuda", "requires_grad"), _same),
    **dict.fromkeys(("long", "int"), _same), **dict.fromkeys(("float", "double"), _number), "bool": lambda x: x != 0,
    "clone": np.copy, "zeros_like": lambda x, **_: np.zeros_like(x), "ones_like": lambda x, **_: np.ones_like(x),
    **dict.fromkeys(("full_like", "fill"), lambda x, value, **_: np.zeros_like(x) + value), "zero": np.zeros_like,
    "copy": lambda x, other, *_: np.broadcast_to(other, np.shape(x)),
}  # fmt: skip

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **COPIES, **ARITHMETIC, **SHAPES, **INDEXED, **NEURAL, **LAYERS, **LOSSES, **ALONG_AXIS, **OPERATORS,
    **{f"r{name}": lambda a, b, of=of: of(b, a) for name, of in OPERATORS.items()},
}  # fmt: skip

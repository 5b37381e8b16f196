"""Forwards written for PyTorch and JAX, run on NumPy's arrays, so that they can be traced.

A torch forward is called as it is, on arrays that
answer torch's functions with NumPy's (the ``__torch_function__`` protocol). JAX has no such protocol: a JAX forward is
copied, with its library's names bound to NumPy's. Where that does not work, only the diagnosis by a trace is lost; the
verdict never rests on it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial, reduce
from types import CellType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from handgrad.rules import RULES

# ------------------------------------------------------------------------------------------- torch on NumPy


def torch_on_numpy(function: Any) -> Callable[..., Any] | None:
    """Return a torch Function's forward on NumPy's arrays, or None when its source is out of reach."""
    start = getattr(function, "forward", None)
    if not isinstance(start, FunctionType):
        return None
    context = () if "setup_context" in vars(function) else (_Context(),)

    def forward(*values: Any) -> Any:
        return _bare(start(*context, *(TorchArray(v) if hasattr(v, "dtype") else v for v in values)))

    forward.__wrapped__ = start  # type: ignore[attr-defined]
    return forward


class _Context:
    """What a Function's forward saves things in: none of it is needed."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *args, **options: None


class TorchArray:
    """An array that torch's functions take for a tensor; it has a tensor's operators and methods."""

    def __init__(self, array: Any) -> None:
        self.array = array

    @classmethod
    def __torch_function__(cls, called: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Answer a function of torch's."""
        return _call(called.__name__.strip("_"), *args, **(kwargs or {}))

    def __getattr__(self, name: str) -> Any:
        if name in ("shape", "ndim"):
            return getattr(self.array, name)
        if name in ("T", "mT"):
            return TorchArray(np.swapaxes(self.array, -1, -2))
        if name == "dtype":
            return getattr(sys.modules["torch"], str(self.array.dtype), None)
        if name in ("device", "requires_grad"):
            return None
        if name in COUNTS:
            return partial(COUNTS[name], self.array)
        if name in FUNCTIONS:
            return partial(_call, name, self)
        if name.endswith("_") and name[:-1] in FUNCTIONS:
            return partial(self._change, name[:-1])
        raise AttributeError(f"Tensor.{name} has no function of NumPy's")

    def _change(self, name: str, *args: Any, **options: Any) -> TorchArray:
        """Call a method that works in place."""
        self.array[...] = _call(name, self, *args, **options).array
        return self

    def __getitem__(self, key: Any) -> TorchArray:
        return TorchArray(self.array[_bare(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.array[_bare(key)] = _bare(value)

    def __len__(self) -> int:
        return len(self.array)

    def __float__(self) -> float:
        return float(self.array)

    def __bool__(self) -> bool:
        return bool(self.array)


def _bare(value: Any) -> Any:
    """Return the array of a tensor, ours or torch's own, or of each in a tuple or list."""
    if isinstance(value, TorchArray):
        return value.array
    if type(value) in (tuple, list):
        return type(value)(map(_bare, value))
    return value.numpy() if isinstance(value, sys.modules["torch"].Tensor) else value


def _call(name: str, *args: Any, **options: Any) -> Any:
    """Call NumPy's function of a name of torch's: ``dim`` is the axis, and may be given by position."""
    given = {key: _bare(value) for key, value in options.items() if key not in IDLE or value is True}
    renamed = {RENAMED.get(key, key): value for key, value in given.items()}
    plain = [_bare(arg) for arg in args]
    for key in ("axis", "keepdims") if name in ALONG_AXIS else ():
        if len(plain) > 1:
            renamed[key] = plain.pop(1)
    found = FUNCTIONS[name](*plain, **renamed)
    if isinstance(found, _Extremes):
        return _Extremes(*map(TorchArray, found))
    return tuple(map(TorchArray, found)) if isinstance(found, tuple) else TorchArray(found)


class _Extremes(NamedTuple):
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
        return _Extremes(every(x, axis=axis, keepdims=keepdims), places(x, axis=axis, keepdims=keepdims))

    return of


def _norm(x: Any, p: Any = 2, axis: Any = None, keepdims: bool = False) -> Any:
    if p in (2, "fro"):
        return np.sqrt(np.sum(np.square(x), axis=axis, keepdims=keepdims))
    return np.linalg.norm(x, p, axis=axis, keepdims=keepdims)


def _along(x: Any, axis: int, index: Any) -> tuple[Any, ...]:
    """Return the key of the entries that an array of indices along an axis picks."""
    shape = np.shape(index)
    key = [np.arange(n).reshape(-1, *(1 for _ in shape[k + 1 :])) for k, n in enumerate(shape)]
    key[axis] = index
    return tuple(key)


def _scattered(x: Any, axis: int, index: Any, values: Any, *, added: bool = False) -> Any:
    """Return a copy with values at some entries, or added to them."""
    result, key = np.array(x), _along(x, axis, index)
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
    shape = tuple(_shape(shape))
    own = (1,) * (len(shape) - np.ndim(x)) + np.shape(x)
    return np.broadcast_to(x, tuple(n if n >= 0 else m for n, m in zip(shape, own, strict=True)))


def _flattened(x: Any, start: int = 0, end: int = -1) -> Any:
    shape, end = np.shape(x), end % np.ndim(x)
    return np.reshape(x, (*shape[:start], -1, *shape[end + 1 :]))


def _linear(x: Any, weight: Any, bias: Any = None) -> Any:
    product = np.matmul(x, np.swapaxes(weight, -1, -2))
    return product if bias is None else product + bias


def _pair(size: Any) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else tuple(size)


def _unfolded(x: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    """Return the windows of images as columns."""
    (kh, kw), (dh, dw), (ph, pw), (sh, sw) = map(_pair, (kernel_size, dilation, padding, stride))
    x = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw))) if ph or pw else x
    n, c, height, width = np.shape(x)
    h, w = (height - dh * (kh - 1) - 1) // sh + 1, (width - dw * (kw - 1) - 1) // sw + 1
    rows, columns = (range(k) for k in (kh, kw))
    windows = [
        x[:, :, i * dh : i * dh + sh * h : sh, j * dw : j * dw + sw * w : sw] for i in rows for j in columns
    ]
    return np.reshape(np.stack(windows, axis=2), (n, c * kh * kw, h * w))


def _number(x: Any) -> Any:
    return x if np.asarray(x).dtype.kind == "f" else x * 1.0


def _one_hot(x: Any, classes: int) -> Any:
    return np.eye(classes)[x]


def _shape(shape: tuple[Any, ...]) -> Any:
    return shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape


def _variance(
    x: Any, axis: Any = None, keepdims: bool = False, unbiased: bool = True, correction: int = 1
) -> Any:
    return np.var(x, axis=axis, keepdims=keepdims, ddof=correction if unbiased else 0)


def _clamp(x: Any, min: Any = None, max: Any = None) -> Any:  # noqa: A002 - torch's names
    return np.clip(x, min, max)


def _same(x: Any, *args: Any, **options: Any) -> Any:
    return x


def _softmax(x: Any, axis: int = -1) -> Any:
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


def _logsumexp(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    largest = np.max(x, axis=axis, keepdims=True)
    total = np.log(np.sum(np.exp(x - largest), axis=axis, keepdims=True)) + largest
    return total if keepdims else np.squeeze(total, axis=axis)


def _log_softmax(x: Any, axis: int = -1) -> Any:
    return x - _logsumexp(x, axis=axis, keepdims=True)


RENAMED = {
    "dim": "axis",
    "keepdim": "keepdims",
    "negative_slope": "slope",
    "num_classes": "classes",
    "src": "values",
}
IDLE = ("inplace", "dtype", "device", "out", "_stacklevel")  # options that change no numbers

COUNTS: dict[str, Callable[..., Any]] = {
    "size": lambda array, axis=None: array.shape if axis is None else array.shape[axis],
    "dim": np.ndim,
    "numel": np.size,
    "nelement": np.size,
    "item": lambda array: array.item(),
    "new_zeros": lambda array, *shape, **_: TorchArray(np.zeros(_shape(shape))),
    "new_ones": lambda array, *shape, **_: TorchArray(np.ones(_shape(shape))),
    "is_floating_point": lambda array: array.dtype.kind == "f",
}

NEURAL: dict[str, Callable[..., Any]] = {
    **{name: RULES[name].function for name in ("relu", "sigmoid", "silu", "softplus", "tanh", "elu", "leaky_relu")},
    "swish": RULES["silu"].function, "softmax": _softmax, "log_softmax": _log_softmax, "logsumexp": _logsumexp,
}  # fmt: skip

ALONG_AXIS: dict[str, Callable[..., Any]] = {
    "sum": np.sum, "mean": np.mean, "prod": np.prod, "amax": np.max, "amin": np.min, "cumsum": np.cumsum,
    "cat": np.concatenate, "stack": np.stack, "squeeze": np.squeeze, "unsqueeze": np.expand_dims, "flip": np.flip,
    "var": _variance, "std": lambda x, **options: np.sqrt(_variance(x, **options)),
    "softmax": _softmax, "log_softmax": _log_softmax, "logsumexp": _logsumexp,
    "max": _extremes(True), "min": _extremes(False), "argmax": np.argmax, "argmin": np.argmin,
}  # fmt: skip

OPERATORS: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide, "pow": np.power, "matmul": np.matmul,
    "mod": np.mod, "floordiv": np.floor_divide, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal, "and": np.logical_and, "or": np.logical_or,
    "neg": np.negative, "invert": np.logical_not,
}  # fmt: skip

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{
        name: getattr(np, name)
        for name in (
            "exp", "log", "sqrt", "sin", "cos", "sinh", "cosh", "abs", "sign", "square", "log1p", "expm1", "maximum",
            "minimum", "where", "dot", "outer", "einsum", "power", "logaddexp", "reciprocal", "tan", "tril", "triu", "roll",
            "diagonal", "trace", "floor", "round", "all", "any",
        )
    },
    **dict.fromkeys(("contiguous", "detach", "to", "type_as", "as_tensor", "tensor"), _same), "clone": np.array,
    **dict.fromkeys(("float", "double"), _number), "bool": lambda x: x != 0, "long": _same, "int": _same,
    "zeros_like": lambda x, **_: np.zeros_like(x), "ones_like": lambda x, **_: np.ones_like(x),
    "full_like": lambda x, value, **_: np.zeros_like(x) + value,
    "multiply": np.multiply, "subtract": np.subtract, "divide": np.divide, "true": np.divide,
    "logical_not": np.logical_not, "logical_and": np.logical_and, "logical_or": np.logical_or, "absolute": np.abs,
    "linear": _linear, "addmm": lambda b, x, y: b + np.matmul(x, y), "unfold": _unfolded, "norm": _norm, "one_hot": _one_hot,
    "masked_fill": lambda x, mask, value: np.where(mask, value, x), "flatten": _flattened,
    "gather": lambda x, axis, index: x[_along(x, axis, index)],
    "index_select": lambda x, axis, index: np.take(x, index, axis),
    "scatter": _scattered, "scatter_add": partial(_scattered, added=True), "embedding": lambda index, table: table[index],
    "split": _split, "chunk": _chunk, "unbind": lambda x, axis=0: tuple(np.moveaxis(x, axis, 0)),
    "expand": _expanded, "expand_as": lambda x, other: np.broadcast_to(x, np.shape(other)),
    "view_as": lambda x, other: np.reshape(x, np.shape(other)), "reshape_as": lambda x, other: np.reshape(x, np.shape(other)),
    **dict.fromkeys(("mm", "bmm", "mv"), np.matmul),
    **NEURAL, **OPERATORS, **{f"r{name}": lambda a, b, of=of: of(b, a) for name, of in OPERATORS.items()}, **ALONG_AXIS,
    "div": np.divide, "clamp": _clamp, "clip": _clamp, "t": np.transpose, "transpose": np.swapaxes,
    "rsqrt": lambda x: 1 / np.sqrt(x), "permute": lambda x, *axes: np.transpose(x, _shape(axes)),
    "reshape": lambda x, *shape: np.reshape(x, _shape(shape)), "view": lambda x, *shape: np.reshape(x, _shape(shape)),
}  # fmt: skip

for _name in OPERATORS:
    setattr(TorchArray, f"__{_name}__", lambda *operands, name=_name: _call(name, *operands))
    setattr(TorchArray, f"__r{_name}__", lambda a, b, name=_name: _call(name, b, a))


# --------------------------------------------------------------------------------------------- JAX on NumPy


def jax_on_numpy(function: Any) -> Callable[..., Any] | None:
    """Return a JAX function on NumPy's arrays, or None when its source is out of reach."""
    start = unwrapped(function)
    if not isinstance(start, FunctionType):
        return None

    def bound(value: Any) -> Any:
        own = str(getattr(value, "__module__", getattr(value, "__name__", ""))).split(".")[0] in (
            "jax",
            "jaxlib",
        )
        if isinstance(value, ModuleType):
            return _JaxModule() if value.__name__.split(".")[0] == "jax" else value
        return getattr(_JaxModule(), getattr(value, "__name__", ""), value) if own else value

    return _copied(start, bound)


class _JaxModule:
    """What stands for ``jax``, ``jax.numpy``, ``jax.nn``, ``jax.lax`` and ``jax.scipy.special``: their functions of NumPy."""

    def __getattr__(self, name: str) -> Any:
        if name in ("numpy", "nn", "lax", "scipy", "special"):
            return self
        found = JAX.get(name, NEURAL.get(name))
        return getattr(np, name) if found is None else found


JAX: dict[str, Callable[..., Any]] = {
    "stop_gradient": _same, "jit": lambda f, **_: f, "rsqrt": lambda x: 1 / np.sqrt(x), "select": np.where,
    "one_hot": _one_hot,
    "fori_loop": lambda lower, upper, body, start: reduce(lambda v, i: body(i, v), range(lower, upper), start),
}  # fmt: skip


def unwrapped(function: Any) -> Any:
    """Return the function that jit, or what holds a gradient of its own, holds."""
    while not isinstance(function, FunctionType):
        inner = getattr(function, "fun", getattr(function, "__wrapped__", None))
        if inner is None:
            break
        function = inner
    return function


def _copied(start: FunctionType, bound: Callable[[Any], Any]) -> FunctionType:
    """Copy a function and its module's others into names of their own, each bound to something else."""
    names: dict[str, Any] = {}

    def cell_of(cell: CellType) -> CellType:
        return cell if cell == CellType() else CellType(bound(cell.cell_contents))  # it may be empty still

    def copy(function: FunctionType) -> FunctionType:
        closure = tuple(map(cell_of, function.__closure__ or ()))
        made = FunctionType(function.__code__, names, function.__name__, function.__defaults__, closure)
        made.__kwdefaults__ = function.__kwdefaults__
        return made

    for name, value in start.__globals__.items():
        inner = unwrapped(value)
        own = isinstance(inner, FunctionType) and inner.__globals__ is start.__globals__
        names[name] = copy(inner) if own else bound(value)
    return copy(start)

"""Forwards written for PyTorch and JAX, run on NumPy's arrays, so that they can be traced.

A torch forward is called as it is, on arrays that
answer torch's functions with NumPy's (the ``__torch_function__`` protocol). JAX has no such protocol: a JAX forward is
copied, with its library's names bound to NumPy's. Where that does not work, only the diagnosis by a trace is lost; the
verdict never rests on it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import CellType, FunctionType, SimpleNamespace
from typing import Any

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
        if name in ("dtype", "device", "requires_grad"):
            return None
        if name in COUNTS:
            return partial(COUNTS[name], self.array)
        if name in FUNCTIONS:
            return partial(_call, name, self)
        raise AttributeError(f"Tensor.{name} has no function of NumPy's")

    def __getitem__(self, key: Any) -> TorchArray:
        return TorchArray(self.array[_bare(key)])

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


def _call(name: str, *args: Any, **options: Any) -> TorchArray:
    """Call NumPy's function of a name of torch's: ``dim`` is the axis, and may be given by position."""
    given = {key: _bare(v) for key, v in options.items() if key not in IDLE or (v and key != "_stacklevel")}
    renamed = {RENAMED.get(key, key): value for key, value in given.items()}
    plain = [_bare(arg) for arg in args]
    for key in ("axis", "keepdims") if name in ALONG_AXIS else ():
        if len(plain) > 1:
            renamed[key] = plain.pop(1)
    return TorchArray(FUNCTIONS[name](*plain, **renamed))


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


RENAMED = {"dim": "axis", "keepdim": "keepdims", "negative_slope": "slope"}
IDLE = ("inplace", "dtype", "device", "out", "_stacklevel")  # options that do nothing where they are not set

COUNTS: dict[str, Callable[..., Any]] = {
    "size": lambda array, axis=None: array.shape if axis is None else array.shape[axis],
    "dim": np.ndim,
    "numel": np.size,
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
            "minimum", "where", "dot", "outer", "einsum", "power", "zeros_like", "ones_like", "logaddexp", "reciprocal",
        )
    },
    **dict.fromkeys(("contiguous", "clone", "detach", "double", "to", "as_tensor", "tensor"), _same),
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
    jax = sys.modules["jax"]
    start = unwrapped(function)
    if not isinstance(start, FunctionType):
        return None
    lax, nn = SimpleNamespace(stop_gradient=_same), SimpleNamespace(**NEURAL)
    modules = {
        id(jax): SimpleNamespace(numpy=np, nn=nn, lax=lax, jit=lambda f, **_: f),
        id(jax.numpy): np, id(jax.nn): nn, id(jax.lax): lax,
    }  # fmt: skip

    def bound(value: Any) -> Any:
        own = str(getattr(value, "__module__", "")).split(".")[0] in ("jax", "jaxlib")
        name = getattr(value, "__name__", "")
        return modules.get(id(value), NEURAL.get(name, getattr(np, name, value)) if own else value)

    return _copied(start, bound)


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

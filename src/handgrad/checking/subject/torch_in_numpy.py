"""A torch forward run on NumPy's arrays: stand-ins for torch, for its tensors and for a Function's context."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from handgrad.checking.subject.peers_in_numpy import NEURAL, copied


def torch_in_numpy(function: Any) -> Callable[..., Any] | None:
    """Return a torch Function's forward on NumPy arrays by name, or None when its source is out of reach."""
    start = function.forward
    if not isinstance(start, FunctionType):
        return None
    torch = sys.modules["torch"]
    module = _Torch()
    known = {id(torch), id(torch.nn.functional), id(torch.special)}

    def translated(value: Any) -> Any:
        if id(value) in known:
            return module
        own = str(getattr(value, "__module__", "")).split(".")[0] == "torch"
        return FUNCTIONS.get(getattr(value, "__name__", ""), value) if own else value

    plain = copied(start, translated)
    context = () if "setup_context" in vars(function) else (_Context(),)

    def forward(**values: Any) -> Any:
        output = plain(
            *context, *(_Tensor(v) if np.ndim(v) or v.dtype.kind == "f" else v for v in values.values())
        )
        return tuple(map(_array, output)) if isinstance(output, tuple) else _array(output)

    forward.__wrapped__ = plain  # type: ignore[attr-defined]
    return forward


class _Context:
    """What a Function's forward keeps things in, and none of it is needed."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *args, **options: None


class _Torch:
    """The functions of torch that NumPy has too."""

    def __getattr__(self, name: str) -> Any:
        if name not in FUNCTIONS:
            raise AttributeError(f"torch.{name} has no stand-in")
        return FUNCTIONS[name]


class _Tensor:
    """An array with a tensor's operators and methods."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __getattr__(self, name: str) -> Any:
        if name in ("shape", "ndim"):
            return getattr(self.array, name)
        if name in ("T", "mT"):
            return _Tensor(np.swapaxes(self.array, -1, -2))
        if name in ("dtype", "device", "requires_grad"):
            return None
        if name in FUNCTIONS:
            return lambda *args, **options: FUNCTIONS[name](self, *args, **options)
        raise AttributeError(f"Tensor.{name} has no stand-in")

    def __getitem__(self, key: Any) -> _Tensor:
        return _Tensor(self.array[_array(key)])

    def __neg__(self) -> _Tensor:
        return _Tensor(np.negative(self.array))

    def __invert__(self) -> _Tensor:
        return _Tensor(np.logical_not(self.array))

    def __len__(self) -> int:
        return len(self.array)

    def __float__(self) -> float:
        return float(self.array)

    def __bool__(self) -> bool:
        return bool(self.array)

    def size(self, axis: int | None = None) -> Any:
        """Return the shape, or the length of an axis."""
        return self.shape if axis is None else self.shape[axis]

    def dim(self) -> int:
        """Return the number of axes."""
        return int(np.ndim(self.array))

    def numel(self) -> int:
        """Return the number of entries."""
        return int(np.size(self.array))


def _operator(name: str, compute: Callable[[Any, Any], Any]) -> None:
    setattr(_Tensor, f"__{name}__", lambda self, other: _Tensor(compute(self.array, _array(other))))
    setattr(_Tensor, f"__r{name}__", lambda self, other: _Tensor(compute(_array(other), self.array)))


for _name, _function in {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide, "pow": np.power,
    "matmul": np.matmul, "mod": np.mod, "floordiv": np.floor_divide,
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal,
    "ne": np.not_equal, "and": np.logical_and, "or": np.logical_or,
}.items():  # fmt: skip
    _operator(_name, _function)


def _array(value: Any) -> Any:
    if isinstance(value, _Tensor):
        return value.array
    return type(value)(map(_array, value)) if type(value) in (tuple, list) else value


def _stand_in(compute: Callable[..., Any], *, axis_second: bool = False) -> Callable[..., Any]:
    """Return a function of NumPy's as torch calls it: ``dim`` for the axis, which may be given by position."""

    def called(*args: Any, **options: Any) -> Any:
        renamed = {
            {"dim": "axis", "keepdim": "keepdims"}.get(name, name): _array(v) for name, v in options.items()
        }
        plain = [_array(arg) for arg in args]
        if axis_second and len(plain) > 1:
            renamed["axis"] = plain.pop(1)
        if axis_second and len(plain) > 1:
            renamed["keepdims"] = plain.pop(1)
        return _Tensor(compute(*plain, **renamed))

    return called


def _spread(*shape: Any) -> Any:
    return shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape


def _variance(
    x: Any, axis: Any = None, keepdims: bool = False, unbiased: bool = True, correction: int = 1
) -> Any:
    return np.var(x, axis=axis, keepdims=keepdims, ddof=correction if unbiased else 0)


def _clamp(x: Any, min: Any = None, max: Any = None) -> Any:  # noqa: A002 - torch's names
    return np.clip(x, min, max)


def _same(x: Any, *args: Any, **options: Any) -> Any:
    return x


SAME_NAME = (
    "exp", "log", "sqrt", "sin", "cos", "sinh", "cosh", "abs", "sign", "square", "log1p", "expm1", "maximum", "minimum",
    "where", "matmul", "dot", "outer", "einsum", "power", "zeros_like", "ones_like", "logaddexp",
)  # fmt: skip

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: _stand_in(getattr(np, name)) for name in SAME_NAME},
    **{name: _stand_in(NEURAL[name], axis_second=True) for name in NEURAL},
    **{name: _stand_in(_same) for name in ("contiguous", "clone", "detach", "double", "to", "as_tensor", "tensor")},
    **{name: _stand_in(np.matmul) for name in ("mm", "bmm", "mv")},
    **{
        name: _stand_in(getattr(np, other), axis_second=True)
        for name, other in {
            "sum": "sum", "mean": "mean", "prod": "prod", "amax": "max", "amin": "min", "cumsum": "cumsum",
            "cat": "concatenate", "stack": "stack", "squeeze": "squeeze", "unsqueeze": "expand_dims", "flip": "flip",
        }.items()
    },
    "pow": _stand_in(np.power), "add": _stand_in(np.add), "sub": _stand_in(np.subtract),
    "mul": _stand_in(np.multiply), "div": _stand_in(np.divide), "neg": _stand_in(np.negative),
    "clamp": _stand_in(_clamp), "clip": _stand_in(_clamp), "t": _stand_in(np.transpose),
    "transpose": _stand_in(np.swapaxes), "rsqrt": _stand_in(lambda x: 1 / np.sqrt(x)),
    "reciprocal": _stand_in(lambda x: 1 / x), "var": _stand_in(_variance, axis_second=True),
    "std": _stand_in(lambda x, **options: np.sqrt(_variance(x, **options)), axis_second=True),
    "permute": _stand_in(lambda x, *axes: np.transpose(x, _spread(*axes))),
    "reshape": _stand_in(lambda x, *shape: np.reshape(x, _spread(*shape))),
    "view": _stand_in(lambda x, *shape: np.reshape(x, _spread(*shape))),
}  # fmt: skip

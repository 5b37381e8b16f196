"""The table of vector-Jacobian products: what the gradient of an operation's output becomes at each operand.

Every entry is the text of a NumPy expression in

- ``g``: the gradient of the output;
- ``a``, ``b``, ``c``, ``v3``, ``v4``, …: the operands; ``out``: the output.

The text is evaluated for the numbers and written into repaired source, so that the mathematics appears once.
Elementwise entries do not sum over what was broadcast: who uses them does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from handgrad.checking.forward_trace.tracer import ELEMENTWISE, Operation


@dataclass(frozen=True, slots=True)
class Site:
    """One operand of one operation, with the values at hand."""

    operation: Operation
    k: int
    values: Sequence[Any]

    def value(self, k: int) -> Any:
        """Return the value of operand `k`."""
        return self.values[self.operation.inputs[k]]

    def shape(self, k: int) -> tuple[int, ...]:
        """Return the shape of operand `k`."""
        return np.shape(self.value(k))

    @property
    def out(self) -> Any:
        """The value of the output."""
        return self.values[self.operation.output]

    def option(self, name: str, default: Any = None) -> Any:
        """Return an option of the operation; NumPy's "no value" counts as left out."""
        value = self.operation.options.get(name, default)
        return default if value is np._NoValue else value


Entry = Callable[[Site], str | None]
ENTRIES: dict[str, Entry] = {}
"""What writes the entry of each operation, by the operation's name."""


def entry(*names: str) -> Callable[[Entry], Entry]:
    """Register a function that writes the entry of operations."""

    def register(function: Entry) -> Entry:
        ENTRIES.update(dict.fromkeys(names, function))
        return function

    return register


def local_text(site: Site) -> str | None:
    """Return the entry for a site, before what was broadcast is summed; None if there is none.

    Examples
    --------
    >>> import numpy as np
    >>> from handgrad.checking.forward_trace import trace_forward
    >>> trace = trace_forward(lambda given: np.exp(given["x"]), {"x": np.zeros(2)})
    >>> local_text(Site(trace.operations[0], 0, trace.values))
    'g * out'
    """
    found = ENTRIES.get(site.operation.name)
    return found(site) if found is not None else None


def is_broadcasting(operation: Operation) -> bool:
    """Whether the operands are stretched to the output's shape."""
    return operation.kind == ELEMENTWISE


def axes_text(axes: tuple[int, ...]) -> str:
    """Return axes as an argument is written: one axis without brackets."""
    return str(axes[0]) if len(axes) == 1 else str(axes)


def reduction_text(from_shape: tuple[int, ...], to_shape: tuple[int, ...]) -> str:
    """Return the method calls that sum a gradient over what was broadcast, "" if nothing was.

    Examples
    --------
    >>> reduction_text((5, 3), (3,)), reduction_text((5, 3), (5, 1))
    ('.sum(axis=0)', '.sum(axis=1, keepdims=True)')
    """
    if from_shape == to_shape:
        return ""
    if not to_shape:
        return ".sum()"
    extra = len(from_shape) - len(to_shape)
    text = f".sum(axis={axes_text(tuple(range(extra)))})" if extra else ""
    stretched = tuple(k for k, n in enumerate(to_shape) if n == 1 and from_shape[extra + k] != 1)
    return text + (f".sum(axis={axes_text(stretched)}, keepdims=True)" if stretched else "")


def reduced(text: str, from_shape: tuple[int, ...], to_shape: tuple[int, ...]) -> str:
    """Return a text with the sums over what was broadcast behind it."""
    summed = reduction_text(from_shape, to_shape)
    return f"({text}){summed}" if summed else text


# ---------------------------------------------------------------------- elementwise

_UNARY = {
    "negative": "-g",
    "positive": "g",
    "conjugate": "g",
    "exp": "g * out",
    "exp2": "g * out * np.log(2)",
    "expm1": "g * (out + 1)",
    "log": "g / a",
    "log2": "g / (a * np.log(2))",
    "log10": "g / (a * np.log(10))",
    "log1p": "g / (1 + a)",
    "cbrt": "g / (3 * out ** 2)",
    "square": "2 * g * a",
    "reciprocal": "-g * out ** 2",
    "absolute": "g * np.sign(a)",
    "fabs": "g * np.sign(a)",
    "sin": "g * np.cos(a)",
    "cos": "-g * np.sin(a)",
    "tan": "g * (1 + out ** 2)",
    "arcsin": "g / np.sqrt(1 - a ** 2)",
    "arccos": "-g / np.sqrt(1 - a ** 2)",
    "arctan": "g / (1 + a ** 2)",
    "sinh": "g * np.cosh(a)",
    "cosh": "g * np.sinh(a)",
    "tanh": "g * (1 - out ** 2)",
    "arcsinh": "g / np.sqrt(a ** 2 + 1)",
    "arccosh": "g / np.sqrt(a ** 2 - 1)",
    "arctanh": "g / (1 - a ** 2)",
    "deg2rad": "g * np.pi / 180",
    "radians": "g * np.pi / 180",
    "rad2deg": "g * 180 / np.pi",
    "degrees": "g * 180 / np.pi",
    "nan_to_num": "g * np.isfinite(a)",
    "sinc": "g * np.where(a == 0, 0, (np.cos(np.pi * a) - out) / np.where(a == 0, 1, a))",
    "astype": "g",
    "expit": "g * out * (1 - out)",
    "logit": "g / (a * (1 - a))",
    "erf": "g * 2 / np.sqrt(np.pi) * np.exp(-a ** 2)",
    "erfc": "-g * 2 / np.sqrt(np.pi) * np.exp(-a ** 2)",
    "ndtr": "g * np.exp(-a ** 2 / 2) / np.sqrt(2 * np.pi)",
}
_SEVERAL = {
    "add": ("g", "g"),
    "subtract": ("g", "-g"),
    "multiply": ("g * b", "g * a"),
    "divide": ("g / b", "-g * out / b"),
    "arctan2": ("g * b / (a ** 2 + b ** 2)", "-g * a / (a ** 2 + b ** 2)"),
    "hypot": ("g * a / out", "g * b / out"),
    "logaddexp": ("g * np.exp(a - out)", "g * np.exp(b - out)"),
    "logaddexp2": ("g * 2.0 ** (a - out)", "g * 2.0 ** (b - out)"),
    "remainder": ("g", "-g * np.floor(a / b)"),
    "fmod": ("g", "-g * np.trunc(a / b)"),
    "copysign": ("g * np.where(np.signbit(a) == np.signbit(b), 1, -1)", "0 * g * b"),
    "where": (None, "np.where(a, g, 0)", "np.where(a, 0, g)"),
    "clip": ("g * ((a >= b) & (a <= c))", "g * (a < b)", "g * (a > c)"),
}


@entry(*_UNARY)
def _unary(site: Site) -> str:
    return _UNARY[site.operation.name]


@entry(*_SEVERAL)
def _several(site: Site) -> str | None:
    return _SEVERAL[site.operation.name][site.k]


@entry("sqrt")
def _sqrt(site: Site) -> str:
    # at 0 the derivative is infinite: no gradient passes, so that sqrt(x²) has one
    return "g * 0.5 / out" if np.all(site.out) else "g * 0.5 / np.where(out > 0, out, np.inf)"


@entry("maximum", "fmax", "minimum", "fmin")
def _larger(site: Site) -> str:
    """At a tie the second operand gets all, but a constant gets nothing: relu's derivative at 0 is 0."""
    sign, other = ">" if "max" in site.operation.name else "<", site.value(1 - site.k)
    if site.k == 0:
        return f"g * (a {sign} b)"
    both = np.ndim(other) and np.asarray(other).dtype.kind == "f"
    return f"g * (b {sign}{'=' if both else ''} a)"


@entry("power", "float_power")
def _power(site: Site) -> str:
    exponent = site.value(1)
    if site.k == 1:
        base = "a" if np.all(site.value(0) > 0) else "np.where(a > 0, a, 1)"
        return f"g * out * np.log({base})"
    if np.ndim(exponent):
        return "g * b * a ** (b - 1)"
    n = exponent.item() if isinstance(exponent, (np.generic, np.ndarray)) else exponent
    known = {0: "0 * g * a", 1: "g", 2: "2 * g * a", 0.5: "g * 0.5 / out", -1: "-g * out ** 2"}
    if n in known:
        return known[n]
    return f"{n!r} * g * a ** {n - 1!r}" if n >= 1 else f"{n!r} * g * a ** ({n - 1!r})"


@entry("elementwise")
def _elementwise(site: Site) -> str | None:
    """Return the entry of a vectorised Python function, known when it is one of the module math."""
    inner = getattr(site.operation.function, "pyfunc", None)
    if inner is None or inner.__module__ != "math" or len(site.operation.inputs) != 1:
        return None
    return _UNARY.get(inner.__name__)

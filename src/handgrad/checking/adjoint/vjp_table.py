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

from handgrad.checking.forward_trace.operation import Operation, Slot, operand_name


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


Entry = str | tuple[str | None, ...] | Callable[[Site], str | None]
ENTRIES: dict[str, Entry] = {}
"""An operation's name -> its entry: a text, one for each operand, or what writes it; ``{axis}`` is its option."""


def entry(*names: str) -> Callable[[Callable[[Site], str | None]], Callable[[Site], str | None]]:
    """Register a function that writes the entry of operations."""

    def register(function: Callable[[Site], str | None]) -> Callable[[Site], str | None]:
        ENTRIES.update(dict.fromkeys(names, function))
        return function

    return register


def vjp_text(operation: Operation, k: int, values: Sequence[Any]) -> str | None:
    """Return the entry for operand `k`, before what was broadcast is summed; None if there is none."""
    found = ENTRIES.get(operation.name)
    if isinstance(found, tuple):
        found = found[k]
    if isinstance(found, str):
        return found.format_map({"axis": None, "k": 0, **operation.options})
    return found(Site(operation, k, values)) if found is not None else None


def axes_text(axes: tuple[int, ...]) -> str:
    """Return axes as an argument is written: one axis without brackets."""
    return str(axes[0]) if len(axes) == 1 else str(axes)


def reduction_text(from_shape: tuple[int, ...], to_shape: tuple[int, ...]) -> str:
    """Return the method calls that sum a gradient over what was broadcast, "" if nothing was."""
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

ENTRIES |= {
    "negative": "-g",
    **dict.fromkeys(("positive", "conjugate", "astype"), "g"),
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
    **dict.fromkeys(("absolute", "fabs"), "g * np.sign(a)"),
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
    **dict.fromkeys(("deg2rad", "radians"), "g * np.pi / 180"),
    **dict.fromkeys(("rad2deg", "degrees"), "g * 180 / np.pi"),
    "nan_to_num": "g * np.isfinite(a)",
    "sinc": "g * np.where(a == 0, 0, (np.cos(np.pi * a) - out) / np.where(a == 0, 1, a))",
    "expit": "g * out * (1 - out)",
    "logit": "g / (a * (1 - a))",
    "erf": "g * 2 / np.sqrt(np.pi) * np.exp(-a ** 2)",
    "erfc": "-g * 2 / np.sqrt(np.pi) * np.exp(-a ** 2)",
    "ndtr": "g * np.exp(-a ** 2 / 2) / np.sqrt(2 * np.pi)",
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
    text = ENTRIES.get(inner.__name__) if inner is not None and inner.__module__ == "math" else None
    return text if isinstance(text, str) else None


# ---------------------------------------------------------------------- products and linear algebra


def _transposed(name: str, ndim: int) -> str:
    return f"{name}.T" if ndim == 2 else f"{name}.swapaxes(-1, -2)"


_MATMUL = {  # numbers of axes, 3 for more -> the entry of either operand
    (1, 1): ("g * b", "g * a"),
    (1, 2): ("b @ g", "np.outer(a, g)"),
    (1, 3): ("(b @ g[..., None])[..., 0]", "a[:, None] * g[..., None, :]"),
    (2, 1): ("np.outer(g, b)", "a.T @ g"),
    (2, 2): ("g @ b.T", "a.T @ g"),
    (2, 3): ("g @ b.swapaxes(-1, -2)", "a.T @ g"),
    (3, 1): ("g[..., None] * b", "(a.swapaxes(-1, -2) @ g[..., None])[..., 0]"),
    (3, 2): ("g @ b.T", "a.swapaxes(-1, -2) @ g"),
    (3, 3): ("g @ b.swapaxes(-1, -2)", "a.swapaxes(-1, -2) @ g"),
}


@entry("matmul")
def _matmul(site: Site) -> str:
    a, b, mine = len(site.shape(0)), len(site.shape(1)), site.shape(site.k)
    batch = np.shape(site.out)[: max(a, b, 2) - 2]
    return reduced(_MATMUL[min(a, 3), min(b, 3)][site.k], (*batch, *mine[-2:]), mine)


@entry("einsum")
def _einsum(site: Site) -> str | None:
    labels = _einsum_labels(site)
    if labels is None or site.option("dtype") is not None:
        return None
    terms, out = labels
    mine = terms[site.k]
    if any(len(set(term)) < len(term) for term in terms):
        return None
    others = [(terms[j], operand_name(j)) for j in range(len(terms)) if j != site.k]
    known = set(out).union(*(term for term, _ in others))
    me = operand_name(site.k)
    others += [(n, f"np.ones({me}.shape[{k}])") for k, n in enumerate(mine) if n not in known]
    left = ",".join([out, *(term for term, _ in others)])
    text = f'np.einsum("{left}->{mine}", {", ".join(["g", *(name for _, name in others)])})'
    sizes = {n: s for j, term in enumerate(terms) for n, s in zip(term, site.shape(j), strict=True) if s != 1}
    return text + reduction_text(tuple(sizes.get(n, 1) for n in mine), site.shape(site.k))


def _einsum_labels(site: Site) -> tuple[list[str], str] | None:
    """Return the letters of each operand and of the output, with "..." spelled out."""
    subscripts = site.option("subscripts").replace(" ", "")
    left, arrow, out = subscripts.partition("->")
    terms = left.split(",")
    free = [n for n in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if n not in subscripts]
    depths = [
        len(site.shape(j)) - len(term.replace("...", "")) if "..." in term else 0
        for j, term in enumerate(terms)
    ]
    deepest = max(depths)
    if deepest > len(free) or (arrow and deepest and "..." not in out):
        return None
    dots = "".join(free[:deepest])
    if not arrow:
        plain = "".join(terms).replace("...", "")
        out = "..." + "".join(sorted(n for n in set(plain) if plain.count(n) == 1))
    spelled = [
        term.replace("...", dots[deepest - depth :] if depth else "")
        for term, depth in zip(terms, depths, strict=True)
    ]
    return spelled, out.replace("...", dots)


@entry("np.convolve", "np.correlate")
def _convolve(site: Site) -> str | None:
    """One-dimensional: the gradient of a convolution is a correlation, and the other way round."""
    args, options = site.option("template")
    given = dict(zip(("a", "v", "mode"), args, strict=False)) | options
    flipped = site.operation.name.endswith("correlate")
    mode = given.get("mode", "valid" if flipped else "full")
    if (given.get("a"), given.get("v")) != (Slot(0), Slot(1)) or site.shape(0) < site.shape(1):
        return None
    halves = ("len(b) // 2", "(len(b) - 1) // 2")
    before, after = halves if flipped else halves[::-1]
    full = {"full": "g", "same": f"np.pad(g, ({before}, {after}))", "valid": "np.pad(g, len(b) - 1)"}[mode]
    if site.k == 0:
        return f'np.{"convolve" if flipped else "correlate"}({full}, b, "valid")'
    text = f'np.correlate({full}, a, "valid")'
    return f"{text}[::-1]" if flipped else text


@entry("solve")
def _solve(site: Site) -> str | None:
    a, b, out = len(site.shape(0)), len(site.shape(1)), np.shape(site.out)
    if a > 2 and b == 1:
        return None
    solved = f"np.linalg.solve({_transposed('a', a)}, g)"
    if site.k == 1:
        return solved + reduction_text(out, site.shape(1))
    if b == 1:
        return f"-np.outer({solved}, out)"
    text = f"-{solved} @ {_transposed('out', len(out))}"
    return reduced(text, (*out[:-2], *site.shape(0)[-2:]), site.shape(0))


@entry("inv")
def _inv(site: Site) -> str:
    flipped = _transposed("out", np.ndim(site.out))
    return f"-{flipped} @ g @ {flipped}"


@entry("det", "logabsdet")
def _det(site: Site) -> str:
    is_batch, g = len(site.shape(0)) > 2, "g * out" if site.operation.name == "det" else "g"
    g = f"({g})[..., None, None]" if is_batch else g
    return f"{g} * np.linalg.inv({_transposed('a', len(site.shape(0)))})"


@entry("cholesky")
def _cholesky(site: Site) -> str | None:
    """NumPy reads the lower triangle only: that is where the gradient is."""
    if len(site.shape(0)) != 2 or site.option("upper", False):
        return None
    return (
        "p = np.tril(out.T @ g)\n"
        "p[np.diag_indices(len(p))] *= 0.5\n"
        "d = np.linalg.solve(out.T, np.linalg.solve(out.T, p.T).T)\n"
        "np.tril(d + d.T) - np.diag(np.diag(d))"
    )

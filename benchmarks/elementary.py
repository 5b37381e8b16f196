"""How accurate and how fast the compiled engine's elementary functions are.

    python benchmarks/elementary.py            the largest errors in units in the last place, and ns an element
    python benchmarks/elementary.py --fit      the coefficients of `elementary.ERFC`, fitted anew

float32 is compared with float64 at every STRIDE-th of all bit patterns (``--stride 1`` is every number there is),
float64 with 80-bit numbers, and the normal distribution with mpmath. Both include subnormal numbers.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray

from handgrad.engines.compiled.elementary import Elementary
from handgrad.engines.compiled.ir import LANES, Code, Number, literal, module
from handgrad.engines.compiled.native import native

Array = NDArray[Any]
KINDS = {"float32": "float", "float64": "double"}
SPECIAL = (0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, -2.0)
BLOCK = 1 << 20


def _normal_cdf(x: Array) -> Array:
    """Return the normal distribution in more digits than ``x`` has."""
    if x.dtype == np.float64:  # what float32 is compared with
        return np.frompyfunc(lambda u: 0.5 * math.erfc(-u / math.sqrt(2)), 1, 1)(x).astype(float)
    with mpmath.workdps(30):
        near = np.clip(x, -50, 50)  # what is further away is 0 or 1 in any case
        return np.array([_long(mpmath.ncdf(float(u))) for u in near], np.longdouble)


def _long(number: mpmath.mpf) -> np.longdouble:
    """Return one of mpmath's numbers as an 80-bit one."""
    high = float(number)
    return np.longdouble(high) + np.longdouble(float(number - high))


@dataclass(frozen=True)
class Function:
    """One of the functions: what it is compared with, and the numbers it is timed on."""

    exact: Callable[[Array], Array]
    numpy: Callable[[Array], Array] | None
    low: float = -5.0
    high: float = 5.0


FUNCTIONS = {
    "exp": Function(np.exp, np.exp),
    "tanh": Function(np.tanh, np.tanh),
    "log": Function(np.log, np.log, 1e-3, 10.0),
    "log1p": Function(np.log1p, np.log1p, -0.9, 10.0),
    "expm1": Function(np.expm1, np.expm1),
    "normal_cdf": Function(_normal_cdf, None),
}


class Compiled:
    """A function of an array, as a loop in native code."""

    def __init__(self, name: str, dtype: str) -> None:
        kind = KINDS[dtype]
        self.dtype, self.lanes = np.dtype(dtype), LANES[kind]
        code = Code()
        x, y = (code.emit(f"load ptr, ptr {self._slot(code, place)}", "ptr").text for place in (0, 1))
        with code.loop(Number("%first", "i64"), Number("%last", "i64"), self.lanes) as place:
            number = code.load(code.address(x, kind, place), kind, self.lanes)
            result = getattr(Elementary(code, kind), name)(number)
            code.store(result, code.address(y, kind, place))
        text = module(code.define())
        prototype = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
        self.kernel = prototype(native().address(text))

    @staticmethod
    def _slot(code: Code, place: int) -> str:
        return code.address("%arguments", "i64", literal(place, "i64"))

    def __call__(self, x: Array) -> Array:
        """Compute the function of each element."""
        padded = np.ones(-(-len(x) // self.lanes) * self.lanes, self.dtype)
        padded[: len(x)] = x
        y = np.empty_like(padded)
        self.run(padded, y)
        return y[: len(x)]

    def run(self, x: Array, y: Array) -> None:
        """Compute, with nothing else around; lengths are multiples of the lanes."""
        arguments = np.array([x.ctypes.data, y.ctypes.data], np.int64)
        self.kernel(arguments.ctypes.data, 0, len(x))


def samples(name: str, dtype: str, stride: int) -> Iterator[Array]:
    """Yield numbers over the whole range, subnormal and special ones included, in blocks."""
    if dtype == "float32":
        for start in range(0, 1 << 32, BLOCK * stride):
            stop = min(start + BLOCK * stride, 1 << 32)
            yield np.arange(start, stop, stride, np.uint64).astype(np.uint32).view(np.float32)
        return
    generator = np.random.default_rng(0)
    count = 20_000 if name == "normal_cdf" else 2_000_000
    bits = generator.integers(0, 1 << 63, count, np.uint64) << np.uint64(1)
    yield (bits | generator.integers(0, 2, count, np.uint64)).view(np.float64)
    for reach in (1.0, 40.0, 750.0):
        yield generator.uniform(-reach, reach, count)
    yield 1.0 + generator.uniform(-1e-3, 1e-3, count)
    yield generator.uniform(-1, 1, count) * 2.0**-1023


def largest_error(function: Function, compiled: Compiled, blocks: Iterator[Array]) -> tuple[float, float]:
    """Return the largest error in units in the last place, and where it is."""
    wide = np.float64 if compiled.dtype == np.float32 else np.longdouble
    worst = 0.0, math.nan
    with np.errstate(all="ignore"):
        for x in blocks:
            exact, got = function.exact(x.astype(wide)), compiled(x)
            rounded = exact.astype(compiled.dtype)
            alike = np.isfinite(rounded) & np.isfinite(got)
            unit = np.spacing(np.abs(np.where(alike, rounded, 1))).astype(wide)
            error = np.abs(got.astype(wide) - exact) / unit
            same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
            error = np.where(alike, error, np.where(same, 0, np.inf))
            at = int(error.argmax())
            if error[at] > worst[0]:
                worst = float(error[at]), float(x[at])
    return worst


def wrong_specials(function: Function, compiled: Compiled) -> list[str]:
    """Return the special numbers at which the result is another than NumPy's, signs of zeros included."""
    limits = np.finfo(compiled.dtype)
    x = np.array([*SPECIAL, limits.smallest_subnormal, -limits.smallest_subnormal, limits.max, -limits.max])
    x = x.astype(compiled.dtype)
    with np.errstate(all="ignore"):
        wide = np.float64 if compiled.dtype == np.float32 else np.longdouble
        expected, got = function.exact(x.astype(wide)).astype(compiled.dtype), compiled(x)
        close = np.abs(expected - got) <= 4 * np.spacing(np.abs(expected))
    finite = close & (np.signbit(expected) == np.signbit(got))
    same = np.isnan(expected) & np.isnan(got) | (expected == got) & (np.signbit(expected) == np.signbit(got))
    return [
        f"{a} gives {b}, not {c}"
        for a, b, c, ok in zip(x, got, expected, finite | same, strict=True)
        if not ok
    ]


def nanoseconds(call: Callable[[Array, Array], object], x: Array) -> float:
    """Return the best time for one element."""
    y, best = np.empty_like(x), math.inf
    for _ in range(30):
        started = time.perf_counter()
        call(x, y)
        best = min(best, time.perf_counter() - started)
    return best / len(x) * 1e9


def fit(reach: float, degree: int) -> list[float]:
    """Fit ½ e^(u²) erfc(u) (1 + h) for h = u / 2 and u up to ``reach`` by a polynomial in s = h / (1 + h) - ½.

    Least squares over Chebyshev's points, where each coefficient is a sum of its own; in 60 digits, because the
    powers of s are nearly dependent. The highest power first.
    """
    with mpmath.workdps(60):
        half, count = mpmath.mpf(reach) / (2 + reach) / 2, 4 * degree
        angles = [mpmath.pi * (k + mpmath.mpf(1) / 2) / count for k in range(count)]
        heights = [_scaled_erfc(half + half * mpmath.cos(angle) - 0.5) for angle in angles]
        polynomial, before, now = [mpmath.mpf(0)], [mpmath.mpf(0)], [mpmath.mpf(1)]
        for j in range(degree + 1):
            weight = sum(
                height * mpmath.cos(j * angle) for height, angle in zip(heights, angles, strict=True)
            )
            polynomial = _sum(polynomial, [(2 if j else 1) * weight / count * c for c in now])
            # Chebyshev's next polynomial in (s + ½) / half - 1: twice that times this one, less the one before
            shifted = _sum([c / half for c in now] + [mpmath.mpf(0)], [(0.5 / half - 1) * c for c in now])
            before, now = now, _sum([2 * c for c in shifted], [-c for c in before]) if j else shifted
        return [float(c) for c in polynomial]


def _scaled_erfc(s: mpmath.mpf) -> mpmath.mpf:
    h = (0.5 + s) / (0.5 - s)
    return mpmath.exp(4 * h * h) * mpmath.erfc(2 * h) * (1 + h) / 2


def _sum(a: list[Any], b: list[Any]) -> list[Any]:
    length = max(len(a), len(b))
    a, b = ([mpmath.mpf(0)] * (length - len(p)) + p for p in (a, b))
    return [x + y for x, y in zip(a, b, strict=True)]


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--stride", type=int, default=1009, help="of float32's bit patterns (1009)")
    options.add_argument("--fit", action="store_true", help="print the coefficients of ERFC")
    chosen = options.parse_args()
    if chosen.fit:
        for kind, reach, degree in (("float", 10.1, 10), ("double", 28.5, 26)):
            print(f'"{kind}": (')
            for coefficient in fit(reach, degree):
                print(f"    {coefficient!r},")
            print("),")
        return
    print(f"{'':22}{'largest error, ulp':>20}{'at':>16}{'ns':>8}{'NumPy, ns':>11}")
    for dtype in KINDS:
        for name, function in FUNCTIONS.items():
            compiled = Compiled(name, dtype)
            error, at = largest_error(function, compiled, samples(name, dtype, chosen.stride))
            x = np.random.default_rng(0).uniform(function.low, function.high, 1 << 13).astype(dtype)
            theirs = f"{nanoseconds(function.numpy, x):.2f}" if function.numpy else "–"
            print(f"{name:14}{dtype:8}{error:20.2f}{at:16.6g}{nanoseconds(compiled.run, x):8.2f}{theirs:>11}")
            for wrong in wrong_specials(function, compiled):
                print(f"    {wrong}")


if __name__ == "__main__":
    main()

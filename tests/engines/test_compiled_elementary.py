"""Elementary functions as native code: a few units in the last place, and what is at the edges."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from handgrad.engines.compiled.elementary import Elementary
from handgrad.engines.compiled.ir import LANES, Code, Number, literal, module
from handgrad.engines.compiled.native import native

Array = NDArray[Any]

KINDS = {"float32": "float", "float64": "double"}
NUMBERS = 40_000
"""Of each draw; a multiple of how many are computed side by side."""


def computed(function: str, x: Array, *, width: int | None = None) -> Array:
    """Return a function of every number of ``x``, so many side by side (as many as the engine takes at a time)."""
    kind = KINDS[x.dtype.name]
    width = width or LANES[kind]
    code = Code()
    places = []
    for place in (0, 1):
        address = code.address("%arguments", "ptr", literal(place, "i64"))
        places.append(code.load(address, "i64").text)
    pointers = [code.emit(f"inttoptr i64 {place} to ptr", "ptr").text for place in places]
    with code.loop(Number("%first", "i64"), Number("%last", "i64"), width) as index:
        given = code.load(code.address(pointers[0], kind, index), kind, width)
        result = getattr(Elementary(code, kind), function)(given)
        code.store(result, code.address(pointers[1], kind, index))
    text = module(code.define())
    call = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(
        native().address(text)
    )
    padded = np.zeros(-(-len(x) // width) * width, x.dtype)
    padded[: len(x)] = x
    found = np.empty_like(padded)
    arguments = np.array([padded.ctypes.data, found.ctypes.data], np.int64)
    assert call(arguments.ctypes.data, 0, len(padded)) == 0
    return found[: len(x)]


def normal_cdf(x: Array) -> Array:
    """Return the share of the normal distribution below ``x``, from Python's erfc."""
    return np.array([math.erfc(-v / math.sqrt(2)) / 2 for v in x.astype(float)])


def exact(function: str, x: Array) -> Array:
    """Return the function's value in more digits than ``x`` has (except for normal_cdf in float64)."""
    if function == "normal_cdf":
        return normal_cdf(x)
    wider = np.float64 if x.dtype == np.float32 else np.longdouble
    with np.errstate(all="ignore"):
        return getattr(np, function)(x.astype(wider))


def units_off(found: Array, expected: Array) -> Array:
    """Return how many units in the last place each number is off; where both overflow alike, none."""
    with np.errstate(all="ignore"):
        rounded = expected.astype(found.dtype)
        unit = np.spacing(np.abs(rounded)).astype(expected.dtype)
        off = np.abs(found.astype(expected.dtype) - expected) / unit
    alike = (found == rounded) | (np.isnan(found) & np.isnan(rounded))
    largest = np.finfo(found.dtype).max
    with np.errstate(all="ignore"):  # just below the first number that overflows, either may be given
        edge = (np.abs(expected) >= largest * (1 - 4 * np.finfo(found.dtype).eps)) & (
            np.abs(found) >= largest
        )
    return np.where(alike | edge, 0, off).astype(float)


def draws(function: str, dtype: str) -> dict[str, Array]:
    """Return numbers at which a function is tried, by what they are there for."""
    rng = np.random.default_rng(0)
    info = np.finfo(dtype)
    top = float(np.log(info.max))
    bottom = float(np.log(info.smallest_subnormal))
    sizes = np.exp(rng.uniform(np.log(float(info.smallest_normal)), np.log(float(info.max)), NUMBERS))
    signs = rng.choice([-1.0, 1.0], NUMBERS)
    subnormal = rng.integers(1, 2**20, NUMBERS) * float(info.smallest_subnormal)
    one = 1 + rng.integers(-5000, 5000, NUMBERS) * float(info.eps)
    drawn = {
        "of every size": sizes * signs,
        "around 0": rng.normal(size=NUMBERS),
        "small": rng.normal(size=NUMBERS) * 1e-3,
        "usual": rng.uniform(-12, 12, NUMBERS),
        "near 1": one,
        "near -1": -one,
        "subnormal": subnormal * signs,
    }
    if function in ("exp", "expm1"):
        drawn["where it overflows"] = top + np.linspace(-1, 0.5, NUMBERS)
        drawn["where it vanishes"] = bottom + np.linspace(-2, 20, NUMBERS)
        drawn["between"] = rng.uniform(bottom, top, NUMBERS)
        drawn["at halves of log 2"] = (rng.integers(-100, 100, NUMBERS) + 0.5) * math.log(2)
    if function == "tanh":
        drawn["where it is one"] = signs * rng.uniform(5, 25, NUMBERS)
    if function == "log":
        drawn["at roots of 2"] = 2.0 ** (rng.integers(-30, 30, NUMBERS) + 0.5)
    if function == "log1p":
        drawn["at roots of 2"] = 2.0 ** (rng.integers(-3, 30, NUMBERS) + 0.5) - 1
    if function == "normal_cdf":
        drawn["tail"] = -rng.uniform(0, 14 if dtype == "float32" else 37, NUMBERS)
        drawn["far"] = signs * rng.uniform(10, 100, NUMBERS)
    with np.errstate(over="ignore"):
        return {name: v.astype(dtype) for name, v in drawn.items()}


FUNCTIONS = ("exp", "expm1", "tanh", "log", "log1p", "normal_cdf")


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_it_is_accurate(function: str, dtype: str) -> None:
    """Within 4 units in the last place, subnormal results included; normal_cdf in float64 to 1e-12."""
    for what, x in draws(function, dtype).items():
        expected, found = exact(function, x), computed(function, x)
        if function == "normal_cdf" and dtype == "float64":
            kept = expected > 1e-300
            np.testing.assert_allclose(found[kept], expected[kept], rtol=1e-12, err_msg=what)
            assert (found[~kept] <= 1e-299).all()
            continue
        off = units_off(found, expected)
        worst = int(np.nanargmax(off))
        assert not np.isnan(off).any(), f"{what}: {function}({x[np.isnan(off)][0]!r})"
        assert off[worst] <= 4, (
            f"{what}: {function}({x[worst]!r}) is {found[worst]!r}, off by {off[worst]:.1f}"
        )


OO, NAN = math.inf, math.nan
EDGES: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "exp": ((0.0, -0.0, OO, -OO, 1e4, -1e4), (1, 1, OO, 0, OO, 0)),
    "expm1": ((0.0, -0.0, OO, -OO, 1e4, -1e4), (0, -0.0, OO, -1, OO, -1)),
    "tanh": ((0.0, -0.0, OO, -OO, 1e4, -1e30), (0, -0.0, 1, -1, 1, -1)),
    "log": ((0.0, -0.0, OO, -OO, 1, -1, -1e-40), (-OO, -OO, OO, NAN, 0, NAN, NAN)),
    "log1p": ((0.0, -0.0, OO, -OO, -1, -1.5, -1e30), (0, -0.0, OO, NAN, -OO, NAN, NAN)),
    "normal_cdf": ((0.0, -0.0, OO, -OO, 50, -50, 1e30, -1e30), (0.5, 0.5, 1, 0, 1, 0, 1, 0)),
}
"""Arguments, and what each function is there."""


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_at_the_edges(function: str, dtype: str) -> None:
    """Both zeros with their signs, both infinities, NaN, what overflows and what has no value."""
    x, expected = (np.array([*numbers, NAN], dtype) for numbers in EDGES[function])
    found = computed(function, x)
    np.testing.assert_array_equal(found, expected)
    signed = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found)[signed], np.signbit(expected)[signed])


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_alone_it_is_as_side_by_side(function: str, dtype: str) -> None:
    """One number at a time, as at the end of a row, gives the same bits."""
    x = draws(function, dtype)["usual"][:5000]
    assert computed(function, x).tobytes() == computed(function, x, width=1).tobytes()


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("function", ["exp", "expm1", "tanh", "normal_cdf", "log1p"])
def test_it_never_turns_back_by_more_than_rounding(function: str, dtype: str) -> None:
    """Where pieces meet there is no step: from one number to the next it falls by 4 units at most."""
    x = np.sort(
        np.random.default_rng(0).uniform(-3 if function != "log1p" else -0.9, 8, NUMBERS).astype(dtype)
    )
    found = computed(function, x)
    fall = found[:-1] - found[1:]
    assert (fall <= 4 * np.spacing(np.abs(found[1:]))).all()

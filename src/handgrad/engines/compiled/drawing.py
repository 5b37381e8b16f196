"""Random numbers of a counter: each is a function of the seed, the step and its own place, whoever draws it."""

from __future__ import annotations

from handgrad.engines.compiled.ir import Code, Number, literal

GOLDEN = 0x9E3779B97F4A7C15
ROUNDS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))


def uniform(code: Code, parts: list[Number], index: Number, width: int) -> Number:
    """Draw numbers in [0, 1) at ``width`` places from ``index`` on, for a seed in parts.

    SplitMix64 on a counter, as `handgrad.rules.primitives.uniform` has it.
    """
    start = literal(0, "i64")
    for part in parts:
        start = _mixed(code, code.binary("add", start, _moved(code, part)))
    lanes = code.lanes(width)
    first = code.binary("add", index, literal(1, "i64"))
    counter = code.binary("add", code.splat(first, width), lanes)
    moved = code.binary("mul", counter, literal(GOLDEN - 2**64, "i64", width))
    drawn = _mixed(code, code.binary("add", moved, code.splat(start, width)))
    top = code.cast("trunc", code.binary("lshr", drawn, literal(40, "i64", width)), "i32")
    return code.binary("fmul", code.cast("uitofp", top, "float"), literal(2.0**-24, "float", width))


def _moved(code: Code, part: Number) -> Number:
    number = code.binary("add", part, literal(1, "i64"))
    return code.binary("mul", number, literal(GOLDEN - 2**64, "i64"))


def _mixed(code: Code, z: Number) -> Number:
    for shift, factor in ROUNDS:
        z = code.binary("xor", z, code.binary("lshr", z, literal(shift, "i64", z.width)))
        if factor != 1:
            z = code.binary("mul", z, literal(factor - 2**64, "i64", z.width))
    return z

"""Elementwise operations: elementary functions as polynomials, arithmetic, changes of type, and random numbers.

All are for several numbers side by side.

LLVM has none that work on vectors, and calling the C library for each number costs ten times as much. All are
accurate to a few units in the last place; `benchmarks/elementary.py` measures how many.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from handgrad.engines.compiled.ir import Code, Number, literal


@dataclass(frozen=True)
class Format:
    """How a floating-point type is laid out, and how far its functions reach."""

    bits: str  # the whole number of the same size
    digits: int  # of the fraction
    bias: int
    magic: float  # adding it rounds to a whole number, which is then in the last bits
    log2_high: float  # log 2 in two parts, the first with few digits, so that k times it is exact
    log2_low: float
    lowest: float  # exp of less is 0
    highest: float  # exp of more is infinite


FORMATS = {
    "float": Format("i32", 23, 127, 12582912.0, 0.693359375, -2.12194440e-4, -104.0, 89.0),
    "double": Format(
        "i64",
        52,
        1023,
        6755399441055744.0,
        6.93147180369123816490e-01,
        1.90821492927058770002e-10,
        -746.0,
        710.0,
    ),
}


EXPM1_LOWEST = -50.0
"""eˣ - 1 of less is -1 in either type."""

TANH_ONE = {"float": 10.0, "double": 20.0}
"""tanh of more is 1: what it lacks, 2 e⁻²ˣ, is less than half of the last bit."""

NORMAL_ONE = 40.0
"""Further from 0 the normal distribution's share is 0 or 1 in either type."""

EXP_TERMS, LOG_TERMS = {"float": 7, "double": 13}, {"float": 5, "double": 11}
"""Of a series: the terms that are left out are less than half of the last bit."""


class Elementary:
    """Writes elementary functions of numbers of one type and width."""

    def __init__(self, code: Code, kind: str, width: int) -> None:
        self.code, self.kind, self.width = code, kind, width
        self.format = FORMATS[kind]

    def number(self, value: float) -> Number:
        return literal(value, self.kind, self.width)

    def whole(self, value: int) -> Number:
        return literal(value, self.format.bits, self.width)

    def add(self, a: Number, b: Number) -> Number:
        return self.code.binary("fadd", a, b)

    def subtract(self, a: Number, b: Number) -> Number:
        return self.code.binary("fsub", a, b)

    def multiply(self, a: Number, b: Number) -> Number:
        return self.code.binary("fmul", a, b)

    def divide(self, a: Number, b: Number) -> Number:
        return self.code.binary("fdiv", a, b)

    def fma(self, a: Number, b: Number, c: Number) -> Number:
        return self.code.intrinsic("fma", a, b, c)

    def absolute(self, a: Number) -> Number:
        return self.code.intrinsic("fabs", a)

    def polynomial(self, x: Number, coefficients: tuple[float, ...]) -> Number:
        """Return c₀ xᵏ + c₁ xᵏ⁻¹ + …, by Horner's rule."""
        total = self.number(coefficients[0])
        for coefficient in coefficients[1:]:
            total = self.fma(total, x, self.number(coefficient))
        return total

    def bounded(self, x: Number, low: float, high: float) -> Number:
        """Return x, brought between two bounds; NaN stays NaN."""
        above = self.code.compare("ogt", x, self.number(high))
        x = self.code.select(above, self.number(high), x)
        below = self.code.compare("olt", x, self.number(low))
        return self.code.select(below, self.number(low), x)

    def power_of_two(self, k: Number) -> Number:
        """Return 2ᵏ for a whole number k in the range of normal numbers."""
        f = self.format
        biased = self.code.binary("add", k, self.whole(f.bias))
        return self.code.cast("bitcast", self.code.binary("shl", biased, self.whole(f.digits)), self.kind)

    def reduced(self, x: Number) -> tuple[Number, Number]:
        """Return k and r with x = k log 2 + r and |r| ≤ ½ log 2."""
        f = self.format
        shifted = self.fma(x, self.number(1 / math.log(2)), self.number(f.magic))
        rounded = self.subtract(shifted, self.number(f.magic))
        negative = self.code.emit(f"fneg {rounded}", self.kind, self.width)
        r = self.fma(negative, self.number(f.log2_low), self.fma(negative, self.number(f.log2_high), x))
        bits = self.code.cast("bitcast", shifted, f.bits)
        magic = self.code.cast("bitcast", self.number(f.magic), f.bits)
        return self.code.binary("sub", bits, magic), r

    def expm1_near_zero(self, r: Number) -> Number:
        """Return eʳ - 1 for |r| ≤ ½ log 2."""
        series = tuple(1 / math.factorial(k) for k in range(EXP_TERMS[self.kind], 1, -1))
        return self.fma(self.multiply(r, r), self.polynomial(r, series), r)

    def exp(self, x: Number) -> Number:
        return self.scaled_exp(x, self.number(-0.0), self.number(1))  # adding -0 is nothing

    def scaled_exp(self, x: Number, low: Number, factor: Number) -> Number:
        """Return factor · eˣ, where x is given in two parts, the second one small."""
        k, r = self.reduced(self.bounded(x, self.format.lowest, self.format.highest))
        r = self.add(r, low)
        half = self.code.binary("ashr", k, self.whole(1))  # 2ᵏ in two factors: the result may be subnormal
        rest = self.code.binary("sub", k, half)
        near = self.fma(self.expm1_near_zero(r), factor, factor)
        return self.multiply(self.multiply(near, self.power_of_two(half)), self.power_of_two(rest))

    def expm1(self, x: Number) -> Number:
        k, r = self.reduced(self.bounded(x, EXPM1_LOWEST, self.format.highest))
        half = self.power_of_two(
            self.code.binary("sub", k, self.whole(1))
        )  # 2ᵏ itself may overflow too early
        near = self.fma(half, self.expm1_near_zero(r), self.subtract(half, self.number(0.5)))
        doubled = self.add(near, near)
        zero = self.code.compare("oeq", x, self.number(0))
        return self.code.select(zero, x, doubled)

    def tanh(self, x: Number) -> Number:
        size = self.bounded(self.absolute(x), 0, TANH_ONE[self.kind])
        grown = self.expm1(self.add(size, size))
        return self.code.intrinsic("copysign", self.divide(grown, self.add(grown, self.number(2))), x)

    def log(self, x: Number) -> Number:
        """Return log x as k log 2 + log(1 + f): Tang's method, as in FDLIBM."""
        f, code = self.format, self.code
        smallest = 2.0 ** (1 - f.bias)
        tiny = code.compare("olt", x, self.number(smallest))  # subnormal numbers are scaled up first
        normal = code.select(tiny, self.multiply(x, self.number(2.0 ** (f.digits + 2))), x)
        bits = code.cast("bitcast", normal, f.bits)
        root = code.cast("bitcast", self.number(math.sqrt(0.5)), f.bits)
        k = code.binary("ashr", code.binary("sub", bits, root), self.whole(f.digits))
        scaled = code.binary("sub", bits, code.binary("shl", k, self.whole(f.digits)))
        m = self.subtract(code.cast("bitcast", scaled, self.kind), self.number(1))
        k = code.select(tiny, code.binary("sub", k, self.whole(f.digits + 2)), k)
        exponent = self.from_whole(k)
        s = self.divide(m, self.add(m, self.number(2)))
        z = self.multiply(s, s)
        series = tuple(2 / (2 * n + 1) for n in range(LOG_TERMS[self.kind], 0, -1))
        rest = self.multiply(z, self.polynomial(z, series))
        half = self.multiply(self.multiply(m, m), self.number(0.5))
        low = self.fma(exponent, self.number(f.log2_low), self.multiply(s, self.add(half, rest)))
        near = self.subtract(m, self.subtract(half, low))
        result = self.fma(exponent, self.number(f.log2_high), near)
        infinite = code.compare("oeq", x, self.number(math.inf))
        result = code.select(infinite, x, result)
        positive = code.compare("ogt", x, self.number(0))
        outside = code.select(
            code.compare("oeq", x, self.number(0)), self.number(-math.inf), self.number(math.nan)
        )
        return code.select(positive, result, outside)

    def from_whole(self, k: Number) -> Number:
        """Return a small whole number as a floating-point one, without the slow conversion of 64-bit numbers."""
        magic = self.code.cast("bitcast", self.number(self.format.magic), self.format.bits)
        shifted = self.code.cast("bitcast", self.code.binary("add", k, magic), self.kind)
        return self.subtract(shifted, self.number(self.format.magic))

    def log1p(self, x: Number) -> Number:
        """Return log(1 + x): the logarithm of the rounded sum, and what the rounding lost."""
        code = self.code
        total = self.add(x, self.number(1))
        lost = self.divide(self.subtract(x, self.subtract(total, self.number(1))), total)
        usual = code.compare("one", total, self.number(0))
        finite = code.compare("olt", total, self.number(math.inf))
        lost = code.select(code.binary("and", usual, finite), lost, self.number(0))
        zero = code.compare("oeq", x, self.number(0))  # whose sign stays
        return code.select(zero, x, self.add(self.log(total), lost))

    def normal_cdf(self, x: Number) -> Number:
        """Return the share of the standard normal distribution below x.

        Half of erfc(u) for u = |x| / √2: e^(-u²) / (1 + h) times a polynomial in h / (1 + h) - ½, where h = u / 2
        (fitted by `benchmarks/elementary.py --fit`). That variable is accurate near 0, where 1 / (1 + h) is not
        accurate enough, and keeps the terms small in the far tail. The square is taken exactly, in two parts.
        """
        code, size = self.code, self.bounded(self.absolute(x), 0, NORMAL_ONE)
        square = self.multiply(size, size)
        lost = self.fma(size, size, code.emit(f"fneg {square}", self.kind, self.width))
        h = self.multiply(size, self.number(math.sqrt(0.125)))
        share = self.divide(self.number(1), self.add(h, self.number(1)))
        series = self.polynomial(self.fma(h, share, self.number(-0.5)), ERFC[self.kind])
        minus_half = self.number(-0.5)
        tail = self.scaled_exp(
            self.multiply(square, minus_half), self.multiply(lost, minus_half), self.multiply(share, series)
        )
        negative = code.compare("olt", x, self.number(0))
        return code.select(negative, tail, self.subtract(self.number(1), tail))


ERFC: dict[str, tuple[float, ...]] = {
    "float": (
        0.016196586524851633, 0.004810430688316768, -0.0376379985839474, -0.026295730509148324,
        0.04899287095948092, 0.05177575390137622, -0.0860233980594795, -0.07288243531736566,
        0.27947178816767004, -0.34358035986691055, 0.2553956771334964,
    ),
    "double": (
        0.013794113182103922, -0.001696371477355949, -0.049911618880858696, -0.030945235249759086,
        0.044190256953433996, 0.059425006476971035, 0.004178286099134935, -0.04243725471795723,
        -0.038408182743687964, -1.261642835485756e-05, 0.03292440548368755, 0.029864943293357697,
        -0.004621546188233531, -0.033017137790861954, -0.02221618873573493, 0.01748432461165957,
        0.03698447599645648, 0.004399540544741656, -0.042436703169041114, -0.02679347392657704,
        0.04944979292362267, 0.05183348054099578, -0.08604264755770244, -0.07288446301375257,
        0.27947209255605376, -0.3435803422069053, 0.25539567631050575,
    ),
}  # fmt: skip
"""½ e^(u²) erfc(u) (1 + h), h = u / 2, as a polynomial in h / (1 + h) - ½, the highest power first."""


CONDITIONS = {
    "less": ("olt", "slt"),
    "less_equal": ("ole", "sle"),
    "greater": ("ogt", "sgt"),
    "greater_equal": ("oge", "sge"),
    "equal": ("oeq", "eq"),
    "not_equal": ("une", "ne"),
}


def as_kind(code: Code, a: Number, kind: str) -> Number:
    """Return a number as another type."""
    if a.kind == kind:
        return a
    if a.text.startswith("0x") and a.width == 1 and kind == "float" and a.kind == "double":
        return Number(a.text, kind)  # a literal that both types hold
    if a.kind == "i1":
        return code.cast("uitofp" if kind in ("float", "double") else "zext", a, kind)
    if a.kind == "i64" and kind in ("float", "double"):
        return code.cast("sitofp", a, kind)
    if kind == "i64":
        return code.cast("fptosi", a, kind)
    return code.cast("fptrunc" if kind == "float" else "fpext", a, kind)


def elementwise(code: Code, operation: str, operands: list[Number], kind: str) -> Number:
    """Compute an elementwise operation of numbers of one type."""
    width = operands[0].width
    if operation in CONDITIONS:
        condition = CONDITIONS[operation][kind in ("i64", "i1")]  # true is 1, and not -1
        return code.compare(condition.replace("s", "u") if kind == "i1" else condition, *operands)
    if operation == "where":
        return code.select(*operands)
    if operation.startswith("logical"):
        if operation == "logical_not":
            return code.binary("xor", operands[0], literal(-1, "i1", width))
        return code.binary(operation.removeprefix("logical_"), *operands)
    plain = {"add": "add", "subtract": "sub", "multiply": "mul", "divide": "div"}
    if operation in plain:
        return code.binary(f"f{plain[operation]}" if kind != "i64" else plain[operation], *operands)
    if kind == "i64":
        raise NotImplementedError(f"{operation} of whole numbers is not compiled")
    if operation in ("exp", "expm1", "tanh", "log", "log1p", "normal_cdf"):
        result: Number = getattr(Elementary(code, kind, width), operation)(operands[0])
        return result
    match operation:
        case "negative":
            return code.emit(f"fneg {operands[0]}", kind, width)
        case "convert" | "broadcast":
            return operands[0]
        case "floor_divide":
            return code.intrinsic("floor", code.binary("fdiv", *operands))
        case "sign":
            one = code.intrinsic("copysign", literal(1, kind, width), operands[0])
            nonzero = code.compare("one", operands[0], literal(0, kind, width))
            return code.select(nonzero, one, operands[0])
    names = {
        "absolute": "fabs", "maximum": "maximum", "minimum": "minimum", "sqrt": "sqrt", "power": "pow",
        "floor": "floor", "ceil": "ceil", "sin": "sin", "cos": "cos", "tan": "tan", "sinh": "sinh", "cosh": "cosh",
        "arctan": "atan", "arcsin": "asin", "arccos": "acos",
    }  # fmt: skip
    return code.intrinsic(names[operation], *operands)


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

"""Elementwise operations: elementary functions as polynomials, arithmetic, changes of type, and random numbers.

LLVM has no elementary functions of vectors, and calling the C library for each number costs ten times as much. All are
accurate to a few units in the last place; `benchmarks/elementary.py` measures how many.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

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
        "i64", 52, 1023, 6755399441055744.0, 6.93147180369123816490e-01, 1.90821492927058770002e-10, -746.0, 710.0
    ),
}  # fmt: skip

EXPM1_LOWEST = -50.0
"""eˣ - 1 of less is -1 in either type."""

TANH_ONE = {"float": 10.0, "double": 20.0}
"""tanh of more is 1: what it lacks, 2 e⁻²ˣ, is less than half of the last bit."""

NORMAL_ONE = 40.0
"""Further from 0 the normal distribution's share is 0 or 1 in either type."""

EXP_TERMS, LOG_TERMS = {"float": 7, "double": 13}, {"float": 5, "double": 11}
"""Of a series: the terms that are left out are less than half of the last bit."""


class Elementary:
    """Writes elementary functions of numbers of one type."""

    def __init__(self, code: Code, kind: str) -> None:
        self.code, self.kind, self.format = code, kind, FORMATS[kind]

    def fma(self, a: Number, b: Number | float, c: Number | float) -> Number:
        b, c = (x if isinstance(x, Number) else a.like(x) for x in (b, c))
        return self.code.intrinsic("fma", a, b, c)

    def absolute(self, a: Number) -> Number:
        return self.code.intrinsic("fabs", a)

    def select(self, condition: Number, a: Number, b: Number) -> Number:
        return self.code.select(condition, a, b)

    def bits(self, a: Number) -> Number:
        return self.code.cast("bitcast", a, self.format.bits)

    def from_bits(self, a: Number) -> Number:
        return self.code.cast("bitcast", a, self.kind)

    def shifted_right(self, k: Number, places: int) -> Number:
        """Return a whole number without so many binary places; the sign stays."""
        return self.code.binary("ashr", k, k.like(places))

    def polynomial(self, x: Number, coefficients: tuple[float, ...]) -> Number:
        total = x.like(coefficients[0])
        for coefficient in coefficients[1:]:
            total = self.fma(total, x, coefficient)
        return total

    def bounded(self, x: Number, low: float, high: float) -> Number:
        """Return x, brought between two bounds; NaN stays NaN."""
        x = self.select(x > high, x.like(high), x)
        return self.select(x < low, x.like(low), x)

    def power_of_two(self, k: Number) -> Number:
        """Return 2ᵏ for a whole number k in the range of normal numbers."""
        return self.from_bits((k + self.format.bias) << self.format.digits)

    def reduced(self, x: Number) -> tuple[Number, Number]:
        """Return k and r with x = k log 2 + r and |r| ≤ ½ log 2."""
        f = self.format
        shifted = self.fma(x, 1 / math.log(2), f.magic)
        negative = -(shifted - f.magic)
        r = self.fma(negative, f.log2_low, self.fma(negative, f.log2_high, x))
        return self.bits(shifted) - self.bits(x.like(f.magic)), r

    def expm1_near_zero(self, r: Number) -> Number:
        """Return eʳ - 1 for |r| ≤ ½ log 2."""
        series = tuple(1 / math.factorial(k) for k in range(EXP_TERMS[self.kind], 1, -1))
        return self.fma(r * r, self.polynomial(r, series), r)

    def exp(self, x: Number) -> Number:
        return self.scaled_exp(x, -0.0, x.like(1))  # adding -0 is nothing

    def scaled_exp(self, x: Number, low: Number | float, factor: Number) -> Number:
        """Return factor · eˣ, where x is given in two parts, the second one small."""
        k, r = self.reduced(self.bounded(x, self.format.lowest, self.format.highest))
        r = r + low
        half = self.shifted_right(k, 1)  # 2ᵏ in two factors: the result may be subnormal
        rest = k - half
        near = self.fma(self.expm1_near_zero(r), factor, factor)
        return near * self.power_of_two(half) * self.power_of_two(rest)

    def expm1(self, x: Number) -> Number:
        k, r = self.reduced(self.bounded(x, EXPM1_LOWEST, self.format.highest))
        half = self.power_of_two(k - 1)  # 2ᵏ itself may overflow too early
        near = self.fma(half, self.expm1_near_zero(r), half - 0.5)
        doubled = near + near
        return self.select(x.equals(0), x, doubled)

    def tanh(self, x: Number) -> Number:
        size = self.bounded(self.absolute(x), 0, TANH_ONE[self.kind])
        grown = self.expm1(size + size)
        return self.code.intrinsic("copysign", grown / (grown + 2), x)

    def log(self, x: Number) -> Number:
        """Return log x as k log 2 + log(1 + f): Tang's method, as in FDLIBM."""
        f = self.format
        tiny = x < 2.0 ** (1 - f.bias)  # subnormal numbers are scaled up first
        bits = self.bits(self.select(tiny, x * 2.0 ** (f.digits + 2), x))
        root = self.bits(x.like(math.sqrt(0.5)))
        k = self.shifted_right(bits - root, f.digits)
        m = self.from_bits(bits - (k << f.digits)) - 1
        exponent = self.from_whole(self.select(tiny, k - (f.digits + 2), k))
        s = m / (m + 2)
        z = s * s
        series = tuple(2 / (2 * n + 1) for n in range(LOG_TERMS[self.kind], 0, -1))
        rest = z * self.polynomial(z, series)
        half = m * m * 0.5
        low = self.fma(exponent, f.log2_low, s * (half + rest))
        result = self.fma(exponent, f.log2_high, m - (half - low))
        result = self.select(x.equals(math.inf), x, result)
        positive = x > 0
        outside = self.select(x.equals(0), x.like(-math.inf), x.like(math.nan))
        return self.select(positive, result, outside)

    def from_whole(self, k: Number) -> Number:
        """Return a small whole number as a floating-point one, without the slow conversion of 64-bit numbers."""
        magic = literal(self.format.magic, self.kind, k.width, self.code)
        return self.from_bits(k + self.bits(magic)) - magic

    def log1p(self, x: Number) -> Number:
        """Return log(1 + x): the logarithm of the rounded sum, and what the rounding lost."""
        total = x + 1
        lost = (x - (total - 1)) / total
        lost = self.select(total.differs(0) & (total < math.inf), lost, x.like(0))
        zero = x.equals(0)  # whose sign stays
        return self.select(zero, x, self.log(total) + lost)

    def normal_cdf(self, x: Number) -> Number:
        """Return the share of the standard normal distribution below x.

        Half of erfc(u) for u = |x| / √2: e^(-u²) / (1 + h) times a polynomial in h / (1 + h) - ½, where h = u / 2
        (fitted by `benchmarks/elementary.py --fit`). That variable is accurate near 0, where 1 / (1 + h) is not
        accurate enough, and keeps the terms small in the far tail. The square is taken exactly, in two parts.
        """
        size = self.bounded(self.absolute(x), 0, NORMAL_ONE)
        square = size * size
        lost = self.fma(size, size, -square)
        h = size * math.sqrt(0.125)
        share = x.like(1) / (h + 1)
        series = self.polynomial(self.fma(h, share, -0.5), ERFC[self.kind])
        tail = self.scaled_exp(square * -0.5, lost * -0.5, share * series)
        return self.select(x < 0, tail, x.like(1) - tail)


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
    if operation in ("copy", "convert", "broadcast"):
        return operands[0]
    if kind == "i64":
        raise NotImplementedError(f"{operation} of whole numbers is not compiled")
    if operation in ("exp", "expm1", "tanh", "log", "log1p", "normal_cdf"):
        result: Number = getattr(Elementary(code, kind), operation)(replace(operands[0], code=code))
        return result
    match operation:
        case "negative":
            return code.emit(f"fneg {operands[0]}", kind, width)
        case "floor_divide":
            return code.intrinsic("floor", code.binary("fdiv", *operands))
        case "sign":
            one = code.intrinsic("copysign", literal(1, kind, width), operands[0])
            return code.select(code.compare("one", operands[0], literal(0, kind, width)), one, operands[0])
    names = {
        "absolute": "fabs", "maximum": "maximum", "minimum": "minimum", "sqrt": "sqrt", "power": "pow",
        "floor": "floor", "ceil": "ceil", "sin": "sin", "cos": "cos", "tan": "tan", "sinh": "sinh", "cosh": "cosh",
        "arctan": "atan", "arcsin": "asin", "arccos": "acos",
    }  # fmt: skip
    return code.intrinsic(names[operation], *operands)


GOLDEN = 0x9E3779B97F4A7C15 - 2**64
ROUNDS = ((30, 0xBF58476D1CE4E5B9 - 2**64), (27, 0x94D049BB133111EB - 2**64), (31, 1))


def uniform(code: Code, parts: list[Number], index: Number, width: int) -> Number:
    """Draw numbers in [0, 1) at places from ``index`` on, as `handgrad.rules.primitives.uniform` does: SplitMix64."""
    start = literal(0, "i64")
    for part in parts:
        start = _mixed(start + (part + 1) * GOLDEN)
    counter = code.splat(index + 1, width) + code.lanes(width)
    drawn = _mixed(counter * GOLDEN + code.splat(start, width))
    top = code.cast("trunc", drawn >> 40, "i32")
    return code.cast("uitofp", top, "float") * 2.0**-24


def _mixed(z: Number) -> Number:
    for shift, factor in ROUNDS:
        z = z ^ (z >> shift)
        if factor != 1:
            z = z * factor
    return z

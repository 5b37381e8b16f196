"""Writing LLVM's intermediate representation: a function's text, one operation after another.

Every operation is written for one number or for several side by side (a vector), in the same words. Numbers have
Python's operators, each of which writes one operation: ``row * columns + column``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import llvmlite.binding as llvm

LANES = {"float": 16, "double": 8}
"""How many numbers are computed side by side; a processor with narrower registers does it in several steps."""

SHORT = {"float": "f32", "double": "f64"}
"""How the names of LLVM's own functions shorten a type."""


def _operator(whole: str, real: str = "") -> Callable[[Number, Operand], Number]:
    """Return the method that writes one operation, named as LLVM does for whole and for floating-point numbers."""

    def write(a: Number, b: Operand) -> Number:
        b = b if isinstance(b, Number) else a.like(b)
        operation = real if a.kind in LANES else whole
        result = "i1" if "cmp" in operation else a.kind
        code = a.code or b.code
        assert code is not None
        return code.emit(f"{operation} {a}, {b.text}", result, a.width)

    return write


@dataclass(frozen=True)
class Number:
    """A register or a constant: its text, the type of one number, how many are side by side, whose code it is of."""

    text: str
    kind: str
    width: int = 1
    code: Code | None = field(default=None, compare=False, repr=False)

    @property
    def type(self) -> str:
        return self.kind if self.width == 1 else f"<{self.width} x {self.kind}>"

    def __str__(self) -> str:
        return f"{self.type} {self.text}"

    def like(self, number: float) -> Number:
        return literal(number, self.kind, self.width, self.code)

    __add__ = _operator("add", "fadd")
    __sub__ = _operator("sub", "fsub")
    __mul__ = _operator("mul", "fmul")
    __truediv__ = _operator("", "fdiv")
    __floordiv__ = _operator("sdiv")
    __mod__ = _operator("srem")
    __and__ = _operator("and")
    __or__ = _operator("or")
    __xor__ = _operator("xor")
    __lshift__ = _operator("shl")
    __rshift__ = _operator("lshr")
    __lt__ = _operator("icmp slt", "fcmp olt")
    __le__ = _operator("icmp sle", "fcmp ole")
    __gt__ = _operator("icmp sgt", "fcmp ogt")
    __ge__ = _operator("icmp sge", "fcmp oge")
    equals = _operator("icmp eq", "fcmp oeq")
    differs = _operator("icmp ne", "fcmp one")

    def __invert__(self) -> Number:
        return self ^ -1

    def __neg__(self) -> Number:
        assert self.code is not None
        return self.code.emit(f"fneg {self}", self.kind, self.width)


Operand: TypeAlias = Number | float


def literal(number: float, kind: str, width: int = 1, code: Code | None = None) -> Number:
    """Return a constant, the same in every lane."""
    if kind in LANES:
        rounded = struct.unpack("f", struct.pack("f", number))[0] if kind == "float" else number
        text = f"0x{struct.unpack('Q', struct.pack('d', rounded))[0]:016X}"
    else:
        text = str(int(number))
    return Number(text if width == 1 else f"splat ({kind} {text})", kind, width, code)


KERNEL = "i32 @kernel(ptr %arguments, i64 %first, i64 %last)"
"""The signature of a step: a list of 64-bit numbers, and which part of the step to do."""

ZERO, ONE = literal(0, "i64"), literal(1, "i64")

BYTES = {"i8": 1, "i16": 2, "i32": 4, "i64": 8, "ptr": 8, "float": 4, "double": 8}


class Code:
    """The body of one function."""

    def __init__(self) -> None:
        self.definition = ""
        self.lines: list[str] = []
        self.start: list[str] = []  # memory that is allocated once, at the function's start
        self.declared: dict[str, str] = {}
        self.count = 0
        self.part = self.parameter("i64 %first"), self.parameter("i64 %last")

    def parameter(self, text: str) -> Number:
        """Return an argument of the function, given as its signature has it: ``"i64 %first"``."""
        kind, name = text.split()
        return Number(name, kind, code=self)

    def name(self, stem: str = "v") -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def line(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def emit(self, text: str, kind: str, width: int = 1) -> Number:
        register = f"%{self.name()}"
        self.line(f"{register} = {text}")
        return Number(register, kind, width, self)

    def binary(self, operation: str, a: Number, b: Number) -> Number:
        return self.emit(f"{operation} {a}, {b.text}", a.kind, a.width)

    def compare(self, condition: str, a: Number, b: Number) -> Number:
        operation = "fcmp" if a.kind in LANES else "icmp"
        return self.emit(f"{operation} {condition} {a}, {b.text}", "i1", a.width)

    def select(self, condition: Number, a: Number, b: Number) -> Number:
        return self.emit(f"select {condition}, {a}, {b}", a.kind, a.width)

    def cast(self, operation: str, a: Number, kind: str) -> Number:
        target = Number("", kind, a.width)
        return self.emit(f"{operation} {a} to {target.type}", kind, a.width)

    def call(self, function: str, kind: str, *arguments: Number) -> Number:
        """Call a function at an address, or of this module by its name."""
        text = f"call {kind} {function}({', '.join(map(str, arguments))})"
        if kind != "void":
            return self.emit(text, kind)
        self.line(text)
        return Number("", kind)

    def external(self, name: str, kind: str, *arguments: Number) -> Number:
        """Call a function of the system, or one of LLVM's own."""
        self.declared[name] = f"declare {kind} {name}({', '.join(argument.type for argument in arguments)})"
        return self.call(name, kind, *arguments)

    def intrinsic(self, name: str, *arguments: Number) -> Number:
        """Call one of LLVM's own functions of numbers of one type."""
        first = arguments[0]
        short = SHORT.get(first.kind, first.kind)
        suffix = short if first.width == 1 else f"v{first.width}{short}"
        result = self.external(f"@llvm.{name}.{suffix}", first.type, *arguments)
        return replace(result, kind=first.kind, width=first.width)

    def splat(self, a: Number, width: int) -> Number:
        """Return one number in every lane."""
        if width == a.width:
            return a
        wide = Number("", a.kind, width).type
        first = self.emit(f"insertelement {wide} poison, {a}, i64 0", a.kind, width)
        zeros = f"<{width} x i32> zeroinitializer"
        return self.emit(f"shufflevector {first}, {wide} poison, {zeros}", a.kind, width)

    def lanes(self, width: int) -> Number:
        """Return the whole numbers 0, 1, 2, … side by side."""
        return Number(f"<{', '.join(f'i64 {k}' for k in range(width))}>", "i64", width)

    def fold(self, operation: str, start: Number, a: Number) -> Number:
        """Return the sum, or the largest or smallest, of the lanes."""
        if a.width == 1:
            return a
        full = f"@llvm.vector.reduce.{operation}.v{a.width}{SHORT[a.kind]}"
        given = f"{start}, {a}" if operation == "fadd" else str(a)
        types = f"{start.type}, {a.type}" if operation == "fadd" else a.type
        self.declared[full] = f"declare {a.kind} {full}({types})"
        flag = "reassoc " if operation == "fadd" else ""
        return self.emit(f"call {flag}{a.kind} {full}({given})", a.kind)

    # memory

    def argument(self, place: int, kind: str = "i64") -> Number:
        """Read a number from the list that every kernel takes."""
        return self.load(self.address("%arguments", "i64", literal(place, "i64")), kind)

    def address(self, base: str, kind: str, index: Number) -> str:
        return self.emit(f"getelementptr {kind}, ptr {base}, {index}", "ptr").text

    def load(
        self, address: str, kind: str, width: int = 1, mask: Number | None = None, *, order: str = ""
    ) -> Number:
        """Read numbers side by side, 0 where ``mask`` is false; ``order`` is that of an atomic access."""
        whole, size = Number("", kind, width).type, BYTES[kind]
        if order:
            return self.emit(f"load atomic {whole}, ptr {address} {order}, align {size}", kind)
        if mask is None:
            return self.emit(f"load {whole}, ptr {address}, align {size}", kind, width)
        name = f"@llvm.masked.load.v{width}{SHORT.get(kind, kind)}.p0"
        placed, types = _masked(address, size)
        self.declared[name] = f"declare {whole} {name}({types}, {mask.type}, {whole})"
        return self.emit(f"call {whole} {name}({placed}, {mask}, {whole} zeroinitializer)", kind, width)

    def gather(self, base: str, kind: str, index: Number, mask: Number | None = None) -> Number:
        """Read numbers at several indices side by side, 0 where ``mask`` is false."""
        width, size = index.width, BYTES[kind]
        whole = Number("", kind, width).type
        addresses = self.emit(f"getelementptr {kind}, ptr {base}, {index}", "ptr", width)
        mask = mask or literal(-1, "i1", width)
        name = f"@llvm.masked.gather.v{width}{SHORT.get(kind, kind)}.v{width}p0"
        placed, types = _masked(addresses.text, size, addresses.type)
        self.declared[name] = f"declare {whole} {name}({types}, {mask.type}, {whole})"
        return self.emit(f"call {whole} {name}({placed}, {mask}, {whole} zeroinitializer)", kind, width)

    def store(self, a: Number, address: str, mask: Number | None = None, *, order: str = "") -> None:
        """Write numbers side by side, where ``mask`` is true; ``order`` as of `load`."""
        size = BYTES[a.kind]
        if mask is None:
            self.line(
                f"store {'atomic ' * bool(order)}{a}, ptr {address} {order}".rstrip() + f", align {size}"
            )
            return
        name = f"@llvm.masked.store.v{a.width}{SHORT.get(a.kind, a.kind)}.p0"
        placed, types = _masked(address, size)
        self.declared[name] = f"declare void {name}({a.type}, {types}, {mask.type})"
        self.line(f"call void {name}({a}, {placed}, {mask})")

    def variable(self, start: Number) -> str:
        """Return the address of a number of the function's own, which starts at ``start``."""
        name = f"%{self.name('own')}"
        self.start += [f"  {name} = alloca {start.type}", f"  store {start}, ptr {name}"]
        return name

    def recall(self, variable: str, kind: str, width: int = 1) -> Number:
        return self.emit(f"load {Number('', kind, width).type}, ptr {variable}", kind, width)

    def assign(self, variable: str, a: Number) -> None:
        self.line(f"store {a}, ptr {variable}")

    # control

    @contextmanager
    def loop(self, first: Number, last: Number, step: int = 1) -> Iterator[Number]:
        """Repeat what is written inside for ``first``, ``first + step``, … below ``last``."""
        head, body, end = (self.name(stem) for stem in ("head", "body", "end"))
        place = self.variable(ZERO)
        self.assign(place, first)
        self.line(f"br label %{head}")
        self.lines.append(f"{head}:")
        index = self.recall(place, "i64")
        inside = index < last
        self.line(f"br {inside}, label %{body}, label %{end}")
        self.lines.append(f"{body}:")
        yield index
        self.assign(place, index + step)
        self.line(f"br label %{head}")
        self.lines.append(f"{end}:")

    @contextmanager
    def when(self, condition: Number) -> Iterator[None]:
        """Do what is written inside only when a condition holds."""
        inside, end = self.name("when"), self.name("end")
        self.line(f"br {condition}, label %{inside}, label %{end}")
        self.lines.append(f"{inside}:")
        yield
        self.line(f"br label %{end}")
        self.lines.append(f"{end}:")

    @contextmanager
    def repeat(self) -> Iterator[list[Number]]:
        """Repeat what is written inside as long as the condition holds that is put into the list."""
        body, end = self.name("again"), self.name("end")
        self.line(f"br label %{body}")
        self.lines.append(f"{body}:")
        conditions: list[Number] = []
        yield conditions
        self.line(f"br {conditions[0]}, label %{body}, label %{end}")
        self.lines.append(f"{end}:")

    def leave(self, result: Number) -> None:
        self.line(f"ret {result}")
        self.lines.append(f"{self.name('after')}:")

    def define(self, signature: str = KERNEL, result: str = "i32 0") -> Code:
        body = [f"define {signature} #0 {{", "entry:", *self.start, *self.lines, f"  ret {result}", "}"]
        self.definition = "\n".join(body)
        return self


def module(*functions: Code) -> str:
    """Return the text of a module of some functions."""
    declared = {name: text for function in functions for name, text in function.declared.items()}
    attributes = 'attributes #0 = { nounwind "prefer-vector-width"="512" }'
    return "\n".join([*declared.values(), *(function.definition for function in functions), attributes, ""])


def _masked(address: str, size: int, kind: str = "ptr") -> tuple[str, str]:
    """Return the address and alignment of a masked access, and their types, as this version of LLVM has them."""
    if llvm.llvm_version_info[0] >= 22:
        return f"{kind} align {size} {address}", kind
    return f"{kind} {address}, i32 {size}", f"{kind}, i32"

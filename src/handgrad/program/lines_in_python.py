"""A program run by Python: its lines one by one, or all as one function; and the shapes and types that this shows."""

from __future__ import annotations

import linecache
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from types import CodeType
from typing import Any, TypeVar

import numpy as np

from handgrad.errors import ShapeError
from handgrad.program.printing import function_source
from handgrad.program.program import Program, ProgramLine
from handgrad.program.shapes_only import everywhere
from handgrad.rules import PRIMITIVES, Shape, Size
from handgrad.rules.rule_source import blocks, source_of_block

Scope = dict[str, Any]
Error = TypeVar("Error", bound=Exception)


@lru_cache(maxsize=4096)
def code_of(source: str, mode: str = "eval") -> CodeType:
    """Compile an expression, or statements, once."""
    return compile(source, "<line>", mode)


def evaluate(expression: str, scope: Mapping[str, Any]) -> Any:
    """Compute an expression over some values."""
    return eval(code_of(expression), dict(PRIMITIVES), scope)


def run_source(source: str, scope: Scope) -> None:
    """Run a line, or a loop, in its scope: make a value there, or change an array in place."""
    exec(code_of(source, "exec"), dict(PRIMITIVES), scope)


def run_lines(lines: Iterable[ProgramLine], given: Mapping[str, Any]) -> Scope:
    """Run lines one after another, and return every value they know afterwards."""
    scope = dict(given)
    with np.errstate(all="ignore"):
        for block in blocks(lines):
            run_source(source_of_block(block), scope)
    return scope


def compile_program(program: Program, name: str) -> Callable[..., Any]:
    """Return a program as a Python function, whose lines tracebacks show and debuggers stop on."""
    source = function_source(program, name)
    filename = f"<handgrad {name} {zlib.crc32(source.encode()):08x}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    scope: dict[str, Any] = dict(PRIMITIVES)
    exec(compile(source, filename, "exec"), scope)
    function: Callable[..., Any] = scope[name]
    return function


def raised_in(error: Error, program: Program, name: str, line: ProgramLine, scope: Scope) -> Error:
    """Return an error as if a line of the program's function had raised it: there a debugger finds the values of a scope."""
    filename = compile_program(program, name).__code__.co_filename
    same = [other for other in program.lines if str(other) == str(line)]
    texts = enumerate(linecache.getlines(filename), 1)
    numbers = [number for number, text in texts if text.strip().startswith(f"{line}  # ")]
    number = numbers[same.index(line)] if len(numbers) == len(same) else 1
    code = compile("\n" * (number - 1) + "raise __error__", filename, "exec").replace(co_name=name)
    try:
        exec(code, {**PRIMITIVES, "__error__": error}, scope)
    except type(error):
        assert error.__traceback__ is not None
        error.__traceback__ = error.__traceback__.tb_next  # without this function
    return error


def measure(program: Program) -> Program:
    """Return the program with the shape and type of every line, from batches of 2 and of 3 rows.

    How much a size differs states how it depends on n: ``n``, or ``7n`` where rows are joined.
    """
    two, three = _probe(program, 2), _probe(program, 3)
    saved = program.shapes

    def measured(line: ProgramLine) -> ProgramLine:
        if not line.makes and not line.index:
            return replace(line, shape=saved[line.target], dtype=program.dtype)
        small, large = evaluate(line.place, two), evaluate(line.place, three)
        shape = tuple(_size(a, b) for a, b in zip(np.shape(small), np.shape(large), strict=True))
        return replace(line, shape=shape, dtype=str(np.result_type(small)))

    return replace(program, lines=tuple(map(measured, program.lines)))


def _size(of_two: int, of_three: int) -> Size:
    slope = of_three - of_two
    if slope == 0:
        return of_two
    return "n" if slope == 1 else f"{slope}n"


def _probe(program: Program, n: int) -> Scope:
    """Run the lines on arrays of ones (and indices 0), without memory of their own, for n rows."""
    one, zero = np.ones((), program.dtype), np.zeros((), int)

    def array(shape: Shape, element: Any = one) -> Any:
        return everywhere(element, tuple(n if size == "n" else int(size) for size in shape))

    scope: Scope = {"n": n, "learning_rate": 0.1, "step": 1, "seed": 0, "micro": 0}
    scope |= {v.name: array(v.shape, zero if v.kind == "index" else one) for v in program.inputs}
    scope |= {name: array(shape) for name, shape in program.shapes.items()}
    filled = {line.target for line in program.lines if line.index}
    with np.errstate(all="ignore"):
        for block in blocks(program.lines):
            line = block[0]
            if line.operator == "=" or line.loop:  # the others keep their shape
                try:
                    run_source(source_of_block(block), scope)
                except ValueError as error:  # the rule is wrong: a network checks what it is given
                    where = line.rule and f", of the rule {line.rule}"
                    raise ShapeError(f"`{line}`{where}: {error}") from None
                made = scope[line.target]
                if line.target in filled and not line.loop:
                    scope[line.target] = np.array(made)  # to be written into
                if isinstance(made, np.ndarray) and made.size and line.target not in filled:
                    # of which only shape and type count from here
                    scope[line.target] = everywhere(made[(0,) * made.ndim], made.shape)
    return scope

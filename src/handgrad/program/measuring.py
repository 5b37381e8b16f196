"""What shape and type each line has: the lines are run on two small batches, and the sizes compared."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from handgrad.errors import ShapeError
from handgrad.program.program import Program, ProgramLine
from handgrad.program.running import run_line
from handgrad.rules import Shape, Size


def measure(program: Program) -> Program:
    """Return the program with the shape and the type of every line.

    A size that differs between a batch of 2 and one of 3 rows depends on n, and how much it differs says
    how: ``n``, or ``7n`` where rows are joined.
    """
    two, three = _probe(program, 2), _probe(program, 3)
    saved = program.shapes

    def measured(line: ProgramLine) -> ProgramLine:
        if line.operator != "=":
            return replace(line, shape=saved[line.target], dtype=program.dtype)
        small, large = two[line.target], three[line.target]
        shape = tuple(_size(a, b) for a, b in zip(np.shape(small), np.shape(large), strict=True))
        return replace(line, shape=shape, dtype=str(np.result_type(small)))

    return replace(program, lines=tuple(measured(line) for line in program.lines))


def _size(of_two: int, of_three: int) -> Size:
    slope = of_three - of_two
    if slope == 0:
        return of_two
    return "n" if slope == 1 else f"{slope}n"


def _probe(program: Program, n: int) -> dict[str, Any]:
    """Run the lines on arrays of ones (and indices 0), without memory of their own, for n rows."""
    one, zero = np.ones((), program.dtype), np.zeros((), int)

    def array(shape: Shape, element: Any = one) -> Any:
        return np.broadcast_to(element, tuple(n if size == "n" else int(size) for size in shape))

    scope: dict[str, Any] = {"n": n, "learning_rate": 0.1, "step": 1, "seed": 0}
    for value in program.inputs:
        scope[value.name] = array(value.shape, zero if value.kind == "index" else one)
    scope |= {name: array(shape) for name, shape in program.shapes.items()}
    with np.errstate(all="ignore"):
        for line in program.lines:
            if line.operator == "=":  # the others keep their shape
                _run(line, scope)
    return scope


def _run(line: ProgramLine, scope: dict[str, Any]) -> None:
    """Run a line; where shapes do not fit together, it is the rule that is wrong: a network checks what it is given."""
    try:
        run_line(line, scope)
    except ValueError as error:
        raise ShapeError(f"`{line}`{line.rule and f', of the rule {line.rule}'}: {error}") from None

"""Lines run one by one, every value of them at hand: for shapes, for explanations, for a loss that is not finite."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import CodeType
from typing import Any

import numpy as np

from handgrad.program.program import ProgramLine
from handgrad.rules import PRIMITIVES

Scope = dict[str, Any]


@lru_cache(maxsize=4096)
def code_of(expression: str) -> CodeType:
    """Compile an expression once."""
    return compile(expression, "<line>", "eval")


def evaluate(expression: str, scope: Mapping[str, Any]) -> Any:
    """Compute an expression over some values.

    Examples
    --------
    >>> evaluate("np.maximum(z, 0)", {"z": -1.0})
    np.float64(0.0)
    """
    return eval(code_of(expression), dict(PRIMITIVES), scope)


def run_line(line: ProgramLine, scope: Scope) -> None:
    """Run a line in its scope: a value is made there, or an array of it is changed in place, as by an update."""
    if line.operator == "=":
        scope[line.target] = evaluate(line.expression, scope)
    else:
        exec(str(line), dict(PRIMITIVES), scope)


def run_lines(lines: Iterable[ProgramLine], given: Mapping[str, Any]) -> Scope:
    """Run lines one after another, and return every value they know afterwards."""
    scope = dict(given)
    with np.errstate(all="ignore"):
        for line in lines:
            run_line(line, scope)
    return scope

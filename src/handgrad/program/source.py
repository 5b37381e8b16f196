"""A program as Python: the source of one function, and the function, whose lines a debugger steps through."""

from __future__ import annotations

import linecache
import zlib
from collections.abc import Callable
from typing import Any

from handgrad.program.program import Program
from handgrad.rules import PRIMITIVES


def function_source(program: Program, name: str) -> str:
    """Return the Python source of a program as one function of its arguments, which returns its outputs."""
    arguments = ", ".join((*program.arguments, *program.scalars))
    body = [f"def {name}({arguments}):"]
    if any("n" in line.reads for line in program.lines):
        body.append("    n = x.shape[0]")
    phase = ""
    for line in program.lines:
        if phase == "loss" and line.phase != "loss":
            body += [
                "    if not np.isfinite(total):  # stop before the update spoils the weights",
                '        raise FloatingPointError("the loss is not finite")',
            ]
        if line.phase != phase:
            body.append(f"    # {line.phase}")
            phase = line.phase
        body.append(f"    {line}  # {line.shown_shape}{'  ' if line.reason else ''}{line.reason}")
    outputs = ", ".join(program.outputs)
    body.append(f"    return {outputs}" if len(program.outputs) > 1 else f"    return ({outputs},)")
    return "\n".join(body) + "\n"


def compile_program(program: Program, name: str) -> Callable[..., Any]:
    """Return a program as a Python function.

    Its source is registered, so that tracebacks show its lines and debuggers stop on them. The file's name,
    ``<handgrad step 1a2b3c4d>``, follows from the source: the same program has the same one every time.
    """
    source = function_source(program, name)
    filename = f"<handgrad {name} {zlib.crc32(source.encode()):08x}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    scope: dict[str, Any] = dict(PRIMITIVES)
    exec(compile(source, filename, "exec"), scope)
    function: Callable[..., Any] = scope[name]
    return function

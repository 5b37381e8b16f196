"""A program in print: as text, as a table for a notebook, as the source of a Python function."""

from __future__ import annotations

import textwrap
from itertools import groupby
from typing import TYPE_CHECKING

from handgrad.notebook_html import heading, table
from handgrad.rules.rule_source import blocks

if TYPE_CHECKING:
    from handgrad.program.program import Program, ProgramLine

WIDEST_CODE = 56
"""The longest line of code beside which its reason is printed in the column of the others."""


def render_text(program: Program, width: int = 120) -> str:
    """Return the program as text of so many columns, with each line's shape and the reason beside it."""
    widths = [len(code) for code in map(_indented, program.lines)]
    code = max((width for width in widths if width <= WIDEST_CODE), default=0)
    column = max((len(line.shown_shape) for line in program.lines), default=0)
    margin = 2 + code + 2 + column + 3
    page = [f"{program.title} · n rows"]
    page += ["", f"{program.micro_loop}:"] if program.micro_batch else []
    for phase, lines in groupby(program.lines, key=lambda line: line.phase):
        inside = "  " * in_micro_batch(program, phase)
        page += ["", inside + phase]
        for block in blocks(lines):
            page += [f"{inside}  {block[0].loop}:"] if block[0].loop else []
            for line in block:
                shown = f"{inside}  {_indented(line):<{code}}  {line.shown_shape:<{column}}"
                reason = textwrap.wrap(line.reason, max(20, width - margin)) or [""]
                page.append(f"{shown}   {reason[0]}".rstrip())
                page += [inside + " " * margin + more for more in reason[1:]]
    return "\n".join(page)


def in_micro_batch(program: Program, phase: str) -> bool:
    """Whether the lines of a phase run for each micro-batch."""
    return bool(program.micro_batch) and phase != "update"


def _indented(line: ProgramLine) -> str:
    return f"    {line}" if line.loop else str(line)


def _released(program: Program) -> dict[ProgramLine, list[str]]:
    """Return the values that a block computed again no longer needs, by its line after which they are deleted."""
    again = {f"{line.again} → " for line in program.lines if line.again}
    alive = {*program.outputs}
    found: dict[ProgramLine, list[str]] = {}
    runs = groupby(
        reversed(blocks(program.lines)),
        lambda block: next((name for name in again if block[0].layer.startswith(name)), ""),
    )
    for name, run in runs:
        pieces = [*run]
        made = dict.fromkeys(line.target for block in reversed(pieces) for line in block if line.makes)
        if name and (dead := [target for target in made if target not in alive]):
            found[pieces[0][0]] = dead
        for block in pieces:
            alive -= {line.target for line in block if line.makes}
            alive.update(*(line.reads for line in block))
    return found


def render_html(program: Program) -> str:
    """Return the program as a table for a notebook."""
    rows: list[tuple[str, ...]] = []
    if program.micro_batch:
        rows.append((f"{program.micro_loop}:",))
    for phase, lines in groupby(program.lines, key=lambda line: line.phase):
        rows.append((phase,))
        for block in blocks(lines):
            rows += [(f"{block[0].loop}:", "", "")] if block[0].loop else []
            rows += [(_indented(line), line.shown_shape, line.reason) for line in block]
    return heading(f"{program.title} · n rows") + table(("line", "shape", "reason"), rows, code=(0, 1))


def function_source(program: Program, name: str) -> str:
    """Return the Python source of a program as one function of its arguments, which returns its outputs."""
    body = [f"def {name}({', '.join((*program.arguments, *program.scalars))}):"]
    body += [f"    {program.micro_loop}:"] if program.micro_batch else []
    inside = "    " * (1 + bool(program.micro_batch))
    if "n" in program.reads:
        body.append(f"{inside}n = x.shape[0]")
    phase = ""
    released = _released(program)
    for block in blocks(program.lines):
        line = block[0]
        if phase == "loss" and line.phase != "loss":
            body += [
                f"{inside}if not np.isfinite(total):  # stop before the update spoils the weights",
                f'{inside}    raise FloatingPointError("the loss is not finite")',
            ]
        if line.phase != phase:
            phase = line.phase
            inside = "    " * (1 + in_micro_batch(program, phase))
            body.append(f"{inside}# {phase}")
        body += [f"{inside}{line.loop}:"] if line.loop else []
        for line in block:
            body.append(
                f"{inside}{_indented(line)}  # {line.shown_shape}{'  ' * bool(line.reason)}{line.reason}"
            )
        if line in released:
            body.append(f"{inside}del {', '.join(released[line])}")
    outputs = ", ".join(program.outputs)
    body.append(f"    return {outputs}" if len(program.outputs) > 1 else f"    return ({outputs},)")
    return "\n".join(body) + "\n"

"""A program as a page of text, or a table in a notebook: lines, shapes and reasons in columns."""

from __future__ import annotations

import textwrap
from itertools import groupby

from handgrad.html import heading, table
from handgrad.program.line import Program
from handgrad.rules import show_shape

WIDEST_CODE = 56


def render_text(program: Program, width: int = 120) -> str:
    """Return the program as text, with each line's shape and the reason beside it.

    Parameters
    ----------
    program
        What to show.
    width
        Columns at most; a reason that does not fit goes on below itself.
    """
    code = max((len(str(line)) for line in program.lines if len(str(line)) <= WIDEST_CODE), default=0)
    shapes = [show_shape(line.shape) if line.shape is not None else "" for line in program.lines]
    column = max(map(len, shapes), default=0)
    margin = 2 + code + 2 + column + 3
    page = [f"{program.title} · n rows"]
    numbered = zip(program.lines, shapes, strict=True)
    for phase, group in groupby(numbered, key=lambda pair: pair[0].phase):
        page += ["", phase]
        for line, shape in group:
            shown = f"  {line!s:<{code}}  {shape:<{column}}"
            reason = textwrap.wrap(line.reason, max(20, width - margin)) or [""]
            page.append(f"{shown}   {reason[0]}".rstrip())
            page += [" " * margin + more for more in reason[1:]]
    return "\n".join(page)


def render_html(program: Program) -> str:
    """Return the program as a table for a notebook."""
    rows: list[tuple[str, ...]] = []
    for phase, lines in groupby(program.lines, key=lambda line: line.phase):
        rows.append((phase,))
        rows += [
            (str(line), show_shape(line.shape) if line.shape is not None else "", line.reason)
            for line in lines
        ]
    return heading(f"{program.title} · n rows") + table(("line", "shape", "reason"), rows, code=(0, 1))

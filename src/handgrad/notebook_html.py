"""What a notebook shows: small pieces of HTML in the notebook's own colours, light or dark.

No script, no style sheet, no <svg>: a notebook removes them where it is untrusted.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

LEFT = ' style="text-align:left"'


class HTMLReprMixin:
    """Shows itself in a notebook as HTML, with its text for whatever shows no HTML."""

    def _repr_html_(self) -> str:
        raise NotImplementedError

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": self._repr_html_()}


def paragraph(text: str) -> str:
    """Return a paragraph."""
    return f"<p>{escape(text)}</p>"


def heading(text: str) -> str:
    """Return a small heading."""
    return f"<p><strong>{escape(text)}</strong></p>"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], code: Sequence[int] = ()) -> str:
    """Return a table; a row of a single cell spans all columns.

    Parameters
    ----------
    headings
        One for each column.
    rows
        Cells, as text.
    code
        Which columns hold lines of a program.
    """

    def cell(number: int, text: str) -> str:
        shown = f"<code>{escape(text)}</code>" if number in code and text else escape(text)
        return f"<td{LEFT}>{shown}</td>"

    head = "".join(f"<th{LEFT}>{escape(text)}</th>" for text in headings)
    body = []
    for row in rows:
        if len(row) == 1:
            body.append(f'<tr><th colspan="{len(headings)}"{LEFT}>{escape(row[0])}</th></tr>')
        else:
            body.append("<tr>" + "".join(cell(number, text) for number, text in enumerate(row)) + "</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def folded(title: str, *parts: str) -> str:
    """Return parts that show when their title is clicked."""
    return f"<details><summary>{escape(title)}</summary>{''.join(parts)}</details>"


def picture(png: bytes, described: str) -> str:
    """Return a picture, inside the page."""
    data = b64encode(png).decode()
    return f'<img alt="{escape(described)}" style="max-width:100%" src="data:image/png;base64,{data}">'

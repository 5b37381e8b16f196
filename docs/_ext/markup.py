"""Markdown made from docstrings, tables and definitions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from families import names


def inline(text: str) -> str:
    """Turn a docstring's marks into Markdown's; the names of rules become links to their pages."""

    def mark(match: re.Match[str]) -> str:
        code, name, other = match.groups()
        if code is not None:
            return f"`{code}`"
        if name is not None:
            return f"[`{name}`](#rule-{name})" if name in names() else f"`{name}`"
        return f"\\{other}"

    return re.sub(r"``(.+?)``|`([^`]+)`|([*<\[\]\\])", mark, text.replace("\\|", "|"))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table, its columns to the left."""
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, [":---"] * len(head), *cells))


def definitions(meanings: Mapping[str, str]) -> str:
    """Return words, each with what is said of it."""
    return "\n\n".join(f"{word}\n: {meaning}" for word, meaning in meanings.items())


def paragraphs(*parts: str) -> str:
    """Join the parts that are not empty."""
    return "\n\n".join(filter(None, parts))

"""An explanation as HTML for a notebook."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

from handgrad.explaining.measures import MIN_ROWS
from handgrad.explaining.page import mathml
from handgrad.explaining.record import Explanation, LedgerEntry
from handgrad.notebook_html import folded, heading, paragraph, table
from handgrad.rules import show_shape
from handgrad.rules.rule_source import blocks

HEIGHT = 720  # of the page's frame, in pixels
UNTRUSTED = "The page is shown when this notebook is trusted: run the cell."
LEDGER = ("line", "shape", "its gradient, or whose it is", "saved for", "reason", "checked")


@dataclass(frozen=True)
class Page:
    """The page of an explanation: its HTML as text, ``str(page)``, which a notebook shows in a frame of its own.

    Examples
    --------
    >>> Page("<p>1 < 2</p>")._repr_mimebundle_()["text/plain"]
    'a page of 12 bytes'
    """

    html: str

    def __str__(self) -> str:
        return self.html

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        # what stands inside is seen where a notebook that is not trusted takes the frame away
        frame = (
            f'<iframe title="explanation" sandbox="allow-scripts" srcdoc="{escape(self.html)}" '
            f'style="width:100%;height:{HEIGHT}px;border:0">{UNTRUSTED}</iframe>'
        )
        return {"text/plain": f"a page of {len(self.html.encode()):,} bytes", "text/html": frame}


def render_notebook(explanation: Explanation) -> str:
    """Return tables of every line and Jacobian, the findings, and the derivations, folded."""
    parts = [heading(explanation.heading), *_health(explanation), table(LEDGER, _lines(explanation), (0, 1))]
    for of, derivation in explanation.derivations.items():
        factors = (part for each in derivation.factors for part in (mathml(each.tex), paragraph(each.reason)))
        parts.append(folded(f"Why d{of} is what it is", mathml(derivation.product), *factors))
    if explanation.jacobians:
        rows = ([*each.facts.values()] for each in explanation.jacobians)
        title = "Jacobians, and how little of each need be stored"
        parts.append(folded(title, table([*explanation.jacobians[0].facts], rows, (0,))))
    return "".join(parts)


def _health(explanation: Explanation) -> Iterator[str]:
    health = explanation.health
    if health.layers and not health.findings:
        few = f" Whether units are dead is judged on {MIN_ROWS} rows or more."
        yield paragraph(f"Health: nothing found.{few if explanation.rows < MIN_ROWS else ''}")
    for found in health.findings:
        yield heading(f"{found.code.replace('-', ' ')} at {found.place}")
        yield paragraph(f"{found.evidence} {found.cause} {found.change}")


def _lines(explanation: Explanation) -> Iterator[tuple[str, ...]]:
    phase = ""
    for block in blocks(explanation.lines):
        if block[0].phase != phase:
            phase = block[0].phase
            yield (phase,)
        if block[0].loop:
            yield (f"{block[0].loop}:", *[""] * (len(LEDGER) - 1))
        for line in block:
            entry = explanation.ledger.get(line.target)
            cells = _entry(entry) if entry is not None else ("", "", "")
            shown = f"    {line}" if line.loop else str(line)
            yield shown, *cells, line.reason, f"{line.witness.mark} {line.witness}" if line.witness else ""


def _entry(entry: LedgerEntry) -> tuple[str, str, str]:
    """Return a value's shape, its gradient or the value it is the gradient of, and what it is saved for."""
    axes = zip(entry.axes, entry.sizes, strict=False)
    named = ", ".join(f"{axis}={size}" if axis != str(size) else axis for axis, size in axes)
    shape = f"({named})" if named else show_shape(entry.sizes)
    saved = f"{', '.join(entry.kept_for)} · {entry.bytes:,} bytes" if entry.kept_for else ""
    return shape, entry.gradient or (f"of {entry.gradient_of}" if entry.gradient_of else ""), saved

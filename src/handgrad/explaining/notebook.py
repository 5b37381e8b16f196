"""An explanation in a notebook: ledger, derivations as formulas, Jacobians, health."""

from __future__ import annotations

from collections.abc import Iterator

from handgrad.explaining.explanation import Derivation, Explanation, Jacobian, LedgerEntry, Witness
from handgrad.explaining.health import LEAST_ROWS
from handgrad.html import folded, formula, heading, paragraph, table
from handgrad.rules import show_shape


def render_html(explanation: Explanation) -> str:
    """Return an explanation as HTML for a notebook."""
    told = f"{explanation.title} · {explanation.rows} rows"
    told += f" · loss {explanation.loss:.4g}" if explanation.loss is not None else ""
    parts = [
        heading(told),
        *_health(explanation),
        table(
            ("line", "shape", "its gradient, or whose it is", "kept for", "reason", "checked"),
            _ledger(explanation),
            (0, 1),
        ),
    ]
    parts += [
        folded(f"Why d{of} is what it is", *_derivation(found))
        for of, found in explanation.derivations.items()
    ]
    if explanation.jacobians:
        parts.append(
            folded("Jacobians, and how little of each need be stored", _jacobians(explanation.jacobians))
        )
    return "".join(parts)


def summary(explanation: Explanation) -> str:
    """Return an explanation in a few lines of text, for what shows no HTML."""
    told = [f"explanation of {explanation.title}: {explanation.rows} rows, {len(explanation.lines)} lines"]
    told += [f"{found.code} at {found.place}: {found.evidence}" for found in explanation.health.findings]
    return "\n".join(told)


def _health(explanation: Explanation) -> Iterator[str]:
    health = explanation.health
    if health.layers and not health.findings:
        few = f" Whether units are dead is judged on {LEAST_ROWS} rows or more."
        yield paragraph(f"Health: nothing found.{few if explanation.rows < LEAST_ROWS else ''}")
    for found in health.findings:
        yield heading(f"{found.code.replace('-', ' ')} at {found.place}")
        yield paragraph(f"{found.evidence} {found.cause} {found.change}")


def _ledger(explanation: Explanation) -> Iterator[tuple[str, ...]]:
    phase = ""
    for line in explanation.lines:
        if line.phase != phase:
            phase = line.phase
            yield (phase,)
        entry = explanation.ledger.get(line.target)
        cells = _entry(entry) if entry is not None else ("", "", "")
        yield f"{line.target} {line.operator} {line.expression}", *cells, line.reason, _checked(line.witness)


def _entry(entry: LedgerEntry) -> tuple[str, str, str]:
    """Return a value's shape, the value beside it and what it is kept for."""
    axes = zip(entry.axes, entry.sizes, strict=False)
    named = ", ".join(f"{axis}={size}" if axis != str(size) else axis for axis, size in axes)
    shape = f"({named})" if named else show_shape(entry.sizes)
    kept = f"{', '.join(entry.kept_for)} · {entry.bytes:,} bytes" if entry.kept_for else ""
    return shape, entry.gradient or (f"of {entry.gradient_of}" if entry.gradient_of else ""), kept


def _checked(witness: Witness | None) -> str:
    if witness is None:
        return ""
    sign = {"right": "✓", "wrong": "✗", "cannot tell": "?"}[witness.verdict]
    return f"{sign} {witness.verdict}: {witness.error:.1e} of {witness.allowed:.1e}"


def _derivation(derivation: Derivation) -> Iterator[str]:
    yield formula(derivation.product)
    for factor in derivation.factors:
        yield formula(factor.tex)
        yield paragraph(factor.reason)


def _jacobians(jacobians: tuple[Jacobian, ...]) -> str:
    rows = [
        (
            f"{jacobian.output} : {jacobian.input}",
            jacobian.structure,
            jacobian.stored,
            f"{jacobian.stored_numbers:,} of {jacobian.full_numbers:,} numbers",
            f"{jacobian.proof:.1e}",
            jacobian.explanation,
        )
        for jacobian in jacobians
    ]
    return table(
        ("of : with respect to", "structure", "stored as", "size", "difference from the full one", "why"),
        rows,
        (0,),
    )

"""An explanation as text for a terminal, at most 80 columns wide."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from handgrad.errors import ProgramError, nearest
from handgrad.explaining.record import (
    ArraySample,
    ExplainedLine,
    Explanation,
    Factor,
    Jacobian,
    LedgerEntry,
    Witness,
)

WIDTH = 80
SHOWN = 6  # numbers of a row, and rows of an array, that are printed


def show_overview(explanation: Explanation) -> str:
    """Show the ledger of every value, and every line with its reason and its witness."""
    parts = [explanation.heading, "values\n" + "\n".join(_ledger(explanation))]
    for phase in ("sample", "forward", "loss", "backward"):
        lines = [line for line in explanation.lines if line.phase == phase]
        if lines:
            parts.append(phase + "\n" + "\n".join(text for line in lines for text in _short(line)))
    findings = explanation.health.findings
    if findings:
        parts.append(show_health(explanation))
    return "\n\n".join(parts)


def show_line(explanation: Explanation, target: str, *, numbers: bool = False) -> str:
    """Show one line: its value's shape, its reason, what it undoes, the chain rule up to it, and its witness.

    Raises
    ------
    ProgramError
        When no line makes ``target``.
    """
    line = next((line for line in explanation.lines if line.target == target), None)
    if line is None:
        known = [line.target for line in explanation.lines]
        raise ProgramError(f"no line makes {target!r}", fix=nearest(target, known))
    entry = explanation.ledger[target]
    facts = {"line": str(line), "shape": _shape(entry)}
    if entry.gradient_of:
        facts["same shape as"] = f"{entry.gradient_of}, whose gradient it is"
    facts |= {"because": line.reason, "undoes": str(explanation.undone(line) or ""), "layer": line.layer}
    facts["saved for"] = ", ".join(entry.kept_for)
    facts["check"] = _witness(line.witness)
    parts = [target + "\n" + "\n".join(_table(facts))]
    derivation = explanation.derivations.get(entry.gradient_of)
    if derivation is not None and target == f"d{derivation.of}":
        factors = (text for factor in derivation.factors for text in _factor(factor))
        parts.append("chain rule\n" + "\n".join(factors))
        parts.append("all in one\n" + _wrapped(derivation.text))
    found = (j for j in explanation.jacobians if (j.output, j.input) == explanation.between(line))
    parts += [show_jacobian(jacobian, explanation, numbers=numbers) for jacobian in found]
    if numbers:
        names = dict.fromkeys((*line.reads, target))
        parts += [show_numbers(explanation.ledger[name]) for name in names if name in explanation.ledger]
    return "\n\n".join(parts)


def show_jacobian(jacobian: Jacobian, explanation: Explanation, *, numbers: bool = False) -> str:
    """Show a Jacobian: its shape, its structure, what is stored of it, and that this is enough."""
    of = "the batch" if jacobian.example is None else f"row {jacobian.example}"
    output = _named(jacobian.output, jacobian.output_sizes, jacobian.output_axes)
    into = _named(jacobian.input, jacobian.input_sizes, jacobian.input_axes)
    facts = {
        "of": f"{output} with respect to {into}, for {of}",
        "structure": jacobian.structure,
        "stored": jacobian.stored,
        "numbers": f"{jacobian.stored_numbers:,} of {jacobian.full_numbers:,}",
        "products": f"{jacobian.stored_operations:,} of {jacobian.full_operations:,}, for one upstream gradient",
        "proof": f"stored and full form times a random upstream differ by {jacobian.proof:.1e}",
        "why": jacobian.explanation,
        "check": _witness(_witness_of(jacobian, explanation)),
    }
    parts = [f"Jacobian {jacobian.output}:{jacobian.input}\n" + "\n".join(_table(facts))]
    if jacobian.added is not None:
        parts.append("rows added too early\n" + _wrapped(jacobian.added.explanation))
    if jacobian.added is not None and numbers:
        parts.append("right, multiplied and then added\n" + "\n".join(_numbers(jacobian.added.right)))
        parts.append("wrong, added and then multiplied\n" + "\n".join(_numbers(jacobian.added.wrong)))
    if numbers:
        parts.append("full\n" + "\n".join(_numbers(jacobian.sample)))
    return "\n\n".join(parts)


def show_health(explanation: Explanation) -> str:
    """Show what is unhealthy, or that nothing is, and what was measured."""
    findings = explanation.health.findings
    parts = [
        f"{finding.code}: {finding.place}\n"
        + "\n".join(_table({"seen": finding.evidence, "cause": finding.cause, "change": finding.change}))
        for finding in findings
    ]
    if not findings:
        parts.append("health\n  nothing unhealthy was found on this batch")
    measured = [
        f"  {layer.place}: "
        + "  ".join(f"{name.replace('_', ' ')} {value:.3g}" for name, value in layer.measures.items())
        for layer in explanation.health.layers
        if layer.measures
    ]
    if measured:
        lines = (part for text in measured for part in textwrap.wrap(text, WIDTH, subsequent_indent=" " * 6))
        parts.append("measured\n" + "\n".join(lines))
    return "\n\n".join(parts)


def show_numbers(entry: LedgerEntry) -> str:
    """Show some of a value's numbers."""
    if entry.sample is None:
        return entry.name
    partly = f", one place in {_sizes(entry.sample.steps)}" if any(s > 1 for s in entry.sample.steps) else ""
    return f"{entry.name} {_sizes(entry.sizes)}{partly}\n" + "\n".join(_numbers(entry.sample))


def _ledger(explanation: Explanation) -> Iterator[str]:
    """Lay the ledger out in columns."""
    entries = list(explanation.ledger.values())
    rows: list[tuple[str, ...]] = [("", "axes", "sizes", "bytes", "belongs to", "saved for")]
    for entry in entries:
        belongs = f"gradient of {entry.gradient_of}" if entry.gradient_of else entry.kind
        size = _sizes(entry.sizes), f"{entry.bytes:,}"
        rows.append((entry.name, " ".join(entry.axes), *size, belongs, " ".join(entry.kept_for)))
    widths = [max(len(row[k]) for row in rows) for k in range(5)]
    for row in rows:
        cells = [
            cell.rjust(width) if k == 3 else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(row[:5], widths, strict=True))
        ]
        yield ("  " + "  ".join([*cells, row[5]])).rstrip()


def _short(line: ExplainedLine) -> Iterator[str]:
    """Show a line in one row, its reason in the next."""
    mark = line.witness.mark if line.witness else " "
    yield from textwrap.wrap(str(line), WIDTH, initial_indent=f"  {mark} ", subsequent_indent=" " * 8)
    if line.reason:
        yield from textwrap.wrap(line.reason, WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 8)


def _factor(factor: Factor) -> Iterator[str]:
    yield from (f"  {text}" for text in factor.text.splitlines())
    if factor.reason:
        yield from textwrap.wrap(factor.reason, WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 6)


def _witness_of(jacobian: Jacobian, explanation: Explanation) -> Witness | None:
    """Return the check of the line that multiplies by this Jacobian, if it is one line."""
    of = jacobian.output, jacobian.input
    lines = (line for line in explanation.lines if line.phase == "backward")
    return next((line.witness for line in lines if explanation.between(line) == of), None)


def _witness(witness: Witness | None) -> str:
    if witness is None:
        return ""
    off = f"off by {witness.error:.1e}, {witness.allowed:.1e} is allowed"
    entries = "entry" if witness.entries == 1 else "entries"
    return f"{witness.verdict}: {witness.entries:,} {entries} against numerical gradients, {off}"


def _shape(entry: LedgerEntry) -> str:
    letters = ", ".join(f"{axis} = {size}" for axis, size in zip(entry.axes, entry.sizes, strict=True))
    return f"{_sizes(entry.sizes)}{': ' if letters else ''}{letters}"


def _named(name: str, sizes: Sequence[int], axes: Sequence[str]) -> str:
    letters = " ".join(axes)
    return f"{name} {_sizes(sizes)}{' ' if letters else ''}{letters}".strip()


def _sizes(sizes: Sequence[int]) -> str:
    return "×".join(map(str, sizes)) or "1"


def _table(facts: dict[str, str]) -> Iterator[str]:
    """Show names and facts, one a line."""
    facts = {name: fact for name, fact in facts.items() if fact}
    width = max(map(len, facts))
    for name, fact in facts.items():
        indent = " " * (width + 4)
        yield from textwrap.wrap(
            f"  {name.ljust(width)}  {fact}", WIDTH, subsequent_indent=indent, break_on_hyphens=False
        )


def _wrapped(text: str) -> str:
    return "\n".join(
        textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
    )


def _numbers(sample: ArraySample) -> Iterator[str]:
    """Lay out the first rows and columns of a sample."""
    columns = sample.shape[-1] if sample.shape else 1
    rows: Iterable[int] = range(0, len(sample.numbers), max(columns, 1))
    for k, start in enumerate(rows):
        if k == SHOWN:
            yield "  …"
            return
        row = sample.numbers[start : start + min(columns, SHOWN)]
        shown = "  ".join("        —" if number is None else f"{number:9.3g}" for number in row)
        yield f"  {shown}{'  …' if columns > SHOWN else ''}"

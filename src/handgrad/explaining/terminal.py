"""An explanation as text for a terminal, at most 80 columns wide."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from handgrad.errors import ProgramError, nearest
from handgrad.explaining.record import ArraySample, Explanation, Jacobian, LedgerEntry
from handgrad.rules.rule_source import blocks

WIDTH = 80
SHOWN = 6  # numbers of a row, and rows of an array, that are printed


def show_overview(explanation: Explanation) -> str:
    """Show the introduction, the ledger of every value, and every line with its reason and its witness."""
    parts = [explanation.heading]
    if explanation.introduction:
        parts.append("\n".join(_filled(explanation.introduction)))
    parts.append("\n".join(["values", *_ledger(explanation)]))
    for phase in ("sample", "forward", "loss", "backward", "update"):
        texts = []
        for block in blocks(line for line in explanation.lines if line.phase == phase):
            inside = 4 * bool(block[0].loop)
            texts += [f"    {block[0].loop}:"] if inside else []
            for line in block:
                mark = line.witness.mark if line.witness else " "
                texts += _wrapped(str(line), f"  {mark} {' ' * inside}", 8 + inside)
                texts += _wrapped(line.reason, " " * (8 + inside), 8 + inside)
        if texts:
            parts.append("\n".join([phase, *texts]))
    if explanation.health.findings:
        parts.append(show_health(explanation))
    return "\n\n".join(parts)


def _no_line(explanation: Explanation, target: str) -> ProgramError:
    """Return the error for a name that no line before the updates makes."""
    known = [line.target for line in explanation.lines if line.phase != "update"]
    if f"d{target}" in known:
        return ProgramError(
            f"{target} is a parameter, which the update alone changes",
            fix=f"explain its gradient: --line d{target}",
        )
    given = [name for name, entry in explanation.ledger.items() if f"d{name}" == target and name not in known]
    if given:
        return ProgramError(
            f"no line makes {target}: {given[0]} is data, so that no update needs its gradient",
            fix=f"explain the gradient that it would be computed from: --line d{known[0]}",
        )
    return ProgramError(f"no line makes {target!r}", fix=nearest(target, known))


def show_line(explanation: Explanation, target: str, *, numbers: bool = False) -> str:
    """Show one line: its value's shape, its reason, what it differentiates, the chain rule up to it, and its check."""
    lines = [line for line in explanation.lines if line.target == target and line.phase != "update"]
    if not lines:
        raise _no_line(explanation, target)
    entry, line = explanation.ledger[target], lines[0]
    facts = {"line": str(line), "shape": _shape(entry)}
    if filled := [str(each) for each in lines[1:]]:
        facts[lines[1].loop] = "; ".join(filled)
    if entry.gradient_of:
        facts["same shape as"] = f"{entry.gradient_of}, whose gradient it is"
    if entry.rounding:
        facts["size"] = f"0 but for rounding: {entry.gradient_of} does not change the loss on this batch"
    ways = explanation.ways(line)
    facts |= {
        "because": line.reason,
        "sums the ways": ", ".join(f"{name} through {by}" for by, name in ways.items()),
        "differentiates": "" if ways else str(explanation.undone(line) or ""),
        "layer": line.layer,
    }
    facts["derived"] = line.derived
    facts["saved for"] = ", ".join(entry.kept_for)
    facts["check"] = explanation.check(line)
    parts = [_table(target, facts)]
    found = [j for j in explanation.jacobians if (j.output, j.input) == explanation.between(line)]
    if steps := [each for jacobian in found[:1] for each in jacobian.steps]:
        lines_of = ([*_wrapped(each.text, "  ", 4), *_wrapped(each.reason, " " * 6, 6)] for each in steps)
        parts.append("\n".join(["by indices", *(text for own in lines_of for text in own)]))
    derivation = explanation.derivations.get(entry.gradient_of)
    if derivation is not None and target == f"d{derivation.of}":
        chain = ["chain rule"]
        for factor in derivation.factors:
            chain += [f"  {text}" for text in factor.text.splitlines()]
            chain += _wrapped(factor.reason, " " * 6, 6)
        parts.append("\n".join(chain))
        parts.append("\n".join(["all in one", *_wrapped(derivation.text, "  ", 4)]))
    parts += [show_jacobian(jacobian, explanation, numbers=numbers) for jacobian in found]
    if numbers:
        names = dict.fromkeys((*line.reads, target))
        parts += [show_numbers(explanation.ledger[name]) for name in names if name in explanation.ledger]
    return "\n\n".join(parts)


def show_jacobian(jacobian: Jacobian, explanation: Explanation, *, numbers: bool = False) -> str:
    """Show a Jacobian: its shape, its structure, what is stored of it, and that this is enough."""
    pair = jacobian.output, jacobian.input
    checks = (
        line.witness for line in explanation.lines if explanation.between(line) == pair and line.witness
    )
    facts = jacobian.facts | {"check": str(next(checks, ""))}
    parts, arrays = [_table(f"Jacobian {jacobian.output}:{jacobian.input}", facts)], {}
    if jacobian.added is not None:
        parts.append("\n".join(["rows added too early", *_wrapped(jacobian.added.explanation, "  ", 4)]))
        arrays["right, multiplied and then added"] = jacobian.added.right
        arrays["wrong, added and then multiplied"] = jacobian.added.wrong
    if numbers:
        axes = [f"{axis} of {jacobian.output}" for axis in jacobian.output_axes]
        axes += [f"{axis} of {jacobian.input}" for axis in jacobian.input_axes]
        across = f": {', '.join(axes[:-1])} down, {axes[-1]} across" if len(axes) > 1 else ""
        arrays[f"full{across}"] = jacobian.sample
        parts += ["\n".join([title, *_numbers(array)]) for title, array in arrays.items()]
    return "\n\n".join(parts)


def show_health(explanation: Explanation) -> str:
    """Show what is unhealthy, or that nothing is, and what was measured."""
    parts = [
        _table(f"{found.code}: {found.place}", found.facts) for found in explanation.health.findings
    ] or ["health\n  nothing unhealthy was found on this batch"]
    measured = ["measured"]
    for layer in explanation.health.layers:
        values = (f"{name.replace('_', ' ')} {value:.3g}" for name, value in layer.measures.items())
        measured += _wrapped("  ".join(values), f"  {layer.place}: ", 6)
    return "\n\n".join(parts if len(measured) == 1 else [*parts, "\n".join(measured)])


def show_numbers(entry: LedgerEntry) -> str:
    """Show some of a value's numbers."""
    if entry.sample is None:
        return entry.name
    partly = f", the first {_sizes(entry.sample.shape)}" if entry.sample.shape != entry.sizes else ""
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


def _shape(entry: LedgerEntry) -> str:
    letters = ", ".join(f"{axis} = {size}" for axis, size in zip(entry.axes, entry.sizes, strict=True))
    return f"{_sizes(entry.sizes)}{': ' if letters else ''}{letters}"


def _sizes(sizes: Sequence[int]) -> str:
    return "×".join(map(str, sizes)) or "1"


def _table(title: str, facts: dict[str, str]) -> str:
    """Show names and facts under a title, one a line."""
    width = max(len(name) for name, fact in facts.items() if fact)
    lines = [
        line for name, fact in facts.items() for line in _wrapped(fact, f"  {name.ljust(width)}  ", width + 4)
    ]
    return "\n".join([title, *lines])


def _filled(text: str) -> Iterator[str]:
    """Wrap each line of a text, indented as it is."""
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        yield from _wrapped(line.strip(), " " * indent, indent) or [""]


def _wrapped(text: str, first: str, indent: int) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=" " * indent, break_on_hyphens=False
    )


def _numbers(sample: ArraySample) -> Iterator[str]:
    """Lay out the first rows and columns of a sample, all axes but the last down."""
    columns = sample.shape[-1] if sample.shape else 1
    for k, start in enumerate(range(0, len(sample.numbers), max(columns, 1))):
        if k == SHOWN:
            yield "  …"
            return
        row = sample.numbers[start : start + min(columns, SHOWN)]
        shown = "  ".join("        —" if number is None else f"{number:9.3g}" for number in row)
        yield f"  {shown}{'  …' if columns > SHOWN else ''}"

"""An explanation: all that is recorded of a program on a batch, as JSON, in a few lines, and in a notebook."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from handgrad.errors import DataError
from handgrad.explaining.record import Block, Derivation, ExplainedLine, Jacobian, LedgerEntry, Witness
from handgrad.explaining.state import LEAST_ROWS, Health, Snapshot
from handgrad.html import Shown, folded, formula, heading, paragraph, table
from handgrad.rules import show_shape

FORMAT = 1
LEDGER = ("line", "shape", "its gradient, or whose it is", "kept for", "reason", "checked")
JACOBIANS = ("of : with respect to", "structure", "stored as", "size", "difference from the full one", "why")


@dataclass(frozen=True)
class Explanation(Shown):
    """A program on a batch, explained.

    Attributes
    ----------
    title
        The program's.
    rows
        Of the batch.
    loss
        On the batch; None for a rule, and where it is not finite.
    drawing
        The network's blocks, in order.
    lines
        Every line, in the order they run.
    ledger
        Every value, by name.
    derivations
        By the value whose gradient it is; parameters first.
    jacobians
        Those asked for, and those small enough to be shown anyway.
    health
        Over the batch.
    snapshots
        Of the training, where it was recorded.
    """

    title: str
    rows: int
    loss: float | None
    drawing: tuple[Block, ...]
    lines: tuple[ExplainedLine, ...]
    ledger: dict[str, LedgerEntry]
    derivations: dict[str, Derivation]
    jacobians: tuple[Jacobian, ...]
    health: Health
    snapshots: tuple[Snapshot, ...] = ()
    format: int = FORMAT

    def __str__(self) -> str:
        told = [f"explanation of {self.title}: {self.rows} rows, {len(self.lines)} lines"]
        told += [f"{found.code} at {found.place}: {found.evidence}" for found in self.health.findings]
        return "\n".join(told)

    def _repr_html_(self) -> str:
        parts = [heading(self.heading), *_health(self), table(LEDGER, _ledger(self), (0, 1))]
        for of, found in self.derivations.items():
            parts.append(folded(f"Why d{of} is what it is", *_derivation(found)))
        if self.jacobians:
            told = "Jacobians, and how little of each need be stored"
            parts.append(folded(told, table(JACOBIANS, map(_jacobian, self.jacobians), (0,))))
        return "".join(parts)

    @property
    def heading(self) -> str:
        """What is explained, in one line."""
        told = f"{self.title} · {self.rows:,} row{'s' * (self.rows != 1)}"
        return told + (f" · loss {self.loss:.4g}" if self.loss is not None else "")

    def undone(self, line: ExplainedLine) -> ExplainedLine | None:
        """Return the forward line that a backward line undoes."""
        return next((other for other in self.lines if other.target == line.undoes), None)

    def gradient_of(self, line: ExplainedLine) -> str:
        """Return the name of the value whose gradient a line makes; "" when it makes none."""
        entry = self.ledger.get(line.target)
        return entry.gradient_of if entry else ""

    def between(self, line: ExplainedLine) -> tuple[str, str]:
        """Return the two values whose Jacobian a line of a rule brings a gradient through; "" for each that is none."""
        return (line.undoes, self.gradient_of(line)) if line.rule else ("", "")

    def to_json(self) -> str:
        """Return the record as JSON."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Explanation:
        """Read a record again.

        Raises
        ------
        DataError
            When the text is not one: what is wrong, and where.
        """
        try:
            return msgspec.json.decode(text, type=cls)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise DataError(f"this is no explanation: {error}") from None


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
        yield str(line), *cells, line.reason, _checked(line.witness)


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
    return f"{witness.mark} {witness.verdict}: {witness.error:.1e} of {witness.allowed:.1e}"


def _derivation(derivation: Derivation) -> Iterator[str]:
    yield formula(derivation.product)
    for factor in derivation.factors:
        yield formula(factor.tex)
        yield paragraph(factor.reason)


def _jacobian(jacobian: Jacobian) -> tuple[str, ...]:
    return (
        f"{jacobian.output} : {jacobian.input}",
        jacobian.structure,
        jacobian.stored,
        f"{jacobian.stored_numbers:,} of {jacobian.full_numbers:,} numbers",
        f"{jacobian.proof:.1e}",
        jacobian.explanation,
    )

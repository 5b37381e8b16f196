"""The record of a program on a batch: plain data, from which the terminal, the notebook and the page are all drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import msgspec

from handgrad.errors import DataError
from handgrad.html import HTMLReprMixin
from handgrad.program import Phase

FORMAT = 1

Structure = Literal["zero", "diagonal", "kronecker", "block diagonal", "diagonal plus low rank", "full"]


@dataclass(frozen=True)
class ArraySample:
    """Some of an array's numbers: every ``step``-th index of each axis, few enough to be shown.

    Attributes
    ----------
    shape
        Of ``numbers``.
    steps
        The stride along each axis.
    numbers
        Row by row; None where a number is not finite.
    """

    shape: tuple[int, ...]
    steps: tuple[int, ...]
    numbers: tuple[float | None, ...]


@dataclass(frozen=True)
class Summary:
    """A whole array in a few numbers; the share of zeros and the count of what is not finite included."""

    least: float
    mean: float
    most: float
    deviation: float
    norm: float
    zeros: float
    not_finite: int


@dataclass(frozen=True)
class LedgerEntry:
    """One value of the program: its shape, its gradient, and the backward lines it is saved for.

    Attributes
    ----------
    name, kind
        ``W1``; "input", "target", "parameter", "state", "slot", "mask", "value" or "gradient".
    axes
        A letter (or word) for each axis, from the signature of the rule that makes or takes it.
    shape, sizes
        With ``n`` for the rows, and of this batch.
    gradient_of, gradient
        For a gradient, the value it belongs to; for a value, its gradient ("" where there is none).
    kept_for
        The backward lines that read this value of the forward, by their targets.
    """

    name: str
    kind: str
    axes: tuple[str, ...]
    shape: tuple[int | str, ...]
    sizes: tuple[int, ...]
    dtype: str
    bytes: int
    gradient_of: str = ""
    gradient: str = ""
    kept_for: tuple[str, ...] = ()
    summary: Summary | None = None
    sample: ArraySample | None = None


@dataclass(frozen=True)
class Witness:
    """The numerical check of one backward line.

    Attributes
    ----------
    verdict
        "right", "wrong", or "cannot tell".
    error, allowed
        The largest relative difference from the numerical gradient, and the error bound of that gradient.
    entries
        How many entries were compared.
    """

    verdict: Literal["right", "wrong", "cannot tell"]
    error: float
    allowed: float
    entries: int

    @property
    def mark(self) -> str:
        """The verdict in one sign."""
        return {"right": "✓", "wrong": "✗", "cannot tell": "?"}[self.verdict]


@dataclass(frozen=True)
class ExplainedLine:
    """A line of the program, explained.

    Attributes
    ----------
    number
        Its place, from 0.
    target, operator, expression, phase, layer, rule, reason, undoes
        As in `ProgramLine`.
    reads
        The names of the values it reads, in the order they appear.
    tex
        The line as a formula in TeX.
    witness
        For backward lines.
    """

    number: int
    target: str
    operator: str
    expression: str
    phase: Phase
    layer: str
    rule: str
    reason: str
    undoes: str
    reads: tuple[str, ...]
    tex: str
    witness: Witness | None = None

    def __str__(self) -> str:
        return f"{self.target} {self.operator} {self.expression}"


@dataclass(frozen=True)
class Factor:
    """One factor of a derivation: a backward line as a factor of the chain rule.

    Attributes
    ----------
    line
        The number of the backward line.
    symbol
        In TeX, for example ``\\frac{\\partial z_2}{\\partial a_1}``.
    tex, text
        The line with the shape under each operand, in TeX and for a terminal.
    sizes
        Of the gradient after this factor.
    reason
        The line's.
    """

    line: int
    symbol: str
    tex: str
    text: str
    sizes: tuple[int, ...]
    reason: str


@dataclass(frozen=True)
class Derivation:
    """The chain rule for one value: from the loss back to it, a factor for each line passed.

    Attributes
    ----------
    of
        The value: a parameter or an intermediate.
    factors
        From the loss to the value.
    product, text
        All lines substituted into one another, in TeX and for a terminal.
    """

    of: str
    factors: tuple[Factor, ...]
    product: str
    text: str


@dataclass(frozen=True)
class AddedTooEarly:
    """What comes out when the rows' Jacobians are added up before the chain rule.

    Attributes
    ----------
    right, wrong
        Each row's Jacobian times its own upstream gradient, added up; and the sum of the Jacobians times the
        sum of the gradients.
    difference
        The norm of their difference, relative to the right one's.
    """

    right: ArraySample
    wrong: ArraySample
    difference: float
    explanation: str


@dataclass(frozen=True)
class Jacobian:
    """How each entry of one value depends on each entry of another, and how little of it need be stored.

    Attributes
    ----------
    output, input
        The two values.
    example
        The row it is of; None for the whole batch.
    output_sizes, input_sizes
        Its axes: the output's, then the input's.
    structure
        As found in its numbers.
    stored
        What is stored instead, in the program's names: ``x ⊗ I``, ``(z1 > 0)``.
    explanation
        Why that is enough, from the axes that are shared.
    stored_numbers, full_numbers
        How many numbers each form has.
    stored_operations, full_operations
        How many multiplications a vector-Jacobian product takes with each.
    proof
        The largest difference between the two forms' vector-Jacobian products, relative to the full one's.
    sample
        Of the full matrix, outputs down, inputs across.
    output_axes, input_axes
        The letters of the axes.
    added
        Where the rows of the batch share the input, as they share a weight.
    """

    output: str
    input: str
    example: int | None
    output_sizes: tuple[int, ...]
    input_sizes: tuple[int, ...]
    structure: Structure
    stored: str
    explanation: str
    stored_numbers: int
    full_numbers: int
    stored_operations: int
    full_operations: int
    proof: float
    sample: ArraySample
    output_axes: tuple[str, ...] = ()
    input_axes: tuple[str, ...] = ()
    added: AddedTooEarly | None = None


@dataclass(frozen=True)
class Block:
    """One box of the drawing: an input, or a layer with what it takes and gives.

    Attributes
    ----------
    name
        The value it makes.
    label
        The rule's name.
    inputs
        Names of the blocks (or inputs) it reads from.
    parameters
        Names of its parameters, statistics and masks.
    part
        "input", "forward" or "loss".
    lines
        The numbers of its lines, forward and backward.
    """

    name: str
    label: str
    layer: str
    inputs: tuple[str, ...]
    parameters: tuple[str, ...]
    part: str
    lines: tuple[int, ...]


@dataclass(frozen=True)
class HealthFinding:
    """Something unhealthy: its evidence, its cause, and what to change, in one sentence each, with the numbers.

    Attributes
    ----------
    code
        "dead-units", "saturated", "vanishing", "exploding", "large-updates", "small-updates", "symmetric",
        "conflicting-rows".
    place
        The layer or value.
    """

    code: str
    place: str
    evidence: str
    cause: str
    change: str


@dataclass(frozen=True)
class LayerHealth:
    """What was measured at one layer, whether or not anything is wrong with it.

    Attributes
    ----------
    place
        The layer's value: ``a1``.
    measures
        By name: ``dead``, ``saturated``, ``gradient_norm``, ``update_to_weight``, …
    """

    place: str
    layer: str
    measures: dict[str, float]


@dataclass(frozen=True)
class Health:
    """The state of a network over one batch."""

    layers: tuple[LayerHealth, ...] = ()
    findings: tuple[HealthFinding, ...] = ()


@dataclass(frozen=True)
class Boundary:
    """A network of two inputs over a grid.

    Attributes
    ----------
    x_range, y_range
        Least and most of each input.
    answers
        The predicted class or value, row by row from the lowest y.
    """

    x_range: tuple[float, float]
    y_range: tuple[float, float]
    columns: int
    rows: int
    answers: tuple[float, ...]


@dataclass(frozen=True)
class Snapshot:
    """The network after one step of its training, on the same small batch each time.

    Attributes
    ----------
    epoch, step
        When; 0 before the first step.
    samples, summaries
        Of weights, gradients and activations, by name.
    boundary
        For two inputs.
    """

    epoch: int
    step: int
    loss: float
    samples: dict[str, ArraySample]
    summaries: dict[str, Summary]
    health: Health = Health()
    boundary: Boundary | None = None


@dataclass(frozen=True)
class Explanation(HTMLReprMixin):
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
        Those asked for, or else those small enough.
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
        findings = (f"{each.code} at {each.place}: {each.evidence}" for each in self.health.findings)
        return "\n".join(
            [f"explanation of {self.title}: {self.rows} rows, {len(self.lines)} lines", *findings]
        )

    def _repr_html_(self) -> str:
        from handgrad.explaining.notebook import render_notebook

        return render_notebook(self)

    @property
    def heading(self) -> str:
        """What is explained, in one line."""
        loss = f" · loss {self.loss:.4g}" if self.loss is not None else ""
        return f"{self.title} · {self.rows:,} row{'s' * (self.rows != 1)}{loss}"

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

"""The record of a program on a batch: plain data, from which the terminal, the notebook and the page are all drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from handgrad.program import Phase

Structure = Literal["zero", "diagonal", "kronecker", "block diagonal", "diagonal plus low rank", "full"]


@dataclass(frozen=True)
class Sample:
    """Some of an array's numbers: every ``step``-th place of each axis, few enough to be shown.

    Attributes
    ----------
    shape
        Of ``numbers``, after leaving out.
    steps
        How far apart the places are, along each axis.
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
    """One value of the program: its shape, what its gradient is, and what is kept of it for which line.

    Attributes
    ----------
    name, kind
        ``W1``; "input", "target", "parameter", "state", "slot", "mask", "value" or "gradient".
    axes
        A letter (or word) for each axis, from the signature of the rule that makes or takes it.
    shape, sizes
        With ``n`` for the rows, and of this batch.
    bytes
        Of this batch.
    gradient_of, gradient
        For a gradient, the value it belongs to; for a value, its gradient ("" where there is none).
    kept_for
        The backward lines that read this value of the forward, by their targets.
    summary, sample
        Of its numbers.
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
    sample: Sample | None = None


@dataclass(frozen=True)
class Witness:
    """What a numerical check of one backward line says.

    Attributes
    ----------
    verdict
        "right", "wrong", or "cannot tell".
    error, allowed
        The largest difference from the slopes, and how large the slopes' own uncertainty allows it to be.
    entries
        How many entries were judged.
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
    """A line of the program with all that is said of it.

    Attributes
    ----------
    number
        Its place, from 0.
    target, operator, expression, phase, layer, rule, reason, undoes
        As in `ProgramLine`.
    reads
        The names of the values it reads, in the order they stand in the line.
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
    """One factor of a derivation: the line it stands for, in words of the chain rule.

    Attributes
    ----------
    line
        The number of the backward line.
    symbol
        In TeX, for example ``\\frac{\\partial z_2}{\\partial a_1}``.
    tex
        What the line does with what arrives, in TeX, with the shape under each operand.
    text
        The same for a terminal.
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
        The value: a parameter, or one between.
    factors
        From the loss to the value.
    product
        All lines put into one another, in TeX.
    text
        The same for a terminal.
    """

    of: str
    factors: tuple[Factor, ...]
    product: str
    text: str


@dataclass(frozen=True)
class AddedTooEarly:
    """What comes out when the rows' Jacobians are added up before the chain rule, beside what is right.

    Attributes
    ----------
    right, wrong
        Each row's Jacobian times its own upstream gradient, added up; and the sum of the Jacobians times the
        sum of the gradients.
    difference
        How far the second is from the first, over the first's size.
    explanation
        For a reader.
    """

    right: Sample
    wrong: Sample
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
        What the numbers showed.
    stored
        In words of this program what is kept instead: ``x ⊗ I``, ``(z1 > 0)``.
    explanation
        Why one may, for a reader, generated from the axes that are shared.
    stored_numbers, full_numbers
        How many numbers each form has.
    stored_operations, full_operations
        How many multiplications it takes to bring an upstream gradient through each.
    proof
        The largest difference between stored form times upstream and full product, relative to the product.
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
    sample: Sample
    output_axes: tuple[str, ...] = ()
    input_axes: tuple[str, ...] = ()
    added: AddedTooEarly | None = None


@dataclass(frozen=True)
class Block:
    """One box of the drawing: a layer, with the values it takes and gives.

    Attributes
    ----------
    name
        The value it makes.
    label
        The rule's name.
    layer
        For people.
    inputs
        Names of the blocks (or inputs) it reads from.
    parameters
        Names of what it keeps.
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

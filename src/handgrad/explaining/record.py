"""The record of a program on a batch: plain data, from which the terminal, the notebook and the page are all drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from handgrad.errors import DataError
from handgrad.notebook_html import HTMLReprMixin
from handgrad.program import Phase

if TYPE_CHECKING:
    from handgrad.explaining.notebook import Page

FORMAT = 1

Structure = Literal[
    "zero", "diagonal", "kronecker", "block diagonal", "diagonal plus low rank", "sparse", "full"
]


@dataclass(frozen=True)
class ArraySample:
    """An array's numbers, row by row; of a large one the first ``shape[k]`` along each axis k.

    A number that is not finite is None.
    """

    shape: tuple[int, ...]
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

    ``kind`` is "input", "target", "parameter", "state", "slot", "mask", "value" or "gradient"; ``axes`` are a letter (or
    word) for each axis, from the rule's signature; ``shape`` has ``n`` for the rows, and ``sizes`` and ``bytes`` are
    of this batch. A gradient has the value it belongs to as ``gradient_of``, a value its gradient as ``gradient`` ("" where
    there is none), and in ``kept_for`` the targets of the backward lines that read it. A gradient that is 0 but for the
    rounding of what cancels in it has ``rounding``: its value does not change the loss here.
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
    rounding: bool = False


@dataclass(frozen=True)
class Witness:
    """The numerical check of one backward line.

    ``error`` is the largest relative difference from the numerical gradient, ``allowed`` the error bound of that
    gradient, and ``entries`` how many were compared.
    """

    verdict: Literal["right", "wrong", "cannot tell"]
    error: float
    allowed: float
    entries: int

    @property
    def mark(self) -> str:
        """The verdict in one sign."""
        return {"right": "✓", "wrong": "✗", "cannot tell": "?"}[self.verdict]

    def __str__(self) -> str:
        entries = (
            f"{self.entries:,} {'entry' if self.entries == 1 else 'entries'} against numerical gradients"
        )
        return f"{self.verdict}: {entries}, off by {self.error:.1e}, {self.allowed:.1e} is allowed"


@dataclass(frozen=True)
class ExplainedLine:
    """A line of the program, as `ProgramLine`, with its place from 0, its formula in TeX, and its check if it is backward.

    ``reads`` are the names of the values it reads, in the order they appear; ``derived`` is how its rule's docstring
    derives the gradients, at the last line that makes one.
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
    index: str = ""
    loop: str = ""
    derived: str = ""

    def __str__(self) -> str:
        place = f"{self.target}[{self.index}]" if self.index else self.target
        return f"{place} {self.operator} {self.expression}"


@dataclass(frozen=True)
class Factor:
    """One factor of a derivation: the backward line of this number as a factor of the chain rule.

    ``symbol`` is for example ``\\frac{\\partial z_2}{\\partial a_1}``; ``tex`` and ``text`` are the line with the
    shape under each operand, in TeX and for a terminal; ``sizes`` are of the gradient after this factor.
    """

    line: int
    symbol: str
    tex: str
    text: str
    sizes: tuple[int, ...]
    reason: str


@dataclass(frozen=True)
class Derivation:
    """The chain rule for one value, a parameter or an intermediate: a factor for each line from the loss back to it.

    ``product`` and ``text`` are all lines substituted into one another, in TeX and for a terminal.
    """

    of: str
    factors: tuple[Factor, ...]
    product: str
    text: str


@dataclass(frozen=True)
class AddedTooEarly:
    """What comes out when the rows' Jacobians are added up before the chain rule.

    ``right`` is each row's Jacobian times its own upstream gradient, added up; ``wrong`` the sum of the Jacobians times
    the sum of the gradients; ``difference`` the norm of their difference, relative to the right one's.
    """

    right: ArraySample
    wrong: ArraySample
    difference: float
    explanation: str


@dataclass(frozen=True)
class Step:
    """One step of a derivation, by indices, and why it follows."""

    text: str
    reason: str


@dataclass(frozen=True)
class Jacobian:
    """How each entry of one value depends on each entry of another, and how little of it need be stored.

    Attributes
    ----------
    example
        The row it is of; None for the whole batch.
    output_sizes, input_sizes, output_axes, input_axes
        Its axes: the output's, then the input's, and their letters.
    structure, stored, explanation
        As found in its numbers, what is stored instead in the program's names (``x ⊗ I``, ``(z1 > 0)``), and why that
        is enough.
    stored_numbers, full_numbers, stored_operations, full_operations
        How many numbers each form has, and how many multiplications a vector-Jacobian product takes with it.
    formula
        The gradient of the whole batch by indices, ``dW1[i, o] = Σ_n x[n, i] · dz1[n, o]``; "" where it is no such sum.
    steps
        How the formula follows from the forward line, by indices.
    proof
        The largest difference between the two forms' vector-Jacobian products, relative to the full one's.
    sample
        Of the full Jacobian, the output's axes before the input's.
    added
        Where the rows of the batch share the input, as they share a weight.
    gradient
        Which gradient of the program is the output's times this Jacobian.
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
    formula: str = ""
    steps: tuple[Step, ...] = ()
    gradient: str = ""

    @property
    def facts(self) -> dict[str, str]:
        """What a table shows of it, by name."""
        output, of = (
            f"{name} ({', '.join(_with_size(*each) for each in zip(axes, sizes, strict=True))})"
            if sizes
            else name
            for name, sizes, axes in (
                (self.output, self.output_sizes, self.output_axes),
                (self.input, self.input_sizes, self.input_axes),
            )
        )
        rows = "the batch" if self.example is None else f"row {self.example}"
        return {
            "of": f"{output} with respect to {of}, for {rows}",
            "structure": self.structure,
            "stored": self.stored,
            "numbers": f"{self.stored_numbers:,} in place of {self.full_numbers:,}",
            "products": f"{self.stored_operations:,} in place of {self.full_operations:,}, for one upstream gradient",
            "proof": f"for {rows}, stored and full form times a random upstream differ by {self.proof:.1e}",
            "why": self.explanation,
        }


def _with_size(axis: str, size: int) -> str:
    return axis if axis == str(size) else f"{axis} = {size}"


@dataclass(frozen=True)
class Block:
    """One box of the drawing: an input, or a rule with the value it makes, ``name``, and the numbers of its lines.

    ``inputs`` are names of other blocks, ``parameters`` those of its parameters, statistics and masks, and ``part`` is
    "input", "forward" or "loss".
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

    ``code`` is "dead-units", "saturated", "vanishing", "exploding", "large-updates", "small-updates", "symmetric",
    "large-targets", "no-effect" or "conflicting-rows", and ``place`` the layer or value.
    """

    code: str
    place: str
    evidence: str
    cause: str
    change: str

    @property
    def facts(self) -> dict[str, str]:
        """What a table shows of it, by name."""
        return {"seen": self.evidence, "cause": self.cause, "change": self.change}


@dataclass(frozen=True)
class LayerHealth:
    """What was measured at the layer that makes the value ``place``, whether or not anything is wrong with it.

    ``measures`` has ``dead``, ``saturated``, ``gradient_norm``, ``update_to_weight`` and others by name.
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
    """The predicted classes or values of a network of two inputs over a grid, row by row from the lowest y."""

    x_range: tuple[float, float]
    y_range: tuple[float, float]
    columns: int
    rows: int
    answers: tuple[float, ...]


@dataclass(frozen=True)
class Snapshot:
    """The network after one step of its training, 0 before the first, on the same small batch each time.

    ``samples`` and ``summaries`` are of weights, gradients and activations, by name.
    """

    epoch: int
    step: int
    loss: float
    samples: dict[str, ArraySample]
    summaries: dict[str, Summary]
    health: Health = Health()
    boundary: Boundary | None = None


@dataclass(frozen=True)
class LiveValue:
    """One operation of the engines' lowered program: its operands' numbers, its shape in n, and what else it needs."""

    operation: str
    inputs: tuple[int, ...]
    shape: tuple[str, ...]
    attribute: Any = None


@dataclass(frozen=True)
class LiveProgram:
    """A training step that the page runs again at other numbers.

    Attributes
    ----------
    values
        The operations, in order.
    names, assigned
        The value of each name before the update, and that which each array has after it.
    arrays
        The numbers of each parameter, buffer, slot and input.
    inputs, parameters
        Which of these the batch has, and which are trained.
    output, task
        The network's last value before the loss, and what is predicted from it.
    fixed
        Whether no statistics change while it is trained: then predictions need no batch.
    learning_rate
        At which training starts.
    """

    values: tuple[LiveValue, ...]
    names: dict[str, int]
    assigned: dict[str, int]
    arrays: dict[str, tuple[float, ...]]
    inputs: tuple[str, ...]
    parameters: tuple[str, ...]
    output: str
    task: str
    fixed: bool
    learning_rate: float


@dataclass(frozen=True)
class Explanation(HTMLReprMixin):
    """A program on a batch, explained.

    Attributes
    ----------
    title, rows
        The program's title, and the rows of the batch.
    origin
        Whose weights these are, and which rows; "" where that is not known.
    introduction
        What is said before anything else: of a rule its docstring. The page then opens at the first gradient instead of
        the first line.
    loss
        On the batch; None for a rule, and where it is not finite.
    drawing, lines
        The network's blocks, and every line, in order.
    ledger
        Every value, by name.
    derivations
        By the value whose gradient it is; parameters first.
    jacobians
        Those asked for, or else those small enough.
    live
        The training step as the page runs it; None where the network is too large for that.
    health, snapshots
        Over the batch, and of the training where it was recorded.
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
    origin: str = ""
    introduction: str = ""
    live: LiveProgram | None = None
    format: int = FORMAT

    def __str__(self) -> str:
        findings = (f"{each.code} at {each.place}: {each.evidence}" for each in self.health.findings)
        return "\n".join(
            [f"explanation of {self.title}: {self.rows} rows, {len(self.lines)} lines", *findings]
        )

    def _repr_html_(self) -> str:
        from handgrad.explaining.notebook import render_notebook

        return render_notebook(self)

    def text(self, line: str | None = None) -> str:
        """Return what ``handgrad explain`` prints: of all lines, or of one with its chain rule and Jacobian.

        Parameters
        ----------
        line
            The name that it makes, as ``"dW1"``.

        Raises
        ------
        ProgramError
            When no line makes it.

        Examples
        --------
        >>> import numpy as np
        >>> from handgrad import HalfSquaredError, Linear, Network, explain
        >>> network = Network(Linear(2, 1), loss=HalfSquaredError())
        >>> explanation = explain(network, np.ones((3, 2)), np.ones((3, 1)))
        >>> for line in explanation.text("db1").splitlines()[:5]:
        ...     print(line)
        db1
          line            db1 = dz1.sum(axis=0)
          shape           1: O = 1
          same shape as   b1, whose gradient it is
          because         b1 was added to every row: the rows add up
        """
        from handgrad.explaining.terminal import show_line, show_overview

        return show_line(self, line) if line else show_overview(self)

    def page(self) -> Page:
        """Return the page that ``handgrad explain --html`` writes, as a text that a notebook shows as a page.

        Examples
        --------
        >>> import numpy as np
        >>> from handgrad import HalfSquaredError, Linear, Network, explain
        >>> network = Network(Linear(2, 1), loss=HalfSquaredError())
        >>> page = explain(network, np.ones((3, 2)), np.ones((3, 1))).page()
        >>> str(page).startswith("<!doctype html>")
        True
        """
        from handgrad.explaining.notebook import Page
        from handgrad.explaining.page import render_page

        return Page(render_page(self))

    @property
    def heading(self) -> str:
        """What is explained, in one line."""
        loss = f" · loss {self.loss:.4g}" if self.loss is not None else ""
        return f"{self.title} · {self.rows:,} row{'s' * (self.rows != 1)}{loss}"

    def undone(self, line: ExplainedLine) -> ExplainedLine | None:
        """Return the forward line that a backward line differentiates.

        Of a rule's lines it is the one that reads the value and makes what the backward line has the gradient of, in a loop
        over time the one that reads the value; else the one that makes the former, or the rule's output.
        """
        forward = [other for other in self.lines if other.phase in ("forward", "loss")]
        made = [other for other in forward if other.target == line.undoes]
        of = self.gradient_of(line)
        own = [
            other for other in forward for end in made if (other.layer, other.rule) == (end.layer, end.rule)
        ]
        handing = [other for other in own if f"d{other.target}" in line.reads]
        reading = [other for other in own if of in other.reads and (other.loop or other in handing)]
        return next(iter(reading or handing or made), None)

    def ways(self, line: ExplainedLine) -> dict[str, str]:
        """Return what a line adds up that only sums the ways from a value to the loss: each gradient, by the next value."""
        if line.phase != "backward" or line.rule or len(line.reads) < 2:
            return {}
        made = {other.target: other.undoes for other in self.lines if other.operator == "="}
        return {made.get(name, name): name for name in line.reads}

    def gradient_of(self, line: ExplainedLine) -> str:
        """Return the name of the value whose gradient a line makes; "" when it makes none."""
        entry = self.ledger.get(line.target)
        return entry.gradient_of if entry else ""

    def check(self, line: ExplainedLine) -> str:
        """Return a line's numerical check as a sentence; that of a line that makes no gradient is of what reads it."""
        if line.witness is None:
            return ""
        readers = [
            other.target for other in self.lines if line.target in other.reads and self.gradient_of(other)
        ]
        through = (
            ""
            if self.gradient_of(line) or not readers
            else f"checked through {', '.join(dict.fromkeys(readers))}, "
        )
        return f"{through}{line.witness}"

    def between(self, line: ExplainedLine) -> tuple[str, str]:
        """Return the two values whose Jacobian a line of a rule brings a gradient through; "" for each that is none."""
        return (line.undoes, self.gradient_of(line)) if line.rule else ("", "")

    def is_activation(self, line: ExplainedLine) -> bool:
        """Whether a line multiplies by the derivative of a function that is applied to each entry of one value alone."""
        output, of = self.between(line)
        alone = any(
            block.name == output and block.inputs == (of,) and not block.parameters for block in self.drawing
        )
        elementwise = any(
            (each.output, each.input) == (output, of) and each.structure == "diagonal" and each.stored != "I"
            for each in self.jacobians
        )
        return alone and elementwise and self.ledger[of].kind == "value"

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

"""The questions that people get stuck on, each answered at a line of the network at hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from handgrad.explaining.record import ExplainedLine, Explanation, Jacobian


class Question(NamedTuple):
    """A question, its answer, and the line at whose card it is seen."""

    question: str
    answer: str
    line: ExplainedLine


def questions(record: Explanation) -> list[Question]:
    """Return those questions for which a network has a line: a weight, an activation, an error that goes back."""
    return [*_of_weights(record), *_of_activations(record), *_of_errors(record)]


def _of_weights(record: Explanation) -> Iterator[Question]:
    weights = _first(record, "kronecker", "parameter")
    if weights is None:
        return
    line, jacobian = weights
    gradient, of, steps = line.target, jacobian.input, [step.text for step in jacobian.steps]
    if len(steps) < 2:
        return
    yield Question(
        f"Which shape has {gradient}, and why is there a transpose?",
        f"The shape of {of}, always. {jacobian.formula}: the sum is over the rows, which have to be the inner axis of the "
        "product, so the rows of the input become its columns.",
        line,
    )
    yield Question(
        "Why does one row work, and a batch does not?",
        "Each row's input belongs to its own row's gradient: multiply, then add up. Averages, or Jacobians added up first, "
        "pair every row with every other: switch on “the rows averaged before the product”.",
        line,
    )
    derivative = next(text for text in steps if text.startswith("∂"))
    yield Question(
        f"∂{jacobian.output}/∂{of} has four indices: where are they?",
        f"{derivative}. In the sum over all entries of {jacobian.output} the δ leaves only two of them.",
        line,
    )


def _of_activations(record: Explanation) -> Iterator[Question]:
    activation = _first(record, "diagonal", "value", activation=True)
    if activation is None:
        return
    line, jacobian = activation
    yield Question(
        "Why is diag(φ′) an elementwise product, and does it take an SVD?",
        f"Each entry of {jacobian.output} depends on one entry of {jacobian.input}, so a row's Jacobian is diagonal, and a "
        "diagonal matrix times a vector is their product entry by entry. Every row has its own diagonal: no single matrix "
        "does it for the batch, and the singular values of φ′ belong to no unit.",
        line,
    )
    yield Question(
        f"Is φ′ taken at {jacobian.input} or at {jacobian.output}?",
        f"At {jacobian.input}, where φ was: switch on “the derivative taken at {jacobian.output}, not at "
        f"{jacobian.input}”. It may be written with "
        f"{jacobian.output}, as a (1 - a) is for the sigmoid; that is still φ′ at {jacobian.input}.",
        line,
    )


def _of_errors(record: Explanation) -> Iterator[Question]:
    weights = [name for name, entry in record.ledger.items() if entry.kind == "parameter"]
    for line in record.lines:
        through = next((name for name in weights if f"@ {name}.T" in line.expression), "")
        if line.phase == "backward" and through:
            yield Question(
                f"Why does the error go back through {through} before {through} is updated?",
                f"It is the gradient of the loss that forward had, with the {through} of forward: switch on “{through} "
                "updated before this line”.",
                line,
            )
            return


def _first(
    record: Explanation, structure: str, kind: str, *, activation: bool = False
) -> tuple[ExplainedLine, Jacobian] | None:
    """Return the last backward line whose Jacobian has a structure, by a parameter or another value."""
    for line in reversed(record.lines):
        for jacobian in record.jacobians:
            found = (jacobian.output, jacobian.input) == record.between(
                line
            ) and jacobian.structure == structure
            suits = record.is_activation(line) or not activation
            if line.phase == "backward" and found and suits and record.ledger[jacobian.input].kind == kind:
                return line, jacobian
    return None

"""The questions that people get stuck on, each answered at a line of the network at hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from handgrad.explaining.page.product_picture import Outline, factors
from handgrad.explaining.record import ExplainedLine, Explanation

SAME_AT_BOTH = {"relu", "leaky_relu"}
"""Activations whose derivative asks for a sign that their output has too."""


class Question(NamedTuple):
    """A question, its answer, and the line at whose card it is seen; ``switch`` is the mistake that shows it, if any."""

    question: str
    answer: str
    line: ExplainedLine
    switch: str = ""


def questions(record: Explanation) -> list[Question]:
    """Return those questions for which a network has a line: a weight, an activation, an error that goes back."""
    return [*_of_weights(record), *_of_activations(record), *_of_errors(record)]


def _of_weights(record: Explanation) -> Iterator[Question]:
    found = _weights(record)
    if found is None:
        return
    line, left, right = found
    of, output = record.gradient_of(line), line.undoes
    (n, rows), x, dz = left.columns, left.name.removesuffix(".T"), right.name
    (i, inputs), (o, outputs) = left.rows, right.columns
    total = f"{line.target}[{i}, {o}] = Σ_{n} {x}[{n}, {i}] · {dz}[{n}, {o}]"
    yield Question(
        f"Which shape has {line.target}, and why is there a transpose?",
        f"{line.target} has the shape of {of}, ({inputs}, {outputs}), because every weight has one "
        f"derivative of its own. That of {of}[{i}, {o}] is a sum over the rows, {total}, and a product of "
        f"matrices sums over the columns of its left factor and the rows of its right one. {x} is ({rows}, "
        f"{inputs}), with the rows first, so it is turned: {left.name} @ {dz} is ({inputs}, {rows}) @ "
        f"({rows}, {outputs}), which is ({inputs}, {outputs}).",
        line,
    )
    yield Question(
        "Why does one row work, and a batch does not?",
        f"One row gives the outer product of its input and its own gradient, {line.target}[{i}, {o}] = "
        f"{x}[{i}] · {dz}[{o}]. A batch gives the sum of its rows' outer products, {total}: multiply "
        f"within each row, then sum. Whoever averages {x} and {dz} over the rows first, and multiplies "
        "then, multiplies the input of one row with the gradient of another.",
        line,
        "the rows averaged before the product",
    )
    other = f"{o}′"
    yield Question(
        f"∂{output}/∂{of} has four indices: where are they?",
        f"Two are of the entry of {output}, two of the weight: ∂{output}[{n}, {other}]/∂{of}[{i}, {o}] = "
        f"{x}[{n}, {i}] · δ[{other}, {o}]. The weight {of}[{i}, {o}] is used in column {o} of {output} "
        f"only; that is what δ says, which is 1 where {other} = {o} and 0 elsewhere. Summed over all "
        f"entries of {output}, only the terms with {other} = {o} are left, and so {x} alone is stored: "
        f"{total}.",
        line,
    )


def _weights(record: Explanation) -> tuple[ExplainedLine, Outline, Outline] | None:
    """Return the last line that makes a weight's gradient as a product with a transpose, and its factors."""
    for line in reversed(record.lines):
        entry = record.ledger.get(record.gradient_of(line))
        found = factors(line, record.ledger) if line.phase == "backward" else None
        if entry and entry.kind == "parameter" and found and found[0].name.endswith(".T"):
            return line, *found
    return None


def _of_activations(record: Explanation) -> Iterator[Question]:
    found = list(_activations(record))
    if not found:
        return
    line, z, a = next((each for each in found if each[0].rule not in SAME_AT_BOTH), found[0])
    yield Question(
        "Why is diag(φ′) an elementwise product, and does it take an SVD?",
        f"Each entry of {a} depends on one entry of {z} only, so a row's Jacobian is diagonal, and a "
        f"diagonal matrix times a vector is the product of the two entry by entry: d{z} = d{a} * φ′({z}). "
        "It takes no SVD: the matrix is diagonal already, every row has its own, and singular values "
        "would lose which unit each derivative belongs to.",
        line,
    )
    if line.rule in SAME_AT_BOTH:
        yield Question(
            f"Is φ′ taken at {z} or at {a}?",
            f"At {z}, because φ was applied to {z}. Here it makes no difference: "
            f"{line.rule.replace('_', ' ')} has one derivative for positive numbers and one for others, "
            f"and {a} is positive exactly where {z} is. With tanh or a sigmoid the derivative at {a} would "
            "be another number, and wrong.",
            line,
        )
    else:
        yield Question(
            f"Is φ′ taken at {z} or at {a}?",
            f"At {z}, because φ was applied to {z}: φ′({z}) says how {a} = φ({z}) changes. Some "
            f"derivatives can be written with {a}, as 1 - a² for tanh and a (1 - a) for the sigmoid; that "
            f"is φ′({z}) too, computed from {a}, and not φ′({a}).",
            line,
            f"the derivative taken at {a}, not at {z}",
        )


def _activations(record: Explanation) -> Iterator[tuple[ExplainedLine, str, str]]:
    """Yield the last backward line of each activation with its input and output, the first activation first."""
    for line in reversed(record.lines):
        if line.phase == "backward" and record.is_activation(line):
            output, of = record.between(line)
            yield line, of, output


def _of_errors(record: Explanation) -> Iterator[Question]:
    weights = [name for name, entry in record.ledger.items() if entry.kind == "parameter"]
    for line in record.lines:
        through = next((name for name in weights if f"@ {name}.T" in line.expression), "")
        if line.phase == "backward" and through:
            of = record.gradient_of(line)
            yield Question(
                f"Why does the error go back through {through} before {through} is updated?",
                f"{line.target} is the derivative of the loss that forward has computed, and forward has "
                f"multiplied {of} by the {through} of before the update. With the new {through}, "
                f"{line.target} would be the derivative of a loss that nothing has computed: every "
                "gradient first, then every update.",
                line,
                f"{through} updated before this line",
            )
            return

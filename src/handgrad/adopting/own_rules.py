"""An elementwise part of an author's forward that is none of handgrad's layers, as a rule of its own.

Its forward is what the author's lines compute, operation by operation; its backward is written by the chain rule over them.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

import numpy as np

from handgrad.adopting.layer_recognition import Step
from handgrad.adopting.traced_values import Array, TracedValues, as_rows
from handgrad.checking.forward_trace import ForwardTrace, Operation, UntraceableError, trace_forward
from handgrad.checking.forward_trace.spelling import NoTextError
from handgrad.checking.gradient_code import write_gradient
from handgrad.checking.gradient_code.code_lines import CodeLines
from handgrad.checking.gradient_code.letter_substitution import UPSTREAM, LetterSubstitution
from handgrad.errors import RuleError
from handgrad.layers import Layer
from handgrad.rules import rule
from handgrad.tolerance import close

LONGEST = 40  # operations of a rule that someone reads
NUMBERS = count(1)
PLAIN = {"forward", "activation", "act", "call"}  # functions whose name says nothing of what they compute

TEXT = '''@rule("... -> ...")
def {name}(z):
    """Compute what {place} does."""
{forward}
    return a


@{name}.backward
def {name}_backward(da, z):
{backward}
    return dz


@dataclass(frozen=True, eq=False, repr=False)
class {kind}(Layer):
    """Compute what {place} does."""

    def connect(self, graph, x):
        return graph.apply({name}, x)
'''


def own_steps(start: int, rows: list[Array], values: TracedValues) -> Iterator[Step]:
    """Yield rules of their own that lead from a value on: the longest elementwise part that all else passes first."""
    trace, shape = values.trace, np.shape(values.trace.values[start])
    numbers = {i for i in values.constants if np.ndim(trace.values[i]) == 0}
    if not values.is_at(start, rows):
        return
    part = _elementwise(trace, start, numbers)
    for value in reversed(list(part)):
        operations = [each for each in part.values() if each.output in trace.ancestors(value)]
        outputs = values.at(value)
        if part[value].name == "negative":  # of exp(-h @ W): the minus belongs to what comes next
            continue
        if outputs[0].shape != shape or len(operations) > LONGEST or not _all_pass(trace, start, value):
            continue
        layer = _layer(values, start, operations)
        if layer is not None:
            yield Step(
                layer,
                (),
                value,
                [_like(a, b, c) for a, b, c in zip(values.at(start), outputs, rows, strict=True)],
            )


def own_text(layer: Layer) -> str:
    """Return the source of a layer that was made here, "" for others."""
    return str(getattr(type(layer), "source_text", ""))


def _elementwise(trace: ForwardTrace, start: int, numbers: set[int]) -> dict[int, Operation]:
    """Return the values that are computed from one and from single numbers, entry by entry, with their operations."""
    found: dict[int, Operation] = {}
    for operation in trace.operations:
        inside = [i == start or i in found for i in operation.inputs]
        known = (is_inside or i in numbers for is_inside, i in zip(inside, operation.inputs, strict=True))
        if any(inside) and operation.is_elementwise and all(known):
            found[operation.output] = operation
    return found


def _all_pass(trace: ForwardTrace, start: int, value: int) -> bool:
    """Whether the output depends on one value through another alone."""
    reached = {start}
    for operation in trace.operations:
        if operation.output != value and not reached.isdisjoint(operation.inputs):
            reached.add(operation.output)
    return trace.output not in reached


def _like(before: Array, after: Array, rows: Array) -> Array:
    """Return an array as rows, in the layout in which another is these rows."""
    forms = zip(as_rows(before, len(rows)), as_rows(after, len(rows)), strict=True)
    return next(other for form, other in forms if close(form, rows))


def _layer(values: TracedValues, start: int, operations: Sequence[Operation]) -> Layer | None:
    """Return a layer that does some operations, or None where they have no text, or are no rule."""
    trace = values.trace

    def run(given: dict[str, Any]) -> Any:
        known = {start: given["z"]}
        for each in operations:
            operands = [known.get(i, trace.values[i]) for i in each.inputs]
            known[each.output] = each.function(*operands, **each.options)
        return known[operations[-1].output]

    try:
        own = trace_forward(run, {"z": np.asarray(trace.values[start], np.float64)})
        gradient = write_gradient(own, "z")
        forward = _forward_lines(own)
    except (UntraceableError, NoTextError):
        return None
    if gradient is None or gradient.results["z"] != "dz":
        return None
    file, line, function = operations[-1].place
    name = function if function.isidentifier() and function not in PLAIN else "activation"
    lines = _indented(forward), _indented(_renamed(each, {UPSTREAM: "da"}) for each in gradient.lines)
    if lines not in values.rules:
        taken = "".join(own_text(each) for each in values.rules.values() if each)
        name = next(
            each for each in chain([name], (f"{name}_{k}" for k in count(2))) if f"def {each}(" not in taken
        )
        text = TEXT.format(
            name=name,
            kind="".join(word.capitalize() for word in name.strip("_").split("_")),
            place=f"{function} of {file.rpartition('/')[2]}, line {line},",
            forward=lines[0],
            backward=lines[1],
        )
        values.rules[lines] = _made(text)
    return values.rules[lines]


def _forward_lines(trace: ForwardTrace) -> list[str]:
    """Return the lines of a trace, the last of which stores a."""
    lines = CodeLines({"np": np, "z": trace.values[trace.inputs["z"]]})
    result = lines.named(LetterSubstitution(trace, lines).value(trace.output), "a")
    written, names = lines.render({"a": result})
    return [_renamed(each, {names["a"]: "a"}) for each in written]


def _renamed(line: str, names: dict[str, str]) -> str:
    tree = ast.parse(line)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = names.get(node.id, node.id)
    return ast.unparse(tree)


def _indented(lines: Any) -> str:
    return "\n".join(f"    {line}" for line in lines)


def _made(text: str) -> Layer | None:
    """Return the layer of a text, which a rule reads its lines from; None where they are no rule."""
    file = f"<rule {next(NUMBERS)} of handgrad adopt>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {
        "np": np,
        "rule": rule,
        "dataclass": dataclass,
        "Layer": Layer,
        "__name__": __name__,
    }
    try:
        exec(compile(text, file, "exec"), names)
    except RuleError:
        return None
    (kind,) = (
        each
        for each in names.values()
        if isinstance(each, type) and issubclass(each, Layer) and each is not Layer
    )
    kind.source_text = text  # type: ignore[attr-defined]
    return kind()

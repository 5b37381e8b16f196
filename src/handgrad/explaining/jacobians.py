"""Jacobians of any value with respect to an earlier one, from the backward lines, one unit gradient at a time."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.checking.numerical.finite_differences import numerical_jacobian
from handgrad.errors import ConfigurationError, ProgramError, nearest
from handgrad.explaining.tracing import Trace
from handgrad.layers import Node
from handgrad.program.running import Scope, code_of, run_lines
from handgrad.rules import PRIMITIVES, Shape
from handgrad.rules.text import backward_slice

Array = NDArray[Any]
Pull = Callable[[Array], Array]

LARGEST = 6_000_000  # entries of a full Jacobian
MOST_SLOPES = 4_000  # entries of an input whose slopes are found by differences


class NotFiniteError(ConfigurationError):
    """A Jacobian has entries that are not finite: a value has overflowed."""


@dataclass(frozen=True)
class Between:
    """One value as a function of another, with everything else as it is in the trace.

    Attributes
    ----------
    trace
        Where the values are.
    output, input
        Their names.
    example
        The row that is looked at; None for all.
    """

    trace: Trace
    output: str
    input: str
    example: int | None = None

    def __post_init__(self) -> None:
        taken = {value.name for node in self.trace.nodes for value in (node.output, *node.inputs)}
        known = {name: value for name, value in self.trace.values.items() if np.ndim(value) or name in taken}
        made_forward = [name for name in known if name in self.trace.given or not self._is_backward(name)]
        for name in (self.output, self.input):
            if name not in made_forward:
                raise ProgramError(f"the forward has no value {name!r}", fix=nearest(name, made_forward))
        if not self.lines:
            raise ProgramError(
                f"{self.output} does not depend on {self.input}",
                fix="name the later value first, as in z2:a1",
            )
        if np.asarray(self.trace.values[self.input]).dtype.kind != "f":
            raise ProgramError(
                f"{self.input} holds {np.asarray(self.trace.values[self.input]).dtype}, and has no slopes",
                fix="name a value of floating point",
            )
        if self.example is not None and not 0 <= self.example < self.trace.rows:
            raise ConfigurationError(
                f"there is no row {self.example}: the batch has {self.trace.rows}",
                fix=f"give 0 to {self.trace.rows - 1}",
            )

    def _is_backward(self, name: str) -> bool:
        return any(line.target == name and line.phase == "backward" for line in self.trace.program.lines)

    @cached_property
    def lines(self) -> list[Any]:
        """The forward lines that carry the input to the output."""
        moved, found = {self.input}, []
        for line in self.trace.program.phase("sample", "forward", "loss"):
            if line.reads & moved and line.target != self.input:
                found.append(line)
                moved.add(line.target)
        return backward_slice(found, {self.output})

    @property
    def output_place(self) -> tuple[int, ...]:
        """Where in the output its row is: () for all of it."""
        return self._place(self.output)

    @property
    def input_place(self) -> tuple[int, ...]:
        """Where in the input its row is: () for all of it."""
        return self._place(self.input)

    def _place(self, name: str) -> tuple[int, ...]:
        shape: Shape = self.trace.shapes[name]
        return (self.example,) if self.example is not None and shape[:1] == ("n",) else ()

    @property
    def is_analytic(self) -> bool:
        """Whether backward lines lead from the one to the other: not where a value is local to a rule."""
        nodes = self.nodes
        ends = {value.name for node in nodes for value in node.inputs}
        return bool(nodes) and self.input in ends and nodes[-1].output.name == self.output

    @cached_property
    def nodes(self) -> list[Node]:
        """The rules between the two."""
        moved, found = {self.input}, []
        for node in self.trace.nodes:
            if any(node.arguments[name].name in moved for name in node.rule.differentiable):
                found.append(node)
                moved.add(node.output.name)
            if node.output.name == self.output:
                break
        wanted, needed = {self.output}, []
        for node in reversed(found):
            if node.output.name in wanted:
                needed.append(node)
                wanted |= {value.name for value in node.inputs}
        return needed[::-1]

    @cached_property
    def pull(self) -> Pull:
        """Bring a gradient of the output back to the input, by the backward lines alone."""
        carried = {self.input} | {node.output.name for node in self.nodes}
        steps = [_Step(self.trace, node, carried) for node in reversed(self.nodes)]
        zero = np.zeros(np.shape(self.trace.exact[self.input]))

        def pull(upstream: Array) -> Array:
            arrived: dict[str, Any] = {self.output: upstream}
            with np.errstate(all="ignore"):
                for step in steps:
                    for name, gradient in step.run(arrived[step.node.output.name]):
                        arrived[name] = arrived[name] + gradient if name in arrived else gradient
            return np.asarray(arrived.get(self.input, zero))

        return pull

    def full(self) -> Array:
        """Return the whole Jacobian: the output's axes, then the input's.

        Raises
        ------
        ConfigurationError
            When it has too many entries.
        """
        exact = self.trace.exact
        rows = np.asarray(exact[self.output], float)[self.output_place].shape
        columns = np.asarray(exact[self.input])[self.input_place].shape
        entries = int(np.prod(rows) * np.prod(columns))
        few = self.is_analytic or np.prod(columns) <= MOST_SLOPES
        if entries > LARGEST or not few:
            raise ConfigurationError(
                f"the Jacobian of {self.output} with respect to {self.input} has {entries:,} entries, "
                f"and {LARGEST if few else MOST_SLOPES:,} are the most"
                + ("" if few else " for a local value"),
                given=f"{self.output}{rows}, {self.input}{columns}",
                fix="take a smaller layer" if self.example is not None else "take one row: --example 0",
            )
        matrix = self._analytic(rows, columns) if self.is_analytic else self._numeric()
        if not np.all(np.isfinite(matrix)):
            raise NotFiniteError(
                f"the Jacobian of {self.output} with respect to {self.input} is not finite here"
            )
        return matrix.reshape((*rows, *columns))

    def _analytic(self, rows: tuple[int, ...], columns: tuple[int, ...]) -> Array:
        matrix = np.empty((int(np.prod(rows)), int(np.prod(columns))))
        seed = np.zeros(np.shape(self.trace.exact[self.output]))
        for number, index in enumerate(np.ndindex(rows)):
            seed[(*self.output_place, *index)] = 1.0
            matrix[number] = self.pull(seed)[self.input_place].ravel()
            seed[(*self.output_place, *index)] = 0.0
        return matrix

    def _numeric(self) -> Array:
        """Find the slopes by differences, over the forward lines."""
        start = np.asarray(self.trace.exact[self.input], float)
        place = np.asarray(start[self.input_place])

        def output(part: Array) -> Array:
            moved = start.copy()
            moved[self.input_place] = part.reshape(place.shape)
            made = run_lines(self.lines, {**self.trace.exact, self.input: moved})[self.output]
            return np.asarray(made, float)[self.output_place].ravel()

        found = numerical_jacobian(output, place.ravel())
        return np.asarray((found.low + found.high) / 2)


class _Step:
    """The backward of one node, down to the gradients that are wanted."""

    def __init__(self, trace: Trace, node: Node, carried: set[str]) -> None:
        self.node = node
        rule = node.rule
        arguments = {name: trace.exact[value.name] for name, value in node.arguments.items()}
        known: Scope = rule.forward.run({**node.options, **arguments})
        text = rule.backward_text
        self.upstream = f"d{rule.output}"
        self.scope = {name: known[name] for name in (*text.arguments, *text.options) if name != self.upstream}
        self.wanted = [
            (f"d{name}", node.arguments[name].name)
            for name in rule.differentiable
            if node.arguments[name].name in carried
        ]
        lines = backward_slice(text.lines, {local for local, _ in self.wanted})
        self.lines = [(line.target, code_of(ast.unparse(line.expression))) for line in lines]
        self.names = dict(PRIMITIVES)

    def run(self, upstream: Any) -> Iterator[tuple[str, Array]]:
        """Yield the gradient of each wanted argument, by its value's name."""
        scope = {**self.scope, self.upstream: upstream}
        for target, code in self.lines:
            scope[target] = eval(code, self.names, scope)
        for local, name in self.wanted:
            yield name, scope[local]

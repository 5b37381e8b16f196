"""Full Jacobians of any value with respect to an earlier one, by the backward lines, one unit gradient at a time."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.checking.verdict.finite_differences import numerical_jacobian
from handgrad.errors import ConfigurationError, ProgramError, nearest
from handgrad.explaining.execution import Execution
from handgrad.layers import Node
from handgrad.program import ProgramLine
from handgrad.program.lines_in_python import Scope, code_of, run_lines
from handgrad.rules import PRIMITIVES
from handgrad.rules.rule_source import backward_slice

Array = NDArray[Any]
Pull = Callable[[Array], Array]

MAX_ENTRIES = 6_000_000  # of a full Jacobian: 48 MB
MAX_NUMERICAL = 4_000  # entries of an input whose derivatives are found by finite differences, one by one


class NotFiniteError(ConfigurationError):
    """A Jacobian has entries that are not finite: a value has overflowed."""


@dataclass(frozen=True)
class Dependency:
    """One value as a function of another, with everything else as it is in the execution.

    Attributes
    ----------
    output, input
        Their names.
    example
        The row that is looked at; None for all.
    """

    execution: Execution
    output: str
    input: str
    example: int | None = None

    def __post_init__(self) -> None:
        execution = self.execution
        values, rows = execution.values, execution.rows
        gradients = {line.target for line in execution.backward} - execution.given.keys()
        connected = {value.name for node in execution.nodes for value in (node.output, *node.inputs)}
        known = [
            name
            for name, value in values.items()
            if name not in gradients and (np.ndim(value) or name in connected)
        ]
        for name in (self.output, self.input):
            if name not in known:
                raise ProgramError(f"the forward has no value {name!r}", fix=nearest(name, known))
        if not self.lines:
            raise ProgramError(
                f"{self.output} does not depend on {self.input}",
                fix="name the later value first, as in z2:a1",
            )
        dtype = np.asarray(values[self.input]).dtype
        if dtype.kind != "f":
            raise ProgramError(
                f"{self.input} holds {dtype}, and has no derivatives", fix="name a value of floating point"
            )
        if self.example is not None and not 0 <= self.example < rows:
            raise ConfigurationError(
                f"there is no row {self.example}: the batch has {rows}", fix=f"give 0 to {rows - 1}"
            )

    @cached_property
    def lines(self) -> list[ProgramLine]:
        """The forward lines from the input to the output."""
        moved, found = {self.input}, []
        for line in self.execution.program.phase("sample", "forward", "loss"):
            if line.reads & moved and line.target != self.input:
                found.append(line)
                moved.add(line.target)
        return backward_slice(found, {self.output})

    @cached_property
    def nodes(self) -> list[Node]:
        """The rules from the input to the output."""
        moved, found = {self.input}, []
        for node in self.execution.nodes:
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

    def index(self, name: str) -> tuple[int, ...]:
        """Return where in a value the chosen row is: () for all of it."""
        by_rows = self.execution.shapes[name][:1] == ("n",)
        return (self.example,) if self.example is not None and by_rows else ()

    @property
    def is_analytic(self) -> bool:
        """Whether backward lines lead from the one to the other: not where a value is local to a rule."""
        ends = {value.name for node in self.nodes for value in node.inputs}
        return bool(self.nodes) and self.input in ends and self.nodes[-1].output.name == self.output

    @cached_property
    def pull(self) -> Pull:
        """Bring a gradient of the output back to the input, by the backward lines alone."""
        carried = {self.input} | {node.output.name for node in self.nodes}
        steps = [_BackwardStep(self.execution, node, carried) for node in reversed(self.nodes)]
        zero = np.zeros(np.shape(self.execution.exact[self.input]))

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
        exact = self.execution.exact
        rows = np.asarray(exact[self.output])[self.index(self.output)].shape
        columns = np.asarray(exact[self.input])[self.index(self.input)].shape
        height, width = int(np.prod(rows)), int(np.prod(columns))
        few = self.is_analytic or width <= MAX_NUMERICAL
        if height * width > MAX_ENTRIES or not few:
            raise ConfigurationError(
                f"the Jacobian of {self.output} with respect to {self.input} has {height * width:,} entries, "
                f"and {MAX_ENTRIES if few else MAX_NUMERICAL:,} are the most"
                + ("" if few else " for a local value"),
                given=f"{self.output}{rows}, {self.input}{columns}",
                fix="take a smaller layer" if self.example is not None else "take one row: --example 0",
            )
        matrix = self._analytic(rows, (height, width)) if self.is_analytic else self._numerical()
        if not np.all(np.isfinite(matrix)):
            raise NotFiniteError(
                f"the Jacobian of {self.output} with respect to {self.input} is not finite here"
            )
        return matrix.reshape((*rows, *columns))

    def _analytic(self, rows: tuple[int, ...], shape: tuple[int, int]) -> Array:
        matrix = np.empty(shape)
        unit = np.zeros(np.shape(self.execution.exact[self.output]))
        for number, index in enumerate(np.ndindex(rows)):
            at = (*self.index(self.output), *index)
            unit[at] = 1.0
            matrix[number] = self.pull(unit)[self.index(self.input)].ravel()
            unit[at] = 0.0
        return matrix

    def _numerical(self) -> Array:
        """Find the derivatives by finite differences, over the forward lines."""
        exact, index = self.execution.exact, self.index(self.input)
        start = np.asarray(exact[self.input], float)
        point = np.asarray(start[index])

        def output(part: Array) -> Array:
            moved = start.copy()
            moved[index] = part.reshape(point.shape)
            made = run_lines(self.lines, {**exact, self.input: moved})[self.output]
            return np.asarray(made, float)[self.index(self.output)].ravel()

        found = numerical_jacobian(output, point.ravel())
        return np.asarray((found.low + found.high) / 2)


class _BackwardStep:
    """The backward of one node, down to the gradients that are wanted, compiled once for all unit gradients."""

    def __init__(self, execution: Execution, node: Node, carried: set[str]) -> None:
        self.node = node
        rule = node.rule
        arguments = {name: execution.exact[value.name] for name, value in node.arguments.items()}
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

"""A program as data: lines, inputs, parameters, states, slots, outputs."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, Literal

import numpy as np

from handgrad.arguments import Count, judged
from handgrad.errors import ProgramError, nearest
from handgrad.layers import Parameter, Value
from handgrad.notebook_html import HTMLReprMixin
from handgrad.program.printing import render_html, render_text
from handgrad.rules import PRIMITIVES, Shape, show_shape
from handgrad.rules.rule_source import backward_slice

AGAIN = "computed again, not saved"
"""The reason of a forward line that runs again in backward."""

Phase = Literal["sample", "forward", "loss", "backward", "accumulate", "update"]

IN_MICRO_BATCH: tuple[Phase, ...] = ("sample", "forward", "loss", "backward", "accumulate")
"""The phases that run once for each micro-batch, where there are any."""

DRAW = "1048576 * step + micro"
"""The number that the random draws of a micro-batch are made from, in place of the step's."""


@dataclass(frozen=True)
class ProgramLine:
    """One line of a program: ``target operator expression  # reason``; in a loop, ``target[index] operator expression``.

    Attributes
    ----------
    target, operator, expression
        As Python writes them.
    phase
        "sample", "forward", "loss", "backward", "update"; with micro-batches also "accumulate".
    layer
        The layer it belongs to, for people.
    rule
        The name of the rule whose line it is; "" for the lines that add the gradients of a value used twice.
    reason
        Why, in the words beside the rule's line.
    undoes
        For a backward line, the name of the value whose line it undoes.
    call
        The rule with what it is applied to, ``"layer_norm(h2, gamma2, beta2)"``; "" for a line that is no rule's.
    shape
        Sizes, ``n`` for rows, in a loop those of one time; None until measured.
    dtype
        The element type; "" until measured.
    again
        The block whose forward lines run a second time here, before its backward lines; "" for the other lines.
    index, loop
        In a loop: which part of the target it writes, ``":, t1 + 1"``, and the loop, ``"for t1 in range(x.shape[1])"``;
        lines of one loop follow one another.
    """

    target: str
    operator: str
    expression: str
    phase: Phase
    layer: str = ""
    rule: str = ""
    reason: str = ""
    undoes: str = ""
    call: str = ""
    shape: Shape | None = None
    dtype: str = ""
    index: str = ""
    loop: str = ""
    again: str = ""

    def __str__(self) -> str:
        return f"{self.place} {self.operator} {self.expression}"

    @property
    def place(self) -> str:
        """What it writes, as Python does: its target, or a part of it."""
        return f"{self.target}[{self.index}]" if self.index else self.target

    @property
    def makes(self) -> bool:
        """Whether it makes its target, and does not change it."""
        return self.operator == "=" and not self.index

    @property
    def shown_shape(self) -> str:
        """The shape in print, "" until it is measured."""
        return show_shape(self.shape) if self.shape is not None else ""

    @property
    def tree(self) -> ast.expr:
        """The expression's syntax tree, which is not to be changed: lines of the same expression share it."""
        return _parsed(self.expression)[0]

    @cached_property
    def reads(self) -> frozenset[str]:
        """Every name the line reads, its own target too when it changes it in place, but not its loop's variable."""
        names = _parsed(self.expression)[1] | (set() if self.makes else {self.target})
        if self.loop:
            variable, _, steps = self.loop.removeprefix("for ").partition(" in ")
            names = (names | _parsed(f"{self.target}[{self.index}]")[1]) - {variable}
            names |= _parsed(steps)[1] - {"range", "reversed"}
        return frozenset(names)

    def only_multiplies(self, name: str) -> bool:
        """Return whether an array is at most the left factor of a product here: all that sparse rows can be.

        Examples
        --------
        >>> ProgramLine("z1", "=", "x @ W1 + b1", "forward").only_multiplies("x")
        True
        >>> ProgramLine("h1", "=", "(x - mean1) / deviation1", "forward").only_multiplies("x")
        False
        """
        nodes = list(ast.walk(self.tree)) if name in self.reads else []
        products = (n for n in nodes if isinstance(n, ast.BinOp) and isinstance(n.op, ast.MatMult))
        # as W.T is not gone through row by row, x @ W.T is none
        factors = [ast.unparse(n.left) for n in products if not ast.unparse(n.right).endswith(".T")]
        uses = [n for n in nodes if isinstance(n, ast.Name) and n.id == name]
        return len(uses) == factors.count(name) + factors.count(f"{name}.T")


@cache
def _parsed(expression: str) -> tuple[ast.expr, frozenset[str]]:
    """Return the syntax tree of an expression, parsed once for all programs, and the names in it."""
    tree = ast.parse(expression, mode="eval").body
    return tree, frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))


@dataclass(frozen=True)
class Program(HTMLReprMixin):
    """A network written out as straight lines.

    Attributes
    ----------
    title
        What it is, in one line.
    lines
        In the order they run.
    inputs
        What comes with every batch: the rows x, the targets t, the row weights w.
    parameters, states
        What the network keeps, and how it starts.
    slots
        What the optimiser keeps for each parameter, and its shape; all start at zero.
    outputs
        The names a caller may ask for when the lines have run.
    dtype
        In which it computes.
    micro_batch
        Of how many rows a micro-batch is, for each of which all lines before the update run; 0 where a batch is one.

    Examples
    --------
    >>> from handgrad import Linear, Network
    >>> print(Network(Linear(3, 2)).program())
    network 3 → 2 · 8 parameters · n rows
    <BLANKLINE>
    forward
      z1 = x @ W1 + b1  (n, 2)
    """

    title: str
    lines: tuple[ProgramLine, ...]
    inputs: tuple[Value, ...]
    parameters: Mapping[str, Parameter]
    states: Mapping[str, Parameter]
    slots: Mapping[str, tuple[int, ...]]
    outputs: tuple[str, ...]
    dtype: str
    micro_batch: int = 0

    def __str__(self) -> str:
        return render_text(self)

    def _repr_html_(self) -> str:
        return render_html(self)

    @judged
    def folded(self, width: Count = 110, *, rules: bool | None = True) -> str:
        """Return the program in short print: repeated blocks once, long rules as calls that are written out below.

        Parameters
        ----------
        width
            Of the page, in columns: a reason that does not fit, or comes again, is left out.
        rules
            Whether the lines of the rules that are called follow; None for where they need no further screen of 50 lines.

        Examples
        --------
        >>> from handgrad import Linear, MeanSquaredError, Network, Repeat, Tanh
        >>> network = Network(Repeat(Linear(4, 4), Tanh(), times=9), loss=MeanSquaredError())
        >>> print("\\n".join(network.program().folded().splitlines()[1:5]))
        forward
          9 × block, from z1 … a1 to z9 … a9; a1 is the next one's x
            z1 = x @ W1 + b1                                 (n, 4)   Linear(4, 4)
            a1 = np.tanh(z1)                                 (n, 4)   Tanh()
        """
        from handgrad.program.folding import render_folded  # which needs programs

        return render_folded(self, width, rules=rules)

    @judged
    def phase(self, *phases: Phase) -> tuple[ProgramLine, ...]:
        """Return the lines of these phases, in order."""
        return tuple(line for line in self.lines if line.phase in phases)

    @judged
    def line(self, target: str) -> ProgramLine:
        """Return the line that makes ``target``; raises `ProgramError` when there is none."""
        for line in self.lines:
            if line.target == target:
                return line
        raise ProgramError(
            f"no line makes {target!r}", fix=nearest(target, {line.target for line in self.lines})
        )

    @cached_property
    def reads(self) -> frozenset[str]:
        """Every name the lines read."""
        return frozenset().union(*(line.reads for line in self.lines))

    @property
    def micro_loop(self) -> str:
        """The loop over micro-batches, ``"for x, t in micro_batches(16, x, t)"``; "" where a batch is one."""
        if not self.micro_batch:
            return ""
        names = ", ".join(value.name for value in self.inputs)
        each, pieces = names, f"micro_batches({self.micro_batch}, {names})"
        if "micro" in self.reads:
            each, pieces = f"micro, ({names})", f"enumerate({pieces})"
        return f"for {each} in {pieces}"

    def halves(self) -> tuple[Program, Program]:
        """Return what runs for each micro-batch, and the update after them, as two programs that share their slots.

        Of the first, ``step`` is the number that its random draws are made from.
        """
        lines = self.phase(*IN_MICRO_BATCH)
        lines = tuple(replace(line, expression=line.expression.replace(DRAW, "step")) for line in lines)
        changed = {line.target for line in lines}
        slots = {name: shape for name, shape in self.slots.items() if name in changed}
        each = replace(self, lines=lines, slots=slots, outputs=("total", "count"), micro_batch=0)
        after = tuple(
            replace(line, phase="loss") if line.target in ("total", "count") else line
            for line in self.phase("update")
        )
        return each, replace(self, lines=after, inputs=(), micro_batch=0)

    @property
    def primitives(self) -> tuple[str, ...]:
        """The named primitives the lines use."""
        reads = self.reads | ({"micro_batches"} if self.micro_batch else set())
        return tuple(name for name in PRIMITIVES if name in reads and name != "np")

    @property
    def scalars(self) -> tuple[str, ...]:
        """The numbers the lines read that change from step to step: learning_rate, step, seed."""
        return tuple(name for name in ("learning_rate", "step", "seed") if name in self.reads)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arrays the lines read: inputs, then parameters, states and slots."""
        return (*(value.name for value in self.inputs), *self.parameters, *self.states, *self.slots)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each parameter, state and slot."""
        started = {**self.parameters, **self.states}
        return {name: array.shape for name, array in started.items()} | dict(self.slots)

    def keeping(self, *outputs: str) -> Program:
        """Return the same program without the lines that none of these outputs (nor an update) needs."""
        return replace(self, lines=tuple(backward_slice(self.lines, outputs)), outputs=outputs)

    def saving_all(self) -> Program:
        """Return the same program with every value of forward saved for backward, and none computed again."""
        return replace(self, lines=tuple(line for line in self.lines if not line.again))

    def without_updates(self) -> Program:
        """Return the same program up to its gradients, which it leaves to the caller."""
        return replace(self, lines=self.phase("sample", "forward", "loss", "backward"), slots={})

    def initial(self, seed: int) -> dict[str, Any]:
        """Draw the arrays the network keeps, parameters and states, from a seed."""
        generator, kept = np.random.default_rng(seed), {**self.parameters, **self.states}
        return {name: parameter.initial(generator, self.dtype) for name, parameter in kept.items()}

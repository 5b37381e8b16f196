"""The graph of a network: values, and the rules that make one from others, each with its name in the program.

Layers build it, once, when the network is made; shapes are inferred and checked while they do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from typing import Any

import numpy as np

from handgrad.arrays import Array
from handgrad.errors import ConfigurationError, RankError, ShapeError, nearest
from handgrad.layers.initialisers import INITIALISERS
from handgrad.rules import PRIMITIVES, Rule, Shape, show_shape

__all__ = ["Graph", "Node", "Parameter", "Value"]

MOST_NODES = 10_000
"""Of a network: one of more operations is a slip, or a file that is meant to keep a process busy."""

RESERVED = frozenset({"n", "seed", "step", "micro", "learning_rate", "dloss", *PRIMITIVES})
"""Names of the program that are neither values nor a rule's own."""
REDUCTION = frozenset({"total", "count", "loss"})
"""What the last rule of a loss makes, one number each: where another rule's own are called so, they get a number."""


@dataclass(frozen=True)
class Value:
    """One array of the program.

    Attributes
    ----------
    name, shape
        Its name in the program: ``z1``, ``W1``, ``x``; its sizes, with ``"n"`` for the rows of a batch.
    kind
        What comes with a batch: "input", "index", "target", "class" or "weight". What is kept: "parameter" or
        "state". What is made in a step: "mask" or "value".
    origin, sized_by
        The layer that made it, ``"layer 1, Linear(784, 128)"``, and the one that its shape comes from.
    """

    name: str
    shape: Shape
    kind: str
    origin: str
    sized_by: str

    @property
    def whole(self) -> bool:
        """Whether it holds whole numbers, indices or classes, and no floating point."""
        return self.kind in ("index", "class")


@dataclass(frozen=True)
class Parameter:
    """An array that a layer keeps, before it has a name: its shape and how it starts.

    Attributes
    ----------
    shape, start
        Its sizes, and the name of an initialiser, or the array itself.
    fan_in, fan_out
        How many values meet in one output, and how many outputs one value reaches.
    fit
        For what is fitted on the training rows before training: of "x" or "t", the name of one of `STATISTICS`, and
        which of its two results.
    """

    shape: tuple[int, ...]
    start: str | Array
    fan_in: int = 1
    fan_out: int = 1
    fit: tuple[str, str, int] | None = None

    def initial(self, generator: np.random.Generator, dtype: str) -> Array:
        """Draw the array."""
        if not isinstance(self.start, str):
            return np.array(self.start, dtype)
        draw = INITIALISERS[self.start]
        return draw(generator, self.shape, self.fan_in, self.fan_out).astype(dtype)


def fitted_mean_and_deviation(of: str, like: Value, statistics: str) -> tuple[Parameter, Parameter]:
    """Return the mean and the deviation of ``x`` or ``t``, of ``like``'s features; 0 and 1 until they are fitted."""
    shape = (int(like.shape[-1]),)
    return Parameter(shape, "zeros", fit=(of, statistics, 0)), Parameter(
        shape, "ones", fit=(of, statistics, 1)
    )


@dataclass(frozen=True)
class Node:
    """A rule applied: which values go in, which comes out, and what its local names are called.

    Attributes
    ----------
    rule, options
        What is applied.
    inputs, output
        One value for each argument of the rule, and the value it makes.
    suffix
        What is added to the rule's local names: ``"1"`` makes ``e`` into ``e1``.
    stream
        Tells the random draws of one step apart.
    part
        "forward" or "loss".
    recomputed
        The block whose forward lines run again before its backward lines, "" where their values are saved.
    """

    rule: Rule
    options: Mapping[str, Any]
    inputs: tuple[Value, ...]
    output: Value
    suffix: str
    stream: int
    part: str
    recomputed: str = ""

    @property
    def layer(self) -> str:
        """The layer it belongs to, for people."""
        return self.output.origin

    @property
    def arguments(self) -> dict[str, Value]:
        """The value of each argument of the rule."""
        return dict(zip(self.rule.forward.arguments, self.inputs, strict=True))

    @property
    def names(self) -> dict[str, str]:
        """The program's name for each argument and local name of the rule's forward."""
        names = {name: f"{name}{self.suffix}" for name in self.rule.forward.named}
        names |= {argument: value.name for argument, value in self.arguments.items()}
        return names | {self.rule.output: self.output.name}

    def reads_indices(self, x: Value) -> bool:
        """Whether the rule takes x as indices, of a table or of classes."""
        kinds = self.rule.forward.kinds
        return any(
            kinds[argument] == "index" and value.name == x.name for argument, value in self.arguments.items()
        )


@dataclass
class Graph:
    """Collects values and nodes while the layers of a network connect themselves.

    Attributes
    ----------
    nodes
        In the order they run.
    parameters, states
        What the network keeps, by name: trained by gradients, or not.
    part, origin, recomputed
        Written into what is made next: "forward" or "loss", the layer, for people, and ``Node.recomputed``.
    inputs
        What each layer of a `Sequential` is given where it is used first, by the layer's id.
    """

    nodes: list[Node] = field(default_factory=list)
    parameters: dict[str, Parameter] = field(default_factory=dict)
    states: dict[str, Parameter] = field(default_factory=dict)
    given: dict[str, Value] = field(default_factory=dict)
    part: str = "forward"
    origin: str = ""
    recomputed: str = ""
    _number: int = 1
    _taken: set[str] = field(default_factory=lambda: set(RESERVED))
    _kept: dict[tuple[int, str], Value] = field(default_factory=dict)
    _owners: list[object] = field(default_factory=list)  # held, so that no other object takes their id
    inputs: dict[int, Value] = field(default_factory=dict)

    def input(self, name: str, shape: Shape, kind: str) -> Value:
        """Add an array that comes with every batch."""
        self._taken.add(name)
        self.given[name] = Value(name, shape, kind, "the data", "the data")
        return self.given[name]

    def apply(self, rule: Rule, *inputs: Value | Parameter, layer: object = None, **options: Any) -> Value:
        """Apply a rule and return its output, shape inferred.

        Parameters
        ----------
        rule
            What to apply.
        *inputs
            One for each argument of the rule but its masks, which are made here: values, and parameters of
            the layer. A layer connected twice has one array of each name, used twice.
        layer
            Whose parameters these are; without one they are used here only.
        **options
            The rule's options that are not at their default.

        Raises
        ------
        ShapeError
            When the inputs do not fit the rule's signature; it names both layers, the axis and both sizes.
        """
        if len(self.nodes) == MOST_NODES:
            raise ConfigurationError(f"{self.origin}: a network of more than {MOST_NODES:,} operations")
        suffix = self._suffix(rule, inputs, layer)
        for name, value in options.items():
            if isinstance(value, float) and not np.isfinite(value):
                raise ConfigurationError(f"{self.origin}: {name} is {value}", fix="give a finite number")
        given, arguments = iter(inputs), dict[str, Value]()
        for argument, kind in rule.forward.kinds.items():
            if kind == "mask":
                of_first = next((value.shape for value in arguments.values()), ())
                arguments[argument] = self._name(f"{argument}{suffix}", of_first, "mask")
            else:
                arguments[argument] = self._resolve(argument, next(given), kind, suffix, layer)
        settings = rule.settings(options)
        shape, first = self._output_shape(rule, arguments, settings), next(iter(arguments.values()))
        sized_by = first.sized_by if shape == first.shape else self.origin
        output = Value(f"{rule.output}{suffix}", shape, "value", self.origin, sized_by)
        self._taken |= {f"{name}{suffix}" for name in _locals(rule)}
        stream = len(self.nodes) + 1
        values = tuple(arguments.values())
        self.nodes.append(Node(rule, settings, values, output, suffix, stream, self.part, self.recomputed))
        return output

    def array(self, name: str) -> Value:
        """Return the array of this name, which a layer before keeps, to be used here too.

        Its gradient is the sum of those of its uses.

        Raises
        ------
        ConfigurationError
            When no layer before keeps it.
        """
        known = {value.name: value for value in self._kept.values()}
        if name not in known:
            raise ConfigurationError(
                f"{self.origin}: no layer before it has an array {name!r}", fix=nearest(name, known)
            )
        return known[name]

    def begin_block(self) -> None:
        """Give what comes next a number that no name has yet, so that blocks that are alike are numbered alike."""
        number = re.compile(rf"\D{self._number}$")
        self._number += any(map(number.search, self._taken))

    def names_of(self, layer: object) -> dict[str, str]:
        """Return the names of the arrays a layer keeps, by what its rules call them."""
        return {argument: value.name for (owner, argument), value in self._kept.items() if owner == id(layer)}

    def _suffix(self, rule: Rule, inputs: tuple[Value | Parameter, ...], layer: object) -> str:
        """Return the layer's number: the one so far, or the next at which none of its names is taken."""
        given, fresh = iter(inputs), _locals(rule)
        for argument, kind in rule.forward.kinds.items():
            if kind == "mask" or (
                isinstance(next(given), Parameter) and (id(layer), argument) not in self._kept
            ):
                fresh |= {argument, f"d{argument}"}
        taken = self._taken
        candidates: Iterator[str] = map(str, count(self._number))
        if self.part == "loss":
            candidates = iter(["", *map(str, range(2, 1000))])
            taken = taken if is_reduction(rule) else taken | REDUCTION
        suffix = next(s for s in candidates if not any(f"{name}{s}" in taken for name in fresh))
        if self.part == "forward":
            self._number = int(suffix)
        return suffix

    def _resolve(
        self, argument: str, given: Value | Parameter, kind: str, suffix: str, layer: object
    ) -> Value:
        if isinstance(given, Value):
            if kind == "index" and given.kind != "input":
                raise ConfigurationError(
                    f"{self.origin}: {given.name} holds values, and indices are wanted",
                    fix="indices come with the data: put this layer first",
                )
            return given
        if isinstance(given.start, str) and given.start not in INITIALISERS:
            raise ConfigurationError(
                f"{self.origin}: no initialiser is called {given.start!r}",
                fix=nearest(given.start, INITIALISERS),
            )
        owner = given if layer is None else layer
        key = (id(owner), argument)
        if key not in self._kept:
            self._owners.append(owner)
            keeps = self.states if kind == "state" else self.parameters
            name = f"{argument}{suffix}"
            self._kept[key] = self._name(name, given.shape, "state" if kind == "state" else "parameter")
            keeps[name] = given
        return self._kept[key]

    def _name(self, name: str, shape: Shape, kind: str) -> Value:
        self._taken |= {name, f"d{name}"}
        return Value(name, shape, kind, self.origin, self.origin)

    def _output_shape(self, rule: Rule, arguments: Mapping[str, Value], settings: Mapping[str, Any]) -> Shape:
        shapes = {argument: value.shape for argument, value in arguments.items()}
        try:
            sizes = rule.signature.bind(rule.name, shapes, settings)
        except ShapeError as error:
            outer = (v for v in arguments.values() if v.sized_by != self.origin)
            made = (f"{v.name}{show_shape(v.shape)} comes from {v.sized_by}" for v in outer)
            problem = error.problem.removeprefix(f"{rule.name}: ")
            raise ShapeError(
                f"{self.origin}: {problem}",
                given="; ".join(dict.fromkeys(made)),
                fix="put Reshape(…) before it"
                if isinstance(error, RankError)
                else "make the two sizes the same",
            ) from None
        return rule.signature.output_shape(sizes, settings, self.origin)


def is_reduction(rule: Rule) -> bool:
    """Whether a rule can end a loss: it makes one number, the loss, with its total and count."""
    return rule.output == "loss" and not rule.signature.output and set(rule.forward.locals) >= REDUCTION


@cache
def _locals(rule: Rule) -> frozenset[str]:
    """Every name that gets the rule's number, forward and backward.

    The gradient of an argument is called after what is given for it, and needs no number: ``dz1`` for ``z1``. Where
    another line reads it, it is written also for what has no gradient, the data, and then with the number.
    """
    if rule.constant:
        return frozenset(rule.forward.named)
    text = rule.backward_text
    follow = {f"d{name}" for name in rule.forward.arguments}.difference(*(line.reads for line in text.lines))
    gradient = {f"d{rule.output}"} - RESERVED  # dloss, where it all begins, has no number
    return frozenset({*rule.forward.named, *text.named, *gradient} - follow)

"""What every layer is, something that connects an input to an output in the graph; and layers made of layers."""

from __future__ import annotations

from abc import abstractmethod
from copy import deepcopy
from dataclasses import MISSING, fields, is_dataclass
from functools import cached_property, partial, reduce
from typing import Annotated, Any, ClassVar

from handgrad import rules
from handgrad.arguments import Judged, Range
from handgrad.errors import ConfigurationError
from handgrad.layers.graph import Graph, Value
from handgrad.rules import Rule

__all__ = ["Concat", "Layer", "Repeat", "Residual", "Sequential"]


Times = Annotated[int, Range(least=1, most=10_000)]


class Layer(metaclass=Judged):
    """What a network is made of: a rule, with what it keeps and how that starts.

    A layer of your own is a frozen dataclass (``eq=False, repr=False``: two layers that look alike are still
    two) with a `connect` that applies your rule::

        @dataclass(frozen=True, eq=False, repr=False)
        class Square(Layer):
            def connect(self, graph, x):
                return graph.apply(square, x)
    """

    @abstractmethod
    def connect(self, graph: Graph, x: Value) -> Value:
        """Apply the layer's rules to ``x`` and return what comes out."""

    def input_shape(self) -> tuple[int, ...] | None:
        """Return the shape of one row of its input, when the layer knows it."""
        return None

    def __repr__(self) -> str:
        return show_call(self)


class RuleLayer(Layer):
    """A layer that applies one rule without parameters; its fields are the rule's options."""

    rule: Rule

    def connect(self, graph: Graph, x: Value) -> Value:
        return graph.apply(self.rule, x, layer=self, **field_values(self))


class Sequential(Layer):
    """One layer after another.

    Examples
    --------
    >>> from handgrad import Linear, ReLU
    >>> Sequential(Linear(2, 3), ReLU())
    Sequential(Linear(2, 3), ReLU())
    """

    settings: ClassVar[tuple[str, ...]] = ()
    """What its call takes beside layers, by name: numbers, or a layer or None."""

    def __init__(self, *layers: Layer) -> None:
        self.layers = layers

    def __repr__(self) -> str:
        given = {name: getattr(self, name) for name in self.settings}
        own = (f"{name}={value!r}" for name, value in given.items() if value)
        return f"{type(self).__name__}({', '.join([*map(repr, self.layers), *own])})"

    def input_shape(self) -> tuple[int, ...] | None:  # noqa: D102 - as in Layer
        known = (layer.input_shape() for layer in self.layers)
        return next((shape for shape in known if shape is not None), None)

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        outer = graph.origin
        for position, layer in enumerate(self.layers, 1):
            name = type(layer).__name__ if isinstance(layer, Sequential) else repr(layer)
            graph.origin = f"{outer + ' → ' if outer else ''}layer {position}, {name}"
            graph.inputs.setdefault(id(layer), x)
            x = layer.connect(graph, x)
        graph.origin = outer
        return x


class Residual(Sequential):
    """Layers whose output is added to their input: ``r = x + f(x)``.

    Parameters
    ----------
    *layers : Layer
        Those of f.
    shortcut : Layer or None, default None
        What is done to x before f(x) is added to it, where the two have different shapes.

    Examples
    --------
    >>> from handgrad import Linear, Network, ReLU
    >>> Residual(Linear(4, 4), ReLU())
    Residual(Linear(4, 4), ReLU())
    >>> Network(Residual(Linear(4, 7), ReLU(), shortcut=Linear(4, 7, bias=False))).output_shape
    ('n', 7)
    """

    settings = ("shortcut",)

    def __init__(self, *layers: Layer, shortcut: Layer | None = None) -> None:
        super().__init__(*layers)
        self.shortcut = shortcut

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        y = super().connect(graph, x)
        if self.shortcut is not None:
            outer = graph.origin
            graph.origin = f"{outer} → shortcut, {self.shortcut!r}"
            graph.inputs.setdefault(id(self.shortcut), x)
            x = self.shortcut.connect(graph, x)
            graph.origin = outer
        return graph.apply(rules.add, x, y)


class Concat(Sequential):
    """Branches that all take the same input, their outputs put side by side along the last axis, the features.

    Parameters
    ----------
    *layers : Layer
        The branches, two or more; `Sequential` makes one of several layers, or of none: the input itself.

    Examples
    --------
    An Inception module's two branches, and a layer of DenseNet:

    >>> from handgrad import Conv2d, Network, ReLU, Sequential
    >>> branches = Conv2d(6, 4, 1), Sequential(Conv2d(6, 3, 1), ReLU(), Conv2d(3, 8, 3, padding=1))
    >>> Network(Concat(*branches), inputs=(9, 9, 6)).output_shape
    ('n', 9, 9, 12)
    >>> Network(Concat(Sequential(), Conv2d(6, 4, 3, padding=1)), inputs=(9, 9, 6)).output_shape
    ('n', 9, 9, 10)
    """

    def __init__(self, *layers: Layer) -> None:
        if len(layers) < 2:
            raise ConfigurationError(
                f"Concat: {len(layers)} branches have nothing to be put side by side",
                fix="give two layers or more",
            )
        super().__init__(*layers)

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        outer, outputs = graph.origin, list[Value]()
        for number, branch in enumerate(self.layers, 1):
            name = type(branch).__name__ if isinstance(branch, Sequential) else repr(branch)
            graph.origin = f"{outer} → branch {number}, {name}"
            graph.inputs.setdefault(id(branch), x)
            outputs.append(branch.connect(graph, x))
        graph.origin = outer
        return reduce(partial(graph.apply, rules.concatenate), outputs)


class Repeat(Sequential):
    """The same layers several times, one block of them after another, each block with arrays of its own.

    Parameters
    ----------
    *layers : Layer
        One block; its output has the shape of its input.
    times : int
        How many blocks.
    recompute : bool, default False
        Whether only each block's input is saved for backward, which then runs the block's forward lines again before its
        backward lines: less memory, for one more forward. Known as gradient checkpointing: Chen, Xu, Zhang and Guestrin,
        Training Deep Nets with Sublinear Memory Cost (2016).

    Examples
    --------
    >>> from handgrad import Linear, Network, ReLU
    >>> sorted(Network(Repeat(Linear(4, 4), ReLU(), times=3)).parameters)
    ['W1', 'W2', 'W3', 'b1', 'b2', 'b3']
    """

    settings = ("times", "recompute")

    def __init__(self, *layers: Layer, times: Times, recompute: bool = False) -> None:
        super().__init__(*layers)
        self.times, self.recompute = times, recompute

    @cached_property
    def blocks(self) -> tuple[Sequential, ...]:
        """The blocks, copies of the layers."""
        return tuple(Sequential(*deepcopy(self.layers)) for _ in range(self.times))

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        outer, recomputed = graph.origin, graph.recomputed
        for number, block in enumerate(self.blocks, 1):
            graph.origin = f"{outer} → block {number}"
            graph.begin_block()
            if self.recompute:
                graph.recomputed = recomputed or graph.origin
            x = block.connect(graph, x)
        graph.origin, graph.recomputed = outer, recomputed
        return x


def field_values(made: Any) -> dict[str, Any]:
    """Return the fields of a dataclass by name."""
    return {field.name: getattr(made, field.name) for field in fields(made)}


def show_call(made: Any) -> str:
    """Show a dataclass as the call that makes it, leaving out what is at its default."""
    parts: list[str] = []
    for field in fields(made) if is_dataclass(made) else ():
        value = getattr(made, field.name)
        if repr(value) != repr(field.default):
            positional = field.default is MISSING or field.name == "learning_rate"
            parts.append(repr(value) if positional else f"{field.name}={value!r}")
    return f"{type(made).__name__}({', '.join(parts)})"

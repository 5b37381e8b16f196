"""What every layer is, something that connects an input to an output in the graph; and layers made of layers."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from handgrad import rules
from handgrad.arguments import Judged
from handgrad.layers.graph import Graph, Value
from handgrad.rules import Rule

__all__ = ["Layer", "Residual", "Sequential"]


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

    def __init__(self, *layers: Layer) -> None:
        self.layers = layers

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.layers))})"

    def input_shape(self) -> tuple[int, ...] | None:  # noqa: D102 - as in Layer
        known = (layer.input_shape() for layer in self.layers)
        return next((shape for shape in known if shape is not None), None)

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        outer = graph.origin
        for position, layer in enumerate(self.layers, 1):
            name = type(layer).__name__ if isinstance(layer, Sequential) else repr(layer)
            graph.origin = f"{outer + ' → ' if outer else ''}layer {position}, {name}"
            x = layer.connect(graph, x)
        graph.origin = outer
        return x


class Residual(Sequential):
    """Layers whose output is added to their input: ``r = x + f(x)``.

    Examples
    --------
    >>> from handgrad import Linear, ReLU
    >>> Residual(Linear(4, 4), ReLU())
    Residual(Linear(4, 4), ReLU())
    """

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        return graph.apply(rules.add, x, super().connect(graph, x))


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

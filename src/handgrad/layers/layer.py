"""What every layer is: something that connects an input to an output in the graph."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from handgrad.arguments import Judged
from handgrad.layers.graph import Graph, Value
from handgrad.rules import Rule

__all__ = ["Layer"]


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

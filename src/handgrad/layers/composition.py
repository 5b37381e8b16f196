"""Layers made of layers."""

from __future__ import annotations

from handgrad import rules
from handgrad.layers.graph import Graph, Value
from handgrad.layers.layer import Layer

__all__ = ["Residual", "Sequential"]


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

"""Layers with weights that multiply or are looked up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from handgrad import rules
from handgrad.errors import ConfigurationError
from handgrad.layers.graph import Graph, Parameter, Value
from handgrad.layers.layer import Layer, check_size

__all__ = ["Embedding", "Linear"]


@dataclass(frozen=True, eq=False, repr=False)
class Linear(Layer):
    """Map each row affinely: ``z = x W + b``.

    Parameters
    ----------
    inputs, outputs
        Features in and out.
    bias
        Whether b is there.
    layout
        "in_out" stores W as (inputs, outputs), "out_in" as (outputs, inputs), as PyTorch does. The text of
        the rule's lines changes with it.
    initialiser
        The name of one of `handgrad.INITIALISERS`; b starts at zero.

    Examples
    --------
    >>> Linear(784, 128)
    Linear(784, 128)
    """

    inputs: int
    outputs: int
    bias: bool = True
    layout: Literal["in_out", "out_in"] = "in_out"
    initialiser: str = "he_normal"

    def __post_init__(self) -> None:
        check_size("Linear", "inputs", self.inputs)
        check_size("Linear", "outputs", self.outputs)

    def input_shape(self) -> tuple[int, ...]:  # noqa: D102 - as in Layer
        return (self.inputs,)

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        rule = {
            (True, "in_out"): rules.linear,
            (False, "in_out"): rules.linear_without_bias,
            (True, "out_in"): rules.linear_out_in,
            (False, "out_in"): rules.linear_out_in_without_bias,
        }[self.bias, self.layout]
        shape = (self.inputs, self.outputs) if self.layout == "in_out" else (self.outputs, self.inputs)
        kept = [Parameter(shape, self.initialiser, self.inputs, self.outputs)]
        kept += [Parameter((self.outputs,), "zeros")] if self.bias else []
        return graph.apply(rule, x, *kept, layer=self)


@dataclass(frozen=True, eq=False, repr=False)
class Embedding(Layer):
    """Look up a row of a table for each index.

    Parameters
    ----------
    entries, features
        Rows of the table, and the length of each. The input holds whole numbers from 0 to entries - 1.
    initialiser
        How the table starts.
    """

    entries: int
    features: int
    initialiser: str = "standard_normal"

    def __post_init__(self) -> None:
        check_size("Embedding", "entries", self.entries)
        check_size("Embedding", "features", self.features)

    def input_shape(self) -> tuple[int, ...]:  # noqa: D102 - as in Layer
        raise ConfigurationError(
            f"{self!r} does not say how many indices a row has",
            fix="give inputs=7, or inputs=() for one alone",
        )

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        shape = (self.entries, self.features)
        return graph.apply(rules.embedding, x, Parameter(shape, self.initialiser, *shape), layer=self)

"""Layers that carry a state through the times of a sequence (n, T, D), and the one that takes its last time."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from handgrad import rules
from handgrad.arguments import Count
from handgrad.layers.graph import Graph, Parameter, Value
from handgrad.layers.layer import Layer, RuleLayer

__all__ = ["GRU", "LSTM", "RNN", "Last"]


@dataclass(frozen=True, eq=False, repr=False)
class RNN(Layer):
    """Carry a state through time, ``h_t = tanh(x_t W + h_(t-1) U + b)``: x (n, T, D) to the states (n, T, H).

    Parameters
    ----------
    inputs : int
        D, features of the input.
    outputs : int
        H, features of the state.
    truncate : int, default None
        Truncated backpropagation through time: gradients are carried back within segments of so many times, and not from one
        to the segment before. Without a number, through all times. A truncated gradient is no derivative: `check` and
        `explain` show it as wrong.
    initialiser : str, default "lecun_normal"
        The name of one of `handgrad.INITIALISERS`, for W (D, H) and U (H, H); b starts at 0.

    Examples
    --------
    >>> from handgrad import Network
    >>> Network(RNN(3, 5), inputs=(20, 3)).output_shape
    ('n', 20, 5)
    """

    inputs: Count
    outputs: Count
    _: KW_ONLY
    truncate: Count | None = None
    initialiser: str = "lecun_normal"

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        return graph.apply(rules.elman, x, *_kept(self, 1), layer=self, truncate=self.truncate)


@dataclass(frozen=True, eq=False, repr=False)
class LSTM(Layer):
    """Carry a state and a cell through time, by the gates i, f, g and o: x (n, T, D) to the states (n, T, H).

    Parameters
    ----------
    inputs : int
        D, features of the input.
    outputs : int
        H, features of the state.
    truncate : int, default None
        Truncated backpropagation through time: gradients are carried back within segments of so many times, and not from one
        to the segment before. Without a number, through all times. A truncated gradient is no derivative: `check` and
        `explain` show it as wrong.
    initialiser : str, default "lecun_normal"
        The name of one of `handgrad.INITIALISERS`, for W (D, 4 H) and U (H, 4 H); b starts at 0.

    Examples
    --------
    One prediction for a whole sequence:

    >>> from handgrad import Linear, Network
    >>> Network(LSTM(3, 5), Last(), Linear(5, 2), inputs=(20, 3)).output_shape
    ('n', 2)
    """

    inputs: Count
    outputs: Count
    _: KW_ONLY
    truncate: Count | None = None
    initialiser: str = "lecun_normal"

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        return graph.apply(rules.lstm, x, *_kept(self, 4), layer=self, truncate=self.truncate)


@dataclass(frozen=True, eq=False, repr=False)
class GRU(Layer):
    """Carry a state through time, by the gates r, z and n: x (n, T, D) to the states (n, T, H).

    Parameters
    ----------
    inputs : int
        D, features of the input.
    outputs : int
        H, features of the state.
    truncate : int, default None
        Truncated backpropagation through time: gradients are carried back within segments of so many times, and not from one
        to the segment before. Without a number, through all times. A truncated gradient is no derivative: `check` and
        `explain` show it as wrong.
    initialiser : str, default "lecun_normal"
        The name of one of `handgrad.INITIALISERS`, for W (D, 3 H) and U (H, 3 H); b and c start at 0.

    Examples
    --------
    >>> from handgrad import Network
    >>> Network(GRU(3, 5), inputs=(20, 3)).output_shape
    ('n', 20, 5)
    """

    inputs: Count
    outputs: Count
    _: KW_ONLY
    truncate: Count | None = None
    initialiser: str = "lecun_normal"

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        kept = *_kept(self, 3), Parameter((self.outputs,), "zeros")
        return graph.apply(rules.gru, x, *kept, layer=self, truncate=self.truncate)


@dataclass(frozen=True, eq=False, repr=False)
class Last(RuleLayer):
    """Take the last time of a sequence: x (n, T, D) to y (n, D).

    Examples
    --------
    >>> from handgrad import Network
    >>> Network(Last(), inputs=(20, 5)).output_shape
    ('n', 5)
    """

    rule = rules.last_time


def _kept(layer: RNN | LSTM | GRU, gates: int) -> list[Parameter]:
    """Return W, U and b, the columns of all gates side by side."""
    features, state, width = layer.inputs, layer.outputs, gates * layer.outputs
    return [
        Parameter((features, width), layer.initialiser, features, state),
        Parameter((state, width), layer.initialiser, state, state),
        Parameter((width,), "zeros"),
    ]

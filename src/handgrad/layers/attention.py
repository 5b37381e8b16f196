"""What a transformer is made of: attention with several heads, positions, gated units."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cached_property

from handgrad import rules
from handgrad.arguments import Count
from handgrad.errors import ConfigurationError
from handgrad.layers.graph import Graph, Parameter, Value
from handgrad.layers.layer import Layer
from handgrad.layers.parametric import Linear

__all__ = ["Positions", "SelfAttention", "SwiGLU"]


@dataclass(frozen=True, eq=False, repr=False)
class SelfAttention(Layer):
    """Let each place look at the others: x (n, T, D) to z (n, T, D).

    Four linear maps, of queries, keys, values and results, W (D, D) and b (D,) each; between them attention in
    ``heads`` parts of D / heads features.

    Parameters
    ----------
    features : int
        D.
    heads : int, default 1
        How many parts attend on their own.
    causal : bool, default False
        Whether no place looks at later ones.
    rotary : bool, default False
        Whether queries and keys are turned by their positions.
    initialiser : str, default "lecun_normal"
        The name of one of `handgrad.INITIALISERS`, for the four W.

    Examples
    --------
    >>> from handgrad import Network
    >>> Network(SelfAttention(8, 2, causal=True), inputs=(5, 8)).output_shape
    ('n', 5, 8)
    """

    features: Count
    heads: Count = 1
    _: KW_ONLY
    causal: bool = False
    rotary: bool = False
    initialiser: str = "lecun_normal"

    @cached_property
    def maps(self) -> tuple[Linear, ...]:
        """The maps of queries, keys, values and results."""
        return tuple(Linear(self.features, self.features, initialiser=self.initialiser) for _ in range(4))

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        width, left = divmod(self.features, self.heads)
        if left or (self.rotary and width % 2):
            raise ConfigurationError(
                f"{self!r}: {self.features} features are not {self.heads} heads of equally many"
                + (", an even number each" if self.rotary else ""),
                fix="give features=heads * 64, or another width of a head",
            )
        parts = [
            graph.apply(rules.split_heads, each.connect(graph, x), heads=self.heads) for each in self.maps[:3]
        ]
        if self.rotary:
            parts[:2] = (graph.apply(rules.rotary_positions, part) for part in parts[:2])
        found = graph.apply(rules.causal_attention if self.causal else rules.attention, *parts)
        return self.maps[3].connect(graph, graph.apply(rules.merge_heads, found))


@dataclass(frozen=True, eq=False, repr=False)
class Positions(Layer):
    """Add to each place a vector that is learned for it: ``h = x + P``, x (n, T, D), P (T, D).

    Parameters
    ----------
    initialiser : str, default "standard_normal"
        The name of one of `handgrad.INITIALISERS`, for P.

    Examples
    --------
    >>> from handgrad import Network
    >>> Network(Positions(), inputs=(5, 8)).arrays["P1"].shape
    (5, 8)
    """

    _: KW_ONLY
    initialiser: str = "standard_normal"

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        places, features = (int(size) for size in x.shape[-2:])
        return graph.apply(
            rules.add_positions,
            x,
            Parameter((places, features), self.initialiser, places, features),
            layer=self,
        )


@dataclass(frozen=True, eq=False, repr=False)
class SwiGLU(Layer):
    """Let one linear map through by the SiLU of another: x (..., I) to ``a = silu(x W + b) (x V + c)`` (..., O).

    Parameters
    ----------
    inputs : int
        I, features of the input.
    outputs : int
        O, features of the output.
    bias : bool, default True
        Whether the two maps have a bias.
    initialiser : str, default "lecun_normal"
        The name of one of `handgrad.INITIALISERS`, for both maps.

    Examples
    --------
    >>> from handgrad import Network
    >>> Network(SwiGLU(8, 32)).output_shape
    ('n', 32)
    """

    inputs: Count
    outputs: Count
    bias: bool = True
    initialiser: str = "lecun_normal"

    @cached_property
    def maps(self) -> tuple[Linear, Linear]:
        """The map that gates and the one that is let through."""
        gate, through = (
            Linear(self.inputs, self.outputs, bias=self.bias, initialiser=self.initialiser) for _ in range(2)
        )
        return gate, through

    def input_shape(self) -> tuple[int, ...]:  # noqa: D102 - as in Layer
        return (self.inputs,)

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        gate, through = self.maps
        return graph.apply(rules.swiglu, gate.connect(graph, x), through.connect(graph, x))

"""What a transformer is made of: attention with several heads, positions, gated units."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cached_property

from handgrad import rules
from handgrad.arguments import Count, CountOrZero, Fraction, judged
from handgrad.errors import ConfigurationError, RankError
from handgrad.layers.elementwise import GELU, Dropout
from handgrad.layers.graph import Graph, Parameter, Value
from handgrad.layers.layer import Layer, Repeat, Residual
from handgrad.layers.parametric import Embedding, LayerNorm, Linear
from handgrad.rules import show_shape

__all__ = ["Positions", "SelfAttention", "SwiGLU", "gpt_layers"]


@dataclass(frozen=True, eq=False, repr=False)
class SelfAttention(Layer):
    """Let each place look at the others: x (n, T, D) to z (n, T, D).

    Four linear maps, of queries, keys, values and results, W (D, D) and b (D,) each; between them attention in
    ``heads`` parts of D / heads features. With fewer heads of keys and values, W and b of these two have fewer columns.

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
    key_heads : int, default None
        How many heads keys and values have, of which each serves as many neighbouring heads of queries: grouped-query
        attention; with 1, multi-query attention. Without a number, as many as ``heads``.
    padding : int, default None
        The index in x, the network's input, that fills sequences up: no place looks at one that has it. Where a sequence has
        no other, its places see the average of all.
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
    key_heads: Count | None = None
    padding: CountOrZero | None = None
    initialiser: str = "lecun_normal"

    def __post_init__(self) -> None:
        if self.key_heads is not None and self.heads % self.key_heads:
            divisors = [str(n) for n in range(1, self.heads + 1) if self.heads % n == 0]
            raise ConfigurationError(
                f"{self!r}: {self.heads} heads of queries cannot share {self.key_heads} heads of keys evenly",
                fix=f"give key_heads={' or '.join(divisors)}",
            )
        unit = 2 if self.rotary else 1  # rotary positions turn pairs of features
        if self.features % (self.heads * unit):
            near = range(max(1, self.heads - 1000), self.heads + 1000)
            fitting = [h for h in near if self.features % (h * unit) == 0]
            fewer, more = ([h for h in fitting if (h > self.heads) == above] for above in (False, True))
            heads = " or ".join(map(str, fewer[-1:] + more[:1]))
            wider = -(-self.features // (self.heads * unit)) * self.heads * unit
            raise ConfigurationError(
                f"{self!r}: {self.features} features are not {self.heads} heads of equally many"
                + (", an even number each" if self.rotary else ""),
                fix=(f"give heads={heads}, or " if heads else "give ") + f"features={wider}",
            )

    @cached_property
    def maps(self) -> tuple[Linear, ...]:
        """The maps of queries, keys, values and results."""
        shared = self.features // self.heads * (self.key_heads or self.heads)
        widths = self.features, shared, shared, self.features
        return tuple(Linear(self.features, width, initialiser=self.initialiser) for width in widths)

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        kept = self.key_heads or self.heads
        parts = [
            graph.apply(rules.split_heads, each.connect(graph, x), heads=heads)
            for each, heads in zip(self.maps[:3], (self.heads, kept, kept), strict=True)
        ]
        if self.rotary:
            parts[:2] = (graph.apply(rules.rotary_positions, part) for part in parts[:2])
        if kept != self.heads:
            parts[1:] = (
                graph.apply(rules.repeat_heads, part, times=self.heads // kept) for part in parts[1:]
            )
        if self.padding is None:
            found = graph.apply(rules.causal_attention if self.causal else rules.attention, *parts)
        else:
            rule = rules.padded_causal_attention if self.causal else rules.padded_attention
            found = graph.apply(rule, *parts, self.indices(graph, x), padding=self.padding)
        return self.maps[3].connect(graph, graph.apply(rules.merge_heads, found))

    def indices(self, graph: Graph, x: Value) -> Value:
        """Return the network's input, which has an index for each place."""
        given = graph.given["x"]
        looked_up = any(
            kind == "index" and node.arguments[argument] is given
            for node in graph.nodes
            for argument, kind in node.rule.forward.kinds.items()
        )
        if not looked_up or given.shape != x.shape[:-1]:
            raise ConfigurationError(
                f"{graph.origin}: padding is an index of each place {show_shape(x.shape[:-1])}, and the network's input is "
                f"x{show_shape(given.shape)} of {'indices' if looked_up else 'values'}",
                fix="put Embedding first, or leave padding out",
            )
        return given


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
        if len(x.shape) < 3:
            raise RankError(
                f"{graph.origin}: a row of {x.name}{show_shape(x.shape)} has no places, and needs 2 axes: T D",
                fix="give the network inputs=(T, D), or put Reshape(…) before it",
            )
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


@judged
def gpt_layers(
    entries: Count,
    features: Count,
    heads: Count,
    blocks: Count,
    dropout: Fraction = 0.0,
    *,
    recompute: bool = False,
) -> tuple[Layer, ...]:
    """Return the layers of GPT-2 for windows of indices (n, T), to logits of what comes after each (n, T, V).

    Each block adds attention to what it is given, then a network of one hidden layer for each place; both normalise what
    they read first. The embedding's table is also the last layer's weights.

    Parameters
    ----------
    entries
        V, how many indices there are.
    features
        D.
    heads, blocks
        How many heads attention has, and how many blocks there are.
    dropout
        Of what each part of a block adds, and of the first block's input.
    recompute
        Whether backward computes each block again, as `Repeat` has it.

    Examples
    --------
    >>> from handgrad import Network, SoftmaxCrossEntropy
    >>> layers = gpt_layers(entries=50257, features=8, heads=2, blocks=3)
    >>> Network(*layers, loss=SoftmaxCrossEntropy(), inputs=(5,)).output_shape
    ('n', 5, 50257)
    """
    drop = [Dropout(dropout)] if dropout else []
    start = "small_normal"
    inner = (
        Linear(features, 4 * features, initialiser=start),
        GELU("tanh"),
        Linear(4 * features, features, initialiser=start),
    )
    return (
        Embedding(entries, features, initialiser=start),
        Positions(initialiser=start),
        *drop,
        Repeat(
            Residual(LayerNorm(), SelfAttention(features, heads, causal=True, initialiser=start), *drop),
            Residual(LayerNorm(), *inner, *drop),
            times=blocks,
            recompute=recompute,
        ),
        LayerNorm(),
        Linear(features, entries, bias=False, layout="out_in", tied="E1"),
    )

"""Convolution and pooling: layers of images and sequences with channels last, (n, H, V, C) and (n, T, C)."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass

from handgrad import rules
from handgrad.arguments import Count, CountOrZero
from handgrad.errors import ConfigurationError, ShapeError
from handgrad.layers.graph import Graph, Parameter, Value
from handgrad.layers.layer import Layer, RuleLayer
from handgrad.layers.parametric import Linear
from handgrad.rules import show_shape

__all__ = [
    "AvgPool2d",
    "Conv1d",
    "Conv2d",
    "ConvTranspose2d",
    "Flatten",
    "GlobalAvgPool2d",
    "MaxPool2d",
    "Reshape",
    "SeparableConv2d",
]

Window = Count | tuple[Count, Count]
"""The size of a window: as long as wide, or both."""


@dataclass(frozen=True, eq=False, repr=False)
class Conv2d(Layer):
    """Map every window of an image affinely: x (n, H, V, I) to z (n, P, Q, O).

    P = (H + 2 padding - dilation (size - 1) - 1) // stride + 1, and Q alike.

    Parameters
    ----------
    inputs : int
        I, channels of the input.
    outputs : int
        O, channels of the output.
    size : int or (int, int)
        Of the window: K and L.
    stride : int, default 1
        How far windows are apart.
    padding : int, default 0
        How many zeros are put around the image, on each side.
    dilation : int, default 1
        How far the entries of a window are apart.
    groups : int, default 1
        How many parts the channels of the input, and those of the output, are divided into: each part of the output sees one
        of the input. With as many as channels the convolution is depthwise.
    bias : bool, default True
        Whether there is a b (O,); it starts at 0.
    initialiser : str, default "he_normal"
        The name of one of `handgrad.INITIALISERS`, for W (K, L, I / groups, O).

    Examples
    --------
    >>> from handgrad import Network
    >>> Network(Conv2d(1, 6, 5, padding=2), inputs=(28, 28, 1)).output_shape
    ('n', 28, 28, 6)
    """

    inputs: Count
    outputs: Count
    size: Window
    stride: Count = 1
    padding: CountOrZero = 0
    _: KW_ONLY
    dilation: Count = 1
    groups: Count = 1
    bias: bool = True
    initialiser: str = "he_normal"

    def __post_init__(self) -> None:
        _check_groups(self)

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        rule = rules.conv2d if self.bias else rules.conv2d_without_bias
        kept = _kept(self, _pair(self.size))[: 1 + self.bias]
        return graph.apply(rule, x, *kept, layer=self, **_spacing(self))


@dataclass(frozen=True, eq=False, repr=False)
class SeparableConv2d(Layer):
    """Filter each channel of an image by itself, then mix the channels at each place: x (n, H, V, I) to z (n, P, Q, O).

    It has K L I + I O weights, and a `Conv2d` K L I O. P = (H + 2 padding - dilation (size - 1) - 1) // stride + 1, and Q
    alike. Source: Howard and others, arXiv 1704.04861.

    Parameters
    ----------
    inputs : int
        I, channels of the input.
    outputs : int
        O, channels of the output.
    size : int or (int, int)
        Of the window: K and L.
    stride : int, default 1
        How far windows are apart.
    padding : int, default 0
        How many zeros are put around the image, on each side.
    dilation : int, default 1
        How far the entries of a window are apart.
    initialiser : str, default "he_normal"
        The name of one of `handgrad.INITIALISERS`, for the filters W (K, L, 1, I) and the mixture W (I, O).

    Examples
    --------
    >>> from handgrad import Network
    >>> network = Network(SeparableConv2d(8, 16, 3, stride=2, padding=1), inputs=(28, 28, 8))
    >>> network.output_shape, [*network.parameters]
    (('n', 14, 14, 16), ['W1', 'W2', 'b2'])
    """

    inputs: Count
    outputs: Count
    size: Window
    stride: Count = 1
    padding: CountOrZero = 0
    _: KW_ONLY
    dilation: Count = 1
    initialiser: str = "he_normal"

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        spacing = {"stride": self.stride, "padding": self.padding, "dilation": self.dilation}
        filters = Conv2d(
            self.inputs,
            self.inputs,
            self.size,
            groups=self.inputs,
            bias=False,
            initialiser=self.initialiser,
            **spacing,
        )
        mixture = Linear(self.inputs, self.outputs, initialiser=self.initialiser)
        return mixture.connect(graph, filters.connect(graph, x))


@dataclass(frozen=True, eq=False, repr=False)
class Conv1d(Layer):
    """Map every window of a sequence affinely: x (n, T, I) to z (n, P, O).

    P = (T + 2 padding - dilation (size - 1) - 1) // stride + 1.

    Parameters
    ----------
    inputs : int
        I, channels of the input.
    outputs : int
        O, channels of the output.
    size : int
        Of the window.
    stride : int, default 1
        How far windows are apart.
    padding : int, default 0
        How many zeros are put before and after the sequence.
    dilation : int, default 1
        How far the entries of a window are apart.
    groups : int, default 1
        As of `Conv2d`.
    bias : bool, default True
        Whether there is a b (O,); it starts at 0.
    initialiser : str, default "he_normal"
        The name of one of `handgrad.INITIALISERS`, for W (size, I / groups, O).

    Examples
    --------
    >>> from handgrad import Network
    >>> Network(Conv1d(8, 16, 3, stride=2), inputs=(100, 8)).output_shape
    ('n', 49, 16)
    """

    inputs: Count
    outputs: Count
    size: Count
    stride: Count = 1
    padding: CountOrZero = 0
    _: KW_ONLY
    dilation: Count = 1
    groups: Count = 1
    bias: bool = True
    initialiser: str = "he_normal"

    def __post_init__(self) -> None:
        _check_groups(self)

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        rule = rules.conv1d if self.bias else rules.conv1d_without_bias
        kept = _kept(self, (self.size,))[: 1 + self.bias]
        return graph.apply(rule, x, *kept, layer=self, **_spacing(self))


@dataclass(frozen=True, eq=False, repr=False)
class ConvTranspose2d(Layer):
    """Add a window up for every entry of an image: x (n, P, Q, I) to z (n, H, V, O).

    H = (P - 1) stride - 2 padding + dilation (size - 1) + 1, and V alike.

    Parameters
    ----------
    inputs : int
        I, channels of the input.
    outputs : int
        O, channels of the output.
    size : int or (int, int)
        Of the window.
    stride : int, default 1
        How far windows are apart.
    padding : int, default 0
        How many zeros are put around the image, on each side, where `Conv2d` goes back from z to x.
    dilation : int, default 1
        How far the entries of a window are apart.
    groups : int, default 1
        As of `Conv2d`.
    bias : bool, default True
        Whether there is a b (O,); it starts at 0.
    initialiser : str, default "he_normal"
        The name of one of `handgrad.INITIALISERS`, for W (K, L, O / groups, I).

    Examples
    --------
    >>> from handgrad import Network
    >>> Network(ConvTranspose2d(8, 3, 4, stride=2, padding=1), inputs=(7, 7, 8)).output_shape
    ('n', 14, 14, 3)
    """

    inputs: Count
    outputs: Count
    size: Window
    stride: Count = 1
    padding: CountOrZero = 0
    _: KW_ONLY
    dilation: Count = 1
    groups: Count = 1
    bias: bool = True
    initialiser: str = "he_normal"

    def __post_init__(self) -> None:
        _check_groups(self)

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        size = _pair(self.size)
        fan_in, fan_out = (
            channels // self.groups * math.prod(size) for channels in (self.inputs, self.outputs)
        )
        shape = (*size, self.outputs // self.groups, self.inputs)
        weights = Parameter(shape, self.initialiser, fan_in, fan_out)
        rule = rules.conv_transpose2d if self.bias else rules.conv_transpose2d_without_bias
        kept = [weights, Parameter((self.outputs,), "zeros")][: 1 + self.bias]
        return graph.apply(rule, x, *kept, layer=self, **_spacing(self))


@dataclass(frozen=True, eq=False, repr=False)
class MaxPool2d(Layer):
    """Take the largest entry of each window, channel by channel: x (n, H, V, C) to y (n, P, Q, C).

    Parameters
    ----------
    size : int or (int, int)
        Of the window.
    stride : int, default None
        How far windows are apart; without one they are side by side.
    padding : int, default 0
        How far windows go beyond the image, on each side; what is there is never taken.

    Examples
    --------
    >>> from handgrad import Network
    >>> Network(MaxPool2d(2), inputs=(28, 28, 6)).output_shape
    ('n', 14, 14, 6)
    """

    size: Window
    stride: Count | None = None
    padding: CountOrZero = 0

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        return graph.apply(rules.max_pool2d, x, layer=self, **_pooling(self))


@dataclass(frozen=True, eq=False, repr=False)
class AvgPool2d(Layer):
    """Average each window, channel by channel: x (n, H, V, C) to y (n, P, Q, C).

    Parameters
    ----------
    size : int or (int, int)
        Of the window.
    stride : int, default None
        How far windows are apart; without one they are side by side.
    padding : int, default 0
        How far windows go beyond the image, on each side, where zeros are averaged too.
    """

    size: Window
    stride: Count | None = None
    padding: CountOrZero = 0

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        return graph.apply(rules.average_pool2d, x, layer=self, **_pooling(self))


@dataclass(frozen=True, eq=False, repr=False)
class GlobalAvgPool2d(RuleLayer):
    """Average each channel over the whole image: x (n, H, V, C) to y (n, C)."""

    rule = rules.global_average_pool2d


@dataclass(frozen=True, eq=False, repr=False)
class Reshape(Layer):
    """Give each row another shape: ``Reshape((28, 28, 1))`` makes images of (n, 784).

    Parameters
    ----------
    shape : (int, ...)
        Of a row, without n.

    Examples
    --------
    >>> from handgrad import Network
    >>> Network(Reshape((28, 28, 1)), inputs=784).output_shape
    ('n', 28, 28, 1)
    """

    shape: tuple[Count, ...]

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        row = [int(size) for size in x.shape[1:]]
        if math.prod(row) != math.prod(self.shape):
            raise ShapeError(
                f"{graph.origin}: {show_shape(self.shape)} holds {math.prod(self.shape)} numbers, "
                f"and a row of {x.name}{show_shape(x.shape)} {math.prod(row)}"
            )
        return graph.apply(rules.reshape, x, layer=self, shape=self.shape)


@dataclass(frozen=True, eq=False, repr=False)
class Flatten(Layer):
    """Put all that belongs to a row side by side: (n, H, V, C) as (n, H V C).

    Examples
    --------
    >>> from handgrad import Network
    >>> Network(Flatten(), inputs=(4, 4, 16)).output_shape
    ('n', 256)
    """

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        return graph.apply(rules.reshape, x, layer=self)


def _pair(size: int | tuple[int, int]) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else size


def _kept(layer: Conv1d | Conv2d, size: tuple[int, ...]) -> list[Parameter]:
    """Return W and b."""
    fan_in, fan_out = (
        channels // layer.groups * math.prod(size) for channels in (layer.inputs, layer.outputs)
    )
    weights = Parameter(
        (*size, layer.inputs // layer.groups, layer.outputs), layer.initialiser, fan_in, fan_out
    )
    return [weights, Parameter((layer.outputs,), "zeros")]


def _check_groups(layer: Conv1d | Conv2d | ConvTranspose2d) -> None:
    """Refuse groups that do not divide the channels, of the input and of the output."""
    if layer.inputs % layer.groups or layer.outputs % layer.groups:
        most = math.gcd(layer.inputs, layer.outputs)
        raise ConfigurationError(
            f"{layer!r}: {layer.inputs} inputs and {layer.outputs} outputs are not {layer.groups} groups of equally many",
            fix=f"give groups that divide both: {', '.join(str(n) for n in range(1, most + 1) if most % n == 0)}",
        )


def _spacing(layer: Conv1d | Conv2d | ConvTranspose2d) -> dict[str, int]:
    spacing = {"stride": layer.stride, "padding": layer.padding, "dilation": layer.dilation}
    return {**spacing, "groups": layer.groups}


def _pooling(layer: MaxPool2d | AvgPool2d) -> dict[str, object]:
    """Return the options of a pooling rule; refuse windows that may lie in the padding alone."""
    size = _pair(layer.size)
    if 2 * layer.padding > min(size):
        raise ConfigurationError(
            f"{layer!r}: the padding is more than half of the window {show_shape(size)}",
            fix=f"give padding={min(size) // 2} or less, or a larger window",
        )
    stride = layer.stride or layer.size
    if not isinstance(stride, int):
        raise ConfigurationError(
            f"{layer!r}: the window is not square", fix="say how far windows are apart: stride=2"
        )
    return {"size": size, "stride": stride, "padding": layer.padding}

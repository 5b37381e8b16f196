"""Arrays of a network as a ``state_dict`` of PyTorch's has them: their names, the order of their axes, which are joined."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.errors import ConversionError
from handgrad.interop.counterparts import LayerPlace, places
from handgrad.layers import Conv1d, Graph, Layer, Node, Reshape, SelfAttention
from handgrad.network import Network
from handgrad.rules import Shape, show_shape

Array = NDArray[Any]


@dataclass(frozen=True)
class StateTensor:
    """One tensor of a ``state_dict``, as views of a network's arrays.

    Attributes
    ----------
    layer, name
        Whose it is, and its name in the module.
    views
        One below the other. Features that were flattened have their axes apart.
    shape
        The tensor's.
    added
        How many of the views an earlier tensor of the module has too: the array is the sum of both.
    """

    layer: Layer
    name: str
    views: tuple[Array, ...]
    shape: tuple[int, ...]
    added: int = 0

    def whole(self) -> Array:
        """Return the numbers of all views, copied: the tensor's gradient where the views are of gradients."""
        return np.concatenate(self.views).reshape(self.shape)

    def numbers(self) -> Array:
        """Return the tensor: where an earlier one has the numbers, 0."""
        views = [np.zeros_like(view) if k < self.added else view for k, view in enumerate(self.views)]
        return np.concatenate(views).reshape(self.shape)

    def fill(self, numbers: Array) -> None:
        """Copy a tensor into the arrays; what is added is added to what an earlier tensor has put there."""
        apart = numbers.reshape(-1, *self.views[0].shape[1:])
        parts = np.split(apart, np.cumsum([len(view) for view in self.views])[:-1])
        for k, (view, part) in enumerate(zip(self.views, parts, strict=True)):
            view[...] = view + part if k < self.added else part


def state_tensors(network: Network, arrays: Mapping[str, Array]) -> dict[str, StateTensor]:
    """Return arrays of a network as a ``state_dict`` has them, by the names ``"0.weight"``, ``"1.running_mean"``.

    Weights that are tied to an earlier layer's are that layer's tensor once more.
    """
    check_axes(network)
    graph, flattened = network.graph(), flattened_features(network)
    found: dict[str, StateTensor] = {}
    for place in places(network.body):
        if (owner := owner_of_tied(network, place)) in found:
            found[f"{place.path}.weight"] = found[owner]
        found |= {f"{place.path}.{each.name}": each for each in _of_layer(place, graph, arrays, flattened)}
    return found


def owner_of_tied(network: Network, place: LayerPlace) -> str:
    """Return the name of the tensor that a layer's weights are tied to; "" where they are its own.

    Raises
    ------
    ConversionError
        When no module has the tied array as a matrix that the layer's module could have too.
    """
    if not (tied := getattr(place.layer, "tied", None)):
        return ""
    graph, matrix = network.graph(), np.empty((2, 3))
    own = _in_order(place.layer, (), "W", matrix).shape
    for other in places(network.body):
        row = other.counterpart
        for argument, name in names_of(other.layer, graph).items():
            same = _in_order(other.layer, row.order, argument, matrix).shape == own
            if name == tied and argument in row.arrays and same:
                return f"{other.path}.{row.arrays[argument]}"
    raise ConversionError(
        f"{place.title}: its weights are {tied}, which no module has as a matrix (outputs, inputs)",
        fix="tie them to those of Embedding or Linear, of the same layout, or export by handgrad.interop.to_onnx",
    )


def _of_layer(
    place: LayerPlace, graph: Graph, arrays: Mapping[str, Array], flattened: Mapping[str, Shape]
) -> Iterator[StateTensor]:
    layer = place.layer
    names = names_of(layer, graph)
    if not names:
        return
    row = place.counterpart
    kept = {
        own: _in_order(layer, row.order, own, arrays[name]) for own, name in names.items() if name in arrays
    }
    for own, name in row.arrays.items():
        if own in kept:
            apart = _apart(kept[own], flattened.get(names[own], ()))
            yield StateTensor(layer, name, (apart,), kept[own].shape)
    seen: set[str] = set()
    for name, parts in row.joined.items():
        if all(own in kept for own in parts):
            views = [kept[own] for own in parts]
            if added := len(seen & set(parts)):  # of the first, what the others leave
                views[0] = views[0][: len(views[0]) - sum(map(len, views[1:]))]
            seen |= set(parts)
            yield StateTensor(layer, name, tuple(views), (sum(map(len, views)), *views[0].shape[1:]), added)


def names_of(layer: Layer, graph: Graph) -> dict[str, str]:
    """Return the names of a layer's arrays, by what its rules call them; in attention, of the map of each number."""
    if not isinstance(layer, SelfAttention):
        return graph.names_of(layer)
    maps = [graph.names_of(each) for each in layer.maps]
    return {f"{own}{number}": name for number, names in enumerate(maps, 1) for own, name in names.items()}


def _in_order(layer: Layer, order: tuple[int, ...], own: str, array: Array) -> Array:
    """Return an array with its axes in PyTorch's order."""
    if getattr(layer, "layout", "") == "in_out" and own == "W":
        return array.T
    return array.transpose(order) if array.ndim == len(order) else array


def _apart(array: Array, row: Shape) -> Array:
    """Return a view with the axes that were flattened into its last apart, channels first, as PyTorch flattens them."""
    if not row:
        return array
    ahead = array.ndim - 1
    view = array.reshape(*array.shape[:-1], *row)
    return np.moveaxis(view, -1, ahead)


def flattened_features(network: Network) -> dict[str, Shape]:
    """Return which arrays have a flattened image's features in an axis, with the image's shape.

    PyTorch flattens images channel by channel, and handgrad place by place, so that the features have another order until a
    `Linear` has mixed them.

    Raises
    ------
    ConversionError
        When something else than a layer of features takes them in this order.
    """
    orders: dict[str, Shape] = {}  # of values whose features are in handgrad's order
    found: dict[str, Shape] = {}
    fix = "put Linear after Flatten"
    forward = [node for node in network.nodes() if node.part == "forward"]
    for node in forward:
        given = {orders.get(value.name, ()) for value in node.inputs if value.kind in ("value", "input")}
        row = max(given)
        mixes = node.rule.name.startswith("linear")
        if row and (len(given) > 1 or node.rule.name == "reshape"):
            raise ConversionError(
                f"{node.layer}: the features of flattened images{show_shape(row)} are in another order in PyTorch",
                fix=fix,
            )
        if node.rule.name == "reshape":
            row = _flattened(network, node)
        for argument, value in node.arguments.items():
            of_features = value.kind in ("parameter", "state") and not (mixes and argument != "W")
            if of_features and found.setdefault(value.name, row) != row:
                raise ConversionError(
                    f"{node.layer}: its {value.name} is used before for features in another order",
                    fix="give each of the two places a layer of its own",
                )
        if row and not mixes:
            orders[node.output.name] = row
    if row := orders.get(forward[-1].output.name, ()):
        raise ConversionError(
            f"the output is flattened images{show_shape(row)}, in another order in PyTorch", fix=fix
        )
    return found


def _flattened(network: Network, node: Node) -> Shape:
    """Return the shape of the images that a reshaping flattens, () where their order is PyTorch's too."""
    row = node.inputs[0].shape[1:]
    alike = 1 in (row[-1], math.prod(map(int, row[:-1])))
    return row if len(node.output.shape) == 2 and channels_first(network, row) and not alike else ()


def channels_first(network: Network, row: Shape) -> bool:
    """Whether rows of this shape have channels first in PyTorch: images, and sequences in a network with `Conv1d`."""
    return len(row) == 3 or (len(row) == 2 and any(isinstance(p.layer, Conv1d) for p in places(network.body)))


def check_axes(network: Network) -> None:
    """Check that every layer's module takes the channels in the axis in which PyTorch has them there.

    Raises
    ------
    ConversionError
        When one takes them elsewhere; it names the layer and its place.
    """
    graph = network.graph()
    for place in places(network.body):
        axis, row = place.counterpart.channels, graph.inputs[id(place.layer)].shape[1:]
        if isinstance(place.layer, SelfAttention):
            _check_attention(place.title, place.layer)
        if isinstance(place.layer, Reshape) and channels_first(network, row) and len(place.layer.shape) > 1:
            raise ConversionError(
                f"{place.title}: takes the numbers of images{show_shape(row)} in handgrad's order, and PyTorch has another",
                fix="use Flatten and Linear before it",
            )
        if len(row) > 1 and axis == "last" and channels_first(network, row):
            has = (
                "images are (n, C, H, W)"
                if len(row) == 3
                else "sequences are (n, C, T) where Conv1d takes them"
            )
            raise ConversionError(
                f"{place.title}: in PyTorch {has}, and {place.counterpart.module} takes the last axis",
                fix="convert the layers before it and those from it on as two networks, with movedim(1, -1) between them",
            )


def _check_attention(title: str, layer: SelfAttention) -> None:
    """Refuse what PyTorch's module for attention cannot do by itself."""
    for setting, usual, what in (
        ("rotary", False, "no rotary positions"),
        ("key_heads", None, "as many heads of keys as of queries"),
        ("padding", None, "no padding without a mask in each call"),
    ):
        if getattr(layer, setting) != usual:
            problem = f"{title}: PyTorch's attention has {what}"
            raise ConversionError(
                problem, fix=f"give {setting}={usual}, or export it by handgrad.interop.to_onnx"
            )

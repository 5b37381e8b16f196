"""Which layer of handgrad's is which module of PyTorch's: one table, for both directions, for files, and for the docs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from handgrad import layers
from handgrad.errors import ConversionError
from handgrad.layers import Layer, Sequential
from handgrad.network import Network


@dataclass(frozen=True)
class Counterpart:
    """A layer and a module that compute the same.

    Attributes
    ----------
    layer
        The layer's class.
    module
        The module's name in ``torch.nn``, or in ``handgrad.interop.modules``.
    options
        What the module calls each of the layer's fields.
    arrays
        What the module calls each array, by the name in the layer's rule.
    features
        What the module calls the length of a row, when the layer takes it from its input.
    """

    layer: type[Layer]
    module: str
    options: Mapping[str, str] = field(default_factory=dict)
    arrays: Mapping[str, str] = field(default_factory=dict)
    features: str = ""


SCALED = {"gamma": "weight", "beta": "bias"}
RUNNING = {"running_mean": "running_mean", "running_var": "running_var"}

COUNTERPARTS = (
    Counterpart(
        layers.Linear,
        "Linear",
        {"inputs": "in_features", "outputs": "out_features"},
        {"W": "weight", "b": "bias"},
    ),
    Counterpart(
        layers.Embedding,
        "Embedding",
        {"entries": "num_embeddings", "features": "embedding_dim"},
        {"E": "weight"},
    ),
    Counterpart(layers.ReLU, "ReLU"),
    Counterpart(layers.LeakyReLU, "LeakyReLU", {"slope": "negative_slope"}),
    Counterpart(layers.ELU, "ELU", {"alpha": "alpha"}),
    Counterpart(layers.GELU, "GELU", {"form": "approximate"}),
    Counterpart(layers.SiLU, "SiLU"),
    Counterpart(layers.Sigmoid, "Sigmoid"),
    Counterpart(layers.Tanh, "Tanh"),
    Counterpart(layers.Softplus, "Softplus"),
    Counterpart(layers.Softmax, "Softmax"),
    Counterpart(layers.Dropout, "Dropout", {"rate": "p"}),
    Counterpart(
        layers.BatchNorm,
        "BatchNorm1d",
        {"epsilon": "eps", "momentum": "momentum"},
        SCALED | RUNNING,
        "num_features",
    ),
    Counterpart(layers.LayerNorm, "LayerNorm", {"epsilon": "eps"}, SCALED, "normalized_shape"),
    Counterpart(
        layers.Standardise,
        "Standardise",
        {"over": "over"},
        {"mean": "mean", "deviation": "deviation"},
        "features",
    ),
)

BY_LAYER = {counterpart.layer: counterpart for counterpart in COUNTERPARTS}


@dataclass(frozen=True)
class Place:
    """A layer of a network that holds no other layers, and where it stands.

    Attributes
    ----------
    layer
        The layer.
    path
        Its name in a ``state_dict``, counted from 0: ``"4.0"``.
    title
        Its name in an error, counted from 1: ``"layer 5, Residual → layer 1, Linear(6, 6)"``.
    """

    layer: Layer
    path: str
    title: str

    @property
    def counterpart(self) -> Counterpart:
        """The layer's row of the table; an error that names it when there is none."""
        try:
            return BY_LAYER[type(self.layer)]
        except KeyError:
            raise ConversionError(
                f"{self.title}: PyTorch has no counterpart of {type(self.layer).__name__} that handgrad knows",
                fix="take the layer out, and build it in PyTorch yourself; handgrad.interop.to_onnx follows rules of "
                "your own line by line",
            ) from None


def places(body: Sequential, path: str = "", title: str = "") -> Iterator[Place]:
    """Yield the layers of a network, those inside `Residual` and `Sequential` too, in order."""
    for number, layer in enumerate(body.layers):
        name = type(layer).__name__ if isinstance(layer, Sequential) else repr(layer)
        inner_path, inner_title = f"{path}{number}", f"{title}layer {number + 1}, {name}"
        if isinstance(layer, Sequential):
            yield from places(layer, f"{inner_path}.", f"{inner_title} → ")
        else:
            yield Place(layer, inner_path, inner_title)


@dataclass(frozen=True)
class Kept:
    """An array of a network as a ``state_dict`` has it.

    Attributes
    ----------
    array
        Its name in the network.
    transposed
        Whether PyTorch keeps its transpose.
    """

    array: str
    transposed: bool


def state_names(network: Network) -> dict[str, Kept]:
    """Return the arrays of a network by their names in a ``state_dict``: ``"0.weight"``, ``"1.running_mean"``."""
    found: dict[str, Kept] = {}
    graph = network.graph()
    for place in places(network.body):
        names = graph.names_of(place.layer)
        called = place.counterpart.arrays if names else {}
        for argument, array in names.items():
            turned = argument == "W" and getattr(place.layer, "layout", "") == "in_out"
            found[f"{place.path}.{called[argument]}"] = Kept(array, turned)
    return found

"""Which layer is which module of PyTorch's, in both directions, in files and in the docs; what has no counterpart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from numpy.typing import NDArray

from handgrad import layers
from handgrad.errors import ConversionError
from handgrad.layers import Layer, Repeat, Residual, Sequential
from handgrad.network import Network

Array = NDArray[Any]


@dataclass(frozen=True)
class Counterpart:
    """A layer and a module that compute the same.

    ``options`` and ``arrays`` are the module's names of the layer's fields and arrays, ``features`` of the length of a row
    (where the layer takes it from its input), ``fixed`` what the module needs in any case, ``choices`` PyTorch's words for
    values of options.
    """

    layer: type[Layer]
    module: str
    options: Mapping[str, str] = field(default_factory=dict)
    arrays: Mapping[str, str] = field(default_factory=dict)
    features: str = ""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    choices: Mapping[Any, str] = field(default_factory=dict)


SCALED = {"gamma": "weight", "beta": "bias"}
RUNNING = {"running_mean": "running_mean", "running_var": "running_var"}

COUNTERPARTS = (
    Counterpart(
        layers.Linear, "Linear", {"inputs": "in_features", "outputs": "out_features"}, {"W": "weight", "b": "bias"}
    ),
    Counterpart(
        layers.Embedding, "Embedding", {"entries": "num_embeddings", "features": "embedding_dim"}, {"E": "weight"}
    ),
    Counterpart(layers.ReLU, "ReLU"),
    Counterpart(layers.LeakyReLU, "LeakyReLU", {"slope": "negative_slope"}),
    Counterpart(layers.ELU, "ELU", {"alpha": "alpha"}),
    Counterpart(layers.GELU, "GELU", {"form": "approximate"}, choices={"exact": "none", "tanh": "tanh"}),
    Counterpart(layers.SiLU, "SiLU"),
    Counterpart(layers.Sigmoid, "Sigmoid"),
    Counterpart(layers.Tanh, "Tanh"),
    # Below PyTorch's threshold of 20, what it leaves out is seen in float64.
    Counterpart(layers.Softplus, "Softplus", fixed={"threshold": 40.0}),
    Counterpart(layers.Softmax, "Softmax", fixed={"dim": -1}),
    Counterpart(layers.Dropout, "Dropout", {"rate": "p"}),
    Counterpart(
        layers.BatchNorm, "BatchNorm1d", {"epsilon": "eps", "momentum": "momentum"}, SCALED | RUNNING, "num_features"
    ),
    Counterpart(layers.LayerNorm, "LayerNorm", {"epsilon": "eps"}, SCALED, "normalized_shape"),
    Counterpart(
        layers.Standardise, "StandardiseModule", {"over": "over"}, {"mean": "mean", "deviation": "deviation"},
        "features",
    ),
    Counterpart(
        layers.StandardiseTargets, "StandardiseTargetsModule", {}, {"t_mean": "mean", "t_deviation": "deviation"}, "features",
    ),
)  # fmt: skip

BY_LAYER = {counterpart.layer: counterpart for counterpart in COUNTERPARTS}


class LayerPlace(NamedTuple):
    """A layer that holds no others: its name in a ``state_dict`` (``"4.0"``), and in an error, from 1."""

    layer: Layer
    path: str
    title: str

    @property
    def counterpart(self) -> Counterpart:
        """The layer's row of the table; an error that names it when there is none."""
        if tied := getattr(self.layer, "tied", None):
            raise ConversionError(
                f"{self.title}: its weights are {tied}, and modules share no arrays here",
                fix="for GPT-2, handgrad.interop.save_gpt2 writes the weights as published; to_onnx takes any network",
            )
        try:
            return BY_LAYER[type(self.layer)]
        except KeyError:
            raise ConversionError(
                f"{self.title}: PyTorch has no counterpart of {type(self.layer).__name__} that handgrad knows",
                fix="take the layer out, and build it in PyTorch yourself; handgrad.interop.to_onnx follows rules of "
                "your own line by line",
            ) from None


def places(body: Sequential, path: str = "", title: str = "") -> Iterator[LayerPlace]:
    """Yield the layers of a network, those inside `Residual`, `Repeat` and `Sequential` too, in order."""
    for number, layer in enumerate(body.layers):
        name = type(layer).__name__ if isinstance(layer, Sequential) else repr(layer)
        inner_path, inner_title = f"{path}{number}", f"{title}layer {number + 1}, {name}"
        if isinstance(layer, Sequential):
            blocks = layer.blocks if isinstance(layer, Repeat) else (layer,)
            for block, inner in enumerate(blocks):
                within = f"{inner_path}.{block}." if isinstance(layer, Repeat) else f"{inner_path}."
                yield from places(inner, within, f"{inner_title} → ")
            if isinstance(layer, Residual) and layer.shortcut is not None:
                yield from places(
                    Sequential(layer.shortcut), f"{inner_path}.shortcut.", f"{inner_title} → shortcut → "
                )
        else:
            yield LayerPlace(layer, inner_path, inner_title)


def state_views(network: Network, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return arrays of a network as a ``state_dict`` has them: views by the names ``"0.weight"``, ``"1.running_mean"``."""
    found: dict[str, Array] = {}
    graph = network.graph()
    for place in places(network.body):
        names = graph.names_of(place.layer)
        called = place.counterpart.arrays if names or getattr(place.layer, "tied", None) else {}
        for argument, name in names.items():
            if name in arrays:
                is_transposed = argument == "W" and getattr(place.layer, "layout", "") == "in_out"
                found[f"{place.path}.{called[argument]}"] = arrays[name].T if is_transposed else arrays[name]
    return found


NO_IMAGES = "handgrad's have channels last, (n, H, W, C): build the network of them, and set its arrays"
NO_SEQUENCES = "build the network of handgrad's own, and set its arrays"

UNSUPPORTED_MODULES = {
    "BatchNorm2d, BatchNorm3d, GroupNorm, InstanceNorm*": NO_IMAGES,
    "Conv*, *Pool*, Upsample*, Pixel*": NO_IMAGES,
    "RNN*, LSTM*, GRU*, MultiheadAttention, Transformer*": NO_SEQUENCES,
    "DataParallel, DistributedDataParallel": "give its .module",
    "Flatten": "it may stand first, before flat rows: leave it out, and give the network flat rows",
    "Lazy*": "run the model once on a batch: then it knows its sizes",
    "LogSoftmax": "leave it out, and give the loss CrossEntropyLoss, which has it inside",
    "Parametrized*": "torch.nn.utils.parametrize.remove_parametrizations makes it a plain module again",
    "PReLU": "LeakyReLU has a counterpart; its slope is not trained",
    "RMSNorm": "LayerNorm has a counterpart",
}
"""What to do about modules that people have often, by patterns of their names."""

UNSUPPORTED_LOSSES = {
    "HalfSquaredError": "torch.nn.MSELoss(reduction='sum') is twice its sum, and so are the gradients",
    "Poisson": "torch.nn.PoissonNLLLoss() is this loss but for a part that depends on the targets alone, and has the "
    "same gradients",
    "BCELoss": "leave the model's last Sigmoid out, and give BCEWithLogitsLoss()",
    "BCEWithLogitsLoss": "give the rows weights when training, instead of the option weight",
    "L1Loss": "HuberLoss with a small delta comes near",
    "NLLLoss": "leave the model's last LogSoftmax out, and give CrossEntropyLoss()",
    "SmoothL1Loss": "HuberLoss(delta=beta) is beta times this loss; with beta=1 they are the same",
}
"""What to do about losses that only one of the two libraries has."""

NORMALISATION_OPTIONS = {
    "BatchNorm1d": "give affine=True, track_running_stats=True",
    "BatchNormOfRows": "give affine=True, track_running_stats=True",
    "LayerNorm": "give elementwise_affine=True, bias=True",
}
"""With which every array of a layer is there."""


def unsupported_module(module: Any, place: str) -> ConversionError:
    """Return the error for a module without a counterpart."""
    kind = type(module).__name__
    own = "write a rule and a layer of your own, and build the network of them"
    known = (
        fix
        for names, fix in UNSUPPORTED_MODULES.items()
        if any(fnmatchcase(kind, n) for n in names.split(", "))
    )
    return ConversionError(f"{place}: handgrad has no counterpart of {kind}", fix=next(known, own))


def unsupported_option(module: Any, counterpart: Counterpart, axes: int) -> tuple[str, str] | None:
    """Return which option of a module has no counterpart, and the fix; ``axes`` are those of one row of its input."""
    kind = type(module).__name__
    for called in counterpart.arrays.values():
        if getattr(module, called) is None and (kind, called) != ("Linear", "bias"):
            return (
                f"it has no {called}, and handgrad's {counterpart.layer.__name__} does",
                NORMALISATION_OPTIONS.get(kind, ""),
            )
    match kind:
        case "Softplus" if module.beta != 1 or module.threshold < 20:
            return f"beta is {module.beta} and threshold {module.threshold}", "beta=1, threshold=20 has one"
        case "Softmax" if module.dim not in (-1, axes):
            return f"dim is {module.dim}, and handgrad's is the last", "give dim=-1"
        case "BatchNorm1d" if axes > 1:
            return (
                f"it takes the second of {axes + 1} axes, and handgrad's BatchNorm the last",
                "use handgrad.interop.modules.BatchNormOfRows in the model",
            )
        case "BatchNorm1d" | "BatchNormOfRows" if module.momentum is None:
            return "momentum is None: an average over all batches", "give a number"
        case "LayerNorm" if len(module.normalized_shape) > 1:
            return (
                f"it normalises {len(module.normalized_shape)} axes, and handgrad's the last",
                "give the network flat rows",
            )
        case "Embedding":
            for name in ("padding_idx", "max_norm"):
                if (value := getattr(module, name)) is not None:
                    return f"{name} is {value}, and handgrad's Embedding has none", f"give {name}=None"
            if module.scale_grad_by_freq:
                problem = "scale_grad_by_freq changes the gradient, and handgrad's Embedding has none"
                return problem, "give scale_grad_by_freq=False"
    return None

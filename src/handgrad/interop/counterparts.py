"""Which layer is which module of PyTorch's, in both directions, in files and in the docs; what has no counterpart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple

from handgrad import layers
from handgrad.errors import ConversionError
from handgrad.layers import Concat, Layer, Repeat, Residual, Sequential


@dataclass(frozen=True)
class Counterpart:
    """A layer and a module that compute the same.

    ``options`` and ``arrays`` are the module's names of the layer's fields and arrays, ``features`` of the length of a row
    (where the layer takes it from its input), ``fixed`` what the module needs in any case, ``choices`` PyTorch's words for
    values of options. ``order`` is the order of the axes of the largest arrays in PyTorch. ``joined`` are tensors of several
    arrays, one below the other; an array that an earlier tensor has too is the sum of both. ``demanded`` is what options of
    the module must be, because the layer has none of them. ``channels`` is the axis in which the module has the channels or
    features: of an activation, any.
    """

    layer: type[Layer]
    module: str
    options: Mapping[str, str] = field(default_factory=dict)
    arrays: Mapping[str, str] = field(default_factory=dict)
    features: str = ""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    choices: Mapping[Any, str] = field(default_factory=dict)
    order: tuple[int, ...] = ()
    joined: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    demanded: Mapping[str, Any] = field(default_factory=dict)
    channels: Literal["any", "second", "last"] = "any"

    @property
    def tensors(self) -> tuple[str, ...]:
        """The module's names of all its arrays."""
        return (*dict.fromkeys(self.arrays.values()), *self.joined)


SCALED = {"gamma": "weight", "beta": "bias"}
RUNNING = {"running_mean": "running_mean", "running_var": "running_var"}

AFFINE = {"W": "weight", "b": "bias"}
WINDOWS = {
    "inputs": "in_channels", "outputs": "out_channels", "size": "kernel_size", "stride": "stride", "padding": "padding",
    "dilation": "dilation", "groups": "groups",
}  # fmt: skip
POOLS = {"size": "kernel_size", "stride": "stride", "padding": "padding"}
STATES = {"inputs": "input_size", "outputs": "hidden_size"}
MATRICES = {"W": "weight_ih_l0", "U": "weight_hh_l0"}
BIASES = {"bias_ih_l0": ("b",), "bias_hh_l0": ("b",)}
ONE_LAYER = {
    "num_layers": 1, "bias": True, "batch_first": True, "bidirectional": False, "proj_size": 0,
}  # fmt: skip

COUNTERPARTS = (
    Counterpart(
        layers.Linear, "Linear", {"inputs": "in_features", "outputs": "out_features"}, AFFINE, channels="last"
    ),
    Counterpart(
        layers.Embedding, "Embedding", {"entries": "num_embeddings", "features": "embedding_dim"}, {"E": "weight"},
        demanded={"padding_idx": None, "max_norm": None, "scale_grad_by_freq": False}, channels="last",
    ),
    Counterpart(
        layers.Conv1d, "Conv1d", WINDOWS, AFFINE, order=(2, 1, 0),
        demanded={"padding_mode": "zeros"}, channels="second",
    ),
    Counterpart(
        layers.Conv2d, "Conv2d", WINDOWS, AFFINE, order=(3, 2, 0, 1),
        demanded={"padding_mode": "zeros"}, channels="second",
    ),
    Counterpart(
        layers.ConvTranspose2d, "ConvTranspose2d", WINDOWS, AFFINE, order=(3, 2, 0, 1),
        demanded={"output_padding": 0, "padding_mode": "zeros"}, channels="second",
    ),
    Counterpart(
        layers.MaxPool2d, "MaxPool2d", POOLS, demanded={"dilation": 1, "ceil_mode": False, "return_indices": False},
        channels="second",
    ),
    Counterpart(
        layers.AvgPool2d, "AvgPool2d", POOLS,
        demanded={"ceil_mode": False, "count_include_pad": True, "divisor_override": None}, channels="second",
    ),
    Counterpart(layers.GlobalAvgPool2d, "GlobalAvgPool2dModule", channels="second"),
    Counterpart(layers.Flatten, "Flatten", demanded={"start_dim": 1, "end_dim": -1}),
    Counterpart(layers.Reshape, "ReshapeModule", {"shape": "shape"}),
    Counterpart(
        layers.RNN, "RNNModule", STATES, MATRICES, order=(1, 0), joined=BIASES,
        demanded=ONE_LAYER | {"nonlinearity": "tanh"}, channels="last",
    ),
    Counterpart(
        layers.LSTM, "LSTMModule", STATES, MATRICES, order=(1, 0), joined=BIASES, demanded=ONE_LAYER, channels="last"
    ),
    Counterpart(
        layers.GRU, "GRUModule", STATES, MATRICES, order=(1, 0), joined=BIASES | {"bias_hh_l0": ("b", "c")},
        demanded=ONE_LAYER, channels="last",
    ),
    Counterpart(layers.Last, "LastModule", channels="last"),
    Counterpart(
        layers.SelfAttention, "SelfAttentionModule",
        {"features": "embed_dim", "heads": "num_heads", "causal": "causal"},
        {"W4": "out_proj.weight", "b4": "out_proj.bias"}, order=(1, 0),
        joined={"in_proj_weight": ("W1", "W2", "W3"), "in_proj_bias": ("b1", "b2", "b3")},
        demanded={"batch_first": True, "dropout": 0.0, "bias_k": None, "add_zero_attn": False}, channels="last",
    ),
    Counterpart(layers.Positions, "PositionsModule", {}, {"P": "weight"}, "shape", channels="last"),
    Counterpart(layers.ReLU, "ReLU"),
    Counterpart(layers.LeakyReLU, "LeakyReLU", {"slope": "negative_slope"}),
    Counterpart(layers.ELU, "ELU", {"alpha": "alpha"}),
    Counterpart(layers.GELU, "GELU", {"form": "approximate"}, choices={"exact": "none", "tanh": "tanh"}),
    Counterpart(layers.SiLU, "SiLU"),
    Counterpart(layers.Sigmoid, "Sigmoid"),
    Counterpart(layers.Tanh, "Tanh"),
    # Below PyTorch's threshold of 20, what it leaves out is seen in float64.
    Counterpart(layers.Softplus, "Softplus", fixed={"threshold": 40.0}, demanded={"beta": 1}),
    Counterpart(layers.Softmax, "Softmax", fixed={"dim": -1}),
    Counterpart(layers.Dropout, "Dropout", {"rate": "p"}),
    Counterpart(
        layers.BatchNorm, "BatchNorm1d", {"epsilon": "eps", "momentum": "momentum"}, SCALED | RUNNING, "num_features"
    ),
    Counterpart(
        layers.GroupNorm, "GroupNorm", {"groups": "num_groups", "epsilon": "eps"}, SCALED, "num_channels",
        channels="second",
    ),
    Counterpart(layers.LayerNorm, "LayerNorm", {"epsilon": "eps"}, SCALED, "normalized_shape", channels="last"),
    Counterpart(
        layers.RMSNorm, "RMSNorm", {"epsilon": "eps"}, {"gamma": "weight"}, "normalized_shape", channels="last"
    ),
    Counterpart(
        layers.Standardise, "StandardiseModule", {"over": "over"}, {"mean": "mean", "deviation": "deviation"},
        "features",
    ),
    Counterpart(
        layers.StandardiseTargets, "StandardiseTargetsModule", {}, {"t_mean": "mean", "t_deviation": "deviation"}, "features",
        channels="last",
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
        if isinstance(layer, Concat):
            raise ConversionError(
                f"{inner_title}: branches side by side have no module",
                fix="export it by handgrad.interop.to_onnx",
            )
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


UNSUPPORTED_MODULES = {
    "BatchNorm3d, Conv3d, *Pool3d, InstanceNorm*, Upsample*, Pixel*, ZeroPad*": "write a rule and a layer of your own, "
    "and build the network of them",
    "MaxPool1d, AvgPool1d, ConvTranspose1d": "make the sequences images of one row, for the module with 2d in its name",
    "AdaptiveAvgPool*, AdaptiveMaxPool*": "AdaptiveAvgPool2d(1) before Flatten has a counterpart, GlobalAvgPool2d",
    "RNNCell, LSTMCell, GRUCell, Transformer*": "RNN, LSTM, GRU and MultiheadAttention have counterparts",
    "DataParallel, DistributedDataParallel": "give its .module",
    "Lazy*": "run the model once on a batch: then it knows its sizes",
    "LogSoftmax": "leave it out, and give the loss CrossEntropyLoss, which has it inside",
    "Parametrized*": "torch.nn.utils.parametrize.remove_parametrizations makes it a plain module again",
    "PReLU": "LeakyReLU has a counterpart; its slope is not trained",
    "Unflatten": "of one channel, or one place, it has a counterpart; else use handgrad.interop.modules.ReshapeModule",
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

MISSING_ARRAYS = {
    "BatchNorm": "give affine=True, track_running_stats=True",
    "GroupNorm": "give affine=True",
    "LayerNorm": "give elementwise_affine=True, bias=True",
    "RMSNorm": "give elementwise_affine=True",
    "SelfAttention": "give bias=True, and neither kdim nor vdim",
}
"""With which every array of a layer is there; else it is its bias."""


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


def plain(value: Any) -> Any:
    """Return one number for a tuple of equal ones: PyTorch has stride=(2, 2) for 2."""
    return value[0] if isinstance(value, tuple) and len(set(value)) == 1 else value


def unsupported_option(
    module: Any, counterpart: Counterpart, axes: int, *, first: bool
) -> tuple[str, str] | None:
    """Return which option of a module has no counterpart, and the fix.

    ``axes`` are those of one row of its input, whose channels come ``first`` in PyTorch, or last.
    """
    kind, own = type(module).__name__, counterpart.layer.__name__
    for name, needed in counterpart.demanded.items():
        if (value := plain(getattr(module, name, needed))) != needed:
            return (
                f"{name} is {value!r}, and handgrad's {own} has {name}={needed!r}",
                f"give {name}={needed!r}",
            )
    for called in counterpart.tensors:
        optional = "bias" in getattr(counterpart.layer, "__dataclass_fields__", ()) and called == "bias"
        if getattr(module, called.partition(".")[0]) is None and not optional:
            fix = MISSING_ARRAYS.get(own, "give bias=True")
            return f"it has no {called}, and handgrad's {own} does", fix
    match kind:
        case "ReshapeModule" if module.channels_first != (len(module.shape) == 3):
            has = ("first, and these axes are no image's", "last, and PyTorch's modules take them first")[
                len(module.shape) == 3
            ]
            return f"its images have channels {has}", f"give channels_first={not module.channels_first}"
        case "Softplus" if module.threshold < 20:
            return f"threshold is {module.threshold}", "give threshold=20"
        case "Softmax" if module.dim not in ((1, -axes) if first else (-1, axes)):
            return (
                f"dim is {module.dim}, and handgrad's is that of channels or features",
                f"give dim={1 if first else -1}",
            )
        case "BatchNorm1d" if axes > 1 and not first:
            return (
                f"it takes the second of {axes + 1} axes, and handgrad's BatchNorm the last",
                "use handgrad.interop.modules.BatchNormOfRows in the model",
            )
        case "BatchNorm1d" | "BatchNorm2d" | "BatchNormOfRows" if module.momentum is None:
            return "momentum is None: an average over all batches", "give a number"
        case "LayerNorm" | "RMSNorm" if len(module.normalized_shape) > 1:
            return (
                f"it normalises {len(module.normalized_shape)} axes, and handgrad's the last",
                "give the network flat rows",
            )
    return None

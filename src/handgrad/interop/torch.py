"""Networks to PyTorch and from it: the same layers, options and numbers."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from operator import attrgetter
from types import MappingProxyType
from typing import Any

import numpy as np

from handgrad import layers
from handgrad.arguments import Seed, judged
from handgrad.errors import ConversionError, HandgradError, need, notify
from handgrad.interop.counterparts import (
    BY_LAYER,
    COUNTERPARTS,
    UNSUPPORTED_LOSSES,
    Counterpart,
    places,
    plain,
    unsupported_module,
    unsupported_option,
)
from handgrad.interop.torch_state import channels_first, check_axes, owner_of_tied, state_tensors
from handgrad.interop.weights import to_state
from handgrad.layers import BatchNorm, Layer, Linear, Loss, Repeat, Residual, Sequential
from handgrad.network import Network
from handgrad.network.network import DType

NOT_IGNORED = -100
"""The class number that PyTorch's CrossEntropyLoss ignores by default."""


@judged
def to_torch(network: Network) -> Any:
    """Make a ``torch.nn.Sequential`` of a network: the same layers, options, weights and running statistics.

    Parameters
    ----------
    network
        Made of layers that have a counterpart; its loss is left out, see `to_torch_loss`.

    Returns
    -------
    torch.nn.Sequential
        In training mode, as every new module: call ``.eval()`` to predict. Its numbers are copies. What PyTorch has no
        module of, `Residual` for one, becomes one of ``handgrad.interop.modules``. It takes images as PyTorch does,
        channels first: (n, C, H, W), which are ``x.movedim(-1, 1)``; see the page on PyTorch for the axes of sequences.

    Raises
    ------
    ConversionError
        When a layer has no counterpart; it names the layer and its place.
    """
    torch = need("torch", "to_torch")
    check_axes(network)
    made = _modules(network).to(getattr(torch, network.dtype))
    for place in places(network.body):
        if owner := owner_of_tied(network, place):
            made.get_submodule(place.path).weight = made.get_parameter(owner)
    made.load_state_dict({name: torch.tensor(array) for name, array in to_state(network).items()})
    return made


@judged
def to_torch_loss(network: Network) -> Any:
    """Make the loss module of ``torch.nn`` that a network's loss is.

    For several class numbers in a row, (n, time), PyTorch wants the classes in the second axis:
    ``loss(output.movedim(-1, 1), t)``.

    Raises
    ------
    ConversionError
        When the loss, or one of its options, has no counterpart.
    """
    need("torch", "to_torch_loss")
    if network.loss is None:
        raise ConversionError("the network has no loss")
    return _loss_to(network.loss, network.dtype)


@judged
def from_torch(
    module: Any, *, loss: Any = None, inputs: int | tuple[int, ...] | None = None, seed: Seed = 0
) -> Network:
    """Make a network of a ``torch.nn.Sequential``, which may hold others: the same layers, options and numbers.

    Parameters
    ----------
    module
        The model. ``nn.Identity`` is passed over, and so is ``nn.Flatten`` of rows that are flat.
    loss
        A loss module of ``torch.nn``, or a loss of handgrad's.
    inputs
        The shape of one row, where the modules do not have it; as for `handgrad.Network`: of images (H, W, C).
    seed
        Of later random draws: the weights are the model's.

    Returns
    -------
    Network
        With copies of the model's weights and running statistics, in their dtype.

    Raises
    ------
    ConversionError
        When a module or one of its options has no counterpart; it names the module and its place.
    """
    torch = need("torch", "from_torch")
    if not isinstance(module, torch.nn.Module):
        raise ConversionError(f"{module!r} is no module of PyTorch's")
    axes = 1 if inputs is None or isinstance(inputs, int) else len(inputs)
    modules = module if type(module) is torch.nn.Sequential else torch.nn.Sequential(module)
    reader = _TorchReader(module, axes)
    found = reader.sequence(modules)
    if owners := reader.tied():  # whose arrays have names when the layers are connected
        graph = Network(*found, inputs=inputs).graph()
        names = {path: graph.names_of(layer)[argument] for path, (layer, argument) in owners.items()}
        reader = _TorchReader(module, axes, names)
        found = reader.sequence(modules)
    if not found:
        raise ConversionError(f"{type(module).__name__} holds no layers")
    given = loss if loss is None or isinstance(loss, Loss) else _loss_from(loss)
    _check_channels_last(found, inputs)
    network = Network(*found, loss=given, inputs=inputs, seed=seed, dtype=reader.dtype())
    reader.fill(network)
    return network


def _check_channels_last(found: list[Layer], inputs: Any) -> None:
    """Check that ``inputs`` has no channels first, as the module's own input has."""
    channels = getattr(found[0], "inputs", None)
    if isinstance(inputs, tuple) and len(inputs) > 1 and inputs[-1] != channels == inputs[0]:
        raise ConversionError(
            f"inputs={inputs} has the {channels} channels first, and handgrad has them last",
            fix=f"give inputs={(*inputs[1:], channels)}",
        )


def _modules(network: Network) -> Any:
    """Make the modules of a network's layers; a layer that is used twice becomes one module, used twice."""
    nn, own = need("torch.nn", "to_torch"), need("handgrad.interop.modules", "to_torch")
    graph, made = network.graph(), {}

    def module(layer: Layer) -> Any:
        if id(layer) not in made:
            made[id(layer)] = sequential(layer) if isinstance(layer, Sequential) else leaf(layer)
        return made[id(layer)]

    def sequential(layer: Sequential) -> Any:
        if isinstance(layer, Residual):
            shortcut = layer.shortcut and nn.Sequential(module(layer.shortcut))
            return own.ResidualModule(*map(module, layer.layers), shortcut=shortcut)
        return nn.Sequential(*map(module, layer.blocks if isinstance(layer, Repeat) else layer.layers))

    def leaf(layer: Layer) -> Any:
        row = BY_LAYER[type(layer)]
        values = {called: getattr(layer, name) for name, called in row.options.items()}
        options = {name: row.choices.get(value, value) for name, value in values.items()}
        options |= row.fixed
        if row.features:
            shape = network.arrays[next(iter(graph.names_of(layer).values()))].shape
            options[row.features] = shape if len(shape) > 1 else shape[0]
        if hasattr(layer, "bias"):
            options["bias"] = layer.bias
        return _in_place(layer, row, options)

    def _in_place(layer: Layer, row: Counterpart, options: dict[str, Any]) -> Any:
        """Make the module for the axes that it is given, and makes."""
        given = graph.inputs[id(layer)].shape[1:]
        first = channels_first(network, given)
        match layer:
            case layers.BatchNorm() if len(given) > 1:
                return (
                    nn.BatchNorm2d if len(given) == 3 else nn.BatchNorm1d if first else own.BatchNormOfRows
                )(**options)
            case layers.Softmax() if first:
                options["dim"] = 1
            case layers.Standardise():
                options["channels_first"] = first
            case layers.Reshape() if first:
                return nn.Flatten()
            case layers.Reshape():
                options["channels_first"] = channels_first(network, layer.shape)
        return _module_class(row, nn, own)(**options)

    return sequential(network.body)


def _module_class(counterpart: Counterpart, nn: Any, own: Any) -> Any:
    return getattr(nn, counterpart.module, None) or getattr(own, counterpart.module)


class _TorchReader:
    """Makes layers of modules; a module that is used twice becomes one layer."""

    def __init__(self, module: Any, axes: int, names: Mapping[str, str] = MappingProxyType({})) -> None:
        nn = self.nn = need("torch.nn", "from_torch")
        own = self.own = need("handgrad.interop.modules", "from_torch")
        self.axes = axes  # of one row of what comes next
        self.names = names  # of the arrays that tied weights are, by the layer's path
        self.sequences_first = any(isinstance(inner, nn.Conv1d) for inner in module.modules())
        self.made: dict[int, tuple[Layer, Any]] = {}
        self.leaves: list[tuple[str, Any, Layer, Counterpart]] = []
        self.known = {_module_class(row, nn, own): row for row in COUNTERPARTS}
        for kind in (own.RNNModule, own.LSTMModule, own.GRUModule, own.SelfAttentionModule):
            self.known[kind.__base__ if kind is own.SelfAttentionModule else kind.__bases__[1]] = self.known[
                kind
            ]
        self.known |= dict.fromkeys((own.BatchNormOfRows, nn.BatchNorm2d), BY_LAYER[BatchNorm])

    @property
    def first(self) -> bool:
        """Whether what comes next has its channels first in PyTorch."""
        return self.axes == 3 or (self.axes == 2 and self.sequences_first)

    def sequence(self, module: Any, path: str = "") -> list[Layer]:
        found = []
        inner_modules = list(module._modules.items())  # children() leaves out a module that is there already
        for number, (name, inner) in enumerate(inner_modules, 1):
            shown = repr(inner)
            if len(shown) > 80 or "\n" in shown:
                shown = type(inner).__name__
            place = f"module {path}{name}, {shown}"
            is_flattened = number < len(inner_modules) and type(inner_modules[number][1]) is self.nn.Flatten
            if (
                type(inner) is self.nn.AdaptiveAvgPool2d
                and plain(inner.output_size) == 1
                and not is_flattened
            ):
                raise ConversionError(
                    f"{place}: its averages are (n, C, 1, 1), and handgrad's GlobalAvgPool2d gives (n, C)",
                    fix="put nn.Flatten() right after it",
                )
            if (layer := self.layer(inner, f"{path}{name}", place)) is not None:
                found.append(layer)
        return found

    def layer(self, module: Any, path: str, place: str) -> Layer | None:
        """Return the layer that a module is; None for one that does nothing."""
        if id(module) in self.made:
            return self.made[id(module)][0]
        if module._forward_hooks or module._forward_pre_hooks:
            raise ConversionError(
                f"{place} has hooks, and a layer has none", fix="remove them, or make a rule of what they do"
            )
        kind = type(module)
        all_axes = kind is self.nn.Flatten and (module.start_dim, module.end_dim) == (1, -1)
        if kind is self.nn.Identity or (all_axes and self.axes == 1):
            return None
        layer: Layer
        if kind is self.own.ResidualModule:
            if any(getattr(inner, "inplace", False) for inner in module.modules()):
                problem = f"{place}: a module in it works in place, and may change what is added"
                raise ConversionError(problem, fix="give inplace=False")
            shortcut = module._modules.get("shortcut")
            inner = [name for name in module._modules if name != "shortcut"]
            layer = Residual(
                *self.sequence(
                    self.nn.Sequential(OrderedDict((name, module._modules[name]) for name in inner)),
                    f"{path}.",
                ),
                shortcut=None
                if shortcut is None
                else self.layer(shortcut, f"{path}.shortcut", f"{place}, shortcut"),
            )
        elif kind is self.nn.Sequential:
            layer = Sequential(*self.sequence(module, f"{path}."))
        else:
            layer = self.leaf(module, path, place)
        self.made[id(module)] = layer, module
        return layer

    def leaf(self, module: Any, path: str, place: str) -> Layer:
        if (layer := self.of_own_shape(module)) is None:
            row = self.known.get(type(module))
            if row is None:
                raise unsupported_module(module, place)
            self.axes = _AXES_BEFORE.get(row.layer, 3 if type(module) is self.nn.BatchNorm2d else self.axes)
            if problem := unsupported_option(module, row, self.axes, first=self.first):
                raise ConversionError(f"{place}: {problem[0]}", fix=problem[1])
            try:
                tied = {"tied": self.names[path]} if path in self.names else {}
                layer = row.layer(**self.options(module, row), **tied)
            except HandgradError as error:
                raise ConversionError(f"{place}: {error.problem}", given=error.given, fix=error.fix) from None
            self.leaves.append((path, module, layer, row))
        self.axes = self.axes_after(layer)
        return layer

    def of_own_shape(self, module: Any) -> Layer | None:
        """Return the layer of a module with a counterpart for some shapes only."""
        match type(module):
            case self.nn.AdaptiveAvgPool2d if plain(module.output_size) == 1:
                return layers.GlobalAvgPool2d()
            case self.nn.Unflatten if module.dim == 1 and len(module.unflattened_size) == 3:
                channels, *places = module.unflattened_size
                return layers.Reshape((*places, channels)) if 1 in (channels, math.prod(places)) else None
        return None

    def options(self, module: Any, row: Counterpart) -> dict[str, Any]:
        words = {word: value for value, word in row.choices.items()}
        values = {
            name: getattr(module, called) for name, called in row.options.items() if hasattr(module, called)
        }
        if row.channels == "second":
            values = {name: plain(value) for name, value in values.items()}
        options = {name: words.get(value, value) for name, value in values.items()}
        if isinstance(options.get("padding"), str):
            options["padding"] = _padding(module)
        if row.layer in (layers.Linear, layers.Conv1d, layers.Conv2d, layers.ConvTranspose2d):
            options["bias"] = module.bias is not None
        if row.layer is Linear:
            options["layout"] = "out_in"
        if row.options.keys() == {"size", "stride", "padding"} and options["stride"] == options["size"]:
            options["stride"] = None
        if options.get("epsilon", 0) is None:  # of RMSNorm: that of its numbers
            options["epsilon"] = float(np.finfo(str(module.weight.dtype).removeprefix("torch.")).eps)
        return options

    def axes_after(self, layer: Layer) -> int:
        match layer:
            case layers.Embedding():
                return self.axes + 1
            case layers.Flatten() | layers.GlobalAvgPool2d() | layers.Last():
                return 1
            case layers.Reshape():
                return len(layer.shape)
        return self.axes

    def tensors(self) -> Iterator[tuple[str, Any, Layer, str]]:
        """Yield every tensor with its name, the layer that has it, and its name in the module."""
        for path, module, layer, row in self.leaves:
            for called in row.tensors:
                if (tensor := attrgetter(called)(module)) is not None:
                    yield f"{path}.{called}", tensor, layer, called

    def tied(self) -> dict[str, tuple[Layer, str]]:
        """Return the paths of `Linear` with an earlier module's weights, with that layer and its word for them."""
        found: dict[str, tuple[Layer, str]] = {}
        first: dict[int, tuple[Layer, str]] = {}
        for path, module, layer, row in self.leaves:
            if isinstance(layer, Linear | layers.Embedding):
                (argument,) = (own for own, called in row.arrays.items() if called == "weight")
                owner = first.setdefault(id(module.weight), (layer, argument))
                if owner[0] is not layer and isinstance(layer, Linear):
                    found[path] = owner
        return found

    def dtype(self) -> DType:
        kinds: dict[Any, str] = {}
        for name, tensor, *_ in self.tensors():
            kinds.setdefault(str(tensor.dtype).removeprefix("torch."), name)
        given = [f"{name} is {kind}" for kind, name in kinds.items()]
        for kind, shown in zip(kinds, given, strict=True):
            if kind not in ("float32", "float64"):
                problem = f"{shown}, and a network computes in float32 or float64"
                raise ConversionError(problem, fix="module.float()")
        if len(kinds) > 1:
            raise ConversionError(
                "the model has several types of numbers, and a network has one",
                given=", ".join(given),
                fix="module.float() or module.double()",
            )
        return next(iter(kinds), "float32")

    def fill(self, network: Network) -> None:
        own = {(id(each.layer), each.name): each for each in state_tensors(network, network.arrays).values()}
        owners: dict[int, str] = {}
        frozen = []
        for name, tensor, layer, called in self.tensors():
            if called == "weight" and getattr(layer, "tied", None):
                continue
            other = owners.setdefault(id(tensor), name)
            if other != name:
                raise ConversionError(
                    f"{other} and {name} are one tensor of two modules, and only the weights of Linear can be tied to "
                    "those of another Linear or Embedding before it",
                    fix="use one module twice, or give each a copy",
                )
            if tensor.is_meta:
                raise ConversionError(f"{name} has no numbers: it is on the device meta")
            own[id(layer), called].fill(np.asarray(tensor.detach().cpu()))
            if isinstance(tensor, self.nn.Parameter) and not tensor.requires_grad:
                frozen.append(name)
        if frozen:
            notify(f"{', '.join(frozen)} need no gradient in the model; handgrad trains every parameter")


def _padding(module: Any) -> Any:
    """Return the padding that PyTorch's word for it is; the word where it differs from side to side."""
    reach = plain(
        tuple(gap * (size - 1) for gap, size in zip(module.dilation, module.kernel_size, strict=True))
    )
    even = isinstance(reach, int) and reach % 2 == 0
    return 0 if module.padding == "valid" else reach // 2 if even else module.padding


_AXES_BEFORE = (
    dict.fromkeys((layers.Conv2d, layers.ConvTranspose2d, layers.MaxPool2d, layers.AvgPool2d, layers.GroupNorm), 3)
    | dict.fromkeys((layers.Conv1d, layers.RNN, layers.LSTM, layers.GRU, layers.SelfAttention), 2)
)  # fmt: skip
"""How many axes a row has that a layer is given, where the layer says it."""


def _loss_to(loss: Any, dtype: str) -> Any:
    torch = need("torch", "to_torch_loss")
    nn, kind = torch.nn, type(loss)

    def unsupported(problem: str, fix: str) -> ConversionError:
        return ConversionError(f"{loss!r}: {problem}", fix=fix)

    def tensor(numbers: Any) -> Any:
        return None if numbers is None else torch.tensor(np.asarray(numbers, dtype))

    if getattr(loss, "l2", 0):
        raise unsupported("PyTorch's losses have no l2", "give the optimiser weight_decay instead")
    if getattr(loss, "outputs", "mean") != "mean":
        problem = "PyTorch's losses add up all or nothing, and this one adds up each row"
        raise unsupported(problem, 'give outputs="mean"')
    if kind is layers.MeanSquaredError:
        return nn.MSELoss()
    if kind is layers.Huber:
        return nn.HuberLoss(delta=loss.delta)
    if kind is layers.BinaryCrossEntropy:
        return nn.BCEWithLogitsLoss(pos_weight=tensor(loss.positive_weight))
    if kind is layers.SoftmaxCrossEntropy:
        ignored = NOT_IGNORED if loss.ignored is None else loss.ignored
        weight = tensor(loss.class_weight)
        return nn.CrossEntropyLoss(weight, ignore_index=ignored, label_smoothing=loss.smoothing)
    name = kind.__name__
    raise unsupported(f"torch.nn has no counterpart of {name}", UNSUPPORTED_LOSSES.get(name, ""))


def _loss_from(module: Any) -> Loss:
    nn = need("torch.nn", "from_torch")
    kind = type(module)
    if getattr(module, "reduction", "mean") != "mean":
        half = "HalfSquaredError() is half of MSELoss(reduction='sum')"
        raise ConversionError(
            f"loss {module!r}: reduction is {module.reduction!r}, and handgrad's losses average",
            fix=half if kind is nn.MSELoss else "give reduction='mean'",
        )
    if kind is nn.MSELoss:
        return layers.MeanSquaredError()
    if kind is nn.HuberLoss:
        return layers.Huber(module.delta)
    if kind is nn.SmoothL1Loss and module.beta == 1:
        return layers.Huber(1.0)
    if kind is nn.BCEWithLogitsLoss and module.weight is None:
        return layers.BinaryCrossEntropy(_numbers(module.pos_weight))
    if kind is nn.CrossEntropyLoss:
        weight, ignored = _numbers(module.weight), module.ignore_index
        return layers.SoftmaxCrossEntropy(
            smoothing=module.label_smoothing, ignored=ignored, class_weight=weight
        )
    raise ConversionError(
        f"loss {module!r}: handgrad has no counterpart", fix=UNSUPPORTED_LOSSES.get(kind.__name__, "")
    )


def _numbers(tensor: Any) -> Any:
    return None if tensor is None else tensor.detach().cpu().tolist()

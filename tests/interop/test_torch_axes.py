"""Images, sequences and attention to PyTorch and back: the same numbers where the axes have another order there."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from handgrad import (
    GELU,
    GRU,
    LSTM,
    RNN,
    AvgPool2d,
    BatchNorm,
    Concat,
    Conv1d,
    Conv2d,
    ConversionError,
    ConvTranspose2d,
    Embedding,
    Flatten,
    GlobalAvgPool2d,
    GroupNorm,
    Last,
    Layer,
    LayerNorm,
    Linear,
    MaxPool2d,
    MeanSquaredError,
    Network,
    Positions,
    ReLU,
    Reshape,
    Residual,
    RMSNorm,
    SelfAttention,
    ShapeError,
    Softmax,
    Standardise,
    Tanh,
)
from handgrad.interop import from_torch, load_torch_weights, save_torch_weights, to_torch, to_torch_loss
from handgrad.interop.torch_state import state_tensors

from .comparing import distance

Array = NDArray[Any]
peers = pytest.mark.peers

NETWORKS: dict[str, tuple[Callable[[], tuple[Layer, ...]], int | tuple[int, ...]]] = {
    "convolution": (
        lambda: (
            Standardise(), Conv2d(2, 5, (3, 2), stride=2, padding=1), GroupNorm(5, epsilon=0.1), ReLU(),
            Conv2d(5, 5, 3, padding=1, groups=5), BatchNorm(), MaxPool2d(2), Flatten(), LayerNorm(), Linear(30, 7), Tanh(),
            Linear(7, 3),
        ),
        (11, 9, 2),
    ),
    "two flattenings of one size": (
        lambda: (
            Residual(Conv2d(2, 2, 3, padding=1)), Flatten(), BatchNorm(), Residual(Tanh()), Linear(24, 3, False, "out_in"),
        ),
        (4, 3, 2),
    ),
    "average pooling": (
        lambda: (
            Conv2d(2, 5, 3, dilation=2, bias=False), Softmax(), AvgPool2d((3, 2), stride=2, padding=1), GlobalAvgPool2d(),
            Linear(5, 3),
        ),
        (11, 9, 2),
    ),
    "depthwise without a bias": (lambda: (Conv2d(4, 4, (2, 3), groups=4, bias=False),), (5, 6, 4)),
    "groups": (lambda: (Conv2d(4, 6, (2, 3), groups=2), Tanh(), ConvTranspose2d(6, 9, 2, groups=3)), (4, 4, 4)),
    "groups of sequences": (lambda: (Conv1d(4, 6, 2, groups=2), Tanh(), Conv1d(6, 6, 2, groups=6, bias=False)), (7, 4)),
    "transposed": (lambda: (ConvTranspose2d(2, 5, (3, 2), stride=2, padding=1, dilation=2),), (4, 5, 2)),
    "images of rows": (lambda: (Linear(10, 72), Reshape((4, 3, 6)), ConvTranspose2d(6, 3, 3)), 10),
    "convolution of sequences": (
        lambda: (Conv1d(2, 5, 3, stride=2, padding=1, dilation=2), BatchNorm(), GELU(), Flatten(), Linear(25, 4)),
        (11, 2),
    ),
    "batch norm of sequences": (lambda: (LSTM(3, 4), BatchNorm(), Flatten(), Linear(20, 2)), (5, 3)),
    "RNN": (lambda: (RNN(3, 5), RNN(5, 4), Last(), RMSNorm(epsilon=0.1), Linear(4, 2)), (7, 3)),
    "LSTM": (lambda: (LSTM(3, 5), LSTM(5, 4), Last(), Linear(4, 2)), (7, 3)),
    "GRU": (lambda: (GRU(3, 5), GRU(5, 4), Last(), Linear(4, 2)), (7, 3)),
    "attention": (lambda: (Linear(3, 8), SelfAttention(8, 2), Last()), (7, 3)),
    "causal attention": (
        lambda: (
            Linear(3, 8), Positions(), Residual(LayerNorm(), SelfAttention(8, 4, causal=True)), Flatten(), Linear(56, 2),
        ),
        (7, 3),
    ),
}  # fmt: skip


def network(kind: str, seed: int = 0) -> Network:
    """Return one of the networks, with every array drawn."""
    layers, inputs = NETWORKS[kind]
    made = Network(*layers(), loss=MeanSquaredError(), inputs=inputs, dtype="float64", seed=seed)
    rng = np.random.default_rng(seed + 1)
    for array in made.arrays.values():
        array[...] = rng.uniform(0.2, 1, array.shape) * rng.choice(
            [-1, 1], array.shape if array.ndim > 1 else ()
        )
        array /= np.sqrt(array[..., 0].size)
    for name in made.arrays:
        if name.startswith(("running_var", "deviation")):
            np.abs(made.arrays[name], out=made.arrays[name])
    return made


def channels_second(made: Network, array: Array) -> Array:
    """Return rows as PyTorch has them: images, and sequences where Conv1d takes them, channels first."""
    first = array.ndim == 4 or (
        array.ndim == 3 and any(isinstance(each, Conv1d) for each in made.body.layers)
    )
    return np.moveaxis(array, -1, 1) if first else array


def furthest(torch: Any, made: Network, module: Any) -> float:
    """Return how far the module's outputs, in training and outside it, and its gradients are from the network's."""
    rng = np.random.default_rng(5)
    x, t = rng.normal(size=(6, *made.row)), rng.normal(size=(6, *made.output_shape[1:]))
    given, wanted = (torch.tensor(channels_second(made, array)) for array in (x, t))
    outside = module.eval()(given).detach().numpy()
    to_torch_loss(made)(module.train()(given), wanted).backward()
    gradients = made.gradients(x, t)
    parameters = dict(module.named_parameters())
    found = {name: tensor.whole() for name, tensor in state_tensors(made, gradients).items()}
    assert found.keys() == parameters.keys()
    scale = 1e-2 * max(
        abs(gradient).max() for gradient in found.values()
    )  # that of a bias before BatchNorm is rounding
    apart = [distance(parameters[name].grad.numpy(), gradient, scale) for name, gradient in found.items()]
    return max(distance(outside, channels_second(made, made.output(x))), *apart)


@peers
@pytest.mark.parametrize("kind", NETWORKS)
def test_a_module_computes_what_its_network_does(torch: Any, kind: str) -> None:
    """Outputs and every gradient."""
    made = network(kind)
    assert furthest(torch, made, to_torch(made)) <= 1e-12


@peers
@pytest.mark.parametrize("kind", NETWORKS)
def test_there_and_back_changes_nothing(torch: Any, kind: str, tmp_path: Path) -> None:
    """The layers and every number, by way of modules and by way of a file that PyTorch has written."""
    from safetensors.torch import save_file

    made = network(kind)
    module = to_torch(made)
    back = from_torch(module, inputs=made.row)
    shown = re.sub(r", layout='out_in'", "", repr(back))
    assert shown == re.sub(r", (layout='out_in'|loss=MeanSquaredError\(\))", "", repr(made))
    save_file(module.state_dict(), tmp_path / "theirs")
    load_torch_weights(other := network(kind, 3), tmp_path / "theirs")
    for name, array in made.arrays.items():
        assert other.arrays[name].tobytes() == array.tobytes(), name
        assert back.arrays[name].tobytes() in (array.tobytes(), array.T.tobytes()), name


def shuffled(axis: int, *kinds: str) -> Callable[[Any, Any], None]:
    """Return what reverses an axis of the weights of modules."""

    def change(torch: Any, module: Any) -> None:
        for inner in module.modules():
            if type(inner).__name__ in kinds:
                inner.weight.data = inner.weight.data.flip(axis)

    return change


def gates_exchanged(torch: Any, module: Any) -> None:
    first, second, *rest = module[0].weight_hh_l0.data.chunk(3 if "GRU" in repr(module) else 4)
    module[0].weight_hh_l0.data = torch.cat([second, first, *rest])


def bias_doubled(torch: Any, module: Any) -> None:
    module[0].bias_hh_l0.data += module[0].bias_ih_l0.data


def queries_are_keys(torch: Any, module: Any) -> None:
    queries, keys, values = module[1].in_proj_weight.data.chunk(3)
    module[1].in_proj_weight.data = torch.cat([keys, queries, values])


@peers
@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("convolution", shuffled(2, "Conv2d")),
        ("convolution", shuffled(1, "Linear")),
        ("transposed", shuffled(3, "ConvTranspose2d")),
        ("convolution of sequences", shuffled(2, "Conv1d")),
        ("two flattenings of one size", shuffled(0, "BatchNorm1d")),
        ("LSTM", gates_exchanged),
        ("LSTM", bias_doubled),
        ("GRU", gates_exchanged),
        ("RNN", bias_doubled),
        ("attention", queries_are_keys),
    ],
)
def test_a_conversion_that_went_wrong_is_seen(
    torch: Any, kind: str, change: Callable[[Any, Any], None]
) -> None:
    made = network(kind)
    change(torch, module := to_torch(made))
    assert furthest(torch, made, module) > 1e-3


# Modules as people have them.


@peers
def test_lenet_and_its_weights(torch: Any) -> None:
    """With the features of a flattened image channel by channel, as PyTorch has them."""
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding="same"), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5, padding="valid"),
        nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten(), nn.Dropout(0.2), nn.Linear(400, 10),
    ).double()  # fmt: skip
    made = from_torch(model, loss=nn.CrossEntropyLoss(), inputs=(28, 28, 1))
    assert repr(made) == (
        "Network(Conv2d(1, 6, 5, padding=2), ReLU(), MaxPool2d(2), Conv2d(6, 16, 5), BatchNorm(), ReLU(), MaxPool2d(2), "
        "Flatten(), Dropout(rate=0.2), Linear(400, 10, layout='out_in'), loss=SoftmaxCrossEntropy(ignored=-100))"
    )
    x = np.random.default_rng(0).normal(size=(7, 28, 28, 1))
    expected = model.eval()(torch.tensor(x).movedim(-1, 1)).detach().numpy()
    assert distance(made.output(x), expected) <= 1e-12


@peers
def test_global_pooling_and_images_of_one_channel(torch: Any) -> None:
    nn = torch.nn
    model = nn.Sequential(
        nn.Linear(3, 20), nn.Unflatten(1, (1, 5, 4)), nn.Conv2d(1, 6, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(6, 2),
    ).double()  # fmt: skip
    made = from_torch(model)
    assert "Reshape((5, 4, 1)), Conv2d(1, 6, 3), GlobalAvgPool2d(), Linear(" in repr(made)
    x = np.random.default_rng(0).normal(size=(7, 3))
    assert distance(made.output(x), model(torch.tensor(x)).detach().numpy()) <= 1e-12


@peers
@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_two_biases_become_one(torch: Any, kind: str) -> None:
    """PyTorch's own recurrent modules return a pair; the network, what is first in it."""
    model = getattr(torch.nn, kind)(3, 4, batch_first=True).double()
    x = np.random.default_rng(0).normal(size=(6, 5, 3))
    made = from_torch(model, inputs=(5, 3))
    assert distance(made.output(x), model(torch.tensor(x))[0].detach().numpy()) <= 1e-12


@peers
def test_multihead_attention_is_of_a_sequence_with_itself(torch: Any) -> None:
    model = torch.nn.MultiheadAttention(6, 3, batch_first=True).double()
    torch.nn.init.normal_(model.in_proj_bias)
    x = np.random.default_rng(0).normal(size=(4, 5, 6))
    expected = model(*[torch.tensor(x)] * 3)[0].detach().numpy()
    assert distance(from_torch(model, inputs=(5, 6)).output(x), expected) <= 1e-12


@peers
@pytest.mark.parametrize("epsilon", [None, 0.1])
def test_the_epsilon_of_rms_norm(torch: Any, epsilon: float | None) -> None:
    """Without one, PyTorch takes that of the numbers."""
    model = torch.nn.RMSNorm(4, eps=epsilon).double()
    x = np.random.default_rng(0).normal(size=(5, 4)) * 1e-8
    assert distance(from_torch(model, inputs=4).output(x), model(torch.tensor(x)).detach().numpy()) <= 1e-12


# What has no equal.

REFUSED: dict[str, tuple[Callable[[Any], Any], Any, str]] = {
    "times first": (lambda nn: nn.LSTM(3, 4), (5, 3), "batch_first is False, and handgrad's LSTM has batch_first=True"),
    "several layers": (
        lambda nn: nn.GRU(3, 4, 2, batch_first=True), (5, 3), "num_layers is 2, and handgrad's GRU has num_layers=1",
    ),
    "rectifiers": (
        lambda nn: nn.RNN(3, 4, nonlinearity="relu", batch_first=True), (5, 3),
        "nonlinearity is 'relu', and handgrad's RNN has nonlinearity='tanh'",
    ),
    "attention of times first": (
        lambda nn: nn.MultiheadAttention(4, 2), (5, 4),
        "batch_first is False, and handgrad's SelfAttention has batch_first=True",
    ),
    "attention without a bias": (
        lambda nn: nn.MultiheadAttention(4, 2, bias=False, batch_first=True), (5, 4),
        "it has no in_proj_bias, and handgrad's SelfAttention does",
    ),
    "padding of one side": (lambda nn: nn.Conv2d(2, 3, 4, padding="same"), (9, 9, 2), "Conv2d: padding is 'same'"),
    "two strides": (lambda nn: nn.Conv2d(2, 3, 3, stride=(1, 2)), (9, 9, 2), "Conv2d: stride is (1, 2)"),
    "padding by reflection": (
        lambda nn: nn.Conv2d(2, 3, 3, padding_mode="reflect"), (9, 9, 2),
        "padding_mode is 'reflect', and handgrad's Conv2d has padding_mode='zeros'",
    ),
    "ceil": (
        lambda nn: nn.MaxPool2d(3, ceil_mode=True), (8, 8, 2),
        "ceil_mode is True, and handgrad's MaxPool2d has ceil_mode=False",
    ),
    "padding that does not count": (
        lambda nn: nn.AvgPool2d(3, padding=1, count_include_pad=False), (8, 8, 2),
        "count_include_pad is False, and handgrad's AvgPool2d has count_include_pad=True",
    ),
    "averages with axes": (
        lambda nn: nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.ReLU()), (9, 9, 2),
        "its averages are (n, C, 1, 1), and handgrad's GlobalAvgPool2d gives (n, C)",
    ),
    "averages of parts": (lambda nn: nn.AdaptiveAvgPool2d(2), (9, 9, 2), "handgrad has no counterpart of AdaptiveAvgPool2d"),
    "images of several channels": (
        lambda nn: nn.Unflatten(1, (2, 2, 3)), 12, "handgrad has no counterpart of Unflatten",
    ),
    "rows flattened together": (
        lambda nn: nn.Flatten(0), (3, 2), "start_dim is 0, and handgrad's Flatten has start_dim=1",
    ),
    "the last axis of images": (
        lambda nn: nn.Sequential(nn.Conv2d(2, 3, 3), nn.Softmax(-1)), (9, 9, 2),
        "dim is -1, and handgrad's is that of channels or features",
    ),
    "a shape of other axes": (
        lambda nn: __import__("handgrad.interop.modules").interop.modules.ReshapeModule((2, 3, 2)), 12,
        "its images have channels last, and PyTorch's modules take them first",
    ),
}  # fmt: skip


@peers
@pytest.mark.parametrize("kind", REFUSED)
def test_modules_without_a_counterpart_are_named(torch: Any, kind: str) -> None:
    make, inputs, problem = REFUSED[kind]
    with pytest.raises(ConversionError, match=f"^module [01], .*: {re.escape(problem)}\n") as caught:
        from_torch(make(torch.nn), inputs=inputs)
    assert caught.value.fix


@peers
def test_convolutions_without_a_bias_are_those_of_torch(torch: Any) -> None:
    """In the modules with a counterpart, there and back."""
    nn, rng = torch.nn, np.random.default_rng(0)
    for made, row in (
        (nn.Conv1d(2, 3, 2, bias=False), (5, 2)),
        (nn.Conv2d(2, 3, 2, bias=False), (5, 4, 2)),
        (nn.ConvTranspose2d(2, 3, 2, bias=False), (5, 4, 2)),
    ):
        network, x = from_torch(made.double(), inputs=row), rng.normal(size=(6, *row))
        assert [*network.parameters] == ["W1"]
        expected = made(torch.tensor(x).movedim(-1, 1)).movedim(1, -1).detach()
        np.testing.assert_allclose(network.output(x), expected, rtol=0, atol=1e-12)
        (back,) = to_torch(network)
        assert back.bias is None
        np.testing.assert_array_equal(back.weight.detach(), made.weight.detach())


WRONG_ORDER: dict[str, tuple[tuple[Layer, ...], Any, str]] = {
    "flattened at the end": (
        (Conv2d(2, 3, 3), Flatten()), (9, 9, 2), "the output is flattened images(7, 7, 3), in another order in PyTorch",
    ),
    "flattened and again images": (
        (Flatten(), Reshape((9, 9, 2))), (9, 9, 2),
        "layer 2, Reshape((9, 9, 2)): the features of flattened images(9, 9, 2) are in another order in PyTorch",
    ),
    "flattened beside a map of it": (
        (Flatten(), Residual(Linear(162, 162))), (9, 9, 2),
        "layer 2, Residual: the features of flattened images(9, 9, 2) are in another order in PyTorch",
    ),
    "images of other images": (
        (Conv2d(2, 2, 1), Reshape((3, 27, 2))), (9, 9, 2),
        "layer 2, Reshape((3, 27, 2)): takes the numbers of images(9, 9, 2) in handgrad's order, and PyTorch has another",
    ),
    "features of images": (
        (Conv2d(2, 3, 3), Linear(3, 4)), (9, 9, 2),
        "layer 2, Linear(3, 4): in PyTorch images are (n, C, H, W), and Linear takes the last axis",
    ),
    "features of sequences": (
        (Embedding(7, 3), Conv1d(3, 4, 2), LSTM(4, 5)), 9,
        "layer 3, LSTM(4, 5): in PyTorch sequences are (n, C, T) where Conv1d takes them, and LSTMModule takes the last axis",
    ),
    "rotary": (
        (SelfAttention(4, 2, rotary=True),), (3, 4),
        "layer 1, SelfAttention(4, heads=2, rotary=True): PyTorch's attention has no rotary positions",
    ),
    "heads of keys": (
        (SelfAttention(4, 2, key_heads=1),), (3, 4),
        "layer 1, SelfAttention(4, heads=2, key_heads=1): PyTorch's attention has as many heads of keys as of queries",
    ),
    "padding": (
        (Embedding(7, 4), SelfAttention(4, padding=0)), 3,
        "layer 2, SelfAttention(4, padding=0): PyTorch's attention has no padding without a mask in each call",
    ),
    "branches": ((Concat(Linear(2, 3), Linear(2, 4)),), 2, "layer 1, Concat: branches side by side have no module"),
}  # fmt: skip


@pytest.mark.parametrize("kind", WRONG_ORDER)
def test_features_in_another_order_are_refused(kind: str, tmp_path: Path) -> None:
    """Where no order of weights makes a module of the network."""
    layers, inputs, problem = WRONG_ORDER[kind]
    with pytest.raises(ConversionError) as caught:
        save_torch_weights(Network(*layers, inputs=inputs), tmp_path / "w")
    assert caught.value.problem == problem
    assert caught.value.fix


@pytest.mark.peers
def test_inputs_with_channels_first_are_noticed(torch: Any) -> None:
    with pytest.raises(ConversionError, match=r"inputs=\(2, 9, 8\) has the 2 channels first") as caught:
        from_torch(torch.nn.Conv2d(2, 3, 3), inputs=(2, 9, 8))
    assert caught.value.fix == "give inputs=(9, 8, 2)"


def test_group_norm_takes_images() -> None:
    """And does not take the rows of a batch for the height of an image."""
    with pytest.raises(
        ShapeError,
        match=r"^layer 1, GroupNorm\(groups=2\): a row of x\(n, 7, 4\) has 2 axes, and needs 3 axes: H V C",
    ):
        Network(GroupNorm(2), inputs=(7, 4))

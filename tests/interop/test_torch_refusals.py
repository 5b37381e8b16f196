"""What has no counterpart is named, with its place, and what can be done."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from handgrad import (
    ConfigurationError,
    ConversionError,
    HalfSquaredError,
    HandgradError,
    Huber,
    Layer,
    Linear,
    Loss,
    MeanSquaredError,
    Network,
    Poisson,
    ReLU,
    Residual,
    SelfAttention,
)
from handgrad.interop import from_torch, save_torch_weights, to_torch, to_torch_loss
from handgrad.layers import Graph, Value


@dataclass(frozen=True, eq=False, repr=False)
class Own(Layer):
    """A layer of one's own."""

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        return ReLU().connect(graph, x)


@pytest.mark.parametrize(
    "layers",
    [(Linear(4, 6), Linear(6, 4, layout="out_in", tied="W1")), (SelfAttention(4), Linear(4, 4, tied="W1"))],
    ids=["transposed", "attention"],
)
def test_weights_tied_to_what_no_module_has_are_refused(layers: tuple[Layer, ...]) -> None:
    """A module's weights are (outputs, inputs) whatever the layout, and attention's maps are parts of one tensor."""
    network = Network(*layers, inputs=(3, 4))
    message = (
        r"^layer 2, Linear\(.*\): its weights are W1, which no module has as a matrix \(outputs, inputs\)"
    )
    with pytest.raises(ConversionError, match=message) as caught:
        save_torch_weights(network, "nowhere")
    assert "tie them to those of Embedding or Linear" in caught.value.fix


@pytest.mark.peers
def test_a_layer_without_a_counterpart_is_named_with_its_place() -> None:
    network = Network(Linear(4, 5), Residual(ReLU(), Own()))
    message = "layer 2, Residual → layer 2, Own(): PyTorch has no counterpart of Own that handgrad knows"
    with pytest.raises(ConversionError, match=f"^{re.escape(message)}\n  fix "):
        to_torch(network)


LOSSES: list[tuple[Loss | None, str]] = [
    (None, "the network has no loss"),
    (HalfSquaredError(), "HalfSquaredError(): torch.nn has no counterpart of HalfSquaredError"),
    (Poisson(), "Poisson(): torch.nn has no counterpart of Poisson"),
    (Huber(outputs="sum"), "PyTorch's losses add up all or nothing, and this one adds up each row"),
    (MeanSquaredError(l2=0.1), "MeanSquaredError(l2=0.1): PyTorch's losses have no l2"),
]


@pytest.mark.peers
@pytest.mark.parametrize(("loss", "problem"), LOSSES)
def test_losses_without_a_counterpart_are_named(loss: Loss | None, problem: str) -> None:
    with pytest.raises(ConversionError) as caught:
        to_torch_loss(Network(Linear(4, 2), loss=loss))
    assert caught.value.problem.endswith(problem)


def hooked(nn: Any) -> Any:
    module = nn.Linear(3, 4)
    module.register_forward_hook(lambda *given: None)
    return module


def tied(nn: Any) -> Any:
    module = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    module[1].bias = module[0].bias
    return module


def weight_norm(nn: Any) -> Any:
    return nn.utils.parametrizations.weight_norm(nn.Linear(3, 4))


def residual(nn: Any) -> Any:
    from handgrad.interop.modules import ResidualModule as Module

    return Module(nn.ReLU(inplace=True), nn.Linear(3, 3))


MODULES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "unknown": (
        lambda nn: nn.ConvTranspose1d(2, 3, 1),
        "stride=(1,)): handgrad has no counterpart of ConvTranspose1d",
    ),
    "a subclass": (
        lambda nn: type("Mine", (nn.Linear,), {})(3, 4),
        "bias=True): handgrad has no counterpart of Mine",
    ),
    "a sequence of one's own": (
        lambda nn: type("Mine", (nn.Sequential,), {})(nn.Linear(3, 4)),
        "module 0, Mine: handgrad has no counterpart of Mine",
    ),
    "nested": (
        lambda nn: nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.Tanh(), nn.Mish())),
        "module 1.1, Mish(): handgrad has no counterpart of Mish",
    ),
    "hooks": (
        hooked,
        "module 0, Linear(in_features=3, out_features=4, bias=True) has hooks, and a layer has none",
    ),
    "parametrized": (
        weight_norm,
        "module 0, ParametrizedLinear: handgrad has no counterpart of ParametrizedLinear",
    ),
    "no gain": (
        lambda nn: nn.BatchNorm1d(4, affine=False),
        "it has no weight, and handgrad's BatchNorm does",
    ),
    "no statistics": (
        lambda nn: nn.BatchNorm1d(4, track_running_stats=False),
        "it has no running_mean, and handgrad's BatchNorm does",
    ),
    "no shift": (lambda nn: nn.LayerNorm(4, bias=False), "it has no bias, and handgrad's LayerNorm does"),
    "cumulative": (
        lambda nn: nn.BatchNorm1d(4, momentum=None),
        "momentum is None: an average over all batches",
    ),
    "two axes": (lambda nn: nn.LayerNorm((3, 4)), "it normalises 2 axes, and handgrad's the last"),
    "beta": (lambda nn: nn.Softplus(beta=2), "beta is 2, and handgrad's Softplus has beta=1"),
    "threshold": (lambda nn: nn.Softplus(threshold=5), "threshold is 5"),
    "no dim": (lambda nn: nn.Softmax(), "dim is None, and handgrad's is that of channels or features"),
    "dim": (lambda nn: nn.Softmax(dim=0), "dim is 0, and handgrad's is that of channels or features"),
    "padding": (
        lambda nn: nn.Embedding(5, 4, padding_idx=0),
        "padding_idx is 0, and handgrad's Embedding has padding_idx=None",
    ),
    "max_norm": (
        lambda nn: nn.Embedding(5, 4, max_norm=1.0),
        "max_norm is 1.0, and handgrad's Embedding has max_norm=None",
    ),
    "scaled": (
        lambda nn: nn.Embedding(5, 4, scale_grad_by_freq=True),
        "scale_grad_by_freq is True, and handgrad's Embedding has scale_grad_by_freq=False",
    ),
    "all dropped": (lambda nn: nn.Dropout(1.0), "Dropout: rate is 1.0"),
    "in place": (residual, "a module in it works in place, and may change what is added"),
    "half": (
        lambda nn: nn.Linear(3, 4).half(),
        "0.weight is float16, and a network computes in float32 or float64",
    ),
    "mixed": (
        lambda nn: nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2).double()),
        "the model has several types of numbers, and a network has one",
    ),
    "tied": (
        tied,
        "0.bias and 1.bias are one tensor of two modules, and only the weights of Linear can be tied to those of another "
        "Linear or Embedding before it",
    ),
    "meta": (lambda nn: nn.Linear(3, 4, device="meta"), "0.weight has no numbers: it is on the device meta"),
    "no module": (lambda nn: nn.ReLU, "<class 'torch.nn.modules.activation.ReLU'> is no module of PyTorch's"),
    "empty": (lambda nn: nn.Sequential(), "Sequential holds no layers"),
}
"""A module, and what its error ends with."""


@pytest.mark.peers
@pytest.mark.parametrize("kind", MODULES)
def test_modules_without_a_counterpart_are_named(torch: Any, kind: str) -> None:
    make, problem = MODULES[kind]
    module = make(torch.nn)
    with pytest.raises(ConversionError) as caught:
        from_torch(module, inputs=3)
    assert caught.value.problem.endswith(problem)
    assert caught.value.problem == problem or caught.value.problem.startswith("module 0")
    assert caught.value.fix or kind in ("all dropped", "meta", "no module", "empty")


@pytest.mark.peers
def test_batch_norm_of_stacks_says_which_axis(torch: Any) -> None:
    with pytest.raises(ConversionError, match="it takes the second of 3 axes") as caught:
        from_torch(torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3)), inputs=(3, 4))
    assert "BatchNormOfRows" in caught.value.fix


@pytest.mark.peers
def test_an_embedding_adds_an_axis(torch: Any) -> None:
    """So the last axis is the second after one index a row, and the third after several."""
    nn = torch.nn
    for inputs, dim in (((), 1), (7, 2)):
        from_torch(nn.Sequential(nn.Embedding(5, 4), nn.Softmax(dim)), inputs=inputs)
        with pytest.raises(ConversionError, match="and handgrad's is that of channels or features"):
            from_torch(nn.Sequential(nn.Embedding(5, 4), nn.Softmax(3 - dim)), inputs=inputs)


WRONG_LOSSES: dict[str, Callable[[Any], Any]] = {
    "BCELoss": lambda nn: nn.BCELoss(),
    "NLLLoss": lambda nn: nn.NLLLoss(),
    "reduction is 'sum'": lambda nn: nn.MSELoss(reduction="sum"),
    "reduction is 'none'": lambda nn: nn.CrossEntropyLoss(reduction="none"),
    "SmoothL1Loss": lambda nn: nn.SmoothL1Loss(beta=0.5),
    "BCEWithLogitsLoss": lambda nn: nn.BCEWithLogitsLoss(weight=nn.Parameter()),
}


@pytest.mark.peers
@pytest.mark.parametrize("said", WRONG_LOSSES)
def test_losses_of_theirs_without_a_counterpart_are_named(torch: Any, said: str) -> None:
    with pytest.raises(ConversionError, match=r"^loss ") as caught:
        from_torch(torch.nn.Linear(3, 2), loss=WRONG_LOSSES[said](torch.nn))
    assert said in caught.value.problem
    assert caught.value.fix


@pytest.mark.peers
def test_what_the_network_itself_refuses_is_said_as_always(torch: Any) -> None:
    with pytest.raises(ConfigurationError, match="give inputs=64"):
        from_torch(torch.nn.ReLU())
    with pytest.raises(HandgradError, match="axis I is 4"):
        from_torch(torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(5, 2)))

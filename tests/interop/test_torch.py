"""Networks to PyTorch and back: the same answers, losses, gradients, running statistics and options."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from handgrad import (
    BatchNorm,
    BinaryCrossEntropy,
    Dropout,
    Embedding,
    HalfSquaredError,
    Huber,
    Layer,
    LayerNorm,
    Linear,
    MeanSquaredError,
    MissingPackageError,
    Network,
    Repeat,
    Residual,
    Sequential,
    SoftmaxCrossEntropy,
    Softplus,
    Standardise,
    StandardiseTargets,
    Tanh,
    train,
)
from handgrad.errors import HandgradNotice
from handgrad.interop import from_torch, load_torch_weights, save_torch_weights, to_torch, to_torch_loss
from handgrad.interop.counterparts import COUNTERPARTS
from handgrad.specs import to_table

from .comparing import Pair, distance
from .networks import COUNT, drawn, layers_in
from .test_torch_axes import NETWORKS, network

peers = pytest.mark.peers

LOST = ("layout", "initialiser")
"""What a module does not know: how its weights lie in handgrad, and how they began."""


def test_the_drawn_networks_have_every_layer_and_loss_with_a_counterpart() -> None:
    """The networks leave no row of the table out; a layer without a row is refused by name."""
    found = {type(layer) for number in range(COUNT) for layer in layers_in(drawn(number).network.body)}
    found |= {type(layer) for kind in NETWORKS for layer in layers_in(network(kind).body)}
    assert found == {row.layer for row in COUNTERPARTS} - {StandardiseTargets} | {Residual, Sequential}
    losses = {type(drawn(number).network.loss) for number in range(COUNT)}
    assert losses == {MeanSquaredError, Huber, BinaryCrossEntropy, SoftmaxCrossEntropy}
    assert {drawn(number).network.dtype for number in range(COUNT)} == {"float32", "float64"}


@peers
@pytest.mark.parametrize("number", range(COUNT))
def test_a_module_computes_what_its_network_does(torch: Any, number: int) -> None:
    """Output, loss and every gradient, in training and outside it, and the statistics after a step."""
    pair = Pair(torch, drawn(number))
    wrong = {name: f"{d:.1e}" for name, d in pair.distances().items() if not d <= pair.made.tight}
    assert not wrong


@peers
def test_a_module_predicts_in_the_unit_of_standardised_targets(torch: Any) -> None:
    """And back: its loss, which is of standardised targets, is the only thing that PyTorch computes otherwise."""
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=(20, 3)), rng.normal([5e5, -2], [1e5, 0.1], (20, 2))
    network = Network(Linear(3, 2), StandardiseTargets(), loss=MeanSquaredError(), dtype="float64")
    train(network, x, t, epochs=2)
    module = to_torch(network)
    np.testing.assert_allclose(module(torch.tensor(x)).detach(), network.predict(x), rtol=1e-12)
    back = from_torch(module, loss=MeanSquaredError())
    assert repr(back.body.layers[-1]) == "StandardiseTargets()"
    np.testing.assert_array_equal(back.predict(x), network.predict(x))


@peers
@pytest.mark.parametrize("number", range(COUNT))
def test_there_and_back_changes_nothing(torch: Any, number: int) -> None:
    """Every number to the last bit, every option, and so every answer."""
    network = drawn(number).network
    module, loss = to_torch(network), to_torch_loss(network)
    back = from_torch(module, loss=loss, inputs=network.row)
    assert (back.dtype, back.row, back.arrays.keys()) == (network.dtype, network.row, network.arrays.keys())
    for name, array in network.arrays.items():
        own = back.arrays[name]
        assert own.tobytes() in (array.tobytes(), np.ascontiguousarray(array.T).tobytes()), name
        assert own.dtype == array.dtype
    assert [plain(layer) for layer in back.body.layers] == [plain(layer) for layer in network.body.layers]
    assert type(back.loss) is type(network.loss)
    expected = network.predict(drawn(number).x)
    assert distance(back.predict(drawn(number).x), expected) <= drawn(number).tight


def plain(layer: Layer) -> Any:
    """Return a layer as a table, without what a module does not know."""
    if isinstance(layer, Sequential):
        return type(layer).__name__, [plain(inner) for inner in layer.layers]
    return {name: value for name, value in to_table(layer).items() if name not in LOST}


@peers
def test_repeated_blocks_and_shortcuts_compute_the_same(torch: Any, tmp_path: Path) -> None:
    """There and back, and through a file; each block has its own weights."""
    layers = (
        Linear(5, 6), Repeat(Residual(Linear(6, 6), LayerNorm()), Tanh(), times=3),
        Residual(Linear(6, 4), Tanh(), shortcut=Linear(6, 4, bias=False)),
        Residual(Linear(4, 2), shortcut=Sequential(Linear(4, 2))),
    )  # fmt: skip
    network = Network(*layers, dtype="float64")
    module, x = to_torch(network), np.random.default_rng(0).normal(size=(7, 5))
    np.testing.assert_allclose(module(torch.tensor(x)).detach(), network.output(x), rtol=1e-12)
    np.testing.assert_array_equal(from_torch(module).output(x), network.output(x))
    save_torch_weights(network, tmp_path / "w")
    other = Network(*layers, dtype="float64", seed=3)
    load_torch_weights(other, tmp_path / "w")
    np.testing.assert_array_equal(other.output(x), network.output(x))


# Models as people have them.


def model(torch: Any) -> Any:
    nn = torch.nn
    torch.manual_seed(3)
    return nn.Sequential(
        nn.Flatten(), nn.Linear(6, 9), nn.BatchNorm1d(9), nn.ReLU(inplace=True), nn.Identity(),
        nn.Sequential(nn.Linear(9, 7, bias=False), nn.LayerNorm(7), nn.GELU(approximate="tanh")), nn.Dropout(0.3),
        nn.Linear(7, 4),
    )  # fmt: skip


@peers
@pytest.mark.parametrize(("dtype", "tight"), [("float32", 1e-6), ("float64", 1e-12)])
def test_a_model_becomes_a_network(torch: Any, dtype: str, tight: float) -> None:
    """Its answers, and a loss with its options; the model itself is left as it was."""
    made = model(torch).to(getattr(torch, dtype)).eval()
    before = {name: tensor.clone() for name, tensor in made.state_dict().items()}
    loss = torch.nn.CrossEntropyLoss(
        label_smoothing=0.1, weight=torch.tensor([1.0, 2.0, 0.5, 1.0]), ignore_index=2
    )
    network = from_torch(made, loss=loss)
    assert repr(network) == (
        "Network(Linear(6, 9, layout='out_in'), BatchNorm(), ReLU(), Sequential(Linear(7, 7, bias=False, "
        "layout='out_in'), LayerNorm(), GELU(form='tanh')), Dropout(rate=0.3), Linear(7, 4, layout='out_in'), "
        "loss=SoftmaxCrossEntropy(smoothing=0.1, ignored=2, class_weight=[1.0, 2.0, 0.5, 1.0]))"
    ).replace("Linear(7, 7", "Linear(9, 7")
    assert network.dtype == dtype
    x = np.random.default_rng(0).normal(size=(13, 6)).astype(dtype)
    assert distance(made(torch.tensor(x)).detach().numpy(), network.output(x)) <= tight
    train(network, x, np.arange(13) % 4, epochs=1, engine="reference")
    assert all(torch.equal(tensor, before[name]) for name, tensor in made.state_dict().items())
    assert not made.training


@peers
def test_a_module_that_is_used_twice_is_a_layer_used_twice(torch: Any) -> None:
    """Both ways: the weights stay one array, and its gradient is the sum of both uses."""
    shared, act = torch.nn.Linear(5, 5), torch.nn.Tanh()
    made = torch.nn.Sequential(shared, act, shared, act, torch.nn.Linear(5, 2)).double()
    network = from_torch(made, loss=torch.nn.MSELoss())
    assert sorted(network.parameters) == ["W1", "W3", "b1", "b3"]
    x, t = np.random.default_rng(0).normal(size=(2, 7, 5))
    torch.nn.MSELoss()(made(torch.tensor(x)), torch.tensor(t[:, :2])).backward()
    assert distance(shared.weight.grad.numpy(), network.gradients(x, t[:, :2])["W1"]) <= 1e-12
    back = to_torch(network)
    assert back[0] is back[2]
    assert set(back.state_dict()) == set(made.state_dict())


@peers
def test_a_model_may_be_one_module(torch: Any) -> None:
    """What it holds is still in it: a Residual is not a Sequential."""
    from handgrad.interop.modules import ResidualModule as Module

    x = np.random.default_rng(0).normal(size=(4, 3))
    made = Module(torch.nn.Linear(3, 3)).double()
    network = from_torch(made)
    assert repr(network) == "Network(Residual(Linear(3, 3, layout='out_in')))"
    assert distance(network.output(x), made(torch.tensor(x)).detach().numpy()) <= 1e-12
    assert repr(from_torch(torch.nn.Linear(3, 2))) == "Network(Linear(3, 2, layout='out_in'))"


@peers
def test_modules_are_ordinary_modules(torch: Any) -> None:
    """They print, are copied, pickled, moved to another dtype, and their numbers are copies."""
    network = Network(Standardise("all"), Linear(4, 6), Residual(Linear(6, 6), BatchNorm()), inputs=(3, 4))
    network.standardise(np.random.default_rng(0).normal(5, 2, (9, 3, 4)))
    module = to_torch(network)
    assert module.training
    assert "StandardiseModule(4, over='all')" in repr(module)
    x = torch.randn(5, 3, 4)
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert torch.equal(other.eval()(x), module.eval()(x))
    assert module.double()(x.double()).dtype == torch.float64
    before = network.output(x)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.zero_()
    np.testing.assert_array_equal(network.output(x), before)


@peers
def test_softplus_is_exact_far_out(torch: Any) -> None:
    """Where PyTorch's own would already return z itself."""
    network = Network(Softplus(), inputs=1, dtype="float64")
    z = np.linspace(-60, 60, 999)[:, None]
    assert np.abs(to_torch(network)(torch.tensor(z)).numpy() - network.output(z)).max() <= 1e-14


@peers
def test_frozen_parameters_are_noticed(torch: Any) -> None:
    made = model(torch)
    made[1].weight.requires_grad_(False)
    with pytest.warns(HandgradNotice, match=r"1\.weight need no gradient in the model"):
        from_torch(made)


@peers
def test_the_numbers_of_rows_in_stacks(torch: Any) -> None:
    """Softmax by its number, and BatchNorm of the last axis, where rows have axes of their own."""
    from handgrad.interop.modules import BatchNormOfRows

    made = (
        torch.nn.Sequential(torch.nn.Linear(4, 6), BatchNormOfRows(6), torch.nn.Softmax(dim=2))
        .double()
        .eval()
    )
    x = np.random.default_rng(0).normal(size=(5, 3, 4))
    found = from_torch(made, inputs=(3, 4)).output(x)
    assert distance(found, made(torch.tensor(x)).detach().numpy()) <= 1e-12


@peers
def test_losses_of_theirs_that_are_the_same(torch: Any) -> None:
    nn = torch.nn
    for module, shown in [
        (nn.MSELoss(), "MeanSquaredError()"),
        (nn.SmoothL1Loss(), "Huber()"),
        (nn.HuberLoss(delta=0.5), "Huber(delta=0.5)"),
        (nn.BCEWithLogitsLoss(pos_weight=torch.tensor(2.0)), "BinaryCrossEntropy(positive_weight=2.0)"),
        (nn.CrossEntropyLoss(), "SoftmaxCrossEntropy(ignored=-100)"),
    ]:
        assert repr(from_torch(nn.Linear(3, 2), loss=module).loss) == shown
    own = HalfSquaredError()
    assert from_torch(nn.Linear(3, 2), loss=own).loss is own


def test_without_torch_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    for call in (to_torch, to_torch_loss, from_torch):
        with pytest.raises(
            MissingPackageError, match=r"needs the package torch\n  fix    pip install 'handgrad\[torch"
        ):
            call(Network(Embedding(3, 4), Dropout(), LayerNorm(), inputs=2))


def test_importing_interop_imports_none_of_them() -> None:
    code = "import sys, handgrad.interop; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(done.stdout.split()) & {"torch", "onnx", "onnxruntime", "jax", "pandas", "safetensors"}

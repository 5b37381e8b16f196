"""Tied weights, as GPT's, to PyTorch and back: one tensor there, one array here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from handgrad import DataError, Embedding, Linear, Network, SoftmaxCrossEntropy, Tanh
from handgrad.files import Tensors, tensor_bytes
from handgrad.interop import (
    from_torch,
    load_gpt2,
    load_torch_weights,
    save_gpt2,
    save_torch_weights,
    to_torch,
    to_torch_loss,
)
from handgrad.interop.torch_state import state_tensors
from handgrad.layers import gpt_layers

peers = pytest.mark.peers


def gpt(folder: Path, kind: str) -> tuple[Network, int]:
    """Return a GPT with random numbers in every array, in float64, and how many entries its table has."""
    if kind == "characters":  # the sizes of `handgrad train alice`
        entries, sizes, context = 65, {"features": 128, "heads": 4, "blocks": 4, "dropout": 0.2}, 128
    else:
        entries, sizes, context = 23, {"features": 128, "heads": 2, "blocks": 3}, 11
    network = Network(
        *gpt_layers(entries=entries, **sizes), loss=SoftmaxCrossEntropy(), inputs=(context,), dtype="float64"
    )
    rng = np.random.default_rng(3)
    for array in network.parameters.values():  # biases begin at 0 and gains at 1, which would hide a mistake
        array += 0.1 * rng.normal(size=array.shape)
    if kind == "published":
        save_gpt2(network, folder / "model.safetensors")
        network = load_gpt2(folder / "model.safetensors", context=7)
    return network, entries


@peers
@pytest.mark.parametrize("kind", ["characters", "published"])
def test_a_gpt_computes_the_same_in_pytorch_and_back(torch: Any, kind: str, tmp_path: Path) -> None:
    """Logits, loss and every gradient; the table's is the sum of both uses."""
    network, entries = gpt(tmp_path, kind)
    rng = np.random.default_rng(5)
    x, t = rng.integers(entries, size=(2, 3, *network.row))
    module = to_torch(network).eval()
    logits = module(torch.tensor(x))
    np.testing.assert_allclose(logits.detach(), network.output(x), rtol=0, atol=1e-9)
    to_torch_loss(network)(logits.movedim(-1, 1), torch.tensor(t)).backward()

    without_dropout = from_torch(to_torch(network).apply(undropped), loss=network.loss, inputs=network.row)
    gradients = without_dropout.gradients(x, t)
    found = dict(module.named_parameters(remove_duplicate=False))
    tensors = state_tensors(without_dropout, gradients)
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        np.testing.assert_allclose(found[name].grad, tensor.whole(), rtol=0, atol=1e-9, err_msg=name)

    back = from_torch(module, loss=network.loss, inputs=network.row)
    assert back.body.layers[-1].tied == "E1"  # type: ignore[attr-defined] # a Linear
    assert len(back.parameters) == len(network.parameters)
    np.testing.assert_array_equal(back.arrays["E1"], network.arrays["E1"])
    np.testing.assert_allclose(back.output(x), network.output(x), rtol=0, atol=1e-12)


def undropped(module: Any) -> None:
    """Let a module drop nothing."""
    if hasattr(module, "p"):
        module.p = 0.0


@peers
def test_a_tied_layer_stays_tied_when_pytorch_trains(torch: Any) -> None:
    """Both of its layouts; a step changes the one tensor."""
    first, second = Linear(4, 6), Linear(4, 6, tied="W1")
    network = Network(first, Tanh(), Linear(6, 4), second, dtype="float64")
    module = to_torch(network)
    assert module[3].weight is module[0].weight
    assert module[3].bias is not module[0].bias
    x = np.random.default_rng(0).normal(size=(5, 4))
    module(torch.tensor(x)).square().sum().backward()
    torch.optim.SGD(module.parameters(), lr=0.1).step()
    back = from_torch(module)
    assert repr(back.body.layers[3]) == "Linear(4, 6, layout='out_in', tied='W1')"
    np.testing.assert_allclose(back.output(x), module(torch.tensor(x)).detach(), rtol=1e-12)
    assert not np.allclose(back.output(x), network.output(x))


def test_files_have_tied_weights_under_both_names(tmp_path: Path) -> None:
    """And only where both are the same they are read."""
    layers = Embedding(7, 4), Tanh(), Linear(4, 7, bias=False, layout="out_in", tied="E1")
    network, other = (Network(*layers, inputs=3, seed=seed) for seed in (1, 2))
    path = tmp_path / "tied.safetensors"
    save_torch_weights(network, path)
    with Tensors.open_anywhere(path, DataError) as tensors:
        arrays: dict[str, NDArray[Any]] = {name: tensors.read(name) for name in tensors.shapes()}
    assert arrays.keys() == {"0.weight", "2.weight"}
    load_torch_weights(other, path)
    np.testing.assert_array_equal(other.arrays["E1"], network.arrays["E1"])
    path.write_bytes(tensor_bytes(arrays | {"2.weight": arrays["2.weight"] + 1}, format="pt"))
    with pytest.raises(DataError, match=r"0\.weight and 2\.weight are one array in the network, and differ"):
        load_torch_weights(other, path)

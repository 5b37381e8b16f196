"""Weights in safetensors files with PyTorch's names: there and back, and files that are not what they should be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from handgrad import (
    BatchNorm,
    ConversionError,
    DataError,
    Embedding,
    HandgradError,
    Layer,
    LayerNorm,
    Linear,
    Network,
    ReLU,
    Residual,
    Standardise,
)
from handgrad.interop import load_torch_weights, save_torch_weights, to_torch
from handgrad.layers import Graph, Parameter, Value
from handgrad.rules import linear_without_bias

from .networks import COUNT, drawn

Array = NDArray[Any]
State = dict[str, Array]


def network(seed: int = 0, dtype: str = "float32") -> Network:
    """Return a network whose every array holds numbers of its own, however it began."""
    made = Network(
        Standardise(), Linear(5, 7), BatchNorm(), ReLU(), Residual(Linear(7, 7, layout="out_in"), LayerNorm()),
        Linear(7, 3, bias=False), seed=seed, dtype=dtype,
    )  # fmt: skip
    rng = np.random.default_rng(seed)
    for array in made.arrays.values():
        array[...] = rng.uniform(0.5, 2, array.shape)
    return made


NAMES = {
    "0.mean": (5,), "0.deviation": (5,), "1.weight": (7, 5), "1.bias": (7,), "2.weight": (7,), "2.bias": (7,),
    "2.running_mean": (7,), "2.running_var": (7,), "2.num_batches_tracked": (), "4.0.weight": (7, 7), "4.0.bias": (7,),
    "4.1.weight": (7,), "4.1.bias": (7,), "5.weight": (3, 7),
}  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Write a sound file."""
    save_torch_weights(network(), tmp_path / "w.safetensors")
    return tmp_path / "w.safetensors"


def test_names_shapes_and_numbers_are_those_of_a_state_dict(path: Path) -> None:
    """Matrices lie as (outputs, inputs), whatever their layout in handgrad."""
    state, arrays = load_file(path), network().arrays
    assert {name: array.shape for name, array in state.items()} == NAMES
    np.testing.assert_array_equal(state["1.weight"], arrays["W1"].T)
    np.testing.assert_array_equal(state["4.0.weight"], arrays["W2"])
    np.testing.assert_array_equal(state["2.running_var"], arrays["running_var2"])
    np.testing.assert_array_equal(state["2.bias"], arrays["beta2"])
    assert state["2.num_batches_tracked"].dtype == np.int64


@pytest.mark.parametrize("number", range(0, COUNT, 3))
def test_there_and_back_to_the_last_bit(tmp_path: Path, number: int) -> None:
    trained = drawn(number).network
    save_torch_weights(trained, tmp_path / "w.safetensors")
    other = Network(*trained.body.layers, loss=trained.loss, inputs=trained.row, dtype=trained.dtype, seed=99)
    load_torch_weights(other, tmp_path / "w.safetensors")
    for name, array in trained.arrays.items():
        assert other.arrays[name].tobytes() == array.tobytes(), name


@pytest.mark.parametrize(
    "view",
    [
        lambda W: np.asfortranarray(W),
        lambda W: np.repeat(W, 2, axis=1)[:, ::2],
        lambda W: W[::-1].copy()[::-1],
    ],
    ids=["by columns", "every second column", "backwards"],
)
def test_weights_are_saved_as_they_read_not_as_they_lie(
    tmp_path: Path, view: Callable[[Array], Array]
) -> None:
    made = network()
    expected = {name: array.copy() for name, array in made.parameters.items()}
    for name, array in expected.items():
        made.parameters._arrays[name] = view(array) if array.ndim == 2 else array[::-1].copy()[::-1]
    save_torch_weights(made, tmp_path / "w.safetensors")
    load_torch_weights(other := network(5), tmp_path / "w.safetensors")
    for name, array in expected.items():
        np.testing.assert_array_equal(other.parameters[name], array)


def test_a_layer_used_twice_is_saved_under_both_names(tmp_path: Path) -> None:
    """And read when both say the same."""
    layer = Linear(4, 4)
    made = Network(layer, ReLU(), layer)
    save_torch_weights(made, tmp_path / "w")
    state = load_file(tmp_path / "w")
    assert set(state) == {"0.weight", "0.bias", "2.weight", "2.bias"}
    load_torch_weights(made, tmp_path / "w")
    state["2.bias"][1] += 1
    save_file(state, tmp_path / "w")
    with pytest.raises(
        DataError, match=r"0\.bias and 2\.bias are one array in the network, and differ in the file$"
    ):
        load_torch_weights(made, tmp_path / "w")


def test_layers_may_have_other_names_in_the_file(tmp_path: Path) -> None:
    """The error says how to give them."""
    made = Network(Linear(5, 4), ReLU(), Linear(4, 3))
    state = {
        "fc.weight": np.ones((4, 5)),
        "fc.bias": np.ones(4),
        "out.weight": np.ones((3, 4)),
        "out.bias": np.ones(3),
    }
    save_file({name: array.astype(np.float32) for name, array in state.items()}, tmp_path / "w")
    with pytest.raises(DataError, match=r"there is no 0\.weight") as caught:
        load_torch_weights(made, tmp_path / "w")
    assert caught.value.fix == "if they are the same layers, give layers=['fc', 'out']"
    load_torch_weights(made, tmp_path / "w", layers=["fc", "out"])
    assert made.parameters["W2"].sum() == 12
    for wrong in (["fc"], ["fc", "fc"]):
        with pytest.raises(ConversionError, match="2 layers have arrays"):
            load_torch_weights(made, tmp_path / "w", layers=wrong)


def without(name: str) -> Callable[[State], State]:
    return lambda state: {other: array for other, array in state.items() if other != name}


def changed(name: str, array: Array) -> Callable[[State], State]:
    return lambda state: {**state, name: array}


WRONG: dict[str, tuple[Callable[[State], State], str]] = {
    "missing": (without("4.1.bias"), "there is no 4.1.bias"),
    "extra": (changed("6.weight", np.ones(3, np.float32)), "6.weight is not the network's"),
    "transposed": (
        changed("1.weight", np.ones((5, 7), np.float32)),
        "1.weight is float32(5, 7) in the file, and the network needs float32(7, 5)",
    ),
    "a size less": (
        changed("5.weight", np.ones((3, 6), np.float32)),
        "5.weight is float32(3, 6) in the file, and the network needs float32(3, 7)",
    ),
    "another type": (
        changed("1.bias", np.ones(7)),
        "1.bias is float64(7,) in the file, and the network needs float32(7,)",
    ),
    "half": (
        changed("1.bias", np.ones(7, np.float16)),
        "1.bias is float16(7,) in the file, and the network needs float32(7,)",
    ),
    "whole numbers": (
        changed("2.running_var", np.ones(7, np.int32)),
        "2.running_var is I32(7,) in the file, and the network needs float32(7,)",
    ),
    "nothing": (lambda state: {}, "there is no 0.mean"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_file_of_another_network_changes_nothing(path: Path, kind: str) -> None:
    """The error names the file, the array, and both shapes and types."""
    change, problem = WRONG[kind]
    save_file(change(load_file(path)), path)
    made = network(3)
    with pytest.raises(DataError) as caught:
        load_torch_weights(made, path)
    assert caught.value.problem == f"{path}: {problem}"
    for name, array in network(3).arrays.items():
        assert made.arrays[name].tobytes() == array.tobytes()


def test_counters_may_be_left_out(path: Path) -> None:
    """Old files have none, and handgrad needs none."""
    save_file(without("2.num_batches_tracked")(load_file(path)), path)
    load_torch_weights(made := network(3), path)
    assert made.predict(np.ones((2, 5))).tobytes() == network().predict(np.ones((2, 5))).tobytes()


@dataclass(frozen=True, eq=False, repr=False)
class Own(Layer):
    """A layer of one's own with weights."""

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        return graph.apply(linear_without_bias, x, Parameter((4, 2), "he_normal", 4, 2), layer=self)


def test_a_layer_without_a_counterpart_is_named(tmp_path: Path) -> None:
    with pytest.raises(HandgradError, match=r"^layer 2, Own\(\): PyTorch has no counterpart of Own"):
        save_torch_weights(Network(Linear(3, 4), Own()), tmp_path / "w")
    assert not (tmp_path / "w").exists()


@pytest.mark.peers
@pytest.mark.parametrize("number", range(0, COUNT, 5))
def test_pytorch_reads_and_writes_the_same_files(torch: Any, tmp_path: Path, number: int) -> None:
    """With safetensors' own functions for PyTorch, strictly."""
    from safetensors.torch import load_file as load_tensors
    from safetensors.torch import save_file as save_tensors

    trained = drawn(number).network
    save_torch_weights(trained, tmp_path / "ours")
    module = to_torch(trained)
    for parameter in module.parameters():
        torch.nn.init.zeros_(parameter)
    module.load_state_dict(load_tensors(tmp_path / "ours"))
    save_tensors(module.state_dict(), tmp_path / "theirs")
    other = Network(*trained.body.layers, loss=trained.loss, inputs=trained.row, dtype=trained.dtype, seed=99)
    load_torch_weights(other, tmp_path / "theirs")
    for name, array in trained.arrays.items():
        assert other.arrays[name].tobytes() == array.tobytes(), name


def test_an_embedding_has_its_name(tmp_path: Path) -> None:
    made = Network(Embedding(6, 3), inputs=4)
    save_torch_weights(made, tmp_path / "w")
    np.testing.assert_array_equal(load_file(tmp_path / "w")["0.weight"], made.parameters["E1"])

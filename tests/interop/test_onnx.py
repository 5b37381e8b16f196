"""Networks to ONNX: checked, run by onnxruntime, and equal; rules of one's own too, or the line that is not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from handgrad import (
    GRU,
    LSTM,
    RNN,
    AvgPool2d,
    BatchNorm,
    BinaryCrossEntropy,
    Concat,
    Conv1d,
    Conv2d,
    ConversionError,
    ConvTranspose2d,
    Dropout,
    Embedding,
    Flatten,
    GlobalAvgPool2d,
    GroupNorm,
    Last,
    Layer,
    Linear,
    MaxPool2d,
    MissingPackageError,
    Network,
    Poisson,
    Positions,
    ReLU,
    Reshape,
    Residual,
    RunError,
    SelfAttention,
    Sequential,
    Standardise,
    Tanh,
)
from handgrad.interop import to_onnx
from handgrad.layers import Graph, Value, gpt_layers
from handgrad.rules import rule

from .comparing import distance
from .networks import COUNT, drawn

Array = NDArray[Any]
peers = pytest.mark.peers

BOUND = 1e-5
"""How far onnxruntime may be from the network, relative to the largest number."""


def run(model: Path | bytes, x: Array) -> Array:
    """Return what onnxruntime computes."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(model if isinstance(model, bytes) else str(model), options)
    (given,) = session.get_inputs()
    kind = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(int64)": np.int64}[given.type]
    assert given.name == "x"
    (found,) = session.run(None, {"x": x.astype(kind)})
    return found


def apart(network: Network, model: Path | bytes, x: Array, *, prediction: bool = False) -> float:
    """Return how far a file is from its network, for batches of one row, of some, and of all."""
    expected = network.predict(x) if prediction else network.output(x)
    found = np.concatenate([run(model, x[:1]), run(model, x[1:8]), run(model, x[8:])])
    assert found.dtype == expected.dtype
    return distance(found, expected)


@peers
@pytest.mark.parametrize("prediction", [False, True])
@pytest.mark.parametrize("number", range(COUNT))
def test_onnxruntime_gives_the_network_s_answers(tmp_path: Path, number: int, prediction: bool) -> None:
    made = drawn(number)
    to_onnx(made.network, tmp_path / "net.onnx", prediction=prediction)
    assert apart(made.network, tmp_path / "net.onnx", made.x, prediction=prediction) <= BOUND


@peers
def test_attention_and_groups_are_exported(tmp_path: Path) -> None:
    """Heads, masks, positions turned into angles, sums over the places of an image."""
    rng = np.random.default_rng(0)
    norms = [GroupNorm(3), GlobalAvgPool2d()]
    for layers, inputs in (
        ([Positions(), SelfAttention(12, 3, causal=True, rotary=True), SelfAttention(12, 2)], (5, 12)),
        ([SelfAttention(12, 6, key_heads=2), Concat(Sequential(), Linear(12, 7), Linear(12, 5))], (5, 12)),
        (
            [Embedding(5, 12), SelfAttention(12, 2, padding=0), SelfAttention(12, 2, causal=True, padding=3)],
            (7,),
        ),
        ([Reshape((5, 2, 12)), *norms], (10, 12)),
    ):
        network = Network(*layers, inputs=inputs)
        to_onnx(network, tmp_path / "net.onnx")
        of_tokens = isinstance(layers[0], Embedding)
        x = rng.integers(5, size=(20, *inputs)) if of_tokens else rng.normal(size=(20, *inputs))
        assert apart(network, tmp_path / "net.onnx", x) <= BOUND


IMAGES: dict[str, tuple[tuple[Layer, ...], tuple[int, ...]]] = {
    "lenet": (
        (Conv2d(1, 6, 5, padding=2), ReLU(), MaxPool2d(2), Conv2d(6, 7, (3, 2)), AvgPool2d(2), Flatten(), Linear(42, 3)),
        (14, 15, 1),
    ),
    "resnet": (
        (
            Conv2d(3, 4, 3, padding=1, dilation=2), BatchNorm(), MaxPool2d(3, stride=2, padding=1),
            Residual(Conv2d(4, 8, 3, stride=2, padding=1), shortcut=Conv2d(4, 8, 1, stride=2)), GlobalAvgPool2d(),
        ),
        (9, 11, 3),
    ),
    "transposed": (
        (ConvTranspose2d(2, 5, (3, 2), stride=2, padding=1, dilation=2), Tanh(), ConvTranspose2d(5, 3, 3, stride=4)),
        (4, 5, 2),
    ),
    "sequence": ((Conv1d(2, 5, 3, stride=2, padding=1), Tanh()), (8, 2)),
    "groups": ((Conv2d(4, 6, 3, groups=2), Conv2d(6, 6, 2, groups=6, padding=1), Conv1d(6, 9, 2, groups=3)), (6, 5, 4)),
}  # fmt: skip


@peers
@pytest.mark.parametrize("name", IMAGES)
def test_windows_of_images_are_exported(tmp_path: Path, name: str) -> None:
    """Padding, strides and dilation; a pool's padding is no 0."""
    layers, row = IMAGES[name]
    network = Network(*layers, inputs=row)
    to_onnx(network, tmp_path / "m.onnx")
    x = np.random.default_rng(0).normal(-2, 1, (12, *row))
    assert apart(network, tmp_path / "m.onnx", x) <= BOUND


@peers
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", [RNN, LSTM, GRU])
def test_loops_over_time_are_one_operator(tmp_path: Path, kind: type[RNN | LSTM | GRU], dtype: str) -> None:
    """With the gates in ONNX's order, and biases of both kinds."""
    import onnx

    network = Network(Standardise(), kind(3, 5), kind(5, 4), Last(), Linear(4, 2), inputs=(7, 3), dtype=dtype)
    rng = np.random.default_rng(0)
    for array in network.parameters.values():
        array[...] = rng.normal(0, 0.7, array.shape)
    to_onnx(network, tmp_path / "m.onnx")
    assert apart(network, tmp_path / "m.onnx", rng.normal(size=(12, 7, 3))) <= BOUND
    nodes = [node.op_type for node in onnx.load(tmp_path / "m.onnx").graph.node]
    assert nodes.count(kind.__name__) == 2


@rule("N T D -> N T D")
def running_sum(x):  # type: ignore[no-untyped-def] # as rules are written
    """Add up over time."""
    h = np.zeros((x.shape[0], x.shape[1] + 1, x.shape[2]), x.dtype)
    for t in range(x.shape[1]):
        h[:, t + 1] = h[:, t] + x[:, t]
    y = h[:, 1:]
    return y  # noqa: RET504 - as rules are written


@running_sum.backward
def running_sum_backward(dy, x):  # type: ignore[no-untyped-def] # as rules are written
    dh = np.zeros_like(dy)
    dx = dh + dy
    return dx  # noqa: RET504 - as rules are written


@dataclass(frozen=True, eq=False, repr=False)
class RunningSum(Layer):
    """A layer of one's own with a loop over time."""

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        return graph.apply(running_sum, x, layer=self)


@peers
def test_a_loop_of_ones_own_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        ConversionError, match=r"ONNX has no counterpart of a loop over time but those of RNN, GRU and"
    ):
        to_onnx(Network(RunningSum(), inputs=(4, 3)), tmp_path / "m.onnx")


@peers
def test_a_gpt_is_exported(tmp_path: Path) -> None:
    """With its tied table, once."""
    network = Network(*gpt_layers(23, 12, 3, 2), inputs=(7,))
    to_onnx(network, tmp_path / "m.onnx")
    x = np.random.default_rng(0).integers(0, 23, (12, 7))
    assert apart(network, tmp_path / "m.onnx", x) <= BOUND


@peers
def test_what_the_file_says(tmp_path: Path) -> None:
    """Versions that runtimes know, weights by their names, a batch of any size, and each node its line."""
    import onnx

    network = Network(Standardise(), Linear(5, 7), ReLU(), Linear(7, 3), inputs=(4, 5))
    to_onnx(network, tmp_path / "deep" / "net.onnx")
    model = onnx.load(tmp_path / "deep" / "net.onnx")
    assert (model.ir_version, model.opset_import[0].version, model.producer_name) == (10, 21, "handgrad")
    assert model.doc_string == str(network.evaluation_program())
    shape = [d.dim_param or d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    assert shape == ["n", 4, 5]
    assert model.graph.output[0].name == "output"
    held = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    for name, array in network.arrays.items():
        np.testing.assert_array_equal(held[name], array)
    nodes = {node.output[0]: node.doc_string for node in model.graph.node}
    assert nodes["a1"] == "a1 = np.maximum(z1, 0)"
    assert nodes["z1"] == "z1 = h1 @ W1 + b1"


@peers
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_standardisation_is_left_out_on_request(tmp_path: Path, dtype: str) -> None:
    """Then the file takes rows that are standardised already; arrays it does not need are not in it."""
    import onnx

    network = Network(Standardise(), Linear(5, 7), Tanh(), Linear(7, 3), dtype=dtype)
    x = np.random.default_rng(0).normal(30, 4, (20, 5))
    network.standardise(x)
    to_onnx(network, tmp_path / "net.onnx", standardise=False)
    arrays = network.states
    rows = (x - arrays["mean1"]) / arrays["deviation1"]
    assert distance(run(tmp_path / "net.onnx", rows), network.output(x)) <= BOUND
    assert distance(run(tmp_path / "net.onnx", x), network.output(x)) > 0.1
    names = {tensor.name for tensor in onnx.load(tmp_path / "net.onnx").graph.initializer}
    assert {"W1", "b1", "W2", "b2"} == {name for name in names if name[0].isalpha() and " " not in name}
    plain = Network(Linear(5, 3))
    to_onnx(plain, tmp_path / "plain.onnx", standardise=False)
    assert apart(plain, tmp_path / "plain.onnx", x.astype("float32")) <= BOUND


@peers
def test_standardisation_that_is_not_the_only_reader_cannot_be_left_out(tmp_path: Path) -> None:
    network = Network(Residual(Standardise(), Linear(5, 5)))
    with pytest.raises(
        ConversionError, match=r"^line `.*` \(layer 1, Residual\) reads the rows as they come"
    ):
        to_onnx(network, tmp_path / "net.onnx", standardise=False)


@peers
def test_a_network_that_does_nothing_outside_training(tmp_path: Path) -> None:
    """Its output is its input."""
    network = Network(Dropout(), inputs=3)
    to_onnx(network, tmp_path / "net.onnx")
    assert apart(network, tmp_path / "net.onnx", np.ones((9, 3), np.float32)) == 0


@peers
def test_predictions_of_other_losses(tmp_path: Path) -> None:
    """Probabilities of a yes, and expected counts."""
    x = np.random.default_rng(0).normal(size=(20, 5))
    for loss in (BinaryCrossEntropy(), Poisson()):
        network = Network(Linear(5, 3), loss=loss)
        to_onnx(network, tmp_path / "net.onnx", prediction=True)
        assert apart(network, tmp_path / "net.onnx", x, prediction=True) <= BOUND


@peers
def test_precision_where_a_plain_formula_would_cancel(tmp_path: Path) -> None:
    """exp(z) - 1 and log(1 + e) near 0, relative to each value and not to the largest."""
    from handgrad import ELU, Softplus

    z = np.concatenate([-np.logspace(-30, 2, 400), np.logspace(-30, 2, 400)])[:, None]
    for layer in (ELU(), Softplus()):
        for dtype, tight in (("float32", 1e-6), ("float64", 1e-14)):
            network = Network(layer, inputs=1, dtype=dtype)
            to_onnx(network, tmp_path / "net.onnx")
            expected = network.output(z).astype(float)
            found = run(tmp_path / "net.onnx", z)
            seen = np.abs(expected) > 1e-30  # smaller ones are subnormal in float32
            assert (np.abs(found - expected)[seen] <= tight * np.abs(expected)[seen]).all(), (layer, dtype)


# The comparison sees a file that is wrong.


SWAPPED = {
    "Add": "Sub", "Sub": "Add", "Mul": "Div", "Div": "Mul", "Max": "Min", "Min": "Max", "Tanh": "Atan", "Exp": "Abs",
    "Sqrt": "Abs", "ReduceSum": "ReduceMax", "Greater": "Less", "GreaterOrEqual": "Less", "Log": "Exp", "Neg": "Abs",
}  # fmt: skip
"""For every operation another that could stand in its place."""


def mutated(model: Any, rng: np.random.Generator) -> Any:
    """Put another operation in the place of one."""
    nodes = [node for node in model.graph.node if node.op_type in SWAPPED]
    node = nodes[rng.integers(len(nodes))]
    node.op_type = SWAPPED[node.op_type]
    return model


def perturbed(model: Any, rng: np.random.Generator) -> Any:
    """Change one number of one array of the network a little."""
    import onnx

    arrays = [tensor for tensor in model.graph.initializer if " " not in tensor.name]
    tensor = arrays[rng.integers(len(arrays))]
    numbers = onnx.numpy_helper.to_array(tensor).copy()
    numbers[:1] = numbers[:1] * 1.02 + 0.002
    tensor.CopyFrom(onnx.numpy_helper.from_array(numbers, tensor.name))
    return model


@peers
@pytest.mark.parametrize("number", range(0, COUNT, 2))
@pytest.mark.parametrize("change", [mutated, perturbed])
def test_a_wrong_file_is_seen(tmp_path: Path, number: int, change: Callable[[Any, Any], Any]) -> None:
    """Another operation, or another number, is far outside the bound."""
    import onnx

    made = drawn(number)
    to_onnx(made.network, tmp_path / "net.onnx")
    model = change(onnx.load(tmp_path / "net.onnx"), np.random.default_rng(number))
    with np.errstate(all="ignore"):
        assert not apart(made.network, model.SerializeToString(), made.x) <= BOUND


@peers
def test_weights_beyond_what_a_file_holds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("handgrad.interop.onnx.MOST_BYTES", 31)
    with pytest.raises(ConversionError, match="over 2 GB"):
        to_onnx(Network(Linear(3, 2)), tmp_path / "net.onnx")


def test_without_onnx_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(
        MissingPackageError, match=r"needs the package onnx\n  fix    pip install 'handgrad\[onnx\]'"
    ):
        to_onnx(Network(Linear(3, 2)), tmp_path / "net.onnx")


@peers
def test_a_file_that_the_checker_refuses_is_not_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import onnx

    def refuse(model: Any, full_check: bool) -> None:
        raise onnx.checker.ValidationError(f"{len(model.graph.node)} nodes")

    monkeypatch.setattr(onnx.checker, "check_model", refuse)
    with pytest.raises(onnx.checker.ValidationError, match="3 nodes"):
        to_onnx(Network(Linear(3, 2)), tmp_path / "net.onnx")
    assert not list(tmp_path.iterdir())


@peers
def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot be written"):
        to_onnx(Network(Linear(3, 2)), tmp_path / "file" / "net.onnx")


@peers
def test_indices_and_stacks_with_batch_norm(tmp_path: Path) -> None:
    """The input is whole numbers; the rows of a stack are normalised by their last axis."""
    network = Network(Embedding(9, 4), BatchNorm(), Linear(4, 2), inputs=(3,), dtype="float64")
    network.states["running_mean1"][...] = [1.0, 2.0, 3.0, 4.0]
    to_onnx(network, tmp_path / "net.onnx")
    assert apart(network, tmp_path / "net.onnx", np.random.default_rng(0).integers(0, 9, (12, 3))) <= BOUND


WITHOUT_LLVMLITE = """
import sys
sys.modules["llvmlite"] = None  # its import fails
from handgrad import Linear, Network, SoftmaxCrossEntropy, Tanh
from handgrad.interop import to_onnx
network = Network(Linear(3, 2), Tanh(), Linear(2, 2), loss=SoftmaxCrossEntropy())
to_onnx(network, sys.argv[1], prediction=True)
"""


@peers
def test_export_needs_no_native_code(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", WITHOUT_LLVMLITE, str(tmp_path / "model.onnx")], check=True)
    assert run(tmp_path / "model.onnx", np.ones((4, 3))).shape == (4, 2)

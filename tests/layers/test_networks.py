"""Whole networks, with everything inside, against PyTorch's autograd."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from handgrad import (
    ELU,
    GELU,
    BatchNorm,
    BinaryCrossEntropy,
    Concat,
    ConfigurationError,
    Dropout,
    Embedding,
    HalfSquaredError,
    Huber,
    LayerNorm,
    LeakyReLU,
    Linear,
    MeanSquaredError,
    Network,
    ReLU,
    Residual,
    Sequential,
    ShapeError,
    Sigmoid,
    SiLU,
    Softmax,
    SoftmaxCrossEntropy,
    Softplus,
    Standardise,
    Tanh,
)

from ..rules.checks import relative_error
from .networks import evaluate, run, step

Array = NDArray[Any]
RNG = np.random.default_rng(0)


@dataclass(frozen=True)
class Peer:
    """A network of ours, its batch, and the same loss written with PyTorch from our arrays by name."""

    network: Network
    given: dict[str, Array]
    loss: Callable[..., Any]


def batch_norm(F: Any, x: Any, p: dict[str, Any], number: int, epsilon: float = 1e-5) -> Any:
    flat, zeros = x.reshape(-1, x.shape[-1]), x.new_zeros(x.shape[-1])
    kept = p[f"gamma{number}"], p[f"beta{number}"]
    return F.batch_norm(flat, zeros, zeros + 1, *kept, training=True, eps=epsilon).reshape(x.shape)


def layer_norm(F: Any, x: Any, p: dict[str, Any], number: int) -> Any:
    return F.layer_norm(x, x.shape[-1:], p[f"gamma{number}"], p[f"beta{number}"])


def classifier(F: Any, p: dict[str, Any], x: Any, t: Any, w: Any) -> Any:
    z1 = x @ p["W1"] + p["b1"]
    h1 = F.relu(batch_norm(F, z1, p, 1)) * p["kept1"] / 0.7
    r2 = h1 + F.tanh(h1 @ p["W2"] + p["b2"])
    z3 = layer_norm(F, r2, p, 2) @ p["W3"] + p["b3"]
    losses = F.cross_entropy(z3, t, reduction="none", label_smoothing=0.1, ignore_index=2)
    return (losses * w).sum() / (w * (t != 2)).sum()


def text_reader(F: Any, p: dict[str, Any], x: Any, t: Any) -> Any:
    h1 = p["E1"][x]
    a1 = F.gelu(layer_norm(F, h1, p, 1) @ p["W1"].T + p["b1"], approximate="tanh")
    r2 = h1 + (a1 @ p["W2"] + p["b2"]) * p["kept2"] / 0.5
    z3 = batch_norm(F, r2, p, 2, epsilon=0.01) @ p["W3"].T
    return F.cross_entropy(z3.movedim(-1, 1), t, weight=p["class_weight"])


def every_activation(F: Any, p: dict[str, Any], x: Any, t: Any) -> Any:
    a = F.elu((x - p["mean1"]) / p["deviation1"] @ p["W1"], 0.7)
    a = F.leaky_relu(a @ p["W2"] + p["b2"], 0.2)
    a = F.silu(a @ p["W3"] + p["b3"])
    a = F.softplus(a @ p["W4"] + p["b4"])
    a = F.gelu(a @ p["W5"] + p["b5"])
    a = F.sigmoid(a @ p["W6"] + p["b6"])
    return F.huber_loss(F.softmax(a @ p["W7"] + p["b7"], -1), t, delta=0.4)


def recurrent(F: Any, p: dict[str, Any], x: Any, t: Any) -> Any:
    h = F.tanh(x @ p["W1"] + p["b1"])
    for _ in range(3):
        h = F.tanh(h @ p["W2"] + p["b2"])
    return F.binary_cross_entropy_with_logits(h @ p["W5"] + p["b5"], t)


def autoencoder(F: Any, p: dict[str, Any], x: Any, t: Any) -> Any:
    h = F.relu(x @ p["W1"] + p["b1"])
    return 0.5 * ((h @ p["W2"] + p["b2"] - t) ** 2).sum()


SHARED = Linear(6, 6)

PEERS = {
    "classifier": Peer(
        Network(
            Linear(5, 7), BatchNorm(), ReLU(), Dropout(0.3), Residual(Linear(7, 7), Tanh()), LayerNorm(),
            Linear(7, 4), loss=SoftmaxCrossEntropy(smoothing=0.1, ignored=2), dtype="float64",
        ),
        {
            "x": RNG.normal(size=(13, 5)),
            "t": RNG.integers(0, 4, 13),
            "w": RNG.uniform(0, 2, 13),
        },
        classifier,
    ),
    "rank-3-text-reader": Peer(
        Network(
            Embedding(9, 6),
            Residual(
                LayerNorm(), Linear(6, 11, layout="out_in"), GELU("tanh"), Linear(11, 6), Dropout(0.5)
            ),
            BatchNorm(epsilon=0.01), Linear(6, 4, bias=False, layout="out_in"),
            inputs=3, loss=SoftmaxCrossEntropy(class_weight=[1, 2, 0.5, 3]), dtype="float64",
        ),
        {"x": RNG.integers(0, 9, (8, 3)), "t": RNG.integers(0, 4, (8, 3))},
        text_reader,
    ),
    "every-activation": Peer(
        Network(
            Standardise(), Linear(5, 7, bias=False), ELU(0.7), Linear(7, 6), LeakyReLU(0.2), Linear(6, 8),
            SiLU(), Sequential(Linear(8, 4), Softplus(), Linear(4, 9), GELU()), Linear(9, 3), Sigmoid(),
            Linear(3, 2), Softmax(), inputs=5, loss=Huber(0.4), dtype="float64",
        ),
        {"x": RNG.normal(size=(6, 5)), "t": RNG.uniform(0, 1, (6, 2))},
        every_activation,
    ),
    "shared-three-times": Peer(
        Network(
            Linear(4, 6), Tanh(), SHARED, Tanh(), SHARED, Tanh(), SHARED, Tanh(), Linear(6, 2),
            inputs=(3, 4), loss=BinaryCrossEntropy(), dtype="float64",
        ),
        {"x": RNG.normal(size=(7, 3, 4)), "t": RNG.uniform(0, 1, (7, 3, 2))},
        recurrent,
    ),
    "autoencoder": Peer(
        Network(Linear(6, 3), ReLU(), Linear(3, 6), loss=HalfSquaredError(), dtype="float64"),
        {"x": RNG.normal(size=(9, 6)), "t": RNG.normal(size=(9, 6))},
        autoencoder,
    ),
}  # fmt: skip


def least(gradients: dict[str, Array]) -> float:
    """Return what counts as no gradient at all, as that of a bias in front of a batch norm is."""
    return 1e-2 * max(float(np.linalg.norm(v)) for v in gradients.values())


@pytest.mark.peers
@pytest.mark.parametrize("kind", PEERS)
def test_loss_and_gradients_are_those_of_torch(torch: Any, kind: str) -> None:
    """With the same masks, the loss and the gradient of every parameter agree to 1e-10 of their norm."""
    peer, rng = PEERS[kind], np.random.default_rng(1)
    network = peer.network
    for array in network.arrays.values():
        array[...] = array + 0.1 * rng.uniform(size=array.shape)  # away from 0, 1 and symmetry
    program = network.program(weighted="w" in peer.given).without_updates()
    masks = [line.target for line in program.phase("sample")]
    drawn = run(program.keeping(*masks), network, **peer.given) if masks else {}
    arrays = {name: torch.tensor(v, requires_grad=True) for name, v in network.parameters.items()}
    arrays |= {name: torch.tensor(v) for name, v in {**network.states, **drawn}.items()}

    expected = peer.loss(
        torch.nn.functional, arrays, **{name: torch.tensor(v) for name, v in peer.given.items()}
    )
    expected.backward()

    found = step(network, **peer.given)
    assert len(masks) == sum(name.startswith("kept") for name in arrays)
    assert relative_error(found["loss"], expected.detach().numpy()) <= 1e-12
    gradients = {name: arrays[name].grad.numpy() for name in network.parameters}
    for name, gradient in gradients.items():
        assert relative_error(found[f"d{name}"], gradient, least=least(gradients)) <= 1e-10, name


@pytest.mark.parametrize("kind", PEERS)
def test_float32_gradients_are_the_float64_ones_to_single_precision(kind: str) -> None:
    """The same network in float32 gives float32, off by no more than float32's rounding."""
    full, given = PEERS[kind].network, PEERS[kind].given
    half = Network(*full.body.layers, loss=full.loss, inputs=full.row)
    for name, array in half.arrays.items():
        array[...] = full.arrays[name]
    one, other = step(half, **given), step(full, **given)
    gradients = {name: other[f"d{name}"] for name in half.parameters}
    for name, gradient in gradients.items():
        assert one[f"d{name}"].dtype == np.float32
        assert relative_error(one[f"d{name}"], gradient, least=least(gradients)) <= 2e-5, name


@pytest.mark.parametrize("kind", PEERS)
def test_gradients_of_a_network_are_those_of_its_step(kind: str) -> None:
    """`Network.gradients` gives one for each parameter, by the parameter's name, and changes nothing."""
    network, given = PEERS[kind].network, PEERS[kind].given
    before = {name: v.copy() for name, v in network.arrays.items()}
    named = {"sample_weight" if name == "w" else name: array for name, array in given.items()}
    found, expected = network.gradients(**named), step(network, **given)
    assert found.keys() == network.parameters.keys()
    for name, v in found.items():
        np.testing.assert_array_equal(v, expected[f"d{name}"])
    for name, v in before.items():
        np.testing.assert_array_equal(network.arrays[name], v)


def test_prediction_is_the_loss_s_own() -> None:
    """Shares for classes, chances for yes-no answers, the values themselves for regression."""
    x = RNG.normal(size=(4, 3))
    for loss, answer in (
        (SoftmaxCrossEntropy(), lambda z: np.exp(z) / np.exp(z).sum(axis=-1, keepdims=True)),
        (BinaryCrossEntropy(), lambda z: 1 / (1 + np.exp(-z))),
        (MeanSquaredError(), lambda z: z),
    ):
        network = Network(Linear(3, 5), loss=loss, dtype="float64")
        np.testing.assert_allclose(network.predict(x), answer(network.output(x)), rtol=1e-12)


def test_the_loss_outside_training_uses_the_evaluation_of_every_layer() -> None:
    """No mask, running statistics, the same loss."""
    network = Network(Linear(3, 4), BatchNorm(), Dropout(0.5), loss=MeanSquaredError(), dtype="float64")
    network.states["running_mean1"][...] = [1, 2, 3, 4]
    x, t = RNG.normal(size=(6, 3)), RNG.normal(size=(6, 4))
    np.testing.assert_allclose(evaluate(network, x=x, t=t), ((network.output(x) - t) ** 2).mean())


def test_branches_are_put_side_by_side() -> None:
    """In their order, each of the same input; its gradient is the sum of theirs."""
    first, second = Linear(3, 4), Sequential(Linear(3, 2), Tanh())
    network = Network(Concat(first, Sequential(), second), inputs=3, loss=MeanSquaredError(), dtype="float64")
    x = np.random.default_rng(0).normal(size=(5, 3))
    W, b, V, c = network.arrays.values()
    np.testing.assert_allclose(network.predict(x), np.hstack([x @ W + b, x, np.tanh(x @ V + c)]), rtol=1e-14)
    assert (
        repr(network.body.layers[0]) == "Concat(Linear(3, 4), Sequential(), Sequential(Linear(3, 2), Tanh()))"
    )


def test_branches_that_do_not_fit_are_named() -> None:
    with pytest.raises(ConfigurationError, match="Concat: 1 branches have nothing to be put side by side"):
        Concat(Linear(3, 4))
    with pytest.raises(ShapeError, match=r"layer 1, Concat → branch 2, Linear\(4, 4\): axis I is 3 in x"):
        Network(Concat(Linear(3, 4), Linear(4, 4)), inputs=3)

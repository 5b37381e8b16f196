"""Networks of images: what they refuse, and that each gradient is PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from handgrad import (
    AvgPool2d,
    ConfigurationError,
    Conv1d,
    Conv2d,
    ConvTranspose2d,
    Flatten,
    GlobalAvgPool2d,
    Layer,
    Linear,
    MaxPool2d,
    MeanSquaredError,
    Network,
    ReLU,
    Reshape,
    ShapeError,
    SoftmaxCrossEntropy,
    Tanh,
    explain,
    train,
)
from handgrad.program.lines_in_python import run_lines


def le_net() -> Network:
    """Return LeNet-5, of images of 12 x 11 so that no two sizes are alike."""
    return Network(
        Reshape((12, 11, 1)),
        Conv2d(1, 6, (5, 4), padding=2),
        Tanh(),
        AvgPool2d(2),
        Conv2d(6, 7, 3, dilation=2, bias=False),
        ReLU(),
        MaxPool2d((1, 2), stride=1),
        Flatten(),
        Linear(14, 5),
        loss=SoftmaxCrossEntropy(),
        inputs=132,
        dtype="float64",
    )


def gradients(network: Network, x: Any, t: Any) -> dict[str, Any]:
    program = network.program(optimiser=None).without_updates()
    given = {"x": x, "t": t, "n": len(x), **network.arrays}
    values = run_lines(program.lines, given)
    return {name: values[f"d{name}"] for name in network.arrays}


@pytest.mark.peers
def test_every_gradient_of_a_convolutional_network_is_pytorchs(torch: Any) -> None:
    network, rng = le_net(), np.random.default_rng(0)
    x, t = rng.normal(size=(3, 132)), np.array([4, 0, 2])
    found = gradients(network, x, t)
    W, b, V, U, c = (torch.tensor(found_in, requires_grad=True) for found_in in network.arrays.values())
    functional = torch.nn.functional
    first = functional.conv2d(torch.tensor(x).reshape(3, 1, 12, 11), W.permute(3, 2, 0, 1), b, padding=2)
    pooled = functional.avg_pool2d(torch.tanh(first), 2)
    second = torch.relu(functional.conv2d(pooled, V.permute(3, 2, 0, 1), dilation=2))
    taken = functional.max_pool2d(second, (1, 2), 1).permute(0, 2, 3, 1).reshape(3, -1)
    functional.cross_entropy(taken @ U + c, torch.tensor(t)).backward()
    for (name, ours), theirs in zip(found.items(), (W, b, V, U, c), strict=True):
        np.testing.assert_allclose(ours, theirs.grad, rtol=0, atol=1e-12, err_msg=name)


def test_a_convolutional_network_learns_which_half_is_bright() -> None:
    rng = np.random.default_rng(1)
    t = rng.integers(0, 2, 200)
    x = (
        rng.normal(size=(200, 6, 8, 1))
        + np.where(np.arange(8) < 4, 1 - t[:, None], t[:, None])[:, None, :, None]
    )
    network = Network(
        Conv2d(1, 4, 3, padding=1), ReLU(), MaxPool2d(2), Flatten(), Linear(48, 2), loss=SoftmaxCrossEntropy(),
        inputs=(6, 8, 1),
    )  # fmt: skip
    history = train(network, x, t, epochs=10, batch_size=20)
    assert history.facts["engine"] == "compiled"
    assert np.mean(network.predict(x).argmax(axis=-1) == t) > 0.95


def test_a_program_says_each_shape() -> None:
    shapes = {line.target: line.shape for line in le_net().program().phase("forward")}
    assert shapes["u1"] == ("n", 12, 12, 20)
    assert shapes["z1"] == ("n", 12, 12, 6)
    assert list(shapes.values())[-1] == ("n", 5)


@pytest.mark.parametrize("kind", [Conv1d, Conv2d, ConvTranspose2d])
def test_groups_divide_the_channels(kind: type[Conv2d]) -> None:
    with pytest.raises(ConfigurationError, match="8 inputs and 12 outputs are not 8 groups") as caught:
        kind(8, 12, 3, groups=8)
    assert caught.value.fix == "give groups that divide both: 1, 2, 4"


@pytest.mark.parametrize("kind", [Conv1d, Conv2d, ConvTranspose2d, MaxPool2d, AvgPool2d])
def test_stride_and_padding_may_be_given_by_position(kind: type[Conv2d]) -> None:
    """As in PyTorch: after the size."""
    channels = (2, 6) if kind in (Conv1d, Conv2d, ConvTranspose2d) else ()
    by_position, by_name = kind(*channels, 4, 3, 1), kind(*channels, 4, padding=1, stride=3)
    assert repr(by_position) == repr(by_name)
    assert (by_position.stride, by_position.padding) == (3, 1)


def test_one_group_is_not_written() -> None:
    """The lines of a convolution are those of a textbook, and those of groups name the blocks."""
    texts = [
        str(
            Network(Conv2d(4, 6, 3, groups=groups), loss=MeanSquaredError(), inputs=(5, 5, 4))
            .program()
            .line("z1")
        )
        for groups in (1, 2)
    ]
    assert texts == ["z1 = u1 @ rows(W1) + b1", "z1 = u1 @ rows(block_diagonal(W1, 2)) + b1"]


@pytest.mark.parametrize(
    ("layers", "row", "error", "message"),
    [
        ([Conv2d(1, 2, 5)], (4, 9, 1), ShapeError, "layer 1, Conv2d(1, 2, 5): P = "),
        ([Conv2d(1, 2, 5)], (4, 9, 1), ShapeError, " is 0, and an axis is 1 or longer"),
        ([Conv2d(1, 2, 3)], (9,), ShapeError, "x has 2 axes (n, 9) where the signature has N... H V I"),
        ([Conv2d(3, 2, 3)], (9, 9, 1), ShapeError, "axis J = I // groups is 1, but 3 in W(3, 3, 3, 2)[2]"),
        ([MaxPool2d(2, padding=2)], (9, 9, 1), ConfigurationError, "the padding is more than half of the window (2, 2)"),
        ([AvgPool2d((2, 3))], (9, 9, 1), ConfigurationError, "the window is not square"),
        ([Reshape((4, 5))], (21,), ShapeError, "(4, 5) holds 20 numbers, and a row of x(n, 21) 21"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(
    layers: list[Layer], row: tuple[int, ...], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        Network(*layers, inputs=row)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("layer", "row", "expected"),
    [
        (lambda: Conv2d(3, 4, (3, 2), stride=2, padding=1), (9, 8, 3), ("n", 5, 5, 4)),
        (lambda: Conv2d(3, 4, 3, dilation=3), (9, 8, 3), ("n", 3, 2, 4)),
        (lambda: Conv1d(3, 4, 5, padding=2), (9, 3), ("n", 9, 4)),
        (lambda: Conv1d(6, 4, 5, groups=2), (9, 6), ("n", 5, 4)),
        (lambda: ConvTranspose2d(3, 4, 3, stride=2, padding=1), (5, 4, 3), ("n", 9, 7, 4)),
        (lambda: MaxPool2d(3, stride=2, padding=1), (9, 8, 3), ("n", 5, 4, 3)),
        (lambda: AvgPool2d(2), (9, 8, 3), ("n", 4, 4, 3)),
        (lambda: GlobalAvgPool2d(), (9, 8, 3), ("n", 3)),
    ],
)
def test_the_shape_that_is_computed_is_the_one_that_comes_out(
    layer: Callable[[], Layer], row: tuple[int, ...], expected: tuple[Any, ...]
) -> None:
    network = Network(layer(), inputs=row)
    assert network.output_shape == expected
    found = network.predict(np.random.default_rng(0).normal(size=(2, *row)))
    assert found.shape == (2, *expected[1:])


def test_the_axes_of_an_image_have_letters_of_their_own() -> None:
    """N is the rows' alone; what is reshaped into an image has the letters that convolution gives."""
    network = Network(
        Reshape((4, 3, 1)), Conv2d(1, 2, 2), Flatten(), Linear(12, 5), loss=SoftmaxCrossEntropy(), inputs=12
    )
    entries = explain(network, np.random.default_rng(0).normal(size=(7, 12)), np.arange(7) % 5).ledger
    axes = {name: entries[name].axes for name in ("x", "y1", "z1", "dz1")}
    assert all(letters[0] == "N" and "N" not in letters[1:] for letters in axes.values())
    assert axes["y1"][1:] == ("H", "V", "C")
    assert axes["z1"] == axes["dz1"]
    assert len(set(axes["z1"])) == 4

"""Rows of a batch never mix: a layer refuses an input of too few axes, and what no rule can do is an error of handgrad's."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from handgrad import MeanSquaredError, layers, rules
from handgrad.errors import HandgradError, ShapeError
from handgrad.layers import LAYERS, Layer
from handgrad.network import Network

LEAST_AXES: dict[str, tuple[Layer, tuple[int, ...]]] = {
    "AvgPool2d": (layers.AvgPool2d(2), (4, 6, 3)),
    "BatchNorm": (layers.BatchNorm(), (3,)),
    "Concat": (layers.Concat(layers.Linear(3, 2), layers.Linear(3, 5)), (3,)),
    "Conv1d": (layers.Conv1d(3, 2, 3), (7, 3)),
    "Conv2d": (layers.Conv2d(3, 2, 3), (7, 5, 3)),
    "ConvTranspose2d": (layers.ConvTranspose2d(3, 2, 3), (7, 5, 3)),
    "GRU": (layers.GRU(3, 5), (7, 3)),
    "GlobalAvgPool2d": (layers.GlobalAvgPool2d(), (7, 5, 3)),
    "GroupNorm": (layers.GroupNorm(1), (7, 5, 3)),
    "LSTM": (layers.LSTM(3, 5), (7, 3)),
    "Last": (layers.Last(), (7, 3)),
    "LayerNorm": (layers.LayerNorm(), (3,)),
    "Linear": (layers.Linear(3, 2), (3,)),
    "MaxPool2d": (layers.MaxPool2d(2), (4, 6, 3)),
    "Positions": (layers.Positions(), (7, 3)),
    "RMSNorm": (layers.RMSNorm(), (3,)),
    "RNN": (layers.RNN(3, 5), (7, 3)),
    "Repeat": (layers.Repeat(layers.Linear(3, 3), times=2), (3,)),
    "Residual": (layers.Residual(layers.Linear(3, 3)), (3,)),
    "SelfAttention": (layers.SelfAttention(6, 2), (7, 6)),
    "SeparableConv2d": (layers.SeparableConv2d(3, 2, 3), (7, 5, 3)),
    "Sequential": (layers.Sequential(layers.Linear(3, 3)), (3,)),
    "Softmax": (layers.Softmax(), (3,)),
    "Standardise": (layers.Standardise(), (3,)),
    "StandardiseTargets": (layers.StandardiseTargets(), (3,)),
    "SwiGLU": (layers.SwiGLU(3, 5), (3,)),
}
"""Layers that need axes of a row, with the fewest that they take; others take each number by itself."""


@pytest.mark.parametrize("name", sorted(LAYERS))
def test_a_layer_refuses_an_input_of_too_few_axes(name: str) -> None:
    if name not in LEAST_AXES:
        elementwise = {"Dropout": (0.5,), "Embedding": (5, 3), "Reshape": ((1,),)}
        assert Network(LAYERS[name](*elementwise.get(name, ())), inputs=()).output_shape[0] == "n"
        return
    layer, row = LEAST_AXES[name]
    assert Network(layer, inputs=row).output_shape[0] == "n"
    for fewer in range(len(row)):
        with pytest.raises(HandgradError, match=r"axis|axes|features"):
            Network(layer, inputs=row[len(row) - fewer :])


def test_too_few_axes_of_a_row_are_named() -> None:
    with pytest.raises(ShapeError) as raised:
        Network(layers.GlobalAvgPool2d(), layers.Linear(3, 2), inputs=(5, 3))
    assert "a row of x(n, 5, 3) has 2 axes, and needs 3 axes: H V C" in str(raised.value)


@pytest.mark.parametrize("name", sorted(LEAST_AXES.keys() - {"StandardiseTargets"}))
def test_no_rows_have_no_predictions(name: str) -> None:
    layer, row = LEAST_AXES[name]
    network = Network(layer, layers.Flatten(), inputs=row, loss=MeanSquaredError())
    none = network.predict(np.zeros((0, *row)))
    assert (none.shape, none.dtype) == ((0, network.output_shape[1]), np.float32)


X = np.ones((2, 5, 7, 4))
WRONG: dict[str, Callable[[], Any]] = {
    "a window larger than the image": lambda: rules.conv2d(X, np.ones((6, 3, 4, 2)), np.ones(2)),
    "groups that do not divide the outputs": lambda: rules.conv2d(
        X, np.ones((3, 3, 1, 6)), np.ones(6), groups=4
    ),
    "groups that do not divide the inputs": lambda: rules.conv1d(
        np.ones((2, 7, 5)), np.ones((3, 2, 6)), np.ones(6), groups=2
    ),
    "heads that do not divide": lambda: rules.split_heads(np.ones((2, 3, 5)), heads=2),
    "no heads": lambda: rules.split_heads(np.ones((2, 3, 4)), heads=0),
    "no copies of heads": lambda: rules.repeat_heads(X, times=0),
    "no times": lambda: rules.causal_attention(*[np.ones((2, 0, 3))] * 3),
    "two sizes left open": lambda: rules.reshape(np.ones((2, 6)), shape=(-1, -1)),
    "a shape of other numbers": lambda: rules.reshape(np.ones((2, 6)), shape=(3,)),
    "a shape that does not divide": lambda: rules.reshape(np.ones((2, 6)), shape=(4, -1)),
    "a shape of nothing": lambda: rules.reshape(np.ones((2, 6)), shape=(0, -1)),
    "a shape that is a number": lambda: rules.reshape(np.ones((2, 6)), shape=6),
    "no stride": lambda: rules.max_pool2d(X, stride=0),
    "a negative stride": lambda: rules.max_pool2d(X, stride=-1),
    "a stride of text": lambda: rules.max_pool2d(X, stride="2"),
    "a window of one number": lambda: rules.max_pool2d(X, size=2),
    "a window of three": lambda: rules.max_pool2d(X, size=(2, 2, 2)),
    "negative padding": lambda: rules.average_pool2d(X, padding=-1),
    "an odd number of features to turn": lambda: rules.rotary_positions(np.ones((2, 5, 3))),
    "gradients of a window larger than the image": lambda: rules.conv2d.gradients(
        np.ones((2, 1, 1, 2)), X, np.ones((6, 3, 4, 2)), np.ones(2)
    ),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_rule_called_with_what_it_cannot_do_raises_an_error_of_handgrads(wrong: Callable[[], Any]) -> None:
    with pytest.raises(HandgradError):
        wrong()

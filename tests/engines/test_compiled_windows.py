"""Windows in the compiled engine: networks drawn at random, rules of one's own, tiles of every shape."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from handgrad import SGD, AvgPool2d, Conv2d, ConvTranspose2d, Layer, MaxPool2d, Network, Tanh, rule
from handgrad.engines.compiled import contractions
from handgrad.engines.compiled.contractions import contraction_text
from handgrad.engines.compiled.fusion import Product, StepSchedule
from handgrad.errors import HandgradError
from handgrad.program.lowering import lower
from handgrad.rules.primitives import add_windows, join_last, rows, split_last, windows

from .agreement import BOUNDS, Case, check_case
from .images import IMAGES, case
from .test_compiled_rules import Own

# ruff: noqa: RET504 - rules return names

SHAPE = (5, 6, 4)


@rule("N H V C -> N H V C")
def smoothed(x, *, decay=0.5):
    """Mix every entry of each window, in a way that no layer does."""
    u = windows(x, (3, 2), 1, 1)
    v = np.exp(-decay * u * u) * u
    low = v.min(axis=-2)
    y = x * low[:, :5, 1:].sum(axis=(1, 2), keepdims=True)
    return y


@smoothed.backward
def smoothed_backward(dy, x, u, v, *, decay):
    du = np.where(u > 0.1, v * np.expand_dims(u.max(axis=-2), -2), decay) + 1.0
    dx = dy * add_windows(du * du, x.shape[-3:-1], (3, 2), 1, 1)
    return dx


@rule("N H V C -> N H V C")
def stored(x, *, low=-0.5):
    """Use the windows themselves where no loop over windows can."""
    u = windows(x, (1, 2), 1, 0, 1)
    s = u.sum(axis=-1)
    m = join_last(u)
    g = rows(m).T @ rows(m)
    y = x * 0.01 * s.sum(axis=-1).max() + 0.01 * g.mean() + windows(x, (2, 2), 1, 1, 1, low).mean()
    return y


@stored.backward
def stored_backward(dy, x, m):
    w = m.swapaxes(-1, -2)[..., :2, :].sum(axis=-1)
    dx = dy + 0.01 * w.sum(axis=-1).max() * x
    return dx


@rule("N H V C, D C -> N H V C")
def spread(x, W):
    """Multiply by a transposed matrix, add the windows up, and read the product once more."""
    p = x @ W.T
    v = split_last(p, 2)
    y = add_windows(v, (5, 7), (1, 2))[..., :6, :] + p[..., :4]
    return y


@spread.backward
def spread_backward(dy, x, W):
    dx = dy * W.sum()
    dW = np.zeros_like(W) + (dy * x).sum()
    return dx, dW


RULES = {"smoothed": Own(smoothed), "stored": Own(stored), "spread": Own(spread, ((8, 4),))}


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("name", RULES)
def test_rules_with_windows_are_compiled(name: str, dtype: str) -> None:
    """A rule gives the numbers of its own NumPy lines, where windows are computed on the way and where they are stored."""
    made = case(SHAPE, lambda: [Conv2d(4, 4, 1, bias=False), RULES[name], Tanh()])
    check_case(made, dtype, (1, 6, 30))


def drawn(seed: int) -> Case:
    """Return a network of three layers of windows, drawn at random."""
    rng = np.random.default_rng(seed)
    height, width, channels = (int(size) for size in rng.integers((7, 7, 1), (14, 14, 20)))
    shape, made = (height, width, channels), list[Layer]()
    while len(made) < 6:
        size = (int(rng.integers(1, 5)), int(rng.integers(1, 5)))
        stride, padding, dilation = int(rng.integers(1, 4)), int(rng.integers(0, 3)), int(rng.integers(1, 3))
        outputs = int(rng.integers(1, 23))
        layer: Layer
        match int(rng.integers(4)):
            case 0:
                layer = MaxPool2d(size, stride=stride, padding=min(padding, min(size) // 2))
            case 1:
                layer = AvgPool2d(size, stride=stride, padding=min(padding, min(size) // 2))
            case 2 if min(height, width) < 9:
                layer = ConvTranspose2d(channels, outputs, size, stride=min(stride, 2), dilation=dilation)
            case _:
                layer = Conv2d(
                    channels,
                    outputs,
                    size,
                    stride=stride,
                    padding=padding,
                    dilation=dilation,
                    bias=bool(seed % 2),
                )
        reach = [dilation * (each - 1) + 1 for each in size]
        if (
            min(height + 2 * padding - reach[0], width + 2 * padding - reach[1]) < 0
            or max(height, width) > 30
        ):
            continue
        try:
            _, height, width, channels = (
                size if isinstance(size, int) else 0
                for size in Network(layer, inputs=(height, width, channels)).output_shape
            )
        except HandgradError:
            continue
        made += [layer, Tanh()]
    return case(shape, lambda: made)


@pytest.mark.parametrize("seed", range(24))
def test_networks_drawn_at_random_agree(seed: int) -> None:
    check_case(drawn(seed), ("float64", "float32")[seed % 3 == 2], (5,))


@pytest.fixture
def few_registers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have as few as a processor without AVX-512."""
    contraction_text.cache_clear()
    monkeypatch.setattr(contractions, "registers", lambda: 7)
    yield
    contraction_text.cache_clear()


@pytest.mark.usefixtures("few_registers")
@pytest.mark.parametrize("name", ["LeNet", "ResNet", "many channels", "strides and dilation"])
def test_smaller_tiles_give_the_same(name: str) -> None:
    check_case(IMAGES[name], "float64", (6,))


@pytest.mark.parametrize(
    "name", ["LeNet", "ResNet", "pools that overlap", "transposed", "a sequence", "depthwise", "groups"]
)
def test_windows_are_not_stored(name: str) -> None:
    """Convolutions and pools read images where they are, and no product with windows is one of BLAS."""
    program = IMAGES[name].network("float32").program(SGD(0.1)).keeping("total", "count")
    lowered = lower(program)
    outputs = tuple(lowered.names[name] for name in program.outputs)
    schedule = StepSchedule(lowered, outputs, outputs)
    of_places = [
        value for value in schedule.stored if value.operation in ("windows", "first_largest", "where")
    ]
    assert not of_places
    assert not [value for value in schedule.stored if len(value.shape) > 4]
    products = [step.value for step in schedule.steps if isinstance(step, Product)]
    assert not [value for value in products if "windows" in {v.base.operation for v in value.inputs}]

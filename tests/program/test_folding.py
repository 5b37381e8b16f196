"""Programs in short print: what repeats once, in both directions and in the updates; the whole of GPT-2 on two screens."""

from __future__ import annotations

import re
from copy import deepcopy
from typing import Any

import numpy as np
import pytest

from handgrad import (
    RNN,
    SGD,
    AdamW,
    BatchNorm,
    Conv2d,
    Flatten,
    Layer,
    LayerNorm,
    Linear,
    MaxPool2d,
    MeanSquaredError,
    Network,
    ReLU,
    Repeat,
    Reshape,
    Residual,
    Sequential,
    SoftmaxCrossEntropy,
    Tanh,
    rules,
)
from handgrad.interop import gpt2
from handgrad.layers import Graph, Value
from handgrad.program import folding
from handgrad.program.folding import fold, render_folded
from handgrad.program.shapes_only import everywhere

from ..rules.table import TABLE, Row


def codes(network: Network, phase: str) -> list[str]:
    return [row.code for row in dict(fold(network.program(AdamW())))[phase]]


def test_gpt2_is_two_screens_and_its_block_one() -> None:
    """A screen is 50 lines of 110 columns; the texts of its rules fit on the second."""
    network = gpt2()
    page = render_folded(network.program(AdamW()), 110).splitlines()
    step = page[: page.index("rules")]
    assert len(page) <= 2 * 50
    assert render_folded(network.program(AdamW()), 110, rules=None).splitlines() == page
    assert max(map(len, page)) <= 110
    assert sum(line.startswith("    ") for line in step[:-6]) <= 50
    assert "_drawn" not in vars(network), "no array was drawn"
    heads = [line for line in page if " ×" in line]
    assert heads == [
        "  12 × block, from y3 … r10 to y91 … r98; r10 is the next one's h2",
        "  12 × block, from da97 … dr90 to da9 … dh2, the last one first; dr10 comes from what follows the block",
        "update, 196 ×, for each from E1 to beta98",
    ]
    for line in (
        "y3 = layer_norm(h2, gamma3, beta3)",
        "s7 = y4 @ y5.mT / y4.shape[-1] ** 0.5",
        "p7 = e7 / e7.sum(axis=-1, keepdims=True)",
        "r10 = r8 + z10",
        "dW9, db9 = rows(y9).T @ rows(dz9), rows(dz9).sum(axis=0)",
        "dgamma9, dbeta9, dr8_y9 = layer_norm.backward(dy9)",
        "dr8 = dr10 + dr8_y9",
        "dE1 = dE1_z99 + dE1_h1",
    ):
        assert sum(line in shown for shown in page) == 1, line


def test_the_step_of_lenet_is_one_screen() -> None:
    network = Network(
        Reshape((28, 28, 1)), Conv2d(1, 6, 5, padding=2), ReLU(), MaxPool2d(2), Conv2d(6, 16, 5), ReLU(), MaxPool2d(2),
        Flatten(), Linear(400, 120), ReLU(), Linear(120, 84), ReLU(), Linear(84, 10),
        loss=SoftmaxCrossEntropy(), inputs=784,
    )  # fmt: skip
    page = render_folded(network.program(SGD(momentum=0.9)), 110).splitlines()
    assert len(page[1 : page.index("rules") - 1]) <= 50, "below its title"
    assert max(map(len, page)) <= 110


def block() -> list[Any]:
    return [Residual(LayerNorm(), Linear(6, 6)), Tanh()]


def test_lenet_is_one_screen_with_its_layers_named() -> None:
    """Windows are calls there, whose lines are below with their reasons."""
    layers = (
        *(
            Conv2d(1, 6, 5, padding=2),
            ReLU(),
            MaxPool2d(2),
            Conv2d(6, 16, 5),
            ReLU(),
            MaxPool2d(2),
            Flatten(),
        ),
        *(Linear(400, 120), ReLU(), Linear(120, 84), ReLU(), Linear(84, 10)),
    )
    network = Network(*layers, loss=SoftmaxCrossEntropy(), inputs=(28, 28, 1))
    page = network.program(AdamW()).folded().splitlines()
    assert page.index("rules") <= 50
    assert max(map(len, page)) <= 110
    forward = page[2 : page.index("loss")]
    assert [line.endswith(f"   {layer!r}") for line, layer in zip(forward, layers, strict=True)] == [
        True
    ] * 12
    assert re.sub(" +", " ", forward[2]) == " y2 = max_pool2d(a1) (n, 14, 14, 6) MaxPool2d(2)"
    assert any(line.endswith("   summed over windows") for line in page[page.index("rules") :])


def test_layers_made_again_and_again_fold_as_repeated_ones_do() -> None:
    written = Network(*(layer for _ in range(5) for layer in block()), loss=MeanSquaredError(), inputs=6)
    repeated = Network(Repeat(*block(), times=5), loss=MeanSquaredError(), inputs=6)
    assert fold(written.program(AdamW())) != []
    for phase in ("forward", "loss", "backward", "update"):
        assert codes(written, phase) == codes(repeated, phase)
    assert codes(repeated, "forward") == [
        "5 × block, from y1 … a1 to y5 … a5; a1 is the next one's x",
        "y1 = layer_norm(x, gamma1, beta1)",
        "z1 = y1 @ W1 + b1",
        "r1 = x + z1",
        "a1 = np.tanh(r1)",
    ]


def residual() -> Residual:
    return Residual(LayerNorm(), Linear(6, 12), Tanh(), Linear(12, 6))


class Stack(Layer):
    """Five blocks with two inputs each, the one before and what the stack takes, applied by a loop."""

    def __init__(self, back: int = 1) -> None:
        self.back, self.maps = back, [(Linear(6, 12), Linear(12, 6)) for _ in range(5)]

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        values = [x, Linear(6, 6).connect(graph, x)]
        for outer, inner in self.maps:
            z = outer.connect(graph, graph.apply(rules.add, values[-1], x))
            y = inner.connect(graph, graph.apply(rules.tanh, z))
            values.append(graph.apply(rules.add, values[-self.back], y))
        return values[-1]


@pytest.mark.parametrize(
    "layers",
    [
        [residual() for _ in range(5)],
        [Sequential(*(residual() for _ in range(5)))],
        [Residual(*(residual() for _ in range(5)))],
        [Stack()],
        [RNN(6, 6) for _ in range(5)],
        [Linear(6, 7), ReLU(), Linear(7, 8), Tanh(), Linear(8, 6)] * 5,
    ],
    ids=["function", "sequential", "residual", "two-inputs", "recurrent", "five-layers"],
)
def test_blocks_fold_however_they_are_made(layers: list[Layer], monkeypatch: pytest.MonkeyPatch) -> None:
    """By a function, within other layers, by a loop in a layer's own connect; in both directions, with nothing lost."""
    network = Network(Linear(3, 6), *map(deepcopy, layers), loss=MeanSquaredError(), inputs=(7, 3))
    program = network.program(AdamW())
    folded = dict(fold(program))
    monkeypatch.setattr(folding, "WORTH", 1000)
    for phase in ("forward", "backward"):
        rows, written = folded[phase], dict(fold(program))[phase]
        (head,) = (k for k, row in enumerate(rows) if "×" in row.code)
        end = next((k for k in range(head + 1, len(rows)) if not rows[k].indent), len(rows))
        times = int(rows[head].code.partition(" × block, from ")[0])
        # the last block of backward ends in a sum of its own where a Residual takes the same input
        assert (
            times == 4 if phase == "backward" and isinstance(layers[0], Residual) and len(layers) == 1 else 5
        )
        start = head + (times - 1) * (end - head - 1) * (phase == "backward")
        block = written[start : start + end - head - 1]
        assert [row.code for row in rows[head + 1 : end]] == [row.code for row in block]
        assert len(written) == len(rows) - 1 + (times - 1) * len(block)


def test_blocks_in_blocks_fold_inside() -> None:
    blocks = Repeat(Linear(6, 6), *(residual() for _ in range(3)), times=4)
    network = Network(blocks, loss=MeanSquaredError(), inputs=6)
    rows = dict(fold(network.program()))["forward"]
    heads = [(row.indent, row.code.partition(",")[0]) for row in rows if "×" in row.code]
    assert heads == [(0, "4 × block"), (1, "3 × block")]
    assert [row.indent for row in rows] == [0, 1, 1, 2, 2, 2, 2, 2]


def test_a_value_of_two_blocks_before_folds_two_at_a_time() -> None:
    """The fold's heading has a place for what the one before makes, and for nothing earlier."""
    network = Network(Linear(6, 6), Stack(back=2), loss=MeanSquaredError())
    (head,) = (code for code in codes(network, "forward") if "×" in code)
    assert head == "2 × block, from r5 … r8 to r9 … r12; r8 is the next one's r4; r6 is the next one's z2"


@pytest.mark.parametrize(
    "other", [Linear(6, 6, bias=False), Linear(6, 6, layout="out_in")], ids=["bias", "layout"]
)
def test_a_block_that_differs_ends_the_fold(other: Linear) -> None:
    """It is written out, and what comes after it too; its names alone may differ."""
    alike = [Linear(6, 6) if k != 6 else other for k in range(9)]
    network = Network(*(part for layer in alike for part in (layer, Tanh())), loss=MeanSquaredError())
    heads = [code for phase in ("forward", "backward") for code in codes(network, phase) if " × " in code]
    assert heads[0] == "6 × block, from z1 … a1 to z6 … a6; a1 is the next one's x"
    assert heads[1].startswith("5 × block, from e6 … dW6 to e2 … dW2, the last one first"), (
        "x has no gradient"
    )


def test_what_is_not_in_a_program_is_not_in_its_fold() -> None:
    """Every value that a row makes, and every gradient, is one of the program's; none is left out but the rules' own."""
    network = Network(
        Linear(5, 6), BatchNorm(), ReLU(), Residual(Linear(6, 6)), Linear(6, 3), loss=SoftmaxCrossEntropy()
    )
    program = network.program(SGD())
    made = {line.target for line in program.lines}
    phases = dict(fold(program))
    rows = [
        row.code for phase, rows in phases.items() if phase != "rules" for row in rows if "×" not in row.code
    ]
    names = {name for code in rows for name in re.split(r" [-+]?= ", code)[0].split(", ")}
    assert names <= made
    assert {f"d{name}" for name in network.parameters} <= names


def test_a_loop_over_time_stays_a_loop() -> None:
    network = Network(RNN(3, 4), Flatten(), Linear(20, 2), loss=SoftmaxCrossEntropy(), inputs=(5, 3))
    rows = dict(fold(network.program()))["backward"]
    (place,) = (k for k, row in enumerate(rows) if row.code == "for t1 in reversed(range(x.shape[1])):")
    assert [row.indent for row in rows[place : place + 5]] == [0, 1, 1, 1, 0]


def test_a_reason_is_printed_where_it_comes_first() -> None:
    network = Network(Linear(5, 6), ReLU(), Linear(6, 3), loss=SoftmaxCrossEntropy())
    page = render_folded(network.program(), 160)
    assert page.count("the rows add up") == 1


WITHOUT_LOOPS = [row for row in TABLE if not any(line.loop for line in row.rule.forward.lines)]


@pytest.mark.parametrize("row", WITHOUT_LOOPS, ids=lambda row: row.rule.name)
def test_shapes_are_those_of_the_numbers(row: Row) -> None:
    """Of every line of every rule, on arrays that have one number each, in float32."""
    rule = row.rule
    arrays = {
        name: np.asarray(array)
        for name, array in row.inputs(np.random.default_rng(0), 2, row.options[0]).items()
    }
    floats = {name: array.astype(np.float32) for name, array in arrays.items() if array.dtype.kind == "f"}
    arrays, options = arrays | floats, rule.settings(row.options[0])
    of_one = {name: everywhere(array[(0,) * array.ndim], array.shape) for name, array in arrays.items()}
    with np.errstate(all="ignore"):
        found, shown = rule.forward.run(options | arrays), rule.forward.run(options | of_one)
    for name in rule.forward.locals:
        assert np.shape(shown[name]) == np.shape(found[name]), name
        assert np.result_type(shown[name]) == np.result_type(found[name]), name

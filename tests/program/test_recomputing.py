"""Blocks that backward computes again: the same numbers to the last bit, and less memory, whatever is in the block."""

from __future__ import annotations

import io
import runpy
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from handgrad import (
    GRU,
    SGD,
    BatchNorm,
    Conv2d,
    Dropout,
    LayerNorm,
    Linear,
    MeanSquaredError,
    Network,
    ReLU,
    Repeat,
    Residual,
    SelfAttention,
    SoftmaxCrossEntropy,
    Tanh,
    check,
    explain,
    train,
)
from handgrad.engines import ENGINES, Epoch
from handgrad.engines.compiled.compiled_engine import BoundCompiled
from handgrad.layers import Layer, gpt_layers
from handgrad.program import Loop, Program
from handgrad.program.folding import render_folded

BLOCKS: dict[str, tuple[tuple[int, ...], tuple[Layer, ...]]] = {
    "dense": ((6,), (Linear(6, 6), Tanh())),
    "masks": ((6,), (Residual(Linear(6, 9), ReLU(), Dropout(0.4), Linear(9, 6)), Dropout(0.3))),
    "batch statistics": ((6,), (Linear(6, 6), BatchNorm(), ReLU())),
    "time": ((5, 6), (Residual(LayerNorm(), GRU(6, 6)),)),
    "attention": ((5, 6), (Residual(LayerNorm(), SelfAttention(6, 3, causal=True), Dropout(0.2)),)),
    "images": ((7, 5, 3), (Residual(Conv2d(3, 3, 3, padding=1), ReLU()),)),
    "blocks in a block": ((6,), (Repeat(Linear(6, 6), Tanh(), times=2, recompute=True), Dropout(0.2))),
}


def made(kind: str, *, recompute: bool) -> Network:
    row, block = BLOCKS[kind]
    layers = (Repeat(*block, times=3, recompute=recompute), ReLU())
    return Network(*layers, loss=MeanSquaredError(), inputs=row, dtype="float64")


@pytest.mark.parametrize("engine", ["reference", "compiled"])
@pytest.mark.parametrize("kind", BLOCKS)
def test_gradients_and_updates_are_the_same_to_the_last_bit(kind: str, engine: str) -> None:
    generator = np.random.default_rng(0)
    saved, again = made(kind, recompute=False), made(kind, recompute=True)
    x, t = (generator.normal(size=(11, *shape[1:])) for shape in (("n", *saved.row), saved.output_shape))
    ends = []
    for network in (saved, again):
        program = network.program(SGD(0.1))
        arrays = {name: array.copy() for name, array in network.arrays.items()}
        step = ENGINES[engine]().bind(program, arrays)
        found = step.run(x=x, t=t, learning_rate=0.1, step=7, seed=5)
        epoch = Epoch({"x": x, "t": t}, np.arange(11), 4, np.full(3, 0.1), 1, 3)
        ends.append(
            {**found, **{f"new {name}": array for name, array in arrays.items()}, "epoch": step.epoch(epoch)}
        )
    assert ends[0].keys() == ends[1].keys()
    for name, value in ends[0].items():
        assert np.array_equal(value, ends[1][name]), name
    assert any(line.again for line in again.program().lines)


def test_a_block_runs_again_before_its_backward_lines() -> None:
    network = Network(Repeat(Linear(4, 4), Tanh(), times=2, recompute=True), loss=MeanSquaredError())
    program = network.program()
    backward = [line.target for line in program.phase("backward")]
    assert backward == [
        "dloss", "dl", "da2", "z2", "e2", "dz2", "da1", "dW2", "db2", "z1", "e1", "dz1", "dW1", "db1",
    ]  # fmt: skip
    assert [line.target for line in program.lines if line.again] == ["z2", "z1"], "outputs are saved"
    assert str(network.program().saving_all()) == str(
        Network(Repeat(Linear(4, 4), Tanh(), times=2), loss=MeanSquaredError()).program()
    )


def test_in_short_print_a_block_is_one_with_what_it_computes_again() -> None:
    network = Network(
        *gpt_layers(entries=9, features=8, heads=2, blocks=4, recompute=True),
        loss=SoftmaxCrossEntropy(), inputs=(5,),
    )  # fmt: skip
    page = render_folded(network.program()).splitlines()
    (place,) = (k for k, line in enumerate(page) if "computed again first, the last one first" in line)
    assert page[place + 1].startswith("    y3 = layer_norm(h2, gamma3, beta3)  ")


def deep(*, recompute: bool) -> tuple[Program, Network]:
    block = (Residual(LayerNorm(), Linear(16, 64), Tanh(), Dropout(0.1), Linear(64, 16)),)
    network = Network(Repeat(*block, times=8, recompute=recompute), loss=MeanSquaredError())
    return network.program(SGD()).keeping("total", "count"), network


def test_the_workspace_of_the_compiled_engine_is_that_of_about_one_block() -> None:
    sizes = []
    for recompute in (False, True):
        program, network = deep(recompute=recompute)
        step = ENGINES["compiled"]().bind(program, network.arrays)
        assert isinstance(step, BoundCompiled)
        x = np.zeros((512, 16), "float32")
        plan = step.plan({"x": x, "t": x}, 512)
        sizes.append(
            sum({id(a.base): a.base.nbytes for a in plan.memory.values() if a.base is not None}.values())
        )
    assert sizes[1] < sizes[0] / 3


def test_the_memory_of_the_reference_engine_is_that_of_about_one_block() -> None:
    peaks = []
    for recompute in (False, True):
        program, network = deep(recompute=recompute)
        step = ENGINES["reference"]().bind(program, network.arrays)
        x = np.zeros((512, 16), "float32")
        tracemalloc.start()
        step.run(x=x, t=x, learning_rate=0.1, step=1, seed=0)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] / 3


def test_the_script_trains_as_train_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    x, t = generator.normal(size=(2, 10, 6))
    network = made("masks", recompute=True)
    script = network.write(SGD(0.1), Loop(epochs=2, batch_size=4))
    assert "del " in script
    monkeypatch.chdir(tmp_path)
    np.savez("data.npz", x=x, t=t)
    Path("train.py").write_text(script)
    monkeypatch.setattr(sys, "argv", ["train.py"])
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    runpy.run_path("train.py", run_name="__main__")
    train(network, x, t, epochs=2, batch_size=4, optimiser=SGD(0.1), engine="reference")
    with np.load("weights.npz") as weights:
        for name, array in network.parameters.items():
            assert np.array_equal(weights[name], array), name


def test_it_is_checked_and_explained_as_any_network() -> None:
    generator = np.random.default_rng(0)
    network = made("masks", recompute=True)
    assert check(network).verdict == "right"
    x, t = generator.normal(size=(2, 5, 6))
    saved = explain(made("masks", recompute=False), x, t)
    assert str(explain(network, x, t)) == str(saved)

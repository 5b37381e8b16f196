"""Gradients that add up over micro-batches: those of the whole batch, whatever its rows count and however it is divided."""

from __future__ import annotations

import io
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from handgrad import (
    SGD,
    AdamW,
    BatchNorm,
    BinaryCrossEntropy,
    ConfigurationError,
    Dropout,
    Embedding,
    HalfSquaredError,
    LayerNorm,
    Linear,
    Loss,
    MeanSquaredError,
    Network,
    Repeat,
    SelfAttention,
    SoftmaxCrossEntropy,
    Tanh,
    TrainingError,
    train,
)
from handgrad.engines import ENGINES, Epoch
from handgrad.program import Loop
from handgrad.program.folding import render_folded

ROWS, TIMES, FEATURES, OUTPUTS = 11, 4, 5, 3

LOSSES: dict[str, tuple[Loss, bool]] = {  # and whether rows have weights
    "mean": (MeanSquaredError(), False),
    "sum": (HalfSquaredError(), False),
    "weighted sum": (HalfSquaredError(), True),
    "weighted mean": (SoftmaxCrossEntropy(), True),
    "ignored places": (SoftmaxCrossEntropy(ignored=-100), False),
    "class weights": (SoftmaxCrossEntropy(class_weight=[0.5, 2.0, 3.0], ignored=0), True),
    "smoothed": (BinaryCrossEntropy(smoothing=0.1, outputs="sum"), True),
}


def batch(loss: Loss, *, weighted: bool) -> dict[str, Any]:
    generator = np.random.default_rng(5)
    x = generator.normal(size=(ROWS, TIMES, FEATURES))
    t: Any = generator.normal(size=(ROWS, TIMES, OUTPUTS))
    if loss.task == "classification":
        t = generator.integers(0, OUTPUTS, (ROWS, TIMES))
        if loss.ignored is not None:  # type: ignore[attr-defined]
            t[:5] = loss.ignored  # type: ignore[attr-defined] # all of the first micro-batch, too
            t[7, 1:] = loss.ignored  # type: ignore[attr-defined]
    if loss.task == "labels":
        t = (t > 0).astype(float)
    w = generator.uniform(0.1, 3, (ROWS, TIMES))
    return {"x": x, "t": t} | ({"w": w} if weighted else {})


def network(loss: Loss) -> Network:
    layers = (
        Linear(FEATURES, FEATURES),
        LayerNorm(),
        SelfAttention(FEATURES, 1),
        Tanh(),
        Linear(FEATURES, OUTPUTS),
    )
    return Network(*layers, loss=loss, inputs=(TIMES, FEATURES), dtype="float64")


@pytest.mark.parametrize("engine", ["reference", "compiled", pytest.param("jax", marks=pytest.mark.peers)])
@pytest.mark.parametrize("name", LOSSES)
def test_loss_and_gradients_are_those_of_the_whole_batch(name: str, engine: str) -> None:
    loss, weighted = LOSSES[name]
    given, made = batch(loss, weighted=weighted), network(loss)
    whole = made.program(SGD(), weighted=weighted)
    expected = ENGINES[engine]().bind(whole.without_updates(), made.arrays).run(**given)
    for size in (1, 4, ROWS, ROWS + 1):
        program = made.program(SGD(), weighted=weighted, micro_batch=size)
        arrays = made.arrays | {slot: np.zeros(shape) for slot, shape in program.slots.items()}
        arrays = {key: array.copy() for key, array in arrays.items()}
        found = ENGINES[engine]().bind(program, arrays).run(**given, learning_rate=0.1)
        assert (
            found.keys() == expected.keys() == {"total", "count", "loss"} | {f"d{p}" for p in made.parameters}
        )
        for key, value in expected.items():
            np.testing.assert_allclose(
                found[key], value, rtol=1e-9, atol=1e-12, err_msg=f"{key}, {size} rows"
            )


@pytest.mark.parametrize("engine", ["reference", "compiled", pytest.param("jax", marks=pytest.mark.peers)])
def test_a_training_is_that_of_whole_batches(engine: str) -> None:
    """With clipping, moments that remember and a short last batch; validation and history as always."""
    ends = []
    for size in (None, 2):
        made = network(SoftmaxCrossEntropy(ignored=0))
        given = batch(SoftmaxCrossEntropy(), weighted=True)
        history = train(
            made, given["x"], given["t"], sample_weight=given["w"], validation=0.2, epochs=3, batch_size=5,
            micro_batch=size, optimiser=AdamW(0.01, clip_norm=0.1), engine=engine,
        )  # fmt: skip
        assert history.facts["engine"] == engine
        ends.append(dict(made.parameters) | {"losses": [record.loss for record in history.epochs]})
    for key, value in ends[0].items():
        np.testing.assert_allclose(ends[1][key], value, rtol=1e-7, atol=1e-10, err_msg=key)


@pytest.mark.parametrize("engine", ["compiled", pytest.param("jax", marks=pytest.mark.peers)])
def test_masks_and_statistics_are_each_micro_batch_s_own_on_every_engine(engine: str) -> None:
    """Two micro-batches of one step draw two masks; running statistics take in both."""
    generator = np.random.default_rng(0)
    x, t = generator.normal(size=(2, 10, FEATURES))
    ends = []
    for name in ("reference", engine):
        block = Linear(FEATURES, FEATURES, bias=False), BatchNorm(), Tanh(), Dropout(0.4)
        made = Network(Repeat(*block, times=2, recompute=True), loss=MeanSquaredError(), dtype="float64")
        program = made.program(SGD(0.1), micro_batch=4)
        arrays = {**made.arrays, **{slot: np.zeros(shape) for slot, shape in program.slots.items()}}
        bound = ENGINES[name]().bind(program.keeping("total", "count"), arrays)
        sums = bound.epoch(Epoch({"x": x, "t": t}, np.arange(10), 6, np.full(2, 0.01), 3, 7))
        ends.append({**arrays, "sums": np.array(sums)})
    for key, value in ends[0].items():
        np.testing.assert_allclose(ends[1][key], value, rtol=1e-9, atol=1e-12, err_msg=key)


def test_two_micro_batches_draw_two_masks() -> None:
    made = Network(Dropout(0.5), Linear(FEATURES, 1, bias=False), loss=HalfSquaredError(), dtype="float64")
    program = made.program(SGD(), micro_batch=1)
    arrays = {**made.arrays, **{slot: np.zeros(shape) for slot, shape in program.slots.items()}}
    x, t = np.ones((64, FEATURES)), np.zeros((64, 1))
    same = ENGINES["reference"]().bind(program, arrays).run(x=x, t=t, learning_rate=0.0, step=1, seed=0)
    one = (
        ENGINES["reference"]().bind(program, arrays).run(x=x[:1], t=t[:1], learning_rate=0.0, step=1, seed=0)
    )
    assert not np.isclose(same["total"], 64 * one["total"]), "64 rows with one mask have one loss"


def test_the_program_shows_the_loop_what_adds_up_and_one_update() -> None:
    made = Network(Linear(2, 1, bias=False), loss=MeanSquaredError())
    page = str(made.program(micro_batch=16)).splitlines()
    codes = [line[: line.find("  (")].rstrip() if "  (" in line else line for line in page]
    assert codes[2] == "for x, t in micro_batches(16, x, t):"
    assert codes[codes.index("  accumulate") :] == [
        "  accumulate",
        "    sum_total += total",
        "    sum_count += count",
        "    sum_dW1 += dW1",
        "",
        "update",
        "  total = 1.0 * sum_total",
        "  count = 1.0 * sum_count",
        "  dW1 = sum_dW1 / count",
        "  loss = total / count",
        "  W1 -= learning_rate * dW1",
        "  sum_total *= 0.0",
        "  sum_count *= 0.0",
        "  sum_dW1 *= 0.0",
    ]
    assert "    dloss = count" in codes
    folded = render_folded(made.program(micro_batch=16)).splitlines()
    assert folded[1:3] == ["for x, t in micro_batches(16, x, t):", "  forward"]


def test_a_penalty_of_the_batch_is_refused() -> None:
    made = Network(Linear(2, 1), loss=MeanSquaredError(l2=0.1))
    with pytest.raises(ConfigurationError, match=r"the penalty of l2 counts once for each batch"):
        made.program(micro_batch=4)


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_a_loss_that_is_not_finite_stops_before_the_update(engine: str) -> None:
    """In the second micro-batch of the second batch."""
    x, t = np.ones((8, 2)), np.zeros((8, 1))
    t[7] = 1e200
    made = Network(Linear(2, 1), loss=MeanSquaredError(), dtype="float64")
    before = {name: array.copy() for name, array in made.parameters.items()}
    with pytest.raises(TrainingError, match=r"step 2 \(batch 2 of 2\)"):
        train(made, x, t, epochs=1, batch_size=4, micro_batch=2, shuffle=False, engine=engine)
    for name, array in before.items():
        assert np.array_equal(made.parameters[name], array), "those of the last finished epoch"


def test_the_script_has_the_loop_and_trains_as_train_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = np.random.default_rng(0)
    x, t = generator.integers(0, 7, (10, 3)), generator.integers(0, OUTPUTS, (10, 3))
    layers = Embedding(7, FEATURES), Dropout(0.3), Linear(FEATURES, OUTPUTS)
    made = Network(*layers, loss=SoftmaxCrossEntropy(), inputs=(3,), dtype="float64")
    script = made.write(SGD(0.1), Loop(epochs=2, batch_size=4, micro_batch=3))
    monkeypatch.chdir(tmp_path)
    np.savez("data.npz", x=x, t=t)
    Path("train.py").write_text(script)
    monkeypatch.setattr(sys, "argv", ["train.py"])
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    runpy.run_path("train.py", run_name="__main__")
    train(made, x, t, epochs=2, batch_size=4, micro_batch=3, optimiser=SGD(0.1), engine="reference")
    with np.load("weights.npz") as weights:
        for name, array in made.parameters.items():
            assert np.array_equal(weights[name], array), name

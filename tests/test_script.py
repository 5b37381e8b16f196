"""The stand-alone script: NumPy alone gives the reference engine's losses and weights, bit for bit."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from handgrad import (
    GELU,
    GRU,
    LSTM,
    RNN,
    SGD,
    Adam,
    AdamW,
    BatchNorm,
    BinaryCrossEntropy,
    ConfigurationError,
    Constant,
    Cosine,
    Dropout,
    Embedding,
    HalfSquaredError,
    Huber,
    Last,
    LayerNorm,
    Linear,
    Loop,
    MeanSquaredError,
    Network,
    OneCycle,
    Optimiser,
    ReLU,
    Residual,
    RMSProp,
    SoftmaxCrossEntropy,
    Standardise,
    StepDecay,
    Tanh,
    train,
)
from handgrad.layers import Schedule
from handgrad.training.metrics import measure_metric

from .conftest import Command

Array = NDArray[Any]

ROWS, FEATURES, CLASSES = 27, 5, 3

# Runs a script as `python train.py` does, and reports what it imported besides Python's own modules.
RUNNER = """
import runpy, sys
before = set(sys.modules)
runpy.run_path(sys.argv.pop(1), run_name="__main__")
tops = {name.partition(".")[0] for name in set(sys.modules) - before if hasattr(sys.modules[name], "__file__")}
print("imported", *sorted(tops - sys.stdlib_module_names))
"""


@dataclass
class Case:
    """A network and how it is trained; ``data`` is what comes with its rows."""

    network: Network
    data: dict[str, Array]
    optimiser: Optimiser
    batch_size: int = 8  # of 27 rows: the last batch has 3
    schedule: Schedule = field(default_factory=Constant)
    shuffle: bool = True
    seed: int = 5


def _draw(*shape: int) -> Array:
    return np.random.default_rng(0).normal(size=shape) * 3 + 1


def _classes(rows: int = ROWS) -> Array:
    return np.random.default_rng(1).integers(0, CLASSES, rows)


def _cases() -> dict[str, Case]:
    x, t = _draw(ROWS, FEATURES), _classes()
    w = np.random.default_rng(2).uniform(0, 2, ROWS)
    index = np.random.default_rng(3).integers(0, 9, ROWS)
    words = np.random.default_rng(4).integers(0, 9, (ROWS, 6))
    said = np.random.default_rng(5).integers(-1, CLASSES, (ROWS, 6))
    yes = np.random.default_rng(6).integers(0, 2, (ROWS, 2))
    value = x[:, :1] - x[:, 1:2] ** 2
    return {
        "plain": Case(
            Network(Linear(FEATURES, 7), ReLU(), Linear(7, CLASSES), loss=SoftmaxCrossEntropy()),
            {"x": x, "t": t},
            SGD(0.1),
        ),
        "everything": Case(
            Network(
                Standardise(),
                Linear(FEATURES, 11),
                BatchNorm(),
                ReLU(),
                Dropout(0.3),
                Residual(Linear(11, 11, bias=False), LayerNorm(), Tanh(), Dropout(0.2)),
                Linear(11, CLASSES, layout="out_in"),
                loss=SoftmaxCrossEntropy(smoothing=0.1),
                seed=3,
            ),
            {"x": x, "t": t},
            AdamW(0.02, weight_decay=0.05, clip_norm=0.5),
            schedule=OneCycle(),
        ),
        "momentum": Case(
            Network(Linear(FEATURES, 7), Tanh(), Linear(7, 1), loss=MeanSquaredError()),
            {"x": x, "t": value[:, 0]},
            SGD(0.01, momentum=0.9, nesterov=True),
        ),
        "labels": Case(
            Network(Linear(FEATURES, 7), Tanh(), Linear(7, 2), loss=BinaryCrossEntropy([2.0, 0.5])),
            {"x": x, "t": yes},
            RMSProp(0.01, weight_decay=0.1),
        ),
        "weighted": Case(
            Network(Standardise(over="all"), Linear(FEATURES, 1), loss=HalfSquaredError()),
            {"x": x, "t": value, "w": w},
            SGD(0.01),
        ),
        "embedding": Case(
            Network(
                Embedding(9, 4),
                Linear(4, CLASSES),
                inputs=(),
                loss=SoftmaxCrossEntropy(class_weight=[1, 2, 0.5]),
            ),
            {"x": index, "t": t, "w": w},
            Adam(0.03),
            schedule=StepDecay(every=1, factor=0.5),
        ),
        "words": Case(
            Network(Embedding(9, 4), Linear(4, CLASSES), inputs=6, loss=SoftmaxCrossEntropy(ignored=-1)),
            {"x": words, "t": said},
            Adam(0.03),
            shuffle=False,
        ),
        "recurrence": Case(
            Network(
                Embedding(9, 4),
                LSTM(4, 5),
                GRU(5, 3),
                RNN(3, 4),
                Last(),
                Linear(4, CLASSES),
                inputs=6,
                loss=SoftmaxCrossEntropy(),
            ),
            {"x": words, "t": t},
            Adam(0.03),
        ),
        "float64": Case(
            Network(Linear(FEATURES, 7), GELU(), Linear(7, 1), loss=Huber(0.3), dtype="float64"),
            {"x": x.astype(np.float32), "t": value},
            Adam(0.01),
            batch_size=ROWS + 5,
            schedule=Cosine(warmup=1, final=1e-4),
        ),
    }


def run_script(folder: Path, data: dict[str, Array], script: str) -> tuple[list[str], dict[str, Array]]:
    """Run a script in an isolated Python, and return the lines it prints and the arrays it leaves."""
    np.savez(folder / "data.npz", **data)
    (folder / "train.py").write_text(script, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-I", "-W", "error", "-c", RUNNER, "train.py"],
        cwd=folder, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    with np.load(folder / "weights.npz") as file:
        return done.stdout.splitlines(), dict(file)


@pytest.mark.parametrize("name", _cases())
def test_script_gives_the_reference_engines_numbers(name: str, tmp_path: Path) -> None:
    """After two epochs every loss and every weight of the script is `train`'s, bit for bit, and only NumPy ran."""
    case = _cases()[name]
    loop = Loop(2, case.batch_size, case.seed, case.shuffle, case.schedule)
    script = case.network.write(case.optimiser, loop, weighted="w" in case.data)
    (*epochs, imported), weights = run_script(tmp_path, case.data, script)
    start = {name: array.copy() for name, array in case.network.arrays.items()}
    history = train(
        case.network, case.data["x"], case.data["t"], sample_weight=case.data.get("w"), epochs=2,
        batch_size=case.batch_size, optimiser=case.optimiser, schedule=case.schedule, seed=case.seed,
        shuffle=case.shuffle, engine="reference",
    )  # fmt: skip
    assert epochs == [f"epoch {record.epoch}  loss {record.loss!r}" for record in history.epochs]
    assert imported == "imported numpy"
    for array_name, array in case.network.arrays.items():
        assert weights[array_name].dtype == array.dtype
        assert weights[array_name].tobytes() == array.tobytes(), array_name
    assert any((case.network.parameters[name] != start[name]).any() for name in case.network.parameters)


@pytest.mark.parametrize("name", ["everything", "labels", "momentum"])
def test_script_scores_the_test_rows(name: str, tmp_path: Path) -> None:
    """With x_test and t_test the script ends with the score of the trained network."""
    case = _cases()[name]
    x, t = case.data["x"], case.data["t"]
    script = case.network.write(case.optimiser, Loop(2, case.batch_size, schedule=case.schedule))
    lines, _ = run_script(tmp_path, {"x": x[:20], "t": t[:20], "x_test": x[20:], "t_test": t[20:]}, script)
    train(
        case.network, x[:20], t[:20], epochs=2, batch_size=8, optimiser=case.optimiser, schedule=case.schedule
    )
    answers = case.network.predict(x[20:])
    targets = case.network.check_targets(t[20:], 7)
    if name == "momentum":
        score = f"test root mean squared error {np.sqrt(((answers - targets) ** 2).mean()):.6g}"
    else:
        assert case.network.loss is not None
        score = f"test accuracy {measure_metric(case.network.loss, answers, targets):.4f}"
    assert lines[-2] == score


def test_written_script_trains_as_the_command(tmp_path: Path, handgrad: Command) -> None:
    """`handgrad write` and `python train.py` print the losses that `handgrad train` records, on the same NumPy."""
    settings = ["--hidden", "13", "--epochs", "2", "--dropout", "0.2", "--batch-size", "50", "--seed", "4"]
    settings += ["--optimiser", "SGD", "--learning-rate", "0.05", "--schedule", "OneCycle"]
    written = handgrad("write", "digits", *settings, "--out", "written")
    to_run = ["--engine", "reference", "--out", "run", "--json"]
    trained = json.loads(handgrad("train", "digits", *settings, *to_run).stdout)
    assert written.stdout == "wrote written/train.py and written/data.npz: cd written && python train.py\n"
    done = subprocess.run(
        [sys.executable, "-I", "train.py"],
        cwd=tmp_path / "written", capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    history = (tmp_path / "run" / "history.jsonl").read_text().splitlines()[1:]
    losses = [f"epoch {k}  loss {json.loads(line)['loss']!r}" for k, line in enumerate(history, 1)]
    assert done.stdout.splitlines() == [*losses, f"test accuracy {trained['test_accuracy']:.4f}"]


def test_a_loop_that_is_not_told_otherwise_is_that_of_train() -> None:
    """Epochs, rows at a time, seed, shuffling, and a rate that stays."""
    usual, loop = inspect.signature(train).parameters, Loop()
    for name in ("epochs", "batch_size", "seed", "shuffle"):
        assert getattr(loop, name) == usual[name].default, name
    assert loop.schedule == Constant()


def test_script_says_what_its_data_holds() -> None:
    network = Network(Linear(4, 3), loss=SoftmaxCrossEntropy())
    assert "The file holds x (rows first) and t; with x_test" in network.write()
    assert "The file holds x (rows first) and t and w; with x_test" in network.write(weighted=True)


def test_script_leaves_out_what_the_answers_do_not_need() -> None:
    """A class weight is kept for training, and is no argument of the script's predict."""
    network = Network(Linear(4, 3), loss=SoftmaxCrossEntropy(class_weight=[1, 2, 3]))
    script = network.write(Adam())
    assert "NEEDED = ('W1', 'b1')" in script
    assert "def predict(x, W1, b1):" in script


def test_script_holds_no_large_array() -> None:
    """An array of more than 64 numbers that no initialiser draws is refused, not printed."""
    network = Network(Linear(4, 65), loss=SoftmaxCrossEntropy(class_weight=[1.0] * 65))
    with pytest.raises(ConfigurationError, match="a script cannot hold an array of more than 64 numbers"):
        network.write()


def test_a_network_without_a_loss_has_no_script() -> None:
    """There is nothing to train."""
    with pytest.raises(ConfigurationError, match="the network has no loss"):
        Network(Linear(4, 3)).write()

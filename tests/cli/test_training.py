"""`handgrad train`: what it prints, what it leaves, what its settings do."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from handgrad import History
from handgrad.data import digits, load, split
from handgrad.runs import load_run, read_snapshots
from handgrad.training.metrics import measure_metric

from ..conftest import Command

SMALL = ["--hidden", "9", "--epochs", "2"]


def test_the_default_network_reads_digits(handgrad: Command, tmp_path: Path) -> None:
    """`handgrad train` alone: 97 of 100 test digits or more, in a run folder of its own."""
    done = handgrad("train")
    table, confusion = done.stdout.split("\n\n")
    results = dict(re.split("  +", line.strip()) for line in table.splitlines())
    assert [line.split()[0] for line in confusion.splitlines()] == ["targets", "recall", *"0123456789"]
    assert float(results["test accuracy"]) >= 0.97
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.startswith("digits-20")
    assert results["run"] == f"runs/{folder.name}"
    assert done.stderr == "digits: 1,258 training rows · network 64 → 256 → 10 · 19,210 parameters\n"
    run = load_run(folder)
    data, rows = digits(), split(digits()).test
    assert run.network.loss is not None
    accuracy = measure_metric(run.network.loss, run.network.predict(data.x[rows]), data.t[rows])
    assert accuracy == run.results["test_accuracy"] >= 0.97


@pytest.mark.mnist
def test_mnist_in_five_epochs(handgrad: Command) -> None:
    """784 → 128 → 10 with ReLU and Adam reads 97 of 100 test digits or more."""
    settings = ["--hidden", "128", "--epochs", "5", "--batch-size", "128", "--learning-rate", "0.001"]
    results = json.loads(handgrad("train", "mnist", *settings, "--json").stdout)
    assert results["test_accuracy"] >= 0.97


def test_json_is_one_object_and_nothing_else(handgrad: Command, tmp_path: Path) -> None:
    """Standard output is for the machine; standard error has a line of JSON an epoch, as it is finished."""
    done = handgrad("train", *SMALL, "--json", "--out", "run")
    assert done.stdout.count("\n") == 1
    results = json.loads(done.stdout)
    head, *lines = map(json.loads, (tmp_path / "run" / "history.jsonl").read_text().splitlines())
    assert list(map(json.loads, done.stderr.splitlines())) == lines
    facts = head["facts"]
    scored = json.loads(handgrad("evaluate", "run", "--json").stdout)
    assert results == {
        "epochs": 2,
        "stopped": "finished",
        "kept_epoch": 2,
        "training_loss": lines[-1]["loss"],
        "validation_loss": lines[-1]["validation_loss"],
        "test_accuracy": load_run(tmp_path / "run").results["test_accuracy"],
        "test_balanced_accuracy": scored["balanced_accuracy"],
        "test_f1": scored["f1"],
        "engine": "compiled",
        "blas": facts["blas"],
        "threads": facts["threads"],
        "rows_per_second": facts["rows_per_second"],
        "run": "run",
        "explanation": "run/explanation.html",
        "heavy_tails": None,
        "warning": None,
        "remedy": None,
    }


def test_nothing_moves_and_nothing_is_coloured_in_a_pipe(handgrad: Command) -> None:
    """No bar, no carriage return, no escape sequence."""
    done = handgrad("train", *SMALL)
    assert "\x1b" not in done.stdout + done.stderr
    assert "\r" not in done.stdout + done.stderr
    assert done.stderr.count("\n") == 1


def test_a_run_folder_has_everything(handgrad: Command, tmp_path: Path) -> None:
    """Settings complete, every epoch, weights, a picture, the page; and nothing else."""
    done = handgrad("train", *SMALL, "--dropout", "0.2", "--out", "deep/in/run")
    folder = tmp_path / "deep" / "in" / "run"
    names = [
        "checkpoint.safetensors",
        "config.toml",
        "evaluation.png",
        "explanation.html",
        "history.csv",
        "history.jsonl",
        "learning_curve.png",
        "run.json",
        "weights.safetensors",
    ]
    table = done.stdout.split("\n\n")[0]
    assert table.splitlines()[-1].split() == ["explanation", "deep/in/run/explanation.html"]
    assert (folder / "explanation.html").read_text(encoding="utf-8").lower().startswith("<!doctype html>")
    assert sorted(path.name for path in folder.iterdir()) == names
    assert (folder / "learning_curve.png").read_bytes().startswith(b"\x89PNG")
    history = History.from_json_lines((folder / "history.jsonl").read_text())
    assert [record.epoch for record in history.epochs] == [1, 2]
    settings = tomllib.loads((folder / "config.toml").read_text())
    assert settings["network"] == {
        "hidden": [9], "activation": "relu", "normalisation": "none", "dropout": 0.2, "layers": [], "dtype": "float32",
    }  # fmt: skip
    head = json.loads((folder / "run.json").read_text())
    assert (head["format"], head["source"], head["task"]) == (2, "digits", "classification")


def test_more_moments_than_epochs_are_reported(handgrad: Command, tmp_path: Path) -> None:
    options = ("train", "moons", "--hidden", "3", "--epochs", "2", "--out", "few", "--snapshots", "20")
    assert "3 snapshots: of the start, and after each of 2 epochs\n" in handgrad(*options).stderr
    assert len(read_snapshots(tmp_path / "few")) == 3


def test_moments_are_recorded_when_asked_for(handgrad: Command, tmp_path: Path) -> None:
    """As many as are wanted, the start and the end among them; the weights are those of a training without."""
    handgrad("train", "moons", "--hidden", "9", "--epochs", "7", "--snapshots", "4", "--out", "watched")
    handgrad("train", "moons", "--hidden", "9", "--epochs", "7", "--out", "alone")
    watched, alone = tmp_path / "watched", tmp_path / "alone"
    moments = read_snapshots(watched)
    steps = -(-json.loads((watched / "history.jsonl").read_text().splitlines()[0])["facts"]["rows"] // 32)
    assert [(moment.epoch, moment.step) for moment in moments] == [
        (epoch, epoch * steps) for epoch in (0, 2, 5, 7)
    ]  # fmt: skip
    assert all(moment.boundary is not None for moment in moments)
    assert moments[-1].loss < moments[0].loss
    assert read_snapshots(alone) == ()
    assert "weights after training, 32 of the training rows" in (watched / "explanation.html").read_text(
        "utf-8"
    )
    assert (watched / "weights.safetensors").read_bytes() == (alone / "weights.safetensors").read_bytes()


def test_one_moment_is_no_training(handgrad: Command) -> None:
    """Nor is less; the error says what may be given."""
    assert (
        "'--snapshots': 1 is not in the range 2<=x<=1000"
        in handgrad("train", "--snapshots", "1", code=2).stderr
    )


def test_the_settings_of_a_run_train_it_again(handgrad: Command, tmp_path: Path) -> None:
    """A run's own config.toml gives the same weights, bit for bit."""
    settings = ["--hidden", "9,5", "--activation", "tanh", "--normalisation", "batch", "--dropout", "0.1"]
    settings += [
        "--optimiser",
        "AdamW",
        "--learning-rate",
        "0.01",
        "--clip-norm",
        "0.5",
        "--schedule",
        "Cosine",
    ]
    settings += [
        "--epochs",
        "3",
        "--batch-size",
        "50",
        "--seed",
        "3",
        "--validation",
        "0.2",
        "--patience",
        "2",
    ]
    handgrad("train", "moons", *settings, "--out", "first")
    handgrad("train", "--config", "first/config.toml", "--out", "second")
    first, second = (tmp_path / name for name in ("first", "second"))
    for name in ("weights.safetensors", "config.toml", "run.json"):
        assert (first / name).read_bytes() == (second / name).read_bytes()
    network = load_run(first).network
    assert repr(network).startswith(
        "Network(Standardise(), Linear(2, 9, initialiser='glorot_uniform'), BatchNorm(), Tanh(), Dropout(rate=0.1), "
    )


def test_trainings_that_end_together_have_a_folder_each(handgrad: Command, tmp_path: Path) -> None:
    """Two runs of the same data in the same second do not overwrite each other."""
    names = {json.loads(handgrad("train", "xor", *SMALL, "--json").stdout)["run"] for _ in range(3)}
    assert len(names) == 3
    assert all(load_run(tmp_path / name) for name in names)


def test_early_stopping_says_which_epoch_is_kept(at: Command, shop: Path) -> None:
    """Losses and score are those of the weights in the folder."""
    settings = ["--hidden", "64", "--epochs", "60", "--learning-rate", "0.05", "--patience", "2"]
    done = at("train", "three.csv", "--target", "kept", *settings, "--json", "--out", "runs/stopped")
    results = json.loads(done.stdout)
    history = History.from_json_lines((shop / "runs" / "stopped" / "history.jsonl").read_text())
    losses = [record.validation_loss or 0.0 for record in history.epochs]
    best = int(np.argmin(losses))
    assert (results["stopped"], results["epochs"], results["kept_epoch"]) == ("early", best + 3, best + 1)
    assert results["validation_loss"] == losses[best]
    assert results["training_loss"] == history.epochs[best].loss
    data = load(str(shop / "three.csv"), target="kept")
    network, rows = load_run(shop / "runs" / "stopped").network, split(data).validation
    p = network.predict(data.x[rows])
    assert -np.log(p[np.arange(len(rows)), data.t[rows]]).mean() == pytest.approx(losses[best], rel=1e-5)


OPTIONS: dict[str, tuple[str, str, Any]] = {
    "--target": ("a,b", "data.target", ["a", "b"]),
    "--task": ("regression", "data.task", "regression"),
    "--drop": ("c,d", "data.drop", ["c", "d"]),
    "--only": ("u,c,v", "data.only", ["u", "c", "v"]),
    "--test": ("0.25", "data.test", 0.25),
    "--validation": ("0.15", "data.validation", 0.15),
    "--standardise": ("all", "data.standardise", "all"),
    "--standardise-targets": ("false", "data.standardise_targets", False),
    "--hidden": ("12,7", "network.hidden", [12, 7]),
    "--activation": ("leaky-relu", "network.activation", "leaky-relu"),
    "--normalisation": ("layer", "network.normalisation", "layer"),
    "--dropout": ("0.3", "network.dropout", 0.3),
    "--loss": ("Huber", "network.loss", "Huber"),
    "--dtype": ("float64", "network.dtype", "float64"),
    "--epochs": ("3", "training.epochs", 3),
    "--batch-size": ("8", "training.batch_size", 8),
    "--optimiser": ("SGD", "training.optimiser.type", "SGD"),
    "--learning-rate": ("0.02", "training.optimiser.learning_rate", 0.02),
    "--momentum": ("0.8", "training.optimiser.momentum", 0.8),
    "--weight-decay": ("0.01", "training.optimiser.weight_decay", 0.01),
    "--clip-norm": ("2", "training.optimiser.clip_norm", 2.0),
    "--schedule": ("OneCycle", "training.schedule", "OneCycle"),
    "--patience": ("2", "training.patience", 2),
    "--seed": ("7", "training.seed", 7),
    "--engine": ("reference", "training.engine", "reference"),
}
"""Every option: what is given, the setting it sets, to what."""


def test_every_option_reaches_its_setting(handgrad: Command, tmp_path: Path) -> None:
    """All of them at once; the run keeps them, and the network is made of them."""
    x = np.random.default_rng(0).normal(size=(40, 7)).round(2)
    rows = "\n".join(",".join(map(str, row)) for row in x)
    (tmp_path / "data.csv").write_text(f"u,a,b,c,d,e,v\n{rows}\n")
    given = [part for option, (value, _, _) in OPTIONS.items() for part in (option, value)]
    handgrad("train", "data.csv", *given, "--out", "run")
    settings = tomllib.loads((tmp_path / "run" / "config.toml").read_text())
    for option, (_, name, expected) in OPTIONS.items():
        value = settings
        for key in name.split("."):
            value = value[key]
        assert value == expected, option
    assert repr(load_run(tmp_path / "run").network) == (
        "Network(Standardise(over='all'), Linear(2, 12, initialiser='glorot_uniform'), LayerNorm(), LeakyReLU(), "
        "Dropout(rate=0.3), Linear(12, 7), LayerNorm(), LeakyReLU(), Dropout(rate=0.3), "
        "Linear(7, 2, initialiser='glorot_uniform'), loss=Huber())"
    )


def test_every_option_is_in_the_table_above(handgrad: Command) -> None:
    """No option of `handgrad train` is without a test of where it goes."""
    words = {word.rstrip(",") for word in handgrad("train", "--help").stdout.split() if word.startswith("--")}
    of_texts = {"--context", "--width", "--heads", "--blocks"}  # which tests/cli/test_text.py sets
    others = of_texts | {
        *(
            "--cluster",
            "--no-cluster",
            "--coordinator",
            "--process",
            "--processes",
            "--join-minutes",
            "--devices",
        ),  # tests/engines/test_cluster.py
        "--micro-batch",  # tests/program/test_micro_batches.py
        "--class-weight",
        "--overwrite",
        "--resume",
        "--checkpoint-minutes",
        "--tensorboard",
        "--snapshots",
    }
    assert words - {"--config", "--out", "--json", "--help"} - others == set(OPTIONS)


def test_the_learning_rate_is_found_and_recorded(handgrad: Command, tmp_path: Path) -> None:
    """In one line, in the settings as a number, with a picture; a training with that number is the same."""
    done = handgrad(
        "train", "moons", *SMALL, "--optimiser", "SGD", "--learning-rate", "find", "--json", "--out", "run"
    )
    rate = json.loads(done.stdout)["learning_rate"]
    settings = tomllib.loads((tmp_path / "run" / "config.toml").read_text())["training"]["optimiser"]
    assert settings == {"type": "SGD", "learning_rate": rate}
    assert (tmp_path / "run" / "learning_rate.png").read_bytes().startswith(b"\x89PNG")
    said = handgrad(
        "train", "moons", *SMALL, "--optimiser", "SGD", "--learning-rate", "find", "--out", "run2"
    ).stderr
    assert re.fullmatch(
        rf"learning rate {rate:g}, found by a range test of \d+ steps from 1e-06 to \S+, drawn in run2/learning_rate.png",
        said.splitlines()[1],
    )
    handgrad("train", "moons", *SMALL, "--optimiser", "SGD", "--learning-rate", rate, "--out", "given")
    weights = [(tmp_path / name / "weights.safetensors").read_bytes() for name in ("run", "run2", "given")]
    assert weights[0] == weights[1] == weights[2]
    assert not (tmp_path / "given" / "learning_rate.png").exists()
    handgrad("train", "--config", "run/config.toml", "--out", "repeated")
    refused = handgrad("train", "--resume", "run", "--learning-rate", "find", code=1).stderr
    assert refused.startswith("Error: --learning-rate: only a new training finds it\n")
    assert "'fast' is not a valid float" in handgrad("train", "--learning-rate", "fast", code=2).stderr


def test_balanced_classes_find_the_rare_one(handgrad: Command, tmp_path: Path) -> None:
    """One row of thirty is a yes, and cannot be told for certain: alone, the network says no nearly always."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 3)).round(3)
    t = np.where(x[:, 0] + x[:, 1] + rng.normal(size=3000) > 3.2, "yes", "no")
    lines = [",".join(map(str, [*row, answer])) for row, answer in zip(x, t, strict=True)]
    (tmp_path / "rare.csv").write_text("\n".join(["a,b,c,t", *lines]) + "\n")
    small, found = ["--hidden", "8", "--epochs", "60", "--learning-rate", "0.01", "--batch-size", "256"], {}
    for how in (None, "balanced", "1,30"):
        more = ["--class-weight", how] if how else []
        handgrad("train", "rare.csv", "--target", "t", *small, *more, "--out", f"{how}")
        network = load_run(tmp_path / f"{how}").network
        found[how] = (network.predict(x[t == "yes"]).argmax(axis=1) == 1).mean()
    assert found[None] < 0.4
    assert found["balanced"] > 0.8
    assert found["1,30"] > 0.8


@pytest.mark.parametrize(
    ("source", "more"),
    [
        ("pets.csv", ["--target", "kept"]),
        ("pets.npz", []),
        ("x.npy", ["--target", "t.npy", "--task", "classification"]),
        ("pixels", ["--validation", "0"]),
        ("spirals", []),
    ],
)
def test_every_kind_of_source_trains_and_is_scored_again(
    at: Command, shop: Path, source: str, more: list[str]
) -> None:
    """`handgrad evaluate` finds the test rows of the run again, and gives the same score."""
    out = f"runs/of-{source}"
    trained = json.loads(at("train", source, *more, *SMALL, "--json", "--out", out).stdout)
    scored = json.loads(at("evaluate", out, "--json").stdout)
    assert scored["accuracy"] == trained["test_accuracy"]
    assert scored["rows"] == {"pixels": 10, "spirals": 200}.get(source, 12)


def test_without_test_rows_there_is_no_score(handgrad: Command, tmp_path: Path) -> None:
    """Nor a validation loss without validation rows; evaluate says that there is nothing to score on."""
    done = handgrad("train", "moons", *SMALL, "--test", "0", "--validation", "0", "--out", "run")
    names = [re.split("  +", line.strip())[0] for line in done.stdout.splitlines()]
    assert names == [
        "epochs", "stopped", "kept epoch", "training loss", "engine", "rows per second", "run", "explanation"
    ]  # fmt: skip
    problem = handgrad("evaluate", "run", code=1).stderr
    assert problem == "Error: run: there are no test rows\n  fix    name rows to score on\n"


def test_an_older_run_in_the_folder_is_replaced(handgrad: Command, tmp_path: Path) -> None:
    """Every file is the newer run's; other files in the folder stay."""
    handgrad("train", "moons", *SMALL, "--out", "run")
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    (tmp_path / "run" / "notes.txt").write_text("mine")
    handgrad("train", "spirals", "--hidden", "5", "--epochs", "3", "--out", "run", "--overwrite")
    assert (tmp_path / "run" / "notes.txt").read_text() == "mine"
    (tmp_path / "run" / "notes.txt").unlink()
    after = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    assert before.keys() == after.keys()
    assert all(before[name] != after[name] for name in before)
    assert load_run(tmp_path / "run").source == "spirals"


def test_files_have_the_permissions_the_user_asks_for(handgrad: Command, tmp_path: Path) -> None:
    """The umask decides who may read a run, as for every other file."""
    handgrad("train", "moons", *SMALL, "--out", "run")
    (tmp_path / "plain").write_text("")
    mode = (tmp_path / "plain").stat().st_mode
    assert {path.stat().st_mode for path in (tmp_path / "run").iterdir()} == {mode}

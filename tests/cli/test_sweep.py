"""Sweeps: every combination is an ordinary training; what fails, is killed or interrupted loses nothing of the others."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import joblib
import pytest
from joblib.parallel import ParallelBackendBase, register_parallel_backend

from handgrad.cli import group
from handgrad.cli.sweep import Member, combinations, show
from handgrad.configuration import Configuration
from handgrad.errors import HandgradNotice
from handgrad.runs import load_run

from ..conftest import Command, Server

SMALL = ["pets.csv", "--target", "kept", "--hidden", "9", "--batch-size", "16", "--validation", "0.3"]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1,1e-3", [1, 0.001]),
        ("[64],[64,32]", [[64], [64, 32]]),
        ("SGD,Adam", ["SGD", "Adam"]),
        ("default,balanced", [None, "balanced"]),
        ("relu, 'a,b'", ["relu", "'a", "b'"]),
        ("'a,b',\"c\"", ["a,b", "c"]),
        ('{type="Huber",delta=2.0},"a"', [{"type": "Huber", "delta": 2.0}, "a"]),
    ],
)
def test_values_are_toml_or_words(text: str, values: list[object]) -> None:
    assert [each["a.b"] for each in combinations([f"a.b={text}"]).values()] == values


def test_names_are_those_of_folders_and_no_two_are_the_same() -> None:
    over = ["training.optimiser.type=a/b,a-b", "training.schedule.type=..,x"]
    assert [*combinations(over)] == [
        f"training.optimiser.type={one},training.schedule.type={other}"
        for one in ("a%2Fb", "a-b")
        for other in ("..", "x")
    ]


def test_members_are_trainings_of_their_own_and_finished_ones_stay(at: Command, shop: Path) -> None:
    """The best comes first, one that fails is named, and only that one and new ones are trained when it goes on."""
    small = [*SMALL, "--epochs", "2"]
    at("train", *small, "--seed", "3", "--learning-rate", "0.02", "--out", "runs/alone")
    over = ["--over", "training.optimiser.learning_rate=0.02", "--out", "sweep", "--jobs", "2", "--seed", "3"]
    losses = ["--over", "network.loss=SoftmaxCrossEntropy,MeanSquaredError"]
    done = at("sweep", *small, *over, *losses, "--json", code=1)
    good, bad = json.loads(done.stdout)["runs"]
    name = "learning_rate=0.02,loss=SoftmaxCrossEntropy"
    assert good["run"] == f"sweep/{name}"
    assert good["settings"] == {
        "training.optimiser.learning_rate": 0.02,
        "network.loss": "SoftmaxCrossEntropy",
    }
    assert bad["error"] == "pets.csv holds classes, and MeanSquaredError() is for values"
    weights = shop / "sweep" / name / "weights.safetensors"
    assert weights.read_bytes() == (shop / "runs/alone/weights.safetensors").read_bytes()
    last = json.loads((shop / "runs/alone/history.jsonl").read_text().splitlines()[-1])
    for measured in ("validation_loss", "training_loss"):
        assert good[measured] == last[measured.removeprefix("training_")]
    assert good["validation_accuracy"] == last["validation_metric"]

    before = weights.stat().st_mtime_ns
    losses[-1] = "network.loss=SoftmaxCrossEntropy"
    done = at("sweep", *small, *over, *losses, "--json")
    assert "1 of 1 trainings are finished" in done.stderr
    assert json.loads(done.stdout) == {"runs": [good], "left": 0}
    assert weights.stat().st_mtime_ns == before
    refused = at("sweep", *small, *over, *losses, "--hidden", "8", code=1)
    assert (
        "network.hidden is [8], and the run in sweep/learning_rate=0.02,loss=SoftmaxCross" in refused.stderr
    )
    assert "fix    leave it out, or give another --out" in refused.stderr


def test_the_best_is_shown_first_and_what_failed_last(capsys: pytest.CaptureFixture[str]) -> None:
    def member(seed: int, result: dict[str, object]) -> Member:
        return Member(Path(f"runs/{seed}"), {"training.seed": seed}, Configuration(), result)

    results = [
        {"error": "ended by SIGKILL"},
        {"epochs": 4, "validation_loss": 0.3, "validation_accuracy": 0.75, "validation_roc_auc": 0.5},
        {},
        {"epochs": 5, "validation_loss": 0.2, "validation_accuracy": 0.75, "validation_roc_auc": 0.9},
        {"epochs": 6, "validation_loss": 0.9, "validation_accuracy": 1.0, "validation_roc_auc": 0.8},
    ]
    members = [member(seed, result) for seed, result in enumerate(results)]
    show(members, None, as_json=False)
    assert capsys.readouterr().out.splitlines() == [
        "seed  epochs  validation loss  validation accuracy  run",
        "   4       6              0.9                    1  runs/4",
        "   3       5              0.2                 0.75  runs/3",
        "   1       4              0.3                 0.75  runs/1",
        "   0                                                runs/0: failed: ended by SIGKILL",
    ]
    show(members, "roc_auc", as_json=False)
    head, *rows = capsys.readouterr().out.splitlines()
    assert head == "seed  epochs  validation loss  validation accuracy  validation roc auc  run"
    assert [row.split()[0] for row in rows] == ["3", "4", "1", "0"]
    show(members, "loss", as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert found["left"] == 1
    assert [each["run"] for each in found["runs"]] == ["runs/3", "runs/1", "runs/4", "runs/0"]
    with pytest.warns(
        HandgradNotice, match="--by r2: these trainings have no such score, but loss, accuracy, roc_auc"
    ):
        show(members, "r2", as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert [each["run"] for each in found["runs"]] == ["runs/4", "runs/3", "runs/1", "runs/0"]


def test_a_rare_class_is_found_by_the_score_that_counts_it(at: Command, shop: Path) -> None:
    """The scores of a training's validation rows are those of its weights, as `evaluate` has them for the test rows."""
    small = [*SMALL, "--epochs", "3", "--over", "training.optimiser.learning_rate=0.1,0.00001", "--out", "by"]
    done = at("sweep", *small, "--by", "balanced_accuracy", "--json")
    best, other = json.loads(done.stdout)["runs"]
    assert best["validation_balanced_accuracy"] > other["validation_balanced_accuracy"]
    own = load_run(shop / best["run"]).results
    assert own["validation_roc_auc"] == best["validation_roc_auc"]
    assert {"test_accuracy", "test_balanced_accuracy", "test_roc_auc", "validation_accuracy"} <= own.keys()
    assert own["validation_accuracy"] == best["validation_accuracy"]


def test_a_setting_may_stay_as_it_is(at: Command, shop: Path) -> None:
    """Its default, or the file's or option's value, is one of the values, though TOML has no word for it."""
    over = ["--over", "network.class_weight=default,balanced", "--out", "weights"]
    runs = json.loads(at("sweep", *SMALL, "--epochs", "1", *over, "--json").stdout)["runs"]
    assert {each["run"] for each in runs} == {
        f"weights/class_weight={value}" for value in ("default", "balanced")
    }
    settings = {
        each["run"].partition("=")[2]: (shop / each["run"] / "config.toml").read_text() for each in runs
    }
    assert 'class_weight = "balanced"' in settings["balanced"]
    assert "class_weight" not in settings["default"]


def children(process: int) -> dict[str, int]:
    """Return the processes that the threads of a process have started, by the last word of their commands' folder."""
    found = {}
    for path in Path(f"/proc/{process}/task").glob("*/children"):
        for each in path.read_text().split():
            words = Path(f"/proc/{each}/cmdline").read_text().split("\0")
            if "--out" in words:
                found[words[words.index("--out") + 1].rpartition("/")[2]] = int(each)
    return found


def test_a_killed_training_ends_alone_and_ctrl_c_saves_the_others(server: Server, shop: Path) -> None:
    command = ["sweep", *SMALL, "--epochs", "1000000", "--over", "training.seed=0,1,2", "--jobs", "2"]
    error = shop / "killed.err"
    sweep = server.start(shop, [*command, "--out", "killed"], [os.devnull, shop / "killed.out", error])
    histories = [shop / "killed" / f"seed={seed}" / "history.jsonl" for seed in range(3)]

    def wait_for(path: Path) -> None:
        while not path.exists():
            assert server.poll(sweep) is None, error.read_text()
            time.sleep(0.01)

    wait_for(histories[0])
    os.kill(children(sweep)["seed=0"], signal.SIGKILL)
    wait_for(histories[1])
    wait_for(histories[2])  # begun in place of the one that was killed
    started = children(sweep)
    os.kill(sweep, signal.SIGINT)
    assert server.wait(sweep) == 130
    assert "seed=0: failed: ended by SIGKILL" in error.read_text()
    assert "to go on, give the same command with --out killed" in error.read_text()
    for name, process in started.items():
        assert not Path(f"/proc/{process}").exists(), name
        assert (shop / "killed" / name / "checkpoint.safetensors").exists()
    assert started.keys() == {"seed=1", "seed=2"}


class ResultsAtTheEnd(ParallelBackendBase):  # type: ignore[misc] # joblib has no types
    """A backend as Ray's: it has no results before all are there."""

    def effective_n_jobs(self, n_jobs: int) -> int:
        """Train two at once."""
        return 2

    def submit(self, work: Callable[[], Any], callback: Callable[[Any], None]) -> Future[Any]:
        """Do the work here and now."""
        future: Future[Any] = Future()
        future.get = lambda timeout=None: future.result()  # type: ignore[attr-defined] # as of a pool
        future.set_result(work())
        callback(future)
        return future


def test_a_backend_that_returns_all_results_at_the_end_trains_a_configuration(
    shop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(shop)
    settings = (
        '[data]\nsource = "pets.csv"\ntarget = "kept"\n[network]\nhidden = [3]\n[training]\nepochs = 1\n'
    )
    Path("network.toml").write_text(settings)
    register_parallel_backend("at the end", ResultsAtTheEnd)
    command = "sweep network.toml --over training.seed=0,1 --out runs/at-the-end --json"
    with joblib.parallel_config("at the end"):
        code = group.main(command.split(), standalone_mode=False)
    out, err = capsys.readouterr()
    assert code == 0, err
    assert {run["settings"]["training.seed"] for run in json.loads(out)["runs"]} == {0, 1}
    assert err.count("validation loss") == 2


def test_two_configurations_are_refused(at: Command, shop: Path) -> None:
    done = at("sweep", "a.toml", "--config", "b.toml", "--over", "training.seed=0,1", code=1)
    assert done.stderr == (
        "Error: two configurations are given, a.toml and --config b.toml\n"
        "  fix    give one, and what differs as options\n"
    )

"""A training that goes on for longer than it was to, and a run that is replaced: nothing is lost on the way."""

from __future__ import annotations

import errno
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from handgrad import (
    SGD,
    Adam,
    BatchNorm,
    Checkpoints,
    ConfigurationError,
    Cosine,
    Dropout,
    History,
    Linear,
    MeanSquaredError,
    Network,
    ReLU,
    RunError,
    StepDecay,
    train,
)
from handgrad.errors import HandgradNotice, TrainingError
from handgrad.runs import Run, load_run, replace_run, save_run

from ..cli.test_stopping import Terminal
from ..conftest import EACH_ENGINE, Command, Server

RNG = np.random.default_rng(3)
X = RNG.normal(size=(47, 5))
T = X[:, :2] * [2, -1] + 0.1 * RNG.normal(size=(47, 2))
HOW: dict[str, Any] = {"batch_size": 6, "validation": 0.2, "seed": 5, "optimiser": Adam(0.02)}


def network() -> Network:
    layers = [Linear(5, 9), BatchNorm(), ReLU(), Dropout(0.3), Linear(9, 2)]
    return Network(*layers, loss=MeanSquaredError())


def trained(folder: Path | None, *, resume: bool = False, **more: Any) -> Any:
    """Return weights, history, why it ended and the best epoch."""
    made = network()
    checkpoints = None if folder is None else Checkpoints(folder, minutes=0, resume=resume)
    history = train(made, X, T, checkpoints=checkpoints, **HOW | more)
    records = [
        (r.epoch, r.loss, r.validation_loss, r.validation_metric, r.learning_rate) for r in history.epochs
    ]
    weights = {name: array.tobytes() for name, array in made.arrays.items()}
    return weights, records, history.stopped, history.best_epoch


@pytest.mark.parametrize("engine", EACH_ENGINE)
@pytest.mark.parametrize("schedule", [None, StepDecay(every=3)])
def test_a_finished_training_goes_on_as_if_it_had_been_longer(
    tmp_path: Path, engine: str, schedule: StepDecay | None
) -> None:
    """To the last bit, twice in a row, where the schedule does not depend on the number of epochs."""
    how = {"engine": engine, "schedule": schedule}
    trained(tmp_path, epochs=3, **how)
    trained(tmp_path, epochs=4, resume=True, **how)
    assert trained(tmp_path, epochs=9, resume=True, **how) == trained(None, epochs=9, **how)


def test_a_schedule_over_the_epochs_is_that_of_the_new_number_and_says_so(tmp_path: Path) -> None:
    """The rates so far are those of the shorter training; the notice has both of its last epoch."""
    trained(tmp_path, epochs=4, schedule=Cosine())
    with pytest.warns(HandgradNotice, match="the schedule depends on the number of epochs") as caught:
        _, records, *_ = trained(tmp_path, epochs=6, resume=True, schedule=Cosine())
    short, long = Cosine().rates(0.02, 4, 7)[6::7], Cosine().rates(0.02, 6, 7)[6::7]
    assert [record[-1] for record in records] == [*short, *long[4:]]
    assert f"of epoch 4 was {short[3]:.3g}, over 6 epochs it is {long[3]:.3g}" in str(caught[0].message)


def test_fewer_epochs_than_are_done_are_refused_and_as_many_change_nothing(tmp_path: Path) -> None:
    expected = trained(tmp_path, epochs=4)
    with pytest.raises(ConfigurationError, match="epochs is 3, and the training that is to go on has done 4"):
        trained(tmp_path, epochs=3, resume=True)
    assert trained(tmp_path, epochs=4, resume=True) == expected


def test_what_patience_ended_goes_on_with_more_patience(tmp_path: Path) -> None:
    """With the best weights so far, and the count of the epochs since; with the same patience it has ended."""
    how: dict[str, Any] = {"validation": (X[:9], -T[:9]), "epochs": 30}
    ended = trained(tmp_path, patience=4, **how)
    assert ended[2:] == ("early", 1)
    assert trained(tmp_path, resume=True, patience=4, **how | {"epochs": 40}) == ended
    longer = trained(tmp_path, resume=True, patience=9, **how)
    assert longer == trained(None, patience=9, **how)
    assert len(longer[1]) > len(ended[1])


def test_a_training_that_diverged_ends_at_its_last_finished_epoch_when_asked_to(tmp_path: Path) -> None:
    """Its state is saved; to go on is to diverge again, at the same step."""
    how: dict[str, Any] = {"optimiser": SGD(1.4), "validation": None, "batch_size": 24}
    errors = []
    for resume in (False, True):
        with pytest.raises(TrainingError) as caught:
            trained(tmp_path, epochs=200, resume=resume, **how)
        errors.append(caught.value.problem)
    assert errors[0] == errors[1]
    epochs = (int(errors[0].split()[1]) - 1) // 2
    assert epochs >= 1
    ended = trained(tmp_path, epochs=epochs, resume=True, **how)
    assert ended == trained(None, epochs=epochs, **how)


# -------------------------------------------------------------------------------------------- the command line

SMALL = ["--hidden", "5", "--seed", "3", "--dropout", "0.2", "--snapshots", "2", "--schedule", "Constant"]
LONG = ["moons", "--hidden", "5", "--epochs", "100000", "--out", "run"]


def contents(run: Path) -> dict[str, Any]:
    """Return all of a run that does not tell how long it took."""
    head, *epochs = map(json.loads, (run / "history.jsonl").read_text().splitlines())
    same = {name: (run / name).read_bytes() for name in ("weights.safetensors", "config.toml", "run.json")}
    return (
        same
        | {"ended": (head["stopped"], head["best_epoch"])}
        | {"epochs": [e | {"seconds": 0} for e in epochs]}
    )


def test_resume_goes_on_to_more_epochs(handgrad: Command, tmp_path: Path) -> None:
    """A finished run ends as one that had so many from its beginning; a second time there is nothing to do."""
    handgrad("train", "moons", *SMALL, "--epochs", "3", "--out", "run")
    handgrad("train", "--resume", "run", "--epochs", "7")
    handgrad("train", "moons", *SMALL, "--epochs", "7", "--out", "straight")
    assert contents(tmp_path / "run") == contents(tmp_path / "straight")
    assert handgrad("train", "--resume", "run").stderr == "run: the training is finished\n"
    refused = handgrad("train", "--resume", "run", "--epochs", "6", code=1).stderr
    assert "Error: epochs is 6, and the training that is to go on has done 7\n" in refused
    assert "To resume" not in refused
    (tmp_path / "run" / "checkpoint.safetensors").unlink()
    refused = handgrad("train", "--resume", "run", "--epochs", "8", code=1).stderr
    assert refused.startswith("Error: run/checkpoint.safetensors: No such file or directory\n")


def test_a_run_that_stopped_early_says_what_lets_it_go_on(handgrad: Command, tmp_path: Path) -> None:
    settings = ["moons", "--hidden", "16", "--learning-rate", "0.1", "--epochs", "400"]
    handgrad("train", *settings, "--patience", "2", "--out", "run")
    said = handgrad("train", "--resume", "run", "--epochs", "500").stderr
    epochs = len(contents(tmp_path / "run")["epochs"])
    assert said == (
        f"run: the training stopped early, after {epochs} epochs: the validation loss had not fallen for 2; "
        "to go on, give --patience 4 or more\n"
    )
    handgrad("train", "--resume", "run", "--patience", "4")
    handgrad("train", *settings, "--patience", "4", "--out", "straight")
    assert contents(tmp_path / "run") == contents(tmp_path / "straight")


def test_a_divergence_ends_with_the_command_that_keeps_what_came_before(
    handgrad: Command, tmp_path: Path
) -> None:
    table = np.column_stack([X, T[:, 0]])
    np.savetxt(tmp_path / "t.csv", table, delimiter=",", header="a,b,c,d,e,t", comments="", fmt="%.6f")
    how = [
        "--target",
        "t",
        "--hidden",
        "9",
        "--batch-size",
        "24",
        "--optimiser",
        "SGD",
        "--learning-rate",
        "1.4",
        "--schedule",
        "Constant",
    ]
    said = handgrad("train", "t.csv", *how, "--epochs", "300", "--out", "run", code=1).stderr
    command, _, rest = said.splitlines()[-1].removeprefix("To resume: handgrad ").partition(", ")
    assert rest == "with the weights before that"
    assert command.startswith("train --resume run --epochs ")
    handgrad(*command.split())
    epochs = int(command.split()[-1])
    assert len(contents(tmp_path / "run")["epochs"]) == epochs
    handgrad("train", "t.csv", *how, "--epochs", epochs, "--out", "straight")
    assert contents(tmp_path / "run") == contents(tmp_path / "straight")


# -------------------------------------------------------------------------------------------- runs are not replaced


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize("left", ["run.json", "checkpoint.safetensors"])
def test_a_run_is_not_replaced_without_being_asked(handgrad: Command, tmp_path: Path, left: str) -> None:
    """A finished one, and one that is not; the error has the options that do it."""
    handgrad("train", "moons", *SMALL, "--epochs", "1", "--out", "a run")
    for name in {"run.json", "checkpoint.safetensors"} - {left}:
        (tmp_path / "a run" / name).unlink()
    before = files(tmp_path / "a run")
    done = handgrad("train", "moons", "--out", "a run", code=1)
    assert (done.stdout, done.stderr) == (
        "",
        "Error: a run: holds a run\n  fix    give --overwrite to replace it when the new one is finished, "
        "--resume 'a run' to go on with it, or another folder\n",
    )
    assert files(tmp_path / "a run") == before


@pytest.mark.parametrize("answer", ["y", "n"])
def test_a_person_at_a_terminal_is_asked(
    server: Server, handgrad: Command, tmp_path: Path, answer: str
) -> None:
    handgrad("train", "moons", *SMALL, "--epochs", "1", "--out", "run")
    before = files(tmp_path / "run")
    running = Terminal(server, tmp_path, "train", "moons", "--hidden", "4", "--epochs", "2", "--out", "run")
    running.read_until(r"\[y/N\]")
    os.write(running.terminal, f"{answer}\n".encode())
    code, _ = running.end()
    assert "run holds a run. Replace it when the new one is finished? [y/N]" in running.shown
    if answer == "y":
        assert code == 0
        assert len(contents(tmp_path / "run")["epochs"]) == 2
    else:
        assert (code, files(tmp_path / "run")) == (1, before)
        assert "run: not replaced" in running.shown


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_replacement_leaves_the_older_run(
    server: Server, handgrad: Command, tmp_path: Path, number: signal.Signals
) -> None:
    """Whatever stops it: the older run is whole, and the newer one is resumed by the same name and takes its place."""
    handgrad("train", "moons", *SMALL, "--epochs", "1", "--out", "run")
    before = files(tmp_path / "run")
    process = server.start(
        tmp_path, ["train", *LONG, "--overwrite"], [os.devnull, tmp_path / "out", tmp_path / "err"]
    )
    while not (tmp_path / "run" / "new" / "checkpoint.safetensors").exists():
        assert server.poll(process) is None, (tmp_path / "err").read_text()
        time.sleep(0.01)
    os.kill(process, number)
    server.wait(process)
    after = files(tmp_path / "run")
    after.pop(".lock", None)  # which a killed process leaves
    assert after == before
    if number != signal.SIGKILL:
        last = (tmp_path / "err").read_text().splitlines()[-1]
        assert last == "Interrupted; to resume: handgrad train --resume run"
    process = server.start(
        tmp_path, ["train", "--resume", "run"], [os.devnull, tmp_path / "out", tmp_path / "err"]
    )
    time.sleep(0.3)
    os.kill(process, signal.SIGINT)
    assert server.wait(process) == 130
    epochs = json.loads((tmp_path / "run" / "new" / "history.jsonl").read_text().splitlines()[-1])["epoch"]
    handgrad("train", "--resume", "run", "--epochs", epochs)
    assert contents(tmp_path / "run")["ended"] == ("finished", None)
    assert len(contents(tmp_path / "run")["epochs"]) == epochs
    assert not (tmp_path / "run" / "new").exists()


def test_a_replacement_stopped_at_any_file_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run can be loaded only when all of it is there, and is the newer one then; other files stay."""

    def write(folder: Path, seed: int, **more: Any) -> None:
        made = Network(Linear(5, seed), loss=MeanSquaredError(), seed=seed)
        save_run(folder, Run(made, "t.csv", "regression", ["a"] * seed), History("r2"), f"# {seed}\n", **more)

    for stop_at in range(1, 12):
        folder = tmp_path / str(stop_at)
        write(folder, 1, files={"evaluation.png": b"older"})
        (folder / "mine.txt").write_text("mine")
        write(folder / "new", 2, files={"checkpoint.safetensors": b"newer"})
        newer, calls = files(folder / "new"), 0

        def counted(original: Any) -> Any:
            def call(*arguments: Any, **more: Any) -> Any:
                nonlocal calls
                calls += 1
                if calls == stop_at:  # noqa: B023 - called before the next
                    raise OSError(errno.EIO, "Input/output error")
                return original(*arguments, **more)

            return call

        with monkeypatch.context() as patched:
            patched.setattr(Path, "replace", counted(Path.replace))
            patched.setattr(Path, "rename", counted(Path.rename))
            try:
                replace_run(folder)
            except RunError:
                with pytest.raises(RunError):
                    load_run(folder)
                replace_run(folder)
        assert load_run(folder).network.seed == 2
        assert files(folder) == newer | {"mine.txt": b"mine"}
        assert not (folder / "new").exists()
        assert not (folder / "arriving").exists()
    assert calls < stop_at  # the last was not stopped

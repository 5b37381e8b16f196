"""A training that is killed goes on as if it had not been: the same weights and the same history, to the last bit."""

from __future__ import annotations

import csv
import json
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file

from ..conftest import EACH_ENGINE, Command, Server

KILLS, RESUMED = 8, 5  # of each engine, at least
TRAINING = [
    "moons", "--hidden", "8", "--normalisation", "batch", "--dropout", "0.2", "--epochs", "16", "--batch-size", "35",
    "--patience", "14", "--schedule", "OneCycle", "--optimiser", "AdamW", "--snapshots", "4",
]  # fmt: skip
OFTEN = ["--checkpoint-minutes", "0.0001"]  # every 6 ms: kills find every place in the writing


class Killing:
    """Runs the command line, and kills it after a while."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def __call__(self, folder: Path, *arguments: str, after: float | None = None) -> int:
        """Return the exit code; after so many seconds, kill it."""
        log = folder / "log"
        log.unlink(missing_ok=True)
        started = time.monotonic()
        process = self.server.start(folder, arguments, [os.devnull, log, log])
        if after is None:
            code = self.server.wait(process)
        else:
            while (code := self.server.poll(process)) is None:
                if time.monotonic() - started >= after:
                    os.kill(process, signal.SIGKILL)
                    code = self.server.wait(process)
                    break
                time.sleep(0.0005)
        assert code in (0, -signal.SIGKILL), log.read_text()
        return code


@pytest.fixture
def run(server: Server) -> Killing:
    """Return what runs and kills."""
    return Killing(server)


def what_was_promised(run: Path) -> dict[str, Any]:
    """Return all of a run that must not depend on whether it was stopped: everything but times."""
    head, *epochs = map(json.loads, (run / "history.jsonl").read_text().splitlines())
    with (run / "history.csv").open(newline="") as file:
        table = [{name: v for name, v in row.items() if name != "seconds"} for row in csv.DictReader(file)]
    return {
        "weights": {name: array.tobytes() for name, array in load_file(run / "weights.safetensors").items()},
        "epochs": [{name: value for name, value in record.items() if name != "seconds"} for record in epochs],
        "ended": (head["stopped"], head["best_epoch"]),
        "table": table,
        "curve": (run / "learning_curve.png").read_bytes(),
        "snapshots": (run / "snapshots.jsonl").read_bytes(),
        "run": (run / "run.json").read_bytes(),
        "settings": (run / "config.toml").read_bytes(),
    }


@pytest.mark.parametrize("engine", EACH_ENGINE)
def test_killed_at_any_moment_it_ends_as_if_it_had_not_been(
    run: Callable[..., int], tmp_path: Path, engine: str
) -> None:
    """At random moments, a kill during the resumed training among them, and no file of another time is left."""
    arguments = ["train", *TRAINING, "--engine", engine, "--out", "run"]
    whole = tmp_path / "whole"
    whole.mkdir()
    assert run(whole, *arguments) == 0
    expected, names = what_was_promised(whole / "run"), {path.name for path in (whole / "run").iterdir()}
    started = time.monotonic()
    assert run(whole, *arguments[:-1], "timed", *OFTEN) == 0
    seconds = time.monotonic() - started
    moments, runs, kills, resumed = random.Random(engine), 0, 0, 0
    while kills < KILLS or resumed < RESUMED:
        runs += 1
        folder = tmp_path / str(runs)
        folder.mkdir()
        going_on = False
        for _ in range(3):  # killed up to three times before it may end
            command = ["train", "--resume", "run"] if going_on else arguments
            code = run(folder, *command, *OFTEN, after=moments.uniform(0, 1.1 * seconds))
            kills += code != 0
            resumed += going_on
            going_on = (folder / "run" / "checkpoint.safetensors").exists()
            if code == 0 or (folder / "run" / "run.json").exists():
                break
            left = {path.name for path in (folder / "run").iterdir()} if (folder / "run").exists() else set()
            assert going_on or "run.json" not in left, left
        done = run(folder, *(["train", "--resume", "run"] if going_on else arguments))
        assert done == 0
        assert what_was_promised(folder / "run") == expected
        left = {path.name for path in (folder / "run").iterdir()}
        assert left - {".lock"} == names  # which stays where the kill came after run.json


def test_killed_before_anything_was_kept_nothing_is_promised(handgrad: Command, tmp_path: Path) -> None:
    """The folder says so when it is to go on."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".lock").write_text("1\n")  # what a killed process leaves
    done = handgrad("train", "--resume", "run", code=1)
    assert done.stdout == ""
    assert done.stderr.startswith("Error: run: there is no training to resume\n")

"""A training no better than a constant ends with the option that mends it, proved by a short training."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from handgrad import train
from handgrad.cli.likely_cause import _Trials, find_cause
from handgrad.cli.options import Experiment
from handgrad.configuration import read_configuration

from ..conftest import Command, Server

FIRST = "No better than a constant; looking for the cause, one change at a time:"


def write(path: Path, x: np.ndarray, t: np.ndarray) -> None:
    header = ",".join([*(f"x{k}" for k in range(x.shape[1])), "t"])
    np.savetxt(path, np.column_stack([x, t]), delimiter=",", header=header, comments="", fmt="%.8g")


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make tables of which each needs another option."""
    folder, rng = tmp_path_factory.mktemp("tables"), np.random.default_rng(0)
    x = rng.normal(size=(700, 3)).round(3)
    linear = x @ [1, 0.5, -0.7] + 0.05 * rng.normal(size=700)
    write(folder / "prices.csv", x, 5e5 + 1e5 * linear)
    write(folder / "outlier.csv", x, np.where(np.arange(700) == 17, 1e6, linear))
    write(folder / "plain.csv", x, linear)
    write(folder / "wide.csv", x * [1, 1e4, 1] + [0, 1e5, 0], linear)
    write(folder / "noise.csv", x, rng.normal(size=700))
    many = rng.normal(size=(4000, 3)).round(3)
    write(folder / "rare.csv", many, many @ [1, 0.5, -0.7] + 0.5 * rng.normal(size=4000) > 3)
    write(folder / "classes.csv", x, linear > 0)
    return folder


CASES = {
    "scale of targets": (
        ["prices.csv", "--standardise-targets", "false"], "--standardise-targets true", "the scale of the targets"
    ),
    "outlier": (["outlier.csv"], "--loss Huber", "a few targets that are far"),
    "scale of inputs": (["wide.csv", "--standardise", "none"], "--standardise auto", "the scale of the inputs"),
    "too high a rate": (["plain.csv", "--learning-rate", "20"], "--learning-rate ", "the learning rate, 20"),
    "a rare class": (["rare.csv", "--epochs", "5"], "--class-weight balanced", "rare classes count little"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_option_that_mends_it_is_found_and_mends_it(server: Server, tables: Path, case: str) -> None:
    """The numbers are those of the scores printed, and of the same command with the option."""
    given, option, cause = CASES[case]
    at = server.command_in(tables)
    command = [
        "train",
        given[0],
        "--target",
        "t",
        *given[1:],
        "--hidden",
        "32",
        "--overwrite",
        "--out",
        "run",
        "--json",
    ]
    result = json.loads(at(*command).stdout)
    remedy = result["remedy"]
    best = remedy["best"]
    assert best["option"].startswith(option)
    assert best["cause"].startswith(cause)
    score = f"test_{remedy['score_name']}".replace(" ", "_")
    assert remedy["before"] == pytest.approx(result[score], rel=1e-4)
    assert best in remedy["attempts"]
    assert result["heavy_tails"] == ({"rows": 5, "share": pytest.approx(1)} if case == "outlier" else None)
    mended = json.loads(at(*command, *best["option"].split()).stdout)
    assert mended[score] == pytest.approx(best["score"], rel=1e-3)  # as long as the training: the same one
    assert mended["warning"] is None or case == "a rare class"


def test_it_is_in_the_last_lines_with_both_numbers(server: Server, tables: Path) -> None:
    """And each trial is a line while it goes on."""
    at = server.command_in(tables)
    small = ["--hidden", "32", "--overwrite", "--out", "run"]
    done = at("train", "prices.csv", "--target", "t", *small, "--standardise-targets", "false")
    *lines, warning, cause = done.stderr.splitlines()
    tried = lines[lines.index(FIRST) + 1 :]
    assert tried[0].startswith("  --standardise-targets true: r2 0.9")
    assert warning.startswith("Warning: worse than the mean: r2 -")
    assert cause.startswith(
        "Likely cause: the scale of the targets (mean 4.94e+05, deviation 1.36e+05): with --standardise-targets true, and "
        "nothing else changed, a short training has r2 0.9"
    )
    assert cause.endswith(f"instead of {warning.split()[6].rstrip(';')}.")


def test_a_training_that_diverged_is_named_although_some_rows_are_right(handgrad: Command) -> None:
    """Its accuracy is above that of the most frequent class; its loss is a thousand times that of equal probabilities."""
    done = handgrad("train", "digits", "--learning-rate", "100", "--epochs", "3", "--out", "run")
    *_, warning, cause = done.stderr.splitlines()
    assert re.fullmatch(
        r"Warning: the training diverged: validation loss \d{3,}; equal probabilities for the 10 classes have 2\.303",
        warning,
    )
    assert cause.startswith("Likely cause: the learning rate, 100: with --learning-rate 0.00")


def test_without_test_rows_the_validation_rows_decide(server: Server, tables: Path) -> None:
    at = server.command_in(tables)
    small = ["--hidden", "32", "--overwrite", "--out", "run", "--test", "0", "--json"]
    result = json.loads(
        at("train", "prices.csv", "--target", "t", *small, "--standardise-targets", "false").stdout
    )
    assert result["remedy"]["before"] == result["validation_r2"] < 0
    assert result["remedy"]["best"]["option"] == "--standardise-targets true"


def test_where_nothing_helps_that_is_the_last_line(server: Server, tables: Path) -> None:
    """Of targets that are noise; the trials are named."""
    at = server.command_in(tables)
    last = at("train", "noise.csv", "--target", "t", "--out", "run", "--overwrite").stderr.splitlines()[-1]
    assert last.startswith("No single change mended it; r2 after short trainings: --learning-rate ")
    assert last.endswith("The inputs may say too little about the targets.")


def test_a_validation_loss_that_has_risen_since_names_patience(handgrad: Command, tmp_path: Path) -> None:
    """The weights of the last epoch are saved; with --patience those of the lowest are, which has no such notice."""
    rng = np.random.default_rng(0)
    write(tmp_path / "few.csv", x := rng.normal(size=(150, 6)), x[:, 0] + 0.5 * rng.normal(size=150) > 0)
    command = ["train", "few.csv", "--target", "t", "--learning-rate", "0.02", "--epochs", "50", "--out"]
    notice = handgrad(*command, "last").stderr.splitlines()[-1]
    history = (tmp_path / "last" / "history.jsonl").read_text().splitlines()[1:]
    losses = [json.loads(line)["validation_loss"] for line in history]
    assert notice == (
        f"Notice: validation loss {losses[-1]:.4g} is far above the lowest, {min(losses):.4g} after epoch "
        f"{losses.index(min(losses)) + 1}; --patience 5 stops when it has not fallen for 5 epochs, and keeps the weights of "
        "the lowest"
    )
    assert "Notice" not in handgrad(*command, "lowest", "--patience", "5").stderr


def test_a_good_fit_has_none_of_it(server: Server, tables: Path) -> None:
    at = server.command_in(tables)
    done = at("train", "classes.csv", "--target", "t", "--out", "run", "--overwrite", "--json")
    result = json.loads(done.stdout)
    assert (result["warning"], result["remedy"]) == (None, None)
    assert FIRST not in done.stderr


@pytest.mark.parametrize("speed", [1e6, 2500, 300])
def test_a_long_training_is_tried_for_a_shorter_time(tables: Path, speed: float) -> None:
    """With fewer epochs, or rows; compared with as short a training without a change."""
    settings = {
        "data.source": str(tables / "prices.csv"),
        "data.target": "t",
        "data.standardise_targets": False,
    }
    experiment = Experiment(read_configuration(None, settings))
    dataset, rows = experiment.dataset, experiment.rows.train
    history = train(experiment.network, dataset.x[rows], dataset.t[rows], epochs=20)
    history.facts["rows_per_second"] = speed
    trials = _Trials(experiment, history)
    expected = {1e6: (20, 490), 2500: (4, 490), 300: (1, 240)}[speed]  # 0.8 seconds, of 20 epochs of 490 rows
    assert (trials.epochs, len(trials.rows.train)) == expected
    remedy = find_cause(experiment, history, quiet=True)
    assert remedy is not None
    assert remedy.best is not None
    assert remedy.best.option == "--standardise-targets true"
    assert any(each.option == "--epochs 80" for each in remedy.attempts) == (speed == 1e6)

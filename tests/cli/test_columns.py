"""What the command line does with the columns of people's tables."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from handgrad.runs import load_run

from ..conftest import Command
from .conftest import write_table

SMALL = ["--hidden", "4", "--epochs", "2", "--out", "run"]


@pytest.fixture
def floats(tmp_path: Path) -> None:
    """Write 40 rows of three columns and a target of 0.0 and 1.0, as CSV, Parquet and NumPy arrays."""
    x = np.random.default_rng(0).normal(size=(40, 3)).round(3)
    t = (x[:, 0] > x[:, 1]).astype(float)
    write_table(tmp_path / "t.csv", ["a", "b", "c", "y"], np.column_stack([x, t]).tolist())
    pyarrow.parquet.write_table(pyarrow.table({"a": x[:, 0], "b": x[:, 1], "y": t}), tmp_path / "t.parquet")
    np.savez(tmp_path / "t.npz", x=x, t=t)


@pytest.mark.parametrize(
    ("options", "features"),
    [
        ([], ("a", "b", "c")),
        (["--drop", "b"], ("a", "c")),
        (["--drop", "c,a"], ("b",)),
        (["--only", "c,a"], ("a", "c")),
        (["--only", "y,a,c", "--drop", "c"], ("a",)),
    ],
)
def test_columns_are_dropped_and_picked(
    handgrad: Command, tmp_path: Path, floats: None, options: list[str], features: tuple[str, ...]
) -> None:
    handgrad("train", "t.csv", "--target", "y", *options, *SMALL)
    assert load_run(tmp_path / "run").feature_names == features
    evaluated = json.loads(handgrad("evaluate", "run", "--json").stdout)
    trained = load_run(tmp_path / "run").results
    assert evaluated["accuracy"] == trained["test_accuracy"]
    assert handgrad("predict", "run", "t.csv").stdout.count("\n") == 41


@pytest.mark.parametrize(
    ("source", "options", "problem"),
    [
        ("t.csv", ["--drop", "d"], "t.csv: there is no column 'd'"),
        ("t.csv", ["--only", "a,d"], "t.csv: there is no column 'd'"),
        ("t.csv", ["--drop", "y"], "t.csv: the column 'y' is both dropped and the target"),
        ("t.csv", ["--drop", "a,b,c"], "t.csv: no column is left to predict from"),
        ("t.parquet", ["--only", "y"], "t.parquet: no column is left to predict from"),
        (
            "t.npz",
            ["--drop", "a"],
            "t.npz: columns of tables are chosen by name, and this source is no table",
        ),
    ],
)
def test_columns_that_cannot_be_chosen_are_refused(
    handgrad: Command, floats: None, source: str, options: list[str], problem: str
) -> None:
    target = [] if source.endswith("npz") else ["--target", "y"]
    assert problem in handgrad("train", source, *target, *options, *SMALL, code=1).stderr


@pytest.mark.parametrize("source", ["t.csv", "t.parquet", "t.npz"])
def test_targets_of_0_0_and_1_0_are_classes_and_that_is_stated(
    handgrad: Command, tmp_path: Path, floats: None, source: str
) -> None:
    target = [] if source.endswith("npz") else ["--target", "y"]
    notice = "0.0 and 1.0 are taken for two classes; for values, set the task to regression"
    assert notice in handgrad("train", source, *target, *SMALL).stderr
    assert load_run(tmp_path / "run").classes == ("0", "1")
    assert notice not in handgrad("evaluate", "run").stderr
    assert "notice" not in handgrad("train", source, *target, *SMALL, "--task", "regression").stderr
    assert load_run(tmp_path / "run").task == "regression"


def test_a_regression_on_0_0_and_1_0_of_an_older_run_stays_one(
    handgrad: Command, tmp_path: Path, floats: None
) -> None:
    """Its settings name no task."""
    handgrad("train", "t.csv", "--target", "y", "--task", "regression", *SMALL)
    settings = tmp_path / "run" / "config.toml"
    settings.write_text(settings.read_text().replace('task = "regression"\n', ""))
    evaluated = json.loads(handgrad("evaluate", "run", "--json").stdout)
    assert evaluated["loss"] >= 0
    assert "accuracy" not in evaluated

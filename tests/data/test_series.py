"""Time series: windows of a table's rows, in the order of time, with what comes next."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from handgrad.data import load, mackey_glass, split
from handgrad.errors import DataError

from ..conftest import Command

LINES = ["day,level,rain,wind", *(f"d{k},{k % 5 + k % 7 / 4},{k % 3},{'NW'[k % 2]}" for k in range(60))]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Write a series of 60 rows."""
    path = tmp_path / "level.csv"
    path.write_text("\n".join(LINES) + "\n")
    return path


def test_a_window_has_the_rows_before_its_target(table: Path) -> None:
    """The target's own past among them; a category has a feature for each value."""
    data = load(table, target="level", drop=["day"], context=7)
    assert (data.x.shape, data.feature_names) == ((53, 7, 4), ("level", "rain", "wind=N", "wind=W"))
    level = np.array([k % 5 + k % 7 / 4 for k in range(60)])
    for row in (0, 20, 52):
        np.testing.assert_array_equal(data.x[row, :, 0], level[row : row + 7])
        np.testing.assert_array_equal(data.x[row, :, 1], np.arange(row, row + 7) % 3)
        assert data.t[row] == level[row + 7]
    assert data.fitted_on(np.arange(9)) is data


def test_parts_follow_one_another_in_time(table: Path) -> None:
    """No target that trains comes after one that is tested, whatever the seed."""
    data = load(table, target="level", drop=["day"], context=7)
    parts = split(data, test=0.2, validation=0.1, seed=3)
    assert [len(part) for part in (parts.train, parts.validation, parts.test)] == [37, 5, 11]
    np.testing.assert_array_equal(np.concatenate([parts.train, parts.validation, parts.test]), np.arange(53))


def test_a_series_of_one_column_and_several_targets(tmp_path: Path, table: Path) -> None:
    (tmp_path / "one.csv").write_text("y\n" + "".join(f"{k % 4}\n" for k in range(30)))
    one = load(tmp_path / "one.csv", target="y", context=5)
    assert (one.x.shape, one.task, one.t[:3].tolist()) == ((25, 5, 1), "regression", [1, 2, 3])
    two = load(table, target=["rain", "level"], only=["rain"], context=5)
    assert (two.x.shape, two.t.shape, two.feature_names) == ((55, 5, 2), (55, 2), ("level", "rain"))
    assert two.t[0].tolist() == [2, 5 / 4]


def test_the_built_in_series_follows_its_equation() -> None:
    """It swings between 0.2 and 1.4, never twice alike."""
    data = mackey_glass(400, context=9)
    x = np.append(data.x[:, 0, 0], data.x[-1, 1:, 0])
    assert (data.x.shape, len(np.unique(x))) == ((391, 9, 1), 399)
    assert 0.2 < x.min() < 0.5
    assert 1.2 < x.max() < 1.45
    np.testing.assert_array_equal(load("mackey-glass", context=9).t[:391], data.t)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            {"context": 60, "target": "level"},
            "level.csv: 60 rows, and a window of 60 with the row after it needs 61",
        ),
        (
            {"context": 3, "target": "wind"},
            "level.csv, line 2: column 'wind' holds 'N', and a finite number is needed",
        ),
    ],
)
def test_what_is_no_series(table: Path, arguments: dict[str, object], problem: str) -> None:
    with pytest.raises(DataError) as caught:
        load(table, **arguments)  # type: ignore[arg-type]
    assert problem.partition(": ")[2] in caught.value.problem


def test_a_series_trains_and_predicts_the_row_to_come(handgrad: Command, table: Path, tmp_path: Path) -> None:
    """Beside the last row of each window; more rows are scored, and too few are an error."""
    given = ("--target", "level", "--drop", "day", "--config", "series", "--context", "6")
    results = json.loads(handgrad("train", table, *given, "--epochs", "60", "--out", "run", "--json").stdout)
    assert results["test_r2"] > 0.5
    lines = list(csv.DictReader(handgrad("predict", "run", table, "--keep", "day").stdout.splitlines()))
    assert [line["day"] for line in lines] == [f"d{k}" for k in range(5, 60)]
    scored = json.loads(handgrad("evaluate", "run", table, "--json").stdout)
    predicted = np.array([float(line["level"]) for line in lines[:-1]])
    expected = np.array([k % 5 + k % 7 / 4 for k in range(6, 60)])
    assert scored["rows"] == 54
    assert scored["root_mean_squared_error"] == pytest.approx(
        np.sqrt(((predicted - expected) ** 2).mean()), rel=1e-4
    )
    (tmp_path / "few.csv").write_text("\n".join(LINES[:4]))
    failed = handgrad("predict", "run", "few.csv", code=1)
    assert "few.csv: 3 rows, and a window has 6" in failed.stderr


def test_characters_are_of_texts() -> None:
    with pytest.raises(DataError, match=r"^mackey-glass: characters are of texts, and this source is none"):
        load("mackey-glass", context=9, characters=["a"])

"""What the command line does with the columns of people's tables."""

from __future__ import annotations

import csv
import datetime
import json
import re
import shlex
import shutil
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from handgrad.data import load, split
from handgrad.errors import DataError, HandgradNotice
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


def test_a_name_with_a_comma_is_dropped_as_the_notice_has_it(handgrad: Command, tmp_path: Path) -> None:
    """Names in an option are a row of CSV, and the notice has them as a shell takes them."""
    rows = [[7, k**2 % 11, k % 9 + 0.5] for k in range(40)]
    for name, written in (("wert, eur", "'\"wert, eur\"'"), ('say "a"', '\'"say ""a"""\''), ("a b", "'a b'")):
        write_table(tmp_path / "t.csv", [name, "b", "y"], rows)
        noticed = handgrad("train", "t.csv", "--target", "y", *SMALL).stderr.splitlines()[0]
        assert noticed.endswith(f" is the same in every row; drop the column: --drop {written}")
        handgrad("train", "t.csv", "--target", "y", *shlex.split(noticed)[-2:], *SMALL, "--overwrite")
        assert load_run(tmp_path / "run").feature_names == ("b",)
        target = handgrad(
            "train", "t.csv", "--target", shlex.split(written)[0], *SMALL, "--overwrite", code=1
        )
        assert "there is one class, '7'" in target.stderr
        shutil.rmtree(tmp_path / "run")


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
    assert (
        "notice"
        not in handgrad("train", source, *target, *SMALL, "--overwrite", "--task", "regression").stderr
    )
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


def write_people(folder: Path) -> None:
    """Write 120 rows of every kind of column, with missing cells, as CSV and as Parquet."""
    rng = np.random.default_rng(3)
    age = [None if k % 17 == 3 else int(each) for k, each in enumerate(rng.integers(1, 80, 120))]
    sex = ["female" if each else "male" for each in rng.integers(0, 2, 120)]
    deck = [None if k % 5 == 0 else "ABC"[each] for k, each in enumerate(rng.integers(0, 3, 120))]
    adult = [bool(each) for each in rng.integers(0, 2, 120)]
    born = [datetime.date(2001, 1, 1) + datetime.timedelta(int(each)) for each in rng.integers(0, 900, 120)]
    born[7] = None
    paid = [(a or 30) + 10 * (s == "male") + 5 * b + 0.5 for a, s, b in zip(age, sex, adult, strict=True)]
    columns = {"age": age, "sex": sex, "deck": deck, "adult": adult, "born": born, "paid": paid}
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / "people.parquet")
    rows = [["" if cell is None else cell for cell in row] for row in zip(*columns.values(), strict=True)]
    write_table(folder / "people.csv", list(columns), rows)


PEOPLE = """\
  age    number; missing: 38.5, the median, and marked
  sex    one-hot: female, male
  deck   one-hot: A, B, C; missing: a class of its own
  adult  boolean, 0 or 1
  born   date: year, month, day, weekday; missing: the medians, and marked
"""


def test_every_kind_of_column_becomes_features_alike_from_csv_and_parquet(
    handgrad: Command, tmp_path: Path
) -> None:
    write_people(tmp_path)
    for source in ("people.csv", "people.parquet"):
        done = handgrad("train", source, "--target", "paid", *SMALL, "--overwrite")
        assert PEOPLE in done.stderr
        assert "Notice" not in done.stderr
        assert PEOPLE in handgrad("show", "run").stderr
        run = load_run(tmp_path / "run")
        assert run.feature_names == (
            "age", "age missing", "sex=female", "sex=male", "deck=A", "deck=B", "deck=C", "deck missing", "adult",
            "born year", "born month", "born day", "born weekday", "born missing",
        )  # fmt: skip
    text, parquet = (load(tmp_path / f"people.{kind}", target="paid") for kind in ("csv", "parquet"))
    np.testing.assert_array_equal(text.x, parquet.x)
    assert text.columns == parquet.columns
    assert text.fitted_on(split(text).train).columns == run.columns
    scores = [handgrad("evaluate", "run", f"people.{kind}").stdout for kind in ("csv", "parquet")]
    assert scores[0] == scores[1]


def test_values_of_features_are_those_of_the_cells(tmp_path: Path) -> None:
    rows = [
        "1,x,,05/01/2021 10:30,0.5",
        ",y,True,13/01/2021 10:45,1.5",
        "4,x,FALSE,,1",
        "6,,true,14/01/2021 11:00,2",
    ]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,c,d,y", *rows, *rows]) + "\n")
    data = load(tmp_path / "t.csv", target="y")
    assert dict(zip(data.feature_names, data.x[:4].T.tolist(), strict=True)) == {
        "a": [1, 4, 4, 6],
        "a missing": [0, 1, 0, 0],
        "b=x": [1, 0, 1, 0],
        "b=y": [0, 1, 0, 0],
        "b missing": [0, 0, 0, 1],
        "c": [1, 1, 0, 1],
        "c missing": [1, 0, 0, 0],
        "d day": [5, 13, 13, 14],
        "d weekday": [1, 2, 2, 3],
        "d hour": [10, 10, 10, 11],
        "d minute": [30, 45, 30, 0],
        "d missing": [0, 0, 1, 0],
    }


def test_new_rows_are_treated_as_those_of_the_training(handgrad: Command, tmp_path: Path) -> None:
    write_people(tmp_path)
    handgrad("train", "people.csv", "--target", "paid", *SMALL)
    rows = [["2001-02-03", "", "yellow", 30, "female"], ["2002-02-03", True, "", "", "other"]]
    write_table(tmp_path / "new.csv", ["born", "adult", "deck", "age", "sex"], rows)
    done = handgrad("predict", "run", "new.csv")
    assert done.stderr.splitlines() == [
        "Notice: new.csv, line 3: column 'sex' holds 'other', which is none of its 2 categories: "
        "all of them are 0, in 1 row",
        "Notice: new.csv, line 2: column 'deck' holds 'yellow', which is none of its 3 categories: "
        "all of them are 0, in 1 row",
        "Notice: new.csv, line 2: column 'adult' is empty: the median is taken",
    ]
    run = load_run(tmp_path / "run")
    age, adult = run.columns[0].median, run.columns[3].median
    x = [[30, 0, 1, 0, 0, 0, 0, 0, adult, 2001, 2, 3, 5, 0], [age, 1, 0, 0, 0, 0, 0, 1, 1, 2002, 2, 3, 6, 0]]
    np.testing.assert_allclose(
        [float(line) for line in done.stdout.split()[1:]], run.network.predict(np.array(x))[:, 0], rtol=1e-6
    )


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("tall,female,A,True,2001-02-03", "new.csv, line 2: column 'age' holds 'tall', and a finite number"),
        (
            "3,female,A,True,soon",
            "new.csv, line 2: column 'born' holds 'soon', and a date written as %Y-%m-%d",
        ),
        ("3,female,A,maybe,2001-02-03", "new.csv, line 2: column 'adult' holds 'maybe'"),
    ],
)
def test_cells_that_new_rows_must_not_have_are_named(
    handgrad: Command, tmp_path: Path, row: str, problem: str
) -> None:
    write_people(tmp_path)
    handgrad("train", "people.csv", "--target", "paid", *SMALL)
    (tmp_path / "new.csv").write_text(f"age,sex,deck,adult,born\n{row}\n")
    refused = handgrad("predict", "run", "new.csv", code=1).stderr
    assert problem in refused
    assert "--drop" not in refused  # which `predict` has not
    (tmp_path / "new.csv").write_text("age,sex,adult,born\n3,male,True,2001-02-03\n")
    refused = handgrad("predict", "run", "new.csv", code=1).stderr
    assert refused == (
        "Error: new.csv: there is no column 'deck'\n"
        "  fix    add the column, which the run was trained on; where a value is not known its cell may be empty\n"
    )
    (tmp_path / "new.csv").write_text("age,sex,deck,adult,born\n3,male,,True,2001-02-03\n")
    handgrad("predict", "run", "new.csv")


def test_the_most_frequent_categories_have_features_and_a_late_text_among_numbers_is_named(
    tmp_path: Path,
) -> None:
    cities = [f"c{k:03}" for k in range(305)]
    rows = [f"{city},{k}.5" for k, city in enumerate([*cities, *cities, *cities[50:]])]
    (tmp_path / "t.csv").write_text("city,y\n" + "\n".join(rows) + "\n")
    data = load(tmp_path / "t.csv", target="y")
    assert data.feature_names == (*(f"city={city}" for city in cities[50:]), "city other")
    np.testing.assert_array_equal(
        data.x[:, -1], [city in cities[:50] for city in [*cities, *cities, *cities[50:]]]
    )
    np.testing.assert_array_equal(data.x.sum(axis=1), 1)
    (tmp_path / "t.csv").write_text("a,y\n" + "1.5,2.5\n" * 9000 + "five,1\n" + "2,1\n")
    with pytest.raises(DataError, match="line 9002: column 'a' holds 'five', and a finite number is needed"):
        load(tmp_path / "t.csv", target="y")


ROWS = 60
DAYS = [f"2021-{k % 12 + 1:02}-{k % 28 + 1:02}" for k in range(ROWS)]


@pytest.mark.parametrize(
    ("name", "cells", "problem"),
    [
        (
            "day",
            [*DAYS[:40], "Easter", *DAYS[41:]],
            "line 42: column 'day' holds 'Easter', and a date written as %Y-%m-%d",
        ),
        ("day", ["7/3/21", *DAYS[1:]], "line 2: column 'day' holds '7/3/21', and a date written as %Y-%m-%d"),
        (
            "weight",
            [f"{k % 30 + 40} kg" for k in range(ROWS)],
            "line 2: column 'weight' holds '40 kg', and a finite number",
        ),
        (
            "size",
            [f"{k % 7}.5cm" for k in range(ROWS)],
            "line 2: column 'size' holds '0.5cm', and a finite number",
        ),
    ],
)
def test_what_is_nearly_a_date_or_a_number_is_no_category(
    tmp_path: Path, name: str, cells: list[str], problem: str
) -> None:
    """A feature for each of them would be learnt by heart, and nobody would see it."""
    write_table(tmp_path / "t.csv", [name, "y"], [[cell, k % 9 + 0.5] for k, cell in enumerate(cells)])
    with pytest.raises(DataError, match=re.escape(problem)) as caught:
        load(tmp_path / "t.csv", target="y")
    assert caught.value.fix.endswith(f", or drop the column: --drop {name}")


@pytest.mark.parametrize(
    ("name", "cells", "looks"),
    [
        ("row", range(100, 100 + ROWS), "has a number for each row, in order, as names of rows have"),
        (
            "patient_id",
            [7 * k % 101 for k in range(ROWS)],
            "has another whole number in each row, and is called",
        ),
        ("country", ["CH"] * ROWS, "is the same in every row"),
        ("height", [1.5] * ROWS, "is the same in every row"),
        ("name", [f"Anna {k}" if k % 2 else "Bo" for k in range(ROWS)], "has 31 different texts in 60 rows"),
        ("population", [7 * k % 101 for k in range(ROWS)], None),
        ("patient_id", [k % 12 for k in range(ROWS)], None),
        ("grid", [k**2 for k in range(ROWS)], None),
        ("rooms", [f"{k % 3} bed" if k % 2 else f"{k % 3} bath" for k in range(ROWS)], None),
        ("street", [f"street {k % 20}" for k in range(ROWS)], None),
    ],
)
def test_a_column_that_looks_useless_is_noticed(
    tmp_path: Path, name: str, cells: Sequence[object], looks: str | None
) -> None:
    """It stays a feature: only its owner knows what it is."""
    rows = [[cell, k**2 % 11, k % 9 + 0.5] for k, cell in enumerate(cells)]
    write_table(tmp_path / "t.csv", [name, "other", "y"], rows)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        features = load(tmp_path / "t.csv", target="y").feature_names
    assert features[0].startswith(name)
    notices = [str(each.message) for each in caught]
    assert len(notices) == (looks is not None)
    if looks:
        assert f"column {name!r} {looks}" in notices[0]
        assert notices[0].endswith(f"; drop the column: --drop {name}")


@pytest.mark.parametrize("change", [{"kind": "magic"}, {"median": "x"}, {"name": "other"}, {"missing": True}])
def test_a_damaged_column_of_a_run_is_refused(
    handgrad: Command, tmp_path: Path, floats: None, change: dict[str, object]
) -> None:
    handgrad("train", "t.csv", "--target", "y", *SMALL)
    path = tmp_path / "run" / "run.json"
    run = json.loads(path.read_text())
    run["columns"][0] |= change
    path.write_text(json.dumps(run))
    assert "run.json: " in handgrad("predict", "run", "t.csv", code=1).stderr


def test_an_older_run_has_names_of_columns_alone(handgrad: Command, tmp_path: Path, floats: None) -> None:
    handgrad("train", "t.csv", "--target", "y", *SMALL)
    before = handgrad("predict", "run", "t.csv").stdout
    path = tmp_path / "run" / "run.json"
    run = json.loads(path.read_text())
    del run["columns"]
    path.write_text(json.dumps(run))
    assert handgrad("predict", "run", "t.csv").stdout == before
    (tmp_path / "new.csv").write_text("a,b,c\n1,,3\n")
    assert "new.csv, line 2: column 'b' is empty" in handgrad("predict", "run", "new.csv", code=1).stderr


def test_medians_and_categories_are_those_of_the_rows_that_train(tmp_path: Path) -> None:
    rows = ["1,x,,a", "3,x,,a", ",y,5,b", "5,y,5,c", "100,z,7,d", "100,z,7,d"]
    lines = ["a,b,c,d,y", *(f"{row},{k}.5" for k, row in enumerate(rows))]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    data = load(tmp_path / "t.csv", target="y")
    notice = (
        "t.csv, line 6: column 'b' holds 'z', which is none of its 2 categories: all of them are 0, in 2 rows"
    )
    with pytest.warns(HandgradNotice, match=notice):
        fitted = data.fitted_on(np.arange(4))
    assert dict(zip(fitted.feature_names, fitted.x.T.tolist(), strict=True)) == {
        "a": [1, 3, 3, 5, 100, 100],
        "a missing": [0, 0, 1, 0, 0, 0],
        "b=x": [1, 1, 0, 0, 0, 0],
        "b=y": [0, 0, 1, 1, 0, 0],
        "c": [5, 5, 5, 5, 7, 7],
        "c missing": [1, 1, 0, 0, 0, 0],
        "d=a": [1, 1, 0, 0, 0, 0],
        "d other": [0, 0, 1, 1, 1, 1],
    }
    (tmp_path / "t.csv").write_text("a,y\n1,0.5\n2,1.5\n30,2.5\n")
    plain = load(tmp_path / "t.csv", target="y").fitted_on(np.array([0, 1]))
    assert plain.columns[0].median == 1.5
    assert plain.x.tolist() == [[1], [2], [30]]


def test_columns_of_names_are_unused_and_not_needed_later(handgrad: Command, tmp_path: Path) -> None:
    rows = [["row " + str(k), "", k % 7, k % 2 + 0.5] for k in range(40)]
    write_table(tmp_path / "t.csv", ["name", "empty", "a", "y"], rows)
    done = handgrad("train", "t.csv", "--target", "y", *SMALL)
    table = (
        "  name   unused: 40 texts, none in two rows\n  empty  unused: empty in every row\n  a      number\n"
    )
    assert table in done.stderr
    assert table in handgrad("show", "run").stderr
    handgrad("evaluate", "run")
    (tmp_path / "new.csv").write_text("a\n3\n")
    assert handgrad("predict", "run", "new.csv").stdout.startswith("y\n")


def test_predictions_are_beside_the_columns_that_are_kept(handgrad: Command, tmp_path: Path) -> None:
    write_people(tmp_path)
    handgrad("train", "people.csv", "--target", "paid", *SMALL)
    (alone,) = zip(*csv.reader(handgrad("predict", "run", "people.csv").stdout.splitlines()), strict=True)
    given = list(csv.reader((tmp_path / "people.csv").read_text().splitlines()))
    for source in ("people.csv", "people.parquet"):
        kept = list(csv.reader(handgrad("predict", "run", source, "--keep", "all").stdout.splitlines()))
        assert kept[0] == [*given[0], "predicted paid"]
        assert [row[:1] + row[4:5] for row in kept] == [row[:1] + row[4:5] for row in given]
        assert tuple(row[-1] for row in kept)[1:] == alone[1:]
        lines = handgrad("predict", "run", source, "--keep", "sex,age", "--json").stdout.splitlines()
        first, fourth = json.loads(lines[0]), json.loads(lines[3])
        assert list(first) == ["sex", "age", "paid"]
        assert [first["sex"], first["age"], fourth["age"]] == [given[1][1], int(given[1][0]), None]
    handgrad("predict", "run", "people.csv", "--keep", "born", "--out", "answers.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "answers.parquet")
    assert table.column_names == ["born", "paid"]
    assert table["born"].to_pylist() == [row[4] or None for row in given[1:]]
    assert [str(each) for each in table["paid"].to_pylist()] == list(alone[1:])


def test_what_is_kept_is_written_as_it_was_read(handgrad: Command, tmp_path: Path, floats: None) -> None:
    handgrad("train", "t.csv", "--target", "y", *SMALL)
    rows = ["007,1.50,x,1,2,3", "010,2,,4,5,6"]
    (tmp_path / "new.csv").write_text("\n".join(["id,price,note,a,b,c", *rows]) + "\n")
    out = handgrad("predict", "run", "new.csv", "--keep", "all").stdout.splitlines()
    assert [line.rsplit(",", 2)[0] for line in out[1:]] == rows
    assert out[0] == "id,price,note,a,b,c,answer,probability"


def test_a_column_that_is_not_there_cannot_be_kept(handgrad: Command, tmp_path: Path, floats: None) -> None:
    handgrad("train", "t.csv", "--target", "y", *SMALL)
    assert (
        "t.csv: there is no column 'd'" in handgrad("predict", "run", "t.csv", "--keep", "d", code=1).stderr
    )

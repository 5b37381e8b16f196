"""Folders of tables: what the same rows in one file give, whatever the pieces that they are read in."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from handgrad.data import columns, load, load_features, table_folder, temporary
from handgrad.errors import DataError, HandgradNotice

from ..conftest import Command

HEADER = "age,city,since,member,code,price\n"
CITIES = ["Ulm", "Rome", "Bern", "Oslo"]
ROWS = [
    f"{'' if k % 7 == 3 else 20 + k % 31 / 2},{CITIES[k * k % 4]},20{10 + k % 9}-0{1 + k % 5}-1{k % 10},"
    f"{k % 3 == 0},{k % 5 if k < 25 else f'A{k % 5}'},{k * k / 4 if k % 11 else ''}\n"
    for k in range(60)
]  # numbers, some missing; texts; dates; booleans; numbers that are texts from row 25 on; a target that is missing at times


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three CSV files, beside one that has all their rows; read 7 rows at a time, and written 4 at a time."""
    monkeypatch.setattr(table_folder, "ROWS", 7)
    for module in (table_folder, columns):
        monkeypatch.setattr(module, "MANY", 50)
    (tmp_path / "all.csv").write_text(HEADER + "".join(ROWS))
    made = tmp_path / "parts"
    made.mkdir()
    for name, first, last in (("part-0.csv", 0, 10), ("part-1.csv", 10, 41), ("part-2.csv", 41, 60)):
        (made / name).write_text(HEADER + "".join(ROWS[first:last]))
    for name in ("_SUCCESS.csv", ".part-0.csv.crc", "readme.txt"):
        (made / name).write_text("not a table")
    return made


def as_parquet(folder: Path, group: int) -> None:
    """Write the table of each CSV file as Parquet, in row groups, instead."""
    for file in folder.glob("part-*.csv"):
        lines = [line.split(",") for line in file.read_text().splitlines()[1:]]
        cells = [*zip(*lines, strict=True)]
        kinds: list[Any] = [float, str, str, lambda text: text == "True", str, float]
        table = {
            name: [None if cell == "" else kind(cell) for cell in column]
            for name, kind, column in zip(HEADER.strip().split(","), kinds, cells, strict=True)
        }
        pq.write_table(pa.table(table), file.with_suffix(".parquet"), row_group_size=group)
        file.unlink()


@pytest.mark.filterwarnings("ignore::handgrad.HandgradNotice")
@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("target", "options"), [("price", {}), ("city", {"drop": ["price"]}), ("age", {"only": ["code"]})]
)
def test_they_are_one_table(folder: Path, kind: str, target: str, options: dict[str, Any]) -> None:
    one = load(folder.parent / "all.csv", target=target, **options)
    if kind == "parquet":
        as_parquet(folder, group=4)
    many = load(folder, target=target, **options)
    assert isinstance(many.x, np.memmap)
    for rows in (None, np.arange(0, len(one), 3)):
        before, found = (each if rows is None else each.fitted_on(rows) for each in (one, many))
        np.testing.assert_array_equal(found.x, before.x)
        np.testing.assert_array_equal(found.t, before.t)
        assert found.columns == before.columns
        assert (found.task, found.classes, found.feature_names) == (
            before.task,
            before.classes,
            before.feature_names,
        )


def test_rows_without_a_target_are_stated_once(folder: Path) -> None:
    with pytest.warns(HandgradNotice) as notices:
        load(folder, target="price", only=["age"])
    (notice,) = notices
    assert f"{folder / 'part-0.csv'}, line 2: the target is empty: 6 rows are left out, and 54 remain" in str(
        notice.message
    )


def test_whole_numbers_stay_classes_and_texts_of_all_files_too(folder: Path) -> None:
    for k, values in enumerate([["1", "0"] * 3, ["0", "2"] * 3, ["2", "1"] * 3]):
        (folder / f"part-{k}.csv").write_text("x,t\n" + "".join(f"{i},{t}\n" for i, t in enumerate(values)))
    assert load(folder, target="t").classes == ("0", "1", "2")
    (folder / "part-1.csv").write_text("x,t\n1,one\n2,one\n")
    with pytest.raises(DataError, match="the target 't' is text in some rows and numbers in others"):
        load(folder, target="t")
    assert load(folder, target="t", task="classification").classes == ("0", "1", "2", "one")


def test_an_error_names_the_file_and_the_line(folder: Path) -> None:
    lines = (folder / "part-1.csv").read_text().splitlines()
    lines[9] = "20,Ulm,2010-01-10,no,1"
    (folder / "part-1.csv").write_text("\n".join(lines))
    with pytest.raises(DataError, match=r"part-1.csv, line 10: 5 cells found, and 6 expected"):
        load(folder, target="price")
    lines[9] = "old,Ulm,2010-01-10,True,1,5"
    (folder / "part-1.csv").write_text("\n".join(lines))
    with pytest.raises(DataError, match=r"part-1.csv, line 10: column 'age' holds 'old'"):
        load(folder, target="city", drop=["price"])


@pytest.mark.parametrize(
    ("header", "given"),
    [
        ("age,town,since,member,code,price", "only in part-2.csv: town; only in part-0.csv: city"),
        ("age,since,city,member,code,price", "the same names in another order"),
        ("age,city,since,member,code", "only in part-0.csv: price"),
    ],
)
def test_columns_are_the_same_in_each_file(folder: Path, header: str, given: str) -> None:
    (folder / "part-2.csv").write_text(f"{header}\n")
    with pytest.raises(DataError, match=r"part-2\.csv: its columns are not those of part-0\.csv") as raised:
        load(folder, target="price")
    assert given in str(raised.value)


def test_kinds_of_files_are_not_mixed(folder: Path) -> None:
    (folder / "part-3.tsv").write_text(HEADER)
    with pytest.raises(DataError, match="the files of one table end alike") as raised:
        load(folder, target="price")
    assert "part-0.csv and part-3.tsv" in str(raised.value)


def test_a_full_disk_is_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def __getattr__(self, name: str) -> Any:
            def fail(*arguments: Any) -> Any:
                raise OSError(errno.ENOSPC, "No space left on device")

            return fail if name == "write" else lambda *arguments: None

    monkeypatch.setattr(temporary, "TemporaryFile", Full)
    with pytest.raises(
        DataError, match="a temporary file cannot be written: No space left on device"
    ) as raised:
        load(folder, target="city", drop=["price"])
    assert "TMPDIR" in str(raised.value)


def test_features_alone_are_read_too(folder: Path) -> None:
    data = load(folder, target="city", drop=["price"])
    x = load_features(folder, data.columns)
    np.testing.assert_array_equal(x, data.x)


def test_the_command_takes_a_folder_wherever_it_takes_a_table(folder: Path, handgrad: Command) -> None:
    options = ["--target", "city", "--drop", "price", "--epochs", "2", "--hidden", "4", "--test", "0.3"]
    results = []
    for source in ("all.csv", "parts"):
        handgrad("train", source, *options, "--out", f"runs/{source}")
        results.append(json.loads(handgrad("evaluate", f"runs/{source}", source, "--json").stdout))
        results[-1]["answers"] = handgrad("predict", f"runs/{source}", source, "--keep", "code,city").stdout
    assert results[0] == results[1]
    assert "Error" in handgrad("train", "parts", code=1).stderr

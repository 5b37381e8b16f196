"""A Parquet file is read by column, and a value or a column that cannot be used is named."""

from __future__ import annotations

import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from handgrad.data import Dataset, read_parquet, reading
from handgrad.errors import DataError, MissingPackageError

Read = Callable[..., Dataset]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Write columns to t.parquet, and read that."""

    def read(columns: dict[str, object], **options: object) -> Dataset:
        pq.write_table(pa.table(columns), tmp_path / "t.parquet", row_group_size=2)
        return read_parquet(tmp_path / "t.parquet", **options)

    return read


def test_numbers_of_every_type_become_float64(read: Read) -> None:
    columns = {
        "whole": pa.array([1, 2, 3], pa.int16()),
        "y": [0.5, 1.5, 2.5],
        "half": pa.array(np.array([0.5, 1, 2], np.float16)),
        "flag": [True, False, True],
        "price": pa.array([Decimal("1.25"), Decimal("2.50"), Decimal("3.75")]),
    }
    data = read(columns, target="y")
    assert data.x.dtype == np.float64
    assert data.x.tolist() == [[1, 0.5, 1, 1.25], [2, 1, 0, 2.5], [3, 2, 1, 3.75]]
    assert data.feature_names == ("whole", "half", "flag", "price")
    assert (data.name, data.task, data.t.tolist()) == ("t.parquet", "regression", [0.5, 1.5, 2.5])


@pytest.mark.parametrize(
    ("target", "classes"),
    [
        (pa.array(["dog", "cat", "dog", "cat"]), ("cat", "dog")),
        (pa.array(["dog", "cat", "dog", "cat"], pa.large_string()), ("cat", "dog")),
        (pa.array(["dog", "cat", "dog", "cat"]).dictionary_encode(), ("cat", "dog")),
        (pa.array([True, False, True, False]), ("False", "True")),
        (pa.array([3, 1, 3, 1], pa.uint8()), ("1", "3")),
    ],
)
def test_texts_booleans_categories_and_few_whole_numbers_are_classes(
    read: Read, target: pa.Array, classes: tuple[str, ...]
) -> None:
    data = read({"x": [1, 2, 3, 4], "y": target}, target="y")
    assert (data.task, data.classes, data.t.tolist()) == ("classification", classes, [1, 0, 1, 0])


def test_several_targets_are_regression(read: Read) -> None:
    data = read({"a": [1, 2, 3], "x": [4, 5, 6], "b": [7, 8, 9]}, target=["b", "a"])
    assert (data.task, data.t.tolist()) == ("regression", [[7, 1], [8, 2], [9, 3]])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"x": ["a", "b"], "y": [0.5, 1]},
            "t.parquet: no column has anything to learn from\n.*x: unused: 2 texts, none in two rows",
        ),
        ({"x": [[1], [2]], "y": [0.5, 1]}, "column 'x' is of type list"),
        ({"x": [1, np.inf, 3], "y": [1, 2, 3.5]}, "t.parquet, row 1, .*: column 'x' holds 'inf'"),
        ({"x": [1, 2], "y": [None, np.nan]}, "t.parquet, row 0, .*: the target is empty, as in every row"),
        (
            {"x": pa.nulls(3, pa.int8()), "y": [1, 2, 3.5]},
            "no column has anything to learn from\n.*x: unused: empty",
        ),
        ({"x": [1, 2, 3], "y": [1, np.inf, 3.5]}, r"t.parquet: t\[1\] is inf"),
        ({"x": pa.array([], pa.int8()), "y": pa.array([], pa.int8())}, "t.parquet: the file has .* no rows"),
        ({"x": [1, 2], "why": [0.5, 1]}, r"there is no column 'y'\n  fix    choose from why, x"),
    ],
)
def test_a_wrong_table_is_refused(read: Read, columns: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(columns, target="y")


@pytest.mark.parametrize("target", [["a", None, "b", "a"], [1.5, np.nan, 7, 8]])
def test_rows_without_a_target_are_left_out(read: Read, target: list[object]) -> None:
    with pytest.warns(
        UserWarning, match="row 1, counted from 0: the target is empty: 1 row is left out, and 3 remain"
    ):
        data = read({"x": [4, 5, 6, 7], "y": target}, target="y")
    assert (data.x[:, 0].tolist(), len(data.t)) == ([4, 6, 7], 3)


def test_errors_count_rows_without_a_target(read: Read) -> None:
    with (
        pytest.warns(UserWarning, match="left out"),
        pytest.raises(DataError, match=r"row 2, .*'x' holds 'inf'"),
    ):
        read({"x": [1, 2, np.inf], "y": [None, 2.5, 3.5]}, target="y")


def test_text_and_several_columns_do_not_suit_every_task(read: Read) -> None:
    with pytest.raises(DataError, match=r"t\.parquet, target y: the target is text"):
        read({"x": [1, 2], "y": ["a", "b"]}, target="y", task="regression")
    with pytest.raises(DataError, match=r"t\.parquet, target y, z: the target is text"):
        read({"x": [1, 2], "y": ["a", "b"], "z": [1, 2]}, target=["y", "z"])


def test_a_small_file_that_claims_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A column of one repeated value takes next to no place in a file."""
    monkeypatch.setattr(reading, "FREE", 2**20)
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": np.zeros(200_000), "y": np.ones(200_000)}), path)
    with pytest.raises(
        DataError, match=r"t\.parquet: the file claims 32\d{5} bytes of contents, and 1048576 is"
    ):
        read_parquet(path, target="y")


def test_a_file_that_is_not_parquet_and_a_missing_one_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_bytes(b"PAR1 and nothing more")
    with pytest.raises(DataError, match=r"t\.parquet: the file cannot be read"):
        read_parquet(tmp_path / "t.parquet", target="y")
    with pytest.raises(DataError, match=r"gone\.parquet: there is no such file"):
        read_parquet(tmp_path / "gone.parquet", target="y")


def test_a_damaged_file_is_refused(read: Read, tmp_path: Path) -> None:
    read({"x": [1, 2, 3], "y": [0.5, 1, 2]}, target="y")
    path = tmp_path / "t.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"t\.parquet: the file cannot be read"):
        read_parquet(path, target="y")


def test_without_pyarrow_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        MissingPackageError, match=r"t\.parquet.*pyarrow\n.*pip install 'handgrad\[parquet\]'"
    ):
        read_parquet("t.parquet", target="y")

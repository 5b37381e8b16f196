"""Tables in columns: Parquet, read with pyarrow."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.arguments import judged
from handgrad.data.dataset import Dataset, Task
from handgrad.data.files import check_claim, reading
from handgrad.data.table import Columns, choose_columns, make_dataset, name_columns
from handgrad.errors import DataError, need


@judged
def read_parquet(
    path: str | os.PathLike[str], *, target: str | Sequence[str] | None, task: Task | None = None
) -> Dataset:
    """Read a table of numbers from a Parquet file.

    Parameters
    ----------
    path
        The file.
    target
        The column to be predicted, or several for regression. All other columns are features.
    task
        What the target is for. By default, text and booleans are classes, and so are whole numbers when there
        are at most 20 different ones, each found twice on average; other numbers are for regression.

    Returns
    -------
    Dataset
        ``x`` float64 of shape (n, d), d features in the order of the file.

    Raises
    ------
    DataError
        When the file is missing or damaged, a value is missing, a feature is no number, or the target is
        unknown.
    MissingPackageError
        When pyarrow is not installed.

    Examples
    --------
    >>> read_parquet("missing.parquet", target="height")
    Traceback (most recent call last):
    handgrad.errors.DataError: missing.parquet: there is no such file
      fix    check the path; it is looked up from the current folder
    """
    path = Path(path)
    columns, x, targets = _read(path, lambda header: choose_columns(path, header, target, task))
    return make_dataset(path, columns, x, targets)


def read_parquet_features(path: str | os.PathLike[str], names: Sequence[str]) -> NDArray[np.float64]:
    """Return the named columns of a Parquet file, (n, d) in the order of the names; others are passed over.

    Raises
    ------
    DataError, MissingPackageError
        As `read_parquet`, and when a column is missing.
    """
    path = Path(path)
    return _read(path, lambda header: name_columns(path, header, names))[1]


def _read(
    path: Path, choose: Callable[[list[str]], Columns]
) -> tuple[Columns, NDArray[np.float64], list[NDArray[Any]]]:
    """Return the columns, the features (n, d) and the targets, each (n,)."""
    pa = need("pyarrow", f"{path}: reading Parquet", "parquet")
    from pyarrow import parquet as pq

    with reading(path, pa.ArrowException, UnicodeDecodeError), path.open("rb") as stream:
        file = pq.ParquetFile(stream)
        schema = file.schema_arrow
        columns = choose(schema.names)
        _check_size(path, file.metadata)
        for index in columns.features:
            _check_number(path, columns.names[index], schema.field(index).type)
        # A text stands once in the file for all its rows, and once in memory: 100 kB could ask for gigabytes else.
        texts = [columns.names[index] for index in columns.targets if _is_text(schema.field(index).type)]
        chosen = [columns.names[index] for index in (*columns.features, *columns.targets)]
        table = pq.ParquetFile(stream, read_dictionary=texts).read(columns=chosen)
        x = np.empty((table.num_rows, len(columns.features)))
        for place, name in enumerate(columns.feature_names):
            x[:, place] = _numbers(path, name, table.column(name))
        targets = [_target(path, name, table.column(name)) for name in columns.target_names]
    return columns, x, targets


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return types.is_string(kind) or types.is_large_string(kind)


def _check_size(path: Path, metadata: Any) -> None:
    if metadata.num_rows == 0:
        raise DataError(f"{path}: the file has columns and no rows")
    pages = sum(metadata.row_group(index).total_byte_size for index in range(metadata.num_row_groups))
    check_claim(path, pages + 8 * metadata.num_rows * metadata.num_columns)


def _target(path: Path, name: str, column: Any) -> NDArray[Any]:
    """Return a column of a target, (n,) numbers, booleans or texts."""
    from pyarrow import types

    if types.is_dictionary(column.type) and _is_text(column.type.value_type):
        _check_present(path, name, column)
        whole = column.unify_dictionaries().combine_chunks()
        values: NDArray[Any] = np.array(whole.dictionary.to_pylist(), dtype=object)[whole.indices.to_numpy()]
        return values
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return _numbers(path, name, column)


def _numbers(path: Path, name: str, column: Any) -> NDArray[Any]:
    """Return a column of numbers or booleans, (n,)."""
    import pyarrow as pa
    from pyarrow import types

    _check_number(path, name, column.type)
    if types.is_decimal(column.type):
        column = column.cast(pa.float64())
    _check_present(path, name, column)
    values: NDArray[Any] = column.to_numpy()
    return values


def _check_number(path: Path, name: str, kind: Any) -> None:
    from pyarrow import types

    if not (
        types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind)
    ):
        raise DataError(
            f"{path}: column {name!r} is of type {kind}, and numbers are needed", fix="leave out the column"
        )


def _check_present(path: Path, name: str, column: Any) -> None:
    if column.null_count:
        row = column.is_null().index(True).as_py()
        raise DataError(
            f"{path}: column {name!r} has no value in row {row}, counted from 0, and every row needs one",
            fix="fill in the value, or leave out the row or the column",
        )

"""Tables in columns: Parquet, read with pyarrow."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from handgrad.arguments import judged
from handgrad.arrays import Array
from handgrad.data.dataset import Dataset, Task
from handgrad.data.reading import Contents, Request, check_claim, make_dataset, reading, select
from handgrad.errors import DataError, need


@judged
def read_parquet(
    path: str | os.PathLike[str], *, target: str | Sequence[str] | None, task: Task | None = None
) -> Dataset:
    """Read a table of numbers from a Parquet file.

    Parameters
    ----------
    path, target, task
        As for `load`.

    Returns
    -------
    Dataset
        ``x`` float64 of shape (n, d), d features in the order of the file.

    Raises
    ------
    DataError
        When a value is missing, or a feature is no number; and as `load`.
    MissingPackageError
        When pyarrow is not installed.

    Examples
    --------
    >>> read_parquet("missing.parquet", target="height")
    Traceback (most recent call last):
    handgrad.errors.DataError: missing.parquet: there is no such file
      fix    check the path; it is looked up from the current folder
    """
    return make_dataset(Path(path), parquet_contents(Path(path), Request(target, task)))


def parquet_contents(path: Path, request: Request) -> Contents:
    """Read the columns that are asked for."""
    pa = need("pyarrow", f"{path}: reading Parquet", "parquet")
    from pyarrow import parquet as pq

    with reading(path, pa.ArrowException, UnicodeDecodeError), path.open("rb") as stream:
        file = pq.ParquetFile(stream)
        schema, metadata = file.schema_arrow, file.metadata
        selection = select(path, schema.names, request)
        if metadata.num_rows == 0:
            raise DataError(f"{path}: the file has columns and no rows")
        pages = sum(metadata.row_group(index).total_byte_size for index in range(metadata.num_row_groups))
        check_claim(path, pages + 8 * metadata.num_rows * metadata.num_columns)
        for index in selection.features:
            _check_number(path, selection.names[index], schema.field(index).type)
        features, targets = (
            [schema.names[index] for index in chosen] for chosen in (selection.features, selection.targets)
        )
        # A text appears once in the file for all its rows, and once in memory: else 100 kB could ask for gigabytes.
        texts = [name for name in targets if _is_text(schema.field(name).type)]
        table = pq.ParquetFile(stream, read_dictionary=texts).read(columns=features + targets)
        x = np.empty((table.num_rows, len(features)))
        for place, name in enumerate(features):
            x[:, place] = _numbers(path, name, table.column(name))
        return selection.contents(path, x, [_target(path, name, table.column(name)) for name in targets])


def _target(path: Path, name: str, column: Any) -> Array:
    """Return a column of a target, (n,) numbers, booleans or texts."""
    from pyarrow import types

    if not types.is_dictionary(column.type):
        return _numbers(path, name, column)
    if not _is_text(column.type.value_type):
        return _numbers(path, name, column.cast(column.type.value_type))
    _check_present(path, name, column)
    whole = column.unify_dictionaries().combine_chunks()
    values: Array = np.array(whole.dictionary.to_pylist(), dtype=object)[whole.indices.to_numpy()]
    return values


def _numbers(path: Path, name: str, column: Any) -> Array:
    """Return a column of numbers or booleans, (n,)."""
    from pyarrow import float64, types

    _check_number(path, name, column.type)
    _check_present(path, name, column)
    values: Array = (column.cast(float64()) if types.is_decimal(column.type) else column).to_numpy()
    return values


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return types.is_string(kind) or types.is_large_string(kind)


def _check_number(path: Path, name: str, kind: Any) -> None:
    from pyarrow import types

    numbers = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    if not any(is_kind(kind) for is_kind in numbers):
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

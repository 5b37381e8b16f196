"""Tables in columns: Parquet, read with pyarrow."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from handgrad.arguments import judged
from handgrad.arrays import Array
from handgrad.data.cells import Cells, Codes
from handgrad.data.dataset import Dataset, Task
from handgrad.data.reading import Contents, Request, check_claim, leave_out, make_dataset, reading, select
from handgrad.errors import DataError, need


@judged
def read_parquet(
    path: str | os.PathLike[str], *, target: str | Sequence[str] | None, task: Task | None = None
) -> Dataset:
    """Read a table from a Parquet file.

    Parameters
    ----------
    path, target, task
        As for `load`.

    Returns
    -------
    Dataset
        ``x`` float64 of shape (n, d), d features in the order of the file; ``columns`` has what was done to each.

    Raises
    ------
    DataError
        When it would be a guess what a column holds; and as `load`.
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
            _check_kind(path, selection.names[index], schema.field(index).type)
        features, targets = (
            [schema.names[index] for index in chosen] for chosen in (selection.features, selection.targets)
        )
        # A text appears once in the file for all its rows, and once in memory: else 100 kB could ask for gigabytes.
        texts = [name for name in features + targets if _is_text(schema.field(name).type)]
        table = pq.ParquetFile(stream, read_dictionary=texts).read(
            columns=list(dict.fromkeys(features + targets))
        )
        missing = np.zeros(len(table), bool)
        for name in targets:
            missing |= table.column(name).is_null(nan_is_null=True).to_numpy()
        rows = np.flatnonzero(~missing)
        if len(rows) < len(table):
            leave_out(_place(path, int(missing.argmax())), len(table) - len(rows), len(rows))
            table = table.take(rows)
        cells = [
            _cells(
                name,
                table.column(name),
                lambda row: _place(path, rows[row]),
                textual=selection.is_textual(place),
            )
            for place, name in enumerate(features)
        ]
        return selection.contents(path, cells, [_target(table.column(name)) for name in targets])


def _cells(name: str, column: Any, place: Callable[[int], str], *, textual: bool) -> Cells:
    """Return a feature as numbers, or as texts, dates and booleans as a CSV file has them."""
    from pyarrow import string, types

    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    if _is_number(kind) and not types.is_boolean(kind) and not textual:
        values = _numbers(column.cast(kind)).astype(np.float64)
        return Cells(name, values, None, place)
    if not types.is_dictionary(column.type):
        column = column.cast(string()).dictionary_encode()
    whole, codes = column.unify_dictionaries().combine_chunks(), Codes()
    known = np.array([*(codes[str(text)] for text in whole.dictionary.to_pylist()), -1])
    return Cells(name, known[whole.indices.fill_null(-1).to_numpy(zero_copy_only=False)], codes.texts, place)


def _place(path: Path, row: int) -> str:
    return f"{path}, row {row}, counted from 0"


def _target(column: Any) -> Array:
    """Return a column of a target, (n,) numbers, booleans or texts."""
    from pyarrow import types

    if not types.is_dictionary(column.type):
        return _numbers(column)
    if not _is_text(column.type.value_type):
        return _numbers(column.cast(column.type.value_type))
    whole = column.unify_dictionaries().combine_chunks()
    values: Array = np.array(whole.dictionary.to_pylist(), dtype=object)[whole.indices.to_numpy()]
    return values


def _numbers(column: Any) -> Array:
    """Return a column of numbers or booleans, (n,)."""
    from pyarrow import float64, types

    values: Array = (column.cast(float64()) if types.is_decimal(column.type) else column).to_numpy()
    return values


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return types.is_string(kind) or types.is_large_string(kind)


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    numbers = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    return any(is_kind(kind) for is_kind in numbers)


def _check_kind(path: Path, name: str, kind: Any) -> None:
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    if not any(fits(kind) for fits in (_is_number, _is_text, types.is_date, types.is_timestamp)):
        raise DataError(
            f"{path}: column {name!r} is of type {kind}, and numbers, texts or dates are needed",
            fix=f"drop the column: --drop {name}",
        )


def parquet_bytes(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Return rows of named values as a Parquet file."""
    pa = need("pyarrow", "writing Parquet", "parquet")
    from pyarrow import parquet as pq

    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), file)
    return file.getvalue()

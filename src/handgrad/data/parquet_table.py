"""Tables in columns: Parquet, read with pyarrow."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from handgrad.arguments import judged
from handgrad.arrays import Array
from handgrad.data.cells import Cells, Codes
from handgrad.data.columns import drop_advice
from handgrad.data.dataset import Dataset, Task
from handgrad.data.reading import (
    Contents,
    Piece,
    Request,
    Selection,
    check_claim,
    leave_out,
    make_dataset,
    reading,
    select,
)
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
    ((selection, piece),) = parquet_pieces(path, lambda names: select(path, names, request))
    if piece.without:
        leave_out(piece.place_without, piece.without, len(piece))
    return selection.contents(path, piece.cells, piece.targets)


def parquet_pieces(
    path: Path, choose: Callable[[Sequence[str]], Selection], most: float = math.inf
) -> Iterator[tuple[Selection, Piece]]:
    """Read the columns that are chosen by their names: all rows at once, or by row group if they are more than ``most``."""
    pa = need("pyarrow", f"{path}: reading Parquet", "parquet")
    from pyarrow import parquet as pq

    with reading(path, pa.ArrowException, UnicodeDecodeError), path.open("rb") as stream:
        file = pq.ParquetFile(stream)
        schema, metadata = file.schema_arrow, file.metadata
        selection = choose(schema.names)
        if metadata.num_rows == 0:
            raise DataError(f"{path}: the file has columns and no rows")
        for index in selection.features:
            _check_kind(path, selection.names[index], schema.field(index).type)
        features, targets = (
            [schema.names[index] for index in chosen] for chosen in (selection.features, selection.targets)
        )
        # A text appears once in the file for all its rows, and once in memory: else 100 kB could ask for gigabytes.
        texts = [name for name in features + targets if _is_text(schema.field(name).type)]
        file, first = pq.ParquetFile(stream, read_dictionary=texts), 0
        groups = list(range(metadata.num_row_groups))
        for some in [groups] if metadata.num_rows <= most else [[each] for each in groups]:
            rows = sum(metadata.row_group(index).num_rows for index in some)
            pages = sum(metadata.row_group(index).total_byte_size for index in some)
            check_claim(path, pages + 8 * rows * metadata.num_columns)
            table = file.read_row_groups(some, columns=list(dict.fromkeys(features + targets)))
            yield selection, _piece(path, selection, table, features, targets, first)
            first += len(table)


def parquet_rows(path: Path) -> int:
    """Return how many rows a file has."""
    pa = need("pyarrow", f"{path}: reading Parquet", "parquet")
    from pyarrow import parquet as pq

    with reading(path, pa.ArrowException):
        return int(pq.read_metadata(path).num_rows)


def _piece(
    path: Path, selection: Selection, table: Any, features: Sequence[str], targets: Sequence[str], first: int
) -> Piece:
    """Return the columns of some rows, of which the file has ``first`` before."""
    missing = np.zeros(len(table), bool)
    for name in targets:
        missing |= table.column(name).is_null(nan_is_null=True).to_numpy()
    rows, without = np.flatnonzero(~missing), int(missing.sum())
    if without:
        table = table.take(rows)

    def place(row: int) -> str:
        return _place(path, first + int(rows[row]))

    cells = [
        _cells(name, table.column(name), place, textual=selection.is_textual(k))
        for k, name in enumerate(features)
    ]
    at = _place(path, first + int(missing.argmax())) if without else ""
    return Piece(cells, [_target(table.column(name)) for name in targets], without, at)


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
            fix=drop_advice(name),
        )


def parquet_bytes(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Return rows of named values as a Parquet file."""
    pa = need("pyarrow", "writing Parquet", "parquet")
    from pyarrow import parquet as pq

    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), file)
    return file.getvalue()

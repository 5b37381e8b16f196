"""Folders of CSV or Parquet files that together are one table, perhaps larger than memory.

They are read some rows at a time. The columns, and then the features, are kept in temporary files that are mapped into
memory, so that everything that is done to the columns of a table is done to theirs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from handgrad.arrays import MANY, Array
from handgrad.data.cells import Cells, Codes, text_of
from handgrad.data.csv_table import csv_pieces, csv_rows
from handgrad.data.parquet_table import parquet_pieces, parquet_rows
from handgrad.data.reading import Contents, Piece, Request, Selection, leave_out, reading, select
from handgrad.data.temporary import TemporaryArray
from handgrad.errors import DataError, listed

Choose = Callable[[Sequence[str]], Selection]
Pieces = Callable[[Path, Choose, float], Iterator[tuple[Selection, Piece]]]
READERS: dict[str, tuple[Pieces, Callable[[Path], int]]] = {
    ".csv": (csv_pieces, csv_rows),
    ".tsv": (csv_pieces, csv_rows),
    ".parquet": (parquet_pieces, parquet_rows),
}
ROWS = 2**16  # of a CSV file that are read at a time


def table_files(folder: Path) -> list[Path]:
    """Return the tables of a folder, by name; those whose names begin with a dot or an underscore are none."""
    if not folder.is_dir():
        return []
    with reading(folder):
        found = [file for file in folder.iterdir() if file.suffix.lower() in READERS]
    return sorted(file for file in found if file.name[0] not in "._")


def folder_contents(folder: Path, request: Request) -> Contents:
    """Read the columns that are asked for, of all files."""
    files = table_files(folder)
    if others := [file.name for file in files if file.suffix.lower() != files[0].suffix.lower()]:
        raise DataError(
            f"{folder}: the files of one table end alike",
            given=f"{files[0].name} and {others[0]}",
            fix="keep each kind in a folder of its own",
        )
    pieces, most_rows = READERS[files[0].suffix.lower()]
    header, table = list[str](), None
    targets, without, places = list[list[Array]](), 0, list[str]()
    rows = sum(map(most_rows, files))

    def choose(file: Path, names: Sequence[str]) -> Selection:
        if header and list(names) != header:
            raise _other_columns(file, names, files[0], header)
        header[:] = names
        return select(folder, names, request)

    for file in files:
        for selection, piece in pieces(file, lambda names, file=file: choose(file, names), ROWS):  # type: ignore[misc]
            table = table or MappedTable([selection.names[k] for k in selection.features], rows)
            without += piece.without
            places += [piece.place_without] * bool(piece.without)
            if len(piece):
                table.add(piece.cells)
                targets.append(piece.targets)
    assert table is not None, "there is a file"
    if without:
        leave_out(places[0], without, table.count)
    names = [selection.names[index] for index in selection.targets]
    joined = [
        _joined(folder, name, each, selection.task)
        for name, each in zip(names, zip(*targets, strict=True), strict=True)
    ]
    return selection.contents(folder, table.cells(), joined)


def _other_columns(file: Path, names: Sequence[str], first: Path, header: Sequence[str]) -> DataError:
    here, there = (
        [name for name in some if name not in others] for some, others in ((names, header), (header, names))
    )
    given = "; ".join(
        f"only in {path.name}: {listed(each, 5)}" for path, each in ((file, here), (first, there)) if each
    )
    return DataError(
        f"{file}: its columns are not those of {first.name}",
        given=given or "the same names in another order",
        fix="give each file of the folder the same columns in the same order",
    )


def _joined(folder: Path, name: str, parts: Sequence[Array], task: str | None) -> Array:
    """Return a target of all pieces: numbers, or texts, each of them in memory once."""
    texts = [part.dtype.kind == "O" for part in parts]
    if not any(texts):
        return np.concatenate(parts)
    if not all(texts) and task != "classification":
        raise DataError(
            f"{folder}: the target {name!r} is text in some rows and numbers in others",
            given=f"{parts[texts.index(True)][0]!r:.40} and {parts[texts.index(False)][0]}",
            fix="correct these rows; or set the task to classification (--task classification) if these are classes",
        )
    once: dict[str, str] = {}
    joined = np.empty(sum(map(len, parts)), object)
    joined[:] = [once.setdefault(text, text) for part in parts for text in map(str, part.tolist())]
    return joined


class MappedTable:
    """Columns of a table in a temporary file, one after the other, which grow until all rows have been read.

    A column is numbers as long as each piece of it is, else the codes of its texts, as of a file that is read at once.
    """

    def __init__(self, names: Sequence[str], rows: int) -> None:
        self.names, self.rows, self.count = names, rows, 0
        self.codes: list[Codes | None] = [None] * len(names)
        self.columns = TemporaryArray(len(names), rows)
        self.starts, self.places = list[int](), list[Callable[[int], str]]()

    def add(self, piece: Sequence[Cells]) -> None:
        """Add some rows."""
        for k, cells in enumerate(piece):
            codes = self.codes[k]
            if cells.texts is None and codes is None:
                self.columns.write(k * self.rows + self.count, cells.values.astype(np.float64))
                continue
            if codes is None:
                codes = self.codes[k] = Codes()
                self._recode(k, codes)
            self.columns.write(k * self.rows + self.count, _coded(cells.values, cells.texts, codes))
        self.starts.append(self.count)
        self.places.append(piece[0].place)
        self.count += len(piece[0].values)

    def _recode(self, k: int, codes: Codes) -> None:
        """Turn the numbers of a column into codes of texts."""
        for start in range(0, self.count, MANY):
            place = k * self.rows + start
            numbers = self.columns.read(place, min(MANY, self.count - start))
            self.columns.write(place, _coded(numbers, None, codes))

    def place(self, row: int) -> str:
        """Return where a row is."""
        part = bisect_right(self.starts, row) - 1
        return self.places[part](row - self.starts[part])

    def cells(self) -> list[Cells]:
        """Return the columns, mapped."""
        cells = []
        for name, numbers, codes in zip(self.names, self.columns.mapped(), self.codes, strict=True):
            values = numbers if codes is None else numbers.view(np.int64)
            cells.append(
                Cells(name, values[: self.count], None if codes is None else codes.texts, self.place)
            )
        return cells


def _coded(values: Array, texts: Sequence[str] | None, codes: Codes) -> Array:
    """Return the codes of texts, or of numbers as texts."""
    if texts is None:
        numbers, values = np.unique(values, return_inverse=True)
        texts = list(map(text_of, numbers.tolist()))
    known: Array = np.array([*map(codes.__getitem__, texts), -1])[values]
    return known

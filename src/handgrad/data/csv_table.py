"""Tables as text: CSV, with commas, semicolons or tabs."""

from __future__ import annotations

import csv
import math
import os
import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from handgrad.arguments import judged
from handgrad.arrays import Array
from handgrad.data.cells import Cells, Codes, is_missing, lacks_target, number, text_of
from handgrad.data.columns import drop_advice
from handgrad.data.dataset import Dataset, Task
from handgrad.data.reading import (
    Contents,
    Piece,
    Request,
    Selection,
    leave_out,
    make_dataset,
    reading,
    select,
)
from handgrad.errors import DataError, notify

NAMES = {",": "a comma", ";": "a semicolon", "\t": "a tab"}  # of delimiters
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}\.\d{3}")
FIRST_LINES = 1000  # which are searched for them
DECIMAL = re.compile(r"[+-]?\d*([.,])\d+([eE][+-]?\d+)?")
BLOCK = 4096  # rows that are read before their cells become numbers or texts


@judged
def read_csv(
    path: str | os.PathLike[str], *, target: str | Sequence[str] | None, task: Task | None = None
) -> Dataset:
    r"""Read a table from a text file whose first line names the columns.

    The delimiter is a tab in a file that ends in ``.tsv``; else it is the most frequent in the first line of
    comma, semicolon and tab. In a file with semicolons, ``1,5`` is 1.5: spreadsheets write both where numbers have a
    decimal comma. Blank lines are skipped, as is a byte order mark.

    Parameters
    ----------
    path, target, task
        As for `load`; the file is in UTF-8.

    Returns
    -------
    Dataset
        ``x`` float64 of shape (n, d), d features in the order of the file; ``columns`` has what was done to each.

    Raises
    ------
    DataError
        When it would be a guess what a column holds, or a line has too few cells or too many; and as `load`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "people.csv")
    ...     _ = path.write_text("age,height,adult\n7,1.2,no\n40,1.8,yes\n")
    ...     data = read_csv(path, target="adult")
    >>> data.classes, data.feature_names
    (('no', 'yes'), ('age', 'height'))
    """
    return make_dataset(Path(path), csv_contents(Path(path), Request(target, task)))


def csv_contents(path: Path, request: Request) -> Contents:
    """Read the columns that are asked for."""
    ((selection, piece),) = csv_pieces(path, lambda names: select(path, names, request))
    if piece.without:
        leave_out(piece.place_without, piece.without, len(piece))
    return selection.contents(path, piece.cells, piece.targets)


def csv_pieces(
    path: Path, choose: Callable[[Sequence[str]], Selection], most: float = math.inf
) -> Iterator[tuple[Selection, Piece]]:
    """Read the columns that are chosen by their names, of so many rows at a time at ``most``."""
    with reading(path, UnicodeDecodeError, csv.Error), path.open(encoding="utf-8-sig", newline="") as file:
        first = file.readline()
        delimiter = "\t" if path.suffix.lower() == ".tsv" else max(NAMES, key=first.count)
        # The first line again, rather than the file from its start: a pipe is read once.
        rows = csv.reader(chain([first], file), delimiter=delimiter, skipinitialspace=True, strict=True)
        if not (header := next(rows, [])):
            raise DataError(
                f"{path}: the first line is empty", fix="begin the file with the names of its columns"
            )
        selection, found = choose(header), 0
        commas = _DecimalCommas(path, selection) if delimiter == ";" else None
        piece = _Rows(path, selection)
        for cells in filter(None, rows):
            if len(cells) != len(header):
                raise DataError(
                    f"{path}, line {rows.line_num}: {len(cells)} cells found, and {len(header)} expected, one a column",
                    fix=f"add or remove cells; one that holds {NAMES[delimiter]} is written in double quotes",
                )
            found += 1
            if commas:
                commas.write_points(cells, rows.line_num)
            piece.add(cells, rows.line_num)
            if len(piece.lines) >= most:
                yield selection, piece.read()
                piece = _Rows(path, selection)
        if not found:
            raise DataError(f"{path}: the file has a header and no rows")
        yield selection, piece.read()
        if commas:
            commas.notify_of_thousands()


class _DecimalCommas:
    """Writes decimal commas as points, in a file that has no decimal points: there 1.500 may be 1500."""

    def __init__(self, path: Path, selection: Selection) -> None:
        self.path, self.selection = path, selection
        self.mark, self.first = "", ""
        self.thousands: dict[int, str] = {}  # by a column with points: a cell, "" where one is no thousands

    def write_points(self, cells: list[str], line: int) -> None:
        """Do so in the columns that are selected; a `DataError` where both have been found."""
        if line <= FIRST_LINES:
            for index in (*self.selection.features, *self.selection.targets):
                cell = cells[index].strip()
                if "." in cell and self.thousands.get(index) != "":
                    self.thousands[index] = cell if THOUSANDS.fullmatch(cell) else ""
        if self.mark == "." and "," not in "".join(cells):  # nothing to write, and most files with points
            return
        for index in (*self.selection.features, *self.selection.targets):
            cell = cells[index].strip()
            if not (found := DECIMAL.fullmatch(cell)):
                continue
            name = self.selection.names[index]
            if not self.mark:
                self.mark, self.first = found[1], f"column {name!r} in line {line} {cell!r}"
            if found[1] != self.mark:
                raise DataError(
                    f"{self.path}, line {line}: column {name!r} holds {cell!r}, and {self.first}",
                    fix="write all numbers with a decimal point, or all with a comma, and thousands with neither; or "
                    + drop_advice(name),
                )
            cells[index] = cell.replace(",", ".")

    def notify_of_thousands(self) -> None:
        """Notify of columns in which three digits follow every point: they were read as decimals."""
        for index, cell in self.thousands.items():
            if cell:
                notify(
                    f"{self.path}: column {self.selection.names[index]!r} holds {cell}, which was read as {float(cell):g}; "
                    "if its points group thousands, write it without"
                )


def csv_rows(path: Path) -> int:
    """Return how many rows a file has at most: a line may be blank, or a cell have several."""
    with reading(path), path.open("rb") as file:
        return sum(part.count(b"\n") for part in iter(partial(file.read, 2**20), b"")) + 1


class _Rows:
    """Rows while they are read: their lines, columns and targets."""

    def __init__(self, path: Path, selection: Selection) -> None:
        self.path, self.selection = path, selection
        textual = map(selection.is_textual, range(len(selection.features)))
        self.columns = [_Column(textual=each) for each in textual]
        self.lines, self.without = list[int](), list[int]()
        self.texts, self.block = list[list[str]](), list[list[str]]()

    def add(self, cells: list[str], line: int) -> None:
        """Take a row, unless it has no target."""
        aims = [cells[index].strip() for index in self.selection.targets]
        if any(map(lacks_target, aims)):
            self.without.append(line)
            return
        self.block.append(cells)
        self.lines.append(line)
        self.texts.append(aims)
        if len(self.block) == BLOCK:
            self._extend()

    def _extend(self) -> None:
        """Move a block of rows into the columns."""
        for index, column in zip(self.selection.features, self.columns, strict=True):
            column.extend([cells[index] for cells in self.block])
        self.block.clear()

    def read(self) -> Piece:
        """Return what has been read."""
        self._extend()
        selection, path = self.selection, self.path
        targets = [
            _target(path, selection.names[index], [row[k] for row in self.texts], self.lines, selection.task)
            for k, index in enumerate(selection.targets)
            if self.lines
        ]
        place = partial(_place, path, self.lines)
        named = zip((selection.names[index] for index in selection.features), self.columns, strict=True)
        first = _place(path, self.without, 0) if self.without else ""
        return Piece([column.cells(name, place) for name, column in named], targets, len(self.without), first)


def _place(path: Path, lines: Sequence[int], row: int) -> str:
    return f"{path}, line {lines[row]}"


class _Column:
    """A column while it is read, by blocks of rows: numbers as long as every block reads as numbers, else texts."""

    def __init__(self, *, textual: bool) -> None:
        self.textual, self.codes = textual, Codes()
        self.values: array[Any] = array("q" if textual else "d")

    def extend(self, cells: list[str]) -> None:
        if not self.textual:
            if (numbers := _numbers(cells)) is not None:
                self.values.extend(numbers)
                return
            before = map(self.codes.__getitem__, map(text_of, self.values))
            self.textual, self.values = True, array("q", before)
        self.values.extend(map(self.codes.__getitem__, cells))

    def cells(self, name: str, place: Callable[[int], str]) -> Cells:
        values = np.frombuffer(self.values, np.int64 if self.textual else np.float64)
        return Cells(name, values, self.codes.texts if self.textual else None, place)


def _numbers(cells: list[str]) -> array[float] | None:
    """Return numbers, nan for a missing cell, or None when a cell holds something else."""
    try:
        values = array("d", map(float, cells))
    except ValueError:
        try:
            values = array("d", [math.nan if is_missing(cell) else float(cell) for cell in cells])
        except ValueError:
            return None
    return None if "_" in "".join(cells) else values


def _target(path: Path, name: str, texts: list[str], lines: list[int], task: Task | None) -> Array:
    """Return a column as whole numbers, as numbers, or as texts.

    One text among numbers is more likely a slip than a class, so that such classes must be asked for.
    """
    values = np.array([number(text) for text in texts])
    finite = np.isfinite(values)
    if finite.all():
        try:
            return np.array([int(text) for text in texts], dtype=np.int64)
        except (ValueError, OverflowError):  # a fraction, or more than 64 bits
            return values
    if task == "classification" or (task is None and not finite.any()):
        return np.array(texts, dtype=object)  # dtype str would give every text the room of the longest
    row = int(np.argmin(finite))
    raise DataError(
        f"{path}, line {lines[row]}: column {name!r} holds {texts[row]!r:.60}, and a finite number is needed",
        fix="correct the cell, or leave out the line or the column",
    )

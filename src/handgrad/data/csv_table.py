"""Tables as text: CSV, with commas, semicolons or tabs."""

from __future__ import annotations

import csv
import math
import os
from array import array
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from handgrad.arguments import judged
from handgrad.arrays import Array
from handgrad.data.cells import Cells, Codes, is_missing, lacks_target, number
from handgrad.data.dataset import Dataset, Task
from handgrad.data.reading import Contents, Request, Selection, leave_out, make_dataset, reading, select
from handgrad.errors import DataError

NAMES = {",": "a comma", ";": "a semicolon", "\t": "a tab"}  # of delimiters
BLOCK = 4096  # rows that are read before their cells become numbers or texts


@judged
def read_csv(
    path: str | os.PathLike[str], *, target: str | Sequence[str] | None, task: Task | None = None
) -> Dataset:
    r"""Read a table from a text file whose first line names the columns.

    The delimiter is a tab in a file that ends in ``.tsv``; else it is the most frequent in the first line of
    comma, semicolon and tab. Blank lines are skipped, as is a byte order mark.

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
    texts, lines, block, without = list[list[str]](), list[int](), list[list[str]](), list[int]()
    with reading(path, UnicodeDecodeError, csv.Error), path.open(encoding="utf-8-sig", newline="") as file:
        first = file.readline()
        delimiter = "\t" if path.suffix.lower() == ".tsv" else max(NAMES, key=first.count)
        # The first line again, rather than the file from its start: a pipe is read once.
        rows = csv.reader(chain([first], file), delimiter=delimiter, skipinitialspace=True, strict=True)
        if not (header := next(rows, [])):
            raise DataError(
                f"{path}: the first line is empty", fix="begin the file with the names of its columns"
            )
        selection = select(path, header, request)
        columns = [_Column(textual=selection.is_textual(place)) for place in range(len(selection.features))]
        for cells in filter(None, rows):
            if len(cells) != len(header):
                raise DataError(
                    f"{path}, line {rows.line_num}: {len(cells)} cells found, and {len(header)} expected, one a column",
                    fix=f"add or remove cells; one that holds {NAMES[delimiter]} is written in double quotes",
                )
            aims = [cells[index].strip() for index in selection.targets]
            if any(map(lacks_target, aims)):
                without.append(rows.line_num)
                continue
            block.append(cells)
            lines.append(rows.line_num)
            texts.append(aims)
            if len(block) == BLOCK:
                _extend(columns, selection, block)
        _extend(columns, selection, block)
    if without:
        leave_out(f"{path}, line {without[0]}", len(without), len(lines))
    if not lines:
        raise DataError(f"{path}: the file has a header and no rows")
    targets = [
        _target(path, selection.names[index], [row[place] for row in texts], lines, selection.task)
        for place, index in enumerate(selection.targets)
    ]
    place = partial(_place, path, lines)
    named = zip((selection.names[index] for index in selection.features), columns, strict=True)
    return selection.contents(path, [column.cells(name, place) for name, column in named], targets)


def _place(path: Path, lines: Sequence[int], row: int) -> str:
    return f"{path}, line {lines[row]}"


def _extend(columns: Sequence[_Column], selection: Selection, block: list[list[str]]) -> None:
    """Move a block of rows into the columns."""
    for index, column in zip(selection.features, columns, strict=True):
        column.extend([cells[index] for cells in block])
    block.clear()


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
            before = ["" if math.isnan(value) else repr(value).removesuffix(".0") for value in self.values]
            self.textual, self.values = True, array("q", map(self.codes.__getitem__, before))
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

"""Tables as text: CSV, with commas, semicolons or tabs."""

from __future__ import annotations

import csv
import math
import os
from array import array
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from handgrad.arguments import judged
from handgrad.arrays import Array
from handgrad.data.dataset import Dataset, Task
from handgrad.data.reading import Contents, Request, Selection, make_dataset, reading, select
from handgrad.errors import DataError


@judged
def read_csv(
    path: str | os.PathLike[str], *, target: str | Sequence[str] | None, task: Task | None = None
) -> Dataset:
    r"""Read a table of numbers from a text file whose first line names the columns.

    The delimiter is a tab in a file that ends in ``.tsv``; else it is the most frequent in the first line of
    comma, semicolon and tab. Blank lines are skipped, as is a byte order mark.

    Parameters
    ----------
    path, target, task
        As for `load`; the file is in UTF-8.

    Returns
    -------
    Dataset
        ``x`` float64 of shape (n, d), d features in the order of the file.

    Raises
    ------
    DataError
        When a cell is empty or no number, or a line has too few cells or too many; and as `load`.

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
    features, texts, lines = array("d"), list[list[str]](), list[int]()
    with reading(path, UnicodeDecodeError, csv.Error), path.open(encoding="utf-8-sig", newline="") as file:
        first = file.readline()
        delimiter = "\t" if path.suffix.lower() == ".tsv" else max(",;\t", key=first.count)
        # The first line again, rather than the file from its start: a pipe is read once.
        rows = csv.reader(chain([first], file), delimiter=delimiter, skipinitialspace=True, strict=True)
        if not (header := next(rows, [])):
            raise DataError(
                f"{path}: the first line is empty", fix="begin the file with the names of its columns"
            )
        selection = select(path, header, request)
        for cells in filter(None, rows):
            features.extend(_features(f"{path}, line {rows.line_num}", selection, cells))
            texts.append([cells[index].strip() for index in selection.targets])
            lines.append(rows.line_num)
    if not lines:
        raise DataError(f"{path}: the file has a header and no rows")
    targets = [
        _target(path, selection.names[index], [row[place] for row in texts], lines, selection.task)
        for place, index in enumerate(selection.targets)
    ]
    return selection.contents(path, np.frombuffer(features).reshape(len(lines), -1), targets)


def _features(place: str, selection: Selection, cells: list[str]) -> list[float]:
    if len(cells) != len(selection.names):
        raise DataError(
            f"{place}: {len(cells)} cells found, and {len(selection.names)} expected, one a column"
        )
    values = [_number(cells[index]) for index in selection.features]
    if not all(map(math.isfinite, values)):
        wrong = next(
            index for index, value in zip(selection.features, values, strict=True) if not math.isfinite(value)
        )
        raise _wrong_cell(place, selection.names[wrong], cells[wrong])
    return values


def _target(path: Path, name: str, texts: list[str], lines: list[int], task: Task | None) -> Array:
    """Return a column as whole numbers, as numbers, or as texts.

    One text among numbers is more likely a slip than a class, so that such classes must be asked for.
    """
    values = np.array([_number(text) for text in texts])
    finite = np.isfinite(values)
    if finite.all():
        try:
            return np.array([int(text) for text in texts], dtype=np.int64)
        except (ValueError, OverflowError):  # a fraction, or more than 64 bits
            return values
    texts_are_classes = task == "classification" or (task is None and not finite.any())
    if texts_are_classes and "" not in texts:
        return np.array(texts, dtype=object)  # dtype str would give every text the room of the longest
    row = texts.index("") if texts_are_classes else int(np.argmin(finite))
    raise _wrong_cell(f"{path}, line {lines[row]}", name, texts[row])


def _number(text: str) -> float:
    """Return the number, or nan for other text; ``float`` reads 1_000 as 1000, which no table means."""
    try:
        return math.nan if "_" in text else float(text)
    except ValueError:
        return math.nan


def _wrong_cell(place: str, name: str, text: str) -> DataError:
    held = f"holds {text!r:.60}, and a finite number is needed" if text.strip() else "is empty"
    return DataError(
        f"{place}: column {name!r} {held}", fix="correct the cell, or leave out the line or the column"
    )

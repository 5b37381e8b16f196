"""The cells of a column as a file holds them: numbers, or codes of its different texts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from handgrad.arrays import Array
from handgrad.errors import DataError, notify

MISSING = {
    "",
    "?",
    "na",
    "n/a",
    "#n/a",
    "<na>",
    "nan",
    "null",
    "none",
}  # as pandas, R and UCI's files write it
BOOLEANS = {"false": 0.0, "true": 1.0}


class Codes(dict[str, int]):
    """The different texts of a column, and the number of each; -1 is a missing cell."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __missing__(self, cell: str) -> int:
        text = cell.strip()
        if is_missing(text):
            code = -1
        elif text != cell:
            code = self[text]
        else:
            code = len(self.texts)
            self.texts.append(text)
        self[cell] = code
        return code


def is_missing(cell: str) -> bool:
    """Return whether a cell is empty, or holds what stands for that."""
    return cell.strip().casefold() in MISSING


def lacks_target(cell: str) -> bool:
    """Return whether a target is missing; "None" and "?" are classes, if there are others of text."""
    return is_missing(cell) and cell.casefold() not in ("none", "?")


def number(text: str) -> float:
    """Return the number, or nan for other text; ``float`` reads 1_000 as 1000, which no table means."""
    try:
        return np.nan if "_" in text else float(text)
    except ValueError:
        return np.nan


def text_of(value: float) -> str:
    """Return what a number was as a text, where its column turns out to hold other texts too."""
    return "" if math.isnan(value) else repr(value).removesuffix(".0")


@dataclass(frozen=True)
class Cells:
    """A column as a file holds it, shape (n,): numbers, nan where a cell is missing, or the codes of ``texts``."""

    name: str
    values: Array
    texts: Sequence[str] | None
    place: Callable[[int], str]  # of a row, in errors

    @property
    def absent(self) -> Array:
        """Which cells are missing, (n,)."""
        absent: Array = np.isnan(self.values) if self.texts is None else self.values < 0
        return absent

    def as_held(self) -> list[float | str | None]:
        """Return what every cell holds: its text, or the number where all texts are numbers as Python writes them."""
        texts = self.texts or []
        held: list[float | str | None] = list(texts)
        for kind in (int, float):
            with suppress(ValueError):
                values = [kind(text) for text in texts]
                if list(map(repr, values)) == list(texts):  # 007 is a name
                    held = list(values)
        held.append(None)  # for the code -1
        return [held[code] for code in self.values]

    def taken(self, rows: Array | slice) -> Cells:
        """Return the cells of some rows; places in errors are those of all."""
        return replace(self, values=self.values[rows])

    def of_each(self, values: Sequence[float] | Array, missing: float = np.nan) -> Array:
        """Return for every row what ``values`` has for its text."""
        each: Array = np.append(np.asarray(values, float), missing)[self.values]
        return each

    def numbers(self) -> Array:
        """Return a number for every row, nan where a cell is missing; a `DataError` where one holds something else."""
        if self.texts is None:
            if np.isinf(self.values).any():
                row = int(np.isinf(self.values).argmax())
                raise self.error(row, f"holds '{self.values[row]}', and a finite number is needed")
            return self.values
        each = [BOOLEANS.get(text.casefold(), number(text)) for text in self.texts]
        values = self.of_each(each, missing=0)
        if not np.isfinite(values).all():
            row = int(np.isfinite(values).argmin())
            raise self.error(row, f"holds {self.shown(row)}, and a finite number is needed")
        return self.of_each(each)

    def shown(self, row: int) -> str:
        """Return the text of a row for an error."""
        assert self.texts is not None, "numbers"
        return f"{self.texts[self.values[row]]!r:.60}"

    def error(
        self,
        row: int,
        problem: str,
        fix: str = "correct the cell, leave it empty where the value is missing, or leave out the line",
    ) -> DataError:
        """Return an error about a row of this column."""
        return DataError(f"{self.place(row)}: column {self.name!r} {problem}", fix=fix)

    def check_missing(self, medians: Sequence[float | None], *, marked: bool) -> None:
        """Raise an error where a cell is missing and a median unknown; notify where the training had no missing ones."""
        if (marked and None not in medians) or not self.absent.any():
            return
        row = int(self.absent.argmax())
        if None in medians:
            raise self.error(row, "is empty")
        notify(f"{self.place(row)}: column {self.name!r} is empty: the median is taken")

    def fill(self, features: list[Array], medians: Sequence[float | None], *, marked: bool) -> list[Array]:
        """Put medians where the cells are missing; a feature marks these, where the training had some."""
        absent = np.isnan(features[0])
        if absent.any():
            known = [0.0 if median is None else median for median in medians]  # `check_missing` has raised
            features = [np.where(absent, *pair) for pair in zip(known, features, strict=True)]
        return [*features, absent] if marked else features

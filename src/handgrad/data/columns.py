"""What is done to each column of a table to make features of it: fitted once, saved with a run, applied to new rows alike."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import ClassVar, Literal, get_args

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
MOST_CATEGORIES = 100
MOST_NAMES = 6  # in a line of the table

NUMBER_LIKE = re.compile(r"[-+]?[$€£]?\s?\d[\d.,_'\s]*\s?[%$€£]?")
CLOCK = re.compile(r"(.*?)(?:(?:T|\s+)(\d\d?):(\d\d)(?::(\d\d)(?:\.\d*)?)?(?:Z|[+-]\d\d:?\d\d)?)?")
SEPARATORS = re.compile(r"[/.,\s-]+")
DATES = (
    "%Y-%m-%d", "%d-%m-%Y", "%m-%d-%Y", "%d-%m-%y", "%m-%d-%y", "%d-%b-%Y", "%b-%d-%Y", "%d-%B-%Y", "%B-%d-%Y",
)  # fmt: skip
Part = Literal["year", "month", "day", "weekday", "hour", "minute", "second"]
PARTS: tuple[Part, ...] = get_args(Part)


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


def number(text: str) -> float:
    """Return the number, or nan for other text; ``float`` reads 1_000 as 1000, which no table means."""
    try:
        return np.nan if "_" in text else float(text)
    except ValueError:
        return np.nan


@dataclass(frozen=True)
class Cells:
    """A column as a file holds it, shape (n,): numbers, nan where a cell is missing, or the codes of ``texts``."""

    name: str
    values: Array
    texts: Sequence[str] | None
    place: Callable[[int], str]  # of a row, in errors

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
        self, row: int, problem: str, fix: str = "correct the cell, or leave out the line"
    ) -> DataError:
        """Return an error about a row of this column."""
        return DataError(
            f"{self.place(row)}: column {self.name!r} {problem}",
            fix=f"{fix}, or drop the column: --drop {self.name}",
        )

    def fill(self, features: list[Array], medians: list[float | None], *, marked: bool) -> list[Array]:
        """Put medians where the cells are missing; a feature marks these, or a notice, where the training had none."""
        absent = np.isnan(features[0])
        if absent.any():
            row, known = int(absent.argmax()), [median for median in medians if median is not None]
            if len(known) < len(medians):
                raise self.error(row, "is empty")
            if not marked:
                notify(f"{self.place(row)}: column {self.name!r} is empty: the median is taken")
            features = [np.where(absent, *pair) for pair in zip(known, features, strict=True)]
        return [*features, absent] if marked else features


@dataclass(frozen=True)
class Column:
    """What is done to a column; ``missing`` is whether a feature states which cells are."""

    name: str
    missing: bool = False

    kind: ClassVar[str]
    textual: ClassVar[bool] = False  # read as text, even where it looks like numbers

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of its features."""
        return (*self._names(), *((f"{self.name} missing",) if self.missing else ()))

    def _names(self) -> tuple[str, ...]:
        return (self.name,)

    def features(self, cells: Cells) -> list[Array]:
        """Return its features, (n,) each, in the order of their names."""
        raise NotImplementedError

    def text(self) -> str:
        """Describe it in a few words."""
        raise NotImplementedError


@dataclass(frozen=True)
class Number(Column):
    """A number as it is; missing ones are the median."""

    kind = "number"
    median: float | None = None
    word: ClassVar[str] = "number"

    def features(self, cells: Cells) -> list[Array]:
        """Return its features, (n,) each, in the order of their names."""
        return cells.fill([cells.numbers()], [self.median], marked=self.missing)

    def text(self) -> str:
        """Describe it in a few words."""
        return self.word + (f"; missing: {self.median:g}, the median, and marked" if self.missing else "")


@dataclass(frozen=True)
class Boolean(Number):
    """False is 0, and true 1."""

    kind = "boolean"
    word = "boolean, 0 or 1"


@dataclass(frozen=True)
class Category(Column):
    """A feature for each value, 1 where the cell holds it; others are 0 everywhere."""

    kind = "category"
    textual = True
    values: tuple[str, ...] = ()

    def _names(self) -> tuple[str, ...]:
        return tuple(f"{self.name}={value}" for value in self.values)

    def features(self, cells: Cells) -> list[Array]:
        """Return its features, (n,) each, in the order of their names."""
        assert cells.texts is not None, "read as numbers"
        known = {value: index for index, value in enumerate(self.values)}
        absent = len(known) if self.missing else -1
        index = cells.of_each([known.get(text, -1) for text in cells.texts], absent)
        if (index < 0).any():
            row = int((index < 0).argmax())
            held = "is empty" if cells.values[row] < 0 else f"holds {cells.shown(row)}"
            count = int(np.count_nonzero(index < 0))
            notify(
                f"{cells.place(row)}: column {self.name!r} {held}, which is none of its {len(known)} categories: "
                f"all of them are 0, in {count:,} row{'s' * (count != 1)}"
            )
        return [index == k for k in range(len(self.feature_names))]

    def text(self) -> str:
        """Describe it in a few words."""
        return f"one-hot: {_shortened(self.values)}" + (
            "; missing: a class of its own" if self.missing else ""
        )


@dataclass(frozen=True)
class Date(Column):
    """The parts of a date that vary, each with its median."""

    kind = "date"
    textual = True
    format: str = DATES[0]
    parts: dict[Part, float] = field(default_factory=dict)

    def _names(self) -> tuple[str, ...]:
        return tuple(f"{self.name} {part}" for part in self.parts)

    def features(self, cells: Cells) -> list[Array]:
        """Return its features, (n,) each, in the order of their names."""
        assert cells.texts is not None, "read as numbers"
        moments = [_moment(text, self.format) for text in cells.texts]
        if None in moments:
            row = int((cells.values == moments.index(None)).argmax())
            raise cells.error(row, f"holds {cells.shown(row)}, and a date written as {self.format} is needed")
        parts = {part: cells.of_each(values) for part, values in _parts(moments).items()}
        return cells.fill([parts[part] for part in self.parts], [*self.parts.values()], marked=self.missing)

    def text(self) -> str:
        """Describe it in a few words."""
        return f"date: {', '.join(self.parts)}" + (
            "; missing: the medians, and marked" if self.missing else ""
        )


KINDS: dict[str, type[Column]] = {each.kind: each for each in (Number, Boolean, Category, Date)}


def fit(cells: Cells) -> Column:
    """Choose what is done to a column; a `DataError` where that would be a guess."""
    name, texts = cells.name, cells.texts
    absent = np.isnan(cells.values) if texts is None else cells.values < 0
    present, missing = np.count_nonzero(~absent), bool(absent.any())
    if not present:
        raise cells.error(0, "is empty, as in every row", "fill in values")
    boolean = texts is not None and {text.casefold() for text in texts} <= BOOLEANS.keys()
    # One text among numbers is more likely a slip than a category: numbers() names it.
    if texts is None or boolean or 2 * np.count_nonzero(cells.of_each(_are_numbers(texts), 0)) >= present:
        values = cells.numbers()
        median = float(np.median(values[~absent] if missing else values))
        return (Boolean if boolean else Number)(name, missing, median)
    if date := _fit_date(cells, missing=missing):
        return date
    first = int((~absent).argmax())
    if all(map(NUMBER_LIKE.fullmatch, texts)):
        raise cells.error(
            first, f"holds {cells.shown(first)}, and a finite number is needed", "write it as 1234.5"
        )
    if 2 * len(texts) > present:
        problem = f"holds {cells.shown(first)}, and {len(texts):,} texts in {present:,} rows: names rather than categories"
        raise cells.error(first, problem, "write the same text for the same category")
    frequent = np.bincount(cells.values[~absent]).argsort(kind="stable")[::-1][:MOST_CATEGORIES]
    return Category(name, missing, tuple(sorted(texts[code] for code in frequent)))


def _are_numbers(texts: Sequence[str]) -> Array:
    return np.isfinite(list(map(number, texts)))


def _fit_date(cells: Cells, *, missing: bool) -> Date | None:
    assert cells.texts is not None, "numbers"
    readings = {}
    for form in DATES:
        if _moment(cells.texts[0], form) and None not in (moments := [_moment(t, form) for t in cells.texts]):
            readings[form] = moments
    if not readings:
        return None
    (form, moments), *others = readings.items()
    for _, other in others:
        if other != moments:
            row = int((cells.values == 0).argmax())
            problem = f"holds {cells.shown(row)}, and no row decides whether the day or the month is first"
            raise cells.error(row, problem, "write dates as 2000-12-31")
    parts = {part: cells.of_each(values) for part, values in _parts(moments).items()}
    varying = [part for part in PARTS if np.nanmin(parts[part]) < np.nanmax(parts[part])] or [PARTS[0]]
    return Date(cells.name, missing, form, {part: float(np.nanmedian(parts[part])) for part in varying})


def _moment(text: str, form: str) -> datetime | None:
    """Return the date, and time of day where there is one, that a text gives in one of the forms of `DATES`."""
    found = CLOCK.fullmatch(text)
    day, *clock = found.groups(default="0") if found else (text,)
    try:
        return datetime.strptime(SEPARATORS.sub("-", day), form).replace(
            **dict(zip(PARTS[4:], map(int, clock), strict=False))  # type: ignore[arg-type]
        )
    except ValueError:
        return None


def _parts(moments: Sequence[datetime | None]) -> dict[Part, list[float]]:
    return {
        part: [
            float(each.weekday() if part == "weekday" else getattr(each, part)) for each in moments if each
        ]
        for part in PARTS
    }


def column_table(columns: Sequence[Column], dropped: Sequence[str] = ()) -> str:
    """Return a line for every column, neighbours with the same treatment on one.

    Examples
    --------
    >>> print(column_table([Number("age"), Number("height"), Category("sex", False, ("f", "m"))], ["id"]))
      age, height  number
      sex          one-hot: f, m
      id           dropped
    """
    done = [(column.name, column.text()) for column in columns] + [(name, "dropped") for name in dropped]
    lines = [
        (_shortened([name for name, _ in group]), text) for text, group in groupby(done, lambda line: line[1])
    ]
    width = max((len(names) for names, _ in lines), default=0)
    return "\n".join(f"  {names:{width}}  {text}" for names, text in lines)


def _shortened(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")

"""What is done to each column of a table to make features of it: fitted on the training rows, applied to others alike.

What kind a column is follows from all rows of a file; its medians and categories from the rows that it is fitted on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from shlex import quote
from typing import ClassVar, Literal, get_args

import numpy as np

from handgrad.arrays import MANY, Array, is_mapped, release
from handgrad.data.cells import BOOLEANS, Cells, number
from handgrad.data.temporary import TemporaryArray
from handgrad.errors import DataError, notify

MOST_CATEGORIES = 255
LEAST_ROWS = 2  # of a category: of one that is in a single row nothing can be learnt
MOST_NAMES = 6  # in a line of the table
MANY_ROWS = 20  # from which on a column's looks tell that it is none to learn from

NUMBER_LIKE = re.compile(r"[-+]?[$€£]?\s?\d[\d.,_'\s]*\s?[%$€£]?")
MEASURE = re.compile(r"[-+]?\d[\d.,_']*\s?([A-Za-z%°²³µ/]{1,9})")  # a number with its unit
ROW_NAME = re.compile(r"(?i:(^|[\W_])(id|key|index|uuid))$|[a-z]I[dD]$|^Unnamed: 0$")
CLOCK = re.compile(r"(.*?)(?:(?:T|\s+)(\d\d?):(\d\d)(?::(\d\d)(?:\.\d*)?)?(?:Z|[+-]\d\d:?\d\d)?)?")
SEPARATORS = re.compile(r"[/.,\s-]+")
DATES = (
    "%Y-%m-%d", "%d-%m-%Y", "%m-%d-%Y", "%d-%m-%y", "%m-%d-%y", "%d-%b-%Y", "%b-%d-%Y", "%d-%B-%Y", "%B-%d-%Y",
)  # fmt: skip
Part = Literal["year", "month", "day", "weekday", "hour", "minute", "second"]
PARTS: tuple[Part, ...] = get_args(Part)


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

    def fitted(self, cells: Cells) -> Column:
        """Return what is done to the column after its medians or categories are those of some cells."""
        raise NotImplementedError

    def check(self, cells: Cells) -> None:
        """Raise what keeps cells from becoming features; notify of those that the training had none of."""

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

    def fitted(self, cells: Cells) -> Column:
        """Take the median of some cells, and whether any is missing."""
        absent = cells.absent
        if absent.all():
            return Unused(self.name, reason="empty in every training row")
        values, missing = cells.numbers(), bool(absent.any())
        return replace(self, missing=missing, median=_median(values[~absent] if missing else values))

    def check(self, cells: Cells) -> None:
        """Raise what keeps cells from becoming features; notify of those that the training had none of."""
        cells.numbers()
        cells.check_missing([self.median], marked=self.missing)

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
    """A feature for each value, 1 where the cell holds it, and one for ``other`` values where the training had such."""

    kind = "category"
    textual = True
    values: tuple[str, ...] = ()
    other: bool = False

    def _names(self) -> tuple[str, ...]:
        return (*(f"{self.name}={value}" for value in self.values), *((f"{self.name} other",) * self.other))

    def fitted(self, cells: Cells) -> Column:
        """Take the most frequent values of some cells, but none that is in a single row."""
        assert cells.texts is not None, "read as numbers"
        absent = cells.absent
        counts = np.bincount(cells.values[~absent], minlength=len(cells.texts))
        frequent = [
            code
            for code in counts.argsort(kind="stable")[::-1][:MOST_CATEGORIES]
            if counts[code] >= LEAST_ROWS
        ]
        present = int(np.count_nonzero(counts))
        if not frequent:
            return Unused(self.name, reason=f"{present:,} texts, none in two rows")
        values = tuple(sorted(cells.texts[code] for code in frequent))
        return replace(self, missing=bool(absent.any()), values=values, other=present > len(values))

    def _index(self, cells: Cells) -> Array:
        """Return the place of each cell's feature, (n,), -1 where it has none."""
        assert cells.texts is not None, "read as numbers"
        known = {value: index for index, value in enumerate(self.values)}
        absent = len(known) + self.other if self.missing else -1
        other = len(known) if self.other else -1
        return cells.of_each([known.get(text, other) for text in cells.texts], absent)

    def check(self, cells: Cells) -> None:
        """Notify of cells that are in none of the categories."""
        unknown = self._index(cells) < 0
        if unknown.any():
            row, count = int(unknown.argmax()), int(np.count_nonzero(unknown))
            held = "is empty" if cells.values[row] < 0 else f"holds {cells.shown(row)}"
            notify(
                f"{cells.place(row)}: column {self.name!r} {held}, which is none of its {len(self.values)} categories: "
                f"all of them are 0, in {count:,} row{'s' * (count != 1)}"
            )

    def features(self, cells: Cells) -> list[Array]:
        """Return its features, (n,) each, in the order of their names."""
        index = self._index(cells)
        return [index == k for k in range(len(self.feature_names))]

    def text(self) -> str:
        """Describe it in a few words."""
        others = "; others: a class of their own" if self.other else ""
        missing = "; missing: a class of its own" if self.missing else ""
        return f"one-hot: {_shortened(self.values)}{others}{missing}"


@dataclass(frozen=True)
class Date(Column):
    """The parts of a date that vary, each with its median."""

    kind = "date"
    textual = True
    format: str = DATES[0]
    parts: dict[Part, float] = field(default_factory=dict)

    def _names(self) -> tuple[str, ...]:
        return tuple(f"{self.name} {part}" for part in self.parts)

    def fitted(self, cells: Cells) -> Column:
        """Take the parts that vary in some cells, with their medians, and whether any cell is missing."""
        absent = cells.absent
        if absent.all():
            return Unused(self.name, reason="empty in every training row")
        parts = {part: values[~absent] for part, values in self._cells_parts(cells).items()}
        varying = [part for part in PARTS if parts[part].min() < parts[part].max()] or [PARTS[0]]
        medians = {part: _median(parts[part]) for part in varying}
        return replace(self, missing=bool(absent.any()), parts=medians)

    def _cells_parts(self, cells: Cells) -> dict[Part, Array]:
        """Return every part of the cells' dates, (n,) each, nan where a cell is missing."""
        assert cells.texts is not None, "read as numbers"
        moments = [_moment(text, self.format) for text in cells.texts]
        if None in moments:
            raise _no_date(cells, moments, self.format)
        return {
            part: cells.of_each(
                [
                    float(each.weekday() if part == "weekday" else getattr(each, part))
                    for each in moments
                    if each
                ]
            )
            for part in PARTS
        }

    def check(self, cells: Cells) -> None:
        """Raise what keeps cells from becoming features; notify of those that the training had none of."""
        self._cells_parts(cells)
        cells.check_missing([*self.parts.values()], marked=self.missing)

    def features(self, cells: Cells) -> list[Array]:
        """Return its features, (n,) each, in the order of their names."""
        parts = self._cells_parts(cells)
        return cells.fill([parts[part] for part in self.parts], [*self.parts.values()], marked=self.missing)

    def text(self) -> str:
        """Describe it in a few words."""
        return f"date: {', '.join(self.parts)}" + (
            "; missing: the medians, and marked" if self.missing else ""
        )


@dataclass(frozen=True)
class Unused(Column):
    """No feature: nothing can be learnt from the column; new rows need not have it."""

    kind = "unused"
    textual = True
    reason: str = ""

    @property
    def feature_names(self) -> tuple[str, ...]:
        """None."""
        return ()

    def fitted(self, cells: Cells) -> Column:
        """Stay as it is."""
        return self

    def features(self, cells: Cells) -> list[Array]:
        """Return none."""
        return []

    def text(self) -> str:
        """Describe it in a few words."""
        return f"unused: {self.reason}"


KINDS: dict[str, type[Column]] = {each.kind: each for each in (Number, Boolean, Category, Date, Unused)}


def kind_of(cells: Cells) -> Column:
    """Choose what is done to a column, not fitted yet; a `DataError` where that would be a guess."""
    name, texts, absent = cells.name, cells.texts, cells.absent
    present = np.count_nonzero(~absent)
    if not name:
        return Unused(name, reason="without a name, as pandas and R write the names of rows")
    if not present:
        return Unused(name, reason="empty in every row")
    boolean = texts is not None and {text.casefold() for text in texts} <= BOOLEANS.keys()
    # One text among numbers is more likely a slip than a category: numbers() names it.
    if texts is None or boolean or 2 * np.count_nonzero(cells.of_each(_are_numbers(texts), 0)) >= present:
        cells.numbers()
        return (Boolean if boolean else Number)(name)
    if form := _date_format(cells):
        return Date(name, format=form)
    units = {found and found[1] for found in map(MEASURE.fullmatch, texts)}
    if all(map(NUMBER_LIKE.fullmatch, texts)) or (len(units) == 1 and None not in units):
        first = int((~absent).argmax())
        raise cells.error(
            first,
            f"holds {cells.shown(first)}, and a finite number is needed",
            "write it as 1234.5, with a decimal point and nothing else",
        )
    return Category(name)


def drop_advice(name: str) -> str:
    """Return how a column is dropped, with its name as a shell and the option's list of names take it.

    Examples
    --------
    >>> print(drop_advice("price, net"))
    drop the column: --drop '"price, net"'
    """
    if any(each in name for each in ',"\r\n'):
        name = '"' + name.replace('"', '""') + '"'
    return f"drop the column: --drop {quote(name)}"


def kinds_of(table: Sequence[Cells]) -> list[Column]:
    """Choose what is done to each column, not fitted yet; notify of those that look useless."""
    columns = []
    for cells in table:
        drop = drop_advice(cells.name)
        try:
            columns.append(kind_of(cells))
        except DataError as error:
            raise DataError(error.problem, given=error.given, fix=f"{error.fix}, or {drop}") from None
        if found := _no_feature(cells, columns[-1]):
            notify(f"{cells.place(0)}: column {cells.name!r} {found}; {drop}")
        release(cells.values)
    return columns


def _no_feature(cells: Cells, column: Column) -> str:
    """Return why a column looks as if nothing could be learnt from it; "" where it does not."""
    values = cells.values[:MANY]
    if isinstance(column, Unused) or len(values) < MANY_ROWS:
        return ""
    if (values == values[0]).all():
        return "is the same in every row"
    if isinstance(column, Category):
        assert cells.texts is not None, "read as numbers"
        count, rows = len(cells.texts), int(np.count_nonzero(~cells.absent))
        several = MANY_ROWS <= count < rows < 2 * count  # of one for each row nothing is used
        return f"has {count:,} different texts in {rows:,} rows, as names have" if several else ""
    if cells.texts is not None or (values % 1).any():  # nan % 1 is true
        return ""
    steps = np.diff(values)
    if steps[0] and (steps == steps[0]).all():
        return "has a number for each row, in order, as names of rows have"
    named = ROW_NAME.search(cells.name) and len(np.unique(values)) == len(values)
    return "has another whole number in each row, and is called as names of rows are" if named else ""


def fit_columns(
    columns: Sequence[Column], table: Sequence[Cells], rows: Array | slice = slice(None)
) -> tuple[Column, ...]:
    """Fit columns on some of the rows."""
    fitted = []
    for column, cells in zip(columns, table, strict=True):
        fitted.append(column.fitted(cells.taken(rows)))
        release(cells.values)
    return tuple(fitted)


def make_features(columns: Sequence[Column], table: Sequence[Cells]) -> Array:
    """Return the features that columns become, float64 of shape (n, d); in a temporary file where the columns are in one."""
    for column, cells in zip(columns, table, strict=True):
        column.check(cells)
        release(cells.values)
    shape = len(table[0].values) if table else 0, sum(len(column.feature_names) for column in columns)
    if table and is_mapped(table[0].values):
        return _mapped_features(columns, table, shape)
    x, place = np.empty(shape), 0
    for column, cells in zip(columns, table, strict=True):
        for feature in column.features(cells):
            x[:, place] = feature
            place += 1
    return x


def _mapped_features(columns: Sequence[Column], table: Sequence[Cells], shape: tuple[int, int]) -> Array:
    """Write features to a temporary file, some rows at a time."""
    x, rows = TemporaryArray(*shape), max(1, MANY // shape[1])
    for start in range(0, shape[0], rows):
        piece = [cells.taken(slice(start, start + rows)) for cells in table]
        features = [column.features(cells) for column, cells in zip(columns, piece, strict=True)]
        x.write(
            start * shape[1],
            np.column_stack([feature for each in features for feature in each]).astype(float),
        )
        release(table[0].values)
    return x.mapped()


def _median(values: Array) -> float:
    """Return the median of finite numbers: `numpy.median` takes longer to look for nan in a short column than to read it."""
    middle, odd = divmod(len(values), 2)
    ordered = np.partition(values, (middle - 1, middle))
    return float(ordered[middle] if odd else (ordered[middle - 1] + ordered[middle]) / 2)


def _are_numbers(texts: Sequence[str]) -> Array:
    return np.isfinite(list(map(number, texts)))


def _date_format(cells: Cells) -> str | None:
    """Return the form in which every text is a date; a `DataError` where that holds for more than half of them."""
    assert cells.texts is not None, "numbers"
    readings = {}
    for form in DATES:
        if any(_moment(text, form) for text in cells.texts[:3]):  # most columns are no dates
            readings[form] = [_moment(text, form) for text in cells.texts]
    if not readings:
        return None
    least = min(moments.count(None) for moments in readings.values())
    (form, moments), *others = (each for each in readings.items() if each[1].count(None) == least)
    if least:
        # One other text among dates is more likely a slip than a category, as among numbers.
        if 2 * least < len(moments):
            raise _no_date(cells, moments, form)
        return None
    for _, other in others:
        if other != moments:
            row = int((cells.values == 0).argmax())
            problem = f"holds {cells.shown(row)}, and no row decides whether the day or the month is first"
            raise cells.error(row, problem, "write dates as 2000-12-31")
    return form


def _no_date(cells: Cells, moments: Sequence[datetime | None], form: str) -> DataError:
    row = int((cells.values == moments.index(None)).argmax())
    return cells.error(row, f"holds {cells.shown(row)}, and a date written as {form} is needed")


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

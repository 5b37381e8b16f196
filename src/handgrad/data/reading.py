"""What readers of files share: the request and its answer, columns, targets, errors and limits for untrusted files.

A format's reader answers a `Request` with `Contents`, and `make_dataset` does what is the same for all of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

import numpy as np

from handgrad.arrays import MANY, Array, is_mapped
from handgrad.data.cells import Cells
from handgrad.data.cells import number as number_in
from handgrad.data.columns import NUMBER_LIKE, Column, fit_columns, kinds_of, make_features
from handgrad.data.dataset import Dataset, Task
from handgrad.errors import DataError, listed, nearest, notify

# A compressed file may ask for LARGEST bytes of memory at most, and above FREE for RATIO times its own size: deflate
# packs zeros 1,000 times, so that 1 MB could ask for 1 GB, whereas measured data is rarely packed 50 times (MNIST: 5).
LARGEST = 16 * 2**30
RATIO = 200
FREE = 2**28

EMPTY = "add the column, which the run was trained on; where a value is not known its cell may be empty"
MAX_LISTED = 20  # names of columns in an error, at most: more would hide the problem

MAX_COLUMNS = 200_000
"""Each column is read, named, fitted and saved by itself, which takes a minute for a million; an array takes them as one."""

MAX_CLASSES = 20
"""Different whole numbers that are still taken for classes: digits and letters' ranks are, years are not."""


@dataclass(frozen=True)
class Request:
    """What a reader is asked for: targets with all other columns, or with a run's; without targets to predict for these.

    In a ``series``, the targets' own past is known too: their columns are features, and may be the only ones.
    ``keep`` names columns that are returned as they are beside the run's, None all of them.
    """

    target: str | os.PathLike[str] | Sequence[str] | None = None
    task: Task | None = None
    columns: Sequence[Column] | None = None
    drop: Sequence[str] = ()
    only: Sequence[str] = ()
    keep: Sequence[str] | None = ()
    series: bool = False


@dataclass(frozen=True)
class Contents:
    """What a file holds: features (n, ...), and targets (n,) or (n, k) as numbers, booleans or texts."""

    x: Array
    targets: Array | None = None
    place: str = ""  # of the targets, in errors
    task: Task | None = None  # None where the values decide
    feature_names: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    cells: tuple[Cells, ...] = ()  # of the columns; without targets, of those to keep


@dataclass(frozen=True)
class Piece:
    """Some rows of a table: the columns of their features, their targets, (n,) each, and how many others have no target."""

    cells: list[Cells]
    targets: list[Array]
    without: int = 0
    place_without: str = ""  # of the first

    def __len__(self) -> int:
        return len(self.targets[0]) if self.targets else len(self.cells[0].values) if self.cells else 0


def make_dataset(path: Path, contents: Contents) -> Dataset:
    """Make a data set, which checks itself."""
    assert contents.targets is not None, "asked for without targets"
    task, t, classes = encode(contents.place, contents.targets, contents.task)
    return Dataset(
        path.name, contents.x, t, task, classes, contents.feature_names,
        columns=contents.columns, cells=contents.cells,
    )  # fmt: skip


def leave_out(place: str, count: int, rest: int) -> None:
    """State that rows have no target, from which nothing can be learnt; a `DataError` where no other is left."""
    if not rest:
        raise DataError(f"{place}: the target is empty, as in every row", fix="choose another target")
    rows = "1 row is" if count == 1 else f"{count:,} rows are"
    notify(f"{place}: the target is empty: {rows} left out, and {rest:,} remain")


@dataclass(frozen=True)
class Selection:
    """The columns of a table: all their names, and the positions of features, then those to keep, and of targets."""

    names: tuple[str, ...]
    features: tuple[int, ...]
    targets: tuple[int, ...]
    task: Task | None
    columns: tuple[Column, ...] = ()  # a run's, of the features; fitted where there are none

    def is_textual(self, place: int) -> bool:
        """Return whether a feature is to be read as text even where it looks like numbers."""
        return bool(self.columns) and (place >= len(self.columns) or self.columns[place].textual)

    def contents(self, path: Path, cells: Sequence[Cells], targets: Sequence[Array]) -> Contents:
        """Put the features that columns become, (n, d), and the columns of the targets together."""
        columns = self.columns or fit_columns(kinds_of(cells), cells)
        feature_names = tuple(name for column in columns for name in column.feature_names)
        if not feature_names:
            unused = "; ".join(f"{column.name}: {column.text()}" for column in columns[:MAX_LISTED])
            raise DataError(
                f"{path}: no column has anything to learn from",
                given=unused,
                fix="name other columns, or give more rows: of a text that is in one row alone nothing can be learnt",
            )
        x = make_features(columns, cells[: len(columns)])
        if not targets:
            return Contents(
                x, feature_names=feature_names, columns=columns, cells=tuple(cells[len(columns) :])
            )
        where = f"{path}, target {', '.join(self.names[index] for index in self.targets)}"
        values = targets[0] if len(targets) == 1 else np.column_stack(targets)
        plain = self.columns or not any(column.missing or column.textual for column in columns)
        kept = () if plain and not is_mapped(x) else tuple(cells)
        return Contents(x, values, where, self.task, feature_names, columns, kept)


def select(path: Path, header: Sequence[str], request: Request) -> Selection:
    """Find the columns that are asked for; the target is named and never guessed."""
    names = _check_names(path, header)
    if len(names) == 1 and (other := next((each for each in ";,\t|" if each in names[0]), "")):
        raise DataError(
            f"{path}: there is one column, {names[0]!r:.60}, and it looks separated by {other!r}",
            fix="separate columns by commas, semicolons or tabs; a file that ends in .tsv has tabs",
        )
    columns = tuple(column for column in request.columns or () if column.feature_names)
    wanted = [column.name for column in columns]
    if request.columns is not None and not request.target:
        kept = _positions(path, names, names if request.keep is None else request.keep)
        return Selection(names, _positions(path, names, wanted, EMPTY) + kept, (), None, columns)
    if not request.target:
        raise DataError(
            f"{path}: no target is named, and a table needs one",
            given=f"the columns {listed(names, MAX_LISTED)}",
            fix=f"name the column to be predicted, as in --target {quote(names[-1])}, or target={names[-1]!r} in Python",
        )
    single = isinstance(request.target, str | os.PathLike)
    aims = (str(request.target),) if single else tuple(request.target)  # type: ignore[arg-type]
    targets, task = _positions(path, names, aims), request.task
    for index, name in enumerate(aims):
        if name in aims[:index]:
            raise DataError(f"{path}: the target {name!r} is named twice")
    if len(aims) == len(names) and not request.series:
        raise DataError(f"{path}: every column is a target, and one feature or more is needed")
    if len(aims) > 1:
        if task == "classification":
            raise DataError(f"{path}: classification takes one target, and {len(aims)} are named")
        task = "regression"
    features = _positions(path, names, wanted, EMPTY) if columns else _features(path, names, targets, request)
    return Selection(names, features, targets, task, columns)


def _features(
    path: Path, names: tuple[str, ...], targets: tuple[int, ...], request: Request
) -> tuple[int, ...]:
    """Return the positions of the features: all columns, or ``only`` some, without those to ``drop`` and the targets."""
    dropped = _positions(path, names, request.drop)
    if contrary := [names[index] for index in dropped if index in targets]:
        raise DataError(f"{path}: the column {contrary[0]!r} is both dropped and the target")
    chosen = set(_positions(path, names, request.only) or range(len(names)))
    chosen = chosen | set(targets) if request.series else chosen - set(targets)
    features = tuple(sorted(chosen - set(dropped)))
    if not features:
        raise DataError(f"{path}: no column is left to predict from", fix="drop fewer columns")
    if len(features) > MAX_COLUMNS:
        raise DataError(
            f"{path}: {len(features):,} columns to learn from, and a table may have {MAX_COLUMNS:,}",
            fix="save so many features as one array x, with the targets as t, in an .npz file, or choose some: --only",
        )
    return features


def _positions(path: Path, names: tuple[str, ...], wanted: Sequence[str], fix: str = "") -> tuple[int, ...]:
    places = {name: place for place, name in enumerate(names)}
    for name in wanted:
        if name not in places:
            raise DataError(f"{path}: there is no column {name!r}", fix=fix or nearest(name, names))
    return tuple(places[name] for name in wanted)


def _check_names(path: Path, header: Sequence[str]) -> tuple[str, ...]:
    names, first = tuple(name.strip() for name in header), dict[str, int]()
    for number, name in enumerate(names, 1):
        if not name and number > 1:
            raise DataError(
                f"{path}: column {number} of {len(names)} has no name", fix="name it, or leave it out"
            )
        if first.setdefault(name, number) < number:
            raise DataError(f"{path}: columns {first[name]} and {number} have the same name, {name!r}")
    return names


def infer_task(values: Array) -> Task:
    """Infer the task from the values of a target: text, booleans and few whole numbers are classes."""
    if values.ndim > 1 or (values.dtype.kind == "f" and not _are_written_as_floats(values)):
        return "regression"
    # Classes are found twice on average; of numbers that hardly repeat, each is a value.
    most = min(MAX_CLASSES, len(values) / 2)
    if values.dtype.kind in "iuf" and len(different(values, most)) > most:
        return "regression"
    return "classification"


def _are_written_as_floats(values: Array) -> bool:
    """Return whether values are classes as pandas and statsmodels write them: 0.0 and 1.0, and nothing else."""
    return np.array_equal(different(values, most=2), [0, 1])


def different(values: Array, most: float = np.inf) -> Array:
    """Return the different values of (n,), sorted, or the first of them when there are more than ``most``.

    It is ``np.unique`` in parts: its copies of many values would fill the memory.
    """
    found = np.unique(values[:MANY])
    for start in range(MANY, len(values), MANY):
        if len(found) > most:
            break
        found = np.union1d(found, values[start : start + MANY])
    return found


def encode(place: str, values: Array, task: Task | None = None) -> tuple[Task, Array, tuple[str, ...]]:
    """Return the task, class numbers (int64) or values (float64), and the names of the classes, sorted by value."""
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    inferred = task or infer_task(values)
    if task is None and values.dtype.kind == "O" and values.ndim == 1:
        _check_texts(place, values)
    if inferred != task and inferred == "classification" and values.dtype.kind == "f":
        notify(f"{place}: 0.0 and 1.0 are taken for two classes; for values, set the task to regression")
    if inferred == "regression":
        if len(values) > 1 and values.dtype.kind in "iuf" and (values == values[0]).all():
            notify(f"{place}: the target is the same in every row, so that there is nothing to learn")
        if values.dtype.kind not in "biuf":
            raise DataError(
                f"{place}: the target is text, and regression needs numbers",
                given=f"{values.flat[0]!s:.40}",
                fix="choose another target, or the task classification",
            )
        kept = values.dtype in (np.float32, np.float64)  # those of a file may stay there
        return inferred, values if kept else values.astype(np.float64), ()
    if values.ndim != 1:
        raise DataError(f"{place}: classification takes one target, and this one has shape {values.shape}")
    if values.dtype.kind == "f":
        wrong = np.flatnonzero(~np.isfinite(values) | (values != np.floor(values)))
        if len(wrong):
            raise DataError(
                f"{place}: the target of row {wrong[0]} is {values[wrong[0]]}, and classes are text or whole numbers",
                fix="choose another target, or the task regression",
            )
    found, t = different(values), np.empty(len(values), np.int64)
    for start in range(0, len(values), MANY):
        t[start : start + MANY] = np.searchsorted(found, values[start : start + MANY])
    names = map(int, found.tolist()) if values.dtype.kind == "f" else found.tolist()
    return inferred, t, tuple(map(str, names))


def _not_utf8(path: Path, error: UnicodeDecodeError) -> DataError:
    """Return the error of a text in another encoding: its line, and how it is converted."""
    line, byte, encoding = "", error.object[error.start], "latin1"
    if path.is_file():  # a pipe is read once
        with path.open("rb") as file:
            encoding = "utf-16" if file.read(2) in (b"\xff\xfe", b"\xfe\xff") else encoding
            file.seek(0)
            for number, text in enumerate(file, 1):
                try:
                    text.decode()
                except UnicodeDecodeError as found:
                    line, byte = f", line {number}", text[found.start]
                    break
    return DataError(
        f"{path}{line}: not UTF-8: it has the byte 0x{byte:02x}",
        fix=f"convert it, as from {encoding}: iconv -f {encoding} -t utf-8 {quote(str(path))} > utf8{path.suffix}",
    )


def _check_texts(place: str, values: Array) -> None:
    """Check that texts, which are taken for classes, look like classes; a notice where they are many."""
    texts = set(values)
    of_task = "set the task to classification (--task classification) if these are classes"
    if all(map(NUMBER_LIKE.fullmatch, texts)) and not all(np.isfinite(number_in(text)) for text in texts):
        raise DataError(
            f"{place}: the target is text, {values[0]!r:.40} in the first row, and looks like numbers",
            fix=f"write numbers as 1234.5; or {of_task}",
        )
    if len(texts) <= MAX_CLASSES:
        return
    counted = f"{len(texts):,} different ones in {len(values):,} rows"
    if len(texts) > len(values) / 2:
        raise DataError(
            f"{place}: the target is text, {values[0]!r:.40} in the first row, so classes, and nearly every one differs: "
            f"{counted}",
            fix=f"name another target, or write it as numbers; or {of_task}",
        )
    notify(f"{place}: the target is text, so classes: {counted}")


@contextmanager
def reading(path: Path, *damage: type[Exception]) -> Iterator[None]:
    """Turn ``OSError``, and what the format's own code raises for damage, into a ``DataError`` that names the file."""
    unreadable: tuple[type[Exception], ...] = (OSError, *damage)
    try:
        yield
    except FileNotFoundError as error:
        fix = "check the path; it is looked up from the current folder"
        raise DataError(f"{path}: there is no such file", fix=fix) from error
    except EOFError as error:
        raise DataError(f"{path}: the file is cut short", fix="get the file again") from error
    except UnicodeDecodeError as error:
        raise _not_utf8(path, error) from error
    except unreadable as error:
        problem = getattr(error, "strerror", None) or error
        raise DataError(f"{path}: the file cannot be read: {problem}") from error


def check_shape(path: Path, shape: tuple[int, ...]) -> None:
    """Refuse an array without entries: it is no data, and its other sizes are free to be absurd."""
    if not shape or min(shape) < 1:
        raise DataError(f"{path}: the array has shape {shape}, and one axis or more of 1 or more is needed")


def check_claim(path: Path, claimed: int) -> None:
    """Check the bytes that a compressed file claims to hold, before anything is allocated for it."""
    if claimed <= FREE:
        return
    limit = min(LARGEST, max(FREE, RATIO * path.stat().st_size))
    if claimed > limit:
        raise DataError(
            f"{path}: the file claims {claimed} bytes of contents, and {limit} is the limit for a compressed "
            f"file of {path.stat().st_size} bytes",
            fix="if the data is sound, store it unpacked, or as .npy, which is not read into memory at once",
        )

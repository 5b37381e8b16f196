"""A data set, what must hold of it, and its split into training, validation and test rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from handgrad.arguments import Judged, Seed, judged
from handgrad.arrays import MANY, Array, check_finite
from handgrad.data.cells import Cells
from handgrad.data.columns import Column, fit_columns, make_features
from handgrad.errors import DataError

Task = Literal["classification", "regression"]


@dataclass(frozen=True, eq=False)
class Dataset(metaclass=Judged):
    """Rows of features with their targets, checked when it is made.

    Parameters
    ----------
    name
        What errors and reports call it.
    x
        Features, shape (n, ...), of any real numeric dtype; or a ``scipy.sparse.csr_array``.
    t
        Targets: int64 class numbers, shape (n,), or that of ``x`` where it holds indices; or values, float32 or float64,
        shape (n,) or (n, k).
    task
        ``"classification"`` or ``"regression"``.
    classes
        The names of the classes, in the order of their numbers; empty for regression.
    feature_names
        One name for each column of ``x``, the last axis, or none.
    test_rows
        How many rows at the end are a fixed test set.
    columns
        What was done to each column of a table to make the features, for new rows alike.
    cells
        What each column holds, for `Dataset.fitted_on`; empty where all hold numbers, none missing, which are the features.
    entries
        Where ``x`` holds indices, what each stands for: the characters of a text.
    ordered
        Whether the rows follow one another, as the windows of a text or of a series; `split` then takes each part in one
        piece.

    Raises
    ------
    DataError
        When a rule above does not hold, a value is not finite, or there are fewer than two classes.

    Examples
    --------
    >>> import numpy as np
    >>> data = Dataset("and", np.array([[0, 0], [0, 1], [1, 1]]), np.array([0, 0, 1]), "classification",
    ...                classes=("false", "true"))
    >>> len(data)
    3
    """

    name: str
    x: Array = field(repr=False)
    t: Array = field(repr=False)
    task: Task
    classes: tuple[str, ...] = ()
    feature_names: tuple[str, ...] = ()
    test_rows: int = 0
    columns: tuple[Column, ...] = field(default=(), repr=False)
    cells: tuple[Cells, ...] = field(default=(), repr=False)
    entries: tuple[str, ...] = field(default=(), repr=False)
    ordered: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        if problem := _problem(self):
            raise DataError(f"{self.name}: {problem[0]}", fix="".join(problem[1:]))
        check_finite(f"{self.name}: x", self.x, self.feature_names)
        if self.task == "regression":
            check_finite(f"{self.name}: t", self.t)

    def __len__(self) -> int:
        return int(self.x.shape[0])

    def fitted_on(self, rows: NDArray[np.int64]) -> Dataset:
        """Return the data set with the medians and categories of some rows, the training's, in all rows.

        `handgrad.data.load` fits the columns of a table on all of its rows, as it does not know which will train.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from handgrad.data import load
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "t.csv")
        ...     _ = path.write_text("a,y\\n1,0.5\\n3,1.5\\n,2.5\\n50,3.5\\n")
        ...     data = load(path, target="y")
        >>> data.columns[0].text(), data.fitted_on(np.array([0, 1, 2])).columns[0].text()
        ('number; missing: 3, the median, and marked', 'number; missing: 2, the median, and marked')
        """
        if not self.columns or self.x.ndim > 2:  # windows of a series, whose columns were fitted on all rows
            return self
        cells = self.cells or [  # which hold numbers, none missing: the features
            Cells(column.name, self.x[:, k], None, str) for k, column in enumerate(self.columns)
        ]
        columns = fit_columns(self.columns, cells, rows)
        if not any(column.missing or column.textual for column in self.columns):  # the features stay
            return replace(self, columns=columns)
        names = tuple(name for column in columns for name in column.feature_names)
        return replace(self, x=make_features(columns, self.cells), feature_names=names, columns=columns)


def _problem(data: Dataset) -> tuple[str, ...]:
    """Return what is wrong with a data set, but for values that are not finite, and perhaps a remedy."""
    x, t, count = data.x, data.t, len(data.classes)
    if x.dtype.kind not in "biuf":
        return (f"x has dtype {x.dtype}, and real numbers are needed",)
    if x.ndim < 2 or 0 in x.shape:
        needed = "one row or more of one feature or more is needed"
        return f"x has shape {x.shape}, and {needed}", "give x the shape (rows, features)"
    if t.ndim == 0 or x.shape[0] != len(t):
        return (f"x has {x.shape[0]} rows and t has shape {t.shape}; rows must agree",)
    if data.feature_names and len(data.feature_names) != x.shape[-1]:
        return (f"{len(data.feature_names)} feature names for {x.shape[-1]} features",)
    if not 0 <= data.test_rows < len(t):
        return (f"test_rows is {data.test_rows}, and must be from 0 to {len(t) - 1}",)
    if data.task == "regression":
        if t.dtype not in (np.float32, np.float64) or t.ndim > 2 or 0 in t.shape:
            return (
                f"targets must be float32 or float64 of shape (n,) or (n, k), not {t.dtype} of {t.shape}",
            )
        return (f"regression has no classes, and {', '.join(data.classes)} are given",) if count else ()
    if t.dtype != np.int64 or t.shape != (x.shape if data.entries else x.shape[:1]):
        wanted = "x" if data.entries else "(n,)"
        return (f"class numbers must be int64 of shape {wanted}, not {t.dtype} of {t.shape}",)
    if len(set(data.classes)) != count:
        return (f"class names must differ, and are {', '.join(data.classes)}",)
    if len(wrong := np.argwhere((t < 0) | (t >= count)).tolist()):
        place = ", ".join(map(str, wrong[0]))
        return (f"t[{place}] is {t[tuple(wrong[0])]}, and the {count} classes are numbered from 0",)
    if t.min() == t.max():
        problem = f"there is one class, {data.classes[t.flat[0]]!r}, and two or more are needed"
        return problem, "check that the target is the right one, and give rows of a second class"
    return ()


@dataclass(frozen=True, eq=False)
class Split:
    """Row numbers of a data set, each row in exactly one part, each part in rising order.

    Parameters
    ----------
    train
        int64, shape (a,), never empty.
    validation
        int64, shape (b,).
    test
        int64, shape (c,), with a + b + c = n.

    Examples
    --------
    >>> import numpy as np
    >>> Split(train=np.array([0, 2]), validation=np.array([1]), test=np.array([3])).train
    array([0, 2])
    """

    train: NDArray[np.int64]
    validation: NDArray[np.int64]
    test: NDArray[np.int64]


@judged
def split(dataset: Dataset, *, test: float = 0.2, validation: float = 0.1, seed: Seed = 0) -> Split:
    """Divide the rows of a data set at random into training, validation and test rows.

    For classification each part has every class in its share of the whole, to about one row. Rows that the
    data set fixes as its test set are the test rows; ``test`` is then not used. Of rows that follow one another, the last are
    for the test, and those before them for validation.

    Parameters
    ----------
    dataset
        The data set, n rows.
    test, validation
        Fractions, 0 or more and below 1, of the rows outside a fixed test set. A fraction above 0 gives one
        row at least.
    seed
        The same seed gives the same rows.

    Raises
    ------
    DataError
        When a fraction is out of range, or no row is left for training.

    Examples
    --------
    >>> from handgrad.data import xor
    >>> parts = split(xor(rows=10), test=0.2, validation=0.1)
    >>> len(parts.train), len(parts.validation), len(parts.test)
    (7, 1, 2)
    """
    parts = divide(dataset, test, validation, seed)
    return Split(parts.train.astype(np.int64), parts.validation.astype(np.int64), parts.test.astype(np.int64))


def divide(dataset: Dataset, test: float, validation: float, seed: int) -> Split:
    """Do what `split` does, with numbers of the smallest type: of a file there may be many."""
    kind = np.int32 if len(dataset) < 2**31 else np.int64
    free = len(dataset) - dataset.test_rows
    held_out = 0 if dataset.test_rows else _count("test", test, free)
    validating = _count("validation", validation, free)
    if held_out + validating >= free:
        raise DataError(
            f"{dataset.name}: no training row is left of {free}, as test takes {held_out} and validation "
            f"{validating}",
            fix="lower test or validation",
        )
    if dataset.ordered:
        parts: list[NDArray[Any]] = np.split(
            np.arange(len(dataset), dtype=kind), [free - held_out - validating, free - held_out]
        )
        return Split(*parts)
    rows: NDArray[Any] = np.arange(free, dtype=kind)
    np.random.default_rng(seed).shuffle(rows)
    if dataset.task == "classification":
        rows = _by_class(rows, dataset.t, len(dataset.classes))
    tested, rows = _take(rows, held_out)
    validated, rows = _take(rows, validating)
    for part in (rows, validated, tested):
        part.sort()
    fixed = np.arange(free, len(dataset), dtype=kind)
    return Split(train=rows, validation=validated, test=np.append(tested, fixed))


def _by_class(rows: NDArray[Any], t: Array, classes: int) -> NDArray[Any]:
    """Return rows sorted by class, otherwise as they are, without a list of all places: a counting sort, in parts."""
    parts = [rows[start : start + MANY] for start in range(0, len(rows), MANY)]
    counts = np.array([np.bincount(t[part], minlength=classes) for part in parts])
    first = np.cumsum(counts.sum(axis=0)) - counts.sum(axis=0)  # place of each class's next row
    found = np.empty_like(rows)
    for part, count in zip(parts, counts, strict=True):
        order = np.argsort(t[part], kind="stable")
        found[np.repeat(first - (np.cumsum(count) - count), count) + np.arange(len(part))] = part[order]
        first += count
    return found


def _count(name: str, fraction: float, rows: int) -> int:
    if not 0 <= fraction < 1:
        raise DataError(f"split: {name} is {fraction}, and must be 0 or more and below 1")
    return max(1, round(fraction * rows)) if fraction else 0


def _take(rows: NDArray[Any], count: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Take rows at even distances: of rows sorted by class, that takes every class in its share."""
    places = (2 * np.arange(count) + 1) * len(rows) // max(1, 2 * count)
    return rows[places], np.delete(rows, places)

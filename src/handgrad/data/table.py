"""What tables share, CSV and Parquet: which columns are features and which targets, and the data set made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.data.dataset import Dataset, Task
from handgrad.data.targets import encode
from handgrad.errors import DataError, nearest

SHOWN = 20  # names of columns in an error, at most


@dataclass(frozen=True)
class Columns:
    """The columns of a table: their names, the positions of features and targets, and the targets' task.

    Examples
    --------
    >>> Columns(names=("age", "height"), features=(0,), targets=(1,), task=None).target_names
    ('height',)
    """

    names: tuple[str, ...]
    features: tuple[int, ...]
    targets: tuple[int, ...]
    task: Task | None

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the features, in the order of the table."""
        return tuple(self.names[index] for index in self.features)

    @property
    def target_names(self) -> tuple[str, ...]:
        """The names of the targets, in the order asked for."""
        return tuple(self.names[index] for index in self.targets)


def choose_columns(
    path: Path, header: Sequence[str], target: str | Sequence[str] | None, task: Task | None = None
) -> Columns:
    """Divide the columns of a table into targets, which are named, and features, which are all the others.

    Parameters
    ----------
    path
        The file, for errors.
    header
        The names of the columns.
    target
        The name of the target, or several names for regression. It is never guessed.
    task
        What the target is for, where it is known; several targets are for regression.

    Raises
    ------
    DataError
        When a name is empty or found twice, the target is missing or unknown, no feature is left, or several
        targets are to be classes.

    Examples
    --------
    >>> choose_columns(Path("people.csv"), ["age", "height", "weight"], "height")
    Columns(names=('age', 'height', 'weight'), features=(0, 2), targets=(1,), task=None)
    """
    names = _names(path, header)
    if not target:
        raise DataError(
            f"{path}: no target is named, and a table needs one",
            given=f"the columns {_listed(names)}",
            fix="name the column to be predicted as target",
        )
    wanted = (target,) if isinstance(target, str) else tuple(target)
    targets = _positions(path, names, wanted)
    for index, name in enumerate(wanted):
        if name in wanted[:index]:
            raise DataError(f"{path}: the target {name!r} is named twice")
    features = tuple(index for index, name in enumerate(names) if name not in wanted)
    if not features:
        raise DataError(f"{path}: every column is a target, and one feature or more is needed")
    if len(wanted) > 1:
        if task == "classification":
            raise DataError(f"{path}: classification takes one target, and {len(wanted)} are named")
        task = "regression"
    return Columns(names, features, targets, task)


def name_columns(path: Path, header: Sequence[str], features: Sequence[str]) -> Columns:
    """Choose the features of a table by name, in that order, and no target.

    Raises
    ------
    DataError
        When a name is missing, empty or found twice.

    Examples
    --------
    >>> name_columns(Path("people.csv"), ["age", "height", "weight"], ["weight", "age"]).features
    (2, 0)
    """
    names = _names(path, header)
    return Columns(names, _positions(path, names, features), (), None)


def _positions(path: Path, names: tuple[str, ...], wanted: Sequence[str]) -> tuple[int, ...]:
    for name in wanted:
        if name not in names:
            raise DataError(f"{path}: there is no column {name!r}", fix=nearest(name, names))
    return tuple(map(names.index, wanted))


def _names(path: Path, header: Sequence[str]) -> tuple[str, ...]:
    """Return the names of all columns, each there and there once."""
    names = tuple(name.strip() for name in header)
    for index, name in enumerate(names):
        if not name:
            raise DataError(
                f"{path}: column {index + 1} of {len(names)} has no name",
                fix="name it, or leave it out, as pandas does with to_csv(index=False)",
            )
        if name in names[:index]:
            first = names.index(name) + 1
            raise DataError(f"{path}: columns {first} and {index + 1} have the same name, {name!r}")
    return names


def _listed(names: tuple[str, ...]) -> str:
    rest = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def make_dataset(
    path: Path, columns: Columns, x: NDArray[np.float64], targets: Sequence[NDArray[Any]]
) -> Dataset:
    """Make the data set of a table from its features, shape (n, d), and its targets, each of shape (n,).

    Raises
    ------
    DataError
        When the targets do not suit the task, or a rule of ``Dataset`` does not hold.

    Examples
    --------
    >>> columns = Columns(names=("age", "height"), features=(0,), targets=(1,), task=None)
    >>> make_dataset(Path("p.csv"), columns, np.array([[7.0], [9.0]]), [np.array([1.2, 1.4])]).task
    'regression'
    """
    values = targets[0] if len(targets) == 1 else np.column_stack(targets)
    place = f"{path}, target {', '.join(columns.target_names)}"
    task, t, classes = encode(place, values, columns.task)
    return Dataset(path.name, x, t, task, classes, columns.feature_names)

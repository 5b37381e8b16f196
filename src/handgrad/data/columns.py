"""From a file to a data set: what is asked for, which columns are features or targets, and targets as classes or values.

A format's reader answers a `Request` with `Contents`, and `make_dataset` does what is the same for all of them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.data.dataset import Dataset, Task
from handgrad.errors import DataError, nearest

MAX_LISTED = 20
"""Names of columns in an error, at most: more would hide the problem."""

MAX_CLASSES = 20
"""Different whole numbers that are still taken for classes: digits and letters' ranks are, years are not."""


@dataclass(frozen=True)
class Request:
    """What a reader is asked for: targets with all other columns, or, to predict for, ``features`` without targets."""

    target: str | os.PathLike[str] | Sequence[str] | None = None
    task: Task | None = None
    features: Sequence[str] | None = None


@dataclass(frozen=True)
class Contents:
    """What a file holds: features (n, ...), and targets (n,) or (n, k) as numbers, booleans or texts.

    ``place`` names the targets in errors; ``task`` is None where the values decide.
    """

    x: NDArray[Any]
    targets: NDArray[Any] | None = None
    place: str = ""
    task: Task | None = None
    feature_names: tuple[str, ...] = ()


def make_dataset(path: Path, contents: Contents) -> Dataset:
    """Make a data set, which checks itself."""
    assert contents.targets is not None, "asked for without targets"
    task, t, classes = encode(contents.place, contents.targets, contents.task)
    return Dataset(path.name, contents.x, t, task, classes, contents.feature_names)


@dataclass(frozen=True)
class Selection:
    """The columns of a table: all their names, and the positions of features and targets."""

    names: tuple[str, ...]
    features: tuple[int, ...]
    targets: tuple[int, ...]
    task: Task | None

    def contents(self, path: Path, x: NDArray[Any], targets: Sequence[NDArray[Any]]) -> Contents:
        """Put features, (n, d), and the columns of the targets together."""
        feature_names = tuple(self.names[index] for index in self.features)
        if not targets:
            return Contents(x, feature_names=feature_names)
        place = f"{path}, target {', '.join(self.names[index] for index in self.targets)}"
        values = targets[0] if len(targets) == 1 else np.column_stack(targets)
        return Contents(x, values, place, self.task, feature_names)


def select(path: Path, header: Sequence[str], request: Request) -> Selection:
    """Find the columns that are asked for; the target is named and never guessed."""
    names = _check_names(path, header)
    if request.features is not None:
        return Selection(names, _positions(path, names, request.features), (), None)
    if not request.target:
        listed, more = ", ".join(names[:MAX_LISTED]), len(names) - MAX_LISTED
        raise DataError(
            f"{path}: no target is named, and a table needs one",
            given=f"the columns {listed}" + (f" and {more} more" if more > 0 else ""),
            fix="name the column to be predicted as target",
        )
    single = isinstance(request.target, str | os.PathLike)
    wanted = (str(request.target),) if single else tuple(request.target)  # type: ignore[arg-type]
    targets, task = _positions(path, names, wanted), request.task
    for index, name in enumerate(wanted):
        if name in wanted[:index]:
            raise DataError(f"{path}: the target {name!r} is named twice")
    if len(wanted) == len(names):
        raise DataError(f"{path}: every column is a target, and one feature or more is needed")
    if len(wanted) > 1:
        if task == "classification":
            raise DataError(f"{path}: classification takes one target, and {len(wanted)} are named")
        task = "regression"
    return Selection(names, tuple(k for k in range(len(names)) if k not in targets), targets, task)


def _positions(path: Path, names: tuple[str, ...], wanted: Sequence[str]) -> tuple[int, ...]:
    for name in wanted:
        if name not in names:
            raise DataError(f"{path}: there is no column {name!r}", fix=nearest(name, names))
    return tuple(map(names.index, wanted))


def _check_names(path: Path, header: Sequence[str]) -> tuple[str, ...]:
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


def infer_task(values: NDArray[Any]) -> Task:
    """Infer the task from the values of a target: text, booleans and few whole numbers are classes."""
    if values.ndim > 1 or values.dtype.kind == "f":
        return "regression"
    # Classes are found twice on average; of numbers that hardly repeat, each is a value.
    if values.dtype.kind in "iu" and len(np.unique(values)) > min(MAX_CLASSES, len(values) / 2):
        return "regression"
    return "classification"


def encode(
    place: str, values: NDArray[Any], task: Task | None = None
) -> tuple[Task, NDArray[Any], tuple[str, ...]]:
    """Return the task, class numbers (int64) or values (float64), and the names of the classes, sorted by value."""
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    task = task or infer_task(values)
    if task == "regression":
        if values.dtype.kind not in "biuf":
            raise DataError(
                f"{place}: the target is text, and regression needs numbers",
                given=f"{values.flat[0]!s:.40}",
                fix="choose another target, or the task classification",
            )
        return task, values.astype(np.float64), ()
    labels = _check_labels(place, values)
    names = sorted(set(labels))
    number = {name: index for index, name in enumerate(names)}
    t = np.array([number[label] for label in labels], dtype=np.int64)
    return task, t, tuple(map(str, names))


def _check_labels(place: str, values: NDArray[Any]) -> list[Any]:
    if values.ndim != 1:
        raise DataError(f"{place}: classification takes one target, and this one has shape {values.shape}")
    labels: list[Any] = values.tolist()
    if values.dtype.kind != "f":
        return labels
    for row, label in enumerate(labels):
        if not label.is_integer():
            raise DataError(
                f"{place}: the target of row {row} is {label}, and classes are text or whole numbers",
                fix="choose another target, or the task regression",
            )
    return [int(label) for label in labels]

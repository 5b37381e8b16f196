"""From the values of a target to a task, targets as a network takes them, and names of classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.data.dataset import Task
from handgrad.errors import DataError

MOST_CLASSES = 20


def infer_task(values: NDArray[Any]) -> Task:
    """Tell classification from regression by the values of the target.

    Text and booleans are classes. Whole numbers are classes when there are at most 20 different ones, each
    found twice on average. Everything else, and more than one column, is regression.

    Examples
    --------
    >>> infer_task(np.array([3, 3, 5, 5]))
    'classification'
    >>> infer_task(np.array([3, 4, 5, 5]))
    'regression'
    """
    if values.ndim > 1 or values.dtype.kind == "f":
        return "regression"
    if values.dtype.kind in "iu" and len(np.unique(values)) > min(MOST_CLASSES, len(values) / 2):
        return "regression"
    return "classification"


def encode(
    place: str, values: NDArray[Any], task: Task | None = None
) -> tuple[Task, NDArray[Any], tuple[str, ...]]:
    """Turn the values of a target into what a data set holds.

    Parameters
    ----------
    place
        The file and column, for errors.
    values
        Shape (n,) or (n, k): numbers, booleans, or texts (dtype ``str`` or, for texts alone, ``object``).
    task
        What the target is for; inferred when it is not given.

    Returns
    -------
    task, t, classes
        The task; class numbers, int64 of shape (n,), or values, float64; the names of the classes, sorted.

    Raises
    ------
    DataError
        When the values do not suit the task.

    Examples
    --------
    >>> encode("pets.csv", np.array(["dog", "cat", "dog"]))
    ('classification', array([1, 0, 1]), ('cat', 'dog'))
    """
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    task = task or infer_task(values)
    if task == "regression":
        return task, _as_numbers(place, values), ()
    labels = _as_labels(place, values)
    names = sorted(set(labels))
    number = {name: index for index, name in enumerate(names)}
    t = np.array([number[label] for label in labels], dtype=np.int64)
    return task, t, tuple(map(str, names))


def _as_numbers(place: str, values: NDArray[Any]) -> NDArray[np.float64]:
    if values.dtype.kind not in "biuf":
        raise DataError(
            f"{place}: the target is text, and regression needs numbers",
            given=f"{values.flat[0]!s:.40}",
            fix="choose another target, or the task classification",
        )
    return values.astype(np.float64)


def _as_labels(place: str, values: NDArray[Any]) -> list[Any]:
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

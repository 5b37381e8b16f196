"""One function for every source of data: a built-in set by its name, a file by its suffix, an IDX folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from handgrad.arguments import judged
from handgrad.arrays import check_finite
from handgrad.data.arrays import read_npy, read_npy_features, read_npz, read_npz_features
from handgrad.data.csv_table import read_csv, read_csv_features
from handgrad.data.dataset import Dataset, Task
from handgrad.data.digits import digits
from handgrad.data.generated import moons, spirals, xor
from handgrad.data.idx import mnist, read_idx
from handgrad.data.parquet_table import read_parquet, read_parquet_features
from handgrad.errors import DataError, nearest

BUILT_IN: dict[str, Callable[[], Dataset]] = {
    "digits": digits,
    "mnist": mnist,
    "moons": moons,
    "spirals": spirals,
    "xor": xor,
}
SUFFIXES = (".csv", ".npy", ".npz", ".parquet", ".tsv")


@judged
def load(
    source: str | os.PathLike[str], *, target: str | Sequence[str] | None = None, task: Task | None = None
) -> Dataset:
    """Load a data set.

    Parameters
    ----------
    source
        One of the names digits, mnist, moons, spirals and xor; or a file that ends in .csv, .tsv, .parquet,
        .npz or .npy; or a folder with the four files of MNIST.
    target
        For a table, the column to be predicted, or several for regression; for a .npy file, the path of the
        .npy file of the targets. Other sources have their own.
    task
        For files, what the target is for, where the reader would infer it otherwise.

    Returns
    -------
    Dataset
        Checked: rows agree, every number is finite, and classification has two classes or more.

    Raises
    ------
    DataError
        When the source is unknown, missing, damaged or unsuitable.
    MissingPackageError
        When the source needs a package that is not installed.

    Examples
    --------
    >>> len(load("digits"))
    1797
    >>> load("digit")
    Traceback (most recent call last):
    handgrad.errors.DataError: digit: there is no built-in data set and no folder of this name
      fix    did you mean 'digits'?
    """
    if not source:  # as a path it would be the current folder
        raise DataError("the data has no name", fix=f"{nearest('', BUILT_IN)}, or give a file or a folder")
    if isinstance(source, str) and source in BUILT_IN:
        _refuse(source, target=target)
        return _of_task(BUILT_IN[source](), task)
    path = Path(source)
    if path.is_dir():
        _refuse(path, target=target)
        return _of_task(mnist(path), task)
    match path.suffix.lower():
        case ".csv" | ".tsv":
            return read_csv(path, target=target, task=task)
        case ".parquet":
            return read_parquet(path, target=target, task=task)
        case ".npy":
            return read_npy(path, target=target, task=task)
        case ".npz":
            _refuse(path, target=target)
            return read_npz(path, task=task)
        case "" if path.exists():
            raise DataError(
                f"{path}: files whose name has no ending are not read",
                fix=f"choose from {', '.join(SUFFIXES)}",
            )
        case "":
            raise DataError(
                f"{source}: there is no built-in data set and no folder of this name",
                fix=nearest(path.name, BUILT_IN),
            )
        case suffix:
            raise DataError(
                f"{path}: files that end in {suffix} are not read", fix=f"choose from {', '.join(SUFFIXES)}"
            )


def _of_task(dataset: Dataset, task: Task | None) -> Dataset:
    if task is not None and task != dataset.task:
        raise DataError(f"{dataset.name}: task is {task!r}, and this source is for {dataset.task}")
    return dataset


@judged
def load_features(source: str | os.PathLike[str], names: Sequence[str] = ()) -> NDArray[Any]:
    """Load rows without targets, to predict for.

    Parameters
    ----------
    source
        A file that ends in .csv, .tsv, .parquet, .npz (its array x) or .npy, or an IDX file of images.
    names
        For a table, the columns to take, in this order; others are passed over.

    Returns
    -------
    array
        Rows, (n, d); images of an IDX file are flat.

    Raises
    ------
    DataError
        When the file is missing, damaged or unsuitable, or holds no row.
    MissingPackageError
        When the source needs a package that is not installed.
    """
    path = Path(source)
    match path.suffix.lower():
        case ".csv" | ".tsv":
            x: NDArray[Any] = read_csv_features(path, names)
        case ".parquet":
            x = read_parquet_features(path, names)
        case ".npy":
            x = read_npy_features(path)
        case ".npz":
            x = read_npz_features(path)
        case _:
            images = read_idx(path)
            x = images.reshape(len(images), -1)
    if len(x) == 0:
        raise DataError(f"{path}: there are no rows")
    check_finite(f"{path}: x", x, names)
    return x


def _refuse(source: str | Path, **given: object) -> None:
    for name, value in given.items():
        if value is not None:
            raise DataError(
                f"{source}: {name} is {value!r}, and this source has its own {name}", fix=f"leave out {name}"
            )

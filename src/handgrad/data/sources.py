"""One function for every source of data: a built-in set by its name, a file by its suffix, an IDX folder.

A reader of another format is a module of its own here with its row in `FORMATS`; what files may be called, in errors, in
the command line's help and in the documentation, follows from that.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from handgrad.arguments import Count, judged
from handgrad.arrays import Array, check_finite
from handgrad.data.builtin import BUILT_IN, mnist
from handgrad.data.cells import Cells
from handgrad.data.columns import Column, Number
from handgrad.data.csv_table import csv_contents
from handgrad.data.dataset import Dataset, Task
from handgrad.data.idx import read_idx
from handgrad.data.images import holds_images, images_in, is_cifar, read_cifar, read_images, stack_images
from handgrad.data.numpy_files import holds_sparse_rows, npy_contents, npz_contents
from handgrad.data.parquet_table import parquet_contents
from handgrad.data.reading import Contents, Request, make_dataset
from handgrad.data.series import mackey_glass, windows_of_rows
from handgrad.data.table_folder import folder_contents, table_files
from handgrad.data.text import ALICE, CONTEXT, SUFFIX, is_text, read_text
from handgrad.errors import DataError, nearest


@dataclass(frozen=True)
class FileFormat:
    """A row of the registry: how files with these suffixes are read, and their row in the documentation.

    ``target`` is what names the targets: a column of the table, another file, or nothing, as the file has its own.
    """

    suffixes: tuple[str, ...]
    read: Callable[[Path, Request], Contents]
    target: Literal["column", "file", "own"]
    holds: str


FORMATS = (
    FileFormat((".csv", ".tsv"), csv_contents, "column", "a table; the first line names the columns"),
    FileFormat((".parquet",), parquet_contents, "column", "a table (needs `pyarrow`)"),
    FileFormat(
        (".npz",), npz_contents, "own",
        "an array `x` (or `X`), rows first, and an array `t` (or `y`); or [sparse rows](#sparse-rows)",
    ),
    FileFormat((".npy",), npy_contents, "file", "an array, rows first, mapped into memory"),
)  # fmt: skip

BY_SUFFIX = {suffix: each for each in FORMATS for suffix in each.suffixes}
FOLDER = FileFormat((), folder_contents, "column", "files that together are one table")


def _format(path: Path) -> FileFormat | None:
    """Return how a file, or a folder of tables, is read."""
    if path.is_dir():
        return FOLDER if table_files(path) else None
    return BY_SUFFIX.get(path.suffix.lower())


def takes(source: str | os.PathLike[str], target: Literal["column", "file"]) -> bool:
    """Return whether a source is a file whose targets are named in this way."""
    path = Path(source)
    found = _format(path)
    if found is not None and found.read is npz_contents and holds_sparse_rows(path):
        return target == "file"
    return found is not None and found.target == target


@judged
def load(
    source: str | os.PathLike[str],
    *,
    target: str | Sequence[str] | None = None,
    task: Task | None = None,
    drop: Sequence[str] = (),
    only: Sequence[str] = (),
    columns: Sequence[str | Column] = (),
    context: Count | None = None,
    characters: Sequence[str] = (),
) -> Dataset:
    """Load a data set.

    Parameters
    ----------
    source
        One of the names alice, digits, mackey-glass, mnist, moons, spirals and xor; or a table, arrays or a text in a file,
        known by its suffix; or a folder with CSV or Parquet files that together are one table, with the four files of MNIST,
        with CIFAR's binary files, or with images, a folder for each class.
    target
        For a table, the column to be predicted, or several for regression; for a .npy file or sparse rows in a .npz file,
        the path of the .npy file of the targets. Other sources have their own.
    task
        For files, what the target is for. By default, text and booleans are classes, and so are whole numbers when there
        are at most 20 different ones, each found twice on average, and 0.0 with 1.0; other numbers are for regression.
    drop, only
        For a table, the columns that are not features, or the only ones that are.
    columns
        For a table, the columns to take, as for `load_features`, instead of ``drop`` and ``only``.
    context
        For a text, the characters of a window, as for `read_text`. For a table, that its rows are a time series, T rows in
        a window: ``x`` (n, T, d), the targets' columns among the features, and ``t`` the targets of the row after each.
    characters
        For a text, as for `read_text`.

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
    path = Path(source)
    found = _format(path)
    built_in = BUILT_IN.get(source) if isinstance(source, str) else None
    own_target = built_in or (path.is_dir() and found is None) or is_text(source)
    if own_target and target is not None:
        raise DataError(
            f"{source}: target is {target!r}, and this source has its own target", fix="leave out target"
        )
    if (drop or only) and not takes(source, "column"):
        raise DataError(f"{source}: columns of tables are chosen by name, and this source is no table")
    if context is not None and not (is_text(source) or source == "mackey-glass" or takes(source, "column")):
        raise DataError(f"{source}: context is for texts and tables, and this source is neither")
    if characters and not is_text(source):
        raise DataError(f"{source}: characters are of texts, and this source is none")
    if own_target:
        dataset = _with_own_target(source, path, built_in, context, characters)
        if task not in (None, dataset.task):
            raise DataError(f"{dataset.name}: task is {task!r}, and this source is for {dataset.task}")
        return dataset
    if found is None:
        raise _unknown(source, path)
    if context is None:
        return make_dataset(
            path, found.read(path, Request(target, task, _chosen(columns) or None, drop, only))
        )
    request = Request(target, task or "regression", _chosen(columns) or None, drop, only, series=True)
    return windows_of_rows(make_dataset(path, found.read(path, request)), context)


def _with_own_target(
    source: str | os.PathLike[str], path: Path, built_in: Callable[[], Dataset] | None, context: int | None,
    characters: Sequence[str],
) -> Dataset:  # fmt: skip
    if is_text(source):
        return read_text(ALICE if built_in else path, context=context or CONTEXT, characters=characters)
    if context:
        return mackey_glass(context=context)
    if built_in:
        return built_in()
    return read_cifar(path) if is_cifar(path) else read_images(path) if holds_images(path) else mnist(path)


def _chosen(columns: Sequence[str | Column]) -> list[Column]:
    return [Number(each) if isinstance(each, str) else each for each in columns]


def _unknown(source: str | os.PathLike[str], path: Path) -> DataError:
    if not path.suffix and not path.exists():
        return DataError(
            f"{source}: there is no built-in data set and no folder of this name",
            fix=nearest(path.name, BUILT_IN),
        )
    files = f"files that end in {path.suffix.lower()}" if path.suffix else "files whose name has no ending"
    return DataError(
        f"{path}: {files} are not read", fix=f"choose from {', '.join(sorted({*BY_SUFFIX, SUFFIX}))}"
    )


@judged
def load_features(source: str | os.PathLike[str], columns: Sequence[str | Column] = ()) -> Array:
    """Load rows without targets, to predict for.

    Parameters
    ----------
    source
        A file as for `load`, an IDX file of images, an image, or a folder of images.
    columns
        For a table, the columns to take, in this order: their names, or what was done to them, ``columns`` of a data
        set or a run; others are not read.

    Returns
    -------
    array
        Rows, (n, d), sparse where the file's are; images of an IDX file are flat, others (n, H, W, C), by their names.

    Raises
    ------
    DataError
        When the file is missing, damaged or unsuitable, or holds no row.
    MissingPackageError
        When the source needs a package that is not installed.
    """
    return features_and_columns(source, columns)[0]


def features_and_columns(
    source: str | os.PathLike[str], columns: Sequence[str | Column] = (), keep: Sequence[str] | None = ()
) -> tuple[Array, tuple[Cells, ...]]:
    """Load rows as `load_features` does, and columns of a table as they are: those that ``keep`` names, or all for None."""
    path, chosen = Path(source), _chosen(columns)
    if keep != () and not takes(source, "column"):
        raise DataError(f"{source}: columns of tables are kept by name, and this source is no table")
    if found := _format(path):
        contents = found.read(path, Request(columns=chosen, keep=keep))
    elif pictures := images_in(path):
        contents = Contents(stack_images(pictures))
    else:
        images = read_idx(path)
        contents = Contents(images.reshape(len(images), -1))
    if contents.x.shape[0] == 0:
        raise DataError(f"{path}: there are no rows")
    check_finite(f"{path}: x", contents.x, [name for column in chosen for name in column.feature_names])
    return contents.x, contents.cells

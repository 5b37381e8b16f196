"""Run folders: the results of a training, saved and loaded.

run.json            what the network is, what the data was, what came out; with the format's number
weights.safetensors the network's arrays
config.toml         the settings, complete
history.jsonl       every epoch; history.csv the same as a table
learning_curve.png  the same as a picture
learning_rate.png   how the learning rate was found, where it was
snapshots.jsonl     snapshots of the training, one a line, where they were recorded
checkpoint.safetensors  the state of the training, from which it goes on to more epochs
evaluation.png      what the network gets right and wrong on the test rows, where there are some
explanation.html    the network explained, where the page was written
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from msgspec import structs

from handgrad.arguments import judged
from handgrad.arrays import Array
from handgrad.checkpoints import NAME as CHECKPOINT
from handgrad.data import Dataset, Task
from handgrad.data.columns import KINDS, Column
from handgrad.errors import DataError, RunError, listed
from handgrad.files import (
    LEFT_BEHIND,
    FolderLock,
    Tensors,
    check_file,
    parse_versioned,
    read_file,
    refuse_link,
    tensor_bytes,
    write_file,
)
from handgrad.layers import Layer, Loss
from handgrad.network import Network
from handgrad.network.saving import network_to_table, own_kinds, read_network
from handgrad.tracking import history_as_csv
from handgrad.training import History

if TYPE_CHECKING:  # what explains takes longer to import than what predicts
    from handgrad.explaining.record import Snapshot

__all__ = ["Run", "load_run", "save_run"]

FORMAT = 2  # 1 had no files of layers that are not handgrad's
READ = (1, 2)
MOST_BYTES = 64 * 2**20  # of run.json and snapshots.jsonl: a larger one is not handgrad's
MAX_LINE = 2**16  # bytes of a history's first line


@dataclass(frozen=True)
class Run:
    """A trained network with what is needed to use it on new rows.

    Attributes
    ----------
    network
        Trained.
    source, task, target
        What it was trained on.
    classes
        The names of the classes, by number; () for regression.
    feature_names
        The names of the columns, when they had some.
    results
        The scores on the test rows and on the validation rows, as ``test_accuracy``.
    columns
        What was done to each column of a table.
    entries
        What the indices in a row stand for: the characters of a text.
    """

    network: Network
    source: str
    task: Task
    target: str | list[str] | None = None
    classes: tuple[str, ...] = ()
    feature_names: tuple[str, ...] = ()
    results: Mapping[str, float] = field(default_factory=dict)
    columns: tuple[Column, ...] = ()
    entries: tuple[str, ...] = ()

    @property
    def context(self) -> int | None:
        """How many characters of a text, or rows of a time series, a window has; None where rows are not windows."""
        series = self.columns and len(self.network.row) == 2
        return self.network.row[0] if self.entries or series else None


@judged
def save_run(
    folder: str | os.PathLike[str],
    run: Run,
    history: History,
    configuration: str,
    snapshots: Sequence[Snapshot] = (),
    files: Mapping[str, bytes | str] | None = None,
    *,
    overwrite: bool = False,
) -> None:
    """Write a run folder; it is there whole or not at all.

    With ``overwrite``, all files of an older run in the folder are replaced, so that the two are never mixed. ``files`` are
    others that belong to the run, by name.

    Raises
    ------
    RunError
        When the folder cannot be written, and without ``overwrite`` when it holds a run, or a file of yours with the name
        of one of a run's.
    """
    with new_run(Path(folder), overwrite=overwrite) as new:
        write_run(new, run, history, configuration, snapshots, files)


def write_run(
    folder: Path,
    run: Run,
    history: History,
    configuration: str,
    snapshots: Sequence[Snapshot] = (),
    files: Mapping[str, bytes | str] | None = None,
) -> None:
    """Write the files of a run into its folder; run.json, which makes it a run, is the first to go and the last to come."""
    delete_files(folder, ("run.json", "explanation.html", "evaluation.png"))
    write_file(folder / "weights.safetensors", tensor_bytes(run.network.arrays))
    write_file(folder / "config.toml", configuration)
    write_file(folder / "history.jsonl", history.to_json_lines())
    write_file(folder / "history.csv", history_as_csv(history.epochs))
    picture = BytesIO()
    history.plot(picture, title=run.network.title)
    write_file(folder / "learning_curve.png", picture.getvalue())
    write_snapshots(folder, snapshots)
    for name, content in (files or {}).items():
        write_file(folder / name, content)
    head = {"format": FORMAT, "network": network_to_table(run.network), "own": own_kinds(run.network)}
    rest = {name: value for name, value in vars(run).items() if name not in ("network", "columns")}
    rest["columns"] = [{"kind": column.kind, **vars(column)} for column in run.columns]
    write_file(folder / "run.json", json.dumps(head | rest, indent=2) + "\n")


ESTIMATOR = "estimator.json"
RUN_FILES = (
    "run.json", ESTIMATOR, "descent.safetensors", "config.toml", "weights.safetensors", "history.jsonl",
    "history.csv", CHECKPOINT, "snapshots.jsonl", "learning_curve.png", "learning_rate.png", "evaluation.png",
    "explanation.html",
)  # fmt: skip
"""The files of a run folder; what else is there is somebody's own."""


def holds_run(folder: Path) -> bool:
    """Whether a folder holds a run, finished or not, or an estimator's."""
    return any(os.path.lexists(folder / name) for name in ("run.json", ESTIMATOR, CHECKPOINT))


def in_the_way(folder: Path, settings: str = "") -> str:
    """Return what a new run with these settings would overwrite in a folder, as an error says it; "" for nothing.

    A training that was killed before its first checkpoint left its settings and a history, which nobody needs.
    """
    if holds_run(folder):
        return "holds a run"
    found = [name for name in RUN_FILES if os.path.lexists(folder / name)]
    if _is_history(folder / "history.jsonl"):
        return ""
    if found == ["config.toml"] and _holds(folder / "config.toml", settings):
        return ""
    return f"holds {found[0]}, though no run, and a run has a file of that name" if found else ""


def _holds(path: Path, text: str) -> bool:
    try:
        return read_file(path, MOST_BYTES) == text.encode()
    except RunError:
        return False


def _is_history(path: Path) -> bool:
    """Whether a file begins as a training's history does; a last line may not be all there."""
    try:
        History.from_json_lines(read_file(path, MOST_BYTES).split(b"\n", 1)[0].decode())
    except (RunError, DataError, UnicodeDecodeError):
        return False
    return True


def place_of_new(folder: Path) -> Path:
    """Return the subfolder where a run is first written that is to replace the one in a folder.

    Raises
    ------
    RunError
        Where that subfolder holds what is no run's, which would be deleted with it.
    """
    new = refuse_link(folder / "new")
    try:
        names = sorted(path.name for path in new.iterdir() if not path.match(LEFT_BEHIND))
    except OSError:  # it is not there, or what cannot be listed cannot be deleted either
        return new
    if others := [name for name in names if name not in (*RUN_FILES, ".lock", "tensorboard")]:
        raise RunError(
            f"{new}: holds {others[0]}, which is no run's, and the new run is written there first",
            fix="choose another folder, or rename that one",
        )
    return new


@contextmanager
def new_run(folder: Path, *, overwrite: bool) -> Iterator[Path]:
    """Give a subfolder for a run; its files are then moved into the folder, in place of an older run's.

    Raises
    ------
    RunError
        As `save_run`.
    """
    with FolderLock(folder):
        if (folder / "arriving").exists():
            replace_run(folder)
        if (found := in_the_way(folder)) and not overwrite:
            raise RunError(
                f"{folder}: {found}", fix="give overwrite=True to replace it, or choose another folder"
            )
        new = place_of_new(folder)
        try:
            yield new
            replace_run(folder)
        finally:
            shutil.rmtree(new, ignore_errors=True)


def replace_run(folder: Path) -> None:
    """Put the run in ``folder / "new"`` in place of the one in ``folder``; stopped anywhere, it goes on when called again.

    Raises
    ------
    RunError
        When a file cannot be moved.
    """
    new, arriving = (refuse_link(folder / name) for name in ("new", "arriving"))
    try:
        if not arriving.exists():
            delete_files(folder, RUN_FILES)
            new.rename(arriving)  # from here on, what is in the folder is the new run's
        for path in sorted(arriving.iterdir(), key=lambda path: path.name == "run.json"):
            target = folder / path.name
            if target.is_dir() and not target.is_symlink():
                shutil.rmtree(target)
            path.replace(target)
        arriving.rmdir()
    except OSError as error:
        raise RunError(f"{folder}: cannot be written: {error.strerror or error}") from None


def delete_files(folder: Path, names: Iterable[str]) -> None:
    """Delete files of a folder, those that are there; raises `RunError` when that cannot be done."""
    try:
        for name in names:
            (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise RunError(f"{folder}: cannot be written: {error.strerror or error}") from None


def write_snapshots(folder: Path, snapshots: Sequence[Snapshot]) -> None:
    """Write the snapshots of a training into its folder, in place of others; no file when there are none."""
    path = folder / "snapshots.jsonl"
    if snapshots:
        write_file(path, msgspec.json.Encoder().encode_lines(snapshots))
    else:
        path.unlink(missing_ok=True)


@judged
def load_run(folder: str | os.PathLike[str], *, own: Sequence[type[Layer] | type[Loss]] = ()) -> Run:
    """Open a run folder.

    Parameters
    ----------
    folder
        That ``handgrad train`` or `save_run` wrote, this one or an older.
    own
        Layers and losses of your own that the network has: a run folder never names code to be run.

    Raises
    ------
    RunError
        When a file is missing, damaged, or of a newer format, or a layer is not handgrad's and not given. Shapes and
        types are compared with the network's before there is any array.
    """
    folder = Path(folder)
    path, weights = folder / "run.json", folder / "weights.safetensors"
    table = _read_table(path)
    with Tensors.open(weights) as tensors:
        network = read_network(table.network, table.own, tensors, path, own, "load_run(folder, own=[{}])")
    if network.loss is None:
        raise RunError(f"{path}: the network has no loss, and a run's is trained")
    outputs = int(network.output_shape[-1])
    if table.task == "classification" and max(outputs, 2) != len(table.classes):
        raise RunError(f"{path}: {len(table.classes)} classes, and the network has {outputs} outputs")
    columns = tuple(_column(path, each) for each in table.columns)
    if columns and tuple(name for column in columns for name in column.feature_names) != table.feature_names:
        raise RunError(f"{path}: its columns do not make its features")
    described = structs.asdict(table) | {"columns": columns}
    return Run(network, **{name: described[name] for name in Run.__match_args__[1:]})


def read_facts(folder: Path) -> dict[str, str | int]:
    """Return what trained a run: engine, BLAS library and threads, from its history; {} when it is not there."""
    try:
        check_file(folder / "history.jsonl", MOST_BYTES)
        with (folder / "history.jsonl").open("rb") as file:
            found = msgspec.json.decode(file.readline(MAX_LINE), type=_HistoryStart).facts
    except (OSError, RunError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    facts = {"engine": found.engine, "blas": found.blas}
    known = {name: "".join(filter(str.isprintable, text)) for name, text in facts.items() if text}
    return {**known, "threads": found.threads} if found.threads else {**known}


def read_snapshots(folder: Path) -> tuple[Snapshot, ...]:
    """Return the snapshots of a run's training, () when none were recorded; a `RunError` names a damaged line."""
    from handgrad.explaining.record import Snapshot

    path = folder / "snapshots.jsonl"
    if not os.path.lexists(path):
        return ()
    snapshots = []
    for number, line in enumerate(read_file(path, MOST_BYTES).splitlines(), 1):
        try:
            snapshots.append(msgspec.json.decode(line, type=Snapshot))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise RunError(f"{path}:{number}: damaged, or no snapshot of handgrad: {error}") from None
    return tuple(snapshots)


class _Facts(msgspec.Struct):
    engine: str
    blas: str = ""
    threads: int = 0


class _HistoryStart(msgspec.Struct):
    facts: _Facts


class _RunTable(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What run.json holds."""

    format: int
    network: dict[str, Any]
    own: dict[str, str] = {}
    source: str
    task: Task
    target: str | list[str] | None
    classes: tuple[str, ...]
    feature_names: tuple[str, ...]
    results: dict[str, float]
    columns: list[dict[str, Any]] = []
    entries: tuple[str, ...] = ()


def _column(path: Path, table: dict[str, Any]) -> Column:
    """Return what was done to a column."""
    try:
        return msgspec.convert(table, KINDS[table["kind"]])
    except (KeyError, TypeError, msgspec.ValidationError) as error:
        raise RunError(f"{path}: damaged, or a column of a newer handgrad: {error}") from None


def _read_table(path: Path) -> _RunTable:
    try:
        text = read_file(path, MOST_BYTES)
    except RunError as error:
        unfinished = (path.parent / CHECKPOINT).exists()
        resume = f"the training is not finished: handgrad train --resume {path.parent}"
        fix = resume if unfinished else "give a folder that `handgrad train --out` wrote"
        raise RunError(error.problem, fix=error.fix or fix) from None
    return parse_versioned(text, _RunTable, str(path), *READ)


def match_classes(run: Run, dataset: Dataset) -> Array:
    """Return the targets of a data set in the run's class numbers; raises `DataError` for a class it has not."""
    if not run.classes or dataset.classes == run.classes:
        return dataset.t
    number = {name: k for k, name in enumerate(run.classes)}
    if unknown := [name for name in dataset.classes if name not in number]:
        raise DataError(
            f"{dataset.name}: the class {unknown[0]!r} is not one of the run's",
            given=f"the run's classes are {listed(run.classes)}",
        )
    return np.array([number[name] for name in dataset.classes])[dataset.t]


def match_features(run: Run, dataset: Dataset) -> Array:
    """Return the rows of a data set with the run's columns, in the run's order; raises `DataError` when one is missing."""
    if dataset.feature_names == run.feature_names or not run.feature_names or not dataset.feature_names:
        return dataset.x
    place = {name: k for k, name in enumerate(dataset.feature_names)}
    if missing := [name for name in run.feature_names if name not in place]:
        raise DataError(f"{dataset.name}: there is no column {missing[0]!r}, which the run was trained on")
    return dataset.x[:, [place[name] for name in run.feature_names]]


def target_names(run: Run, outputs: int) -> list[str]:
    """Return what the values are called that a network for regression predicts."""
    names = run.target if isinstance(run.target, list) else [run.target or "answer"]
    return names if len(names) == outputs else [f"answer_{k}" for k in range(outputs)]

"""Run folders: what a training leaves behind, and opens again.

run.json            what the network is, what the data was, what came out; with the format's number
weights.safetensors the network's arrays
config.toml         the settings, complete
history.jsonl       every epoch
learning_curve.png  the same as a picture
snapshots.jsonl     moments of the training, one a line, where they were recorded
explanation.html    the network explained, where the page was written
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from handgrad.data import Dataset, Task
from handgrad.errors import DataError, HandgradError, RunError
from handgrad.files import write_file
from handgrad.network import Network
from handgrad.specs import network_from, network_to_table
from handgrad.training import History

if TYPE_CHECKING:  # what explains takes longer to import than what predicts
    from handgrad.explaining.explanation import Snapshot

Array = NDArray[Any]

FORMAT = 1
MOST_BYTES = 64 * 2**20  # of run.json, history.jsonl and snapshots.jsonl: a larger one is not ours


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
        What the test rows said: loss and metric.
    """

    network: Network
    source: str
    task: Task
    target: str | list[str] | None = None
    classes: tuple[str, ...] = ()
    feature_names: tuple[str, ...] = ()
    results: Mapping[str, float] = field(default_factory=dict)


def save_run(
    folder: Path, run: Run, history: History, configuration: str, snapshots: Sequence[Snapshot] = ()
) -> None:
    """Write a run folder; each file is whole or not there, and run.json, which makes it a run, comes last.

    A run that the folder held before is given up first, with its page, so that no moment mixes the two.

    Raises
    ------
    RunError
        When the folder cannot be written.
    """
    from safetensors.numpy import save

    check_writable(folder)
    for name in ("run.json", "snapshots.jsonl", "explanation.html"):
        (folder / name).unlink(missing_ok=True)
    # safetensors writes the memory as it lies: a transposed view would be saved wrong
    arrays = {name: np.ascontiguousarray(array) for name, array in run.network.arrays.items()}
    write_file(folder / "weights.safetensors", save(arrays))
    write_file(folder / "config.toml", configuration)
    write_file(folder / "history.jsonl", history.to_json_lines())
    write_file(folder / "learning_curve.png", _picture(history, run.network.title))
    if snapshots:
        lines = (msgspec.json.encode(moment).decode() + "\n" for moment in snapshots)
        write_file(folder / "snapshots.jsonl", "".join(lines))
    head = {"format": FORMAT, "network": network_to_table(run.network)}
    rest = {name: value for name, value in vars(run).items() if name != "network"}
    write_file(folder / "run.json", json.dumps(head | rest, indent=2) + "\n")


def _picture(history: History, title: str) -> bytes:
    file = BytesIO()
    history.plot(file, title=title)
    return file.getvalue()


def check_writable(folder: Path) -> None:
    """Raise `RunError` now when a run could not be saved into ``folder`` later; nothing is left behind."""
    try:
        there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise RunError(f"{folder}: cannot be written: {error.strerror or error}") from None


def load_run(folder: Path) -> Run:
    """Open a run folder.

    Raises
    ------
    RunError
        When a file is missing, damaged, or of a newer format.
    """
    path = folder / "run.json"
    head = _read_head(path)
    try:
        network = network_from(head.network, "network")
    except HandgradError as error:
        raise RunError(f"{path}: {error.problem}", given=error.given, fix=error.fix) from None
    if network.loss is None:
        raise RunError(f"{path}: the network has no loss, and a run's is trained")
    outputs = int(network.output_shape[-1])
    if head.task == "classification" and max(outputs, 2) != len(head.classes):
        raise RunError(f"{path}: {len(head.classes)} classes, and the network has {outputs} outputs")
    weights = folder / "weights.safetensors"
    network.load_arrays(_read_weights(weights), str(weights))
    described = {
        name: value for name, value in structs.asdict(head).items() if name not in ("format", "network")
    }
    return Run(network, **described)


def read_facts(folder: Path) -> dict[str, str | int]:
    """Return what trained a run: engine, BLAS library and threads, as its history says; {} when it does not."""
    try:
        with (folder / "history.jsonl").open("rb") as file:
            said = msgspec.json.decode(file.readline(2**16), type=_HistoryHead).facts
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    facts: dict[str, str | int] = {
        name: "".join(filter(str.isprintable, text))
        for name, text in (("engine", said.engine), ("blas", said.blas))
        if text
    }
    return facts | ({"threads": said.threads} if said.threads else {})


def read_snapshots(folder: Path) -> tuple[Snapshot, ...]:
    """Return the moments of a run's training that were recorded; () when none were.

    Raises
    ------
    RunError
        When the file is damaged; it names the line.
    """
    from handgrad.explaining.explanation import Snapshot

    path = folder / "snapshots.jsonl"
    try:
        if path.stat().st_size > MOST_BYTES:
            raise RunError(f"{path}: {path.stat().st_size:,} bytes, and a run's has at most {MOST_BYTES:,}")
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise RunError(f"{path}: {error.strerror or error}") from None
    snapshots = []
    for number, line in enumerate(lines, 1):
        try:
            snapshots.append(msgspec.json.decode(line, type=Snapshot))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise RunError(f"{path}:{number}: damaged, or no snapshot of handgrad's: {error}") from None
    return tuple(snapshots)


class _Facts(msgspec.Struct):
    engine: str
    blas: str = ""
    threads: int = 0


class _HistoryHead(msgspec.Struct):
    facts: _Facts


class _Head(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What run.json holds."""

    format: int
    network: dict[str, Any]
    source: str
    task: Task
    target: str | list[str] | None
    classes: tuple[str, ...]
    feature_names: tuple[str, ...]
    results: dict[str, float]


def _read_head(path: Path) -> _Head:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise RunError(f"{path}: {path.stat().st_size:,} bytes, and a run's has at most {MOST_BYTES:,}")
        text = path.read_bytes()
    except OSError as error:
        raise RunError(
            f"{path}: {error.strerror or error}", fix="give a folder that `handgrad train --out` wrote"
        ) from None
    try:
        number = msgspec.json.decode(text).get("format")
        if number != FORMAT:
            raise RunError(
                f"{path}: format {number!r}, and this handgrad reads {FORMAT}",
                fix="open it with the handgrad that wrote it",
            )
        return msgspec.json.decode(text, type=_Head)
    except (msgspec.DecodeError, UnicodeDecodeError, AttributeError, RecursionError) as error:
        raise RunError(f"{path}: damaged, or not a run of handgrad's: {error}") from None


def _read_weights(path: Path) -> dict[str, Array]:
    from safetensors import SafetensorError, safe_open

    try:
        path.open("rb").close()  # whose error says what is wrong better than safetensors'
        with safe_open(path, framework="numpy") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
    except OSError as error:
        raise RunError(f"{path}: {error.strerror or error}") from None
    except SafetensorError as error:
        raise RunError(f"{path}: damaged: {error}") from None
    except (TypeError, AttributeError) as error:  # a type that NumPy does not have, such as bfloat16
        raise RunError(f"{path}: not a network of handgrad's: {error}") from None


def match_classes(run: Run, dataset: Dataset) -> Array:
    """Return the targets of a data set in the run's class numbers.

    Raises
    ------
    DataError
        When a row has a class that the run does not know.
    """
    if not run.classes or dataset.classes == run.classes:
        return dataset.t
    unknown = [name for name in dataset.classes if name not in run.classes]
    if unknown:
        raise DataError(
            f"{dataset.name}: the class {unknown[0]!r} is not one the run knows",
            given=f"the run's classes are {', '.join(run.classes)}",
        )
    numbers = np.array([run.classes.index(name) for name in dataset.classes])
    return numbers[dataset.t]

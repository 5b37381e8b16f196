"""Checkpoints: a training's state in one file, safetensors with JSON in its metadata, replaced as a whole."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from handgrad.arguments import NonNegative, judged
from handgrad.arrays import Array, Fingerprint
from handgrad.engines.cluster import is_first
from handgrad.errors import RunError, notify
from handgrad.files import FolderLock, Tensors, tensor_bytes, write_file
from handgrad.training import History
from handgrad.training.training_state import CheckpointStore, Done, EpochEnd, TrainingState

__all__ = ["Checkpoints"]

NAME = "checkpoint.safetensors"
FORMAT = 1
MAX_SHARE = 0.01  # of the time, at most, that checkpoints at the ends of epochs may take

Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class Checkpoints(CheckpointStore):
    """Saves a training's state in a folder, so that it can be resumed after an interruption.

    A state is saved at the end of an epoch, where that takes less than a hundredth of the time, and whenever the last
    is some minutes old. Files are replaced atomically. While it trains, no other process can use the folder. Of several
    processes that train together the first writes, and all read from the same folder what they resume.

    Parameters
    ----------
    folder
        Where; it is made.
    minutes
        How old the last state may become within an epoch.
    resume
        Whether to go on from the state in the folder, to ``epochs`` in all: also to more than the training had. The
        history and the weights at the end are then those of a training that never stopped, to the last bit. A
        schedule over the epochs is that of the new number from there, with a notice.
    notes
        Numbers to be saved with the state, for whoever resumes it.

    Examples
    --------
    >>> import tempfile
    >>> from handgrad import Linear, MeanSquaredError, Network, train
    >>> x = np.linspace(0, 1, 12).reshape(6, 2)
    >>> def network():
    ...     return Network(Linear(2, 1), loss=MeanSquaredError())
    >>> def stop(record):
    ...     return record.epoch == 3
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     history = train(network(), x, x[:, 0], epochs=5, checkpoints=Checkpoints(folder), after_epoch=stop)
    ...     print(len(history.epochs), history.stopped)
    ...     history = train(network(), x, x[:, 0], epochs=5, checkpoints=Checkpoints(folder, resume=True))
    ...     print(len(history.epochs), history.stopped)
    ...     history = train(network(), x, x[:, 0], epochs=9, checkpoints=Checkpoints(folder, resume=True))
    ...     print(len(history.epochs), history.stopped)
    3 early
    5 finished
    9 finished
    """

    @judged
    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        minutes: NonNegative = 5.0,
        resume: bool = False,
        notes: Mapping[str, int] | None = None,
    ) -> None:
        self.folder, self.resume, self.notes = Path(folder), resume, dict(notes or {})
        self.path = self.folder / NAME
        self.between = 60 * minutes
        self.lock = FolderLock(self.folder)
        self.last, self.cost = time.monotonic(), 0.0
        self.writes = is_first()

    def __enter__(self) -> Checkpoints:
        if self.writes:
            self.lock.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        if self.writes:
            self.lock.__exit__(*error)

    @property
    def seconds(self) -> float:
        """How often to ask within an epoch whether to save a state."""
        return self.between / 20

    def load(self, arrays: Mapping[str, Array]) -> TrainingState | None:
        """Read the state to resume from; None for a new training.

        Raises
        ------
        RunError
            When there is none, or it is damaged.
        """
        return read_checkpoint(self.path, arrays) if self.resume else None

    def is_due(self, *, between_epochs: bool) -> bool:
        """Whether to save a state now."""
        since = time.monotonic() - self.last
        return self.writes and (since >= self.between or (between_epochs and self.cost <= MAX_SHARE * since))

    def save(self, state: TrainingState) -> None:
        """Save a state; where that cannot be done, keep the one before and warn."""
        if not self.writes:
            return
        started = time.monotonic()
        try:
            write_checkpoint(self.path, state, self.notes)
        except RunError as error:
            notify(f"training goes on without a new checkpoint: {error}")
        self.last = time.monotonic()
        self.cost = self.last - started


class _Epoch(msgspec.Struct, forbid_unknown_fields=True):
    """An `EpochEnd` without its arrays; whether the best is another decides which arrays the file has."""

    epoch: Count
    best_loss: float | None
    best_epoch: Count
    waited: Count
    best_is_other: bool


class _Header(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What the file holds besides its arrays."""

    format: int
    settings: dict[str, str]
    data: dict[str, Fingerprint]
    facts: dict[str, str | int]
    history: History
    done: Done
    start: dict[str, float]
    last: _Epoch
    notes: dict[str, int]


def write_checkpoint(path: Path, state: TrainingState, notes: Mapping[str, int]) -> None:
    """Write a state as one file; raises `RunError` when that cannot be done."""
    last = state.last
    groups = {"last": last.arrays, "now": state.now}
    if last.best is not last.arrays:
        groups["best"] = last.best
    arrays = {
        f"{group}/{name}": array for group, members in groups.items() for name, array in members.items()
    }
    best_loss = last.best_loss if last.best_epoch else None
    header = _Header(
        format=FORMAT, settings=dict(state.settings), data=dict(state.data), facts=dict(state.facts),
        history=state.history, done=state.done, start=dict(state.start), notes=dict(notes),
        last=_Epoch(last.epoch, best_loss, last.best_epoch, last.waited, "best" in groups),
    )  # fmt: skip
    write_file(path, tensor_bytes(arrays, header))


def read_checkpoint(path: Path, arrays: Mapping[str, Array]) -> TrainingState:
    """Read a state, whose arrays must have the names, shapes and types of ``arrays``; raises `RunError` otherwise."""
    with Tensors.open(path) as tensors:
        header = _read_header(tensors)
        groups = ["last", *["now"] * (header.done.batches > 0), *["best"] * header.last.best_is_other]
        tensors.check({f"{group}/{name}": array for group in groups for name, array in arrays.items()})
        last, now, best = (
            {name: tensors.read(f"{group}/{name}") for name in arrays} if group in groups else {}
            for group in ("last", "now", "best")
        )
    epoch = header.last
    best_loss = float("inf") if epoch.best_loss is None else epoch.best_loss
    end = EpochEnd(epoch.epoch, last, best or last, best_loss, epoch.best_epoch, epoch.waited)
    return TrainingState(
        header.settings, header.data, header.facts, header.history, header.done, header.start, end, now
    )


def read_past(path: Path) -> tuple[History, dict[str, int]]:
    """Return the history and the notes in a checkpoint."""
    with Tensors.open(path) as tensors:
        header = _read_header(tensors)
    return header.history, header.notes


def _read_header(tensors: Tensors) -> _Header:
    """Read what the file holds besides its arrays, and check that its numbers agree with each other."""
    path = tensors.path
    header = tensors.header(_Header, FORMAT)
    epochs = [record.epoch for record in header.history.epochs]
    if not (
        epochs == list(range(1, header.last.epoch + 1))
        and header.last.best_epoch <= header.last.epoch
        and 0 <= header.done.batches < 2**63
        and header.done.seconds >= 0
        and "engine" in header.facts
    ):
        raise RunError(f"{path}: damaged, or not handgrad's: its numbers contradict each other")
    return header

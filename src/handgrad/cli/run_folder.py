"""The run folder during `handgrad train`: what is written into it, and how a stopped run is resumed."""

from __future__ import annotations

import json
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from io import BytesIO
from itertools import count
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click
import msgspec

from handgrad.checkpoints import NAME, Checkpoints
from handgrad.cli.console import printable
from handgrad.cli.options import Experiment, read_data_settings
from handgrad.configuration import Configuration, TrainingSettings, write_configuration
from handgrad.data.builtin import BUILT_IN
from handgrad.data.sources import takes
from handgrad.engines.cluster import is_first
from handgrad.errors import ConfigurationError, DataError, RunError, notify
from handgrad.files import read_file, refuse_link, write_file
from handgrad.runs import (
    MOST_BYTES,
    RUN_FILES,
    delete_files,
    holds_run,
    in_the_way,
    place_of_new,
    read_snapshots,
    replace_run,
    write_snapshots,
)
from handgrad.tracking import Journal, TensorBoard
from handgrad.training import EpochRecord, History, RangeTest
from handgrad.training.metrics import metric_name
from handgrad.training.training_state import TrainingState

if TYPE_CHECKING:  # imported where used: the terminal should not wait for it
    from handgrad.explaining.record import Snapshot
    from handgrad.explaining.snapshots import Recorder

RUNS, RATES = Path("runs"), "learning_rate.png"
FREE = ("epochs", "patience", "devices")
"""Settings of a training that may be others when it is resumed."""


@contextmanager
def new_folder(name: str) -> Iterator[Path]:
    """Make a run folder named after data and time; delete it when it stays empty."""
    if not is_first():
        yield RUNS
        return
    first = RUNS / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    try:
        RUNS.mkdir(parents=True, exist_ok=True)
        for number in count(1):
            folder = first if number == 1 else first.with_name(f"{first.name}-{number}")
            with suppress(FileExistsError):
                folder.mkdir()
                break
    except OSError as error:
        raise RunError(f"{RUNS}: cannot be written: {error.strerror or error}") from None
    try:
        yield folder
    finally:
        with suppress(OSError):
            folder.rmdir()
            RUNS.rmdir()


class RunFolder(Checkpoints):
    """A run folder during training: settings, history, snapshots and checkpoints.

    Nothing is written before there is something to save.
    """

    def __init__(
        self,
        folder: Path,
        experiment: Experiment,
        minutes: float,
        notes: Mapping[str, int],
        past: History | None,
        found: RangeTest | None = None,
    ) -> None:
        super().__init__(folder, minutes=minutes, resume=past is not None, notes=notes)
        assert experiment.network.loss is not None
        self.experiment, self.past = experiment, past or History(metric_name(experiment.network.loss))
        self.snapshots: list[Snapshot] = []
        self.begun, self.found = False, found

    def begin(self) -> None:
        """Write the settings and how they were found, in place of an unfinished training that is not resumed."""
        if not self.begun:
            if not self.resume and holds_run(self.folder):
                delete_files(self.folder, RUN_FILES)
            write_file(self.folder / "config.toml", write_configuration(self.experiment.configuration))
            if self.found is not None:
                picture = BytesIO()
                self.found.plot(picture, title=self.experiment.network.title)
                write_file(self.folder / RATES, picture.getvalue())
            self.begun = True

    def save(self, state: TrainingState) -> None:
        """Write a state, and the settings; where that cannot be done, warn."""
        if self.writes:
            with problems_as_notices("training goes on without a new checkpoint"):
                self.begin()
                super().save(state)

    @contextmanager
    def callback(self, *, as_json: bool) -> Iterator[Callable[[EpochRecord], None]]:
        """Give what is to be called after each epoch: it writes the history, snapshots and events."""
        if not self.writes:
            yield lambda record: None
            return
        recorder = self._recorder() if self.notes.get("snapshots") else None
        journal = Journal(self.folder, self.past)
        events = self.notes.get("tensorboard")
        board = TensorBoard(self.folder / "tensorboard", self.past.metric) if events else None

        def after_epoch(record: EpochRecord) -> None:
            journal.history.epochs.append(
                record
            )  # which is written with the next where there is no folder now
            with problems_as_notices("the history of the training is not all written"):
                self.begin()
                journal.write()
                if recorder is not None:
                    recorder(record)
                    write_snapshots(self.folder, self.snapshots)
                if board is not None:
                    board(record)
            if as_json and not sys.stderr.isatty():
                click.echo(json.dumps(asdict(record)), err=True)

        try:
            yield after_epoch
        finally:
            journal.close()
            if board is not None:
                board.close()

    def _recorder(self) -> Recorder:
        """Return a recorder that has taken its first snapshot, and those of the training that is resumed."""
        from handgrad.explaining.snapshots import Recorder

        dataset, rows = self.experiment.dataset, self.experiment.rows.train
        configuration = self.experiment.configuration
        recorder = Recorder(
            self.experiment.network,
            dataset.x[rows],
            dataset.t[rows],
            epochs=self.experiment.epochs,
            moments=self.notes["snapshots"],
            batch_size=configuration.training.batch_size,
            optimiser=configuration.optimiser(),
            seed=configuration.training.seed,
        )
        self.snapshots = recorder.snapshots
        if self.resume:
            last = len(self.past.epochs)
            self.snapshots += [each for each in read_snapshots(self.folder) if 0 < each.epoch <= last]
        return recorder


@contextmanager
def problems_as_notices(what: str) -> Iterator[None]:
    """Let a training go on when something cannot be written now, with a warning."""
    try:
        yield
    except RunError as error:
        notify(f"{what}: {error}")


def folder_of_new(out: Path, configuration: Configuration, *, overwrite: bool) -> Path | None:
    """Return where a new training writes that is to be in ``out``; None when a person does not want that.

    What is in ``out`` and has the name of one of a run's files is replaced when the new run is finished, and only with
    ``overwrite``, or where a person at the terminal agrees; else it is a `RunError`.
    """
    if not is_first():
        return out
    if (out / "arriving").exists():
        replace_run(out)
    if not (found := in_the_way(out, write_configuration(configuration))):
        return out
    if not overwrite and not (sys.stdin.isatty() and sys.stderr.isatty()):
        resume = f"--resume {quoted(out)} to go on with it, " if holds_run(out) else ""
        raise RunError(
            f"{out}: {found}",
            fix=f"give --overwrite to replace it when the new one is finished, {resume}or another folder",
        )
    new = place_of_new(out)
    question = f"{printable(str(out))} {found}. Replace it when the new one is finished?"
    return new if overwrite or click.confirm(question, err=True) else None


def folder_to_resume(out: Path) -> Path:
    """Return where the training that was last begun for ``out`` is: in ``out``, or where it is to replace the run there."""
    if (out / "arriving").exists() and is_first():
        replace_run(out)
    new = refuse_link(out / "new")
    folder = new if holds_run(new) else out
    if not holds_run(folder):
        raise RunError(
            f"{out}: there is no training to resume",
            fix="name the folder of one; before its first checkpoint a training saves nothing",
        )
    return folder


def quoted(folder: Path) -> str:
    """Return a folder's name as a shell takes it."""
    return shlex.quote(str(folder))


def ended(folder: Path, training: TrainingSettings) -> History | None:
    """Return the history of a run that has nothing left to train with these settings, None where there is something."""
    if not (folder / "run.json").exists():
        return None
    try:
        history = History.from_json_lines(
            read_file(folder / "history.jsonl", MOST_BYTES).decode(), str(folder)
        )
    except (RunError, DataError, UnicodeDecodeError):  # deleted, or a last line that is not all there
        if (folder / NAME).exists():
            return None
        history = History("")
    done = len(history.epochs) or training.epochs or 0
    waited = done - (history.best_epoch or done)
    enough = training.epochs in (None, done) or (
        training.patience is not None and waited >= training.patience
    )
    if history.stopped not in ("finished", "early") or not enough:
        return None
    return history


def resumed(folder: Path, given: Callable[[Path], Configuration]) -> Configuration:
    """Return the settings of the run to be resumed; ``given`` returns those of the command line, over a file's.

    `FREE` ones may be others; another setting that differs is a `ConfigurationError`.
    """
    before, now = read_data_settings(folder), given(folder / "config.toml")
    ours, theirs = _flat(located(now, before)), _flat(before)
    for name in sorted((ours.keys() | theirs.keys()) - {f"training.{name}" for name in FREE}):
        if ours.get(name) != theirs.get(name):
            raise ConfigurationError(
                f"{name} is {ours.get(name)}, and the run in {folder} has {theirs.get(name)}",
                fix="leave it out to resume, or begin a new training without --resume",
            )
    free = {name: getattr(now.training, name) for name in FREE}
    return msgspec.structs.replace(before, training=msgspec.structs.replace(before.training, **free))


def located(configuration: Configuration, found: Configuration | None = None) -> Configuration:
    """Return the settings with absolute paths, and with the fingerprint in the settings ``found``."""
    data = configuration.data
    files = {"source": data.source} if data.source not in BUILT_IN else {}
    if isinstance(data.target, str) and takes(data.source, "file"):
        files["target"] = data.target
    whole = {name: str(Path(value).resolve()) for name, value in files.items() if Path(value).exists()}
    fingerprint = found.data.fingerprint if found is not None else data.fingerprint
    changed = msgspec.structs.replace(data, **whole, fingerprint=fingerprint)
    return msgspec.structs.replace(configuration, data=changed)


def _flat(configuration: Configuration) -> dict[str, Any]:
    """Return every setting by its dotted name; optimiser and schedule as objects."""
    tables = msgspec.to_builtins(configuration)
    flat = {f"{table}.{name}": value for table, values in tables.items() for name, value in values.items()}
    made = {"training.optimiser": configuration.optimiser(), "training.schedule": configuration.schedule()}
    return {name: repr(value) for name, value in (flat | made).items()}


@contextmanager
def terminated_as_interrupted() -> Iterator[list[int]]:
    """Let SIGTERM do what Ctrl-C does; give the signals that came: none in a thread, which Python sends none to."""
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield came
        return

    def stop(number: int, frame: FrameType | None) -> None:
        came.append(number)
        if len(came) == 1:  # a scheduler sends it to a process and to its parent, which hands it on
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield came
    finally:
        signal.signal(signal.SIGTERM, before)

"""Callbacks that follow a training: its history as files, and TensorBoard.

Each is called with an epoch's record, so that it can be given to `train` as ``after_epoch``.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TextIO

from handgrad.errors import RunError, need, notify
from handgrad.files import refuse_link, write_file
from handgrad.training import EpochRecord, History

COLUMNS = [field.name for field in fields(EpochRecord)]


def history_as_csv(epochs: Sequence[EpochRecord]) -> str:
    """Return a history as a table, a line an epoch."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([COLUMNS, *(asdict(each).values() for each in epochs)])
    return text.getvalue()


class Journal:
    """Writes history.jsonl and history.csv in a folder, a line an epoch, readable at any time.

    Parameters
    ----------
    folder
        Where; it is made.
    history
        What there was before, where a training is resumed; while it runs, its ``stopped`` is "running".

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     journal = Journal(Path(folder), History("r2"))
    ...     journal(EpochRecord(1, 0.5, None, None, 0.1, 2.0))
    ...     print(Path(folder, "history.jsonl").read_text().splitlines()[0])
    ...     journal.close()
    {"metric": "r2", "stopped": "running", "best_epoch": null, "facts": {}}
    """

    def __init__(self, folder: Path, history: History) -> None:
        self.folder = folder
        self.history = History(history.metric, list(history.epochs), "running")
        self.files: list[TextIO] = []

    def __call__(self, record: EpochRecord) -> None:
        """Write an epoch; where that cannot be done now, with the next."""
        self.history.epochs.append(record)
        self.write()

    def write(self) -> None:
        """Write the last epoch, or all that are not written."""
        record = self.history.epochs[-1]
        try:
            if self.files:
                lines = json.dumps(asdict(record)) + "\n", history_as_csv([record]).split("\n", 1)[1]
                for file, line in zip(self.files, lines, strict=True):
                    file.write(line)
                    file.flush()
            else:
                self._begin()
        except (OSError, RunError) as error:
            self.close()
            notify(f"the history is not written: {error}")

    def _begin(self) -> None:
        """Write all there is, and leave the files open."""
        texts = {"jsonl": self.history.to_json_lines(), "csv": history_as_csv(self.history.epochs)}
        for suffix, text in texts.items():
            path = self.folder / f"history.{suffix}"
            write_file(path, text)
            self.files.append(path.open("a", encoding="utf-8"))

    def close(self) -> None:
        """Close the files."""
        for file in self.files:
            with suppress(OSError):
                file.close()
        self.files = []


class TensorBoard:
    """Writes TensorBoard's event files, with the package tensorboardX: losses, metric, learning rate and seconds.

    Parameters
    ----------
    folder
        Where; the one that ``tensorboard --logdir`` is then given.
    metric
        What the validation metric is called.

    Raises
    ------
    MissingPackageError
        When tensorboardX is not installed.
    RunError
        When the folder is a link; when an epoch is written, where that cannot be done.
    """

    def __init__(self, folder: Path, metric: str) -> None:
        self.folder, self.metric = refuse_link(folder), metric
        need("tensorboardX", "writing event files for TensorBoard", "tensorboard")  # to hear of it now
        self.writer: Any = None

    def __call__(self, record: EpochRecord) -> None:
        """Write an epoch, visible at once."""
        from tensorboardX import SummaryWriter

        if self.writer is None:
            # What was written of this epoch and later, before an interruption, is ignored.
            try:
                self.writer = SummaryWriter(str(self.folder), purge_step=record.epoch)
            except OSError as error:
                raise RunError(f"{self.folder}: cannot be written: {error.strerror or error}") from None
        values = {
            "loss/training": record.loss,
            "loss/validation": record.validation_loss,
            f"{self.metric}/validation": record.validation_metric,
            "learning_rate": record.learning_rate,
            "seconds": record.seconds,
        }
        for name, value in values.items():
            if value is not None:
                self.writer.add_scalar(name, value, record.epoch)
        self.writer.flush()

    def close(self) -> None:
        """Close the file."""
        if self.writer is not None:
            self.writer.close()

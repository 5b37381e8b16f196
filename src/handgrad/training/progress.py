"""A progress bar: loss, metric, speed and time left, on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from handgrad.forks import LOCK
from handgrad.training.history import EpochRecord


class Progress:
    """Says nothing; what a training reports to when nobody watches."""

    def rows(self, done: int) -> None:
        """Report how many rows of the epoch are done."""

    def finished(self, record: EpochRecord) -> None:
        """Report a finished epoch."""


class Bar(Progress):
    """Shows a bar on standard error."""

    def __init__(self, bar: Any, epochs: int, rows: int, metric: str, done: int) -> None:
        self.bar, self.rows_in_epoch, self.metric = bar, rows, metric
        self.before = done * rows
        self.task = bar.add_task("training", total=epochs * rows, completed=self.before, text="")

    def rows(self, done: int) -> None:  # noqa: D102 - as in Progress
        self.bar.update(self.task, completed=self.before + done)

    def finished(self, record: EpochRecord) -> None:  # noqa: D102 - as in Progress
        self.before = record.epoch * self.rows_in_epoch
        text = f"epoch {record.epoch}  loss {record.loss:.4f}"
        if record.validation_metric is not None:
            text += f"  {self.metric} {record.validation_metric:.4f}"
        self.bar.update(self.task, completed=self.before, text=text)


@contextmanager
def progress_for(
    wanted: bool | None, epochs: int, rows: int, metric: str, done: int = 0
) -> Iterator[Progress]:
    """Give a bar when it is wanted, by default where standard error is a terminal; ``done`` epochs are over."""
    if not (sys.stderr.isatty() if wanted is None else wanted):
        yield Progress()
        return
    with LOCK:
        from rich.console import Console  # slow to import, so only where it shows
        from rich.progress import BarColumn, ProgressColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress
        from rich.table import Column
        from rich.text import Text

    class Speed(ProgressColumn):
        def render(self, task: Any) -> Text:
            speed = task.finished_speed or task.speed
            return Text(f"{speed:,.0f} rows/s" if speed else "")

    text = TextColumn("{task.fields[text]}", table_column=Column(no_wrap=True))
    columns = (BarColumn(20), text, Speed(table_column=Column(no_wrap=True)), TimeRemainingColumn())
    with RichProgress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield Bar(bar, epochs, rows, metric, done)

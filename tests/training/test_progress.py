"""The bar of a training: how much is done, and what it says."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from rich.progress import Progress as RichProgress

from handgrad.training import EpochRecord
from handgrad.training.progress import Bar, Progress, progress_for


def record(epoch: int, metric: float | None) -> EpochRecord:
    return EpochRecord(epoch, 0.25, None, metric, 0.1, 1.0)


def test_the_bar_counts_the_rows_of_all_epochs_and_says_how_good_the_last_one_was() -> None:
    bar = Bar(RichProgress(), epochs=3, rows=70, metric="accuracy", done=0)
    (task,) = bar.bar.tasks
    seen: list[tuple[float, str]] = [(task.completed, task.fields["text"])]

    def look() -> None:
        seen.append((task.completed, task.fields["text"]))

    bar.rows(20)
    look()
    bar.finished(record(1, None))
    look()
    bar.rows(50)
    look()
    bar.finished(record(2, 0.5))
    look()
    assert task.total == 210
    first, second = "epoch 1  loss 0.2500", "epoch 2  loss 0.2500  accuracy 0.5000"
    assert seen == [(0, ""), (20, ""), (70, first), (120, first), (140, second)]


def test_the_bar_of_a_resumed_training_begins_where_that_was_stopped() -> None:
    bar = Bar(RichProgress(), epochs=3, rows=70, metric="accuracy", done=2)
    (task,) = bar.bar.tasks
    assert task.completed == 140
    bar.rows(20)
    assert task.completed == 160


@pytest.mark.parametrize(("wanted", "terminal", "shown"), [
    (True, False, True), (False, True, False), (None, True, True), (None, False, False),
])  # fmt: skip
def test_a_bar_is_shown_when_it_is_wanted_or_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    wanted: Any,
    terminal: bool,
    shown: bool,
) -> None:
    """On standard error, so that what a command answers stays clean."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    with progress_for(wanted, 3, 70, "accuracy") as bar:
        assert type(bar) is (Bar if shown else Progress)
        bar.finished(record(3, 0.5))
    assert capsys.readouterr().out == ""

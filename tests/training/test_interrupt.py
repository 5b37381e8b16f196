"""Ctrl-C ends a training with the weights of the last finished epoch, whenever it comes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from handgrad import Adam, BatchNorm, Checkpoints, Linear, MeanSquaredError, Network, ReLU, train
from handgrad.training import EpochRecord
from handgrad.training.progress import Bar, Progress

ROWS = 40
X = np.random.default_rng(0).normal(size=(ROWS, 3))
T = X[:, :1] * 2

STEPWISE = "reference"  # comes back after every batch, so that an interruption can be put after any


def network() -> Network:
    return Network(Linear(3, 6), BatchNorm(), ReLU(), Linear(6, 1), loss=MeanSquaredError())


def weights_after(epochs: int) -> dict[str, bytes]:
    """Return what a training of five epochs has after some of them."""
    made = network()
    seen = [weights_of(made)]
    train(made, X, T, epochs=5, engine=STEPWISE, after_epoch=lambda record: seen.append(weights_of(made)))
    return seen[epochs]


def weights_of(network: Network) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in network.arrays.items()}


@pytest.mark.parametrize(("call", "finished"), [(1, 0), (2, 0), (3, 1), (5, 2), (10, 4)])
def test_in_the_middle_of_an_epoch_its_steps_are_undone(
    monkeypatch: pytest.MonkeyPatch, call: int, finished: int
) -> None:
    """The history has the finished epochs, the network their weights; running statistics and all."""
    calls = 0

    def rows(self: Progress, done: int) -> None:
        nonlocal calls
        calls += 1
        if calls == call:
            raise KeyboardInterrupt

    expected = weights_after(finished)
    monkeypatch.setattr(Progress, "rows", rows)
    made = network()
    history = train(made, X, T, epochs=5, optimiser=Adam(), engine=STEPWISE)
    assert (history.stopped, len(history.epochs)) == ("interrupted", finished)
    assert weights_of(made) == expected


@pytest.mark.parametrize("where", ["after_epoch", "finished"])
def test_between_two_epochs_nothing_is_undone(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """An interruption while an epoch is reported keeps that epoch."""

    def stop(record: EpochRecord) -> None:
        if record.epoch == 3:
            raise KeyboardInterrupt

    expected = weights_after(3)
    if where == "finished":
        monkeypatch.setattr(Progress, "finished", lambda self, record: stop(record))
    made = network()
    after_epoch = stop if where == "after_epoch" else None
    history = train(made, X, T, epochs=5, engine=STEPWISE, after_epoch=after_epoch)
    assert (history.stopped, len(history.epochs)) == ("interrupted", 3)
    assert weights_of(made) == expected


def test_with_patience_the_last_finished_epoch_is_kept_and_not_the_best(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who stops a training by hand gets what is there; no epoch is said to be the best."""
    seen: list[dict[str, bytes]] = []
    made = network()

    def stop(record: EpochRecord) -> None:
        seen.append(weights_of(made))
        if record.epoch == 6:
            raise KeyboardInterrupt

    history = train(
        made, X, T, epochs=9, patience=8, validation=(X, -T), optimiser=Adam(0.05), after_epoch=stop
    )
    losses = [record.validation_loss or 0.0 for record in history.epochs]
    assert np.argmin(losses) < 5  # the best one came before
    assert (history.stopped, history.best_epoch) == ("interrupted", None)
    assert weights_of(made) == seen[-1]


def test_facts_are_there_also_when_no_epoch_was_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty history is a history: it can be written."""

    def stop(self: Progress, done: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "rows", stop)
    history = train(network(), X, T, epochs=5)
    about_rows = {"rows": ROWS, "batch_size": 32, "rows_per_second": 0}
    assert history.facts.items() >= about_rows.items()
    assert history.facts.keys() == {"engine", "blas", "sequence_products", "threads", *about_rows}
    assert type(history).from_json_lines(history.to_json_lines()) == history


def test_the_bar_is_taken_away(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A bar that is shown when Ctrl-C comes leaves the terminal as it was."""
    calls: list[int] = []

    def stop(self: Any, done: int) -> None:
        calls.append(done)
        if len(calls) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(Bar, "rows", stop)
    history = train(network(), X, T, epochs=5, progress=True)
    assert (history.stopped, len(history.epochs)) == ("interrupted", 1)


def test_after_an_epoch_a_training_can_be_ended() -> None:
    """True ends it, and nothing else does; the weights are that epoch's."""
    answers = [None, 1, np.True_, True]
    made = network()
    history = train(made, X, T, epochs=5, engine=STEPWISE, after_epoch=lambda record: answers.pop(0))
    assert (history.stopped, len(history.epochs), answers) == ("early", 3, [True])
    assert weights_of(made) == weights_after(3)


def test_a_training_that_was_ended_can_go_on(tmp_path: Path) -> None:
    """Its state is kept, whether a checkpoint was due or not."""
    made, straight = network(), network()
    store = Checkpoints(tmp_path, minutes=1000)
    train(made, X, T, epochs=5, checkpoints=store, after_epoch=lambda record: record.epoch == 2)
    made = network()
    train(made, X, T, epochs=5, checkpoints=Checkpoints(tmp_path, resume=True))
    train(straight, X, T, epochs=5)
    assert weights_of(made) == weights_of(straight)


def test_who_ends_a_training_with_patience_gets_the_best_epoch() -> None:
    made, seen = network(), []

    def stop(record: EpochRecord) -> bool:
        seen.append(weights_of(made))
        return record.epoch == 6

    history = train(
        made, X, T, epochs=9, patience=8, validation=(X, -T), optimiser=Adam(0.05), after_epoch=stop
    )
    assert (history.stopped, len(history.epochs)) == ("early", 6)
    assert history.best_epoch is not None
    assert history.best_epoch < 6
    assert weights_of(made) == seen[history.best_epoch - 1]

"""A training in the middle, as plain data: all that is needed to resume as if it had never stopped.

Orders of rows are drawn from (seed, epoch), masks from (seed, step), and the learning rates of all steps are known
before the first. So the seed among the settings and the position are the whole state of what is random or scheduled.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

from handgrad.arrays import Array, Fingerprint, find_change
from handgrad.errors import ConfigurationError, DataError, EngineError, notify
from handgrad.training.history import EpochRecord, History


@dataclass(frozen=True)
class Done:
    """How far an epoch has come: its batches, the loss they came to as (total, count), the seconds they took."""

    batches: int = 0
    total: float = 0.0
    count: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True)
class EpochEnd:
    """A training at the end of an epoch: parameters, buffers and slots, now and at the lowest validation loss."""

    epoch: int
    arrays: Mapping[str, Array]
    best: Mapping[str, Array]
    best_loss: float = float("inf")
    best_epoch: int = 0
    waited: int = 0  # epochs since the best

    def after(self, record: EpochRecord, arrays: Mapping[str, Array]) -> EpochEnd:
        """Return the end of the next epoch."""
        loss = record.validation_loss
        if loss is None:  # none is the best but the last, which a checkpoint then has once
            return EpochEnd(record.epoch, arrays, arrays, waited=self.waited + 1)
        if loss < self.best_loss:
            return EpochEnd(record.epoch, arrays, arrays, loss, record.epoch)
        return replace(self, epoch=record.epoch, arrays=arrays, waited=self.waited + 1)


@dataclass(frozen=True)
class TrainingState:
    """A training between two batches."""

    settings: Mapping[str, str]  # what it was started with, each as text
    data: Mapping[str, Fingerprint]
    facts: Mapping[str, Any]  # what runs it: engine, BLAS library, threads
    history: History
    done: Done
    start: Mapping[str, float]  # the largest value of each array when it began
    last: EpochEnd
    now: Mapping[str, Array]  # the arrays in the middle of an epoch; {} between two

    def check(self, other: TrainingState) -> None:
        """Check that the training in ``other``, which is about to start, is the one that this state is of.

        Only how long it trains may be another: nothing that is done up to there depends on it, but a schedule's rates.
        """
        for name in (self.settings.keys() | other.settings.keys()) - {"epochs", "patience"}:
            before, now = self.settings.get(name), other.settings.get(name)
            if before != now:
                raise ConfigurationError(
                    f"{name} is {now}, and the training that is to go on has {before}",
                    fix="give it the same settings, or begin a new training",
                )
        if int(other.settings["epochs"]) < self.last.epoch:
            raise ConfigurationError(
                f"epochs is {other.settings['epochs']}, and the training that is to go on has done {self.last.epoch}",
                fix="give as many or more: they are counted from its beginning",
            )
        if change := find_change(self.data, other.data):
            raise DataError(
                f"the data has changed since the training began: {change}",
                fix="bring back the data as it was, or begin a new training",
            )
        if self.facts["engine"] != other.facts["engine"]:
            raise EngineError(
                f"the {other.facts['engine']} engine would go on with what the {self.facts['engine']} engine began, "
                "and their last digits differ",
                fix="see the notice of why the engine is not used, or begin a new training",
            )
        for name in self.facts.keys() & other.facts.keys():
            if self.facts[name] != other.facts[name]:
                notify(f"{name} is {other.facts[name]} and was {self.facts[name]}: last digits may differ")


@runtime_checkable
class CheckpointStore(AbstractContextManager[object], Protocol):
    """Where a training saves its state, and finds it again; entered for as long as it trains."""

    @property
    def seconds(self) -> float:
        """How often it wants to be asked within an epoch."""

    def load(self, arrays: Mapping[str, Array]) -> TrainingState | None:
        """Return the state to resume from, whose arrays are of the names, shapes and types of these; None to begin."""

    def is_due(self, *, between_epochs: bool) -> bool:
        """Whether a state should be saved now."""

    def save(self, state: TrainingState) -> None:
        """Save a state; its arrays change when training goes on."""

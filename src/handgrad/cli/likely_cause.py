"""Why a training is no better than a constant prediction: options that mend it, tried for a few seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import click
import numpy as np

from handgrad.arrays import Array, some_rows
from handgrad.cli.options import FLAGS, RATE, Experiment
from handgrad.configuration import Configuration
from handgrad.data import Split
from handgrad.errors import TrainingError
from handgrad.layers import Huber, SoftmaxCrossEntropy
from handgrad.training import History, train
from handgrad.training.remedies import Change, KnownRows, Predict, Remedy, find_remedy

SECONDS = 0.8  # of each training, at the speed of the one that failed
ALL_SECONDS = 8.0  # after which no further one is begun
LONGER = 4  # times as many epochs
WAITING = 10  # times fewer epochs of patience than epochs


def find_cause(experiment: Experiment, history: History, *, quiet: bool) -> Remedy | None:
    """Try options one at a time; None where that is interrupted."""
    rows = experiment.rows
    known = [rows.validation, rows.test]
    choose_on, prove_on = (
        _known(experiment, each if len(each) else other) for each, other in (known, known[::-1])
    )
    trials = _Trials(experiment, history)
    report = (lambda line: None) if quiet else (lambda line: click.echo(f"  {line}", err=True))
    if not quiet:
        click.echo("No better than a constant; looking for the cause, one change at a time:", err=True)
    try:
        return find_remedy(
            experiment.network.predict,
            trials.unchanged if trials.shorter else None,
            trials.changes(),
            choose_on,
            prove_on,
            report,
        )
    except KeyboardInterrupt:
        return None


def _known(experiment: Experiment, rows: Array) -> KnownRows:
    dataset = experiment.dataset
    return KnownRows(some_rows(dataset.x, rows), dataset.t[rows], len(dataset.classes))


@dataclass
class _Trials:
    """Short trainings of one experiment, each with one setting changed."""

    experiment: Experiment
    history: History
    until: float = field(default_factory=lambda: time.monotonic() + ALL_SECONDS)

    @cached_property
    def rows(self) -> Split:
        """The rows of a trial: those of the experiment, of its training rows as many as there is time for."""
        rows, visits = self.experiment.rows, self.visits
        if len(rows.train) <= visits:
            return rows
        some = np.random.default_rng(0).permutation(rows.train)[:visits]
        return Split(np.sort(some), rows.validation, rows.test)

    @property
    def visits(self) -> int:
        """How many rows a trial learns from, over all of its epochs."""
        return max(int(SECONDS * self.history.facts["rows_per_second"]), 1)

    @property
    def epochs(self) -> int:
        return max(min(len(self.history.epochs), self.visits // len(self.rows.train)), 1)

    @property
    def shorter(self) -> bool:
        """Whether a trial learns from fewer rows than the training did."""
        return self.epochs < len(self.history.epochs) or len(self.rows.train) < len(
            self.experiment.rows.train
        )

    def unchanged(self) -> Predict:
        """Train with the settings as they are."""
        return self.trained(self.experiment.configuration, self.epochs)

    def trained(self, settings: Configuration, epochs: int) -> Predict:
        """Train with some settings."""
        dataset, rows, training = self.experiment.dataset, self.rows, settings.training
        network = settings.build(dataset)
        history = train(
            network,
            dataset.x,
            dataset.t,
            rows=rows.train,
            validation=rows.validation if training.patience else None,
            epochs=epochs,
            batch_size=training.batch_size,
            micro_batch=training.micro_batch,
            optimiser=settings.optimiser(),
            schedule=settings.schedule(),
            patience=training.patience,
            seed=training.seed,
            engine=training.engine,
            devices=training.devices,
            progress=False,
        )
        if history.stopped == "interrupted":
            raise KeyboardInterrupt
        return network.predict

    def changes(self) -> Iterator[Change]:
        """Yield what may mend it, until there is no more time."""
        for setting, value, cause in self._settings():
            if time.monotonic() > self.until:
                return
            epochs = value if setting == "training.epochs" else self.epochs
            settings = self.experiment.configuration.changed(setting, value)
            shown = str(value).lower() if isinstance(value, bool) else value
            yield Change(
                f"{FLAGS[setting.replace('.', '__')]} {shown}", cause, self._training(settings, epochs)
            )

    def _training(self, settings: Configuration, epochs: int) -> Callable[[], Predict]:
        return lambda: self.trained(settings, epochs)

    def _settings(self) -> Iterator[tuple[str, Any, str]]:
        """Yield settings to change, their values, and the cause that each would prove."""
        experiment, configuration = self.experiment, self.experiment.configuration
        dataset, loss, epochs = experiment.dataset, experiment.network.loss, len(self.history.epochs)
        t = dataset.t[experiment.rows.train]
        if dataset.task == "regression":
            if not configuration.data.standardise_targets and loss is not None and loss.least is None:
                scale = f"mean {t.mean():.3g}, deviation {t.std():.3g}"
                yield "data.standardise_targets", True, f"the scale of the targets ({scale})"
            if experiment.heavy_tails:
                yield "network.loss", Huber.__name__, "a few targets that are far from all others"
        elif isinstance(loss, SoftmaxCrossEntropy) and configuration.network.class_weight is None:
            yield "network.class_weight", "balanced", "rare classes count little"
        if configuration.data.standardise == "none":
            yield "data.standardise", "auto", "the scale of the inputs"
        if (rate := self._other_rate()) is not None:
            yield RATE, rate, f"the learning rate, {configuration.optimiser().learning_rate:g}"
        if configuration.training.patience is None and len(experiment.rows.validation) and epochs >= WAITING:
            yield (
                "training.patience",
                epochs // WAITING,
                "too many epochs: other rows got worse with the last of them",
            )
        if not self.shorter:
            yield "training.epochs", LONGER * epochs, "too few steps"

    def _other_rate(self) -> float | None:
        experiment = self.experiment
        network = experiment.configuration.build(experiment.dataset)
        try:
            found = experiment.find_learning_rate(network, self.rows.train)
        except TrainingError:
            return None
        return found.learning_rate

"""A training run: the bound programs, their arrays, the position, and the best epoch so far."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.engines import BoundProgram, Epoch, NonFiniteLossError, bind
from handgrad.engines.engine import AT_A_TIME
from handgrad.errors import TrainingError
from handgrad.fingerprint import Fingerprint
from handgrad.layers import Optimiser
from handgrad.network import Network
from handgrad.program import Program
from handgrad.training.history import BatchRecord, EpochRecord, History
from handgrad.training.metrics import measure_metric, metric_name
from handgrad.training.nonfinite import explain_nonfinite, largest
from handgrad.training.progress import Progress
from handgrad.training.subset import Subset
from handgrad.training.training_state import CheckpointStore, Done, EpochEnd, TrainingState

Array = NDArray[Any]

logger = logging.getLogger(__name__)


class TrainingRun:
    """One training.

    Parameters
    ----------
    network, training, watched, optimiser, batch_size, seed, shuffle, engine
        As given to `train`, and checked.
    after_batch, checkpoints
        What is called within an epoch.
    """

    def __init__(
        self, network: Network, training: Subset, watched: Subset | None, optimiser: Optimiser,
        batch_size: int, seed: int, shuffle: bool, engine: str,
        after_batch: Callable[[BatchRecord], None] | None, checkpoints: CheckpointStore | None,
    ) -> None:  # fmt: skip
        assert network.loss is not None
        self.network, self.training, self.watched = network, training, watched
        self.batch_size, self.seed, self.shuffle = batch_size, seed, shuffle
        self.after_batch, self.checkpoints = after_batch, checkpoints
        weighted = "w" in training.arrays
        self.program = network.program(optimiser, weighted=weighted).keeping("total", "count")
        slots = {name: np.zeros(shape, network.dtype) for name, shape in self.program.slots.items()}
        self.arrays: dict[str, Array] = {**network.arrays, **slots}
        self.step: BoundProgram = bind(engine, self.program, self.arrays)
        self.validation_program = network.loss_program(weighted=watched is not None and "w" in watched.arrays)
        if watched is not None:
            answer = network.evaluation_program(prediction=True)
            self.validation, self.answering = (
                bind(self.step.facts["engine"], program, self.arrays)
                for program in (self.validation_program, answer)
            )
        self.history = History(metric_name(network.loss))
        start = self.copy()
        self.last = EpochEnd(0, start, start)
        self.start: Mapping[str, float] = largest(start)
        self.steps = -(-len(training) // batch_size)
        self.seconds_per_batch: float | None = None
        self.done, self.saved = Done(), (0, 0)

    def copy(self) -> dict[str, Array]:
        """Return the arrays as they are."""
        return {name: array.copy() for name, array in self.arrays.items()}

    def restore(self, arrays: Mapping[str, Array]) -> None:
        """Go back to arrays as they were."""
        for name, array in self.arrays.items():
            array[...] = arrays[name]

    def resume(self, settings: Mapping[str, object]) -> None:
        """Resume from the state in the checkpoints, if there is one of this same training."""
        assert self.checkpoints is not None
        arrays = dict(self.training.arrays)
        if self.watched is not None and self.watched.arrays is not self.training.arrays:
            arrays |= {f"validation {name}": array for name, array in self.watched.arrays.items()}
        in_files = ("targets='probabilities'", "targets='shares'")  # as 0.1 has it
        self.settings = {name: repr(value).replace(*in_files) for name, value in settings.items()}
        self.data = {name: Fingerprint.of(array) for name, array in arrays.items()}
        state = self.checkpoints.load(self.arrays)
        if state is None:
            return
        state.check(self.state())
        self.history, self.start, self.done, self.last = state.history, state.start, state.done, state.last
        self.restore(state.now or self.last.arrays)
        self.history.stopped = "finished"
        self.saved = self.last.epoch, self.done.batches
        logger.info("going on after epoch %d and %d batches", *self.saved)

    def state(self) -> TrainingState:
        """Return all that is needed to go on from here."""
        return TrainingState(
            settings=self.settings,
            data=self.data,
            facts={**self.step.facts, "numpy": np.__version__},
            history=self.history,
            done=self.done,
            start=self.start,
            last=self.last,
            now=self.arrays if self.done.batches else {},
        )

    def save(self, *, due: bool = False) -> None:
        """Save the state when the checkpoints are due, or ``due``; never one from before the last that was saved."""
        place = self.last.epoch, self.done.batches
        if self.checkpoints is None or place <= self.saved:
            return
        if due or self.checkpoints.is_due(between_epochs=self.done.batches == 0):
            self.checkpoints.save(self.state())
            self.saved = place

    def interrupt(self) -> None:
        """Go back to the last finished epoch, and save that."""
        self.restore(self.last.arrays)
        self.done = Done()
        del self.history.epochs[self.last.epoch :]  # it may have come between two lines of `epoch`
        self.history.stopped = "interrupted"
        self.save(due=True)

    def is_out_of_patience(self, patience: int | None) -> bool:
        """Whether the validation loss has not fallen for too long."""
        return patience is not None and self.last.waited >= patience

    def epoch(self, rates: Array, bar: Progress) -> EpochRecord:
        """Train for one epoch, or what is left of it, then measure the validation rows.

        ``rates`` are the learning rates of all steps of the training.
        """
        number = self.last.epoch
        rates = rates[number * self.steps : (number + 1) * self.steps]
        rows = self.training
        order = (
            np.random.default_rng([self.seed, number]).permutation(len(rows)) if self.shuffle else slice(None)
        )
        epoch = Epoch(
            rows.arrays, rows.order[order], self.batch_size, rates, number * self.steps + 1, self.seed
        )
        started = time.perf_counter() - self.done.seconds
        while self.done.batches < len(epoch):
            self.batches(epoch, started, bar)
        arrays = self.copy()
        finite = all(np.isfinite(array).all() for array in arrays.values())
        if not finite:  # since the last update, which no later loss of this epoch has shown
            raise self.explained(self.program, self.last.arrays, epoch, len(epoch) - 1)
        validation_loss, validation_metric = self.validate()
        record = EpochRecord(
            epoch=number + 1,
            loss=self.done.total / max(self.done.count, 1e-30),
            validation_loss=validation_loss,
            validation_metric=validation_metric,
            learning_rate=float(rates[-1]),
            seconds=time.perf_counter() - started,
        )
        self.history.epochs.append(record)
        self.last, self.done = self.last.after(record, arrays), Done()
        logger.info("%s", record)
        return record

    def batches(self, epoch: Epoch, started: float, bar: Progress) -> None:
        """Run an epoch's next batches, until the next callback or checkpoint."""
        before, began = self.done, time.perf_counter()
        until = before.batches + self.batches_until_callback(len(epoch) - before.batches)
        part = epoch.part(before.batches, until, before.total, before.count)
        try:
            total, count = self.step.epoch(
                part, lambda rows: bar.rows(before.batches * self.batch_size + rows)
            )
        except NonFiniteLossError as error:
            batch = before.batches + error.batch
            raise self.explained(self.program, self.last.arrays, epoch, batch) from None
        now = time.perf_counter()
        self.seconds_per_batch = max((now - began) / (until - before.batches), 1e-9)
        self.done = Done(until, total, count, now - started)
        if self.after_batch is not None:
            loss = (total - before.total) / max(count - before.count, 1e-30)
            number = self.last.epoch
            step, rate = number * self.steps + until, float(epoch.learning_rates[until - 1])
            self.after_batch(BatchRecord(number + 1, until, step, loss, rate))
        if until < len(epoch):
            self.save()

    def batches_until_callback(self, left: int) -> int:
        """Return how many of the batches that are left run until the next callback or checkpoint."""
        if self.after_batch is not None:
            return 1
        if self.checkpoints is None:
            return left
        if self.seconds_per_batch is None:  # nothing is known yet: one, to be measured
            return 1
        return int(np.clip(self.checkpoints.seconds / self.seconds_per_batch, 1, left))

    def validate(self) -> tuple[float | None, float | None]:
        """Return the loss and the metric of the validation rows."""
        if self.watched is None:
            return None, None
        rows, loss = self.watched, self.network.loss
        assert loss is not None
        epoch = Epoch(rows.arrays, rows.order)
        try:
            total, count = self.validation.epoch(epoch)
        except NonFiniteLossError as error:
            raise self.explained(self.validation_program, self.copy(), epoch, error.batch) from None
        prediction = self.answers(rows.arrays["x"][rows.order])
        w = rows.arrays["w"][rows.order] if "w" in rows.arrays else None
        return total / max(count, 1e-30), measure_metric(loss, prediction, rows.arrays["t"][rows.order], w)

    def answers(self, x: Array) -> Array:
        """Return the network's answer for each row, some rows at a time."""
        batches = (
            self.answering.run(x=x[start : start + AT_A_TIME]) for start in range(0, len(x), AT_A_TIME)
        )
        return np.concatenate([next(iter(outputs.values())) for outputs in batches])

    def explained(
        self, program: Program, arrays: Mapping[str, Array], epoch: Epoch, batch: int
    ) -> TrainingError:
        """Go back to the last finished epoch, and explain where what followed was first not finite."""
        self.restore(self.last.arrays)
        return explain_nonfinite(program, arrays, self.start, epoch, batch)

    def restore_best(self) -> None:
        """Go back to the epoch of the lowest validation loss."""
        self.restore(self.last.best)
        self.history.best_epoch = self.last.best_epoch

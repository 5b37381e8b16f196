"""`train`, and a training run: the bound programs, their arrays, the position, and the best epoch so far."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from copy import deepcopy

import numpy as np
from numpy.typing import ArrayLike

from handgrad.arguments import Count, Seed, judged
from handgrad.arrays import Array, Fingerprint
from handgrad.engines import ENGINES, BoundProgram, Epoch, NonFiniteLossError, bind, check_devices
from handgrad.engines.cluster import agreed, lost_processes_named
from handgrad.engines.engine import evaluate, rows_at_a_time
from handgrad.errors import ConfigurationError, TrainingError, nearest, notify
from handgrad.layers import Adam, Constant, Optimiser, Schedule
from handgrad.network import Network
from handgrad.program import Program
from handgrad.training.history import BatchRecord, EpochRecord, History, requests_stop
from handgrad.training.learning_rates import Trial, training_program
from handgrad.training.metrics import mean_loss, measure_metric, metric_name
from handgrad.training.nonfinite import explain_nonfinite, largest
from handgrad.training.progress import Progress, progress_for
from handgrad.training.rows import Subset, Validation, divide_rows
from handgrad.training.training_state import CheckpointStore, Done, EpochEnd, TrainingState

MOST_STEPS = 2**28
"""Of a training: there is a learning rate in memory for each, 2 GiB of them."""

logger = logging.getLogger(__name__)


@judged
def train(
    network: Network,
    x: ArrayLike,
    t: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    rows: Array | None = None,
    validation: Validation = None,
    epochs: Count = 20,
    batch_size: Count = 32,
    micro_batch: Count | None = None,
    optimiser: Optimiser | None = None,
    schedule: Schedule | None = None,
    patience: Count | None = None,
    seed: Seed = 0,
    shuffle: bool = True,
    engine: str = "compiled",
    devices: Count | None = None,
    progress: bool | None = None,
    after_epoch: Callable[[EpochRecord], object] | None = None,
    after_batch: Callable[[BatchRecord], None] | None = None,
    checkpoints: CheckpointStore | None = None,
) -> History:
    """Train a network on rows; its parameters are changed in place.

    Parameters
    ----------
    network
        With a loss. A `Standardise` layer is fitted on the training rows first.
    x, t
        Rows (n, …) and targets: class numbers (n,), or values (n, outputs). Rows may be a sparse matrix of scipy's,
        where the first layer is a `Linear`; or an ``np.memmap``, which stays on the disk: each epoch then reads it nearly one
        row after the other: 64 blocks of 4,096 rows, drawn at random, are shuffled among each other, then the next 64.
        They are not to change while it trains: an engine may have sent them to its devices before.
    sample_weight
        How much each row counts in the loss, (n,).
    rows
        The numbers of the rows to train on, where not all are.
    validation
        Rows to watch: the share of x to keep aside (drawn with ``seed``), rows of x by number, or arrays (x, t) of their
        own.
    epochs, batch_size
        How often to go over the rows, and how many at a time; the last batch of an epoch may be shorter.
    micro_batch
        Rows that are computed at a time, where those of a batch are too many for memory: their gradients add up
        (gradient accumulation), and the update is that of the whole batch. `BatchNorm` normalises each micro-batch by itself,
        and `Dropout` draws other masks than for the whole batch.
    optimiser, schedule
        `Adam` at a constant learning rate when not given.
    patience
        Stop when the validation loss has not fallen for so many epochs, and keep the best weights.
    seed
        Of the shuffling, the random masks and the validation rows.
    shuffle
        Whether each epoch takes the rows in a new order.
    engine
        Its name in `handgrad.engines.ENGINES`: "compiled", "reference" (NumPy, line by line), … Where it cannot run a
        line, the reference engine takes over, with a notice that names the line.
    devices
        How many devices the jax engine divides the rows of a batch among; all that JAX has when not given.
    progress
        Whether to show a bar; by default where standard error is a terminal.
    after_epoch, after_batch
        Called with each epoch's and each batch's record. True from ``after_epoch`` ends the training. A call
        at every batch takes longer than a small batch does.
    checkpoints
        Where the state is saved now and then and at the end, so that an interrupted training resumes as if it had
        not been, and a finished one goes on to more epochs: `handgrad.Checkpoints`.

    Returns
    -------
    History
        Every epoch's losses and metric. After Ctrl-C ``stopped`` is "interrupted", and the network has the weights
        of the last finished epoch.

    Raises
    ------
    ShapeError, DataError, ConfigurationError
        When the rows, the targets or a setting do not fit.
    TrainingError
        When the loss is not finite: it names the first line of the program where that was so, and the likely
        cause; the network has the weights of the last finished epoch.

    Examples
    --------
    >>> from handgrad import Linear, Network, ReLU, SoftmaxCrossEntropy
    >>> from handgrad.data import xor
    >>> rows = xor(rows=400)
    >>> network = Network(Linear(2, 16), ReLU(), Linear(16, 2), loss=SoftmaxCrossEntropy())
    >>> history = train(network, rows.x, rows.t, validation=0.2, epochs=40, optimiser=Adam(0.01))
    >>> history.epochs[-1].validation_metric > 0.9
    True
    """
    if engine not in ENGINES:
        raise ConfigurationError(f"train: no engine is called {engine!r}", fix=nearest(engine, ENGINES))
    check_devices(engine, devices)
    training, watched = divide_rows(network, x, t, sample_weight, rows, validation, seed)
    optimiser, schedule = optimiser or Adam(), schedule or Constant()
    if patience is not None and watched is None:
        raise ConfigurationError("train: patience needs validation rows", fix="give validation=0.1")
    network.standardise(training.arrays["x"], training.arrays["t"], training.order)
    run = TrainingRun(
        network, training, watched, optimiser, batch_size, micro_batch, seed, shuffle, engine, devices, after_batch,
        checkpoints,
    )  # fmt: skip
    if epochs * run.steps > MOST_STEPS:
        raise ConfigurationError(
            f"train: {epochs:,} epochs of {run.steps:,} steps are more than {MOST_STEPS:,} steps",
            fix="give fewer epochs: a training that is finished can be resumed to more",
        )
    rates = schedule.rates(optimiser.learning_rate, epochs, run.steps)
    with checkpoints or nullcontext(), lost_processes_named():
        if checkpoints is not None:
            share = validation if isinstance(validation, float) else watched is not None
            run.resume(checkpoints, {
                "network": network, "dtype": network.dtype, "validation": share, "epochs": epochs,
                **({} if micro_batch is None else {"micro batch": micro_batch}),
                "batch size": batch_size, "optimiser": optimiser, "schedule": schedule, "patience": patience,
                "seed": seed, "shuffle": shuffle,
            }, rates)  # fmt: skip
        try:
            done = len(run.history.epochs)
            with progress_for(progress, epochs, len(training), run.history.metric, done) as bar:
                run.epochs(rates, epochs, patience, bar, after_epoch)
            run.save(due=True)  # so that it can go on to more epochs
            if patience is not None:
                run.restore(run.last.best)
                run.history.best_epoch = run.last.best_epoch
        except KeyboardInterrupt:
            run.interrupt()
        except TrainingError:
            run.save(due=True)
            raise
    seconds = [record.seconds for record in run.history.epochs] or [0.0]
    median = sorted(seconds)[(len(seconds) - 1) // 2]  # of the first epoch, some is for compiling
    speed = len(training) / median if median > 0 else 0.0
    facts = {"rows": len(training), "batch_size": batch_size, "rows_per_second": round(speed)}
    run.history.facts |= {**run.step.facts, **facts}
    return run.history


class TrainingRun:
    """One training, of settings that `train` has checked."""

    def __init__(
        self, network: Network, training: Subset, watched: Subset | None, optimiser: Optimiser,
        batch_size: int, micro_batch: int | None, seed: int, shuffle: bool, engine: str, devices: int | None,
        after_batch: Callable[[BatchRecord], None] | None, checkpoints: CheckpointStore | None,
    ) -> None:  # fmt: skip
        assert network.loss is not None
        self.network, self.training, self.watched = network, training, watched
        self.batch_size, self.seed, self.shuffle = batch_size, seed, shuffle
        self.optimiser = optimiser
        self.after_batch, self.checkpoints = after_batch, checkpoints
        self.program = self.step_program = training_program(
            network, optimiser, training, batch_size, micro_batch
        )
        if self.step_program.micro_batch:  # which is explained as one for the whole batch
            self.program = training_program(network, optimiser, training, batch_size)
        self.arrays, self.devices = network.arrays_for(self.step_program), devices
        self.step: BoundProgram = bind(engine, self.step_program, self.arrays, devices)
        self.loss_program = network.loss_program(weighted=watched is not None and "w" in watched.arrays)
        if watched is not None:
            self.evaluation = bind(self.step.facts["engine"], self.loss_program, self.arrays, devices)
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

    def resume(self, checkpoints: CheckpointStore, settings: Mapping[str, object], rates: Array) -> None:
        """Resume from the state in the checkpoints, if there is one of this same training; ``rates`` are all steps'."""
        in_files = ("targets='probabilities'", "targets='shares'")  # as 0.1 has it
        self.settings = {name: repr(value).replace(*in_files) for name, value in settings.items()}
        self.data: dict[str, Fingerprint] = {}
        for which, subset in (("", self.training), ("validation ", self.watched)):
            if subset is not None and (
                subset.chosen or which == "" or subset.arrays is not self.training.arrays
            ):
                order = subset.order if subset.chosen else None
                self.data |= {
                    f"{which}{name}": Fingerprint.of(array, order) for name, array in subset.arrays.items()
                }
        state = checkpoints.load(self.arrays)
        if state is None:
            return
        state.check(self.state())
        self.history, self.start, self.done, self.last = state.history, state.start, state.done, state.last
        if len(rates) == self.last.epoch * self.steps:
            self.done = Done()  # of an epoch that is not to be finished
        self.restore(state.now if self.done.batches else self.last.arrays)
        self.notify_of_other_rates(rates)
        self.history.stopped = "finished"
        self.saved = self.last.epoch, self.done.batches
        logger.info("going on after epoch %d and %d batches", *self.saved)

    def notify_of_other_rates(self, rates: Array) -> None:
        """Say where a schedule over another number of epochs would have had other learning rates so far."""
        then = [record.learning_rate for record in self.history.epochs]
        now = rates[self.steps - 1 :: self.steps][: len(then)].tolist()
        if then != now:
            goes_on = (
                f", and goes on with {rates[len(then) * self.steps]:.3g}"
                if len(rates) > len(then) * self.steps
                else ""
            )
            notify(
                f"the schedule depends on the number of epochs: the learning rate of epoch {len(then)} was {then[-1]:.3g}, "
                f"over {len(rates) // self.steps} epochs it is {now[-1]:.3g}{goes_on}; "
                "the weights are not those of a training that had so many epochs from its beginning"
            )

    def state(self) -> TrainingState:
        """Return all that is needed to resume from here."""
        facts = {**self.step.facts, "numpy": np.__version__}
        now = self.arrays if self.done.batches else {}
        return TrainingState(
            self.settings, self.data, facts, self.history, self.done, self.start, self.last, now
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

    def epochs(
        self, rates: Array, epochs: int, patience: int | None, bar: Progress,
        after_epoch: Callable[[EpochRecord], object] | None,
    ) -> None:  # fmt: skip
        """Train until all epochs are done, patience has run out or ``after_epoch`` requests the stop."""
        enough, asked = np.inf if patience is None else patience, False
        while len(self.history.epochs) < epochs and self.last.waited < enough and not asked:
            record = self.epoch(rates, bar)
            bar.finished(record)
            asked = after_epoch is not None and requests_stop(after_epoch(record))
            self.save(due=asked)
        self.history.stopped = "early" if len(self.history.epochs) < epochs else "finished"

    def epoch(self, rates: Array, bar: Progress) -> EpochRecord:
        """Train for one epoch, or what is left of it, then measure the validation rows; ``rates`` are all steps'."""
        number, rows = self.last.epoch, self.training
        rates = rates[number * self.steps : (number + 1) * self.steps]
        order = rows.shuffled(self.seed, number) if self.shuffle else rows.order
        epoch = Epoch(rows.arrays, order, self.batch_size, rates, number * self.steps + 1, self.seed)
        started = time.perf_counter() - self.done.seconds
        while self.done.batches < len(epoch):
            self.batches(epoch, started, bar)
        arrays = self.copy()
        if not all(np.isfinite(array).all() for array in arrays.values()):
            # since the last update, which no later loss of this epoch has shown
            raise self.explained(self.program, self.last.arrays, epoch, len(epoch) - 1)
        validation_loss, validation_metric = self.validate()
        loss, seconds = mean_loss(self.done.total, self.done.count), time.perf_counter() - started
        record = EpochRecord(number + 1, loss, validation_loss, validation_metric, float(rates[-1]), seconds)
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
        self.training.release()
        if self.after_batch is not None:
            loss = mean_loss(total - before.total, count - before.count)
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
        if self.seconds_per_batch is None:  # one, to be measured
            return 1
        return int(np.clip(agreed(self.checkpoints.seconds / self.seconds_per_batch), 1, left))

    def validate(self) -> tuple[float | None, float | None]:
        """Return the loss and the metric of the validation rows."""
        if self.watched is None:
            return None, None
        arrays, order, loss = self.watched.arrays, self.watched.order, self.network.loss
        assert loss is not None
        epoch = Epoch(arrays, order, rows_at_a_time(self.loss_program))
        try:
            total, count, prediction = evaluate(self.evaluation, epoch)
        except NonFiniteLossError as error:
            raise self.explained(self.loss_program, self.copy(), epoch, error.batch) from None
        self.watched.release()
        w = arrays["w"][order] if "w" in arrays else None
        return mean_loss(total, count), measure_metric(loss, prediction, arrays["t"][order], w)

    def explained(
        self, program: Program, arrays: Mapping[str, Array], epoch: Epoch, batch: int
    ) -> TrainingError:
        """Go back to the last finished epoch, and explain where what followed was first not finite."""
        self.restore(self.last.arrays)
        self.done = Done()
        copies = {name: array.copy() for name, array in arrays.items()}
        return explain_nonfinite(program, copies, self.start, epoch, batch, self.finite_rate)

    def finite_rate(self, rate: float, steps: int) -> float | None:
        """Return a lower learning rate at which some steps from the initial weights stay finite."""
        network = deepcopy(self.network)
        initial = network.program().initial(network.seed)
        for name, array in network.parameters.items():
            array[...] = initial[name]
        trial = Trial(
            network,
            self.step_program,
            self.training,
            self.batch_size,
            self.seed,
            self.step.facts["engine"],
            self.devices,
        )
        return trial.largest_finite_rate(rate, steps)

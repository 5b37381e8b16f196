"""The training loop: an engine driven over shuffled batches, epoch after epoch."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.data.finite import check_finite
from handgrad.engines import ENGINES, BoundProgram, Epoch, NonFiniteLossError, bind
from handgrad.errors import ConfigurationError, DataError, TrainingError, nearest
from handgrad.layers import Adam, Constant, Optimiser, Schedule
from handgrad.network import Network
from handgrad.program import Program
from handgrad.training.history import EpochRecord, History, facts_of
from handgrad.training.metrics import measure_metric, metric_name
from handgrad.training.nonfinite import explain_nonfinite, largest
from handgrad.training.progress import Progress, progress_for

Array = NDArray[Any]
Validation = float | tuple[Array, Array] | None


@dataclass(frozen=True)
class Rows:
    """Rows to train or validate on: arrays, and which of their rows.

    Attributes
    ----------
    arrays
        x, t, and w when rows have weights.
    order
        Row numbers.
    """

    arrays: dict[str, Array]
    order: Array

    def __len__(self) -> int:
        return len(self.order)


def train(
    network: Network,
    x: Array,
    t: Array,
    *,
    weights: Array | None = None,
    validation: Validation = None,
    epochs: int = 20,
    batch_size: int = 32,
    optimiser: Optimiser | None = None,
    schedule: Schedule | None = None,
    patience: int | None = None,
    seed: int = 0,
    shuffle: bool = True,
    engine: str = "compiled",
    progress: bool | None = None,
    after_epoch: Callable[[EpochRecord], None] | None = None,
) -> History:
    """Train a network on rows; its parameters are changed in place.

    Parameters
    ----------
    network
        With a loss. A `Standardise` layer is fitted on the training rows first.
    x, t
        Rows (n, …) and targets: class numbers (n,), or values (n, outputs).
    weights
        How much each row counts in the loss, (n,).
    validation
        Rows to watch: the share of x to keep aside (drawn with ``seed``), or arrays (x, t) of their own.
    epochs, batch_size
        How often to go over the rows, and how many at a time; the last batch of an epoch may be shorter.
    optimiser, schedule
        `Adam` at a constant learning rate when not given.
    patience
        Stop when the validation loss has not fallen for so many epochs, and keep the best weights.
    seed
        Of the shuffling, the random masks and the validation rows.
    shuffle
        Whether each epoch takes the rows in a new order.
    engine
        "compiled", or "reference" (NumPy, line by line). Where a line cannot be compiled, the reference engine
        takes over, with a notice that names the line.
    progress
        Whether to show a bar; by default where standard error is a terminal.
    after_epoch
        Called with each epoch's record.

    Returns
    -------
    History
        Every epoch's losses and metric. After Ctrl-C it says "interrupted", and the network has the weights
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
    _check_settings(epochs=epochs, batch_size=batch_size, patience=patience, seed=seed, engine=engine)
    training, watched = _rows(network, x, t, weights, validation, seed)
    optimiser, schedule = optimiser or Adam(), schedule or Constant()
    if patience is not None and watched is None:
        raise ConfigurationError("patience needs validation rows", fix="give validation=0.1")
    network.standardise(training.arrays["x"], training.order)
    steps = -(-len(training) // batch_size)
    run = _Run(network, training, watched, optimiser, batch_size, seed, shuffle, engine)
    rates = schedule.rates(optimiser.learning_rate, epochs, steps)
    try:
        with progress_for(progress, epochs, len(training), run.history.metric) as bar:
            for epoch in range(epochs):
                record = run.epoch(epoch, rates[epoch * steps : (epoch + 1) * steps], bar)
                bar.finished(record)
                if after_epoch is not None:
                    after_epoch(record)
                if patience is not None and run.waited >= patience:
                    run.history.stopped = "early"
                    break
        if patience is not None:
            run.keep_best()
    except KeyboardInterrupt:
        run.restore(run.finished)
        run.history.stopped = "interrupted"
    run.history.facts |= facts_of(run.step.facts, len(training), batch_size, run.history.epochs)
    return run.history


class _Run:
    """One training under way: the bound programs, what they keep, and the best of it."""

    def __init__(
        self, network: Network, training: Rows, watched: Rows | None, optimiser: Optimiser,
        batch_size: int, seed: int, shuffle: bool, engine: str,
    ) -> None:  # fmt: skip
        assert network.loss is not None
        self.network, self.training, self.watched = network, training, watched
        self.batch_size, self.seed, self.shuffle = batch_size, seed, shuffle
        weighted = "w" in training.arrays
        self.program = network.program(optimiser, weighted=weighted).keeping("total", "count")
        slots = {name: np.zeros(shape, network.dtype) for name, shape in self.program.slots.items()}
        self.kept: dict[str, Array] = {**network.arrays, **slots}
        self.step: BoundProgram = bind(engine, self.program, self.kept)
        self.validation_program = network.loss_program(weighted=watched is not None and "w" in watched.arrays)
        if watched is not None:
            answer = network.evaluation_program(prediction=True)
            self.validation, self.answering = (
                bind(self.step.facts["engine"], program, self.kept)
                for program in (self.validation_program, answer)
            )
        self.history = History(metric_name(network.loss))
        self.finished = self.best = self.copy()
        self.start = largest(self.finished)
        self.best_loss, self.best_epoch, self.waited = float("inf"), 0, 0

    def copy(self) -> dict[str, Array]:
        return {name: array.copy() for name, array in self.kept.items()}

    def restore(self, arrays: dict[str, Array]) -> None:
        for name, array in self.kept.items():
            array[...] = arrays[name]

    def epoch(self, number: int, rates: Array, bar: Progress) -> EpochRecord:
        """Train for one epoch, then look at the validation rows."""
        started = time.perf_counter()
        rows = self.training
        order = (
            np.random.default_rng([self.seed, number]).permutation(len(rows)) if self.shuffle else slice(None)
        )
        epoch = Epoch(
            rows.arrays, rows.order[order], self.batch_size, rates, number * len(rates) + 1, self.seed
        )
        try:
            total, count = self.step.epoch(epoch, bar.rows)
        except NonFiniteLossError as error:
            raise self.explained(self.program, self.finished, epoch, error.batch) from None
        arrays = self.copy()
        finite = all(np.isfinite(array).all() for array in arrays.values())
        if not finite:  # since the last update, which no later loss of this epoch has shown
            raise self.explained(self.program, self.finished, epoch, len(epoch) - 1)
        validation_loss, validation_metric = self.validate()
        seconds = time.perf_counter() - started
        record = EpochRecord(
            epoch=number + 1,
            loss=total / max(count, 1e-30),
            validation_loss=validation_loss,
            validation_metric=validation_metric,
            learning_rate=float(rates[-1]),
            seconds=seconds,
        )
        self.finished = arrays
        self.history.epochs.append(record)
        if validation_loss is not None and validation_loss < self.best_loss:
            self.best, self.best_loss, self.best_epoch, self.waited = arrays, validation_loss, record.epoch, 0
        else:
            self.waited += 1
        return record

    def validate(self) -> tuple[float | None, float | None]:
        """Return the loss and the metric of the validation rows."""
        if self.watched is None:
            return None, None
        rows, loss = self.watched, self.network.loss
        assert loss is not None
        epoch = Epoch(rows.arrays, rows.order, 4096, np.empty(0))
        try:
            total, count = self.validation.epoch(epoch)
        except NonFiniteLossError as error:
            raise self.explained(self.validation_program, self.copy(), epoch, error.batch) from None
        prediction = self.answers(rows.arrays["x"][rows.order])
        w = rows.arrays["w"][rows.order] if "w" in rows.arrays else None
        return total / max(count, 1e-30), measure_metric(loss, prediction, rows.arrays["t"][rows.order], w)

    def answers(self, x: Array) -> Array:
        """Return the network's answer for each row, a few thousand rows at a time."""
        batches = (self.answering.run(x=x[start : start + 4096]) for start in range(0, len(x), 4096))
        return np.concatenate([next(iter(outputs.values())) for outputs in batches])

    def explained(self, program: Program, kept: dict[str, Array], epoch: Epoch, batch: int) -> TrainingError:
        """Go back to the last finished epoch, and say where what followed was first not finite."""
        self.restore(self.finished)
        return explain_nonfinite(program, kept, self.start, epoch, batch)

    def keep_best(self) -> None:
        """Go back to the epoch of the lowest validation loss."""
        self.restore(self.best)
        self.history.best_epoch = self.best_epoch


def _rows(
    network: Network, x: Array, t: Array, weights: Array | None, validation: Validation, seed: int
) -> tuple[Rows, Rows | None]:
    """Check the arrays and divide them into training and validation rows."""
    arrays = checked_rows(network, x, t, weights, "")
    rows = np.arange(len(arrays["x"]))
    if validation is None:
        return Rows(arrays, rows), None
    if isinstance(validation, tuple):
        watched = checked_rows(network, *validation, None, "validation ")
        return Rows(arrays, rows), Rows(watched, np.arange(len(watched["x"])))
    kept_aside = round(len(rows) * validation) if 0 < validation < 1 else 0
    if not 0 < kept_aside < len(rows):
        raise ConfigurationError(
            f"validation is {validation}: {kept_aside} of {len(rows)} rows",
            fix="give a share between 0 and 1 that leaves rows on both sides, or arrays (x, t)",
        )
    shuffled = np.random.default_rng(seed).permutation(rows)
    return Rows(arrays, np.sort(shuffled[kept_aside:])), Rows(arrays, np.sort(shuffled[:kept_aside]))


def checked_rows(network: Network, x: Array, t: Array, weights: Array | None, which: str) -> dict[str, Array]:
    """Return the arrays of some rows, x and t and perhaps w, after every look that training takes at them."""
    x = network.check_rows(x)
    if len(x) == 0:
        raise DataError(f"{which}x has no rows")
    if len(t) != len(x):
        raise DataError(f"{which}x has {len(x)} rows and t has {len(t)}")
    arrays = {"x": x, "t": network.check_targets(np.asarray(t), len(x))}
    if weights is not None:
        arrays["w"] = network.check_weights(weights, len(x))
    for name, array in arrays.items():
        check_finite(f"{which}{name}", array)
    return arrays


def _check_settings(*, epochs: int, batch_size: int, patience: int | None, seed: int, engine: str) -> None:
    for name, value, least in (
        ("epochs", epochs, 1), ("batch size", batch_size, 1), ("patience", patience, 1), ("seed", seed, 0)
    ):  # fmt: skip
        if value is not None and (not isinstance(value, int | np.integer) or not least <= value < 2**63):
            raise ConfigurationError(f"{name} is {value!r}", fix=f"give a whole number, {least} or more")
    if engine not in ENGINES:
        raise ConfigurationError(f"no engine is called {engine!r}", fix=nearest(engine, ENGINES))

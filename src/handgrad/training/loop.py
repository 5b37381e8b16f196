"""The training loop: an engine driven over shuffled batches, epoch after epoch."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from numpy.typing import ArrayLike, NDArray

from handgrad.arguments import Count, Seed, judged
from handgrad.engines import ENGINES
from handgrad.errors import ConfigurationError, nearest
from handgrad.layers import Adam, Constant, Optimiser, Schedule
from handgrad.network import Network
from handgrad.training.history import BatchRecord, EpochRecord, History, facts_of, requests_stop
from handgrad.training.progress import Progress, progress_for
from handgrad.training.subset import Validation, divide_rows
from handgrad.training.training_run import TrainingRun
from handgrad.training.training_state import CheckpointStore

Array = NDArray[Any]


@judged
def train(
    network: Network,
    x: ArrayLike,
    t: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    validation: Validation = None,
    epochs: Count = 20,
    batch_size: Count = 32,
    optimiser: Optimiser | None = None,
    schedule: Schedule | None = None,
    patience: Count | None = None,
    seed: Seed = 0,
    shuffle: bool = True,
    engine: str = "compiled",
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
        Rows (n, …) and targets: class numbers (n,), or values (n, outputs).
    sample_weight
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
        Its name in `handgrad.engines.ENGINES`: "compiled", "reference" (NumPy, line by line), … Where it cannot run a
        line, the reference engine takes over, with a notice that names the line.
    progress
        Whether to show a bar; by default where standard error is a terminal.
    after_epoch, after_batch
        Called with each epoch's and each batch's record. True from ``after_epoch`` ends the training. A call
        at every batch takes longer than a small batch does.
    checkpoints
        Where the state is saved now and then, so that an interrupted training resumes as if it had not been:
        `handgrad.Checkpoints`.

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
    training, watched = divide_rows(network, x, t, sample_weight, validation, seed)
    optimiser, schedule = optimiser or Adam(), schedule or Constant()
    if patience is not None and watched is None:
        raise ConfigurationError("train: patience needs validation rows", fix="give validation=0.1")
    network.standardise(training.arrays["x"], training.order)
    run = TrainingRun(
        network, training, watched, optimiser, batch_size, seed, shuffle, engine, after_batch, checkpoints
    )
    rates = schedule.rates(optimiser.learning_rate, epochs, run.steps)
    with checkpoints or nullcontext():
        if checkpoints is not None:
            share = validation if isinstance(validation, float) else watched is not None
            run.resume({
                "network": network, "dtype": network.dtype, "validation": share, "epochs": epochs,
                "batch size": batch_size, "optimiser": optimiser, "schedule": schedule, "patience": patience,
                "seed": seed, "shuffle": shuffle,
            })  # fmt: skip
        try:
            with progress_for(progress, epochs, len(training), run.history.metric) as bar:
                _train_epochs(run, rates, epochs, patience, bar, after_epoch)
            if patience is not None:
                run.restore_best()
        except KeyboardInterrupt:
            run.interrupt()
    run.history.facts |= facts_of(run.step.facts, len(training), batch_size, run.history.epochs)
    return run.history


def _train_epochs(
    run: TrainingRun, rates: Array, epochs: int, patience: int | None, bar: Progress,
    after_epoch: Callable[[EpochRecord], object] | None,
) -> None:  # fmt: skip
    """Train until all epochs are done, patience has run out or ``after_epoch`` requests the stop."""
    stop = run.is_out_of_patience(patience)
    while len(run.history.epochs) < epochs and not stop:
        record = run.epoch(rates, bar)
        bar.finished(record)
        asked = after_epoch is not None and requests_stop(after_epoch(record))
        stop = asked or run.is_out_of_patience(patience)
        run.save(due=asked)
    run.history.stopped = "early" if stop and len(run.history.epochs) < epochs else "finished"

"""Stochastic descent with scikit-learn's rules of stopping, on handgrad's engine."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from handgrad.engines import Epoch, NonFiniteLossError
from handgrad.layers import Schedule
from handgrad.network import Network
from handgrad.sklearn.errors import EstimatorError
from handgrad.sklearn.programs import Ready
from handgrad.sklearn.rows import Rows
from handgrad.training.history import EpochRecord, requests_stop
from handgrad.training.nonfinite import explain_nonfinite, largest

Array = NDArray[Any]

LEAST_RATE = 1e-6
"""Below it an adaptive learning rate falls no further, and the descent ends."""


@dataclass(frozen=True)
class Settings:
    """What does not change during a descent; the names are scikit-learn's."""

    batch_size: int
    shuffle: bool
    learning_rate: str | Schedule
    learning_rate_init: float
    power_t: float
    max_iter: int
    tol: float
    n_iter_no_change: float
    verbose: bool
    incremental: bool
    after_epoch: Callable[[EpochRecord], object] | None


@dataclass
class Position:
    """Where a descent stands, so that `partial_fit` goes on from there.

    Attributes
    ----------
    rate
        The learning rate.
    seed
        Of the random masks.
    step, epoch
        How many steps and epochs are done.
    waited
        For how many epochs nothing has become better.
    slots
        What the optimiser keeps.
    """

    rate: float
    seed: int = 0
    step: int = 0
    epoch: int = 0
    waited: int = 0
    slots: dict[str, Array] = field(default_factory=dict)


class Descent:
    """One call of `fit` or `partial_fit`.

    Parameters
    ----------
    record
        What the estimator shows: loss_curve_, best_loss_, …; it is written to.
    settings, position
        How to descend, and where it begins.
    rows, held_out
        To learn from, and for early stopping to look at, if anything.
    score
        Returns the score of the network on the rows held out.
    """

    def __init__(
        self, record: Any, settings: Settings, position: Position, rows: Rows, score: Callable[[], float] | None,
        state: np.random.RandomState,
    ) -> None:  # fmt: skip
        self.record, self.settings, self.position, self.rows = record, settings, position, rows
        self.score, self.state = score, state
        self.network: Network = record.network_
        self.best = {name: array.copy() for name, array in self.network.arrays.items()} if score else {}

    def run(self, ready: Ready) -> None:
        """Descend, epoch after epoch, until a rule says to stop; the network has the weights in the end."""
        ready.load(self.network.arrays, self.position.slots)
        start = largest(ready.kept)
        epochs = 1 if self.settings.incremental else self.settings.max_iter
        self.record.n_iter_ = 0
        try:
            for _ in range(epochs):
                if self.epoch(ready, start):
                    break
            else:
                self.warn_of_the_end()
        except KeyboardInterrupt:
            warnings.warn("Training interrupted by user.", stacklevel=5)
        ready.store(self.network)
        self.position.slots = ready.slots
        if self.score:
            for name, array in self.network.arrays.items():
                array[...] = self.best[name]

    def warn_of_the_end(self) -> None:
        """Warn where `fit` used all its iterations."""
        if not self.settings.incremental:
            warnings.warn(
                f"Stochastic Optimizer: Maximum iterations ({self.settings.max_iter}) reached and the optimization "
                "hasn't converged yet.",
                ConvergenceWarning,
                stacklevel=6,
            )

    def epoch(self, ready: Ready, start: dict[str, float]) -> bool:
        """Run one epoch, and return whether it was the last."""
        started = time.perf_counter()
        record, position = self.record, self.position
        if self.settings.shuffle:
            shuffled = np.arange(len(self.rows))
            self.state.shuffle(shuffled)
            self.rows = replace(self.rows, order=self.rows.order[shuffled])
        rate = self.learn(ready, start)
        if rate is None:
            return True
        record.n_iter_ += 1
        position.epoch += 1
        record.t_ += len(self.rows)
        record.loss_curve_.append(record.loss_)
        self.say(f"Iteration {record.n_iter_}, loss = {record.loss_:.8f}")
        self.compare(ready)
        if self.settings.learning_rate == "invscaling":
            self.go_on_at(self.settings.learning_rate_init / (record.t_ + 1) ** self.settings.power_t, ready)
        score = record.validation_scores_[-1] if self.score else None
        after_epoch = self.settings.after_epoch
        seconds = time.perf_counter() - started
        asked = after_epoch is not None and requests_stop(
            after_epoch(EpochRecord(record.n_iter_, record.loss_, None, score, rate, seconds))
        )
        return self.is_over(ready) or asked

    def learn(self, ready: Ready, start: dict[str, float]) -> float | None:
        """Take every row once; return the last learning rate, or None where early stopping meets a diverged loss."""
        total = count = 0.0
        rates = self.rates()
        for arrays, order in self.rows.parts(self.settings.batch_size):
            steps = -(-len(order) // self.settings.batch_size)
            epoch = Epoch(
                arrays,
                order,
                self.settings.batch_size,
                rates[:steps],
                self.position.step + 1,
                self.position.seed,
            )
            rates, rate = rates[steps:], float(rates[steps - 1])
            try:
                part = ready.step.epoch(epoch)
            except NonFiniteLossError as error:
                if self.score:
                    self.diverged()
                    return None
                raise self.explained(ready, start, epoch, error.batch) from None
            total, count, self.position.step = total + part[0], count + part[1], self.position.step + steps
        self.record.loss_ = total / max(count, 1e-30)
        return rate

    def rates(self) -> Array:
        """Return the learning rate of each step of this epoch."""
        steps, schedule = -(-len(self.rows) // self.settings.batch_size), self.settings.learning_rate
        if isinstance(schedule, str):
            return np.full(steps, self.position.rate)
        rates = schedule.rates(self.settings.learning_rate_init, self.settings.max_iter, steps)
        first = min(self.position.epoch, self.settings.max_iter - 1) * steps
        return rates[first : first + steps]

    def compare(self, ready: Ready) -> None:
        """Count the epochs that were not better by ``tol``, and keep the weights of the best validation score."""
        record, tol = self.record, self.settings.tol
        if self.score:
            ready.store(self.network)
            score = self.score()
            record.validation_scores_.append(score)
            self.say(f"Validation score: {score:f}")
            worse = score < record.best_validation_score_ + tol
            if score > record.best_validation_score_:
                record.best_validation_score_ = score
                self.best = {name: array.copy() for name, array in self.network.arrays.items()}
        else:
            worse = record.loss_ > record.best_loss_ - tol
            record.best_loss_ = min(record.best_loss_, record.loss_)
        self.position.waited = self.position.waited + 1 if worse else 0

    def is_over(self, ready: Ready) -> bool:
        """Return whether nothing has become better for too long; an adaptive rate is made smaller first."""
        if self.position.waited <= self.settings.n_iter_no_change:
            return False
        what = "Validation score" if self.score else "Training loss"
        message = (
            f"{what} did not improve more than tol={self.settings.tol:f} for "
            f"{self.settings.n_iter_no_change} consecutive epochs."
        )
        if self.settings.learning_rate != "adaptive":
            self.say(f"{message} Stopping.")
            return True
        if self.position.rate <= LEAST_RATE:
            self.say(f"{message} Learning rate too small. Stopping.")
            return True
        self.go_on_at(self.position.rate / 5, ready)
        self.position.waited = 0
        self.say(f"{message} Setting learning rate to {self.position.rate:f}")
        return False

    def go_on_at(self, rate: float, ready: Ready) -> None:
        """Change the learning rate, and the momentum with it: scikit-learn's has the rate inside, ours outside."""
        for name in ready.program.slots:
            ready.kept[name] *= self.position.rate / rate
        self.position.rate = rate

    def diverged(self) -> None:
        """Write down that there is no score, and warn."""
        self.record.validation_scores_.append(float("nan"))
        warnings.warn(
            f"the loss of iteration {self.record.n_iter_ + 1} is not finite: the weights of the best validation "
            "score are kept; a smaller learning_rate_init, or features of a common size, would let it go on",
            ConvergenceWarning,
            stacklevel=8,
        )

    def explained(self, ready: Ready, start: dict[str, float], epoch: Epoch, batch: int) -> EstimatorError:
        """Say which line of the program was first not finite, from the batch that met it."""
        rows = epoch.order[batch * epoch.batch_size : (batch + 1) * epoch.batch_size]
        rates, step = epoch.learning_rates[batch : batch + 1], epoch.first_step + batch
        alone = replace(epoch, order=rows, learning_rates=rates, first_step=step)
        error = explain_nonfinite(ready.program, ready.kept, start, alone, 0)
        fix = error.fix.replace(
            "put Standardise() first", "put sklearn.preprocessing.StandardScaler in front"
        )
        return EstimatorError(
            f"iteration {self.record.n_iter_ + 1}: {error.problem}", given=error.given, fix=fix
        )

    def say(self, line: str) -> None:
        """Print a line where verbose asks for it."""
        if self.settings.verbose:
            print(line)  # noqa: T201 - as scikit-learn does

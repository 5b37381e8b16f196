"""The solvers: stochastic descent with scikit-learn's rules of stopping (sgd, adam), and scipy's L-BFGS-B."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.optimize
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.optimize import _check_optimize_result

from handgrad.engines import Epoch, NonFiniteLossError
from handgrad.errors import EstimatorError, notify
from handgrad.layers import Schedule
from handgrad.network import Network
from handgrad.sklearn.networks import SCHEDULES
from handgrad.sklearn.programs import FitProgram, dense, dense_chunks, fit_program
from handgrad.training.history import EpochRecord, requests_stop
from handgrad.training.nonfinite import explain_nonfinite, largest

Array = NDArray[Any]

MIN_ADAPTIVE_RATE = 1e-6
"""Below it an adaptive learning rate falls no further, and the descent ends: scikit-learn's."""

MIN_COUNT = 1e-30
"""Instead of the sum of weights that are all 0, as in the losses of the rules."""


@dataclass
class DescentState:
    """What `partial_fit` resumes from.

    Attributes
    ----------
    rate, seed
        The learning rate; the seed of dropout's masks.
    step, epoch
        How many are done.
    waited
        Epochs in a row without an improvement.
    slots
        The optimiser's.
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
    estimator
        Has the parameters and the network; its fitted attributes are written to.
    state
        To begin from; it is updated.
    arrays, order
        x, t, and w when rows have weights; which rows to learn from.
    score
        Returns the score of the network on held-out rows, with early stopping.
    tol
        By how much the loss or the score must improve.
    incremental
        Whether it is one epoch of `partial_fit`.
    """

    def __init__(
        self, estimator: Any, state: DescentState, arrays: dict[str, Any], order: Array,
        score: Callable[[], float] | None, *, tol: float, incremental: bool,
    ) -> None:  # fmt: skip
        self.estimator, self.state, self.arrays, self.order = estimator, state, arrays, order
        self.score, self.tol, self.incremental = score, tol, incremental
        self.network: Network = estimator.network_
        self.batch_size = self.choose_batch_size()
        self.schedule: str | Schedule = SCHEDULES.get(estimator.learning_rate) or estimator.learning_rate
        if estimator.solver == "adam" and self.schedule in ("invscaling", "adaptive"):
            self.schedule = "constant"  # as scikit-learn: these two are for sgd
        self.best = {name: array.copy() for name, array in self.network.arrays.items()} if score else {}

    def choose_batch_size(self) -> int:
        """Return the rows of a batch: not more than there are."""
        rows, chosen = len(self.order), self.estimator.batch_size
        if chosen == "auto":
            return min(200, rows)
        if chosen > rows:
            clipped = "Got `batch_size` less than 1 or larger than sample size. It is going to be clipped"
            notify(clipped, UserWarning)
        return min(int(chosen), rows)

    def run(self, program: FitProgram) -> None:
        """Descend, epoch after epoch, until a rule of stopping applies; the network has the weights in the end."""
        program.load(self.network.arrays, self.state.slots)
        start = largest(program.arrays)
        epochs = 1 if self.incremental else self.estimator.max_iter
        self.estimator.n_iter_ = 0
        try:
            stopped = any(self.epoch(program, start) for _ in range(epochs))
            if not (stopped or self.incremental):
                message = (
                    f"Stochastic Optimizer: Maximum iterations ({epochs}) reached and the optimization hasn't "
                    "converged yet."
                )
                notify(message, ConvergenceWarning)
        except KeyboardInterrupt:
            notify("Training interrupted by user.", UserWarning)
        program.store(self.network)
        self.state.slots = program.slots
        for name, array in self.best.items():
            self.network.arrays[name][...] = array

    def epoch(self, program: FitProgram, start: dict[str, float]) -> bool:
        """Run one epoch, and return whether it was the last."""
        started = time.perf_counter()
        estimator, state = self.estimator, self.state
        if estimator.shuffle:
            shuffled = np.arange(len(self.order))
            estimator._random_state.shuffle(shuffled)
            self.order = self.order[shuffled]
        rate = self.learn(program, start)
        if rate is None:
            return True
        estimator.n_iter_ += 1
        state.epoch += 1
        estimator.t_ += len(self.order)
        estimator.loss_curve_.append(estimator.loss_)
        self.report(f"Iteration {estimator.n_iter_}, loss = {estimator.loss_:.8f}")
        self.compare(program)
        if self.schedule == "invscaling":
            self.change_rate(
                float(estimator.learning_rate_init) / (estimator.t_ + 1) ** estimator.power_t, program
            )
        score = estimator.validation_scores_[-1] if self.score else None
        seconds = time.perf_counter() - started
        record = EpochRecord(estimator.n_iter_, estimator.loss_, None, score, rate, seconds)
        asked = estimator.after_epoch is not None and requests_stop(estimator.after_epoch(record))
        return self.is_over(program) or asked

    def learn(self, program: FitProgram, start: dict[str, float]) -> float | None:
        """Learn from every row once; return the last rate, or None where early stopping meets a diverged loss."""
        total = count = 0.0
        rates = self.rates()
        for arrays, order in dense_chunks(self.arrays, self.order, self.batch_size):
            steps = -(-len(order) // self.batch_size)
            epoch = Epoch(arrays, order, self.batch_size, rates[:steps], self.state.step + 1, self.state.seed)
            rates, rate = rates[steps:], float(rates[steps - 1])
            try:
                part = program.bound.epoch(epoch)
            except NonFiniteLossError as error:
                if not self.score:
                    raise self.explained(program, start, epoch, error.batch) from None
                self.estimator.validation_scores_.append(float("nan"))
                message = (
                    f"the loss of iteration {self.estimator.n_iter_ + 1} is not finite: the weights of the best "
                    "validation score are restored; a smaller learning_rate_init, or features of a common size, "
                    "would let it go on"
                )
                notify(message, ConvergenceWarning)
                return None
            total, count, self.state.step = total + part[0], count + part[1], self.state.step + steps
        self.estimator.loss_ = total / max(count, MIN_COUNT)
        return rate

    def rates(self) -> Array:
        """Return the learning rate of each step of this epoch."""
        steps, epochs = -(-len(self.order) // self.batch_size), self.estimator.max_iter
        if isinstance(self.schedule, str):
            return np.full(steps, self.state.rate)
        rates = self.schedule.rates(float(self.estimator.learning_rate_init), epochs, steps)
        first = min(self.state.epoch, epochs - 1) * steps
        return rates[first : first + steps]

    def compare(self, program: FitProgram) -> None:
        """Count the epochs without an improvement by ``tol``, and copy the weights of the best validation score."""
        estimator = self.estimator
        if self.score:
            program.store(self.network)
            score = self.score()
            estimator.validation_scores_.append(score)
            self.report(f"Validation score: {score:f}")
            worse = score < estimator.best_validation_score_ + self.tol
            if score > estimator.best_validation_score_:
                estimator.best_validation_score_ = score
                self.best = {name: array.copy() for name, array in self.network.arrays.items()}
        else:
            worse = estimator.loss_ > estimator.best_loss_ - self.tol
            estimator.best_loss_ = min(estimator.best_loss_, estimator.loss_)
        self.state.waited = self.state.waited + 1 if worse else 0

    def is_over(self, program: FitProgram) -> bool:
        """Return whether nothing has improved for too long; an adaptive rate is made smaller first."""
        patience = self.estimator.n_iter_no_change
        if self.state.waited <= patience:
            return False
        what = "Validation score" if self.score else "Training loss"
        message = f"{what} did not improve more than tol={self.tol:f} for {patience} consecutive epochs."
        if self.schedule != "adaptive":
            self.report(f"{message} Stopping.")
            return True
        if self.state.rate <= MIN_ADAPTIVE_RATE:
            self.report(f"{message} Learning rate too small. Stopping.")
            return True
        self.change_rate(self.state.rate / 5, program)
        self.state.waited = 0
        self.report(f"{message} Setting learning rate to {self.state.rate:f}")
        return False

    def change_rate(self, rate: float, program: FitProgram) -> None:
        """Change the learning rate, and the momentum with it: scikit-learn's has the rate inside, ours outside."""
        for name in program.program.slots:
            program.arrays[name] *= self.state.rate / rate
        self.state.rate = rate

    def explained(
        self, program: FitProgram, start: dict[str, float], epoch: Epoch, batch: int
    ) -> EstimatorError:
        """Name the line of the program that was first not finite, from the batch that met it."""
        rows = epoch.order[batch * epoch.batch_size : (batch + 1) * epoch.batch_size]
        rates, step = epoch.learning_rates[batch : batch + 1], epoch.first_step + batch
        alone = replace(epoch, order=rows, learning_rates=rates, first_step=step)
        error = explain_nonfinite(program.program, program.arrays, start, alone, 0)
        fix = error.fix.replace(
            "put Standardise() first", "put sklearn.preprocessing.StandardScaler in front"
        )
        return EstimatorError(
            f"iteration {self.estimator.n_iter_ + 1}: {error.problem}", given=error.given, fix=fix
        )

    def report(self, line: str) -> None:
        """Print a line where verbose asks for it."""
        if self.estimator.verbose:
            print(line)  # noqa: T201 - as scikit-learn does


def minimise(estimator: Any, arrays: dict[str, Any]) -> tuple[int, float]:
    """Minimise the loss over all rows with L-BFGS-B; return the iterations it took and the loss."""
    network: Network = estimator.network_
    inputs = {name: dense(array) for name, array in arrays.items()}
    with fit_program(network, None, weighted="w" in inputs) as program:
        program.load(network.arrays)
        # Weights before biases, as scikit-learn: the same order of sums gives the same rounding.
        order = sorted(network.parameters, key=lambda name: network.parameters[name].ndim < 2)
        parameters = {name: program.arrays[name] for name in order}

        def loss_and_gradient(vector: Array) -> tuple[float, Array]:
            _unpack(vector, parameters)
            outputs = program.bound.run(**inputs, seed=0, step=1)
            loss = outputs["total"] / max(outputs["count"], MIN_COUNT)
            return float(loss), _pack({name: outputs[f"d{name}"] for name in parameters})

        found = scipy.optimize.minimize(
            loss_and_gradient, _pack(parameters), method="L-BFGS-B", jac=True,
            options={"maxfun": estimator.max_fun, "maxiter": estimator.max_iter, "gtol": estimator.tol},
        )  # fmt: skip
        _unpack(found.x, parameters)
        program.store(network)
    if estimator.verbose:
        print(f"Iterations: {found.nit}, loss = {found.fun:.8f}")  # noqa: T201 - verbose asks for it
    return int(_check_optimize_result("lbfgs", found, estimator.max_iter)), float(found.fun)


def _pack(arrays: dict[str, Array]) -> Array:
    return np.concatenate([array.ravel() for array in arrays.values()]).astype(np.float64)


def _unpack(vector: Array, arrays: dict[str, Array]) -> None:
    start = 0
    for array in arrays.values():
        array[...] = vector[start : start + array.size].reshape(array.shape)
        start += array.size

"""The solvers: stochastic descent with scikit-learn's rules of stopping (sgd, adam), and scipy's L-BFGS-B."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.optimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.utils.optimize import _check_optimize_result

from handgrad.arrays import Array
from handgrad.engines import DEFAULT_ENGINE, Epoch, NonFiniteLossError
from handgrad.errors import EstimatorError, TrainingError, notify
from handgrad.layers import Schedule
from handgrad.network import Network
from handgrad.sklearn.networks import FIND, SCHEDULES, FitProgram, build_optimiser, fit_program
from handgrad.training.history import EpochRecord, requests_stop
from handgrad.training.learning_rates import Trial, find_learning_rate
from handgrad.training.metrics import mean_loss
from handgrad.training.nonfinite import explain_nonfinite, largest
from handgrad.training.rows import Subset

REMEDIES = {
    "try a learning rate of ": "try learning_rate_init=",
    ", or clip_norm=1.0": "",
    "put Standardise() first": "put sklearn.preprocessing.StandardScaler in front",
    "put StandardiseTargets() last": "standardise_targets=True",
    "train with engine='reference', or in float64": "give X in float64",
    "train with engine='reference'": "scale X and y, or lower learning_rate_init",
    "train in float64": "give X in float64",
    "find_learning_rate:": "learning_rate='find':",
    "from the initial weights": "from earlier weights",
}
"""What a training's errors advise for networks, and the estimators' parameters for it."""

MIN_ADAPTIVE_RATE = 1e-6
"""Below it an adaptive learning rate falls no further, and the descent ends: scikit-learn's."""


@dataclass
class DescentState:
    """What `partial_fit` resumes from; ``waited`` is the number of epochs in a row without an improvement."""

    rate: float
    seed: int = 0  # of dropout's masks
    step: int = 0
    epoch: int = 0
    waited: int = 0
    slots: dict[str, Array] = field(default_factory=dict)


def descend(estimator: Any, arrays: dict[str, Any], strata: Array | None, *, incremental: bool) -> None:
    """Fit an estimator's network by sgd or adam: an epoch of `partial_fit`, or all of `fit`."""
    _complete_record(estimator)
    order, validation = np.arange(arrays["x"].shape[0]), None
    if estimator.early_stopping:
        order, held_out = train_test_split(
            order, random_state=estimator._random_state, test_size=estimator.validation_fraction, stratify=strata
        )  # fmt: skip
        if len(held_out) < 2:
            raise EstimatorError(
                "The validation set is too small. Increase 'validation_fraction' or the size of your dataset."
            )
        validation = {name: array[held_out] for name, array in arrays.items()}
    if not incremental or estimator._descent_state is None:
        seed = int(estimator._random_state.randint(2**31)) if estimator.dropout else 0
        estimator._descent_state = DescentState(_first_rate(estimator, arrays, order, seed), seed)
    weighted = "w" in arrays
    with fit_program(estimator.network_, build_optimiser(estimator), weighted=weighted) as program:
        Descent(estimator, program, arrays, order, validation, incremental=incremental).run()


def _first_rate(estimator: Any, arrays: dict[str, Any], order: Array, seed: int) -> float:
    """Return the first learning rate: the one given, or the one that a range test finds."""
    if estimator.learning_rate != FIND:
        return float(estimator.learning_rate_init)
    try:
        found = find_learning_rate(
            estimator.network_,
            arrays["x"],
            arrays["t"],
            optimiser=build_optimiser(estimator),
            sample_weight=arrays.get("w"),
            rows=order,
            batch_size=rows_of_batch(estimator, len(order)),
            seed=seed,
        )
    except TrainingError as error:
        error = error.reworded(REMEDIES)
        raise EstimatorError(error.problem, given=error.given, fix=error.fix) from None
    if estimator.verbose:
        print(found)  # noqa: T201 - verbose asks for it
    return found.learning_rate


def rows_of_batch(estimator: Any, rows: int) -> int:
    """Return how many of so many rows a batch has."""
    chosen = estimator.batch_size
    return min(200 if chosen == "auto" else int(chosen), rows)


def _complete_record(estimator: Any) -> None:
    """Add the curves that are missing: all at a first fit, some after another solver or without early stopping."""
    held, early = vars(estimator), bool(estimator.early_stopping)
    best, score = held.get("best_loss_"), held.get("best_validation_score_")
    estimator.loss_curve_ = held.get("loss_curve_", [])
    estimator.best_loss_ = None if early else np.inf if best is None else best
    estimator.validation_scores_ = (held.get("validation_scores_") or []) if early else None
    estimator.best_validation_score_ = None if not early else -np.inf if score is None else score


class Descent:
    """One call of `fit` or `partial_fit`: the rows in ``order`` are learned from, attributes are the estimator's."""

    def __init__(
        self, estimator: Any, program: FitProgram, arrays: dict[str, Any], order: Array,
        validation: dict[str, Any] | None, *, incremental: bool,
    ) -> None:  # fmt: skip
        self.estimator, self.program, self.arrays, self.order = estimator, program, arrays, order
        self.validation, self.incremental = validation, incremental
        self.state: DescentState = estimator._descent_state
        self.network: Network = estimator.network_
        self.tol: float = estimator._tolerance()
        chosen, rows = estimator.batch_size, len(order)
        if chosen != "auto" and chosen > rows:
            clipped = "Got `batch_size` less than 1 or larger than sample size. It is going to be clipped"
            notify(clipped, UserWarning)
        self.batch_size = rows_of_batch(estimator, rows)
        self.schedule: str | Schedule = SCHEDULES.get(estimator.learning_rate) or estimator.learning_rate
        if self.schedule == FIND or (
            estimator.solver == "adam" and self.schedule in ("invscaling", "adaptive")
        ):
            self.schedule = "constant"  # as scikit-learn: the latter two are for sgd
        self.best = self.network_arrays() if validation else {}

    def network_arrays(self) -> dict[str, Array]:
        """Return copies of the network's arrays."""
        return {name: array.copy() for name, array in self.network.arrays.items()}

    def run(self) -> None:
        """Descend, epoch after epoch, until a rule of stopping applies; the network has the weights in the end."""
        program, epochs = self.program, 1 if self.incremental else self.estimator.max_iter
        program.load(self.network.arrays | self.state.slots)
        self.start = largest(program.arrays)
        self.estimator.n_iter_ = 0
        try:
            stopped = any(self.epoch() for _ in range(epochs))
            if not (stopped or self.incremental):
                message = (
                    f"Stochastic Optimizer: Maximum iterations ({epochs}) reached and the optimization hasn't "
                    "converged yet."
                )
                notify(message, ConvergenceWarning)
        except KeyboardInterrupt:
            notify("Training interrupted by user.", UserWarning)
        program.store(self.network)
        self.state.slots = {name: program.arrays[name].copy() for name in program.program.slots}
        for name, array in self.best.items():
            self.network.arrays[name][...] = array

    def epoch(self) -> bool:
        """Run one epoch, and return whether it was the last."""
        started = time.perf_counter()
        estimator, state = self.estimator, self.state
        if estimator.shuffle:
            shuffled = np.arange(len(self.order))
            estimator._random_state.shuffle(shuffled)
            self.order = self.order[shuffled]
        rate = self.learn()
        if rate is None:
            return True
        estimator.n_iter_ += 1
        state.epoch += 1
        estimator.t_ += len(self.order)
        estimator.loss_curve_.append(estimator.loss_)
        self.report(f"Iteration {estimator.n_iter_}, loss = {estimator.loss_:.8f}")
        self.compare()
        if self.schedule == "invscaling":
            self.change_rate(float(estimator.learning_rate_init) / (estimator.t_ + 1) ** estimator.power_t)
        score = estimator.validation_scores_[-1] if self.validation else None
        seconds = time.perf_counter() - started
        record = EpochRecord(estimator.n_iter_, estimator.loss_, None, score, rate, seconds)
        asked = estimator.after_epoch is not None and requests_stop(estimator.after_epoch(record))
        return self.is_over() or asked

    def learn(self) -> float | None:
        """Learn from every row once; return the last rate, or None where early stopping meets a diverged loss."""
        estimator, state, size = self.estimator, self.state, self.batch_size
        rates = self.rates()
        epoch = Epoch(self.arrays, self.order, size, rates, state.step + 1, state.seed)
        try:
            total, count = self.program.bound.epoch(epoch)
        except NonFiniteLossError as error:
            if not self.validation:
                raise self.explained(epoch, error.batch) from None
            estimator.validation_scores_.append(float("nan"))
            message = (
                f"the loss of iteration {estimator.n_iter_ + 1} is not finite: the weights of the best "
                f"validation score are restored; {self.explained(epoch, error.batch).fix}"
            )
            notify(message, ConvergenceWarning)
            return None
        state.step += len(rates)
        estimator.loss_ = mean_loss(total, count)
        return float(rates[-1])

    def rates(self) -> Array:
        """Return the learning rate of each step of this epoch."""
        steps, epochs = -(-len(self.order) // self.batch_size), self.estimator.max_iter
        if isinstance(self.schedule, str):
            return np.full(steps, self.state.rate)
        rates = self.schedule.rates(float(self.estimator.learning_rate_init), epochs, steps)
        first = min(self.state.epoch, epochs - 1) * steps
        return rates[first : first + steps]

    def compare(self) -> None:
        """Count the epochs without an improvement by ``tol``, and copy the weights of the best validation score."""
        estimator = self.estimator
        if self.validation:
            self.program.store(self.network)
            score = self.score(**self.validation)
            estimator.validation_scores_.append(score)
            self.report(f"Validation score: {score:f}")
            worse = score < estimator.best_validation_score_ + self.tol
            if score > estimator.best_validation_score_:
                estimator.best_validation_score_, self.best = score, self.network_arrays()
        else:
            worse = estimator.loss_ > estimator.best_loss_ - self.tol
            estimator.best_loss_ = min(estimator.best_loss_, estimator.loss_)
        self.state.waited = self.state.waited + 1 if worse else 0

    def score(self, x: Any, t: Array, w: Array | None = None) -> float:
        """Return the score of the network on held-out rows."""
        outputs = self.network.predict(x)
        finite = np.isfinite(outputs).all()
        return float(self.estimator._score_of(outputs, t, w)) if finite else float("nan")

    def is_over(self) -> bool:
        """Return whether nothing has improved for too long; an adaptive rate is made smaller first."""
        patience = self.estimator.n_iter_no_change
        if self.state.waited <= patience:
            return False
        what = "Validation score" if self.validation else "Training loss"
        message = f"{what} did not improve more than tol={self.tol:f} for {patience} consecutive epochs."
        if self.schedule != "adaptive":
            self.report(f"{message} Stopping.")
            return True
        if self.state.rate <= MIN_ADAPTIVE_RATE:
            self.report(f"{message} Learning rate too small. Stopping.")
            return True
        self.change_rate(self.state.rate / 5)
        self.state.waited = 0
        self.report(f"{message} Setting learning rate to {self.state.rate:f}")
        return False

    def change_rate(self, rate: float) -> None:
        """Change the learning rate, and the momentum with it: scikit-learn's has the rate inside, ours outside."""
        for name in self.program.program.slots:
            self.program.arrays[name] *= self.state.rate / rate
        self.state.rate = rate

    def explained(self, epoch: Epoch, batch: int) -> EstimatorError:
        """Name the line of the program that was first not finite, from the batch that met it."""
        alone = epoch.part(batch, batch + 1, 0.0, 0.0)
        error = explain_nonfinite(
            self.program.program, self.program.arrays, self.start, alone, 0, self.finite_rate
        ).reworded(REMEDIES)
        return EstimatorError(
            "Solver produced non-finite parameter weights. The input data may contain large values and need to be "
            f"preprocessed: iteration {self.estimator.n_iter_ + 1}: {error.problem}",
            given=error.given,
            fix=error.fix,
        )

    def finite_rate(self, rate: float, steps: int) -> float | None:
        """Return a lower learning rate at which some steps from the network's weights, of an earlier epoch, stay finite."""
        rows, seed = Subset(self.arrays, np.sort(self.order)), self.state.seed
        trial = Trial(self.network, self.program.program, rows, self.batch_size, seed, DEFAULT_ENGINE)
        return trial.largest_finite_rate(rate, steps)

    def report(self, line: str) -> None:
        """Print a line where verbose asks for it."""
        if self.estimator.verbose:
            print(line)  # noqa: T201 - as scikit-learn does


def minimise(estimator: Any, arrays: dict[str, Any]) -> None:
    """Minimise an estimator's loss over all rows with L-BFGS-B; sets its ``n_iter_`` and ``loss_``."""
    network: Network = estimator.network_
    with fit_program(network, None, weighted="w" in arrays) as program:
        program.load(network.arrays)
        # Weights before biases, as scikit-learn: the same order of sums gives the same rounding.
        order = sorted(network.parameters, key=lambda name: network.parameters[name].ndim < 2)
        parameters = [program.arrays[name] for name in order]
        ends = np.cumsum([array.size for array in parameters])

        def pack(arrays: list[Array]) -> Array:
            return np.concatenate([array.ravel() for array in arrays]).astype(np.float64)

        def unpack(vector: Array) -> None:
            for array, part in zip(parameters, np.split(vector, ends), strict=False):
                array[...] = part.reshape(array.shape)

        def loss_and_gradient(vector: Array) -> tuple[float, Array]:
            unpack(vector)
            outputs = program.bound.run(**arrays, seed=0, step=1)
            loss = mean_loss(outputs["total"], outputs["count"])
            return float(loss), pack([outputs[f"d{name}"] for name in order])

        found = scipy.optimize.minimize(
            loss_and_gradient, pack(parameters), method="L-BFGS-B", jac=True,
            options={"maxfun": estimator.max_fun, "maxiter": estimator.max_iter, "gtol": estimator.tol},
        )  # fmt: skip
        unpack(found.x)
        program.store(network)
    if estimator.verbose:
        print(f"Iterations: {found.nit}, loss = {found.fun:.8f}")  # noqa: T201 - verbose asks for it
    estimator.n_iter_ = int(_check_optimize_result("lbfgs", found, estimator.max_iter))
    estimator.loss_ = float(found.fun)
    estimator._descent_state = None  # the weights are no longer those that a descent left

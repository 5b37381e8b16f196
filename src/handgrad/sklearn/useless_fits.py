"""A regression worse than the mean of y: a warning with the parameter that mends it, proved by short fits."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from handgrad.arrays import Array, is_sparse
from handgrad.errors import notify
from handgrad.sklearn.networks import FIND
from handgrad.training.metrics import HEAVY, TAIL, tail_share
from handgrad.training.remedies import Change, KnownRows, Predict, find_remedy

LEAST = 10  # epochs: a fit of fewer is not meant to be good
MOST_ROWS = 2000  # that fits are compared on
SECONDS, LONGER = 3.0, 4  # in which trials begin; times as many epochs
PAUSE = 60.0  # seconds without other trials, as in a search over parameters
MIN_DEVIATION = 1e-300  # of y that never changes
SCALED = 0.5, 2.0  # deviations of columns that need no scaling; of means, half of the first


_tried_at = -np.inf  # when there were trials last in this process, by the monotonic clock


def warn_of_useless_fit(
    estimator: Any, X: Any, y: Array, sample_weight: Array | None, seconds: float
) -> None:
    """Warn where a regressor is worse than the mean on its own training rows, with what mends it.

    A trial takes at most as long as the fit did, in ``seconds``, or three seconds; none begins after three seconds. Within a
    minute of others there are none: a search over parameters would take many times as long.
    """
    global _tried_at
    if estimator.solver == "lbfgs" or estimator.n_iter_ < LEAST:
        return
    few = np.random.default_rng(0).permutation(_usual(y))[:MOST_ROWS]
    rows = KnownRows(X[few], y[few].reshape(len(few), -1))
    fitted = estimator.network_.predict
    if (score := rows.score(fitted)) >= 0:
        return
    if time.monotonic() - _tried_at < PAUSE:
        r2 = f"r2 {score:.4g} on its training rows"
        notify(
            f"This fit is worse than the mean of y: {r2}. What mends it was tried at an earlier fit, whose warning has it.",
            ConvergenceWarning,
        )
        return
    until = time.monotonic() + SECONDS
    made = (
        Change(option, cause, _trial(estimator, parameters, scaled, X, y, sample_weight, seconds))
        for option, cause, parameters, scaled in _changes(estimator, X, y)
        if time.monotonic() < until
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        remedy = find_remedy(fitted, None, made, rows, rows, lambda line: None)
    _tried_at = time.monotonic()
    notify(
        f"This fit is worse than the mean of y: r2 {remedy.before:.4g} on its training rows. {remedy}",
        ConvergenceWarning,
    )


def _usual(y: Array) -> Array:
    """Return the rows to score on: all, or with heavy tails those that are not far out, as nothing could predict these."""
    t = y.reshape(len(y), -1)
    far = (abs(t - np.median(t, axis=0)) / np.maximum(t.std(axis=0), MIN_DEVIATION)).max(axis=1)
    return np.flatnonzero(far <= np.quantile(far, 1 - TAIL)) if tail_share(t) > HEAVY else np.arange(len(t))


def _changes(estimator: Any, X: Any, y: Array) -> Iterator[tuple[str, str, dict[str, Any], bool]]:
    """Yield what a person would change, the cause that it proves, the parameters, and whether X is scaled."""
    if estimator.loss != "poisson" and not estimator.standardise_targets:
        scale = f"mean {np.mean(y):.3g}, deviation {np.std(y):.3g}"
        yield "standardise_targets=True", f"the scale of y ({scale})", {"standardise_targets": True}, False
    if estimator.loss == "squared_error" and tail_share(y.reshape(len(y), -1)) > HEAVY:
        yield "loss='huber'", "a few values of y that are far from all others", {"loss": "huber"}, False
    if not is_sparse(X):
        mean, deviation = np.abs(X.mean(axis=0)), X.std(axis=0)
        if (mean > SCALED[0] / 2).any() or (deviation < SCALED[0]).any() or (deviation > SCALED[1]).any():
            yield "sklearn.preprocessing.StandardScaler in front", "the scale of X", {}, True
    if estimator.learning_rate != FIND:
        rate = f"the learning rate, learning_rate_init={estimator.learning_rate_init:g}"
        yield f"learning_rate={FIND!r}", rate, {"learning_rate": FIND}, False
    if estimator.n_iter_ == estimator.max_iter:
        longer = LONGER * estimator.max_iter
        yield f"max_iter={longer}", "too few iterations", {"max_iter": longer}, False


def _trial(
    estimator: Any, parameters: dict[str, Any], scaled: bool, X: Any, y: Array, w: Array | None, seconds: float
) -> Callable[[], Predict]:  # fmt: skip
    """Return a short fit with some parameters changed, which returns what predicts."""

    def run() -> Predict:
        mean, deviation = (X.mean(axis=0), X.std(axis=0)) if scaled else (0, 1)

        def prepared(x: Any) -> Any:
            return (x - mean) / np.where(deviation > 0, deviation, 1) if scaled else x

        until = time.monotonic() + max(seconds, SECONDS) * (LONGER if "max_iter" in parameters else 1)
        trial = clone(estimator).set_params(**parameters, verbose=False, warm_start=False)
        trial.set_params(after_epoch=lambda record: time.monotonic() > until)
        trial._is_trial = True  # not to be explained itself
        trial.fit(prepared(X), y, w)
        return lambda x: trial.network_.predict(prepared(x))

    return run

"""The regressor."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if

from handgrad.arrays import Array
from handgrad.errors import EstimatorError
from handgrad.layers import HalfSquaredError, Huber, Layer, Loss, Poisson, StandardiseTargets
from handgrad.sklearn.estimator import (
    ACTIVATION,
    HIDDEN_LAYER_SIZES,
    POSITIVE,
    Perceptron,
    completed,
    parameter,
)
from handgrad.training.metrics import r_squared


@completed
@dataclass(eq=False, repr=False)
class MLPRegressor(RegressorMixin, Perceptron):
    """A multi-layer perceptron for values, in place of ``sklearn.neural_network.MLPRegressor``.

    y may have several outputs, whose losses add up. It computes in the type of X, float32 or float64.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> X, y = make_regression(n_features=3, random_state=0)
    >>> regressor = MLPRegressor(learning_rate_init=0.1, max_iter=1000, random_state=0).fit(X, y)
    >>> regressor.score(X, y) > 0.99
    True
    """

    loss: Literal["squared_error", "poisson", "huber"] = parameter(
        "squared_error",
        '"squared_error" (half of it), "poisson" (half the deviance of counts, whose logarithm the network predicts) '
        'or "huber".',
        StrOptions({"squared_error", "poisson", "huber"}),
    )
    hidden_layer_sizes: ArrayLike = HIDDEN_LAYER_SIZES
    activation: str = ACTIVATION
    _: KW_ONLY
    huber_delta: float = parameter(
        1.0, "The size of an error above which the Huber loss grows linearly.", POSITIVE
    )

    standardise_targets: bool = parameter(
        False,
        "Whether to train on y of mean 0 and deviation 1, as within a ``TransformedTargetRegressor``: for values "
        'far from 0, or much larger than 1; with "huber" of median 0 and scaled median absolute deviation 1. `predict` gives '
        "them in the unit of y.",
        "boolean",
    )

    _numeric: ClassVar[bool] = True

    @available_if(lambda estimator: estimator.solver != "lbfgs")
    def partial_fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from these rows once, resuming where the last call ended.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        """
        return self._fit(X, y, sample_weight, incremental=True)

    def predict(self, X: ArrayLike) -> Array:
        """Return the values of each row of X, (n,) or (n, outputs)."""
        outputs = self._outputs(X)
        return outputs.ravel() if self.n_outputs_ == 1 else outputs

    def _check_parameters(self, *, incremental: bool) -> None:
        super()._check_parameters(incremental=incremental)
        if self.loss == "poisson" and self.standardise_targets:
            raise EstimatorError(
                "loss='poisson' is for counts, and standardise_targets=True makes other numbers of them",
                fix="take standardise_targets=False, or another loss",
            )

    def _last_layers(self) -> list[Layer]:
        by: Literal["mean", "median"] = (
            "median" if self.loss == "huber" else "mean"
        )  # outliers are far by that
        return [StandardiseTargets(by)] if self.standardise_targets else []

    def _targets(self, y: Array, *, first: bool, incremental: bool) -> Array:
        if self.loss == "poisson" and (y < 0).any():
            raise EstimatorError(
                f"loss='poisson' is for counts, and y has {y.min()}",
                fix="give y of 0 or more, or another loss",
            )
        t = np.ascontiguousarray(y.reshape(len(y), -1))
        if not first and t.shape[1] != self.n_outputs_:
            raise EstimatorError(
                f"y has {t.shape[1]} outputs, and the network was fitted to {self.n_outputs_}"
            )
        return t

    def _loss(self) -> Loss:
        l2 = float(self.alpha)
        match self.loss:
            case "poisson":
                return Poisson("sum", l2=l2)
            case "huber":
                return Huber(float(self.huber_delta), "sum", l2=l2)
        return HalfSquaredError("mean", l2=l2)

    def _tolerance(self) -> float:
        """Return scikit-learn's, whose squared errors are the mean of the outputs', for a loss that is their sum."""
        summed = self.loss == "squared_error" and not self.early_stopping
        return float(self.tol) * (self.n_outputs_ if summed else 1)

    def _score_of(self, outputs: Array, t: Array, w: Array | None) -> float:
        return r_squared(outputs, t, w)

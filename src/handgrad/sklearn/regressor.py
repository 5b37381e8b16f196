"""The regressor."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import column_or_1d
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from handgrad.layers import HalfSquaredError, Huber, Loss, Poisson, Schedule
from handgrad.sklearn.errors import EstimatorError
from handgrad.sklearn.estimator import Perceptron
from handgrad.training.history import EpochRecord
from handgrad.training.metrics import r_squared

Array = NDArray[Any]


class MLPRegressor(RegressorMixin, Perceptron):
    """A multi-layer perceptron for values, in place of ``sklearn.neural_network.MLPRegressor``.

    y may have several outputs, whose losses add up. It computes in the type of X, float32 or float64.

    Parameters
    ----------
    loss
        "squared_error" (half of it), "poisson" (half the deviance of counts, whose logarithm the network predicts)
        or "huber".
    hidden_layer_sizes
        How many units each hidden layer has.
    activation
        Of the hidden layers: "identity", "logistic", "tanh", "relu"; and handgrad's other elementwise layers, each
        by the name of its rule: "gelu", "leaky_relu", …
    solver
        "adam", "sgd" or "lbfgs".
    alpha
        How much half the sum of squared weights counts beside a batch's rows.
    batch_size
        Rows of a batch; "auto" is min(200, n).
    learning_rate
        "constant"; for sgd also "invscaling" (learning_rate_init / t^power_t) and "adaptive" (a fifth, whenever
        nothing becomes better); for both "cosine", "one_cycle" or a `Schedule` of handgrad's, over ``max_iter``
        epochs.
    learning_rate_init, power_t
        The learning rate at first, and how it falls with "invscaling".
    max_iter
        The most epochs (with lbfgs: iterations) there are.
    shuffle
        Whether each epoch takes the rows in a new order.
    random_state
        Of the weights, the order of rows, the rows held out, and dropout.
    tol, n_iter_no_change
        The descent ends when for so many epochs nothing became better by ``tol``.
    verbose
        Whether to print each epoch's loss.
    warm_start
        Whether `fit` begins with the weights of the last one.
    momentum, nesterovs_momentum
        Of sgd.
    early_stopping, validation_fraction
        Whether to hold out such a share of the rows, to end when the score on them becomes no better, and to keep
        the weights of the best.
    beta_1, beta_2, epsilon
        Of adam.
    max_fun
        The most looks at the loss that lbfgs takes.
    dropout
        The share of hidden units left out at random in each step.
    normalisation
        "batch" or "layer", before each activation.
    huber_delta
        Up to which error the Huber loss is a square.
    after_epoch
        Called with each epoch's record, a `handgrad.training.EpochRecord`; returning True ends the descent.

    Attributes
    ----------
    ``network_``
        The network itself, a `handgrad.Network`: print its program, explain it, save it.
    ``coefs_``, ``intercepts_``
        Its weights and biases, layer by layer; setting them sets the network's.
    ``loss_``, ``loss_curve_``, ``best_loss_``
        The loss of the last epoch, of each, and the least.
    ``validation_scores_``, ``best_validation_score_``
        With early stopping, the score of each epoch on the rows held out, and the best.
    ``n_iter_``, ``t_``
        Epochs of the last fit, and rows seen in all.
    ``n_layers_``, ``n_outputs_``, ``out_activation_``
        Layers with input and output, outputs, and what makes answers of them.
    ``n_features_in_``, ``feature_names_in_``
        Of the rows; names where the rows were a data frame.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> X, y = make_regression(n_features=3, random_state=0)
    >>> regressor = MLPRegressor(learning_rate_init=0.1, max_iter=1000, random_state=0).fit(X, y)
    >>> regressor.score(X, y) > 0.99
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **Perceptron._parameter_constraints,
        "loss": [StrOptions({"squared_error", "poisson", "huber"})],
        "huber_delta": [Interval(Real, 0, None, closed="neither")],
    }
    _numeric = True

    def __init__(
        self,
        loss: Literal["squared_error", "poisson", "huber"] = "squared_error",
        hidden_layer_sizes: ArrayLike = (100,),
        activation: str = "relu",
        *,
        solver: Literal["lbfgs", "sgd", "adam"] = "adam",
        alpha: float = 0.0001,
        batch_size: int | Literal["auto"] = "auto",
        learning_rate: str | Schedule = "constant",
        learning_rate_init: float = 0.001,
        power_t: float = 0.5,
        max_iter: int = 200,
        shuffle: bool = True,
        random_state: int | np.random.RandomState | None = None,
        tol: float = 1e-4,
        verbose: bool = False,
        warm_start: bool = False,
        momentum: float = 0.9,
        nesterovs_momentum: bool = True,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        n_iter_no_change: float = 10,
        max_fun: int = 15000,
        dropout: float = 0.0,
        normalisation: Literal["batch", "layer"] | None = None,
        huber_delta: float = 1.0,
        after_epoch: Callable[[EpochRecord], object] | None = None,
    ) -> None:
        self.loss = loss
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.solver = solver
        self.alpha = alpha
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.learning_rate_init = learning_rate_init
        self.power_t = power_t
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state
        self.tol = tol
        self.verbose = verbose
        self.warm_start = warm_start
        self.momentum = momentum
        self.nesterovs_momentum = nesterovs_momentum
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.n_iter_no_change = n_iter_no_change
        self.max_fun = max_fun
        self.dropout = dropout
        self.normalisation = normalisation
        self.huber_delta = huber_delta
        self.after_epoch = after_epoch

    @available_if(lambda estimator: estimator.solver != "lbfgs")
    def partial_fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> MLPRegressor:
        """Learn from these rows once, and go on from where the last call ended.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        """
        return self._fit(X, y, sample_weight, incremental=True)

    def predict(self, X: ArrayLike) -> Array:
        """Return the values of each row, (n,) or (n, outputs).

        Parameters
        ----------
        X
            Rows of features.
        """
        check_is_fitted(self)
        answers = self._answers(X)
        return answers.ravel() if self.n_outputs_ == 1 else answers

    def _targets(self, y: Array, *, first: bool, incremental: bool) -> Array:
        if y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        if self.loss == "poisson" and (y < 0).any():
            raise EstimatorError(
                f"loss='poisson' is for counts, and y has {y.min()}",
                fix="give y of 0 or more, or another loss",
            )
        t = np.ascontiguousarray(y.reshape(len(y), -1))
        if first:
            self.n_outputs_ = t.shape[1]
        elif t.shape[1] != self.n_outputs_:
            raise EstimatorError(
                f"y has {t.shape[1]} outputs, and the network was fitted to {self.n_outputs_}"
            )
        return t

    def _loss(self, outputs: int) -> tuple[Loss, str]:
        l2 = float(self.alpha)
        match self.loss:
            case "poisson":
                return Poisson("sum", l2=l2), "exp"
            case "huber":
                return Huber(float(self.huber_delta), "sum", l2=l2), "identity"
        return HalfSquaredError("mean", l2=l2), "identity"

    def _tolerance(self) -> float:
        """Return scikit-learn's, whose squared errors are the mean of the outputs', for a loss that is their sum."""
        summed = self.loss == "squared_error" and not self.early_stopping
        return float(self.tol) * (self.n_outputs_ if summed else 1)

    def _score_of(self, answers: Array, t: Array, w: Array | None) -> float:
        return r_squared(answers, t, w)

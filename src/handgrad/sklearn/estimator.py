"""What the two estimators share: parameters, the fit, and its attributes."""

from __future__ import annotations

import inspect
import os
import textwrap
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.neural_network import MLPClassifier as OriginalClassifier
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from handgrad.arguments import judged
from handgrad.arrays import Array
from handgrad.configuration import NORMALISATIONS, hidden_layers
from handgrad.errors import EstimatorError
from handgrad.layers import Layer, Loss, Schedule
from handgrad.network import Network
from handgrad.sklearn.networks import (
    ACTIVATIONS,
    FIND,
    SCHEDULES,
    draw_weights,
    parameter_list,
    parameters_of,
)
from handgrad.sklearn.solvers import descend, minimise
from handgrad.sklearn.useless_fits import warn_of_useless_fit
from handgrad.training.history import EpochRecord

E = TypeVar("E", bound="type[Perceptron]")

POSITIVE = Interval(Real, 0, None, closed="neither")
FRACTION = Interval(Real, 0, 1, closed="left")

OUT_ACTIVATIONS = {"softmax": "softmax", "sigmoid": "logistic", "exponential": "exp", "identity": "identity"}
"""scikit-learn's names of the rules that make predictions of outputs."""

ATTRIBUTES = """\
``network_``
    The network itself, a `handgrad.Network`: print its program, explain it, save it.
``coefs_``, ``intercepts_``
    Its weights and biases, layer by layer; setting them sets the network's.
``loss_``, ``loss_curve_``, ``best_loss_``
    The loss of the last epoch, of each, and the smallest.
``validation_scores_``, ``best_validation_score_``
    With early stopping, the score of each epoch on the held-out rows, and the best.
``n_iter_``, ``t_``
    Epochs of the last fit, and rows seen in all.
``learning_rate_``
    The learning rate of sgd or adam after the last epoch: given, found, or made smaller.
``n_layers_``, ``n_outputs_``, ``out_activation_``
    Layers with input and output, outputs, and the function that makes predictions of them.
``n_features_in_``, ``feature_names_in_``
    Of the rows; names where the rows were a data frame."""


def parameter(default: Any, meaning: str, *constraints: Any) -> Any:
    """Declare a parameter: its meaning, for the docstring, and its constraints where they are not scikit-learn's."""
    return field(default=default, metadata={"meaning": meaning, "constraints": list(constraints)})


def completed(cls: E) -> E:
    """Write what `parameter` declares into a dataclass's docstring, and into the constraints that are checked."""
    parameters = {
        each.name: each.metadata for each in sorted(fields(cls), key=lambda each: each.kw_only is True)
    }
    cls._parameter_constraints = {
        name: data["constraints"] or OriginalClassifier._parameter_constraints[name]
        for name, data in parameters.items()
    }
    entries = "\n".join(
        f"{name}\n{textwrap.fill(data['meaning'], 110, initial_indent='    ', subsequent_indent='    ')}"
        for name, data in parameters.items()
    )
    text = inspect.cleandoc(cls.__doc__ or "")
    cls.__doc__ = text.replace("{parameters}", entries).replace("{attributes}", ATTRIBUTES)
    return cls


HIDDEN_LAYER_SIZES = parameter((100,), "Units of each hidden layer.")
ACTIVATION = parameter(
    "relu",
    'Of the hidden layers: "identity", "logistic", "tanh", "relu"; and handgrad\'s other elementwise layers, each by '
    'the name of its rule: "gelu", "leaky_relu", …',
    StrOptions(set(ACTIVATIONS)),
)
"""These two come by position, in each of the classes; all that follow by name."""


@dataclass(eq=False, repr=False, kw_only=True)
class Perceptron(BaseEstimator, ABC):
    """What `MLPClassifier` and `MLPRegressor` share; see there."""

    solver: Literal["lbfgs", "sgd", "adam"] = parameter("adam", 'The optimiser: "adam", "sgd" or "lbfgs".')
    alpha: float = parameter(
        0.0001, "Strength of the L2 penalty: a factor of half the sum of squared weights."
    )
    batch_size: int | Literal["auto"] = parameter("auto", 'Rows of a batch; "auto" is min(200, n).')
    learning_rate: str | Schedule = parameter(
        "constant",
        '"constant"; for sgd also "invscaling" (learning_rate_init / t^power_t) and "adaptive" (a fifth, whenever '
        'nothing improves); for both "cosine", "one_cycle" or a `Schedule` of handgrad\'s, over ``max_iter`` epochs, and '
        '"find": constant, at a rate that a range test finds (`handgrad.training.find_learning_rate`).',
        StrOptions({"constant", "invscaling", "adaptive", FIND, *SCHEDULES}),
        Schedule,
    )
    learning_rate_init: float = parameter(0.001, "The first learning rate.")
    power_t: float = parameter(0.5, 'The exponent of "invscaling".')
    max_iter: int = parameter(200, "Epochs at most; with lbfgs, iterations.")
    shuffle: bool = parameter(True, "Whether each epoch takes the rows in a new order.")
    random_state: int | np.random.RandomState | None = parameter(
        None, "Seeds the weights, the order of rows, the held-out rows, and dropout."
    )
    tol: float = parameter(
        1e-4, "A fit ends when the loss, or with early stopping the score, improves by less."
    )
    verbose: bool = parameter(False, "Whether to print each epoch's loss.")
    warm_start: bool = parameter(False, "Whether `fit` begins with the weights of the last fit.")
    momentum: float = parameter(0.9, "Of sgd.", FRACTION)
    nesterovs_momentum: bool = parameter(True, "Of sgd.")
    early_stopping: bool = parameter(
        False,
        "Whether to hold rows out, to end when the score on them stops improving, and to restore the best weights.",
    )
    validation_fraction: float = parameter(0.1, "The fraction of rows held out for early stopping.")
    beta_1: float = parameter(0.9, "Of adam.")
    beta_2: float = parameter(0.999, "Of adam.")
    epsilon: float = parameter(1e-8, "Of adam.")
    n_iter_no_change: float = parameter(10, "Epochs without an improvement by ``tol`` that end a fit.")
    max_fun: int = parameter(15000, "Evaluations of the loss by lbfgs, at most.")
    dropout: float = parameter(0.0, "The fraction of hidden units dropped at random in each step.", FRACTION)
    normalisation: Literal["batch", "layer"] | None = parameter(
        None, '"batch" or "layer": normalisation before each activation.',
        StrOptions(set(NORMALISATIONS)), None,
    )  # fmt: skip
    after_epoch: Callable[[EpochRecord], object] | None = parameter(
        None, "Called with each epoch's record, a `handgrad.training.EpochRecord`; returning True ends the fit.",
        callable, None,
    )  # fmt: skip

    _parameter_constraints: ClassVar[dict[str, Any]]
    _numeric: ClassVar[bool]  # whether y holds numbers
    _is_trial: ClassVar[bool] = False  # of what mends another fit

    @abstractmethod
    def _targets(self, y: Array, *, first: bool, incremental: bool) -> Array:
        """Return y as the network's loss takes it, and learn the classes if there are any."""

    @abstractmethod
    def _loss(self) -> Loss: ...

    @abstractmethod
    def _score_of(self, outputs: Array, t: Array, w: Array | None) -> float:
        """Return the score of some outputs, for early stopping."""

    def _last_layers(self) -> list[Layer]:
        """Return what comes after the layer of the outputs."""
        return []

    def _row_weights(self, y: Array, w: Array | None) -> Array | None:
        """Return the weights of rows, with those of their classes."""
        return w

    def _strata(self, y: Array) -> Array | None:
        """Return what held-out rows are stratified by."""
        return None

    def _tolerance(self) -> float:
        return float(self.tol)

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the network.

        Parameters
        ----------
        X
            Rows of features, (n, features): an array, a data frame or a sparse matrix.
        y
            Targets, (n,) or (n, outputs).
        sample_weight
            A weight for each row, (n,).
        """
        return self._fit(X, y, sample_weight, incremental=False)

    fit.__qualname__ = "fit"  # which Python names where y is missing: no one who calls it knows this class

    def _fit(self, X: Any, y: Any, sample_weight: Any, *, incremental: bool) -> Self:
        started = time.perf_counter()
        self._validate_params()
        self._check_parameters(incremental=incremental)
        first = not hasattr(self, "network_") or not (self.warm_start or incremental)
        X, y = validate_data(
            self, X, y, accept_sparse="csr", multi_output=True, y_numeric=self._numeric, order="C",
            dtype=(np.float64, np.float32), reset=first,
        )  # fmt: skip
        column = column_or_1d(y, warn=True) if y.ndim == 2 and y.shape[1] == 1 else y
        arrays = {"x": X, "t": self._targets(column, first=first, incremental=incremental)}
        w = sample_weight
        if w is not None:
            w = _check_sample_weight(w, X, ensure_non_negative=True)
        if (w := self._row_weights(y, w)) is not None:
            arrays["w"] = w
        if not incremental or not hasattr(self, "_random_state"):
            self._random_state = check_random_state(self.random_state)
        if first:
            self._start(X, arrays["t"])
        if self.solver == "lbfgs":
            minimise(self, arrays)
        else:
            descend(self, arrays, self._strata(y), incremental=incremental)
        if not all(np.isfinite(array).all() for array in self.network_.arrays.values()):
            raise EstimatorError(
                "Solver produced non-finite parameter weights. The input data may contain large values and need to "
                "be preprocessed.",
                fix="put sklearn.preprocessing.StandardScaler in front, or take a smaller learning_rate_init",
            )
        if self._numeric and not incremental and not self._is_trial:
            warn_of_useless_fit(self, X, column, sample_weight, time.perf_counter() - started)
        return self

    def _check_parameters(self, *, incremental: bool) -> None:
        """Check what scikit-learn's constraints cannot express."""
        if self.early_stopping and incremental:
            raise EstimatorError(
                "partial_fit does not support early_stopping=True",
                fix="hold rows out yourself, or take early_stopping=False",
            )
        if self.solver == "lbfgs" and (self.dropout or self.normalisation == "batch"):
            wrong = f"dropout={self.dropout}" if self.dropout else "normalisation='batch'"
            raise EstimatorError(
                f"lbfgs needs the same loss at every evaluation, and {wrong} changes it",
                fix="take solver='adam' or 'sgd'",
            )
        for size in self._hidden_sizes():
            if not isinstance(size, Integral) or size <= 0:
                raise EstimatorError(f"hidden_layer_sizes must be > 0, and whole numbers, got {size!r}.")

    def _hidden_sizes(self) -> list[Any]:
        sizes: list[Any] = np.atleast_1d(np.asarray(self.hidden_layer_sizes, object)).tolist()
        return sizes

    def _start(self, X: Any, t: Array) -> None:
        """Build the network, and delete the attributes of an earlier fit."""
        outputs = t.shape[1] if t.ndim == 2 else len(self.classes_)
        units = [X.shape[1], *self._hidden_sizes(), outputs]
        activation, dropout = ACTIVATIONS[self.activation], float(self.dropout)
        layers = hidden_layers(units, "glorot_uniform", activation, self.normalisation, dropout)
        self.network_ = Network(*layers, *self._last_layers(), loss=self._loss(), dtype=X.dtype.name)
        self.network_.standardise(X, t)
        draw_weights(self.network_, self.activation, self._random_state)
        self.n_iter_ = self.t_ = 0
        self._descent_state = None
        for name in ("loss_curve_", "best_loss_", "validation_scores_", "best_validation_score_"):
            self.__dict__.pop(name, None)

    def _outputs(self, X: Any) -> Array:
        """Return the network's outputs for rows of the user's."""
        check_is_fitted(self)
        return self.network_.predict(validate_data(self, X, accept_sparse="csr", reset=False))

    @judged
    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the fitted estimator into a folder, which is a run folder of handgrad's: no pickle.

        The network, the parameters and the fitted attributes are saved, and the state of the descent, so that
        `partial_fit` resumes to the same bits; not a generator given as random_state, and not after_epoch.

        Parameters
        ----------
        path
            The folder; it is made when it is not there.
        overwrite
            Replace the run that is there.

        Raises
        ------
        RunError
            When the folder cannot be written, and without ``overwrite`` when it holds a run, or a file of yours with the
            name of one of a run's.
        """
        from handgrad.sklearn.persistence import save

        check_is_fitted(self)
        save(self, Path(path), overwrite=overwrite)

    @classmethod
    @judged
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Open what `save` wrote; nothing in it is run, and sizes are checked before there is any array.

        Parameters
        ----------
        path
            The folder.

        Raises
        ------
        RunError
            When a file is missing or damaged, or the folder holds another estimator.
        """
        from handgrad.sklearn.persistence import load

        return load(cls, Path(path))

    coefs_ = parameter_list("W", "The weights of each layer, the network's own: a change here is one there.")
    intercepts_ = parameter_list("b", "The biases of each layer; as `coefs_`.")

    @property
    def n_layers_(self) -> int:
        """Layers, with input and output."""
        return len(parameters_of(self.network_, "W")) + 1

    @property
    def learning_rate_(self) -> float:
        """The learning rate of sgd or adam, as it is after the last epoch."""
        state: Any = self._descent_state  # None after lbfgs
        return float(state.rate)

    @property
    def n_outputs_(self) -> int:
        """Outputs of the network."""
        return int(self.network_.output_shape[-1])

    @property
    def out_activation_(self) -> str:
        """scikit-learn's name of the function that makes predictions of outputs."""
        loss = self.network_.loss
        assert loss is not None
        return OUT_ACTIVATIONS[loss.prediction.name]

    def __getattr__(self, name: str) -> Any:
        # What a property reads of the network is missing before a fit: the error names what was asked for.
        missing = f"{type(self).__name__!r} object has no attribute {name!r}"
        raise AttributeError(
            missing + (" before it is fitted" if name.endswith("_") and name[0] != "_" else "")
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "network_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

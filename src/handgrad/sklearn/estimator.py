"""What the two estimators share: parameters, the fit, and what it leaves behind."""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from handgrad.arguments import judged
from handgrad.layers import Loss, Schedule
from handgrad.sklearn.building import ACTIVATIONS, NORMALISATIONS, SCHEDULES, build_network, build_optimiser
from handgrad.sklearn.descent import Descent, Position, Settings
from handgrad.sklearn.errors import EstimatorError
from handgrad.sklearn.minimising import minimise
from handgrad.sklearn.programs import ready
from handgrad.sklearn.rows import Rows, predict
from handgrad.sklearn.weights import Written, biases_of, draw_weights, weights_of, write

Array = NDArray[Any]


class Perceptron(BaseEstimator, ABC):
    """What `MLPClassifier` and `MLPRegressor` share; see there."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "hidden_layer_sizes": ["array-like", Interval(Integral, 1, None, closed="left")],
        "activation": [StrOptions(set(ACTIVATIONS))],
        "solver": [StrOptions({"lbfgs", "sgd", "adam"})],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "batch_size": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "learning_rate": [StrOptions({"constant", "invscaling", "adaptive", *SCHEDULES}), Schedule],
        "learning_rate_init": [Interval(Real, 0, None, closed="neither")],
        "power_t": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
        "random_state": ["random_state"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "verbose": ["verbose"],
        "warm_start": ["boolean"],
        "momentum": [Interval(Real, 0, 1, closed="left")],
        "nesterovs_momentum": ["boolean"],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="left")],
        "beta_1": [Interval(Real, 0, 1, closed="left")],
        "beta_2": [Interval(Real, 0, 1, closed="left")],
        "epsilon": [Interval(Real, 0, None, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left"), Options(Real, {np.inf})],
        "max_fun": [Interval(Integral, 1, None, closed="left")],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "normalisation": [StrOptions(set(NORMALISATIONS)), None],
        "after_epoch": [callable, None],
    }

    _numeric: ClassVar[bool]  # whether y holds numbers
    _position: Position | None  # where the last descent stands

    @abstractmethod
    def _targets(self, y: Array, *, first: bool, incremental: bool) -> Array:
        """Return y as the network's loss takes it, and learn the classes if there are any."""

    @abstractmethod
    def _loss(self, outputs: int) -> tuple[Loss, str]:
        """Return the loss, and scikit-learn's name of what makes answers of outputs."""

    @abstractmethod
    def _score_of(self, answers: Array, t: Array, w: Array | None) -> float:
        """Return the score of some answers, for early stopping."""

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the network.

        Parameters
        ----------
        X
            Rows of features, (n, features): an array, a data frame or a sparse matrix.
        y
            Targets, (n,) or (n, outputs).
        sample_weight
            How much each row counts.
        """
        return self._fit(X, y, sample_weight, incremental=False)

    def _fit(self, X: Any, y: Any, sample_weight: Any, *, incremental: bool) -> Self:
        self._validate_params()
        self._check_parameters(incremental=incremental)
        first = not hasattr(self, "network_") or not (self.warm_start or incremental)
        X, y = self._check_rows(X, y, first=first)
        t = self._targets(y, first=first, incremental=incremental)
        w = sample_weight
        if w is not None:
            w = _check_sample_weight(w, X, ensure_non_negative=True)
        if not incremental or not hasattr(self, "_random_state"):
            self._random_state = check_random_state(self.random_state)
        if first:
            self._start(X, t)
        arrays = {"x": X, "t": t}
        if (w := self._weights(y, w)) is not None:
            arrays["w"] = w
        if self.solver == "lbfgs":
            self.n_iter_, self.loss_ = minimise(
                self.network_,
                arrays,
                tol=self.tol,
                max_iter=self.max_iter,
                max_fun=self.max_fun,
                verbose=self.verbose,
            )
            self._position = None  # a descent stood elsewhere
        else:
            self._descend(arrays, y, incremental=incremental)
        if not all(np.isfinite(array).all() for array in self.network_.arrays.values()):
            raise EstimatorError(
                "Solver produced non-finite parameter weights. The input data may contain large values and need to "
                "be preprocessed.",
                fix="put sklearn.preprocessing.StandardScaler in front, or take a smaller learning_rate_init",
            )
        return self

    def _check_parameters(self, *, incremental: bool) -> None:
        """Check what scikit-learn's constraints cannot say."""
        if self.early_stopping and incremental:
            raise EstimatorError(
                "partial_fit does not support early_stopping=True",
                fix="hold rows out yourself, or take early_stopping=False",
            )
        if self.solver == "lbfgs" and (self.dropout or self.normalisation == "batch"):
            wrong = f"dropout={self.dropout}" if self.dropout else "normalisation='batch'"
            raise EstimatorError(
                f"lbfgs needs the same loss at every look, and {wrong} changes it",
                fix="take solver='adam' or 'sgd'",
            )
        for size in self._hidden_sizes():
            if not isinstance(size, Integral) or size <= 0:
                raise EstimatorError(f"hidden_layer_sizes must be > 0, and whole numbers, got {size!r}.")

    def _hidden_sizes(self) -> list[Any]:
        sizes: list[Any] = np.atleast_1d(np.asarray(self.hidden_layer_sizes, object)).tolist()
        return sizes

    def _check_rows(self, X: Any, y: Any, *, first: bool) -> tuple[Any, Array]:
        X, y = validate_data(
            self, X, y, accept_sparse="csr", multi_output=True, y_numeric=self._numeric, order="C",
            dtype=(np.float64, np.float32), reset=first,
        )  # fmt: skip
        return X, y

    def _weights(self, y: Array, w: Array | None) -> Array | None:
        """Return how much each row counts, all told."""
        return w

    def _start(self, X: Any, t: Array) -> None:
        """Make the network, and forget what an earlier one learned."""
        loss, self.out_activation_ = self._loss(self.n_outputs_)
        units = [X.shape[1], *self._hidden_sizes(), self.n_outputs_]
        self.network_ = build_network(
            units, self.activation, self.normalisation, float(self.dropout), loss, X.dtype.name
        )
        draw_weights(self.network_, self.activation, self._random_state)
        self.n_layers_, self.n_iter_, self.t_ = len(units), 0, 0
        self._position = None
        for name in ("loss_curve_", "best_loss_", "validation_scores_", "best_validation_score_"):
            self.__dict__.pop(name, None)

    def _go_on_recording(self) -> None:
        """Make what is not there: at a first fit all, after one with another solver or without early stopping some."""
        held, early = vars(self), bool(self.early_stopping)
        best, score = held.get("best_loss_"), held.get("best_validation_score_")
        self.loss_curve_: list[float] = held.get("loss_curve_", [])
        self.best_loss_ = None if early else np.inf if best is None else best
        self.validation_scores_: list[float] | None = (
            (held.get("validation_scores_") or []) if early else None
        )
        self.best_validation_score_ = None if not early else -np.inf if score is None else score

    def _descend(self, arrays: dict[str, Any], y: Array, *, incremental: bool) -> None:
        self._go_on_recording()
        rows, held_out = self._divide(arrays, y)
        settings = self._settings(len(rows), incremental=incremental)
        if not incremental or self._position is None:
            seed = int(self._random_state.randint(2**31)) if self.dropout else 0
            self._position = Position(settings.learning_rate_init, seed)
        score = None
        if held_out is not None:
            answers_of = {name: array[held_out] for name, array in arrays.items()}

            def score() -> float:
                answers = predict(self.network_, answers_of["x"])
                if not np.isfinite(answers).all():
                    return float("nan")
                return self._score_of(answers, answers_of["t"], answers_of.get("w"))

        descent = Descent(self, settings, self._position, rows, score, self._random_state)
        with ready(self.network_, build_optimiser(self.get_params()), weighted="w" in arrays) as program:
            descent.run(program)

    def _divide(self, arrays: dict[str, Any], y: Array) -> tuple[Rows, Array | None]:
        """Hold rows out for early stopping, in the shares of their classes."""
        rows = np.arange(arrays["x"].shape[0])
        if not self.early_stopping:
            return Rows(arrays, rows), None
        learned, held_out = train_test_split(
            rows,
            random_state=self._random_state,
            test_size=self.validation_fraction,
            stratify=self._strata(y),
        )
        if len(held_out) < 2:
            raise EstimatorError(
                "The validation set is too small. Increase 'validation_fraction' or the size of your dataset."
            )
        return Rows(arrays, learned), held_out

    def _tolerance(self) -> float:
        """Return by how much the loss or the score must become better."""
        return float(self.tol)

    def _strata(self, y: Array) -> Array | None:
        return None

    def _settings(self, rows: int, *, incremental: bool) -> Settings:
        batch_size = min(200, rows) if self.batch_size == "auto" else int(self.batch_size)
        if batch_size > rows:
            warnings.warn(
                "Got `batch_size` less than 1 or larger than sample size. It is going to be clipped",
                stacklevel=5,
            )
        rate: str | Schedule = SCHEDULES.get(self.learning_rate) or self.learning_rate
        if self.solver == "adam" and self.learning_rate in ("invscaling", "adaptive"):
            rate = "constant"  # as scikit-learn: these two are for sgd
        return Settings(
            min(batch_size, rows), self.shuffle, rate, float(self.learning_rate_init), self.power_t, self.max_iter,
            self._tolerance(), self.n_iter_no_change, bool(self.verbose), incremental, self.after_epoch,
        )  # fmt: skip

    def _answers(self, X: Any) -> Array:
        """Return the network's answers for rows that come from outside."""
        return predict(self.network_, validate_data(self, X, accept_sparse="csr", reset=False))

    @judged
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator into a folder, which is a run folder of handgrad's: no pickle.

        The network, the parameters and what the fit left behind are kept, and where the descent stands, so that
        `partial_fit` goes on to the same bits; not a generator given as random_state, and not after_epoch.

        Parameters
        ----------
        path
            The folder; it is made when it is not there.
        """
        from handgrad.sklearn.saving import save

        check_is_fitted(self)
        save(self, Path(path))

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
        from handgrad.sklearn.saving import load

        return load(cls, Path(path))

    @property
    def coefs_(self) -> list[Array]:
        """The weights of each layer, which are the network's own: what is changed here is changed there."""
        return Written(weights_of(self.network_))

    @coefs_.setter
    def coefs_(self, arrays: list[ArrayLike]) -> None:
        write(self.coefs_, arrays, "coefs_")

    @property
    def intercepts_(self) -> list[Array]:
        """The biases of each layer; as `coefs_`."""
        return Written(biases_of(self.network_))

    @intercepts_.setter
    def intercepts_(self, arrays: list[ArrayLike]) -> None:
        write(self.intercepts_, arrays, "intercepts_")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "network_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

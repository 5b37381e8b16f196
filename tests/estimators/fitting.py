"""Data, and fits that are not meant to converge."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import sklearn.neural_network
from numpy.typing import NDArray
from sklearn.datasets import load_digits, load_iris, make_multilabel_classification, make_regression
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale

import handgrad.sklearn

Array = NDArray[Any]

BOTH = ("MLPClassifier", "MLPRegressor")


def ours(name: str, **parameters: Any) -> Any:
    return getattr(handgrad.sklearn, name)(**parameters)


def theirs(name: str, **parameters: Any) -> Any:
    return getattr(sklearn.neural_network, name)(**parameters)


def fit(estimator: Any, X: Any, y: Any, **more: Any) -> Any:
    """Fit without a word about convergence."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator.fit(X, y, **more)


def digits(classes: int, rows: int = 200) -> tuple[Array, Array]:
    X, y = load_digits(n_class=classes, return_X_y=True)
    return X[:rows] / 16, y[:rows]


def iris() -> tuple[Array, Array]:
    X, y = load_iris(return_X_y=True)
    return X, y


def values(outputs: int = 1, rows: int = 170) -> tuple[Array, Array]:
    X, y = make_regression(rows, 7, n_targets=outputs, noise=5.0, random_state=7)
    return X, scale(y)


def labels() -> tuple[Array, Array]:
    X, y = make_multilabel_classification(n_samples=50, random_state=0)
    return np.asarray(X), np.asarray(y)


def data_for(name: str) -> tuple[Array, Array]:
    return digits(3) if name == "MLPClassifier" else values()

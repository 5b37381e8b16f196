"""The estimators are scikit-learn's: its checks, its parameters, and its numbers."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import SkipTest

import numpy as np
import pytest
import sklearn.neural_network
from sklearn.utils.estimator_checks import estimator_checks_generator

import handgrad.sklearn

from .fitting import BOTH, digits, fit, iris, labels, ours, theirs, values

pytestmark = pytest.mark.peers

VARIANTS = [
    ours("MLPClassifier"),
    ours("MLPRegressor"),
    ours("MLPClassifier", solver="lbfgs", max_iter=50),
    ours("MLPClassifier", normalisation="layer", activation="gelu", label_smoothing=0.1, max_iter=60),
    ours("MLPRegressor", loss="huber", activation="silu", max_iter=60),
]


LEFT_OUT = ("check_array_api_input", "check_classifiers_multilabel_output_format_decision_function")
"""Checks that scikit-learn leaves out itself: of arrays from elsewhere, unless asked; of what a perceptron has not."""


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore:Got `batch_size`")
@pytest.mark.parametrize(
    ("estimator", "check"),
    [pair for estimator in VARIANTS for pair in estimator_checks_generator(estimator, mark=None)],
    ids=lambda value: getattr(getattr(value, "func", None), "__name__", None) or repr(value),
)
def test_check_estimator(estimator: Any, check: Any) -> None:
    """Each check of scikit-learn's passes, without expected failures; those it leaves out itself are left out."""
    try:
        check(estimator)
    except SkipTest:
        assert check.func.__name__ in LEFT_OUT


@pytest.mark.parametrize("name", BOTH)
def test_every_parameter_has_the_same_name_place_and_default(name: str) -> None:
    """So that changing the import line is all; ours that it does not have come behind, by name only."""
    own = inspect.signature(getattr(handgrad.sklearn, name)).parameters
    known = inspect.signature(getattr(sklearn.neural_network, name)).parameters
    assert [(p.name, p.default, p.kind) for p in own.values()][: len(known)] == [
        (p.name, p.default, p.kind) for p in known.values()
    ]
    assert all(p.kind is p.KEYWORD_ONLY for p in list(own.values())[len(known) :])


FITS: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "sgd": ("MLPClassifier", digits(4), {"solver": "sgd", "learning_rate_init": 0.1, "max_iter": 20}),
    "plain sgd": ("MLPClassifier", digits(4), {"solver": "sgd", "momentum": 0, "max_iter": 20}),
    "momentum": ("MLPClassifier", iris(), {"solver": "sgd", "nesterovs_momentum": False, "max_iter": 20}),
    "adaptive": (
        "MLPRegressor",
        values(),
        {
            "solver": "sgd",
            "learning_rate": "adaptive",
            "learning_rate_init": 0.05,
            "tol": 1e-2,
            "max_iter": 40,
        },
    ),
    "invscaling": (
        "MLPRegressor",
        values(),
        {"solver": "sgd", "learning_rate": "invscaling", "max_iter": 25},
    ),
    "adam": ("MLPClassifier", digits(2), {"max_iter": 20, "epsilon": 1e-20}),
    "unshuffled": (
        "MLPClassifier",
        digits(4),
        {"shuffle": False, "batch_size": 31, "max_iter": 9, "epsilon": 1e-20},
    ),
    "labels": (
        "MLPClassifier",
        labels(),
        {"solver": "sgd", "activation": "tanh", "max_iter": 20, "alpha": 0.5},
    ),
    "outputs": (
        "MLPRegressor",
        values(3),
        {"solver": "sgd", "activation": "logistic", "max_iter": 20, "alpha": 0.0},
    ),
    "outputs, until nothing is better": (
        "MLPRegressor",
        values(3),
        {"solver": "sgd", "learning_rate_init": 0.05, "tol": 1e-3, "max_iter": 300, "alpha": 0.0},
    ),
    "held out": ("MLPClassifier", digits(2), {"solver": "sgd", "early_stopping": True, "max_iter": 20}),
    "held out values": ("MLPRegressor", values(), {"solver": "sgd", "early_stopping": True, "max_iter": 20}),
    "lbfgs": ("MLPClassifier", digits(3), {"solver": "lbfgs", "max_iter": 8, "activation": "tanh"}),
    "identity": ("MLPRegressor", values(), {"solver": "lbfgs", "activation": "identity", "max_iter": 8}),
    "poisson": (
        "MLPRegressor",
        (values()[0], np.random.default_rng(0).poisson(3.0, 170)),
        {"loss": "poisson", "solver": "sgd", "max_iter": 20},
    ),
}


@pytest.mark.parametrize("kind", FITS)
def test_a_fit_is_that_of_scikit_learn(kind: str) -> None:
    """From the same random_state: the same weights, losses, scores and iterations, to rounding."""
    name, (X, y), parameters = FITS[kind]
    own = fit(ours(name, random_state=3, **parameters), X, y)
    peer = fit(theirs(name, random_state=3, **parameters), X, y)
    for array, other in zip(own.coefs_ + own.intercepts_, peer.coefs_ + peer.intercepts_, strict=True):
        np.testing.assert_allclose(array, other, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(own.predict(X), peer.predict(X), rtol=1e-6, atol=1e-8)
    for fact in ("n_iter_", "n_layers_", "n_outputs_", "out_activation_", "n_features_in_"):
        assert getattr(own, fact) == getattr(peer, fact), fact
    if parameters["solver" if "solver" in parameters else "max_iter"] != "lbfgs":
        assert own.t_ == peer.t_
        curve = np.array(peer.loss_curve_)
        times = (
            3 if kind.startswith("outputs") else 1
        )  # its gradient is the sum's there, and its loss the mean
        np.testing.assert_allclose(own.loss_curve_, times * curve, rtol=1e-6)
    if parameters.get("early_stopping"):
        np.testing.assert_allclose(own.validation_scores_, peer.validation_scores_, rtol=1e-6)
        assert own.best_validation_score_ == max(own.validation_scores_)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("solver", ["sgd", "adam", "lbfgs"])
def test_sample_weights_are_those_of_scikit_learn(solver: str, weighted: bool) -> None:
    """In one batch, so that both take the same mean."""
    X, y = digits(3, 150)
    w = np.random.default_rng(0).uniform(0, 2, 150) if weighted else None
    parameters = {
        "solver": solver,
        "max_iter": 15,
        "random_state": 0,
        "epsilon": 1e-20,
        "hidden_layer_sizes": 6,
    }
    own = fit(ours("MLPClassifier", **parameters), X, y, sample_weight=w)
    if "sample_weight" not in inspect.signature(sklearn.neural_network.MLPClassifier.fit).parameters:
        return  # scikit-learn before 1.7
    peer = fit(theirs("MLPClassifier", **parameters), X, y, sample_weight=w)
    np.testing.assert_allclose(own.predict_proba(X), peer.predict_proba(X), rtol=1e-5, atol=1e-8)


def test_examples_of_scikit_learn_have_the_same_scores() -> None:
    """The script ends with 1 when one is lower; warnings would be errors."""
    script = Path(__file__).parents[2] / "benchmarks" / "sklearn_examples.py"
    done = subprocess.run(
        [sys.executable, "-W", "error", script], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr

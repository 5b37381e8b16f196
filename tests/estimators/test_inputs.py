"""Estimators among what their users have: data frames, sparse rows, pipelines, searches, threads."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any

import joblib
import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from handgrad.engines.compiled.blas import find_blas
from handgrad.sklearn import networks

from .fitting import BOTH, data_for, fit, iris, labels, ours, values

pytestmark = pytest.mark.peers


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("name", BOTH)
def test_data_frames_keep_the_names_of_their_columns(name: str, library: str) -> None:
    frame = import_module(library).DataFrame
    X, y = data_for(name)
    named = frame({f"feature {k}": column for k, column in enumerate(X.T)})
    estimator = fit(ours(name, max_iter=3, random_state=0, early_stopping=True), named, y)
    plain = fit(ours(name, max_iter=3, random_state=0, early_stopping=True), X, y)
    assert list(estimator.feature_names_in_) == list(named.columns)
    np.testing.assert_array_equal(estimator.predict(named), plain.predict(X))
    others = frame({f"other {k}": column for k, column in enumerate(X.T)})
    with pytest.raises(ValueError, match="feature names should match"):
        estimator.predict(others)


@pytest.mark.parametrize("name", BOTH)
def test_missing_targets_name_no_class_of_ours(name: str) -> None:
    with pytest.raises(TypeError, match=r"^fit\(\) missing 1 required positional argument: 'y'$"):
        ours(name).fit(np.ones((4, 2)))


@pytest.mark.parametrize("form", ["csr_matrix", "csr_array", "csc_matrix", "coo_array"])
@pytest.mark.parametrize("solver", ["adam", "lbfgs"])
@pytest.mark.parametrize("name", BOTH)
def test_sparse_rows_are_the_same_rows(name: str, solver: str, form: str) -> None:
    """Never made dense; the numbers are those of dense rows, but for the order of the sums."""
    X, y = data_for(name)
    X = np.where(np.median(X, axis=0) < X, X, 0)
    sparse = getattr(scipy.sparse, form)(X)
    parameters = {"solver": solver, "batch_size": 24, "max_iter": 5, "random_state": 0}
    early = {"early_stopping": True} if solver == "adam" else {}
    dense = fit(ours(name, **parameters, **early), X, y)
    own = fit(ours(name, **parameters, **early), sparse, y)
    for array, other in zip(own.coefs_, dense.coefs_, strict=True):
        np.testing.assert_allclose(array, other, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(own.predict(sparse), dense.predict(X), rtol=1e-9)
    if solver == "adam":
        np.testing.assert_allclose(own.validation_scores_, dense.validation_scores_, rtol=1e-9)
        own, dense = ours(name, **parameters), ours(name, **parameters)
        own.partial_fit(sparse, y, **classes_of(name, y)), dense.partial_fit(X, y, **classes_of(name, y))
        np.testing.assert_allclose(own.coefs_[0], dense.coefs_[0], rtol=1e-9, atol=1e-12)


def classes_of(name: str, y: Any) -> dict[str, Any]:
    return {"classes": np.unique(y)} if name == "MLPClassifier" else {}


def test_sparse_labels() -> None:
    X, y = labels()
    classifier = fit(ours("MLPClassifier", max_iter=5, random_state=0), X, y)
    own = fit(ours("MLPClassifier", max_iter=5, random_state=0), X, scipy.sparse.csr_matrix(y))
    np.testing.assert_array_equal(own.predict(X), classifier.predict(X))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_pipelines_searches_and_clones() -> None:
    X, y = iris()
    line = make_pipeline(
        StandardScaler(), ours("MLPClassifier", max_iter=60, random_state=0, learning_rate_init=0.01)
    )
    line.set_output(transform="pandas")
    search = GridSearchCV(
        line, {"mlpclassifier__alpha": [1e-4, 1e2], "mlpclassifier__activation": ["relu", "gelu"]}
    )
    search.fit(X, y)
    assert search.best_params_["mlpclassifier__alpha"] == 1e-4
    assert search.best_score_ > 0.9
    copy = clone(search.best_estimator_)
    assert not hasattr(copy[-1], "network_")
    np.testing.assert_array_equal(copy.fit(X, y).predict(X), search.predict(X))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_halving_search_gives_more_epochs_to_what_is_better() -> None:
    """Its resource is max_iter, and two trainings run at a time."""
    X, y = iris()
    estimator = ours(
        "MLPClassifier", hidden_layer_sizes=(8,), batch_size=16, random_state=0, learning_rate_init=0.01
    )
    search = HalvingGridSearchCV(
        estimator, {"alpha": [1e-4, 1e2, 1e3]}, resource="max_iter", min_resources=20, max_resources=60,
        cv=2, random_state=0, n_jobs=2,
    )  # fmt: skip
    with joblib.parallel_config("threading"):
        search.fit(X, y)
    assert search.n_resources_ == [20, 60]
    assert search.n_candidates_ == [3, 1]
    assert search.best_params_["alpha"] == 1e-4


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_jobs_at_the_same_time_change_no_number(backend: str) -> None:
    X, y = iris()
    estimator = ours("MLPClassifier", max_iter=20, random_state=0)
    alone = cross_val_score(estimator, X, y, cv=4)
    with joblib.parallel_backend(backend):
        together = cross_val_score(estimator, X, y, cv=4, n_jobs=2)
    np.testing.assert_array_equal(alone, together)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_threads_that_fit_the_same_shape_do_not_share_weights() -> None:
    X, y = values()

    def weights(seed: int) -> Any:
        return ours("MLPRegressor", hidden_layer_sizes=11, max_iter=30, random_state=seed).fit(X, y).coefs_[0]

    alone = [weights(seed) for seed in range(6)]
    with ThreadPoolExecutor(3) as pool:
        for array, other in zip(alone, pool.map(weights, range(6)), strict=True):
            np.testing.assert_array_equal(array, other)


def test_limits_of_threads_are_kept() -> None:
    """What threadpoolctl allows BLAS is what a fit may use, and nothing more is left behind."""
    from threadpoolctl import threadpool_limits

    blas, X, y = find_blas(), *values()
    assert blas is not None
    with threadpool_limits(1, user_api="blas"):
        allowed = blas.allowed_threads
        fit(ours("MLPRegressor", max_iter=2), X, y)
        assert blas.allowed_threads == allowed == 1


def test_programs_are_made_once_and_only_a_few_are_kept() -> None:
    X, y = values()
    for width in range(1, networks.MAX_CACHED + 4):
        fit(ours("MLPRegressor", hidden_layer_sizes=width, max_iter=1), X, y)
    assert len(networks._cache) == networks.MAX_CACHED
    newest = list(networks._cache.values())[-1]
    fit(ours("MLPRegressor", hidden_layer_sizes=width, max_iter=1, learning_rate_init=0.5), X, y)
    assert list(networks._cache.values())[-1] is newest


@pytest.mark.parametrize("name", BOTH)
def test_joblib_keeps_an_estimator(name: str) -> None:
    X, y = data_for(name)
    estimator = fit(ours(name, max_iter=3, random_state=0), X, y)
    file = io.BytesIO()
    joblib.dump(estimator, file)
    file.seek(0)
    opened = joblib.load(file)
    np.testing.assert_array_equal(opened.predict(X), estimator.predict(X))
    np.testing.assert_array_equal(opened.partial_fit(X, y).coefs_[0], estimator.partial_fit(X, y).coefs_[0])


@pytest.mark.parametrize("name", BOTH)
def test_rows_that_may_not_be_written_are_read(name: str) -> None:
    X, y = data_for(name)
    expected = fit(ours(name, max_iter=2, random_state=0), X.copy(), y).predict(X)
    X.flags.writeable = False
    found = fit(ours(name, max_iter=2, random_state=0), np.asfortranarray(X), y).predict(X)
    np.testing.assert_array_equal(found, expected)


def test_a_refused_fit_leaves_the_estimator_as_it_is() -> None:
    X, y = iris()
    classifier = fit(ours("MLPClassifier", max_iter=3, random_state=0), X, y)
    before = classifier.predict(X)
    with pytest.raises(ValueError, match="Multioutput"):
        classifier.fit(X, np.column_stack([y, y]))
    np.testing.assert_array_equal(classifier.predict(X), before)


@pytest.mark.parametrize("name", ["n_outputs_", "n_layers_", "out_activation_", "coefs_"])
def test_what_a_fit_sets_is_missing_before_by_its_own_name(name: str) -> None:
    with pytest.raises(AttributeError, match=f"has no attribute '{name}' before it is fitted"):
        getattr(ours("MLPClassifier"), name)

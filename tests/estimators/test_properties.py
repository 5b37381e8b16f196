"""What scikit-learn's own tests of its perceptrons ask for, by its meaning."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import roc_auc_score

from .fitting import BOTH, data_for, digits, fit, iris, labels, ours, values

pytestmark = pytest.mark.peers

ACTIVATIONS = ("identity", "logistic", "tanh", "relu", "leaky_relu", "elu", "gelu", "silu", "softplus")


def test_a_larger_alpha_makes_smaller_weights() -> None:
    X, y = digits(2, 100)
    sums = [
        [np.abs(W).sum() for W in fit(ours("MLPClassifier", alpha=a, random_state=1), X, y).coefs_]
        for a in (0, 1)
    ]
    assert np.all(np.array(sums[0]) > sums[1])


def test_one_step_is_that_worked_out_by_hand() -> None:
    """scikit-learn's example: logistic units, one row, one step of sgd with alpha 0.1."""
    X, y = np.array([[0.6, 0.8, 0.7]]), np.array([0])
    classifier = ours(
        "MLPClassifier", hidden_layer_sizes=2, activation="logistic", solver="sgd", alpha=0.1, momentum=0,
        learning_rate_init=1e-30,
    )  # fmt: skip
    classifier.partial_fit(X, y, classes=[0, 1])
    classifier.coefs_ = [np.array([[0.1, 0.2], [0.3, 0.1], [0.5, 0]]), np.array([[0.1], [0.2]])]
    classifier.intercepts_ = [np.array([0.1, 0.1]), np.array([1.0])]
    classifier.set_params(learning_rate_init=0.1)
    classifier._descent_state.rate = 0.1
    classifier.partial_fit(X, y)
    expected = [[0.098, 0.195756], [0.2956664, 0.096008], [0.4939998, -0.002244]]
    np.testing.assert_allclose(classifier.coefs_[0], expected, atol=5e-4)
    np.testing.assert_allclose(classifier.coefs_[1], [[0.04706], [0.154089]], atol=5e-4)
    np.testing.assert_allclose(classifier.intercepts_[0], [0.098333, 0.09626], atol=5e-4)
    np.testing.assert_allclose(classifier.intercepts_[1], [0.9235], atol=5e-4)
    assert classifier.predict_proba(X)[0, 1] == pytest.approx(0.739, abs=1e-3)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("classes", [2, 3])
def test_lbfgs_finds_classes(classes: int, activation: str) -> None:
    X, y = digits(classes)
    classifier = ours(
        "MLPClassifier",
        solver="lbfgs",
        hidden_layer_sizes=50,
        max_iter=150,
        random_state=1,
        activation=activation,
    )
    assert fit(classifier, X[:150], y[:150]).score(X[:150], y[:150]) > 0.95
    assert classifier.predict(X[150:]).dtype == y.dtype


@pytest.mark.parametrize("name", BOTH)
def test_max_fun_limits_lbfgs(name: str) -> None:
    X, y = data_for(name)
    with pytest.warns(ConvergenceWarning):
        estimator = ours(name, solver="lbfgs", max_fun=10, tol=0.0, random_state=1).fit(X, y)
    assert estimator.n_iter_ <= 10


def test_several_labels_are_learned_by_fit_and_by_partial_fit() -> None:
    X, y = labels()
    assert (
        fit(ours("MLPClassifier", solver="lbfgs", alpha=1e-5, max_iter=150, random_state=0), X, y).score(X, y)
        > 0.97
    )
    classifier = ours("MLPClassifier", solver="sgd", alpha=1e-5, activation="logistic", learning_rate_init=0.2,
                      hidden_layer_sizes=50, random_state=0)  # fmt: skip
    for _ in range(100):
        classifier.partial_fit(X, y, classes=[0, 1, 2, 3, 4])
    assert classifier.score(X, y) > 0.9
    assert not np.allclose(classifier.predict_proba(X).sum(axis=1), 1)  # labels do not share
    fit(ours("MLPClassifier", early_stopping=True, max_iter=5), X, y)


def test_several_outputs_are_learned() -> None:
    X, y = values(5)
    regressor = fit(ours("MLPRegressor", solver="lbfgs", hidden_layer_sizes=50, random_state=1), X, y)
    assert regressor.score(X, y) > 0.9


@pytest.mark.parametrize("outputs", [1, 4])
@pytest.mark.parametrize("loss", ["squared_error", "huber", "poisson"])
def test_the_gradient_is_the_slope_of_the_loss(loss: str, outputs: int) -> None:
    """For several outputs too, and with the penalty: what is reported is what is descended."""
    X, y = values(outputs, 31)
    regressor = fit(
        ours("MLPRegressor", loss=loss, alpha=0.7, max_iter=1, hidden_layer_sizes=3), X, np.abs(y)
    )
    network, t = regressor.network_, np.abs(y).reshape(31, outputs)
    gradient = network.gradients(X, t)["W2"]
    run = network.loss_program()
    from handgrad.engines import ReferenceEngine

    def value() -> float:
        found = ReferenceEngine().bind(run, network.arrays).run(x=X, t=t)
        return float(found["total"] / found["count"])

    W, slopes = network.parameters["W2"], np.empty_like(gradient)
    for place in np.ndindex(W.shape):
        kept, sides = W[place], []
        for step in (1e-6, -1e-6):
            W[place] = kept + step
            sides.append(value())
        W[place], slopes[place] = kept, (sides[0] - sides[1]) / 2e-6
    np.testing.assert_allclose(gradient, slopes, rtol=1e-6, atol=1e-8)


def test_partial_fit_refuses_other_classes() -> None:
    classifier = ours("MLPClassifier", solver="sgd").partial_fit([[3, 2]], [0], classes=[0, 1])
    with pytest.raises(ValueError, match="classes"):
        classifier.partial_fit([[3, 2]], [0], classes=[1, 2])
    with pytest.raises(ValueError, match="has classes not in"):
        classifier.partial_fit([[3, 2]], [7])
    with pytest.raises(ValueError, match="has classes not in"):
        ours("MLPClassifier").partial_fit([[3, 2], [1, 6]], [1, 0], classes=[2])
    assert not hasattr(ours("MLPClassifier", solver="lbfgs"), "partial_fit")


@pytest.mark.parametrize("momentum", [0, 0.9])
@pytest.mark.parametrize("name", BOTH)
def test_partial_fits_are_one_fit(name: str, momentum: float) -> None:
    """Bit for bit: momentum and steps go on from call to call."""
    X, y = data_for(name)
    parameters = {
        "solver": "sgd",
        "random_state": 1,
        "learning_rate_init": 0.01,
        "momentum": momentum,
        "batch_size": 64,
        "shuffle": False,
    }
    whole = fit(ours(name, max_iter=12, **parameters), X, y)
    parts = ours(name, **parameters)
    for _ in range(12):
        parts.partial_fit(X, y, **({"classes": np.unique(y)} if name == "MLPClassifier" else {}))
    for array, other in zip(whole.coefs_, parts.coefs_, strict=True):
        np.testing.assert_array_equal(array, other)
    assert whole.loss_curve_ == parts.loss_curve_


def test_partial_fit_knows_classes_it_has_not_seen() -> None:
    classifier = ours("MLPClassifier", random_state=0)
    classifier.partial_fit([[1], [2], [3]], ["a", "b", "c"], classes=["a", "b", "c", "d"])
    classifier.partial_fit([[4]], ["d"])
    assert classifier.predict_proba([[1.0]]).shape == (1, 4)


@pytest.mark.parametrize("name", BOTH)
def test_partial_fit_has_nothing_to_hold_out(name: str) -> None:
    X, y = data_for(name)
    estimator = fit(ours(name, early_stopping=True, max_iter=3), X, y)
    with pytest.raises(ValueError, match="partial_fit does not support early_stopping=True"):
        estimator.partial_fit(X, y)


def test_weights_that_are_not_finite_are_an_error_that_says_where() -> None:
    X = np.finfo(np.float64).max * np.random.default_rng(0).uniform(size=(10, 2))
    with pytest.raises(ValueError, match=r"(?s)iteration 1: .*gave infinity.*divide it by a power of 10"):
        ours("MLPRegressor").fit(X, np.arange(10.0))


def test_a_loss_that_diverges_keeps_the_best_weights_of_early_stopping() -> None:
    X, y = iris()
    regressor = ours(
        "MLPRegressor", activation="identity", solver="sgd", learning_rate_init=1, max_iter=20, early_stopping=True,
        random_state=0,
    )  # fmt: skip
    with pytest.warns(ConvergenceWarning, match="not finite"):
        regressor.fit(X, y)
    assert str(regressor.validation_scores_[-1]) == "nan"
    assert np.isfinite(regressor.predict(X)).all()


@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_and_their_logarithms(classes: int) -> None:
    X, y = digits(classes, 50)
    classifier = fit(ours("MLPClassifier", hidden_layer_sizes=5, random_state=1), X, y)
    shares = classifier.predict_proba(X)
    assert shares.shape == (50, classes)
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(classifier.classes_[shares.argmax(axis=1)], classifier.predict(X))
    np.testing.assert_allclose(classifier.predict_log_proba(X), np.log(shares))
    if classes == 2:
        assert roc_auc_score(y, shares[:, 1]) == 1.0


def test_shuffling_matters_and_is_repeated() -> None:
    X, y = values()
    fits = [
        fit(
            ours("MLPRegressor", hidden_layer_sizes=1, max_iter=1, batch_size=1, random_state=0, shuffle=s),
            X,
            y,
        )
        for s in (True, True, False, False)
    ]
    first, again, plain, plain_again = (estimator.coefs_[0].tobytes() for estimator in fits)
    assert first == again != plain == plain_again


def test_the_tolerance_ends_a_fit() -> None:
    X, y = [[3, 2], [1, 6]], [1, 0]
    classifier = ours("MLPClassifier", tol=0.5, max_iter=3000, solver="sgd").fit(X, y)
    assert classifier.n_iter_ < 3000
    adaptive = ours("MLPClassifier", tol=0.5, max_iter=3000, solver="sgd", learning_rate="adaptive").fit(X, y)
    assert adaptive.n_iter_ > classifier.n_iter_
    assert adaptive._descent_state.rate < 1e-6


@pytest.mark.parametrize("patience", [2, 5, 50])
def test_so_many_iterations_without_change_end_a_fit(patience: int) -> None:
    X, y = digits(2, 100)
    classifier = ours("MLPClassifier", tol=0.01, max_iter=3000, solver="sgd", n_iter_no_change=patience).fit(
        X, y
    )
    assert classifier._descent_state.waited == patience + 1


def test_without_end_all_iterations_are_done() -> None:
    X, y = digits(2, 100)
    endless = fit(ours("MLPClassifier", tol=1e9, max_iter=70, n_iter_no_change=np.inf), X, y)
    assert endless.n_iter_ == 70


def test_verbose_prints_each_iteration(capsys: pytest.CaptureFixture[str]) -> None:
    fit(
        ours("MLPClassifier", solver="sgd", max_iter=2, verbose=10, hidden_layer_sizes=2),
        [[3, 2], [1, 6]],
        [1, 0],
    )
    assert capsys.readouterr().out.startswith("Iteration 1, loss = ")


@pytest.mark.parametrize("name", BOTH)
def test_early_stopping_keeps_the_scores_and_the_best_weights(name: str) -> None:
    X, y = digits(2, 100)
    estimator = ours(name, tol=0.2, max_iter=3000, solver="sgd", early_stopping=True, random_state=2).fit(
        X, y
    )
    assert estimator.n_iter_ == len(estimator.validation_scores_) < 3000
    assert estimator.best_loss_ is None
    assert estimator.best_validation_score_ == max(estimator.validation_scores_)
    plain = ours(name, tol=0.2, max_iter=3000, solver="sgd", random_state=2).fit(X, y)
    assert plain.validation_scores_ is plain.best_validation_score_ is None
    assert plain.best_loss_ == min(plain.loss_curve_)


def test_texts_are_classes_with_early_stopping() -> None:
    X, y = digits(3)
    named = np.array(["nought", "one", "two"], object)[y]
    classifier = fit(ours("MLPClassifier", early_stopping=True, max_iter=5, random_state=0), X, named)
    assert set(classifier.predict(X)) <= set(named)
    assert np.isfinite(classifier.validation_scores_).all()


def test_rows_held_out_have_the_shares_of_two_classes() -> None:
    with pytest.raises(ValueError, match="least populated"):
        ours("MLPClassifier", early_stopping=True).fit([[1, 2], [2, 3], [3, 4], [4, 5]], [0, 0, 0, 1])
    with pytest.raises(ValueError, match="The validation set is too small"):
        ours("MLPRegressor", early_stopping=True).fit([[1, 2], [2, 3]], [0.5, 1])


def test_a_warm_start_needs_the_same_classes() -> None:
    X, y = iris()
    classifier = fit(ours("MLPClassifier", hidden_layer_sizes=2, max_iter=3, warm_start=True), X, y)
    fit(classifier, X, y)
    with pytest.raises(ValueError, match=r"same classes as in the previous call to fit.*\[0 1 2\].*\[0 1\]"):
        fit(classifier, X, np.minimum(y, 1))


@pytest.mark.parametrize("solver", ["sgd", "adam", "lbfgs"])
@pytest.mark.parametrize("name", BOTH)
def test_a_warm_start_does_all_its_iterations(name: str, solver: str) -> None:
    X, y = iris()
    estimator = ours(
        name, solver=solver, warm_start=True, max_iter=10, n_iter_no_change=np.inf, random_state=0
    )
    for most in (10, 20):
        estimator.set_params(max_iter=most)
        with pytest.warns(ConvergenceWarning):
            estimator.fit(X, y)
        assert estimator.n_iter_ == most


@pytest.mark.parametrize("name", BOTH)
def test_types_are_those_of_the_rows(name: str) -> None:
    """float32 rows make a float32 network, whose answers are close to those of float64."""
    X, y = digits(2, 300)
    fits: dict[str, Any] = {}
    for dtype in ("float32", "float64"):
        parameters = {"hidden_layer_sizes": (5, 3), "random_state": 1, "max_iter": 50, "tol": 1e-1}
        fits[dtype] = fit(ours(name, **parameters), X.astype(dtype), y)
        assert {array.dtype.name for array in fits[dtype].coefs_ + fits[dtype].intercepts_} == {dtype}
    if name == "MLPRegressor":
        assert fits["float32"].predict(X.astype("float32")).dtype == np.float32
    np.testing.assert_allclose(fits["float32"].predict(X), fits["float64"].predict(X), rtol=1e-2, atol=1e-3)


def test_what_was_pickled_goes_on_learning() -> None:
    regressor = fit(
        ours("MLPRegressor", hidden_layer_sizes=42, random_state=42, learning_rate_init=0.01), [[2]], [4]
    )
    opened = pickle.loads(pickle.dumps(regressor))
    for _ in range(200):
        opened.partial_fit([[2]], [1])
    np.testing.assert_allclose(opened.predict([[2]]), 1, rtol=1e-3)


def test_weights_of_1_are_no_weights_with_early_stopping() -> None:
    X, y = values()
    parameters = {
        "hidden_layer_sizes": 10,
        "early_stopping": True,
        "tol": 1e-2,
        "batch_size": 10,
        "random_state": 42,
    }
    weighted = fit(ours("MLPRegressor", **parameters), X, y, sample_weight=np.ones(len(y)))
    np.testing.assert_allclose(weighted.predict(X), fit(ours("MLPRegressor", **parameters), X, y).predict(X))


@pytest.mark.parametrize("seed", [0, 1])
def test_a_poisson_network_without_depth_is_the_linear_model(seed: int) -> None:
    X = np.linspace(0, 1, 100).reshape(-1, 1)
    y = np.random.default_rng(seed).poisson(np.exp(X[:, 0] + 1))
    linear = PoissonRegressor(alpha=0, tol=1e-7).fit(X, y)
    regressor = ours("MLPRegressor", loss="poisson", hidden_layer_sizes=1, activation="identity", alpha=0,
                     solver="lbfgs", tol=1e-7, random_state=seed + 1)  # fmt: skip
    np.testing.assert_allclose(regressor.fit(X, y).predict(X), linear.predict(X), rtol=1e-4)


def test_ctrl_c_keeps_what_there_is() -> None:
    X, y = digits(3)

    def stop(record: Any) -> None:
        if record.epoch == 3:
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="interrupted"):
        classifier = ours("MLPClassifier", after_epoch=stop).fit(X, y)
    assert classifier.n_iter_ == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert classifier.score(X, y) > 0

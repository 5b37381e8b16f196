"""What scikit-learn's perceptrons do not have."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.metrics import balanced_accuracy_score

import handgrad
from handgrad.errors import EstimatorError
from handgrad.layers import BatchNorm, Dropout, LayerNorm, StepDecay

from .fitting import BOTH, data_for, digits, fit, ours, values

pytestmark = pytest.mark.peers


@pytest.mark.parametrize("activation", ["leaky_relu", "elu", "gelu", "silu", "softplus"])
@pytest.mark.parametrize("name", BOTH)
def test_other_activations_learn(name: str, activation: str) -> None:
    X, y = data_for(name)
    estimator = fit(ours(name, activation=activation, random_state=0, learning_rate_init=0.01), X, y)
    assert estimator.score(X, y) > 0.95


@pytest.mark.parametrize("normalisation", ["batch", "layer"])
@pytest.mark.parametrize("name", BOTH)
def test_normalised_and_thinned_networks_learn(name: str, normalisation: str) -> None:
    X, y = data_for(name)
    estimator = ours(name, normalisation=normalisation, dropout=0.1, random_state=0, learning_rate_init=0.01)
    assert fit(estimator, X, y).score(X, y) > 0.9
    kinds = [type(layer) for layer in estimator.network_.body.layers]
    assert kinds[1] is {"batch": BatchNorm, "layer": LayerNorm}[normalisation]
    assert kinds[3] is Dropout
    np.testing.assert_array_equal(estimator.predict(X), estimator.predict(X))  # nothing is drawn


def test_dropout_is_drawn_from_random_state() -> None:
    X, y = values()
    first, again, other = (
        fit(ours("MLPRegressor", dropout=0.5, max_iter=3, random_state=seed), X, y).coefs_[0]
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


def test_the_best_weights_come_with_their_running_statistics() -> None:
    X, y = digits(3)
    classifier = ours(
        "MLPClassifier", normalisation="batch", early_stopping=True, random_state=0, max_iter=30
    )
    fit(classifier, X, y)
    assert classifier.best_validation_score_ == max(classifier.validation_scores_)
    assert all(np.isfinite(array).all() for array in classifier.network_.states.values())


def test_huber_cares_less_for_a_wild_row() -> None:
    X, y = values()
    wild = y.copy()
    wild[:8] += 60
    scores = {
        loss: fit(
            ours("MLPRegressor", loss=loss, random_state=0, learning_rate_init=0.01, max_iter=300, huber_delta=0.5), X, wild
        ).score(X[8:], y[8:])
        for loss in ("huber", "squared_error")
    }  # fmt: skip
    assert scores["huber"] > scores["squared_error"] + 0.05


def test_smoothed_labels_make_less_certain_answers() -> None:
    for classes in (2, 3):
        X, y = digits(classes)
        sure, smooth = (
            fit(ours("MLPClassifier", label_smoothing=s, random_state=0, max_iter=300), X, y)
            for s in (0.0, 0.3)
        )
        assert smooth.predict_proba(X).max() < 0.97 < sure.predict_proba(X).max()
        assert smooth.score(X, y) > 0.95


def test_class_weights_are_weights_of_rows() -> None:
    X, y = digits(3, 150)
    named = np.array(["c", "a", "b"])[y]
    weights = {"a": 2.0, "b": 0.5, "c": 1.0}
    weighted = fit(ours("MLPClassifier", class_weight=weights, random_state=0, max_iter=20), X, named)
    same = ours("MLPClassifier", random_state=0, max_iter=20)
    fit(same, X, named, sample_weight=np.array([weights[name] for name in named]))
    np.testing.assert_array_equal(weighted.predict_proba(X), same.predict_proba(X))


def test_balanced_classes_are_all_found() -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (400, 2)), rng.normal(1.2, 1, (20, 2))])
    y = np.repeat([0, 1], [400, 20])
    found = [
        balanced_accuracy_score(
            y,
            fit(ours("MLPClassifier", class_weight=w, random_state=0, learning_rate_init=0.01), X, y).predict(
                X
            ),
        )
        for w in (None, "balanced")
    ]
    assert found[1] > found[0] + 0.1


@pytest.mark.parametrize("schedule", ["cosine", "one_cycle", StepDecay(every=2, factor=0.5)], ids=str)
@pytest.mark.parametrize("solver", ["sgd", "adam"])
def test_schedules_are_followed(solver: str, schedule: Any) -> None:
    """Each epoch's last rate is the schedule's over max_iter epochs."""
    X, y = values()
    rates: list[float] = []
    regressor = ours("MLPRegressor", solver=solver, learning_rate=schedule, max_iter=6, batch_size=50,
                     learning_rate_init=0.01, after_epoch=lambda record: rates.append(record.learning_rate))  # fmt: skip
    fit(regressor, X, y)
    kinds = {"cosine": handgrad.Cosine(), "one_cycle": handgrad.OneCycle()}
    whole = kinds.get(str(schedule), schedule).rates(0.01, 6, 4)
    np.testing.assert_allclose(rates, whole[3::4])


def test_after_each_epoch_a_function_sees_it_and_may_end_the_fit() -> None:
    X, y = digits(3)
    seen: list[Any] = []

    def watch(record: Any) -> bool:
        seen.append(record)
        return record.epoch == 4

    classifier = ours("MLPClassifier", after_epoch=watch, early_stopping=True, random_state=0).fit(X, y)
    assert classifier.n_iter_ == 4
    assert [record.loss for record in seen] == classifier.loss_curve_
    assert [record.validation_metric for record in seen] == classifier.validation_scores_


def test_the_network_is_handgrads() -> None:
    """It prints, predicts and gives gradients; its arrays are the estimator's."""
    X, y = digits(3)
    classifier = fit(ours("MLPClassifier", hidden_layer_sizes=(9, 7), max_iter=3, random_state=0), X, y)
    network = classifier.network_
    assert isinstance(network, handgrad.Network)
    assert "z3 = a2 @ W3 + b3" in str(network.program())
    np.testing.assert_array_equal(network.predict(X), classifier.predict_proba(X))
    for k, array in enumerate(classifier.coefs_, 1):
        assert array is network.parameters[f"W{k}"]


def test_weights_may_be_set_whole_or_one_by_one() -> None:
    X, y = values()
    regressor = fit(ours("MLPRegressor", hidden_layer_sizes=3, max_iter=1), X, y)
    regressor.coefs_ = [np.zeros((7, 3)), np.zeros((3, 1))]
    regressor.intercepts_[1] = [2.5]
    np.testing.assert_array_equal(regressor.predict(X), np.full(170, 2.5))
    with pytest.raises(EstimatorError, match=r"\(7, 3\)"):
        regressor.coefs_ = [np.zeros((3, 7)), np.zeros((3, 1))]


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        (
            {"solver": "lbfgs", "dropout": 0.2},
            "lbfgs needs the same loss at every evaluation, and dropout=0.2",
        ),
        ({"solver": "lbfgs", "normalisation": "batch"}, "normalisation='batch'"),
        ({"activation": "swish"}, "'activation' parameter"),
        ({"hidden_layer_sizes": (5, -1)}, "hidden_layer_sizes must be > 0, and whole numbers, got -1"),
        ({"hidden_layer_sizes": (5, 2.5)}, "hidden_layer_sizes must be > 0, and whole numbers, got 2.5"),
        ({"hidden_layer_sizes": (5, "a")}, "hidden_layer_sizes must be > 0, and whole numbers, got 'a'"),
        ({"loss": "poisson"}, "is for counts, and y has -"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_cannot_be_is_refused(parameters: dict[str, Any], said: str) -> None:
    X, y = values()
    with pytest.raises(ValueError, match=said):
        ours("MLPRegressor", **parameters).fit(X, y)


def test_balanced_weights_need_all_rows() -> None:
    with pytest.raises(EstimatorError, match="give the weights as a dictionary"):
        ours("MLPClassifier", class_weight="balanced").partial_fit([[1.0]], [0], classes=[0, 1])


@pytest.mark.parametrize("solver", ["sgd", "adam"])
@pytest.mark.parametrize("name", BOTH)
def test_a_learning_rate_is_found(name: str, solver: str, capsys: pytest.CaptureFixture[str]) -> None:
    """By the range test, from the same weights; the fit is that at this rate."""
    X, y = data_for(name)
    parameters = {"solver": solver, "random_state": 0, "tol": 0, "batch_size": 32}
    found = fit(ours(name, learning_rate="find", verbose=True, learning_rate_init=1e-9, **parameters), X, y)
    assert f"learning rate {found.learning_rate_:g}, found by a range test" in capsys.readouterr().out
    assert found.score(X, y) > 0.95
    same = fit(ours(name, learning_rate_init=found.learning_rate_, **parameters), X, y)
    np.testing.assert_array_equal(found.coefs_[0], same.coefs_[0])
    assert same.learning_rate_ == found.learning_rate_


def test_a_found_learning_rate_is_that_of_weighted_rows_and_goes_on(tmp_path: Path) -> None:
    """In partial_fit it is found once, and in a saved estimator it is known."""
    X, y = values()
    regressor = ours("MLPRegressor", learning_rate="find", random_state=0)
    rate = regressor.partial_fit(X[:90], y[:90], sample_weight=np.linspace(0, 2, 90)).learning_rate_
    assert regressor.partial_fit(X[90:], y[90:]).learning_rate_ == rate
    regressor.save(tmp_path / "saved")
    assert type(regressor).load(tmp_path / "saved").learning_rate_ == rate
    assert not hasattr(ours("MLPRegressor"), "learning_rate_")


def test_no_learning_rate_is_found_where_none_helps() -> None:
    """The error is about the parameter that the estimator has."""
    X, y = values()
    with pytest.raises(EstimatorError, match="learning_rate='find': the loss falls at no learning rate"):
        ours("MLPRegressor", learning_rate="find").fit(1e200 * X, y)


def test_a_divergence_advises_a_rate_that_was_tried() -> None:
    """In the estimator's parameters, and it is right: with it the fit ends."""
    X, y = values()
    parameters = {"solver": "sgd", "random_state": 0, "activation": "identity", "max_iter": 20}
    with pytest.raises(EstimatorError) as error:
        ours("MLPRegressor", learning_rate_init=1e3, **parameters).fit(X, y)
    advice = (
        r"try learning_rate_init=(\S+) instead of 1e\+03, the largest tried that stays finite for 50 steps"
    )
    found = re.search(advice, error.value.fix)
    assert found
    assert "clip_norm" not in str(error.value)
    calm = ours("MLPRegressor", learning_rate_init=float(found[1]), **parameters)
    assert np.isfinite(fit(calm, X, y).loss_)


@pytest.mark.parametrize("name", ["coefs_", "intercepts_"])
def test_weights_are_set_after_a_fit_only(name: str) -> None:
    with pytest.raises(
        NotFittedError, match=rf"This MLPRegressor instance is not fitted yet: {name} are the arrays"
    ):
        setattr(ours("MLPRegressor"), name, [np.zeros((2, 3))])

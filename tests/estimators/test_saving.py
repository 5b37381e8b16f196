"""Estimators in run folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from handgrad import Cosine, RunError
from handgrad.runs import load_run
from handgrad.sklearn.solvers import Descent

from ..conftest import Command
from .fitting import digits, fit, labels, ours, values

pytestmark = pytest.mark.peers

X, Y = digits(3)
FITS: dict[str, tuple[str, Any, Any, dict[str, Any]]] = {
    "classes": ("MLPClassifier", X, Y, {"hidden_layer_sizes": (9, 4)}),
    "texts": ("MLPClassifier", X, np.array(["nought", "one", "two"])[Y], {"class_weight": {"nought": 2.0, "two": 1.5}}),
    "two": ("MLPClassifier", X, Y > 1, {"normalisation": "batch", "early_stopping": True}),
    "labels": ("MLPClassifier", *labels(), {"learning_rate": Cosine(warmup=1.0)}),
    "value": ("MLPRegressor", *values(), {"dropout": 0.2}),
    "float32": ("MLPRegressor", values()[0].astype("float32"), values()[1], {}),
    "counts": ("MLPRegressor", values(2)[0], np.abs(values(2)[1]), {"loss": "poisson", "solver": "lbfgs"}),
}  # fmt: skip


@pytest.mark.parametrize("kind", FITS)
def test_what_was_saved_opens(kind: str, tmp_path: Path) -> None:
    """Predictions bit for bit, parameters, and what the fit left behind; and it goes on learning."""
    name, X, y, parameters = FITS[kind]
    estimator = fit(ours(name, max_iter=4, random_state=0, **parameters), X, y)
    estimator.save(tmp_path / "run")
    opened = type(estimator).load(tmp_path / "run")
    np.testing.assert_array_equal(opened.predict(X), estimator.predict(X))
    assert opened.predict(X).dtype == estimator.predict(X).dtype
    own, other = estimator.get_params(), opened.get_params()
    assert {key: repr(value) for key, value in own.items()} == {
        key: repr(value) for key, value in other.items()
    }
    for fact in ("n_iter_", "t_", "loss_", "n_layers_", "n_outputs_", "out_activation_", "n_features_in_"):
        assert getattr(opened, fact) == getattr(estimator, fact), fact
    assert getattr(opened, "loss_curve_", 0) == getattr(estimator, "loss_curve_", 0)
    if opened.solver != "lbfgs" and not opened.early_stopping:
        opened.partial_fit(X, y)


def test_the_folder_is_a_run(tmp_path: Path, handgrad: Command) -> None:
    """The command line shows it and answers with it."""
    named = np.array(["nought", "one", "two"])[Y]
    fit(ours("MLPClassifier", max_iter=40, random_state=0), X, named).save(tmp_path / "run")
    np.save(tmp_path / "rows.npy", X[:3])
    answers = handgrad("predict", "run", "rows.npy").stdout.splitlines()
    assert [line.split(",")[0] for line in answers[1:]] == list(named[:3])
    assert load_run(tmp_path / "run").source == "handgrad.sklearn.MLPClassifier"


def test_a_training_in_its_place_is_no_estimator(tmp_path: Path, handgrad: Command) -> None:
    """The parameters of the one are not mixed with the weights of the other."""
    estimator = fit(ours("MLPClassifier", max_iter=2, random_state=0), X, Y)
    estimator.save(tmp_path / "run")
    handgrad("train", "moons", "--hidden", "8", "--epochs", "1", "--out", "run", "--overwrite")
    with pytest.raises(RunError, match=r"estimator\.json: No such file"):
        type(estimator).load(tmp_path / "run")


def test_an_estimator_in_the_place_of_a_training_is_no_training(tmp_path: Path, handgrad: Command) -> None:
    """Nothing is replaced unasked; replaced, nothing of the training is left, so that it cannot be resumed by mistake."""
    estimator = fit(ours("MLPClassifier", max_iter=2, random_state=0), X, Y)
    handgrad("train", "moons", "--hidden", "8", "--epochs", "1", "--out", "run")
    with pytest.raises(RunError, match="run: holds a run"):
        estimator.save(tmp_path / "run")
    assert (tmp_path / "run" / "evaluation.png").exists()
    estimator.save(tmp_path / "run", overwrite=True)
    for name in ("evaluation.png", "explanation.html", "checkpoint.safetensors"):
        assert not (tmp_path / "run" / name).exists()
    for command in ("evaluate run", "explain run", "train --resume run"):
        refused = handgrad(*command.split(), code=1).stderr
        assert refused.startswith("Error: run: holds an estimator, whose training data is not known\n")


DAMAGE: dict[str, dict[str, Any]] = {
    "format": {"format": 99},
    "type": {"type": "MLPRegressor"},
    "parameter": {"parameters": {"hidden_layer_sizes": [3], "no_such": 1}},
    "value": {"parameters": {"alpha": -1}},
    "classes": {"classes": [0, 1, 2, 3]},
    "kind": {"kind": "binary"},
    "class type": {"class_type": "|V8"},
    "long texts": {"class_type": "<V1000000000"},
    "attribute": {"fitted": {"__class__": 1}},
    "more": {"more": 1},
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_refused(kind: str, tmp_path: Path) -> None:
    classifier = fit(ours("MLPClassifier", max_iter=2, hidden_layer_sizes=3), X, Y)
    classifier.save(tmp_path)
    path = tmp_path / "estimator.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | DAMAGE[kind]))
    with pytest.raises(RunError, match=r"estimator\.json"):
        type(classifier).load(tmp_path)


def test_nothing_is_saved_before_a_fit(tmp_path: Path) -> None:
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        ours("MLPRegressor").save(tmp_path)
    with pytest.raises(RunError, match="one class"):
        fit(ours("MLPClassifier", max_iter=1), [[1.0], [2.0]], ["a", "a"]).save(tmp_path)
    with pytest.raises(RunError, match=r"estimator\.json"):
        type(ours("MLPRegressor")).load(tmp_path)


GOING_ON: dict[str, tuple[str, dict[str, Any]]] = {
    "adam": ("MLPClassifier", {"dropout": 0.3, "batch_size": 17}),
    "momentum": (
        "MLPRegressor",
        {"solver": "sgd", "learning_rate": "invscaling", "learning_rate_init": 0.01},
    ),
    "schedule": ("MLPClassifier", {"learning_rate": Cosine(), "normalisation": "batch"}),
}


@pytest.mark.parametrize("kind", GOING_ON)
def test_a_descent_goes_on_to_the_same_bits(kind: str, tmp_path: Path) -> None:
    """Put away between two calls of partial_fit, an estimator has the weights of one that never was."""
    name, parameters = GOING_ON[kind]
    X, y = digits(3) if name == "MLPClassifier" else values()
    straight, stopped = (ours(name, random_state=4, max_iter=9, **parameters) for _ in range(2))
    classes = [{"classes": np.unique(y)} if name == "MLPClassifier" else {}, {}, {}, {}]
    for more in classes:
        straight.partial_fit(X, y, **more)
    for more in classes:
        stopped.partial_fit(X, y, **more)
        stopped.save(tmp_path, overwrite=True)
        stopped = type(stopped).load(tmp_path)
    assert stopped.loss_curve_ == straight.loss_curve_
    for own, other in zip(stopped.coefs_, straight.coefs_, strict=True):
        np.testing.assert_array_equal(own, other)


def test_without_a_descent_there_is_no_file_of_one(tmp_path: Path) -> None:
    """Neither where lbfgs fitted, nor what an earlier estimator left in the folder."""
    X, y = values()
    fit(ours("MLPRegressor", max_iter=2), X, y).save(tmp_path)
    assert (tmp_path / "descent.safetensors").exists()
    fit(ours("MLPRegressor", solver="lbfgs", max_iter=2), X, y).save(tmp_path, overwrite=True)
    assert not (tmp_path / "descent.safetensors").exists()


@pytest.mark.parametrize("kind", ["cut", "text", "slots", "key", "rate", "format", "more"])
def test_a_damaged_descent_is_refused(kind: str, tmp_path: Path) -> None:
    classifier = fit(ours("MLPClassifier", max_iter=2, hidden_layer_sizes=3), X, Y)
    classifier.save(tmp_path)
    path = tmp_path / "descent.safetensors"
    with safe_open(path, framework="numpy") as file:
        head = json.loads(file.metadata()["handgrad"])
    arrays = load_file(path)
    if kind == "slots":
        arrays["slot/vb1"] = np.zeros(1)
    elif kind == "key":
        arrays["random/key"][5] = -1
    else:
        head |= {"rate": {"rate": -1.0}, "format": {"format": 2}, "more": {"more": 0}}.get(kind, {})
    save_file(arrays, path, metadata={"handgrad": json.dumps(head)})
    if kind == "cut":
        path.write_bytes(path.read_bytes()[:-8])
    elif kind == "text":
        path.write_text("no safetensors")
    with pytest.raises(RunError, match=r"descent\.safetensors"):
        type(classifier).load(tmp_path)


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ({"solver": "adam"}, {"solver": "lbfgs"}),
        ({"solver": "sgd"}, {"momentum": 0.0}),
        ({}, {"solver": "sgd"}),
    ],
)
def test_what_another_optimiser_left_is_not_kept(
    first: dict[str, Any], then: dict[str, Any], tmp_path: Path
) -> None:
    """Parameters that were changed since the fit describe another descent; the estimator opens all the same."""
    X, y = values()
    regressor = fit(ours("MLPRegressor", max_iter=3, **first), X, y).set_params(warm_start=True, **then)
    for _ in range(2):
        regressor.save(tmp_path, overwrite=True)
        opened = type(regressor).load(tmp_path)
        np.testing.assert_array_equal(opened.predict(X), regressor.predict(X))
        fit(regressor, X, y)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("loss_curve_", 1.0), ("t_", None), ("t_", 2**60), ("t_", -1), ("best_loss_", "low"), ("n_iter_", 1.5)],
)
def test_numbers_that_no_fit_leaves_are_refused(name: str, wrong: Any, tmp_path: Path) -> None:
    regressor = fit(ours("MLPRegressor", max_iter=2), *values())
    regressor.save(tmp_path)
    path = tmp_path / "estimator.json"
    table = json.loads(path.read_text())
    path.write_text(json.dumps(table | {"fitted": table["fitted"] | {name: wrong}}))
    with pytest.raises(RunError, match=rf"estimator\.json: .*{name}"):
        type(regressor).load(tmp_path)


def test_a_descent_begins_where_another_solver_stopped() -> None:
    """After lbfgs there is no curve, after a fit without early stopping are no scores: what is missing is made."""
    X, y = values()
    regressor = fit(ours("MLPRegressor", solver="lbfgs", max_iter=3), X, y)
    regressor.set_params(solver="adam").partial_fit(X, y)
    assert len(regressor.loss_curve_) == 1
    fit(regressor.set_params(warm_start=True, early_stopping=True), X, y)
    assert regressor.best_loss_ is None
    assert len(regressor.validation_scores_) == regressor.n_iter_
    regressor.set_params(early_stopping=False).partial_fit(X, y)
    assert regressor.best_loss_ == regressor.loss_


def test_nothing_is_saved_before_a_first_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fit that was interrupted at once has no loss, and its folder would be none that opens."""

    def interrupted(*arguments: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(Descent, "epoch", interrupted)
    with pytest.warns(UserWarning, match="interrupted"):
        regressor = ours("MLPRegressor").fit(*values())
    with pytest.raises(RunError, match="nothing to save before a first epoch"):
        regressor.save(tmp_path / "run")
    assert not (tmp_path / "run").exists()

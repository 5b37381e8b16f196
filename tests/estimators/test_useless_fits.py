"""A regressor worse than the mean of y names the parameter that mends it, and others have no such warning."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from handgrad.sklearn import useless_fits

from .fitting import digits, fit, ours, values

pytestmark = pytest.mark.peers

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 3))
LINEAR = X @ [1, 0.5, -0.7] + 0.05 * RNG.normal(size=600)
FAR = np.where(np.arange(600) == 17, 1e6, LINEAR)
WIDE = X * [1, 1e4, 1] + [0, 1e5, 0]

CASES: dict[str, tuple[Any, Any, dict[str, Any], str, str]] = {
    "scale of y": (X, 5e5 + 1e5 * LINEAR, {}, "the scale of y (mean 4.95e+05, ", "standardise_targets=True"),
    "two outputs": (X, np.stack([LINEAR, 1e6 - 1e5 * LINEAR], 1), {}, "the scale of y", "standardise_targets=True"),
    "scale of X": (WIDE, LINEAR, {}, "the scale of X", "sklearn.preprocessing.StandardScaler in front"),
    "rate": (X, LINEAR, {"learning_rate_init": 1e-7}, "the learning rate, learning_rate_init=1e-07", "learning_rate='find'"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _first_in_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(useless_fits, "_tried_at", -np.inf)


def warned(X: Any, y: Any, **parameters: Any) -> str:
    """Fit, and return what it warns of a useless fit."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ours("MLPRegressor", random_state=0, **parameters).fit(X, y)
    said = [str(each.message) for each in caught if "worse than the mean" in str(each.message)]
    assert all(each.category is ConvergenceWarning for each in caught)
    return said[0] if said else ""


@pytest.mark.parametrize("case", CASES)
def test_the_parameter_that_mends_it_is_named_and_mends_it(case: str) -> None:
    x, y, parameters, cause, option = CASES[case]
    said = warned(x, y, **parameters)
    assert f"Likely cause: {cause}" in said
    assert f"with {option}, and nothing else changed" in said
    before, after = re.findall(r"has r2 (\S+) instead of (\S+)\.$", said)[0][::-1]
    plain = fit(ours("MLPRegressor", random_state=0, **parameters), x, y)
    assert float(before) == pytest.approx(plain.score(x, y), rel=1e-3)
    assert float(after) > 0.5
    if "=" in option:
        name, value = option.split("=")
        parameters = parameters | {name: {"True": True}.get(value, value.strip("'"))}
    else:
        x = StandardScaler().fit_transform(x)
    assert warned(x, y, **parameters) == ""


def test_a_search_tries_what_mends_it_once() -> None:
    said = [warned(X, 5e5 + 1e5 * LINEAR, alpha=alpha) for alpha in (1e-4, 1e-3)]
    assert "with standardise_targets=True, and nothing else changed" in said[0]
    assert said[1].endswith(
        "on its training rows. What mends it was tried at an earlier fit, whose warning has it."
    )


def test_far_targets_are_not_what_a_fit_is_scored_on() -> None:
    """Nothing could predict them; without them, and with the deviation that they have, it is far off."""
    cause = "Likely cause: a few values of y that are far from all others: with loss='huber'"
    parameters = {"standardise_targets": True, "batch_size": 20, "n_iter_no_change": 50, "max_iter": 60}
    assert cause in warned(X, FAR, **parameters)
    mended = fit(ours("MLPRegressor", random_state=0, loss="huber", **parameters), X, FAR)
    usual = FAR < 1e3
    assert mended.score(X[usual], FAR[usual]) > 0.9
    assert warned(X, FAR, loss="huber", **parameters) == ""


def test_other_fits_are_not_warned_of() -> None:
    """Good ones, noise, short ones, and lbfgs; nor a call of partial_fit."""
    assert warned(*values()) == ""
    assert warned(X, LINEAR) == ""
    assert warned(X, 5e5 + 1e5 * LINEAR, max_iter=3) == ""
    assert warned(X, 5e5 + 1e5 * LINEAR, solver="lbfgs") == ""
    assert warned(X, np.full(600, 3.0)) == ""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours("MLPRegressor").partial_fit(X, 5e5 + LINEAR)
        ours("MLPClassifier", learning_rate_init=0.01).fit(*digits(3))

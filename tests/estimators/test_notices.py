"""A notice stands at the line that the user wrote, however many of others' lines are between."""

from __future__ import annotations

import inspect
import sys
import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from handgrad.errors import HandgradNotice
from handgrad.sklearn import MLPClassifier

pytestmark = pytest.mark.peers

X = np.random.default_rng(0).normal(size=(24, 3))
y = np.arange(24) % 2
SMALL = MLPClassifier((5,), max_iter=2, tol=0)

FITS: dict[str, Callable[[Any], object]] = {
    "alone": lambda estimator: estimator.fit(X, y),
    "in a pipeline": lambda estimator: make_pipeline(StandardScaler(), estimator).fit(X, y),
    "validated": lambda estimator: cross_val_score(estimator, X, y, cv=2),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_without_llvmlite_the_notice_names_the_users_line(
    monkeypatch: pytest.MonkeyPatch, fit: Callable[[Any], object]
) -> None:
    monkeypatch.setitem(sys.modules, "handgrad.engines.compiled", None)  # its import fails
    monkeypatch.setattr("handgrad.sklearn.networks._cache", OrderedDict())  # none was made ready before
    with warnings.catch_warnings(record=True) as noticed:
        warnings.simplefilter("always", HandgradNotice)
        fit(clone(SMALL))
    notices = [each for each in noticed if each.category is HandgradNotice]
    assert notices
    assert {(each.filename, each.lineno) for each in notices} == {(__file__, inspect.getsourcelines(fit)[1])}

"""When a change is clearly better, and which of several is chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from handgrad.errors import TrainingError
from handgrad.training.remedies import Change, KnownRows, Remedy, find_remedy

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 2))
T = X @ [1.0, 2.0]
ROWS = KnownRows(X, T)


def off_by(size: float, seed: int = 1) -> Any:
    """Predict with so large errors."""
    return lambda x: (x @ [1.0, 2.0] + size * np.random.default_rng(seed).normal(size=len(x)))[:, None]


def remedy(fitted: Any, *changes: Any, unchanged: Any = None) -> Remedy:
    made = [Change(f"--option {k}", f"cause {k}", lambda each=each: each()) for k, each in enumerate(changes)]
    return find_remedy(fitted, unchanged, made, ROWS, KnownRows(X[:200], T[:200]), lambda line: None)


def test_the_earliest_of_scores_that_are_alike_is_the_cause() -> None:
    found = remedy(off_by(9), lambda: off_by(8), lambda: off_by(0.5), lambda: off_by(0.4))
    assert found.best is not None
    assert found.best.option == "--option 1"
    assert found.before < 0 < 0.9 < found.best.score
    assert len(found.attempts) == 3
    assert "cause 1: with --option 1, and nothing else changed" in str(found)


def test_chance_mends_nothing() -> None:
    """Errors of the same size; or better than before, and still no better than the mean."""
    assert all(remedy(off_by(9), lambda seed=seed: off_by(9, seed)).best is None for seed in range(2, 12))
    assert remedy(off_by(90), lambda: off_by(9)).best is None


def test_what_the_shorter_training_itself_mends_is_not_the_changes() -> None:
    assert remedy(off_by(9), lambda: off_by(0.5), unchanged=lambda: off_by(0.5, 2)).best is None
    assert remedy(off_by(9), lambda: off_by(0.5), unchanged=lambda: off_by(9, 2)).best is not None


def test_what_diverges_is_left_out() -> None:
    def diverge() -> Any:
        raise TrainingError("the loss is not finite")

    found = remedy(off_by(9), diverge, lambda: lambda x: np.full((len(x), 1), np.nan))
    assert (found.attempts, found.best) == ([], None)
    assert str(found) == "No change could be tried."


@pytest.mark.parametrize("one_output", [True, False])
def test_classes_are_scored_by_balanced_accuracy(one_output: bool) -> None:
    """Ten rare rows of 300: all of them found is clear, one by chance is not."""
    t = (np.arange(300) < 10).astype(int)
    rows = KnownRows(X, t, 2)

    def finds(few: int) -> Any:
        p = (np.arange(300) < few).astype(float)[:, None]
        return lambda x: p if one_output else np.concatenate([1 - p, p], axis=1)

    assert rows.score(finds(5)) == 0.75
    assert rows.is_clearly_better(finds(10), finds(0))
    assert not rows.is_clearly_better(finds(1), finds(0))
    assert not rows.is_clearly_better(finds(10), finds(9))


def test_outputs_count_alike_whatever_their_unit() -> None:
    t = np.stack([T, 1e6 * T[::-1]], axis=1)
    rows = KnownRows(X, t)

    def off(first: float) -> Any:
        return lambda x: t + np.array([[first, 1e5]])

    good, bad = off(0.1), off(9)
    assert rows.is_clearly_better(good, bad)
    assert not rows.is_clearly_better(bad, good)


def test_one_wild_prediction_does_not_decide() -> None:
    def wild(size: float) -> Any:
        return lambda x: off_by(size)(x) + np.where(np.arange(len(x)) == 7, 1e4, 0)[:, None]

    assert ROWS.is_clearly_better(off_by(0.1), wild(4))


def test_where_a_far_target_decides_the_score_that_is_the_reason() -> None:
    """And not the inputs; with it in the training rows alone, nothing is said of it."""
    far = KnownRows(X, np.where(np.arange(300) == 5, 1e6, T))
    change = Change("--option", "cause", lambda: off_by(0.1))
    found = find_remedy(off_by(0.2), None, [change], ROWS, far, lambda line: None)
    assert found.best is None
    assert found.decided_by_few
    assert str(found).endswith(
        "A few far targets among the rows scored decide this, whatever is predicted for the others."
    )
    assert not find_remedy(off_by(9), None, [change], far, ROWS, lambda line: None).decided_by_few

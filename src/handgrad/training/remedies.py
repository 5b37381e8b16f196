"""What mends a fit that is no better than a constant prediction: one change at a time, each tried by a short training."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from handgrad.arrays import Array
from handgrad.errors import EstimatorError, TrainingError
from handgrad.training.metrics import (
    HEAVY,
    balanced_accuracy_error,
    classification_scores,
    r_squared,
    tail_share,
)

CLEAR = 2.0  # standard errors by which a change has to be better
FARTHEST = 3.0  # deviations of the targets that an error counts, so that one wild prediction does not decide
ALIKE = 0.1  # a score that is so much lower at most: the more frequent cause is taken

Predict = Callable[[Array], Array]
"""Returns values (n, O) or probabilities (n, C) of rows; of two classes, one probability may be left out."""


@dataclass(frozen=True)
class KnownRows:
    """Rows with their targets: values (n, O), or class numbers (n,) of so many ``classes``."""

    x: Array
    t: Array
    classes: int = 0

    @property
    def score_name(self) -> str:
        """What fits are compared by: accuracy would hide a rare class."""
        return "balanced accuracy" if self.classes else "r2"

    @property
    def is_decided_by_few(self) -> bool:
        """Whether a hundredth of the rows is so far out that the others hardly count in the score."""
        return not self.classes and tail_share(self.t.reshape(len(self.t), -1)) > HEAVY

    @property
    def of_a_constant(self) -> float:
        """The score of a constant prediction."""
        return 1 / self.classes if self.classes else 0.0

    def score(self, predict: Predict) -> float:
        """Return the score of predictions."""
        return self._scored(predict(self.x))[0]

    def is_clearly_better(self, predict: Predict, other: Predict) -> bool:
        """Return whether predictions are better than a constant, and than others by more than chance."""
        (score, errors), (before, errors_before) = (self._scored(each(self.x)) for each in (predict, other))
        if self.classes:
            return score > max(before, self.of_a_constant) + CLEAR * float(errors)
        gain = errors_before - errors
        return score > max(before, 0.0) and bool(gain.mean() > CLEAR * gain.std() / np.sqrt(len(gain)))

    def _scored(self, prediction: Array) -> tuple[float, Array]:
        """Return the score, and how far off each row is; for classes, the standard error of the score."""
        if not self.classes:
            t = self.t.reshape(prediction.shape).astype(np.float64)
            unit = np.where(t.std(axis=0) > 0, t.std(axis=0), 1.0)
            return r_squared(prediction, t), np.minimum(abs(prediction - t) / unit, FARTHEST).mean(axis=-1)
        if prediction.shape[-1] == 1:
            prediction = np.concatenate([1 - prediction, prediction], axis=-1)
        scores = classification_scores(prediction, self.t)
        error = balanced_accuracy_error(np.array(scores["confusion_matrix"]))
        return scores["balanced_accuracy"], np.array(error)


@dataclass(frozen=True)
class Change:
    """One change of how a network is trained: as a person gives it, the cause that it would prove, and a short training."""

    option: str
    cause: str
    train: Callable[[], Predict]


@dataclass(frozen=True)
class Attempt:
    """A change that was tried, with the score that it has."""

    option: str
    cause: str
    score: float


@dataclass(frozen=True)
class Remedy:
    """What changes came to: ``best`` is the one that mended the fit, None where none did.

    ``decided_by_few`` is whether few rows with far targets decide the scores, whatever is predicted for the others.
    """

    score_name: str
    before: float
    attempts: Sequence[Attempt]
    best: Attempt | None
    decided_by_few: bool = False

    def __str__(self) -> str:
        if self.best is not None:
            return (
                f"Likely cause: {self.best.cause}: with {self.best.option}, and nothing else changed, a short training "
                f"has {self.score_name} {self.best.score:.4g} instead of {self.before:.4g}."
            )
        if not self.attempts:
            return "No change could be tried."
        tried = ", ".join(f"{each.option} ({each.score:.4g})" for each in self.attempts)
        why = "The inputs may say too little about the targets."
        if self.decided_by_few:
            why = "A few far targets among the rows scored decide this, whatever is predicted for the others."
        return f"No single change mended it; {self.score_name} after short trainings: {tried}. {why}"


def find_remedy(
    fitted: Predict,
    unchanged: Callable[[], Predict] | None,
    changes: Iterable[Change],
    choose_on: KnownRows,
    prove_on: KnownRows,
    report: Callable[[str], None],
) -> Remedy:
    """Try changes, the most frequent causes first; choose one with about the best score on some rows, and prove it on others.

    A change mends a fit if it is clearly better than it; and than the same training without a change, ``unchanged``, where
    the trials are shorter than the fit was. ``report`` is called with a line for each.
    """
    others = [fitted] + ([unchanged()] if unchanged is not None else [])
    tried: list[tuple[Change, float, Predict]] = []
    for change in changes:
        try:
            predict = change.train()
            score = choose_on.score(predict)
        except (TrainingError, EstimatorError):  # it diverges: this change mends nothing
            continue
        if np.isfinite(score):
            tried.append((change, score, predict))
        report(f"{change.option}: {choose_on.score_name} {score:.4g}")
    attempts = [Attempt(each.option, each.cause, prove_on.score(predict)) for each, _, predict in tried]
    highest = max((score for _, score, _ in tried), default=0.0)
    best = next((k for k, (_, score, _) in enumerate(tried) if score >= highest - ALIKE), None)
    if best is not None and not all(prove_on.is_clearly_better(tried[best][2], other) for other in others):
        best = None
    before = prove_on.score(fitted)
    chosen = None if best is None else attempts[best]
    return Remedy(prove_on.score_name, before, attempts, chosen, prove_on.is_decided_by_few)

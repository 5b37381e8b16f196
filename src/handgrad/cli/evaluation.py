"""How good a trained network is on some rows: as a table, as JSON and as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import click
import numpy as np

from handgrad.arrays import Array
from handgrad.cli.console import printable
from handgrad.layers import Loss
from handgrad.training.metrics import (
    balanced_accuracy_error,
    classification_scores,
    measure_metric,
    metric_name,
    regression_scores,
)
from handgrad.training.remedies import CLEAR

LINES = (
    "accuracy",
    "balanced_accuracy",
    "f1",
    "roc_auc",
    "r2",
    "root_mean_squared_error",
    "mean_absolute_error",
)
"""The scores that are a line each; the rest is in the table of the classes, in the picture, in JSON."""
MOST_CLASSES, FEW = 12, 5  # in a table of the classes; of the worst, where there are more
MOST_OF_ALL = 1.5  # times its share among equals: the other classes are rare
WIDEST = 7  # letters of a class's name above its column


@dataclass(frozen=True)
class Evaluation:
    """Predictions for rows with known targets, and the scores that they have.

    ``names`` are the classes, or for regression the targets; ``weighted`` is whether classes were given weights.
    """

    prediction: Array
    t: Array
    names: tuple[str, ...]
    scores: Mapping[str, Any]
    weighted: bool = False
    sequences: bool = False
    """Whether each row has many targets, as a text; the table of its classes would be one of letters."""
    diverged: str | None = None
    """That the training diverged, where it did: single rows may be right all the same."""

    @classmethod
    def of(
        cls, loss: Loss, prediction: Array, t: Array, classes: Sequence[str], targets: Sequence[str]
    ) -> Evaluation:
        """Score predictions: probabilities where there are classes, else values."""
        metric = {metric_name(loss): measure_metric(loss, prediction, t)}
        if not classes:
            t, names = t.reshape(prediction.shape), tuple(targets)
            scores: dict[str, Any] = regression_scores(prediction, t) if loss.task == "regression" else {}
            if scores and len(names) > 1:
                each = (regression_scores(prediction[:, [k]], t[:, [k]]) for k in range(len(names)))
                scores["targets"] = dict(zip(names, each, strict=True))
            return cls(prediction, t, names, scores | metric)
        if prediction.shape[-1] == 1:  # the probability of the second of two classes
            prediction = np.concatenate([1 - prediction, prediction], axis=-1)
        sequences = prediction.ndim > 2
        t = t.reshape(-1).astype(int)
        prediction = prediction.reshape(len(t), -1)
        counted = t != getattr(loss, "ignored", None)
        if not counted.any():
            return cls(prediction, t, tuple(classes), metric)
        scores = classification_scores(prediction[counted], t[counted])
        scores["recall"] = dict(zip(classes, scores["recall"], strict=True))
        weighted = getattr(loss, "class_weight", None) is not None
        return cls(prediction, t, tuple(classes), scores | metric, weighted, sequences)

    @property
    def lines(self) -> dict[str, float]:
        """The scores that a person reads first."""
        names = LINES[:1] if self.sequences else LINES
        return {name: self.scores[name] for name in names if name in self.scores}

    @property
    def table(self) -> list[str]:
        """The recall of the classes with the confusion matrix, or the scores of several targets, line by line."""
        if self.sequences:
            return []
        if "confusion_matrix" in self.scores:
            return _confusion_lines(np.array(self.scores["confusion_matrix"]), self.names)
        rows = [
            [name, *(f"{value:.4g}" for value in own.values())]
            for name, own in self.scores.get("targets", {}).items()
        ]
        return _aligned([["target", "r2", "root mean squared", "mean absolute"], *rows]) if rows else []

    @property
    def warning(self) -> str | None:
        """What is wrong when a constant prediction would do as well."""
        if self.diverged:
            return self.diverged
        if "confusion_matrix" in self.scores:
            return None if self.weighted else self._majority()
        if not self.scores.get("r2", 0) >= 0:
            return f"worse than the mean: r2 {self.scores['r2']:.4g}; always predicting the mean has 0"
        return None

    def _majority(self) -> str | None:
        """Compare with always predicting the most frequent class: by one standard error of the rows that differ.

        Where one class is rare, what finds its rows may cost accuracy and be clearly better in balanced accuracy.
        """
        matrix = np.array(self.scores["confusion_matrix"])
        chance = CLEAR * balanced_accuracy_error(matrix)
        if self.scores["balanced_accuracy"] > 1 / np.count_nonzero(matrix.sum(axis=1)) + chance:
            return None
        most = int(matrix.sum(axis=1).argmax())
        gained = int(matrix.diagonal().sum() - matrix[most, most])
        lost = int(matrix[most].sum() - matrix[most, most])
        if gained - lost > np.sqrt(gained + lost):
            return None
        share = self.scores["majority_share"]
        how = "worse" if gained < lost else "no better" if gained == lost else "hardly better"
        return (
            f"accuracy {self.scores['accuracy']:.4g} is {how} than always predicting {self.names[most]!r}, "
            f"which has {share:.4g}"
        )

    @property
    def advice(self) -> str:
        """What to try where one class is frequent, or training diverged, and nothing has been tried yet."""
        if self.diverged:
            return "; try a lower learning rate, or --learning-rate find"
        rare = self.warning and self.scores.get("majority_share", 0) > MOST_OF_ALL / len(self.names)
        return (
            "; train with --class-weight balanced to find rare classes" if rare and not self.sequences else ""
        )

    def picture(self, title: str) -> bytes:
        """Draw what is right and wrong as PNG."""
        from handgrad.training.pictures import draw_confusion, draw_residuals  # matplotlib is slow to import

        picture = BytesIO()
        if "confusion_matrix" in self.scores:
            draw_confusion(self.scores, self.names, picture, title)
        else:
            draw_residuals(self.prediction, self.t, self.names, picture, title)
        return picture.getvalue()

    def show(self, why: str = "") -> None:
        """Print the table, then the warning on standard error with why it is so, or what to try."""
        if self.table:
            click.echo("\n" + "\n".join(f"  {line}" for line in self.table))
        if self.warning:
            click.echo(f"Warning: {self.warning}{'' if why else self.advice}", err=True)
        if why:
            click.echo(why, err=True)


def _confusion_lines(matrix: Array, names: Sequence[str]) -> list[str]:
    rows = matrix.sum(axis=1)
    recall = [
        f"{right / count:.4g}" if count else "-" for right, count in zip(matrix.diagonal(), rows, strict=True)
    ]
    labels = [printable(name) for name in names]
    if len(names) > MOST_CLASSES:
        shares = matrix.diagonal() / np.maximum(rows, 1)
        worst = sorted(np.flatnonzero(rows), key=lambda k: shares[k])[:FEW]
        table = [[labels[k], recall[k], f"{rows[k]:,}"] for k in worst]
        return _aligned([["class, worst first", "recall", "rows"], *table])
    short = [label if len(label) <= WIDEST else f"{label[: WIDEST - 1]}…" for label in labels]
    table = [[labels[k], recall[k], *(f"{count:,}" for count in row)] for k, row in enumerate(matrix)]
    return ["targets down, predictions across", *_aligned([["", "recall", *short], *table])]


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            [
                row[0].ljust(widths[0]),
                *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
            ]
        )
        for row in rows
    ]

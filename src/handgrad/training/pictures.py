"""Pictures: the learning curve of a training, and what a trained network gets right and wrong."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from handgrad.arrays import Array
from handgrad.errors import ConfigurationError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from handgrad.training.history import History
    from handgrad.training.learning_rates import RangeTest

MOST_CLASSES = 20  # whose numbers of rows are written into a picture
MOST_OUTPUTS = 6
MOST_POINTS = 20_000  # of a picture


def draw_learning_curve(history: History, file: str | Path | IO[bytes], title: str) -> None:
    """Draw the losses above and the metric below, epoch by epoch."""
    watched = [record for record in history.epochs if record.validation_loss is not None]
    height = 6 if watched else 3.5
    figure = Figure(figsize=(7, height))
    # Margins in inches: a constrained layout would draw everything once more to find them. The widest labels are
    # those of a logarithmic axis within a decade.
    above = 0.35 + 0.2 * title.count("\n")
    margins = {"left": 1.35 / 7, "right": 6.8 / 7, "bottom": 0.5 / height, "top": 1 - above / height}
    panels = figure.subplots(
        2 if watched else 1, sharex=True, squeeze=False, gridspec_kw=margins | {"hspace": 0.08}
    )[:, 0]
    style = {"marker": "o", "markersize": 3} if len(history.epochs) < 40 else {}
    losses = {record.epoch: record.loss for record in history.epochs}
    panels[0].plot(losses.keys(), losses.values(), label="training", **style)
    panels[0].set(ylabel="loss", title=title)
    if watched:
        epochs = [record.epoch for record in watched]
        panels[0].plot(epochs, [record.validation_loss for record in watched], label="validation", **style)
        panels[1].plot(epochs, [record.validation_metric for record in watched], "C1", **style)
        panels[1].set(ylabel=f"validation {history.metric.replace('r2', 'R²')}")
    if all(value > 0 for line in panels[0].lines for value in line.get_ydata()):
        panels[0].set_yscale("log")
    for panel in panels:
        panel.grid(alpha=0.3)
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
        if history.best_epoch is not None:
            panel.axvline(history.best_epoch, color="0.5", linestyle=":", label="best")
    panels[0].legend()
    panels[-1].set_xlabel("epoch")
    _write(figure, file)


def draw_range_test(test: RangeTest, file: str | Path | IO[bytes], title: str) -> None:
    """Draw the loss of each batch over its learning rate, smoothed too, and mark the rate found."""
    figure = Figure(figsize=(7, 4), layout="constrained")
    panel = figure.subplots()
    panel.plot(test.rates, test.losses, color="C0", alpha=0.35, linewidth=1, label="a batch")
    panel.plot(test.rates, test.smooth, color="C0", label="smoothed")
    panel.axvline(test.learning_rate, color="C3", linestyle="--", label=f"found: {test.learning_rate:g}")
    low, high = float(np.min(test.smooth)), float(np.max(test.smooth[: np.argmin(test.smooth) + 1]))
    margin = 0.25 * (high - low)
    panel.set(xscale="log", xlabel="learning rate", ylabel="loss", title=_plain(title))
    panel.set_ylim(max(low - margin, min(test.losses)) if low > 0 else low - margin, high + 2 * margin)
    panel.grid(alpha=0.3)
    panel.legend()
    _write(figure, file)


def draw_confusion(
    scores: Mapping[str, Any], classes: Sequence[str], file: str | Path | IO[bytes], title: str
) -> None:
    """Draw which class was predicted for which; for two classes the ROC curve and the calibration beside it."""
    panels = 3 if "roc_curve" in scores else 1
    size = min(4.5 + max(0, len(classes) - 6) * 0.35, 12)
    figure = Figure(figsize=(size if panels == 1 else 14, size + 0.3), layout="constrained")
    axes = figure.subplots(1, panels, squeeze=False)[0]
    _draw_matrix(axes[0], np.array(scores["confusion_matrix"]), [_short(name) for name in classes])
    axes[0].set_title(_plain(title))
    if panels == 3:
        _draw_roc(axes[1], scores, classes[1])
        _draw_calibration(axes[2], scores["calibration"], classes[1])
    _write(figure, file)


def draw_residuals(
    prediction: Array, t: Array, names: Sequence[str], file: str | Path | IO[bytes], title: str
) -> None:
    """Draw the residuals of each output over its predictions, and how often each size of residual occurs.

    Of more than `MOST_POINTS` rows, points are drawn for some at even distances.
    """
    names, step = names[:MOST_OUTPUTS], -(-len(t) // MOST_POINTS)
    figure = Figure(figsize=(9, 3.5 * len(names)), layout="constrained")
    figure.suptitle(_plain(title))
    rows = figure.subplots(len(names), 2, squeeze=False, sharey="row", gridspec_kw={"width_ratios": [3, 1]})
    for k, name in enumerate(names):
        residual = t[:, k] - prediction[:, k]
        rows[k, 0].scatter(prediction[::step, k], residual[::step], s=9, alpha=0.5, edgecolors="none")
        if step > 1:
            rows[k, 0].set_title(f"{len(residual[::step]):,} of {len(t):,} rows", fontsize="small")
        rows[k, 0].set(xlabel=f"predicted {_short(name)}", ylabel="residual, target - predicted")
        rows[k, 1].hist(residual, bins=30, orientation="horizontal")
        rows[k, 1].set_xlabel("rows")
        rows[k, 1].xaxis.set_major_locator(MaxNLocator(integer=True))
        for panel in rows[k]:
            panel.axhline(0, color="0.3", linewidth=1)
            panel.grid(alpha=0.3)
    _write(figure, file)


def _draw_matrix(panel: Axes, matrix: Array, names: Sequence[str]) -> None:
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    panel.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    panel.set(xlabel="predicted", ylabel="target")
    if len(names) > MOST_CLASSES:
        return
    ticks = range(len(names))
    panel.set_xticks(ticks, names, rotation=90 if max(map(len, names)) > 3 else 0)
    panel.set_yticks(ticks, names)
    for (i, j), count in np.ndenumerate(matrix):
        panel.text(
            j,
            i,
            f"{count:,}",
            ha="center",
            va="center",
            color="w" if shares[i, j] > 0.5 else "0.2",
            fontsize=8,
        )


def _draw_roc(panel: Axes, scores: Mapping[str, Any], positive: str) -> None:
    panel.plot(*zip(*scores["roc_curve"], strict=True))
    panel.plot([0, 1], [0, 1], color="0.5", linestyle=":")
    title = f"ROC of {_short(positive)}, area {scores['roc_auc']:.3f}"
    panel.set(xlabel="false positive rate", ylabel="true positive rate", title=title, box_aspect=1)
    panel.grid(alpha=0.3)


def _draw_calibration(panel: Axes, bins: Sequence[Mapping[str, float]], positive: str) -> None:
    largest = max(each["rows"] for each in bins)
    x, y = [each["predicted"] for each in bins], [each["observed"] for each in bins]
    panel.plot([0, 1], [0, 1], color="0.5", linestyle=":")
    panel.plot(x, y, color="C0", linewidth=1)
    panel.scatter(x, y, s=[8 + 72 * each["rows"] / largest for each in bins])
    panel.set(xlabel=f"predicted probability of {_short(positive)}", ylabel="share of the rows")
    panel.set(title="calibration", box_aspect=1)
    panel.grid(alpha=0.3)


def _short(name: str) -> str:
    return _plain(name if len(name) <= 12 else f"{name[:11]}…")


def _plain(text: str) -> str:
    """Return a name of the data's as matplotlib draws it unchanged: without formulas and control characters."""
    return "".join(each if each.isprintable() else "?" for each in text).replace("$", r"\$")


def _write(figure: Figure, file: str | Path | IO[bytes]) -> None:
    try:
        with (
            warnings.catch_warnings()
        ):  # names may have letters that the font has not, which are drawn as boxes
            warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
            figure.savefig(file, dpi=110)
    except ValueError as error:  # another suffix than those it names
        raise ConfigurationError(f"{file}: {error}") from None

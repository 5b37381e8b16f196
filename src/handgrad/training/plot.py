"""The learning curve as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import IO, TYPE_CHECKING

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from handgrad.errors import ConfigurationError

if TYPE_CHECKING:
    from handgrad.training.history import History


def draw_learning_curve(history: History, file: str | Path | IO[bytes], title: str) -> None:
    """Draw the losses above and the validation metric below, without a window.

    The losses are on a logarithmic axis when all of them are above zero.
    """
    watched = [record for record in history.epochs if record.validation_loss is not None]
    figure = Figure(figsize=(7, 6 if watched else 3.5), layout="constrained")
    panels = figure.subplots(2 if watched else 1, sharex=True, squeeze=False)[:, 0]
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
    try:
        figure.savefig(file, dpi=110)
    except ValueError as error:  # another suffix than those it names
        raise ConfigurationError(f"{file}: {error}") from None

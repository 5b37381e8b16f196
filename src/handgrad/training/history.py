"""What happened in a training, epoch by epoch, as plain data and as a picture."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np

from handgrad.arguments import judged
from handgrad.errors import DataError
from handgrad.notebook_html import HTMLReprMixin, heading, picture


@dataclass(frozen=True)
class EpochRecord:
    """One epoch.

    Attributes
    ----------
    epoch
        Counted from 1.
    loss
        Over the training rows, while they were learned from.
    validation_loss, validation_metric
        Over the validation rows, afterwards; None when there are none.
    learning_rate, seconds
        Of the epoch's last step; that the epoch took, validation included.
    """

    epoch: int
    loss: float
    validation_loss: float | None
    validation_metric: float | None
    learning_rate: float
    seconds: float


@dataclass(frozen=True)
class BatchRecord:
    """One batch, as ``after_batch`` is called with.

    Attributes
    ----------
    epoch, batch, step
        Counted from 1, the step over all epochs.
    loss, learning_rate
        Over the batch's rows, before its update; of its step.
    """

    epoch: int
    batch: int
    step: int
    loss: float
    learning_rate: float


def requests_stop(answer: object) -> bool:
    """Whether what ``after_epoch`` returned ends the training: True, Python's or NumPy's, and nothing else."""
    return isinstance(answer, bool | np.bool_) and bool(answer)


@dataclass
class History(HTMLReprMixin):
    """A training as plain data.

    Attributes
    ----------
    metric
        What validation_metric is: "accuracy" or "r2".
    epochs
        One record each.
    stopped
        Why it ended: "finished", "early" (the validation loss no longer fell, or ``after_epoch`` returned True) or
        "interrupted"; of `train_many` also "diverged" (the loss was not finite).
    best_epoch
        With patience, the epoch of the lowest validation loss, whose weights the network has; else None: the last
        epoch's are.
    facts
        What ran: engine (with its BLAS library and threads), rows, batch size, rows per second.
    """

    metric: str
    epochs: list[EpochRecord] = field(default_factory=list)
    stopped: str = "finished"
    best_epoch: int | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        if not self.epochs:
            return f"history: no epoch, {self.stopped}"
        chosen = self.epochs[(self.best_epoch or len(self.epochs)) - 1]
        parts = [f"{len(self.epochs)} epochs", self.stopped, f"loss {chosen.loss:.4g}"]
        if chosen.validation_loss is not None and chosen.validation_metric is not None:
            parts += [
                f"validation loss {chosen.validation_loss:.4g}",
                f"{self.metric} {chosen.validation_metric:.4g}",
            ]
        return f"history: {', '.join(parts)}" + (
            f"; epoch {chosen.epoch}'s weights" if self.best_epoch else ""
        )

    def _repr_html_(self) -> str:
        if not self.epochs:
            return heading(str(self))
        file = BytesIO()
        self.plot(file)
        return heading(str(self)) + picture(file.getvalue(), "the loss, epoch by epoch")

    def to_json_lines(self) -> str:
        """Return the history as JSON Lines: a head, then one line an epoch."""
        head = {name: value for name, value in vars(self).items() if name != "epochs"}
        return "".join(json.dumps(line) + "\n" for line in (head, *map(asdict, self.epochs)))

    @classmethod
    def from_json_lines(cls, text: str, place: str = "history") -> History:
        """Read what `to_json_lines` wrote; raises `DataError` naming ``place`` when it is something else."""
        import msgspec  # only where it reads

        try:
            head, *lines = (json.loads(line) for line in text.splitlines())
            history = cls(**head, epochs=[EpochRecord(**line) for line in lines])
            return msgspec.convert(asdict(history), cls)
        except (ValueError, TypeError, RecursionError, msgspec.MsgspecError) as error:
            raise DataError(f"{place}: not a history: {error}") from None

    @judged
    def plot(self, file: str | Path | IO[bytes], *, title: str = "") -> None:
        """Draw the learning curve, loss above and metric below: a PNG, SVG or PDF, by the file's suffix.

        The losses are on a logarithmic axis when all of them are above zero.
        """
        from handgrad.training.pictures import draw_learning_curve  # matplotlib is slow to import

        draw_learning_curve(self, file, title)

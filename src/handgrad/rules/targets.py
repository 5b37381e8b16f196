"""What a loss makes of its targets and weights before it measures; no gradient passes through."""

import numpy as np

from handgrad.rules.primitives import one_hot
from handgrad.rules.rule import rule
from handgrad.rules.signature import Probabilities, State, Target, Weight

__all__ = [
    "class_weighted_rows", "counted_rows", "every_row", "one_hot_targets", "smoothed_answers",
    "smoothed_targets", "standardised_targets",
]  # fmt: skip


@rule("N..., N... C -> N... C", constant=True)
def one_hot_targets(t: Target, z):
    """Write class numbers as probabilities: 1 for the class, 0 for the others (one-hot)."""
    q = one_hot(t, z)
    return q


@rule("N... C -> N... C", constant=True)
def smoothed_targets(q: Probabilities, *, smoothing=0.1):
    """Move a little of each row's probability to all classes: ``(1 - smoothing) q + smoothing / C``.

    Source
        Szegedy, Vanhoucke, Ioffe, Shlens, Wojna, arXiv 1512.00567.
    """
    smooth = (1 - smoothing) * q + smoothing / q.shape[-1]
    return smooth


@rule("N... O -> N... O", constant=True)
def smoothed_answers(t: Target, *, smoothing=0.1):
    """Move a little of each yes-no answer to the other: ``(1 - smoothing) t + smoothing / 2``.

    Source
        As `smoothed_targets`, with two classes.
    """
    smooth = (1 - smoothing) * t + smoothing / 2
    return smooth


@rule("N... O, O, O -> N... O", constant=True)
def standardised_targets(t: Target, t_mean: State, t_deviation: State):
    """Give each output's targets mean 0 and deviation 1 over the training rows: ``s = (t - t_mean) / t_deviation``.

    Source
        LeCun, Bottou, Orr, Müller, Efficient BackProp (1998), section 4.5.
    """
    s = (t - t_mean) / t_deviation
    return s


@rule("N... C -> N...", constant=True)
def every_row(z):
    """Count every row once."""
    w = np.ones_like(z[..., 0])
    return w


@rule("N..., N... -> N...", constant=True)
def counted_rows(t: Target, w: Weight, *, ignored=-100):
    """Give the rows whose target is ``ignored`` no weight."""
    counted = w * (t != ignored)
    return counted


@rule("N..., N... C, C -> N...", constant=True)
def class_weighted_rows(w: Weight, q: Probabilities, class_weight: State):
    """Multiply each row's weight by the weight of its class."""
    v = w * (q @ class_weight)
    return v

"""Learning-rate schedules: one number for each step of the whole training, known before it starts.

The functions are plain NumPy, and a stand-alone script carries the source of the one it uses.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any

import numpy as np

from handgrad.arguments import Count, Judged, NonNegative, OneOrMore, Range
from handgrad.arrays import Array
from handgrad.layers.layer import field_values, show_call

__all__ = ["Constant", "Cosine", "OneCycle", "Schedule", "StepDecay"]


def constant_rates(learning_rate: float, epochs: int, steps: int) -> Array:
    """Return the same rate for every step of ``epochs`` of ``steps`` each."""
    return np.full(epochs * steps, learning_rate)


def step_rates(learning_rate: float, epochs: int, steps: int, every: int, factor: float) -> Array:
    """Return rates multiplied by ``factor`` every so many epochs."""
    epoch = np.arange(epochs * steps) // steps
    return learning_rate * factor ** (epoch // every)


def cosine_rates(learning_rate: float, epochs: int, steps: int, warmup: float, final: float) -> Array:
    """Return rates that rise over the first ``warmup`` epochs, then fall like half a cosine to ``final``.

    Source: Loshchilov and Hutter, arXiv 1608.03983.
    """
    step, total, rising = np.arange(epochs * steps), epochs * steps, round(warmup * steps)
    rise = learning_rate * (step + 1) / max(rising, 1)
    done = (step - rising) / max(total - rising, 1)
    fall = final + (learning_rate - final) * (1 + np.cos(np.pi * done)) / 2
    return np.where(step < rising, rise, fall)


def one_cycle_rates(
    learning_rate: float, epochs: int, steps: int, rising: float, start: float, end: float
) -> Array:
    """Return rates that rise to ``learning_rate`` over a share of the training and fall, like a cosine.

    They begin at learning_rate / start and end at learning_rate / start / end.
    Source: Smith and Topin, arXiv 1708.07120; as PyTorch's OneCycleLR.
    """
    total = epochs * steps
    step, top = np.arange(total), rising * total - 1
    low, last = learning_rate / start, learning_rate / start / end
    rise = low + (learning_rate - low) * (1 - np.cos(np.pi * step / max(top, 1))) / 2
    fall = last + (learning_rate - last) * (1 + np.cos(np.pi * (step - top) / max(total - 1 - top, 1))) / 2
    return np.where(step <= top, rise, fall)


@dataclass(frozen=True, repr=False)
class Schedule(metaclass=Judged):
    """How the learning rate changes over the training."""

    def __repr__(self) -> str:
        return show_call(self)

    def rates(self, learning_rate: float, epochs: int, steps: int) -> Array:
        """Return the learning rate of each of the ``epochs * steps`` steps."""
        return self.function(learning_rate, epochs, steps, **field_values(self))

    @property
    def function(self) -> Any:
        """The plain function of this schedule; its last arguments are this object's fields."""
        raise NotImplementedError


@dataclass(frozen=True, repr=False)
class Constant(Schedule):
    """The same rate throughout."""

    function = staticmethod(constant_rates)


@dataclass(frozen=True, repr=False)
class StepDecay(Schedule):
    """The learning rate is multiplied by a factor every few epochs.

    Parameters
    ----------
    every : int, default 10
        Epochs between two changes.
    factor : float, default 0.1
        γ, above 0 and at most 1.

    Examples
    --------
    >>> StepDecay(every=1, factor=0.5).rates(0.8, epochs=3, steps=2)
    array([0.8, 0.8, 0.4, 0.4, 0.2, 0.2])
    """

    _: KW_ONLY
    every: Count = 10
    factor: Annotated[float, Range(above=0, most=1)] = 0.1
    function = staticmethod(step_rates)


@dataclass(frozen=True, repr=False)
class Cosine(Schedule):
    """Linear warm-up, then cosine annealing (Loshchilov and Hutter, arXiv 1608.03983).

    Parameters
    ----------
    warmup : float, default 0.0
        Epochs over which the learning rate rises from near 0.
    final : float, default 0.0
        η_min, the learning rate of the end.
    """

    _: KW_ONLY
    warmup: NonNegative = 0.0
    final: NonNegative = 0.0
    function = staticmethod(cosine_rates)


@dataclass(frozen=True, repr=False)
class OneCycle(Schedule):
    """One cycle: from η / start up to η, then down to η / start / end (Smith and Topin, arXiv 1708.07120).

    Parameters
    ----------
    rising : float, default 0.3
        The share of the steps in which it rises.
    start : float, default 25.0
        η over the first learning rate.
    end : float, default 1e4
        The first learning rate over the last.
    """

    _: KW_ONLY
    rising: Annotated[float, Range(above=0, below=1)] = 0.3
    start: OneOrMore = 25.0
    end: OneOrMore = 1e4
    function = staticmethod(one_cycle_rates)

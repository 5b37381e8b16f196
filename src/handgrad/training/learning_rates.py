"""Learning rates tried on copies of a network: the range test that finds one, and a rate at which the loss stays finite."""

from __future__ import annotations

import time
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import ArrayLike

from handgrad.arguments import Count, Seed, judged
from handgrad.arrays import Array
from handgrad.engines import Epoch, NonFiniteLossError, bind
from handgrad.errors import TrainingError
from handgrad.layers import Adam, Optimiser
from handgrad.network import Network
from handgrad.training.metrics import mean_loss
from handgrad.training.rows import Subset, checked_rows

LOWEST, HIGHEST, STEPS = 1e-6, 10.0, 150  # of the range test: 21 steps for each power of ten
SMOOTHING = 0.9  # of the losses of single batches, exponentially
DIVERGED = 4.0  # times the lowest loss: the test ends
BELOW_LOWEST_LOSS = (
    10  # times: there the loss is no longer falling; on 14 trainings never worse than half of its best
)
LOWER, BETTER = 10**-0.5, 0.5  # a lower rate is taken where it comes to half of the loss in as many steps
MIN_STEPS, MAX_STEPS = 50, 300  # of a trial whether a rate stays finite
GROWN, FAR_GROWN = 2.0, 1e3  # times the first loss: finite for now, at the end and at any step
SECONDS = 2.0  # for all of these trials


@dataclass(frozen=True)
class RangeTest:
    """A learning-rate range test (Smith, arXiv 1506.01186): the loss of each batch while the rate grows.

    Attributes
    ----------
    learning_rate
        The one found: a tenth of that at which the smoothed loss was lowest, or lower where 50 steps at it alone come to
        twice the loss of as many at a third of it, as where the test was over before a rate too high for a start showed.
    rates, losses
        Of each step, up to where the loss was four times its lowest; the losses as they were.
    smooth
        The losses, smoothed exponentially.
    """

    learning_rate: float
    rates: Array
    losses: Array
    smooth: Array

    def __str__(self) -> str:
        return (
            f"learning rate {self.learning_rate:g}, found by a range test of {len(self.rates)} steps "
            f"from {self.rates[0]:.3g} to {self.rates[-1]:.3g}"
        )

    @judged
    def plot(self, file: str | Path | IO[bytes], *, title: str = "") -> None:
        """Draw the losses over the rates, with the rate found: a PNG, SVG or PDF, by the file's suffix."""
        from handgrad.training.pictures import draw_range_test  # matplotlib is slow to import

        draw_range_test(self, file, title)


@judged
def find_learning_rate(
    network: Network,
    x: ArrayLike,
    t: ArrayLike,
    *,
    optimiser: Optimiser | None = None,
    sample_weight: ArrayLike | None = None,
    batch_size: Count = 32,
    seed: Seed = 0,
    engine: str = "compiled",
) -> RangeTest:
    """Find a learning rate by a range test: 150 steps while the rate grows from 1e-6 to 10; the network stays as it is.

    Parameters
    ----------
    network
        With a loss, before training.
    x, t
        Rows and targets, as for `handgrad.train`.
    optimiser, sample_weight, batch_size, seed, engine
        As for `handgrad.train`; the optimiser's own learning rate does not matter.

    Raises
    ------
    ShapeError, DataError
        When the rows or the targets do not fit.
    TrainingError
        When the loss falls at no learning rate.

    Examples
    --------
    >>> from handgrad import Linear, Network, ReLU, SoftmaxCrossEntropy, train
    >>> from handgrad.data import moons
    >>> rows = moons()
    >>> network = Network(Linear(2, 16), ReLU(), Linear(16, 2), loss=SoftmaxCrossEntropy())
    >>> found = find_learning_rate(network, rows.x, rows.t)
    >>> 1e-3 < found.learning_rate < 1
    True
    >>> history = train(network, rows.x, rows.t, optimiser=Adam(found.learning_rate))
    """
    network = deepcopy(network)
    arrays = checked_rows(network, x, t, sample_weight)
    rows = Subset(arrays, np.arange(len(arrays["t"])))
    network.standardise(arrays["x"], arrays["t"], rows.order)
    rates = np.geomspace(LOWEST, HIGHEST, STEPS)
    losses, smooth, mean = [], [], 0.0
    trial = _Trial(network, rows, optimiser or Adam(), batch_size, seed, engine)
    for step, loss in enumerate(trial.losses(rates), 1):
        mean = SMOOTHING * mean + (1 - SMOOTHING) * loss
        losses.append(loss)
        smooth.append(mean / (1 - SMOOTHING**step))  # as if it had begun before the first
        if smooth[-1] > DIVERGED * min(smooth) or not np.isfinite(smooth[-1]):
            break
    lowest = int(np.argmin(smooth)) if smooth else 0
    if lowest == 0:
        raise TrainingError(
            f"find_learning_rate: the loss falls at no learning rate from {LOWEST:g} to {HIGHEST:g}",
            fix="look at the data: inputs and targets of mean 0 and deviation 1 are learned best",
        )
    found = _lowered(trial, rates[lowest] / BELOW_LOWEST_LOSS)
    return RangeTest(found, rates[: len(losses)], np.array(losses), np.array(smooth))


def _lowered(trial: _Trial, rate: float) -> float:
    """Return a rate that is no higher, of which a third comes to no much lower loss."""

    def loss(rate: float) -> float:
        losses = list(trial.losses(np.full(MIN_STEPS, rate)))
        return float(np.mean(losses[-MIN_STEPS // 5 :])) if len(losses) == MIN_STEPS else np.inf

    now = loss(rate)
    while rate > LOWEST and ((lower := loss(LOWER * rate)) < BETTER * now or not np.isfinite(now)):
        rate, now = LOWER * rate, lower
    return float(f"{rate:.3g}")


def steps_tried(steps: int) -> int:
    """Return for how many steps rates are tried where one was too high after ``steps``."""
    return min(max(2 * steps, MIN_STEPS), MAX_STEPS)


def largest_finite_rate(
    network: Network, rows: Subset, optimiser: Optimiser, rate: float, steps: int, batch_size: int, seed: int,
    engine: str,
) -> float | None:  # fmt: skip
    """Return the largest of some learning rates below one at which the loss stays finite, and does not grow.

    Tried from the network's weights: the tenth of the rate, its tenth and so on, and of the first that is finite five
    times and twice as much. None when none is, or two seconds are over.
    """
    count = steps_tried(steps)
    until, trial = time.monotonic() + SECONDS, _Trial(network, rows, optimiser, batch_size, seed, engine)

    def is_finite(lower: float) -> bool:
        losses: list[float] = []
        for loss in trial.losses(np.full(count, lower)):
            losses.append(loss)
            if time.monotonic() > until or not loss <= FAR_GROWN * abs(losses[0]):
                return False
        return len(losses) == count and bool(np.mean(losses[-count // 5 :]) <= GROWN * abs(losses[0]))

    tens = rate / 10.0 ** np.arange(1, 10 + np.log10(rate))  # down to 1e-9
    found = next((lower for lower in tens.tolist() if is_finite(lower)), None)
    if found is None:
        return None
    return next((found * times for times in (5, 2) if is_finite(found * times)), found)


class _Trial:
    """Steps of a training, always from the same arrays, which stay as they are."""

    def __init__(
        self, network: Network, rows: Subset, optimiser: Optimiser, batch_size: int, seed: int, engine: str
    ) -> None:
        program = network.program(optimiser, weighted="w" in rows.arrays).keeping("total", "count")
        slots = {name: np.zeros(shape, network.dtype) for name, shape in program.slots.items()}
        self.start = dict(network.arrays) | slots
        self.arrays = {name: array.copy() for name, array in self.start.items()}
        self.step = bind(engine, program, self.arrays)
        self.rows, self.batch_size, self.seed = rows, batch_size, seed

    def losses(self, rates: Array) -> Iterator[float]:
        """Yield each batch's loss before the step at its rate, until one is not finite."""
        for name, array in self.arrays.items():
            array[...] = self.start[name]
        steps = -(-len(self.rows) // self.batch_size)
        for number in range(-(-len(rates) // steps)):
            own = rates[number * steps : (number + 1) * steps]
            order = self.rows.order[np.random.default_rng([self.seed, number]).permutation(len(self.rows))]
            order = order[: len(own) * self.batch_size]
            epoch = Epoch(self.rows.arrays, order, self.batch_size, own, number * steps + 1, self.seed)
            for batch in range(len(own)):
                try:
                    yield mean_loss(*self.step.epoch(epoch.part(batch, batch + 1, 0.0, 0.0)))
                except NonFiniteLossError:
                    return

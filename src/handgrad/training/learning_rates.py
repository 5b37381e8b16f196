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
from handgrad.engines import Epoch, NonFiniteLossError, bind, check_devices
from handgrad.errors import TrainingError
from handgrad.layers import Adam, Optimiser
from handgrad.network import Network
from handgrad.program import Program
from handgrad.training.metrics import mean_loss
from handgrad.training.rows import Subset, divide_rows

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
    rows: Array | None = None,
    batch_size: Count = 32,
    micro_batch: Count | None = None,
    seed: Seed = 0,
    engine: str = "compiled",
    devices: Count | None = None,
) -> RangeTest:
    """Find a learning rate by a range test: 150 steps while the rate grows from 1e-6 to 10; the network stays as it is.

    Parameters
    ----------
    network
        With a loss, before training.
    x, t
        Rows and targets, as for `handgrad.train`.
    optimiser, sample_weight, rows, batch_size, micro_batch, seed, engine, devices
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
    check_devices(engine, devices)
    network = deepcopy(network)
    chosen, _ = divide_rows(network, x, t, sample_weight, rows, None, seed)
    network.standardise(chosen.arrays["x"], chosen.arrays["t"], chosen.order)
    program = training_program(network, optimiser or Adam(), chosen, batch_size, micro_batch)
    trial = Trial(network, program, chosen, batch_size, seed, engine, devices)
    rates = np.geomspace(LOWEST, HIGHEST, STEPS)
    losses, smooth, mean = [], [], 0.0
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
    found = trial.lowered(rates[lowest] / BELOW_LOWEST_LOSS)
    return RangeTest(found, rates[: len(losses)], np.array(losses), np.array(smooth))


def training_program(
    network: Network, optimiser: Optimiser, rows: Subset, batch_size: int, micro_batch: int | None = None
) -> Program:
    """Return the program of a training step on batches of some rows, of so many at a time where they are fewer."""
    fewer = micro_batch if micro_batch is not None and micro_batch < batch_size else None
    program = network.program(optimiser, weighted="w" in rows.arrays, micro_batch=fewer)
    return program.keeping("total", "count")


def steps_tried(steps: int) -> int:
    """Return for how many steps rates are tried where one was too high after ``steps``."""
    return min(max(2 * steps, MIN_STEPS), MAX_STEPS)


class Trial:
    """Steps of a training, always from the same arrays, which stay as they are."""

    def __init__(
        self, network: Network, program: Program, rows: Subset, batch_size: int, seed: int, engine: str,
        devices: int | None = None,
    ) -> None:  # fmt: skip
        self.start = network.arrays_for(program)
        self.arrays = {name: array.copy() for name, array in self.start.items()}
        self.step = bind(engine, program, self.arrays, devices)
        self.rows, self.batch_size, self.seed = rows, batch_size, seed

    def losses(self, rates: Array) -> Iterator[float]:
        """Yield each batch's loss before the step at its rate, until one is not finite."""
        for name, array in self.arrays.items():
            array[...] = self.start[name]
        steps = -(-len(self.rows) // self.batch_size)
        for number in range(-(-len(rates) // steps)):
            own = rates[number * steps : (number + 1) * steps]
            order = self.rows.shuffled(self.seed, number)[: len(own) * self.batch_size]
            epoch = Epoch(self.rows.arrays, order, self.batch_size, own, number * steps + 1, self.seed)
            for batch in range(len(own)):
                try:
                    yield mean_loss(*self.step.epoch(epoch.part(batch, batch + 1, 0.0, 0.0)))
                except NonFiniteLossError:
                    return

    def lowered(self, rate: float) -> float:
        """Return a rate that is no higher, of which a third comes to no much lower loss."""

        def loss(rate: float) -> float:
            losses = list(self.losses(np.full(MIN_STEPS, rate)))
            return float(np.mean(losses[-MIN_STEPS // 5 :])) if len(losses) == MIN_STEPS else np.inf

        now = loss(rate)
        while rate > LOWEST and ((lower := loss(LOWER * rate)) < BETTER * now or not np.isfinite(now)):
            rate, now = LOWER * rate, lower
        return float(f"{rate:.3g}")

    def largest_finite_rate(self, rate: float, steps: int) -> float | None:
        """Return the largest of some learning rates below one at which the loss stays finite, and does not grow.

        The tenth of the rate is tried, its tenth and so on, and of the first that is finite five times and twice as much.
        None when none is, or two seconds are over.
        """
        count, until = steps_tried(steps), time.monotonic() + SECONDS

        def is_finite(lower: float) -> bool:
            losses: list[float] = []
            for loss in self.losses(np.full(count, lower)):
                losses.append(loss)
                if time.monotonic() > until or not loss <= FAR_GROWN * abs(losses[0]):
                    return False
            return len(losses) == count and bool(np.mean(losses[-count // 5 :]) <= GROWN * abs(losses[0]))

        tens = rate / 10.0 ** np.arange(1, 10 + np.log10(rate))  # down to 1e-9
        found = next((lower for lower in tens.tolist() if is_finite(lower)), None)
        if found is None:
            return None
        return next((found * times for times in (5, 2) if is_finite(found * times)), found)

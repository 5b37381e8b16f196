"""How long a network's steps take, engine by engine, side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from handgrad.arguments import Count, Positive, Seed, judged
from handgrad.arrays import Array
from handgrad.engines import (
    DEFAULT_ENGINE,
    ENGINES,
    BoundProgram,
    Epoch,
    NonFiniteLossError,
    UnsupportedLineError,
    create,
)
from handgrad.errors import EngineError, MissingPackageError, TrainingError
from handgrad.layers import Adam, Optimiser
from handgrad.network import Network
from handgrad.program import Program
from handgrad.training.rows import checked_rows

TURNS = 10
"""How often each engine has its turn, so that what slows the machine down for a while slows all; the first warms up."""


@dataclass(frozen=True)
class EngineTime:
    """How one engine did.

    Attributes
    ----------
    engine
        Its name.
    step_seconds
        A step: one batch forward, backward and the update; the median of the turns. None when it cannot run it.
    spread
        The slowest turn's step over the fastest's: far above 1 when something else used the machine.
    startup_seconds
        From asking for the engine to the end of its first step: importing what it needs, and compiling what has
        not been compiled on this machine before.
    steps
        How many were timed.
    ratio
        How many times the fastest engine's step.
    rows_per_second
        From the step's time.
    facts
        What ran: ``engine``, and what else the engine reports.
    problem
        Why it cannot run the network; "" when it can.
    """

    engine: str
    step_seconds: float | None = None
    spread: float | None = None
    startup_seconds: float = 0.0
    steps: int = 0
    ratio: float | None = None
    rows_per_second: float | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""


@judged
def measure_engines(
    network: Network,
    x: ArrayLike,
    t: ArrayLike,
    *,
    engines: Sequence[str] | None = None,
    batch_size: Count = 32,
    optimiser: Optimiser | None = None,
    devices: Count | None = None,
    seconds: Positive = 1.0,
    seed: Seed = 0,
    progress: Callable[[str, float], None] | None = None,
) -> list[EngineTime]:
    """Time steps of a network's training with each engine, in turns; the network stays as it is.

    Parameters
    ----------
    network
        With a loss.
    x, t
        Rows and targets, as for `handgrad.train`.
    engines
        Names; all there are when not given.
    batch_size, optimiser, devices
        As for `handgrad.train`.
    seconds
        How long each engine runs, about.
    seed
        Of the order of rows and the random masks.
    progress
        Called before each turn with the engine's name and the share that is done, from 0 to 1.

    Returns
    -------
    list of EngineTime
        In the order of ``engines``; one that cannot run the network is there with the reason.

    Raises
    ------
    ShapeError, DataError, ConfigurationError
        When the rows, the targets or a setting do not fit.
    TrainingError
        When the loss is not finite.

    Examples
    --------
    >>> from handgrad import Linear, Network, ReLU, SoftmaxCrossEntropy
    >>> from handgrad.data import xor
    >>> rows = xor(rows=400)
    >>> network = Network(Linear(2, 16), ReLU(), Linear(16, 2), loss=SoftmaxCrossEntropy())
    >>> (timed,) = measure_engines(network, rows.x, rows.t, engines=["reference"], seconds=0.05)
    >>> timed.engine, timed.ratio, timed.step_seconds > 0
    ('reference', 1.0, True)
    """
    names = list(ENGINES if engines is None else engines)
    optimiser, network = optimiser or Adam(), deepcopy(network)
    epoch = _whole_batches(checked_rows(network, x, t), batch_size, optimiser, seed)
    network.standardise(epoch.arrays["x"], epoch.arrays["t"], epoch.order)
    program = network.program(optimiser).keeping("total", "count")
    arrays = network.arrays_for(program)
    report = progress or (lambda name, share: None)
    runners, times = {}, {}
    for name in names:
        report(name, 0.0)
        try:
            runners[name] = _TimedEngine(name, devices, program, arrays, epoch)
        except MissingPackageError as error:
            if engines is not None or name == DEFAULT_ENGINE:  # an extra that nobody asked for is left out
                times[name] = EngineTime(name, problem=str(error))
        except (UnsupportedLineError, EngineError) as error:
            times[name] = EngineTime(name, problem=str(error))
    turns = [(turn, name) for turn in range(TURNS) for name in runners]
    for number, (turn, name) in enumerate(turns):
        report(name, number / len(turns))
        runners[name].turn(seconds / TURNS, counted=turn > 0)
    steps = {name: float(np.median(runner.turns)) for name, runner in runners.items()}
    for name, step in steps.items():
        runner = runners[name]
        times[name] = EngineTime(
            name, step, spread=max(runner.turns) / min(runner.turns), startup_seconds=runner.startup,
            steps=runner.steps, ratio=step / min(steps.values()), rows_per_second=epoch.batch_size / step,
            facts=runner.bound.facts,
        )  # fmt: skip
    return [times[name] for name in names if name in times]


def _whole_batches(arrays: dict[str, Array], batch_size: int, optimiser: Optimiser, seed: int) -> Epoch:
    """Return what every engine runs, in whole batches: a step is a step."""
    rows = np.random.default_rng(seed).permutation(len(arrays["t"]))
    batch_size = min(batch_size, len(rows))
    steps = len(rows) // batch_size
    rates = np.full(steps, optimiser.learning_rate)
    return Epoch(arrays, rows[: steps * batch_size], batch_size, rates, 1, seed)


class _TimedEngine:
    """One engine with the program bound to arrays of its own."""

    def __init__(
        self, name: str, devices: int | None, program: Program, arrays: Mapping[str, Array], epoch: Epoch
    ) -> None:
        self.start, self.epoch = arrays, epoch
        self.arrays = {key: array.copy() for key, array in arrays.items()}
        self.turns: list[float] = []
        self.steps = 0
        started = time.perf_counter()
        self.bound: BoundProgram = create(name, devices).bind(program, self.arrays)
        self.known = self.run(1)
        self.startup = time.perf_counter() - started

    def run(self, steps: int) -> float:
        """Run so many steps of the epoch; return how long one took."""
        started = time.perf_counter()
        try:
            self.bound.epoch(self.epoch.part(0, steps, 0.0, 0.0))
        except NonFiniteLossError as error:
            raise TrainingError(
                f"the loss of step {error.batch + 1} is not finite", fix="try a smaller learning rate"
            ) from None
        return (time.perf_counter() - started) / steps

    def turn(self, seconds: float, *, counted: bool) -> None:
        """Run steps for some time, an epoch's at most at once, from the weights of the beginning."""
        spent, steps = 0.0, 0
        while spent < seconds:
            for name, array in self.arrays.items():
                array[...] = self.start[name]
            count = min(len(self.epoch), max(1, int(seconds / self.known)))
            self.known = max(self.run(count), 1e-9)
            spent, steps = spent + count * self.known, steps + count
        if counted:
            self.turns.append(spent / steps)
            self.steps += steps

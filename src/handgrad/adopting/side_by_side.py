"""An author's training and handgrad's on the same rows: the losses after every step, and how long a step takes."""

from __future__ import annotations

import copy
import time
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import numpy as np

from handgrad.adopting.author import AdoptError, Author
from handgrad.adopting.author_steps import RATE, GradientSteps, Steps
from handgrad.adopting.traced_values import Array
from handgrad.engines import DEFAULT_ENGINE, BoundProgram, Epoch, NonFiniteLossError, bind
from handgrad.layers import SGD
from handgrad.network import Network
from handgrad.tolerance import close

SAME = 1e-6  # relative: the author's update is SGD with these numbers, or it is not
EQUAL = 1e-8  # of a loss: rounding, after some steps
TURNS = 5  # in which both are timed, one after the other, after one that warms up
SECONDS = 0.1  # of a turn
FEW, MOST = 16, 20_000  # steps of a turn


@dataclass(frozen=True)
class SideBySide:
    """Two trainings from the same weights, on the same rows in the same order."""

    author: tuple[float, ...]  # the losses after 0, 1, … steps
    handgrad: tuple[float, ...]
    words: str  # what a step of the author's is
    own: bool  # whether the update is the author's
    optimiser: SGD  # for the network's loss
    rate: float  # the author's
    trained: bool  # whether the author's update was recognised
    batch_size: int
    author_seconds: float  # of a step
    handgrad_seconds: float
    engine: str

    @property
    def ratio(self) -> float:
        """How many times longer the author's step takes."""
        return self.author_seconds / self.handgrad_seconds

    @property
    def equal(self) -> bool:
        """Whether all losses are equal up to rounding."""
        return close(self.author, self.handgrad, EQUAL)


def compare_steps(
    author: Author, steps: Steps, network: Network, factor: float, rows: tuple[Array, Array], count: int
) -> SideBySide:
    """Train both for some steps, and time both; the network stays as it is."""
    moves = _moves(steps, max(count, 2))
    rate, momentum, recognised = _update(author, steps, moves)
    optimiser = SGD(rate * factor, momentum=momentum)
    bound = _bound(network, optimiser)
    losses = tuple(author.loss({**author.inputs, **now}) for now in moves[: count + 1])
    averages = getattr(network.loss, "reduction", "mean") == "mean"
    ours = _losses(bound, rows, optimiser, count, factor, averages=averages)
    author_seconds, own_seconds = _timed(steps, network, optimiser, rows)
    return SideBySide(
        author=losses,
        handgrad=ours,
        words=steps.words,
        own=not isinstance(steps, GradientSteps),
        optimiser=optimiser,
        rate=rate,
        trained=recognised,
        batch_size=len(rows[0]),
        author_seconds=author_seconds,
        handgrad_seconds=own_seconds,
        engine=str(bound.facts["engine"]),
    )


def _moves(steps: Steps, count: int) -> list[dict[str, Array]]:
    """Return the author's parameters after 0, 1, … steps."""
    moves = [steps.parameters()]
    with suppress(AdoptError):  # a gradient of another shape: the author's training ends there
        for _ in range(count):
            steps.advance()
            moves.append(steps.parameters())
    return moves


def _update(author: Author, steps: Steps, moves: list[dict[str, Array]]) -> tuple[float, float, bool]:
    """Return learning rate and momentum, and whether the author's steps are those of SGD with the right gradient."""

    def flat(values: dict[str, Array]) -> Array:
        return np.concatenate([values[n].ravel() for n in moved])

    given = steps.rate if isinstance(steps, GradientSteps) else RATE
    if len(moves) < 3:
        return given, 0.0, False
    moved = [n for n in moves[0] if not np.array_equal(moves[0][n], moves[1][n])]
    if not moved:
        return given, 0.0, not moves[0]
    deltas = [flat(a) - flat(b) for a, b in pairwise(moves)]
    for gradients in (_right, Author.gradients):
        first, second = (flat(gradients(author, {**author.inputs, **now})) for now in moves[:2])
        rate = float(deltas[0] @ first / (first @ first))
        is_given = not isinstance(steps, GradientSteps) or close(rate, given, SAME)
        if not close(deltas[0], rate * first, SAME) or rate <= 0 or not is_given:
            continue
        left = deltas[1] - rate * second
        momentum = float(left @ deltas[0] / (deltas[0] @ deltas[0]))
        if abs(momentum) < SAME or not 0 < momentum < 1 or not close(left, momentum * deltas[0], SAME):
            momentum = 0.0
        return _short(rate), _short(momentum), gradients is _right
    return given, 0.0, False


def _right(author: Author, inputs: dict[str, Array]) -> dict[str, Array]:
    found = author.right_gradients(inputs)
    zeros = {n: np.zeros(np.shape(inputs[n])) for n in author.trace.inputs}
    return {n: found.get(i, zeros[n]) + zeros[n] for n, i in author.trace.inputs.items()}


def _short(number: float) -> float:
    short = float(f"{number:.6g}")
    return short if abs(short - number) < SAME * abs(number) else number


def _bound(network: Network, optimiser: SGD) -> BoundProgram:
    program = network.program(optimiser)
    return bind(DEFAULT_ENGINE, program, copy.deepcopy(network.arrays_for(program)))


def _epoch(rows: tuple[Array, Array], optimiser: SGD, steps: int, first: int) -> Epoch:
    n = len(rows[0])
    order = np.tile(np.arange(n), steps)
    rates = np.full(steps, optimiser.learning_rate)
    return Epoch({"x": rows[0], "t": rows[1]}, order, n, rates, first)


def _losses(
    bound: BoundProgram,
    rows: tuple[Array, Array],
    optimiser: SGD,
    count: int,
    factor: float,
    *,
    averages: bool,
) -> tuple[float, ...]:
    """Return the losses after 0, 1, … steps: that of a step is the loss before its update."""
    losses = []
    for first in range(1, count + 2):
        try:
            total, n = bound.epoch(_epoch(rows, optimiser, 1, first))
        except NonFiniteLossError:
            raise AdoptError(
                f"the training diverges: its loss is not finite after {first - 1} of {count} steps at a learning rate of "
                f"{optimiser.learning_rate / factor:g}",
                fix="lower the learning rate in the file, or compare fewer steps: --steps 1",
            ) from None
        losses.append(factor * total / (n if averages else 1))
    return tuple(losses)


def _timed(steps: Steps, network: Network, optimiser: SGD, rows: tuple[Array, Array]) -> tuple[float, float]:
    """Return the median seconds of a step of each, timed in turns."""
    bound = _bound(network, optimiser)
    steps.seconds()  # what a first call prepares
    ours, theirs = [], []
    repeats = FEW
    for turn in range(TURNS + 1):
        started = time.perf_counter()
        times = [steps.seconds()]
        while time.perf_counter() - started < SECONDS:
            times.append(steps.seconds())
        epoch = _epoch(rows, SGD(1e-12), repeats, 1)
        started = time.perf_counter()
        bound.epoch(epoch)
        each = (time.perf_counter() - started) / repeats
        if turn:
            theirs.append(median(times))
            ours.append(each)
        repeats = int(min(MOST, max(FEW, SECONDS / max(each, 1e-8))))
    return median(theirs), median(ours)

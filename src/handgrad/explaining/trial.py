"""A learning rate, tried: a few steps from the starting weights, against the same steps made shorter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.engines import ReferenceEngine
from handgrad.layers import Optimiser
from handgrad.network import Network

Array = NDArray[Any]

STEPS, BATCHES = 20, 4  # five times over the rows, a quarter of them at a time
LEAST_ROWS = 16  # below, a batch would be a handful of rows, and its noise longer than a step
SHORTER = (
    0.1,
    0.01,
)  # of the learning rate; one of them trains well where it is up to a thousand times too high
MOST_WORK = 3e8  # products of a parameter and a row in all runs: about a second of NumPy
WORST = 1e12  # stands for a loss that is no longer finite


@dataclass(frozen=True)
class Trial:
    """What a few steps did to the loss of rows the network was about to learn from.

    Attributes
    ----------
    learning_rate
        That was tried.
    start
        The loss of the first rows, before any step.
    loss
        The mean over the later steps, at that learning rate.
    better_rate, better_loss
        The best of the shorter ones, and the same mean there.
    times_worse
        How many times the loss is the better one: of the means and of the medians, whichever is less, so that
        neither one wild step nor one lucky row decides.
    updates
        For each matrix of weights, the length of the first update as a share of the weights' own.
    """

    learning_rate: float
    start: float
    loss: float
    better_rate: float
    better_loss: float
    times_worse: float
    updates: dict[str, float]


def try_learning_rate(network: Network, optimiser: Optimiser, given: dict[str, Array]) -> Trial | None:
    """Take a few steps from the network's starting weights, on copies; None where there are too few rows.

    From the starting weights, because there the optimiser's slots are known: all zero.
    """
    rows, rate = len(given["x"]), optimiser.learning_rate
    size = sum(array.size for array in network.parameters.values())
    if rows < LEAST_ROWS or (1 + len(SHORTER)) * STEPS * size * rows / BATCHES > MOST_WORK:
        return None
    losses, updates = _losses(network, optimiser, given, rate)
    later = losses[BATCHES:]
    others = {
        share * rate: _losses(network, optimiser, given, share * rate)[0][BATCHES:] for share in SHORTER
    }
    better_rate = min(others, key=lambda shorter: float(others[shorter].mean()))
    better = others[better_rate]
    worse = min(_ratio(float(of(later)), float(of(better))) for of in (np.mean, np.median))
    return Trial(
        rate, float(losses[0]), float(later.mean()), better_rate, float(better.mean()), worse, updates
    )


def _ratio(loss: float, other: float) -> float:
    """Return how many times as large a loss is; one that can be below 0 is compared with nothing."""
    return loss / other if other > 0 else (0.0 if loss <= 0 else WORST)


def _losses(
    network: Network, optimiser: Optimiser, given: dict[str, Array], rate: float
) -> tuple[Array, dict[str, float]]:
    """Return each batch's loss before it was learned from, and what the first update changed."""
    program = network.program(optimiser, weighted="w" in given).keeping("total", "count")
    start = network.program(weighted="w" in given).initial(network.seed)
    kept = {**{name: array.copy() for name, array in start.items()}, **_copied(network.states)}
    kept |= {name: np.zeros(shape, network.dtype) for name, shape in program.slots.items()}
    bound = ReferenceEngine().bind(program, kept)
    order = np.random.default_rng(0).permutation(len(given["x"]))
    losses = np.full(STEPS, WORST)
    updates: dict[str, float] = {}
    for step, rows in enumerate(np.array_split(order, BATCHES) * (STEPS // BATCHES)):
        batch = {name: array[rows] for name, array in given.items()}
        try:
            outputs = bound.run(**batch, learning_rate=rate, step=step + 1, seed=0)
        except FloatingPointError:
            break
        losses[step] = min(float(outputs["total"]) / max(float(outputs["count"]), 1e-30), WORST)
        if step == 0:
            updates = {name: _change(kept[name], start[name]) for name in network.parameters}
    return losses, updates


def _copied(arrays: Mapping[str, Array]) -> dict[str, Array]:
    return {name: array.copy() for name, array in arrays.items()}


def _change(now: Array, before: Array) -> float:
    """Return how far an array has moved, as a share of its own length; 0 for one that began at 0."""
    length = float(np.linalg.norm(before))
    return float(np.linalg.norm(now - before)) / length if length > 0 else 0.0

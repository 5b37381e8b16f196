"""A learning rate, tried: a few steps from the starting weights, against the same steps a tenth as long."""

from __future__ import annotations

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
MOST_WORK = 2e8  # products of a parameter and a row in both runs: about a second of NumPy
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
    loss, loss_of_a_tenth
        The mean over the later steps, at the learning rate and at a tenth of it.
    times_worse
        How many times the loss is that of the shorter steps: of the means and of the medians, whichever is
        less, so that neither one wild step nor one lucky row decides.
    updates
        For each matrix of weights, the length of the first update as a share of the weights' own.
    """

    learning_rate: float
    start: float
    loss: float
    loss_of_a_tenth: float
    times_worse: float
    updates: dict[str, float]


def try_learning_rate(network: Network, optimiser: Optimiser, given: dict[str, Array]) -> Trial | None:
    """Take a few steps from the network's starting weights, on copies; None where there are too few rows.

    From the starting weights, because there the optimiser's slots are known: all zero.
    """
    rows = len(given["x"])
    size = sum(array.size for array in network.parameters.values())
    if rows < LEAST_ROWS or 2 * STEPS * size * rows / BATCHES > MOST_WORK:
        return None
    full, updates = _losses(network, optimiser, given, optimiser.learning_rate)
    tenth, _ = _losses(network, optimiser, given, optimiser.learning_rate / 10)
    later, later_tenth = full[BATCHES:], tenth[BATCHES:]
    worse = min(_ratio(float(of(later)), float(of(later_tenth))) for of in (np.mean, np.median))
    return Trial(
        optimiser.learning_rate,
        float(full[0]),
        float(later.mean()),
        float(later_tenth.mean()),
        worse,
        updates,
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


def _copied(arrays: dict[str, Array]) -> dict[str, Array]:
    return {name: array.copy() for name, array in arrays.items()}


def _change(now: Array, before: Array) -> float:
    """Return how far an array has moved, as a share of its own length; 0 for one that began at 0."""
    length = float(np.linalg.norm(before))
    return float(np.linalg.norm(now - before)) / length if length > 0 else 0.0

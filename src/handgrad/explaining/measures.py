"""What health is judged on: derivatives of activations, agreement of rows, and a test of the learning rate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.engines import ReferenceEngine
from handgrad.explaining.execution import Execution
from handgrad.layers import Node, Optimiser
from handgrad.network import Network
from handgrad.program.lines_in_python import run_lines
from handgrad.tolerance import reordered

Array = NDArray[Any]

MIN_ROWS = 16  # of fewer, half a layer may be off by chance, and a quarter of them is too noisy a batch

NEAR, FAR = 3.0, 30.0  # where an activation is steepest, and where it is flat if it ever is
OFF = 1e-3  # of the steepest derivative: less passes no gradient (LeakyReLU's 0.01 does)
FLAT = 0.01  # of the steepest derivative: tanh beyond ±3, sigmoid beyond ±6


@dataclass(frozen=True)
class ActivationSlopes:
    """The derivatives of one elementwise rule at every entry of a batch, rows down and units across.

    ``steepness`` is relative to the steepest derivative near 0, and ``levels_off`` whether the rule is flat far out on both
    sides, as tanh is and ReLU is not.
    """

    node: Node
    steepness: Array
    levels_off: bool

    @property
    def source(self) -> str:
        """The name of the rule's argument."""
        return self.node.inputs[0].name

    @cached_property
    def off(self) -> Array:
        """Which units pass no gradient for any row."""
        return np.asarray((self.steepness < OFF).all(axis=0))

    @property
    def flat_share(self) -> float:
        """The share of entries where it is flat."""
        return float((self.steepness < FLAT).mean())


def measure_activations(execution: Execution) -> Iterator[ActivationSlopes]:
    """Yield the derivatives of every elementwise rule of a network.

    That it is elementwise is found in its numbers: the gradient of any upstream is the upstream times the gradient of
    ones. So a rule of the user's own is measured like any other.
    """
    for node in execution.nodes:
        if node.part != "forward" or len(node.inputs) != 1 or node.rule.differentiable == ():
            continue
        z = np.asarray(execution.values[node.inputs[0].name])
        if node.output.shape != node.inputs[0].shape or not np.isfinite(z).all():
            continue
        slopes = slopes_at(node, z)
        if slopes is not None:
            yield slopes


def slopes_at(node: Node, z: Array) -> ActivationSlopes | None:
    """Return a rule's derivatives at ``z``; None when it is not elementwise."""
    slope, upstream = _gradient(node, np.ones_like(z), z), np.random.default_rng(0).normal(size=z.shape)
    if not reordered(_gradient(node, upstream.astype(z.dtype), z), upstream.astype(z.dtype) * slope):
        return None
    near, far = (np.linspace(-reach, reach, 601).reshape(-1, *[1] * (z.ndim - 1)) for reach in (NEAR, FAR))
    steepest = float(np.abs(_gradient(node, np.ones_like(near), near)).max())
    ends = np.abs(_gradient(node, np.ones_like(far), far)).ravel()[[0, -1]]
    if not 0 < steepest < np.inf:
        return None
    steepness = np.abs(slope).reshape(-1, z.shape[-1]) / steepest
    return ActivationSlopes(node, steepness, bool((ends < FLAT * steepest).all()))


def _gradient(node: Node, upstream: Array, z: Array) -> Array:
    (name,) = node.rule.differentiable
    with np.errstate(all="ignore"):
        return np.asarray(node.rule.gradients(upstream, z, **node.options)[name])


ROW_GRADIENT = "dl"  # the gradient of each row's loss: all backward lines after it are linear in it
MAX_ROW_GRADIENTS = 2**26  # numbers of the gradients of single rows together: a second or so


def agreement_of_rows(execution: Execution, names: Sequence[str]) -> dict[str, float]:
    """Return, for each parameter, the norm of the rows' summed gradients over the sum of their norms.

    1 where the rows' gradients have the same direction, near 0 where they cancel. The gradient of one row is what
    the backward lines give when every other row's upstream gradient is 0; {} where that would be too many numbers.
    """
    lines = execution.backward
    first = next((number for number, line in enumerate(lines) if line.target == ROW_GRADIENT), None)
    size = sum(np.size(execution.values[name]) for name in names)
    if first is None or size * execution.rows > MAX_ROW_GRADIENTS:
        return {}
    upstream = np.asarray(execution.values[ROW_GRADIENT])
    norms = dict.fromkeys(names, 0.0)
    for row in range(execution.rows):
        own = np.zeros_like(upstream)
        own[row] = upstream[row]
        scope = run_lines(lines[first + 1 :], execution.values | {ROW_GRADIENT: own})
        for name in names:
            norms[name] += float(np.linalg.norm(scope[f"d{name}"]))
    return {
        name: float(np.linalg.norm(execution.values[f"d{name}"])) / norm
        for name, norm in norms.items()
        if norm > 0
    }


STEPS, BATCHES = 20, 4  # five epochs over the rows, a quarter of them at a time
SHORTER = (0.1, 0.01)  # of the learning rate: one of them trains well where it is up to 1000 times too high
MAX_WORK = 3e8  # products of a parameter and a row in all runs: about a second of NumPy
WORST = 1e12  # in place of a loss that is not finite


@dataclass(frozen=True)
class LearningRateTrial:
    """What a few steps did to the loss of the next batch.

    ``start`` is the loss before any step, ``loss`` the mean over the later steps, and ``better_loss`` the same at the best
    shorter rate. ``times_worse`` is the ratio of the means or of the medians, whichever is less, so that neither one wild
    step nor one lucky row decides. ``updates`` are the norms of the first updates relative to those of the parameters.
    """

    learning_rate: float
    start: float
    loss: float
    better_rate: float
    better_loss: float
    times_worse: float
    updates: dict[str, float]


def try_learning_rate(
    network: Network, optimiser: Optimiser, given: dict[str, Array]
) -> LearningRateTrial | None:
    """Take a few steps from the network's initial weights, on copies; None where there are too few rows.

    From the initial weights, because there the optimiser's slots are known: all zero.
    """
    rows, rate = len(given["x"]), optimiser.learning_rate
    size = sum(array.size for array in network.parameters.values())
    if rows < MIN_ROWS or (1 + len(SHORTER)) * STEPS * size * rows / BATCHES > MAX_WORK:
        return None
    losses, updates = _losses(network, optimiser, given, rate)
    later = losses[BATCHES:]
    others = {
        share * rate: _losses(network, optimiser, given, share * rate)[0][BATCHES:] for share in SHORTER
    }
    better_rate = min(others, key=lambda shorter: float(others[shorter].mean()))
    better = others[better_rate]
    worse = min(_ratio(float(of(later)), float(of(better))) for of in (np.mean, np.median))
    return LearningRateTrial(
        rate, float(losses[0]), float(later.mean()), better_rate, float(better.mean()), worse, updates
    )


def _ratio(loss: float, other: float) -> float:
    """Return how many times as large a loss is; a ratio to one that is not above 0 means nothing."""
    return loss / other if other > 0 else (0.0 if loss <= 0 else WORST)


def _losses(
    network: Network, optimiser: Optimiser, given: dict[str, Array], rate: float
) -> tuple[Array, dict[str, float]]:
    """Return each batch's loss before its step, and what the first update changed."""
    program = network.program(optimiser, weighted="w" in given).keeping("total", "count")
    start = network.program(weighted="w" in given).initial(network.seed)
    arrays = _copies(start) | _copies(network.states)
    arrays |= {name: np.zeros(shape, network.dtype) for name, shape in program.slots.items()}
    bound = ReferenceEngine().bind(program, arrays)
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
            updates = {name: _change(arrays[name], start[name]) for name in network.parameters}
    return losses, updates


def _copies(arrays: Mapping[str, Array]) -> dict[str, Array]:
    return {name: array.copy() for name, array in arrays.items()}


def _change(now: Array, before: Array) -> float:
    """Return the norm of an array's change relative to its own; 0 for one that was 0."""
    norm = float(np.linalg.norm(before))
    return float(np.linalg.norm(now - before)) / norm if norm > 0 else 0.0

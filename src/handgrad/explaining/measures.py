"""What health is judged on: the derivatives of activations, and a trial of the learning rate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.engines import ReferenceEngine
from handgrad.explaining.execution import Execution
from handgrad.layers import Node, Optimiser
from handgrad.network import Network
from handgrad.tolerance import reordered

Array = NDArray[Any]

MIN_ROWS = 16  # of fewer, half a layer may be off by chance, and a quarter of them is too noisy a batch

NEAR, FAR = 3.0, 30.0  # where an activation is steepest, and where it is flat if it ever is
OFF = 1e-3  # of the steepest derivative: less passes no gradient (LeakyReLU's 0.01 does)
FLAT = 0.01  # of the steepest derivative: tanh beyond ±3, sigmoid beyond ±6


@dataclass(frozen=True)
class ActivationSlopes:
    """The derivatives of one elementwise rule at every entry of a batch."""

    node: Node
    before: Node  # the rule whose output it takes, or the rule itself
    steepness: Array  # relative to the steepest derivative near 0, rows down and units across
    levels_off: bool  # whether the rule is flat far out on both sides, as tanh is and ReLU is not

    @property
    def source(self) -> str:
        """The name of the rule's argument."""
        return self.node.inputs[0].name

    @property
    def weights(self) -> str:
        """The name of the matrix of the rule before, or ""."""
        return weights_of(self.before)

    @property
    def bias(self) -> str:
        """The name of what the rule before adds to every row, or ""."""
        vectors = [v.name for v in self.before.inputs if v.kind == "parameter" and len(v.shape) == 1]
        return vectors[-1] if vectors else ""

    @property
    def input(self) -> str:
        """The name of what the rule before takes."""
        return self.before.inputs[0].name

    @cached_property
    def off(self) -> Array:
        """Which units pass no gradient for any row."""
        return np.asarray((self.steepness < OFF).all(axis=0))

    @property
    def flat_share(self) -> float:
        """The share of entries where it is flat."""
        return float((self.steepness < FLAT).mean())


def weights_of(node: Node) -> str:
    """Return the name of a rule's matrix, or ""."""
    return next((v.name for v in node.inputs if v.kind == "parameter" and len(v.shape) > 1), "")


def measure_activations(execution: Execution) -> Iterator[ActivationSlopes]:
    """Yield the derivatives of every elementwise rule of a network, those of the user's own included."""
    for node in execution.nodes:
        if node.part != "forward" or len(node.inputs) != 1 or node.rule.differentiable == ():
            continue
        z = np.asarray(execution.values[node.inputs[0].name])
        if node.output.shape == node.inputs[0].shape and np.isfinite(z).all():
            before = execution.node_of(node.inputs[0].name) or node
            if (slopes := slopes_at(node, before, z)) is not None:
                yield slopes


def slopes_at(node: Node, before: Node, z: Array) -> ActivationSlopes | None:
    """Return a rule's derivatives at ``z``; None when it is not elementwise.

    It is when the gradient of any upstream is the upstream times the gradient of ones.
    """
    slope, upstream = _gradient(node, np.ones_like(z), z), np.random.default_rng(0).normal(size=z.shape)
    if not reordered(_gradient(node, upstream.astype(z.dtype), z), upstream.astype(z.dtype) * slope):
        return None
    near, far = (np.linspace(-reach, reach, 601).reshape(-1, *[1] * (z.ndim - 1)) for reach in (NEAR, FAR))
    steepest = float(np.abs(_gradient(node, np.ones_like(near), near)).max())
    ends = np.abs(_gradient(node, np.ones_like(far), far)).ravel()[[0, -1]]
    if not 0 < steepest < np.inf:
        return None
    steepness = np.abs(slope).reshape(-1, z.shape[-1]) / steepest
    return ActivationSlopes(node, before, steepness, bool((ends < FLAT * steepest).all()))


def _gradient(node: Node, upstream: Array, z: Array) -> Array:
    (name,) = node.rule.differentiable
    with np.errstate(all="ignore"):
        return np.asarray(node.rule.gradients(upstream, z, **node.options)[name])


STEPS, BATCHES = 20, 4  # five epochs over the rows, a quarter of them at a time
SHORTER = (0.1, 0.01)  # of the learning rate: one of them trains well where it is up to 1000 times too high
STILL_SHORTER = (1e-3, 1e-4, 1e-5, 1e-6)  # tried one after the other where the loss falls at none of those
MAX_WORK = 3e8  # products of a parameter and a row in all runs: about a second of NumPy
WORST = 1e12  # in place of a loss that is not finite


@dataclass(frozen=True)
class LearningRateTrial:
    """What a few steps did to the loss of the next batch."""

    start: float  # the loss before any step
    loss: float  # the mean over the later steps
    better_rate: float  # the best of the shorter ones
    better_loss: float  # below ``start``, unless the loss falls at none of them
    times_worse: (
        float  # by the means or the medians, whichever is less: one wild step or lucky row decides neither
    )
    updates: dict[str, float]  # norms of the first updates, relative to those of the parameters


def try_learning_rate(
    network: Network, optimiser: Optimiser, given: dict[str, Array]
) -> LearningRateTrial | None:
    """Take a few steps on copies; None where there are too few rows.

    They start at the initial weights, because there the optimiser's slots are known: all zero.
    """
    rows, rate = len(given["x"]), optimiser.learning_rate
    size = sum(array.size for array in network.parameters.values())
    if rows < MIN_ROWS or (1 + len(SHORTER)) * STEPS * size * rows / BATCHES > MAX_WORK:
        return None
    losses, updates = _losses(network, optimiser, given, rate)
    start, later = float(losses[0]), losses[BATCHES:]

    def shorter(share: float) -> tuple[float, Array]:
        return share * rate, _losses(network, optimiser, given, share * rate)[0][BATCHES:]

    better_rate, better = min(map(shorter, SHORTER), key=_mean)
    for share in STILL_SHORTER:
        if better.mean() < start:
            break
        better_rate, better = min((better_rate, better), shorter(share), key=_mean)
    worse = min(_ratio(float(of(later)), float(of(better))) for of in (np.mean, np.median))
    return LearningRateTrial(start, float(later.mean()), better_rate, float(better.mean()), worse, updates)


def _mean(tried: tuple[float, Array]) -> float:
    """Return the mean loss at a learning rate that was tried."""
    return float(tried[1].mean())


def _ratio(loss: float, other: float) -> float:
    """Return how many times as large a loss is; a ratio to one that is not above 0 means nothing."""
    return loss / other if other > 0 else (0.0 if loss <= 0 else WORST)


def _losses(
    network: Network, optimiser: Optimiser, given: dict[str, Array], rate: float
) -> tuple[Array, dict[str, float]]:
    """Return each batch's loss before its step, and the relative norm of each first update."""
    program = network.program(optimiser, weighted="w" in given).keeping("total", "count")
    start = program.initial(network.seed)
    arrays = {
        name: array.copy()
        for name, array in (network.arrays_for(program) | start | dict(network.states)).items()
    }
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
            norms = {name: np.linalg.norm(start[name]) for name in network.parameters}
            updates = {
                name: float(np.linalg.norm(arrays[name] - start[name]) / norm) if norm > 0 else 0.0
                for name, norm in norms.items()
            }
    return losses, updates

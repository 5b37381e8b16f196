"""The health of a network on one batch: what is dead, saturated, vanishing or symmetric, why, and what to change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.explaining.execution import Execution
from handgrad.explaining.measures import (
    MIN_ROWS,
    ActivationSlopes,
    LearningRateTrial,
    measure_activations,
    slopes_at,
    try_learning_rate,
    weights_of,
)
from handgrad.explaining.record import Health, HealthFinding, LayerHealth
from handgrad.layers import Node, Optimiser
from handgrad.network import Network
from handgrad.tolerance import close
from handgrad.training.metrics import r_squared

Array = NDArray[Any]
Cause = tuple[str, str]  # and what to change

# Each threshold is between what healthy networks were seen to reach (sixteen kinds, three optimisers, eight
# seeds, from the start to the end of training) and what networks made ill on purpose reach.
DEAD_SHARE = 0.97  # deep He networks on similar rows: up to 0.75; a layer that is dead: 1
DEAD_BY_BIAS_SHARE = 0.3  # off, and on without the bias; healthy: up to 0.13; half a layer: 0.5
SATURATED_SHARE = 0.65  # healthy: up to 0.33; weights 30 times as large: 0.88
VANISHING, EXPLODING = 1e-3, 1e3  # first gradient over last; healthy: 0.08 to 22; ill: 1e-5 and less
TIMES_WORSE = 6.0  # than a learning rate ten or a hundred times lower; suitable rates: up to 2.6, ten times too high: 16
SMALL_UPDATE = 1e-7  # of the weights: what float32 hardly resolves; suitable rates: 1e-4 to 0.1
CONFLICTING_SHARE = 0.25  # of rows whose very inputs come again with another target
GROWN = 3.0  # times as large as at the start: weights that healthy training does not reach
LARGE_INPUT = 5.0  # root mean square of a layer's input; standardised rows have 1
LARGE_TARGET = 1e3  # root mean square of targets as they are; healthy: 160, prices in thousands


def measure_health(
    execution: Execution, network: Network | None = None, optimiser: Optimiser | None = None
) -> Health:
    """Measure a network's health on a batch, and name what is wrong with its cause.

    Weights are compared with those that the network started with; with an optimiser, a few steps are tried on copies.
    """
    batch = _Batch(execution, network, optimiser)
    with np.errstate(all="ignore"):  # numbers that are not finite are left out
        return Health(tuple(_layers(batch)), tuple(_findings(batch)))


@dataclass(frozen=True)
class _Batch:
    """One network on one batch."""

    execution: Execution
    network: Network | None
    optimiser: Optimiser | None

    @cached_property
    def slopes(self) -> tuple[ActivationSlopes, ...]:
        return tuple(measure_activations(self.execution))

    @cached_property
    def trial(self) -> LearningRateTrial | None:
        if self.network is None or self.optimiser is None:
            return None
        given = {value.name: self.execution.given[value.name] for value in self.execution.program.inputs}
        return try_learning_rate(self.network, self.optimiser, given)

    @cached_property
    def start(self) -> dict[str, Array]:
        """The weights the network started with."""
        return self.network.program().initial(self.network.seed) if self.network is not None else {}

    @cached_property
    def matrices(self) -> tuple[tuple[str, Node], ...]:
        """The names of weights with the rules that multiply by them, in order, where a gradient reaches the product."""
        return tuple(
            (weights, node) for node in self.execution.nodes
            if node.part == "forward" and (weights := weights_of(node)) and f"d{node.output.name}" in self.execution.values
        )  # fmt: skip

    @cached_property
    def has_large_targets(self) -> bool:
        """Whether any values are targets, large ones, and the network does not standardise them."""
        if self.network is None or self.network.loss is None or "t" not in self.execution.given:
            return False
        if self.network.loss.task != "regression" or self.network.loss.least is not None:
            return False
        fits = (kept.fit for kept in self.network.graph().states.values() if kept.fit)
        return all(fit[0] != "t" for fit in fits) and self.size("t") > LARGE_TARGET

    def value(self, name: str) -> Array:
        """Return a value's numbers, in float64."""
        return self.execution.float64(name)

    def units(self, name: str) -> Array:
        """Return a value with all rows down and units across."""
        value = self.value(name)
        return value.reshape(-1, value.shape[-1])

    def norm(self, node: Node) -> float:
        """Return the norm of the gradient of a rule's output."""
        return self.execution.norm(f"d{node.output.name}")

    def size(self, name: str) -> float:
        """Return the root mean square of a value."""
        return float(np.sqrt(np.mean(self.value(name) ** 2)))

    def growth(self, name: str) -> float:
        """Return how many times as large an array is as it was at the start; 1 where that is not known."""
        before = float(np.sqrt(np.mean(self.start[name] ** 2))) if name in self.start else 0.0
        return self.size(name) / before if before > 0 else 1.0


def _layers(batch: _Batch) -> Iterator[LayerHealth]:
    """Yield what was measured, layer by layer."""
    measured: dict[str, dict[str, float]] = {}
    for slopes in batch.slopes:
        of = measured.setdefault(slopes.node.output.name, {})
        of["dead"] = float(slopes.off.mean())
        if slopes.levels_off:
            of["saturated"] = slopes.flat_share
    updates = batch.trial.updates if batch.trial is not None else {}
    for weights, node in batch.matrices:
        of = measured.setdefault(node.output.name, {})
        of["gradient_norm"] = batch.norm(node)
        of["weight_norm"] = float(np.linalg.norm(batch.execution.values[weights]))
        if weights in updates:
            of["update_to_weight"] = updates[weights]
    for node in batch.execution.nodes:
        if node.output.name in measured:
            of = {name: value for name, value in measured[node.output.name].items() if np.isfinite(value)}
            yield LayerHealth(node.output.name, node.layer, of)


def _findings(batch: _Batch) -> Iterator[HealthFinding]:
    """Yield what is wrong; what only follows from something else is left out."""
    symmetric = list(_symmetric(batch))
    yield from symmetric
    blocked = [] if symmetric else [*_dead(batch), *_saturated(batch)]
    if not symmetric and not blocked:
        blocked = list(_unequal_norms(batch))
    yield from _large_targets(batch, blocked) if batch.has_large_targets else blocked
    yield from _idle(batch)
    yield from _updates(batch)
    yield from _conflicting(batch)


def _symmetric(batch: _Batch) -> Iterator[HealthFinding]:
    steepest = max(
        (float(np.abs(batch.units(f"d{node.output.name}")).max()) for _, node in batch.matrices), default=0.0
    )
    for name, node in batch.matrices:
        z, dz = (batch.units(value) for value in (node.output.name, f"d{node.output.name}"))
        # columns that are equal never differ again; other units differ by 0.1 of the largest and more. Errors that add up
        # to 0 leave only rounding in dz, which is compared with the largest gradient there is
        pairs = ((z, 0.0), (dz, steepest))
        same = all(
            close(np.broadcast_to(units[:, :1], units.shape), units, least=least) for units, least in pairs
        )
        if z.shape[1] < 2 or not same:
            continue
        weights = batch.execution.values[name]
        found = f"In {name}, the weights of every unit are the same"
        if np.ptp(weights) == 0:
            found = f"All entries of {name} are {weights.flat[0]:.3g}"
        yield HealthFinding(
            "symmetric",
            node.output.name,
            f"The {z.shape[1]} units of {node.output.name} have the same values and the same gradients "
            f"for all {len(z)} rows.",
            f"{found}: every unit begins as the same one, gets the same gradient, and stays the same.",
            f"Start {name} with random numbers: initialiser='he_normal' before ReLU, 'glorot_uniform' before tanh.",
        )


def _dead(batch: _Batch) -> Iterator[HealthFinding]:
    if batch.execution.rows < MIN_ROWS:
        return
    for slopes in batch.slopes:
        off, bias = slopes.off, slopes.bias
        by_bias = np.zeros_like(off)  # off, and on without the bias
        if bias and off.any():
            without = slopes_at(slopes.node, slopes.before, batch.value(slopes.source) - batch.value(bias))
            by_bias = off & ~without.off if without is not None else by_bias
        if off.mean() < DEAD_SHARE and by_bias.mean() < DEAD_BY_BIAS_SHARE:
            continue
        of_bias, name = by_bias.mean() >= 0.5 * off.mean(), slopes.node.output.name
        yield HealthFinding(
            "dead-units",
            name,
            f"{off.sum()} of the {off.size} units of {name} have derivative 0 for all {len(slopes.steepness)} rows: "
            "no gradient passes them.",
            *(_why_bias(batch, slopes, by_bias) if of_bias else _why_dead(batch, slopes)),
        )


def _saturated(batch: _Batch) -> Iterator[HealthFinding]:
    for slopes in batch.slopes:
        flat = slopes.levels_off and slopes.flat_share >= SATURATED_SHARE
        if not flat or slopes.off.mean() >= DEAD_SHARE:
            continue
        name, z = slopes.node.output.name, batch.value(slopes.source)
        yield HealthFinding(
            "saturated",
            name,
            f"{slopes.flat_share:.0%} of the entries of {name} are where {slopes.node.rule.name} is flat, under "
            f"1 % of its steepest derivative: {slopes.source} has a spread of {z.std():.3g}.",
            *_why_saturated(batch, slopes),
        )


def _why_bias(batch: _Batch, slopes: ActivationSlopes, units: Array) -> Cause:
    """Return the cause where the bias keeps units off."""
    name, bias = slopes.bias, batch.value(slopes.bias)
    rest = (batch.units(slopes.source) - bias)[:, units]
    began = f" It started at {batch.start[name].mean():.3g}." if name in batch.start else ""
    return (
        f"The bias {name} is {bias[units].mean():.3g} on average there, and what is added to it is between "
        f"{rest.min():.3g} and {rest.max():.3g}: without the bias, {units.sum()} of them would be on.{began}",
        f"Set {name} back to zeros: dead units get no gradient and cannot come back by themselves. If training "
        "has carried it there, try a learning rate ten times lower, or LeakyReLU().",
    )


def _why_dead(batch: _Batch, slopes: ActivationSlopes) -> Cause:
    """Return why units pass no gradient, where it is not the bias."""
    weights, value = slopes.weights, slopes.input
    off = batch.units(slopes.source)[:, slopes.off]
    seen = f"{slopes.source} is between {off.min():.3g} and {off.max():.3g} there"
    if weights and batch.growth(weights) > GROWN:
        return (
            f"{seen}: {weights} is {batch.growth(weights):.3g} times as large as it started. Too long "
            "steps have carried it there: the learning rate is too high.",
            "Start again from new weights with a learning rate ten times lower.",
        )
    if weights and batch.size(value) > LARGE_INPUT:
        return _large_input(batch, value, seen)
    return (
        f"{seen}, on the flat side of {slopes.node.rule.name} for every row: the columns of "
        f"{weights or slopes.source} point away from all rows.",
        "Start again with another seed or initialiser='he_normal', try a lower learning rate, or use LeakyReLU().",
    )


def _why_saturated(batch: _Batch, slopes: ActivationSlopes) -> Cause:
    """Return why an activation is used where it is flat."""
    weights, value = slopes.weights, slopes.input
    spread = float(batch.value(slopes.source).std())
    seen = f"{slopes.source} has a spread of {spread:.3g}, and {slopes.node.rule.name} is steep only near 0"
    if not weights:
        return f"{seen}.", "Put a normalisation before it, or make what comes in smaller."
    if batch.size(value) > LARGE_INPUT:
        return _large_input(batch, value, seen)
    fan_in = batch.value(value).shape[-1]
    size, usual, grown = batch.size(weights), 1 / np.sqrt(fan_in), batch.growth(weights)
    since = f", and {grown:.3g} times as large as it started" if grown > GROWN else ""
    return (
        f"{seen}: {weights} is {size / usual:.3g} times as large as weights that keep the spread of "
        f"{fan_in} inputs (its entries have size {size:.3g} instead of {usual:.3g}){since}.",
        f"Divide {weights} by {size / usual:.2g}, or start it with initialiser='glorot_uniform'; "
        "if training has carried it there, try a learning rate ten times lower, or weight_decay.",
    )


def _large_input(batch: _Batch, name: str, seen: str) -> Cause:
    change = "Put Standardise() first." if name == "x" else f"Normalise {name} before it: BatchNorm()."
    return f"{seen}: {name} has entries of size {batch.size(name):.3g}, and weights are made for 1.", change


def _large_targets(batch: _Batch, others: list[HealthFinding]) -> Iterator[HealthFinding]:
    """Yield the scale of the targets where predictions are worse than their mean, or ``others`` follow from it."""
    assert batch.network is not None
    t = batch.value("t")
    r2 = r_squared(batch.network.predict(batch.execution.given["x"]).reshape(t.shape), t)
    if r2 >= 0 and not others:
        return
    mean, deviation = t.mean(), t.std()
    yield HealthFinding(
        "large-targets",
        "t",
        f"The targets have mean {mean:.3g} and deviation {deviation:.3g}, and r2 is {r2:.3g} on these {len(t)} rows; "
        "always predicting the mean has 0.",
        "Weights start so that outputs have size 1; that they grow so large takes many steps, and gradients are as much "
        "larger" + "".join(f". Of it follows: {other.evidence}" for other in others).removesuffix(".") + ".",
        "Put StandardiseTargets() last, on the command line --standardise-targets true.",
    )


def _unequal_norms(batch: _Batch) -> Iterator[HealthFinding]:
    if len(batch.matrices) < 2:
        return
    nodes = [node for _, node in batch.matrices]
    first, last = nodes[0], nodes[-1]
    low, high = batch.norm(first), batch.norm(last)
    zeros = not np.any(batch.execution.values[weights_of(last)])  # before the first step
    if not high or zeros or not np.isfinite(low / high) or VANISHING < low / high < EXPLODING:
        return
    code, word = ("vanishing", "smaller") if low < high else ("exploding", "larger")
    times = f"{max(low / high, high / low):.2g} times {word}" if low else "no longer there"
    yield HealthFinding(
        code,
        first.output.name,
        f"The gradient has norm {high:.3g} at {last.output.name} and {low:.3g} at {first.output.name}, {times}: "
        + ", ".join(f"{node.output.name} {batch.norm(node):.1e}" for node in nodes)
        + ".",
        *_why_unequal_norms(batch.execution, first, last, vanishing=low < high),
    )


def _why_unequal_norms(execution: Execution, first: Node, last: Node, *, vanishing: bool) -> Cause:
    """Return which of the rules between two made the gradient small or large."""
    factors = list(_factors(execution, first, last))
    by_weights, by_rules = (
        float(np.prod([factor for is_weights, _, factor in factors if is_weights == wanted]))
        for wanted in (True, False)
    )
    worst = (by_weights < by_rules) if vanishing else (by_weights > by_rules)
    named = ", ".join(f"{name} × {factor:.2g}" for is_weights, name, factor in factors if is_weights == worst)
    both = f"On the way back the weights make it {by_weights:.2g} times as large, the other rules {by_rules:.2g} times"
    if not worst:
        fix = "Use ReLU() with initialiser='he_normal', or put BatchNorm() or Residual(…) between."
        if not vanishing:
            fix = "Look at the rules named: one of them divides by a small number."
        return f"{both}, each rule a factor: {named}.", fix
    fix = "Start with smaller weights (initialiser='he_normal'), or train with clip_norm=1.0."
    if vanishing:
        fix = "Start with larger weights: initialiser='he_normal' before ReLU, 'glorot_uniform' before tanh."
    size = "small" if vanishing else "large"
    return f"{both}: the weights are too {size}, each matrix a factor: {named}.", fix


def _factors(execution: Execution, first: Node, last: Node) -> Iterator[tuple[bool, str, float]]:
    """Yield by how much each rule between two, with weights or without, changes the gradient's norm on the way back."""
    nodes = list(execution.nodes)
    for node in reversed(nodes[nodes.index(first) + 1 : nodes.index(last) + 1]):
        out, back = f"d{node.output.name}", [
            name for v in node.inputs for name in (f"d{v.name}_{node.output.name}", f"d{v.name}")
            if v.kind == "value" and name in execution.values
        ]  # fmt: skip
        if out in execution.values and back and (before := execution.norm(out)) > 0:
            weights = weights_of(node)
            yield bool(weights), weights or node.output.name, execution.norm(back[0]) / before


def _idle(batch: _Batch) -> Iterator[HealthFinding]:
    """Yield the biases that what follows takes off again: only their own gradient is 0 but for rounding."""
    nodes = batch.execution.nodes
    for node in nodes:
        if not weights_of(node) or f"d{node.output.name}" in batch.execution.rounding:
            continue
        reader = next((each for each in nodes if node.output.name in [v.name for v in each.inputs]), None)
        for name in [value.name for value in node.inputs if f"d{value.name}" in batch.execution.rounding]:
            if name not in batch.execution.program.parameters or name == weights_of(node) or reader is None:
                continue
            by = f"{reader.rule.name} ({reader.layer})"
            cause = f"What {name} adds to {node.output.name} cancels in what follows, first in {by}."
            if reader.rule.name == "batch_norm":
                cause = f"{name} adds to every row of {node.output.name} alike, and {by} takes what all rows share off again."
            yield HealthFinding(
                "no-effect",
                name,
                f"The gradient of {name} is 0 but for rounding (norm {batch.execution.norm(f'd{name}'):.1e}): {name} does "
                "not change the loss on these rows.",
                cause,
                f"Leave it out: bias=False in {node.layer}.",
            )


def _updates(batch: _Batch) -> Iterator[HealthFinding]:
    if batch.trial is None or batch.optimiser is None:
        return
    trial, rate = batch.trial, batch.optimiser.learning_rate
    matrices = {name: share for name, share in trial.updates.items() if share > 0}
    most = max(matrices, key=matrices.__getitem__, default="")
    moved = f"its first update changes {most} by {matrices[most]:.2g} of its size" if most else ""
    if trial.times_worse >= TIMES_WORSE:
        later = f"{trial.loss:.3g}" if trial.loss < 1e6 else "beyond all bounds"
        change = f"Try a learning rate of {trial.better_rate:g}."
        if trial.better_loss >= trial.start:
            change = "Try a much lower learning rate: the loss falls at none of those that were tried."
        yield HealthFinding(
            "large-updates",
            "learning rate",
            f"From the starting weights, with learning rate {rate:g}, the loss goes from {trial.start:.3g} to "
            f"{later} in 20 steps on these rows; with {trial.better_rate:g} to {trial.better_loss:.3g}.",
            f"The learning rate {rate:g} steps across the valley instead of down: {moved or 'the steps are long'}.",
            change,
        )
    elif matrices and matrices[most] < SMALL_UPDATE:
        yield HealthFinding(
            "small-updates",
            "learning rate",
            f"With learning rate {rate:g}, the first update changes no matrix of weights by more than "
            f"{matrices[most]:.1g} of its size.",
            "The learning rate is so low that weights hardly move.",
            f"Try a learning rate of {rate * 1000:g}.",
        )


def _conflicting(batch: _Batch) -> Iterator[HealthFinding]:
    given = batch.execution.given
    if "t" not in given or np.asarray(given["x"]).dtype.kind != "f":
        return
    x, t = (np.asarray(given[name]).reshape(len(given["x"]), -1) for name in ("x", "t"))
    _, group = np.unique(x, axis=0, return_inverse=True)
    group = group.ravel()
    unlike = np.array([(t[group == own] != target).any() for own, target in zip(group, t, strict=True)])
    if unlike.mean() < CONFLICTING_SHARE:
        return
    row = int(np.argmax(unlike))
    other = int(np.argmax((group == group[row]) & (t != t[row]).any(axis=1)))
    one, another = (", ".join(f"{number:g}" for number in t[k]) for k in (row, other))
    yield HealthFinding(
        "conflicting-rows",
        "x",
        f"{unlike.sum()} of {len(x)} rows come again with another target: rows {row} and {other} have the same x, "
        f"and the targets {one} and {another}.",
        "No network can give both answers: their gradients pull against each other for ever.",
        "Give the rows a column that distinguishes them, or remove what is wrong in the data.",
    )

"""The health of a network on one batch: what is dead, saturated, vanishing or symmetric, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.explaining.causes import RuleInputs, dead_by_bias, why_dead, why_saturated, why_unequal_norms
from handgrad.explaining.execution import Execution
from handgrad.explaining.measures import (
    MIN_ROWS,
    ActivationSlopes,
    LearningRateTrial,
    agreement_of_rows,
    measure_activations,
    try_learning_rate,
)
from handgrad.explaining.record import Health, HealthFinding, LayerHealth
from handgrad.layers import Node, Optimiser
from handgrad.network import Network
from handgrad.tolerance import close

Array = NDArray[Any]

# Each threshold is between what healthy networks were seen to reach (sixteen kinds, three optimisers, eight
# seeds, from the start to the end of training) and what networks made ill on purpose reach.
DEAD_SHARE = 0.97  # deep He networks on similar rows: up to 0.75; a layer that is dead: 1
DEAD_BY_BIAS_SHARE = 0.3  # off, and on without the bias; healthy: up to 0.13; half a layer: 0.5
SATURATED_SHARE = 0.65  # healthy: up to 0.33; weights 30 times as large: 0.88
VANISHING, EXPLODING = 1e-3, 1e3  # first gradient over last; healthy: 0.08 to 22; ill: 1e-5 and less
TIMES_WORSE = 6.0  # than a learning rate ten or a hundred times lower; suitable rates: up to 2.6, ten times too high: 16
SMALL_UPDATE = 1e-7  # of the weights: what float32 hardly resolves; suitable rates: 1e-4 to 0.1
CONFLICTING_SHARE = 0.25  # of rows whose very inputs come again with another target


def measure_health(
    execution: Execution, network: Network | None = None, optimiser: Optimiser | None = None
) -> Health:
    """Measure a network's health on a batch, and name what is wrong with its cause.

    Parameters
    ----------
    execution
        The program with every value of the batch.
    network
        Whose program it is; with it, weights are compared with those it started with.
    optimiser
        How it is trained; with it, a few steps are tried on copies.
    """
    examination = _Examination(execution, network, optimiser)
    with np.errstate(all="ignore"):  # numbers that are not finite are left out
        return Health(tuple(examination.layers()), tuple(examination.findings()))


@dataclass(frozen=True)
class _Examination:
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

    def inputs(self, node: Node) -> RuleInputs:
        return RuleInputs(self.execution, node, self.start)

    @cached_property
    def matrices(self) -> tuple[Node, ...]:
        """The rules that multiply by weights and whose gradient is there, in order."""
        return tuple(
            node for node in self.execution.nodes
            if node.part == "forward" and self.inputs(node).weights and f"d{node.output.name}" in self.execution.values
        )  # fmt: skip

    def norm(self, node: Node) -> float:
        return self.execution.norm(f"d{node.output.name}")

    def layers(self) -> Iterator[LayerHealth]:
        """Yield what was measured, layer by layer."""
        measured: dict[str, dict[str, float]] = {}
        for slopes in self.slopes:
            of = measured.setdefault(slopes.node.output.name, {})
            of["dead"] = float(slopes.off.mean())
            if slopes.levels_off:
                of["saturated"] = slopes.flat_share
        agreements = agreement_of_rows(self.execution, [self.inputs(node).weights for node in self.matrices])
        for node in self.matrices:
            of = measured.setdefault(node.output.name, {})
            weights = self.inputs(node).weights
            of["gradient_norm"] = self.norm(node)
            of["weight_norm"] = float(np.linalg.norm(self.execution.values[weights]))
            if weights in agreements:
                of["row_agreement"] = agreements[weights]
            if self.trial is not None and weights in self.trial.updates:
                of["update_to_weight"] = self.trial.updates[weights]
        for node in self.execution.nodes:
            if node.output.name in measured:
                of = {name: value for name, value in measured[node.output.name].items() if np.isfinite(value)}
                yield LayerHealth(node.output.name, node.layer, of)

    def findings(self) -> Iterator[HealthFinding]:
        """Yield what is wrong; what only follows from something else is left out."""
        symmetric = list(self.symmetric())
        yield from symmetric
        blocked = [] if symmetric else [*self.dead(), *self.saturated()]
        yield from blocked
        if not symmetric and not blocked:
            yield from self.unequal_norms()
        yield from self.updates()
        yield from self.conflicting()

    def symmetric(self) -> Iterator[HealthFinding]:
        for node in self.matrices:
            inputs = self.inputs(node)
            z, dz = (self.units(name) for name in (node.output.name, f"d{node.output.name}"))
            if z.shape[1] < 2 or not _same(z) or not _same(dz):
                continue
            weights = self.execution.values[inputs.weights]
            found = f"all entries of {inputs.weights} are {weights.flat[0]:.3g}" if np.ptp(weights) == 0 else (
                f"in {inputs.weights}, the weights of every unit are the same"
            )  # fmt: skip
            yield HealthFinding(
                "symmetric",
                node.output.name,
                f"The {z.shape[1]} units of {node.output.name} have the same values and the same gradients "
                f"for all {len(z)} rows.",
                f"{found[0].upper()}{found[1:]}: every unit begins as the same one, gets the same gradient, and "
                "stays the same.",
                f"Start {inputs.weights} with random numbers: initialiser='he_normal' before ReLU, "
                "'glorot_uniform' before tanh.",
            )

    def dead(self) -> Iterator[HealthFinding]:
        if self.execution.rows < MIN_ROWS:
            return
        for slopes in self.slopes:
            inputs, off = self.inputs_before(slopes), slopes.off
            by_bias = dead_by_bias(inputs, slopes)
            if off.mean() < DEAD_SHARE and by_bias.mean() < DEAD_BY_BIAS_SHARE:
                continue
            cause, change = why_dead(inputs, slopes, by_bias)
            name = slopes.node.output.name
            yield HealthFinding(
                "dead-units",
                name,
                f"{off.sum()} of the {off.size} units of {name} have derivative 0 for all {len(slopes.steepness)} rows: "
                "no gradient passes them.",
                cause,
                change,
            )

    def saturated(self) -> Iterator[HealthFinding]:
        for slopes in self.slopes:
            flat = slopes.levels_off and slopes.flat_share >= SATURATED_SHARE
            if not flat or slopes.off.mean() >= DEAD_SHARE:
                continue
            cause, change = why_saturated(self.inputs_before(slopes), slopes)
            name, z = slopes.node.output.name, self.units(slopes.source)
            yield HealthFinding(
                "saturated",
                name,
                f"{slopes.flat_share:.0%} of the entries of {name} are where {slopes.node.rule.name} is flat, under "
                f"1 % of its steepest derivative: {slopes.source} has a spread of {z.std():.3g}.",
                cause,
                change,
            )

    def unequal_norms(self) -> Iterator[HealthFinding]:
        if len(self.matrices) < 2:
            return
        first, last = self.matrices[0], self.matrices[-1]
        low, high = self.norm(first), self.norm(last)
        zeros = not np.any(self.execution.values[self.inputs(last).weights])  # before the first step
        if not high or zeros or not np.isfinite(low / high) or VANISHING < low / high < EXPLODING:
            return
        code, word = ("vanishing", "smaller") if low < high else ("exploding", "larger")
        times = f"{max(low / high, high / low):.2g} times {word}" if low else "no longer there"
        cause, change = why_unequal_norms(self.execution, first, last, vanishing=low < high)
        yield HealthFinding(
            code,
            first.output.name,
            f"The gradient has norm {high:.3g} at {last.output.name} and {low:.3g} at {first.output.name}, {times}: "
            + ", ".join(f"{node.output.name} {self.norm(node):.1e}" for node in self.matrices)
            + ".",
            cause,
            change,
        )

    def updates(self) -> Iterator[HealthFinding]:
        if self.trial is None or self.optimiser is None:
            return
        trial, rate = self.trial, self.trial.learning_rate
        matrices = {name: share for name, share in trial.updates.items() if share > 0}
        most = max(matrices, key=matrices.__getitem__, default="")
        moved = f"its first update changes {most} by {matrices[most]:.2g} of its size" if most else ""
        if trial.times_worse >= TIMES_WORSE:
            later = f"{trial.loss:.3g}" if trial.loss < 1e6 else "beyond all bounds"
            yield HealthFinding(
                "large-updates",
                "learning rate",
                f"From the starting weights, with learning rate {rate:g}, the loss goes from {trial.start:.3g} to "
                f"{later} in 20 steps on these rows; with {trial.better_rate:g} to {trial.better_loss:.3g}.",
                f"The learning rate {rate:g} steps across the valley instead of down: {moved or 'the steps are long'}.",
                f"Try a learning rate of {trial.better_rate:g}.",
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

    def conflicting(self) -> Iterator[HealthFinding]:
        given = self.execution.given
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
        yield HealthFinding(
            "conflicting-rows",
            "x",
            f"{unlike.sum()} of {len(x)} rows come again with another target: rows {row} and {other} have the same x, "
            f"and the targets {_shown(t[row])} and {_shown(t[other])}.",
            "No network can give both answers: their gradients pull against each other for ever.",
            "Give the rows a column that distinguishes them, or remove what is wrong in the data.",
        )

    def inputs_before(self, slopes: ActivationSlopes) -> RuleInputs:
        """Return the rule whose output an activation takes."""
        return self.inputs(self.execution.node_of(slopes.source) or slopes.node)

    def units(self, name: str) -> Array:
        """Return a value with all rows down and units across."""
        value = self.execution.float64(name)
        return value.reshape(-1, value.shape[-1])


def _same(units: Array) -> bool:
    """Whether all columns are equal, and will never differ: other units differ by 0.1 of the largest and more."""
    return close(np.broadcast_to(units[:, :1], units.shape), units)


def _shown(target: Array) -> str:
    return ", ".join(f"{number:g}" for number in target)

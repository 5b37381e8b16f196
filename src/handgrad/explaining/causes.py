"""Why units are dead, rules flat and gradients small: traced to a bias, weights, inputs or the rules themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.explaining.slopes import Slopes, slopes_at
from handgrad.explaining.tracing import Trace
from handgrad.layers import Node

Array = NDArray[Any]

GROWN = 3.0  # weights this many times as large as at the start have been carried there
LARGE_INPUT = 5.0  # root mean square of what meets the weights; standardised rows have 1

Told = tuple[str, str]  # a cause, and what to change


@dataclass(frozen=True)
class Place:
    """A rule with the names and the numbers around it."""

    trace: Trace
    node: Node
    start: dict[str, Array]

    @property
    def weights(self) -> str:
        """The name of its matrix, "" when there is none."""
        return next((v.name for v in self.node.inputs if v.kind == "parameter" and len(v.shape) > 1), "")

    @property
    def bias(self) -> str:
        """The name of what it adds to every row, "" when there is none."""
        last = [v.name for v in self.node.inputs if v.kind == "parameter" and len(v.shape) == 1]
        return last[-1] if last else ""

    def value(self, name: str) -> Array:
        """Return a value's numbers, in float64."""
        return np.asarray(self.trace.values[name], np.float64)

    @property
    def input(self) -> str:
        """The name of the value that comes in."""
        return self.node.inputs[0].name

    def size(self, name: str) -> float:
        """Return the root mean square of a value."""
        return float(np.sqrt(np.mean(self.value(name) ** 2)))

    def grown(self, name: str) -> float:
        """Return how many times as large an array is as it was at the start; 1 where that is not known."""
        before = float(np.sqrt(np.mean(self.start[name] ** 2))) if name in self.start else 0.0
        return self.size(name) / before if before > 0 else 1.0


def dead_by_bias(place: Place, slopes: Slopes) -> Array:
    """Return which units are off and would not be without the bias."""
    if not place.bias or not slopes.off.any():
        return np.zeros_like(slopes.off)
    without = slopes_at(slopes.node, place.value(slopes.source) - place.value(place.bias))
    return slopes.off & ~without.off if without is not None else np.zeros_like(slopes.off)


def why_dead(place: Place, slopes: Slopes, by_bias: Array) -> Told:
    """Return why units let nothing through."""
    z = place.value(slopes.source)
    z = z.reshape(-1, z.shape[-1])
    if by_bias.mean() >= 0.5 * slopes.off.mean():
        bias = place.value(place.bias)
        rest = (z - bias)[:, by_bias]
        started = place.start.get(place.bias)
        began = f" It started at {started.mean():.3g}." if started is not None else ""
        return (
            f"The bias {place.bias} is {bias[by_bias].mean():.3g} on average there, and what is added to it lies between "
            f"{rest.min():.3g} and {rest.max():.3g}: without the bias, {by_bias.sum()} of them would be on.{began}",
            f"Set {place.bias} back to zeros: dead units get no gradient and cannot come back by themselves. If training "
            "has carried it there, try a learning rate ten times lower, or LeakyReLU().",
        )
    off = z[:, slopes.off]
    range_ = f"{slopes.source} lies between {off.min():.3g} and {off.max():.3g} there"
    if place.weights and place.grown(place.weights) > GROWN:
        return (
            f"{range_}: {place.weights} is {place.grown(place.weights):.3g} times as large as it started. Too long "
            "steps have carried it there: the learning rate is too high.",
            "Start again from new weights with a learning rate ten times lower.",
        )
    if place.weights and place.size(place.input) > LARGE_INPUT:
        return _large_input(place, range_)
    return (
        f"{range_}, on the flat side of {slopes.node.rule.name} for every row: the columns of "
        f"{place.weights or slopes.source} point away from all rows.",
        "Start again with another seed or initialiser='he_normal', try a lower learning rate, or use LeakyReLU().",
    )


def why_saturated(place: Place, slopes: Slopes) -> Told:
    """Return why a rule is used where it is flat."""
    spread = float(place.value(slopes.source).std())
    told = f"{slopes.source} has a spread of {spread:.3g}, and {slopes.node.rule.name} is steep only near 0"
    if not place.weights:
        return f"{told}.", "Put a normalisation before it, or make what comes in smaller."
    if place.size(place.input) > LARGE_INPUT:
        return _large_input(place, told)
    fan_in = place.value(place.input).shape[-1]
    usual = 1 / np.sqrt(fan_in)
    times = place.size(place.weights) / usual
    grown = place.grown(place.weights)
    since = f", and {grown:.3g} times as large as it started" if grown > GROWN else ""
    return (
        f"{told}: {place.weights} is {times:.3g} times as large as weights that keep the spread of "
        f"{fan_in} inputs (its entries have size {place.size(place.weights):.3g} instead of {usual:.3g}){since}.",
        f"Divide {place.weights} by {times:.2g}, or start it with initialiser='glorot_uniform'; "
        "if training has carried it there, try a learning rate ten times lower, or weight_decay.",
    )


def _large_input(place: Place, told: str) -> Told:
    size = place.size(place.input)
    change = (
        "Put Standardise() first."
        if place.input == "x"
        else f"Normalise {place.input} before it: BatchNorm()."
    )
    return f"{told}: {place.input} has entries of size {size:.3g}, and weights are made for 1.", change


def why_unequal_norms(trace: Trace, first: Node, last: Node, *, vanishing: bool) -> Told:
    """Return which of the rules on the way made the gradient small or large."""
    factors = _factors(trace, first, last)
    by_weights = np.prod([factor for kind, _, factor in factors if kind == "weights"])
    by_rules = np.prod([factor for kind, _, factor in factors if kind == "rule"])
    worst = (by_weights < by_rules) if vanishing else (by_weights > by_rules)
    kind = "weights" if worst else "rule"
    told = ", ".join(f"{name} × {factor:.2g}" for each, name, factor in factors if each == kind)
    both = f"on the way back the weights make it {by_weights:.2g} times as large, the other rules {by_rules:.2g} times"
    if not worst:
        fix = "Use ReLU() with initialiser='he_normal', or put BatchNorm() or Residual(…) between."
        if not vanishing:
            fix = "Look at the rules named: one of them divides by a small number."
        return f"{both[0].upper()}{both[1:]}, each rule a factor: {told}.", fix
    size = "small" if vanishing else "large"
    fix = (
        "Start with larger weights: initialiser='he_normal' before ReLU, 'glorot_uniform' before tanh."
        if vanishing
        else "Start with smaller weights (initialiser='he_normal'), or train with clip_norm=1.0."
    )
    return f"{both[0].upper()}{both[1:]}: the weights are too {size}, each matrix a factor: {told}.", fix


def _factors(trace: Trace, first: Node, last: Node) -> list[tuple[str, str, float]]:
    """Return by how much each rule between two changes the gradient's norm on the way back."""
    found = []
    nodes = list(trace.nodes)
    for node in reversed(nodes[nodes.index(first) + 1 : nodes.index(last) + 1]):
        out, back = f"d{node.output.name}", [
            name for v in node.inputs for name in (f"d{v.name}_{node.output.name}", f"d{v.name}")
            if v.kind == "value" and name in trace.values
        ]  # fmt: skip
        if out not in trace.values or not back:
            continue
        before, after = (
            float(np.linalg.norm(np.asarray(trace.values[n], np.float64))) for n in (out, back[0])
        )
        weights = Place(trace, node, {}).weights
        if before > 0:
            found.append(("weights" if weights else "rule", weights or node.output.name, after / before))
    return found

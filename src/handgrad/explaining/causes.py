"""Why units are dead, activations flat and gradients small: traced to a bias, weights, inputs or the rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.explaining.execution import Execution
from handgrad.explaining.measures import ActivationSlopes, slopes_at
from handgrad.layers import Node

Array = NDArray[Any]

GROWN = 3.0  # times as large as at the start: weights that healthy training does not reach
LARGE_INPUT = 5.0  # root mean square of a layer's input; standardised rows have 1

Cause = tuple[str, str]  # and what to change


@dataclass(frozen=True)
class RuleInputs:
    """A rule of the network, with its weights and what comes in.

    ``start`` are the weights that the network started with.
    """

    execution: Execution
    node: Node
    start: dict[str, Array]

    @property
    def weights(self) -> str:
        """The name of its matrix, or ""."""
        return next((v.name for v in self.node.inputs if v.kind == "parameter" and len(v.shape) > 1), "")

    @property
    def bias(self) -> str:
        """The name of what it adds to every row, or ""."""
        vectors = [v.name for v in self.node.inputs if v.kind == "parameter" and len(v.shape) == 1]
        return vectors[-1] if vectors else ""

    def value(self, name: str) -> Array:
        """Return a value's numbers, in float64."""
        return self.execution.float64(name)

    @property
    def input(self) -> str:
        """The name of the value that comes in."""
        return self.node.inputs[0].name

    def size(self, name: str) -> float:
        """Return the root mean square of a value."""
        return float(np.sqrt(np.mean(self.value(name) ** 2)))

    def growth(self, name: str) -> float:
        """Return how many times as large an array is as it was at the start; 1 where that is not known."""
        before = float(np.sqrt(np.mean(self.start[name] ** 2))) if name in self.start else 0.0
        return self.size(name) / before if before > 0 else 1.0


def dead_by_bias(inputs: RuleInputs, slopes: ActivationSlopes) -> Array:
    """Return which units are off and would not be without the bias."""
    if not inputs.bias or not slopes.off.any():
        return np.zeros_like(slopes.off)
    without = slopes_at(slopes.node, inputs.value(slopes.source) - inputs.value(inputs.bias))
    return slopes.off & ~without.off if without is not None else np.zeros_like(slopes.off)


def why_dead(inputs: RuleInputs, slopes: ActivationSlopes, by_bias: Array) -> Cause:
    """Return why units pass no gradient."""
    z = inputs.value(slopes.source)
    z = z.reshape(-1, z.shape[-1])
    if by_bias.mean() >= 0.5 * slopes.off.mean():
        bias = inputs.value(inputs.bias)
        rest = (z - bias)[:, by_bias]
        started = inputs.start.get(inputs.bias)
        began = f" It started at {started.mean():.3g}." if started is not None else ""
        return (
            f"The bias {inputs.bias} is {bias[by_bias].mean():.3g} on average there, and what is added to it is between "
            f"{rest.min():.3g} and {rest.max():.3g}: without the bias, {by_bias.sum()} of them would be on.{began}",
            f"Set {inputs.bias} back to zeros: dead units get no gradient and cannot come back by themselves. If training "
            "has carried it there, try a learning rate ten times lower, or LeakyReLU().",
        )
    off = z[:, slopes.off]
    range_ = f"{slopes.source} is between {off.min():.3g} and {off.max():.3g} there"
    if inputs.weights and inputs.growth(inputs.weights) > GROWN:
        return (
            f"{range_}: {inputs.weights} is {inputs.growth(inputs.weights):.3g} times as large as it started. Too long "
            "steps have carried it there: the learning rate is too high.",
            "Start again from new weights with a learning rate ten times lower.",
        )
    if inputs.weights and inputs.size(inputs.input) > LARGE_INPUT:
        return _large_input(inputs, range_)
    return (
        f"{range_}, on the flat side of {slopes.node.rule.name} for every row: the columns of "
        f"{inputs.weights or slopes.source} point away from all rows.",
        "Start again with another seed or initialiser='he_normal', try a lower learning rate, or use LeakyReLU().",
    )


def why_saturated(inputs: RuleInputs, slopes: ActivationSlopes) -> Cause:
    """Return why an activation is used where it is flat."""
    spread = float(inputs.value(slopes.source).std())
    seen = f"{slopes.source} has a spread of {spread:.3g}, and {slopes.node.rule.name} is steep only near 0"
    if not inputs.weights:
        return f"{seen}.", "Put a normalisation before it, or make what comes in smaller."
    if inputs.size(inputs.input) > LARGE_INPUT:
        return _large_input(inputs, seen)
    fan_in = inputs.value(inputs.input).shape[-1]
    usual = 1 / np.sqrt(fan_in)
    times = inputs.size(inputs.weights) / usual
    grown = inputs.growth(inputs.weights)
    since = f", and {grown:.3g} times as large as it started" if grown > GROWN else ""
    return (
        f"{seen}: {inputs.weights} is {times:.3g} times as large as weights that keep the spread of "
        f"{fan_in} inputs (its entries have size {inputs.size(inputs.weights):.3g} instead of {usual:.3g}){since}.",
        f"Divide {inputs.weights} by {times:.2g}, or start it with initialiser='glorot_uniform'; "
        "if training has carried it there, try a learning rate ten times lower, or weight_decay.",
    )


def _large_input(inputs: RuleInputs, seen: str) -> Cause:
    size = inputs.size(inputs.input)
    change = (
        "Put Standardise() first."
        if inputs.input == "x"
        else f"Normalise {inputs.input} before it: BatchNorm()."
    )
    return f"{seen}: {inputs.input} has entries of size {size:.3g}, and weights are made for 1.", change


def why_unequal_norms(execution: Execution, first: Node, last: Node, *, vanishing: bool) -> Cause:
    """Return which of the rules between two made the gradient small or large."""
    factors = _factors(execution, first, last)
    by_weights = np.prod([factor for kind, _, factor in factors if kind == "weights"])
    by_rules = np.prod([factor for kind, _, factor in factors if kind == "rule"])
    worst = (by_weights < by_rules) if vanishing else (by_weights > by_rules)
    kind = "weights" if worst else "rule"
    named = ", ".join(f"{name} × {factor:.2g}" for each, name, factor in factors if each == kind)
    both = f"on the way back the weights make it {by_weights:.2g} times as large, the other rules {by_rules:.2g} times"
    if not worst:
        fix = "Use ReLU() with initialiser='he_normal', or put BatchNorm() or Residual(…) between."
        if not vanishing:
            fix = "Look at the rules named: one of them divides by a small number."
        return f"{both[0].upper()}{both[1:]}, each rule a factor: {named}.", fix
    size = "small" if vanishing else "large"
    fix = (
        "Start with larger weights: initialiser='he_normal' before ReLU, 'glorot_uniform' before tanh."
        if vanishing
        else "Start with smaller weights (initialiser='he_normal'), or train with clip_norm=1.0."
    )
    return f"{both[0].upper()}{both[1:]}: the weights are too {size}, each matrix a factor: {named}.", fix


def _factors(execution: Execution, first: Node, last: Node) -> list[tuple[str, str, float]]:
    """Return by how much each rule between two changes the gradient's norm on the way back."""
    found = []
    nodes = list(execution.nodes)
    for node in reversed(nodes[nodes.index(first) + 1 : nodes.index(last) + 1]):
        out, back = f"d{node.output.name}", [
            name for v in node.inputs for name in (f"d{v.name}_{node.output.name}", f"d{v.name}")
            if v.kind == "value" and name in execution.values
        ]  # fmt: skip
        if out not in execution.values or not back:
            continue
        before, after = (execution.norm(n) for n in (out, back[0]))
        weights = RuleInputs(execution, node, {}).weights
        if before > 0:
            found.append(("weights" if weights else "rule", weights or node.output.name, after / before))
    return found

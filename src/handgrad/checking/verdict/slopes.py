"""Slopes that cannot be trusted: forward swings faster than the differences are short, and the chain rule is asked.

``sin(3000 x) + x`` has the slopes of a line at steps that are long beside its waves.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from handgrad.checking.subject import Subject
from handgrad.checking.verdict.comparison import Comparison
from handgrad.checking.verdict.directional import outputs_of
from handgrad.finite_differences import rounding_noise
from handgrad.tolerance import Bounds

STEPS = 1e-3 * 0.1 ** np.arange(8)  # of the argument's scale, the longest first
SEEN = 1e-2  # of the difference between the two gradients: with less rounding, a step tells them apart
NEAR = 1e-2  # of the gradient: slopes that miss it by less are of a wave, and not of another function
NEARER = 0.1  # of that difference: so near is a step's slope to the gradient that is right


def mistrust_slopes(subject: Subject, comparison: Comparison) -> Comparison:
    """Return the comparison, with the chain rule's gradient where it is backward's and the slopes are another's.

    The slopes at ever shorter steps decide between the two; where they settle on neither, it cannot be told.
    """
    found: dict[str, tuple[list[Bounds], bool]] = {}
    for name in comparison.wrong:
        bounds = _by_chain_rule(comparison, name)
        nearer = _nearer(subject, comparison, name) if bounds else "slopes"
        if nearer != "slopes":
            found[name] = bounds, nearer == "chain rule"
    samples = tuple(
        replace(sample, bounds=sample.bounds | {name: bounds[number] for name, (bounds, _) in found.items()})
        for number, sample in enumerate(comparison.samples)
    )
    mistrusted = {name: confirmed for name, (_, confirmed) in found.items()}
    return replace(comparison, samples=samples, mistrusted=mistrusted) if found else comparison


def _by_chain_rule(comparison: Comparison, name: str) -> list[Bounds]:
    """Return the bounds of a gradient by the chain rule for each sample, or none where backward's is another."""
    found = []
    for sample in comparison.samples:
        gradients = comparison.numerical.analytic.gradients(sample.upstream)
        if gradients is None:
            return []
        right = gradients[name]
        bounds = sample.rounding[name].bounds(right, right, 0.0, np.abs(right))
        if sample.got[name].shape != right.shape or bounds.wrong(sample.got[name]).any():
            return []
        found.append(bounds)
    return found


def _nearer(
    subject: Subject, comparison: Comparison, name: str
) -> Literal["chain rule", "slopes", "neither"]:
    """Return which gradient the slope at the shortest step that tells them apart is near."""
    sample = next(sample for sample in comparison.samples if sample.is_wrong(name))
    point = comparison.numerical.exact[name]
    direction = np.where(sample.wrong(name), np.random.default_rng(0).normal(size=point.shape), 0.0)
    both = sample.got[name], sample.expected(name)  # backward's is the chain rule's
    chain_rule, slopes = (float((gradient * direction).sum()) for gradient in both)
    apart = abs(chain_rule - slopes)
    if apart <= NEAR * abs(chain_rule):
        return "chain rule"
    weights = np.concatenate([part.ravel() for part in sample.upstream])
    function = outputs_of(subject, comparison.numerical.exact, name)
    noise = float(np.abs(weights) @ rounding_noise(function, point))
    scale = float(np.median(np.abs(point[point != 0]))) if np.any(point) else 1.0
    for step in reversed(scale * STEPS):
        if noise <= SEEN * step * apart:
            above, below = (function(point + sign * step * direction) for sign in (1, -1))
            slope = float(weights @ (above - below)) / (2 * step)
            if abs(slope - chain_rule) <= NEARER * apart:
                return "chain rule"
            return "slopes" if abs(slope - slopes) <= NEARER * apart else "neither"
    return "slopes"

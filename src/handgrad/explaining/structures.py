"""The structures that the page of `handgrad lab` switches among: what a person chooses there is a choice of page.

Each is an ordinary explanation, of the rules' own program. Its sizes are different primes, so that the page can tell which
axes a number on it counts: 143 is 11 · 13, the entries of W2 between 11 and 13 units. It is
written for the sizes at hand by `setup.js`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from handgrad.explaining.execution import execute_network
from handgrad.explaining.explainer import explain_execution, explain_updates
from handgrad.explaining.live_program import live_program
from handgrad.explaining.record import Explanation
from handgrad.layers import (
    SGD,
    HalfSquaredError,
    Layer,
    Linear,
    Loss,
    ReLU,
    Sigmoid,
    SoftmaxCrossEntropy,
    Tanh,
)
from handgrad.network import Network

ROWS, INPUTS, OUTPUTS, WIDTHS = 29, 5, 7, (11, 13, 17)
SIZES = {
    "rows": ROWS,
    "inputs": INPUTS,
    "outputs": OUTPUTS,
    **{f"hidden{k}": w for k, w in enumerate(WIDTHS, 1)},
}
"""The sizes that the pages are recorded with: primes that no rule has as a constant."""

ACTIVATIONS: dict[str, tuple[type[Layer] | None, ...]] = {
    "tanh": (Tanh,),
    "relu": (ReLU,),
    "sigmoid": (Sigmoid,),
    "linear": (None,),
    "tanh-relu": (Tanh, ReLU),
}
"""By name, the activations of the hidden layers, in turn."""

LOSSES: dict[str, Callable[[], Loss]] = {
    "classification": SoftmaxCrossEntropy,
    "regression": lambda: HalfSquaredError(reduction="mean"),
}
WEIGHT_DECAY = 0.03  # as in the recorded lines; the page puts in the rate that is chosen


def structures() -> Iterator[tuple[str, Explanation]]:
    """Yield each structure's name, as ``2 tanh classification decay``, with its explanation."""
    for depth in range(len(WIDTHS) + 1):
        for activation in ACTIVATIONS if depth else ["linear"]:
            if len(ACTIVATIONS[activation]) > max(depth, 1):
                continue
            for task in LOSSES:
                for decay, explanation in zip(
                    ("", " decay"), explained(depth, activation, task), strict=True
                ):
                    yield f"{depth} {activation} {task}{decay}", explanation


def explained(depth: int, activation: str, task: str) -> Iterator[Explanation]:
    """Yield the explanation of a structure without and with weight decay: only the updates differ."""
    rng = np.random.default_rng(depth)
    x = rng.normal(size=(ROWS, INPUTS))
    t = rng.integers(0, OUTPUTS, ROWS) if task == "classification" else rng.normal(size=(ROWS, OUTPUTS))
    kinds, width = ACTIVATIONS[activation], INPUTS
    layers: list[Any] = []
    for number, units in enumerate(WIDTHS[:depth]):
        kind = kinds[number % len(kinds)]
        layers += [Linear(width, units), *([kind()] if kind else [])]
        width = units
    network = Network(*layers, Linear(width, OUTPUTS), loss=LOSSES[task](), dtype="float64", seed=depth)
    execution = execute_network(network, x, t)
    found = explain_execution(execution)
    for optimiser in SGD(0.1), SGD(0.1, weight_decay=WEIGHT_DECAY):
        updates = explain_updates(execution, network, optimiser, len(found.lines))
        live = live_program(execution, network, optimiser)
        yield _without_numbers(replace(found, lines=(*found.lines, *updates), live=live))


def _without_numbers(found: Explanation) -> Explanation:
    """Leave out what the page computes itself: the numbers of arrays, and Jacobians that it could not compute."""
    assert found.live is not None
    made = {found.between(line) for line in found.lines if line.phase == "backward"}
    return replace(
        found,
        introduction="Chosen in the page.",
        ledger={
            name: replace(
                entry,
                summary=entry.summary
                and replace(entry.summary, least=0, mean=0, most=0, deviation=0, norm=0),
                sample=entry.sample and replace(entry.sample, numbers=()),
            )
            for name, entry in found.ledger.items()
        },
        jacobians=tuple(
            replace(each, sample=replace(each.sample, numbers=()))
            for each in found.jacobians
            if (each.output, each.input) in made
        ),
        live=replace(found.live, arrays={}),
    )

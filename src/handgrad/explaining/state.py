"""The record of a network's state: its health over a batch, and its snapshots as it trains."""

from __future__ import annotations

from dataclasses import dataclass

from handgrad.explaining.record import Sample, Summary

LEAST_ROWS = 16  # on which health is judged: of fewer, half a layer may be off by chance


@dataclass(frozen=True)
class HealthFinding:
    """Something unhealthy, with its evidence, its cause, and what to change.

    Attributes
    ----------
    code
        "dead-units", "saturated", "vanishing", "exploding", "large-updates", "small-updates", "symmetric",
        "conflicting-rows".
    place
        The layer or value.
    evidence, cause, change
        In one sentence each, with the numbers.
    """

    code: str
    place: str
    evidence: str
    cause: str
    change: str


@dataclass(frozen=True)
class LayerHealth:
    """What was measured at one layer, whether or not anything is wrong with it.

    Attributes
    ----------
    place
        The layer's value: ``a1``.
    layer
        For people.
    measures
        By name: ``dead``, ``saturated``, ``gradient_norm``, ``update_to_weight``, …
    """

    place: str
    layer: str
    measures: dict[str, float]


@dataclass(frozen=True)
class Health:
    """The state of a network over one batch."""

    layers: tuple[LayerHealth, ...] = ()
    findings: tuple[HealthFinding, ...] = ()


@dataclass(frozen=True)
class Boundary:
    """For two inputs: the answer at every place of a grid, with the rows that were trained on.

    Attributes
    ----------
    x_range, y_range
        Least and most of each input.
    answers
        The class, or the value, row by row from the lowest y.
    """

    x_range: tuple[float, float]
    y_range: tuple[float, float]
    columns: int
    rows: int
    answers: tuple[float, ...]


@dataclass(frozen=True)
class Snapshot:
    """The network at one moment of its training, on the same small batch each time.

    Attributes
    ----------
    epoch, step
        When; 0 before the first step.
    loss
        On the small batch.
    samples
        Of weights, gradients and activations, by name.
    summaries
        Of the same.
    health
        At that moment.
    boundary
        For two inputs.
    """

    epoch: int
    step: int
    loss: float
    samples: dict[str, Sample]
    summaries: dict[str, Summary]
    health: Health = Health()
    boundary: Boundary | None = None

"""Moments of a training, each as the record shows it: the same few rows, looked at again and again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.explaining.boundary import measure_boundary
from handgrad.explaining.explanation import Explanation
from handgrad.explaining.health import measure_health
from handgrad.explaining.samples import sample, summarise
from handgrad.explaining.state import HealthFinding, Snapshot
from handgrad.explaining.tracing import trace_network
from handgrad.layers import Optimiser
from handgrad.network import Network
from handgrad.training import EpochRecord

Array = NDArray[Any]

ROWS = 32  # of the small batch: enough for health to be judged, few enough for a page
MOST_NUMBERS = 6000  # of all samples of one moment together, so that a page of ten stays small
LEAST_SAMPLE = 48
START_AGAIN = "Start again from new weights, with a learning rate ten times lower."
GROWN = 3.0  # weights that grow so much while the loss does not fall are thrown about


class Recorder:
    """Records moments of a training, on one small batch.

    Hand it to `train` as ``after_epoch``. Epochs between two moments cost nothing.

    Parameters
    ----------
    network
        That will be trained.
    x, t
        The training rows; some of them, drawn with ``seed``, become the small batch.
    epochs
        How many there will be.
    moments
        How many to record, the start and the last epoch among them, evenly spread; at least 2.
    batch_size
        The training's, for the number of each moment's step.
    optimiser
        The training's, for the health at the start.
    seed
        Of the rows.

    Examples
    --------
    >>> from handgrad import Linear, Network, SoftmaxCrossEntropy, Tanh, train
    >>> from handgrad.data import moons
    >>> rows = moons(rows=200)
    >>> network = Network(Linear(2, 8), Tanh(), Linear(8, 2), loss=SoftmaxCrossEntropy())
    >>> recorder = Recorder(network, rows.x, rows.t, epochs=6, moments=3)
    >>> recorder.start()
    >>> history = train(network, rows.x, rows.t, epochs=6, after_epoch=recorder)
    >>> [(moment.epoch, moment.step) for moment in recorder.snapshots]
    [(0, 0), (3, 21), (6, 42)]
    """

    def __init__(
        self,
        network: Network,
        x: Array,
        t: Array,
        *,
        epochs: int,
        moments: int = 10,
        batch_size: int = 32,
        optimiser: Optimiser | None = None,
        seed: int = 0,
    ) -> None:
        self.network, self.x, self.optimiser = network, x, optimiser
        rows = small_batch(len(x), seed)
        self.batch = np.asarray(x[rows]), np.asarray(t)[rows]
        self.steps = -(-len(x) // batch_size)
        self.epochs = frozenset(map(round, np.linspace(0, epochs, max(moments, 2)).tolist()))
        self.snapshots: list[Snapshot] = []

    def start(self) -> None:
        """Record the network before its first step; its `Standardise` layer is fitted, as training will."""
        self.network.standardise(self.x)
        self.snapshots = [take_snapshot(self.network, *self.batch, optimiser=self.optimiser)]

    def __call__(self, record: EpochRecord) -> None:
        """Record the network after an epoch, when that is one of the moments."""
        if record.epoch in self.epochs:
            moment = take_snapshot(self.network, *self.batch)
            self.snapshots.append(replace(moment, epoch=record.epoch, step=record.epoch * self.steps))


def small_batch(rows: int, seed: int = 0) -> Array:
    """Return the numbers of the few rows a training is shown on."""
    return np.sort(np.random.default_rng(seed).permutation(rows)[:ROWS])


def take_snapshot(network: Network, x: Array, t: Array, optimiser: Optimiser | None = None) -> Snapshot:
    """Record a network as it is, on a small batch."""
    trace = trace_network(network, x, t)
    made = [node.output.name for node in trace.nodes if node.part == "forward"]
    names = [*network.parameters, *made]
    shown = [name for of in names for name in (of, f"d{of}") if name in trace.values]
    most = max(MOST_NUMBERS // max(len(shown), 1), LEAST_SAMPLE)
    return Snapshot(
        epoch=0,
        step=0,
        loss=float(np.nan_to_num(trace.values["loss"])),
        samples={name: sample(trace.values[name], most) for name in shown},
        summaries={name: summarise(trace.values[name]) for name in shown},
        health=measure_health(trace, network, optimiser),
        boundary=measure_boundary(network, x),
    )


def with_training(explanation: Explanation, snapshots: Sequence[Snapshot]) -> Explanation:
    """Return an explanation with what was recorded of the training, and what that shows of its health."""
    health = explanation.health
    known = {found.code for found in health.findings}
    later = (found for found in find_over_training(snapshots) if found.code not in known)
    health = replace(health, findings=(*health.findings, *later))
    return replace(explanation, health=health, snapshots=tuple(snapshots))


def find_over_training(snapshots: Sequence[Snapshot]) -> Iterator[HealthFinding]:
    """Yield what went wrong on the way: what was healthy at the start and is not any more, and when."""
    if len(snapshots) < 2:
        return
    before = {(found.code, found.place) for found in snapshots[0].health.findings}
    now = {(found.code, found.place) for found in snapshots[-1].health.findings}
    for moment in snapshots[1:]:
        for found in moment.health.findings:
            if (found.code, found.place) in now - before:
                before.add((found.code, found.place))
                yield replace(
                    found,
                    evidence=f"Since epoch {moment.epoch} or shortly before: {found.evidence}",
                    cause=f"{found.cause} At the start it was not so: training has carried it there.",
                    change=START_AGAIN,
                )
    yield from _no_better(snapshots)


def _no_better(snapshots: Sequence[Snapshot]) -> Iterator[HealthFinding]:
    """Find a loss that training has made no smaller, although the weights have grown."""
    first, last = snapshots[0], snapshots[-1]
    later = float(np.median([moment.loss for moment in snapshots[len(snapshots) // 2 :]]))
    start, end = (
        {layer.layer: layer.measures.get("weight_norm", 0.0) for layer in moment.health.layers}
        for moment in (first, last)
    )
    growth = {layer: end[layer] / norm for layer, norm in start.items() if norm > 0 and layer in end}
    most = max(growth, key=growth.__getitem__, default="")
    if later <= first.loss or not most or growth[most] < GROWN:
        return
    yield HealthFinding(
        "large-updates",
        "training",
        f"On the same rows the loss was {first.loss:.3g} before the first step, and {later:.3g} in the later half of "
        "the training.",
        f"The weights of {most} are {growth[most]:.3g} times as large as they started: the learning rate is too high.",
        START_AGAIN,
    )

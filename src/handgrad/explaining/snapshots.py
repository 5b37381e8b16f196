"""Snapshots of a training, always on the same few rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.arrays import dense
from handgrad.explaining.execution import execute_network
from handgrad.explaining.health import GROWN, measure_health
from handgrad.explaining.record import Boundary, Explanation, HealthFinding, Snapshot
from handgrad.explaining.shape_ledger import sample, summarise
from handgrad.layers import Optimiser
from handgrad.network import Network
from handgrad.training import EpochRecord

Array = NDArray[Any]

ROWS = 32  # of the small batch: enough for health to be judged, few enough for a page
MAX_NUMBERS = 6000  # of all samples of one snapshot together, so that a page of ten stays small
MIN_SAMPLE = 48  # numbers of each array, however many there are
GRID = 48  # points along each input of a boundary
MARGIN = 0.1  # of the range of the rows, on each side of a boundary
START_AGAIN = "Start again from new weights, with a learning rate ten times lower."


class Recorder:
    """Records snapshots of a training on a few of its rows: hand it to `train` as ``after_epoch``.

    The first is of the network as it is, its `Standardise` layer fitted, as training will; the others are of ``moments``
    epochs, evenly spread, the last among them.

    Examples
    --------
    >>> from handgrad import Linear, Network, SoftmaxCrossEntropy, Tanh, train
    >>> from handgrad.data import moons
    >>> rows = moons(rows=200)
    >>> network = Network(Linear(2, 8), Tanh(), Linear(8, 2), loss=SoftmaxCrossEntropy())
    >>> recorder = Recorder(network, rows.x, rows.t, epochs=6, moments=3)
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
        rows = small_batch(len(t), seed)
        self.network, self.batch = network, (dense(x[rows]), np.asarray(t)[rows])
        self.steps = -(-len(t) // batch_size)
        self.epochs = frozenset(map(round, np.linspace(0, epochs, max(moments, 2)).tolist()))
        network.standardise(x, t)
        self.snapshots = [take_snapshot(network, *self.batch, optimiser=optimiser)]

    def __call__(self, record: EpochRecord) -> None:
        """Record the network after an epoch, when that is one to be recorded."""
        if record.epoch in self.epochs:
            moment = take_snapshot(self.network, *self.batch)
            self.snapshots.append(replace(moment, epoch=record.epoch, step=record.epoch * self.steps))


def small_batch(rows: int, seed: int = 0) -> Array:
    """Return the numbers of the few rows a training is shown on."""
    order = np.arange(rows, dtype=np.int32 if rows < 2**31 else np.int64)  # of a file there may be many
    np.random.default_rng(seed).shuffle(order)
    return np.sort(order[:ROWS])


def take_snapshot(network: Network, x: Array, t: Array, optimiser: Optimiser | None = None) -> Snapshot:
    """Record a network as it is, on a small batch."""
    execution = execute_network(network, x, t)
    made = [node.output.name for node in execution.nodes if node.part == "forward"]
    names = [*network.parameters, *made]
    shown = [name for of in names for name in (of, f"d{of}") if name in execution.values]
    most = max(MAX_NUMBERS // max(len(shown), 1), MIN_SAMPLE)
    return Snapshot(
        epoch=0,
        step=0,
        loss=float(np.nan_to_num(execution.values["loss"])),
        samples={name: sample(execution.values[name], most) for name in shown},
        summaries={name: summarise(execution.values[name]) for name in shown},
        health=measure_health(execution, network, optimiser),
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


def measure_boundary(network: Network, x: Array) -> Boundary | None:
    """Return the predicted classes or values on a grid around some rows; None when there are not two inputs.

    Examples
    --------
    >>> from handgrad import Linear, Network
    >>> network = Network(Linear(2, 1, initialiser="ones"))
    >>> boundary = measure_boundary(network, np.array([[0.0, 0.0], [10.0, 20.0]]))
    >>> boundary.x_range, boundary.y_range, boundary.answers[0], boundary.answers[-1]
    ((-1.0, 11.0), (-2.0, 22.0), -3.0, 33.0)
    """
    if network.row != (2,) or network.entries is not None or len(network.output_shape) != 2:
        return None
    low, high = np.min(x, axis=0).astype(float), np.max(x, axis=0).astype(float)
    margin = np.where(high > low, MARGIN * (high - low), 1.0)
    x_range, y_range = zip((low - margin).tolist(), (high + margin).tolist(), strict=True)
    across, up = np.meshgrid(np.linspace(*x_range, GRID), np.linspace(*y_range, GRID))
    prediction = network.predict(np.stack([across.ravel(), up.ravel()], axis=1))
    task = network.loss.task if network.loss is not None else "regression"
    answers = prediction.argmax(axis=-1) if task == "classification" else prediction[:, 0]
    if task == "labels":
        answers = answers > 0.5
    return Boundary(x_range, y_range, GRID, GRID, tuple(float(f"{float(each):.4g}") for each in answers))

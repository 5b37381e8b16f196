"""`train_many`: many small networks of one shape trained at once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from handgrad.arguments import Count, Seed, judged
from handgrad.arrays import Array
from handgrad.engines.jax_engine import uninterrupted
from handgrad.engines.many import ManyOnJax
from handgrad.errors import ConfigurationError
from handgrad.layers import Adam, Constant, Optimiser, Schedule
from handgrad.network import Network
from handgrad.training.history import EpochRecord, History
from handgrad.training.metrics import mean_loss, measure_metric, metric_name
from handgrad.training.rows import Subset, Validation, divide_rows


@judged
def train_many(
    networks: Sequence[Network],
    x: ArrayLike,
    t: ArrayLike,
    *,
    rows: Array | None = None,
    validation: Validation = None,
    epochs: Count = 20,
    batch_size: Count = 32,
    optimisers: Optimiser | Sequence[Optimiser] | None = None,
    schedule: Schedule | None = None,
    seeds: Sequence[Seed] | None = None,
    shuffle: bool = True,
) -> list[History]:
    """Train many small networks of one shape at once, as one program; their parameters are changed in place.

    The lines run once for all of them, on one device: ``jax.vmap`` gives each array an axis of networks. What one training
    computes does not depend on the others but in rounding, as sums of a larger product are added in another order.

    Parameters
    ----------
    networks
        Of the same layers and loss, with weights of their own.
    x, t, rows, validation, epochs, batch_size, schedule, shuffle
        As in `train`, the same for all. All rows, and the weights of all networks, are in the device's memory.
    optimisers
        `Adam` when not given; one for all, or one for each, which may differ in their learning rates.
    seeds
        Of the shuffling, the random masks and the validation rows, one for each; the networks' own when not given.

    Returns
    -------
    list of History
        One for each network. Where a loss is not finite, that network alone stops, with the weights of its last finished
        epoch; ``stopped`` is then "diverged". ``seconds`` are of all networks together.

    Raises
    ------
    ShapeError, DataError, ConfigurationError
        When the rows, the targets or a setting do not fit, or the networks or optimisers differ in more than they may.
    MissingPackageError
        Without JAX.

    Examples
    --------
    Which learning rate is best for a network, over three seeds::

        rates, seeds = [0.001, 0.003, 0.01, 0.03], [0, 1, 2]
        networks = [Network(Linear(2, 16), ReLU(), Linear(16, 2), loss=SoftmaxCrossEntropy(), seed=seed)
                    for rate in rates for seed in seeds]
        optimisers = [Adam(rate) for rate in rates for seed in seeds]
        histories = train_many(networks, x, t, validation=0.2, optimisers=optimisers)
    """
    if not networks:
        raise ConfigurationError("train_many: there are no networks")
    seeds = [network.seed for network in networks] if seeds is None else seeds
    if optimisers is None or isinstance(optimisers, Optimiser):
        optimisers = [optimisers or Adam()] * len(networks)
    for name, given in (("optimisers", optimisers), ("seeds", seeds)):
        if len(given) != len(networks):
            raise ConfigurationError(
                f"train_many: {len(given)} {name}, and there are {len(networks)} networks"
            )
    _check_alike(networks, optimisers)
    divided = [
        divide_rows(network, x, t, None, rows, validation, seed)
        for network, seed in zip(networks, seeds, strict=True)
    ]
    for network, (training, _) in zip(networks, divided, strict=True):
        network.standardise(training.arrays["x"], training.arrays["t"], training.order)
    steps = -(-len(divided[0][0]) // batch_size)
    schedule = schedule or Constant()
    rates = np.stack([schedule.rates(each.learning_rate, epochs, steps) for each in optimisers])
    run = _Run(networks, [*divided], optimisers[0], batch_size, seeds, shuffle)
    try:
        for epoch in range(epochs):
            run.epoch(epoch, rates[:, epoch * steps : (epoch + 1) * steps])
    except KeyboardInterrupt:
        for history in run.histories:
            history.stopped = "interrupted" if history.stopped == "finished" else history.stopped
    run.many.write()
    return run.histories


def _check_alike(networks: Sequence[Network], optimisers: Sequence[Optimiser]) -> None:
    """Check that all networks have the lines of the first, and that their optimisers differ in learning rates alone."""
    first = optimisers[0]
    for k, (network, optimiser) in enumerate(zip(networks, optimisers, strict=True)):
        if (
            type(optimiser) is not type(first)
            or replace(optimiser, learning_rate=first.learning_rate) != first
        ):
            raise ConfigurationError(
                f"train_many: optimisers[{k}] is {optimiser!r}, and optimisers[0] is {first!r}",
                fix="let only their learning rates differ, and train the others in another call",
            )
        one, other = ((repr(each), each.row, each.dtype) for each in (network, networks[0]))
        if one != other:
            raise ConfigurationError(
                f"train_many: networks[{k}] is {one}, and networks[0] is {other}",
                fix="give networks of the same layers, loss, inputs and dtype",
            )


class _Run:
    """The trainings, between two epochs."""

    @uninterrupted()
    def __init__(
        self, networks: Sequence[Network], divided: list[tuple[Subset, Subset | None]], optimiser: Optimiser,
        batch_size: int, seeds: Sequence[int], shuffle: bool,
    ) -> None:  # fmt: skip
        assert networks[0].loss is not None
        self.training, self.watched = zip(*divided, strict=True)
        self.loss, self.batch_size, self.seeds, self.shuffle = networks[0].loss, batch_size, seeds, shuffle
        program = networks[0].program(optimiser).keeping("total", "count")
        self.many = ManyOnJax([network.arrays_for(program) for network in networks])
        data = self.many.sent(self.training[0].arrays)
        self.train = self.many.trainer(program, data)
        if self.watched[0] is not None:
            is_same = self.watched[0].arrays is self.training[0].arrays
            data = data if is_same else self.many.sent(self.watched[0].arrays)
            program = networks[0].loss_program()
            self.evaluate, self.outputs = self.many.evaluator(program, data), program.outputs
        facts = {"engine": "jax", "networks": len(networks)}
        facts |= {"rows": len(self.training[0]), "batch_size": batch_size}
        self.histories = [History(metric_name(self.loss), facts=dict(facts)) for _ in networks]

    @uninterrupted()
    def epoch(self, number: int, rates: Array) -> None:
        """Train all that go on for an epoch, and measure their validation rows; weights and histories change together."""
        started = time.perf_counter()
        orders = np.stack([
            rows.shuffled(seed, number) if self.shuffle else rows.order
            for rows, seed in zip(self.training, self.seeds, strict=True)
        ])  # fmt: skip
        goes_on = np.array([history.stopped == "finished" for history in self.histories])
        kept, total, count = self.many.kept, np.zeros(len(orders)), np.zeros(len(orders))
        seeds, step = np.array(self.seeds, np.uint64), number * rates.shape[1] + 1
        whole = orders.shape[1] // self.batch_size
        parts = [(0, whole), (whole, rates.shape[1])]  # a short last batch is a part by itself
        finite = goes_on
        for first, last in (part for part in parts if part[0] < part[1]):
            rows = orders[:, first * self.batch_size : last * self.batch_size].reshape(
                len(orders), last - first, -1
            )
            kept, its_total, its_count, finite = self.train(
                kept, rows, rates[:, first:last], step + first, seeds, finite
            )
            total, count = total + np.asarray(its_total), count + np.asarray(its_count)
        finite = self.many.keep(kept, finite)
        losses, metrics = self.validate()
        seconds = time.perf_counter() - started
        for k, history in enumerate(self.histories):
            if finite[k]:
                record = EpochRecord(
                    number + 1,
                    mean_loss(total[k], count[k]),
                    losses[k],
                    metrics[k],
                    float(rates[k, -1]),
                    seconds,
                )
                history.epochs.append(record)
            elif goes_on[k]:
                history.stopped = "diverged"

    def validate(self) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return loss and metric of each network's validation rows."""
        if self.watched[0] is None:
            return [None] * len(self.histories), [None] * len(self.histories)
        rows = np.stack([watched.order for watched in self.watched])
        found = self.evaluate(self.many.kept, rows)
        totals, counts, predictions = (found[name] for name in self.outputs)
        losses = [mean_loss(float(total), float(count)) for total, count in zip(totals, counts, strict=True)]
        t = self.watched[0].arrays["t"]
        metrics = [
            measure_metric(self.loss, np.asarray(prediction), t[its])
            for prediction, its in zip(predictions, rows, strict=True)
        ]
        return losses, metrics

"""The reference engine against PyTorch eager: microseconds a training step, side by side in one run.

    python benchmarks/reference.py

Medians of 15 rounds of 20 steps each, interleaved, with the ratio of the medians.
"""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import torch

from handgrad import SGD, Adam, Linear, Network, ReLU, SoftmaxCrossEntropy
from handgrad.engines import Epoch, ReferenceEngine

SIZES, BATCH, STEPS, ROUNDS = (784, 256, 128, 10), 128, 20, 15


def ours(optimiser: SGD | Adam, x: np.ndarray, t: np.ndarray) -> Callable[[], None]:
    """Return a function that runs one epoch on the reference engine."""
    layers = []
    for inputs, outputs in pairwise(SIZES):
        layers += [Linear(inputs, outputs), ReLU()]
    network = Network(*layers[:-1], loss=SoftmaxCrossEntropy())
    program = network.program(optimiser).keeping("total", "count")
    slots = {name: np.zeros(shape, np.float32) for name, shape in program.slots.items()}
    bound = ReferenceEngine().bind(program, {**network.arrays, **slots})
    rates = np.full(STEPS, optimiser.learning_rate)
    generator = np.random.default_rng(0)
    return lambda: bound.epoch(Epoch({"x": x, "t": t}, generator.permutation(len(x)), BATCH, rates))


def theirs(
    optimiser: type[torch.optim.Optimizer], rate: float, x: np.ndarray, t: np.ndarray
) -> Callable[[], None]:
    """Return a function that runs one epoch in PyTorch."""
    layers: list[torch.nn.Module] = []
    for inputs, outputs in pairwise(SIZES):
        layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
    model, loss = torch.nn.Sequential(*layers[:-1]), torch.nn.CrossEntropyLoss()
    updates = optimiser(model.parameters(), lr=rate)
    rows, targets = torch.from_numpy(x), torch.from_numpy(t)

    def epoch() -> None:
        order = torch.randperm(len(rows))
        for start in range(0, len(rows), BATCH):
            batch = order[start : start + BATCH]
            updates.zero_grad()
            loss(model(rows[batch]), targets[batch]).backward()
            updates.step()

    return epoch


def microseconds(epoch: Callable[[], None]) -> float:
    """Return the time of one step."""
    started = time.perf_counter()
    epoch()
    return (time.perf_counter() - started) / STEPS * 1e6


def main() -> None:
    """Measure and print."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(BATCH * STEPS, SIZES[0])).astype(np.float32)
    t = generator.integers(0, SIZES[-1], len(x))
    print(f"network {' → '.join(map(str, SIZES))}, batch {BATCH}, float32, ReLU, softmax cross-entropy")
    print(f"numpy {np.__version__}, torch {torch.__version__}, {torch.get_num_threads()} threads")
    print(f"{platform.machine()}, Python {platform.python_version()}")
    pairs = {
        "SGD": (ours(SGD(0.01), x, t), theirs(torch.optim.SGD, 0.01, x, t)),
        "Adam": (ours(Adam(), x, t), theirs(torch.optim.Adam, 1e-3, x, t)),
    }
    print(f"{'':6}{'reference µs':>14}{'PyTorch µs':>14}{'ratio':>8}")
    for name, pair in pairs.items():
        for epoch in pair:
            epoch()
        times = [tuple(microseconds(epoch) for epoch in pair) for _ in range(ROUNDS)]
        reference, pytorch = (statistics.median(column) for column in zip(*times, strict=True))
        print(f"{name:6}{reference:14,.0f}{pytorch:14,.0f}{reference / pytorch:8.2f}")


if __name__ == "__main__":
    main()

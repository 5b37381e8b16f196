"""Train small networks of one shape at once, and one after the other: microseconds a step of one, and how far apart they end.

python benchmarks/many.py, on one core with taskset -c 0. The networks differ in seed and learning rate.
"""

from __future__ import annotations

import numpy as np

from handgrad import (
    SGD,
    Adam,
    Linear,
    Network,
    Optimiser,
    ReLU,
    SoftmaxCrossEntropy,
    Standardise,
    train,
    train_many,
)
from handgrad.data import Dataset, digits, moons

BATCH, EPOCHS = 32, 8


def networks(data: Dataset, width: int, count: int, dtype: str = "float32") -> list[Network]:
    """Make them, each with a seed of its own."""
    layers = Linear(data.x.shape[1], width), ReLU(), Linear(width, len(data.classes))
    return [
        Network(Standardise(), *layers, loss=SoftmaxCrossEntropy(), seed=k, dtype=dtype) for k in range(count)
    ]


def microseconds(seconds: list[float], rows: int, count: int) -> float:
    """Return what a step of one network took in the fastest epoch but the first, which compiles."""
    return min(seconds[1:]) / -(-rows // BATCH) / count * 1e6


def rates(count: int) -> list[float]:
    """Return a learning rate for each."""
    return np.geomspace(0.001, 0.03, count).tolist()


def compare(data: Dataset, width: int, optimiser: type[Optimiser], dtype: str, count: int = 64) -> None:
    """Print how far apart four networks end that are trained at once, and alone."""
    together = networks(data, width, count, dtype)
    made = [optimiser(rate) for rate in rates(count)]
    histories = train_many(together, data.x, data.t, epochs=4, batch_size=BATCH, optimisers=made)
    weights, losses = [], []
    for k in range(0, count, count // 4):
        alone = networks(data, width, count, dtype)[k]
        history = train(
            alone, data.x, data.t, epochs=4, batch_size=BATCH, optimiser=made[k], seed=k, engine="jax"
        )
        losses.append(abs(history.epochs[-1].loss / histories[k].epochs[-1].loss - 1))
        for name, array in alone.parameters.items():
            weights.append(np.abs(array - together[k].parameters[name]).max() / np.abs(array).max())
    print(
        f"{data.name} {optimiser.__name__} {dtype}: losses {max(losses):.0e} apart, weights {max(weights):.0e}"
    )


if __name__ == "__main__":
    for data, width in ((moons(), 8), (digits(), 32)):
        rows = len(data.x)
        for engine in ("compiled", "jax"):
            (network,) = networks(data, width, 1)
            history = train(network, data.x, data.t, epochs=EPOCHS, batch_size=BATCH, engine=engine)
            took = microseconds([each.seconds for each in history.epochs], rows, 1)
            print(f"{data.name} {width} wide, one after the other, {engine:8} {took:8.1f} µs")
        for count in (1, 16, 64, 256):
            histories = train_many(
                networks(data, width, count), data.x, data.t, epochs=EPOCHS, batch_size=BATCH
            )
            took = microseconds([each.seconds for each in histories[0].epochs], rows, count)
            print(f"{data.name} {width} wide, {count:3} at once, jax{took:21.1f} µs", flush=True)
        for optimiser in (SGD, Adam):
            for dtype in ("float64", "float32"):
                compare(data, width, optimiser, dtype)

"""Fifty networks drawn at random that together have every layer and every option, each trained a little."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from handgrad import (
    ELU,
    GELU,
    SGD,
    BatchNorm,
    BinaryCrossEntropy,
    Dropout,
    Embedding,
    HandgradError,
    Huber,
    Layer,
    LayerNorm,
    LeakyReLU,
    Linear,
    Loss,
    MeanSquaredError,
    Network,
    ReLU,
    Residual,
    Sequential,
    Sigmoid,
    SiLU,
    Softmax,
    SoftmaxCrossEntropy,
    Softplus,
    Standardise,
    Tanh,
    train,
)

Array = NDArray[Any]

COUNT, ROWS, TIME, ENTRIES = 50, 41, 3, 11

ACTIVATIONS: list[Callable[[Generator], Layer]] = [
    lambda rng: ReLU(),
    lambda rng: LeakyReLU(round(rng.uniform(0.1, 0.4), 2)),
    lambda rng: ELU(round(rng.uniform(0.3, 1.5), 2)),
    lambda rng: GELU(),
    lambda rng: GELU("tanh"),
    lambda rng: SiLU(),
    lambda rng: Sigmoid(),
    lambda rng: Tanh(),
    lambda rng: Softplus(),
    lambda rng: Softmax(),
]

NORMALISATIONS: list[Callable[[Generator], Layer]] = [
    lambda rng: BatchNorm(epsilon=round(rng.uniform(0.01, 0.2), 3), momentum=round(rng.uniform(0.1, 0.4), 2)),
    lambda rng: LayerNorm(epsilon=round(rng.uniform(0.01, 0.2), 3)),
    lambda rng: Dropout(round(rng.uniform(0.1, 0.6), 2)),
]

LOSSES: list[Callable[[Generator, int], Loss]] = [
    lambda rng, outputs: MeanSquaredError(),
    lambda rng, outputs: Huber(0.3),
    lambda rng, outputs: BinaryCrossEntropy(),
    lambda rng, outputs: BinaryCrossEntropy(2.5),
    lambda rng, outputs: BinaryCrossEntropy(rng.uniform(0.5, 3, outputs).round(2).tolist()),
    lambda rng, outputs: SoftmaxCrossEntropy(),
    lambda rng, outputs: SoftmaxCrossEntropy(smoothing=0.2),
    lambda rng, outputs: SoftmaxCrossEntropy(ignored=1),
    lambda rng, outputs: SoftmaxCrossEntropy(
        smoothing=0.1, ignored=-100, class_weight=rng.uniform(0.5, 3, outputs).round(2).tolist()
    ),
    lambda rng, outputs: SoftmaxCrossEntropy(
        "probabilities", class_weight=rng.uniform(0.5, 3, outputs).tolist()
    ),
]


@dataclass
class Drawn:
    """A network that was drawn, and rows for it.

    Attributes
    ----------
    network
        After a short training.
    x, t
        Rows and targets of the kind its loss takes.
    """

    network: Network
    x: Array
    t: Array

    @property
    def tight(self) -> float:
        """How far its numbers may be from another library's, relative to the largest."""
        return 1e-6 if self.network.dtype == "float32" else 1e-12


def layers_in(body: Sequential) -> Iterator[Layer]:
    """Yield every layer, those that hold others too."""
    for layer in body.layers:
        yield layer
        if isinstance(layer, Sequential):
            yield from layers_in(layer)


@cache
def drawn(number: int) -> Drawn:
    """Return one of the networks: the same each time."""
    rng = np.random.default_rng([number, 7])
    width, features, outputs = rng.choice(np.arange(4, 13), 3, replace=False).tolist()
    kind = ("rows", "stacks", "index", "indices", "rows")[number % 5]
    body: list[Layer] = []
    inputs: Any = {"rows": features, "stacks": (TIME, features), "index": (), "indices": (TIME,)}[kind]
    shape = (ROWS, *((inputs,) if isinstance(inputs, int) else inputs))
    if kind.startswith("ind"):
        body.append(Embedding(ENTRIES, features))
        x: Array = rng.integers(0, ENTRIES, shape)
    else:
        body += [Standardise(("feature", "all")[number % 2])] if number % 3 else []
        x = rng.normal(2, 3, shape)
    body += [_linear(rng, features, width), ACTIVATIONS[number % len(ACTIVATIONS)](rng)]
    inner = [_linear(rng, width, width), NORMALISATIONS[number % 3](rng), ACTIVATIONS[rng.integers(10)](rng)]
    body.append((Residual, Sequential)[number % 4 == 3](*inner))
    body += [NORMALISATIONS[rng.integers(3)](rng), _linear(rng, width, outputs)]
    loss = LOSSES[(number // 5) % len(LOSSES)](rng, outputs)
    dtype = ("float32", "float64")[number // 2 % 2]
    network = Network(*body, loss=loss, inputs=inputs, seed=number, dtype=dtype)
    made = Drawn(network, x, targets(rng, loss, shape[: 2 if kind in ("stacks", "indices") else 1], outputs))
    for name, array in network.parameters.items():  # biases and gains start at 0 and 1
        array += rng.normal(0, 0.2, array.shape) if name[0] in "bg" else 0
    train(network, made.x, made.t, epochs=2, batch_size=9, optimiser=SGD(0.05), engine="reference")
    return made


def _linear(rng: Generator, inputs: int, outputs: int) -> Linear:
    layout = ("in_out", "out_in")[rng.integers(2)]
    return Linear(inputs, outputs, bool(rng.integers(3)), layout)  # type: ignore[arg-type]


def targets(rng: Generator, loss: Loss, rows: tuple[int, ...], outputs: int) -> Array:
    """Draw targets of the kind a loss takes; where a class is passed over, some rows have it."""
    if loss.task == "regression":
        return rng.normal(size=(*rows, outputs))
    if loss.task == "labels":
        return rng.integers(0, 2, (*rows, outputs)).astype(float)
    if loss.targets == "probabilities":  # type: ignore[attr-defined]
        return rng.dirichlet(np.ones(outputs), rows)
    classes = rng.integers(0, outputs, rows)
    ignored = loss.ignored  # type: ignore[attr-defined]
    return classes if ignored is None else np.where(rng.random(rows) < 0.3, ignored, classes)


def refused(call: Callable[[], Any]) -> str:
    """Return what an error of handgrad's says first."""
    try:
        call()
    except HandgradError as error:
        return error.problem
    raise AssertionError("nothing was refused")

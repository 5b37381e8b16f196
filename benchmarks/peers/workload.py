"""What every peer is given to do: a network, its first weights, and rows to learn from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

RATES = {"sgd": 0.01, "adam": 0.001}


class UnavailableError(Exception):
    """A peer cannot do this, and why."""


class Batches:
    """So many batches of so many rows, the adapters of `peers` apart."""

    peers: ClassVar[Mapping[str, str]] = {}
    """Where adapters of its own are, by the peer's name."""
    batch: int
    steps: int

    @property
    def rows(self) -> int:
        """How many rows an epoch goes over."""
        return self.batch * self.steps


@dataclass(frozen=True)
class Workload(Batches):
    """Linear layers with ReLU between them, softmax cross-entropy, float32, rows shuffled each epoch.

    Attributes
    ----------
    sizes
        Features in, between and out.
    batch, steps
        Rows of a batch, and batches of an epoch.
    optimiser
        At a constant rate: see `RATES`.
    dropout, batch_norm
        Whether each hidden layer has dropout of a half after its ReLU, or batch norm before it.
    """

    sizes: tuple[int, ...]
    batch: int
    steps: int
    optimiser: Literal["sgd", "adam"] = "sgd"
    dropout: bool = False
    batch_norm: bool = False

    @property
    def name(self) -> str:
        """A short name: ``784-128-10/32``, and what is special."""
        special = ("adam",) * (self.optimiser == "adam")
        special += ("dropout",) * self.dropout + ("batch norm",) * self.batch_norm
        return "/".join(("-".join(map(str, self.sizes)), str(self.batch), *special))

    @property
    def rate(self) -> float:
        """The learning rate."""
        return RATES[self.optimiser]

    def data(self) -> tuple[Array, Array]:
        """Return rows, and the classes that a random linear map gives them: there is something to learn."""
        generator = np.random.default_rng(0)
        x = generator.standard_normal((self.rows, self.sizes[0]), dtype=np.float32)
        teacher = generator.standard_normal((self.sizes[0], self.sizes[-1]), dtype=np.float32)
        return x, (x @ teacher).argmax(axis=1)

    def weights(self) -> list[Array]:
        """Return the first weights of each linear layer, (inputs, outputs); biases are zero."""
        generator = np.random.default_rng(1)
        return [
            generator.standard_normal((inputs, outputs), dtype=np.float32) * np.float32(np.sqrt(2 / inputs))
            for inputs, outputs in pairwise(self.sizes)
        ]


_THIRD = Workload((784, 256, 128, 10), 128, 150)

WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload((784, 128, 10), 1, 2000),
        Workload((784, 128, 10), 32, 500),
        _THIRD,
        Workload((30, 64, 64, 2), 64, 1000),
        Workload((784, 2048, 2048, 10), 512, 4),
        replace(_THIRD, optimiser="adam"),
        replace(_THIRD, dropout=True),
        replace(_THIRD, batch_norm=True),
    )
}
"""The five networks and the variants of the third, by name."""


def loss_of(scores: Array, t: Array) -> float:
    """Return the cross-entropy of scores (logits, or logarithms of shares), of rows or of places of sequences."""
    scores, t = np.asarray(scores, float).reshape(-1, scores.shape[-1]), t.reshape(-1)
    scores = scores - scores.max(axis=1, keepdims=True)
    shares = np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(len(t)), t]
    return float(shares.mean())

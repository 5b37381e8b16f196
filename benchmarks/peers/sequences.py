"""An LSTM that every peer is given: its sizes, its first weights, and sequences to learn from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peers.workload import Array, Batches

PEERS = {
    "handgrad": "peers.sequence_network:Compiled",
    "PyTorch eager": "peers.sequence_torch:Eager",
    "torch.compile": "peers.sequence_torch:Compiled",
    "JAX scan": "peers.sequence_jax:Scan",
    "products, 1 thread": "peers.sequence_network:OneThread",
    "products, divided": "peers.sequence_network:Divided",
}
"""Where each adapter is, by the peer's name."""


@dataclass(frozen=True)
class Sequences(Batches):
    """An LSTM and a linear layer on its last time, softmax cross-entropy, Adam, float32, rows shuffled each epoch."""

    peers = PEERS

    features: int = 128
    width: int = 128
    times: int = 64
    classes: int = 10
    batch: int = 32
    steps: int = 10
    rate: float = 1e-3
    optimiser: str = "adam"

    @property
    def name(self) -> str:
        """A short name, with the batch size."""
        return f"LSTM {self.width}, {self.times} times/{self.batch}"

    def data(self) -> tuple[Array, Array]:
        """Return sequences, and the classes that a random linear map gives the mean of their last eight times."""
        generator = np.random.default_rng(0)
        x = generator.standard_normal((self.rows, self.times, self.features), dtype=np.float32)
        teacher = generator.standard_normal((self.features, self.classes), dtype=np.float32)
        return x, (x[:, -8:].mean(axis=1) @ teacher).argmax(axis=1)

    def weights(self) -> list[Array]:
        """Return the first weights: of x, and of the last layer."""
        return [self._drawn(1, (self.features, 4 * self.width)), self._drawn(2, (self.width, self.classes))]

    def recurrent(self) -> Array:
        """Return the first weights of the state."""
        return self._drawn(3, (self.width, 4 * self.width))

    def _drawn(self, seed: int, shape: tuple[int, int]) -> Array:
        numbers = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
        return numbers / np.float32(np.sqrt(shape[0]))


WORKLOADS = {workload.name: workload for workload in (Sequences(),)}

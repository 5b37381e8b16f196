"""A character GPT that every peer is given: its sizes, its first weights, and texts to learn from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peers.workload import Array, Batches

PEERS = {
    "handgrad": "peers.text_network:Compiled",
    "PyTorch eager": "peers.text_torch:Eager",
    "torch.compile": "peers.text_torch:Compiled",
    "JAX scan": "peers.text_jax:Scan",
    "products, 1 thread": "peers.text_network:OneThread",
    "products, divided": "peers.text_network:Divided",
}
"""Where each adapter is, by the peer's name."""

WEIGHT_DECAY, CLIP_NORM = 0.01, 1.0


@dataclass(frozen=True)
class Texts(Batches):
    """A GPT of GPT-2's blocks (GELU by tanh), its own last layer, AdamW with clipped gradients, float32.

    Attributes
    ----------
    layers, width, heads, context, characters
        Blocks, features, heads, places of a text, and how many characters there are.
    batch, steps
        Texts of a batch, and batches of an epoch.
    """

    peers = PEERS

    layers: int = 4
    width: int = 128
    heads: int = 4
    context: int = 128
    characters: int = 65
    batch: int = 16
    steps: int = 8
    rate: float = 3e-4
    optimiser: str = "adamw"

    @property
    def name(self) -> str:
        """A short name, with the batch size."""
        return f"GPT {self.layers} x {self.width}, {self.heads} heads, context {self.context}/{self.batch}"

    def data(self) -> tuple[Array, Array]:
        """Return texts in which most characters have one follower, and those followers."""
        generator = np.random.default_rng(0)
        follower = generator.permutation(self.characters)
        text = generator.integers(0, self.characters, (self.rows, self.context + 1))
        for place in range(self.context):
            follows = generator.random(self.rows) < 0.8
            text[follows, place + 1] = follower[text[follows, place]]
        return text[:, :-1].copy(), text[:, 1:].copy()

    def tables(self) -> tuple[Array, Array]:
        """Return the first embedding of characters, and that of places."""
        generator = np.random.default_rng(2)
        shapes = (self.characters, self.width), (self.context, self.width)
        e, p = (generator.normal(0, 0.02, shape).astype(np.float32) for shape in shapes)
        return e, p

    def weights(self) -> list[Array]:
        """Return each block's weights, of queries, keys, values, heads, up and down, and those of the last layer."""
        d, generator = self.width, np.random.default_rng(1)
        shapes = [(d, d)] * 4 + [(d, 4 * d), (4 * d, d)]
        shapes = shapes * self.layers + [(d, self.characters)]
        return [generator.normal(0, 0.02, shape).astype(np.float32) for shape in shapes]


WORKLOADS = {workload.name: workload for workload in (Texts(), Texts(layers=2, context=512, batch=4))}

"""Convolutional networks that every peer is given: LeNet-5 and ResNet-8, their first weights, and images to learn from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from peers.workload import Array, Batches

PEERS = {
    "handgrad": "peers.image_networks:Compiled",
    "PyTorch eager": "peers.image_torch:Eager",
    "PyTorch channels_last": "peers.image_torch:ChannelsLast",
    "torch.compile": "peers.image_torch:Compiled",
    "torch.compile, channels_last": "peers.image_torch:CompiledChannelsLast",
    "JAX jit": "peers.image_jax:Jit",
    "JAX scan": "peers.image_jax:Scan",
    "products, 1 thread": "peers.image_networks:OneThread",
    "products, divided": "peers.image_networks:Divided",
}
"""Where each adapter is, by the peer's name."""

BLOCKS = ((16, 16, 1), (16, 32, 2), (32, 64, 2))
"""Channels in and out, and stride, of ResNet-8's blocks; one whose output has another shape has a 1 × 1 shortcut."""


@dataclass(frozen=True)
class Images(Batches):
    """A network of images, softmax cross-entropy, float32, SGD, rows shuffled each epoch."""

    peers = PEERS

    network: Literal["LeNet-5", "ResNet-8"]
    batch: int = 64
    steps: int = 10
    rate: float = 0.02
    optimiser: str = "sgd"

    @property
    def name(self) -> str:
        """A short name, with the batch size."""
        return f"{self.network}/{self.batch}"

    @property
    def image(self) -> tuple[int, int, int]:
        """Height, width and channels."""
        return (28, 28, 1) if self.network == "LeNet-5" else (32, 32, 3)

    def data(self) -> tuple[Array, Array]:
        """Return images, channels last, and the classes that a random linear map gives them."""
        generator = np.random.default_rng(0)
        x = generator.standard_normal((self.rows, *self.image), dtype=np.float32)
        teacher = generator.standard_normal((int(np.prod(self.image)), 10), dtype=np.float32)
        return x, (x.reshape(self.rows, -1) @ teacher).argmax(axis=1)

    def weights(self) -> list[Array]:
        """Return the first weights: (K, L, I, O) of convolutions, (inputs, outputs) of linear layers, in their order."""
        if self.network == "LeNet-5":
            shapes = [(5, 5, 1, 6), (5, 5, 6, 16), (400, 120), (120, 84), (84, 10)]
        else:
            shapes = [(3, 3, 3, 16)]
            for inputs, outputs, stride in BLOCKS:
                shapes += [(3, 3, inputs, outputs), (3, 3, outputs, outputs)]
                shapes += [(1, 1, inputs, outputs)] * (stride != 1)
            shapes += [(64, 10)]
        generator = np.random.default_rng(1)
        return [
            generator.standard_normal(shape, dtype=np.float32) * np.float32(np.sqrt(2 / np.prod(shape[:-1])))
            for shape in shapes
        ]


WORKLOADS = {workload.name: workload for workload in (Images("LeNet-5"), Images("ResNet-8"))}

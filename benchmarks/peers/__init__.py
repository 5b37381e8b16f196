"""Libraries that train the same networks, each behind the same small adapter.

An adapter's constructor builds the network with the workload's weights. Each raises `UnavailableError`, or
ImportError, when it cannot.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, Protocol

from peers.workload import Array, Batches, Workload


class Peer(Protocol):
    """A library with a network to train."""

    facts: Mapping[str, Any]

    def __init__(self, workload: Workload) -> None: ...

    def epoch(self) -> None:
        """Do the workload's steps once, over rows shuffled anew."""

    def scores(self, x: Array) -> Array | None:
        """Return the network's logits, or logarithms of shares, as they are now; None when it learns nothing."""


OURS = "handgrad"
"""The peer that all others are compared with."""

PEERS = {
    OURS: "peers.ours:Compiled",
    "handgrad reference": "peers.ours:Reference",
    "handgrad jax": "peers.ours_jax:Jax",
    "scikit-learn": "peers.sklearn_mlp:ScikitLearn",
    "thinc": "peers.thinc_model:Thinc",
    "PyTorch eager": "peers.pytorch:Eager",
    "PyTorch eager, fused update": "peers.pytorch:Fused",
    "torch.compile": "peers.pytorch:Compiled",
    "JAX jit": "peers.jax_steps:Jit",
    "JAX scan": "peers.jax_steps:Scan",
    "products, 1 thread": "peers.products:OneThread",
    "products, divided": "peers.products:Divided",
    "products, BLAS's threads": "peers.products:OwnThreads",
}
"""Where each adapter is, by the peer's name."""

FLOOR = tuple(name for name in PEERS if name.startswith("products"))
"""The peers that only multiply matrices; the fastest of them is the floor."""


def load(name: str, workload: Batches) -> type[Peer]:
    """Import a peer's adapter; a workload of another kind has its own."""
    module, adapter = (workload.peers or PEERS)[name].split(":")
    found: type[Peer] = getattr(importlib.import_module(module), adapter)
    return found

"""The loss of a character GPT by epoch, handgrad's beside PyTorch's: the same model, weights and text, float32.

    python benchmarks/text_curve.py

Four blocks of width 128 with 4 heads on Alice's Adventures in Wonderland, in windows of 128 characters, the last tenth held
out; AdamW with clipped gradients. Every seed has first weights and an order of its own, the same for both libraries: what
the curves differ by beside what seeds differ by is the question.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace

import numpy as np
import torch
from peers import Peer
from peers.machine import facts, summary
from peers.text_network import Compiled
from peers.text_torch import Eager
from peers.texts import Texts
from peers.workload import Array, loss_of

from handgrad.data import alice

TEXT = alice(128)
HELD_OUT = len(TEXT) // 10


@dataclass(frozen=True)
class Alice(Texts):
    """The text without what is held out; a seed of the first weights."""

    characters: int = len(TEXT.classes)
    steps: int = (len(TEXT) - HELD_OUT) // 16
    seed: int = 0

    def data(self) -> tuple[Array, Array]:
        """Return as many windows as there are whole batches."""
        return TEXT.x[: self.rows].astype(np.int64), TEXT.t[: self.rows].astype(np.int64)

    def tables(self) -> tuple[Array, Array]:
        """Return the first embeddings."""
        e, p = super().tables()
        return self._drawn_anew(e, 0), self._drawn_anew(p, 1)

    def weights(self) -> list[Array]:
        """Return the first weights."""
        return [self._drawn_anew(W, 2 + k) for k, W in enumerate(super().weights())]

    def _drawn_anew(self, array: Array, which: int) -> Array:
        generator = np.random.default_rng((self.seed, which))
        return generator.normal(0, 0.02, array.shape).astype(np.float32)


class Ordered(Eager):
    """PyTorch, on the rows in the order that handgrad draws."""

    def __init__(self, workload: Alice) -> None:
        super().__init__(workload)
        self.generator = np.random.default_rng(workload.seed)

    def epoch(self) -> None:
        """Take the rows in that order."""
        self.model.train()
        for rows in torch.from_numpy(self.generator.permutation(len(self.x))).split(self.workload.batch):
            self.step(rows)


def curve(peer: Peer, epochs: int) -> list[float]:
    """Return the loss on what is held out after each epoch."""
    losses = []
    x, t = TEXT.x[-HELD_OUT:].astype(np.int64), TEXT.t[-HELD_OUT:].astype(np.int64)
    for _ in range(epochs):
        peer.epoch()
        scores = peer.scores(x)
        assert scores is not None
        losses.append(loss_of(scores, t))
    return losses


def main() -> None:
    """Train with each seed, and print the mean and the standard deviation of the losses by epoch."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--seeds", type=int, default=3, help="how many (3)")
    options.add_argument("--epochs", type=int, default=8, help="how many (8)")
    given = options.parse_args()
    print(summary(facts()), end="\n\n")
    ours, theirs = [], []
    for seed in range(given.seeds):
        workload = replace(Alice(), seed=seed)
        network = Compiled(workload)
        network.generator = np.random.default_rng(seed)
        ours.append(curve(network, given.epochs))
        theirs.append(curve(Ordered(workload), given.epochs))
    print(f"{'steps':>6}{'handgrad':>19}{'PyTorch':>19}{'difference':>12}")
    for k, (one, other) in enumerate(zip(np.transpose(ours), np.transpose(theirs), strict=True), 1):
        columns = "".join(f"{each.mean():11.4f} ± {each.std(ddof=1):.4f}" for each in (one, other))
        print(f"{k * Alice().steps:6}{columns}{one.mean() - other.mean():12.4f}")


if __name__ == "__main__":
    main()

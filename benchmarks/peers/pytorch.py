"""PyTorch: eager, with fused updates, and compiled."""

# ruff: noqa: D102 - methods are described in `peers.Peer`

from __future__ import annotations

import shutil
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, ClassVar

import torch

from peers.workload import Array, UnavailableError, Workload


class Eager:
    """The usual loop, with rows gathered by a shuffled index (a DataLoader would be slower)."""

    settings: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.facts = {"version": torch.__version__, "threads": torch.get_num_threads()}
        x, t = workload.data()
        self.x, self.t = torch.from_numpy(x), torch.from_numpy(t)
        self.model = self.made(workload)
        self.loss = torch.nn.CrossEntropyLoss()
        kinds = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
        optimiser = kinds[workload.optimiser]
        self.optimiser = optimiser(self.model.parameters(), lr=workload.rate, **self.settings)

    def made(self, workload: Workload) -> torch.nn.Sequential:
        """Return the network."""
        return model_of(workload)

    def epoch(self) -> None:
        self.model.train()
        for rows in torch.randperm(len(self.x)).split(self.workload.batch):
            self.step(rows)

    def step(self, rows: torch.Tensor) -> None:
        self.optimiser.zero_grad()
        self.loss(self.model(self.x[rows]), self.t[rows]).backward()
        self.optimiser.step()

    def scores(self, x: Array) -> Array | None:
        self.model.eval()
        with torch.no_grad():
            return self.model(torch.from_numpy(x)).numpy()


class Fused(Eager):
    """The update of all arrays as one native call."""

    settings: ClassVar[Mapping[str, Any]] = {"fused": True}


class Compiled(Eager):
    """Forward and backward compiled as one graph, and the update as another."""

    def __init__(self, workload: Workload) -> None:
        if not any(map(shutil.which, ("g++", "clang++", "cl"))):
            raise UnavailableError("needs a C++ compiler, and there is none")
        super().__init__(workload)
        self.forward = torch.compile(lambda rows: self.loss(self.model(self.x[rows]), self.t[rows]))
        self.update = torch.compile(self.optimiser.step)

    def step(self, rows: torch.Tensor) -> None:
        self.optimiser.zero_grad()
        self.forward(rows).backward()
        self.update()


def model_of(workload: Workload) -> torch.nn.Sequential:
    """Return the network with the workload's weights."""
    layers: list[torch.nn.Module] = []
    for (inputs, outputs), W in zip(pairwise(workload.sizes), workload.weights(), strict=True):
        linear = torch.nn.Linear(inputs, outputs)
        with torch.no_grad():
            linear.weight.copy_(torch.from_numpy(W.T))
            linear.bias.zero_()
        layers.append(linear)
        layers += [torch.nn.BatchNorm1d(outputs)] * workload.batch_norm + [torch.nn.ReLU()]
        layers += [torch.nn.Dropout(0.5)] * workload.dropout
    return torch.nn.Sequential(*layers[: len(layers) - 1 - workload.batch_norm - workload.dropout])

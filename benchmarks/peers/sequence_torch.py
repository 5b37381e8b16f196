"""PyTorch on an LSTM: eager, and compiled."""

# ruff: noqa: D102 - methods are described in `peers.Peer`

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import nn

from peers import pytorch
from peers.sequences import Sequences


class Recurrent(nn.Module):
    """An LSTM, and a linear layer on its last time; of its two biases both are updated."""

    def __init__(self, workload: Sequences) -> None:
        super().__init__()
        self.lstm = nn.LSTM(workload.features, workload.width, batch_first=True)
        self.last = nn.Linear(workload.width, workload.classes)
        W, V = workload.weights()
        pairs = (
            (self.lstm.weight_ih_l0, W),
            (self.lstm.weight_hh_l0, workload.recurrent()),
            (self.last.weight, V),
        )
        with torch.no_grad():
            for own, given in pairs:
                own.copy_(torch.from_numpy(given.T.copy()))
            for bias in (self.lstm.bias_ih_l0, self.lstm.bias_hh_l0, self.last.bias):
                bias.zero_()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.lstm(x)[0][:, -1])


class Eager(pytorch.Eager):
    """The usual loop, with fused updates."""

    settings: ClassVar[Mapping[str, Any]] = {"fused": True}

    def made(self, workload: Sequences) -> Recurrent:  # type: ignore[override] - of sequences
        return Recurrent(workload)


class Compiled(Eager, pytorch.Compiled):
    """Forward and backward compiled as one graph; the update is one native call already."""

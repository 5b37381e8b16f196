"""PyTorch on the character GPT, as nanoGPT writes it: eager, and compiled."""

# ruff: noqa: D102 - methods are described in `peers.Peer`

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from peers import pytorch
from peers.texts import CLIP_NORM, WEIGHT_DECAY, Texts
from peers.workload import Array


class Block(nn.Module):
    """Attention and two linear maps, each behind a norm and added to its input."""

    def __init__(self, workload: Texts, weights: list[Array]) -> None:
        super().__init__()
        d, self.heads = workload.width, workload.heads
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(2))
        queries_keys_values = np.concatenate(weights[:3], axis=1)
        self.maps = nn.ModuleList(linear(W) for W in (queries_keys_values, *weights[3:]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, t, d = x.shape
        parts = self.maps[0](self.norms[0](x)).split(d, dim=2)
        q, k, v = (part.view(n, t, self.heads, d // self.heads).transpose(1, 2) for part in parts)
        found = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.maps[1](found.transpose(1, 2).reshape(n, t, d))
        inner = functional.gelu(self.maps[2](self.norms[1](x)), approximate="tanh")
        return x + self.maps[3](inner)


class Texted(nn.Module):
    """The whole GPT; characters are second, as `CrossEntropyLoss` takes them."""

    def __init__(self, workload: Texts) -> None:
        super().__init__()
        e, p = (torch.from_numpy(table) for table in workload.tables())
        weights = workload.weights()
        self.characters = nn.Embedding.from_pretrained(e, freeze=False)
        self.places = nn.Parameter(p)
        self.blocks = nn.Sequential(
            *(Block(workload, weights[6 * k : 6 * k + 6]) for k in range(workload.layers))
        )
        self.norm, self.last = nn.LayerNorm(workload.width), linear(weights[-1])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.norm(self.blocks(self.characters(x) + self.places))).transpose(1, 2)


def linear(W: Array) -> nn.Linear:
    """Return a linear map with given weights, and no bias yet."""
    made = nn.Linear(*W.shape)
    with torch.no_grad():
        made.weight.copy_(torch.from_numpy(W.T.copy()))
        made.bias.zero_()
    return made


class Eager(pytorch.Eager):
    """The usual loop, with fused updates."""

    settings: ClassVar[Mapping[str, Any]] = {"fused": True, "weight_decay": WEIGHT_DECAY}

    def made(self, workload: Texts) -> Texted:  # type: ignore[override] - of texts
        return Texted(workload)

    def step(self, rows: torch.Tensor) -> None:
        self.optimiser.zero_grad()
        self.forward(rows).backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), CLIP_NORM)
        self.optimiser.step()

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.loss(self.model(self.x[rows]), self.t[rows])

    def scores(self, x: Array) -> Array | None:
        return np.moveaxis(super().scores(x), 1, -1)


class Compiled(Eager, pytorch.Compiled):
    """Forward and backward compiled as one graph; the update is one native call already."""

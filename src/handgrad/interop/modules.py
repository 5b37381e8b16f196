"""Modules that PyTorch lacks and `to_torch` needs; `from_torch` knows them too, so a model may be built of them."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class ResidualModule(nn.Sequential):
    """Modules whose output is added to their input, or to a ``shortcut`` of it: ``x + f(x)``."""

    def __init__(self, *modules: nn.Module, shortcut: nn.Module | None = None) -> None:
        super().__init__(*modules)
        self.count = len(modules)
        if shortcut is not None:
            self.shortcut = shortcut

    def forward(self, x: Tensor) -> Tensor:
        """Return the sum."""
        f = x
        for number in range(self.count):
            f = self[number](f)
        return (self.shortcut(x) if len(self) > self.count else x) + f


class StandardiseModule(nn.Module):
    """Features less their mean, over their deviation, both of the training rows.

    Parameters
    ----------
    features
        The length of a row.
    over
        What the statistics were taken over, as in `handgrad.Standardise`.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, features: int, over: str = "feature") -> None:
        super().__init__()
        self.over = over
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("deviation", torch.ones(features))

    def extra_repr(self) -> str:
        """Return the options, for ``print(model)``."""
        return f"{len(self.mean)}, over={self.over!r}"

    def forward(self, x: Tensor) -> Tensor:
        """Return the standardised rows."""
        return (x - self.mean) / self.deviation


class StandardiseTargetsModule(nn.Module):
    """Outputs times the deviation of the training targets, plus their mean.

    A loss takes what comes in, and targets less their mean over their deviation.

    Parameters
    ----------
    features
        How many outputs a row has.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, features: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("deviation", torch.ones(features))

    def extra_repr(self) -> str:
        """Return the options, for ``print(model)``."""
        return f"{len(self.mean)}"

    def forward(self, z: Tensor) -> Tensor:
        """Return outputs in the targets' unit."""
        return z * self.deviation + self.mean


class BatchNormOfRows(nn.BatchNorm1d):
    """BatchNorm1d of the last axis, with all axes before it as rows: BatchNorm1d itself takes the second axis."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the normalised rows."""
        return super().forward(x.flatten(0, -2)).view(x.shape)

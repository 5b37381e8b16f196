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
        The length of a row, or how many channels images have.
    over
        What the statistics were taken over, as in `handgrad.Standardise`.
    channels_first
        Whether it takes images (n, C, H, W).
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, features: int, over: str = "feature", *, channels_first: bool = False) -> None:
        super().__init__()
        self.over, self.channels_first = over, channels_first
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("deviation", torch.ones(features))

    def extra_repr(self) -> str:
        """Return the options, for ``print(model)``."""
        return f"{len(self.mean)}, over={self.over!r}" + self.channels_first * ", channels_first=True"

    def forward(self, x: Tensor) -> Tensor:
        """Return the standardised rows."""
        if not self.channels_first:
            return (x - self.mean) / self.deviation
        return ((x.movedim(1, -1) - self.mean) / self.deviation).movedim(-1, 1)


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


class ReshapeModule(nn.Module):
    """Give each row another shape, as `handgrad.Reshape` does: images with channels last, which come out channels first.

    Parameters
    ----------
    shape
        Of a row: (H, W, C) for images.
    channels_first
        Whether the last axis comes out as the second.
    """

    def __init__(self, shape: tuple[int, ...], *, channels_first: bool = False) -> None:
        super().__init__()
        self.shape, self.channels_first = shape, channels_first

    def extra_repr(self) -> str:
        """Return the options, for ``print(model)``."""
        return f"{self.shape}" + self.channels_first * ", channels_first=True"

    def forward(self, x: Tensor) -> Tensor:
        """Return the rows in their new shape."""
        y = x.reshape(len(x), *self.shape)
        return y.movedim(-1, 1) if self.channels_first else y


class GlobalAvgPool2dModule(nn.Module):
    """The average of each channel of images (n, C, H, W)."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the averages (n, C)."""
        return x.mean((-2, -1))


class _States:
    """Of a recurrent module of one layer: the states of all times and nothing else, with rows first."""

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size, batch_first=True)  # type: ignore[call-arg] # of nn.RNN, LSTM, GRU

    def forward(self, x: Tensor) -> Tensor:
        """Return the states (n, T, H) of (n, T, D)."""
        states: Tensor = super().forward(x)[0]  # type: ignore[misc] # likewise
        return states


class RNNModule(_States, nn.RNN):  # type: ignore[misc]  # the states alone
    """An RNN of one layer, (n, T, D) to the states (n, T, H)."""


class LSTMModule(_States, nn.LSTM):  # type: ignore[misc]  # the states alone
    """An LSTM of one layer, (n, T, D) to the states (n, T, H)."""


class GRUModule(_States, nn.GRU):  # type: ignore[misc]  # the states alone
    """A GRU of one layer, (n, T, D) to the states (n, T, H)."""


class LastModule(nn.Module):
    """The last time of sequences."""

    def forward(self, x: Tensor) -> Tensor:
        """Return (n, D) of (n, T, D)."""
        return x[:, -1]


class SelfAttentionModule(nn.MultiheadAttention):
    """MultiheadAttention of a sequence with itself, (n, T, D) to (n, T, D).

    Parameters
    ----------
    embed_dim, num_heads
        As of MultiheadAttention.
    causal
        Whether no place attends to later ones.
    """

    def __init__(self, embed_dim: int, num_heads: int, *, causal: bool = False) -> None:
        super().__init__(embed_dim, num_heads, batch_first=True)
        self.causal = causal

    def extra_repr(self) -> str:
        """Return the options, for ``print(model)``."""
        return f"{self.embed_dim}, {self.num_heads}" + self.causal * ", causal=True"

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]  # one input
        """Return what each place gets."""
        mask = (
            torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
            if self.causal
            else None
        )
        return super().forward(x, x, x, need_weights=False, attn_mask=mask, is_causal=self.causal)[0]


class PositionsModule(nn.Module):
    """A learned vector added to each place of a sequence.

    Parameters
    ----------
    shape
        Of the vectors: (T, D).
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(shape))

    def extra_repr(self) -> str:
        """Return the options, for ``print(model)``."""
        return f"{tuple(self.weight.shape)}"

    def forward(self, x: Tensor) -> Tensor:
        """Return the sum."""
        return x + self.weight

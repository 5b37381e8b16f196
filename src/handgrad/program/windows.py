"""Windows of images, lowered to operations: where they are taken, what is added up where they were taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from handgrad.program.functions import Functions, whole
from handgrad.program.lowered import Extent, Extents, LoweredValue


@dataclass(frozen=True)
class WindowGeometry:
    """Windows along the two axes before the channels; an array with one such axis is one row high.

    ``sizes`` are the image's (H, V), ``size`` the window's (K, L); all pairs are (down, across).
    """

    sizes: tuple[int, int]
    channels: int
    size: tuple[int, int]
    stride: int = 1
    padding: tuple[int, int] = (0, 0)
    dilation: int = 1

    @property
    def counts(self) -> tuple[int, int]:
        """How many windows there are."""
        a, b = (
            (length + 2 * around - self.dilation * (reach - 1) - 1) // self.stride + 1
            for length, reach, around in zip(self.sizes, self.size, self.padding, strict=True)
        )
        return a, b

    @property
    def places(self) -> int:
        """How many entries a window has for each channel."""
        return self.size[0] * self.size[1]


class Windows(Functions):
    """The primitives of windows, and of groups of their channels."""

    def primitive_windows(
        self,
        x: LoweredValue,
        size: tuple[Any, ...],
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        fill: float = 0.0,
    ) -> LoweredValue:
        lengths = x.shape[-1 - len(size) : -1]
        geometry = _geometry(lengths, x.shape[-1], size, (stride, padding, dilation))
        counts = tuple(map(Extent, geometry.counts[-len(size) :]))
        shape = (*x.shape[: -1 - len(size)], *counts, Extent(geometry.places), x.shape[-1])
        return self.value("windows", (self.contiguous(x),), shape, x.type, (geometry, float(fill)))

    def primitive_add_windows(
        self,
        v: LoweredValue,
        sizes: tuple[Any, ...],
        size: tuple[Any, ...],
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
    ) -> LoweredValue:
        lengths = tuple(Extent(whole(length)) for length in sizes)
        geometry = _geometry(lengths, v.shape[-1], size, (stride, padding, dilation))
        shape = (*v.shape[: -2 - len(size)], *lengths, v.shape[-1])
        return self.value("add_windows", (self.contiguous(v),), shape, v.type, geometry)

    def primitive_block_diagonal(self, v: LoweredValue, groups: Any) -> LoweredValue:
        *around, height, columns = v.shape
        shape = (*around, height * Extent(whole(groups)), columns)
        return self.value("block_diagonal", (self.contiguous(v),), shape, v.type, whole(groups))

    def primitive_diagonal_blocks(self, v: LoweredValue, groups: Any, height: Any) -> LoweredValue:
        shape = (v.shape[0] // Extent(whole(groups)), v.shape[1])
        return self.value(
            "diagonal_blocks", (self.contiguous(v),), shape, v.type, (whole(groups), whole(height))
        )

    def primitive_first_largest(self, u: LoweredValue) -> LoweredValue:
        return self.value("first_largest", (self.contiguous(u),), u.shape, "bool")


def _geometry(
    lengths: Extents, channels: Extent, size: tuple[Any, ...], spacing: tuple[Any, Any, Any]
) -> WindowGeometry:
    """Return where windows are; along one axis they are those of images of one row."""
    if len(size) > 2 or any(length.rows for length in lengths):
        raise NotImplementedError("windows along more than two axes, or along the batch's rows")
    stride, padding, dilation = map(whole, spacing)
    one = len(size) == 1
    images = tuple(whole(length) for length in lengths)
    reach = tuple(whole(length) for length in size)
    return WindowGeometry(
        (1, images[0]) if one else (images[0], images[1]),
        whole(channels),
        (1, reach[0]) if one else (reach[0], reach[1]),
        stride,
        (0, padding) if one else (padding, padding),
        dilation,
    )

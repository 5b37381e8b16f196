"""The arrays of a network, and checks of what it is called with: rows, targets and sample weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from handgrad.arrays import Array, as_array, as_rows
from handgrad.errors import ConfigurationError, DataError, ShapeError, nearest
from handgrad.layers import Layer, Loss
from handgrad.rules import Shape, show_shape


class Arrays(MutableMapping[str, Array]):
    """A network's parameters or buffers by name, with fixed shapes and types: setting one copies the numbers into it."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self._arrays = dict(arrays)

    def __getitem__(self, name: str) -> Array:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        return repr(self._arrays)

    def __delitem__(self, name: str) -> None:
        raise ConfigurationError(f"{name} cannot be taken from its network", fix="set it to other numbers")

    def __setitem__(self, name: str, numbers: Any) -> None:
        if name not in self:
            raise ConfigurationError(f"the network has no {name!r}", fix=nearest(name, self))
        if np.shape(numbers) != self[name].shape:
            raise ShapeError(
                f"{name} is {show_shape(self[name].shape)}, and {show_shape(np.shape(numbers))} is given"
            )
        self[name][...] = numbers


def check_rows(x: ArrayLike, row: tuple[int, ...], entries: int | None, *, first: Layer) -> Array:
    """Return ``x`` as an array of such rows, whose indices are below ``entries``, or raise the reason why it is none."""
    x = as_rows("x", x)
    if x.shape[1:] != row or x.ndim == 0:
        raise ShapeError(
            f"the data has rows of {show_shape(x.shape[1:])}, the network takes {show_shape(row)}",
            given=f"x{show_shape(x.shape)}; layer 1 is {first!r}",
            fix=f"x{show_shape(('n', *row))} would fit",
        )
    if x.dtype.kind not in "fiub":
        raise DataError(f"x holds {x.dtype}, not numbers")
    if entries is not None and (place := _first((x < 0) | (x >= entries) | (x != np.floor(x)))) is not None:
        raise DataError(
            f"x[{', '.join(map(str, place))}] is {x[place]}, and an index is a whole number from 0 to {entries - 1}",
            given=f"layer 1 is {first!r}",
        )
    return x


def check_targets(t: ArrayLike, rows: int, loss: Loss, output: Shape) -> Array:
    """Return the targets of a loss over an output of this shape, or raise the reason why they are none."""
    t = as_array("t", t)
    shape, kind = loss.target(output)
    wanted = _sizes(shape, rows)
    if t.shape == wanted[:-1] and wanted[-1:] == (1,) and kind != "class":
        t = t[..., None]
    if t.shape != wanted:
        raise ShapeError(
            f"{loss!r}: the targets are {show_shape(t.shape)}, and {rows} rows need {show_shape(wanted)}",
            fix="class numbers need one whole number a row" if kind == "class" else "",
        )
    if kind == "class":
        _check_classes(t, loss, int(output[-1]))
    elif t.dtype.kind not in "fiub":
        raise DataError(f"the targets hold {t.dtype}, not numbers")
    elif loss.task != "regression":
        _check_probabilities(t, loss)
    elif loss.least is not None and (place := _first(t < loss.least)) is not None:
        raise DataError(
            f"{loss!r}: {_target(place, t.ndim - 1)} is {t[place]}, and must be {loss.least:g} or more"
        )
    return t


def check_sample_weight(sample_weight: ArrayLike, rows: int, shape: Shape) -> Array:
    """Return sample weights in the shape that the loss takes, or raise the reason why they are none."""
    w = as_array("sample_weight", sample_weight)
    wanted = _sizes(shape, rows)
    if w.shape == (rows,):
        w = np.broadcast_to(w.reshape(rows, *[1] * (len(wanted) - 1)), wanted)
    if w.shape != wanted:
        raise ShapeError(f"sample_weight is {show_shape(w.shape)}, and {rows} rows need {show_shape(wanted)}")
    if (place := _first(~(np.isfinite(w) & (w >= 0)))) is not None:
        raise DataError(f"sample_weight of row {place[0]} is {w[place]}, and must be finite, 0 or more")
    return w


def _check_classes(t: Array, loss: Loss, classes: int) -> None:
    """Check class numbers: whole, and each that of an output, or the one to be ignored."""
    if t.dtype.kind not in "iub":
        raise DataError(f"{loss!r}: the targets hold {t.dtype}, and classes are whole numbers")
    ignored = getattr(loss, "ignored", None)
    wrong = ((t < 0) | (t >= classes)) & (t != ignored if ignored is not None else True)
    if (place := _first(wrong)) is not None:
        raise DataError(
            f"{loss!r}: {_target(place, t.ndim)} is class {t[place]}, "
            f"and the network has {classes} outputs (0 to {classes - 1})"
        )


def _check_probabilities(t: Array, loss: Loss) -> None:
    """Check what is a probability: each between 0 and 1; those of one class of several add up to 1."""
    if (place := _first(~((t >= 0) & (t <= 1)))) is not None:
        raise DataError(f"{loss!r}: {_target(place, t.ndim - 1)} is {t[place]}, and must be from 0 to 1")
    total = t.sum(axis=-1) if loss.task == "classification" else np.ones(1)
    if (place := _first(np.abs(total - 1) > 1e-3)) is not None:
        raise DataError(
            f"{loss!r}: the target probabilities of row {place[0]} add up to {total[place]:.4g}, not to 1"
        )


def _sizes(shape: Shape, rows: int) -> tuple[int, ...]:
    return tuple(rows if size == "n" else int(size) for size in shape)


def _target(place: tuple[int, ...], axes: int) -> str:
    """Return what a target is called: by its row, and in a sequence by its place; ``axes`` are those without features."""
    return f"the target of row {place[0]}" if axes < 2 else f"the target t[{', '.join(map(str, place))}]"


def _first(wrong: Array) -> tuple[int, ...] | None:
    """Return the position of the first true value, or None."""
    return tuple(map(int, np.argwhere(wrong)[0])) if wrong.any() else None

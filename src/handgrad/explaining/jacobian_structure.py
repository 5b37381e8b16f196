"""The structure of a Jacobian, found in its numbers: what of it need be stored, and what that is called."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.explaining.record import Structure
from handgrad.tolerance import close

Array = NDArray[Any]
Named = list[tuple[str, Array]]

EXACT = 1e-9  # of the largest entry: what is below is zero in a Jacobian by backward lines, in float64
MAX_NONZERO = 0.5  # of a block's entries, where it is sparse: each takes its place besides its number
MAX_SHARE = 0.75  # of a block's numbers: a diagonal with a low rank that takes more saves too little
MAX_BLOCK = 512  # rows of a block that is decomposed: a second or so


@dataclass(frozen=True)
class StoredForm:
    """A Jacobian in its stored form: each axis has a number, and off the diagonal of two with one number all is zero."""

    kind: Structure
    outputs: tuple[int, ...]  # the numbers of the axes
    inputs: tuple[int, ...]
    sizes: dict[int, int]
    core: Array  # what is left along the diagonals
    axes: tuple[int, ...]  # of the core: a shared one that is missing is constant
    low_rank: tuple[Array, Array] | None = (
        None  # with each block's diagonal as the core, the factors of the rest
    )

    @property
    def shared(self) -> tuple[int, ...]:
        """The axes that output and input share."""
        return tuple(axis for axis in self.outputs if axis in self.inputs)

    @property
    def numbers(self) -> int:
        """How many numbers are stored."""
        if self.kind == "sparse":
            return int(np.count_nonzero(self.core))
        return self.core.size + sum(factor.size for factor in self.low_rank or ())

    @property
    def operations(self) -> int:
        """How many multiplications a vector-Jacobian product takes."""
        return self.numbers * int(
            np.prod([self.sizes[axis] for axis in self.shared if axis not in self.axes])
        )

    def pull(self, upstream: Array) -> Array:
        """Return the vector-Jacobian product of the stored form with an upstream gradient."""
        if self.kind == "zero":
            return np.zeros([self.sizes[axis] for axis in self.inputs])
        if self.low_rank is None:
            return np.asarray(np.einsum(upstream, self.outputs, self.core, self.axes, self.inputs))
        left, right = self.low_rank
        down, across = (
            [*self.shared, *(axis for axis in axes if axis not in self.shared)]
            for axes in (self.outputs, self.inputs)
        )
        u = np.einsum(upstream, self.outputs, down).reshape(left.shape[:-1])
        pulled = self.core.reshape(u.shape) * u + (right @ (left.swapaxes(-1, -2) @ u[..., None]))[..., 0]
        return np.asarray(
            np.einsum(pulled.reshape([self.sizes[axis] for axis in across]), across, self.inputs)
        )


def recognise(jacobian: Array, outputs: int, tolerance: float = EXACT) -> StoredForm:
    """Find out what of a Jacobian, whose first axes are the output's, need be stored.

    Examples
    --------
    >>> recognise(np.diag([1.0, 2.0, 3.0]), 1).kind
    'diagonal'
    >>> recognise(np.einsum("i,oj->oij", np.arange(1.0, 4.0), np.eye(2)), 1).core
    array([1., 2., 3.])
    """
    largest = float(np.abs(jacobian).max(initial=0))
    out, into = tuple(range(outputs)), _paired(jacobian, outputs, tolerance * largest)
    sizes = dict(zip((*out, *into), jacobian.shape, strict=True))
    if largest == 0:
        return StoredForm("zero", out, into, sizes, np.zeros(()), ())
    shared = [axis for axis in out if axis in into]
    rest_out = [axis for axis in out if axis not in into]
    rest_in = [axis for axis in into if axis not in out]
    axes = [*shared, *rest_out, *rest_in]
    core = np.array(np.einsum(jacobian, [*out, *into], axes))
    for axis in out:  # constant along an axis of the output: one index is enough
        position = axes.index(axis)
        constant = np.ptp(core, axis=position).max(initial=0) <= tolerance * largest
        if constant and (axis in shared or any(other not in axes for other in shared)):
            core = np.asarray(core.take(0, axis=position))
            axes.remove(axis)
    rest = [axis for axis in (*rest_out, *rest_in) if sizes[axis] > 1]
    kind: Structure = "full"
    if not rest and jacobian.size > 1:
        kind = "diagonal"
    elif rest and any(axis not in axes for axis in shared):
        kind = "kronecker"
    elif any(sizes[axis] > 1 for axis in shared):
        kind = "block diagonal"
    stored = StoredForm(kind, out, into, sizes, core, tuple(axes))
    square = [sizes[axis] for axis in rest_out] == [sizes[axis] for axis in rest_in]
    if kind in ("full", "block diagonal") and square:
        return _with_low_rank(stored, len(rest_out), tolerance * largest)
    return stored


def _paired(jacobian: Array, outputs: int, least: float) -> tuple[int, ...]:
    """Return numbers for the input's axes: that of an output's where all off the diagonal of the two is zero."""
    nonzero = np.abs(jacobian) > least
    numbers: list[int] = []
    for axis in range(outputs, jacobian.ndim):
        found = axis
        for other in range(outputs):
            size = jacobian.shape[axis]
            if size == 1 or jacobian.shape[other] != size or other in numbers:
                continue
            rest = tuple(k for k in range(jacobian.ndim) if k not in (axis, other))
            if not np.any(nonzero.any(axis=rest) & ~np.eye(size, dtype=bool)):
                found = other
                break
        numbers.append(found)
    return tuple(numbers)


def _with_low_rank(stored: StoredForm, width: int, least: float) -> StoredForm:
    """Split each block into a diagonal and a low rank, where that takes clearly fewer numbers."""
    shape = stored.core.shape
    leading = shape[: len(shape) - 2 * width]
    k = int(np.prod(shape[len(leading) : len(leading) + width], dtype=int))
    blocks = stored.core.reshape(*leading, k, k)
    if not 3 < k <= MAX_BLOCK:
        return stored
    left, sizes, right = np.linalg.svd(_completed(blocks))
    rank = int((sizes > 10 * least).sum(axis=-1).max())
    if rank == 0 or k + 2 * k * rank > MAX_SHARE * k * k:
        return stored
    factors = left[..., :rank] * sizes[..., None, :rank], right[..., :rank, :].swapaxes(-1, -2)
    diagonal = np.diagonal(blocks - factors[0] @ factors[1].swapaxes(-1, -2), axis1=-2, axis2=-1)
    again = factors[0] @ factors[1].swapaxes(-1, -2) + diagonal[..., None] * np.eye(k)
    if np.abs(again - blocks).max() > 10 * least:
        return stored
    return replace(stored, kind="diagonal plus low rank", core=diagonal, low_rank=factors)


def _completed(blocks: Array) -> Array:
    """Replace the diagonals by what a low rank would have there.

    With i, J and K apart, B[i, K] = B[i, J]' holds in a matrix of low rank: B[i, i] = B[i, J] B[K, J]⁺ B[K, i].
    None of these entries is on the diagonal.
    """
    k = blocks.shape[-1]
    groups = [np.arange(start, k, 3) for start in range(3)]
    completed = blocks.copy()
    for turn in range(3):
        own, second, third = (groups[(turn + step) % 3] for step in range(3))
        between = np.linalg.pinv(blocks[..., third[:, None], second], rcond=1e-7)
        first, last = blocks[..., own[:, None], second], blocks[..., third[:, None], own]
        completed[..., own, own] = np.einsum("...ij,...jk,...ki->...i", first, between, last)
    return completed


def as_sparse(stored: StoredForm, tolerance: float = EXACT) -> StoredForm:
    """Return a structure that has no name as a sparse one, where most entries of its blocks are zero."""
    least = tolerance * float(np.abs(stored.core).max(initial=0))
    core = np.where(np.abs(stored.core) > least, stored.core, 0)
    if stored.low_rank is not None or np.count_nonzero(core) > MAX_NONZERO * core.size:
        return stored
    return replace(stored, kind="sparse", core=core)


def proof(stored: StoredForm, jacobian: Array, generator: np.random.Generator) -> float:
    """Return the relative difference of the two forms' products with a random upstream gradient."""
    outputs = len(stored.outputs)
    upstream = np.asarray(generator.normal(size=jacobian.shape[:outputs]))
    full = np.tensordot(upstream, jacobian, axes=outputs)
    difference = np.abs(stored.pull(upstream) - full).max(initial=0)
    return float(difference / (np.abs(full).max(initial=0) or 1.0))


def name_stored(stored: StoredForm, named: Named) -> str:
    """Return what is stored by the name of the value that has these numbers, or else by its shape."""
    if stored.kind == "zero":
        return "0"
    if stored.kind == "sparse":
        return f"{stored.numbers:,} of {stored.core.size:,} entries"
    axes = [axis for axis in stored.axes if stored.low_rank is None or axis in stored.outputs]
    in_order = np.transpose(stored.core.reshape([stored.sizes[axis] for axis in axes]), np.argsort(axes))
    core = name_of(in_order, named) or f"{'×'.join(map(str, in_order.shape)) or '1'} numbers"
    if stored.kind == "diagonal":
        return "I" if core == "1" else f"diag({core})"
    if stored.kind == "kronecker":
        return f"{core} ⊗ I"
    if stored.kind != "diagonal plus low rank" or stored.low_rank is None:
        return core
    return f"diag({core}) {_name_product(stored.low_rank, named)}"


def name_of(array: Array, named: Named) -> str:
    """Return the name of an array, or "" when none has its numbers.

    Examples
    --------
    >>> name_of(np.array([[1.0, 2.0]]), [("x", np.array([1.0, 2.0]))])
    'x'
    """
    wanted = np.squeeze(array)
    size = float(np.abs(wanted).max(initial=0)) or 1.0
    for name, value in named:
        found = np.squeeze(value)
        if found.size == wanted.size:  # a window's axes are joined where its numbers are a row
            found = found.reshape(wanted.shape)
        same = found.ndim and found.shape == wanted.shape[wanted.ndim - found.ndim :]
        if same and close(np.broadcast_to(found, wanted.shape), wanted, least=size):
            return name
    number = float(wanted.flat[0])
    if not close(wanted, np.full(wanted.shape, number), least=size):
        return ""
    single = (name for name, value in named if value.size == 1 and close(value.flat[0], number, least=size))
    return "1" if close(number, 1.0) else next(single, f"{number:.4g}")


def _name_product(factors: tuple[Array, Array], named: Named) -> str:
    """Name a product of low rank: ``- y yᵀ``, or its rank."""
    left, right = factors
    rank = left.shape[-1]
    whole = left @ right.swapaxes(-1, -2)
    size = float(np.abs(whole).max())
    for name, value in named:
        if rank == 1 and np.squeeze(value).shape == np.squeeze(left).shape:
            vector = value.reshape(left.shape)
            for sign, word in ((-1, "-"), (1, "+")):
                if close(sign * vector @ vector.swapaxes(-1, -2), whole, least=size):
                    return f"{word} {name} {name}ᵀ"
    return f"+ U Vᵀ, of rank {rank}"

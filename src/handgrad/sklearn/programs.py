"""Bound programs, cached for every fit of the same shape, which makes fits of few rows quick; and rows as they take them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from handgrad.engines import DEFAULT_ENGINE, BoundProgram, bind
from handgrad.layers import Optimiser
from handgrad.network import Network
from handgrad.program import Program

Array = NDArray[Any]

MAX_CACHED = 8
"""Programs that wait for a fit of their shape: a grid search over a few shapes finds them all, and memory stays small."""

DENSE_ROWS = 4096
"""Sparse rows that are dense at the same time, about: enough for large batches, and little memory."""

_cache: OrderedDict[tuple[str, ...], FitProgram] = OrderedDict()


@dataclass(frozen=True)
class FitProgram:
    """A program, bound to ``arrays`` of its own: parameters, buffers and the optimiser's slots."""

    program: Program
    bound: BoundProgram
    arrays: dict[str, Array]

    def load(self, *sources: dict[str, Array]) -> None:
        """Copy numbers in, by name; what no source has is 0."""
        found = {name: array for source in sources for name, array in source.items()}
        for name, own in self.arrays.items():
            own[...] = found.get(name, 0)

    def store(self, network: Network) -> None:
        """Copy the numbers into the network's arrays."""
        for name, array in network.arrays.items():
            array[...] = self.arrays[name]

    @property
    def slots(self) -> dict[str, Array]:
        """Copies of the optimiser's slots."""
        return {name: self.arrays[name].copy() for name in self.program.slots}


@contextmanager
def fit_program(network: Network, optimiser: Optimiser | None, *, weighted: bool) -> Iterator[FitProgram]:
    """Lend the training program of a network: with an optimiser's updates, or with the gradients as outputs.

    Nobody else has it meanwhile. Taking and giving back are single operations on the dictionary, so that threads
    need no lock; one that finds nothing makes a program of its own.
    """
    at_any_rate = optimiser and replace(optimiser, learning_rate=1.0)  # the rate comes with each epoch
    key = (repr(network), str(network.row), network.dtype, repr(at_any_rate), str(weighted))
    found = _cache.pop(key, None) or _make(network, optimiser, weighted)
    try:
        yield found
    finally:
        _cache[key] = found
        while len(_cache) > MAX_CACHED:
            _cache.popitem(last=False)


def _make(network: Network, optimiser: Optimiser | None, weighted: bool) -> FitProgram:
    program = network.program(optimiser, weighted=weighted)
    program = program.keeping("total", "count") if optimiser else program.without_updates()
    arrays = {name: array.copy() for name, array in network.arrays.items()}
    arrays |= {name: np.zeros(shape, network.dtype) for name, shape in program.slots.items()}
    return FitProgram(program, bind(DEFAULT_ENGINE, program, arrays), arrays)


def dense(array: Any) -> Array:
    """Return a sparse matrix as an array, and an array as it is."""
    return array.toarray() if scipy.sparse.issparse(array) else array


def dense_chunks(
    arrays: dict[str, Any], order: Array, batch_size: int
) -> Iterator[tuple[dict[str, Array], Array]]:
    """Yield arrays that an engine reads and the order of their rows: all, or of sparse rows some batches at a time."""
    if not scipy.sparse.issparse(arrays["x"]):
        yield arrays, order
        return
    length = max(DENSE_ROWS // batch_size, 1) * batch_size
    for start in range(0, len(order), length):
        rows = order[start : start + length]
        yield {name: dense(array[rows]) for name, array in arrays.items()}, np.arange(len(rows))


def predict(network: Network, x: Any) -> Array:
    """Return a network's output for each row of dense or sparse features."""
    if not scipy.sparse.issparse(x):
        return network.predict(x)
    starts = range(0, x.shape[0], DENSE_ROWS)
    return np.concatenate([network.predict(dense(x[start : start + DENSE_ROWS])) for start in starts])

"""Rows for a fit, of dense or sparse features; sparse ones are made dense a few batches at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from handgrad.network import Network

Array = NDArray[Any]

DENSE_ROWS = 4096
"""How many sparse rows are dense at the same time, about."""


@dataclass(frozen=True)
class Rows:
    """Rows to fit or to look at.

    Attributes
    ----------
    arrays
        x, t, and w when rows have weights; x may be a sparse matrix in row form.
    order
        Which rows.
    """

    arrays: dict[str, Any]
    order: Array

    def __len__(self) -> int:
        return len(self.order)

    def parts(self, batch_size: int) -> Iterator[tuple[dict[str, Array], Array]]:
        """Yield arrays that an engine can read and the order of their rows, cut between batches only."""
        if not scipy.sparse.issparse(self.arrays["x"]):
            yield self.arrays, self.order
            return
        length = max(DENSE_ROWS // batch_size, 1) * batch_size
        for start in range(0, len(self), length):
            rows = self.order[start : start + length]
            yield {name: dense(array[rows]) for name, array in self.arrays.items()}, np.arange(len(rows))


def dense(array: Any) -> Array:
    """Return a sparse matrix as an array, and an array as it is."""
    return array.toarray() if scipy.sparse.issparse(array) else array


def predict(network: Network, x: Any) -> Array:
    """Return a network's answer for each row of dense or sparse features."""
    if not scipy.sparse.issparse(x):
        return network.predict(x)
    starts = range(0, x.shape[0], DENSE_ROWS)
    return np.concatenate([network.predict(dense(x[start : start + DENSE_ROWS])) for start in starts])

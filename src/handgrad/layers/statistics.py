"""Statistics of the training rows that a network keeps: the mean and the deviation it standardises by.

A stand-alone script carries the source of the one it uses. Both work through the rows a part at a time: a small one,
so that it stays in the processor's cache, and ``x`` may be larger than memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def feature_statistics(x: Array) -> tuple[Array, Array]:
    """Return mean and deviation of each feature over all rows; a constant feature has deviation 1.

    Examples
    --------
    >>> feature_statistics(np.array([[1.0, 5.0], [3.0, 5.0]]))
    (array([2., 5.]), array([1., 1.]))
    """
    x = x.reshape(-1, x.shape[-1])
    parts = [slice(start, start + 1024) for start in range(0, len(x), 1024)]
    mean = sum(x[part].sum(axis=0, dtype=np.float64) for part in parts) / len(x)
    var = sum(((x[part] - mean) ** 2).sum(axis=0) for part in parts) / len(x)
    varies = sum((x[part] != x[0]).any(axis=0) for part in parts)  # a constant's variance is only nearly 0
    return mean, np.where(varies, np.sqrt(var), 1)


def common_statistics(x: Array) -> tuple[Array, Array]:
    """Return the mean and the deviation of all numbers together, once for each feature: for pixels.

    Examples
    --------
    >>> common_statistics(np.array([[1.0, 5.0], [3.0, 3.0]]))
    (array([3., 3.]), array([1.41421356, 1.41421356]))
    """
    x = x.reshape(-1, x.shape[-1])
    parts = [slice(start, start + 1024) for start in range(0, len(x), 1024)]
    mean = sum(x[part].sum(dtype=np.float64) for part in parts) / x.size
    var = sum(((x[part] - mean) ** 2).sum() for part in parts) / x.size
    varies = any((x[part] != x[0, 0]).any() for part in parts)  # a constant's variance is only nearly 0
    return np.full(x.shape[-1], mean), np.full(x.shape[-1], np.sqrt(var) if varies else 1.0)


STATISTICS: dict[str, Callable[[Array], tuple[Array, Array]]] = {
    function.__name__: function for function in (common_statistics, feature_statistics)
}

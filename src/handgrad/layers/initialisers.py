"""Where weights start, as functions of a generator, a shape and the fan; and what is fitted on the training rows.

A stand-alone script carries the source of those it uses. Statistics work through the rows a part at a time: a small one,
so that it stays in the processor's cache, and ``x`` may be larger than memory.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from handgrad.arrays import Array

__all__ = ["INITIALISERS"]

Generator = np.random.Generator


def he_normal(generator: Generator, shape: tuple[int, ...], fan_in: int, fan_out: int) -> Array:
    """Draw normal numbers of variance 2 / fan_in, for rectifiers (He, Zhang, Ren, Sun, arXiv 1502.01852)."""
    return generator.normal(0.0, np.sqrt(2 / fan_in), shape)


def he_uniform(generator: Generator, shape: tuple[int, ...], fan_in: int, fan_out: int) -> Array:
    """Draw uniform numbers of variance 2 / fan_in, for rectifiers (He, Zhang, Ren, Sun, arXiv 1502.01852)."""
    bound = np.sqrt(6 / fan_in)
    return generator.uniform(-bound, bound, shape)


def glorot_normal(generator: Generator, shape: tuple[int, ...], fan_in: int, fan_out: int) -> Array:
    """Draw normal numbers of variance 2 / (fan_in + fan_out), for tanh (Glorot and Bengio, 2010)."""
    return generator.normal(0.0, np.sqrt(2 / (fan_in + fan_out)), shape)


def glorot_uniform(generator: Generator, shape: tuple[int, ...], fan_in: int, fan_out: int) -> Array:
    """Draw uniform numbers of variance 2 / (fan_in + fan_out), for tanh (Glorot and Bengio, 2010)."""
    bound = np.sqrt(6 / (fan_in + fan_out))
    return generator.uniform(-bound, bound, shape)


def lecun_normal(generator: Generator, shape: tuple[int, ...], fan_in: int, fan_out: int) -> Array:
    """Draw normal numbers of variance 1 / fan_in (LeCun, Bottou, Orr, Müller, Efficient BackProp, 1998)."""
    return generator.normal(0.0, np.sqrt(1 / fan_in), shape)


def lecun_uniform(generator: Generator, shape: tuple[int, ...], fan_in: int, fan_out: int) -> Array:
    """Draw uniform numbers of variance 1 / fan_in (LeCun, Bottou, Orr, Müller, Efficient BackProp, 1998)."""
    bound = np.sqrt(3 / fan_in)
    return generator.uniform(-bound, bound, shape)


def standard_normal(generator: Generator, shape: tuple[int, ...], fan_in: int, fan_out: int) -> Array:
    """Draw normal numbers of variance 1, for embeddings."""
    return generator.normal(0.0, 1.0, shape)


def small_normal(generator: Generator, shape: tuple[int, ...], fan_in: int, fan_out: int) -> Array:
    """Draw normal numbers of deviation 0.02, for transformers (Radford et al., GPT, 2018)."""
    return generator.normal(0.0, 0.02, shape)


def zeros(generator: Generator, shape: tuple[int, ...], fan_in: int, fan_out: int) -> Array:
    """Return all 0, for biases; weights that start equal stay equal."""
    return np.zeros(shape)


def ones(generator: Generator, shape: tuple[int, ...], fan_in: int, fan_out: int) -> Array:
    """Return all 1, for the gains of a normalisation."""
    return np.ones(shape)


INITIALISERS: dict[str, Callable[[Generator, tuple[int, ...], int, int], Array]] = {
    function.__name__: function
    for function in (
        glorot_normal, glorot_uniform, he_normal, he_uniform, lecun_normal, lecun_uniform, ones, small_normal,
        standard_normal, zeros,
    )
}  # fmt: skip


def feature_statistics(x: Array) -> tuple[Array, Array]:
    """Return mean and deviation of each feature over all rows; a constant feature has deviation 1.

    Examples
    --------
    >>> feature_statistics(np.array([[1.0, 5.0], [3.0, 5.0]]))
    (array([2., 5.]), array([1., 1.]))
    """
    x = x.reshape(-1, x.shape[-1])
    step = 1 + 2**16 // x.shape[-1]  # rows that a core's cache holds
    parts = [slice(start, start + step) for start in range(0, len(x), step)]
    mean = sum(x[part].sum(axis=0, dtype=np.float64) for part in parts) / len(x)
    var = sum(((x[part] - mean) ** 2).sum(axis=0) for part in parts) / len(x)
    varies = sum((x[part] != x[0]).any(axis=0) for part in parts)  # a constant's variance is only nearly 0
    return mean, np.where(varies, np.sqrt(var), 1)


def input_statistics(x: Array) -> tuple[Array, Array]:
    """Return mean and deviation of each feature, but 0 and 1 of one that holds 0 and 1 alone, so that it stays as it is.

    Divided by its deviation, a category of one row in 100 would be 10 there, and count ten times as much as a number.

    Examples
    --------
    >>> input_statistics(np.array([[1.0, 0.0], [3.0, 1.0]]))
    (array([2., 0.]), array([1., 1.]))
    """
    x = x.reshape(-1, x.shape[-1])
    step = 1 + 2**16 // x.shape[-1]  # rows that a core's cache holds
    parts = [slice(start, start + step) for start in range(0, len(x), step)]
    mean = sum(x[part].sum(axis=0, dtype=np.float64) for part in parts) / len(x)
    var = sum(((x[part] - mean) ** 2).sum(axis=0) for part in parts) / len(x)
    varies = sum((x[part] != x[0]).any(axis=0) for part in parts)  # a constant's variance is only nearly 0
    measured = sum(((x[part] != 0) & (x[part] != 1)).any(axis=0) for part in parts)
    return np.where(measured, mean, 0), np.where(np.logical_and(measured, varies), np.sqrt(var), 1)


def common_statistics(x: Array) -> tuple[Array, Array]:
    """Return the mean and the deviation of all numbers together, once for each feature: for pixels.

    Examples
    --------
    >>> common_statistics(np.array([[1.0, 5.0], [3.0, 3.0]]))
    (array([3., 3.]), array([1.41421356, 1.41421356]))
    """
    x = x.reshape(-1, x.shape[-1])
    step = 1 + 2**16 // x.shape[-1]  # rows that a core's cache holds
    parts = [slice(start, start + step) for start in range(0, len(x), step)]
    mean = sum(x[part].sum(dtype=np.float64) for part in parts) / x.size
    var = sum(((x[part] - mean) ** 2).sum() for part in parts) / x.size
    varies = any((x[part] != x[0, 0]).any() for part in parts)  # a constant's variance is only nearly 0
    return np.full(x.shape[-1], mean), np.full(x.shape[-1], np.sqrt(var) if varies else 1.0)


def robust_statistics(x: Array) -> tuple[Array, Array]:
    """Return median and scaled median absolute deviation of each feature, which a few far values hardly change.

    1.4826 times the median of ``|x - median|`` is the deviation of normal numbers. Where it is 0, as of a feature that is
    mostly one value, the deviation is the root of the mean of the squares; 1 of a constant.

    Examples
    --------
    >>> robust_statistics(np.array([[1.0], [2.0], [3.0], [4.0], [1e9]]))
    (array([3.]), array([1.4826]))
    """
    x = np.asarray(x.reshape(-1, x.shape[-1]), np.float64)
    median = np.median(x, axis=0)
    deviation = 1.4826 * np.median(np.abs(x - median), axis=0)
    deviation = np.where(deviation > 0, deviation, np.sqrt(((x - median) ** 2).mean(axis=0)))
    return median, np.where(deviation > 0, deviation, 1)


STATISTICS: dict[str, Callable[[Array], tuple[Array, Array]]] = {
    function.__name__: function
    for function in (common_statistics, feature_statistics, input_statistics, robust_statistics)
}
"""Each calls no other, as a script that `Network.write` writes has the text of one alone."""

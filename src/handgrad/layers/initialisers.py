"""Where weights start. Each is a function of a generator, a shape and the fan: how many values meet.

A stand-alone script carries the source of those it uses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["INITIALISERS"]

Array = NDArray[Any]
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


def zeros(generator: Generator, shape: tuple[int, ...], fan_in: int, fan_out: int) -> Array:
    """Return all 0, for biases; weights that start equal stay equal."""
    return np.zeros(shape)


def ones(generator: Generator, shape: tuple[int, ...], fan_in: int, fan_out: int) -> Array:
    """Return all 1, for the gains of a normalisation."""
    return np.ones(shape)


INITIALISERS: dict[str, Callable[[Generator, tuple[int, ...], int, int], Array]] = {
    function.__name__: function
    for function in (
        glorot_normal,
        glorot_uniform,
        he_normal,
        he_uniform,
        lecun_normal,
        lecun_uniform,
        ones,
        standard_normal,
        zeros,
    )
}

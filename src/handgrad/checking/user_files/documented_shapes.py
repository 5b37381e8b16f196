"""Shapes that a docstring states: ``- x: Input data of shape (N, C, H, W)``; arrays of them are tried first."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterable
from typing import Any

import numpy as np

ROWS = ("n", "m", "b", "batch", "batch_size", "num_train", "examples")
USUAL = {"c": 6, "h": 6, "w": 8, "hh": 3, "ww": 3, "f": 4, "t": 3, "o": 4}  # channels can be grouped
OTHERS = (5, 4, 8, 9, 11, 10, 13, 12)
SHAPE = r"\(([\w*]+(?:\s*,\s*[\w*]+)*,?)\)"
NAMES = r"(\w+(?:\s*,\s*\w+)*)"
ENTRY = re.compile(rf"\b{NAMES}\s*(?:\([^)\n]*\)\s*)?(?::|--?|=)[^:=(\n]*{SHAPE}")


def documented_arrays(functions: Iterable[Callable[..., Any]], names: Collection[str]) -> dict[str, Any]:
    """Return arrays of the shapes that functions' docstrings state for these arguments; equal letters are equal sizes.

    Examples
    --------
    >>> def f(x, w):
    ...     '''x: data of shape (N, D)
    ...     w: weights, of shape (D, 3)'''
    >>> {name: array.shape for name, array in documented_arrays([f], ["x", "w", "b"]).items()}
    {'x': (7, 5), 'w': (5, 3)}
    """
    stated: dict[str, list[str]] = {}
    for function in functions:
        for several, axes in ENTRY.findall(inspect.getdoc(function) or ""):
            for name in filter(names.__contains__, map(str.strip, several.split(","))):
                stated.setdefault(name, [axis.strip().lower() for axis in axes.split(",") if axis.strip()])
    images = any(len(axes) > 2 for axes in stated.values())
    sizes = dict.fromkeys(ROWS, 2 if images else 7) | (USUAL if images else {})
    left = iter(OTHERS)
    generator = np.random.default_rng(5)
    made = {}
    for name, axes in stated.items():
        for axis in axes:
            if axis not in sizes:
                sizes[axis] = int(axis) if axis.isdigit() else next(left, 0)
        shape = tuple(sizes[axis] for axis in axes)
        if all(shape) and np.prod(shape) < 10_000:
            made[name] = generator.normal(size=shape)
    return made

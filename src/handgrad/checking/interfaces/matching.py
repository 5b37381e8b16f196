"""Which gradient belongs to which array: by name, then by the order of a list, then by a shape that only one has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from handgrad.checking.interfaces.paths import Path
from handgrad.checking.interfaces.roles import is_target, plain

PREFIXES = ("gradients", "gradient", "grads", "grad", "nabla", "delta", "dl", "dj", "d", "g")
SUFFIXES = ("gradients", "gradient", "grads", "grad", "derivative", "delta", "g")
CONTAINERS = {"params", "parameters", "self", *PREFIXES}  # whose own name says nothing

Arrays = Mapping[Path, Any]
Matches = dict[Path, Path]


def match(gradients: Arrays, arrays: Arrays) -> Matches:
    """Return the path of the gradient of each array that has one.

    Parameters
    ----------
    gradients
        What a backward returned or left behind, by path; ``()`` for a single array without a name, which is the
        gradient of the first array of its shape that is no target.
    arrays
        What they may be gradients of.

    Examples
    --------
    >>> import numpy as np
    >>> W, b = np.ones((3, 4)), np.ones(4)
    >>> match({("dW1",): W, ("db1",): b}, {("params", "W1"): W, ("params", "b1"): b})
    {('params', 'W1'): ('dW1',), ('params', 'b1'): ('db1',)}
    """
    found: Matches = {}
    for step in (_by_name, _in_lists, _in_order, _by_shape):
        left = {path: gradient for path, gradient in gradients.items() if path not in found.values()}
        free = {path: array for path, array in arrays.items() if path not in found}
        found |= step(left, free)
    return found


def is_gradient(path: Path, arrays: Arrays) -> bool:
    """Whether an array that is there before backward runs is room for a gradient: ``grads[0]``, ``dW`` beside ``W``."""
    words = [plain(step) for step in path if isinstance(step, str)]
    if any(word.startswith(("grad", "nabla")) or word.endswith(SUFFIXES[:4]) for word in words):
        return True
    beside = {plain(other[-1]) for other in arrays if other[:-1] == path[:-1]}
    return any(name in beside for name in _names_of_array(path[-1:]) - {plain(path[-1])})


def _by_name(gradients: Arrays, arrays: Arrays) -> Matches:
    found: Matches = {}
    for path, gradient in gradients.items():
        names = _names_of_array(path)
        fits = [other for other in arrays if other not in found and _name(other) in names]
        if len(fits) > 1:
            fits = [other for other in fits if np.shape(arrays[other]) == np.shape(gradient)]
        if fits:
            found[fits[0]] = path
    return found


def _in_lists(gradients: Arrays, arrays: Arrays) -> Matches:
    """Match ``nabla_w`` with ``weights``: lists of the same shapes in the same order."""
    found: Matches = {}
    lists = _lists(arrays)
    for ours in _lists(gradients).values():
        shapes = [np.shape(gradients[path]) for path in ours]
        fits = [theirs for theirs in lists.values() if [np.shape(arrays[path]) for path in theirs] == shapes]
        if len(fits) == 1:
            found.update(zip(fits[0], ours, strict=True))
    return found


def _in_order(gradients: Arrays, arrays: Arrays) -> Matches:
    """Match a tuple without names: all arrays in order, or each with the next array of its shape."""
    places = [path for path in gradients if path == () or (len(path) == 1 and isinstance(path[0], int))]
    found: Matches = {}
    left = sorted(arrays, key=is_target) if places == [()] else list(arrays)
    for path in places:
        shape = np.shape(gradients[path])
        if shape == () and len(places) != len(arrays):  # a loss, a rate: any number would fit any other
            continue
        fits = left[:1] if len(places) == len(arrays) else [p for p in left if np.shape(arrays[p]) == shape]
        if fits:
            found[fits[0]] = path
            left = left[left.index(fits[0]) + 1 :]
    return found


def _by_shape(gradients: Arrays, arrays: Arrays) -> Matches:
    def alone(values: Arrays) -> dict[tuple[int, ...], Path]:
        shapes = [np.shape(value) for value in values.values()]
        once = {path: np.shape(value) for path, value in values.items() if shapes.count(np.shape(value)) == 1}
        return {shape: path for path, shape in once.items() if shape}

    ours, theirs = alone(gradients), alone(arrays)
    return {theirs[shape]: ours[shape] for shape in ours if shape in theirs}


def _lists(values: Arrays) -> dict[Path, list[Path]]:
    lists: dict[Path, list[Path]] = {}
    for path in values:
        if len(path) > 1 and isinstance(path[-1], int):
            lists.setdefault(path[:-1], []).append(path)
    return lists


def _name(path: Path) -> str:
    """Return a path without case, punctuation and the container of all parameters."""
    steps = [plain(step) for step in path]
    while len(steps) > 1 and steps[0] in CONTAINERS and not steps[1].isdigit():
        steps = steps[1:]
    return ".".join(steps)


def _names_of_array(path: Path) -> set[str]:
    """Return the names of the arrays whose gradient a path may be: ``dW``, ``grad_W`` and ``W_grad`` are all W's."""
    *head, last = _name(path).split(".")
    if not last:
        return set()
    if last.isdigit() and head:
        *head, last = [*head[:-1], f"{head[-1]}.{last}"]
    stem, dot, index = last.partition(".")
    stems = (
        {stem}
        | {stem.removeprefix(each) for each in PREFIXES}
        | {stem.removesuffix(each) for each in SUFFIXES}
    )
    return {".".join([*head, name + dot + index]) for name in stems - {""}}

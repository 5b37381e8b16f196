"""Arrays in nested containers and objects, by path: ``params.W1``, ``weights[0]``, ``layers[2].bias``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

Path = tuple[Any, ...]
"""Keys and indices; an attribute's name begins with a dot."""

LONGEST = 1000  # entries of a container that are entered: a longer one is data
DEEPEST = 6  # containers within containers: a network of blocks of layers of parameters needs 5
LIBRARIES = (
    "numpy",
    "builtins",
    "types",
    "random",
    "torch",
    "jax",
    "collections",
)  # not the user's own classes


def show_path(path: Path) -> str:
    """Return a path as code would write it.

    >>> show_path((".layers", 2, ".params", "W"))
    'layers[2].params.W'
    """
    steps = (f"[{step}]" if isinstance(step, int) else f".{str(step).removeprefix('.')}" for step in path)
    return "".join(steps).removeprefix(".")


def arrays_in(value: Any) -> dict[Path, Any]:
    """Return the arrays and numbers of floating point in a value, by the first path to each.

    >>> list(arrays_in({"W": np.ones(2), "rest": [np.zeros(1), "text"]}))
    [('W',), ('rest', 0)]
    """
    found, seen = {}, set()
    for path, item in _walk(value, (), frozenset()):
        if not isinstance(item, np.ndarray) or id(item) not in seen:
            found[path] = item
            seen.add(id(item))
    return found


def _walk(value: Any, path: Path, above: frozenset[int]) -> Iterator[tuple[Path, Any]]:
    if is_floating(value):
        yield path, value
    elif id(value) not in above and len(path) <= DEEPEST:
        for step, item in _items(value):
            yield from _walk(item, (*path, step), above | {id(value)})


def _items(value: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        return list(value.items())[:LONGEST]
    if isinstance(value, list | tuple):
        return enumerate(value[:LONGEST])
    is_object = hasattr(value, "__dict__") and not isinstance(
        value, type | FunctionType | MethodType | ModuleType
    )
    if is_object and not type(value).__module__.startswith(LIBRARIES):
        return [(f".{name}", item) for name, item in vars(value).items()]
    return ()


def is_floating(value: Any) -> bool:
    """Whether a value is an array, or one number, of floating point."""
    return isinstance(value, float) or (
        isinstance(value, np.ndarray | np.floating) and np.asarray(value).dtype.kind == "f"
    )


def get(value: Any, path: Path) -> Any:
    """Return what is at a path."""
    for step in path:
        value = getattr(value, step[1:]) if _is_attribute(step) else value[step]
    return value


def put(value: Any, path: Path, new: Any) -> Any:
    """Return a value with something else at a path; lists, dictionaries and objects are changed in place."""
    if not path:
        return new
    step, *rest = path
    item = put(get(value, (step,)), tuple(rest), new)
    if _is_attribute(step):
        setattr(value, step[1:], item)
    elif isinstance(value, tuple):
        return (*value[:step], item, *value[step + 1 :])
    else:
        value[step] = item
    return value


def _is_attribute(step: Any) -> bool:
    return isinstance(step, str) and step.startswith(".")

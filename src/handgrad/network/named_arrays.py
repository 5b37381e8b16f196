"""The arrays that a network keeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.errors import ConfigurationError, ShapeError, nearest
from handgrad.rules import show_shape

Array = NDArray[Any]


class Arrays(MutableMapping[str, Array]):
    """Arrays by name, with fixed shapes and types: setting one copies the numbers into it.

    Examples
    --------
    >>> arrays = Arrays({"b1": np.zeros(2)})
    >>> arrays["b1"] = [1, 2]
    >>> arrays["b1"]
    array([1., 2.])
    """

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
            raise ConfigurationError(f"the network keeps no {name!r}", fix=nearest(name, self))
        if np.shape(numbers) != self[name].shape:
            raise ShapeError(
                f"{name} is {show_shape(self[name].shape)}, and {show_shape(np.shape(numbers))} is given"
            )
        self[name][...] = numbers

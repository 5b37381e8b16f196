"""The arrays that a network keeps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.errors import ConfigurationError, ShapeError, nearest
from handgrad.rules import show_shape

Array = NDArray[Any]


class Arrays(dict[str, Array]):
    """Arrays by name, with fixed shapes and types: setting one copies the numbers into it.

    Examples
    --------
    >>> arrays = Arrays({"b1": np.zeros(2)})
    >>> arrays["b1"] = [1, 2]
    >>> arrays["b1"]
    array([1., 2.])
    """

    def __reduce__(self) -> tuple[type[Arrays], tuple[dict[str, Array]]]:
        return Arrays, (dict(self),)  # a copy is made whole, not name by name

    def __setitem__(self, name: str, numbers: Any) -> None:
        if name not in self:
            raise ConfigurationError(f"the network keeps no {name!r}", fix=nearest(name, self))
        if np.shape(numbers) != self[name].shape:
            raise ShapeError(
                f"{name} is {show_shape(self[name].shape)}, and {show_shape(np.shape(numbers))} is given"
            )
        self[name][...] = numbers

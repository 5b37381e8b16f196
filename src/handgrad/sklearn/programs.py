"""Programs made ready once and used by every fit of the same shape: what makes fits of few rows quick."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.engines import BoundProgram, bind
from handgrad.layers import Optimiser
from handgrad.network import Network
from handgrad.program import Program

Array = NDArray[Any]

MOST_IDLE = 8

_idle: OrderedDict[tuple[str, ...], Ready] = OrderedDict()


@dataclass(frozen=True)
class Ready:
    """A program bound to arrays of its own.

    Attributes
    ----------
    program, step
        What runs, as lines and bound.
    kept
        Its arrays: parameters, states and the optimiser's slots.
    """

    program: Program
    step: BoundProgram
    kept: dict[str, Array]

    def load(self, *sources: dict[str, Array]) -> None:
        """Take numbers over, by name; what no source has is 0."""
        arrays = {name: array for source in sources for name, array in source.items()}
        for name, own in self.kept.items():
            own[...] = arrays.get(name, 0)

    def store(self, network: Network) -> None:
        """Give the network's arrays the numbers there are now."""
        for name, array in network.arrays.items():
            array[...] = self.kept[name]

    @property
    def slots(self) -> dict[str, Array]:
        """Copies of what the optimiser keeps."""
        return {name: self.kept[name].copy() for name in self.program.slots}


@contextmanager
def ready(network: Network, optimiser: Optimiser | None, *, weighted: bool) -> Iterator[Ready]:
    """Lend the training program of a network: with an optimiser's updates, or with the gradients as outputs.

    Nobody else has it meanwhile. Taking and giving back are single operations on the dictionary, so that threads
    need no lock; one that finds nothing makes a program of its own.
    """
    at_any_rate = optimiser and replace(optimiser, learning_rate=1.0)  # the rate comes with each epoch
    key = (repr(network), str(network.row), network.dtype, repr(at_any_rate), str(weighted))
    found = _idle.pop(key, None) or _make(network, optimiser, weighted)
    try:
        yield found
    finally:
        _idle[key] = found
        while len(_idle) > MOST_IDLE:
            _idle.popitem(last=False)


def _make(network: Network, optimiser: Optimiser | None, weighted: bool) -> Ready:
    program = network.program(optimiser, weighted=weighted)
    program = program.keeping("total", "count") if optimiser else program.without_updates()
    kept = {name: array.copy() for name, array in network.arrays.items()}
    kept |= {name: np.zeros(shape, network.dtype) for name, shape in program.slots.items()}
    return Ready(program, bind("compiled", program, kept), kept)

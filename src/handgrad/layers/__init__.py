"""Layers, losses and optimisers: rules with what they keep and how it starts, and the graph they make.

What a module lists in its ``__all__`` is a name of `handgrad.layers`; the layers, losses, optimisers and schedules
among it are also names of `handgrad`, and of configurations.
"""

from typing import TypeVar

from handgrad.layers.composition import *
from handgrad.layers.elementwise import *
from handgrad.layers.elementwise import ACTIVATIONS as ACTIVATIONS
from handgrad.layers.graph import *
from handgrad.layers.initialisers import *
from handgrad.layers.layer import *
from handgrad.layers.linear import *
from handgrad.layers.losses import *
from handgrad.layers.losses import reduce_to_mean as reduce_to_mean
from handgrad.layers.normalisation import *
from handgrad.layers.optimisers import *
from handgrad.layers.schedules import *
from handgrad.layers.schedules import Schedule as Schedule

T = TypeVar("T")


def _by_name(base: type[T]) -> dict[str, type[T]]:
    """Return what the modules above make of a base, by name, for configurations."""
    kinds = [kind for kind in globals().values() if isinstance(kind, type) and issubclass(kind, base)]
    return {kind.__name__: kind for kind in sorted(kinds, key=lambda kind: kind.__name__) if kind is not base}


LAYERS = _by_name(Layer)  # type: ignore[type-abstract]  # only its subclasses are made
"""Every layer by name, for configurations."""

LOSSES = _by_name(Loss)  # type: ignore[type-abstract]  # as above
"""Every loss by name."""

OPTIMISERS = _by_name(Optimiser)
"""Every optimiser by name."""

SCHEDULES = _by_name(Schedule)
"""Every schedule by name."""

KINDS = LAYERS | LOSSES | OPTIMISERS | SCHEDULES
"""All of these."""

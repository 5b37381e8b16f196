"""Layers, losses and optimisers: rules with what they keep and how it starts, and the graph they make.

What a module lists in its ``__all__`` is a name of `handgrad.layers`; the layers, losses, optimisers and schedules
among it are also names of `handgrad`, and of configurations.
"""

import sys
from typing import TYPE_CHECKING, TypeVar

from handgrad.layers.attention import *
from handgrad.layers.convolution import *
from handgrad.layers.elementwise import *
from handgrad.layers.graph import *
from handgrad.layers.initialisers import *
from handgrad.layers.layer import *
from handgrad.layers.loss_functions import *
from handgrad.layers.loss_functions import reduce_to_mean as reduce_to_mean
from handgrad.layers.optimisers import *
from handgrad.layers.parametric import *
from handgrad.layers.recurrence import *
from handgrad.layers.schedules import *

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


def _elementwise() -> dict[str, type[Layer]]:
    rules = ((getattr(kind, "rule", None), kind) for kind in LAYERS.values())
    return {rule.name: kind for rule, kind in rules if rule and str(rule.signature) == "... -> ..."}


ACTIVATIONS = _elementwise()
"""The layers that work on each value by itself, by the name of their rule."""

if not TYPE_CHECKING:  # to type checkers, what a star brings is public as it is
    _modules = [module for name, module in sys.modules.copy().items() if name.startswith(f"{__name__}.")]
    __all__ = [
        *("ACTIVATIONS", "KINDS", "LAYERS", "LOSSES", "OPTIMISERS", "SCHEDULES", "reduce_to_mean"),
        *(name for module in _modules for name in getattr(module, "__all__", ())),
    ]

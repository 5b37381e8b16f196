"""What an argument of a rule is, when it is not a value with a gradient.

Written as an annotation, ``def embedding(i: Index, W)``: an argument without one is a value that
has a gradient.
"""

from __future__ import annotations

from typing import Annotated, Any

from numpy.typing import NDArray

__all__ = ["Index", "Mask", "Probabilities", "State", "Target", "Weight"]

Array = NDArray[Any]

Index = Annotated[Array, "index"]
"""Integer positions in another argument's first axis."""

Target = Annotated[Array, "target"]
"""What the network should have said: class numbers or values."""

Probabilities = Annotated[Array, "probabilities"]
"""Targets that are the probability of each class: along the last axis they add up to 1."""

Weight = Annotated[Array, "weight"]
"""How much each row counts, zero or more."""

Mask = Annotated[Array, "mask"]
"""Random truth values, drawn by the rule's ``sample`` lines before the forward lines run."""

State = Annotated[Array, "state"]
"""An array kept between steps that no gradient trains: running statistics, an optimiser's moments."""

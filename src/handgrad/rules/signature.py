"""What a rule's arguments are: shapes in axis letters, ``"N... I, I O, O -> N... O"``, and kinds.

A kind is an annotation, ``def embedding(i: Index, W)``: an argument without one is a value that has a gradient.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from handgrad.arrays import Array
from handgrad.errors import RuleError, ShapeError

__all__ = [
    "Index", "Mask", "Probabilities", "Shape", "Signature", "Size", "State", "Target", "Weight", "show_shape",
]  # fmt: skip

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

Size = int | str
"""An axis length: a number, or ``"n"`` for the rows of a batch."""

Shape = tuple[Size, ...]


def show_shape(shape: tuple[Size, ...]) -> str:
    """Return a shape as Python writes it, with names unquoted: ``(n, 10)``, ``(n,)``, ``()``.

    Examples
    --------
    >>> show_shape(("n", 10)), show_shape((5,)), show_shape(())
    ('(n, 10)', '(5,)', '()')
    """
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


@dataclass(frozen=True)
class Signature:
    """The axes of a rule's arguments and of its output.

    An axis is a letter (or a word); one that ends in ``...`` stands for any number of axes, as ``N...``
    does for the rows of a batch, whether they are (n,) or (n, time). The same letter is the same size
    everywhere. No axes at all is a single number.

    Examples
    --------
    >>> signature = Signature.parse("N... I, I O, O -> N... O")
    >>> sizes = signature.bind("linear", {"x": ("n", 64), "W": (64, 10), "b": (10,)})
    >>> signature.output_shape(sizes)
    ('n', 10)
    """

    inputs: tuple[tuple[str, ...], ...]
    output: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Signature:
        """Read a signature; raises `RuleError` when it is not ``"axes, axes -> axes"``."""
        left, arrow, right = text.partition("->")
        if not arrow or "->" in right:
            raise RuleError(f"signature {text!r}: write 'axes, axes -> axes'")
        inputs = tuple(tuple(part.split()) for part in left.split(","))
        signature = cls(inputs, tuple(right.split()))
        for axes in (*inputs, signature.output):
            for axis in axes:
                if axis != "..." and not axis.removesuffix("...").isidentifier():
                    raise RuleError(f"signature {text!r}: {axis!r} is not an axis name")
            if sum(axis.endswith("...") for axis in axes) > 1:
                raise RuleError(f"signature {text!r}: only one '...' per argument")
        for axis in signature.output:
            if not any(axis in axes for axes in inputs):
                raise RuleError(f"signature {text!r}: the output's axis {axis} is in no argument")
        return signature

    def __str__(self) -> str:
        return f"{', '.join(' '.join(axes) for axes in self.inputs)} -> {' '.join(self.output)}".strip()

    def bind(self, place: str, shapes: Mapping[str, Shape]) -> dict[str, Shape]:
        """Return the size of every axis (as a tuple of one, or several for ``N...``).

        Parameters
        ----------
        place
            Named in the error, for example ``"linear"``.
        shapes
            The shape of each argument, in the signature's order.

        Raises
        ------
        ShapeError
            When an argument has too few axes, or one letter would have two sizes; it names both.
        """
        sizes: dict[str, Shape] = {}
        seen: dict[str, str] = {}
        for (name, shape), axes in zip(shapes.items(), self.inputs, strict=True):
            for axis, part, position in self._pair(place, name, axes, shape, shapes):
                if sizes.setdefault(axis, part) != part:
                    start = int(position.partition(":")[0])
                    fitting = (*shape[:start], *sizes[axis], *shape[start + len(part) :])
                    raise ShapeError(
                        f"{place}: axis {axis} is {_size(sizes[axis])} in {seen[axis]} "
                        f"but {_size(part)} in {name}{show_shape(shape)}[{position}]",
                        given=self._given(shapes),
                        fix=f"{name}{show_shape(fitting)} would fit",
                    )
                seen.setdefault(axis, f"{name}{show_shape(shape)}[{position}]")
        return sizes

    def output_shape(self, sizes: Mapping[str, Shape]) -> Shape:
        """Return the output's shape for the sizes that `bind` found."""
        return tuple(size for axis in self.output for size in sizes[axis])

    def _pair(
        self, place: str, name: str, axes: tuple[str, ...], shape: Shape, shapes: Mapping[str, Shape]
    ) -> list[tuple[str, Shape, str]]:
        """Pair each axis letter of one argument with its size or sizes, and their position in the shape."""
        spread = next((k for k, axis in enumerate(axes) if axis.endswith("...")), None)
        extra = len(shape) - len(axes)
        if extra != 0 and (spread is None or extra < -1):
            raise ShapeError(
                f"{place}: {name} has {len(shape)} axes {show_shape(shape)} "
                f"where the signature has {' '.join(axes) or 'a single number'}",
                given=self._given(shapes),
            )
        pairs: list[tuple[str, Shape, str]] = []
        position = 0
        for k, axis in enumerate(axes):
            width = 1 + extra if k == spread else 1
            end = position + width
            label = str(position) if width == 1 else f"{position}:{end}"
            pairs.append((axis, shape[position:end], label))
            position = end
        return pairs

    def _given(self, shapes: Mapping[str, Shape]) -> str:
        got = ", ".join(f"{name}{show_shape(shape)}" for name, shape in shapes.items())
        return f"{got}; signature {self}"


def _size(part: Shape) -> str:
    return str(part[0]) if len(part) == 1 else show_shape(part)

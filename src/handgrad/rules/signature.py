"""What a rule's arguments are: shapes in axis letters, ``"N... I, I O, O -> N... O"``, and kinds.

A kind is an annotation, ``def embedding(i: Index, W)``: an argument without one is a value that has a gradient.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from handgrad.arrays import Array
from handgrad.errors import RankError, RuleError, ShapeError

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

    An axis of the output that no argument has is computed from the others and the rule's options, by a formula beside
    the signature: ``P="(H - size) // stride + 1"``. There ``A...`` is a tuple ``A``, as ``F="prod(A)"``. A formula of an
    axis that an argument has, ``G="4 * H"``, is checked, and so is what must hold of axes and options:
    ``where="D % heads == 0"``.

    Rows do not mix: in a network an axis that follows ``N...`` is never the rows of the batch.

    Examples
    --------
    >>> signature = Signature.parse("N... I, I O, O -> N... O")
    >>> sizes = signature.bind("linear", {"x": ("n", 64), "W": (64, 10), "b": (10,)})
    >>> signature.output_shape(sizes)
    ('n', 10)
    >>> flat = Signature.parse("N A... -> N F", F="prod(A)")
    >>> flat.output_shape(flat.bind("flatten", {"x": ("n", 4, 4, 16)}))
    ('n', 256)
    """

    inputs: tuple[tuple[str, ...], ...]
    output: tuple[str, ...]
    computed: Mapping[str, str] = field(default_factory=dict)
    where: str = ""

    @classmethod
    def parse(cls, text: str, *, where: str = "", **computed: str) -> Signature:
        """Read a signature; raises `RuleError` when it is not ``"axes, axes -> axes"``, or an axis has no formula."""
        left, arrow, right = text.partition("->")
        if not arrow or "->" in right:
            raise RuleError(f"signature {text!r}: write 'axes, axes -> axes'")
        inputs = tuple(tuple(part.split()) for part in left.split(","))
        signature = cls(inputs, tuple(right.split()), computed, where)
        for axes in (*inputs, signature.output):
            for axis in axes:
                if axis != "..." and not axis.removesuffix("...").isidentifier():
                    raise RuleError(f"signature {text!r}: {axis!r} is not an axis name")
            if sum(axis.endswith("...") for axis in axes) > 1:
                raise RuleError(f"signature {text!r}: only one '...' per argument")
        given = {axis for axes in inputs for axis in axes}
        for axis in signature.output:
            if axis not in given and axis.removesuffix("...") not in computed:
                raise RuleError(
                    f"signature {text!r}: the output's axis {axis} is in no argument",
                    fix=f'say how long it is: rule("…", {axis.removesuffix("...")}="…"), from axes and options',
                )
        for axis in computed:
            if axis not in given and not {axis, f"{axis}..."} & set(signature.output):
                raise RuleError(f"signature {text!r}: {axis} is computed, and is no axis of it")
        return signature

    def __str__(self) -> str:
        axes = f"{', '.join(' '.join(axes) for axes in self.inputs)} -> {' '.join(self.output)}".strip()
        conditions = [*(f"{axis} = {formula}" for axis, formula in self.computed.items()), self.where]
        return "; ".join([axes, *filter(None, conditions)])

    def bind(
        self, place: str, shapes: Mapping[str, Shape], options: Mapping[str, Any] | None = None
    ) -> dict[str, Shape]:
        """Return the size of every axis (as a tuple of one, or several for ``N...``).

        Parameters
        ----------
        place
            Named in the error, for example ``"linear"``.
        shapes
            The shape of each argument, in the signature's order.
        options
            The rule's, for the formulas of axes that arguments have.

        Raises
        ------
        ShapeError
            When an argument has too few axes, or one letter would have two sizes; it names both. When what must hold of
            axes and options does not.
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
        for axis, formula in self.computed.items():
            if axis in sizes and sizes[axis] != (
                wanted := self._computed(axis, formula, sizes, options or {}, place)
            ):
                raise ShapeError(
                    f"{place}: axis {axis} = {formula} is {_size(wanted)}, but {_size(sizes[axis])} in {seen[axis]}",
                    given=self._given(shapes),
                )
        if self.where:
            known = self._known(self.where, sizes, options or {})
            if not any("n" in value for value in known.values() if isinstance(value, tuple)) and not _value(
                self.where, known
            ):
                raise ShapeError(f"{place}: {self.where} does not hold", given=_all_shown(known))
        return sizes

    def output_shape(
        self, sizes: Mapping[str, Shape], options: Mapping[str, Any] | None = None, place: str = "the rule"
    ) -> Shape:
        """Return the output's shape for the sizes that `bind` found and the rule's options.

        Raises
        ------
        ShapeError
            When a computed axis would be shorter than 1, or depends on the number of rows.
        """
        known = dict(sizes)
        for axis, formula in self.computed.items():
            if axis in sizes:
                continue
            name = axis if axis in self.output else f"{axis}..."
            known[name] = self._computed(axis, formula, sizes, options or {}, place)
        return tuple(size for axis in self.output for size in known[axis])

    def computed_size(self, axis: str, sizes: Mapping[str, Shape], options: Mapping[str, Any]) -> Shape:
        """Return how long an axis with a formula is, from the sizes of others and the rule's options."""
        return self._computed(axis, self.computed[axis], sizes, options, "the rule")

    def _computed(
        self, axis: str, formula: str, sizes: Mapping[str, Shape], options: Mapping[str, Any], place: str
    ) -> Shape:
        given = self._known(formula, sizes, options)
        shown = _all_shown(given)
        if any("n" in value if isinstance(value, tuple) else value == "n" for value in given.values()):
            raise ShapeError(f"{place}: {axis} = {formula} depends on the number of rows", given=shown)
        length = _value(formula, given)
        made = tuple(length) if isinstance(length, tuple | list) else (length,)
        if any(size < 1 for size in made):
            raise ShapeError(
                f"{place}: {axis} = {formula} is {_size(made)}, and an axis is 1 or longer", given=shown
            )
        return made

    @staticmethod
    def _known(formula: str, sizes: Mapping[str, Shape], options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the axes and options that a formula has."""
        axes = {
            name.removesuffix("..."): part if name.endswith("...") else part[0]
            for name, part in sizes.items()
        }
        names = {node.id for node in ast.walk(ast.parse(formula)) if isinstance(node, ast.Name)}
        return {name: value for name, value in {**axes, **options}.items() if name in names}

    def _pair(
        self, place: str, name: str, axes: tuple[str, ...], shape: Shape, shapes: Mapping[str, Shape]
    ) -> list[tuple[str, Shape, str]]:
        """Pair each axis letter of one argument with its size or sizes, and their position in the shape."""
        spread = next((k for k, axis in enumerate(axes) if axis.endswith("...")), None)
        extra = len(shape) - len(axes)
        if extra != 0 and (spread is None or extra < -1):
            raise RankError(
                f"{place}: {name} has {len(shape)} axes {show_shape(shape)} "
                f"where the signature has {' '.join(axes) or 'a single number'}",
                given=self._given(shapes),
            )
        if spread == 0 and extra == -1 and shape[:1] == ("n",):
            letters = " ".join(axis for axis in axes if not axis.endswith("..."))
            raise RankError(
                f"{place}: a row of {name}{show_shape(shape)} has {_axes_of(len(shape) - 1)}, and needs "
                f"{_axes_of(len(axes) - 1)}: {letters}",
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


def _axes_of(count: int) -> str:
    return {0: "no axis", 1: "1 axis"}.get(count, f"{count} axes")


def _value(formula: str, given: Mapping[str, Any]) -> Any:
    try:
        return eval(formula, {"__builtins__": {}, "prod": math.prod, **given})
    except ZeroDivisionError:  # of an option or axis that is 0: not a length, and nothing that holds
        return 0


def _all_shown(given: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {_of_axis(value)}" for name, value in given.items())


def _of_axis(value: Any) -> str:
    return show_shape(value) if isinstance(value, tuple) else str(value)

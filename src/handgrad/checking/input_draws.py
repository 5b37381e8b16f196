"""Inputs to check at: drawn for a rule, drawn afresh, perturbed a little, or a size shorter; in their domain still."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, count
from typing import Any

import numpy as np

from handgrad.checking.subject import Array, CheckError, Inputs, Subject, array_of, copy_of
from handgrad.errors import ShapeError
from handgrad.program.lines_in_python import evaluate
from handgrad.rules import Rule
from handgrad.tolerance import close

Source = Mapping[str, Any] | Callable[[np.random.Generator], Mapping[str, Any]]

ATTEMPTS = 8  # at fresh inputs at which forward is finite, each half as far away as the last
OFF_KINKS = (
    1e-3  # of a number, or of a typical one: far from a kink at it, and near enough to stay in any domain
)
SIZES = (5, 3, 7, 2, 11, 13)  # of axes, in the order of their letters: no two alike, the rows first
EVEN_SIZES = (4, 6, 8, 2, 10, 12)
SPREAD = (5, 3)  # of the axes that "..." stands for, where it is two
BEYOND = 8.0  # where a ReLU6 is flat, and every function that saturates


def draw(source: Source, generator: np.random.Generator) -> Inputs:
    """Return inputs from a dict of arrays, or from a function of a generator that makes one."""
    made = source(generator) if callable(source) else source
    return {name: array_of(name, value) for name, value in made.items()}


def fresh(
    source: Source,
    subject: Subject,
    generator: np.random.Generator,
    *,
    size: float = 1.0,
    whole: bool = False,
) -> Inputs:
    """Return other inputs at which forward is finite.

    What the source draws anew is taken; what it does not is jittered, and with ``whole`` its whole numbers are permuted:
    labels, masks and targets.
    """
    given = subject.inputs
    for attempt in range(ATTEMPTS):
        drawn = draw(source, generator) if callable(source) else given
        if {name: value.shape for name, value in drawn.items()} != {n: v.shape for n, v in given.items()}:
            continue
        same = {name: value for name, value in drawn.items() if np.array_equal(value, given[name])}
        moved = jittered(same, generator, size * 0.5**attempt)
        if whole and attempt < ATTEMPTS / 2:
            moved = {name: _permuted(value, generator) for name, value in moved.items()}
        inputs = {**drawn, **moved}
        if is_finite_at(subject, inputs):
            return inputs
    raise CheckError("no other inputs were found at which forward is finite")


def _permuted(value: Array, generator: np.random.Generator) -> Array:
    """Return whole numbers in another order along their longest axis."""
    if value.ndim == 0 or (value.dtype.kind == "f" and not np.array_equal(value, np.round(value))):
        return value
    return generator.permutation(value, axis=int(np.argmax(value.shape)))


def redrawn(
    inputs: Inputs, arguments: tuple[str, ...], generator: np.random.Generator, least: float = 0.0
) -> Inputs:
    """Return other inputs, of which those arguments that may have any sign have nothing to do with the first.

    They are as large as the first, and ``least`` at the least.
    """
    moved = jittered(inputs, generator)
    for name in arguments:
        value = inputs[name]
        if not np.any(value) or (np.any(value < 0) and np.any(value > 0)):
            scale = max(_typical(value, 1.0), least)
            moved[name] = _like(value, scale * generator.normal(size=value.shape))
        elif value.size and np.all(value == value.flat[0]):  # gains of 1, where what lacks them does not show
            moved[name] = _like(value, value * generator.uniform(0.5, 1.5, value.shape))
    return moved


def is_finite_at(subject: Subject, inputs: Inputs) -> bool:
    """Whether forward takes some inputs, and is finite there."""
    try:
        return all(np.all(np.isfinite(output)) for output in subject.run_forward(inputs))
    except CheckError:
        return False


def perturb_off_kinks(
    subject: Subject, inputs: Inputs, arguments: tuple[str, ...], generator: np.random.Generator
) -> Inputs:
    """Return inputs a thousandth away, off kinks at round numbers; as they were where forward ends."""
    for only_up in (False, True):
        moved = copy_of(inputs)
        for name in (name for name in inputs if name in arguments):
            value, size = inputs[name], np.abs(inputs[name])
            noise = generator.normal(size=value.shape)
            # zeros are biases: where no unit is inactive, a missing mask does not show
            is_positive = np.all(value >= 0) and value.any()
            noise = np.abs(noise) if only_up or is_positive else noise
            signs = np.where(size == size.max(initial=0), -1, 1)  # the largest may be the largest allowed
            away = np.where(value == 0, _typical(value, 100.0) * noise, value * signs * np.abs(noise))
            moved[name] = _like(value, value + OFF_KINKS * away)
        if is_finite_at(subject, moved):
            return moved
    return copy_of(inputs)


def _typical(value: Array, otherwise: float) -> float:
    nonzero = np.abs(value[value != 0])
    return float(np.median(nonzero)) if nonzero.size else otherwise


def jittered(inputs: Inputs, generator: np.random.Generator, size: float = 1.0) -> Inputs:
    """Return the inputs moved by a part of themselves: whole numbers, signs, probabilities and symmetry stay."""
    return {name: _jittered(value, generator, size) for name, value in inputs.items()}


def _jittered(value: Array, generator: np.random.Generator, size: float) -> Array:
    if value.dtype.kind != "f" or not np.all(np.isfinite(value)) or np.array_equal(value, np.round(value)):
        return np.array(value)
    noise = generator.normal(size=value.shape)
    if np.all(value > 0):
        moved = value * np.exp(0.2 * size * noise)
        if np.all(value <= 1):  # numbers between 0 and 1 stay there, and rows that add up to 1
            sums = [
                axis for axis in range(value.ndim) if value.shape[axis] > 1 and _adds_up_to_one(value, axis)
            ]
            within = np.minimum(moved, (1 + value) / 2)
            moved = moved / moved.sum(axis=sums[0], keepdims=True) if sums else within
    else:
        scale = _typical(value, 1.0)
        moved = value + 0.3 * size * np.minimum(scale, np.abs(value) + 0.5 * scale) * noise
    return _like(value, moved)


def _adds_up_to_one(value: Array, axis: int) -> bool:
    total = value.sum(axis=axis)
    return close(total, np.ones_like(total))


def _like(value: Array, moved: Array) -> Array:
    """Keep the type, and symmetry where there is some."""
    if value.ndim == 2 and value.shape[0] == value.shape[1] and np.array_equal(value, value.T):
        moved = (moved + moved.T) / 2
    return np.asarray(moved, value.dtype)


def shorter(inputs: Inputs, length: int, by: int = 1) -> Iterator[Inputs]:
    """Yield the inputs with one length of an axis less by so many: as a first axis only, and wherever it is."""
    for axes in (slice(1), slice(None)):
        if any(length in value.shape[axes] for value in inputs.values()):
            yield {name: _shortened(value, length, by, axes) for name, value in inputs.items()}


def _shortened(value: Array, length: int, by: int, axes: slice) -> Array:
    less = value
    for axis in range(value.ndim)[axes]:
        if value.shape[axis] == length:
            less = np.take(less, range(length - by), axis=axis)
    if value.ndim == 0 or less.size == 0 or np.any(value < 0) or not _adds_up_to_one(value, -1):
        return less
    total = less.sum(axis=-1, keepdims=True)  # targets stay targets with a class less
    first = np.arange(less.shape[-1]) == 0
    return np.asarray(np.where(total > 0, less / np.where(total > 0, total, 1), first))


# --------------------------------------------------------------------------------------------------- rules


def other_options(rule: Rule, source: Source) -> dict[str, float]:
    """Return other options than the defaults, with which a backward that leaves one out may be right."""
    options: dict[str, float] = {}
    numbers = {name: value for name, value in rule.forward.options.items() if type(value) is float}
    for number, (name, value) in enumerate(numbers.items()):
        other = options | {name: (0.7 + 0.05 * number) * value or 0.05 + 0.01 * number}
        try:
            values = draw(source, np.random.default_rng(0)).values()
            finite = bool(np.all(np.isfinite(rule(*values, **other))))
        except Exception:  # a rule of anyone's: it may refuse them in any way
            finite = False
        options = other if finite else options
    return options


def source_of(rule: Rule) -> Source:
    """Draw inputs for a rule: where it can be computed for them, stacks of rows, and values far from 0."""
    stacks = _can_run(rule, lambda generator: draw_for(rule, generator, stacks=True))
    # Of several arguments, products of large values would hide all the others.
    alone = list(rule.forward.kinds.values()) == ["value"]
    far = alone and _can_run(rule, lambda generator: _far_out(draw_for(rule, generator, stacks=stacks)))

    def source(generator: np.random.Generator) -> Inputs:
        drawn = draw_for(rule, generator, stacks=stacks)
        return _far_out(drawn) if far else drawn

    return source


def _can_run(rule: Rule, source: Callable[[np.random.Generator], Inputs]) -> bool:
    """Whether a rule can be computed, forward and backward, at what is drawn: anyone's may fail there in any way."""
    try:
        drawn = source(np.random.default_rng(0)).values()
        output = rule(*drawn)
        rule.gradients(output, *drawn)
    except Exception:
        return False
    return bool(np.all(np.isfinite(output)))


def _far_out(drawn: Inputs) -> Inputs:
    """Return inputs of which one in four is far from 0, on both sides where there are two."""

    def moved(value: Array) -> Array:
        number = np.arange(value.size).reshape(value.shape)
        sign = np.where(number % 8 == 1, 1, -1) if np.any(value < 0) else 1
        return np.where(number % 4 == 1, sign * (BEYOND + np.abs(value)), value)

    return {name: moved(value) for name, value in drawn.items()}


def draw_for(
    rule: Rule, generator: np.random.Generator, sizes: Sequence[int] = SIZES, *, stacks: bool = False
) -> Inputs:
    """Draw inputs for a rule at sizes that all differ, each in the domain its kind says.

    Values are of both signs, unless the rule is finite only above 0, or only between 0 and 1. An axis like ``N...`` is
    one, or two for stacks, and for a rule of a single argument. A rule that takes halves of an axis is given even sizes;
    one that takes others is a `CheckError`.
    """
    try:
        return _draw_at(rule, generator, sizes, stacks=stacks)
    except CheckError as error:
        try:
            return _draw_at(rule, generator, EVEN_SIZES, stacks=False)
        except CheckError:
            raise error from None


def _draw_at(rule: Rule, generator: np.random.Generator, sizes: Sequence[int], *, stacks: bool) -> Inputs:
    shapes = _shapes(rule, sizes, two=stacks or len(rule.signature.inputs) == 1)
    kinds, values = rule.forward.kinds, {}
    table = next((shape[0] for name, shape in shapes.items() if kinds[name] == "value" and shape), 0)
    for domain in ("both signs", "positive", "below 1"):
        drawn = {n: _drawn(kinds[n], shape, domain, table, generator) for n, shape in shapes.items()}
        try:
            with np.errstate(all="ignore"):
                values = rule.values(*drawn.values())
        except (ShapeError, ValueError, IndexError, TypeError, ArithmeticError) as error:
            raise CheckError(
                f"{rule.name} cannot be computed at the sizes that are drawn for it: {error}",
                given=", ".join(f"{name}{shape}" for name, shape in shapes.items()),
                fix="give inputs of sizes that it takes: check(rule, inputs=...)",
            ) from error
        if np.all(np.isfinite(values[rule.output])):
            break
    for node in chain.from_iterable(ast.walk(line.expression) for line in rule.forward.lines):
        match node:  # what forward reads as class numbers, with the value that has so many classes
            case ast.Call(func=ast.Name("one_hot"), args=[ast.Name(target), like]) if (
                target in rule.forward.kinds
            ):
                classes = evaluate(ast.unparse(like), values).shape[-1]
                drawn[target] = generator.integers(0, classes, shapes[target])
    return drawn


def _shapes(rule: Rule, sizes: Sequence[int], *, two: bool) -> dict[str, tuple[int, ...]]:
    """Return a shape for each argument: the same letter has the same size, and the first "..." two where asked for."""
    letters: dict[str, tuple[int, ...]] = {}
    spread = iter([SPREAD] if two else [])
    axes = dict.fromkeys(axis for axes in rule.signature.inputs for axis in axes)
    if (
        rule.signature.computed
    ):  # of windows: the axes of an image are named before those of a window, and longer
        sizes = (2, *range(len(axes) + 1, 2, -1))
    endless = chain(sizes, count(max(sizes) + 1))  # however many letters there are
    left = (size for size in endless if not two or size not in SPREAD)
    for axis in axes:
        both = next(spread, None) if axis.endswith("...") else None
        letters[axis] = both or (next(left),)
    for axis in rule.signature.computed.keys() & letters.keys():
        letters[axis] = tuple(map(int, rule.signature.computed_size(axis, letters, rule.forward.options)))
    return {
        name: tuple(size for axis in axes for size in letters[axis])
        for name, axes in zip(rule.forward.arguments, rule.signature.inputs, strict=True)
    }


def _drawn(
    kind: str, shape: tuple[int, ...], domain: str, table: int, generator: np.random.Generator
) -> Array:
    if kind == "index":  # positions in the first axis of the table
        return generator.integers(0, table, shape)
    if kind == "mask":  # keeps some and drops some: where nothing is dropped, a forgotten mask is right
        return generator.permutation(np.arange(math.prod(shape)) % 2 == 0).reshape(shape)
    if kind == "probabilities":
        return generator.dirichlet(np.ones(shape[-1]), shape[:-1])
    if kind in ("state", "weight") or (kind == "value" and domain == "positive"):
        return generator.uniform(0.5, 2.0, shape)
    if kind == "value" and domain == "below 1":
        return generator.uniform(0.1, 0.9, shape)
    return generator.normal(size=shape)

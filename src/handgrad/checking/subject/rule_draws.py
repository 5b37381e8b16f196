"""What a rule is checked at: inputs of the kinds it names, and options, that hide as little as can be."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, count

import numpy as np

from handgrad.checking.subject import Array, Inputs
from handgrad.checking.subject.draws import Source, draw
from handgrad.program.running import evaluate
from handgrad.rules import Rule

# Of axes, in the order of their letters: no two alike, the rows first.
SIZES = (5, 3, 7, 2, 11, 13)
SPREAD = (5, 3)  # of the axes that "..." stands for, where it is two


def other_options(rule: Rule, source: Source) -> dict[str, float]:
    """Return other options than the defaults, each where forward takes it.

    At a default of 1 or 0 a backward without the option is right, and so is one with the default written into it.
    """
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
    """Return inputs of which some are beyond 8, or -8: a ReLU6 is flat beyond 6."""
    return {name: _moved_out(value) for name, value in drawn.items()}


def _moved_out(value: Array) -> Array:
    number = np.arange(value.size).reshape(value.shape)
    sign = np.where(number % 8 == 1, 1, -1) if np.any(value < 0) else 1
    return np.where(number % 4 == 1, sign * (8 + np.abs(value)), value)


def draw_for(
    rule: Rule, generator: np.random.Generator, sizes: Sequence[int] = SIZES, *, stacks: bool = False
) -> Inputs:
    """Draw inputs for a rule at sizes that all differ, each in the domain its kind says.

    Values are of both signs, unless the rule is finite only above 0, or only between 0 and 1. An axis like ``N...`` is
    one, or two for stacks, and for a rule of a single argument.
    """
    letters: dict[str, tuple[int, ...]] = {}
    several = stacks or len(rule.signature.inputs) == 1
    spread = iter([SPREAD] if several else [])
    endless = chain(sizes, count(max(sizes) + 1))  # however many letters there are
    left = (size for size in endless if not several or size not in SPREAD)
    for axis in (axis for axes in rule.signature.inputs for axis in axes):
        if axis not in letters:
            both = next(spread, None) if axis.endswith("...") else None
            letters[axis] = both or (next(left),)
    shapes = {
        name: tuple(size for axis in axes for size in letters[axis])
        for name, axes in zip(rule.forward.arguments, rule.signature.inputs, strict=True)
    }
    for domain in ("both signs", "positive", "below 1"):
        drawn = {name: _drawn(rule.forward.kinds, shapes, name, domain, generator) for name in shapes}
        with np.errstate(all="ignore"):
            values = rule.values(*drawn.values())
            if np.all(np.isfinite(values[rule.output])):
                break
    for target, like in _class_numbers(rule):
        drawn[target] = generator.integers(0, evaluate(ast.unparse(like), values).shape[-1], shapes[target])
    return drawn


def _class_numbers(rule: Rule) -> Iterator[tuple[str, ast.expr]]:
    """Yield what forward reads as class numbers, each with the value that has so many classes."""
    for line in rule.forward.lines:
        for node in ast.walk(line.expression):
            match node:
                case ast.Call(func=ast.Name("one_hot"), args=[ast.Name(target), like]):
                    yield from [(target, like)] if target in rule.forward.kinds else []


def _drawn(
    kinds: Mapping[str, str],
    shapes: Mapping[str, tuple[int, ...]],
    name: str,
    domain: str,
    generator: np.random.Generator,
) -> Array:
    kind, shape = kinds[name], shapes[name]
    if kind == "index":  # positions in the first axis of the table
        table = next(shapes[other] for other in shapes if kinds[other] == "value")
        return generator.integers(0, table[0], shape)
    if kind == "mask":  # keeps some and drops some: where nothing is dropped, a forgotten mask is right
        return generator.permutation(np.arange(math.prod(shape)) % 2 == 0).reshape(shape)
    if kind == "probabilities":
        return generator.dirichlet(np.ones(shape[-1]), shape[:-1])
    if kind in ("state", "weight") or (kind == "value" and domain == "positive"):
        return generator.uniform(0.5, 2.0, shape)
    if kind == "value" and domain == "below 1":
        return generator.uniform(0.1, 0.9, shape)
    return generator.normal(size=shape)

"""Other inputs like the ones at hand: drawn, jittered, beside them or shorter, and still in their domain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from handgrad.checking.subject import Array, CheckError, Inputs, Subject, array_of, copy_of

Source = Mapping[str, Any] | Callable[[np.random.Generator], Mapping[str, Any]]


def draw(source: Source, generator: np.random.Generator) -> Inputs:
    """Return inputs from a dict of arrays, or from a function of a generator that makes one."""
    made = source(generator) if callable(source) else source
    return {name: array_of(name, value) for name, value in made.items()}


def fresh(source: Source, subject: Subject, generator: np.random.Generator) -> Inputs:
    """Return other inputs at which forward is finite: drawn anew where that is possible, else jittered.

    Raises
    ------
    CheckError
        When no other inputs are found.
    """
    for attempt in range(8):
        inputs = (
            draw(source, generator) if callable(source) else jittered(subject.inputs, generator, 0.5**attempt)
        )
        if {n: v.shape for n, v in inputs.items()} != {n: v.shape for n, v in subject.inputs.items()}:
            continue
        try:
            outputs = subject.run_forward(inputs)
        except CheckError:
            continue
        if all(np.all(np.isfinite(output)) for output in outputs):
            return inputs
    raise CheckError("no other inputs were found at which forward is finite")


def beside(
    subject: Subject, inputs: Inputs, arguments: tuple[str, ...], generator: np.random.Generator
) -> Inputs:
    """Return inputs a thousandth away, off any kink that round numbers stand at; as they were where forward ends."""
    for only_up in (False, True):
        moved = {
            name: _beside(value, generator, only_up=only_up) if name in arguments else np.array(value)
            for name, value in inputs.items()
        }
        try:
            if all(np.all(np.isfinite(output)) for output in subject.run_forward(moved)):
                return moved
        except CheckError:
            continue
    return copy_of(inputs)


def _beside(value: Array, generator: np.random.Generator, *, only_up: bool) -> Array:
    noise = generator.normal(size=value.shape)
    noise = np.abs(noise) if only_up or np.all(value >= 0) else noise
    nonzero = np.abs(value[value != 0])
    scale = float(np.median(nonzero)) if nonzero.size else 100.0
    signs = np.where(
        np.abs(value) == np.abs(value).max(initial=0), -1, 1
    )  # the largest may be the largest allowed
    moved = np.where(value == 0, 1e-3 * scale * noise, value * (1 + 1e-3 * signs * np.abs(noise)))
    return _kept(value, moved)


def jittered(inputs: Inputs, generator: np.random.Generator, size: float = 1.0) -> Inputs:
    """Return the inputs moved a little, each in its domain: whole numbers, signs, shares and symmetry stay."""
    return {name: _jitter(value, generator, size) for name, value in inputs.items()}


def _jitter(value: Array, generator: np.random.Generator, size: float) -> Array:
    if (
        value.dtype.kind != "f"
        or value.size == 0
        or not np.all(np.isfinite(value))
        or np.array_equal(value, np.round(value))
    ):
        return np.array(value)
    noise = generator.normal(size=value.shape)
    if np.all(value > 0):
        moved = value * np.exp(0.2 * size * noise)
        if np.all(value <= 1):
            moved = _shares(value, moved)
    else:
        scale = float(np.median(np.abs(value[value != 0])))
        moved = value + 0.3 * size * np.minimum(scale, np.abs(value) + 0.5 * scale) * noise
    return _kept(value, moved)


def _shares(value: Array, moved: Array) -> Array:
    """Keep numbers between 0 and 1, and rows that add up to 1, as they were."""
    for axis in range(value.ndim):
        if value.shape[axis] > 1 and np.allclose(value.sum(axis=axis), 1, atol=1e-6):
            return np.asarray(moved / moved.sum(axis=axis, keepdims=True))
    return np.minimum(moved, (1 + value) / 2)


def _kept(value: Array, moved: Array) -> Array:
    """Keep the type, and symmetry where there is some."""
    if value.ndim == 2 and value.shape[0] == value.shape[1] and np.array_equal(value, value.T):
        moved = (moved + moved.T) / 2
    return np.asarray(moved, value.dtype)


def shorter(inputs: Inputs, length: int) -> Iterator[Inputs]:
    """Yield the inputs with one length of an axis less by one: as a first axis only, and wherever it stands."""
    for axes in (slice(1), slice(None)):
        yield {name: _as_shares(value, _shortened(value, length, axes)) for name, value in inputs.items()}


def _shortened(value: Array, length: int, axes: slice) -> Array:
    for axis in range(value.ndim)[axes]:
        if value.shape[axis] == length:
            value = np.take(value, range(length - 1), axis=axis)
    return value


def _as_shares(before: Array, after: Array) -> Array:
    """Return rows that add up to 1 again where they did before: targets stay targets with a class less."""
    if before.ndim == 0 or after.size == 0 or np.any(before < 0) or not np.allclose(before.sum(axis=-1), 1):
        return after
    total = after.sum(axis=-1, keepdims=True)
    first = np.arange(after.shape[-1]) == 0
    return np.asarray(np.where(total > 0, after / np.where(total > 0, total, 1), first))

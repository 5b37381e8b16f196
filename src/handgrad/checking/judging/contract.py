"""What every backward must keep to, whatever it computes: it changes nothing, and says the same when asked again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from handgrad.checking.judging.verdict import Sample
from handgrad.checking.subject import Array, Inputs, Subject, closure, copy_of

UPSTREAM = "grad_output"
FACTORS = {2.0: "twice", 2.0**-20: "a millionth of", 2.0**10: "a thousand times"}
"""By how much upstream gradients are scaled: losses are averaged over many rows, and scaled up."""


@dataclass(frozen=True)
class Breach:
    """A rule of the contract that backward does not keep.

    Attributes
    ----------
    kind
        "mutated" (it changed an array it was given), "random" (fresh randomness), "stale" (another answer when
        called again), "affine" (zero upstream does not give zero) or "uneven" (twice does not give twice).
    argument
        The array that changed, or whose gradient did.
    evidence
        In words.
    """

    kind: str
    argument: str
    evidence: str


def breaches(subject: Subject, inputs: Inputs, sample: Sample) -> list[Breach]:
    """Return every rule of the contract that backward breaks at some inputs."""
    found = list(_mutations(subject, inputs, sample.upstream))
    again = list(_repetition(subject, inputs, sample))
    found += again
    if not again:
        found += _linearity(subject, inputs, sample)
    return found


def remembered(function: object) -> dict[str, str]:
    """Return what is kept where a function can reach it: dicts, lists, sets and arrays, to see whether calls change it.

    Looked at are its module, the functions around it, its object and its own attributes.
    """
    places = {
        "module": getattr(function, "__globals__", {}),
        "closure": closure(function),
        "object": getattr(getattr(function, "__self__", None), "__dict__", {}),
        "own": getattr(function, "__dict__", {}),
    }
    return {
        f"{place} {name}": _shown(value)
        for place, names in places.items()
        for name, value in names.items()
        if isinstance(value, dict | list | set | np.ndarray) and not name.startswith("__")
    }


def _shown(value: object) -> str:
    try:
        return repr(value)[:10000]
    except Exception:  # of anyone's object
        return ""


def _mutations(subject: Subject, inputs: Inputs, upstream: list[Array]) -> Iterator[Breach]:
    """Give forward and backward arrays and compare them bit for bit afterwards."""
    first = [np.array(part) for part in upstream]
    for role, run in (
        ("forward", lambda given: subject.run_forward(given, fresh=False)),
        ("backward", lambda given: subject.run_backward(first, given, fresh=False)),
    ):
        given = copy_of(inputs)
        run(given)
        for name, value in inputs.items():
            if not _same_bits(value, given[name]):
                entries = int(np.sum(value != given[name]))
                words = f"after {role}, {entries} of {value.size} entries of {name} have changed"
                yield Breach("mutated", name, words)
    if not all(_same_bits(a, b) for a, b in zip(upstream, first, strict=True)):
        yield Breach("mutated", UPSTREAM, "after backward, the upstream gradient it was given has changed")


def _same_bits(a: Array, b: Array) -> bool:
    return a.shape == b.shape and a.tobytes() == b.tobytes()


def _repetition(subject: Subject, inputs: Inputs, sample: Sample) -> Iterator[Breach]:
    """Call backward again on copies; more than another order of the same sums is another answer."""
    calls = [subject.run_backward(sample.upstream, inputs) for _ in range(3)]
    for name, once in sample.got.items():
        if all(_equal(once, call.get(name), name, sample) for call in calls):
            continue
        with _seeded():
            first = subject.run_backward(sample.upstream, inputs)
        with _seeded():
            second = subject.run_backward(sample.upstream, inputs)
        if _equal(first[name], second.get(name), name, sample):
            yield Breach(
                "random", name, f"called twice on the same inputs, d{name} differs, as random numbers do"
            )
        else:
            yield Breach(
                "stale", name, f"called twice on the same inputs, d{name} differs: something is kept"
            )


def _equal(a: Array, b: Array | None, name: str, sample: Sample) -> bool:
    if b is None or a.shape != b.shape:
        return False
    if a.shape != sample.magnitude[name].shape:
        return np.array_equal(a, b, equal_nan=True)
    eps = np.finfo(a.dtype).eps if a.dtype.kind == "f" else 0.0
    largest = sample.magnitude[name].max(initial=0)
    with np.errstate(all="ignore"):
        off = np.abs(a.astype(float) - b.astype(float))
    return bool(np.all((off <= 1e3 * eps * (sample.magnitude[name] + largest)) | ~np.isfinite(off)))


@contextmanager
def _seeded() -> Iterator[None]:
    """Make NumPy's and Python's unseeded randomness repeat itself for a moment."""
    import random

    state = np.random.get_state()  # noqa: NPY002 - the user's functions may use it
    numbers, make = random.getstate(), np.random.default_rng

    def seeded(seed: object = None) -> np.random.Generator:
        return make(0 if seed is None else seed)  # type: ignore[arg-type]

    np.random.seed(0)  # noqa: NPY002 - the user's functions may use it
    random.seed(0)
    np.random.default_rng = seeded
    try:
        yield
    finally:
        np.random.default_rng = make
        np.random.set_state(state)  # noqa: NPY002
        random.setstate(numbers)


def _linearity(subject: Subject, inputs: Inputs, sample: Sample) -> Iterator[Breach]:
    """Look whether the gradient is linear in the upstream one: doubled it doubles, and zero in gives zero."""
    zero = subject.run_backward([np.zeros_like(part) for part in sample.upstream], inputs)
    scaled = {
        factor: subject.run_backward([factor * part for part in sample.upstream], inputs)
        for factor in FACTORS
    }
    for name, once in sample.got.items():
        if not np.all(np.isfinite(once)):
            continue
        if _differs(zero.get(name), np.zeros_like(once), once):
            yield Breach("affine", name, f"zero upstream gives a d{name} that is not zero")
            continue
        few_digits = min(np.finfo(part.dtype).precision for part in (once, *sample.upstream)) < 15
        for factor, words in FACTORS.items():
            larger = factor * once
            if _differs(scaled[factor].get(name), larger, larger) and (factor == 2 or not few_digits):
                yield Breach("uneven", name, f"{words} the upstream gradient does not give {words} d{name}")
                break


def _differs(a: Array | None, b: Array, scale: Array) -> bool:
    if a is None or a.shape != b.shape:
        return True
    eps = np.finfo(a.dtype).eps if a.dtype.kind == "f" else 0.0
    size = float(np.abs(scale).max(initial=0))
    return not np.all(np.abs(a - b) <= 1e4 * eps * size)

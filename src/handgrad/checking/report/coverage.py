"""What a check did to find out, and what its verdict does not prove."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from itertools import combinations

import numpy as np

from handgrad.checking.subject import Array, Inputs, Subject
from handgrad.checking.verdict.comparison import Comparison, NumericalGradient
from handgrad.checking.verdict.directional import DirectionalCheck
from handgrad.finite_differences import NumericalJacobian
from handgrad.tolerance import DIGITS, EPS, rounding_error


def tried(numerical: NumericalGradient) -> Iterator[str]:
    """Yield what was done to find out."""
    ways: dict[str, list[str]] = {"": []}
    for name, jacobian in numerical.jacobians.items():
        way = jacobian.description if isinstance(jacobian, DirectionalCheck) else ""
        ways.setdefault(way, []).append(name)
    if every := ways.pop(""):
        digits = np.finfo(numerical.outputs[0].dtype).precision
        yield f"the numerical gradient of forward, from both sides, at {_entries(every, numerical)}, in {digits} digits"
    for way, names in ways.items():
        yield f"{_entries(names, numerical)}, {way}"
    number = len(numerical.upstreams)
    yield f"{number} upstream gradient{'s' * (number > 1)} of both signs"
    yield "the contract: no argument is changed, the same gradient when called again, linear in the upstream gradient"


def not_proved(subject: Subject, comparison: Comparison) -> Iterator[str]:
    """Yield what a pass does not prove."""
    numerical = comparison.numerical
    for name, why in comparison.doubtful.items():
        yield f"d{name}: {why}"
    for name, confirmed in comparison.mistrusted.items():
        if confirmed:
            yield (
                f"the slopes of forward cannot be trusted in {name}: it swings within a step; d{name} was compared with "
                "the chain rule over a trace of forward, which slopes at far shorter steps confirm"
            )
    ignored = [name for name in subject.differentiable if name not in comparison.arguments]
    if ignored:
        yield f"backward returns no {_listed([f'd{name}' for name in ignored])}, and none was checked"
    if whole := subject.whole_numbers(numerical.upstreams[0]):
        gradients = _listed([f"d{name}" for name in whole])
        yield f"{_listed(whole)} came as whole numbers, and no {gradients} was checked; give {whole[0]}.astype(float)"
    for name in comparison.arguments:
        if name not in comparison.doubtful and name not in comparison.wrong:
            yield from _about_gradient(name, comparison)
    for name, value in numerical.inputs.items():
        yield from _about_input(name, value)
    yield from _about_pairs(numerical.inputs)
    yield from _about_defaults(subject)
    if any(np.any(numerical.inputs[name] != subject.inputs[name]) for name in subject.differentiable):
        yield (
            "the gradient was compared at inputs moved by a thousandth, in case forward has a kink just there, as a ReLU has "
            "at 0; at the inputs themselves, only that it is finite"
        )
    given, made = rounding_error(*subject.inputs.values()), rounding_error(*numerical.outputs)
    if max(given, made) > EPS:
        what, eps = ("the inputs have", given) if given > EPS else ("forward's output has", made)
        yield f"{what} few digits: relative errors below {eps**DIGITS:.0e} are not seen; float64 shows them"


def _about_gradient(name: str, comparison: Comparison) -> Iterator[str]:
    samples, jacobian = comparison.samples, comparison.numerical.jacobians[name]
    if comparison.samples[0].inputs[name].size == 0:
        yield f"{name} is empty, and so is d{name}"
    elif all(np.all(np.abs(sample.got[name]) <= sample.bounds[name].tolerance) for sample in samples):
        yield f"d{name} is zero everywhere: a backward that cuts its path would pass too; give inputs at which {name} matters"
    if hidden := _hidden(name, comparison):
        entries = "1 entry" if hidden == 1 else f"{hidden} entries"
        yield f"{entries} of d{name} cannot be told to a hundredth: forward is too coarse there, or others are too large"
    if isinstance(jacobian, NumericalJacobian) and (kinks := int(jacobian.kinks.sum())):
        stand = "entry is" if kinks == 1 else "entries are"
        yield f"{kinks} {stand} at a kink in {name}: every value between the derivatives of the two sides is right there"


def _hidden(name: str, comparison: Comparison) -> int:
    """Count the entries whose error bound is above a hundredth of themselves, for every upstream gradient.

    What is a billion times smaller than the largest is rounding, and is not counted.
    """
    hidden = []
    for sample in comparison.samples:
        size = np.abs(sample.expected(name))
        hidden.append((sample.bounds[name].tolerance > 0.01 * size) & (size > 1e-9 * size.max(initial=0)))
    return int(np.sum(np.all(hidden, axis=0)))


def _about_input(name: str, value: Array) -> Iterator[str]:
    real = value.dtype.kind == "f"
    square = real and value.ndim >= 2 and value.shape[-1] == value.shape[-2] > 1
    if square and np.array_equal(value, np.swapaxes(value, -1, -2)):
        yield f"{name} is symmetric: a missing transpose of it would not show; give another {name}"
    elif value.size > 1 and np.all(value == value.flat[0]):  # a mask too, that drops nothing
        first = f"{value.flat[0]:g}" if real else value.flat[0]
        yield f"{name} is {first} everywhere: a mistake in what is taken from it may not show"
    elif real and value.size == 1 and value.item() in (0, 1):
        yield f"{name} is {value.item():g}: a factor or a term of it left out would not show; give another {name}"
    if real and value.ndim >= 1 and value.shape[0] == 1 and value.size > 1:
        yield f"{name} has one row: a sum or a mean over the rows would not show; give several"


def _about_pairs(inputs: Inputs) -> Iterator[str]:
    for (one, value), (other, second) in combinations(inputs.items(), 2):
        if value.size > 1 and np.array_equal(value, second):
            yield f"{one} and {other} are the same numbers: one taken for the other would not show"


def _about_defaults(subject: Subject) -> Iterator[str]:
    try:
        parameters = inspect.signature(subject.forward, follow_wrapped=False).parameters.values()
    except (TypeError, ValueError):
        return
    for each in parameters:
        if type(each.default) is float and each.default in (0.0, 1.0) and each.name not in subject.inputs:
            yield (
                f"{each.name} is {each.default:g}, its default: a factor or a term of it left out would not show; "
                f"give another {each.name} in the inputs"
            )


def _entries(names: list[str], numerical: NumericalGradient) -> str:
    number = sum(numerical.inputs[name].size for name in names)
    return f"{number:,} {'entry' if number == 1 else 'entries'} of {_listed(names)}"


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"

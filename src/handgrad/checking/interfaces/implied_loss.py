"""The loss of a network that has none in its code: the common one whose gradients are most of those that it computes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from handgrad.checking.interfaces.own_objects import Pair
from handgrad.checking.subject import CheckError

STEP = 1e-5  # of the central difference along one direction
OUTPUT = "output_"  # what a loss calls the prediction
AGREES = 1e-4  # relative: far from what an error in a gradient makes


def _cross_entropy(p: Any, t: Any) -> Any:
    return -np.sum(t * np.log(p))


def _binary_cross_entropy(p: Any, t: Any) -> Any:
    return -np.sum(t * np.log(p) + (1 - t) * np.log(1 - p))


SUMS: dict[str, Callable[[Any, Any], Any]] = {
    "0.5 * sum((output - target)**2)": lambda p, t: 0.5 * np.sum((p - t) ** 2),
    "sum((output - target)**2)": lambda p, t: np.sum((p - t) ** 2),
    "-sum(target * log(output) + (1 - target) * log(1 - output))": _binary_cross_entropy,
    "-sum(target * log(output))": _cross_entropy,
}
DIVISORS: dict[str, Callable[[Any], int]] = {
    "": lambda p: 1,
    " / rows": len,
    " / size": np.size,
    " / columns": lambda p: np.shape(p)[-1],
}


def implied_losses(target: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield losses of a prediction and the target of this name, with their formulas; a part of a value is no target."""
    if not target.isidentifier():
        return
    for formula, total in SUMS.items():
        for text, divisor in DIVISORS.items():
            yield formula + text, taking_output(_loss(total, divisor, target), target)


def _loss(total: Callable[[Any, Any], Any], divisor: Callable[[Any], int], target: str) -> Callable[..., Any]:
    def loss(**values: Any) -> Any:
        output, wanted = np.atleast_1d(values[OUTPUT]), np.atleast_1d(values[target])
        if wanted.dtype.kind in "iu" and wanted.size < output.size and wanted.size in output.shape:
            columns = np.eye(output.size // wanted.size)[:, wanted.ravel()]
            wanted = columns if columns.shape == output.shape else columns.T
        elif wanted.shape != output.shape:
            wanted = wanted.T if wanted.T.shape == output.shape else wanted.reshape(output.shape)
        with np.errstate(all="ignore"):  # a logarithm of what is no probability
            return total(output, wanted) / divisor(output)

    return loss


def taking_output(loss: Callable[..., Any], *others: str) -> Callable[..., Any]:
    """Return a loss as one of the prediction, and of the values of these names."""
    kind = inspect.Parameter.KEYWORD_ONLY
    loss.__signature__ = inspect.Signature([inspect.Parameter(each, kind) for each in (OUTPUT, *others)])  # type: ignore[attr-defined]
    return loss


def best_fitting(pairs: Iterable[tuple[str, Pair]]) -> Pair:
    """Return the first of the pairs, each with a formula of its loss, of whose gradients most agree with the slopes."""
    best, most = None, -1
    for formula, pair in pairs:
        count, every = agreeing(pair)
        # where as many agree with a sum as with an average, to forget the average is the more common
        if count > most or (count == most > 0 and formula.endswith(" / rows")):
            best = replace(pair, matched=(f"no loss was found: taken to be {formula}", *pair.matched))
            most = count
        if count == every:
            break
    if best is None:
        raise CheckError("no loss was found that these gradients may be of", fix="name it: --loss NAME")
    return best


def agreeing(pair: Pair) -> tuple[int, int]:
    """Return how many of a pair's gradients, of how many, agree with the slope of its forward along a random direction."""
    assert isinstance(pair.inputs, Mapping)
    values, generator = (
        {name: np.array(value) for name, value in pair.inputs.items()},
        np.random.default_rng(1),
    )
    with np.errstate(all="ignore"):
        try:
            pair.forward(**values)
            gradients = pair.backward(1.0, **values)
        except Exception as error:
            raise CheckError(f"{pair.name} raised {type(error).__name__}: {error}") from error
        count = 0
        for name, gradient in gradients.items():
            direction = generator.normal(size=np.shape(values[name]))
            above, below = (
                pair.forward(**{**values, name: values[name] + h * direction}) for h in (STEP, -STEP)
            )
            slope, given = (above - below) / (2 * STEP), np.sum(np.asarray(gradient) * direction)
            count += bool(abs(slope - given) <= AGREES * max(abs(slope), abs(given)) != 0)
    return count, len(gradients)

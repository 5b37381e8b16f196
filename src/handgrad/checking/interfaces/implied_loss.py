"""The loss of a network that has none in its code: the common one whose gradients are most of those that it computes."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from handgrad.checking.interfaces.own_objects import Pair
from handgrad.checking.interfaces.tensors import to_numpy
from handgrad.checking.subject import CheckError

STEP = 1e-5  # of the central difference along one direction
OUTPUT = "output_"  # what a loss calls the prediction
AGREES = 1e-4  # relative: far from what an error in a gradient makes
EXACTLY = 1e-7  # as a right one does: of probabilities near a half, squared errors have nearly the slopes of a cross-entropy


def _cross_entropy(p: Any, t: Any) -> Any:
    return -np.sum(t * np.log(p))


def _binary_cross_entropy(p: Any, t: Any) -> Any:
    return -np.sum(t * np.log(p) + (1 - t) * np.log(1 - p))


SQUARE = "(output - target)**2"
SUMS: dict[str, Callable[[Any, Any], Any]] = {
    "0.5 * sum((output - target)**2)": lambda p, t: 0.5 * np.sum((p - t) ** 2),
    "sum((output - target)**2)": lambda p, t: np.sum((p - t) ** 2),
    "-sum(target * log(output))": _cross_entropy,
    "-sum(target * log(output) + (1 - target) * log(1 - output))": _binary_cross_entropy,
}
RARE: dict[str, Callable[[Any, Any], Any]] = {  # taken only where all gradients are theirs
    "sum(abs(output - target))": lambda p, t: np.sum(np.abs(p - t)),
    "sum(output - target * log(output))": lambda p, t: np.sum(p - t * np.log(p)),  # of Poisson's distribution
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
    for formula, total in (SUMS | RARE).items():
        for text, divisor in DIVISORS.items():
            yield formula + text, taking_output(_loss(total, divisor, target), target)


def losses_of_residual() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield losses of a prediction from which a target is subtracted already, with their formulas."""
    for formula, total in SUMS.items():
        for text, divisor in DIVISORS.items() if SQUARE in formula else ():
            yield formula.replace(SQUARE, "output**2") + text, taking_output(_loss(total, divisor))


def _loss(
    total: Callable[[Any, Any], Any], divisor: Callable[[Any], int], target: str = ""
) -> Callable[..., Any]:
    """Return a loss of the prediction and a target, or of the prediction alone, where that is the error already."""

    def loss(**values: Any) -> Any:
        output = np.atleast_1d(to_numpy(values[OUTPUT]))
        wanted = np.atleast_1d(to_numpy(values[target])) if target else np.zeros(output.shape)
        if (
            wanted.dtype.kind in "iu" and wanted.size == 1 < output.size and output.ndim == 1
        ):  # one row's class
            wanted = np.eye(output.size)[int(wanted[0])]
        elif wanted.dtype.kind in "iu" and wanted.size < output.size and wanted.size in output.shape:
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


@lru_cache(maxsize=20)  # it is asked at each of the arguments that are tried
def loss_written_in(code: ast.AST) -> str:
    """Return the formula of the squared error that some code computes, as it does to print it, or ""."""
    for node in ast.walk(code):
        match node:
            case ast.Call(ast.Attribute(attr="sum" | "mean" as reduce), [error, *_]) if any(
                map(_squares, ast.walk(error))
            ):
                halved = any(isinstance(each, ast.Constant) and each.value == 0.5 for each in ast.walk(error))
                return "0.5 * " * halved + f"sum({SQUARE})" + " / size" * (reduce == "mean")
    return ""


def _squares(node: ast.AST) -> bool:
    """Whether a node is the square of a difference."""
    match node:
        case ast.BinOp(ast.BinOp(op=ast.Sub()), ast.Pow(), ast.Constant(2)):
            return True
        case ast.Call(ast.Attribute(attr="square" | "power"), [ast.BinOp(op=ast.Sub()), *_]):
            return True
    return False


def best_fitting(pairs: Iterable[tuple[str, Pair]], written: str = "") -> Pair:
    """Return the first of the pairs, each with a formula of its loss, of whose gradients most agree with the slopes.

    Where none does, it is the one that is ``written`` in their file. Gradients that are all the same multiple of one's may be
    steps by some rate, and are not judged, unless a function of the file defines the loss.
    """
    is_defined = bool(written) and not written.startswith((*SUMS, *RARE))
    best, most, exact = None, -1, -1
    every_pair: list[tuple[str, Pair]] = []
    for formula, pair in pairs:
        (count, every), (exactly, _) = agreeing(pair), agreeing(pair, EXACTLY)
        if formula.startswith((*RARE,)) and exactly < every:
            continue
        every_pair.append((formula, pair))
        # where as many agree with a sum as with an average, to forget the average is the more common
        averaged = count == most > 0 and exactly == exact and " / rows" in formula
        averaged = (
            averaged
            and best is not None
            and formula == f"{best[0]} / rows"
            and not np.isclose(_value(pair), _value(best[1]))
        )
        if (count, exactly) > (most, exact) or averaged:
            best, most, exact = (formula, pair), count, exactly
        if exactly == every:
            break
    if best is None:
        raise CheckError("no loss was found that these gradients may be of", fix="name it: --loss NAME")
    if most == 0:  # all may have the wrong sign, or a factor
        best = max(every_pair, key=lambda each: _likeness(each[0], each[1], written))
        found = _slopes(best[1], np.random.default_rng(1)).values()
        ratios = [given / slope for slope, given in found if slope]
        same = bool(ratios) and ratios[0] > 0 and np.allclose(ratios, ratios[0], rtol=AGREES, atol=0)
        weighted = same and not is_defined and _proportional(best[1]) == len(ratios) == len(found)
        if weighted or not any(slope for slope, _ in found):
            raise CheckError(
                "no loss was found, and these steps are of none that is known",
                given=f"they are {'a multiple of' if weighted else 'no'} gradients of {best[0]}",
                fix="compute the loss: loss = …",
            )
    formula, pair = best
    said = f"no loss was found: taken to be {formula}"
    if is_defined and not formula.startswith((*SUMS, *RARE)):
        said = f"the loss is taken to be {formula}"
    elif is_defined:
        said = f"the loss is taken to be {formula}; {written}, which the file defines, has other gradients"
    return replace(pair, matched=(said, *pair.matched))


def _likeness(formula: str, pair: Pair, written: str) -> tuple[bool, bool, int, int]:
    """Return by what the most likely of losses is chosen of which no gradient agrees with the slopes."""
    count = _proportional(pair)
    return count == agreeing(pair)[1], formula == written, count, _opposite(pair)


def _value(pair: Pair) -> Any:
    """Return a pair's loss at its inputs."""
    assert isinstance(pair.inputs, Mapping)
    return pair.forward(**pair.inputs)


def _proportional(pair: Pair) -> int:
    """Return how many of a pair's gradients have, along two directions, the same ratio to the slopes."""
    one, other = (_slopes(pair, np.random.default_rng(seed)) for seed in (1, 2))
    return sum(
        bool(np.isclose(one[name][0] * other[name][1], one[name][1] * other[name][0], rtol=AGREES, atol=0))
        for name in one
    )


def _opposite(pair: Pair) -> int:
    """Return how many of a pair's gradients are the slopes with the opposite sign, as if all were right but for that."""
    found = _slopes(pair, np.random.default_rng(1)).values()
    return sum(bool(np.isclose(given, -slope, rtol=AGREES, atol=0)) for slope, given in found)


def most_agreeing(readings: Iterable[Callable[[], Pair]]) -> Pair | None:
    """Return the first of the ways to read two functions of whose gradients most agree with the slopes, if one runs."""
    best, most = None, -1
    for read in readings:
        try:
            pair = read()
            count, every = agreeing(pair)
        except Exception:  # whatever the author's code raises when it is given something else
            continue
        if count > most and every:
            best, most = pair, count
    return best


def agreeing(pair: Pair, tolerance: float = AGREES) -> tuple[int, int]:
    """Return how many of a pair's gradients, of how many, agree with the slope of its forward along a random direction."""
    found = _slopes(pair, np.random.default_rng(1)).values()
    count = sum(abs(slope - given) <= tolerance * max(abs(slope), abs(given)) != 0 for slope, given in found)
    return count, len(found)


def _slopes(pair: Pair, generator: np.random.Generator) -> dict[str, tuple[float, float]]:
    """Return the slope of a pair's forward along a random direction of each array, and what its gradient says it is."""
    assert isinstance(pair.inputs, Mapping)
    values = {name: np.array(value) for name, value in pair.inputs.items()}
    found = {}
    with np.errstate(all="ignore"):
        try:
            shape = np.shape(pair.forward(**values))
            upstream = np.asarray(generator.normal(size=shape)) if shape else np.ones(())
            gradients = pair.backward(upstream if shape else 1.0, **values)
        except Exception as error:
            raise CheckError(f"{pair.name} raised {type(error).__name__}: {error}") from error
        for name, gradient in gradients.items():
            direction = generator.normal(size=np.shape(values[name]))
            above, below = (
                pair.forward(**{**values, name: values[name] + h * direction}) for h in (STEP, -STEP)
            )
            slope = float(np.sum(upstream * (above - below)) / (2 * STEP))
            found[name] = slope, float(np.sum(np.asarray(gradient) * direction))
    return found

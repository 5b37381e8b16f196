"""How far a candidate gets with some arguments: whether it runs, and whether its gradients have their arguments' shapes."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from handgrad.checking.interfaces import has_backward, pair_of
from handgrad.checking.subject import CheckError
from handgrad.checking.user_files.parameter_words import is_bias, is_weight

RETURNS, MISSHAPEN, DEGENERATE, UNSUMMED, FITS = range(10, 15)
# forward's result cannot be judged; a gradient has another shape; all fits, but with one row, inputs that
# broadcast or all sizes alike, where mistakes hide; a gradient has the batch as one more axis; all fits


def how_well_it_fits(
    forward: Any, backward: Any, inputs: dict[str, Any]
) -> tuple[int, int, dict[str, tuple[int, ...]]]:
    """Return the last stage that a candidate reaches with some inputs, the number of its gradients, and other shapes.

    These are those of gradients that are as large as their arguments, or one number.

    Raises what the candidate raises.
    """
    function = forward if has_backward(forward) else copy.deepcopy(forward)
    pair = pair_of(function, backward, copy.deepcopy(inputs))
    values = pair.inputs if isinstance(pair.inputs, dict) else {}
    output = pair.forward(**{name: np.array(value) for name, value in values.items()})
    parts = [np.asarray(part) for part in (output if isinstance(output, tuple) else (output,))]
    if any(part.dtype.kind != "f" for part in parts):
        raise CheckError(f"forward returns {parts[0].dtype}, not an array of real numbers")
    if not all(np.all(np.isfinite(part)) for part in parts):
        return RETURNS, 0, {}
    upstream = tuple(np.ones(part.shape) for part in parts)
    copied = {name: np.array(value) for name, value in values.items()}
    gradients = pair.backward(upstream if len(upstream) > 1 else upstream[0], **copied)
    if not isinstance(gradients, dict):
        return FITS, 0, {}
    by_name = {name: (np.shape(gradient), np.shape(values[name])) for name, gradient in gradients.items()}
    shapes = list(by_name.values())
    if all(got == wanted for got, wanted in shapes):
        return (RETURNS if _has_one_bias_for_all(values, parts[0]) else FITS), len(shapes), {}
    unsummed = all(
        got == wanted
        or (len(got) == len(wanted) + 1 > 1 and got[1:] == wanted and wanted)
        or (is_bias(name.rpartition(".")[2]) and _is_broadcast(wanted, got))
        for name, (got, wanted) in by_name.items()
    )
    others = {
        name: got
        for name, (got, wanted) in by_name.items()
        if got != wanted
        and (np.prod(got) == np.prod(wanted) or not got or (len(got) == 1 == len(wanted) and got < wanted))
    }
    return (UNSUMMED if unsummed else MISSHAPEN), len(shapes), others


def _is_broadcast(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether a shape with an axis of length 1 is broadcast to another."""
    return len(one) == len(other) > 1 and all(size in (1, wide) for size, wide in zip(one, other, strict=True))


def _has_one_bias_for_all(values: dict[str, Any], output: np.ndarray) -> bool:
    """Whether a matrix gives several outputs one and the same bias: code that sums over too much runs with that too."""
    named = {name.rpartition(".")[2]: np.shape(value) for name, value in values.items()}
    matrices = [
        shape for name, shape in named.items() if is_weight(name) and len(shape) == 2 and min(shape) > 1
    ]
    ends = {(0, size) for size in output.shape[:1]} | {(1, size) for size in output.shape[-1:]}
    several = any((0, shape[0]) in ends or (1, shape[1]) in ends for shape in matrices)
    return (
        several
        and output.ndim == 2
        and any(is_bias(name) and np.prod(shape) == 1 for name, shape in named.items())
    )

"""How far a candidate gets with some arguments: whether it runs, and whether its gradients have their arguments' shapes."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from handgrad.checking.interfaces import has_backward, pair_of
from handgrad.checking.subject import CheckError
from handgrad.checking.user_files.parameter_words import is_bias, is_weight

RETURNS, ALL_MISSHAPEN, MISSHAPEN, DEGENERATE, UNSUMMED, FITS = range(10, 16)
# forward's result cannot be judged; each of several gradients has another shape; one has; all fits, but with one row,
# inputs that broadcast or all sizes alike, where mistakes hide; a gradient has the batch as one more axis; all fits


def how_well_it_fits(
    forward: Any, backward: Any, inputs: dict[str, Any], *, drawn: bool = True
) -> tuple[int, int, dict[str, tuple[int, ...]]]:
    """Return the last stage that a candidate reaches with some inputs, the number of its gradients, and other shapes.

    These are those of gradients that are as large as their arguments, or one number. No bias is ``drawn`` with a size that
    its matrix has not; the file's own may have one.

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
    if isinstance(gradients, tuple) and len(gradients) == len(values):
        gradients = dict(zip(values, gradients, strict=True))
    if not isinstance(gradients, dict):
        return FITS, 0, {}
    if drawn and _has_a_strange_bias(values):
        return RETURNS, len(gradients), {}
    by_name = {name: (np.shape(gradient), np.shape(values[name])) for name, gradient in gradients.items()}
    if drawn and any(
        got and not wanted and _matrix_of(name, values) for name, (got, wanted) in by_name.items()
    ):
        return RETURNS, len(gradients), {}
    shapes = list(by_name.values())
    if all(got == wanted for got, wanted in shapes):
        return FITS, len(shapes), {}
    unsummed = all(
        got == wanted
        or (len(got) == len(wanted) + 1 > 1 and got[1:] == wanted and wanted)
        or (is_bias(name.rpartition(".")[2]) and (_is_broadcast(wanted, got) or _matrix_of(name, values)))
        for name, (got, wanted) in by_name.items()
    )
    others = {
        name: got
        for name, (got, wanted) in by_name.items()
        if got != wanted
        and (np.prod(got) == np.prod(wanted) or not got or (len(got) == 1 == len(wanted) and got < wanted))
    }
    none_fits = len(shapes) > 1 and all(got != wanted for got, wanted in shapes)
    return (UNSUMMED if unsummed else ALL_MISSHAPEN if none_fits else MISSHAPEN), len(shapes), others


def _is_broadcast(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether a shape with an axis of length 1 is broadcast to another."""
    return (
        len(one) == len(other) > 1
        and max(one) > 1
        and all(size in (1, wide) for size, wide in zip(one, other, strict=True))
    )


def _has_a_strange_bias(values: dict[str, Any]) -> bool:
    """Whether a bias has another size than its matrix gives outputs: what sums over the wrong axis runs with that too."""
    vectors = [name for name, value in values.items() if np.size(value) == max(np.shape(value), default=1)]
    matrices = {name: _matrix_of(name, values) for name in vectors if is_bias(name.rpartition(".")[2])}
    return any(matrix and np.size(values[name]) not in matrix for name, matrix in matrices.items())


def _matrix_of(bias: str, values: dict[str, Any]) -> tuple[int, ...]:
    """Return the shape of the matrix that a bias belongs to, ``W1`` of ``b1``, if there is one."""

    def number(name: str) -> str:
        return "".join(filter(str.isdigit, name))

    shapes = (
        np.shape(value) for name, value in values.items()
        if is_weight(name.rpartition(".")[2]) and number(name) == number(bias) and np.ndim(value) == 2
    )  # fmt: skip
    first, *others = [*shapes, ()]
    return first if len(others) == 1 else ()

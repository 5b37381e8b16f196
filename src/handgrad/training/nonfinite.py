"""When a loss is not finite: which line of the program first was not, and why it is likely."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.engines import Epoch
from handgrad.errors import TrainingError
from handgrad.program import Program, ProgramLine
from handgrad.program.running import run_line
from handgrad.rules import show_shape

Array = NDArray[Any]


def largest(arrays: Mapping[str, Array]) -> dict[str, float]:
    """Return the largest absolute value of each array."""
    return {name: float(np.abs(array).max(initial=0)) for name, array in arrays.items()}


def explain_nonfinite(
    program: Program, kept: Mapping[str, Array], start: Mapping[str, float], epoch: Epoch, batch: int
) -> TrainingError:
    """Run an epoch again, line by line, up to the batch that failed, and return what to tell the user.

    Parameters
    ----------
    program
        The training program, or the loss's over the validation rows.
    kept
        Parameters, states and slots as they were before the epoch; they are changed.
    start
        How large the parameters were when the training began.
    epoch, batch
        What ran, and which batch's loss, or its update, was not finite (from 0).
    """
    with np.errstate(all="ignore"):
        for number, given in enumerate(epoch.batches(program)):
            scope: dict[str, Any] = {**kept, **given, "n": len(given["x"])}
            for name, array in given.items():
                if not np.all(np.isfinite(array)):
                    return _report_data(program, epoch, number, name)
            for line in program.lines:
                run_line(line, scope)
                if not np.all(np.isfinite(scope[line.target])):
                    return _report_line(program, line, scope, start, epoch, number)
            if number == batch:
                break
    return TrainingError(
        f"the loss of batch {batch + 1} is not finite, but on the reference engine every line of it is",
        fix="train with engine='reference', or in float64",
    )


def _report_data(program: Program, epoch: Epoch, number: int, name: str) -> TrainingError:
    """Say that data which was finite is not in the program's type."""
    size = largest({name: epoch.arrays[name]})[name]
    problem = f"{name} goes up to {size:.3g}, too large for {program.dtype}"
    return _report(epoch, number, problem, "the scale of the data", fix="divide it, or train in float64")


def _report_line(
    program: Program,
    line: ProgramLine,
    scope: dict[str, Any],
    start: Mapping[str, float],
    epoch: Epoch,
    number: int,
) -> TrainingError:
    value = scope[line.target]
    place = f"line `{line}` ({line.phase}, {line.layer or line.rule}) gave {_kind(value)}"
    where = np.argwhere(~np.isfinite(np.asarray(value)))
    entry = f"[{', '.join(map(str, where[0]))}]" if where.size and where[0].size else ""
    sizes = largest({name: scope[name] for name in sorted(line.reads & scope.keys() - {line.target})})
    given = ", ".join(f"|{name}| up to {size:.3g}" for name, size in sizes.items())
    cause, fix = _cause(program, line, scope, start, epoch, number)
    return _report(epoch, number, f"{place}; first at {line.target}{entry}", cause, given, fix)


def _cause(
    program: Program,
    line: ProgramLine,
    scope: dict[str, Any],
    start: Mapping[str, float],
    epoch: Epoch,
    number: int,
) -> tuple[str, str]:
    """Return the likely cause and what to do."""
    for name, now in largest({name: scope[name] for name in program.parameters}).items():
        if now > 30 * max(start[name], 0.1):
            return f"the learning rate: {name} has grown from {start[name]:.3g} to {now:.3g}", _slower(
                epoch, number
            )
    if (size := largest({"x": scope["x"]})["x"]) > 1e3 and scope["x"].dtype.kind == "f":
        return f"the scale of the data: x goes up to {size:.3g}", "standardise it: put Standardise() first"
    if "log" in line.expression:
        return "the logarithm of 0 or of a negative number", "use a loss that takes logits"
    if "exp" in line.expression:
        return "the exponential of a large number", "subtract the largest first, or bound what comes in"
    if "/" in line.expression or "sqrt" in line.expression:
        return "a division by 0, or the root of a negative number", "add a small number to the denominator"
    return f"numbers too large for {program.dtype}", _slower(epoch, number)


def _slower(epoch: Epoch, number: int) -> str:
    if not len(epoch.learning_rates):
        return "try a lower learning rate"
    rate = float(epoch.learning_rates[number])
    return f"try a learning rate of {rate / 10:.3g} instead of {rate:.3g}, or clip_norm=1.0"


def _report(
    epoch: Epoch, number: int, problem: str, cause: str, given: str = "", fix: str = ""
) -> TrainingError:
    place = f"step {epoch.first_step + number}" if len(epoch.learning_rates) else "the validation rows"
    return TrainingError(
        f"{place} (batch {number + 1} of {len(epoch)}): {problem}",
        given=given,
        fix=f"likely cause: {cause}" + (f"; {fix}" if fix else ""),
    )


def _kind(array: Array) -> str:
    return (
        f"NaN {show_shape(np.shape(array))}"
        if np.isnan(array).any()
        else f"infinity {show_shape(np.shape(array))}"
    )

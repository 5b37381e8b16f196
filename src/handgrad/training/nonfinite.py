"""When a loss is not finite: which line of the program first was not, and why it is likely."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from handgrad.arrays import Array, stored
from handgrad.engines import Epoch
from handgrad.errors import TrainingError
from handgrad.program import Program, ProgramLine
from handgrad.program.lines_in_python import raised_in, run_source
from handgrad.rules import show_shape
from handgrad.rules.rule_source import blocks, source_of_block
from handgrad.training.learning_rates import steps_tried

GROWN, SMALL = (
    30,
    0.1,
)  # weights that have grown so many times, from this or more, did so by the learning rate
UNSCALED = 1e3  # data above this is not standardised
HUGE = 1e150  # and above this it cannot be: its squares are too large for float64


def largest(arrays: Mapping[str, Array]) -> dict[str, float]:
    """Return the largest absolute value of each array."""
    return {name: float(np.abs(stored(array)).max(initial=0)) for name, array in arrays.items()}


_OTHER_UNIT = "give the data in another unit: divide it by a power of 10"

FiniteRate = Callable[[float, int], float | None]
"""Finds a rate below one that was too high, at which the loss stays finite for so many steps; None where it found none."""


def explain_nonfinite(
    program: Program,
    arrays: Mapping[str, Array],
    start: Mapping[str, float],
    epoch: Epoch,
    batch: int,
    finite_rate: FiniteRate | None = None,
) -> TrainingError:
    """Run an epoch again, line by line, up to the batch that failed, and return the error that explains it.

    ``arrays`` are as they were before the epoch, and are changed; ``start`` is their largest value when training began.
    ``finite_rate`` is asked for the rate to be advised; without it, it is a tenth.
    """
    if error := _of_statistics(program, arrays, epoch):
        return error
    with np.errstate(all="ignore"):
        for number, given in enumerate(epoch.batches(program)):
            if blamed := _blame(program, arrays, start, epoch, number, given, finite_rate):
                step = f"step {epoch.first_step + number}"
                place = step if len(epoch.learning_rates) else "the validation rows"
                error = TrainingError(
                    f"{place} (batch {number + 1} of {len(epoch)}): {blamed.problem}",
                    given=blamed.values,
                    fix=f"likely cause: {blamed.cause}; {blamed.fix}",
                )
                if blamed.line is None:
                    return error
                return raised_in(error, program, "step", blamed.line, blamed.scope)
            if number == batch:
                break
    return TrainingError(
        f"the loss of batch {batch + 1} is not finite, but on the reference engine every line of it is",
        fix="train with engine='reference', or in float64"
        if program.dtype == "float32"
        else "train with engine='reference'",
    )


def _of_statistics(program: Program, arrays: Mapping[str, Array], epoch: Epoch) -> TrainingError | None:
    """Return the error of data that is so large that its mean or deviation is not finite."""
    for name, state in program.states.items():
        if state.fit is not None and not np.isfinite(arrays[name]).all():
            of = state.fit[0]
            size = largest({of: epoch.arrays[of]})[of]
            if size > float(np.finfo(program.dtype).max):
                return None  # which is the first thing to mend
            return TrainingError(
                f"{name} is not finite: {of} goes up to {size:.3g}, and the squares are too large for float64",
                fix=_OTHER_UNIT,
            )
    return None


class _Blame(NamedTuple):
    """What was first not finite, why it is likely, and what to do; the line that made it, with all values there."""

    problem: str
    cause: str
    fix: str
    values: str
    line: ProgramLine | None
    scope: dict[str, Any]


def _blame(
    program: Program, arrays: Mapping[str, Array], start: Mapping[str, float], epoch: Epoch, number: int,
    given: Mapping[str, Any], finite_rate: FiniteRate | None,
) -> _Blame | None:  # fmt: skip
    """Run a batch, as far as the first value that is not finite."""
    for name, array in given.items():
        if not np.all(np.isfinite(stored(array))):  # it was, before it was converted
            size = largest({name: epoch.arrays[name]})[name]
            problem = f"{name} goes up to {size:.3g}, too large for {program.dtype}"
            return _Blame(problem, "the scale of the data", "divide it, or train in float64", "", None, {})
    scope: dict[str, Any] = {**arrays, **given, "n": given["x"].shape[0]}
    pairs = ((block, line) for block in blocks(program.lines) for line in block)
    for block, line in pairs:
        if line is block[0]:
            run_source(source_of_block(block), scope)
        value = np.asarray(scope[line.target])
        if np.all(np.isfinite(value)):
            continue
        kind = "NaN" if np.isnan(value).any() else "infinity"
        first = np.argwhere(~np.isfinite(value))[0]
        entry = f"[{', '.join(map(str, first))}]" if first.size else ""
        sizes = largest({name: scope[name] for name in sorted(line.reads & scope.keys() - {line.target})})
        problem = (
            f"line `{line}` ({line.phase}, {line.layer or line.rule}) gave {kind} {show_shape(value.shape)}; "
            f"first at {line.target}{entry}"
        )
        values = ", ".join(f"|{name}| up to {size:.3g}" for name, size in sizes.items())
        cause, fix = _cause(program, start, line, scope, lambda: _slower(epoch, number, finite_rate))
        return _Blame(problem, cause, fix, values, line, scope)
    return None


def _slower(epoch: Epoch, number: int, finite_rate: FiniteRate | None) -> str:
    """Advise a lower learning rate: one that was tried, where it can be."""
    if not len(epoch.learning_rates):
        return "try a lower learning rate"
    rate = float(epoch.learning_rates[number])
    steps = epoch.first_step + number
    finite = finite_rate(rate, steps) if finite_rate is not None else None
    now, first = f"{rate:.3g}", f"{max(epoch.learning_rates):.3g}"
    scheduled = "" if now == first else f", which the schedule has lowered from {first}"
    advice = f"try a learning rate of {finite or rate / 10:.3g} instead of {now}{scheduled}"
    if finite:
        advice += (
            f", the largest tried that stays finite for {steps_tried(steps)} steps from the initial weights"
        )
    return f"{advice}, or clip_norm=1.0"


def _cause(
    program: Program,
    start: Mapping[str, float],
    line: ProgramLine,
    scope: Mapping[str, Any],
    slower: Callable[[], str],
) -> tuple[str, str]:
    """Return the likely cause and what to do."""
    sizes = largest({name: scope[name] for name in (*program.parameters, "x")})
    for name in program.parameters:
        if sizes[name] > GROWN * max(start[name], SMALL):
            return (
                f"the learning rate: {name} has grown from {start[name]:.3g} to {sizes[name]:.3g}",
                slower(),
            )
    if sizes["x"] > UNSCALED and scope["x"].dtype.kind == "f":
        cause = f"the scale of the data: x goes up to {sizes['x']:.3g}"
        if any(line.rule == "standardise" for line in program.lines):
            return cause, "give it in another unit: even standardised its squares are too large"
        return cause, _OTHER_UNIT if sizes["x"] > HUGE else "standardise it: put Standardise() first"
    targets = largest({"t": scope["t"]})["t"]
    standardised = any(line.rule == "unstandardise" for line in program.lines)
    if targets > UNSCALED and scope["t"].dtype.kind == "f" and not standardised:
        fix = _OTHER_UNIT if targets > HUGE else "standardise them: put StandardiseTargets() last"
        return f"the scale of the targets: t goes up to {targets:.3g}", fix
    if "log" in line.expression:
        return "the logarithm of 0 or of a negative number", "use a loss that takes logits"
    if "exp" in line.expression:
        return "the exponential of a large number", "subtract the largest first, or bound what comes in"
    if "/" in line.expression or "sqrt" in line.expression:
        cause = "a division by 0, or the root of a negative number"
        return cause, "add a small number to the denominator"
    return f"numbers too large for {program.dtype}", slower()

"""When a loss is not finite: which line of the program first was not, and why it is likely."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.engines import Epoch
from handgrad.errors import TrainingError
from handgrad.program import Program, ProgramLine
from handgrad.program.lines_in_python import run_line
from handgrad.rules import show_shape

Array = NDArray[Any]


def largest(arrays: Mapping[str, Array]) -> dict[str, float]:
    """Return the largest absolute value of each array."""
    return {name: float(np.abs(array).max(initial=0)) for name, array in arrays.items()}


def explain_nonfinite(
    program: Program, arrays: Mapping[str, Array], start: Mapping[str, float], epoch: Epoch, batch: int
) -> TrainingError:
    """Run an epoch again, line by line, up to the batch that failed, and return the error that explains it.

    ``arrays`` are as they were before the epoch, and are changed; ``start`` is their largest value when training began.
    """
    with np.errstate(all="ignore"):
        for number, given in enumerate(epoch.batches(program)):
            at = _Batch(program, start, epoch, number)
            for name, array in given.items():
                if not np.all(np.isfinite(array)):
                    return at.blame_data(name)
            scope: dict[str, Any] = {**arrays, **given, "n": len(given["x"])}
            for line in program.lines:
                run_line(line, scope)
                if not np.all(np.isfinite(scope[line.target])):
                    return at.blame_line(line, scope)
            if number == batch:
                break
    return TrainingError(
        f"the loss of batch {batch + 1} is not finite, but on the reference engine every line of it is",
        fix="train with engine='reference', or in float64",
    )


@dataclass(frozen=True)
class _Batch:
    """The batch, by its number from 0, in which something was first not finite."""

    program: Program
    start: Mapping[str, float]
    epoch: Epoch
    number: int

    def blame_data(self, name: str) -> TrainingError:
        """Say that data which was finite is not in the program's type."""
        size = largest({name: self.epoch.arrays[name]})[name]
        problem = f"{name} goes up to {size:.3g}, too large for {self.program.dtype}"
        return self.error(problem, "the scale of the data", "divide it, or train in float64")

    def blame_line(self, line: ProgramLine, scope: Mapping[str, Any]) -> TrainingError:
        """Say what a line gave, and of what."""
        value = np.asarray(scope[line.target])
        kind = "NaN" if np.isnan(value).any() else "infinity"
        first = np.argwhere(~np.isfinite(value))[0]
        entry = f"[{', '.join(map(str, first))}]" if first.size else ""
        sizes = largest({name: scope[name] for name in sorted(line.reads & scope.keys() - {line.target})})
        return self.error(
            f"line `{line}` ({line.phase}, {line.layer or line.rule}) gave {kind} {show_shape(value.shape)}; "
            f"first at {line.target}{entry}",
            *self.cause(line, scope),
            given=", ".join(f"|{name}| up to {size:.3g}" for name, size in sizes.items()),
        )

    def cause(self, line: ProgramLine, scope: Mapping[str, Any]) -> tuple[str, str]:
        """Return the likely cause and what to do."""
        sizes = largest({name: scope[name] for name in (*self.program.parameters, "x")})
        for name in self.program.parameters:
            before, now = self.start[name], sizes[name]
            if now > 30 * max(before, 0.1):
                return f"the learning rate: {name} has grown from {before:.3g} to {now:.3g}", self.slower()
        if sizes["x"] > 1e3 and scope["x"].dtype.kind == "f":
            cause = f"the scale of the data: x goes up to {sizes['x']:.3g}"
            return cause, "standardise it: put Standardise() first"
        if "log" in line.expression:
            return "the logarithm of 0 or of a negative number", "use a loss that takes logits"
        if "exp" in line.expression:
            return "the exponential of a large number", "subtract the largest first, or bound what comes in"
        if "/" in line.expression or "sqrt" in line.expression:
            cause = "a division by 0, or the root of a negative number"
            return cause, "add a small number to the denominator"
        return f"numbers too large for {self.program.dtype}", self.slower()

    def slower(self) -> str:
        """Return which learning rate to try."""
        if not len(self.epoch.learning_rates):
            return "try a lower learning rate"
        rate = float(self.epoch.learning_rates[self.number])
        return f"try a learning rate of {rate / 10:.3g} instead of {rate:.3g}, or clip_norm=1.0"

    def error(self, problem: str, cause: str, fix: str, given: str = "") -> TrainingError:
        """Return the error, which begins with the place."""
        epoch = self.epoch
        step = f"step {epoch.first_step + self.number}"
        place = step if len(epoch.learning_rates) else "the validation rows"
        return TrainingError(
            f"{place} (batch {self.number + 1} of {len(epoch)}): {problem}",
            given=given,
            fix=f"likely cause: {cause}; {fix}",
        )

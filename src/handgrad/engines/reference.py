"""The reference engine: the lines of the program, on NumPy. Simple beats fast."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from handgrad.engines.engine import Array, Epoch, NonFiniteLossError, convert
from handgrad.program import Program
from handgrad.program.lines_in_python import compile_program


class ReferenceEngine:
    """Runs the program's own Python lines."""

    def bind(self, program: Program, arrays: Mapping[str, Array]) -> BoundReference:
        """Prepare a program to run on ``arrays``, which its updates change in place."""
        return BoundReference(program, arrays)


class BoundReference:
    """A program as a Python function, with the arrays it keeps."""

    facts: ClassVar[Mapping[str, Any]] = {"engine": "reference"}

    def __init__(self, program: Program, arrays: Mapping[str, Array]) -> None:
        self.program = program
        self.arrays = {name: arrays[name] for name in program.shapes}
        self.function = compile_program(program, "step")

    def epoch(self, epoch: Epoch, progress: Callable[[int], None] | None = None) -> tuple[float, float]:
        """Run every batch; see `BoundProgram.epoch`."""
        total_at, count_at = (self.program.outputs.index(name) for name in ("total", "count"))
        total, count = epoch.total, epoch.count
        with np.errstate(all="ignore"):  # the program itself stops at a loss that is not finite
            for number, batch in enumerate(epoch.batches(self.program)):
                try:
                    outputs = self.function(**batch, **self.arrays)
                except FloatingPointError:
                    raise NonFiniteLossError(number) from None
                if not np.isfinite(outputs[total_at]):  # a program without an update does not look itself
                    raise NonFiniteLossError(number)
                total += float(outputs[total_at])
                count += float(outputs[count_at])
                if progress is not None:
                    progress(min((number + 1) * epoch.batch_size, len(epoch.order)))
        return total, count

    def run(self, **inputs: Any) -> dict[str, Any]:
        """Run the lines once; see `BoundProgram.run`."""
        program = self.program
        numbers = {name: inputs[name] for name in program.scalars}
        with np.errstate(all="ignore"):
            arrays = {
                value.name: convert(inputs[value.name], value, program.dtype) for value in program.inputs
            }
            outputs = self.function(**arrays, **numbers, **self.arrays)
        return dict(zip(program.outputs, outputs, strict=True))

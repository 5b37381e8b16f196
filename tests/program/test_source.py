"""A program as Python: what runs is what is read, also for tracebacks and debuggers."""

from __future__ import annotations

import ast
import inspect
import sys
import traceback
from types import FrameType
from typing import Any

import numpy as np
import pytest

from handgrad import BatchNorm, Dropout, Linear, MeanSquaredError, Network, ReLU
from handgrad.program.lines_in_python import compile_program
from handgrad.program.printing import function_source

NETWORK = Network(Linear(5, 7), BatchNorm(), ReLU(), Dropout(0.2), Linear(7, 3), loss=MeanSquaredError())
PROGRAM = NETWORK.program()
RNG = np.random.default_rng(0)


def arguments(rows: int = 4) -> dict[str, Any]:
    x, t = RNG.normal(size=(rows, 5)).astype("float32"), RNG.normal(size=(rows, 3)).astype("float32")
    numbers = {"learning_rate": 0.1, "step": 1, "seed": 0}
    return {"x": x, "t": t, **numbers, **{name: v.copy() for name, v in NETWORK.arrays.items()}}


def test_the_source_has_every_line_with_its_shape_and_reason() -> None:
    """In the program's order, one line each, under the names of the phases."""
    source = function_source(PROGRAM, "step")
    ast.parse(source)
    shown = iter(source.splitlines())
    phases = [row for row in source.splitlines() if row.startswith("    # ")]
    assert phases == [f"    # {name}" for name in ("sample", "forward", "loss", "backward", "update")]
    for line in PROGRAM.lines:
        found = next(row for row in shown if row.startswith(f"    {line}  # "))
        assert found.endswith(line.reason)


def test_the_function_returns_the_outputs_and_changes_what_is_kept() -> None:
    """In the order of the program's outputs; parameters and running statistics in place."""
    given = arguments()
    before = {name: given[name].copy() for name in NETWORK.arrays}
    outputs = dict(zip(PROGRAM.outputs, compile_program(PROGRAM, "step")(**given), strict=True))
    assert outputs["loss"] == outputs["total"] / outputs["count"]
    for name, v in NETWORK.parameters.items():
        expected = before[name] - np.float32(0.1) * outputs[f"d{name}"]
        np.testing.assert_array_equal(given[name], expected)
        assert v.dtype == given[name].dtype
    assert (given["running_mean1"] != before["running_mean1"]).all()


def test_a_traceback_shows_the_program_s_line() -> None:
    """A line that fails is named and shown."""
    given = arguments() | {"W2": np.ones((8, 3), "float32")}
    with pytest.raises(ValueError, match="matmul") as caught:
        compile_program(PROGRAM, "step")(**given)
    last = traceback.extract_tb(caught.tb)[-1]
    assert last.line.startswith("z2 = h1 @ W2 + b2  # (n, 3)")
    assert last.name == "step"


def test_the_function_s_source_is_found_as_that_of_any_function() -> None:
    """By `inspect`, and so by what shows it: a debugger's list, IPython's ??."""
    assert inspect.getsource(compile_program(PROGRAM, "step")) == function_source(PROGRAM, "step")


def test_a_debugger_steps_through_the_program_s_lines() -> None:
    """Every line is an event of its own, in order."""
    function, source = compile_program(PROGRAM, "step"), function_source(PROGRAM, "step").splitlines()
    seen: list[str] = []

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line" and frame.f_code is function.__code__:
            seen.append(source[frame.f_lineno - 1].strip())
        return trace

    given, before = arguments(), sys.gettrace()
    sys.settrace(trace)
    try:
        function(**given)
    finally:
        sys.settrace(before)
    steps = iter(seen)
    for line in PROGRAM.lines:
        assert any(shown.startswith(str(line)) for shown in steps), str(line)


def test_a_loss_that_is_not_finite_stops_before_the_update() -> None:
    """No weight and no running statistic is touched."""
    given = arguments()
    given["t"][0, 0] = np.inf
    before = {name: given[name].copy() for name in NETWORK.arrays}
    with pytest.raises(FloatingPointError, match="the loss is not finite"):
        compile_program(PROGRAM, "step")(**given)
    for name, v in before.items():
        np.testing.assert_array_equal(given[name], v)

"""Lines run one by one, every value at hand: as the program's own function has them."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np

from handgrad import Adam, BatchNorm, Dropout, Linear, MeanSquaredError, Network, ReLU
from handgrad.program.lines_in_python import compile_program, run_lines
from handgrad.rules import PRIMITIVES

NETWORK = Network(Linear(5, 7), BatchNorm(), ReLU(), Dropout(0.2), Linear(7, 3), loss=MeanSquaredError())
PROGRAM = NETWORK.program(Adam(weight_decay=0.1))
NUMBERS = {"learning_rate": 0.1, "step": 1, "seed": 0}


def arguments() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=(4, 5)).astype("float32"), rng.normal(size=(4, 3)).astype("float32")
    slots = {name: np.zeros(shape, "float32") for name, shape in PROGRAM.slots.items()}
    return {"x": x, "t": t, **NUMBERS, **slots, **{name: v.copy() for name, v in NETWORK.arrays.items()}}


def test_lines_run_one_by_one_give_what_the_program_s_function_gives() -> None:
    """Bit for bit: what is made, and in place what is kept; nothing else is changed."""
    given, expected = arguments(), arguments()
    outputs = compile_program(PROGRAM, "step")(**expected)
    scope = run_lines(PROGRAM.lines, {**given, "n": 4})
    for name, value in zip(PROGRAM.outputs, outputs, strict=True):
        assert np.array_equal(scope[name], value), name
    for name, value in expected.items():
        assert np.array_equal(given[name], value), name
    assert (given["W1"] != NETWORK.arrays["W1"]).any()
    assert {line.target for line in PROGRAM.lines} <= scope.keys()
    assert "__builtins__" not in PRIMITIVES  # which Python writes into what it runs code in


def test_what_is_given_to_lines_gets_no_names_of_theirs() -> None:
    given = arguments() | {"n": 4}
    names = set(given)
    run_lines(PROGRAM.lines, given)
    assert set(given) == names


def test_the_shapes_of_a_large_program_need_little_memory() -> None:
    """Each line is computed once for its shape; what it made is given up before the next."""
    made = Network(Linear(20_000, 50), Linear(50, 1), loss=MeanSquaredError(l2=0.1))
    tracemalloc.start()
    try:
        made.program(Adam())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3 * made.parameters["W1"].nbytes

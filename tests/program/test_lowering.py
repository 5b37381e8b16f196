"""The lowered form of a program: what it holds, and that nothing native is loaded for it."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from handgrad import (
    Adam,
    BatchNorm,
    Linear,
    MeanSquaredError,
    Network,
    ReLU,
    Residual,
    SoftmaxCrossEntropy,
    Tanh,
)
from handgrad.explaining.execution import execute_rule
from handgrad.program.lowered import GIVEN, Extent, UnsupportedLineError, users_of
from handgrad.program.lowering import lower
from handgrad.program.program import Program, ProgramLine
from handgrad.rules import embedding

from ..rules.table import TABLE, Row

RESIDUAL = Network(Linear(3, 5), Residual(Linear(5, 5), Tanh()), Linear(5, 2), loss=MeanSquaredError())
CLASSES = Network(Linear(3, 5), Tanh(), Linear(5, 4), loss=SoftmaxCrossEntropy())
NETWORK = Network(Linear(3, 5), BatchNorm(), ReLU(), Linear(5, 2), loss=MeanSquaredError())


@pytest.mark.parametrize(
    "program", [NETWORK.program(Adam()), NETWORK.evaluation_program(), NETWORK.loss_program()]
)
def test_every_line_has_its_value_in_the_shape_that_is_printed(program: Program) -> None:
    """Shapes followed through the operations are those that NumPy gives on batches of 2 and of 3 rows."""
    lowered = lower(program)
    for line in program.lines:
        assert lowered.names[line.target].shape == tuple(map(Extent.of, line.shape)), line


def test_operands_come_before_what_is_computed_from_them() -> None:
    lowered = lower(NETWORK.program(Adam()))
    place = {value: number for number, value in enumerate(lowered.values)}
    assert all(place[operand] < place[value] for value in lowered.values for operand in value.inputs)


def test_updates_overwrite_each_parameter_state_and_slot_once() -> None:
    program = NETWORK.program(Adam())
    lowered = lower(program)
    assert sorted(value.target for value in lowered.assigned) == sorted(program.shapes)
    assert {*lowered.assigned} <= lowered.updates


def test_the_same_operation_is_one_value() -> None:
    lowered = lower(NETWORK.program())
    computed = [value for value in lowered.values if value.operation not in GIVEN and not value.target]
    keys = [(v.operation, v.inputs, v.shape, v.type, str(v.attribute)) for v in computed]
    assert len(keys) == len(set(keys))


def test_a_slice_holds_what_a_result_needs_and_what_for() -> None:
    lowered = lower(NETWORK.program())
    z1, total = lowered.names["z1"], lowered.names["total"]
    users = users_of([total])
    assert users[total] == set()
    assert all(z1 in value.inputs for value in users[z1])
    assert lowered.names["dW1"] not in users


def test_a_line_that_cannot_be_lowered_is_named() -> None:
    program = NETWORK.program()
    odd = ProgramLine("odd", "=", "np.sort(z1)", "forward", "layer 1, Linear(3, 5)")
    place = program.lines.index(program.line("z1")) + 1
    lines = (*program.lines[:place], odd, *program.lines[place:])
    with pytest.raises(
        UnsupportedLineError, match=r"^`odd = np.sort\(z1\)` \(layer 1, Linear\(3, 5\)\): np.sort"
    ):
        lower(replace(program, lines=lines))


def test_no_native_code_is_loaded_for_it() -> None:
    code = """
import sys
from dataclasses import replace
sys.modules["llvmlite"] = None
from handgrad import Linear, Network
from handgrad.program.lowering import lower
print(len(lower(Network(Linear(3, 2)).program()).values))
"""
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert int(found.stdout) > 3


@pytest.mark.parametrize(
    "row", [row for row in TABLE if row.rule is not embedding], ids=lambda r: r.rule.name
)
def test_by_line_each_line_is_computed_from_what_it_reads(row: Row) -> None:
    """Not from what an earlier line is known to be, nor from what an equal piece of another line has computed."""
    inputs = row.inputs(np.random.default_rng(0), 2, row.options[0])
    program = execute_rule(row.rule, list(inputs.values()), **row.options[0]).program
    if all(not line.loop for line in program.lines):
        each_line_follows_its_text(program)


def test_by_line_the_loss_s_gradient_follows_from_that_of_each_row() -> None:
    for program in (NETWORK.program(Adam()), RESIDUAL.program(), CLASSES.program()):
        each_line_follows_its_text(program)


def each_line_follows_its_text(program: Program) -> None:
    lowered = lower(program, by_line=True)
    final = {line.target: line for line in program.lines if line.operator == "="}
    own = {lowered.names[target]: target for target in final}
    assert len(own) == len(final)  # no two names have one value
    given = {lowered.names[name]: name for name in lowered.names.keys() - final.keys()}
    for target, line in final.items():
        if line.phase in ("accumulate", "update"):
            continue
        read, waiting = set(), list(lowered.names[target].inputs)
        while waiting:
            value = waiting.pop()
            name = own.get(value) or given.get(value) or (value.operation == "load" and value.attribute)
            read |= {name} if name else set()
            assert name or value.line is line, (line, value)
            waiting += [] if name else value.inputs
        assert read <= line.reads, line
        for name in (
            line.reads & {*own.values(), *given.values()}
        ) - read:  # read for its shape, or known from sizes
            of_sizes = not any(
                each.operation in ("source", "load") for each in users_of([lowered.names[name]])
            )
            assert of_sizes or re.search(rf"\b{name}\.|(like|one_hot)\(.*\b{name}\b", line.expression), line

"""The lowered form of a program: what it holds, and that nothing native is loaded for it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from handgrad import Adam, BatchNorm, Linear, MeanSquaredError, Network, ReLU
from handgrad.program.lowered import GIVEN, Extent, UnsupportedLineError, users_of
from handgrad.program.lowering import lower
from handgrad.program.program import Program, ProgramLine

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

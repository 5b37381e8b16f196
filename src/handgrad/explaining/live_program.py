"""A network's training step as operations that the page runs: lowered by the reader of lines that the engines use."""

from __future__ import annotations

from typing import Any

import numpy as np

from handgrad.explaining.execution import Execution
from handgrad.explaining.record import LiveProgram, LiveValue
from handgrad.layers import Optimiser
from handgrad.network import Network
from handgrad.program.lowered import Extent, Lowered, LoweredValue, UnsupportedLineError
from handgrad.program.lowering import lower
from handgrad.program.operations import TRUTH_VALUES

MAX_PARAMETERS = 5000
MAX_NUMBERS = 20_000  # of the batch, and of the parameters: the page holds them all, with all their digits
ELEMENTWISE = TRUTH_VALUES | {
    "add", "subtract", "multiply", "divide", "power", "maximum", "minimum", "negative", "absolute", "exp", "log", "log1p",
    "expm1", "tanh", "sqrt", "sign", "sin", "cos", "where", "floor_divide",
}  # fmt: skip
"""What the page's `live.js` computes entry by entry."""

OTHERS = {
    "load", "scalar", "size", "constant", "table", "source", "order", "take", "reshape", "transpose", "slice", "sum", "max",
    "min", "product", "is_class", "add_rows_at", "copy", "concatenate", "broadcast", "convert",
}  # fmt: skip
"""What else it computes."""


def live_program(execution: Execution, network: Network, optimiser: Optimiser | None) -> LiveProgram | None:
    """Return the operations of a small network's training step; None where the page could not run them."""
    program = network.program(*([optimiser] if optimiser else []), weighted="w" in execution.given)
    given = {value.name: np.asarray(execution.given[value.name], float) for value in program.inputs}
    arrays = {name: np.zeros(shape) for name, shape in program.slots.items()}
    arrays |= {
        name: np.asarray(execution.given[name], float) for name in program.shapes if name not in arrays
    }
    size = sum(parameter.size for parameter in network.parameters.values())
    if (
        size > MAX_PARAMETERS
        or sum(array.size for array in (*given.values(), *arrays.values())) > MAX_NUMBERS
    ):
        return None
    if not all(np.all(np.isfinite(array)) for array in (*given.values(), *arrays.values())):
        return None
    try:
        lowered = lower(program, by_line=True)
    except UnsupportedLineError:
        return None
    if lowered.loops or {value.operation for value in lowered.values} - ELEMENTWISE - OTHERS:
        return None
    made = [node.output.name for node in execution.nodes if node.part == "forward"]
    return _as_data(lowered, {**given, **arrays}, tuple(given), network, optimiser, made[-1])


def _as_data(
    lowered: Lowered,
    arrays: dict[str, Any],
    inputs: tuple[str, ...],
    network: Network,
    optimiser: Optimiser | None,
    output: str,
) -> LiveProgram:
    numbers = {value: k for k, value in enumerate(lowered.values)}
    names = {
        name: numbers[value] for name, value in lowered.names.items() if value in numbers and not value.target
    }
    # a parameter is what it is before its update
    names |= {value.attribute: k for value, k in numbers.items() if value.operation == "load"}
    return LiveProgram(
        values=tuple(_value(value, numbers) for value in lowered.values),
        names=names,
        assigned={value.target: numbers[value] for value in lowered.assigned},
        arrays={name: tuple(array.ravel().tolist()) for name, array in arrays.items()},
        inputs=inputs,
        parameters=tuple(network.parameters),
        output=output,
        task=network.loss.task if network.loss is not None else "regression",
        fixed=not any(value.target in network.states for value in lowered.assigned),
        learning_rate=optimiser.learning_rate if optimiser else 0.1,
    )


def _value(value: LoweredValue, numbers: dict[LoweredValue, int]) -> LiveValue:
    return LiveValue(
        value.operation,
        tuple(numbers[each] for each in value.inputs),
        tuple(map(str, value.shape)),
        _attribute(value),
    )


def _attribute(value: LoweredValue) -> Any:
    """Return what an operation needs besides its operands, as plain data."""
    match value.operation, value.attribute:
        case "slice", (axis, start, _):
            return [axis, str(start)]
        case "table", table:
            return table.ravel().astype(float).tolist()
        case "copy", _:
            return None
        case _, Extent() as extent:
            return str(extent)
        case _, attribute:
            return list(attribute) if isinstance(attribute, tuple) else attribute

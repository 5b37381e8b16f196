"""Networks to ONNX: the lines of the program outside training, operation by operation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from handgrad.arguments import judged
from handgrad.errors import ConversionError, need
from handgrad.files import write_file
from handgrad.interop.onnx_nodes import Nodes
from handgrad.network import Network
from handgrad.program import Program
from handgrad.program.lowered import UnsupportedLineError

IR_VERSION, OPSET = 10, 21
"""Old enough for runtimes in use, new enough for every operation."""

MOST_BYTES = 2**31 - 2**20
"""How large an ONNX file can be, less what is not weights."""


@judged
def to_onnx(
    network: Network,
    path: str | Path,
    *,
    prediction: bool = False,
    standardise: bool = True,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write a network's forward pass outside training as an ONNX file, for any number of rows.

    What is written are the lines of `Network.evaluation_program`, so rules of your own are exported too, as long as
    the compiled engine takes their lines. Each node of the file carries its line. The file is checked by ONNX's own
    checker before it is written, whole or not at all.

    Parameters
    ----------
    network
        What is exported; its arrays are the file's initialisers, by their names in the program.
    path
        The file. Its input is ``x``, (n, …) in the network's dtype, or int64 where the network looks indices up.
    prediction
        Whether the output is the answer, ``prediction``, as of `Network.predict`: class probabilities, probabilities; else it
        is ``output``, as of `Network.output`: logits.
    standardise
        Whether `Standardise` is part of the file, so that it takes rows as they come; else it takes standardised rows.
    metadata
        What else the file says, by name, such as the names of classes.

    Raises
    ------
    ConversionError
        When a line cannot be exported; it names the line and says why.
    RunError
        When the file cannot be written.
    """
    onnx = need("onnx", "to_onnx")
    program = network.evaluation_program(prediction=prediction)
    if not standardise:
        program = _without_standardisation(program)
    if sum(array.nbytes for array in network.arrays.values()) > MOST_BYTES:
        raise ConversionError("the weights are over 2 GB, which is the most an ONNX file holds")
    try:
        nodes = Nodes(program, network.arrays)
    except UnsupportedLineError as error:
        raise ConversionError(
            f"line {error}",
            fix="what can be exported is what the compiled engine takes: write the line with other operations",
        ) from None
    graph = nodes.graph("prediction" if prediction else "output", network.output_shape)
    model = onnx.helper.make_model(
        graph,
        producer_name="handgrad",
        ir_version=IR_VERSION,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        doc_string=str(program),
    )
    onnx.helper.set_model_props(model, dict(metadata or {}))
    onnx.checker.check_model(model, full_check=True)
    write_file(Path(path), model.SerializeToString())


def _without_standardisation(program: Program) -> Program:
    """Return the program with the standardised rows as its input."""
    (rows,) = program.inputs
    line = next((line for line in program.lines if line.rule == "standardise"), None)
    if line is None:
        return program
    others = tuple(other for other in program.lines if other is not line)
    if reader := next((other for other in others if rows.name in other.reads), None):
        raise ConversionError(
            f"line `{reader}` ({reader.layer}) reads the rows as they come, so Standardise cannot be left out",
            fix="export with standardise=True",
        )
    return replace(program, inputs=(replace(rows, name=line.target),), lines=others)

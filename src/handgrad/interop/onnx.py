"""Networks to ONNX: the lines of the program outside training, lowered, one operation after another."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.arguments import judged
from handgrad.errors import ConversionError, need
from handgrad.files import write_output
from handgrad.network import Network
from handgrad.program import Program, ProgramLine
from handgrad.program.lowered import Extents, LoweredValue, UnsupportedLineError
from handgrad.program.lowering import lower
from handgrad.program.operations import COMPARISONS
from handgrad.program.windows import WindowGeometry
from handgrad.rules import Shape
from handgrad.rules.primitives import windows

Array = NDArray[Any]

IR_VERSION, OPSET = 10, 21
"""Old enough for runtimes in use, new enough for every operation."""

MOST_BYTES = 2**31 - 2**20
"""How large an ONNX file can be, less what is not weights."""

SAME = {
    "add": "Add", "subtract": "Sub", "multiply": "Mul", "divide": "Div", "power": "Pow", "maximum": "Max",
    "minimum": "Min", "negative": "Neg", "absolute": "Abs", "exp": "Exp", "log": "Log", "tanh": "Tanh", "sqrt": "Sqrt",
    "sign": "Sign", "sin": "Sin", "floor": "Floor", "ceil": "Ceil", "less": "Less",
    "less_equal": "LessOrEqual", "greater": "Greater", "greater_equal": "GreaterOrEqual", "equal": "Equal",
    "logical_and": "And", "logical_or": "Or", "logical_not": "Not", "where": "Where",
}  # fmt: skip
"""Elementwise operations that ONNX has."""

SINGLE = {
    "cos": "Cos", "tan": "Tan", "sinh": "Sinh", "cosh": "Cosh", "arctan": "Atan", "arcsin": "Asin", "arccos": "Acos",
}  # fmt: skip
"""Those that onnxruntime has in float32 only."""

RECURRENT = {"elman": ("RNN", [0]), "gru": ("GRU", [1, 0, 2]), "lstm": ("LSTM", [0, 3, 1, 2])}
"""The operators of ONNX for rules with a loop over time, and the order of the gates in them."""


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
        Whether the output is ``prediction``, as of `Network.predict`: class probabilities, probabilities; else it is
        ``output``, as of `Network.output`: logits.
    standardise
        Whether `Standardise` is part of the file, so that it takes rows as they come; else it takes standardised rows.
    metadata
        Metadata of the file, such as the names of classes.

    Raises
    ------
    ConversionError
        When a line cannot be exported; it names the line and the reason.
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
        nodes = Nodes(network, program)
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
    write_output(Path(path), model.SerializeToString())


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


class Nodes:
    """The nodes and initialisers of one program; raises `UnsupportedLineError` at a line without a counterpart."""

    def __init__(self, network: Network, program: Program) -> None:
        self.onnx = need("onnx", "to_onnx")
        self.program, self.arrays = program, network.arrays
        self.nodes: list[Any] = []
        self.initialisers: dict[str, Any] = {}
        self.names: dict[LoweredValue, str] = {}
        self.line: ProgramLine | None = None
        lowered = lower(program)
        self.result = lowered.names[program.outputs[0]]
        targets = {lowered.names[line.target]: line.target for line in reversed(program.lines)}
        self.targets = {value: name for value, name in targets.items() if value is not self.result}
        self.recurrent = {
            lowered.names[node.output.name]: (node, lowered.names[node.inputs[0].name])
            for node in network.nodes()
            if node.rule.name in RECURRENT
        }
        needed = self.needed()
        for value in (value for value in lowered.values if value in needed):
            self.line = value.line
            self.names[value] = self.states(value) if value in self.recurrent else self.lower(value)

    def needed(self) -> set[LoweredValue]:
        """Return what the result needs; of a loop over time that is one operator, the sequences it is given."""
        needed: set[LoweredValue] = set()
        waiting = [self.result]
        while waiting:
            value = waiting.pop()
            if value not in needed:
                needed.add(value)
                waiting += [self.recurrent[value][1]] if value in self.recurrent else value.inputs
        return needed

    def graph(self, output: str, shape: Shape) -> Any:
        helper, (rows,) = self.onnx.helper, self.program.inputs
        self.nodes.append(helper.make_node("Identity", [self.cast(self.result, "float")], [output]))
        kind = self.kind("int" if rows.kind == "index" else "float")
        x = helper.make_tensor_value_info("x", kind, list(rows.shape))
        result = helper.make_tensor_value_info(output, self.kind("float"), list(shape))
        return helper.make_graph(self.nodes, "network", [x], [result], list(self.initialisers.values()))

    def node(self, operation: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Add a node, and return the name of its output."""
        output = output or f"{self.line.target if self.line else 'x'}/{len(self.nodes) + 1}"
        described = f"{self.line}  # {self.line.reason}".removesuffix("  # ") if self.line else ""
        self.nodes.append(
            self.onnx.helper.make_node(
                operation, list(inputs), [output], name=output, doc_string=described, **attributes
            )
        )
        return output

    def constant(self, numbers: Any, dtype: str = "") -> str:
        """Return the name of an initialiser that holds these numbers, in the program's dtype unless given."""
        array = np.asarray(numbers, dtype or self.program.dtype)
        return self.initialiser(f"{array.dtype} {array.tolist()}", array)

    def initialiser(self, name: str, array: Array) -> str:
        if name not in self.initialisers:
            self.initialisers[name] = self.onnx.numpy_helper.from_array(np.array(array, order="C"), name)
        return name

    def kind(self, kind: str) -> int:
        dtype = {"int": "int64", "bool": "bool", "single": "float32"}.get(kind, self.program.dtype)
        return int(self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def cast(self, value: LoweredValue, kind: str) -> str:
        """Return the name of a value as numbers of a type; a Python number is of the program's."""
        name, own = self.names[value], "float" if value.type == "weak" else value.type
        return name if own == kind else self.node("Cast", name, to=self.kind(kind))

    def in_single(self, operation: str, x: str, output: str = "") -> str:
        """Add a node that is computed in float32, and return its output in the program's dtype."""
        result = self.node(operation, self.node("Cast", x, to=self.kind("single")))
        return self.node("Cast", result, to=self.kind("float"), output=output)

    def lower(self, value: LoweredValue) -> str:
        operation, inputs = value.operation, value.inputs
        names = [self.names[operand] for operand in inputs]
        output = self.targets.get(value, "")
        node = partial(self.node, output=output)
        match operation:
            case "load":
                return self.initialiser(value.attribute, self.arrays[value.attribute])
            case "source" | "order":
                return "x"
            case "take" if inputs[0].operation == "source":
                return "x"
            case "take":
                return node("Gather", *names, axis=0)
            case "constant":
                return self.constant(value.attribute)
            case "size":
                return self.rows(value.attribute.factor, self.program.dtype)
            case "table":
                return self.initialiser(f"table {len(self.initialisers)}", value.attribute)
            case "product":
                return node("MatMul", *names)
            case "transpose":
                return node("Transpose", *names, perm=list(value.attribute))
            case "slice":
                axis, start, stop = value.attribute
                parts = (self.constant([k], "int64") for k in (start.factor, stop.factor, axis))
                return node("Slice", *names, *parts)
            case "copy":
                return node("Identity", *names)
            case "concatenate":
                return node("Concat", *names, axis=value.attribute)
            case "reshape":
                return self.reshape(names[0], value.shape, output)
            case "windows":
                return self.windows(value, output)
            case "add_windows":
                return self.add_windows(value, output)
            case "block_diagonal":
                return self.block_diagonal(value, output)
            case "broadcast":
                return node("Expand", self.cast(inputs[0], "float"), self.sizes(value.shape))
            case "is_class":
                classes = self.constant(np.arange(value.shape[-1].factor), "int64")
                return node("Cast", self.node("Equal", *names, classes), to=self.kind("float"))
            case "sum" | "max" | "min":
                array, axes = self.cast(inputs[0], "float"), self.constant(value.attribute, "int64")
                keepdims = int(len(value.shape) == len(inputs[0].shape))
                return node(f"Reduce{operation.title()}", array, axes, keepdims=keepdims)
            case "convert":
                return node("Identity", self.cast(inputs[0], "float"))
            case "not_equal":
                return node("Not", self.node("Equal", *self.operands(value)))
            case "expm1":
                return self.expm1(self.operands(value)[0], output)
            case "log1p":
                return self.log1p(self.operands(value)[0], output)
            case "normal_cdf":  # (1 + erf(x / √2)) / 2
                scaled = self.node("Mul", *self.operands(value), self.constant(np.sqrt(0.5)))
                twice = self.node("Add", self.in_single("Erf", scaled), self.constant(1))
                return node("Mul", twice, self.constant(0.5))
        if operation in SINGLE:
            return self.in_single(SINGLE[operation], self.operands(value)[0], output)
        if operation in SAME:
            return node(SAME[operation], *self.operands(value))
        line = self.line or self.program.lines[0]
        is_filled = operation in ("memory", "filled")
        kind = "a loop over time but those of RNN, GRU and LSTM" if is_filled else operation
        raise UnsupportedLineError(line, f"ONNX has no counterpart of {kind}")

    def operands(self, value: LoweredValue) -> list[str]:
        """Return the operands of an elementwise operation as numbers of one type."""
        inputs = value.inputs
        if value.operation.startswith("logical"):
            return [self.names[operand] for operand in inputs]
        condition = [self.names[inputs[0]]] if value.operation == "where" else []
        rest = inputs[len(condition) :]
        kinds = {operand.type for operand in rest} - {"weak", "bool"}
        kind = "int" if kinds == {"int"} and not any(operand.type == "weak" for operand in rest) else "float"
        if value.operation in COMPARISONS and kinds == {"int"}:
            kind = "int"
        if value.operation == "where" and value.type == "bool":
            kind = "bool"
        return condition + [self.cast(operand, kind) for operand in rest]

    def expm1(self, x: str, output: str) -> str:
        """Kahan's: (u - 1) x / log u with u = eˣ, whose rounding cancels in the ratio."""
        one, u = self.constant(1), self.node("Exp", x)
        less = self.node("Sub", u, one)
        exact = self.node("Div", self.node("Mul", less, x), self.node("Log", u))
        near = self.node("Where", self.node("Equal", u, one), x, exact)
        lost = self.node("Equal", less, self.constant(-1))  # log u may be -∞
        return self.node("Where", lost, less, near, output=output)

    def log1p(self, x: str, output: str) -> str:
        """Kahan's: x log u / (u - 1) with u = 1 + x, whose rounding cancels in the ratio."""
        one = self.constant(1)
        u = self.node("Add", x, one)
        ratio = self.node("Div", self.node("Log", u), self.node("Sub", u, one))
        return self.node("Where", self.node("Equal", u, one), x, self.node("Mul", x, ratio), output=output)

    def reshape(self, name: str, shape: Extents, output: str = "") -> str:
        sizes = [-1 if size.rows else size.factor for size in shape]
        return self.node("Reshape", name, self.constant(sizes, "int64"), output=output)

    def windows(self, value: LoweredValue, output: str) -> str:
        """Add the padding, and gather each place of each window from all places of the image."""
        geometry, fill = value.attribute
        down, across = geometry.padding
        pads = self.constant([0, down, across, 0] * 2, "int64")
        image = self.constant([-1, *geometry.sizes, geometry.channels], "int64")
        padded = self.node(
            "Pad", self.node("Reshape", self.names[value.inputs[0]], image), pads, self.constant(fill)
        )
        places = _places(geometry)
        flat = self.node(
            "Reshape", padded, self.constant([-1, _padded(geometry).size, geometry.channels], "int64")
        )
        taken = self.node(
            "Gather", flat, self.initialiser(f"places {len(self.initialisers)}", places), axis=1
        )
        return self.reshape(taken, value.shape, output)

    def add_windows(self, value: LoweredValue, output: str) -> str:
        """Gather for each place of the image all that windows have there, with a 0 for the rest, and sum it."""
        geometry = value.attribute
        given = _places(geometry).ravel()
        inside = _padded(geometry)[
            tuple(slice(k, k + n) for k, n in zip(geometry.padding, geometry.sizes, strict=True))
        ]
        having = [np.flatnonzero(given == place) for place in inside.ravel()]
        most = max(map(len, having))
        numbers = np.array([[*found, *[given.size] * (most - len(found))] for found in having])
        rows = self.constant([-1, given.size, geometry.channels], "int64")
        flat = self.node("Reshape", self.names[value.inputs[0]], rows)
        with_zero = self.node("Pad", flat, self.constant([0, 0, 0, 0, 1, 0], "int64"), self.constant(0))
        parts = self.node(
            "Gather", with_zero, self.initialiser(f"places {len(self.initialisers)}", numbers), axis=1
        )
        return self.reshape(
            self.node("ReduceSum", parts, self.constant([2], "int64"), keepdims=0), value.shape, output
        )

    def states(self, value: LoweredValue) -> str:
        """Add the operator for a loop over time, which takes and returns times first."""
        node, sequences = self.recurrent[value]
        operator, order = RECURRENT[node.rule.name]
        kept = {
            argument: self.arrays[given.name] for argument, given in node.arguments.items() if argument != "x"
        }

        def by_gates(array: Array) -> Array:
            """Return the columns of all gates as rows, in the operator's order, with an axis for the one direction."""
            parts = np.split(array, len(order), axis=-1)
            return np.concatenate([parts[gate] for gate in order], axis=-1).T[None]

        second = np.zeros_like(kept["b"])  # the operators have a bias of the state's part too
        if "c" in kept:
            second[-len(kept["c"]) :] = kept["c"]
        weights = [
            by_gates(kept["W"]),
            by_gates(kept["U"]),
            np.concatenate([by_gates(kept["b"]), by_gates(second)], axis=1),
        ]
        names = [
            self.initialiser(f"{value.line} {k}", array.astype("float32")) for k, array in enumerate(weights)
        ]
        options: dict[str, Any] = {"linear_before_reset": 1} if operator == "GRU" else {}
        times_first = self.node("Transpose", self.cast(sequences, "single"), perm=[1, 0, 2])
        states = self.node(operator, times_first, *names, hidden_size=len(kept["U"]), **options)
        rows_first = self.node(
            "Transpose", self.node("Squeeze", states, self.constant([1], "int64")), perm=[1, 0, 2]
        )
        return self.node("Cast", rows_first, to=self.kind("float"), output=self.targets.get(value, ""))

    def block_diagonal(self, value: LoweredValue, output: str) -> str:
        """Repeat the rows for each group, and keep what is in its own columns."""
        (blocks,), groups = value.inputs, value.attribute
        height, columns = (size.factor for size in blocks.shape[-2:])
        split = self.node(
            "Reshape", self.names[blocks], self.constant([-1, 1, height, groups, columns // groups], "int64")
        )
        own = self.constant(np.eye(groups).reshape(groups, 1, groups, 1))
        return self.reshape(self.node("Mul", split, own), value.shape, output)

    def sizes(self, shape: Extents) -> str:
        one = self.constant([1], "int64")
        parts = [
            self.node("Reshape", self.rows(size.factor, "int64"), one)
            if size.rows
            else self.constant([size.factor], "int64")
            for size in shape
        ]
        return self.node("Concat", *parts, axis=0)

    def rows(self, factor: int, dtype: str) -> str:
        """Return the name of so many times the number of rows."""
        n = self.node("Gather", self.node("Shape", "x"), self.constant(0, "int64"))
        kind = self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.node("Mul", self.node("Cast", n, to=kind), self.constant(factor, dtype))


def _padded(geometry: WindowGeometry) -> Array:
    """Return the numbers of an image's places, with those of the padding."""
    sizes = [length + 2 * around for length, around in zip(geometry.sizes, geometry.padding, strict=True)]
    return np.arange(math.prod(sizes)).reshape(sizes)


def _places(geometry: WindowGeometry) -> Array:
    """Return the number of each place of each window among those of the padded image."""
    numbers = _padded(geometry)[..., None]
    return windows(numbers, geometry.size, geometry.stride, 0, geometry.dilation)[..., 0]

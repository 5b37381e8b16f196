"""ONNX nodes for what a program's lines compute, from its lowered form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.errors import need
from handgrad.program import Program, ProgramLine
from handgrad.program.lowered import REDUCTIONS, Extents, LoweredValue, UnsupportedLineError, users_of
from handgrad.program.lowering import COMPARISONS, lower
from handgrad.rules import Shape

Array = NDArray[Any]

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

REDUCE = {"sum": "ReduceSum", "max": "ReduceMax", "min": "ReduceMin"}


class Nodes:
    """The nodes and initialisers of one program; raises `UnsupportedLineError` at a line without a counterpart."""

    def __init__(self, program: Program, arrays: Mapping[str, Array]) -> None:
        self.onnx = need("onnx", "to_onnx")
        self.program, self.arrays = program, arrays
        self.nodes: list[Any] = []
        self.initialisers: dict[str, Any] = {}
        self.names: dict[LoweredValue, str] = {}
        self.line: ProgramLine | None = None
        self.made = 0
        lowered = lower(program)
        self.result = lowered.names[program.outputs[0]]
        targets = {lowered.names[line.target]: line.target for line in reversed(program.lines)}
        self.targets = {value: name for value, name in targets.items() if value is not self.result}
        needed = users_of([self.result])
        for value in (value for value in lowered.values if value in needed):
            self.line = value.line
            self.names[value] = self.lower(value)

    def graph(self, output: str, shape: Shape) -> Any:
        """Return the graph, whose one output has this name and shape."""
        helper, (rows,) = self.onnx.helper, self.program.inputs
        self.nodes.append(helper.make_node("Identity", [self.cast(self.result, "float")], [output]))
        given = helper.make_tensor_value_info(
            "x", self.kind("int" if rows.kind == "index" else "float"), list(rows.shape)
        )
        answer = helper.make_tensor_value_info(output, self.kind("float"), list(shape))
        return helper.make_graph(self.nodes, "network", [given], [answer], list(self.initialisers.values()))

    # nodes

    def node(self, operation: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Add a node, and return the name of what it gives."""
        if not output:
            self.made += 1
            output = f"{self.line.target if self.line else 'x'}/{self.made}"
        described = f"{self.line}  # {self.line.reason}".removesuffix("  # ") if self.line else ""
        node = self.onnx.helper.make_node(
            operation, list(inputs), [output], name=output, doc_string=described, **attributes
        )
        self.nodes.append(node)
        return output

    def constant(self, numbers: Any, dtype: str) -> str:
        """Return the name of an initialiser that holds these numbers."""
        array = np.asarray(numbers, dtype)
        name = f"{dtype} {array.tolist()}"
        return self.initialiser(name, array)

    def initialiser(self, name: str, array: Array) -> str:
        if name not in self.initialisers:
            self.initialisers[name] = self.onnx.numpy_helper.from_array(np.array(array, order="C"), name)
        return name

    def kind(self, kind: str) -> int:
        """Return ONNX's number for a type of values."""
        dtype = {"int": "int64", "bool": "bool", "single": "float32"}.get(kind, self.program.dtype)
        return int(self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def cast(self, value: LoweredValue, kind: str) -> str:
        """Return the name of a value as numbers of a type; a Python number is of the program's."""
        name, own = self.names[value], "float" if value.type == "weak" else value.type
        if own == kind:
            return name
        return self.node("Cast", name, to=self.kind(kind))

    # operations

    def lower(self, value: LoweredValue) -> str:
        """Return the name of a value, for which nodes are added."""
        match value.operation:
            case "load":
                return self.initialiser(value.attribute, self.arrays[value.attribute])
            case "source":
                return "x"
            case "order":
                return ""
            case "take" if value.inputs[0].operation == "source":
                return "x"
            case "constant":
                return self.constant(value.attribute, self.program.dtype)
            case "size":
                return self.rows(value.attribute.factor, self.program.dtype)
        name = self.targets.get(value, "")
        if value.operation in SAME:
            return self.node(SAME[value.operation], *self.operands(value), output=name)
        method: Callable[[LoweredValue, str], str] | None = getattr(self, f"lower_{value.operation}", None)
        if value.operation in SINGLE:
            method = self.in_single
        if value.operation in REDUCTIONS:
            method = self.reduction
        if method is None:
            line = self.line or self.program.lines[0]
            raise UnsupportedLineError(line, f"ONNX has no counterpart of {value.operation}")
        return method(value, name)

    def operands(self, value: LoweredValue) -> list[str]:
        """Return the operands of an elementwise operation as numbers of one type."""
        inputs = value.inputs
        if value.operation.startswith("logical"):
            return [self.names[operand] for operand in inputs]
        condition = [self.names[inputs[0]]] if value.operation == "where" else []
        rest = inputs[1:] if condition else inputs
        kinds = {operand.type for operand in rest} - {"weak", "bool"}
        kind = "int" if kinds == {"int"} and not any(operand.type == "weak" for operand in rest) else "float"
        if value.operation in COMPARISONS.values() and kinds == {"int"}:
            kind = "int"
        if value.operation == "where" and value.type == "bool":
            kind = "bool"
        return condition + [self.cast(operand, kind) for operand in rest]

    def lower_not_equal(self, value: LoweredValue, name: str) -> str:
        return self.node("Not", self.node("Equal", *self.operands(value)), output=name)

    def lower_convert(self, value: LoweredValue, name: str) -> str:
        return self.node("Identity", self.cast(value.inputs[0], "float"), output=name)

    def lower_expm1(self, value: LoweredValue, name: str) -> str:
        """Kahan's: (u - 1) x / log u with u = eˣ, whose rounding cancels in the ratio."""
        (x,), one = self.operands(value), self.constant(1, self.program.dtype)
        u = self.node("Exp", x)
        less = self.node("Sub", u, one)
        exact = self.node("Div", self.node("Mul", less, x), self.node("Log", u))
        near = self.node("Where", self.node("Equal", u, one), x, exact)
        lost = self.node("Equal", less, self.constant(-1, self.program.dtype))  # log u may be -∞
        return self.node("Where", lost, less, near, output=name)

    def lower_log1p(self, value: LoweredValue, name: str) -> str:
        """Kahan's: x log u / (u - 1) with u = 1 + x, whose rounding cancels in the ratio."""
        (x,), one = self.operands(value), self.constant(1, self.program.dtype)
        u = self.node("Add", x, one)
        ratio = self.node("Div", self.node("Log", u), self.node("Sub", u, one))
        return self.node("Where", self.node("Equal", u, one), x, self.node("Mul", x, ratio), output=name)

    def in_single(self, value: LoweredValue, name: str) -> str:
        (x,) = self.operands(value)
        found = self.node(SINGLE[value.operation], self.node("Cast", x, to=self.kind("single")))
        return self.node("Cast", found, to=self.kind("float"), output=name)

    def lower_normal_cdf(self, value: LoweredValue, name: str) -> str:
        """(1 + erf(v / √2)) / 2, the error function in float32, which is what onnxruntime has."""
        (v,) = self.operands(value)
        scaled = self.node("Mul", v, self.constant(np.sqrt(0.5), self.program.dtype))
        erf = self.node("Erf", self.node("Cast", scaled, to=self.kind("single")))
        twice = self.node(
            "Add", self.node("Cast", erf, to=self.kind("float")), self.constant(1, self.program.dtype)
        )
        return self.node("Mul", twice, self.constant(0.5, self.program.dtype), output=name)

    def reduction(self, value: LoweredValue, name: str) -> str:
        (array,) = value.inputs
        axes = self.constant(value.attribute, "int64")
        kept = int(len(value.shape) == len(array.shape))
        return self.node(REDUCE[value.operation], self.cast(array, "float"), axes, keepdims=kept, output=name)

    def lower_product(self, value: LoweredValue, name: str) -> str:
        return self.node("MatMul", *(self.names[operand] for operand in value.inputs), output=name)

    def lower_take(self, value: LoweredValue, name: str) -> str:
        return self.node("Gather", *(self.names[operand] for operand in value.inputs), axis=0, output=name)

    def lower_first(self, value: LoweredValue, name: str) -> str:
        return self.node(
            "Gather", self.names[value.inputs[0]], self.constant(0, "int64"), axis=-1, output=name
        )

    def lower_is_class(self, value: LoweredValue, name: str) -> str:
        classes = self.constant(np.arange(value.shape[-1].factor), "int64")
        same = self.node("Equal", self.names[value.inputs[0]], classes)
        return self.node("Cast", same, to=self.kind("float"), output=name)

    def lower_transpose(self, value: LoweredValue, name: str) -> str:
        return self.node("Transpose", self.names[value.inputs[0]], perm=[1, 0], output=name)

    def lower_reshape(self, value: LoweredValue, name: str) -> str:
        sizes = self.constant([-1 if size.rows else size.factor for size in value.shape], "int64")
        return self.node("Reshape", self.names[value.inputs[0]], sizes, output=name)

    def lower_broadcast(self, value: LoweredValue, name: str) -> str:
        return self.node("Expand", self.cast(value.inputs[0], "float"), self.sizes(value.shape), output=name)

    def sizes(self, shape: Extents) -> str:
        """Return the name of a shape as numbers."""
        parts = [
            self.node("Reshape", self.rows(size.factor, "int64"), self.constant([1], "int64"))
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

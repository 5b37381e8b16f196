"""Sizes of computed values, spelled by the sizes of the inputs: ``x.shape[0]`` rather than 5."""

from __future__ import annotations

import ast

import numpy as np

from handgrad.checking.forward_trace import ForwardTrace
from handgrad.checking.forward_trace.operation import Operation
from handgrad.checking.forward_trace.spelling import parsed

UPSTREAM = "grad_output"
"""What the generated code calls the gradient of the output."""

Axes = tuple[str, ...]  # the spelling of each axis of a value


class AxisSizes:
    """Knows where each axis of a value comes from."""

    def __init__(self, trace: ForwardTrace) -> None:
        self.trace = trace
        self._axes: dict[int, Axes] = {}
        self._upstream = UPSTREAM if len(trace.outputs) == 1 else ""

    def axes(self, value: int) -> Axes:
        """Return the spelling of every axis of a value."""
        if value not in self._axes:
            self._axes[value] = self._find(value)
        return self._axes[value]

    def shape(self, value: int) -> ast.expr:
        """Return ``value.shape``."""
        if array := self._like(value):
            return parsed(f"{array}.shape")
        axes = self.axes(value)
        return parsed(f"({axes[0]},)" if len(axes) == 1 else f"({', '.join(axes)})")

    def size(self, value: int) -> ast.expr:
        """Return ``value.size``."""
        array = self._like(value)
        return parsed(f"{array}.size" if array else " * ".join(self.axes(value)) or "1")

    def zeros(self, value: int) -> ast.expr:
        """Return an array of zeros like a value."""
        if value in self.trace.inputs.values():
            return parsed(f"np.zeros_like({self.trace.texts[value]})")
        return parsed(f"np.zeros({ast.unparse(self.shape(value))})")

    def _like(self, value: int) -> str:
        """Return an input, or the upstream gradient, that has the shape of a value for good reason."""
        trace = self.trace
        if value in trace.inputs.values():
            return trace.texts[value]
        if self._upstream and value == trace.output:
            return self._upstream
        axes = self.axes(value)
        known = [(name, i) for name, i in trace.inputs.items()] + [(self._upstream, trace.output)]
        return next((name for name, i in known if axes and name and axes == self.axes(i)), "")

    def _find(self, value: int) -> Axes:
        trace = self.trace
        shape = np.shape(trace.values[value])
        if value in trace.inputs.values():
            return tuple(f"{trace.texts[value]}.shape[{k}]" for k in range(len(shape)))
        operation = trace.producer.get(value)
        found = self._computed(operation, shape) if operation else None
        return found or tuple(str(n) for n in shape)

    def _computed(self, operation: Operation, shape: tuple[int, ...]) -> Axes | None:
        operands = [self.axes(i) for i in operation.inputs]
        if operation.is_elementwise:
            shapes = [np.shape(self.trace.values[i]) for i in operation.inputs]
            return tuple(self._aligned(operands, shapes, k - len(shape), n) for k, n in enumerate(shape))
        if operation.name == "matmul" and all(operands):
            left, right = operands
            rows, columns = left[-2:-1] if len(left) > 1 else (), right[-1:] if len(right) > 1 else ()
            batch = len(shape) - len(rows) - len(columns)
            longest = max(operands, key=len)
            return (*longest[:batch], *rows, *columns) if not batch or len(longest) - 2 == batch else None
        if operation.name == "transpose":
            return tuple(operands[0][k] for k in operation.options["axes"])
        if operation.name == "setitem":
            return operands[0]
        if operation.name in ("sum", "mean", "max", "min", "var", "std"):
            return self._reduced(operation, operands[0], shape)
        return None

    def _aligned(self, operands: list[Axes], shapes: list[tuple[int, ...]], k: int, n: int) -> str:
        for axes, shape in zip(operands, shapes, strict=True):
            if len(shape) >= -k and shape[k] == n and not axes[k].isdigit():
                return axes[k]
        return str(n)

    def _reduced(self, operation: Operation, axes: Axes, shape: tuple[int, ...]) -> Axes | None:
        axis = operation.options.get("axis")
        if axis is None:
            return () if not shape else None
        gone = {int(k) % len(axes) for k in (axis if isinstance(axis, tuple) else (axis,))}
        if len(shape) == len(axes):
            return tuple("1" if k in gone else name for k, name in enumerate(axes))
        return tuple(name for k, name in enumerate(axes) if k not in gone)

"""The trace of a forward pass: which elementary operations it runs, on which values, at which line.

It is recorded by running a user's forward once on array-likes, and can be run again on other inputs.
"""

from __future__ import annotations

import keyword
import linecache
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import FunctionType
from typing import Any

import numpy as np

from handgrad.checking.forward_trace import numpy_functions
from handgrad.checking.forward_trace.operation import Operation
from handgrad.checking.forward_trace.stand_ins import through_source, traced_scope
from handgrad.checking.forward_trace.traced_array import UntraceableError
from handgrad.checking.forward_trace.tracer import Tracer

# Their output is constant between jumps: no gradient passes.
DISCRETE = frozenset((
    "sign", "floor", "ceil", "rint", "trunc", "round", "floor_divide", "heaviside", "signbit",
    "argmax", "argmin", "fix",
))  # fmt: skip


@dataclass(frozen=True, eq=False)
class ForwardTrace:
    """A forward pass, operation by operation, in the order in which they ran."""

    operations: tuple[Operation, ...]
    values: list[Any]  # inputs, constants and outputs of operations, as NumPy gave them
    inputs: dict[str, int]  # name of an input -> number of its value
    outputs: tuple[int, ...]  # the values that forward returned
    names: dict[int, str]  # value -> the variable of the user's source that first held it
    texts: dict[int, str]  # input or constant -> how it is written
    constants: set[int]  # the values that do not depend on the inputs
    active: set[
        int
    ]  # those with a gradient: they depend, smoothly almost everywhere, on an input of real numbers
    spellings: dict[Any, str] = field(
        repr=False
    )  # function that is not NumPy's -> how the user's module calls it
    modules: dict[str, Any] = field(repr=False)  # the user's name of a module that spellings begin with
    producer: dict[int, Operation] = field(repr=False)

    @property
    def output(self) -> int:
        """The number of the (first) output's value."""
        return self.outputs[0]

    def replay(self, inputs: Mapping[str, Any]) -> list[Any]:
        """Run the same operations on other inputs of the same shapes, and return all values.

        Branches are taken, and random numbers drawn, as they were recorded; masks and indices are computed again.
        """
        values = list(self.values)
        for name, index in self.inputs.items():
            values[index] = np.asarray(inputs[name])
        with np.errstate(all="ignore"):
            for operation in self.operations:
                values[operation.output] = operation.run(values)
        return values

    def edges(self) -> list[tuple[Operation, int]]:
        """Return every (operation, operand) that has a gradient."""
        return [
            (operation, k)
            for operation in self.operations
            if operation.output in self.active
            for k, i in enumerate(operation.inputs)
            if i in self.active
        ]

    def reaches(self, name: str) -> bool:
        """Whether a gradient passes from an output to an input, though it may be zero at these inputs."""
        reached = {self.inputs[name]}
        for operation, operand in self.edges():
            if operation.inputs[operand] in reached:
                reached.add(operation.output)
        return not reached.isdisjoint(self.outputs)

    def descendants(self, values: Iterable[int]) -> set[int]:
        """Return the values that are computed from some values, these among them."""
        found = set(values)
        for operation in self.operations:
            if any(i in found for i in operation.inputs):
                found.add(operation.output)
        return found

    def ancestors(self, value: int) -> set[int]:
        """Return the values that `value` is computed from, itself among them."""
        found = {value}
        for operation in reversed(self.operations):
            if operation.output in found:
                found.update(operation.inputs)
        return found

    def with_identifiers(self) -> ForwardTrace:
        """Return a trace whose inputs have names that code may use: ``params_W1`` for ``params.W1``."""
        taken = {text for index, text in self.texts.items() if index not in self.inputs.values()}
        names: dict[str, int] = {}
        for given, index in self.inputs.items():
            name = given if given.isidentifier() else re.sub(r"\W+", "_", given).strip("_")
            while name in taken or name in names or keyword.iskeyword(name):
                name += "_"
            names[name] = index
        return replace(self, inputs=names, texts=self.texts | {index: name for name, index in names.items()})

    def cut_at(self, value: int, name: str) -> ForwardTrace:
        """Return the trace from a value on, which is an input then."""
        return replace(
            self,
            inputs={**self.inputs, name: value},
            texts={**self.texts, value: name},
            operations=tuple(each for each in self.operations if each.output != value),
            producer={k: each for k, each in self.producer.items() if k != value},
        )

    def source(self, operation: Operation) -> str:
        """Return the line of the user's source that an operation belongs to."""
        return linecache.getline(operation.place[0], operation.place[1]).strip()


def trace_forward(
    forward: Callable[[dict[str, Any]], Any],
    inputs: Mapping[str, Any],
    functions: Sequence[FunctionType] = (),
) -> ForwardTrace:
    """Run `forward` once on a dict of array-likes, and record what it does; an `UntraceableError` if it cannot be.

    While it runs, the modules that define `functions`, those forward may call, see a NumPy that accepts traced
    arrays. Everything is restored, whatever happens.

    Examples
    --------
    >>> import numpy as np
    >>> trace = trace_forward(lambda given: np.exp(given["x"]).sum(), {"x": np.zeros(2)})
    >>> [operation.name for operation in trace.operations]
    ['exp', 'sum']
    """
    own = [f for f in functions if is_users(f)]
    scopes = list({id(f.__globals__): f.__globals__ for f in own}.values())
    tracer = Tracer(scopes, {f.__code__.co_filename for f in own}, numpy_functions, through_source)
    try:
        with np.errstate(all="ignore"), traced_scope(tracer, scopes):
            traced = {name: tracer.input(name, value) for name, value in inputs.items()}
            known = {name: tracer.index_of(value) for name, value in traced.items()}
            result = forward(dict(traced))
            parts = result if isinstance(result, (tuple, list)) else (result,)
            outputs = tuple(tracer.index_of(part) for part in parts)
    except UntraceableError:
        raise
    except Exception as error:
        raise UntraceableError(f"{type(error).__name__} while tracing: {error}") from error
    return _trace(tracer, known, outputs)


def is_users(function: FunctionType) -> bool:
    """Whether a function is of the user's own making, and not imported from a library that is known."""
    root = str(function.__globals__.get("__name__", "")).split(".")[0]
    return root not in ("numpy", "scipy", "handgrad") and (
        root == "__main__" or root not in sys.stdlib_module_names
    )


def _trace(tracer: Tracer, inputs: dict[str, int], outputs: tuple[int, ...]) -> ForwardTrace:
    """Leave out what the output does not need, and note which values have a gradient."""
    needed, operations = set(outputs), []
    for operation in reversed(tracer.operations):
        if operation.output in needed:
            needed.update(operation.inputs)
            operations.append(operation)
    operations.reverse()
    active = {i for i in inputs.values() if tracer.values[i].dtype.kind == "f"}
    for operation in operations:
        is_real = tracer.values[operation.output].dtype.kind == "f"
        if is_real and operation.name not in DISCRETE and not active.isdisjoint(operation.inputs):
            active.add(operation.output)
    return ForwardTrace(
        operations=tuple(operations),
        values=tracer.values,
        inputs=inputs,
        outputs=outputs,
        names=tracer.names,
        texts=tracer.texts,
        constants=tracer.constant_values,
        active=active,
        spellings=tracer.spellings,
        modules=tracer.modules,
        producer={operation.output: operation for operation in operations},
    )

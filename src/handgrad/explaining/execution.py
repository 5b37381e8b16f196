"""A program executed line by line on one batch, so that every value it makes is at hand."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.arrays import dense
from handgrad.engines.engine import convert
from handgrad.errors import ConfigurationError
from handgrad.layers import Node, Value
from handgrad.network import Network
from handgrad.program import Program, ProgramLine
from handgrad.program.builder import write_rule
from handgrad.program.lines_in_python import Scope, run_lines
from handgrad.rules import Rule, Shape

Array = NDArray[Any]

ROUNDING = 1e-13  # of the largest gradient, in float64: what is smaller has cancelled


@dataclass(frozen=True)
class Execution:
    """A program up to its gradients, the rules it was written from, and what its lines read of a batch of some rows."""

    program: Program
    nodes: tuple[Node, ...]
    given: Scope
    rows: int

    @cached_property
    def values(self) -> Scope:
        """Every value by name, in the type the program computes in."""
        return run_lines(self.program.lines, self.given)

    @cached_property
    def exact(self) -> Scope:
        """The same computed in float64."""
        return run_lines(self.program.lines, {name: widened(value) for name, value in self.given.items()})

    @cached_property
    def backward(self) -> tuple[ProgramLine, ...]:
        """The backward lines."""
        return tuple(self.program.phase("backward"))

    def float64(self, name: str) -> Array:
        """Return a value's numbers, widened after they were computed."""
        return np.asarray(self.values[name], np.float64)

    def norm(self, name: str) -> float:
        """Return the Euclidean norm of a value."""
        return float(np.linalg.norm(self.float64(name)))

    def node_of(self, name: str) -> Node | None:
        """Return the node that makes a value, local values of its lines included."""
        for node in self.nodes:
            if name == node.output.name or name in (node.names[local] for local in node.rule.forward.locals):
                return node
        return None

    def lines_of(self, node: Node) -> tuple[int, ...]:
        """Return the numbers of a node's lines, forward and backward."""
        own = {node.names[local] for local in node.rule.forward.locals}
        own |= {value.name for value in node.inputs if value.kind == "mask"}
        return tuple(
            number
            for number, line in enumerate(self.program.lines)
            if (line.undoes == node.output.name if line.phase == "backward" else line.target in own)
        )

    @cached_property
    def gradient_of(self) -> dict[str, str]:
        """The value of each gradient: those of a value's single uses (``dh1_r2``) before their sum."""
        made = [line.target for line in self.backward]
        made += [value.name for value in self.program.inputs if value.kind == "upstream"]
        users: dict[str, list[str]] = {}
        for node in self.nodes:
            users.setdefault(node.output.name, [])
            for value in node.inputs:
                users.setdefault(value.name, []).append(node.output.name)
        found: dict[str, str] = {}
        for name, outputs in users.items():
            parts = tuple(f"d{name}_{output}" for output in outputs)
            own = [target for target in made if parts and target.startswith(parts)]
            found |= dict.fromkeys([*own, *(target for target in made if target == f"d{name}")], name)
        return found

    @cached_property
    def rounding(self) -> frozenset[str]:
        """The gradients that are 0 but for the rounding of what cancels in them."""
        whole = {of: gradient for gradient, of in self.gradient_of.items()}
        sizes = {name: float(np.abs(self.exact[name]).max(initial=0)) for name in whole.values()}
        least = ROUNDING * max(sizes.values(), default=0.0)
        return frozenset(name for name, size in sizes.items() if 0 < size < least)

    @cached_property
    def shapes(self) -> dict[str, Shape]:
        """The shape of every value, with n for the rows."""
        shapes: dict[str, Shape] = {value.name: value.shape for value in self.program.inputs}
        made = {line.target: line.shape or () for line in self.program.lines if not line.index}
        return shapes | self.program.shapes | made


def widened(value: Any) -> Any:
    """Return floating point in float64, anything else as it is."""
    return np.asarray(value, np.float64) if np.asarray(value).dtype.kind == "f" else value


def execute_network(network: Network, x: Any, t: Any, w: Any = None, *, seed: int = 0) -> Execution:
    """Prepare a network's training step on a batch; a `ShapeError` where that does not fit the network."""
    batch = network.check_batch(x, t, w)
    rows = len(batch["t"])
    if not rows:
        raise ConfigurationError("the batch has no rows", fix="give one row or more")
    program = network.program(weighted=w is not None).without_updates().saving_all()
    given: Scope = {v.name: convert(dense(batch[v.name]), v, program.dtype) for v in program.inputs}
    given |= {**network.arrays, "n": rows, "seed": seed, "step": 1}
    return Execution(program, network.nodes(weighted=w is not None), given, rows)


def execute_rule(rule: Rule, arrays: Collection[Any], *, seed: int = 0, **options: Any) -> Execution:
    """Prepare a single rule on some arrays, with a random upstream gradient; a `ShapeError` where they do not fit it."""
    output_size = np.shape(rule(*arrays, **options))  # checks the shapes
    upstream = np.random.default_rng(seed).normal(size=output_size)
    names, kinds = rule.forward.arguments, rule.forward.kinds
    given = dict(zip(names, map(np.asarray, arrays), strict=True))
    axes = dict(zip(names, rule.signature.inputs, strict=True))
    shapes = {name: _with_rows(given[name].shape, axes[name]) for name in names}
    inputs = tuple(Value(name, shapes[name], kinds[name], rule.name, rule.name) for name in names)
    settings = rule.settings(options)
    made = rule.signature.output_shape(rule.signature.bind(rule.name, shapes, settings), settings, rule.name)
    output = Value(rule.output, made, "value", rule.name, rule.name)
    node = Node(rule, settings, inputs, output, "", 1, "forward")
    program = write_rule(node, title=f"rule {rule.name}: {rule.signature}")
    rows = next((len(given[name]) for name in names if shapes[name][:1] == ("n",)), 1)
    scope = {name: widened(array) for name, array in given.items()}
    return Execution(program, (node,), scope | {f"d{rule.output}": upstream}, rows)


def _with_rows(shape: tuple[int, ...], axes: tuple[str, ...]) -> Shape:
    """Call the first axis ``n`` where the signature calls it N, or leaves open how many there are."""
    by_rows = bool(shape and axes) and len(shape) >= len(axes) and (axes[0] == "N" or axes[0].endswith("..."))
    return ("n", *shape[1:]) if by_rows else shape

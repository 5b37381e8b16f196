"""The numerical check of each backward line against its forward, at this batch's own values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.errors import RuleError
from handgrad.explaining.execution import Execution
from handgrad.explaining.jacobians import Dependency
from handgrad.explaining.record import Witness
from handgrad.finite_differences import NumericalJacobian, directional_derivatives, numerical_jacobian
from handgrad.layers import Node
from handgrad.program.lines_in_python import Scope, run_lines
from handgrad.tolerance import EPS, TELLING, gradient_tolerance

Array = NDArray[Any]

ROWS = 3  # of the batch: enough for a rule's sums over rows, and quick
FEW = 12  # entries whose derivatives are found one by one; of more, along some random directions
DIRECTIONS = 4
OFF_KINKS = 1e-2  # of a typical entry: how far a point at several kinks is perturbed
TINY = 1e-9  # of the largest derivative: a smaller one is compared as if it had this size


def witnesses(execution: Execution) -> dict[str, Witness]:
    """Return the check of each backward line, by its target.

    A line that makes no gradient, but is read by some that do, has the worst of theirs.
    """
    found: dict[str, Witness] = {}
    for node in execution.nodes:
        found |= dict(_of_node(execution, node))
    for line in execution.backward:
        if not line.rule and line.reads:
            found[line.target] = _of_sum(execution, line.undoes)
    for line in reversed(execution.backward):
        if line.target not in found and line.rule:
            readers = [other.target for other in execution.backward if line.target in other.reads]
            checks = [found[target] for target in readers if target in found]
            if checks:
                found[line.target] = max(checks, key=lambda w: (w.verdict == "wrong", w.error))
    return found


def _of_node(execution: Execution, node: Node) -> Iterator[tuple[str, Witness]]:
    """Check each gradient that a rule makes, on a few rows."""
    lines, generator = execution.backward, np.random.default_rng(0)
    made = {line.target for line in lines if line.undoes == node.output.name and line.rule}
    arguments = {
        name: execution.exact[value.name][:ROWS] if value.shape[:1] == ("n",) else execution.exact[value.name]
        for name, value in node.arguments.items()
    }
    for name in node.rule.differentiable:
        own = node.arguments[name].name
        part = f"d{own}_{node.output.name}"
        target = next((each for each in (f"d{own}", f"{part}_{name}", part) if each in made), "")
        if target:
            yield target, _of_argument(node, arguments, name, generator)


def _of_argument(node: Node, arguments: Scope, name: str, generator: np.random.Generator) -> Witness:
    rule = node.rule

    def output(value: Array) -> Array:
        made = rule.forward.run({**node.options, **arguments, name: value})[rule.output]
        return np.asarray(made, np.float64)

    def gradient(value: Array, upstream: Array) -> Array:
        moved = {**arguments, name: value}
        return rule.gradients(upstream, *moved.values(), **node.options)[name]

    return _compare(output, gradient, np.asarray(arguments[name]), generator)


def _of_sum(execution: Execution, name: str) -> Witness:
    """Check the gradient of a value used several times, by the loss as a function of it."""
    lines, exact = Dependency(execution, "loss", name).lines, execution.exact

    def loss(value: Array) -> Array:
        return np.array([run_lines(lines, {**exact, name: value})["loss"]], np.float64)

    def gradient(value: Array, upstream: Array) -> Array:
        return upstream * np.asarray(exact[f"d{name}"])

    return _compare(loss, gradient, np.asarray(exact[name]), np.random.default_rng(0))


@np.errstate(all="ignore")
def _compare(
    output: Callable[[Array], Array],
    gradient: Callable[[Array, Array], Array],
    point: Array,
    generator: np.random.Generator,
) -> Witness:
    """Compare a gradient with numerical ones, along the coordinates where these are few, else along some directions."""

    def flat(value: Array) -> Array:
        return output(value).ravel()

    start = output(point)
    if not np.all(np.isfinite(start)):
        return Witness("cannot tell", 0.0, 0.0, point.size)
    upstream = generator.normal(size=start.shape)
    directions = generator.normal(size=(DIRECTIONS, *point.shape))
    if point.size <= FEW:
        directions = np.eye(point.size).reshape(point.size, *point.shape)
        found = numerical_jacobian(flat, point)
    else:
        found = directional_derivatives(flat, point, directions)
        if found.kinks.any():  # several at once leave no single right gradient
            size = float(np.abs(point).mean()) or 1.0
            point = point + OFF_KINKS * size * generator.normal(size=point.shape)
            found = directional_derivatives(flat, point, directions)
    try:
        got = np.asarray(gradient(point, upstream), np.float64)
    except (ValueError, RuleError):
        return Witness("wrong", 1.0, 0.0, point.size)
    if got.shape != point.shape:
        return Witness("wrong", 1.0, 0.0, point.size)
    return _verdict(found, upstream.ravel(), directions * got)


def _verdict(found: NumericalJacobian, upstream: Array, parts: Array) -> Witness:
    """Judge the derivatives along each direction, which are the sums of ``parts``."""
    axes = tuple(range(1, parts.ndim))
    low, high, error = found.allowed(upstream)
    size = found.magnitude(upstream)
    size = np.maximum(size, max(TINY * size.max(), np.finfo(float).tiny))
    value = parts.sum(axis=axes)
    excess = np.maximum(np.maximum(low - value, value - high), 0) / size
    tolerance = gradient_tolerance(error, size, EPS, np.sqrt((parts**2).sum(axis=axes))) / size
    worst = int(np.argmax(np.nan_to_num(excess - tolerance, nan=np.inf)))
    entries = int(np.prod(parts.shape[1:]))
    off, allowed = (float(np.nan_to_num(each[worst], nan=1.0)) for each in (excess, tolerance))
    if not excess[worst] <= tolerance[worst]:
        return Witness("wrong", off, allowed, entries)
    return Witness("right" if np.all(tolerance <= TELLING) else "cannot tell", off, allowed, entries)

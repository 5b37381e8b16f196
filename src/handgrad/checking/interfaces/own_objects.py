"""What else can be checked than two functions: rules, layers and networks, and the functions of other libraries.

Each becomes two functions of NumPy arrays and the inputs to check them at.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from handgrad.checking.draws import Source, draw, other_options, source_of
from handgrad.checking.interfaces.torch_and_jax import is_peer, peer_pair
from handgrad.checking.subject import Array, CheckError, Inputs
from handgrad.errors import ConfigurationError
from handgrad.layers import SGD, Graph, Layer, Node, Parameter, Value
from handgrad.network import Network
from handgrad.program import Program
from handgrad.program.builder import write_training
from handgrad.program.lines_in_python import compile_program
from handgrad.rules import Rule, weighted_sum_of_rows

SOME_FEATURES = 3
ROWS = (5, 7, 11, 13, 17)  # two are too few: normalised over them, every number is 1 or -1


@dataclass(frozen=True)
class Pair:
    """Two functions to check, the inputs, and what to call them."""

    forward: Callable[..., Any]
    backward: Callable[..., Any]
    inputs: Source
    name: str


def checkable(thing: Any) -> bool:
    """Whether a thing holds both its functions: a rule, a layer, a network, or another library's function."""
    return isinstance(thing, Rule | Layer | Network) or is_peer(thing)


def pair_of(forward: Any, backward: Callable[..., Any] | None, inputs: Source | Sequence[Any] | None) -> Pair:
    """Return two functions to check, and the inputs to check them at.

    Parameters
    ----------
    forward, backward, inputs
        As `handgrad.check` takes them.

    Raises
    ------
    CheckError
        When a part is missing, or is not what it should be.
    """
    if checkable(forward):
        if backward is not None:
            raise CheckError(
                f"{forward!r} has a backward of its own, and another is given", fix="give one of them"
            )
        return _own_pair(forward, inputs)
    for role, function in (("forward", forward), ("backward", backward)):
        if not callable(function):
            what = "is missing" if function is None else f"is {function!r:.60}, which is no function"
            raise CheckError(
                f"{role} {what}", fix="give forward, backward and inputs; or a rule, a layer, a network"
            )
    assert backward is not None
    if inputs is None:
        raise CheckError("the inputs are missing", fix='give a dict of arrays, {"x": x, "W": W}')
    return Pair(forward, backward, _by_name(forward, inputs), getattr(backward, "__name__", "backward"))


def _own_pair(thing: Any, inputs: Any) -> Pair:
    if isinstance(thing, Rule):
        return _of_rule(thing, inputs)
    if isinstance(thing, Layer):
        return _of_layer(thing, inputs)
    if isinstance(thing, Network):
        return _of_network(thing, inputs)
    name = getattr(thing, "__name__", "function")
    if inputs is None:
        raise CheckError(
            f"{name}: the inputs are missing", fix="give a tuple of arrays, or a dict in that order"
        )
    peer_forward, peer_backward, named = peer_pair(thing)
    return Pair(peer_forward, peer_backward, _by_name(named, inputs), name)


def _by_name(forward: Callable[..., Any], inputs: Any) -> Source:
    """Name inputs that are given in a row after forward's parameters."""
    if callable(inputs):
        if not _takes_one(inputs):
            return _by_name(forward, _drawn_by(inputs))
        return lambda generator: _by_name(forward, _drawn_by(inputs, generator))  # type: ignore[return-value]
    if isinstance(inputs, Mapping):
        return inputs
    if not isinstance(inputs, tuple | list):
        raise CheckError(
            f"the inputs are {type(inputs).__name__}", fix='give a dict of arrays, {"x": x, "W": W}'
        )
    try:
        names = list(inspect.signature(forward).bind(*inputs).arguments)
    except (TypeError, ValueError):
        names = []
    if len(names) != len(inputs):
        raise CheckError(f"forward does not take {len(inputs)} inputs", fix="give a dict of arrays")
    return dict(zip(names, inputs, strict=True))


def _takes_one(function: Callable[..., Any]) -> bool:
    """Whether a function takes an argument, the generator; one that takes none is called once."""
    try:
        inspect.signature(function).bind()
    except (TypeError, ValueError):
        return True
    return False


def _drawn_by(inputs: Callable[..., Any], *generator: np.random.Generator) -> Any:
    try:
        return inputs(*generator)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        raise CheckError(
            f"the function of the inputs raised {type(error).__name__}: {error}",
            given=f"at {where.filename}:{where.lineno}: {where.line}",
            fix="it takes a numpy.random.Generator and returns a dict of arrays",
        ) from error


# --------------------------------------------------------------------------------------------------- rules


def _of_rule(rule: Rule, inputs: Any) -> Pair:
    rule.backward_text  # noqa: B018 - says at once when no backward is written
    source = source_of(rule) if inputs is None else _by_name(rule.function, inputs)
    options = other_options(rule, source)

    def forward(**values: Array) -> Any:
        return rule(*values.values(), **options)

    def backward(upstream: Array, **values: Array) -> dict[str, Array]:
        return rule.gradients(upstream, *values.values(), **options)

    forward.__wrapped__ = rule.function  # type: ignore[attr-defined]
    shown = ", ".join(f"{name}={value:g}" for name, value in options.items())
    return Pair(forward, backward, source, f"{rule.name}({shown})" if options else rule.name)


# ----------------------------------------------------------------------------------- layers and networks


def _of_layer(layer: Layer, inputs: Any) -> Pair:
    """Check the gradients of a layer's input and parameters, for any upstream gradient."""
    row = _row(layer)
    graph = Graph()
    y = layer.connect(graph, graph.input("x", ("n", *row), "input"))
    sizes = {size for parameter in graph.parameters.values() for size in parameter.shape}
    shape = (_unused_row_count({*row, *y.shape, *sizes}), *row)
    graph = Graph()
    x = graph.input("x", shape, "input")
    y = layer.connect(graph, x)
    tables = [int(v.shape[0]) for node in graph.nodes for v in _tables(node, x)]
    if not tables:
        graph.parameters = {"x": Parameter(shape, "zeros"), **graph.parameters}
    graph.part = "loss"
    t = graph.input("t", y.shape, "target")
    loss = graph.apply(weighted_sum_of_rows, y, t)  # with the upstream gradient for weights
    given = (replace(x, kind="index"), t) if tables else (t,)
    program = write_training(graph, given, loss, SGD(), title="", dtype="float64").without_updates()
    arrays = program.initial(0)
    outputs = _ProgramFunction(program.keeping(y.name), {**arrays, "t": None})
    gradients = _ProgramFunction(program.keeping("total", *(f"d{name}" for name in graph.parameters)), arrays)

    def forward(**values: Array) -> Any:
        return outputs(values)[y.name]

    def backward(upstream: Array, **values: Array) -> dict[str, Array]:
        found = gradients({**values, "t": upstream})
        return {name: found[f"d{name}"] for name in graph.parameters}

    def source(generator: np.random.Generator) -> Inputs:
        drawn = generator.normal(size=shape) if not tables else generator.integers(0, min(tables), shape)
        given = {"x": drawn, **(draw(inputs, generator) if inputs is not None else {})}
        parameters = {name: array for name, array in arrays.items() if name in graph.parameters}
        return _off_one_number(forward, parameters, given, generator)

    forward.__wrapped__ = outputs.function  # type: ignore[attr-defined]
    return Pair(forward, backward, source, repr(layer))


def _unused_row_count(sizes: Collection[Any]) -> int:
    """Return a number of rows that is no other size: at equal ones, a mean over the wrong axis is right."""
    return next((size for size in ROWS if size not in sizes), ROWS[0])


def _off_one_number(
    forward: Callable[..., Any], parameters: Inputs, given: Inputs, generator: np.random.Generator
) -> Inputs:
    """Return all inputs, parameters that are one number everywhere changed where forward is finite then.

    At a gain of 1, a backward without it is right.
    """
    moved = {name: _moved(start, generator) for name, start in parameters.items()}
    try:
        finite = bool(np.all(np.isfinite(forward(**{**moved, **given}))))
    except Exception:  # a layer of anyone's: it may refuse them in any way
        finite = False
    return {**(moved if finite else parameters), **given}


def _moved(start: Array, generator: np.random.Generator) -> Array:
    if start.size == 0 or np.any(start != start.flat[0]) or (start.size == 1 and start.item() not in (0, 1)):
        return start
    added, factor = generator.uniform(-0.5, 0.5, start.shape), generator.uniform(0.6, 1.4, start.shape)
    return np.where(start == 0, added, factor * start)


def _row(layer: Layer) -> tuple[int, ...]:
    """Return the shape of a row a layer takes, or one of some size where it takes any."""
    try:
        return layer.input_shape() or (SOME_FEATURES,)
    except ConfigurationError:  # an embedding takes any number of indices
        return (SOME_FEATURES,)


def _tables(node: Node, x: Value) -> list[Value]:
    """Return the tables that a node looks up at the indices x; none when x holds values."""
    reads = any(node.rule.forward.kinds[a] == "index" and v.name == x.name for a, v in node.arguments.items())
    return [v for v in node.inputs if reads and v.name != x.name]


def _of_network(network: Network, inputs: Any) -> Pair:
    """Check every parameter's gradient of the loss, as training computes it, at some rows."""
    if network.loss is None:
        raise CheckError(f"{network!r} has no loss", fix="a network is checked by the gradients of its loss")
    program = network.program().without_updates()
    arrays = {name: np.asarray(array, np.float64) for name, array in network.arrays.items()}
    losses = _ProgramFunction(program.keeping("loss"), arrays)
    gradients = _ProgramFunction(
        program.keeping("total", *(f"d{name}" for name in network.parameters)), arrays
    )

    def forward(**values: Array) -> Any:
        return losses(values)["loss"]

    def backward(upstream: Array, **values: Array) -> dict[str, Array]:
        found = gradients(values)
        return {name: found[f"d{name}"] * upstream for name in network.parameters}

    def source(generator: np.random.Generator) -> Inputs:
        given = draw(inputs, generator) if inputs is not None else None
        sizes = {size for array in network.parameters.values() for size in array.shape}
        rows = _unused_row_count({*network.row, *sizes})
        x, t = draw_rows(network, rows, generator) if given is None else _given_rows(network, given)
        parameters = {name: arrays[name] for name in network.parameters}
        return _off_one_number(forward, parameters, {"x": x, "t": t}, generator)

    forward.__wrapped__ = losses.function  # type: ignore[attr-defined]
    return Pair(forward, backward, source, repr(network))


class _ProgramFunction:
    """A program as a function of arrays by name; what is not given is as in training, and dropout's masks stay."""

    def __init__(self, program: Program, kept: Mapping[str, Any]) -> None:
        self.function = compile_program(program, "step")
        self.program, self.kept = program, kept

    def __call__(self, values: Mapping[str, Any]) -> dict[str, Any]:
        known = {**self.kept, **values, "seed": 0, "step": 1}
        given = {name: known[name] for name in (*self.program.arguments, *self.program.scalars)}
        return dict(zip(self.program.outputs, self.function(**given), strict=True))


def draw_rows(network: Network, rows: int, generator: np.random.Generator) -> tuple[Array, Array]:
    """Draw some rows and targets that a network takes."""
    assert network.loss is not None
    shape = network.output_shape
    target, kind = network.loss.target(shape)
    sizes = tuple(rows if size == "n" else int(size) for size in target)
    x: Array = generator.normal(size=(rows, *network.row))
    if network.entries is not None:
        x = generator.integers(0, network.entries, x.shape)
    if kind == "class":
        return x, generator.integers(0, int(shape[-1]), sizes)
    if network.loss.task == "classification":
        return x, generator.dirichlet(np.ones(sizes[-1]), sizes[:-1])
    return x, generator.uniform(size=sizes)


def _given_rows(network: Network, given: Inputs) -> tuple[Array, Array]:
    """Return the rows and targets a caller gave, as the network takes them."""
    if given.keys() != {"x", "t"}:
        raise CheckError("a network is checked at rows x and targets t", given=", ".join(given) or "nothing")
    x = network.check_rows(given["x"])
    return x, network.check_targets(given["t"], len(x))

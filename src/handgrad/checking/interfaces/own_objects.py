"""Rules, layers and networks as two functions of arrays, and the inputs to check them at."""

from __future__ import annotations

import builtins
import dis
import inspect
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from handgrad.checking.input_draws import Source, draw, other_options, source_of
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
    limits: tuple[str, ...] = ()  # what a pass at these functions does not prove
    given: Callable[[Mapping[str, Any]], Mapping[str, Any]] = (
        dict  # arrays as what the author's functions take
    )
    matched: tuple[
        str, ...
    ] = ()  # how gradients and losses were found, where that was read from names and shapes


def own_pair(thing: Rule | Layer | Network, inputs: Any) -> Pair:
    """Return handgrad's own object as two functions; without inputs, they are drawn."""
    if isinstance(thing, Rule):
        return _of_rule(thing, inputs)
    return _of_layer(thing, inputs) if isinstance(thing, Layer) else _of_network(thing, inputs)


def by_name(signature: inspect.Signature | None, inputs: Any) -> Source:
    """Name inputs that are given in a row after forward's parameters."""
    if callable(inputs):

        def drawn(*generator: np.random.Generator) -> Any:
            try:
                made = inputs(*generator)
            except Exception as error:
                where = traceback.extract_tb(error.__traceback__)[-1]
                raise CheckError(
                    f"the function of the inputs raised {type(error).__name__}: {error}",
                    given=f"at {where.filename}:{where.lineno}: {where.line}",
                    fix="it takes a numpy.random.Generator and returns a dict of arrays",
                ) from error
            return by_name(signature, made)

        return drawn if _takes_one(inputs) else drawn()
    if isinstance(inputs, Mapping):
        return inputs
    if not isinstance(inputs, tuple | list):
        raise CheckError(
            f"the inputs are {type(inputs).__name__}", fix='give a dict of arrays, {"x": x, "W": W}'
        )
    names = _parameters(signature, inputs) if signature else []
    if len(names) != len(inputs):
        raise CheckError(f"forward does not take {len(inputs)} inputs", fix="give a dict of arrays")
    return dict(zip(names, inputs, strict=True))


def _parameters(signature: inspect.Signature, values: Sequence[Any]) -> list[str]:
    """Return the parameter of each value, ``args[0]`` where it is one of any number; none where they do not fit."""
    try:
        bound = signature.bind(*values).arguments
    except TypeError:
        return []
    kinds = {name: signature.parameters[name].kind for name in bound}
    several = {name for name, kind in kinds.items() if kind is inspect.Parameter.VAR_POSITIONAL}
    names = ([f"{n}[{k}]" for k in range(len(v))] if n in several else [n] for n, v in bound.items())
    return [name for each in names for name in each]


def _takes_one(function: Callable[..., Any]) -> bool:
    """Whether a function takes an argument, the generator; one that takes none is called once."""
    try:
        inspect.signature(function).bind()
    except (TypeError, ValueError):
        return True
    return False


def _of_rule(rule: Rule, inputs: Any) -> Pair:
    rule.backward_text  # noqa: B018 - says at once when no backward is written
    source = source_of(rule) if inputs is None else by_name(inspect.signature(rule.function), inputs)
    options = other_options(rule, source)

    def forward(**values: Array) -> Any:
        return rule(*values.values(), **options)

    def backward(upstream: Array, **values: Array) -> dict[str, Array]:
        return rule.gradients(upstream, *values.values(), **options)

    forward.__wrapped__ = rule.function  # type: ignore[attr-defined]
    if rule.backward_function is not None and all(map(_is_complete, (rule.function, rule.backward_function))):
        forward, backward = _as_functions(rule, rule.backward_function, options)
    shown = ", ".join(f"{name}={value:g}" for name, value in options.items())
    return Pair(forward, backward, source, f"{rule.name}({shown})" if options else rule.name)


def _as_functions(
    rule: Rule, function: Callable[..., Any], options: Mapping[str, Any]
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return a rule's two functions as Python runs them: what calls them sees their lines, and may change them."""
    text, upstream_name = rule.backward_text, f"d{rule.output}"

    def forward(**values: Array) -> Any:
        return rule.function(*rule.arrays(tuple(values.values()), options), **rule.settings(options))

    def backward(upstream: Array, **values: Array) -> dict[str, Array]:
        known = rule.values(*values.values(), **options) | {upstream_name: np.asarray(upstream)}
        found = function(**{name: known[name] for name in (*text.arguments, *text.options)})
        several = found if isinstance(found, tuple) else (found,)
        return dict(zip(rule.differentiable, several, strict=True))

    return forward, backward


def _is_complete(function: Callable[..., Any]) -> bool:
    """Whether a function's module has all names that it reads: a rule may use primitives that it does not import."""
    known = {*function.__globals__, *vars(builtins)}
    return all(
        each.argval in known for each in dis.get_instructions(function) if each.opname == "LOAD_GLOBAL"
    )


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

    def rows(generator: np.random.Generator) -> Inputs:
        drawn = generator.normal(size=shape) if not tables else generator.integers(0, min(tables), shape)
        return {"x": drawn, **(draw(inputs, generator) if inputs is not None else {})}

    return _of_program(program, y.name, tuple(graph.parameters), program.initial(0), rows, repr(layer))


def _of_network(network: Network, inputs: Any) -> Pair:
    """Check every parameter's gradient of the loss, as training computes it, at some rows."""
    if network.loss is None:
        raise CheckError(f"{network!r} has no loss", fix="a network is checked by the gradients of its loss")
    sizes = {size for array in network.parameters.values() for size in array.shape}

    def rows(generator: np.random.Generator) -> Inputs:
        if inputs is None:
            x, t = draw_rows(network, _unused_row_count({*network.row, *sizes}), generator)
            return {"x": x, "t": t}
        given = draw(inputs, generator)
        if given.keys() != {"x", "t"}:
            raise CheckError(
                "a network is checked at rows x and targets t", given=", ".join(given) or "nothing"
            )
        x = network.check_rows(given["x"])
        return {"x": x, "t": network.check_targets(given["t"], len(x))}

    program = network.program().without_updates()
    arrays = {name: np.asarray(array, np.float64) for name, array in network.arrays.items()}
    return _of_program(program, "loss", tuple(network.parameters), arrays, rows, repr(network))


def _of_program(
    program: Program,
    output: str,
    parameters: tuple[str, ...],
    arrays: Inputs,
    rows: Callable[[np.random.Generator], Inputs],
    name: str,
) -> Pair:
    """Check the gradients of a program's parameters, at some rows.

    What is not given is as in training, and dropout's masks stay. Without targets, the upstream gradient is the target.
    """
    gradients = ("total", *(f"d{name}" for name in parameters))

    def function(outputs: tuple[str, ...]) -> tuple[Callable[..., Any], Callable[[Inputs], Inputs]]:
        part = program.keeping(*outputs)
        compiled = compile_program(part, "step")

        def run(values: Mapping[str, Any]) -> dict[str, Any]:
            known = {"t": None, **arrays, **values, "seed": 0, "step": 1}
            given = {name: known[name] for name in (*part.arguments, *part.scalars)}
            return dict(zip(part.outputs, compiled(**given), strict=True))

        return compiled, run

    (source, run), (_, differentiate) = function((output,)), function(gradients)

    def forward(**values: Array) -> Any:
        return run(values)[output]

    def backward(upstream: Array, **values: Array) -> dict[str, Array]:
        found = differentiate({"t": upstream, **values})
        times = upstream if "t" in values else 1.0
        return {name: found[f"d{name}"] * times for name in parameters}

    def inputs(generator: np.random.Generator) -> Inputs:
        start = {name: arrays[name] for name in parameters if name in arrays}
        return _off_one_number(forward, start, rows(generator), generator)

    forward.__wrapped__ = source  # type: ignore[attr-defined]
    return Pair(forward, backward, inputs, name)


def _unused_row_count(sizes: Collection[Any]) -> int:
    """Return a number of rows that is no other size: at equal ones, a mean over the wrong axis is right."""
    return next((size for size in ROWS if size not in sizes), ROWS[0])


def _off_one_number(
    forward: Callable[..., Any], parameters: Inputs, given: Inputs, generator: np.random.Generator
) -> Inputs:
    """Return all inputs; parameters that are one number everywhere, where a backward without them is right, are changed."""
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
    return [value for value in node.inputs if node.reads_indices(x) and value.name != x.name]


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

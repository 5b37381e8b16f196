"""What a candidate has to be given: the parameters of its functions that are neither upstream gradients nor caches."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from handgrad.checking.interfaces import (
    alias_of,
    gradient_attribute,
    has_backward,
    losses_beside,
    methods_of,
    written_forward,
)
from handgrad.checking.interfaces.names import SAVED, UPSTREAMS, is_target, plain
from handgrad.checking.interfaces.signatures import definition_of, parameters_of, required, returned_names
from handgrad.checking.interfaces.torch_functions import torch_class
from handgrad.checking.interfaces.two_functions import update_after
from handgrad.checking.user_files.candidates import Candidate, is_backward_name
from handgrad.checking.user_files.drawn_arguments import OMITTED, Parameter
from handgrad.checking.user_files.parameter_words import ROW_COUNTS

DEPTH = 2  # of functions that call each other, in which an argument is followed
UPSTREAM = (*UPSTREAMS, "nextgrad", "g")
CONTEXT = ("ctx", "context", "self")  # of a torch.autograd.Function
ALSO_BACKWARDS = {
    "x", "activation", "lr", "learningrate", "alpha", "eta", "lambd", "reg", "parameters", "params", *ROW_COUNTS,
}  # fmt: skip


def functions_of(candidate: Candidate) -> list[Callable[..., Any]]:
    """Return what is called of a candidate, forward first."""
    if has_backward(candidate.forward):
        return [written_forward(candidate.forward)]
    if not candidate.has_methods:
        update = update_after(candidate.backward) if candidate.backward else None
        return [each for each in (candidate.forward, candidate.backward, update) if each is not None]
    methods = methods_of(candidate.forward)
    if methods.backward in methods.losses:
        return [methods.backward]
    return [each for each in (methods.forward, *methods.losses, methods.backward) if each is not None]


def needed_names(candidate: Candidate) -> dict[str, Any]:
    """Return the names of what a candidate has to be given, with their defaults: OMITTED where there is none."""
    found: dict[str, Any] = {}
    outputs: list[str] = []
    functions = functions_of(candidate)
    aliases = alias_of(functions[0], functions[-1]) if candidate.has_methods and len(functions) > 1 else {}
    attribute = gradient_attribute(candidate.backward) if candidate.backward else ""
    weighting = _weighting(functions[0], functions[-1])
    for k, function in enumerate(functions):
        backward = function is candidate.backward or (
            candidate.is_class and is_backward_name(function.__name__)
        )
        for name, parameter in parameters_of(function).items():
            own = (
                not (backward and k) or (not attribute and _is_own_input(name, outputs)) or name in weighting
            )
            if name in aliases:
                continue
            is_loss_of_output = (
                k and not backward and not set(required(functions[0])) <= {*parameters_of(function)}
            )
            is_computed = candidate.has_methods and is_loss_of_output and not is_target((name,))
            if name in aliases.values():
                own, is_computed = True, False
            if (
                name == "self"
                or (name in CONTEXT and has_backward(candidate.forward))
                or name in found
                or not own
                or (is_computed and parameter.default is parameter.empty)
            ):
                continue
            found[name] = OMITTED if parameter.default is parameter.empty else parameter.default
        outputs += returned_names(function)
    return found


def _is_own_input(name: str, outputs: list[str]) -> bool:
    """Whether a parameter of a backward is an input, not an upstream gradient, a cache, or what forward returned."""
    low = plain(name)
    if name in outputs or low in SAVED or low.endswith("cache") or low.startswith(UPSTREAM):
        return False
    return is_target((name,)) or low in ALSO_BACKWARDS


def _weighting(forward: Callable[..., Any], backward: Callable[..., Any]) -> set[str]:
    """Return what a backward takes to weight its loss, as the losses beside it do after a prediction: of each row."""
    losses = [each for each in losses_beside(backward).values() if each not in (forward, backward)]
    losses = [each for each in losses if any(is_target((name,)) for name in required(each))]
    known = {*parameters_of(forward), *returned_names(forward)}
    others = [[p for p in required(each) if p not in known and not is_target((p,))] for each in losses]
    return {name for each in others for name in each[1:]} & {*required(backward)}


def needed_by(candidate: Candidate) -> Iterator[tuple[Parameter, Any]]:
    """Yield each parameter that has to be given, with its default; one without is its own default."""
    if candidate.is_class:
        for name, each in inspect.signature(candidate.forward).parameters.items():
            if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL):
                parameter = Parameter("constructor", name)
                yield parameter, parameter if each.default is each.empty else each.default
    for name, default in needed_names(candidate).items():
        keys = _keys(candidate, name)
        for parameter in [Parameter("inputs", name, key) for key in keys] or [Parameter("inputs", name)]:
            yield parameter, parameter if keys or default is OMITTED else default


def _keys(candidate: Candidate, name: str) -> list[str]:
    """Return the strings with which a function, or one that it calls, looks things up in one of its parameters."""
    found: list[str] = []
    left: list[tuple[Callable[..., Any], str]] = [(each, name) for each in functions_of(candidate)]
    for function, known in left:  # which grows
        definition = definition_of(function)
        names = getattr(function, "__globals__", {})
        for node in ast.walk(definition) if definition else ():
            match node:
                case ast.Subscript(ast.Name(id), ast.Constant(str(key)), ast.Load()) if id == known:
                    found.append(key)
                case ast.Call(ast.Attribute(ast.Name(id), "get"), [ast.Constant(str(key)), *_]) if (
                    id == known
                ):
                    found.append(key)
                case ast.Call(ast.Name(called), args) if isinstance(names.get(called), FunctionType):
                    taken = zip(args, parameters_of(names[called]), strict=False)
                    inner = [(names[called], each) for arg, each in taken if ast.unparse(arg) == known]
                    left += [each for each in inner if each not in left]
    return list(dict.fromkeys(found))


def lists_among(candidate: Candidate) -> dict[str, str]:
    """Return the parameters that functions go through together, with the name of an entry: ``zip(weights, biases)``."""
    found: dict[str, str] = {}
    for function in functions_of(candidate):
        for node in ast.walk(definition_of(function) or ast.Pass()):
            match node:
                case ast.For(ast.Tuple(entries), ast.Call(ast.Name("zip"), lists)) if len(entries) == len(
                    lists
                ):
                    pairs = [
                        (ast.unparse(one), ast.unparse(many))
                        for one, many in zip(entries, lists, strict=True)
                    ]
                    found |= {many: one for one, many in pairs if many in parameters_of(function)}
    return found


def flat_among(candidate: Candidate) -> set[str]:
    """Return the parameters from which a candidate's functions cut and reshape their arrays: all parameters in one vector."""
    found: set[str] = set()
    for function in functions_of(candidate):
        for node in ast.walk(definition_of(function) or ast.Pass()):
            match node:
                case ast.Call(
                    ast.Attribute(ast.Subscript(ast.Name(name), ast.Slice()), "reshape")
                ) | ast.Call(ast.Attribute(attr="reshape"), [ast.Subscript(ast.Name(name), ast.Slice()), *_]):
                    found |= {name} & parameters_of(function).keys()
    return found


def numbers_among(candidate: Candidate) -> set[str]:
    """Return what a torch.autograd.Function keeps as an attribute of its context, and returns None for: no tensors."""
    cls = torch_class(candidate.forward)
    backward = definition_of(inspect.unwrap(cls.backward)) if cls is not None else None
    if backward is None:
        return set()
    forward = written_forward(candidate.forward)
    returns = [node.value for node in ast.walk(backward) if isinstance(node, ast.Return)]
    names = [name for name in parameters_of(forward) if name not in CONTEXT]
    given = [name for k, name in enumerate(names) if all(_is_none(each, k) for each in returns)]
    kept = set()
    for each in (forward, getattr(cls, "setup_context", forward)):
        for node in ast.walk(definition_of(each) or ast.Pass()):
            match node:
                case ast.Assign([ast.Attribute(ast.Name(context))], ast.Name(name)) if context in CONTEXT:
                    kept.add(name)
    return kept & set(given)


def _is_none(returned: ast.expr | None, place: int) -> bool:
    entries = returned.elts if isinstance(returned, ast.Tuple) else [returned]
    return place < len(entries) and ast.unparse(entries[place] or ast.Pass()) == "None"


def indices_among(candidate: Candidate) -> set[str]:
    """Return the names that a candidate's functions use as indices: of labels, tokens, rows of a table."""
    functions = functions_of(candidate)
    every = list(methods_of(candidate.forward).every.values()) if candidate.has_methods else functions
    return _indices_in(every, DEPTH)


def _indices_in(functions: list[Callable[..., Any]], depth: int) -> set[str]:
    """Return the names that functions use as indices, also in those of their module that they call."""
    found: set[str] = set()
    made: list[tuple[str, set[str]]] = []
    looked_up: set[tuple[str, str]] = set()
    for function in functions:
        names = getattr(function, "__globals__", {})
        for node in ast.walk(definition_of(function) or ast.Pass()):
            match node:
                case ast.Subscript(value=container, slice=index):
                    found |= _plain_names(index)
                    looked_up.add((ast.unparse(container), ast.unparse(index)))
                case ast.Call(ast.Attribute(attr="at" | "take"), [_, index, *_]):
                    found |= _plain_names(index)
                case ast.Call(ast.Name(called), args) if depth and isinstance(
                    names.get(called), FunctionType
                ):
                    inner = _indices_in([names[called]], depth - 1)
                    taken = zip(parameters_of(names[called]), args, strict=False)
                    found = found.union(*(_plain_names(each) for name, each in taken if name in inner))
                case ast.Assign([place], value) | ast.For(place, value):
                    made.append((ast.unparse(place), _plain_names(value)))
    for target, read in [*made, *made]:  # what is set before it is used, in another method too
        if target in found:
            found |= {each for each in read if (each, target) not in looked_up}  # no keys of a dictionary
    return found


def _plain_names(node: ast.expr) -> set[str]:
    """Return the names of values that code passes on as they are, in tuples, lists and arrays, or an entry of."""
    match node:
        case ast.Name(name):
            return {name}
        case ast.Attribute(ast.Name("self")):
            return {ast.unparse(node)}
        case ast.Subscript(value):
            return _plain_names(value)
        case ast.Tuple(items) | ast.List(items):
            return set[str]().union(*map(_plain_names, items))
        case ast.Call(ast.Attribute(value, "astype" | "flatten" | "ravel" | "reshape" | "copy")):
            return _plain_names(value)
        case ast.Call(
            ast.Attribute(attr="concatenate" | "append" | "hstack" | "array" | "asarray"), arguments
        ):
            return set[str]().union(*map(_plain_names, arguments))
    return set()


def lines_that_settle(candidate: Candidate) -> str:
    """Return the lines that show how a candidate is called, in its own names."""
    inputs = ", ".join(f'"{name}": {name}' for name in needed_names(candidate))
    backward = f", {candidate.backward.__name__}" if candidate.backward else ""
    lines = [f"print(check({candidate.name}{backward}, inputs={{{inputs}}}))"]
    if candidate.is_class:
        made = ", ".join(required(candidate.forward))
        lines = [f"made = {candidate.name}({made})", f"print(check(made, inputs={{{inputs}}}))"]
    return "\n".join(f"         {line}" for line in ["from handgrad import check", *lines])

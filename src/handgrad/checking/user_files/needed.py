"""What a candidate has to be given: the parameters of its functions that are neither upstream gradients nor caches."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from handgrad.checking.interfaces import (
    alias_of,
    gradient_attribute,
    has_backward,
    methods_of,
    written_forward,
)
from handgrad.checking.interfaces.names import (
    SAVED,
    definition_of,
    is_target,
    parameters_of,
    plain,
    required,
    returned_names,
)
from handgrad.checking.user_files.candidates import Candidate, is_backward_name
from handgrad.checking.user_files.drawn_arguments import OMITTED, Parameter

UPSTREAM = ("d", "grad", "up", "delta", "err", "nextgrad", "g")
ALSO_BACKWARDS = {
    "x",
    "activation",
    "lr",
    "learningrate",
    "alpha",
    "eta",
    "lambd",
    "reg",
    "parameters",
    "params",
}


def functions_of(candidate: Candidate) -> list[Callable[..., Any]]:
    """Return what is called of a candidate, forward first."""
    if has_backward(candidate.forward):
        return [written_forward(candidate.forward)]
    if not candidate.has_methods:
        return [each for each in (candidate.forward, candidate.backward) if each is not None]
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
    for k, function in enumerate(functions):
        backward = function is candidate.backward or (
            candidate.is_class and is_backward_name(function.__name__)
        )
        for name, parameter in parameters_of(function).items():
            own = not (backward and k) or (not attribute and _is_own_input(name, outputs))
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
                or (name == "ctx" and has_backward(candidate.forward))
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
    """Return the strings with which a function looks things up in one of its parameters."""
    found: list[str] = []
    for function in functions_of(candidate):
        definition = definition_of(function)
        for node in ast.walk(definition) if definition else ():
            match node:
                case ast.Subscript(value=ast.Name(id), slice=ast.Constant(str(key)), ctx=ast.Load()) if (
                    id == name
                ):
                    found.append(key)
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id), attr="get"), args=[ast.Constant(str(key)), *_]
                ):
                    found += [key] * (id == name)
    return list(dict.fromkeys(found))


def lines_that_settle(candidate: Candidate) -> str:
    """Return the lines that show how a candidate is called, in its own names."""
    inputs = ", ".join(f'"{name}": {name}' for name in needed_names(candidate))
    backward = f", {candidate.backward.__name__}" if candidate.backward else ""
    lines = [f"print(check({candidate.name}{backward}, inputs={{{inputs}}}))"]
    if candidate.is_class:
        made = ", ".join(required(candidate.forward))
        lines = [f"made = {candidate.name}({made})", f"print(check(made, inputs={{{inputs}}}))"]
    return "\n".join(f"         {line}" for line in ["from handgrad import check", *lines])

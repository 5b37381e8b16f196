"""What each parameter of a backward is given, found from names and from what forward returns."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Literal

SAVED = {"cache", "caches", "saved", "memory", "residuals", "res", "ctx", "tape", "stored", "store"}
RATES = {"lr", "learningrate", "lrate", "alpha", "eta", "rate", "stepsize", "step"}
LOSSES = ("loss", "cost", "objective", "error", "mse", "nll", "entropy", "energy")
TARGETS = {"y", "t", "label", "labels", "target", "targets", "expected"}


@dataclass(frozen=True)
class Role:
    """What one parameter of a backward is given.

    ``which`` is the argument's name, the output's number, or the number of the output whose upstream gradient it is.
    """

    parameter: str
    kind: Literal["argument", "output", "saved", "upstream", "rate"]
    which: Any = None


def plain(name: object) -> str:
    """Return a name without case, underscores and a leading dot."""
    return str(name).lower().replace("_", "").removeprefix(".")


def is_loss_name(name: str) -> bool:
    """Whether a name says that it is a loss: ``cost``, ``mse_loss``, ``J``."""
    return name in ("J", "L", "E") or any(word in plain(name) for word in LOSSES)


def is_target(path: tuple[Any, ...]) -> bool:
    """Whether a path's name says that it is a target: nobody wants its gradient."""
    last = plain(path[-1]) if path else ""
    return last in TARGETS or "true" in last or "target" in last


def parameters_of(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return a function's named parameters, without ``self`` of a bound method."""
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {n: p for n, p in inspect.signature(function).parameters.items() if p.kind not in kinds}


def definition_of(function: Callable[..., Any]) -> ast.FunctionDef | None:
    """Return a function's syntax tree, or None where there is no source."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return None
    return next((node for node in tree.body if isinstance(node, ast.FunctionDef)), None)


def returned_names(function: Callable[..., Any]) -> list[str]:
    """Return what the last ``return`` of a function calls its values: "" for what has no name."""
    definition = definition_of(function)
    nested = [n for n in ast.walk(definition) if isinstance(n, ast.FunctionDef)][1:] if definition else []
    inner = {id(each) for node in nested for each in ast.walk(node)}
    returns = [
        node for node in (ast.walk(definition) if definition else ())
        if isinstance(node, ast.Return) and node.value is not None and id(node) not in inner
    ]  # fmt: skip
    if not returns:
        return []
    value = max(returns, key=lambda node: node.lineno).value
    return [_name(item) for item in value.elts] if isinstance(value, ast.Tuple) else [_name(value)]


def _name(node: ast.expr | None) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def roles_of(
    backward: Callable[..., Any], arguments: Collection[str], outputs: list[str], *, saves: bool
) -> list[Role]:
    """Return what each parameter of a backward is given; those left to their defaults are not among them.

    Parameters
    ----------
    backward
        The function.
    arguments
        The names of forward's parameters and of the inputs.
    outputs
        What forward calls what it returns.
    saves
        Whether forward returns more than one value, of which the last may be a cache.
    """
    roles: list[Role] = []
    parameters = parameters_of(backward)
    upstream = 0
    for name, parameter in parameters.items():
        optional = parameter.default is not parameter.empty
        last = len(roles) == len(parameters) - 1
        if saves and (plain(name) in SAVED or plain(name).endswith("cache")):
            roles.append(Role(name, "saved"))
        elif name in outputs and (saves or name not in arguments):
            roles.append(Role(name, "output", outputs.index(name)))
        elif name in arguments:
            roles.append(Role(name, "argument", name))
        elif plain(name) in RATES:
            roles.append(Role(name, "rate"))
        elif optional and not plain(name).startswith(("d", "grad", "up", "delta")):
            continue
        elif saves and upstream and last:
            roles.append(Role(name, "saved"))
        else:
            roles.append(Role(name, "upstream", upstream))
            upstream += 1
    return roles

"""What a function's signature and its source tell: its parameters and their roles, what it calls what it returns."""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache
from types import CodeType
from typing import Any, Literal, NamedTuple

from handgrad.checking.interfaces.names import (
    LEARNING_RATES,
    OPTIMISERS,
    RATES,
    SAVED,
    is_target,
    is_upstream_name,
    plain,
)


class Role(NamedTuple):
    """What one parameter of a backward is given."""

    parameter: str
    kind: Literal["argument", "place", "output", "saved", "upstream", "rate", "optimiser"]
    which: Any = (
        None  # the argument's name, the output's number, or the number of the upstream gradient's output
    )


def parameters_of(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return a function's named parameters, without ``self`` of a bound method."""
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {n: p for n, p in inspect.signature(function).parameters.items() if p.kind not in kinds}


def required(function: Callable[..., Any]) -> list[str]:
    """Return the parameters of a function that have no default."""
    return [name for name, each in parameters_of(function).items() if each.default is each.empty]


def definition_of(function: Callable[..., Any]) -> ast.FunctionDef | None:
    """Return a function's syntax tree, or None where there is no source; it is not to be changed."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return _definition(code, code.co_filename) if code is not None else None


@lru_cache(maxsize=1000)  # looking for a file takes longer than most backwards; two may have equal code
def _definition(code: CodeType, _file: str) -> ast.FunctionDef | None:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(code)))
    except (OSError, TypeError, SyntaxError):
        return None
    return next((node for node in tree.body if isinstance(node, ast.FunctionDef)), None)


def names_read(function: Callable[..., Any]) -> set[str]:
    """Return the names and attributes that a function's lines read."""
    return {*names_of(definition_of(function) or ast.Pass())}


def names_of(code: ast.AST) -> Iterator[str]:
    """Yield the names and the attributes in some code, each as often as it is there."""
    for node in ast.walk(code):
        if isinstance(node, ast.Name | ast.Attribute):
            yield node.id if isinstance(node, ast.Name) else node.attr


def file_of(function: Callable[..., Any]) -> ast.Module:
    """Return the syntax tree of a function's file, empty where there is none; it is not to be changed."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    name = code.co_filename if code is not None else ""
    return _tree_of(name, tuple(linecache.getlines(name)))


@lru_cache(maxsize=20)
def _tree_of(_file: str, lines: tuple[str, ...]) -> ast.Module:
    try:
        return ast.parse("".join(lines))
    except SyntaxError:  # no file of Python's
        return ast.Module([], [])


def steps_beside(function: Callable[..., Any]) -> frozenset[str]:
    """Return the names to which a function's file assigns steps, products with a learning rate: ``dW`` of ``dW = lr * …``."""
    return _steps_in(file_of(function))


@lru_cache(maxsize=20)
def _steps_in(tree: ast.Module) -> frozenset[str]:
    assigned = [each for each in ast.walk(tree) if isinstance(each, ast.Assign)]
    products = (
        (each.targets[0], node)
        for each in assigned
        for node in ast.walk(each.value)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)
    )
    return frozenset(
        _name_of(target)
        for target, product in products
        for side in (product.left, product.right)
        if isinstance(side, ast.Name | ast.Attribute) and plain(_name_of(side)) in LEARNING_RATES
    )


def returned_names(function: Callable[..., Any]) -> list[str]:
    """Return what the last ``return`` of a function calls its values: "" for what has no name.

    An entry of a container has its key for a name, or the container's: ``grads["dW"]`` is ``dW``, ``hs[-1]`` is ``hs``;
    none beside the container itself. A copy has the name of what is copied.
    """
    values = returned_values(function)
    whole = {each.id for each in values if isinstance(each, ast.Name)}
    names = map(_name_of, values)
    return [
        "" if isinstance(each, ast.Subscript) and name in whole else name
        for each, name in zip(values, names, strict=True)
    ]


def _name_of(value: ast.expr) -> str:
    match value:
        case ast.Subscript(slice=ast.Constant(str(key))):
            return key
        case (
            ast.Subscript(value=original)
            | ast.Call(func=ast.Attribute(value=original, attr="copy" | "clone" | "detach"))
        ):
            return _name_of(original)
    return getattr(value, "id", getattr(value, "attr", ""))


def returned_values(function: Callable[..., Any]) -> list[ast.expr]:
    """Return the values of a function's last ``return``; of a name that was made as a tuple, what is in it."""
    definition = definition_of(function)
    returned = list(_returned(definition))[-1:] if definition else []
    lists = returned and isinstance(returned[0], ast.List)
    return [
        each for value in returned for each in _parts(value, definition, ast.List if lists else ast.Tuple)
    ]


def returns_residual(function: Callable[..., Any]) -> bool:
    """Whether a function returns the difference of something and a target that it takes: ``return x @ w - y``."""
    match returned_values(function):
        case [ast.BinOp(left, ast.Sub(), right)]:
            sides = {ast.unparse(left), ast.unparse(right)}
            return any(is_target((each,)) for each in sides & parameters_of(function).keys())
    return False


def inner_names(function: Callable[..., Any]) -> dict[int, list[str]]:
    """Return the names in each tuple or list among what a function returns: ``return loss, (dW, db)``."""
    definition = definition_of(function)
    values = enumerate(returned_values(function))
    found = {
        k: [_name_of(each) for each in _parts(value, definition, ast.Tuple | ast.List)] for k, value in values
    }
    return {k: names for k, names in found.items() if all(names) and len(set(names)) == len(names) > 1}


def _parts(value: ast.expr, definition: ast.FunctionDef | None, kind: Any = ast.Tuple) -> list[ast.expr]:
    """Return what is in a tuple, or in the one that a name was made as, the only time that it is assigned; else the value."""
    if isinstance(value, ast.Name) and definition is not None:
        stored = [each for each in ast.walk(definition) if isinstance(each, ast.Name) and each.id == value.id]
        made = [
            each.value for each in ast.walk(definition)
            if isinstance(each, ast.Assign) and [ast.unparse(target) for target in each.targets] == [value.id]
        ]  # fmt: skip
        if len(made) == 1 == sum(isinstance(each.ctx, ast.Store) for each in stored) and isinstance(
            made[0], kind
        ):
            value = made[0]
    return value.elts if isinstance(value, kind) else [value]


def _returned(node: ast.AST) -> Iterator[ast.expr]:
    """Yield what a function returns; functions within it are not entered."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Return) and child.value is not None:
            yield child.value
        elif not isinstance(child, ast.FunctionDef):
            yield from _returned(child)


def roles_of(
    backward: Callable[..., Any],
    arguments: Collection[str],
    outputs: list[str],
    *,
    saves: bool,
    arrays: int = 1,
) -> list[Role]:
    """Return what each parameter of a backward is given; those left to their defaults are not among them.

    ``arguments`` are the names of forward's parameters and of the inputs, ``outputs`` what forward calls what it
    returns. It ``saves`` where it returns more than one value, of which the last may be a cache: not if all of them
    are ``arrays``, each with an upstream gradient.
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
        elif plain(name) in OPTIMISERS and not optional:
            roles.append(Role(name, "optimiser"))
        elif optional and not is_upstream_name(name):
            continue
        elif saves and upstream and last and not (upstream < arrays and is_upstream_name(name)):
            roles.append(Role(name, "saved"))
        else:
            roles.append(Role(name, "upstream", upstream))
            upstream += 1
    return roles

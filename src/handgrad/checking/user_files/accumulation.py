"""A training loop that adds gradients up from step to step: its backward adds to them, and nothing sets them to 0."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from handgrad.checking.interfaces import has_update, is_chain_name
from handgrad.checking.interfaces.names import is_gradient_name, plain, words_of
from handgrad.checking.repair.module_source import called
from handgrad.checking.user_files.candidates import UPDATING


def never_set_to_zero(tree: ast.Module) -> tuple[int, str] | None:
    """Return the line of the first training loop whose gradients add up, and their attribute; or None.

    An object's ``__init__`` sets them to 0 once. What sets them in another function counts where the file calls it.
    """
    every = [*_with_functions(tree)]
    calls = {called(node) for node, _ in every} - {""}
    added = {
        name for node, _ in every
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add)
        for name in [_attribute(node.target)] if is_gradient_name(name)
    }  # fmt: skip
    running = calls - {"__init__"} | {""}
    is_set = any(added & {*_set_by(node)} for node, function in every if function in running)
    is_set = is_set or any(plain(name).startswith(("zerograd", "resetgrad", "cleargrad")) for name in calls)
    loops = (
        node
        for node, function in every
        if isinstance(node, ast.For | ast.While) and not is_chain_name(function)
    )
    loop = next(filter(_trains, loops), None)
    return (loop.lineno, min(added)) if added and loop is not None and not is_set else None


def _with_functions(node: ast.AST, function: str = "") -> Iterator[tuple[ast.AST, str]]:
    """Yield the nodes of a tree, each with the name of the function that it is in."""
    for child in ast.iter_child_nodes(node):
        yield child, function
        inner = child.name if isinstance(child, ast.FunctionDef) else function
        yield from _with_functions(child, inner)


def _attribute(target: ast.expr) -> str:
    """Return the attribute that a target is, or of which it is an entry: ``grad`` of ``self.grad["W"]``."""
    while isinstance(target, ast.Subscript):
        target = target.value
    return target.attr if isinstance(target, ast.Attribute) else ""


def _set_by(node: ast.AST) -> list[str]:
    """Return the attributes that a node sets as a whole, whatever they were: ``dW = …``, ``dW[...] = 0``, ``dW.fill(0)``."""
    match node:
        case ast.Assign(targets):
            return [*map(_attribute, targets)]
        case ast.AugAssign(target, ast.Mult()):
            return [_attribute(target)]
        case ast.Call(ast.Attribute(value, "fill")):
            return [_attribute(value)]
    return []


def _trains(loop: ast.For | ast.While) -> bool:
    """Whether a loop calls a backward, and updates something or calls what does."""
    names = {called(each) for each in ast.walk(loop)} - {""}
    updates = has_update(loop) or any({*words_of(name)} & {*UPDATING} for name in names)
    return any(map(is_chain_name, names)) and updates

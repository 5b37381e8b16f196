"""The difference of an output and its target in a script that computes no loss."""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Collection
from typing import NamedTuple

from handgrad.checking.interfaces.script_updates import Statements, every, is_attribute, moved_by, names_in

OWN = "a call"  # among what a name is made of: a function of the file's


class Error(NamedTuple):
    """What a statement subtracts: an output, which depends on parameters, and its target, as they are written."""

    statement: ast.stmt
    output: str
    target: str


def error_in(statements: Statements, moved: Collection[str]) -> Error | None:
    """Return the first difference of what depends on the moved parameters, by any call too, and what does not.

    Within comprehensions it is looked for where there is none outside.
    """
    return _error_in(statements, moved) or _error_in(statements, moved, of_lists=True)


def _error_in(statements: Statements, moved: Collection[str], *, of_lists: bool = False) -> Error | None:
    made: dict[str, set[str]] = {}

    def depends(side: ast.expr) -> bool:
        reads = names_in([side])
        calls = (node.func for node in ast.walk(side) if isinstance(node, ast.Call))
        own = any(
            is_attribute(each) or (isinstance(each, ast.Name) and not hasattr(builtins, each.id))
            for each in calls
        )
        return own or bool(reads.union(*(made.get(name, set()) for name in reads)) & {*moved, OWN})

    for statement in every(statements):
        parts = [statement.iter] if isinstance(statement, ast.For) else [statement]
        simple = not isinstance(statement, ast.While | ast.If | ast.With)
        own_step = ast.dump(_own_step(statement) or ast.Pass())
        change = _OfLists() if of_lists else _WithoutLists()
        whole = [change.visit(copy.deepcopy(part)) for part in parts]
        for node in (node for part in whole * simple for node in ast.walk(part)):
            match node:
                case ast.BinOp(left, ast.Sub(), right) if (
                    not isinstance(left, ast.Constant) and ast.dump(node) != own_step
                ):
                    one, other = depends(left), depends(right)
                    if one != other and names_in([left]) and names_in([right]):
                        sides = ast.unparse(left), ast.unparse(right)
                        return Error(statement, *(sides if one else sides[::-1]))
        if isinstance(statement, ast.Assign | ast.AugAssign | ast.For):
            value = statement.iter if isinstance(statement, ast.For) else statement.value
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            reads = names_in([value], ast.Load) | ({OWN} if depends(value) else set())
            reads = reads.union(*(made.get(name, set()) for name in reads))
            for name in names_in(list(targets), ast.Store):
                made[name] = made.get(name, set()) | reads
    return None


class _WithoutLists(ast.NodeTransformer):
    """Leaves out comprehensions, whose variables have no value outside."""

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        return ast.copy_location(ast.List([], ast.Load()), node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.AST:
        return ast.copy_location(ast.Tuple([], ast.Load()), node)


class _OfLists(ast.NodeTransformer):
    """Writes comprehensions as what they do to whole lists: ``out - t`` of ``[o - each for o, each in zip(out, t)]``."""

    def __init__(self) -> None:
        self.lists: dict[str, ast.expr] = {}  # by the name of an entry
        self.indices: set[str] = set()

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        for each in node.generators:
            self._enter(each.target, each.iter)
        return self.visit(node.elt)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self.lists.get(node.id, node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if isinstance(node.slice, ast.Name) and node.slice.id in self.indices:
            return self.visit(node.value)
        return self.generic_visit(node)

    def _enter(self, target: ast.expr, values: ast.expr) -> None:
        match target, values:
            case ast.Name(name), ast.Call(ast.Name("range")):
                self.indices.add(name)
            case ast.Name(name), _:
                self.lists[name] = values
            case ast.Tuple([ast.Name(name), inner]), ast.Call(ast.Name("enumerate"), [entries]):
                self.indices.add(name)
                self._enter(inner, entries)
            case ast.Tuple(entries), ast.Call(ast.Name("zip"), lists):
                for one, many in zip(entries, lists, strict=False):
                    self._enter(one, many)


def _own_step(statement: ast.stmt) -> ast.expr | None:
    """Return the difference that an update itself is: ``W - lr * dW`` of ``W = W - lr * dW``."""
    return statement.value if isinstance(statement, ast.Assign) and moved_by(statement) else None

"""Mutants that Cosmic Ray does not make: statements and calls left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from cosmic_ray.ast import get_ast
from cosmic_ray.operators.operator import Operator


class Remove(Operator):
    """Removes a node, or puts a part of it in its place."""

    def part(self, node: Any) -> Any:
        """Return what stands in the node's place, or None where the node stays."""
        raise NotImplementedError

    def mutation_positions(self, node: Any) -> Iterator[Any]:
        """Yield where a node is, if it can be removed."""
        if self.part(node) is not None:
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        """Return what stands in the node's place, indented as the node is."""
        part = self.part(node)
        part.get_first_leaf().prefix = node.get_first_leaf().prefix
        return part

    @classmethod
    def examples(cls) -> Sequence[Any]:
        """Return none."""
        return ()


class RemoveStatement(Remove):
    """Leaves out a call whose result nobody takes, a ``raise``, or an assignment into what is there."""

    def part(self, node: Any) -> Any:
        """Return ``pass`` for such a statement."""
        if node.type != "simple_stmt":
            return None
        statement = node.children[0]
        if statement.type == "expr_stmt":
            goes = is_call(statement.children[0]) or getattr(statement.children[1], "value", "=") not in "=:"
        else:
            goes = statement.type == "raise_stmt" or is_call(statement)
        return get_ast("pass\n").children[0] if goes else None


class RemoveCall(Remove):
    """Puts ``x`` in the place of ``x.T``, ``x.method(...)`` and ``function(x, ...)``."""

    def part(self, node: Any) -> Any:
        """Return ``x``."""
        if not is_call(node) or node.parent.type in ("decorator", "simple_stmt"):
            return None
        *inner, last = node.children
        if last.get_code() == ".T":
            return copied(*inner)
        if not last.get_code().startswith("("):
            return None
        if inner[-1].get_code().startswith(".") and inner[0].get_code().strip() != "np":
            return copied(*inner[:-1])
        given = last.children[1]
        first = given.children[0] if given.type == "arglist" else given
        return None if first.type in ("operator", "argument") else copied(first)


def is_call(node: Any) -> bool:
    """Whether a node is a name with what follows it: a call, an attribute, an element."""
    return node.type in ("power", "atom_expr") and node.children[-1].type == "trailer"


def copied(*nodes: Any) -> Any:
    """Return the code of some nodes as a new node."""
    return get_ast("".join(node.get_code() for node in nodes).strip()).children[0]

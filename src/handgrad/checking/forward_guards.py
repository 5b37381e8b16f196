"""Small numbers that guard forward against log(0) or a division by zero, as in ``np.log(p + 1e-9)``, left out for a while.

Backward is mostly the gradient of forward without them, so that no edit of it would be exact.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import CodeType


@dataclass(frozen=True)
class Guard:
    """A number that is added in a line of a file."""

    path: Path
    line: int
    value: float

    def is_forward_s_alone(self, guards: Collection[Guard]) -> bool:
        """Whether the number, or a name for it, stands in this line, and in no line that no guard is in.

        Else it cannot be left out, or backward has it too.
        """
        lines = {each.line for each in guards if (each.path, each.value) == (self.path, self.value)}
        found = {
            node.lineno
            for node in (ast.walk(self.tree) if self.tree is not None else ())
            if isinstance(node, ast.expr) and not _is_target(node) and id(node) not in self.given
            if self.is_meant(node)
        }
        return self.line in found <= lines

    def is_meant(self, node: ast.expr) -> bool:
        """Whether an expression is the number, or a name for it."""
        return self._is_number(node) or _name(node) in self.names

    def _is_number(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Constant) and type(node.value) is float and node.value == self.value

    @cached_property
    def tree(self) -> ast.Module | None:
        """The file's tree, if it has one."""
        try:
            return ast.parse(self.path.read_bytes())
        except (OSError, SyntaxError):
            return None

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of variables, attributes and parameters that are given this number."""
        return frozenset(name for name, value in self._assigned if name and self._is_number(value))

    @cached_property
    def given(self) -> frozenset[int]:
        """The expressions, by their ids, that are given to a name as they are, ``self.eps = eps``."""
        return frozenset(id(value) for _, value in self._assigned)

    @cached_property
    def _assigned(self) -> list[tuple[str, ast.expr]]:
        found: list[tuple[str, ast.expr]] = []
        for node in ast.walk(self.tree) if self.tree is not None else ():
            match node:
                case ast.Assign(targets=targets, value=value):
                    found += [(_name(each), value) for each in targets]
                case ast.arguments(args=args, defaults=[_, *_] as defaults):
                    found += [
                        (each.arg, value)
                        for each, value in zip(args[-len(defaults) :], defaults, strict=True)
                    ]
        return found


def _is_target(node: ast.expr) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Store)


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


_left_out: list[Guard] = []


@contextmanager
def left_out(guards: Sequence[Guard]) -> Iterator[None]:
    """Let what is compiled meanwhile have 0 for guards."""
    _left_out.extend(guards)
    try:
        yield
    finally:
        del _left_out[len(_left_out) - len(guards) :]


def compiled_without_guards(tree: ast.Module, path: Path) -> CodeType:
    """Compile a tree with 0 for the guards that are left out; the tree stays as it is."""
    guards, before = [each for each in _left_out if each.path == path], []
    for node in ast.walk(tree) if guards else ():
        for side in ("left", "right") if isinstance(node, ast.BinOp) else ():
            number = getattr(node, side)
            if any(each.line == number.lineno and each.is_meant(number) for each in guards):
                before.append((node, side, number))
                setattr(node, side, ast.copy_location(ast.Constant(0.0), number))
    try:
        code: CodeType = compile(tree, str(path), "exec")
    finally:
        for node, side, number in before:
            setattr(node, side, number)
    return code

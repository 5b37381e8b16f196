"""The user's file as text and as a tree, and changes made in the tree."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np

from handgrad.errors import HandgradError

Node = ast.expr | ast.stmt


class SourceError(HandgradError):
    """There is no source to edit: typed at a prompt, built by exec, or changed since it was loaded."""


@dataclass(frozen=True)
class Edit:
    """One node and what stands in its place.

    Attributes
    ----------
    old
        An expression or statement of the tree.
    new
        An expression for an expression; statements for a statement, none to remove it. They may hold nodes of
        the tree, ``old`` itself too: as the last statement, it is one that others are put in front of.
    """

    old: Node
    new: ast.expr | tuple[ast.stmt, ...]


@dataclass(frozen=True)
class Change:
    """Edits that belong together.

    Attributes
    ----------
    edits
        Of nodes that do not hold each other.
    cost
        About the number of tokens that change.
    undoes, makes
        The mistake that it mends in a wrong backward, and the one that it makes in a right one.
    alike
        The same text for edits of several places that may be one mistake, or "".
    description
        What it does, where the edits would be too much to read.
    """

    edits: tuple[Edit, ...]
    cost: float
    undoes: str = ""
    makes: str = ""
    alike: str = ""
    description: str = ""


class ModuleSource:
    """A module's text, the functions and classes in it, and which of them a backward reaches."""

    def __init__(
        self, path: Path, text: str, encoding: str, forward: str, backward: str, names: dict[str, Any]
    ):
        self.path, self.text, self.encoding = path, text, encoding
        self.forward, self.backward = forward, backward
        self.globals = names
        try:
            self.tree = ast.parse(text)
        except SyntaxError as error:
            raise SourceError(f"{path}: cannot be read as Python: {error.msg}, line {error.lineno}") from None
        self.units = {
            node.name: node
            for node in self.tree.body
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in names
        }
        if not isinstance(self.units.get(backward), ast.FunctionDef):
            raise SourceError(f"{path}: backward is {backward!r}, and no function of the file is called that")

    def changed(self, text: str) -> ModuleSource:
        """Return the same module with other text."""
        return ModuleSource(self.path, text, self.encoding, self.forward, self.backward, self.globals)

    @cached_property
    def numpy(self) -> str:
        """What the file calls NumPy."""
        return next((name for name, value in self.globals.items() if value is np), "np")

    @cached_property
    def parents(self) -> dict[int, tuple[ast.AST, str, int | None]]:
        """Where a node hangs, by its id: parent, field, place in the field's list."""
        return {
            id(child): (parent, field, index)
            for parent in ast.walk(self.tree)
            for child, field, index in _children(parent)
        }

    @cached_property
    def calls(self) -> dict[int, frozenset[str]]:
        """The names of the functions and methods that a node and those inside it call, by its id."""
        found: dict[int, frozenset[str]] = {}
        for node in reversed(list(ast.walk(self.tree))):
            found[id(node)] = calls_in(node, found)
        return found

    @cached_property
    def codes(self) -> dict[str, CodeType]:
        """Every unit compiled by itself."""
        return {name: compile_unit(unit, str(self.path)) for name, unit in self.units.items()}

    def reachable(self, start: str) -> list[str]:
        """Return the units that one of them names, directly or through others or their objects; itself first."""
        found = [start] if start in self.units else []
        for name in found:
            for node in ast.walk(self.units[name]):
                if isinstance(node, ast.Name):
                    found += [unit for unit in self._behind(node.id) if unit not in found]
        return found

    @cached_property
    def functions_of_one(self) -> list[ast.expr]:
        """The functions of one argument that forward and backward call, but not forward itself."""
        found = {
            ast.unparse(node.func): node.func
            for name in dict.fromkeys([*self.reachable(self.forward), *self.reachable(self.backward)])
            for node in ast.walk(self.units[name])
            if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords
        }
        return [
            node
            for text, node in found.items()
            if (text.startswith(f"{self.numpy}.") and text.count(".") == 1)
            or (text in self.units and text not in (self.forward, self.backward))
        ]

    def _behind(self, name: str) -> set[str]:
        """Return the units that a name of the module leads to: itself, or the classes of the objects it holds."""
        return {name} if name in self.units else self.classes_of(self.globals.get(name))

    def classes_of(self, value: Any) -> set[str]:
        """Return which of the file's classes an object, or the objects of a container, belong to."""
        kinds = {type(item) for item in held(value)}
        return {
            kind.__name__
            for kind in kinds
            if kind.__name__ in self.units and self.globals.get(kind.__name__) is kind
        }

    def parameters(self, name: str) -> list[str]:
        """Return the positional parameters of a function of the file."""
        unit = self.units.get(name)
        if not isinstance(unit, ast.FunctionDef):
            return []
        return [argument.arg for argument in [*unit.args.posonlyargs, *unit.args.args]]

    def unit_of(self, node: ast.AST) -> str:
        """Return the name of the unit that a node stands in."""
        while id(node) in self.parents:
            parent = self.parents[id(node)][0]
            if parent is self.tree:
                break
            node = parent
        return str(getattr(node, "name", ""))

    def statement_of(self, node: ast.AST) -> ast.stmt:
        """Return the innermost statement that holds a node."""
        while not isinstance(node, ast.stmt):
            node = self.parents[id(node)][0]
        return node

    def function_of(self, node: ast.AST) -> ast.FunctionDef:
        """Return the innermost function that holds a node."""
        while not isinstance(node, ast.FunctionDef):
            node = self.parents[id(node)][0]
        return node

    def put(self, change: Change) -> Callable[[], None]:
        """Make a change in the tree; the function returned takes it back."""
        undo = [self.put_one(edit) for edit in change.edits]

        def take_back() -> None:
            for step in reversed(undo):
                step()

        return take_back

    def put_one(self, edit: Edit) -> Callable[[], None]:
        """Make one edit in the tree; the function returned takes it back."""
        parent, field, index = self.parents[id(edit.old)]
        if index is None:
            setattr(parent, field, edit.new)
            return lambda: setattr(parent, field, edit.old)
        siblings: list[Any] = getattr(parent, field)
        before = list(siblings)
        place = index
        if index >= len(siblings) or siblings[index] is not edit.old:  # an edit before this one moved it
            place = next(k for k, node in enumerate(siblings) if node is edit.old)
        new = list(edit.new) if isinstance(edit.new, tuple) else [edit.new]
        siblings[place : place + 1] = new
        if not siblings:
            siblings.append(_at(ast.Pass(), edit.old))

        def take_back() -> None:
            siblings[:] = before

        return take_back

    def segment(self, node: Node) -> str:
        """Return a node's own text."""
        start, end = self.span(node)
        return self.text[start:end]

    def span(self, node: Node) -> tuple[int, int]:
        """Return where a node's text starts and ends, in characters of the file."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._offset(node.lineno, node.col_offset), self._offset(node.end_lineno, node.end_col_offset)

    @cached_property
    def lines(self) -> list[tuple[int, str]]:
        """Where each line starts, in characters of the file, and its text."""
        starts, at = [], 0
        for line in io.StringIO(self.text, newline=""):
            starts.append((at, line))
            at += len(line)
        return starts

    def _offset(self, line: int, column: int) -> int:
        """Return a place that the tree gives as line and UTF-8 column, in characters."""
        start, text = self.lines[line - 1]
        return start + len(text.encode()[:column].decode())


def held(value: Any) -> Iterator[Any]:
    """Yield an object, or what stands in a container and the containers in it: each once, for one may hold itself."""
    left, seen = [value], set()
    while left:
        item = left.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, list | tuple | dict):
            left += item.values() if isinstance(item, dict) else item
        else:
            yield item


def read_source(forward: Callable[..., Any], backward: Callable[..., Any]) -> ModuleSource:
    """Read the file of two functions of one module.

    Raises
    ------
    SourceError
        When there is no such file, or it is not what was loaded.
    """
    code = getattr(backward, "__code__", None)
    path = Path(code.co_filename) if code is not None else Path()
    if code is None or not path.is_file():
        raise SourceError("backward has no source file", fix="put it into a file and import it from there")
    content = path.read_bytes()
    encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
    names = backward.__globals__
    if names.get(backward.__name__) is not backward:
        raise SourceError(f"{path}: backward is not the file's own {backward.__name__!r}")
    own = names.get(getattr(forward, "__name__", "")) is forward
    source = ModuleSource(
        path, content.decode(encoding), encoding, forward.__name__ if own else "", backward.__name__, names
    )
    first = source.units[backward.__name__]
    assert isinstance(first, ast.FunctionDef)
    if code.co_firstlineno not in {first.lineno, *(item.lineno for item in first.decorator_list)}:
        raise SourceError(f"{path}: changed since it was loaded")
    return source


def compile_unit(unit: ast.stmt, path: str) -> CodeType:
    """Compile one top-level function or class by itself; every node of it has its place in the text."""
    return compile(ast.Module([unit], []), path, "exec")


def called(node: ast.AST) -> str:
    """Return the name of the function or method that a node calls, or ""."""
    function = node.func if isinstance(node, ast.Call) else None
    return getattr(function, "attr", getattr(function, "id", ""))


def calls_in(node: ast.AST, known: Mapping[int, frozenset[str]]) -> frozenset[str]:
    """Return the names of the functions and methods that a tree calls, some of whose nodes are known."""
    if id(node) in known:
        return known[id(node)]
    inside = (calls_in(child, known) for child in ast.iter_child_nodes(node))
    return frozenset({called(node)} - {""}).union(*inside)


def settle(new: ast.AST, old: Node, source: ModuleSource) -> None:
    """Make new nodes fit: a place in the text, as compile asks for, and NumPy by the file's name for it."""
    if id(new) in source.parents:  # the tree's own, with all that it holds
        return
    if isinstance(new, ast.expr | ast.stmt | ast.keyword | ast.arg) and not hasattr(new, "lineno"):
        _at(new, old)
        if isinstance(new, ast.Name) and new.id == "np":
            new.id = source.numpy
    for node in ast.iter_child_nodes(new):
        settle(node, old, source)


def _at(node: Any, old: Node) -> Any:
    node.lineno, node.col_offset = old.lineno, old.col_offset
    node.end_lineno, node.end_col_offset = old.end_lineno, old.end_col_offset
    return node


def _children(parent: ast.AST) -> Iterator[tuple[ast.AST, str, int | None]]:
    for field, value in ast.iter_fields(parent):
        if isinstance(value, ast.AST):
            yield value, field, None
        elif isinstance(value, list):
            yield from ((item, field, k) for k, item in enumerate(value) if isinstance(item, ast.AST))

"""The user's file as text and as a tree: edits are made in the tree, and written back into the text.

Only the text of the nodes that change is replaced: comments, spacing and the spelling of numbers stay.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, product
from pathlib import Path
from types import CodeType
from typing import Any, TypeVar

import numpy as np

from handgrad.errors import HandgradError

Node = ast.expr | ast.stmt
Kind = TypeVar("Kind", bound=ast.AST)
Splice = tuple[int, int, str]  # from where to where in the text, and what comes there

MOST_SPELLINGS = 256  # ways to set brackets around the user's own parts of new code
ATOMS = (
    ast.Name,
    ast.Constant,
    ast.Call,
    ast.Attribute,
    ast.Subscript,
    ast.List,
    ast.Dict,
)  # need no brackets


class SourceError(HandgradError):
    """There is no source to edit: typed at a prompt, built by exec, or changed since it was loaded."""


@dataclass(frozen=True)
class Edit:
    """A node of the tree and what takes its place: an expression; or statements, none to remove it.

    What is new may hold nodes of the tree, the old one too: a statement that others are put in front of.
    """

    old: Node
    new: ast.expr | tuple[ast.stmt, ...]

    @property
    def parts(self) -> tuple[ast.AST, ...]:
        """What is new, as trees."""
        return self.new if isinstance(self.new, tuple) else (self.new,)


@dataclass(frozen=True)
class Change:
    """Edits that belong together, of nodes that do not hold each other."""

    edits: tuple[Edit, ...]
    cost: float  # about the number of tokens that change
    undoes: str = ""  # the mistake that it mends in a wrong backward
    makes: str = ""  # the mistake that it makes in a right one
    alike: str = ""  # the same text for changes at several places that may be one mistake
    description: str = ""  # what it does, where the edits would be too much to read


class ModuleSource:
    """A module's text, the functions and classes in it, and which of them a backward reaches."""

    def __init__(
        self, path: Path, text: str, encoding: str, forward: str, backward: str, names: dict[str, Any]
    ):
        self.path, self.text, self.encoding = path, text, encoding
        self.forward, self.backward, self.globals = forward, backward, names
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
        self.numpy = next((name for name, value in names.items() if value is np), "np")
        self.parents: dict[int, tuple[ast.AST, str]] = {  # of each node, by its id, with its field
            id(child): (parent, field)
            for parent in ast.walk(self.tree)
            for field, value in ast.iter_fields(parent)
            for child in (value if isinstance(value, list) else [value])
            if isinstance(child, ast.AST)
        }
        self.unit_of = {id(node): name for name, unit in self.units.items() for node in ast.walk(unit)}

    def with_text(self, text: str) -> ModuleSource:
        """Return the same module with other text."""
        return ModuleSource(self.path, text, self.encoding, self.forward, self.backward, self.globals)

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
        return {name: self.compile(unit) for name, unit in self.units.items()}

    def compile(self, unit: ast.stmt) -> CodeType:
        """Compile one top-level function or class by itself; every node of it has its place in the text."""
        return compile(ast.Module([unit], []), str(self.path), "exec")

    def reachable(self, start: str) -> list[str]:
        """Return the units that one of them names, directly or through others or their objects; itself first."""
        found = [start] if start in self.units else []
        for name in found:
            for node in ast.walk(self.units[name]):
                if isinstance(node, ast.Name):
                    behind = (
                        {node.id} if node.id in self.units else self.classes_of(self.globals.get(node.id))
                    )
                    found += [unit for unit in behind if unit not in found]
        return found

    @cached_property
    def functions_of_one(self) -> list[ast.expr]:
        """The functions of one argument that forward and backward call, but not those two: the file's and NumPy's."""
        units = dict.fromkeys([*self.reachable(self.forward), *self.reachable(self.backward)])
        calls = (node for name in units for node in ast.walk(self.units[name]) if isinstance(node, ast.Call))
        found = {
            ast.unparse(call.func): call.func for call in calls if len(call.args) == 1 and not call.keywords
        }
        names = {*self.units, *(f"{self.numpy}.{name}" for name in dir(np))} - {self.forward, self.backward}
        return [function for text, function in found.items() if text in names]

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

    def enclosing(self, node: ast.AST, kind: type[Kind]) -> Kind:
        """Return the innermost node of a kind that holds a node."""
        while not isinstance(node, kind):
            node = self.parents[id(node)][0]
        return node

    @contextmanager
    def edited(self, edits: Sequence[Edit]) -> Iterator[None]:
        """Make edits in the tree, until the context ends."""
        for edit in edits:
            for part in edit.parts:
                self._settle(part, edit.old)
        parts = {id(edit.old): edit.parts for edit in edits}
        holders = [self.parents[id(edit.old)] for edit in edits]
        before = [(holder, field, getattr(holder, field)) for holder, field in holders]
        for holder, field, value in before:
            if isinstance(value, list):
                new = [part for item in value for part in parts.get(id(item), (item,))]
                setattr(holder, field, new or [ast.copy_location(ast.Pass(), value[0])])
            else:
                setattr(holder, field, parts[id(value)][0])
        try:
            yield
        finally:
            for holder, field, value in before:
                setattr(holder, field, value)

    def _settle(self, new: ast.AST, old: Node) -> None:
        """Give new nodes a place in the text, as compile asks for, and NumPy the file's name for it."""
        if id(new) in self.parents:  # the tree's own, with all that it holds
            return
        if isinstance(new, ast.Name) and new.id == "np":
            new.id = self.numpy
        if "lineno" in new._attributes and not hasattr(new, "lineno"):
            ast.copy_location(new, old)
        for child in ast.iter_child_nodes(new):
            self._settle(child, old)

    def segment(self, node: Node) -> str:
        """Return a node's own text."""
        start, end = self.span(node)
        return self.text[start:end]

    def span(self, node: Node) -> tuple[int, int]:
        """Return where a node's text starts and ends, in characters of the file."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset)

    def offset(self, line: int, column: int) -> int:
        """Return a place that the tree gives as line and UTF-8 column, in characters of the file."""
        lines = self.text.encode().splitlines(keepends=True)
        return len(b"".join([*lines[: line - 1], lines[line - 1][:column]]).decode())


def called(node: ast.AST) -> str:
    """Return the name of the function or method that a node calls, or ""."""
    function = node.func if isinstance(node, ast.Call) else None
    return getattr(function, "attr", getattr(function, "id", ""))


def calls_in(node: ast.AST, known: Mapping[int, frozenset[str]]) -> frozenset[str]:
    """Return the names of the functions and methods that a tree calls, some of whose nodes are known."""
    if id(node) in known:
        return known[id(node)]
    found = {called(node)} if isinstance(node, ast.Call) else set()
    for child in ast.iter_child_nodes(node):
        if child._fields:  # no operator, and no context
            found |= calls_in(child, known)
    return frozenset(found)


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
    """Read the file of two functions of one module; raise SourceError where there is none, or another was loaded."""
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
    if code.co_firstlineno not in {first.lineno, *(item.lineno for item in first.decorator_list)}:
        raise SourceError(f"{path}: changed since it was loaded")
    return source


def text_with(source: ModuleSource, change: Change) -> str | None:
    """Return the file's text with a change made, or None when it cannot be written."""
    found = splices(source, change)
    return _spliced(source.text, found) if found is not None else None


def splices(source: ModuleSource, change: Change) -> list[Splice] | None:
    """Return what a change does to the text, edit by edit: the first spelling that parses as the changed tree."""
    found = []
    for edit in change.edits:
        with source.edited([edit]):
            wanted = _normal(source.tree)
        spelt = _expressions(source, edit) if isinstance(edit.new, ast.expr) else _statements(source, edit)
        found.append(next((s for s in spelt if _normal(_spliced(source.text, [s])) == wanted), None))
    return None if None in found else [splice for splice in found if splice is not None]


def _expressions(source: ModuleSource, edit: Edit) -> Iterator[Splice]:
    """Yield ways to write an expression in another's place, the plainest first."""
    start, end = source.span(edit.old)
    in_brackets = source.text[start - 1 : start] == "(" and source.text[end : end + 1] == ")"
    for new in _spellings(source, edit.new):
        if in_brackets and isinstance(edit.new, ATOMS):
            yield start - 1, end + 1, new
        yield start, end, new
        yield start, end, f"({new})"


def _statements(source: ModuleSource, edit: Edit) -> Iterator[Splice]:
    """Yield ways to write statements in a statement's place; one that is removed takes its line along."""
    start, end = source.span(edit.old)
    line_start, stop = source.offset(edit.old.lineno, 0), source.text.find("\n", end) + 1 or len(source.text)
    indent, rest = source.text[line_start:start], source.text[end:stop]
    alone = not indent.strip()
    if not edit.parts:
        if alone and rest.lstrip()[:1] in ("", "#"):
            yield line_start, stop, ""
        yield start, end, "pass"
        return
    newline = ("\r\n" if "\r\n" in source.text else "\n") + indent if alone else "; "
    before = edit.parts[-1] is edit.old  # the others are put in front of it
    for written in product(*(_spellings(source, node) for node in edit.parts[: -1 if before else None])):
        yield (start, start, newline.join([*written, ""])) if before else (start, end, newline.join(written))


def _spellings(source: ModuleSource, new: Any) -> Iterator[str]:
    """Yield ways to write a node, the fewest brackets first; the nodes of the tree in it keep their text."""
    own: list[Node] = []
    written = ast.unparse(ast.fix_missing_locations(_with_gaps(source, new, own)))
    choices = [(False,) if isinstance(node, ATOMS) else (False, True) for node in own]
    for brackets in sorted(islice(product(*choices), MOST_SPELLINGS), key=sum):
        text = written
        for k, (node, bracket) in enumerate(zip(own, brackets, strict=True)):
            segment = source.segment(node)
            text = text.replace(f"__gap{k}__", f"({segment})" if bracket else segment)
        yield text


def _with_gaps(source: ModuleSource, node: Any, own: list[Node]) -> Any:
    """Return a copy with a name in place of each of the user's own parts, which are collected."""
    if isinstance(node, list):
        return [_with_gaps(source, item, own) for item in node]
    if not isinstance(node, ast.AST):
        return node
    if isinstance(node, ast.expr | ast.stmt) and id(node) in source.parents:
        own.append(node)
        gap = ast.Name(f"__gap{len(own) - 1}__", ast.Load())
        return ast.Expr(gap) if isinstance(node, ast.stmt) else gap
    return type(node)(**{field: _with_gaps(source, value, own) for field, value in ast.iter_fields(node)})


def _spliced(text: str, splices: Sequence[Splice]) -> str:
    for start, end, new in sorted(splices, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _normal(tree: ast.Module | str) -> str:
    """Return what two texts of the same meaning have in common."""
    try:
        return ast.dump(ast.parse(ast.unparse(ast.parse(tree) if isinstance(tree, str) else tree)))
    except SyntaxError:
        return ""

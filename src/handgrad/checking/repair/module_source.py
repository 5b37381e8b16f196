"""The user's file as text and as a tree, in which edits are made, and the functions of it that run."""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeVar

import numpy as np

from handgrad.checking.forward_guards import compiled_without_guards
from handgrad.checking.live_code import codes_in, functions_of
from handgrad.checking.subject import Subject
from handgrad.errors import HandgradError

Node = ast.expr | ast.stmt
Definition = ast.FunctionDef | ast.Lambda
Reached = Mapping[FunctionType, int]  # the functions that a call reaches, with the number of callers
Kind = TypeVar("Kind", bound=ast.AST)

TORCH = {"axis": "dim", "keepdims": "keepdim"}  # PyTorch's names of NumPy's options
LONGEST_FACTOR = 20  # nodes of a tree
NUMPY = {theirs: name for name, theirs in TORCH.items()}


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
    description: str = ""  # what it does, where the edits would be too much to read
    is_new: bool = False  # whether a gradient is written anew, from forward's trace


class ModuleSource:
    """A file's text, and where in it the functions stand that a backward reaches."""

    def __init__(
        self,
        path: Path,
        text: str,
        encoding: str,
        functions: Mapping[FunctionType, int],
        forward: Collection[FunctionType] = (),
        ranks: Mapping[FunctionType, int] | None = None,
        *,
        in_one: bool = False,
    ):
        """Read a file.

        ``functions`` are those that backward reaches, each with the number of its callers among them; ``forward``
        reaches others, or where ``in_one`` the same. ``ranks`` says which of the definitions of one name are theirs,
        where the text is not theirs.
        """
        self.in_one = in_one
        self.path, self.text, self.encoding = path, text, encoding
        try:
            self.tree = ast.parse(text)
        except SyntaxError as error:
            raise SourceError(f"{path}: cannot be read as Python: {error.msg}, line {error.lineno}") from None
        self.parents: dict[int, tuple[ast.AST, str]] = {  # of each node, by its id, with its field
            id(child): (parent, field)
            for parent in ast.walk(self.tree)
            for field, value in ast.iter_fields(parent)
            for child in (value if isinstance(value, list) else [value])
            if isinstance(child, ast.AST)
        }
        self._named = _definitions_in(self.tree)
        self.ranks = dict(ranks) if ranks is not None else self._ranks([*functions, *forward])
        self.definitions = {each: self._definition(each) for each in self.ranks}
        self.functions = {each: depth for each, depth in functions.items() if each in self.ranks}
        self.forward = frozenset(forward) & self.ranks.keys()
        if not self.functions:
            raise SourceError(f"{path}: changed since it was loaded")
        self.globals = next(iter(self.functions)).__globals__
        self.numpy = self._array_library()
        self.is_torch = getattr(self.globals.get(self.numpy), "__name__", "") == "torch"
        self.units = list({id(u): u for u in map(self.unit, map(self._definition, self.functions))}.values())

    def _ranks(self, functions: Iterable[FunctionType]) -> dict[FunctionType, int]:
        """Return which of the definitions of its name each function's is; those that the file has no more are left out."""
        found = {}
        for function in functions:
            code = function.__code__
            if "statements" in vars(function):  # a script's
                found[function] = 0
                continue
            lines = [first_line(node) for node in self._named.get(code.co_qualname, ())]
            if lines.count(code.co_firstlineno) == 1:  # of two on one line, it cannot be told which
                found[function] = lines.index(code.co_firstlineno)
        return found

    def _array_library(self) -> str:
        """Return the file's name for NumPy, or for what it calculates with in its place."""
        used = {name for function in self.functions for name in function.__code__.co_names}
        modules = (np, *(sys.modules.get(name) for name in ("torch", "jax.numpy")))
        named = [
            n for n, v in self.globals.items() if isinstance(v, ModuleType) and any(v is m for m in modules)
        ]
        return next((name for name in named if name in used), named[0] if named else "np")

    def _definition(self, function: FunctionType) -> Definition | ast.Module:
        if "statements" in vars(function):
            return self.tree
        return self._named[function.__code__.co_qualname][self.ranks[function]]

    def with_text(self, text: str) -> ModuleSource:
        """Return the same file with other text."""
        return ModuleSource(
            self.path, text, self.encoding, self.functions, self.forward, self.ranks, in_one=self.in_one
        )

    @cached_property
    def calls(self) -> dict[int, frozenset[str]]:
        """The names of the functions and methods that a node and those inside it call, by its id."""
        found: dict[int, frozenset[str]] = {}
        for node in reversed(list(ast.walk(self.tree))):
            found[id(node)] = calls_in(node, found)
        return found

    @cached_property
    def codes(self) -> dict[FunctionType, CodeType]:
        """The code of every function that backward reaches, as the text has it."""
        codes: dict[FunctionType, CodeType] = {}
        for unit in self.units:
            codes |= self.compile(unit)
        return codes

    def unit(self, node: ast.AST) -> ast.stmt | ast.Module:
        """Return the file's own statement that holds a node; a script is one as a whole."""
        if any("statements" in vars(function) for function in self.functions):
            return self.tree
        while node is not self.tree and (parent := self.parents[id(node)][0]) is not self.tree:
            node = parent
        assert isinstance(node, ast.stmt)
        return node

    def statements_at(self, line: int) -> list[ast.stmt]:
        """Return the statements without others in them that a line is of."""
        nodes = (node for unit in self.units for node in ast.walk(unit) if isinstance(node, ast.stmt))
        simple = (node for node in nodes if not hasattr(node, "body"))
        return [node for node in simple if node.lineno <= line <= (node.end_lineno or node.lineno)]

    def compile(
        self, unit: ast.stmt | ast.Module, changed: Callable[[Any], Any] | None = None
    ) -> dict[FunctionType, CodeType]:
        """Compile one of the file's statements, as it is or ``changed``, and return its functions' code."""
        if isinstance(unit, ast.Module):
            scripts = {
                each: vars(each)["statements"](unit) for each in self.functions if "statements" in vars(each)
            }
            change = changed or (lambda statements: statements)
            return {each: self._compiled(change(statements)) for each, statements in scripts.items()}
        named: dict[tuple[str, int], CodeType] = {}
        known = self._compiled(changed([unit])) if changed else self._compiled([unit], settled=True)
        for code in codes_in(known):
            named.setdefault((code.co_qualname, code.co_firstlineno), code)
        found = {}
        for function in self._exchanged:
            node = self.definitions[function]
            if not isinstance(node, ast.Module) and self.unit(node) is unit:
                found[function] = named[function.__code__.co_qualname, first_line(node)]
        return found

    @cached_property
    def _exchanged(self) -> list[FunctionType]:
        """The functions whose code is exchanged: not those that another of them makes anew each time."""
        inside = {
            id(node)
            for each in self.functions
            for node in ast.walk(self.definitions[each])
            if node is not self.definitions[each]
        }
        return [each for each in self.functions if id(self.definitions[each]) not in inside]

    def _compiled(self, statements: list[ast.stmt], *, settled: bool = False) -> CodeType:
        tree = ast.Module(statements, [])
        if not settled:  # as edits are: to look at every node of the tree takes longer than to compile it
            ast.fix_missing_locations(tree)
        return compiled_without_guards(tree, self.path)

    def holding(self, node: ast.AST) -> set[FunctionType]:
        """Return the functions, of those that forward or backward reaches, in whose definition a node stands."""
        around = {id(node)}
        while node is not self.tree:
            node = self.parents[id(node)][0]
            around.add(id(node))
        return {function for function, definition in self.definitions.items() if id(definition) in around}

    @cached_property
    def functions_of_one(self) -> list[ast.expr]:
        """The functions of one argument that forward and backward call: the file's and NumPy's."""
        nodes = (node for definition in self.definitions.values() for node in ast.walk(definition))
        calls = (node for node in nodes if isinstance(node, ast.Call))
        found = {
            ast.unparse(call.func): call.func for call in calls if len(call.args) == 1 and not call.keywords
        }
        own = {name for name, value in self.globals.items() if isinstance(value, FunctionType)}
        entries = {function.__name__ for function, depth in self.functions.items() if depth == 0}
        names = {*own, *(f"{self.numpy}.{name}" for name in dir(np))} - entries
        return [function for text, function in found.items() if text in names]

    @cached_property
    def factors(self) -> list[ast.expr]:
        """What forward multiplies or divides by that may be a number, computed with NumPy and lengths alone."""
        found: dict[str, ast.expr] = {}
        for definition in map(self.definitions.__getitem__, self.forward):
            for node in ast.walk(definition):
                match node:
                    case ast.BinOp(left, ast.Mult(), right):
                        operands = [left, right]
                    case ast.BinOp(_, ast.Div() | ast.Pow(), right) | ast.AugAssign(
                        _, ast.Mult() | ast.Div(), right
                    ):
                        operands = [right]
                    case _:
                        continue
                found |= {ast.unparse(each): each for each in operands if self._is_simple(each)}
        return list(found.values())

    def _is_simple(self, node: ast.expr) -> bool:
        """Whether an expression is a short one, that calls no function of the author's."""
        parts = list(ast.walk(node))
        names = (ast.unparse(each.func) for each in parts if isinstance(each, ast.Call))
        own = (name for name in names if name != "len" and not name.startswith(f"{self.numpy}."))
        return len(parts) <= LONGEST_FACTOR and not isinstance(node, ast.Constant) and next(own, None) is None

    @property
    def entry(self) -> ast.FunctionDef | None:
        """The function that backward calls first."""
        least = min(self.functions.values())
        first = [function for function, depth in self.functions.items() if depth == least]
        # A library may run forward too.
        alone = [function for function in first if function not in self.forward]
        definition = self.definitions[(alone or first)[-1 if alone else 0]]
        return definition if isinstance(definition, ast.FunctionDef) else None

    def has_class_of(self, value: Any) -> bool:
        """Whether an object, or one in a container, is of a class of the file."""
        kinds = {type(item) for item in held(value)}
        return any(self.globals.get(kind.__name__) is kind for kind in kinds if kind.__module__ != "builtins")

    def parameters(self, definition: ast.AST) -> list[str]:
        """Return the positional parameters of a definition, without ``self``."""
        if not isinstance(definition, ast.FunctionDef | ast.Lambda):
            return []
        names = [each.arg for each in [*definition.args.posonlyargs, *definition.args.args]]
        is_method = isinstance(self.parents[id(definition)][0], ast.ClassDef)
        return names[1:] if is_method and names[:1] in (["self"], ["cls"], ["ctx"]) else names

    def enclosing(self, node: ast.AST, kind: type[Kind]) -> Kind | ast.Module:
        """Return the innermost node of a kind that holds a node, or the whole."""
        while not isinstance(node, kind | ast.Module):
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
        if isinstance(new, ast.keyword) and self.is_torch:
            new.arg = TORCH.get(str(new.arg), new.arg)
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


def first_line(definition: Definition) -> int:
    """Return the line that a definition begins at, its decorators included."""
    return min([definition.lineno, *(each.lineno for each in getattr(definition, "decorator_list", ()))])


def _definitions_in(tree: ast.Module) -> dict[str, list[Definition]]:
    """Return the functions of a file by their qualified names, in the order of the text."""
    found: dict[str, list[Definition]] = {}

    def walk(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            inside = prefix
            if isinstance(child, ast.FunctionDef | ast.Lambda):
                name = prefix + getattr(child, "name", "<lambda>")
                found.setdefault(name, []).append(child)
                inside = f"{name}.<locals>."
            elif isinstance(child, ast.ClassDef):
                inside = f"{prefix}{child.name}."
            walk(child, inside)

    walk(tree, "")
    return {name: sorted(nodes, key=first_line) for name, nodes in found.items()}


def read_sources(subject: Subject) -> list[ModuleSource]:
    """Read the author's files that backward runs, that of the deepest function first; SourceError where there is none."""
    upstream = [np.ones_like(part) for part in subject.run_forward(subject.inputs)]
    forward = functions_of(lambda: subject.run_forward(subject.inputs))
    backward = functions_of(lambda: subject.run_backward(upstream, subject.inputs, forward=False))
    # A function that returns its loss with the gradients, or a script: what is forward and what backward is one.
    in_one = not backward or any("statements" in vars(function) for function in backward)
    reached = {**forward, **backward} if in_one else backward
    files = dict.fromkeys(
        each.__code__.co_filename for each in sorted(reached, key=reached.__getitem__, reverse=True)
    )
    paths = [Path(name) for name in files if Path(name).is_file()]
    if not paths:
        raise SourceError("backward has no source file", fix="put it into a file and import it from there")
    return [_read(path, forward, reached, in_one) for path in paths]


def _read(path: Path, forward: Reached, backward: Reached, in_one: bool) -> ModuleSource:
    content = path.read_bytes()
    encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
    own = {each: depth for each, depth in backward.items() if each.__code__.co_filename == str(path)}
    others = [each for each in forward if each.__code__.co_filename == str(path)]
    return ModuleSource(path, content.decode(encoding), encoding, own, others, in_one=in_one)

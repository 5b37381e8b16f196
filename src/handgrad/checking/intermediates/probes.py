"""Probes in the author's functions: every value that they assign, return or accumulate is seen, and can be exchanged.

``dZ2 = A2 - Y`` becomes ``dZ2 = __probe__(7, A2 - Y, None)``, ``dW += …`` is followed by ``dW = __changed__(8, dW, None)``.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, Literal

import numpy as np

from handgrad.checking.interfaces.tensors import fill, is_array_like, is_jax, is_tensor, like, to_numpy
from handgrad.checking.interfaces.torch_on_numpy import TorchArray
from handgrad.checking.live_code import recompiled
from handgrad.checking.subject import Array

PROBE, CHANGED, ITEM, CHANGED_ITEM = "__probe__", "__changed__", "__item__", "__changed_item__"
ADDING = {"append", "insert", "appendleft"}  # methods of a list, whose last argument is a value
IN_PLACE = {"at", "copyto", "put_along_axis", "add_at"}  # functions that change their first argument
OBVIOUS = (ast.Name, ast.Constant, ast.Attribute, ast.Lambda, ast.Starred)  # nothing is computed
CONTAINERS = (ast.Tuple, ast.List)

Kind = Literal["value", "returned", "changed", "argument"]


@dataclass(frozen=True)
class Site:
    """A place in the author's source that a value passes."""

    number: int
    path: str
    line: int
    name: str  # "dZ2", "self.z", 'grads["W1"]'; "" of a returned expression
    kind: Kind

    @property
    def source(self) -> str:
        """The first line of its statement."""
        lines = Path(self.path).read_text(encoding="utf-8", errors="replace").splitlines()
        return lines[self.line - 1].strip() if self.line <= len(lines) else ""


@dataclass
class Event:
    """A value that passed a site, in the order of time."""

    site: Site
    value: Any  # None where a later value of the same array is the one to look at
    holder: int = 0  # the id of the object whose attribute, or in whose method, it is
    key: Any = None  # of an item of a list or a dictionary
    base: int = 0  # the id of the array that was changed in place
    caller: tuple[str, int] | None = None  # the file and the line that give a function its argument

    @property
    def name(self) -> str:
        """The author's name for it, with the key it had at that time."""
        return f"{self.site.name}[{self.key!r}]" if self.key is not None else self.site.name


class Recorder:
    """Sees what passes the probes, in one run after the other."""

    def __init__(self) -> None:
        self.sites: list[Site] = []
        self.events: list[Event] = []
        self.exchanged: Mapping[int, Array] = {}  # by the number of the event
        self.final: set[int] | None = (
            None  # the changes in place whose values are copied: the last of each array
        )
        self.seen: Callable[[Any], Any] = _copied
        self._alive: list[Any] = []

    def start(self, exchanged: Mapping[int, Array] | None = None) -> None:
        """Forget what was seen, and exchange these values in the next run."""
        self.events, self._alive, self.exchanged = [], [], exchanged or {}

    @property
    def names(self) -> dict[str, Any]:
        """What the probed code calls."""
        return {
            PROBE: self._probe,
            CHANGED: self._changed,
            ITEM: self._item,
            CHANGED_ITEM: self._changed_item,
        }

    def _see(self, event: Event, value: Any, *, copied: bool = True) -> Array | None:
        number = len(self.events)
        if copied:
            event.value = self.seen(value)
        self._alive.append(value)  # so that no other array gets its id
        self.events.append(event)
        return self.exchanged.get(number)

    def _probe(self, site: int, value: Any, holder: Any = None) -> Any:
        event = Event(self.sites[site], None, id(holder) if holder is not None else 0)
        if event.site.kind == "argument" and (frame := sys._getframe(1).f_back) is not None:
            event.caller = frame.f_code.co_filename, frame.f_lineno
        new = self._see(event, value)
        return value if new is None else _like(new, value)

    def _item(self, site: int, value: Any, holder: Any, key: Any) -> Any:
        """Pass what is stored under a key; what is written into an array is seen when it is there."""
        if _is_array(holder):
            return value
        new = self._see(Event(self.sites[site], None, id(holder), key), value)
        return value if new is None else _like(new, value)

    def _changed(self, site: int, value: Any, holder: Any = None, key: Any = None) -> Any:
        is_array = _is_array(value)
        copied = self.final is None or len(self.events) in self.final
        event = Event(self.sites[site], None, id(holder) if holder is not None else 0, key)
        event.base = id(value) if is_array else 0
        new = self._see(event, value, copied=copied)
        if new is None:
            return value
        if not is_array or is_jax(value):
            return _like(new, value)
        if type(value) is list:
            return fill(value, new)
        value[...] = _like(new, value)
        return value

    def _changed_item(self, site: int, holder: Any, key: Any) -> None:
        if _is_array(holder):
            self._changed(site, holder)
        elif (new := self._changed(site, holder[key], holder, key)) is not holder[key]:
            holder[key] = new


def _is_array(value: Any) -> bool:
    return is_array_like(value) or isinstance(value, TorchArray)


def _copied(value: Any) -> Any:
    """Return a copy of an array or a tensor as NumPy's, a number itself, and None for anything else."""
    if hasattr(value, "_trace"):  # of JAX's, which has no numbers yet
        return None
    if _is_array(value):
        array = np.array(to_numpy(value))
        return array if array.dtype.kind in "fiub" else None
    return value if isinstance(value, float | np.floating) else None


def _like(new: Array, value: Any) -> Any:
    """Return a new value as the old one's kind: a Python number stays one, and so does a tensor."""
    if is_tensor(value):
        return like(value, np.asarray(new, to_numpy(value).dtype))
    if type(value) is list:
        return new.tolist()
    return float(new) if type(value) is float else np.array(new)


def probed(functions: Iterable[FunctionType], recorder: Recorder) -> dict[FunctionType, CodeType]:
    """Return the functions' code with probes; those without a source, or whose source has changed, are left out."""

    def with_probes(tree: ast.Module, path: Path, is_script: bool) -> ast.AST:
        prober = _Prober(str(path), recorder.sites)
        prober.inside += is_script
        changed: ast.AST = prober.visit(tree)
        return changed

    return recompiled(functions, with_probes)


class _Prober(ast.NodeTransformer):
    """Puts probes into the functions of a module."""

    def __init__(self, path: str, sites: list[Site]) -> None:
        self.path, self.sites = path, sites
        self.inside = 0  # of how many functions
        self.holder: ast.expr | None = None  # of the function's own names: self

    def site(self, node: ast.stmt | ast.expr, name: str, kind: Kind = "value") -> ast.Constant:
        number = len(self.sites)
        self.sites.append(Site(number, self.path, node.lineno, name, kind))
        return ast.Constant(number)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        outer = self.holder
        arguments = [each.arg for each in [*node.args.posonlyargs, *node.args.args]]
        self.holder = _load("self") if arguments[:1] == ["self"] else None
        self.inside += 1
        taken = [
            ast.Assign(
                [_stored(_load(name))],
                _call(PROBE, self.site(node, name, "argument"), _load(name), self.owner()),
            )
            for name in arguments
            if name != "self"
        ]
        is_text = isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant)
        self.generic_visit(node)
        node.body[int(is_text) : int(is_text)] = [ast.copy_location(each, node) for each in taken]
        self.inside -= 1
        self.holder = outer
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        for k, item in enumerate(node.body):  # what stands in the class itself has run
            if isinstance(item, ast.FunctionDef | ast.ClassDef):
                node.body[k] = self.visit(item)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node

    def owner(self, target: ast.expr | None = None) -> ast.expr:
        """Return the object that a target is an attribute of, or the one whose method it is in."""
        if isinstance(target, ast.Attribute) and _is_plain(target.value):
            return _loaded(target.value)
        return self.holder or ast.Constant(None)

    def passed(
        self, node: ast.stmt | ast.expr, value: ast.expr, name: str, owner: ast.expr, kind: Kind = "value"
    ) -> Any:
        """Return an expression with its value, or each of those it lists, passed through a probe."""
        match value:
            case ast.Tuple(items) | ast.List(items) if kind == "returned" or items:
                new = [self.passed(e, e, f"{name}[{k}]", owner, kind) for k, e in enumerate(items)]
                return ast.copy_location(type(value)(new, ast.Load()), value)
            case ast.Dict(keys, values):
                names = [f"{name}[{ast.unparse(key)}]" if key else "" for key in keys]
                new = [
                    self.passed(item, item, own, owner, kind) if key else item
                    for key, item, own in zip(keys, values, names, strict=True)
                ]
                return ast.copy_location(ast.Dict(keys, new), value)
            case ast.Call(ast.Name("dict"), args, keywords):
                named = [
                    ast.keyword(each.arg, self.passed(node, each.value, f"{name}[{each.arg!r}]", owner, kind))
                    if each.arg
                    else each
                    for each in keywords
                ]
                return ast.copy_location(ast.Call(_load("dict"), args, named), value)
        if isinstance(value, OBVIOUS) and kind == "returned":
            return value
        if isinstance(value, ast.Starred):
            return value
        return ast.copy_location(_call(PROBE, self.site(node, name, kind), value, owner), value)

    def visit_Return(self, node: ast.Return) -> ast.AST:
        if node.value is not None and self.inside:
            node.value = self.passed(node, node.value, "", self.owner(), "returned")
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is None or not self.inside:
            return node
        return self._assigned(node, [node.target], node.value)

    def visit_Assign(self, node: ast.Assign) -> Any:
        return self._assigned(node, node.targets, node.value) if self.inside else node

    def _assigned(self, node: Any, targets: list[ast.expr], value: ast.expr) -> Any:
        first, after = targets[0], []
        if isinstance(first, CONTAINERS):
            for each in _leaves(first):
                after += self._after(node, each, "value")
        elif isinstance(first, ast.Subscript) and not isinstance(first.slice, ast.Constant):
            if _is_plain(first.value) and _is_plain(first.slice):
                site = self.site(node, ast.unparse(first.value))
                node.value = _call(ITEM, site, value, _loaded(first.value), _key(first.slice))
                after += self._after(node, first, "changed")
        else:
            node.value = self.passed(node, value, ast.unparse(first), self.owner(first))
        return [node, *after]

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        return [node, *self._after(node, node.target, "changed")] if self.inside else node

    def _after(self, node: ast.stmt, target: ast.expr, kind: Kind) -> list[ast.stmt]:
        """Return a statement that passes what a target holds now through a probe."""
        probe = PROBE if kind == "value" else CHANGED
        match target:
            case ast.Name("_"):
                return []
            case ast.Name() | ast.Attribute() if _is_plain(target):
                value = _call(
                    probe, self.site(node, ast.unparse(target), kind), _loaded(target), self.owner(target)
                )
                return [ast.copy_location(ast.Assign([_stored(target)], value), node)]
            case ast.Subscript(base, key) if kind == "changed" and _is_plain(base) and _is_plain(key):
                site = self.site(node, ast.unparse(base), kind)
                call = _call(CHANGED_ITEM, site, _loaded(base), _key(key))
                return [ast.copy_location(ast.Expr(call), node)]
        return []

    def visit_Expr(self, node: ast.Expr) -> Any:
        if not self.inside:
            return node
        match node.value:
            case ast.Call(ast.Attribute(base, attribute), [*_, last]) if attribute in ADDING and _is_plain(
                base
            ):
                name = f"{ast.unparse(base)}[…]"
                node.value.args[-1] = self.passed(node, last, name, self.owner(base))
            case ast.Call(ast.Attribute(_, attribute), [first, *_]) if attribute in IN_PLACE:
                return [node, *self._after(node, first, "changed")]
        return node


def _leaves(target: ast.expr) -> list[ast.expr]:
    if isinstance(target, CONTAINERS):
        return [leaf for each in target.elts for leaf in _leaves(each)]
    return [] if isinstance(target, ast.Starred) else [target]


def _is_plain(node: ast.AST) -> bool:
    """Whether an expression may be evaluated twice."""
    changing = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
    return not any(
        isinstance(each, changing)
        or (
            isinstance(each, ast.Call)
            and getattr(each.func, "id", getattr(each.func, "attr", "")) in ("next", "pop")
        )
        for each in ast.walk(node)
    )


def _load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _loaded(node: ast.expr) -> ast.expr:
    """Return a copy that reads what an expression names."""
    return ast.parse(ast.unparse(node), mode="eval").body


def _stored(node: ast.expr) -> ast.expr:
    new: Any = _loaded(node)
    new.ctx = ast.Store()
    return new


def _key(node: ast.expr) -> ast.expr:
    """Return an index as an expression: slices are spelt out."""
    match node:
        case ast.Slice(lower, upper, step):
            parts = [_loaded(part) if part else ast.Constant(None) for part in (lower, upper, step)]
            return ast.Call(_load("slice"), parts, [])
        case ast.Tuple(items):
            return ast.Tuple([_key(item) for item in items], ast.Load())
    return _loaded(node)


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(_load(name), list(arguments), [])

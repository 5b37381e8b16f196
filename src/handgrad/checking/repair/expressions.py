"""The expressions that a backward evaluates, each with its value and the names in scope; and new ones from templates."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import islice, product
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from handgrad.checking.interfaces.names import is_gradient_name, is_target, is_upstream_name
from handgrad.checking.interfaces.tensors import is_array, to_numpy
from handgrad.checking.repair.guard import LONGEST_RUN, OutOfTimeError
from handgrad.checking.repair.module_source import ModuleSource, called
from handgrad.checking.repair.sandbox import Sandbox
from handgrad.checking.subject import CheckError

RUN = 30.0  # microseconds for a run of a backward that does nothing
STEP, ENTRY = 2.0, 0.01  # microseconds for an expression, and for each entry of its value
MOST_NAMES = 24  # in scope: of more, the first, which are parameters, and the last; a search tries no more of long code
MOST_PASSES = 64  # runs of a statement
DEEPEST = 2  # steps into an object or a container: ``self.params["W"]``
LARGEST = 200_000  # entries of an array that is copied when it is seen
COMPREHENSION = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
UPSTREAM_NAMES = frozenset({"g", "dout", "dy", "upstream", "grad_output"})


@dataclass
class Observed:
    """The values of a backward's expressions and the names in scope at its statements, at the first time they ran."""

    values: dict[int, Any] = field(default_factory=dict)  # by the id of the expression's node
    scopes: dict[int, dict[str, Any]] = field(default_factory=dict)  # by the id of the statement's node
    sizes: dict[int, list[ast.expr]] = field(default_factory=dict)  # in scope, by the id of the scope
    gradients: dict[str, Any] = field(default_factory=dict)  # that it returned, by argument
    work: float = RUN  # microseconds of a machine of 2024
    running: bool = False
    inside: dict[int, list[int]] = field(default_factory=dict)  # the nodes of such a statement
    loops: dict[int, set[str]] = field(default_factory=dict)  # the variables of the loops around a statement
    again: dict[int, int] = field(default_factory=dict)  # runs of a statement before it is looked at
    passes: dict[int, list[dict[str, Any]]] = field(default_factory=dict)  # all local names of each such run

    def see(self, node: int, value: Any) -> Any:
        """Save a value of an expression, and return it."""
        if self.running:
            if node not in self.values:
                self.values[node] = _copied(value)
            self.work += STEP + ENTRY * (self.values[node].size if is_array(value) else 0)
        return value

    def forget(self, statement: int) -> None:
        """Forget what was seen at a statement, which runs again."""
        del self.scopes[statement]
        for node in self.inside[statement]:
            self.values.pop(node, None)

    def enter(self, node: int, names: dict[str, Any]) -> None:
        """Save the names in scope at a statement."""
        if self.running and node in self.inside and len(self.passes.setdefault(node, [])) < MOST_PASSES:
            self.passes[node].append({name: _copied(value) for name, value in names.items()})
        if self.running and self.again.get(node, 0) > 0 and node in self.scopes:
            self.again[node] -= 1
            self.forget(node)
        if self.running and node not in self.scopes:
            names = {name: value for name, value in names.items() if not name.startswith("__")}  # a script's
            near = [*names][: MOST_NAMES // 2] + [*names][MOST_NAMES // 2 :][-MOST_NAMES // 2 :]
            steps = _steps(self.loops.get(node, ()), names)
            held = {
                text: part for name in near for text, part in _parts_of(name, names[name], DEEPEST, steps)
            }
            inside = dict(
                islice(((text, part) for text, part in held.items() if text not in near), MOST_NAMES)
            )
            self.scopes[node] = {name: _copied(names[name]) for name in near} | inside


def observe(sandbox: Sandbox, line: int = 0, times: int = 0) -> Observed:
    """Run a backward once with its expressions observed, up to where it fails; forward runs unobserved.

    The statement at a ``line`` is looked at when it has run so many ``times``.
    """
    source, subject, target = sandbox.source, sandbox.subject, sandbox.target
    observed = Observed(running=source.in_one)
    for node in source.statements_at(line):
        observed.again[id(node)] = times
        observed.inside[id(node)] = [id(each) for each in ast.walk(node)]
    codes = dict(source.codes)
    for loop in (each for unit in source.units for each in ast.walk(unit) if isinstance(each, ast.For)):
        for each in ast.walk(loop):
            observed.loops.setdefault(id(each), set()).update(_counted(loop))
    for unit in source.units:
        codes |= source.compile(unit, _watched)
    names = {"__see__": observed.see, "__enter__": observed.enter}
    failing = suppress(CheckError, OutOfTimeError, MemoryError)
    with failing, sandbox.running_codes(codes, names), sandbox.guard.limit(LONGEST_RUN):
        subject.run_forward(target.inputs)
        observed.running = True
        observed.gradients = subject.run_backward(target.upstream, target.inputs, forward=False)
    sandbox.running = observed.work
    return observed


def _counted(loop: ast.For) -> Iterator[str]:
    """Yield the variables of a loop, ``-l`` where it counts from the end: ``zs[-l]``."""
    negative = {ast.unparse(each) for each in ast.walk(loop) if isinstance(each, ast.UnaryOp)}
    yield from (f"-{name}" if f"-{name}" in negative else name for name in names_in(loop.target))


def _steps(counted: Iterable[str], names: Mapping[str, Any]) -> dict[str, int]:
    """Return the whole numbers that loops are at, those that count from the end negative."""
    known = {text: names.get(text.removeprefix("-")) for text in counted}
    return {text: -value if text[0] == "-" else value for text, value in known.items() if type(value) is int}


def _parts_of(text: str, value: Any, depth: int, steps: Mapping[str, int]) -> Iterator[tuple[str, Any]]:
    """Yield the arrays and numbers that an object or a container in scope holds, as an expression writes them.

    Where a loop's variable is at an entry or beside it, that says which one: ``weights[i + 1]``.
    """
    if is_array(value) or (isinstance(value, float | int | np.number) and not isinstance(value, bool)):
        yield text, _copied(value)
    elif depth and isinstance(value, dict | tuple | list) and len(value) <= MOST_NAMES:
        near = {} if isinstance(value, tuple) else steps  # a loop goes over no tuple
        count = len(value) if isinstance(value, list) else 0
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(key, str | int):
                yield from _parts_of(f"{text}[{_index(key, near, count)}]", item, depth - 1, steps)
    elif depth and not isinstance(value, type | FunctionType | MethodType | ModuleType):
        for name, item in getattr(value, "__dict__", {}).items():
            yield from _parts_of(f"{text}.{name}", item, depth - 1, steps)


def _index(key: str | int, steps: Mapping[str, int], count: int) -> str:
    """Return an entry's key, of ``count``, as a loop's variable where it is near one."""
    beside = {0: "", 1: " + 1", -1: " - 1"}
    for (offset, text), (name, value) in product(beside.items(), steps.items()):
        if isinstance(key, int) and key - count * (name[0] == "-") == value + offset:
            return name + text
    return repr(key)


def _copied(value: Any) -> Any:
    value = to_numpy(value)
    if isinstance(value, np.ndarray) and value.size <= LARGEST:
        return value.copy()
    return tuple(map(_copied, value)) if isinstance(value, tuple) else value


def _watched(node: Any) -> Any:
    """Return a copy with ``__see__(id, expression)`` for expressions, and ``__enter__(id, locals())`` before statements."""
    if isinstance(node, list):
        parts = [(_call("__enter__", item, parsed("locals()")), _watched(item)) for item in node]
        return [
            part
            for entry, item in parts
            for part in ([entry, item] if isinstance(item, ast.stmt) else [item])
        ]
    if not isinstance(node, ast.AST) or isinstance(node, ast.JoinedStr | ast.pattern):
        return node
    before = ("decorator_list", "decorators", "returns", "annotation")  # of a definition, when it is run
    fields = {n: value if n in before else _watched(value) for n, value in ast.iter_fields(node)}
    match node:
        case ast.Call(ast.Attribute(owner, attribute)):  # its object has a value, the method is not asked
            fields["func"] = ast.Attribute(_watched(owner), attribute, ast.Load())
        case ast.Call(ast.Name() as function):
            fields["func"] = function
    new = ast.copy_location(type(node)(**fields), node)
    return _call("__see__", node, new).value if _has_value(node) else new


def _call(name: str, node: ast.AST, argument: Any) -> ast.Expr:
    """Return a call that is given a node's id and one argument."""
    return ast.Expr(ast.Call(ast.Name(name, ast.Load()), [ast.Constant(id(node)), argument], []))


def _has_value(node: ast.AST) -> bool:
    if not isinstance(node, ast.expr) or isinstance(node, ast.Slice | ast.Starred | ast.NamedExpr):
        return False
    if isinstance(node, ast.Tuple) and any(isinstance(item, ast.Slice) for item in node.elts):
        return False
    return isinstance(getattr(node, "ctx", None), ast.Load | None)


@dataclass(frozen=True)
class Expression:
    """An expression, its first value, and the local names in scope there."""

    node: ast.expr
    value: Any
    scope: dict[str, Any]  # by the expressions that write them: ``dout``, ``self.x``, ``cache[0]``
    source: ModuleSource
    observed: Observed

    @property
    def sizes(self) -> list[ast.expr]:
        """The whole numbers and lengths in scope, as expressions."""
        known = self.observed.sizes
        if id(self.scope) not in known:
            known[id(self.scope)] = sizes(self.scope, self.source.is_torch)
        return known[id(self.scope)]

    @property
    def is_whole(self) -> bool:
        """Whether it is all that is assigned or returned, or an entry of it."""
        return is_end(self.source, self.node)

    def of(self, node: ast.AST) -> Any:
        """Return the value of another expression, or None."""
        return self.observed.values.get(id(node))

    @property
    def parent(self) -> ast.AST:
        """The node that holds this one."""
        return self.source.parents[id(self.node)][0]

    @cached_property
    def draws(self) -> bool:
        """Whether it draws random numbers."""
        calls = (node for node in ast.walk(self.node) if isinstance(node, ast.Call))
        return any(".random." in ast.unparse(call.func) for call in calls)

    @cached_property
    def upstream(self) -> frozenset[str]:
        """What the upstream gradient is called."""
        first, *inputs = self.source.parameters(self.function) or [""]
        starts = any(is_target((name,)) for name in inputs) and not is_upstream_name(first)  # from a loss
        return (UPSTREAM_NAMES - {*inputs}) | (set() if starts else {first})

    @property
    def function(self) -> ast.AST:
        """The definition that the expression stands in."""
        return self.source.enclosing(self.node, ast.FunctionDef)

    def is_gradient(self, node: ast.AST) -> bool:
        """Whether an expression has a gradient in it, by what its names are called."""
        names = names_in(node)
        return any(n in self.upstream or n[:1] == "d" or is_gradient_name(n) for n in names)


def expressions(source: ModuleSource, observed: Observed, nodes: Iterable[ast.AST]) -> Iterator[Expression]:
    """Yield the expressions that backward evaluates."""
    for node in nodes:
        if isinstance(node, ast.expr) and id(node) in observed.values:
            yield Expression(
                node, observed.values[id(node)], _scope(source, observed, node), source, observed
            )


def _scope(source: ModuleSource, observed: Observed, node: ast.AST) -> dict[str, Any]:
    """Return the names in scope at an expression: those of its statement, and of the comprehensions around it."""
    inner: Any = COMPREHENSION | ast.stmt
    around = source.enclosing(source.parents[id(node)][0], inner)
    if isinstance(around, COMPREHENSION) and id(around) not in observed.scopes:
        own = {name for each in around.generators for name in names_in(each.target)}
        seen = {
            each.id: observed.values[id(each)]
            for each in ast.walk(around)
            if isinstance(each, ast.Name) and each.id in own and id(each) in observed.values
        }
        outer = _scope(source, observed, around)
        steps: dict[str, int] = {}
        for each in around.generators:  # one that counts is 0 at first, if nothing reads it
            counts = called(each.iter) in ("range", "enumerate")
            first = each.target.elts[0] if isinstance(each.target, ast.Tuple) else each.target
            steps |= {first.id: seen.get(first.id, 0)} if counts and isinstance(first, ast.Name) else {}
        vectors = {name: value.tolist() for name, value in outer.items() if steps and dimensions(value) == 1}
        inside = {
            text: part
            for name, value in (seen | vectors).items()
            for text, part in _parts_of(name, value, DEEPEST, steps)
        }
        observed.scopes[id(around)] = outer | seen | steps | inside
    return observed.scopes.get(id(around), {})


def is_end(source: ModuleSource, node: ast.expr) -> bool:
    """Whether an expression is all that is assigned or returned, or an entry of it."""
    holder = source.parents[id(node)][0]
    while isinstance(holder, ast.Tuple | ast.List | ast.Dict):
        holder = source.parents[id(holder)][0]
    return isinstance(holder, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Return)


def dimensions(value: Any) -> int:
    """Return the number of axes of an array, 0 for a number, -1 for anything else."""
    return np.ndim(value) if isinstance(value, np.ndarray | np.number | np.bool_ | int | float) else -1


def is_float(value: Any) -> bool:
    """Whether a value is a floating-point array or number."""
    return isinstance(value, float | np.floating) or (
        isinstance(value, np.ndarray) and value.dtype.kind == "f"
    )


def number_of(node: ast.AST) -> float | None:
    """Return the number that an expression writes, or None."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = number_of(node.operand)
        return -number if number is not None else None
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def names_in(node: ast.AST) -> set[str]:
    """Return the names in a tree."""
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def sizes(scope: Mapping[str, Any], is_torch: bool = False) -> list[ast.expr]:
    """Return the whole numbers in scope, and the lengths of its arrays, one for each number, as expressions."""
    whole = {name: value for name, value in scope.items() if type(value) is int and value > 1}
    arrays = [(name, value) for name, value in scope.items() if isinstance(value, np.ndarray) and value.ndim]
    every = [
        *((len(value), fill("len(A)", A=name)) for name, value in arrays),
        *((n, fill("A.shape[K]", A=name, K=k)) for name, value in arrays for k, n in enumerate(value.shape)),
        *((value.size, fill("A.numel()" if is_torch else "A.size", A=name)) for name, value in arrays),
    ]
    found: dict[int, ast.expr] = {}
    for size, expression in every:
        found.setdefault(size, expression)
    return [*map(fill, whole), *(expression for size, expression in found.items() if size > 1)]


def is_size(node: ast.AST) -> bool:
    """Whether an expression is the length of an axis or the size of an array."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    return called(node) in ("len", "numel") or (isinstance(node, ast.Attribute) and node.attr == "size")


def fill(template: str, **parts: ast.expr | str | float) -> ast.expr:
    """Return a template's expression with its capital names replaced by nodes, names or numbers.

    Examples
    --------
    >>> ast.unparse(fill("A.T @ B", A=ast.parse("x + 1", mode="eval").body, B="d"))
    '(x + 1).T @ d'
    """
    filled: ast.expr = _filled(parsed(template), parts)
    return filled


@lru_cache(maxsize=1000)
def parsed(template: str) -> ast.expr:
    """Return a template as a tree."""
    return ast.parse(template, mode="eval").body


def _filled(node: Any, parts: dict[str, Any]) -> Any:
    """Return a copy without places in the text, which are of another text."""
    if isinstance(node, list):
        return [_filled(item, parts) for item in node]
    if not isinstance(node, ast.AST):
        return node
    if isinstance(node, ast.Name) and node.id in parts:
        part = parts[node.id]
        if isinstance(part, str):
            return fill(part)
        return part if isinstance(part, ast.expr) else ast.Constant(part)
    return type(node)(*(_filled(getattr(node, field), parts) for field in node._fields))

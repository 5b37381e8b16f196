"""Reading a rule's text: the lines of a function, straight or in a loop over time, each with the reason beside it."""

from __future__ import annotations

import ast
import builtins
import linecache
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import groupby
from types import CodeType, FunctionType
from typing import Any, cast, get_type_hints

import numpy as np

from handgrad.errors import RuleError, nearest
from handgrad.rules.primitives import PRIMITIVES

__all__ = ["ForLoop", "Line", "Text"]

FORMULAS: dict[str, FunctionType] = {}
"""What rules have in common, by name: functions that return an expression, which is written out where a line calls it."""

_OPERATORS: dict[type[ast.operator], str] = {ast.Add: "+=", ast.Sub: "-=", ast.Mult: "*=", ast.Div: "/="}

_NEW_ARRAYS = frozenset({"zeros", "ones", "empty", "full", "where", "array", "copy"})
"""NumPy's functions, besides its ufuncs, whose result is memory of its own; those of the names with ``_like`` too."""

_BRANCHES_AND_LOOPS = (
    ast.IfExp, ast.BoolOp, ast.Lambda, ast.NamedExpr, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
    ast.Await, ast.Yield, ast.YieldFrom,
)  # fmt: skip


@dataclass(frozen=True)
class ForLoop:
    """What lines are repeated for: ``for variable in steps``, a ``range`` or one that is reversed."""

    variable: str
    steps: ast.expr

    def __str__(self) -> str:
        return f"for {self.variable} in {ast.unparse(self.steps)}"


@dataclass(frozen=True)
class Line:
    """One statement of a rule: ``target operator expression  # reason``.

    In a loop it writes a part of an array that a line before has made, ``target[index] operator expression``.
    """

    target: str
    operator: str  # "=", or "+=", "-=", "*=" in an update or a loop
    expression: ast.expr
    reason: str
    reads: frozenset[str]  # every name, that of an array it writes a part of too, but not its loop's variable
    index: ast.expr | None = None
    loop: ForLoop | None = None

    @property
    def makes(self) -> bool:
        """Whether it makes its target, and does not change it."""
        return self.operator == "=" and self.index is None

    def __str__(self) -> str:
        place = f"{self.target}[{show_index(self.index)}]" if self.index else self.target
        return f"{place} {self.operator} {ast.unparse(self.expression)}"


def _names(expression: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}


def _makes_an_array(expression: ast.expr) -> bool:
    """Whether the value of an expression is memory of its own for certain, and no view."""
    match expression:
        case ast.BinOp() | ast.UnaryOp() | ast.Compare():
            return True
        case ast.Call(ast.Attribute(ast.Name("np"), name), _, keywords):
            of_ufunc = isinstance(getattr(np, name, None), np.ufunc)
            passed = {keyword.arg for keyword in keywords} & {"out", "copy"}
            return (of_ufunc or name.removesuffix("_like") in _NEW_ARRAYS) and not passed
    return False


def show_index(index: ast.expr) -> str:
    """Return an index as it is written in brackets: ``:, t + 1``."""
    return ast.unparse(ast.Subscript(ast.Name("v"), index))[2:-1]


@dataclass(frozen=True)
class Text:
    """A rule's function as data: what it takes, its lines, what it returns."""

    name: str
    arguments: tuple[str, ...]
    options: Mapping[str, Any]  # keyword-only arguments and their defaults
    kinds: Mapping[str, str]  # argument -> "value", "index", "target", "probabilities", "mask", …
    lines: tuple[Line, ...]
    returns: tuple[str, ...]
    place: str
    doc: str
    file: str
    module: ast.Module  # the statements that the lines were read from

    @property
    def locals(self) -> tuple[str, ...]:
        """Names the lines define, in order."""
        return tuple(line.target for line in self.lines if line.makes)

    @property
    def named(self) -> tuple[str, ...]:
        """Names that a program gives the layer's number: those the lines define, and the variables of loops."""
        return (*self.locals, *dict.fromkeys(line.loop.variable for line in self.lines if line.loop))

    def run(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Run the lines on ``values`` and return every name they know afterwards.

        Tracebacks and breakpoints land on the lines of the rule's own file.
        """
        scope = dict(values)
        exec(self.code, dict(PRIMITIVES), scope)
        return scope

    @cached_property
    def code(self) -> CodeType:
        """The lines, compiled when they are first run: most rules' never are, for programs are written from them."""
        return compile(self.module, self.file, "exec")


def blocks(lines: Iterable[Any]) -> list[list[Any]]:
    """Return lines in pieces that run as one: the lines of a loop, and each other by itself."""
    numbered = enumerate(lines)
    return [[line for _, line in part] for _, part in groupby(numbered, lambda pair: pair[1].loop or pair[0])]


def source_of_block(block: Sequence[Any]) -> str:
    """Return a block as Python runs it."""
    return str(block[0]) if not block[0].loop else "\n    ".join([f"{block[0].loop}:", *map(str, block)])


def backward_slice(lines: Iterable[Any], wanted: Iterable[str]) -> list[Any]:
    """Return the lines that some names need, in order, and those that change an array in place with what they need.

    Of a loop all or none: at another time, each line may need each. Of a name that is made twice, what comes before the
    second time needs the first.
    """
    needed, found = set(wanted), []
    for block in reversed(blocks(lines)):
        if any(line.target in needed or (line.operator != "=" and not line.index) for line in block):
            found += reversed(block)
            needed -= {line.target for line in block if line.operator == "=" and not line.index}
            needed.update(*(line.reads for line in block))
    return found[::-1]


def substitute(part: Any, known: Mapping[str, ast.expr]) -> Any:
    """Return a copy of an expression, or of what a field of one holds, with other expressions in the place of names."""
    if isinstance(part, ast.Name):
        return known.get(part.id, part)
    if isinstance(part, list):
        return [substitute(each, known) for each in part]
    if not isinstance(part, ast.AST):
        return part
    return type(part)(**{name: substitute(field, known) for name, field in ast.iter_fields(part)})


def formula(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give an expression that several rules have in common a name; their lines have the expression itself."""
    FORMULAS[function.__name__] = cast("FunctionType", function)
    return function


def _formula(name: str) -> tuple[list[str], ast.expr]:
    """Return the arguments and the expression of a formula."""
    node = _definition(FORMULAS[name])
    (returned,) = (each for each in node.body if isinstance(each, ast.Return))
    return [argument.arg for argument in node.args.args], cast("ast.expr", returned.value)


class _WrittenOut(ast.NodeTransformer):
    """Puts the expression of a formula in the place of its call."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.func, ast.Name) or node.func.id not in FORMULAS:
            return node
        arguments, expression = _formula(node.func.id)
        return ast.copy_location(substitute(expression, dict(zip(arguments, node.args, strict=True))), node)


def read_text(function: Callable[..., Any], *, updates: bool = False) -> Text:
    """Read a function into a `Text`; a `RuleError` names the line that is not straight-line mathematics.

    With ``updates``, ``+=``, ``-=``, ``*=`` and ``/=`` may change arguments: only update rules do.
    """
    if not isinstance(function, FunctionType):
        raise RuleError(f"{function!r} is not written in Python, and a rule is its text")
    node = _definition(function)
    where = f"{function.__name__} ({function.__code__.co_filename}:{node.lineno})"
    arguments = tuple(argument.arg for argument in node.args.posonlyargs + node.args.args)
    options = dict(function.__kwdefaults__ or {})
    for argument in node.args.kwonlyargs:
        options.setdefault(argument.arg, None)
    if node.args.vararg or node.args.kwarg or node.args.defaults:
        raise RuleError(f"{where}: arguments are names, and options are keyword-only (after *)")
    source = linecache.getlines(function.__code__.co_filename)
    reader = _Reader(where, source, arguments, set(arguments) | set(options), updates)
    statements = node.body[1:] if ast.get_docstring(node) is not None else node.body
    if not FORMULAS.keys().isdisjoint(function.__code__.co_names):  # else there is no call to write out
        statements = [ast.fix_missing_locations(_WrittenOut().visit(statement)) for statement in statements]
    for statement in statements:
        reader.read(statement)
    if not reader.returns:
        raise RuleError(f"{where}: a rule ends by returning the names it computed")
    module = ast.Module([s for s in statements if not isinstance(s, ast.Return)], [])
    return Text(
        name=function.__name__, arguments=arguments, options=options, kinds=_kinds(function, arguments),
        lines=tuple(reader.lines), returns=reader.returns, place=where, doc=ast.get_docstring(node) or "",
        file=function.__code__.co_filename, module=module,
    )  # fmt: skip


class _Reader:
    """Reads statement after statement; knows which names are defined so far."""

    def __init__(
        self, where: str, source: list[str], arguments: tuple[str, ...], known: set[str], updates: bool
    ) -> None:
        self.where, self.source, self.arguments = where, source, arguments
        self.known, self.updates = known, updates
        self.loop: ForLoop | None = None
        self.variables: set[str] = set()  # of loops: no name's afterwards
        self.lines: list[Line] = []
        self.returns: tuple[str, ...] = ()

    def read(self, statement: ast.stmt) -> None:
        if self.returns:
            raise self.error(statement, "nothing follows the return")
        if isinstance(statement, ast.Return) and self.loop is None:
            self.returns = self.read_return(statement)
        elif isinstance(statement, ast.For) and self.loop is None and not self.updates:
            self.read_loop(statement)
        else:
            self.lines.append(self.read_line(statement))
            self.known.add(self.lines[-1].target)

    def read_loop(self, statement: ast.For) -> None:
        """Read the lines of a loop over time; its variable has a name of its own."""
        steps: ast.expr = statement.iter
        forward = steps
        if isinstance(steps, ast.Call) and ast.unparse(steps.func) == "reversed" and len(steps.args) == 1:
            forward = steps.args[0]
        match statement.target, forward, statement.orelse:
            case ast.Name(variable), ast.Call(ast.Name("range"), [count], []), []:
                pass
            case _:
                raise self.error(
                    statement, "a loop is `for t in range(T):` or `for t in reversed(range(T)):`"
                )
        self.check_new(statement, variable)
        self.check_known(statement, _names(count))
        self.loop = ForLoop(variable, steps)
        for each in statement.body:
            self.read(each)
        self.loop = None
        self.variables.add(variable)

    def read_line(self, statement: ast.stmt) -> Line:
        index: Any = None
        match statement:
            case (
                ast.Assign(targets=[ast.Subscript(ast.Name(id=target), index)], value=expression)
                | ast.AugAssign(target=ast.Subscript(ast.Name(id=target), index), value=expression)
            ) if self.loop is not None:
                operator = (
                    "=" if isinstance(statement, ast.Assign) else _OPERATORS.get(type(statement.op), "")
                )
                if operator not in ("=", "+="):
                    raise self.error(statement, "a part of an array is set, or added to: `h[:, t] += …`")
                self.check_filled(statement, target)
            case _ if self.loop is not None:
                raise self.error(statement, "a line of a loop is `name[:, t] = expression`, or with +=")
            case ast.Assign(targets=[ast.Name(id=target)], value=expression):
                operator = "="
                self.check_new(statement, target)
            case ast.AugAssign(target=ast.Name(id=target), op=op, value=expression) if type(op) in _OPERATORS:
                operator = _OPERATORS[type(op)]
                if not self.updates:
                    raise self.error(statement, f"{target} {operator} changes a value in place")
                if target not in self.arguments:
                    raise self.error(statement, f"{target} {operator}: an update changes its arguments only")
            case _:
                raise self.error(statement, "a line is `name = expression`: no loop, branch or subscript")
        names = set()
        for node in ast.walk(expression):
            if isinstance(node, ast.Name):
                names.add(node.id)
            elif isinstance(node, _BRANCHES_AND_LOOPS):
                kind = type(node).__name__
                raise self.error(statement, f"a rule has no {kind}: use np.where or a primitive")
        if index is not None:
            names |= {target} | _names(index)
        if self.loop is not None:
            names = (names - {self.loop.variable}) | (_names(self.loop.steps) - {"range", "reversed"})
        self.check_known(statement, names)
        # The reason is the comment behind a statement, on its last line; ast counts columns in bytes.
        last, column = statement.end_lineno or 0, statement.end_col_offset or 0
        rest = self.source[last - 1].encode()[column:].decode().strip()
        reason = rest[1:].strip() if rest.startswith("#") else ""
        return Line(target, operator, expression, reason, frozenset(names), index, self.loop)

    def check_new(self, statement: ast.stmt, name: str) -> None:
        if name in self.known | self.variables:
            raise self.error(statement, f"{name} is given a second meaning: use a new name")

    def check_filled(self, statement: ast.stmt, target: str) -> None:
        """Let a loop write only where nobody else has memory: a view may be of the array that the user passed."""
        made = next((line.expression for line in self.lines if line.makes and line.target == target), None)
        if made is None:
            raise self.error(
                statement, f"{target} is not made here: a loop fills arrays that a line before it has made"
            )
        if not _makes_an_array(made):
            raise self.error(
                statement,
                f"{target} = {ast.unparse(made)} may share memory with another array, which the loop would change",
                f"make {target} by arithmetic or by np.zeros_like(…)",
            )

    def check_known(self, statement: ast.stmt, names: Iterable[str]) -> None:
        for name in sorted(set(names) - self.known - PRIMITIVES.keys()):
            hint = nearest(name, self.known | PRIMITIVES.keys())
            extra = " (built-ins are not mathematics)" if hasattr(builtins, name) else ""
            raise self.error(statement, f"{name} is not defined here{extra}", hint)

    def read_return(self, statement: ast.Return) -> tuple[str, ...]:
        value = statement.value
        parts = value.elts if isinstance(value, ast.Tuple) else [value]
        names = tuple(part.id for part in parts if isinstance(part, ast.Name))
        if len(names) != len(parts):
            raise self.error(statement, "return names only: give the expression a line of its own")
        for name in names:
            if name not in self.known:
                raise self.error(statement, f"{name} is not defined here", nearest(name, self.known))
        return names

    def error(self, statement: ast.stmt, problem: str, fix: str = "") -> RuleError:
        shown = self.source[statement.lineno - 1].strip()
        return RuleError(f"{self.where}, line {statement.lineno}: {problem}", given=shown, fix=fix)


def _definition(function: FunctionType) -> ast.FunctionDef:
    """Find the syntax tree of a function in its file, as the file now stands."""
    code = function.__code__
    linecache.checkcache(code.co_filename)
    source = "".join(linecache.getlines(code.co_filename))
    found = _definitions(code.co_filename, source).get((code.co_firstlineno, function.__name__))
    if found is not None:
        return found
    raise RuleError(
        f"{function.__name__}: its source is not at hand, and a rule is its text",
        fix="define it in a file or a notebook cell",
    )


@lru_cache(maxsize=16)
def _definitions(filename: str, source: str) -> dict[tuple[int, str], ast.FunctionDef]:
    """Return a file's functions by their first line, decorators included, and their name."""
    statements = _statements(ast.parse(source, filename))
    return {
        (min([node.lineno, *(each.lineno for each in node.decorator_list)]), node.name): node
        for node in statements
        if isinstance(node, ast.FunctionDef)
    }


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield every statement in a node, whatever it is inside of; expressions, the most of a file, are not entered."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield child
            yield from _statements(child)


def _kinds(function: FunctionType, arguments: tuple[str, ...]) -> dict[str, str]:
    """Read what each argument is from its annotation; one without is a value that has a gradient."""
    hints = get_type_hints(function, include_extras=True) if function.__annotations__ else {}
    return {name: getattr(hints.get(name), "__metadata__", ("value",))[0] for name in arguments}

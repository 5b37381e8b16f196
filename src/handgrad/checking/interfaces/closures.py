"""Functions that share the variables of the function that makes them, as an object with methods: layers without a class."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import CellType, CodeType, FunctionType, MethodType, SimpleNamespace
from typing import Any, ClassVar

from handgrad.checking.interfaces.signatures import definition_of, required, returned_values


class Closures:
    """What one call of a function makes: its inner functions are methods, their variables attributes.

    Before a method runs, the variables are given the attributes' values, and after it the attributes theirs: a copy of the
    object has a state of its own, though the functions are the same.
    """

    maker: ClassVar[FunctionType]
    unbound: ClassVar[dict[str, FunctionType]]  # by name, of no call

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._hold(self.maker(*arguments, **options))

    @classmethod
    def of(cls, made: Any) -> Closures:
        """Return what a call has already made."""
        found = cls.__new__(cls)
        found._hold(made)
        return found

    def _hold(self, made: Any) -> None:
        every, cells = dict[str, FunctionType](), dict[str, CellType]()
        left = [("", function) for _, function in _functions_in("", made)]
        makers = {_maker_of(function) for _, function in left}
        for place, function in left:  # which grows
            if _maker_of(function) in makers:
                every.setdefault(function.__name__, function)
            variables = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
            for name, cell in variables:
                if any(cell is each for each in cells.values()):
                    continue
                cells[place + name] = cell
                for holder, value in _functions_in(place + name, _contents(cell)):
                    left.append(("" if _maker_of(value) in makers else f"{holder}.", value))
        self.__dict__["_live"] = _Live(every, cells)
        self._read()

    def _read(self) -> None:
        """Take over what the functions' variables are."""
        for name, cell in self._live.cells.items():
            with suppress(ValueError):  # it is not set yet
                if not isinstance(cell.cell_contents, FunctionType):
                    vars(self)[name] = cell.cell_contents

    def run(self, function: FunctionType, *arguments: Any, **options: Any) -> Any:
        """Run one of the functions with this object's values in their variables."""
        for name, cell in self._live.cells.items():
            if name in vars(self):
                cell.cell_contents = vars(self)[name]
        try:
            return function(*arguments, **options)
        finally:
            self._read()

    def __getattr__(self, name: str) -> Any:
        live = vars(self).get("_live")
        if live is None or name not in live.functions:
            raise AttributeError(name)
        return MethodType(_Method(live.functions[name]), self)

    def functions(self) -> dict[str, Callable[..., Any]]:
        """Return the methods by name."""
        return {name: getattr(self, name) for name in self._live.functions}


class _Live:
    """The functions and their variables: those of every copy of an object."""

    __slots__ = ("cells", "functions")

    def __init__(self, functions: dict[str, FunctionType], cells: dict[str, CellType]) -> None:
        self.functions, self.cells = functions, cells

    def __deepcopy__(self, _: Any) -> _Live:
        return self


class _Method:
    """One of the functions, which runs on an object."""

    def __init__(self, function: FunctionType) -> None:
        self.__wrapped__, self.__name__ = function, function.__name__
        own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
        given = inspect.signature(function).parameters.values()
        with suppress(ValueError):
            self.__signature__ = inspect.Signature([own, *given])

    def __call__(self, owner: Closures, /, *arguments: Any, **options: Any) -> Any:
        return owner.run(self.__wrapped__, *arguments, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__, name)


def class_of_closures(function: FunctionType) -> type[Closures] | None:
    """Return the class of what a function makes, where it hands out functions of its own."""
    definition = definition_of(function)
    inner = {each.name: each for each in getattr(definition, "body", ()) if isinstance(each, ast.FunctionDef)}
    codes = {code.co_name: code for code in _inner_codes(function) if code.co_name in inner}
    if definition is None or not codes.keys() & _handed_out(definition):
        return None
    return type(function.__name__, (Closures,), {
        "maker": staticmethod(function), "__module__": function.__module__, "__signature__": inspect.signature(function),
        "unbound": {name: _unbound(code, inner[name], function) for name, code in codes.items()},
    })  # fmt: skip


def _handed_out(definition: ast.FunctionDef) -> set[str]:
    """Return the names that a function's own lines read, but do not call."""
    own = [each for each in definition.body if not isinstance(each, ast.FunctionDef)]
    nodes = [node for each in own for node in ast.walk(each)]
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    return {node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in called}


def _unbound(code: CodeType, definition: ast.FunctionDef, function: FunctionType) -> FunctionType:
    """Return an inner function of which only the signature and the source are asked for."""
    cells = tuple(CellType() for _ in code.co_freevars)
    defaults = tuple(
        each.value if isinstance(each, ast.Constant) else None for each in definition.args.defaults
    )
    return FunctionType(code, function.__globals__, code.co_name, defaults, cells)


def _inner_codes(function: FunctionType) -> list[CodeType]:
    return [each for each in function.__code__.co_consts if isinstance(each, CodeType)]


def pullback_of(function: Callable[..., Any]) -> int | None:
    """Return which of a function's results is a function that it defines: ``return y, pullback``; None where none is."""
    definition = definition_of(function)
    inner = {each.name for each in getattr(definition, "body", ()) if isinstance(each, ast.FunctionDef)}
    values = returned_values(function)
    found = [
        k for k, each in enumerate(values) if isinstance(each, ast.Lambda) or getattr(each, "id", "") in inner
    ]
    return found[0] if len(found) == 1 < len(values) else None


def _maker_of(function: FunctionType) -> str:
    return function.__code__.co_qualname.rpartition(".")[0]


def share_state(forward: Any, backward: Any) -> bool:
    """Whether a backward reads what forward leaves in a variable of theirs: it takes no more than an upstream gradient."""
    if not (isinstance(forward, FunctionType) and isinstance(backward, FunctionType)):
        return False
    cells = [each.__closure__ or () for each in (forward, backward)]
    takes_inputs = bool(backward.__code__.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS))
    return (
        len(required(backward)) < 2
        and not takes_inputs
        and any(one is other for one in cells[0] for other in cells[1])
    )


def _contents(cell: CellType) -> Any:
    with suppress(ValueError):  # it is not set yet
        return cell.cell_contents


def _functions_in(place: str, value: Any) -> Iterator[tuple[str, FunctionType]]:
    """Yield the functions that have variables of their own in containers and objects, each with the place of its holder."""
    if isinstance(value, FunctionType):
        yield place, value
        value = vars(value)  # forward.backward = backward
    elif isinstance(value, list):
        value = {f"[{k}]": each for k, each in enumerate(value)}
    elif isinstance(value, tuple):
        value = dict(enumerate(value))
    elif isinstance(value, SimpleNamespace):
        value = vars(value)
    for key, each in value.items() if isinstance(value, dict) else ():
        yield from _functions_in(place + (key if str(key).startswith("[") else ""), each)

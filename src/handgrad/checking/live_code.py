"""The author's functions as they run: which of them a call reaches, and their code exchanged for a while.

A function object keeps its identity when its code is exchanged, so that whoever holds it, an object, another module, a
closure, runs the changed code.
"""

from __future__ import annotations

import ast
import copy
import gc
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

from handgrad.checking.forward_guards import Guard, compiled_without_guards, left_out
from handgrad.checking.subject import CheckError

_LIBRARIES = (
    *(str(Path(sysconfig.get_path(name)).resolve()) for name in ("stdlib", "platstdlib")),
    str(Path(__file__).parents[1]),
)
_PACKAGES = ("site-packages", "dist-packages")

Codes = Mapping[FunctionType, CodeType]


def is_authors(filename: str) -> bool:
    """Whether a file is the author's own: no library's, and none of the checker's."""
    if filename.startswith("<") or any(name in filename for name in _PACKAGES):
        return False
    return not str(Path(filename).resolve()).startswith(_LIBRARIES)


def functions_of(call: Callable[[], object]) -> dict[FunctionType, int]:
    """Run a call, up to where it fails, and return the author's functions that it reached.

    Each comes with the number of its callers among them.
    """
    depths: dict[CodeType, int] = {}
    known: dict[str, bool] = {}

    def authors(code: CodeType) -> bool:
        if code.co_filename not in known:
            known[code.co_filename] = is_authors(code.co_filename)
        return known[code.co_filename]

    def called(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call" and frame.f_code not in depths and authors(frame.f_code):
            depth, caller = 0, frame.f_back
            while caller is not None:
                depth += authors(caller.f_code)
                caller = caller.f_back
            depths[frame.f_code] = depth

    before = sys.gettrace()
    sys.settrace(called)
    try:
        with suppress(CheckError):
            call()
    finally:
        sys.settrace(before)
    holders = gc.get_referrers(*depths) if depths else []
    functions = [each for each in holders if isinstance(each, FunctionType) and each.__code__ in depths]
    order = list(depths)
    functions.sort(key=lambda each: order.index(each.__code__))  # in which they were called
    return {each: depths[each.__code__] for each in functions}


def recompiled(
    functions: Iterable[FunctionType], change: Callable[[ast.Module, Path, bool], ast.AST]
) -> dict[FunctionType, CodeType]:
    """Return the functions' code from changed trees of their files, or of scripts; without a source there is none."""
    functions = list(functions)
    codes: dict[FunctionType, CodeType] = {}
    for file in dict.fromkeys(function.__code__.co_filename for function in functions):
        path = Path(file)

        def compiled(tree: ast.Module, *, is_script: bool, path: Path = path) -> CodeType:
            changed: Any = ast.fix_missing_locations(change(tree, path, is_script))
            return compiled_without_guards(changed, path)

        known: dict[tuple[str, int], CodeType] = {}
        if path.is_file():
            whole = compiled(ast.parse(path.read_bytes()), is_script=False)
            known = {(code.co_qualname, code.co_firstlineno): code for code in codes_in(whole)}
        for function in functions:
            old = function.__code__
            new = known.get((old.co_qualname, old.co_firstlineno))
            if (tree := getattr(function, "tree", None)) is not None:  # of a script
                new = compiled(copy.deepcopy(tree), is_script=True)
            same = new is not None and new.co_freevars == old.co_freevars
            if new is not None and same and old.co_filename == file and old.co_name != "<lambda>":
                codes[function] = new
    return codes


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """Yield some code, and that of the functions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_in(constant)


@contextmanager
def running(codes: Codes, names: Mapping[str, Any] | None = None) -> Iterator[None]:
    """Let functions run other code, with more names in their modules, until the context ends.

    Raises ValueError where the other code has other free variables.
    """
    before = {function: function.__code__ for function in codes}
    modules = {id(function.__globals__): function.__globals__ for function in codes}
    try:
        for function, code in codes.items():
            function.__code__ = code
        for module in modules.values():
            module.update(names or {})
        yield
    finally:
        for function, code in before.items():
            function.__code__ = code
        for module in modules.values():
            for name in names or ():
                module.pop(name, None)


@contextmanager
def without_guards(guards: Sequence[Guard], functions: Iterable[FunctionType]) -> Iterator[None]:
    """Let functions, and what is compiled of their files meanwhile, run with 0 for guards of forward."""
    with left_out(guards), running(recompiled(functions, lambda tree, path, is_script: tree)):
        yield


def names_used(code: CodeType) -> Iterator[str]:
    """Yield the names, of a module or of attributes, that some code and the functions in it use."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_used(constant)

"""The user's own file: imported from its path, and what there is in it to check."""

from __future__ import annotations

import ast
import inspect
import sys
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from handgrad.checking import CheckError
from handgrad.checking.input_draws import Source
from handgrad.checking.interfaces import adapt_script, has_backward
from handgrad.errors import HandgradError, nearest

FIX = "name its functions forward, backward and inputs, or NAME, NAME_backward and NAME_inputs"


@dataclass(frozen=True)
class Found:
    """A forward, its backward and what draws its inputs, as `handgrad.check` takes them, with the name in the file."""

    name: str
    forward: Any
    backward: Callable[..., Any] | None
    inputs: Source | None


@contextmanager
def importing_from(folder: Path) -> Iterator[None]:
    """Let a file import from its own folder, as `python FILE.py` does; a call of `sys.exit` in it is an error."""
    first = str(folder.resolve())
    sys.path.insert(0, first)
    try:
        yield
    except SystemExit:
        raise CheckError(
            "the file ends Python when it is imported or called",
            fix='put that under `if __name__ == "__main__":`',
        ) from None
    finally:
        if first in sys.path:
            sys.path.remove(first)


def import_file(path: Path) -> ModuleType:
    """Run a file as a module of its own name, without a cache: its bytecode may be older than a repair in this second."""
    if not path.is_file():
        raise CheckError(f"{path}: there is no such file", fix="give a Python file, FILE.py or FILE.py:NAME")
    if path.suffix != ".py":
        raise CheckError(f"{path}: is no Python file", fix="its name must end in .py")
    file = str(path.resolve())
    known = sys.modules.get(path.stem)
    name = path.stem if known is None or getattr(known, "__file__", "") == file else f"{path.stem} (checked)"
    module = sys.modules[name] = ModuleType(name)
    module.__file__, module.__package__ = file, ""
    try:
        exec(compile(path.read_bytes(), file, "exec", dont_inherit=True), vars(module))
    except HandgradError as error:  # a rule's, which names the line itself where it can
        del sys.modules[name]
        place = "" if file in error.problem else f"{_place(error, path)}: "
        raise CheckError(f"{place}{error.problem}", given=error.given, fix=error.fix) from None
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        text = error.msg if isinstance(error, SyntaxError) else error
        problem = f"{_place(error, path)}: {type(error).__name__}: {text}"
        raise CheckError(problem, fix="it must import") from None
    return module


def _place(error: BaseException, path: Path) -> str:
    """Return the last line of the user's file that an error went through."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{path if Path(error.filename) == path.resolve() else error.filename}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame.lineno for frame in frames if frame.filename == str(path.resolve())]
    return f"{path}:{own[-1]}" if own else str(path)


def find(module: ModuleType | None, path: Path, name: str) -> list[Found]:
    """Return what the file has to be checked under a name; without one, everything the convention finds.

    A script, which is no module, is one forward and one backward.
    """
    if module is None:
        pair = adapt_script(path)
        return [Found("", pair.forward, pair.backward, pair.inputs)]
    names = vars(module)
    if name:
        return [_found(names, path, name)]
    if "forward" in names or "backward" in names:
        return [_found(names, path, "")]
    found = [_found(names, path, each) for each in _with_backward(module)]
    if not found:
        raise CheckError(f"{path}: there is nothing to check in it", fix=FIX)
    return found


def _with_backward(module: ModuleType) -> list[str]:
    """Return the names of the file's own rules and functions that have a backward."""
    names = vars(module)
    own = {name for name, value in names.items() if getattr(value, "__module__", "") == module.__name__}
    return [
        name for name, value in names.items()
        if name in own and not name.startswith("_")
        and (has_backward(value) or (callable(value) and _backward_of(name, own)))
    ]  # fmt: skip


def _backward_of(name: str, names: Collection[str]) -> str:
    """Return the backward of a forward: ``relu_backward`` of ``relu``, ``affine_backward`` of ``affine_forward``."""
    tried = (f"{name}_backward", name.replace("forward", "backward"), name.replace("fwd", "bwd"))
    return next((each for each in tried if each in names and each != name), "")


def is_script(path: Path) -> bool:
    """Whether a file holds no function and no class, so that to run it is to train."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return False
    kinds = (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef, ast.Lambda)
    return not any(isinstance(node, kinds) for node in ast.walk(tree)) and any(
        isinstance(node, ast.For | ast.While) for node in tree.body
    )


def _found(names: Mapping[str, Any], path: Path, name: str) -> Found:
    """Return the functions of a name, "" for ``forward`` and ``backward``, with what draws their inputs."""
    if name and name not in names:
        known = [each for each in names if not each.startswith("_") and not inspect.ismodule(names[each])]
        raise CheckError(f"{path}: there is no {name!r} in it", fix=nearest(name, known) or FIX)
    inputs: Source | None = names.get(f"{name}_inputs", names.get("inputs"))
    forward, backward = (name, _backward_of(name, names)) if name else ("forward", "backward")
    # an object, or a function that returns loss and gradients
    if name and (has_backward(names[name]) or (inputs is not None and not backward)):
        return Found(name, names[name], None, inputs)
    for role in (forward, backward or f"{name}_backward"):
        if not callable(names.get(role)):
            what = "is no function" if role in names else "is missing"
            raise CheckError(f"{path}: {role!r} {what}", fix=FIX)
    if inputs is None:
        wanted = f"{name}_inputs or inputs" if name else "inputs"
        raise CheckError(
            f"{path}: {wanted} is missing",
            fix="write `def inputs(rng): return {…}`, which draws the arrays to check at, by their names",
        )
    return Found(name, names[forward], names[backward], inputs)

"""The user's own file: run from its path, and what there is in it to check."""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import click
import numpy as np

from handgrad.checking import CheckError
from handgrad.checking.input_draws import Source
from handgrad.checking.interfaces import (
    adapt_script,
    has_backward,
    has_gradients,
    has_update,
    line_of_update,
    operations_of,
)
from handgrad.checking.user_files import (
    Candidate,
    Example,
    UserFile,
    callers_first,
    calling_backward,
    candidates_in,
    example_of,
    not_taken,
    pairs_in,
    parts_of,
    run_by,
    run_file,
)
from handgrad.errors import HandgradError, nearest

FIX = "name its functions forward, backward and inputs, or NAME, NAME_backward and NAME_inputs"


@dataclass(frozen=True)
class Found:
    """A forward, its backward and what draws its inputs, as `handgrad.check` takes them, with the name in the file."""

    name: str
    forward: Any
    backward: Callable[..., Any] | None
    inputs: Source | None
    origin: str = ""  # of the inputs, where the file does not say that they are to be checked at
    problem: CheckError | None = None  # why it cannot be checked
    is_script: bool = False
    matched: tuple[str, ...] = ()  # how a script's loss and gradients were found
    limits: tuple[str, ...] = ()  # what a pass of a script does not prove
    parts: frozenset[str] = frozenset()  # what its backward calls
    surrogate: Callable[..., Any] | None = None  # what its backward is meant to differentiate instead


@contextmanager
def importing_from(file: Path) -> Iterator[None]:
    """Let a file import from its folder, and read no arguments, as `python FILE.py` does; its `sys.exit` is an error."""
    first, argv = str(file.parent.resolve()), sys.argv
    sys.argv = [str(file)]
    sys.path.insert(0, first)
    try:
        yield
    except SystemExit:
        raise CheckError(
            "the file ends Python when it is imported or called",
            fix='put that under `if __name__ == "__main__":`',
        ) from None
    finally:
        sys.argv = argv
        if first in sys.path:
            sys.path.remove(first)


@contextmanager
def named_failures(place: object, path: Path) -> Iterator[None]:
    """Turn what fails in handgrad, or in the user's file, into an error that names the line; a traceback helps no user."""
    try:
        yield
    except (HandgradError, click.ClickException, click.Abort):
        raise
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        problem, given = (
            f"{type(error).__name__}: {error}",
            f"in {Path(frame.filename).name}, line {frame.lineno}",
        )
        if Path(frame.filename).resolve() == path.resolve():
            fix = "mend that line, or call it in the file with arguments that it takes"
            raise CheckError(f"{place}: {problem}", given=given, fix=fix) from error
        fix = "please report it, with the file"
        raise CheckError(f"{place}: handgrad failed: {problem}", given=given, fix=fix) from error


def import_file(path: Path) -> ModuleType:
    """Run a file as a module of its own name; raises `CheckError` where any of its statements fails."""
    user_file = run_file(path)
    for place, problem in user_file.failures[:1]:
        raise CheckError(f"{place}: {problem}", fix="it must import")
    return user_file.module


def find(module: ModuleType, path: Path, name: str) -> list[Found]:
    """Return what a module has under a name; without one, everything that is named as the convention has it."""
    names = vars(module)
    if name:
        return [_named(names, path, name)]
    if "forward" in names or "backward" in names:
        return [_named(names, path, "")]
    own = [each for each, value in names.items() if getattr(value, "__module__", "") == module.__name__]
    found = [
        _named(names, path, each) for each in own if not each.startswith("_") and has_backward(names[each])
    ]
    if not found:
        raise CheckError(f"{path}: there is nothing to check in it", fix=FIX)
    return found


def find_all(
    user_file: UserFile, name: str, loss: str = "", gradients: Mapping[str, str] | None = None
) -> Iterator[Found]:
    """Yield what a file has to be checked, one after the other; what cannot be checked comes with its problem.

    What is named as the convention has it is taken at its word; of the rest, the arguments are those that the file itself
    calls it with, or drawn.
    """
    path, names = user_file.path, user_file.names
    if loss or gradients:
        yield _script(path, loss, gradients)
        return
    is_script = False
    operations = list(_operations(user_file, name))
    yield from operations
    if name:
        if operations:
            return
        candidates = [each for each in _by_name(user_file) if name in (each.name, each.backward_name)]
        if _inputs_of(names, name) is not None or name not in names or not candidates:
            yield _named(names, path, name)
            return
    elif _inputs_of(names) is not None and ("forward" in names or "backward" in names):
        yield _named(names, path, "")
        return
    else:
        candidates = candidates_in(user_file)
        if has_update(path) or (not candidates and has_gradients(path)):
            script = _script(path, loss, gradients)
            is_script = not (
                script.problem and (candidates or operations)
            )  # else it calls functions, which are checked
            if is_script:
                yield script
        elif not candidates and not operations:
            raise _nothing(user_file)
    made: dict[str, Example] = {}
    user_file.run_samples()
    checked, left = list[Candidate](), list[Found]()
    for candidate in callers_first(candidates):
        found = replace(_exampled(candidate, user_file, made), parts=frozenset(parts_of(candidate)))
        if found.problem:
            left.append(found)
            continue
        checked.append(candidate)
        yield replace(found, surrogate=names.get(f"{candidate.name}_surrogate"))
    if not is_script and not name and checked and (line := line_of_update(path)):
        problem = "this update and the lines around it are not judged, only what they call"
        user_file.failures.append((f"{path}:{line}", problem))
    if not (is_script or name or operations) and checked:
        for line, function in calling_backward(checked, user_file):
            problem = f"the gradient that {function} gives to a backward is not judged, only the backward"
            user_file.failures.append((f"{path}:{line}", problem))
        for line, function in not_taken(candidates, user_file):
            problem = f"{path}:{line}: {function} is not judged: no forward or loss of it was recognised"
            fix = "name its forward and its backward so, and let forward return its output"
            left.append(Found(function, None, None, None, problem=CheckError(problem, fix=fix)))
    if not is_script:  # whose parts they are, and it is checked
        known = {each.backward_name or each.name for each in checked}
        run = run_by(checked, user_file)
        for each in left:
            # its parts are checked, or it is a part of what is: that it is not is no verdict
            if each.problem and (each.name in run or each.parts & known):
                user_file.failures.append((each.name, each.problem.problem))
            else:
                yield each


def _operations(user_file: UserFile, name: str) -> Iterator[Found]:
    """Yield the operations of the file's classes whose values differentiate themselves, or of the one of this name."""
    for each, value in user_file.names.items():
        if getattr(value, "__module__", "") == user_file.module.__name__ and name in ("", each):
            for operation, pair in operations_of(value):
                assert isinstance(pair.inputs, Mapping)
                shapes = ", ".join(f"{key}{np.shape(drawn)}" for key, drawn in pair.inputs.items())
                yield Found(
                    f"{each}.{operation}", pair.forward, pair.backward, pair.inputs, f"{shapes}, drawn"
                )


def _by_name(user_file: UserFile) -> list[Candidate]:
    """Return all candidates, and what else may be named: any function, class and object of the file."""
    found = candidates_in(user_file)
    known = {each.name for each in found}
    others = (
        name
        for name, value in user_file.names.items()
        if name not in known and not isinstance(value, FunctionType)
    )
    return [*found, *(Candidate(name, user_file.names[name]) for name in others)]


def _inputs_of(names: Mapping[str, Any], name: str = "") -> Source | None:
    """Return what draws a name's inputs, or holds them by name, as the convention has it: no list of a script's data."""
    inputs = names.get(f"{name}_inputs", names.get("inputs"))
    return inputs if isinstance(inputs, Mapping) or callable(inputs) else None


def _exampled(candidate: Candidate, user_file: UserFile, made: dict[str, Example]) -> Found:
    names, name = user_file.names, candidate.name
    inputs = _inputs_of(names, name)
    if inputs is not None and not candidate.is_class:
        return Found(name, candidate.forward, candidate.backward, inputs)
    try:
        example = example_of(candidate, user_file, made)
    except CheckError as error:
        return Found(name, candidate.forward, candidate.backward, None, problem=error)
    if candidate.is_class:
        made[name] = example
    return Found(name, example.forward, example.backward, example.inputs, example.origin)


def _script(path: Path, loss: str, gradients: Mapping[str, str] | None) -> Found:
    try:
        pair = adapt_script(path, loss, gradients)
    except CheckError as error:
        return Found("", None, None, None, problem=error)
    return Found(
        "", pair.forward, pair.backward, pair.inputs, "the first step of the script",
        is_script=True, matched=pair.matched, limits=pair.limits,
    )  # fmt: skip


def _nothing(user_file: UserFile) -> CheckError:
    """Return the error for a file without anything to check: what failed in it, what it has, and what to write."""
    for place, problem in user_file.failures[:1]:
        return CheckError(f"{place}: {problem}", fix="it must import")
    path = user_file.path
    own = [
        name for name, value in user_file.names.items()
        if getattr(value, "__module__", "") == user_file.module.__name__ and not name.startswith("_")
    ]  # fmt: skip
    if "forward" in user_file.names or "backward" in user_file.names:
        _named(user_file.names, path, "")  # raises what is missing of the two
    problem = f"{path}: there is nothing to check in it"
    for name, value in user_file.names.items():
        file = getattr(sys.modules.get(getattr(value, "__module__", "")), "__file__", None)
        if (
            file
            and Path(file).resolve().parent == path.resolve().parent
            and value.__module__ != user_file.module.__name__
        ):
            source = path.parent / Path(file).name
            return CheckError(problem, given=f"{name} is defined in {source}", fix=f"handgrad check {source}")
    return CheckError(problem, given=f"it has {', '.join(own)}" if own else "", fix=FIX)


def _named(names: Mapping[str, Any], path: Path, name: str) -> Found:
    """Return the functions of a name, "" for ``forward`` and ``backward``, with what draws their inputs."""
    if name and name not in names:
        known = [each for each in names if not each.startswith("_") and not inspect.ismodule(names[each])]
        raise CheckError(f"{path}: there is no {name!r} in it", fix=nearest(name, known) or FIX)
    inputs = _inputs_of(names, name)
    forward, backward = (name, pairs_in(names).get(name, "")) if name else ("forward", "backward")
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

"""An example of how a candidate is called: as its own file calls it, or with drawn arguments that it takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from handgrad.checking.interfaces import has_backward, is_peer
from handgrad.checking.interfaces.names import is_target, plain
from handgrad.checking.subject import CheckError, seeded
from handgrad.checking.user_files.argument_search import (
    MISSHAPEN,
    ArgumentSearch,
    Example,
    how_well_it_fits,
)
from handgrad.checking.user_files.candidates import Candidate, is_backward_name
from handgrad.checking.user_files.drawn_arguments import COUNTS, OMITTED
from handgrad.checking.user_files.needed import functions_of, lines_that_settle, needed_names
from handgrad.checking.user_files.running import UserFile

LARGEST = 5000  # entries of an array in an example: with more, only the first rows are taken
FEW_ROWS = 8
PENALTIES = ("reg", "lam", "lmb", "l2", "weightdecay", "wd")  # a factor of 0 shows no mistake in its term
OPTIONS = {"activation", "reg", "lambd", "lr", "learningrate", "eta"}


def example_of(candidate: Candidate, user_file: UserFile, made: dict[str, Example]) -> Example:
    """Return an example of a candidate: its own file's, else a drawn one; ``made`` holds those of other classes."""
    if has_backward(candidate.forward) and not is_peer(candidate.forward):
        return Example(candidate.forward, None, None, "")
    recorded = _recorded(candidate, user_file)
    if recorded is not None:
        return recorded
    search = ArgumentSearch(candidate, user_file, made)
    example = search.run()
    if example is None:
        raise CheckError(
            f"no arguments were found that {candidate.name} takes: {search.problem}",
            given=f"the last were {search.described()}",
            fix="write an example in the file, and run it:\n" + lines_that_settle(candidate),
        )
    return example


def _recorded(candidate: Candidate, user_file: UserFile) -> Example | None:
    """Return an example of the arguments that the file itself calls a candidate with, if it does and they fit."""
    functions = functions_of(candidate)
    cls = candidate.forward if isinstance(candidate.forward, type) else type(candidate.forward)
    is_called = any((cls.__name__, each.__name__) in user_file.calls for each in functions)
    owner = cls.__name__ if is_called else ""
    calls = [user_file.call_of(each, owner) for each in functions]
    needed = needed_names(candidate)
    given: dict[str, Any] = {}
    for k, (call, function) in enumerate(zip(calls, functions, strict=True)):
        for name, value in call.arguments.items() if call else ():
            asked = k == 0 or name in needed or _is_asked_for(name, function)
            if name not in given and asked and (name in needed or k or name == "self"):
                given[name] = value
    if any(default is OMITTED and name not in given for name, default in needed.items()) or not any(calls):
        return None
    own = given.pop("self", None)
    forward = own if candidate.is_class else candidate.forward
    rows = _rows(given)
    inputs = {name: _telling(name, _fewer_rows(value, rows)) for name, value in given.items()}
    for tried in (_floating(inputs), inputs):
        try:
            with seeded(), np.errstate(all="ignore"):
                fits, *_ = how_well_it_fits(forward, candidate.backward, tried)
        except (Exception, SystemExit):  # with what the file gives it, it cannot be checked
            continue
        if fits >= MISSHAPEN:
            other = (f", but {name} {tried[name]}" for name in given if _is_no_penalty(name, given[name]))
            return Example(forward, candidate.backward, tried, "as the file calls it" + "".join(other))
    return None


def _floating(inputs: dict[str, Any]) -> dict[str, Any]:
    """Return inputs with whole numbers as floating point, where they are data and no labels."""
    return {
        name: value.astype(float)
        if isinstance(value, np.ndarray) and value.dtype.kind in "iu" and not is_target((name,)) else value
        for name, value in inputs.items()
    }  # fmt: skip


def _telling(name: str, value: Any) -> Any:
    """Return 1 for a number of epochs: the gradient is that of one step; and a penalty's factor that is not 0."""
    if any(word in plain(name) for word in COUNTS) and isinstance(value, int):
        return 1
    return 0.1 if _is_no_penalty(name, value) else value


def _is_no_penalty(name: str, value: Any) -> bool:
    """Whether a penalty is switched off."""
    return type(value) in (int, float) and value == 0 and plain(name).startswith(PENALTIES)


def _is_asked_for(name: str, function: Callable[..., Any]) -> bool:
    """Whether a recorded argument is one to give: not what forward returned, and no upstream gradient."""
    return is_target((name,)) or plain(name) in OPTIONS or not is_backward_name(function.__name__)


def _rows(given: dict[str, Any]) -> int:
    """Return the number of rows of the first large array, or 0."""
    large = [
        value
        for value in given.values()
        if isinstance(value, np.ndarray) and value.ndim and value.size > LARGEST
    ]
    return len(large[0]) if large else 0


def _fewer_rows(value: Any, rows: int) -> Any:
    shared = rows > FEW_ROWS and isinstance(value, np.ndarray) and value.ndim and len(value) == rows
    return value[:FEW_ROWS] if shared else value

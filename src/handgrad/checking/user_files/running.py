"""A user's file is run once, statement by statement, and what its functions are called with is recorded."""

from __future__ import annotations
import __future__

import ast
import builtins
import copy
import doctest
import importlib
import io
import os
import signal
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

import numpy as np

from handgrad.checking.interfaces import has_update
from handgrad.checking.interfaces.script_updates import is_main_guard
from handgrad.checking.interfaces.tensors import finish_imports, is_array_like, without_history
from handgrad.checking.subject import Array, CheckError
from handgrad.errors import HandgradError

SECONDS = 5.0  # for everything in a file that is no definition: what has been called by then is an example
COMPILING = 10.0  # more, where JAX compiles each operation
ENOUGH = 2000  # calls of the file's own functions without a new one among them: a training that goes on
EAGER = 100  # such calls that JAX runs line by line; then it compiles what it is to
INERT = {"MPLBACKEND": "Agg"}  # no windows
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
SLOW = (
    "torch", "jax", "autograd", "tensorflow", "scipy", "sklearn", "matplotlib", "pandas",
)  # fmt: skip  # seconds to import
BUSY = 5  # times the limit, of a machine that does other things
MOST_BYTES = 2**26  # of an array that is copied: it holds data, and no parameter
MADE = 4  # results of a function: functions, of which one takes the arguments of the first call, or outputs


class EnoughError(BaseException):
    """The file has run long enough; no ordinary exception, so that its own ``except`` does not catch it."""


@dataclass(frozen=True)
class Call:
    """The first call of a function: its arguments by name, ``self`` among them, as they were."""

    arguments: dict[str, Any]
    returned: dict[str, str] = field(
        default_factory=dict
    )  # of those that a function returned, its qualified name


@dataclass
class UserFile:
    """A file that was run: its module, its tree, the first call of each function, and the statements that failed."""

    path: Path
    module: ModuleType
    tree: ast.Module
    calls: dict[tuple[str, str], Call] = field(
        default_factory=dict
    )  # by the class of self, or "", and the name
    made: dict[str, list[Any]] = field(
        default_factory=dict
    )  # what the first calls of a function with inner ones returned
    results: dict[str, deque[Any]] = field(default_factory=dict)  # what each function returned last
    arrays: dict[str, tuple[Array, Array]] = field(default_factory=dict)  # by name, with the values they had
    failures: list[tuple[str, str]] = field(default_factory=list)  # place, error
    not_installed: list[str] = field(default_factory=list)  # modules that it imports
    ended: int = 0  # the line of the first statement that was ended, having run long enough

    @property
    def names(self) -> dict[str, Any]:
        """What the module defines."""
        return vars(self.module)

    def call_of(self, function: Any, owner: str = "") -> Call | None:
        """Return the first call of a function, or of a class's method."""
        return self.calls.get((owner, getattr(function, "__name__", "")))

    def run_samples(self) -> None:
        """Run what the file does as a script, and the examples in its docstrings, for the arguments of its calls.

        A training there has no effect on the file's arrays: a function that reads them is checked where its first call was.
        """
        self.arrays.clear()  # of calls while it was imported
        self.keep_arrays()
        with _as_a_script(self.path):
            for statement in self.tree.body:
                if is_main_guard(statement):
                    for inner in statement.body:
                        _run(self, inner)
            for text in _docstrings(self.tree):
                for example in _examples(text):
                    _run(self, *example)
        for name, (array, values) in self.arrays.items():
            array[...] = values
            self.names[name] = array

    def keep_arrays(self) -> None:
        """Copy the arrays of numbers that the file has by now, but for those that were copied before."""
        for name, value in self.names.items():
            is_array = type(value) is np.ndarray and value.dtype.kind == "f" and value.flags.writeable
            if is_array and name not in self.arrays and value.nbytes <= MOST_BYTES:
                self.arrays[name] = value, value.copy()


def run_file(path: Path) -> UserFile:
    """Run a file as a module of its own name, without a cache: its bytecode may be older than a repair in this second.

    A definition or an import that fails is an error; anything else that does is noted.
    """
    if not path.is_file():
        problem = "is a folder" if path.is_dir() else "there is no such file"
        raise CheckError(f"{path}: {problem}", fix="give a Python file, FILE.py or FILE.py:NAME")
    if path.suffix != ".py":
        fix = "its name must end in .py"
        if path.suffix == ".ipynb":
            fix = f"call check(...) in a cell, or convert it: jupyter nbconvert --to script {path}"
        raise CheckError(f"{path}: is no Python file", fix=fix)
    file = str(path.resolve())
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError) as error:
        line, text = getattr(error, "lineno", None), getattr(error, "msg", error)
        place = f"{path}:{line}" if line else str(path)
        raise CheckError(f"{place}: {type(error).__name__}: {text}", fix="it must import") from None
    known = sys.modules.get(path.stem)
    name = path.stem if known is None or getattr(known, "__file__", "") == file else f"{path.stem} (checked)"
    module = sys.modules[name] = ModuleType(name)
    module.__file__, module.__doc__ = file, ast.get_docstring(tree)
    module.__package__ = _package_of(path, tree)
    user_file = UserFile(path, module, tree)
    _import_libraries(tree)
    try:
        with _as_a_script(path):
            trains = False
            for statement in tree.body:
                trains = trains or has_update(statement)  # in the file itself: that is checked as a script
                if not trains or isinstance(statement, DEFINITIONS):
                    _run(user_file, statement)
    except BaseException:
        del sys.modules[name]
        raise
    return user_file


def _package_of(path: Path, tree: ast.Module) -> str:
    """Import the package of a file's relative imports, ``from .layers import Linear``, and return its name; or ""."""
    level = max((each.level for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)), default=0)
    folders = path.resolve().parents
    if not 0 < level < len(folders):
        return ""
    name = ".".join(folders[0].parts[-level:])
    sys.path.insert(0, str(folders[level]))
    try:
        importlib.import_module(name)
    except Exception:  # the file's own import reports it
        return ""
    finally:
        sys.path.remove(str(folders[level]))
    return name


def _import_libraries(tree: ast.Module) -> None:
    """Import the file's large libraries without a limit: an import that is cut off cannot be repeated."""
    imports = (each for each in tree.body if isinstance(each, ast.Import | ast.ImportFrom))
    for each in imports:
        names = (
            [each.module or ""] if isinstance(each, ast.ImportFrom) else [alias.name for alias in each.names]
        )
        for library in {name.partition(".")[0] for name in names} & set(SLOW):
            with suppress(ImportError):  # the file's own import reports it
                importlib.import_module(library)
    finish_imports()


def _run(user_file: UserFile, statement: ast.stmt) -> None:
    """Run one statement; one that defines nothing may fail."""
    path = user_file.path
    annotations = "annotations" in user_file.names
    flags = __future__.annotations.compiler_flag if annotations else 0
    code = compile(ast.Module([statement], []), str(path.resolve()), "exec", flags, dont_inherit=True)
    try:
        loops = isinstance(statement, ast.For | ast.While)  # and prints each time
        with _Recorder(user_file).recording(), redirect_stdout(io.StringIO()) if loops else nullcontext():
            exec(code, user_file.names)
    except EnoughError:
        user_file.ended = user_file.ended or statement.lineno
    except HandgradError as error:  # a rule's, which names the line itself where it can
        place = "" if str(path.resolve()) in error.problem else f"{_place(error, path)}: "
        raise CheckError(f"{place}{error.problem}", given=error.given, fix=error.fix) from None
    except (Exception, SystemExit) as error:
        problem = f"{type(error).__name__}: {error}"
        if isinstance(statement, DEFINITIONS):
            fix = "it must import"
            if isinstance(error, NameError) and user_file.not_installed:
                fix = f"install what it imports: {', '.join(dict.fromkeys(user_file.not_installed))}"
            raise CheckError(f"{_place(error, path)}: {problem}", fix=fix) from None
        if isinstance(error, ModuleNotFoundError) and error.name:
            user_file.not_installed.append(error.name.partition(".")[0])
        if isinstance(error, NameError) and user_file.ended:
            problem = (
                f"not run, since line {user_file.ended} was ended early: it had run long enough to be checked"
            )
        user_file.failures.append((_place(error, path), problem))


def _place(error: BaseException, path: Path) -> str:
    """Return the last line of the user's file that an error went through."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{path if Path(error.filename) == path.resolve() else error.filename}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame.lineno for frame in frames if frame.filename == str(path.resolve())]
    return f"{path}:{own[-1]}" if own else str(path)


def _docstrings(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, *DEFINITIONS)) and (text := ast.get_docstring(node)):
            yield text


def _examples(text: str) -> Iterator[list[ast.stmt]]:
    try:
        for example in doctest.DocTestParser().get_examples(text):
            yield from ([each] for each in ast.parse(example.source).body)
    except (ValueError, SyntaxError):
        return


# ------------------------------------------------------------------------------------------- recording


class _Recorder:
    """Records the first call of each of a file's functions, and ends a statement that goes on without a new one."""

    def __init__(self, user_file: UserFile) -> None:
        self.user_file, self.calls, self.made = user_file, user_file.calls, user_file.made
        self.file, self.since = str(user_file.path.resolve()), 0

    @contextmanager
    def recording(self) -> Iterator[None]:
        self.since = 0
        sys.setprofile(self._on_event)
        try:
            yield
        finally:
            sys.setprofile(None)

    def _on_event(self, frame: FrameType, event: str, result: Any) -> None:
        code = frame.f_code
        if event == "return" and code.co_filename == self.file and code.co_cellvars:
            known = self.made.setdefault(code.co_name, [])
            known += [result] * (len(known) < MADE)
        if code.co_filename != self.file or code.co_name.startswith("<"):
            return
        if event == "return" and result is not None:
            self.user_file.results.setdefault(code.co_qualname, deque(maxlen=MADE)).append(result)
        if event != "call":
            return
        self.since += 1
        owner = type(frame.f_locals["self"]).__name__ if "self" in frame.f_locals else _class_of(code)
        if (owner, code.co_name) not in self.calls:
            self.since = 0
            self.user_file.keep_arrays()
            call = _call(code, frame.f_locals, self.user_file.results)
            if call is not None:
                self.calls[owner, code.co_name] = call
        if self.since == EAGER:
            _set_jit(disabled=False)
        if self.since > ENOUGH:
            raise EnoughError


@contextmanager
def _as_a_script(path: Path) -> Iterator[None]:
    """Run what is within as Python runs a file, but JAX's jitted functions line by line, so that arguments are numbers.

    What opens windows, asks for input or trains on is cut off, and NumPy warns of no overflow: that is the check's to state.
    """
    environment = {name: os.environ.get(name) for name in INERT}
    os.environ.update(INERT)
    argv, sys.argv = sys.argv, [str(path)]
    asked, builtins.input = builtins.input, _no_input
    was_disabled = _set_jit(disabled=True)
    try:
        with time_limit(SECONDS + COMPILING * ("jax" in sys.modules)), np.errstate(all="ignore"):
            yield
    except EnoughError:
        pass  # it rang between two statements
    finally:
        sys.argv, builtins.input = argv, asked
        _set_jit(disabled=was_disabled)
        for name, value in environment.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _set_jit(*, disabled: bool) -> bool:
    """Let JAX run jitted functions line by line or not, where it is imported; return what it did before."""
    jax: Any = sys.modules.get("jax")
    before = jax is not None and jax.config.jax_disable_jit
    if jax is not None:
        jax.config.update("jax_disable_jit", disabled)
    return bool(before)


def _class_of(code: CodeType) -> str:
    """Return the class that a static method belongs to, or the function that an inner one does; or ""."""
    return code.co_qualname.rpartition(".")[0].removesuffix(".<locals>")


def _call(code: CodeType, values: dict[str, Any], results: Mapping[str, deque[Any]]) -> Call | None:
    """Return a call's arguments, copied, with the functions that returned them; None where they cannot be copied."""
    taken = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    names = [name for name in taken if not type(values.get(name)).__module__.startswith("torch.autograd")]
    try:
        given = {name: values[name] for name in names if name in values}
        copied = copy.deepcopy(given, {id(each): own for each, own in without_history(given.values())})
        makers = {
            id(part): name
            for name, last in results.items()
            for result in last
            for part in (result if isinstance(result, tuple) else (result,))
            if is_array_like(part)
        }
        return Call(copied, {name: makers[id(value)] for name, value in given.items() if id(value) in makers})
    except Exception:  # whatever the copied object's own code raises: it holds a lock, a module
        return None


def _no_input(*_: object) -> str:
    raise EOFError("the file asks for input, and there is none while it is checked")


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise EnoughError in what takes more of the processor's time, or five times as long: in the main thread alone."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    worked, begun = time.process_time(), time.monotonic()

    def ring(*_: object) -> None:
        if time.process_time() - worked >= seconds or time.monotonic() - begun >= BUSY * seconds:
            raise EnoughError

    handler = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, min(1.0, seconds))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)

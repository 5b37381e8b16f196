"""Arguments that a candidate takes: each layout is tried, then one argument after the other is changed."""

from __future__ import annotations

import ast
import copy
import inspect
import itertools
import math
import re
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from types import FunctionType
from typing import Any

import numpy as np

from handgrad.checking.interfaces import gradient_attribute, has_backward
from handgrad.checking.interfaces.jax_on_numpy import UnknownCounterpartError, numpy_for_jax
from handgrad.checking.interfaces.names import arrays_in, is_target, plain, words_of
from handgrad.checking.interfaces.signatures import required, returned_names
from handgrad.checking.interfaces.tensors import is_array, tensors_of
from handgrad.checking.subject import seeded
from handgrad.checking.user_files.candidates import Candidate, pairs_of
from handgrad.checking.user_files.documented_shapes import documented_arrays
from handgrad.checking.user_files.drawn_arguments import OMITTED, SIZES, Options, Parameter, shown
from handgrad.checking.user_files.fitting import (
    DEGENERATE,
    FITS,
    MISSHAPEN,
    RETURNS,
    UNSUMMED,
    how_well_it_fits,
)
from handgrad.checking.user_files.needed import (
    flat_among,
    functions_of,
    indices_among,
    lists_among,
    needed_by,
    numbers_among,
)
from handgrad.checking.user_files.parameter_words import ATTENDED, is_bias, is_weight
from handgrad.checking.user_files.running import EnoughError, UserFile, time_limit

TRIALS = 600  # of arguments, from each start
STARTS = 4  # layouts from which arguments are changed
TRIAL_SECONDS = 2.0
JAX_SECONDS = 10.0  # for what NumPy gets through
SEARCH_SECONDS = 6.0  # of processor time, for slow functions; the others are ended by the number of trials
Score = tuple[int, tuple[int, ...]]
"""How far a trial gets: into which function, to which line and column; then one of those below."""


@dataclass(frozen=True)
class Example:
    """A candidate with the arguments that it is checked at, and where they are from."""

    forward: Any
    backward: Callable[..., Any] | None
    inputs: Any
    origin: str
    constructed: dict[str, Any] = field(default_factory=dict)  # what its constructor was given


Trial = tuple[tuple[Score, Example | None], dict[Parameter, int]]
"""How far some arguments get, with the example if they get through; and which option each parameter has."""


class ArgumentSearch:
    """The search for one candidate; ``made`` holds the examples of the file's other classes."""

    def __init__(self, candidate: Candidate, user_file: UserFile, made: dict[str, Example]) -> None:
        self.candidate, self.user_file = candidate, user_file
        self.problem = "it takes none"
        self.parameters = dict(needed_by(candidate))
        self.chains = _chains(made)
        names = user_file.names
        roles = [each.role for each in self.parameters]
        known = {name: value for name, value in names.items() if _is_plain_value(value)}
        call = user_file.calls.get((candidate.name, "__init__")) if candidate.is_class else None
        known |= {name: value for name, value in call.arguments.items() if name != "self"} if call else {}
        functions = {name: value for name, value in names.items() if isinstance(value, FunctionType)}
        pairs = [(each.forward, each.backward) for each in pairs_of(functions) if each.backward]
        choices = [*sorted({*_strings(user_file.tree)}), *(each.forward for each in made.values())]
        self.drawn = Options(roles, known, choices, pairs, self.chains)
        self.drawn.indices = indices_among(candidate)
        self.drawn.numbers = numbers_among(candidate)
        self.drawn.flat, self.drawn.lists = flat_among(candidate), lists_among(candidate)
        stated = documented_arrays(
            functions_of(candidate), [each for each in roles if not is_target((each,))]
        )
        self.drawn.known = {**stated, **known}
        self.made = _initialised(functions, self.drawn)
        self.drawn.begin_with(self.made)
        self.attributes = bool(candidate.backward and gradient_attribute(candidate.backward))
        self.libraries = _libraries(user_file) if not has_backward(candidate.forward) else [""]
        self.is_unknown = False  # whether the last trial failed where NumPy has no function for one of JAX's
        self.library = ""  # whose tensors are drawn; NumPy's arrays without one
        self.options: dict[Parameter, list[Any]] = {}
        self.by_layout: dict[Parameter, bool] = {}  # whether the first options are one for each layout
        self.best: dict[Parameter, int] = {}

    def run(self) -> Example | None:
        """Return an example at which everything fits; sizes that are all alike come last: they hide mistakes."""
        best: tuple[Score, Example | None] = ((0, ()), None)
        for alike, library in itertools.product((False, True), self.libraries):
            self.library = library
            for each, default in self.parameters.items():
                self.options[each] = self.drawn.of(each, default, alike=alike)
                self.by_layout[each] = self.drawn.by_layout
            (stage, place), example = self._climb(time.process_time() + SEARCH_SECONDS / (1 + alike))
            if (min(stage, DEGENERATE) if alike else stage, place) > best[0]:
                best = (stage, place), example
            if best[0][0] >= MISSHAPEN:
                break
        return best[1]

    def _climb(self, end: float) -> tuple[Score, Example | None]:
        """Return the best trial that is reached from one of the layouts until a time, those that get furthest first."""
        starts = [
            {each: self._first(each, k) for each in self.parameters} for k in range(len(self.drawn.layouts))
        ]
        tried: list[Trial] = []
        for each in starts if self.parameters else starts[:1]:
            tried.append((self._trial(each), each))
            if tried[-1][0][0] >= (FITS, (len(self.parameters),)) and not self._has_images(each):
                break
        tried.sort(key=lambda each: each[0][0], reverse=True)
        best = tried[0]
        for start in tried[:STARTS]:
            reached = self._climbed(start, end)
            if start is tried[0] or _gets_further(reached[0][0], best[0][0]):
                best = reached
            if best[0][0][0] >= UNSUMMED:
                break
        if self._has_images(best[1]):  # of what takes rows too, those are meant
            rows = next((start for start in tried if not self._has_images(start[1])), best)
            reached = self._climbed(rows, end, images=False)
            best = reached if reached[0][0][0] >= best[0][0][0] else best
        self.best = best[1]
        return best[0]

    def _has_images(self, chosen: dict[Parameter, int]) -> bool:
        values = (self.options[each][k] for each, k in chosen.items())
        return any(is_array(each) and each.ndim > 3 for each in values)

    def _climbed(self, start: Trial, end: float, *, images: bool = True) -> Trial:
        """Return the best trial that is reached by changing one argument after the other, until a time."""
        reached, left = start, TRIALS
        while reached[0][0][0] < UNSUMMED and left > 0 and time.process_time() < end:
            better = None
            for defaults in (False, True):  # those that have one are changed where nothing else helps
                for changed in self._neighbours(reached[1], defaults=defaults):
                    if not images and self._has_images(changed):
                        continue
                    left -= 1
                    trial = self._trial(changed)
                    if _gets_further(trial[0], (better or reached)[0][0]):
                        better = (trial, changed)
                    if (better or reached)[0][0][0] >= UNSUMMED or left <= 0 or time.process_time() > end:
                        break
                if better is not None:
                    break
            if better is None:
                break
            reached = better
        return reached

    def _neighbours(self, chosen: dict[Parameter, int], *, defaults: bool) -> Iterator[dict[Parameter, int]]:
        """Yield the arguments with another option of one: the shapes of others first, with which it may be added."""
        for parameter, options in self.options.items():
            if any(each is OMITTED for each in options) != defaults or parameter.role in self.made:
                continue
            others = (self.options[each][k] for each, k in chosen.items() if each != parameter)
            shapes = {np.shape(value) for value in others if isinstance(value, np.ndarray)}
            left = [k for k in range(len(options)) if k != chosen[parameter]]
            for k in sorted(
                left, key=lambda k: not isinstance(options[k], np.ndarray) or options[k].shape not in shapes
            ):
                yield {**chosen, parameter: k}

    def _first(self, parameter: Parameter, layout: int) -> int:
        options = self.options[parameter]
        known = self.drawn.known.get(parameter.name, self)
        leading = any(each is OMITTED or each is known for each in options[:2])
        return 0 if leading or not self.by_layout[parameter] else layout

    def _trial(self, chosen: dict[Parameter, int]) -> tuple[Score, Example | None]:
        """Return how far a candidate gets with some arguments, and the example if it gets through.

        JAX compiles each operation for each shape: it is given only arguments with which NumPy gets through.
        """
        if self.library == "jax":
            with numpy_for_jax(self.user_file.names):
                score, example = self._trial_with("", chosen)
            if example is None and not self.is_unknown:
                return score, None
        return self._trial_with(self.library, chosen)

    def _trial_with(self, library: str, chosen: dict[Parameter, int]) -> tuple[Score, Example | None]:
        values = {each: self.options[each][k] for each, k in chosen.items()}
        constructed, inputs = (self._given(library, values, group) for group in ("constructor", "inputs"))
        seconds = JAX_SECONDS if library == "jax" else TRIAL_SECONDS
        forward = self.candidate.forward
        try:
            with seeded(), time_limit(seconds), np.errstate(all="ignore"):
                if self.candidate.is_class:
                    forward = self._object(constructed)
                stage, matched, others = how_well_it_fits(forward, self.candidate.backward, inputs)
        except (
            Exception,
            SystemExit,
            EnoughError,
        ) as error:  # whatever the user's code does at what does not fit
            self.problem, self.is_unknown = (
                _first_line(error),
                isinstance(_cause(error), UnknownCounterpartError),
            )
            self._shorten(values)
            return self._progress(error), None
        self._offer(others)
        given = inputs.values()
        little = not self.candidate.is_class and all(map(_proves_little, given))
        if stage == FITS and (any(map(_is_degenerate, given)) or _broadcast(given) or little):
            stage = DEGENERATE
        attended = {np.ndim(value) for name, value in inputs.items() if plain(name) in ATTENDED}
        stage = min(stage, DEGENERATE) if len(attended) > 1 else stage
        described = ", ".join(
            f"{each.role} {shown(value)}" for each, value in values.items() if value is not OMITTED
        )
        return (stage, (matched,)), Example(forward, self.candidate.backward, inputs, described, constructed)

    def _shorten(self, values: dict[Parameter, Any]) -> None:
        """Add a vector of all parameters with as many entries as the last of them needs, by the error at its reshape."""
        said = re.search(r"cannot reshape array of size (\d+) into shape \(([\d,]+)\)", self.problem)
        for parameter in [each for each in values if said and each.role in self.drawn.flat]:
            assert said is not None
            left, shape = int(said[1]), [int(each) for each in said[2].split(",") if each]
            vector, length = self.options[parameter][0], len(values[parameter]) - left + math.prod(shape)
            if 0 < length < len(vector) and all(len(each) != length for each in self.options[parameter]):
                self.options[parameter].append(vector[:length])

    def _offer(self, others: dict[str, tuple[int, ...]]) -> None:
        """Add arrays of the shapes that gradients have, where these are their arguments' in another layout, or one number."""
        for parameter, options in self.options.items():
            shape = others.get(parameter.role)
            arrays = (each for each in options if isinstance(each, np.ndarray))
            if shape is None or any(each.shape == shape for each in arrays):
                continue
            if shape or not (
                is_bias(parameter.role) or is_weight(parameter.role)
            ):  # whose sum may be a mistake
                options.append(np.asarray(np.random.default_rng(5).uniform(0.5, 1.5, shape)))

    def _given(self, library: str, values: dict[Parameter, Any], group: str) -> dict[str, Any]:
        given: dict[str, Any] = {}
        for parameter, value in values.items():
            if value is OMITTED or parameter.group != group:
                continue
            value = tensors_of(library, copy.deepcopy(value))
            if self.attributes and isinstance(value, np.ndarray):
                value = value.view(_array_class(self.user_file))
            if parameter.key:
                given.setdefault(parameter.name, {})[parameter.key] = value
            else:
                given[parameter.name] = value
        return given

    def _object(self, given: dict[str, Any]) -> Any:
        cls = self.candidate.forward
        several = any(each.kind is each.VAR_POSITIONAL for each in inspect.signature(cls).parameters.values())
        chain = copy.deepcopy(self.chains[0]) if self.chains else []
        if several:
            return cls(*chain, **given)
        made = cls(**copy.deepcopy(given))
        adds = (getattr(made, name, None) for name in ("add", "add_layer", "addLayer", "append"))
        add = next((each for each in adds if each is not None), None)
        if add is not None and [] in [each for each in vars(made).values() if isinstance(each, list)]:
            for layer in chain:
                add(layer)
        return made

    def _progress(self, error: BaseException) -> Score:
        """Return which function an error came from, and how far in it."""
        error = _cause(error)
        file = str(self.user_file.path.resolve())
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
        if not frames:
            return RETURNS - 1, ()
        names = [function.__name__ for function in functions_of(self.candidate)]
        first = frames[0].name
        stage = 0 if first == "__init__" else 1 + names.index(first) if first in names else 1
        return min(stage, RETURNS - 2), tuple(
            each for frame in frames for each in (frame.lineno or 0, frame.end_colno or 0)
        )

    def described(self) -> str:
        """Return the arguments that got furthest."""
        items = ((each.role, self.options[each][k]) for each, k in self.best.items())
        return (
            ", ".join(f"{role} {shown(value)}" for role, value in items if value is not OMITTED) or "nothing"
        )


def _cause(error: BaseException) -> BaseException:
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _gets_further(one: Score, other: Score) -> bool:
    """Whether one trial is the better: where both run to the end, first by how many gradients are matched."""
    if min(one[0], other[0]) >= MISSHAPEN:
        return one[::-1] > other[::-1]
    return one > other


def _initialised(functions: Mapping[str, FunctionType], drawn: Options) -> dict[str, Any]:
    """Return the parameters that a file's own functions make, by the names under which they return them."""
    found: dict[str, Any] = {}
    for name, function in functions.items():
        if not {"init", "initialize", "initialise", "initializer"} & set(words_of(name)):
            continue
        wanted = (Parameter("constructor", each) for each in required(function))
        names = returned_names(function)
        try:
            made = function(**{each.name: drawn.of(each, each)[0] for each in wanted})
        except Exception:  # it takes something else
            continue
        values = made if isinstance(made, tuple) and len(made) == len(names) else (made,)
        found |= {
            name: value for name, value in zip(names, values, strict=False) if name and arrays_in(value)
        }
    return found


def _libraries(user_file: UserFile) -> list[str]:
    """Return the libraries whose arrays a file's functions may take, by its modules; "" is NumPy."""
    modules = {
        value.__name__.partition(".")[0] for value in user_file.names.values() if inspect.ismodule(value)
    }
    others: list[str] = [each for each in ("torch", "jax") if each in modules]
    return others if "numpy" not in modules and others else ["", *others]


def _is_degenerate(value: Any) -> bool:
    """Whether an input has one row only: a sum over the rows that is missing does not show."""
    return is_array(value) and value.ndim == 2 and value.shape[0] == 1 < value.shape[1]


def _proves_little(value: Any) -> bool:
    """Whether an input has whole numbers alone, in which there is no slope, or is a single number, without sums."""
    return (is_array(value) and np.asarray(value).dtype.kind in "iub") or isinstance(value, float)


def _broadcast(values: Iterable[Any]) -> bool:
    """Whether an array of rows is the end of another's shape: they add up, and were meant to be of the same."""
    shapes = {value.shape for value in values if is_array(value) and value.ndim > 1}
    return any(len(one) < len(other) and other[-len(one) :] == one for one in shapes for other in shapes)


def _first_line(error: BaseException) -> str:
    if isinstance(error, EnoughError):
        return "it runs too long"
    return (getattr(error, "problem", "") or f"{type(error).__name__}: {error}").splitlines()[0]


def _is_plain_value(value: Any) -> bool:
    return isinstance(value, np.ndarray | float | int | str | list | dict) and not isinstance(value, bool)


def _array_class(user_file: UserFile) -> type:
    """Return the file's own class of arrays that have attributes, or one."""
    own = (
        each for each in user_file.names.values() if isinstance(each, type) and issubclass(each, np.ndarray)
    )
    return next((each for each in own if each is not np.ndarray), _Array)


class _Array(np.ndarray):
    """An array that takes attributes."""


def _strings(tree: ast.AST) -> Iterator[str]:
    """Yield the strings that a file compares with."""
    for node in ast.walk(tree):
        for side in (node.left, *node.comparators) if isinstance(node, ast.Compare) else ():
            for each in ast.walk(side):
                if isinstance(each, ast.Constant) and isinstance(each.value, str):
                    yield each.value


NO_LAYERS = {"loss", "mse", "entropy", "cost", "error", "net", "network", "model"}  # words of classes' names


def _chains(made: dict[str, Example]) -> list[list[Any]]:
    """Return layers in a row that fit each other: of a class that takes two sizes, with an activation between two of them."""
    for example in made.values():
        sizes = [name for name, value in example.constructed.items() if type(value) is int]
        if len(sizes) != 2 or type(example.forward).__module__.startswith("handgrad"):
            continue
        cls, others = type(example.forward), {k: v for k, v in example.constructed.items() if k not in sizes}
        try:
            first, last = (
                cls(**dict(zip(sizes, pair, strict=True)), **copy.deepcopy(others))
                for pair in pairwise(SIZES[:3])
            )
        except Exception:  # it needs other arguments for other sizes
            continue
        plain = [
            (words_of(name), each.forward) for name, each in made.items() if not required(type(each.forward))
        ]
        between = [each for words, each in plain if not NO_LAYERS & set(words)]
        return [[first, *copy.deepcopy(between[:1]), last], [first, last]]
    return []

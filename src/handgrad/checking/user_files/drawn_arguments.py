"""What a parameter may be given, from its name: arrays of small sizes in the layouts that people use, sizes, options."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from handgrad.checking.interfaces.names import RATES, is_derivative_name, is_target, plain
from handgrad.checking.user_files.layouts import INDICES, LAYOUTS, OTHERS, ROLES
from handgrad.checking.user_files.parameter_words import (
    CHOICES,
    COUNTS,
    FRACTIONS,
    LISTS,
    ONE_INDEX,
    PLURALS,
    PREDICTIONS,
    ROW_COUNTS,
    SCALES,
    SPREADS,
    STATES,
    STRIDES,
    TRUNCATION,
    WINDOWS,
    is_bias,
    is_no_penalty,
    is_size,
    is_weight,
)

Shape = tuple[int, ...]

SIZES = (6, 5, 4, 2)  # of the input, then of each layer: no two alike, and not the rows
ROWS, ALIKE = 7, 4  # ALIKE: of every axis, where code runs only if they are the same
LONG = 400  # entries, enough for the matrices of a small network
OMITTED = object()  # a parameter that keeps its default


@dataclass(frozen=True)
class Parameter:
    """One thing that has to be given: a parameter of a constructor or a function, or an entry of its dictionary."""

    group: str  # "constructor" or "inputs"
    name: str
    key: str = ""  # of a dictionary that is given for ``name``

    @property
    def role(self) -> str:
        """The name that tells what it is."""
        return self.key or self.name


def layer_of(name: str, among: Collection[str]) -> int:
    """Return the number of the layer that a weight or bias belongs to: 1 for ``W1`` (or ``W0`` where there is one)."""
    digits = re.search(r"(\d+)$", name)
    if digits:
        numbers = [int(found[1]) for other in among if (found := re.search(r"(\d+)$", other))]
        return int(digits[1]) - min(min(numbers, default=1), 1) + 1
    alike = [other for other in among if not re.search(r"\d", other)]
    return alike.index(name) + 1 if name in alike else 1


def _layouts_beside(known: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return layouts of data, targets and states beside the file's own matrices, from the first to the last.

    They are of several rows, of several columns, of one row and of one column.
    """
    arrays = [each for each in known.values() if isinstance(each, np.ndarray) and each.ndim == 2]
    matrices = [each.shape for each in arrays if min(each.shape) > 1]  # and no biases
    if not matrices:
        return []
    (first, second), (before_last, last) = matrices[0], matrices[-1]
    return [
        (f"n {first}", "i o", "o", f"n {last}", "i", f"n {second}"),
        (f"{second} n", "o i", "o 1", f"{before_last} n", "i 1", f"{first} n"),
        (f"{first}", "i o", "o", f"{last}", "i", f"{second}"),
        (f"{second} 1", "o i", "o 1", f"{before_last} 1", "i 1", f"{first} 1"),
    ]


def _length_beside(known: dict[str, Any]) -> int:
    """Return how many indices are drawn: no length of the file's own arrays, beside which a mistake would hide."""
    taken = {size for each in known.values() if isinstance(each, np.ndarray) for size in each.shape}
    return next(length for length in itertools.count(9, 2) if length not in taken)


class Options:
    """The values that each parameter is tried with: one for each layout, then others."""

    def __init__(
        self,
        names: Collection[str],
        known: dict[str, Any],
        choices: list[Any],
        pairs: list[tuple[Any, Any]],
        chains: list[Any],
    ) -> None:
        self.names, self.known, self.choices, self.chains = list(names), known, choices, chains
        self.pairs, self.length = pairs, _length_beside(known)
        self.generator = np.random.default_rng(5)
        self.weights = [name for name in names if is_weight(name)]
        self.biases = [name for name in names if is_bias(name)]
        self.last = max((self._layer(name)[1] for name in self.weights), default=2)
        vector: list[
            tuple[str, ...]
        ] = []  # where there is a target, one weight in small letters comes first as that
        if (
            len(self.weights) == 1
            and self.weights[0][0].islower()
            and any(is_target((each,)) for each in names)
        ):
            vector = [LAYOUTS["regression"]]
        self.layouts = [*_layouts_beside(known), *vector, *LAYOUTS.values()]
        self.indices: Collection[str] = ()  # names of what is used as an index
        self.numbers: Collection[str] = ()  # names of what is no array
        self.lists: Mapping[str, str] = {}  # names of lists, and of an entry of each
        self.flat: Collection[str] = ()  # names of vectors that hold all parameters
        self.alike, self.by_layout = False, False
        self._first: Any = None  # of the arrays that are one for each layout

    def begin_with(self, made: dict[str, Any]) -> None:
        """Try parameters that the file itself makes first, and data that fit them."""
        if made:
            self.known = {**made, **self.known}
            inner = made if len(made) > 1 else next(iter(made.values()))
            self.layouts = [*_layouts_beside(inner if isinstance(inner, dict) else made), *self.layouts]

    def of(self, parameter: Parameter, default: Any, *, alike: bool = False) -> list[Any]:
        """Return what a parameter may be given, every size ``alike`` or not; the first fit together, layout by layout."""
        self.alike, self._first = alike, None
        name, low = parameter.role, plain(parameter.role)
        found = [self.known[name]] if name in self.known and not parameter.key else []
        hides = is_no_penalty(name, default) or any(word in low for word in (*COUNTS, *SPREADS, TRUNCATION))
        if default is not parameter and not hides:
            found.append(OMITTED)
        others = self._by_name(name, low, constructs=parameter.group == "constructor")
        self.by_layout = bool(others) and others[0] is self._first
        return [*found, *others]

    def _by_name(self, name: str, low: str, *, constructs: bool) -> list[Any]:
        if name in self.indices:
            outputs = (
                axes.split() for _, _, _, axes, *_ in self.layouts[: -len(LAYOUTS)]
            )  # of the file's own matrices
            ends = dict.fromkeys(f"classes {axis}" for each in outputs for axis in each if axis.isdigit())
            drawn = [self._array("target", name, axes.split()) for axes in [*INDICES, *ends]]
            single = low in ("i", "j") or (low.startswith(ONE_INDEX) and low[-1] != "s")
            first = INDICES.index("labels" if is_target((name,)) else "label" if single else "index")
            return [drawn[first], *drawn[:first], *drawn[first + 1 :]]
        if name in self.numbers and low not in FRACTIONS and low not in STRIDES | WINDOWS:
            return [1.3, 2, *self._whole(low), *self._arrays("data", name)]
        if low in ROW_COUNTS and any(is_target((each,)) for each in self.names) and not constructs:
            return [self._rows(), *self._arrays("data", name)]
        if name in self.flat:  # what is too much of it has no gradient
            return [0.5 * self.generator.normal(size=LONG)]
        if is_weight(entry := self.lists.get(name, "")) or is_bias(entry):
            return self._lists("b" if is_bias(entry) else low)
        if is_size(low):
            return [*self._whole(low), *([] if constructs else self._arrays("data", name))]
        if is_target((name,)) and not (low == "t" and constructs):
            return self._arrays("target", name)
        if any(word in low for word in COUNTS):
            return [1, 2]
        if TRUNCATION in low:
            return [LONG]
        if low in ("rng", "generator", "randomstate", "random"):
            return [np.random.default_rng(0), np.random.RandomState(0), 0]
        if low == "seed":
            return [0]
        if low.startswith(("verbose", "print", "debug", "plot", "return")) and low != "returns":
            return [False]
        if "activation" in low and is_derivative_name(name):
            return [*(derivative for _, derivative in self.pairs), lambda x: 1 - np.tanh(x) ** 2]
        if low in CHOICES or "activation" in low:
            functions = [function for function, _ in self.pairs]
            return [*["train"] * (low == "mode"), *self.choices, *functions, np.tanh, None]
        if "train" in low:
            return [True]
        if (low in LISTS and (constructs or low not in PLURALS)) or (
            constructs and low.endswith(("dims", "sizes", "layers"))
        ):
            sizes = (ALIKE,) * len(SIZES) if self.alike else SIZES
            return [
                *self.chains,
                list(sizes[:3]),
                list(sizes),
                list(sizes[1:3]),
                tuple(sizes[:3]),
                sizes[1],
                2,
            ]
        if low in RATES and low != "alpha":
            return [0.1]
        is_array = low.startswith(SCALES) or low in (
            "x", "w", "b", "weights", "weight", "bias", "biases", "data", "inputs",
        )  # fmt: skip
        if constructs and not is_array:
            return [FRACTIONS[low], *self._whole(low)] if low in FRACTIONS else [*self._whole(low), 0.1]
        return self._of_array(name, low)

    def _of_array(self, name: str, low: str) -> list[Any]:
        if low in STRIDES | WINDOWS:
            return [*self._whole(low), *self._arrays("data", name)]
        if low in FRACTIONS and low not in ("p", "c"):
            return [FRACTIONS[low], 0.5, *self._arrays("data", name)]
        if "pred" in low or low in PREDICTIONS:
            return [*self._predictions(name), *self._arrays("data", name)]
        if low in PLURALS:
            return [*self._lists(low), *self._arrays("bias" if low.startswith("b") else "weight", name)]
        if low.startswith(SCALES):
            return self._arrays("scale", name)
        if name == "g":  # a gain, as layer norms call it; a backward's own is not asked for
            return [*self._arrays("scale", name), *self._arrays("data", name)]
        if low in STATES or (
            low in ("aprev", "hprev") and any(plain(other) in ("xt", "x") for other in self.names)
        ):
            return [*self._arrays("state", name), *self._arrays("data", name)]
        if is_weight(name):
            return [*self._arrays("weight", name), *self._arrays("data", name)]
        if is_bias(name):
            return [*self._arrays("bias", name), *self._arrays("data", name)]
        if "mask" in low:
            return [
                (each > 0).astype(float)
                for each in self._arrays("data", name)
                if isinstance(each, np.ndarray)
            ]
        return [*self._arrays("data", name), 0.6, 2, *self._whole(low)]

    def _rows(self) -> int:
        """Return the number of rows: that of the file's own targets, or of those that are drawn."""
        known = [self.known[name] for name in self.names if is_target((name,)) and name in self.known]
        return next((max(np.shape(each)) for each in known if np.ndim(each)), ROWS)

    # ------------------------------------------------------------------------------------------- arrays

    def _layer(self, name: str) -> tuple[int, int]:
        """Return the numbers of the sizes before and after a weight."""
        low = plain(name).removeprefix("weights").removeprefix("w")
        recurrent = {"xh": (0, 1), "ih": (0, 1), "ax": (0, 1), "x": (0, 1), "hh": (1, 1), "aa": (1, 1), "h": (1, 1),
                     "hy": (1, 2), "ho": (1, 2), "ya": (1, 2), "y": (1, 2), "hx": (0, 1), "yh": (1, 2)}  # fmt: skip
        among = self.weights if name in self.weights else self.biases
        after = min(layer_of(name, among), len(SIZES) - 1)
        return recurrent.get(low, (after - 1, after))

    def _arrays(self, role: str, name: str) -> list[Any]:
        """Return arrays for a role: one for each layout, then others."""
        described = [axes[ROLES.index(role)] for axes in self.layouts]
        described += OTHERS[role].split(";")
        arrays = [self._array(role, name, axes.split()) for axes in described]
        self._first = arrays[0] if self._first is None else self._first
        return arrays

    def _array(self, role: str, name: str, axes: list[str]) -> Any:
        draw, outputs = self.generator, ALIKE if self.alike else SIZES[min(self.last, len(SIZES) - 1)]
        rows = self._size("n", name)
        if axes == ["vector"]:
            axes = ["i"] if name[:1].islower() else ["h", "i"]
        match axes:
            case ["index"]:
                return draw.integers(0, 4, self.length)
            case ["indices"]:
                return draw.integers(0, 4, (2, self.length))
            case ["labels", *shape]:
                return draw.integers(0, min(outputs, 2), [self._size(axis, name) for axis in shape] or rows)
            case ["classes", axis]:  # with the last of them, from which one_hot knows how many there are
                classes = self._size(axis, name)
                return np.append(draw.integers(0, classes, rows - 1), classes - 1)
            case ["label"]:
                return 1
            case ["signs"]:
                return 2.0 * draw.integers(0, 2, rows) - 1
            case ["bits", *shape]:
                return draw.integers(0, 2, [self._size(axis, name) for axis in shape] or rows).astype(float)
            case ["positive", *shape]:
                return draw.uniform(
                    0.2, 0.9, [self._size(axis, name) for axis in shape] or (rows, self._size("i", name))
                )
            case ["list"]:
                return [float(each) for each in draw.normal(size=self._size("i", name))]
            case ["sequence"]:
                return [int(each) for each in draw.integers(0, 3, 4)]
            case ["normal"]:
                return draw.normal(size=(rows, outputs))
            case ["."]:
                return {"bias": 0.3, "weight": 0.4, "target": 0.8, "scale": 0.8}.get(role, 0.7)
        sizes = tuple(self._size(axis, name) for axis in axes)
        if role == "target":
            return self._one_hot(axes, sizes)
        if role == "scale":
            return draw.uniform(0.5, 1.5, sizes)
        return draw.normal(size=sizes) * (0.5 if role in ("weight", "bias") else 1.0)

    def _size(self, axis: str, name: str) -> int:
        """Return the size of an axis: ``4h`` is four times that of ``h``."""
        if axis.isdigit():
            return int(axis)
        if "+" in axis:
            return sum(self._size(each, name) for each in axis.split("+"))
        number, letter = int(axis[:-1] or 1), axis[-1]
        if self.alike and letter != "l":
            return number * ALIKE
        if letter in "nl":
            return ROWS if letter == "n" else self.length
        before, after = self._layer(name)
        place = {
            "i": before if is_weight(name) else 0,
            "o": after,
            "c": min(self.last, len(SIZES) - 1),
            "h": 1,
            "t": 2,
            "x": 0,
        }[letter]
        return number * SIZES[place]

    def _one_hot(self, axes: list[str], shape: Shape) -> Any:
        """Return a one-hot row for each row, also where rows are columns."""
        turned = len(shape) == 2 and (axes[1] == "n" or shape[1] == 1)
        wanted = shape[::-1] if turned else shape
        classes = self.generator.integers(0, wanted[-1], wanted[:-1])
        rows = np.eye(wanted[-1])[classes]
        return rows.T.copy() if turned else rows

    def _predictions(self, name: str) -> list[Any]:
        """Return arrays of the targets' shapes, between 0 and 1, and as shares where there are classes."""
        found = []
        for target in self._arrays("target", name):
            drawn = self.generator.uniform(0.1, 0.9, np.shape(target))
            axis = 0 if np.ndim(target) == 2 and np.shape(target)[1] in (ROWS, 1) else -1
            several = np.ndim(target) and np.shape(target)[axis] > 1 and np.ndim(target) != 1
            found.append(
                drawn / drawn.sum(axis=axis, keepdims=True) if several else drawn if np.ndim(target) else 0.4
            )
        return found

    def _lists(self, low: str) -> list[Any]:
        """Return lists of weights, of biases, of both in pairs and in dictionaries."""
        sizes = (ALIKE,) * 3 if self.alike else SIZES[:3]
        normal, steps = self.generator.normal, list(itertools.pairwise(sizes))
        if low.startswith("b"):
            shapes: list[list[Shape]] = [
                [(o,) for _, o in steps],
                [(1, o) for _, o in steps],
                [(o, 1) for _, o in steps],
            ]
            return [[0.3 * normal(size=shape) for shape in each] for each in shapes]
        weights, turned = [normal(size=step) for step in steps], [normal(size=step[::-1]) for step in steps]
        pairs = [(normal(size=step), normal(size=step[1])) for step in steps]
        entries = [{"W": normal(size=step), "b": normal(size=step[1])} for step in steps]
        single = [(normal(size=sizes[0]), 0.2), (normal(size=sizes[:2]), normal(size=sizes[1]))]
        rows = {f"W{k}": normal(size=step) for k, step in enumerate(steps, 1)}
        rows |= {f"b{k}": normal(size=step[1]) for k, step in enumerate(steps, 1)}
        columns = {f"W{k}": normal(size=step[::-1]) for k, step in enumerate(steps, 1)}
        columns |= {f"b{k}": normal(size=(step[1], 1)) for k, step in enumerate(steps, 1)}
        return [*self.chains, weights, columns, rows, turned, pairs, entries, *single]

    def _whole(self, low: str) -> list[Any]:
        """Return whole numbers for sizes: of a window, of what is before a layer and after it."""
        if low in STRIDES:  # a stride of 1 hides what is forgotten at any other
            return [2, 1, 0] if low.startswith("stride") else [1, 2, 0]
        if low in WINDOWS:
            return [3, 2, 1, (2, 2), (3, 3)]
        if self.alike:
            return [ALIKE, [ALIKE], 1, (ALIKE,), (3, 6, 6)]
        inner = any(word in low for word in ("hid", "nh", "h1", "mid"))
        after = any(
            word in low
            for word in ("out", "class", "label", "ny", "filters", "units", "neurons", "dst", "next", "k")
        )
        if inner or after or low in ("o", "c", "m", "h", "nc", "d2", "d1"):
            first = 1 if inner or low in ("h", "d1") else 2
            return [SIZES[first], SIZES[3 - first], 3, 1, [5], [5, 4], (4,)]
        return [SIZES[0], 6, 5, 4, 1, 2, (3,), (3, 6, 6), (1, 3), (2, 3, 4)]


def shown(value: Any) -> str:
    """Return a value as a message shows it: an array by its shape."""
    if isinstance(value, np.ndarray):
        return str(value.shape)
    if isinstance(value, list | tuple) and any(isinstance(each, np.ndarray | dict | tuple) for each in value):
        return f"[{', '.join(map(shown, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {shown(each)}' for key, each in value.items())}}}"
    return f"{value!r:.40}" if isinstance(value, float | int | str | list | tuple) else type(value).__name__

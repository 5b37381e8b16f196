"""What names tell: arrays by path, what each parameter of a backward is given, which gradient belongs to which array."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from handgrad.checking.interfaces.tensors import is_array, is_numbers, is_torch, to_numpy

SAVED = {"cache", "caches", "saved", "memory", "residuals", "res", "ctx", "tape", "stored", "store"}
RATES = {"lr", "learningrate", "learnrate", "lrate", "alpha", "eta", "rate", "stepsize", "step"}
LEARNING_RATES = RATES - {"alpha", "step", "rate"}  # which are nothing else
OPTIMISERS = {"optimizer", "optimiser", "optim", "opt", "solver", "updater"}
LOSSES = (
    "loss", "cost", "objective", "error", "mse", "nll", "entropy", "energy", "bce", "pinball", "hinge", "huber", "deviance",
    "likelihood", "elbo", "verlust", "kosten", "perdida", "perte",
)  # fmt: skip
TARGETS = {"y", "t", "label", "labels", "target", "targets", "targ", "expected", "onehot"}
PREFIXES = ("gradients", "gradient", "grads", "grad", "nabla", "delta", "dl", "dj", "d", "g")
SUFFIXES = ("gradients", "gradient", "grads", "grad", "derivative", "delta", "g")
UPSTREAMS = ("d", "grad", "up", "delta", "err")
DERIVATIVES = ("prime", "deriv", "derivative", "grad", "gradient")
FORWARD_WORDS = {
    "forward", "forwards", "fwd", "feedforward", "fprop", "feed", "predict", "hypothesis", "adelante", "avant", "vorwaerts",
    "propager", "propagar",
}  # fmt: skip
CONTAINERS = {"params", "parameters", "p", "self", *PREFIXES}  # whose own name says nothing

LONGEST = 1000  # entries of a container that are entered: a longer one is data
DEEPEST = 7  # steps of a path: a network of blocks of layers of parameters needs 5
LIBRARIES = ("numpy", "builtins", "types", "random", "torch", "jax", "collections")  # not the user's classes

Path = tuple[Any, ...]
"""Keys and indices; an attribute's name begins with a dot."""
Arrays = Mapping[Path, Any]
Matches = dict[Path, Path]


def plain(name: object) -> str:
    """Return a name without case, underscores and a leading dot."""
    return str(name).lower().replace("_", "").removeprefix("self.").removeprefix(".")


def words_of(name: str) -> list[str]:
    """Return the words of a name: of ``linearBackward``, ``linear_backward``, ``dRelu``."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return [word for word in spaced.lower().split("_") if word]


def is_loss_name(name: str) -> bool:
    """Whether a name says that it is a loss: ``cost``, ``mse_loss``, ``J``."""
    return name in ("J", "L", "E", "cout") or any(word in plain(name) for word in LOSSES)


def is_derivative_name(name: str) -> bool:
    """Whether a name says that it is a derivative of what it names too: ``cost_derivative``, ``mse_prime``."""
    return plain(name).endswith(DERIVATIVES) or plain(name).startswith(("deriv", "grad"))


def is_gradient_name(name: str) -> bool:
    """Whether a name alone says that it is a gradient: ``dW``, ``grad_b``, ``l1_delta``."""
    low = plain(name)
    begins = low.startswith(("grad", "nabla")) or (low[:1] == "d" and len(low) > 1)
    return begins or low.endswith(("grad", "delta"))


def is_upstream_name(name: str) -> bool:
    """Whether a parameter's name says that it is an upstream gradient: ``dout``, ``grad_output``, ``error``."""
    return plain(name).startswith(UPSTREAMS)


def is_target(path: Path) -> bool:
    """Whether a path's name says that it is a target: nobody wants its gradient."""
    last = plain(path[-1]) if path else ""
    of_gradient = any(last == f"{prefix}outputs" for prefix in PREFIXES)  # ``d_outputs``
    made_up = last.endswith(("outputs", "labels")) and last != "outputs" and not of_gradient
    return (
        last in TARGETS
        or made_up
        or any(word in last for word in ("true", "target", "expected", "desired", "ytrain"))
    )


# --------------------------------------------------------------------------------------- arrays by path


def show_path(path: Path) -> str:
    """Return a path as code would write it, within an object without ``self``.

    >>> show_path(("self", ".layers", 2, ".params", "W"))
    'layers[2].params.W'
    """
    steps = (f"[{step}]" if isinstance(step, int) else f".{str(step).removeprefix('.')}" for step in path)
    return "".join(steps).removeprefix(".").removeprefix("self.")


def arrays_in(value: Any) -> dict[Path, Any]:
    """Return the arrays and numbers of floating point in a value, by the first path to each.

    >>> list(arrays_in({"W": np.ones(2), "rest": [np.zeros(1), "text"]}))
    [('W',), ('rest', 0)]
    """
    found: dict[Path, Any] = {}
    seen: set[int] = set()

    def walk(value: Any, path: Path) -> None:
        if isinstance(value, float | np.floating):
            found[path] = value
        elif id(value) not in seen and len(path) <= DEEPEST:
            seen.add(id(value))
            if is_floating(value):
                found[path] = to_numpy(value)
            if isinstance(value, list) and path in found:
                return
            for step, item in _items(value):
                walk(item, (*path, step))

    walk(value, ())
    return found


def aliases_in(value: Any) -> dict[Path, list[Path]]:
    """Return the other paths to each array, by the first: a network's parameters are its layers' too.

    >>> W = np.ones(2)
    >>> aliases_in({"W": W, "layers": [W]})
    {('W',): [('layers', 0)]}
    """
    first: dict[int, Path] = {}
    others: dict[Path, list[Path]] = {}

    def walk(value: Any, path: Path, above: frozenset[int]) -> None:
        if is_array(value):
            if id(value) in first:
                others.setdefault(first[id(value)], []).append(path)
            first.setdefault(id(value), path)
        elif id(value) not in above and len(path) <= DEEPEST:
            for step, item in _items(value):
                walk(item, (*path, step), above | {id(value)})

    walk(value, (), frozenset())
    return others


def _items(value: Any) -> Iterable[tuple[Any, Any]]:
    """Return what a container or an object holds, with the step to it; an array may carry its gradient, as ``w.g``."""
    if isinstance(value, Mapping):
        return list(value.items())[:LONGEST]
    if isinstance(value, list | tuple):
        return enumerate(value[:LONGEST])
    if isinstance(value, type | FunctionType | MethodType | ModuleType) or not hasattr(value, "__dict__"):
        return ()
    carries = isinstance(value, SimpleNamespace) or is_torch(value)
    foreign = type(value).__module__.partition(".")[0] in LIBRARIES and not carries
    attributes = {} if foreign else vars(value)
    return [(f".{name}", item) for name, item in attributes.items()]


def is_floating(value: Any) -> bool:
    """Whether a value is an array, or one number, of floating point."""
    if isinstance(value, float | np.floating) or is_numbers(value):
        return True
    return is_array(value) and "float" in str(value.dtype)


def is_list_of_indices(value: Any) -> bool:
    """Whether a value is a list of whole numbers: characters, labels."""
    return isinstance(value, list) and bool(value) and all(type(each) is int for each in value)


def get(value: Any, path: Path) -> Any:
    """Return what is at a path."""
    for step in path:
        value = getattr(value, step[1:]) if _is_attribute(step) else value[step]
    return value


def put(value: Any, path: Path, new: Any) -> Any:
    """Return a value with something else at a path; lists, dictionaries and objects are changed in place."""
    if not path:
        return new
    step, *rest = path
    item = put(get(value, (step,)), tuple(rest), new)
    if _is_attribute(step):
        setattr(value, step[1:], item)
    elif isinstance(value, tuple):
        return (*value[:step], item, *value[step + 1 :])
    else:
        value[step] = item
    return value


def _is_attribute(step: Any) -> bool:
    return isinstance(step, str) and step.startswith(".")


# ---------------------------------------------------------------------------------------------- gradients


def match(gradients: Arrays, arrays: Arrays) -> Matches:
    """Return the path of the gradient of each array that has one: by name, in a list's order, by a shape that only one has.

    A gradient without a name, at ``()``, is that of the first array of its shape that is no target.

    >>> W, b = np.ones((3, 4)), np.ones(4)
    >>> match({("dW1",): W, ("db1",): b}, {("params", "W1"): W, ("params", "b1"): b})
    {('params', 'W1'): ('dW1',), ('params', 'b1'): ('db1',)}
    """
    found: Matches = {}
    arguments = {
        path: array for path, array in arrays.items() if len(path) == 1
    }  # nearer than an object's state
    steps = (
        (_by_name, arrays),
        (_in_lists, arrays),
        *((s, a) for a in (arguments, arrays) for s in (_in_order, _by_shape)),
        (_of_only_bias, arguments),
    )
    for step, among in steps:
        left = {path: gradient for path, gradient in gradients.items() if path not in found.values()}
        free = {path: array for path, array in among.items() if path not in found}
        others = {np.shape(arrays[path]) for path in arrays.keys() - among.keys() - found.keys()}
        # of more gradients than arguments, one may as well be that of an object's array of the same shape
        if len(left) > len(free):
            free = {path: array for path, array in free.items() if np.shape(array) not in others}
        elsewhere = others - set(map(np.shape, free.values()))  # where no argument has its shape
        left = {path: gradient for path, gradient in left.items() if np.shape(gradient) not in elsewhere}
        found |= step(left, free)
    return found


def is_gradient(path: Path, arrays: Arrays) -> bool:
    """Whether an array that is there before backward runs is room for a gradient: ``grads[0]``, ``dW`` beside ``W``."""
    words = [plain(step) for step in path if isinstance(step, str)]
    if any(word.startswith(("grad", "nabla")) or word.endswith(SUFFIXES[:4]) for word in words):
        return True
    if plain(path[-1]) in SUFFIXES and path[:-1] in arrays:
        return True
    if any(word == "g" for word in words[:-1]):  # self.g["W"] beside self.p["W"]
        return True
    beside = {plain(other[-1]) for other in arrays if other[:-1] == path[:-1]}
    return any(name in beside for name in names_of_array(path[-1:]) - {plain(path[-1])})


def _by_name(gradients: Arrays, arrays: Arrays) -> Matches:
    found: Matches = {}
    for path, gradient in gradients.items():
        names = names_of_array(path)
        fits = [other for other in arrays if other not in found and bare_name(other) in names]
        if len(fits) > 1:
            fits = [other for other in fits if np.shape(arrays[other]) == np.shape(gradient)]
        if fits:
            found[fits[0]] = path
    return found


def _in_lists(gradients: Arrays, arrays: Arrays) -> Matches:
    """Match ``nabla_w`` with ``weights``: lists of the same shapes in the same order; what is named beside is one too."""
    found: Matches = {}
    lists = _lists(arrays)
    beside: dict[Path, list[Path]] = {}
    for path in gradients:
        beside.setdefault(path[:-1], []).append(path)
    for ours in [*_lists(gradients), *(each for each in beside.values() if len(each) > 1)]:
        shapes = [np.shape(gradients[path]) for path in ours]
        fits = [theirs for theirs in lists if [np.shape(arrays[path]) for path in theirs] == shapes]
        if len(fits) == 1:
            found.update(zip(fits[0], ours, strict=True))
    return found


def _in_order(gradients: Arrays, arrays: Arrays) -> Matches:
    """Match a tuple without names: all arrays in order, if one has its shape, or each with the next array of its shape."""
    places = [path for path in gradients if path == () or (len(path) == 1 and isinstance(path[0], int))]
    found: Matches = {}
    if last := _last_in_order(
        places, gradients, {path: each for path, each in arrays.items() if not is_target(path)}
    ):
        return dict(zip(last, places, strict=True))
    left = sorted(arrays, key=is_target) if places == [()] else list(arrays)
    if not places and len(gradients) == len(arrays) and all(len(path) == 1 for path in gradients):
        pairs = zip(gradients, arrays, strict=True)  # named otherwise than the arrays: da, dp, dn
        named = {ours: theirs for ours, theirs in pairs if _fit(gradients[ours], arrays[theirs])}
        return {array: path for path, array in named.items()} if len(named) == len(arrays) else {}
    pairs = zip(places, left, strict=False)
    all_in_order = len(places) == len(arrays) and (
        places == [()] or any(np.shape(gradients[place]) == np.shape(arrays[path]) for place, path in pairs)
    )
    for path in places:
        shape = np.shape(gradients[path])
        if shape == () and not all_in_order:  # a loss, a rate: any number would fit any other
            continue
        fits = left[:1] if all_in_order else [p for p in left if np.shape(arrays[p]) == shape]
        if fits:
            found[fits[0]] = path
            left = left[left.index(fits[0]) + 1 :]
    return found


def _last_in_order(places: list[Path], gradients: Arrays, arrays: Arrays) -> list[Path]:
    """Return the last arrays where all gradients fit them, and not the first: those of W, b, … and none of x."""
    count, every = len(places), [*arrays]
    first, last = (
        all(_fit(gradients[place], arrays[path]) for place, path in zip(places, each, strict=False))
        for each in (every[:count], every[-count:])
    )
    return every[-count:] if 1 < count < len(every) and last and not first else []


def _of_only_bias(gradients: Arrays, arrays: Arrays) -> Matches:
    """Match a number that is returned after another gradient with the only bias of one entry: ``return X.T @ d, d.sum()``."""
    numbers = [
        path
        for path, value in gradients.items()
        if len(path) == 1 and path[0] in (1, 2) and np.ndim(value) == 0
    ]
    biases = [
        path
        for path, value in arrays.items()
        if plain(path[-1]).startswith(("b", "intercept")) and np.size(value) == 1
    ]
    return {biases[0]: numbers[0]} if len(numbers) == len(biases) == 1 else {}


def _fit(gradient: Any, array: Any) -> bool:
    """Whether a gradient has its array's shape, and is no single number, which would fit any other."""
    return np.shape(gradient) == np.shape(array) != ()


def _by_shape(gradients: Arrays, arrays: Arrays) -> Matches:
    def alone(values: Arrays) -> dict[tuple[int, ...], Path]:
        shapes = [np.shape(value) for value in values.values()]
        return {np.shape(values[path]): path for path in values if shapes.count(np.shape(values[path])) == 1}

    ours, theirs = alone(gradients), alone({path: arrays[path] for path in arrays if not is_target(path)})
    return {theirs[shape]: ours[shape] for shape in ours if shape in theirs and shape != ()}


def _lists(values: Arrays) -> list[list[Path]]:
    lists: dict[Path, list[Path]] = {}
    for path in values:
        if len(path) > 1 and isinstance(path[-1], int):
            lists.setdefault(path[:-1], []).append(path)
    return list(lists.values())


def bare_name(path: Path) -> str:
    """Return a path without case, punctuation and the container of all parameters."""
    steps = [plain(step) for step in path]
    while len(steps) > 1 and steps[0] in CONTAINERS and not steps[1].isdigit():
        steps = steps[1:]
    inner = [step for k, step in enumerate(steps) if not (0 < k < len(steps) - 1 and step in CONTAINERS)]
    return ".".join(inner)


def names_of_array(path: Path) -> set[str]:
    """Return the names of the arrays whose gradient a path may be: ``dW``, ``grad_W`` and ``W_grad`` are all W's."""
    *head, last = bare_name(path).split(".")
    if not last:
        return set()
    if last.isdigit() and head:
        *head, last = [*head[:-1], f"{head[-1]}.{last}"]
    stem, dot, index = last.partition(".")
    stems = {stem, *map(stem.removeprefix, PREFIXES), *map(stem.removesuffix, SUFFIXES)}
    names = {".".join([*head, name + dot + index]) for name in stems - {""}}
    owner = ".".join(head)  # w.g and w.grad are of w, or of its data
    return names | ({owner, f"{owner}.data", f"{owner}.value"} if head and last in SUFFIXES else set())

"""What people call handgrad with, judged in one place: by the annotations of what they call."""

from __future__ import annotations

import os
import re
import sys
from abc import ABCMeta
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from functools import cache, wraps
from inspect import BoundArguments, Parameter, Signature, signature
from math import inf, isfinite
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from handgrad.errors import ConfigurationError, nearest

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Range:
    """Bounds of a number, in an annotation: ``least`` and ``most`` are in it, ``above`` and ``below`` are not."""

    least: float = -inf
    above: float = -inf
    below: float = inf
    most: float = inf

    def __contains__(self, value: float) -> bool:
        """Whether a number is finite and within the bounds."""
        return self.least <= value <= self.most and self.above < value < self.below

    def __str__(self) -> str:
        bounds = [f", {self.least:g} or more"] if isfinite(self.least) else []
        bounds += [f" above {self.above:g}"] if isfinite(self.above) else []
        bounds += [f" less than {self.below:g}"] if self.below < INT64 else []
        bounds += [f" at most {self.most:g}"] if isfinite(self.most) else []
        return " and".join(bounds)


INT64 = 2**63  # above what 64 bits hold

Count = Annotated[int, Range(least=1, below=INT64)]  # how many: 1 or more

CountOrZero = Annotated[int, Range(least=0, below=INT64)]

Seed = Annotated[int, Range(least=0, below=INT64)]  # of random draws: 0 or more

Positive = Annotated[float, Range(above=0)]
NonNegative = Annotated[float, Range(least=0)]
OneOrMore = Annotated[float, Range(least=1)]
Fraction = Annotated[float, Range(least=0, below=1)]
"""A share of something, or how much of it remains: never all of it."""

WORDS: Mapping[Any, str] = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bool: "True or False",
    os.PathLike: "a path",
    np.ndarray: "an array",
    Mapping: "a dict",
    Callable: "a function",
}


LISTS: Mapping[Any, Any] = {Sequence: (Sequence, np.ndarray), tuple: (list, tuple)}
"""What may be given where one of these is wanted."""

UNKNOWN = ("typing", "numpy._typing")
"""Where annotations come from that do not tell what fits: Any, an open file, an array of any library."""


ELSEWHERE: Mapping[str, str] = {
    "approximate": "form", "b1": "beta1", "b2": "beta2", "betas": "beta1", "callback": "after_epoch",
    "callbacks": "after_epoch", "clipnorm": "clip_norm", "div_factor": "start", "drop_rate": "rate",
    "embed_dim": "features", "embedding_dim": "features", "eps": "epsilon", "eta": "learning_rate",
    "eta_min": "final", "eta0": "learning_rate",
    "final_div_factor": "end", "gamma": "factor", "ignore_index": "ignored", "in_channels": "inputs",
    "in_features": "inputs", "input_size": "inputs", "hidden_size": "outputs", "kernel_size": "size",
    "input_dim": "inputs", "input_shape": "inputs", "kernel_initializer": "initialiser", "label_smoothing": "smoothing",
    "labels": "t", "learning_rate_init": "learning_rate", "lr": "learning_rate", "max_grad_norm": "clip_norm",
    "max_iter": "epochs", "max_norm": "clip_norm", "n_epochs": "epochs", "n_iter_no_change": "patience",
    "negative_slope": "slope", "num_embeddings": "entries", "num_epochs": "epochs", "num_groups": "groups",
    "num_heads": "heads", "num_kv_heads": "key_heads", "out_channels": "outputs", "out_features": "outputs",
    "output_dim": "outputs", "pool_size": "size", "filters": "outputs", "strides": "stride",
    "p": "rate", "pct_start": "rising", "pos_weight": "positive_weight", "prob": "rate",
    "random_state": "seed", "rho": "decay", "step_size": "every", "units": "outputs",
    "use_bias": "bias", "validation_data": "validation", "validation_split": "validation", "verbose": "progress",
    "w": "sample_weight", "warmup_steps": "warmup", "weight": "class_weight", "weights": "sample_weight",
    "y": "t", "y_true": "t",
}  # fmt: skip
"""What PyTorch, Keras, optax and scikit-learn call an argument, and the name that it has here."""


def judged(function: Callable[P, R]) -> Callable[P, R]:
    """Judge the arguments of a public function by their annotations, each time before it runs."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        bound = _judge(function, args, kwargs)
        return function(*bound.args, **bound.kwargs)

    return call


class Judged(ABCMeta):
    """The type of classes whose arguments are judged in the same way, those of subclasses too."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Make one."""
        if unwritten := sorted(cls.__abstractmethods__):
            raise ConfigurationError(f"{cls.__name__}: {unwritten[0]} is not written, and every one needs it")
        bound = _judge(cls, args, kwargs)
        return super().__call__(*bound.args, **bound.kwargs)

    @property
    def __signature__(cls: Any) -> Signature:
        """What it is made from, for whoever asks: the class's own `__init__`, not the call above."""
        _, *parameters = signature(cls.__init__).parameters.values()
        return Signature(parameters)


def _judge(called: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> BoundArguments:
    """Return the arguments by name, NumPy's numbers as Python's, or say which does not fit."""
    form, hints = _form(called)
    try:
        bound = form.bind(*args, **kwargs)
    except TypeError:
        raise _unbound(called, form, args, kwargs) from None
    for name in [name for name in bound.arguments if name in hints]:
        value, several = bound.arguments[name], form.parameters[name].kind is Parameter.VAR_POSITIONAL
        for number, each in enumerate(value if several else (value,), 1):
            if not _fits(each, hints[name]):
                label = f"{name.removesuffix('s')} {number}" if several else name
                raise ConfigurationError(
                    f"{_name(called)}: {label} is {_shown(each)}",
                    fix=_fix(each, hints[name], several=several),
                )
        if isinstance(value, np.generic):
            bound.arguments[name] = value.item()
    return bound


@cache
def _form(called: Any) -> tuple[Signature, dict[str, Any]]:
    """Return the arguments, and the annotations of those that not everything fits."""
    by_hand = isinstance(called, type) and not is_dataclass(called)
    try:
        hints = get_type_hints(called.__init__ if by_hand else called, include_extras=True)
    except (AttributeError, NameError, TypeError):  # of the user's own: nobody can tell what they mean
        hints = {}
    return signature(called), {name: hint for name, hint in hints.items() if not _fits(object(), hint)}


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is what an annotation says; what cannot be told fits."""
    hint = _meant(hint)
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is Annotated:
        return _fits(value, parts[0]) and all(value in each for each in parts[1:] if isinstance(each, Range))
    if origin is Literal:
        return any(type(value) is type(part) and value == part for part in parts)
    if hint in (int, float):
        return isinstance(value, Integral if hint is int else Real) and not isinstance(value, bool)
    if hint is bool:
        return isinstance(value, bool | np.bool_)
    if origin in LISTS:
        if not isinstance(value, LISTS[origin]) or isinstance(value, str) or getattr(value, "ndim", 1) == 0:
            return False
        of_each = parts[:1] * len(value) if parts[1:] in ((), (...,)) else parts
        return all(_fits(each, part) for each, part in zip(value, of_each, strict=False))
    kind = origin or hint
    if not isinstance(kind, type) or kind.__module__.startswith(UNKNOWN):
        return True
    if kind is np.ndarray and hasattr(
        value, "indptr"
    ):  # sparse rows of scipy's, which are used in place of an array
        return True
    try:
        return isinstance(value, kind)
    except TypeError:  # a protocol that is for type checkers alone
        return True


def _unbound(
    called: Callable[..., Any], form: Signature, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> ConfigurationError:
    """Say what Python means by "unexpected keyword argument", "missing" and "takes 3 positional arguments"."""
    name = _name(called)
    own = list(form.parameters)[:1] in (["self"], ["cls"])
    known = list(form.parameters.values())[own:]
    placed = [each.name for each in known if each.kind is Parameter.POSITIONAL_OR_KEYWORD]
    named = [*placed, *(each.name for each in known if each.kind is Parameter.KEYWORD_ONLY)]
    needed = [each.name for each in known if each.default is Parameter.empty and each.name in named]
    given = {*placed[: len(args) - own], *kwargs}
    if unknown := [key for key in kwargs if key not in named]:
        return ConfigurationError(
            f"{name}: there is no argument {unknown[0]!r}", fix=other_name(unknown[0], named)
        )
    if twice := [key for key in placed[: len(args) - own] if key in kwargs]:
        return ConfigurationError(f"{name}: {twice[0]} is given twice")
    if missing := [key for key in needed if key not in given]:
        call = ", ".join(key if key in placed else f"{key}=…" for key in needed)
        return ConfigurationError(
            f"{name}: {missing[0]} is not given",
            fix=f"{name.rpartition('.')[2]}({call}{', …' * (needed != named)})",
        )
    by_name = ", ".join(key for key in named if key not in placed)
    return ConfigurationError(
        f"{name}: {_shown(args[len(placed) + own])} is one argument too many",
        fix=f"by name it takes {by_name}" if by_name else "",
    )


def other_name(name: str, known: Iterable[str]) -> str:
    """Return which of the known arguments is meant by a name that is none of them."""
    known = list(known)
    if ELSEWHERE.get(name) in known:
        return f"handgrad's name for {name} is {ELSEWHERE[name]}"
    return nearest(name, known)


def _name(called: Callable[..., Any]) -> str:
    return called.__qualname__.removesuffix(".__init__").rpartition("<locals>.")[2]


def _shown(value: object) -> str:
    """Show a value in a few words."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, np.ndarray) and value.ndim:
        return f"an array {value.shape}"
    text = repr(value)
    return text if len(text) <= 60 and "\n" not in text else _with_article(type(value).__name__)


def _fix(value: Any, hint: Any, *, several: bool) -> str:
    """Return what to give instead: what was meant, where that can be told."""
    parts = [part for part in _parts(hint) if part is not NoneType]
    said = value if isinstance(value, str) else str(getattr(value, "__name__", ""))
    if choices := [str(each) for part in parts if get_origin(part) is Literal for each in get_args(part)]:
        return nearest(said, choices) if len(choices) > 2 else f"choose from {', '.join(choices)}"
    bases = [part for part in parts if isinstance(part, type) and part not in WORDS]
    kinds = {kind.__name__: kind for base in bases for kind in _kinds(base)}
    if isinstance(value, type) and issubclass(value, tuple(bases)):
        return f"make one: {_made(value)}"
    if isinstance(value, str) and (meant := re.fullmatch("did you mean '(.*)'.", nearest(value, kinds))):
        return f"did you mean {_made(kinds[meant[1]])}?"
    if several and isinstance(value, list | tuple):
        return "give them one by one: *[…]"
    if any(_fits([value], part) and not _fits([object()], part) for part in parts):
        return f"give a list: [{said if isinstance(value, type) else repr(value)}]"
    if 0 < len(kinds) < 8:
        return f"choose from {', '.join(_made(kinds[name]) for name in sorted(kinds))}"
    *words, last = dict.fromkeys(_word(part, alone=len(parts) == 1) for part in parts)
    for_all = ", one for all axes" * (isinstance(value, list | tuple) and last.startswith(WORDS[int]))
    return f"give {', '.join(words)}{' or ' * bool(words)}{last}{for_all}"


def _meant(hint: Any) -> Any:
    """Return what an alias stands for (``type X = …``, as NumPy 2.5 has), or the annotation as it is."""
    return getattr(get_origin(hint) or hint, "__value__", hint)


def _parts(hint: Any) -> tuple[Any, ...]:
    hint = _meant(hint)
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _kinds(base: type) -> Iterator[type]:
    """Yield the classes under a class that a module lists as public."""
    kind: type
    for kind in base.__subclasses__():
        if kind.__name__ in getattr(sys.modules.get(kind.__module__), "__all__", ()):
            yield kind
        yield from _kinds(kind)


def _made(kind: type) -> str:
    """Show how one of a kind is made."""
    needed = any(each.default is Parameter.empty for each in signature(kind).parameters.values())
    return f"{kind.__name__}({'…' * needed})"


def _word(hint: Any, *, alone: bool = True) -> str:
    """Say what an annotation means; in full where it is alone."""
    hint = _meant(hint)
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        bounds = "".join(str(each) for each in parts[1:] if isinstance(each, Range))
        return f"{_word(parts[0])}{bounds}{',' * (not alone)}"
    if origin in LISTS:
        return (
            f"a list, each {_word(parts[0])}"
            if alone or get_origin(_meant(parts[0])) is Annotated
            else "a list"
        )
    return WORDS.get(origin or hint) or _with_article((origin or hint).__name__)


def _with_article(name: str) -> str:
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"

"""Layers, losses, optimisers and schedules as plain tables, ``{"type": "Linear", …}``, and back.

The form they have in configurations and run folders.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from handgrad.arguments import other_name
from handgrad.errors import ConfigurationError, nearest
from handgrad.layers import Layer, Loss, Optimiser, Schedule, Sequential, SoftmaxCrossEntropy

T = TypeVar("T")


def to_table(made: Layer | Loss | Optimiser | Schedule) -> dict[str, Any]:
    """Return a layer, loss, optimiser or schedule as a table of its type and what is not at its default."""
    table: dict[str, Any] = {"type": type(made).__name__}
    if isinstance(made, Sequential):
        own = {name: getattr(made, name) for name in made.settings if getattr(made, name)}
        own = {name: to_table(value) if isinstance(value, Layer) else value for name, value in own.items()}
        return table | own | {"layers": [to_table(layer) for layer in made.layers]}
    for field in fields(made):  # type: ignore[arg-type]
        value = getattr(made, field.name)
        if repr(value) != repr(field.default):
            table[field.name] = msgspec.to_builtins(value, enc_hook=lambda array: array.tolist())
    if isinstance(made, SoftmaxCrossEntropy) and made.targets == "probabilities":
        table["targets"] = "shares"  # as files of 0.1 have it
    return table


def from_table(table: object, place: str, kinds: Mapping[str, type[T]]) -> T:
    """Make one of ``kinds`` from its table, or from its name alone; ``place`` begins its errors."""
    kind, values = _choose(table, place, kinds)
    if not issubclass(kind, Sequential):
        return _make(kind, values, place)
    layers = values.pop("layers", None)
    _no_more(values, place, kind, ("layers", *kind.settings))
    if not isinstance(layers, list):
        raise ConfigurationError(f"{place}.layers is {layers!r}", fix="give a list of tables, one a layer")
    inner: list[Any] = [from_table(layer, f"{place}.layers[{k}]", kinds) for k, layer in enumerate(layers)]
    missing = {"times"} & set(kind.settings) - values.keys()
    for name in missing:
        raise ConfigurationError(f"{place}: {kind.__name__} needs {name}")
    if "shortcut" in values:
        values["shortcut"] = from_table(values["shortcut"], f"{place}.shortcut", kinds)
    try:
        return kind(*inner, **values)
    except ConfigurationError as error:
        raise ConfigurationError(f"{place}: {error.problem}", given=error.given, fix=error.fix) from None


def find(name: str, kinds: Mapping[str, T], place: str) -> T:
    """Return the kind of this name; ``leaky_relu``, ``leaky-relu`` and ``LeakyReLU`` are the same."""

    def plain(text: str) -> str:
        return text.replace("_", "").replace("-", "").lower()

    for known, kind in kinds.items():
        if plain(known) == plain(name):
            return kind
    raise ConfigurationError(f"{place}: {name!r} is unknown", fix=nearest(name, kinds))


def _choose(table: object, place: str, kinds: Mapping[str, type[T]]) -> tuple[type[T], dict[str, Any]]:
    """Read the type of a table first; a name alone is a table with nothing else."""
    if isinstance(table, str):
        return find(table, kinds, place), {}
    if not isinstance(table, dict) or not isinstance(table.get("type"), str):
        raise ConfigurationError(f"{place} is {table!r}", fix='write {type = "…", …}')
    values = {key: value for key, value in table.items() if key != "type"}
    return find(table["type"], kinds, f"{place}.type"), values


def _make(kind: type[T], values: Mapping[str, Any], place: str) -> T:
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    _no_more(values, place, kind, tuple(known))
    if kind is SoftmaxCrossEntropy and values.get("targets") == "shares":  # as files of 0.1 have it
        values = {**values, "targets": "probabilities"}
    try:
        made = msgspec.convert(values, kind)
        return kind(**{name: getattr(made, name) for name in known})  # whose arguments are judged
    except msgspec.ValidationError as error:
        raise explain(error, values, kind, place) from None
    except ConfigurationError as error:
        raise ConfigurationError(f"{place}: {error.problem}", given=error.given, fix=error.fix) from None


def _no_more(values: Mapping[str, Any], place: str, kind: type, known: tuple[str, ...]) -> None:
    for key in values:
        if key not in known:
            fix = other_name(key, known) or "leave it out"
            raise ConfigurationError(f"{place}.{key}: {kind.__name__} has no such setting", fix=fix)


WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
}
LIMITS = {"": "", ">=": ", {} or more", ">": " above {}", "<=": ", {} at most", "<": " below {}"}


def explain(error: msgspec.ValidationError, values: Any, kind: type, place: str = "") -> ConfigurationError:
    """Turn msgspec's message, ``"Expected `int` >= 1 - at `$.training.epochs`"``, into ours.

    Parameters
    ----------
    error
        What converting ``values`` to ``kind`` raised.
    place
        What begins every setting's name.
    """
    problem, _, path = str(error).partition(" - at `$")
    setting = f"{place}{path.removesuffix('`')}".removeprefix(".")
    named, in_some, _ = path.partition("[...]")  # of a table's entries; msgspec does not say which
    value, hint = values, kind
    for key in re.findall(r"\w+", named):
        value = value[int(key) if isinstance(value, list) else key]
        hint = get_type_hints(hint).get(key, object) if isinstance(hint, type) else object
    if unknown := re.fullmatch("Object contains unknown field `(.*)`", problem):
        name = f"{setting}.{unknown[1]}".removeprefix(".")
        return ConfigurationError(
            f"{name}: there is no such setting", fix=nearest(unknown[1], get_type_hints(hint))
        )
    if missing := re.fullmatch("Object missing required field `(.*)`", problem):
        return ConfigurationError(f"{setting}: {kind.__name__} needs {missing[1]}")
    if in_some:
        return ConfigurationError(f"{setting} does not fit", fix=_wanted(problem, object))
    return ConfigurationError(f"{setting} is {value!r}", fix=_wanted(problem, hint))


def _wanted(problem: str, hint: Any) -> str:
    """Say what a setting may be: one of its choices, or what msgspec expected."""
    parts = (hint, *get_args(hint))
    if choices := [choice for part in parts if get_origin(part) is Literal for choice in get_args(part)]:
        return f"choose from {', '.join(choices)}"
    expected = re.fullmatch("Expected `(.*?)`(?:, got .*| ([<>=]+) ([^ ]*))?", problem)
    kinds, sign, limit = expected.groups("") if expected else (problem, "", "")
    words = (WORDS.get(word, word) for word in kinds.split(" | ") if word != "null")
    return f"give {' or '.join(words)}{LIMITS[sign].format(limit.removesuffix('.0'))}"

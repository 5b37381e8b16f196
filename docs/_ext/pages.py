"""What the documentation says of rules, settings and choices, as Markdown made from the code itself.

Nothing here knows Sphinx, so that the tests can read these texts too.
"""

from __future__ import annotations

import ast
import inspect
import re
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from itertools import pairwise
from typing import Any

import msgspec
from click.testing import CliRunner
from markup import inline, table
from rule_pages import rule_index

import handgrad.rules.signature
from handgrad.checking import MISTAKES
from handgrad.cli import group
from handgrad.cli.options import SETTINGS
from handgrad.configuration import DataSettings, NetworkSettings, TrainingSettings
from handgrad.data.sources import FORMATS
from handgrad.interop.counterparts import COUNTERPARTS, UNSUPPORTED_LOSSES, UNSUPPORTED_MODULES, Counterpart
from handgrad.layers import INITIALISERS, LAYERS, LOSSES, OPTIMISERS, SCHEDULES

TABLES = {"data": DataSettings, "network": NetworkSettings, "training": TrainingSettings}

CHOICES: dict[str, Mapping[str, Any]] = {
    "layers": LAYERS,
    "losses": LOSSES,
    "optimisers": OPTIMISERS,
    "schedules": SCHEDULES,
}

WITHOUT_OPTION = {
    "data.source": "What the command line's SOURCE is: a built-in set, a file or a folder.",
    "data.inputs": "In a recipe: the shape of a row that it is for, so that `handgrad show` needs no data.",
    "data.outputs": "In a recipe: the number of classes that it is for, likewise.",
    "data.fingerprint": "In a run's settings: what the data was, so that a change is noticed.",
    "network.layers": "Instead of `hidden` and what goes with it: every layer, a table with its `type`.",
    "network.transformer": "For texts: a table of `width`, `heads` and `blocks`, as `--width`, `--heads` and `--blocks`.",
}
"""What the settings mean that no option of the command line sets; the others say it in its help."""


def generate(kind: str, *names: str) -> str:
    """Return a part of the documentation.

    ``rules`` (the index of their pages), ``kinds`` (of their arguments), ``settings`` (of a table), ``choices`` (of
    layers, losses, optimisers or schedules), ``initialisers``, ``formats`` (of data files),
    ``usage`` (of a command), or ``counterparts`` (of layers in PyTorch, or what has none).
    """
    parts: dict[str, Any] = {
        "rules": rule_index, "kinds": kinds, "settings": settings, "choices": choices, "initialisers": initialisers,
        "formats": formats, "usage": usage, "counterparts": counterparts,
    }  # fmt: skip
    text: str = parts[kind](*names)
    return text


# Rules.


def kinds() -> str:
    """Return what an argument of a rule may be besides a value, each as an entry of the reference."""
    lines = ast.parse(inspect.getsource(handgrad.rules.signature)).body
    entries = []
    for declared, said in pairwise(lines):
        kind = isinstance(declared, ast.Assign) and ast.unparse(declared.value).startswith("Annotated")
        if kind and isinstance(said, ast.Expr):
            name, meaning = ast.unparse(declared.targets[0]), ast.literal_eval(said.value)
            entries.append(f"```{{py:data}} handgrad.rules.{name}\n{inline(meaning)}\n```")
    return "\n\n".join(entries)


# Commands.


def usage(command: str) -> str:
    """Return a command's help, with the command above it."""
    return _printed(command, "--help")


def _printed(*words: str) -> str:
    said = CliRunner().invoke(
        group, words, prog_name="handgrad", catch_exceptions=False, standalone_mode=False
    )
    return f"```text\n$ handgrad {' '.join(words)}\n{said.output.rstrip()}\n```"


# Settings and choices.


def settings(part: str) -> str:
    """Return the keys of one table of a configuration file, as a table."""
    return table(["key", "value", "default", "option", "meaning"], _keys(part))


def _keys(table: str) -> Iterator[tuple[str, ...]]:
    options = {name: (flag, more["help"]) for name, flag, more in SETTINGS}
    for field in msgspec.structs.fields(TABLES[table]):
        name = f"{table}.{field.name}"
        inner = f"{name}.type"  # the option for the optimiser names its type
        flag, why = options.get(name) or options.get(inner) or ("", WITHOUT_OPTION[name])
        default = field.default
        if default is msgspec.NODEFAULT:
            default = field.default_factory()  # type: ignore[operator]
        why = re.sub(r" \[[^\]]*\]\.$", ".", why)  # the help says the default too
        yield f"`{field.name}`", kind_of(field.type), _toml(default), f"`{flag}`" if flag else "", why


def kind_of(kind: Any) -> str:
    """Say in words what a value may be.

    >>> kind_of(str | list[str] | None)
    'text, or list of: text'
    >>> kind_of(typing.Annotated[int, msgspec.Meta(ge=1)])
    'whole number, 1 or more'
    """
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return ", ".join([kind_of(inner[0]), *_bounds(inner[1])])
    if origin in (types.UnionType, typing.Union):
        return ", or ".join(kind_of(part) for part in inner if part is not types.NoneType)
    if origin is typing.Literal:
        return ", ".join(map(_toml, inner))
    if origin is list:
        return f"list of: {kind_of(inner[0])}"
    if origin is dict or hasattr(kind, "__struct_fields__"):
        return "table"
    return {str: "text", int: "whole number", float: "number", bool: "`true` or `false`"}[kind]


def _bounds(meta: msgspec.Meta) -> Iterator[str]:
    words = {"ge": "{} or more", "gt": "above {}", "le": "at most {}", "lt": "less than {}"}
    for name, word in words.items():
        if (bound := getattr(meta, name)) is not None:
            yield word.format("2⁶³ - 1" if bound == 2**63 - 1 else bound)


def _toml(value: Any) -> str:
    """Show a default as TOML does; what is None is left out of a file."""
    if value is None:
        return "—"
    if isinstance(value, dict):
        entries = (f"{key} = {_toml(each).strip('`')}" for key, each in value.items())
        return f"`{{{', '.join(entries)}}}`"
    return f"`{msgspec.json.encode(value).decode()}`"


def choices(which: str) -> str:
    """Return the types that a table may name, with their settings, as a table."""
    rows = [
        (f"`{name}`", ", ".join(_choice_settings(kind)), _summary(kind))
        for name, kind in sorted(CHOICES[which].items())
    ]
    return table(["type", "settings", "what it is"], rows)


def counterparts(which: str) -> str:
    """Return which layer is which module of PyTorch's, or the modules or losses without one, as a table."""
    if which != "layers":
        meanings = {"modules": UNSUPPORTED_MODULES, "losses": UNSUPPORTED_LOSSES}[which]
        rows = [(re.sub(r"[\w*]+", r"`\g<0>`", names), inline(what)) for names, what in meanings.items()]
        return table(["without a counterpart", "what to do"], rows)
    return table(
        ["handgrad", "PyTorch", "options", "arrays"],
        (
            (
                f"`{row.layer.__name__}`",
                f"`{row.module}`",
                _pairs(row.options),
                _pairs({**row.arrays, **_joined(row)}),
            )
            for row in COUNTERPARTS
        ),
    )


def _joined(row: Counterpart) -> dict[str, str]:
    """Return arrays that are part of a tensor, or a sum of several tensors."""
    owns = dict.fromkeys(own for parts in row.joined.values() for own in parts)
    return {own: "` + `".join(name for name, parts in row.joined.items() if own in parts) for own in owns}


def formats() -> str:
    """Return the formats of data files, as a table."""
    names = {
        "column": "a column, or several for regression", "own": "its own", "file": "the path of another such file",
    }  # fmt: skip
    rows = [
        (", ".join(f"`{suffix}`" for suffix in row.suffixes), row.holds, names[row.target]) for row in FORMATS
    ]
    return table(["ends in", "holds", "the target"], rows)


def _pairs(called: Mapping[str, str]) -> str:
    return ", ".join(f"`{own}` → `{other}`" for own, other in called.items())


def _choice_settings(kind: Any) -> Iterator[str]:
    if not hasattr(kind, "__dataclass_fields__"):
        yield "`layers`"
        return
    for field in fields(kind):
        named = field.default is MISSING or field.default is None
        yield f"`{field.name}`" if named else f"`{field.name} = {_toml(field.default).strip('`')}`"


def _summary(kind: Any) -> str:
    doc = inspect.getdoc(kind) or ""
    return inline(" ".join(doc.partition("\n\n")[0].split()))


def initialisers() -> str:
    """Return the initialisers and what each draws, as a table."""
    rows = [(f"`{name}`", _summary(function)) for name, function in INITIALISERS.items()]
    return table(["name", "what it draws"], rows)


# Mistakes.


def mistakes() -> str:
    """Return the mistakes that the checker names, as the table that docs/mistakes/index.md has: it is read there as it is."""
    rows = [
        (f"[{code}]({code}.md)", inline(each.title), inline(each.shows)) for code, each in MISTAKES.items()
    ]
    return str(table(["code", "what is wrong", "how it shows"], rows))

"""What the documentation says of rules, settings and choices, as Markdown made from the code itself.

Nothing here knows Sphinx, so that the tests can read these texts too.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import types
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import cache
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
from click.testing import CliRunner

import handgrad.rules
from handgrad.checking.subject.adapters import draw_for
from handgrad.cli import group
from handgrad.cli.options import SETTINGS
from handgrad.configuration import DataSettings, NetworkSettings, TrainingSettings
from handgrad.interop import refused, torch_losses
from handgrad.interop.counterparts import COUNTERPARTS
from handgrad.layers import INITIALISERS, LAYERS, LOSSES, OPTIMISERS, SCHEDULES
from handgrad.rules import Rule, Text, UpdateRule

AnyRule = Rule | UpdateRule

OWN_PAGES = ("losses", "targets", "updates")
"""Families of rules that have a page of their own."""

TABLES = {"data": DataSettings, "network": NetworkSettings, "training": TrainingSettings}

CHOICES: dict[str, Mapping[str, Any]] = {
    "layers": LAYERS,
    "losses": LOSSES,
    "optimisers": OPTIMISERS,
    "schedules": SCHEDULES,
}

WITHOUT_OPTION = {
    "data.source": "What the command line's SOURCE is: a built-in set, a file or a folder.",
    "data.fingerprint": "In a run's settings: what the data was, so that a change is noticed.",
    "network.layers": "Instead of `hidden` and what goes with it: every layer, a table with its `type`.",
}
"""What the settings mean that no option of the command line sets; the others say it in its help."""


def generate(kind: str, *names: str) -> str:
    """Return a part of the documentation.

    ``rules`` (of these families, or of all without a page of their own), ``kinds`` (of their arguments),
    ``settings`` (of a table), ``choices`` (of layers, losses, optimisers or schedules), ``initialisers``, or
    ``explained`` (what `handgrad explain` prints when it is given these words), or ``counterparts`` (of layers in PyTorch,
    or what has none).
    """
    parts: dict[str, Any] = {
        "rules": rules, "kinds": kinds, "settings": settings, "choices": choices, "initialisers": initialisers,
        "explained": explained, "counterparts": counterparts,
    }  # fmt: skip
    text: str = parts[kind](*names)
    return text


# Rules.


def rules(*names: str) -> str:
    """Return a section for each family of rules, with a section for each rule."""
    if names:
        return "\n\n".join(_family(name, f"Rules: {name}") for name in names)
    others = [name for name in families() if name not in OWN_PAGES]
    return "\n\n".join(_family(name, name.capitalize()) for name in others)


def families() -> list[str]:
    """Return the names of the modules that hold rules, in the order of the alphabet."""
    names = [module.name for module in pkgutil.iter_modules(handgrad.rules.__path__)]
    return [name for name in names if rules_of(name)]


def rules_of(family: str) -> list[AnyRule]:
    """Return the rules that a module defines, in the order it does."""
    module = importlib.import_module(f"handgrad.rules.{family}")
    found = [value for value in vars(module).values() if isinstance(value, Rule | UpdateRule)]
    return [rule for rule in found if text_of(rule).code.co_filename == module.__file__]


def text_of(rule: AnyRule) -> Text:
    """Return the text that a rule runs forward, or updates with."""
    return rule.forward if isinstance(rule, Rule) else rule.text


def _family(name: str, title: str) -> str:
    doc = inspect.getdoc(importlib.import_module(f"handgrad.rules.{name}")) or ""
    parts = [f"## {title}", _inline(doc), *map(rule_section, rules_of(name))]
    return "\n\n".join(filter(None, parts))


def rule_section(rule: AnyRule) -> str:
    """Return a rule as a section: how it is called, what its docstring says, and its lines with reasons."""
    text = text_of(rule)
    opening, notes = read_doc(text.doc)
    parts = [f"(rule-{rule.name})=\n### {rule.name}", *map(_inline, opening)]
    parts.append(_definitions({"Call": f"`{_call(text)}`", **_facts(rule)}))
    parts += [_lines(title, lines) for title, lines in texts_of(rule).items()]
    parts.append(_definitions({name: _note(name, note) for name, note in notes.items()}))
    return "\n\n".join(filter(None, parts))


def texts_of(rule: AnyRule) -> dict[str, Text]:
    """Return everything a rule runs, by what it is for."""
    if isinstance(rule, UpdateRule):
        return {"update": rule.text}
    found = {"sample": rule.sample, "forward": rule.forward, "state": rule.state}
    if not rule.constant:
        found["backward"] = rule.backward_text
    order = ("sample", "forward", "backward", "state")
    return {name: text for name in order if (text := found.get(name)) is not None}


def read_doc(doc: str) -> tuple[list[str], dict[str, str]]:
    """Divide a rule's docstring into its opening paragraphs and its named notes.

    >>> read_doc("Do it.\\n\\nGradient\\n    dx = dy,\\n    always.")
    (['Do it.'], {'Gradient': 'dx = dy,\\nalways.'})
    """
    opening: list[str] = []
    notes: dict[str, str] = {}
    for block in re.split(r"\n(?=\S)", doc):
        head, _, body = block.partition("\n")
        if body.strip() and body.startswith("    "):
            notes[head] = inspect.cleandoc(body)
        elif opening and not opening[-1].endswith("\n"):
            opening[-1] += f"\n{block}"
        else:
            opening.append(block)
    return [paragraph.strip() for paragraph in opening], notes


def _call(text: Text) -> str:
    """Show a rule's arguments as they are declared."""
    named = [
        argument if kind == "value" else f"{argument}: {kind.capitalize()}"
        for argument, kind in text.kinds.items()
    ]
    options = [f"{name}={value!r}" for name, value in text.options.items()]
    return f"{text.name}({', '.join([*named, *(['*'] if options else []), *options])})"


def _facts(rule: AnyRule) -> dict[str, str]:
    """Return what a rule declares beside its lines."""
    if isinstance(rule, UpdateRule):
        slots = ", ".join(f"`{slot}`" for slot in rule.slots)
        return {"Keeps": f"{slots}, for each parameter; zero at the start"} if slots else {}
    facts = {"Axes": f"`{rule.signature}`"}
    if rule.constant:
        facts["Keeps"] = "nothing: no gradient passes through"
    else:
        kept = ", ".join(f"`{name}`" for name in rule.kept)
        facts["Keeps"] = f"{kept}, for the backward" if kept else "nothing for the backward"
    if rule.evaluation is not rule:
        facts["Outside training"] = f"`{rule.evaluation.name}`"
    if not rule.constant:
        facts["Jacobian"] = "\\\n  ".join(jacobians(rule))
    return facts


SIZES = (17, 19, 23, 29, 31)
"""Of axes, where the structure of a rule's Jacobian is looked at: large enough that a low rank saves numbers."""


def jacobians(rule: Rule) -> Iterator[str]:
    """Say for each argument what the Jacobian is and what of it is stored, as the numbers of one batch show."""
    arrays = draw_for(rule, np.random.default_rng(0), SIZES).values()
    pairs = [f"{rule.output}:{name}" for name in rule.differentiable]
    for found in handgrad.explain(rule, *arrays, jacobians=pairs).jacobians:
        yield f"by `{found.input}` {found.structure}: `{found.stored}`"


def _definitions(meanings: Mapping[str, str]) -> str:
    return "\n\n".join(f"{word}\n: {meaning}" for word, meaning in meanings.items())


def _note(name: str, note: str) -> str:
    lines = _inline(note).splitlines()
    return ("\\\n  " if name == "Formula" else "\n  ").join(lines)


def _lines(title: str, text: Text) -> str:
    """Return lines and their reasons as a table."""
    rows = [[f"`{line}`", _inline(line.reason)] for line in text.lines]
    if not any(reason for _, reason in rows):
        return _table([title], [row[:1] for row in rows])
    return _table([title, "because"], rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, [":---"] * len(head), *cells))


def _inline(text: str) -> str:
    """Turn a docstring's marks into Markdown's; the names of rules become links."""
    known = _names()

    def mark(match: re.Match[str]) -> str:
        code, name, other = match.groups()
        if code is not None:
            return f"`{code}`"
        if name is not None:
            return f"[`{name}`](#rule-{name})" if name in known else f"`{name}`"
        return f"\\{other}"

    return re.sub(r"``(.+?)``|`([^`]+)`|([*<\[\]\\])", mark, text.replace("\\|", "|"))


@cache
def _names() -> frozenset[str]:
    """Return the name of every rule that has a section."""
    return frozenset(rule.name for family in families() for rule in rules_of(family))


def kinds() -> str:
    """Return what an argument of a rule may be besides a value, each as an entry of the reference."""
    lines = ast.parse(inspect.getsource(handgrad.rules.kinds)).body
    entries = []
    for declared, said in pairwise(lines):
        if isinstance(declared, ast.Assign) and isinstance(said, ast.Expr):
            name, meaning = ast.unparse(declared.targets[0]), ast.literal_eval(said.value)
            entries.append(f"```{{py:data}} handgrad.rules.{name}\n{_inline(meaning)}\n```")
    return "\n\n".join(entries)


# Explanations.


def explained(*words: str) -> str:
    """Return what a command prints, with the command above it."""
    said = (
        CliRunner().invoke(group, ["explain", *words], catch_exceptions=False, standalone_mode=False).output
    )
    return f"```text\n$ handgrad explain {' '.join(words)}\n{said.rstrip()}\n```"


# Settings and choices.


def settings(table: str) -> str:
    """Return the keys of one table of a configuration file, as a table."""
    return _table(["key", "value", "default", "option", "meaning"], _keys(table))


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
    if origin is dict:
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
    return f"`{msgspec.json.encode(value).decode()}`"


def choices(which: str) -> str:
    """Return the types that a table may name, with their settings, as a table."""
    rows = [
        (f"`{name}`", ", ".join(_choice_settings(kind)), _summary(kind))
        for name, kind in sorted(CHOICES[which].items())
    ]
    return _table(["type", "settings", "what it is"], rows)


def counterparts(which: str) -> str:
    """Return which layer is which module of PyTorch's, or the modules or losses without one, as a table."""
    if which != "layers":
        meanings = {"modules": refused.INSTEAD, "losses": torch_losses.WITHOUT | torch_losses.INSTEAD}[which]
        rows = [(re.sub(r"[\w*]+", r"`\g<0>`", names), _inline(what)) for names, what in meanings.items()]
        return _table(["without a counterpart", "what to do"], rows)
    return _table(
        ["handgrad", "PyTorch", "options", "arrays"],
        (
            (f"`{row.layer.__name__}`", f"`{row.module}`", _pairs(row.options), _pairs(row.arrays))
            for row in COUNTERPARTS
        ),
    )


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
    return _inline(" ".join(doc.partition("\n\n")[0].split()))


def initialisers() -> str:
    """Return the initialisers and what each draws, as a table."""
    rows = [(f"`{name}`", _summary(function)) for name, function in INITIALISERS.items()]
    return _table(["name", "what it draws"], rows)

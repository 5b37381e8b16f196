"""The pages of the rules, one for each, and their index: nothing stands there that the rule does not say itself.

What a rule says is its docstring, its lines with their reasons, and its numbers: `handgrad.explain` runs it on a batch,
derives each gradient from the backward lines, and finds the structure of each Jacobian.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from functools import cache

import numpy as np
from families import AnyRule, about, families, names, rules_of, text_of
from markup import definitions, inline, paragraphs, table

import handgrad
from handgrad.checking.input_draws import draw_for
from handgrad.explaining import Explanation
from handgrad.explaining.jacobians import MAX_ENTRIES
from handgrad.explaining.page import mathml
from handgrad.rules import Rule, Text, UpdateRule

SIZES = (17, 19, 23, 29, 31)
"""Of axes, on the batch that is explained: all different, and so large that a low rank saves numbers."""

ABOVE, BELOW = ("Shapes", "Formula", "Gradient"), ("Stable", "Kinks", "Differs", "Source")
"""The notes of a docstring that stand above a rule's lines, and below them."""


# The index.


def rule_index() -> str:
    """Return the families, each with a table of its rules."""
    return paragraphs(*map(_family, families()))


def _family(family: str) -> str:
    rows = [
        (f"[`{rule.name}`](#rule-{rule.name})", inline(read_doc(text_of(rule).doc)[0][0]))
        for rule in rules_of(family)
    ]
    listed = "\n".join(rule.name for rule in rules_of(family))
    return paragraphs(
        f"(family-{family})=\n## {family.capitalize()}",
        inline(about(family)),
        table(["rule", "what it does"], rows),
        f"```{{toctree}}\n:hidden:\n\n{listed}\n```",
    )


# A page.


def rule_page(rule: AnyRule) -> str:
    """Return the page of a rule: what its docstring says, its lines, and what its numbers show."""
    opening, notes = read_doc(text_of(rule).doc)
    said = {name: _note(name, note) for name, note in notes.items()}
    return paragraphs(
        f"(rule-{rule.name})=\n# {rule.name}",
        *map(inline, opening),
        definitions(facts(rule) | {name: said[name] for name in ABOVE if name in said}),
        "## Lines",
        *(_lines(title, text) for title, text in texts_of(rule).items()),
        *_shown_by_numbers(rule),
        "## Notes" if said.keys() & BELOW else "",
        definitions({name: said[name] for name in BELOW if name in said}),
    )


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


def facts(rule: AnyRule) -> dict[str, str]:
    """Return what a rule declares beside its lines, and where it belongs."""
    found = {"Call": f"`{_call(text_of(rule))}`"}
    if isinstance(rule, UpdateRule):
        if rule.slots:
            slots = ", ".join(f"`{slot}`" for slot in rule.slots)
            found["Slots"] = f"{slots}, for each parameter; zero at the start"
    else:
        found["Axes"] = f"`{rule.signature}`"
        found["Cached"] = _cached(rule)
        if rule.evaluation is not rule:
            found["Outside training"] = f"[`{rule.evaluation.name}`](#rule-{rule.evaluation.name})"
    if users := users_of(rule):
        found["In"] = ", ".join(f"{{py:class}}`~handgrad.{user}`" for user in users)
    family = names()[rule.name]
    return found | {"Family": f"[{family}](#family-{family})"}


def _cached(rule: Rule) -> str:
    if rule.constant:
        return "nothing: no gradient passes through"
    names = ", ".join(f"`{name}`" for name in rule.cached)
    return f"{names}, for the backward" if names else "nothing for the backward"


def users_of(rule: AnyRule) -> list[str]:
    """Return the public layers, losses and optimisers whose source names a rule."""
    named = re.compile(rf"\brules\.{rule.name}\b")
    return [name for name, source in _sources().items() if named.search(source)]


@cache
def _sources() -> dict[str, str]:
    kinds = {name: getattr(handgrad, name) for name in handgrad.__all__}
    return {name: inspect.getsource(kind) for name, kind in kinds.items() if inspect.isclass(kind)}


def _call(text: Text) -> str:
    """Show a rule's arguments as they are declared."""
    named = [
        argument if kind == "value" else f"{argument}: {kind.capitalize()}"
        for argument, kind in text.kinds.items()
    ]
    options = [f"{name}={value!r}" for name, value in text.options.items()]
    return f"{text.name}({', '.join([*named, *(['*'] if options else []), *options])})"


def _note(name: str, note: str) -> str:
    lines = inline(note).splitlines()
    return ("\\\n  " if name == "Formula" else "\n  ").join(lines)


def _lines(title: str, text: Text) -> str:
    """Return lines and their reasons as a table."""
    rows = [[f"`{line}`", inline(line.reason)] for line in text.lines]
    if not any(reason for _, reason in rows):
        return table([title], [row[:1] for row in rows])
    return table([title, "because"], rows)


# What the numbers of one batch show.


def _shown_by_numbers(rule: AnyRule) -> Iterator[str]:
    if isinstance(rule, UpdateRule) or rule.constant:
        return
    arrays = draw_for(rule, np.random.default_rng(0), SIZES).values()
    if np.size(rule(*arrays)) * max(array.size for array in arrays) > MAX_ENTRIES:
        arrays = draw_for(rule, np.random.default_rng(0)).values()
    pairs = [f"{rule.output}:{name}" for name in rule.differentiable]
    explanation = handgrad.explain(rule, *arrays, jacobians=pairs)
    letters = _letters(explanation)
    yield "## Derivation"
    yield definitions({f"`d{name}`": _derivation(explanation, letters, name) for name in rule.differentiable})
    yield "## Jacobian"
    yield definitions(
        {
            f"by `{found.input}`": f"[{found.structure}](#jacobians): `{found.stored}`\n\n  {inline(found.explanation)}"
            for found in explanation.jacobians
        }
    )
    sizes = ", ".join(f"{letter} = {size}" for size, letter in letters.items() if size > 1)
    yield f"Counted at {sizes}."


def _letters(explanation: Explanation) -> dict[int, str]:
    """Return the letter of the axis of each size: on this batch, no two axes are equally long."""
    axes = (
        pair for entry in explanation.ledger.values() for pair in zip(entry.sizes, entry.axes, strict=True)
    )
    return dict(axes)


def _derivation(explanation: Explanation, letters: dict[int, str], name: str) -> str:
    """Return the lines that lead to a gradient as formulas, and then all in one; under each factor its axes."""
    derivation = explanation.derivations[name]
    steps = [factor.tex for factor in derivation.factors]
    formulas = steps if len(steps) == 1 else [*steps, derivation.product]
    under = r"(?<=_\{)\d+(?: \\times \d+)*(?=\})"
    lettered = (
        re.sub(
            under,
            lambda sizes: re.sub(r"\d+", lambda size: letters.get(int(size[0]), size[0]), sizes[0]),
            formula,
        )
        for formula in formulas
    )
    shown = "\n".join(f'  <div class="formula">{mathml(formula)}</div>' for formula in lettered)
    return f"```{{raw}} html\n{shown}\n  ```"

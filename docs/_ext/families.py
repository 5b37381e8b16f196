"""Which rules there are: those that the modules of `handgrad.rules` define, family by family."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from functools import cache

import handgrad.rules
from handgrad.rules import Rule, Text, UpdateRule

AnyRule = Rule | UpdateRule


def families() -> list[str]:
    """Return the names of the modules that hold rules, in the order of the alphabet."""
    names = [module.name for module in pkgutil.iter_modules(handgrad.rules.__path__)]
    return [name for name in names if rules_of(name)]


def rules_of(family: str) -> list[AnyRule]:
    """Return the rules that a module defines, in the order it does."""
    module = importlib.import_module(f"handgrad.rules.{family}")
    found = [value for value in vars(module).values() if isinstance(value, Rule | UpdateRule)]
    return [rule for rule in found if text_of(rule).code.co_filename == module.__file__]


def about(family: str) -> str:
    """Return what a module says of its rules."""
    return inspect.getdoc(importlib.import_module(f"handgrad.rules.{family}")) or ""


@cache
def names() -> dict[str, str]:
    """Return the family of each rule, by the rule's name."""
    return {rule.name: family for family in families() for rule in rules_of(family)}


def text_of(rule: AnyRule) -> Text:
    """Return the text that a rule runs forward, or updates with."""
    return rule.forward if isinstance(rule, Rule) else rule.text

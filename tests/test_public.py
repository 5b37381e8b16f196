"""The public names of handgrad."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import handgrad.layers
import handgrad.rules
from handgrad.layers import Layer, Loss, Optimiser, Schedule
from handgrad.rules import Rule, UpdateRule

FAMILIES = [
    pytest.param(package, importlib.import_module(f"{package.__name__}.{module.name}"), id=module.name)
    for package in (handgrad.rules, handgrad.layers)
    for module in pkgutil.iter_modules(package.__path__)
]
"""Every module of rules and of layers."""

ABSTRACT = {"Layer", "RuleLayer", "Loss", "Optimiser", "Schedule"}


def made_in(module: ModuleType) -> Iterator[str]:
    """Yield the names of the rules, layers, losses, optimisers and schedules that a module defines."""
    for name, value in vars(module).items():
        is_layer = isinstance(value, type) and issubclass(value, Layer | Loss | Optimiser | Schedule)
        is_kind = isinstance(value, Rule | UpdateRule) or (is_layer and name not in ABSTRACT)
        if is_kind and value.__module__ == module.__name__:
            yield name


@pytest.mark.parametrize(("package", "module"), FAMILIES)
def test_what_a_module_makes_is_public(package: Any, module: ModuleType) -> None:
    """A rule or a layer is listed in its module, and its module in the package."""
    place = f"src/{module.__name__.replace('.', '/')}.py"
    for name in made_in(module):
        assert name in getattr(module, "__all__", ()), f"{place}: __all__ does not list {name}"
        star = f"from {module.__name__} import *"
        assert hasattr(package, name), f"src/{package.__name__.replace('.', '/')}/__init__.py: no `{star}`"
        if isinstance(getattr(package, name), type):
            assert hasattr(handgrad, name), f"src/handgrad/__init__.py: no `{star}`"


def test_the_list_of_public_names_has_no_name_twice() -> None:
    """``__all__`` is what a reader takes for the contents."""
    assert len(set(handgrad.__all__)) == len(handgrad.__all__)
    assert all(hasattr(handgrad, name) for name in handgrad.__all__)


@pytest.mark.parametrize("name", handgrad.__all__)
def test_a_public_name_says_what_it_is(name: str) -> None:
    """Every public class and function has a docstring."""
    value = getattr(handgrad, name)
    assert not callable(value) or value.__doc__.strip()

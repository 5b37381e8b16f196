"""The public names of handgrad."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

import handgrad


def test_the_list_of_public_names_is_in_order_and_has_no_name_twice() -> None:
    """``__all__`` is what a reader takes for the contents."""
    assert len(set(handgrad.__all__)) == len(handgrad.__all__)
    assert all(hasattr(handgrad, name) for name in handgrad.__all__)


def test_a_name_is_imported_from_where_type_checkers_see_it() -> None:
    """The imports that only type checkers run, and the names that come when they are asked for, are the same."""
    tree = ast.parse(Path(handgrad.__file__).read_text(encoding="utf-8"))
    (seen,) = (node for node in tree.body if isinstance(node, ast.If) and isinstance(node.test, ast.Name))
    homes = {
        alias.name: node.module
        for node in seen.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert homes.keys() == set(handgrad.__all__)
    for name, home in homes.items():
        assert getattr(handgrad, name) is getattr(importlib.import_module(str(home)), name)


def test_what_is_not_imported_yet_is_shown_all_the_same() -> None:
    """Completion in a notebook offers every public name; another is an error as of any module."""
    assert set(handgrad.__all__) <= set(dir(handgrad))
    with pytest.raises(AttributeError, match=r"^module 'handgrad' has no attribute 'Lineer'$"):
        handgrad.Lineer  # type: ignore[attr-defined] # noqa: B018


@pytest.mark.parametrize("name", handgrad.__all__)
def test_a_public_name_says_what_it_is(name: str) -> None:
    """Every public class and function has a docstring."""
    value = getattr(handgrad, name)
    assert not callable(value) or value.__doc__.strip()

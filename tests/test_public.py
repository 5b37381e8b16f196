"""The public names of handgrad: what ``__all__`` lists, in handgrad itself and in each module and package in it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import handgrad
from handgrad.rules import RULES

ROOT = Path(__file__).parents[1]
DOCS = [path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts]
ENTRIES = set(
    re.findall(
        r"^\.\. (?:auto\w+|py:data):: (?:[\w.]+\.)?(\w+)$",
        "\n".join(path.read_text(encoding="utf-8") for path in DOCS),
        re.MULTILINE,
    )
)
KINDS = {"Index", "Mask", "Shares", "State", "Target", "Weight"}  # their entries are made from the code


def public() -> dict[str, list[str]]:
    """Read ``__all__`` of handgrad and of what can be imported from it, without importing what needs other packages."""
    folder = Path(handgrad.__file__).parent
    found = {}
    for path in sorted([*folder.glob("*.py"), *folder.glob("*/__init__.py")]):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                found[str(path.relative_to(folder))] = ast.literal_eval(node.value)
    return found


def test_the_list_of_public_names_is_in_order_and_has_no_name_twice() -> None:
    """``__all__`` is what a reader takes for the contents."""
    assert len(set(handgrad.__all__)) == len(handgrad.__all__)
    assert all(hasattr(handgrad, name) for name in handgrad.__all__)


def test_every_class_and_function_at_hand_is_listed() -> None:
    """What can be reached as ``handgrad.name`` is public on purpose."""
    own = {
        name
        for name, value in vars(handgrad).items()
        if callable(value) and not name.startswith("_") and value.__module__.startswith("handgrad.")
    }
    assert own <= set(handgrad.__all__)


@pytest.mark.parametrize("name", handgrad.__all__)
def test_a_public_name_says_what_it_is(name: str) -> None:
    """Every public class and function has a docstring."""
    value = getattr(handgrad, name)
    assert not callable(value) or value.__doc__.strip()


@pytest.mark.parametrize(("module", "names"), public().items(), ids=public())
def test_every_public_name_is_in_the_documentation(module: str, names: list[str]) -> None:
    """It has an entry in the reference, or, as a rule, a page of its own."""
    pages = {"rules/__init__.py": {*RULES, *update_rules(), *KINDS}}
    assert set(names) - ENTRIES - pages.get(module, set()) == set()


def update_rules() -> set[str]:
    return {
        name
        for name in handgrad.rules.__all__
        if isinstance(getattr(handgrad.rules, name), handgrad.rules.UpdateRule)
    }


def test_the_packages_of_the_reference_are_found() -> None:
    """A list that cannot be read would be passed over in silence."""
    packages = {
        "checking",
        "data",
        "engines",
        "explaining",
        "interop",
        "layers",
        "program",
        "rules",
        "sklearn",
        "training",
    }
    assert {f"{package}/__init__.py" for package in packages} | {"__init__.py", "testing.py"} == set(public())

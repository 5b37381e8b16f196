"""The public names of handgrad: what ``__all__`` lists, in handgrad itself and in each module and package in it."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import handgrad.layers
import handgrad.rules
from handgrad.errors import ELSEWHERE, ConfigurationError
from handgrad.layers import LOSSES, Layer, Loss, Optimiser, Schedule
from handgrad.rules import Rule, UpdateRule
from handgrad.specs import from_table

ROOT = Path(__file__).parents[1]
DOCS = [path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts]
ENTRY = re.compile(r"^\.\. (?:auto\w+|py:data):: (?:[\w.]+\.)?(\w+)$", re.MULTILINE)
ENTRIES_OF = {path: set(ENTRY.findall(path.read_text(encoding="utf-8"))) for path in DOCS}
ENTRIES = set().union(*ENTRIES_OF.values())
KINDS = {
    "Index",
    "Mask",
    "Probabilities",
    "State",
    "Target",
    "Weight",
}  # their entries are made from the code

MODULES = [
    importlib.import_module(f"{package.__name__}.{found.name}")
    for package in (handgrad.rules, handgrad.layers)
    for found in pkgutil.iter_modules(package.__path__)
]
"""Every module of rules and of layers."""

MADE = {"__init__.py", "layers/__init__.py", "rules/__init__.py"}
"""Whose lists are made of those of their modules."""

ABSTRACT = {"Layer", "RuleLayer", "Loss", "Optimiser", "Schedule"}


def listing() -> Iterator[tuple[str, Path]]:
    """Yield the modules that may list public names."""
    folder = Path(handgrad.__file__).parent
    for pattern in ("*.py", "*/__init__.py", "rules/*.py", "layers/*.py"):
        yield from ((path.relative_to(folder).as_posix(), path) for path in folder.glob(pattern))


def public() -> dict[str, list[str]]:
    """Return ``__all__`` of handgrad, and read those of its packages, without importing what needs other packages."""
    found = {"__init__.py": list(handgrad.__all__)}
    for name, path in sorted(listing()):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                found[name] = ast.literal_eval(node.value)
    return found


def made_in(module: ModuleType) -> Iterator[str]:
    """Yield the names of the rules, layers, losses, optimisers and schedules that a module defines."""
    for name, value in vars(module).items():
        is_layer = isinstance(value, type) and issubclass(value, Layer | Loss | Optimiser | Schedule)
        is_kind = isinstance(value, Rule | UpdateRule) or (is_layer and name not in ABSTRACT)
        if is_kind and value.__module__ == module.__name__:
            yield name


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_what_a_module_makes_is_public(module: ModuleType) -> None:
    """A rule or a layer is listed in its module, and its module in the package."""
    package = importlib.import_module(module.__name__.rpartition(".")[0])
    place, home = (f"src/{each.__name__.replace('.', '/')}" for each in (module, package))
    for name in made_in(module):
        assert name in getattr(module, "__all__", ()), f"{place}.py: __all__ does not list {name}"
        assert hasattr(package, name), f"{home}/__init__.py: no `from {module.__name__} import *`"


def test_the_list_of_public_names_has_no_name_twice() -> None:
    """``__all__`` is what a reader takes for the contents."""
    assert len(set(handgrad.__all__)) == len(handgrad.__all__)
    assert all(hasattr(handgrad, name) for name in handgrad.__all__)


def imported(block: ast.If) -> Iterator[tuple[str, str]]:
    """Yield each name that a block imports, and from where; of a star, each that the module lists."""
    for node in block.body:
        if isinstance(node, ast.ImportFrom):
            home = str(node.module)
            names = [alias.name for alias in node.names]
            yield from (
                (name, home) for name in (importlib.import_module(home).__all__ if names == ["*"] else names)
            )


def test_a_name_is_imported_from_where_type_checkers_see_it() -> None:
    """The imports that only type checkers run, and the names that come when they are asked for, are the same."""
    tree = ast.parse(Path(handgrad.__file__).read_text(encoding="utf-8"))
    (seen,) = (node for node in tree.body if isinstance(node, ast.If) and isinstance(node.test, ast.Name))
    homes = dict(imported(seen))
    missing, unseen = homes.keys() - set(handgrad.__all__), set(handgrad.__all__) - homes.keys()
    assert not missing, f"src/handgrad/__init__.py: PUBLIC does not list {missing}"
    assert not unseen, f"src/handgrad/__init__.py: nothing is imported for type checkers as {unseen}"
    for name, home in homes.items():
        assert getattr(handgrad, name) is getattr(importlib.import_module(home), name)


def test_what_is_not_imported_yet_is_shown_all_the_same() -> None:
    """Completion in a notebook offers every public name; another is an error as of any module."""
    assert set(handgrad.__all__) | handgrad.PUBLIC.keys() <= set(dir(handgrad))
    modules = {name for name, value in vars(handgrad).items() if isinstance(value, ModuleType)}
    plain = {name for name in dir(handgrad) if not name.startswith("__")}
    assert plain == set(handgrad.__all__) | handgrad.PUBLIC.keys() | modules, "what handgrad itself imports"
    with pytest.raises(AttributeError, match=r"^module 'handgrad' has no attribute 'Lineer'$"):
        handgrad.Lineer  # type: ignore[attr-defined] # noqa: B018


def test_the_names_of_other_libraries_lead_to_handgrads() -> None:
    assert set(ELSEWHERE.values()) <= set(handgrad.__all__)
    assert not ELSEWHERE.keys() & {name.lower() for name in handgrad.__all__}
    with pytest.raises(
        AttributeError, match=r"^module 'handgrad' has no attribute 'Dense': its name for it is 'Linear'$"
    ):
        handgrad.Dense  # type: ignore[attr-defined] # noqa: B018
    with pytest.raises(ConfigurationError, match="did you mean 'MeanSquaredError'"):
        from_table("mse_loss", "loss", LOSSES)


@pytest.mark.parametrize("name", handgrad.__all__)
def test_a_public_name_says_what_it_is(name: str) -> None:
    """Every public class and function has a docstring."""
    value = getattr(handgrad, name)
    assert not callable(value) or value.__doc__.strip()


@pytest.mark.parametrize(("module", "names"), public().items(), ids=public())
def test_every_public_name_is_in_the_documentation(module: str, names: list[str]) -> None:
    """It has an entry in the reference, or, as a rule, a page of its own."""
    missing = set(names) - ENTRIES - KINDS - (set(rules_in(module)) if module.startswith("rules/") else set())
    page = max(ENTRIES_OF, key=lambda page: len(ENTRIES_OF[page] & set(names))).relative_to(ROOT)
    assert not missing, f"src/handgrad/{module} makes {missing} public, and {page} has no entry of it"


def rules_in(module: str) -> Iterator[str]:
    made = vars(importlib.import_module(f"handgrad.rules.{Path(module).stem}"))
    return (name for name, value in made.items() if isinstance(value, Rule | UpdateRule))


def test_every_list_of_public_names_is_read() -> None:
    """One that cannot be read would be passed over in silence."""
    listed = re.compile(r"^ *__all__\b", re.MULTILINE)
    assert public().keys() | MADE == MADE | {
        name for name, path in listing() if listed.search(path.read_text(encoding="utf-8"))
    }


@pytest.mark.parametrize(
    "module",
    [
        pytest.param(module, marks=[pytest.mark.peers] if module == "sklearn" else [])
        for module in handgrad.PUBLIC
    ],
)
def test_a_star_brings_what_is_public_and_no_module(module: str) -> None:
    """``from handgrad.layers import *`` is what people type in a notebook."""
    brought: dict[str, object] = {}
    exec(f"from handgrad.{module} import *", brought)
    del brought["__builtins__"]
    assert brought.keys() == set(getattr(handgrad, module).__all__)
    assert not [name for name, value in brought.items() if isinstance(value, ModuleType)]
    assert set(handgrad.PUBLIC[module]) <= brought.keys()


@pytest.mark.parametrize("package", [handgrad.layers, handgrad.rules])
def test_a_package_lists_what_its_modules_list(package: ModuleType) -> None:
    modules = [module for module in MODULES if module.__name__.startswith(f"{package.__name__}.")]
    listed = [name for module in modules for name in getattr(module, "__all__", ())]
    own = set(package.__all__) - set(listed)
    assert set(listed) <= set(package.__all__)
    assert own <= ENTRIES
    assert len(package.__all__) == len(set(package.__all__))


def test_the_package_runs_as_a_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "handgrad", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip().endswith(f"version {handgrad.__version__}")


def test_the_citation_and_the_changelog_are_of_the_version() -> None:
    """The first version in the changelog is this one, or one that is not released."""
    root = Path(__file__).parents[1]
    cited = re.search(r"^version: (.+)$", (root / "CITATION.cff").read_text("utf-8"), re.MULTILINE)
    assert cited is not None
    assert cited[1] == handgrad.__version__
    assert re.search(
        rf"^## {re.escape(handgrad.__version__)}\b", (root / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE
    )

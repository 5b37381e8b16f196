"""Every example is run: in the pages of the documentation, the README, and the docstrings of all modules."""

from __future__ import annotations

import compileall
import doctest
import importlib
import pkgutil
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import handgrad

from ..conftest import Server
from . import examples

ROOT = Path(__file__).parents[2]
FOUND = (path for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")) if "_build" not in path.parts)
RULES = ROOT / "docs" / "rules"  # but for the index, its pages are made by a build: they may be there
PAGES = {str(path.relative_to(ROOT)): path for path in FOUND if path.parent != RULES or path.stem == "index"}
NEED_PEERS = (
    "docs/interop.md",
    "docs/sklearn.md",
    "handgrad.sklearn",
)  # their examples import other libraries
LANGUAGES = {*examples.EVALUATED, "sh"}  # sh is not run: .ci/run does what the README says

MODULES = [
    module.name
    for module in pkgutil.walk_packages(handgrad.__path__, "handgrad.")
    if ">>> " in Path(str(module.module_finder.find_spec(module.name).origin)).read_text(encoding="utf-8")  # type: ignore
]


def marked(name: str) -> list[pytest.MarkDecorator]:
    """Mark what needs other libraries."""
    return [pytest.mark.peers] if name.startswith(NEED_PEERS) else []


def copy_checkout(folder: Path) -> None:
    """Copy what a contributor changes and tests."""
    for name in ("docs", "src", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "_build"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    compileall.compile_dir(folder / "src", quiet=1)  # once, and not in each of the page's commands


@pytest.mark.parametrize(
    "page", [pytest.param(path, id=name, marks=marked(name)) for name, path in PAGES.items()]
)
def test_examples_of_pages(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: Server
) -> None:
    monkeypatch.chdir(tmp_path)
    # Else a page's own pytest would tidy up where other runs of pytest work.
    monkeypatch.setenv("PYTEST_DEBUG_TEMPROOT", str(tmp_path))
    document = examples.PAGES.parse(page)
    if "```diff\n" in page.read_text(encoding="utf-8"):
        copy_checkout(tmp_path)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path / "src"))
        # Importing plugins takes longer than most of the tests that these pages run.
        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    else:
        document.namespace["_server"] = server
    for example in document:
        example.evaluate()


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_blocks_have_a_known_language(page: Path) -> None:
    """A block of another language, or of none, would be passed over in silence."""
    fences = re.findall(r"^\s*(`{3,}|~{3,})(.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    opening = [language.strip() for _, language in fences[::2]]
    assert all(language in LANGUAGES or language.startswith("{") for language in opening), opening


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.peers] if name.startswith("handgrad.sklearn") else [])
        for name in (*MODULES, examples.__name__)
    ],
)
def test_examples_of_modules(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    module = examples if name == examples.__name__ else importlib.import_module(name)
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for test in doctest.DocTestFinder().find(module, extraglobs={"np": np}):
        runner.run(test, out=said.append)
    assert not said, "".join(said)
    assert runner.tries

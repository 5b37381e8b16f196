"""The documentation is complete: what is public has an entry, and what is generated leaves nothing out."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

import handgrad.data
from handgrad.cli.options import SETTINGS
from handgrad.layers import LAYERS, LOSSES, OPTIMISERS, SCHEDULES
from handgrad.rules import RULES

DOCS = Path(__file__).parents[2] / "docs"
TEXT = "\n".join(path.read_text(encoding="utf-8") for path in sorted(DOCS.rglob("*.md")))
GENERATED = re.findall(r"^```\{generated\} (.+)$", TEXT, re.MULTILINE)


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    """Import the module that makes parts of the pages."""
    spec = importlib.util.spec_from_file_location("handgrad_pages", DOCS / "_ext" / "pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def generated(pages: ModuleType) -> str:
    """Make all that the pages have made, as one text."""
    return "\n".join(pages.generate(*arguments.split()) for arguments in GENERATED)


@pytest.mark.parametrize("package", [handgrad, handgrad.data])
def test_every_public_name_has_an_entry(package: ModuleType) -> None:
    entries = re.findall(r"^\.\. (?:auto\w+|py:data):: (?:[\w.]+\.)?(\w+)$", TEXT, re.MULTILINE)
    missing = set(package.__all__) - set(entries)
    home = "a layer's place is docs/reference/layers.md"
    assert not missing, f"no page has `.. autoclass:: {package.__name__}.NAME` for {missing}; {home}"


def test_every_rule_has_one_section(pages: ModuleType, generated: str) -> None:
    """Whatever is defined in a file of handgrad.rules appears, losses and updates too."""
    sections = re.findall(r"^### (\w+)$", generated, re.MULTILINE)
    names = [rule.name for family in pages.families() for rule in pages.rules_of(family)]
    own = {name for name, rule in RULES.items() if rule.__module__.startswith("handgrad.rules.")}
    assert sorted(sections) == sorted(names)
    assert own <= set(names)


def test_the_section_of_a_rule_says_what_its_jacobians_are(pages: ModuleType) -> None:
    """As their numbers show: for each argument the structure, and what is stored."""
    assert "by `z` diagonal plus low rank: `diag(y) - y yᵀ`" in pages.rule_section(RULES["softmax"])
    for rule in RULES.values():
        section = pages.rule_section(rule)
        for name in rule.differentiable:
            assert re.search(rf"by `{name}` (diagonal|kronecker|block diagonal|full)", section), rule.name


def test_what_explain_prints_is_on_its_page(pages: ModuleType) -> None:
    """With the command above it, and the answer under it."""
    words = next(words for words in GENERATED if words.startswith("explained") and "--line dW1" in words)
    said = pages.generate(*words.split())
    assert said.startswith("```text\n$ handgrad explain moons ")
    assert "  because        the same W1 serves every row: the rows add up\n" in said
    assert sum(words.startswith("explained") for words in GENERATED) >= 5


def test_a_section_has_every_line_and_every_reason(pages: ModuleType) -> None:
    for family in pages.families():
        for rule in pages.rules_of(family):
            section = pages.rule_section(rule).replace("\\|", "|")
            for text in pages.texts_of(rule).values():
                for line in text.lines:
                    assert f"| `{line}` |" in section
                    assert pages._inline(line.reason) in section


def test_a_section_has_every_note_of_the_docstring(pages: ModuleType) -> None:
    known = {"Shapes", "Formula", "Gradient", "Stable", "Kinks", "Differs", "Source"}
    for family in pages.families():
        for rule in pages.rules_of(family):
            opening, notes = pages.read_doc(pages.text_of(rule).doc)
            assert opening, rule.name
            assert notes.keys() <= known, rule.name
            assert all(f"\n{name}\n: " in pages.rule_section(rule) for name in notes)


def test_every_setting_is_in_a_table(pages: ModuleType, generated: str) -> None:
    for table in pages.TABLES.values():
        for field in msgspec.structs.fields(table):
            assert f"| `{field.name}` |" in generated
    for kinds in (LAYERS, LOSSES, OPTIMISERS, SCHEDULES):
        assert all(f"| `{name}` |" in generated for name in kinds)


def test_the_help_of_an_option_says_the_default_of_its_setting(pages: ModuleType) -> None:
    defaults = {}
    for name, table in pages.TABLES.items():
        defaults |= {f"{name}.{key}": value for key, value in msgspec.structs.asdict(table()).items()}
    defaults["training.optimiser.type"] = defaults["training.optimiser"]
    for name, flag, more in SETTINGS:
        said = re.search(r"\[(.*)\]\.$", more["help"])
        if said:
            default = defaults[name]
            shown = ",".join(map(str, default)) if isinstance(default, list) else f"{default}"
            assert said[1] == shown.removesuffix(".0"), flag

"""The documentation is complete: what is generated leaves nothing out, and every example and benchmark is named."""

from __future__ import annotations

import importlib
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import numpy as np
import pytest

from handgrad import rules
from handgrad.checking.input_draws import draw_for
from handgrad.cli.options import SETTINGS
from handgrad.configuration import FOR_TEXT, TransformerSettings
from handgrad.engines import ENGINES
from handgrad.layers import LAYERS, LOSSES, OPTIMISERS, SCHEDULES
from handgrad.rules import RULES, UpdateRule

DOCS = Path(__file__).parents[2] / "docs"
TEXT = "\n".join(path.read_text(encoding="utf-8") for path in sorted(DOCS.rglob("*.md")))
GENERATED = re.findall(r"^```\{generated\} (.+)$", TEXT, re.MULTILINE)


@pytest.fixture(scope="module")
def extension() -> Iterator[pytest.MonkeyPatch]:
    """Let the modules that make pages be imported, as the documentation imports them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(DOCS / "_ext")
        yield patch


@pytest.fixture(scope="module")
def pages(extension: pytest.MonkeyPatch) -> ModuleType:
    """Import the module that makes parts of the pages."""
    return importlib.import_module("pages")


@pytest.fixture(scope="module")
def rule_pages(extension: pytest.MonkeyPatch) -> ModuleType:
    """Import the module that makes the pages of the rules."""
    return importlib.import_module("rule_pages")


@pytest.fixture(scope="module")
def written(rule_pages: ModuleType) -> dict[Any, str]:
    """Write the page of every rule."""
    all_rules = [rule for family in rule_pages.families() for rule in rule_pages.rules_of(family)]
    return {rule: rule_pages.rule_page(rule) for rule in all_rules}


@pytest.fixture(scope="module")
def generated(pages: ModuleType) -> str:
    """Make all that the pages have made, as one text."""
    return "\n".join(pages.generate(*arguments.split()) for arguments in GENERATED)


def test_every_link_has_a_text() -> None:
    """Sphinx fills in titles, and a host of repositories does not."""
    assert "[](" not in TEXT


def headings(page: Path) -> set[str]:
    """Return the anchors that a host of repositories gives a page's headings."""
    found = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


def test_every_link_leads_somewhere_where_the_page_is_read_as_markdown_too() -> None:
    """To a file: a host of repositories makes no pages of the rules, whose links Sphinx leads there."""
    pages = [
        *DOCS.parent.glob("*.md"),
        *DOCS.glob("*.md"),
        *(page for page in DOCS.glob("[!_]*/*.md") if page.parent.name != "rules"),
        DOCS / "rules" / "index.md",  # the others are generated
    ]
    links = [
        (page, link)
        for page in pages
        for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text(encoding="utf-8"))
    ]
    assert len(links) > 100
    dead = [
        link for page, link in links if link[0] != "#" and not (page.parent / link.partition("#")[0]).exists()
    ]
    dead += [link for page, link in links if link[0] == "#" and link[1:] not in headings(page)]
    assert dead == []


def test_every_rule_has_a_page_and_a_place_in_the_index(
    pages: ModuleType, rule_pages: ModuleType, written: dict[Any, str]
) -> None:
    """Whatever is defined in a file of handgrad.rules appears, losses and updates too."""
    index = pages.generate("rules")
    entries = re.findall(r"^\| \[`(\w+)`\]\(#rule-\1\)", index, re.MULTILINE)
    in_trees = [name for tree in re.findall(r"\{toctree\}\n:hidden:\n\n(.*?)\n```", index, re.DOTALL)
                for name in tree.split()]  # fmt: skip
    own = {name for name, rule in RULES.items() if rule.__module__.startswith("handgrad.rules.")}
    assert own <= set(entries)
    assert entries == in_trees == list(rule_pages.names())
    for rule, page in written.items():
        assert page.startswith(f"(rule-{rule.name})=\n# {rule.name}\n")


def test_the_page_of_a_rule_says_what_its_jacobians_are(written: dict[Any, str]) -> None:
    """As their numbers show: for each argument the structure, and what is stored."""
    softmax = written[RULES["softmax"]]
    assert "by `z`\n: [diagonal plus low rank](#jacobians): `diag(y) - y yᵀ`" in softmax
    structures = "diagonal|kronecker|block diagonal|diagonal plus low rank|sparse|full"
    for rule, page in written.items():
        found = re.findall(rf"^by `(\w+)`\n: \[(?:{structures})\]\(#jacobians\): `", page, re.MULTILINE)
        assert found == list(differentiable(rule)), rule.name


def differentiable(rule: Any) -> tuple[str, ...]:
    return () if isinstance(rule, UpdateRule) or rule.constant else tuple(rule.differentiable)


def test_the_page_of_a_rule_derives_every_gradient(written: dict[Any, str]) -> None:
    """In formulas, a line each, and with the letters of the axes rather than the sizes of the batch."""
    for rule, page in written.items():
        derived = page.partition("## Derivation\n")[2].partition("## Jacobian")[0]
        assert re.findall(r"^`d(\w+)`$", derived, re.MULTILINE) == list(differentiable(rule)), rule.name
        assert derived.count("<math ") >= len(differentiable(rule))
        assert "<code>" not in derived, "a formula that is none"
        assert not re.search(r"<m[ni]>(17|19|23|29|31)<", derived)


def test_a_derivation_says_what_is_multiplied(written: dict[Any, str]) -> None:
    """The gradient of a weight is a product of an (I, N) and an (N, O) factor."""
    page = written[RULES["linear"]]
    sizes = re.findall(
        r"<mi>(\w)</mi><mo[^>]*>×</mo><mi>(\w)</mi>", page.partition("`dW`")[2].partition("`db`")[0]
    )
    assert sizes == [("I", "N"), ("N", "O")]


def test_the_pages_that_people_read_as_they_are_have_no_holes(pages: ModuleType) -> None:
    """The index of the mistakes has its table, the page of explanations what the commands print, which is compared."""
    explained, mistakes = ((DOCS / name).read_text("utf-8") for name in ("explain.md", "mistakes/index.md"))
    assert "{generated}" not in explained + mistakes
    assert pages.mistakes() in mistakes, (
        "write what docs/_ext/pages.py: mistakes() returns into docs/mistakes/index.md"
    )
    assert explained.count("```console\n$ handgrad explain moons ") >= 6


def test_a_page_has_every_line_and_every_reason(rule_pages: ModuleType, written: dict[Any, str]) -> None:
    for rule, page in written.items():
        for text in rule_pages.texts_of(rule).values():
            for line in text.lines:
                assert f"| `{line}` |" in page.replace("\\|", "|")
                assert rule_pages.inline(line.reason) in page.replace("\\|", "|")


def test_a_page_has_every_note_of_the_docstring(rule_pages: ModuleType, written: dict[Any, str]) -> None:
    known = {*rule_pages.ABOVE, *rule_pages.BELOW}
    for rule, page in written.items():
        opening, notes = rule_pages.read_doc(rule_pages.text_of(rule).doc)
        assert opening, rule.name
        assert notes.keys() <= known, rule.name
        assert all(f"\n{name}\n: " in page for name in notes)


def test_a_rule_with_a_kink_at_zero_says_which_slope_it_takes(rule_pages: ModuleType) -> None:
    """Where a gradient jumps as an argument goes through 0, its page has a note of it."""
    found = set()
    for rule in RULES.values():
        for name in differentiable(rule):
            inputs = draw_for(rule, np.random.default_rng(0))
            sides = []
            for near in (-1e-9, 1e-9):
                inputs[name] = np.full_like(inputs[name], near)
                upstream = np.ones_like(rule(*inputs.values()))
                sides.append(rule.gradients(upstream, *inputs.values())[name])
            if not np.allclose(*sides, rtol=1e-3, atol=1e-3):
                found.add(rule.name)
                assert "Kinks" in rule_pages.read_doc(rule.forward.doc)[1], rule.name
    assert found == {"relu", "leaky_relu"}


def test_a_page_names_the_layers_with_the_rule(rule_pages: ModuleType) -> None:
    assert rule_pages.users_of(RULES["gelu_tanh"]) == ["GELU"]
    assert rule_pages.users_of(RULES["linear"]) == ["Linear"]
    assert rule_pages.users_of(rules.sgd_nesterov) == ["SGD"]


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_has_a_row(engine: str) -> None:
    rows = (DOCS / "engines.md").read_text(encoding="utf-8")
    assert f"\n| `{engine}` | " in rows, f"docs/engines.md: the table has no row of {engine}"


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
    recipe = tomllib.loads(FOR_TEXT.read_text("utf-8"))
    of_text = {f"{name}.{key}": value for name, table in recipe.items() for key, value in table.items()}
    of_text = {name: value for name, value in of_text.items() if not isinstance(value, dict)}
    defaults["data.context"] = of_text.pop("data.context")
    sizes = msgspec.structs.asdict(TransformerSettings())
    defaults |= {f"network.transformer.{key}": value for key, value in sizes.items()}
    for name, flag, more in SETTINGS:
        said = re.search(r"\[(.*)\]\.$", more["help"])
        if said:
            default = defaults[name]
            shown = ",".join(map(str, default)) if isinstance(default, list) else f"{default}"
            of_a_text = f"; of a text {of_text[name]}" if name in of_text else ""
            assert said[1] == shown.removesuffix(".0") + of_a_text, flag


def test_every_example_is_answered_on_the_page_of_questions() -> None:
    questions = (DOCS / "questions.md").read_text(encoding="utf-8")
    named = re.findall(r"`python examples/(\w+)\.py`", questions)
    assert named == sorted(path.stem for path in (DOCS.parent / "examples").glob("notes_*.py"))
    assert len(re.findall("^## ", questions, re.MULTILINE)) == len(named)


def test_every_benchmark_is_named_and_every_command_is_there() -> None:
    """A figure without its command could not be had again."""
    named = set(re.findall(r"python benchmarks/(\w+)\.py", TEXT))
    assert named == {path.stem for path in (DOCS.parent / "benchmarks").glob("*.py")}
    assert named == set(
        re.findall(r"python benchmarks/(\w+)\.py", (DOCS / "benchmarks.md").read_text("utf-8"))
    )


def test_every_package_that_can_be_added_is_on_the_page_of_installing() -> None:
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for_developers = {"test", "peers", "browser", "docs", "fuzz", "mutation", "lint"}
    named = re.findall(
        r"`pip install 'handgrad\[(\w+)\]'`", (DOCS / "install.md").read_text(encoding="utf-8")
    )
    assert sorted(named) == sorted(project["optional-dependencies"].keys() - for_developers)


def test_contributing_leads_to_every_how_to_that_changes_handgrad() -> None:
    text = (DOCS.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`docs/how-to/([\w-]+\.md)`", text))
    assert named == {page.name for page in (DOCS / "how-to").glob("add-*.md")}

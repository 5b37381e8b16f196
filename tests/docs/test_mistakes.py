"""Every mistake that the checker names has a page, and each page has what a reader comes for."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from handgrad.checking import MISTAKES, diagnosis, repair

PAGES = Path(__file__).parents[2] / "docs" / "mistakes"
SECTIONS = ["Symptom", "Why people make it", "Derivation", "Repair", "What the checker says"]

NAMED = {
    node.value: path.name
    for package in (diagnosis, repair)
    for path in Path(package.__file__).parent.glob("*.py")
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    if isinstance(node, ast.Constant) and isinstance(node.value, str)
}
"""Every text in the code that names mistakes, and a file that has it."""


@pytest.mark.parametrize("code", MISTAKES)
def test_every_code_is_named_by_something(code: str) -> None:
    assert code in NAMED, (
        f"checking/mistakes.py has {code}, and nothing in checking/diagnosis and checking/repair names it"
    )


@pytest.mark.parametrize("code", [text for text in NAMED if re.fullmatch("[a-z]+(-[a-z]+)+", text)])
def test_what_is_named_is_a_code(code: str) -> None:
    """Nothing else there is written like a code."""
    assert code in MISTAKES, f"{NAMED[code]} names {code}, which checking/mistakes.py does not have"


def test_every_page_has_a_code() -> None:
    unknown = {path.stem for path in PAGES.glob("*.md")} - {"index", *MISTAKES}
    assert not unknown, f"docs/mistakes has pages of {unknown}, which checking/mistakes.py does not have"


@pytest.mark.parametrize("code", MISTAKES)
def test_a_code_has_a_page_with_its_sections_and_an_example_of_its_mistake(code: str) -> None:
    name = f"docs/mistakes/{code}.md"
    path = PAGES / f"{code}.md"
    assert path.exists(), f"{name} is missing"
    text = path.read_text("utf-8")
    assert text.startswith(f"# {code}\n"), f"{name} does not begin with # {code}"
    sections = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert sections == SECTIONS, f"{name} has the sections {sections}, and not {SECTIONS}"
    example, report = re.findall(r"^```\w+\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert example.endswith("print(check(forward, backward, inputs))\n"), (
        f"{name}: the example ends otherwise"
    )
    assert re.findall(r"^  (\S+) in d\w+", report, re.MULTILINE)[0] == code, f"{name} reports another mistake"
    assert re.search(r"proved on fresh inputs\n(.*\n)*      [+-] ? ?", report), f"{name} shows no repair"

"""Every mistake that the checker names has a page, and each page has what a reader comes for."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import handgrad.checking
from handgrad.checking import MISTAKES

PAGES = Path(__file__).parents[2] / "docs" / "mistakes"
SECTIONS = ["Symptom", "Why people make it", "Derivation", "Repair", "What the checker says"]

CHECKER = Path(handgrad.checking.__file__).parent
NAMED = {
    node.value: path.relative_to(CHECKER.parent).as_posix()
    for path in CHECKER.rglob("*.py")
    if path.name != "mistakes.py"
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    if isinstance(node, ast.Constant) and isinstance(node.value, str)
}
"""Every text in the checker's code, and a file that has it."""


@pytest.mark.parametrize("code", MISTAKES)
def test_every_code_is_named_by_something(code: str) -> None:
    assert code in NAMED, f"src/handgrad/checking/mistakes.py has {code}, and nothing in diagnosis names it"


@pytest.mark.parametrize("code", [text for text in NAMED if re.fullmatch("[a-z]+(-[a-z]+)+", text)])
def test_what_is_named_is_a_code(code: str) -> None:
    """Nothing else in the checker is written like a code."""
    assert code in MISTAKES, (
        f"src/handgrad/{NAMED[code]} names {code}, which checking/mistakes.py does not have"
    )


def test_every_page_has_a_code() -> None:
    unknown = {path.stem for path in PAGES.glob("*.md")} - {"index", *MISTAKES}
    assert not unknown, f"docs/mistakes: src/handgrad/checking/mistakes.py has no {unknown}"


@pytest.mark.parametrize("code", MISTAKES)
def test_a_code_has_a_page_with_its_sections_and_an_example_of_its_mistake(code: str) -> None:
    path = PAGES / f"{code}.md"
    assert path.exists(), f"docs/mistakes/{code}.md is missing"
    text = path.read_text("utf-8")
    assert text.startswith(f"# {code}\n"), f"docs/mistakes/{code}.md does not begin with # {code}"
    sections = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert sections == SECTIONS, f"docs/mistakes/{code}.md has the sections {sections}, and not {SECTIONS}"
    example, report = re.findall(r"^```\w+\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert example.endswith("print(check(forward, backward, inputs))\n")
    assert re.findall(r"^  (\S+) in d\w+", report, re.MULTILINE)[0] == code
    assert re.search(r"proved on fresh inputs\n(.*\n)*      \+ ? ?", report), "the repair is shown"

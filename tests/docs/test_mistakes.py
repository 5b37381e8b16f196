"""Every mistake that the checker names has a page, and each page has what a reader comes for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from handgrad.checking import MISTAKES

PAGES = Path(__file__).parents[2] / "docs" / "mistakes"
SECTIONS = ["Symptom", "Why people make it", "Derivation", "Repair", "What the checker says"]


def test_every_code_has_a_page_and_a_row() -> None:
    index = (PAGES / "index.md").read_text("utf-8")
    assert {path.stem for path in PAGES.glob("*.md")} == {"index", *MISTAKES}
    assert re.findall(r"^\| \[(.+?)\]\(\1\.md\) \| (.+?) \|", index, re.MULTILINE) == [
        (code, mistake.title) for code, mistake in MISTAKES.items()
    ]
    assert index.split(":hidden:")[1].split("```")[0].split() == list(MISTAKES)
    assert f" {len(MISTAKES)} codes" in index


@pytest.mark.parametrize("code", MISTAKES)
def test_a_page_has_its_sections_and_an_example_of_its_mistake(code: str) -> None:
    text = (PAGES / f"{code}.md").read_text("utf-8")
    assert text.startswith(f"# {code}\n")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == SECTIONS
    example, report = re.findall(r"^```\w+\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert example.endswith("print(check(forward, backward, inputs))\n")
    assert re.findall(r"^  (\S+) in d\w+", report, re.MULTILINE)[0] == code
    assert re.search(r"proved on fresh inputs\n(.*\n)*      \+ ? ?", report), "the repair is shown"

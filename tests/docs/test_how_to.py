"""The how-tos that change handgrad say how many files they change; CONTRIBUTING leads to each."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .examples import read_diff

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "how-to").glob("add-*.md"))
COUNTS = ("No", "One", "Two", "Three", "Four", "Five")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_files_that_are_changed_are_counted(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```diff\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    changed = {name for block in blocks for name, _ in read_diff(block)}
    assert f"{COUNTS[len(changed)]} files change:" in " ".join(text.split()), changed


def test_contributing_leads_to_every_one() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(docs/how-to/[\w-]+\.md)`", text))
    assert named == {page.relative_to(ROOT).as_posix() for page in PAGES}

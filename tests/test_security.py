"""SECURITY.md names a test for each threat; here the names are held to the tests."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TEXT)


def test_every_test_that_is_named_exists() -> None:
    missing = []
    for file, name in NAMED:
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        if name not in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}:
            missing.append(f"{file}::{name}")
    assert missing == []
    assert len(NAMED) > 30


def test_every_threat_names_a_test() -> None:
    """Each row of the table ends with what holds it."""
    rows = [line for line in TEXT.splitlines() if line.startswith("|")][2:]
    assert len(rows) > 15
    assert [row for row in rows if not re.search(r"`tests/[\w/]+\.py::\w+` \|$", row)] == []

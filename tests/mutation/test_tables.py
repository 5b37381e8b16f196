"""The tables of mutation testing name what there is: files and tests."""

from __future__ import annotations

import shlex
import tomllib
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
AREAS = tomllib.loads((HERE / "areas.toml").read_text())["area"]
SURVIVORS = tomllib.loads((HERE / "survivors.toml").read_text())["survivor"]


def files_of(pattern: str) -> list[Path]:
    return sorted((ROOT / "src" / "handgrad").glob(pattern))


@pytest.mark.parametrize("area", AREAS, ids=lambda area: f"{area['name']}: {area['files'][0]}")
def test_every_file_and_every_test_of_an_area_is_there(area: dict[str, list[str]]) -> None:
    for pattern in area["files"]:
        assert files_of(pattern), pattern
    for selection in area["tests"]:
        for word in shlex.split(selection):
            path = word.split("::")[0]
            stems = [found.stem for pattern in area["files"] for found in files_of(pattern)]
            for stem in stems if "{file}" in path else [""]:
                assert not path.startswith("tests/") or (ROOT / path.format(file=stem)).exists(), path


def test_every_survivor_is_killed_by_a_test_that_there_is_or_explained() -> None:
    names = [entry["mutant"] for entry in SURVIVORS]
    assert len(names) == len(set(names))
    for entry in SURVIVORS:
        assert ("killed_by" in entry) != ("why" in entry), entry["mutant"]
        if "killed_by" in entry:
            path, test = entry["killed_by"].split("::")
            assert f"def {test}(" in (ROOT / path).read_text(), entry["killed_by"]

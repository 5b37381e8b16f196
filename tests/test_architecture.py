"""docs/architecture.md draws the house as it stands: its rooms, its floors, and the names on the way of a batch."""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import handgrad

SOURCE = Path(handgrad.__file__).parent
PROJECT = Path(__file__).parents[1]
PAGE = (PROJECT / "docs" / "architecture.md").read_text(encoding="utf-8")
DRAWINGS = re.findall(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)

Floors = list[list[str]]


def rooms(folder: Path) -> set[str]:
    """Return the modules and packages that stand in a folder."""
    files = {path.stem for path in folder.glob("*.py")} - {"__init__", "__main__"}
    return files | {path.parent.name for path in folder.glob("*/__init__.py")}


def drawn(first: str) -> Floors:
    """Return the floors of the drawing that begins with this room, the top one first."""
    (drawing,) = (drawing for drawing in DRAWINGS if drawing.splitlines()[0] == first)
    return [line.split(" · ") for line in drawing.splitlines()]


def contracted(container: str) -> Floors:
    """Return the floors that lint-imports keeps."""
    settings = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (contract,) = (each for each in settings["contracts"] if each.get("containers") == [container])
    assert contract["exhaustive"]
    return [floor.split(" | ") for floor in contract["layers"]]


HOUSES = {"handgrad": ("cli", SOURCE), "handgrad.checking": ("check", SOURCE / "checking")}


@pytest.mark.parametrize("house", HOUSES)
def test_every_room_is_drawn_on_the_floor_where_its_imports_are_kept(house: str) -> None:
    first, folder = HOUSES[house]
    floors = drawn(first)
    assert floors == contracted(house)
    assert sorted(room for floor in floors for room in floor) == sorted(rooms(folder))


def imported(path: Path, house: str) -> Iterator[str]:
    """Yield the rooms of a house that a file imports from anywhere in it, at its top or later."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        yield from (
            name.removeprefix(f"{house}.").split(".")[0] for name in names if name.startswith(f"{house}.")
        )


@pytest.mark.parametrize("house", HOUSES)
def test_a_room_imports_only_from_the_floors_under_its_own(house: str) -> None:
    """The types that only a type checker reads count too: they say who knows whom."""
    first, folder = HOUSES[house]
    height = {room: -number for number, floor in enumerate(drawn(first)) for room in floor}
    for room in rooms(folder):
        files = [folder / f"{room}.py"] if (folder / f"{room}.py").exists() else (folder / room).rglob("*.py")
        for path in files:
            for other in imported(path, house):
                if other != room and other in height:
                    assert height[other] < height[room], f"{path.relative_to(SOURCE)} imports {other}"


def test_every_room_has_its_row() -> None:
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", PAGE, re.MULTILINE)
    assert sorted(re.findall(r"\w+", " ".join(rows))) == sorted(rooms(SOURCE))


def found(name: str) -> bool:
    """Whether a dotted name is a module of handgrad, of its checker or of its compiled engine, or something in one."""
    for house in ("handgrad", "handgrad.checking", "handgrad.engines.compiled"):
        parts = f"{house}.{name}".split(".")
        for cut in range(len(parts), 1, -1):
            try:
                thing = importlib.import_module(".".join(parts[:cut]))
            except ModuleNotFoundError:
                continue
            for part in parts[cut:]:
                thing = getattr(thing, part, None)
            if thing is not None:
                return True
            break
    return False


WAYS = [drawing for drawing in DRAWINGS if "." in drawing]


def test_the_two_ways_are_drawn() -> None:
    """Of a batch and of a user's function; else the next test has nothing to look at."""
    assert len(WAYS) == 2


@pytest.mark.parametrize("name", sorted({name for way in WAYS for name in re.findall(r"[\w.]+\.\w+", way)}))
def test_every_name_on_a_way_is_there(name: str) -> None:
    assert found(name)


def modules_named() -> list[str]:
    """Return what the steps of the page call a module: ``judging.scale``, ``reading``, ``rules/rule_source.py``."""
    steps = PAGE[PAGE.index("## One program") :]
    names = re.findall(r"`([a-z_]+(?:\.[a-z_]+)+|[a-z_]+/[a-z_]+\.py)`", steps)
    listed = re.findall(
        r"^\d\. `([a-z_]+)`|(?<=[.;] )`([a-z_]+)` (?:is|places|puts|holds|goes|writes)", steps, re.MULTILINE
    )
    return sorted({*names, *("".join(pair) for pair in listed)})


@pytest.mark.parametrize("name", modules_named())
def test_every_module_that_the_steps_name_is_there(name: str) -> None:
    assert found(name.removesuffix(".py").replace("/", "."))


def test_a_name_that_is_not_there_is_found_out() -> None:
    assert not found("rules.nonsense")
    assert not found("checking.nonsense.judge")

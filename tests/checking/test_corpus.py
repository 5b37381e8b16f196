"""The corpus of gradients people got wrong, and of right ones that look wrong: each is judged, placed and named."""

import importlib.util
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from handgrad.checking import Report, check

CASES = Path(__file__).parent / "cases"


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"case_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def where(case: ModuleType) -> Iterable[str]:
    return (case.WHERE,) if isinstance(case.WHERE, str) else case.WHERE


@pytest.mark.parametrize("path", sorted((CASES / "right").glob("*.py")), ids=lambda path: path.stem)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_right_gradient_is_right(path: Path, seed: int):
    """No false alarm, and no shrug."""
    case = load(path)
    report = check(case.forward, case.backward, case.inputs(np.random.default_rng(seed)), seed=seed)
    assert report.verdict == "right", str(report)


WRONG = {path.stem: path for path in sorted((CASES / "wrong").glob("*.py"))}


@cache
def judged(name: str) -> tuple[ModuleType, Report]:
    case = load(WRONG[name])
    return case, check(case.forward, case.backward, case.inputs(np.random.default_rng(0)))


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_gradient_is_wrong_and_placed(name: str):
    """The first finding is at an argument that is wrong."""
    case, report = judged(name)
    assert report.verdict == "wrong"
    assert report.findings[0].argument in where(case), str(report)


def test_nearly_all_wrong_gradients_are_named():
    """The first finding has a fair name; searches count their work, so that every machine finds the same."""
    missed = []
    for name in WRONG:
        case, report = judged(name)
        if report.findings[0].code not in (case.EXPECT, *case.ACCEPT):
            missed.append(f"{name}: {report.findings[0].code} for {case.EXPECT}")
    assert len(missed) <= 0.07 * len(WRONG), missed


def test_nearly_all_wrong_gradients_are_repaired():
    """The first finding carries a repair of the source that was proved."""
    missed = [name for name in WRONG if not judged(name)[1].findings[0].proved]
    assert len(missed) <= 0.05 * len(WRONG), missed

"""The corpus of gradients people got wrong, and of right ones that look wrong: each is judged, placed and named."""

import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from handgrad.checking import check

CASES = Path(__file__).parent / "cases"

# Fair descriptions of these differ, or the mistake is one that the checker does not know yet: it says that the
# gradient is wrong and where, and gives another name.
UNNAMED = {
    "average_pool_overhang": "a window of another size, seen as an index",
    "batchnorm_mean_counted_twice": "the mean's path twice is the same numbers as a slope at another value",
    "bilinear_pairs": "averages before a product of three",
    "contrastive_difference": "a branch of a loop without its factor",
    "group_of_a_channel": "an index computed with % for //",
    "layernorm_gain_ignored": "several places lack one factor",
    "layernorm_whole_block": "two sums over all axes, in two lines",
    "reciprocal_not_squared": "the numbers are those of a factor too many",
    "straight_through_rounding": "a derivative of what has none",
    "weight_norm_direction": "the numbers are those of a wrong sign",
}


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


@pytest.mark.parametrize("path", sorted((CASES / "wrong").glob("*.py")), ids=lambda path: path.stem)
def test_a_wrong_gradient_is_wrong_and_named(path: Path):
    """The first finding is at an argument that is wrong, and has a fair name; a proved repair is right."""
    case = load(path)
    report = check(case.forward, case.backward, case.inputs(np.random.default_rng(0)))
    assert report.verdict == "wrong"
    first = report.findings[0]
    assert first.argument in where(case), str(report)
    named = first.code in (case.EXPECT, *case.ACCEPT)
    assert named or path.stem in UNNAMED, str(report)

"""Every wrong version of handgrad's own backwards is caught, at its argument, and nearly all are named."""

from functools import cache
from unittest.mock import patch

import numpy as np
import pytest

from handgrad.checking import Report, check

from .mutants import Mutant, mutants

EVERY = {mutant.id: mutant for mutant in mutants()}


@cache
def report_of(name: str) -> Report:
    """Check a mutant without a search for a repair: its source is this package's, where nothing is to be mended."""
    mutant: Mutant = EVERY[name]
    with patch("handgrad.checking.check.mend", return_value=None):
        return check(mutant.forward, mutant.backward, mutant.inputs(np.random.default_rng(0)))


@pytest.mark.parametrize("name", EVERY)
def test_a_mutant_is_caught_and_placed(name: str):
    """A mutant is wrong, and the first finding is at the argument that was changed."""
    report = report_of(name)
    assert report.verdict == "wrong"
    assert report.findings[0].argument == EVERY[name].argument


def test_nearly_all_mutants_are_named():
    """At least 95 % of the mutants get the name of the mistake that made them."""
    missed = [name for name, mutant in EVERY.items() if report_of(name).findings[0].code not in mutant.codes]
    assert len(missed) <= 0.05 * len(EVERY), missed

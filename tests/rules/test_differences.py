"""A second opinion that needs no other library: central differences of the forward."""

from __future__ import annotations

import pytest

from .checks import check_against_differences
from .table import Case, each_case


@pytest.mark.parametrize(("case", "rank"), each_case())
def test_gradients_are_the_slopes_of_the_forward(case: Case, rank: int) -> None:
    """Away from kinks, every gradient equals Richardson's central differences to 1e-9 of its norm."""
    check_against_differences(case, rank)

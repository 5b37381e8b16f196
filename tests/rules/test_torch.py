"""A second opinion on every rule: PyTorch's own functions, differentiated by its autograd."""

from __future__ import annotations

from typing import Any

import pytest

from .checks import check_against_torch
from .table import Case, each_case


@pytest.mark.peers
@pytest.mark.parametrize(("case", "rank"), each_case())
def test_output_and_gradients_are_those_of_torch(torch: Any, case: Case, rank: int) -> None:
    """At 20 random shapes in float64, the output and every gradient are PyTorch's to 1e-10."""
    check_against_torch(torch, case, rank, seed=0, batch=1)
    for seed in range(1, 21):
        check_against_torch(torch, case, rank, seed=seed)

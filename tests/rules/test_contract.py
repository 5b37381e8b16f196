"""What every rule promises besides the right numbers."""

from __future__ import annotations

import pytest

from .checks import check_contract
from .table import Case, each_case


@pytest.mark.parametrize(("case", "rank", "dtype"), each_case("float32", "float64"))
def test_shapes_types_and_purity(case: Case, rank: int, dtype: str) -> None:
    """A gradient has its variable's shape and type; nothing is changed; only what is kept is read."""
    check_contract(case, rank, dtype)

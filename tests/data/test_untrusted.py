"""What a compressed file may claim is limited by its size on disk, and by a number of gigabytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from handgrad.data.untrusted import FREE, LARGEST, RATIO, check_claim
from handgrad.errors import DataError


@pytest.mark.parametrize(
    ("size", "limit"), [(0, FREE), (FREE // RATIO, FREE), (3 * 2**20, RATIO * 3 * 2**20), (2**30, LARGEST)]
)
def test_a_claim_up_to_the_limit_is_allowed_and_one_byte_more_is_not(
    tmp_path: Path, size: int, limit: int
) -> None:
    path = tmp_path / "d.npz"
    with path.open("wb") as file:
        file.truncate(size)  # a file without contents, which takes no room on the disk
    check_claim(path, limit)
    with pytest.raises(DataError, match=f"claims {limit + 1} bytes of contents, and {limit} is the limit"):
        check_claim(path, limit + 1)

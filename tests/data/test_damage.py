"""Whatever happens to a file, reading it gives data or a ``DataError``, never another exception."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from handgrad.data import load, read_idx
from handgrad.data.sources import BY_SUFFIX
from handgrad.errors import DataError

from .formats import WRITE

FILES = [*(f"d{suffix}" for suffix in WRITE), "d.idx", "d.idx.gz"]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory, idx_bytes: Callable[[NDArray], bytes]) -> Path:
    """Make one sound file of each format."""
    folder = tmp_path_factory.mktemp("sound")
    x, t = np.arange(18.0).reshape(9, 2), np.arange(9) % 2
    for suffix, write in WRITE.items():
        write(folder / f"d{suffix}", x, t)
    (folder / "d.idx").write_bytes(idx_bytes(x.astype(np.float32)))
    (folder / "d.idx.gz").write_bytes(gzip.compress((folder / "d.idx").read_bytes()))
    return folder


def damaged(content: bytes, data: st.DataObject) -> bytes:
    start = data.draw(st.integers(0, len(content)), label="start")
    removed = data.draw(st.sampled_from([0, 1, 4, len(content)]), label="bytes removed")
    return content[:start] + data.draw(st.binary(max_size=4), label="put there") + content[start + removed :]


@pytest.mark.filterwarnings("ignore:Reading `.npy`:UserWarning")
@pytest.mark.filterwarnings("ignore:.*the target is empty:UserWarning")
@pytest.mark.parametrize("name", FILES)
@settings(deadline=None)
@given(data=st.data())
def test_a_damaged_file_gives_data_or_a_data_error(name: str, data: st.DataObject, sound: Path) -> None:
    targets = {"own": None, "file": str(sound / "t.npy"), "column": "t"}
    path = sound / f"damaged-{name}"
    path.write_bytes(damaged((sound / name).read_bytes(), data))
    found = BY_SUFFIX.get(path.suffix)
    read = partial(load, target=targets[found.target]) if found else read_idx
    with suppress(DataError):
        assert len(read(path)) > 0

"""Whatever happens to a file, reading it gives data or a ``DataError``, never another exception."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from handgrad.data import load, read_idx
from handgrad.errors import DataError

ROWS = 9


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory, idx_bytes: Callable[[NDArray], bytes]) -> Path:
    """Make one sound file of each format."""
    folder = tmp_path_factory.mktemp("sound")
    x, y = np.arange(2.0 * ROWS).reshape(ROWS, 2), np.arange(ROWS) % 2
    np.save(folder / "d.npy", x)
    np.save(folder / "t.npy", y)
    np.savez_compressed(folder / "d.npz", x=x, t=y)
    np.savetxt(folder / "d.csv", np.column_stack([x, y]), delimiter=",", header="a,b,y", comments="")
    pq.write_table(pa.table({"a": x[:, 0], "b": x[:, 1], "y": y}), folder / "d.parquet")
    (folder / "d.idx").write_bytes(idx_bytes(x.astype(np.float32)))
    (folder / "d.idx.gz").write_bytes(gzip.compress((folder / "d.idx").read_bytes()))
    return folder


def damaged(content: bytes, data: st.DataObject) -> bytes:
    start = data.draw(st.integers(0, len(content)), label="start")
    removed = data.draw(st.sampled_from([0, 1, 4, len(content)]), label="bytes removed")
    return content[:start] + data.draw(st.binary(max_size=4), label="put there") + content[start + removed :]


@pytest.mark.filterwarnings("default:Reading `.npy`:UserWarning")
@pytest.mark.parametrize("name", ["d.npy", "d.npz", "d.csv", "d.parquet", "d.idx", "d.idx.gz"])
@settings(deadline=None)
@given(data=st.data())
def test_a_damaged_file_gives_data_or_a_data_error(name: str, data: st.DataObject, sound: Path) -> None:
    targets = {".npy": str(sound / "t.npy"), ".csv": "y", ".parquet": "y"}
    path = sound / f"damaged-{name}"
    path.write_bytes(damaged((sound / name).read_bytes(), data))
    read = read_idx if "idx" in name else partial(load, target=targets.get(path.suffix))
    with suppress(DataError):
        assert len(read(path)) > 0

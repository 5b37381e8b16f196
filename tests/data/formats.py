"""How a sound file of each format is written: the one table of the tests of readers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

Write = Callable[[Path, NDArray, NDArray], str | None]


def text(path: Path, x: NDArray, t: NDArray, delimiter: str) -> str:
    rows = zip(x[:, 0].tolist(), t.tolist(), x[:, 1].tolist(), strict=True)
    lines = ["b", "t", "a"], *(map(str, row) for row in rows)
    path.write_text("".join(delimiter.join(cells) + "\n" for cells in lines))
    return "t"


def parquet(path: Path, x: NDArray, t: NDArray) -> str:
    pq.write_table(pa.table({"b": x[:, 0], "t": t, "a": x[:, 1]}), path)
    return "t"


def npz(path: Path, x: NDArray, t: NDArray) -> None:
    np.savez_compressed(path, x=x, t=t)


def npy(path: Path, x: NDArray, t: NDArray) -> str:
    np.save(path, x)
    np.save(path.with_name("t.npy"), t)
    return str(path.with_name("t.npy"))


WRITE: dict[str, Write] = {
    ".csv": partial(text, delimiter=","),
    ".tsv": partial(text, delimiter="\t"),
    ".parquet": parquet,
    ".npz": npz,
    ".npy": npy,
}
"""By suffix: writes x, (n, 2), and t, (n,), and returns what `load` takes as target. Tables have the columns b, t, a."""
